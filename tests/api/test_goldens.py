"""Goldens over the API: kept with what they fail and pass on, run, judged, exported."""

import io
import json
import re
import zipfile
from xml.etree import ElementTree

import pytest
from django.test import Client

from sessions_app.models import Golden, GoldenBatch, GoldenRun, Project, Replay, Run
from sessions_app.services.golden_batches import cancel_batch
from sessions_app.services.golden_runs import settle
from tests.builders import make_record, make_tool_step, post_run, project_client

pytestmark = pytest.mark.django_db
ORDERS = [{"order": "#4421", "user_id": "u_2"}, {"order": "#4398", "user_id": "u_1"}]
OWN_ONLY = [{"kind": "no_value_of_other_user"}]
CODE = {"mode": "code"}
UNPLAYED = "Could not be played past step 1: its answer was not recorded."
PLAY_ON = {"mode": "code", "on_difference": "play_on"}


@pytest.fixture(autouse=True)
def agents(settings):
    settings.REPLAY_AGENTS = {"old": "shop:old", "new": "shop:new"}


@pytest.fixture
def shop():
    """A bad run, and the fork that shows how it should have ended."""
    client = project_client()
    post_run(client, run_of("bad", "Order #4421 is shipped."))
    post_run(client, run_of("good", "Order #4398 is shipped.", origin="fork", parent={"run_id": "bad", "step": 1}))
    return client


def run_of(run_id, output, **fields):
    step = make_tool_step("find", arguments={"q": "mine"}, result=ORDERS)
    return make_record(run_id, step, user_id="u_1", output=output, **fields)


def send(client, address, body=None, method="post"):
    return getattr(client, method)(f"/api/v1{address}", json.dumps(body or {}), content_type="application/json")


def keep(client, **fields):
    body = {"name": "Own orders", "run_id": "bad", "checks": OWN_ONLY, "replay": CODE, **fields}
    return send(client, "/goldens", body)


def end(run_id, **columns):
    """What a worker leaves behind: a produced run and a verdict."""
    replay = Replay.objects.filter(state="queued").earliest("pk")
    produced = Run.objects.get(run_id=run_id) if run_id else None
    Replay.objects.filter(pk=replay.pk).update(
        **{"state": "done", "verdict": "reproduced", "produced_run": produced, **columns}
    )


# --- keeping -----------------------------------------------------------------------------------


def test_a_golden_says_on_what_it_fails_and_passes(shop):
    answer = keep(shop, expected_outcome="Only orders of the user")

    assert answer.status_code == 201
    body = answer.json()
    assert (body["fails_on"], body["passes_on"], body["warnings"]) == (["bad"], ["good"], [])
    assert shop.get(f"/api/v1/goldens/{body['golden_id']}").json() == body
    assert shop.get("/api/v1/goldens").json()["items"] == [body]


def test_of_the_fork_too_its_parent_is_judged(shop):
    body = keep(shop, run_id="good").json()

    assert (body["fails_on"], body["passes_on"]) == (["bad"], ["good"])


def test_a_golden_that_fails_or_passes_on_nothing_is_kept_with_a_warning(shop):
    never = keep(shop, checks=[{"kind": "ends_within", "n": 99}]).json()
    always = keep(shop, checks=[{"kind": "output", "contains": "sorry"}, {"kind": "ends_within", "n": 9}]).json()

    assert [warning["code"] for warning in never["warnings"]] == ["fails_on_nothing"]
    assert [warning["code"] for warning in always["warnings"]] == ["passes_on_nothing"]


def test_more_runs_are_judged_where_they_are_named(shop):
    post_run(shop, run_of("other", "Sorry."))

    assert keep(shop, against=["other"]).json()["passes_on"] == ["good", "other"]
    assert keep(shop, against=["nobody"]).json()["error"]["field"] == "against"


@pytest.mark.parametrize(
    ("replay", "checks", "is_warned"),
    [
        ({"mode": "recording"}, OWN_ONLY, True),
        ({}, [{"kind": "at_most_calls", "tool": "find", "n": 0}], True),
        (PLAY_ON, OWN_ONLY, True),
        (PLAY_ON, [{"kind": "output", "contains": "#4398"}, {"kind": "tool_order", "tools": ["find"]}], True),
        ({**PLAY_ON, "mode": "code_and_tools"}, [{"kind": "output", "contains": "#4398"}], True),
        (CODE, OWN_ONLY, False),
    ],
)
def test_a_golden_that_repeats_the_recording_is_told_from_one_that_code_can_fail(shop, replay, checks, is_warned):
    codes = [warning["code"] for warning in keep(shop, replay=replay, checks=checks).json()["warnings"]]

    assert ("repeats_the_recording" in codes) is is_warned


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"run_id": "nobody"}, 404, None),
        ({"name": ""}, 400, "name"),
        ({"name": "n\0"}, 400, "name"),
        ({"checks": []}, 400, "checks"),
        ({"checks": [{"kind": "output", "contains": "\ud800"}]}, 400, None),
        ({"replay": {"mode": "fork"}}, 400, "mode"),
        ({"replay": {"mode": "code", "agent": "nobody"}}, 400, "replay.agent"),
        ({"replay": {"mode": "code", "at_step": 3}}, 400, "replay.at_step"),
        ({"replay": {"mode": "code", "breakpoints": [{"step": 1}]}}, 400, "replay.breakpoints"),
        ({"colour": "red"}, 400, "colour"),
    ],
)
def test_what_cannot_be_kept_is_refused_by_its_field(shop, body, status, field):
    answer = keep(shop, **body)

    assert answer.status_code == status
    assert field is None or answer.json()["error"]["field"] == field
    assert not Golden.objects.exists()


def test_secrets_in_checks_are_not_kept(shop):
    keep(shop, checks=[{"kind": "output", "contains": "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"}])

    assert "sk-proj" not in json.dumps(Golden.objects.get().checks)


# --- running -----------------------------------------------------------------------------------


def run(client, golden_id, **body):
    answer = send(client, f"/goldens/{golden_id}/runs", body)
    assert answer.status_code == 202, answer.content
    return answer.json()["golden_run_id"]


def read(client, run_id):
    return client.get(f"/api/v1/golden-runs/{run_id}").json()


def test_a_run_of_a_golden_is_a_replay_and_is_judged_when_it_is_over(shop):
    golden = keep(shop, checks=[{"kind": "output", "contains": "sorry"}]).json()["golden_id"]
    queued = run(shop, golden, agent="new")

    assert [read(shop, queued)[name] for name in ("state", "result", "checks", "agent")] == ["queued", None, [], "new"]
    post_run(shop, run_of("made", "Sorry, nothing.", origin="replay", parent={"run_id": "bad"}))
    end("made", verdict="diverged")

    body = read(shop, queued)
    assert (body["state"], body["result"], body["words"]) == ("done", "pass", "The check passed")
    [check] = body["checks"]
    assert (check["check"], check["passed"], check["seen"]) == (
        {"kind": "output", "contains": "sorry"},
        True,
        "it answered “Sorry, nothing.”",
    )
    assert shop.get(f"/api/v1/goldens/{golden}").json()["passes_on"] == ["made"]


@pytest.mark.parametrize(
    ("made", "columns", "result"),
    [
        ("bad", {}, "fail"),
        ("good", {}, "pass"),
        (None, {"state": "failed", "verdict": "could_not_run", "error": "no agent"}, "could_not_run"),
        (None, {"state": "cancelled", "verdict": "cancelled"}, "could_not_run"),
        (None, {"state": "crashed", "verdict": None}, "could_not_run"),
    ],
)
def test_the_result_is_made_of_what_the_replay_came_to(shop, made, columns, result):
    queued = run(shop, keep(shop).json()["golden_id"], agent="new")
    end(made, **columns)

    assert read(shop, queued)["result"] == result


def test_the_report_of_the_replay_leads_with_the_golden(shop):
    golden = keep(shop).json()["golden_id"]
    queued = run(shop, golden, agent="new")
    end("bad", verdict="reproduced")
    address = f"/api/v1/replays/{Replay.objects.get().replay_id}/report"

    told = {form: shop.get(f"{address}?format={form}").content.decode() for form in ("md", "txt", "html")}

    failed = read(shop, queued)["words"]
    assert told["md"].splitlines()[2].startswith("**Golden:** `Failed: ")
    assert failed in told["md"].splitlines()[2]
    assert f"/goldens/{golden}>)" in told["md"]
    assert told["txt"].splitlines()[2].startswith("Golden: Failed: ")
    assert "<h1>Golden: Failed: " in told["html"]


def test_a_replay_that_stopped_at_a_difference_before_anything_could_be_judged_has_failed(shop):
    queued = run(shop, keep(shop, replay={"mode": "code", "agent": "old"}).json()["golden_id"])
    post_run(shop, make_record("stopped", user_id="u_1", status="cut_off", origin="replay"))
    end("stopped", verdict="diverged", divergence={"step": 1, "path": "messages[0]", "recorded": 1, "replayed": 2})

    body = read(shop, queued)
    assert (body["result"], body["checks"][0]["passed"]) == ("fail", None)
    assert body["words"].startswith("Behaves differently from step 1 on")


def test_a_scene_whose_tool_runs_another_agent_could_not_be_played_and_is_no_other_behaviour(shop):
    queued = run(shop, keep(shop, replay={"mode": "code_and_tools", "agent": "old"}).json()["golden_id"])
    post_run(shop, make_record("stopped", user_id="u_1", status="cut_off", origin="replay"))
    at = {"step": 3, "path": "response", "recorded": None, "replayed": "the model of agent 'sub'"}
    facts = {"agents_not_played": ["sub"], "asked_for": {"tool": "the model of agent 'sub'"}}
    end("stopped", verdict="fixture_missing", divergence=at, facts=facts)

    body = read(shop, queued)
    assert (body["result"], body["checks"][0]["passed"]) == ("could_not_run", None)
    assert body["words"] == (
        "Could not run: the tool of step 3 runs another agent (sub), whose answers are not in this recording"
    )


@pytest.mark.parametrize(
    ("checks", "result", "words"),
    [
        (
            [{"kind": "at_most_calls", "tool": "find", "n": 0}],
            "fail",
            "Expected: find is not called; find was called 1 time. " + UNPLAYED,
        ),
        ([{"kind": "at_most_calls", "tool": "find", "n": 9}], "could_not_run", UNPLAYED),
    ],
)
def test_a_recording_that_cannot_be_played_on_is_judged_itself_and_differs_from_nothing(shop, checks, result, words):
    queued = run(shop, keep(shop, checks=checks, replay={"mode": "recording"}).json()["golden_id"])
    post_run(shop, make_record("stopped", user_id="u_1", status="cut_off", origin="replay", steps=[]))
    at = {"step": 1, "path": "steps[1]", "recorded": None, "replayed": None}
    limit = {"step": 1, "code": "tool_answer_missing", "reason": "The answer of step 1 was not recorded.", "fix": None}
    end("stopped", verdict="unknown_from_step", divergence=at, facts={"limit": limit})

    body = read(shop, queued)
    assert (body["result"], body["words"]) == (result, words)
    assert "stopped" not in Golden.objects.get().fails_on


def test_a_run_in_which_a_check_finds_nothing_to_judge_is_no_success(shop):
    checks = [{"kind": "ends_within", "n": 9}, {"kind": "cost_below", "usd": 1}]
    queued = run(shop, keep(shop, checks=checks).json()["golden_id"], agent="new")
    end("good")

    assert read(shop, queued)["result"] == "nothing_covered"


def test_a_result_is_written_once(shop):
    queued = run(shop, keep(shop).json()["golden_id"], agent="new")
    end("good")
    first = read(shop, queued)
    Run.objects.get(run_id="good")
    Replay.objects.update(state="failed")

    assert read(shop, queued)["result"] == first["result"] == "pass"


def test_a_golden_of_code_needs_an_agent_when_it_runs(shop):
    golden = keep(shop).json()["golden_id"]

    answer = send(shop, f"/goldens/{golden}/runs")

    assert (answer.status_code, answer.json()["error"]["field"]) == (400, "agent")
    assert not GoldenRun.objects.exists()


# --- several -----------------------------------------------------------------------------------


def batch(client, **body):
    return send(client, "/golden-batches", body)


def test_all_goldens_run_with_all_agents_and_have_one_result(shop):
    keep(shop)
    keep(shop, name="From the recording", replay={})
    asked = batch(shop, agents=["old", "new"], label="v2").json()

    assert len(asked["runs"]) == 3
    address = f"/api/v1/golden-batches/{asked['golden_batch_id']}"
    body = shop.get(address).json()
    assert (body["label"], body["result"], body["progress"]) == ("v2", None, {"done": 0, "total": 3})

    post_run(shop, run_of("good again", "Order #4398 is shipped.", origin="replay"))
    for made in ("good", "good again", "bad"):
        end(made)
    body = shop.get(address).json()
    assert (body["result"], body["exit_code"], body["words"]) == ("fail", 1, "2 of 3 golden runs passed, 1 failed")

    junit = ElementTree.fromstring(shop.get(f"{address}/report?format=junit").content)
    assert (junit.get("tests"), junit.get("failures"), junit.get("errors")) == ("3", "1", "0")
    assert "| Failed |" in shop.get(f"{address}/report?format=md").content.decode()
    assert shop.get(f"{address}/report?format=pdf").status_code == 400


def test_a_golden_in_quarantine_runs_and_does_not_count(shop):
    golden = keep(shop).json()["golden_id"]
    assert send(shop, f"/goldens/{golden}/quarantine", {"reason": " "}).status_code == 400
    assert send(shop, f"/goldens/{golden}/quarantine", {"reason": "flaky"}).json()["quarantine"]["reason"] == "flaky"
    asked = batch(shop, agents=["old"]).json()
    end("bad")

    body = shop.get(f"/api/v1/golden-batches/{asked['golden_batch_id']}").json()
    assert (body["result"], body["exit_code"]) == ("nothing_covered", 3)
    assert shop.delete(f"/api/v1/goldens/{golden}/quarantine").status_code == 204
    body = shop.get(f"/api/v1/golden-batches/{asked['golden_batch_id']}").json()
    assert (body["result"], body["exit_code"]) == ("fail", 1)


def test_a_batch_that_cannot_be_asked_for_leaves_nothing_behind(shop):
    assert batch(shop).json()["error"]["field"] == "goldens"
    keep(shop, name="First", replay={})
    keep(shop, name="Second")

    answer = batch(shop)

    assert answer.json()["error"]["message"].startswith("Second: ")
    assert not Replay.objects.exists()
    assert not GoldenRun.objects.exists()


def test_a_batch_is_cancelled(shop):
    keep(shop, replay={})
    asked = batch(shop).json()["golden_batch_id"]

    body = send(shop, f"/golden-batches/{asked}/cancel").json()

    assert (body["result"], body["runs"][0]["result"]) == ("could_not_run", "could_not_run")


# --- samples of a live model -------------------------------------------------------------------


@pytest.fixture
def live(settings, shop):
    settings.REPLAY_MODEL_ENDPOINT = "https://models.example.org/v1"
    return shop


def sampled(client, *outputs, asked=3, **replay):
    """A run of a golden whose samples ended so; None for one that ended with an error."""
    golden = keep(client, replay={"mode": "live", "samples": asked, **replay}).json()["golden_id"]
    queued = run(client, golden)
    for number, output in enumerate(outputs, start=1):
        name = "live" if number == 1 else f"live_{number}"
        failed = {"status": "error", "error": {"type": "RuntimeError", "message": "down"}}
        post_run(client, run_of(name, output or "Order #4398.", origin="replay", **({} if output else failed)))
    end("live")
    return read(client, queued)


GOOD, BAD = "Order #4398 is shipped.", "Order #4421 is shipped."


@pytest.mark.parametrize(
    ("outputs", "replay", "result", "words"),
    [
        ((GOOD, GOOD, GOOD), {}, "pass", "In all 3 samples the check passed"),
        ((GOOD, BAD, GOOD), {}, "fail", "2 of 3 samples passed. Expected: "),
        ((GOOD, BAD, GOOD), {"at_least": 2}, "pass", "2 of 3 samples passed, 2 must"),
        ((GOOD, BAD, BAD), {"at_least": 2}, "fail", "1 of 3 samples passed, 2 must. Expected: "),
        ((GOOD, None, GOOD), {}, "fail", "2 of 3 samples passed. It ended with an error: RuntimeError: down"),
        ((None, GOOD, GOOD), {"at_least": 2}, "pass", "2 of 3 samples passed, 2 must"),
        ((GOOD, GOOD), {}, "nothing_covered", "2 of 3 samples passed. Only 2 were made: "),
    ],
)
def test_of_samples_as_many_have_to_pass_as_the_golden_says(live, outputs, replay, result, words):
    found = sampled(live, *outputs, **replay)

    assert (found["result"], found["words"][: len(words)]) == (result, words)


@pytest.mark.parametrize("replay", [{"mode": "live", "samples": 3, "at_least": 4}, {**PLAY_ON, "at_least": 1}])
def test_of_fewer_samples_no_more_can_pass(live, replay):
    error = keep(live, replay=replay).json()["error"]

    assert (error["field"], "a number from 1 to" in error["message"]) == ("replay.at_least", True)


# --- doors -------------------------------------------------------------------------------------


def test_goldens_of_another_project_are_not_there(shop):
    golden = keep(shop).json()["golden_id"]
    queued = run(shop, golden, agent="new")
    other = project_client("other")

    for address in (f"/goldens/{golden}", f"/goldens/{golden}/export", f"/golden-runs/{queued}"):
        assert other.get(f"/api/v1{address}").status_code == 404
    assert other.delete(f"/api/v1/goldens/{golden}").status_code == 404
    assert send(other, f"/goldens/{golden}/runs").status_code == 404
    assert other.get("/api/v1/goldens").json()["items"] == []


def test_a_golden_is_deleted_with_its_runs_and_goes_with_its_scene(shop):
    golden = keep(shop).json()["golden_id"]
    run(shop, golden, agent="new")
    assert shop.delete(f"/api/v1/goldens/{golden}").status_code == 204
    assert (GoldenRun.objects.count(), Replay.objects.count()) == (0, 1)

    Replay.objects.update(state="cancelled")
    keep(shop)
    assert shop.delete("/api/v1/runs/bad").status_code == 204
    assert not Golden.objects.exists()
    assert Project.objects.filter(slug="shop").exists()


def test_an_export_is_a_folder_of_a_constant_test_and_json(shop):
    golden = keep(shop, replay={**PLAY_ON, "agent": "new"}).json()["golden_id"]
    other = keep(shop, run_id="good", replay={"mode": "code_and_tools"}).json()["golden_id"]

    first, second = (files_of(shop.get(f"/api/v1/goldens/{each}/export").content) for each in (golden, other))

    assert set(first) == {"test_goldens.py", "README.md", "goldens.json", "recordings/bad.json"}
    assert first["test_goldens.py"] == second["test_goldens.py"]
    [row] = json.loads(first["goldens.json"])["goldens"]
    assert (row["agent"], row["tools"], row["on_difference"]) == ("shop:new", "frozen", "play_on")
    assert json.loads(second["goldens.json"])["goldens"][0]["tools"] == "run"
    assert json.loads(first["recordings/bad.json"])["run_id"] == "bad"


def test_several_goldens_are_exported_as_one_folder(shop):
    named = [keep(shop, name=name).json()["golden_id"] for name in ("first", "second", "third")]
    other = keep(shop, run_id="good", name="other").json()["golden_id"]

    everything, two = (exported(shop, query) for query in ("", f"?golden={named[0]}&golden={other}"))

    assert [row["golden_id"] for row in json.loads(everything["goldens.json"])["goldens"]] == [other, *named[::-1]]
    assert [row["golden_id"] for row in json.loads(two["goldens.json"])["goldens"]] == [named[0], other]
    assert {name for name in everything if name.startswith("recordings/")} == {
        "recordings/bad.json",
        "recordings/good.json",
    }
    assert shop.get("/api/v1/exports/goldens?golden=gd_nothing").status_code == 404


def test_an_export_of_all_leaves_out_what_needs_the_server(shop, settings):
    settings.REPLAY_MODEL_ENDPOINT = "https://models.example.org/v1"
    live = keep(shop, name="live", replay={"mode": "live", "samples": 2}).json()["golden_id"]
    refused = shop.get("/api/v1/exports/goldens").json()["error"]
    assert (refused["code"], "There is no golden to export" in refused["message"]) == ("not_exportable", True)
    keep(shop, name="frozen")

    [row] = json.loads(exported(shop, "")["goldens.json"])["goldens"]

    assert row["name"] == "frozen"
    assert shop.get(f"/api/v1/exports/goldens?golden={live}").status_code == 409


def test_an_export_says_what_to_install_from_this_server(shop):
    keep(shop)

    wheels = re.findall(r"SERVER(/packages/\S+)", exported(shop, "")["README.md"].decode())

    assert len(wheels) == 2
    assert [Client().get(address).status_code for address in wheels] == [200, 200]


def exported(client, query):
    return files_of(client.get(f"/api/v1/exports/goldens{query}").content)


def files_of(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_runs_of_goldens_are_numbered_beside_the_attempts_at_their_scene(shop):
    golden = keep(shop).json()["golden_id"]
    attempts = [send(shop, "/runs/bad/replays").json()["replay_id"] for _ in range(2)]
    runs = [run(shop, golden, agent="new") for _ in range(2)]

    numbers = [shop.get(f"/api/v1/replays/{each}").json()["number"] for each in attempts]
    replays = [read(shop, each)["replay_id"] for each in runs]
    assert numbers == [1, 2] == [shop.get(f"/api/v1/replays/{each}").json()["number"] for each in replays]


@pytest.mark.parametrize("check", [{"kind": "ends_within", "n": 99}, {"kind": "at_most_calls", "tool": "find", "n": 9}])
def test_code_that_breaks_has_failed(shop, check):
    queued = run(shop, keep(shop, checks=[check]).json()["golden_id"], agent="new")
    error = {"type": "RuntimeError", "message": "down"}
    post_run(shop, make_record("broken", user_id="u_1", status="error", error=error, origin="replay"))
    end("broken", verdict="diverged")

    body = read(shop, queued)
    assert (body["result"], body["checks"][0]["passed"]) == ("fail", None)
    assert body["words"] == "It ended with an error: RuntimeError: down"


@pytest.mark.parametrize(("mode", "is_warned"), [("code", False), ("code_and_tools", True)])
def test_a_replay_with_code_that_came_to_another_result_shows_that_code_decides(shop, mode, is_warned):
    """With the same parts: what tools do when they run says nothing of a golden in which they are frozen."""
    send(shop, "/runs/bad/replays", {"mode": mode, "agent": "new"})
    post_run(shop, run_of("made", "Order #4398 is shipped.", origin="replay", parent={"run_id": "bad"}))
    end("made", verdict="diverged")

    warnings = keep(shop, replay=PLAY_ON).json()["warnings"]

    assert ("repeats_the_recording" in [warning["code"] for warning in warnings]) is is_warned


def test_a_golden_that_code_decided_once_does_not_repeat_the_recording(shop):
    sorry = {"replay": PLAY_ON, "checks": [{"kind": "output", "contains": "#4398"}]}
    golden = keep(shop, **sorry).json()
    assert "repeats_the_recording" in [warning["code"] for warning in golden["warnings"]]
    queued = run(shop, golden["golden_id"], agent="new")
    post_run(shop, run_of("made", "Only #4398.", origin="replay", parent={"run_id": "bad"}))
    end("made", verdict="diverged")

    assert read(shop, queued)["result"] == "pass"
    assert shop.get(f"/api/v1/goldens/{golden['golden_id']}").json()["warnings"] == []


def test_a_deploy_is_noted_with_the_goldens_that_run_after_it(shop):
    keep(shop)
    refused = batch(shop, agents=["new"], is_deploy=True)
    assert (refused.status_code, refused.json()["error"]["field"]) == (400, "label")

    asked = batch(shop, agents=["new"], label="v2", is_deploy=True).json()
    body = shop.get(f"/api/v1/golden-batches/{asked['golden_batch_id']}").json()

    assert (body["label"], body["is_deploy"], len(asked["runs"])) == ("v2", True, 1)


def judged(client, *produced, **body):
    """A batch whose runs were produced in this order."""
    asked = batch(client, **body).json()["golden_batch_id"]
    for run_id in produced:
        end(run_id)
    return client.get(f"/api/v1/golden-batches/{asked}").json()


def test_results_are_held_against_the_last_deploy(shop):
    """Each golden by the same agent, or by the only one that was deployed."""
    for name in ("breaks", "mended", "stays", "new"):
        post_run(shop, run_of(f"{name} bad", "Order #4421 is shipped.", origin="fork", parent={"run_id": "bad"}))
        post_run(shop, run_of(f"{name} good", "Order #4398 is shipped.", origin="fork", parent={"run_id": "bad"}))
    named = [keep(shop, name=name).json()["golden_id"] for name in ("breaks", "mended", "stays")]
    first = judged(
        shop, "breaks good", "mended bad", "stays good", goldens=named, agents=["old"], label="v1", is_deploy=True
    )
    assert (first["baseline"], [run["before"] for run in first["runs"]]) == (None, [None] * 3)
    named.append(keep(shop, name="new").json()["golden_id"])

    second = judged(shop, "breaks bad", "mended good", "good", "new good", goldens=named, agents=["new"], label="v2")

    assert second["baseline"] == first["golden_batch_id"]
    assert [(run["before"], run["change"]) for run in second["runs"]] == [
        ("pass", "broke"),
        ("fail", "repaired"),
        ("pass", None),
        (None, None),
    ]
    assert second["words"] == "3 of 4 golden runs passed, 1 failed; since the last deploy 1 broke and 1 repaired"
    report = shop.get(f"/api/v1/golden-batches/{second['golden_batch_id']}/report?format=md").content.decode()
    assert "| Failed, broke |" in report


def test_of_several_deployed_versions_the_same_one_is_the_measure(shop):
    post_run(shop, run_of("other bad", "Order #4421 is shipped.", origin="fork", parent={"run_id": "bad"}))
    post_run(shop, run_of("other good", "Order #4398 is shipped.", origin="fork", parent={"run_id": "bad"}))
    golden = keep(shop).json()["golden_id"]
    judged(shop, "bad", "good", goldens=[golden], agents=["old", "new"], label="v1", is_deploy=True)

    found = judged(shop, "other bad", "other good", goldens=[golden], agents=["old", "new"])

    assert [(run["before"], run["change"]) for run in found["runs"]] == [("fail", None), ("pass", None)]
    assert found["words"] == "1 of 2 golden runs passed, 1 failed"


def test_a_cancelled_batch_goes_on_and_keeps_what_was_judged(shop):
    named = [keep(shop, name=name).json()["golden_id"] for name in ("first", "second", "third")]
    asked = batch(shop, goldens=named, agents=["new"]).json()["golden_batch_id"]
    end("good")
    before = send(shop, f"/golden-batches/{asked}/cancel").json()
    assert [run["result"] for run in before["runs"]] == ["pass", "could_not_run", "could_not_run"]

    body = send(shop, f"/golden-batches/{asked}/resume").json()

    assert [run["result"] for run in body["runs"]] == ["pass", None, None]
    assert [run["golden_run_id"] for run in body["runs"]] == [run["golden_run_id"] for run in before["runs"]]
    assert [replay.order["agent"] for replay in Replay.objects.filter(state="queued")] == ["new", "new"]
    assert Replay.objects.filter(is_golden=True).count() == 5
    assert send(shop, f"/golden-batches/{asked}/resume").json()["progress"] == {"done": 1, "total": 3}


def test_who_judges_a_replay_late_says_nothing_of_the_one_in_its_place(shop):
    golden = keep(shop).json()["golden_id"]
    asked = batch(shop, goldens=[golden], agents=["new"]).json()["golden_batch_id"]
    cancel_batch(GoldenBatch.objects.get())
    late = GoldenRun.objects.select_related("golden__run", "golden__project", "replay__run").get()
    assert send(shop, f"/golden-batches/{asked}/resume").json()["progress"]["done"] == 0

    settle([late])

    assert GoldenRun.objects.get().result is None


def test_what_was_cancelled_did_not_break(shop):
    golden = keep(shop).json()["golden_id"]
    judged(shop, "good", goldens=[golden], agents=["new"], label="v1", is_deploy=True)
    asked = batch(shop, goldens=[golden], agents=["new"]).json()["golden_batch_id"]

    body = send(shop, f"/golden-batches/{asked}/cancel").json()

    assert (body["runs"][0]["before"], body["runs"][0]["change"]) == ("pass", None)
    assert body["words"] == "0 of 1 golden run passed, 1 could not run"


# --- datasets ----------------------------------------------------------------------------------


def lines_of(client, address):
    answer = client.get(f"/api/v1/datasets{address}")
    assert answer.status_code == 200, answer.content
    return [json.loads(line) for line in answer.content.splitlines()]


def test_goldens_go_to_other_tools_as_rows(shop):
    post_run(shop, run_of("asked", "Order #4421 is shipped.", input="Where is my order?"))
    checks = [{"kind": "output", "contains_any": ["#4398", "no order"]}, *OWN_ONLY]
    golden = keep(shop, run_id="asked", checks=checks, expected_outcome="Tells of no other's order").json()["golden_id"]
    messages, ideal = [{"role": "user", "content": "Where is my order?"}], ["#4398", "no order"]

    (row,) = lines_of(shop, "/goldens")
    (evals,) = lines_of(shop, "/goldens?format=openai-evals")
    (sample,) = lines_of(shop, "/goldens?format=inspect")

    assert (row["id"], row["run_id"], row["checks"]) == (golden, "asked", checks)
    assert (row["input"], row["output"]) == ("Where is my order?", "Order #4421 is shipped.")
    assert row["tool_calls"] == [{"tool": "find", "args": {"q": "mine"}, "result": ORDERS}]
    assert evals == {"input": messages, "ideal": ideal, "id": golden}
    assert (sample["input"], sample["target"], sample["id"]) == (messages, ideal, golden)
    assert sample["metadata"]["checks"] == checks


def test_without_a_check_of_the_answer_the_expected_outcome_is_the_ideal(shop):
    keep(shop, expected_outcome="Tells of no other's order")

    assert lines_of(shop, "/goldens?format=openai-evals")[0]["ideal"] == ["Tells of no other's order"]


def test_failing_runs_are_rows_a_page_at_a_time(shop):
    for name in ("lost", "lost_too"):
        post_run(shop, run_of(name, None, status="error", error={"type": "TimeoutError", "message": "late"}))

    first = shop.get("/api/v1/datasets/runs", {"limit": 1})
    rest = lines_of(shop, f"/runs?limit=1&cursor={first.headers['X-Next-Cursor']}")

    assert [json.loads(first.content)["run_id"], *(row["run_id"] for row in rest)] == ["lost_too", "lost"]
    assert rest[0]["error"] == "TimeoutError: late"
    assert [row["run_id"] for row in lines_of(shop, "/runs?q=run:good+origin:fork")] == ["good"]
    assert "ideal" not in lines_of(shop, "/runs?format=openai-evals")[0]
