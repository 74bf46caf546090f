"""`changed_since`: what changed since a time, the oldest change first, with a cursor that passes nothing over."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.models import ColdCase, Replay, Run, Trace
from sessions_app.services.spans import receive
from tests.api.test_run_lists import replayed
from tests.builders import make_client, make_key, make_project, make_record, make_tool_step, post_run
from tests.traces.captures import CHOICE, Capture

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def project():
    return make_project()


@pytest.fixture
def client(project):
    return make_client(make_key(project))


@pytest.fixture
def runs(client):
    """Three, which came at 12:00, 12:01 and 12:02."""
    for number in range(3):
        post_run(client, make_record(f"r{number}", make_tool_step()))
        Run.objects.filter(run_id=f"r{number}").update(received_at=after(number))
    return Run.objects.order_by("pk")


def after(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def changed(client, since: datetime, address="runs", name="run_id", **more) -> list[str]:
    """Read one at a time, to the end."""
    found: list[str] = []
    query = {"changed_since": since.isoformat(), "limit": 1, **more}
    while True:
        page = client.get(f"/api/v1/{address}", query).json()
        found += [item[name] for item in page["items"]]
        if page["next_cursor"] is None:
            return found
        query["cursor"] = page["next_cursor"]


def test_runs_that_came_since_are_listed_with_their_times_the_oldest_first(client, runs):
    assert changed(client, after(0)) == ["r0", "r1", "r2"]
    assert changed(client, after(0.5)) == ["r1", "r2"]
    assert changed(client, after(2.5)) == []
    times = client.get("/api/v1/runs", {"changed_since": after(1).isoformat()}).json()["items"]
    assert [item["changed_at"] for item in times] == [after(n).isoformat(timespec="microseconds") for n in (1, 2)]


def test_a_run_that_is_marked_later_has_changed_again(client, runs):
    ColdCase.objects.create(run=runs[0], reason="lost")
    ColdCase.objects.update(marked_at=after(5))

    assert changed(client, after(2)) == ["r2", "r0"]


def test_a_run_whose_spans_come_later_has_changed_again(client, project):
    receive(project, Capture(CHOICE / "pydantic-ai-v5" / "order_lookup").spans)
    Run.objects.update(received_at=after(0))
    Trace.objects.update(changed_at=after(3))

    assert changed(client, after(2)) == [Run.objects.get().run_id]
    assert changed(client, after(4)) == []


def test_what_changes_while_the_list_is_read_comes_again_and_nothing_is_passed_over(client, runs):
    first = client.get("/api/v1/runs", {"changed_since": NOON.isoformat(), "limit": 2}).json()
    Run.objects.filter(run_id="r0").update(received_at=after(9))

    rest = client.get("/api/v1/runs", {"changed_since": NOON.isoformat(), "cursor": first["next_cursor"]}).json()

    assert [item["run_id"] for page in (first, rest) for item in page["items"]] == ["r0", "r1", "r2", "r0"]


def test_rows_of_one_moment_are_read_once_each(client, runs):
    Run.objects.update(received_at=NOON)

    assert changed(client, NOON) == ["r0", "r1", "r2"]


def test_replays_change_when_they_are_asked_for_taken_up_and_ended(client, project, runs):
    made = [replayed(project, runs[0], n).replay_id for n in (1, 2, 3)]
    Replay.objects.update(created_at=NOON, claimed_at=after(1))
    Replay.objects.filter(replay_id=made[0]).update(finished_at=after(7))
    Replay.objects.filter(replay_id=made[1]).update(claimed_at=after(5))

    for address in ("replays", "runs/r0/replays"):
        assert changed(client, after(2), address, "replay_id") == [made[1], made[0]]
        assert changed(client, NOON, address, "replay_id") == [made[2], made[1], made[0]]
    assert changed(client, NOON, "replays", "replay_id", q="different") == []


@pytest.mark.parametrize("address", ["runs", "replays"])
def test_the_number_of_queries_is_that_of_one_row(client, project, runs, address):
    for number in (1, 2, 3):
        replayed(project, runs[0], number)

    def queries(limit):
        with CaptureQueriesContext(connection) as asked:
            client.get(f"/api/v1/{address}", {"changed_since": "2020-01-01T00:00:00Z", "limit": limit})
        return len(asked)

    queries(1)  # notes the use of the key
    assert queries(1) == queries(3)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"changed_since": "yesterday"}, "changed_since"),
        ({"changed_since": "2026-03-01T12:00:00"}, "changed_since"),
        ({"changed_since": "2026-03-01T12:00:00Z", "cursor": "NDI"}, "cursor"),
        ({"changed_since": "2026-03-01T12:00:00Z", "cursor": "!"}, "cursor"),
    ],
)
def test_what_is_no_time_and_no_cursor_of_such_a_list_is_refused(client, query, field):
    answer = client.get("/api/v1/runs", query)

    assert (answer.status_code, answer.json()["error"]["field"]) == (400, field)


def test_a_cursor_of_such_a_list_is_none_of_another(client, runs):
    cursor = client.get("/api/v1/runs", {"changed_since": NOON.isoformat(), "limit": 1}).json()["next_cursor"]

    assert client.get("/api/v1/runs", {"cursor": cursor}).status_code == 400
