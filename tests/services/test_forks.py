"""What may be asked of a fork, and what is stored of it."""

import json
import re

import pytest

from sessions_app.core.errors import NotReplayable
from sessions_app.core.fork.changes import ForkError
from sessions_app.core.redaction import RedactionFailed, Redactor
from sessions_app.models import Replay
from sessions_app.services.forks import request_fork
from sessions_app.services.ingest import ingest_document
from sessions_app.services.replays import request_replay
from tests.agents.talking import example
from tests.agents.test_recording_replay import repeated_request
from tests.builders import all_stored_bytes, make_project
from tests.recorder.playing import recorded
from tests.recorder.scenarios import approval_first, approval_second
from tests.services.forking import EMPTY_ANSWER, make_fork, make_order, make_run
from tests.web.making import make_user

pytestmark = pytest.mark.django_db
CODE = {"REPLAY_AGENTS": {"orders": "shop.agents:orders"}}
STATELY = """
from pydantic_ai import Agent

ignores = {"agent": Agent("test")}
reads = {"agent": Agent("test"), "deps_of_state": dict}
"""
ANSWER = {"text": "Done."}
APPROVALS = approval_first, approval_second
SECRET = "sk-proj-" + "a1B2c3D4e5F6g7H8i9J0" * 2


@pytest.fixture
def run():
    return make_run(make_project())


def refused(run, order, **more):
    """The field that is named, and the words."""
    with pytest.raises(ForkError) as caught:
        request_fork(run=run, order=order, **more)
    assert not Replay.objects.exists()
    return caught.value.field, caught.value.message


def test_a_fork_is_queued_with_its_order(run):
    fork = make_fork(run)

    fork.refresh_from_db()
    assert (fork.state, fork.mode, fork.queue, fork.number) == ("queued", "fork", "replays", 1)
    assert (fork.order, fork.course, fork.progress_total) == (make_order(), {}, 5)
    assert re.fullmatch(r"cancel_5521_fork_[0-9a-f]{8}", fork.fork_id or "")
    assert fork.woken_at is not None


def test_a_step_may_be_written_as_its_id(run):
    assert make_fork(run, at_step="step_2").order["at_step"] == 2


def test_a_resumed_run_changes_nothing_and_expects_nothing(run):
    resumed = request_fork(run=run, order={"at_step": 4}, mode="resume")

    assert (resumed.mode, resumed.order) == ("resume", {"at_step": 4})
    assert re.fullmatch(r"cancel_5521_resume_[0-9a-f]{8}", resumed.fork_id or "")


def test_a_run_may_be_resumed_after_its_last_step_and_no_further(run):
    assert request_fork(run=run, order={"at_step": 6}, mode="resume").order["at_step"] == 6
    with pytest.raises(ForkError) as caught:
        request_fork(run=run, order={"at_step": 7}, mode="resume")
    assert caught.value.field == "at_step"


def test_the_longest_run_id_leaves_room_for_the_forks_own(run):
    longest = make_run(run.project, run_id="r" * 512)

    fork = make_fork(longest)

    assert len(fork.fork_id or "") == 512
    assert re.fullmatch(r"r{498}_fork_[0-9a-f]{8}", fork.fork_id or "")


def test_a_fork_may_be_asked_for_without_a_hypothesis_or_an_expectation(run):
    fork = make_fork(run, hypothesis=None, expect=None)

    assert (fork.state, fork.order.get("hypothesis"), fork.order.get("expect")) == ("queued", None, None)


WRONG = {
    "no step": ({"at_step": None}, "at_step"),
    "step 0": ({"at_step": 0}, "at_step"),
    "step 6 of 5": ({"at_step": 6}, "at_step"),
    "unknown check": ({"expect": {"rhymes": True}}, "expect"),
    "no change": ({"changes": []}, "changes"),
    "unknown change": ({"changes": [{"kind": "weather"}]}, "changes[0].kind"),
    "twice the same": ({"changes": [EMPTY_ANSWER, {**EMPTY_ANSWER, "value": 1}]}, "changes[1]"),
    "earlier step": ({"at_step": 3}, "changes[0].step"),
    "no such step": ({"changes": [{**EMPTY_ANSWER, "step": 9}]}, "changes[0].step"),
    "tool result of a model": ({"changes": [{**EMPTY_ANSWER, "step": 3}]}, "changes[0].step"),
    "value and error": ({"changes": [{**EMPTY_ANSWER, "error": "x"}]}, "changes[0].value"),
    "model answer of a tool": ({"changes": [{"kind": "model_answer", "step": 2, "value": ANSWER}]}, "changes[0].step"),
    "empty answer": ({"changes": [{"kind": "model_answer", "step": 3, "value": {}}]}, "changes[0].value"),
    "message of a tool": ({"changes": [{"kind": "message", "step": 2, "index": 0, "value": "x"}]}, "changes[0].step"),
    "later message": ({"changes": [{"kind": "message", "step": 3, "index": 0, "value": "x"}]}, "changes[0].step"),
    "message 99": (
        {"at_step": 3, "changes": [{"kind": "message", "step": 3, "index": 99, "value": "x"}]},
        "changes[0].index",
    ),
    "patch that fits nowhere": (
        {"changes": [{"kind": "state", "step": 2, "patch": [{"op": "remove", "path": "/iteration_count"}] * 2}]},
        "changes[0].patch[1]",
    ),
    "state that grows": (
        {"changes": [{"kind": "state", "step": 2, "patch": [{"op": "copy", "from": "", "path": "/again"}] * 60}]},
        "changes[0].patch",
    ),
    "bad rule": ({"changes": [{"kind": "rule", "when": "docs", "answer": ANSWER}]}, "changes[0].when"),
    "unregistered agent": ({"agent": "orders"}, "agent"),
    "live tool of no agent": ({"tools": {"live": ["lookup_order"]}}, "tools"),
    "tools of another way": ({"tools": {"lookup_order": "live"}}, "tools.lookup_order"),
    "samples of a fork": ({"samples": 3}, "samples"),
    "breakpoint": ({"breakpoints": [{"day": 1}]}, "breakpoints[0]"),
    "NUL": ({"hypothesis": "a\0b"}, "hypothesis"),
    "NUL in a key": ({"changes": [{**EMPTY_ANSWER, "value": {"\0": 1}}]}, "changes"),
    "half a pair": ({"changes": [{**EMPTY_ANSWER, "value": "\ud800"}]}, "changes"),
    "no JSON number": ({"changes": [{**EMPTY_ANSWER, "value": float("nan")}]}, "changes"),
}


@pytest.mark.parametrize(("changes", "field"), WRONG.values(), ids=WRONG)
def test_what_does_not_fit_is_refused_with_its_field(run, changes, field):
    assert refused(run, make_order(**changes))[0] == field


RIGHT = {
    "error": {"changes": [{"kind": "tool_result", "step": 2, "error": {"type": "Timeout", "message": "late"}}]},
    "model answer": {"changes": [{"kind": "model_answer", "step": 3, "value": ANSWER}]},
    "message": {"at_step": 3, "changes": [{"kind": "message", "step": 3, "index": 0, "value": "Hello"}]},
    "state": {
        "changes": [
            {"kind": "state", "step": 4, "patch": [{"op": "remove", "path": "/iteration_count"}]},
            {"kind": "rule", "when": "state.iteration_count is missing", "answer": ANSWER},
        ]
    },
    "model": {"changes": [{"kind": "model", "value": {"model": "small", "settings": {"max_tokens": 10}}}]},
    "clock": {"changes": [{"kind": "clock", "value": 86400}]},
    "two rules": {"changes": [{"kind": "rule", "when": "orders is empty", "answer": ANSWER}] * 2},
    "expected in words": {"expect": "It asks for the number."},
    "tools that are frozen anyway": {"tools": {"lookup_order": "frozen"}},
    "breakpoints": {"breakpoints": [{"step": 4}, {"tool": "cancel_order"}, {"when": "args.order_id = 1"}]},
    "escaped backslash": {"hypothesis": r"a \u0000 that is text"},
}


@pytest.mark.parametrize("changes", RIGHT.values(), ids=RIGHT)
def test_what_fits_is_stored_as_it_was_asked_for(run, changes):
    fork = make_fork(run, **changes)

    assert Replay.objects.get(pk=fork.pk).order == make_order(**changes)


def test_a_run_without_state_has_none_to_change():
    stateless = make_run(make_project(), "r_8821")
    order = make_order(changes=[{"kind": "state", "step": 2, "patch": [{"op": "add", "path": "/a", "value": 1}]}])

    assert refused(stateless, order) == ("changes[0].step", "No state is recorded for step 2.")


def test_a_run_without_model_answers_cannot_go_on():
    steps = [step for step in example()["steps"] if step["kind"] == "tool"]
    bare = make_run(make_project(), steps=[{**step, "parent": None, "state": None} for step in steps], final=None)

    assert refused(bare, make_order(at_step=1, changes=[{**EMPTY_ANSWER, "step": 1}]))[0] == "run_id"


def test_what_ran_inside_a_tool_cannot_be_changed_itself():
    steps = example()["steps"]
    steps[3] = {**steps[3], "parent": 2}
    nested = make_run(make_project(), steps=steps)

    field, words = refused(nested, make_order(changes=[{**EMPTY_ANSWER, "step": 4}]))

    assert (field, "inside another step" in words) == ("changes[0].step", True)


def test_what_the_framework_answered_cannot_be_changed():
    steps = example()["steps"]
    steps[1] = {**steps[1], "outcome": "denied"}
    denied = make_run(make_project(), steps=steps)

    field, words = refused(denied, make_order())

    assert (field, "by the framework" in words) == ("changes[0].step", True)


def test_the_same_key_again_is_the_same_fork(run):
    first = request_fork(run=run, order=make_order(), request_key="k")

    assert request_fork(run=run, order=make_order(), request_key="k") == first
    assert request_fork(run=run, order=make_order(), request_key="other") != first


@pytest.mark.parametrize("changes", [{"at_step": 1}, {"hypothesis": "Another."}])
def test_a_key_that_was_used_for_another_order_is_refused(run, changes):
    request_fork(run=run, order=make_order(), request_key="k")

    with pytest.raises(ForkError) as caught:
        request_fork(run=run, order=make_order(**changes), request_key="k")

    assert (caught.value.field, Replay.objects.count()) == ("request_key", 1)


def test_a_key_that_was_used_for_a_replay_is_refused(run):
    request_replay(run=run, request_key="k")
    other = make_run(run.project, run_id="other")

    for each in (run, other):
        with pytest.raises(ForkError) as caught:
            request_fork(run=each, order=make_order(), request_key="k")
        assert caught.value.field == "request_key"


# --- the team's own code -----------------------------------------------------------------------


def test_a_fork_of_an_agent_waits_for_a_runner(run, settings):
    settings.REPLAY_AGENTS = CODE["REPLAY_AGENTS"]

    by_change = make_fork(run, changes=[{"kind": "agent", "value": "orders"}])
    by_order = make_fork(run, agent="orders", tools={"live": ["lookup_order"]})

    assert [by_change.queue, by_order.queue] == ["code", "code"]


def changed_state(at_step, step):
    change = {"kind": "state", "step": step, "patch": [{"op": "remove", "path": "/iteration_count"}]}
    return make_order(agent="orders", at_step=at_step, changes=[change])


@pytest.mark.parametrize("at_step", [2, 4])
def test_a_changed_state_is_given_to_the_code_at_a_request_alone(run, settings, at_step):
    """Refused before it is queued, with the steps that go."""
    settings.REPLAY_AGENTS = CODE["REPLAY_AGENTS"]

    field, words = refused(run, changed_state(at_step, at_step))

    assert field == "at_step"
    assert words.endswith(f"not at step {at_step}. Fork at one of the steps 1, 3, 5.")


def test_a_changed_state_is_given_to_the_code_where_the_fork_begins(run, settings):
    settings.REPLAY_AGENTS = CODE["REPLAY_AGENTS"]

    assert refused(run, changed_state(3, 5))[0] == "changes[0].step"
    assert make_fork(run, **changed_state(5, 5)).queue == "code"


@pytest.mark.parametrize(("agent", "is_refused"), [("reads", False), ("ignores", True)])
def test_a_changed_state_that_the_code_does_not_read_is_refused_before_it_is_queued(
    run, settings, tmp_path, agent, is_refused
):
    (tmp_path / "stately.py").write_text(STATELY)
    settings.REPLAY_AGENTS = {"orders": f"stately:{agent}"}
    settings.REPLAY_AGENT_ENV = {"PYTHONPATH": str(tmp_path)}

    if is_refused:
        field, words = refused(run, changed_state(3, 3))
        assert (field, "(deps_of_state)" in words) == ("changes[0]", True)
    else:
        assert make_fork(run, **changed_state(3, 3)).queue == "code"


def test_a_tool_that_writes_cannot_be_asked_for(run, settings):
    settings.REPLAY_AGENTS = CODE["REPLAY_AGENTS"]
    order = make_order(agent="orders", tools={"write": ["cancel_order"]})

    assert refused(run, order, user=make_user("alice", run.project, "admin"))[0] == "tools.write"


def test_a_code_replay_needs_a_registered_agent(run, settings):
    settings.REPLAY_AGENTS = CODE["REPLAY_AGENTS"]
    for order in ({}, {"agent": "unknown"}):
        with pytest.raises(ForkError) as caught:
            request_replay(run=run, mode="code", order=order)
        assert caught.value.field == "agent"

    replay = request_replay(run=run, mode="code", order={"agent": "orders", "breakpoints": [{"step": 2}]})

    assert (replay.mode, replay.queue, replay.fork_id) == ("code", "code", None)
    assert replay.order == {"agent": "orders", "breakpoints": [{"step": 2}]}


@pytest.mark.parametrize(
    ("order", "field"),
    [({"agent": "orders"}, "agent"), ({"at_step": 1}, "at_step"), ({"changes": [EMPTY_ANSWER]}, "changes")],
)
def test_a_recording_replay_changes_nothing(run, settings, order, field):
    settings.REPLAY_AGENTS = CODE["REPLAY_AGENTS"]

    with pytest.raises(ForkError) as caught:
        request_replay(run=run, order=order)

    assert caught.value.field == field
    assert request_replay(run=run, order={"breakpoints": [{"tool": "lookup_order"}]}).queue == "replays"


def test_a_replay_of_another_kind_is_refused(run):
    with pytest.raises(NotReplayable):
        request_replay(run=run, mode="fork")
    assert refused(run, make_order(), mode="recording")[0] == "mode"


def test_sampling_needs_a_live_model_and_a_number(run, settings):
    order = make_order(changes=[], samples=5)
    assert refused(run, order, mode="sampling")[0] == "samples"

    settings.REPLAY_MODEL_ENDPOINT = "https://models.example.org/v1"

    assert refused(run, order | {"samples": None}, mode="sampling")[0] == "samples"
    assert refused(run, order | {"samples": 101}, mode="sampling")[0] == "samples"
    assert refused(run, order | {"breakpoints": [{"step": 1}]}, mode="sampling")[0] == "breakpoints"
    sampling = request_fork(run=run, order=order, mode="sampling")
    assert (sampling.mode, sampling.order["samples"]) == ("sampling", 5)


# --- secrets -----------------------------------------------------------------------------------


def test_a_secret_in_an_order_is_never_stored(run):
    change = {"kind": "tool_result", "step": 2, "value": {"key": f"Use {SECRET}.", "kept": "ORD-5521"}}

    fork = make_fork(run, changes=[change], hypothesis=f"Because of {SECRET}")

    fork.refresh_from_db()
    stored = json.dumps(fork.order)
    assert "Because of" in stored
    assert "ORD-5521" in stored
    assert not [place for place, value in all_stored_bytes() if SECRET.encode() in value]


def test_the_search_for_secrets_would_find_one(run):
    Replay.objects.filter(pk=make_fork(run).pk).update(error=SECRET)

    assert [place for place, value in all_stored_bytes() if SECRET.encode() in value] == ["sessions_app_replay.error"]


def test_what_cannot_be_redacted_is_not_stored(run, monkeypatch):
    def fails(self, document):
        raise RedactionFailed("Redaction stopped.")

    monkeypatch.setattr(Redactor, "redact", fails)

    with pytest.raises(RedactionFailed):
        make_fork(run)
    assert not Replay.objects.exists()


def test_the_answer_of_a_call_that_waits_for_a_decision_cannot_be_changed():
    """No tool was asked, so nothing would come of it. Control: a call that was decided."""
    project = make_project()
    waiting, decided = (ingest_document(project, recorded(play(), "run")[-1]).run for play in APPROVALS)
    changes = [{"kind": "tool_result", "step": 2, "value": "Paid."}]
    words = "The call of step 2 still waits for somebody, and no tool was asked; change the model's answer before it."

    assert refused(waiting, make_order(at_step=1, changes=changes)) == ("changes[0].step", words)
    changes[0]["step"] = 1
    assert request_fork(run=decided, order=make_order(at_step=1, changes=changes)).state == "queued"


def test_an_attempt_that_was_made_again_cannot_be_changed():
    """A fork plays the last one only. Control: that one."""
    record = repeated_request()
    tried = {**record["steps"][1], "call_id": None, "attempt_at": record["steps"][1]["call_id"]}
    project = make_project()
    of_model = ingest_document(project, json.dumps(record).encode()).run
    of_tool = ingest_document(
        project,
        json.dumps({**record, "run_id": "tried", "steps": [record["steps"][0], tried, *record["steps"][2:]]}).encode(),
    ).run
    said = {"kind": "model_answer", "step": 3, "value": {"text": "Sorry."}}
    gave = {"kind": "tool_result", "step": 2, "value": "Nothing."}
    words = "failed and was made again, and a fork plays the last attempt only; change that one."

    assert refused(of_model, make_order(at_step=1, changes=[said])) == ("changes[0].step", f"Step 3 {words}")
    assert refused(of_tool, make_order(at_step=1, changes=[gave])) == ("changes[0].step", f"Step 2 {words}")
    for change in (said | {"step": 4}, gave):
        assert request_fork(run=of_model, order=make_order(at_step=1, changes=[change])).state == "queued"
