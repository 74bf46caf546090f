"""Lists of runs and replays, and deleting a run."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.models import Replay, Run, RunContent, Session, Trace
from sessions_app.services.contents import sweep_contents
from sessions_app.services.spans import receive
from sessions_app.services.verification import problems
from tests.builders import make_client, make_key, make_project, make_record, make_tool_step, post_run
from tests.traces.captures import CHOICE, Capture

pytestmark = pytest.mark.django_db


@pytest.fixture
def project():
    return make_project()


@pytest.fixture
def client(project):
    return make_client(make_key(project))


def all_of(client, address: str, name: str) -> list[str]:
    """Read in pages of two, to the end."""
    found: list[str] = []
    cursor = ""
    while True:
        page = client.get(address, {"limit": 2, **({"cursor": cursor} if cursor else {})}).json()
        assert len(page["items"]) <= 2
        found += [item[name] for item in page["items"]]
        if page["next_cursor"] is None:
            return found
        cursor = page["next_cursor"]


def queries_of(client, address: str, limit: int) -> tuple[int, int]:
    with CaptureQueriesContext(connection) as asked:
        answer = client.get(address, {"limit": limit})
    return len(answer.json()["items"]), len(asked)


def replayed(project, run: Run, number: int, **columns) -> Replay:
    fields = {"state": "done", "verdict": "reproduced", "mode": "recording", **columns}
    return Replay.objects.create(project=project, run=run, content=run.content, number=number, **fields)


# --- lists -------------------------------------------------------------------------------------


def test_runs_come_newest_first_in_pages(client):
    for number in range(5):
        post_run(client, make_record(f"r{number}", make_tool_step(), input=f"question {number}"))

    assert all_of(client, "/api/v1/runs", "run_id") == ["r4", "r3", "r2", "r1", "r0"]
    first = client.get("/api/v1/runs?limit=1").json()["items"][0]
    whole = client.get("/api/v1/runs/r4").json()
    assert first == whole


def test_a_run_says_which_steps_its_answer_comes_from(client):
    found = make_tool_step(result={"order": "ORD-77"})
    post_run(client, make_record("r", found, status="ok", input="Where is it?", output="ORD-77 costs 410 EUR."))

    assert client.get("/api/v1/runs/r").json()["answer_sources"] == {"steps": [1], "in_no_step": ["410"]}


def test_runs_are_found_by_a_query(client):
    post_run(client, make_record("good"))
    post_run(client, make_record("bad", status="error", error={"type": "Timeout", "message": "late"}))

    assert [run["run_id"] for run in client.get("/api/v1/runs?q=status:error").json()["items"]] == ["bad"]
    assert client.get("/api/v1/runs?q=steps:many").status_code == 400


def test_replays_come_newest_first_under_a_filter(client, project):
    post_run(client, make_record("r"))
    run = Run.objects.get()
    made = [replayed(project, run, n, verdict="reproduced" if n % 2 else "diverged").replay_id for n in range(1, 6)]

    assert all_of(client, "/api/v1/replays", "replay_id") == made[::-1]
    assert all_of(client, "/api/v1/runs/r/replays", "replay_id") == made[::-1]
    different = client.get("/api/v1/replays?q=different").json()["items"]
    assert [replay["replay_id"] for replay in different] == [made[3], made[1]]
    assert different[0] == client.get(f"/api/v1/replays/{made[3]}").json()


def test_what_cannot_be_asked_for_is_refused_by_name(client):
    refused = client.get("/api/v1/replays?q=lost")

    assert refused.status_code == 400
    assert "reproduced" in refused.json()["error"]["message"]
    for address in ("/api/v1/runs", "/api/v1/replays"):
        for cursor in ("x", "LTE", "é"):
            assert client.get(address, {"cursor": cursor}).status_code == 400
        assert client.get(address, {"limit": 0}).status_code == 400


def test_nothing_of_another_project_is_listed(client):
    other = make_project("other")
    post_run(make_client(make_key(other)), make_record("theirs"))
    replayed(other, Run.objects.get(), 1)

    assert client.get("/api/v1/runs").json() == {"items": [], "next_cursor": None}
    assert client.get("/api/v1/replays").json() == {"items": [], "next_cursor": None}
    assert client.get("/api/v1/runs/theirs/replays").status_code == 404


@pytest.mark.parametrize("address", ["/api/v1/runs", "/api/v1/replays", "/api/v1/runs/r0/replays"])
def test_a_list_asks_nothing_for_each_row(client, project, address):
    for number in range(7):
        post_run(client, make_record(f"r{number}", make_tool_step(result=number)))
    for number, run in enumerate(Run.objects.order_by("pk"), start=1):
        replayed(project, run, number)
        replayed(project, Run.objects.get(run_id="r0"), 100 + number)
    queries_of(client, address, 1)

    few, many = queries_of(client, address, 2), queries_of(client, address, 7)

    assert (few[0], many[0]) == (2, 7)
    assert few[1] == many[1]


# --- deleting ----------------------------------------------------------------------------------


def test_a_deleted_run_is_gone_with_its_replays_and_what_they_produced(client, project):
    post_run(client, make_record("r", make_tool_step()))
    post_run(client, make_record("made", make_tool_step(), origin="replay", parent={"run_id": "r"}))
    post_run(client, make_record("kept"))
    made = Run.objects.get(run_id="made")
    replayed(project, Run.objects.get(run_id="r"), 1, produced_run=made)

    assert client.delete("/api/v1/runs/r").status_code == 204

    assert list(Run.objects.values_list("run_id", flat=True)) == ["kept"]
    assert not Replay.objects.exists()
    assert list(Session.objects.values_list("session_id", flat=True)) == ["kept"]
    assert client.delete("/api/v1/runs/r").status_code == 404
    RunContent.objects.update(released_at="2020-01-01T00:00:00Z")
    assert sweep_contents() == 2
    assert not list(problems())


def test_a_run_that_came_as_spans_does_not_come_back(client, project):
    receive(project, Capture(CHOICE / "pydantic-ai-v5" / "order_lookup").spans)
    run_id = Run.objects.get().run_id

    assert client.delete(f"/api/v1/runs/{run_id}").status_code == 204

    assert not Trace.objects.exists()
    assert client.get(f"/api/v1/runs/{run_id}").status_code == 404
    assert not list(problems())


def test_forks_of_a_deleted_run_keep_their_steps(client, project):
    post_run(client, make_record("r", make_tool_step(result="one"), make_tool_step(result="two")))
    changed = [make_tool_step(result="one"), make_tool_step(result="other")]
    post_run(client, make_record("f", *changed, origin="fork", parent={"run_id": "r"}))
    assert Run.objects.get(run_id="f").content.base is not None

    assert client.delete("/api/v1/runs/r").status_code == 204

    steps = client.get("/api/v1/runs/f/steps").json()["items"]
    assert [step["result"] for step in steps] == ["one", "other"]
    assert not list(problems())


def test_a_run_is_kept_while_a_replay_of_it_goes_on(client, project):
    post_run(client, make_record("r"))
    replay = replayed(project, Run.objects.get(), 1, state="running", verdict=None)

    refused = client.delete("/api/v1/runs/r")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "in_use")

    Replay.objects.filter(pk=replay.pk).update(state="cancelled")
    assert client.delete("/api/v1/runs/r").status_code == 204
