"""Going on from a breakpoint, step by step or with something changed."""

import pytest

from sessions_app.core.fork.changes import ForkError
from sessions_app.models import Replay, Run
from sessions_app.services.ingest import ingest_document
from sessions_app.services.pauses import continue_replay, edit_and_continue, step_once
from sessions_app.services.replays import cancel_replay, request_replay
from tests.builders import RECORDS, make_project
from tests.services.forking import make_anew, make_fork, make_run, model_stop, pause, stop, tool_stop
from tests.web.making import make_user

pytestmark = pytest.mark.django_db
BREAKPOINTS = {"breakpoints": [{"tool": "lookup_order"}, {"step": 4}]}


@pytest.fixture
def run():
    return make_run(make_project())


@pytest.fixture
def paused(run):
    """A recording replay before step 2, its second stop."""
    return pause(request_replay(run=run, order=BREAKPOINTS), tool_stop(at=2))


def stored(replay):
    return Replay.objects.get(pk=replay.pk)


def refused(move, replay, **more):
    with pytest.raises(ForkError) as caught:
        move(replay=replay, **more)
    return caught.value.field


@pytest.mark.parametrize(("move", "is_stepping"), [(continue_replay, False), (step_once, True)])
def test_a_paused_replay_goes_on(paused, move, is_stepping):
    move(replay=paused)

    row = stored(paused)
    assert (row.state, row.attempt, row.stopped_at, row.order) == ("queued", 0, None, BREAKPOINTS)
    assert row.course == {"passed": 2, "is_stepping": is_stepping}


@pytest.mark.parametrize(
    ("move", "more"), [(continue_replay, {}), (step_once, {}), (edit_and_continue, {"answer": {"value": 1}})]
)
def test_what_goes_on_is_about_the_run_as_it_was_asked_for(paused, run, move, more):
    make_anew(run)

    going = move(replay=paused, **more)

    assert (stored(going).state, stored(going).content) == ("queued", paused.content)
    assert paused.content != Run.objects.get(pk=run.pk).content


@pytest.mark.parametrize("move", [continue_replay, step_once])
def test_going_on_twice_is_refused(paused, move):
    move(replay=paused)

    assert refused(move, paused) == "state"
    assert stored(paused).course["passed"] == 2


def test_the_answers_given_so_far_are_kept(run):
    fork = pause(make_fork(run), tool_stop())
    Replay.objects.filter(pk=fork.pk).update(course={"answers": [{"at": 1, "asked": "", "value": 1}], "passed": 1})

    continue_replay(replay=fork)

    assert stored(fork).course == {
        "answers": [{"at": 1, "asked": "", "value": 1}],
        "passed": 4,
        "is_stepping": False,
    }


def test_what_is_not_paused_does_not_go_on(run):
    assert refused(continue_replay, request_replay(run=run)) == "state"
    assert refused(step_once, stop(make_fork(run), tool_stop())) == "state"


def test_whoever_saw_it_stand_elsewhere_does_not_move_it(paused):
    later = pause(paused, tool_stop(at=4))

    assert refused(continue_replay, paused) == "state"
    continue_replay(replay=later)


def test_a_paused_replay_is_cancelled_at_once(paused):
    cancel_replay(paused)

    row = stored(paused)
    assert (row.state, row.verdict, row.finished_at is None) == ("cancelled", "cancelled", False)
    assert refused(continue_replay, paused) == "state"


# --- edits -------------------------------------------------------------------------------------


def test_an_edited_fork_goes_on_itself(run):
    fork = pause(make_fork(run), tool_stop())
    Replay.objects.filter(pk=fork.pk).update(course={"is_stepping": True})

    assert edit_and_continue(replay=fork, answer={"value": []}) == fork

    row = stored(fork)
    assert (row.state, Replay.objects.count()) == ("queued", 1)
    answer = {"at": 4, "asked": "ab" * 32, "value": []}
    assert row.course == {"answers": [answer], "passed": 4, "is_stepping": False}


EDITS = {
    "value": (tool_stop(), {"value": []}, {"kind": "tool_result", "step": 2, "value": []}),
    "error": (tool_stop(), {"error": "late"}, {"kind": "tool_result", "step": 2, "error": "late"}),
    "not found": (tool_stop(), {"not_found": True}, {"kind": "tool_result", "step": 2, "error": "Not found."}),
    "twin": (
        tool_stop(),
        {"twin": {"run_id": "cancel_5521", "step": 4}},
        {"kind": "tool_result", "step": 2, "value": "Order ORD-5521 cancelled. Reason: changed my mind"},
    ),
    "model": (model_stop(), {"answer": {"text": "No."}}, {"kind": "model_answer", "step": 3, "value": {"text": "No."}}),
}


@pytest.mark.parametrize(("stopped", "answer", "change"), EDITS.values(), ids=EDITS)
def test_an_edited_replay_ends_and_a_fork_goes_on_in_its_place(run, stopped, answer, change):
    replay = pause(request_replay(run=run, order=BREAKPOINTS), stopped)
    user = make_user("alice", run.project)

    fork = edit_and_continue(replay=replay, answer=answer, user=user)

    assert stored(replay).state == "cancelled"
    assert (fork.mode, fork.state, fork.queue, fork.requested_by) == ("fork", "queued", "replays", user)
    assert (fork.order["at_step"], fork.order["changes"]) == (stopped["step"], [change])
    assert fork.order["breakpoints"] == BREAKPOINTS["breakpoints"]
    assert fork.order["hypothesis"] == "Edited at a breakpoint"
    assert fork.course == {"passed": 1}


def test_an_edited_code_replay_is_forked_with_its_agent(run, settings):
    settings.REPLAY_AGENTS = {"orders": "shop.agents:orders"}
    order = {"agent": "orders", "tools": {"live": ["lookup_order"]}}
    replay = pause(request_replay(run=run, mode="code", order=order), tool_stop(at=2))

    fork = edit_and_continue(replay=replay, answer={"value": []})

    assert (fork.queue, fork.order["agent"], fork.order["tools"]) == ("code", "orders", order["tools"])
    assert fork.course == {"passed": 2}


@pytest.mark.parametrize(("stopped", "answer"), [(tool_stop(), {"answer": {"text": "x"}}), (model_stop(step=9), {})])
def test_an_edit_that_does_not_fit_leaves_the_replay_paused(run, stopped, answer):
    replay = pause(request_replay(run=run), stopped)

    assert refused(edit_and_continue, replay, answer=answer) == "answer"
    assert [row.state for row in Replay.objects.all()] == ["paused"]


def test_an_edit_of_a_step_that_the_recording_does_not_have_is_refused(run):
    replay = pause(request_replay(run=run), model_stop(step=9))

    assert refused(edit_and_continue, replay, answer={"answer": {"text": "x"}}) == "at_step"
    assert [row.state for row in Replay.objects.all()] == ["paused"]


def test_of_calls_made_together_those_up_to_the_edited_one_are_passed():
    run = ingest_document(make_project(), (RECORDS / "parallel-tools.messages.json").read_bytes()).run
    kinds = [step.kind for step in run.steps]
    assert kinds[:3] == ["model", "tool", "tool"]
    replay = pause(request_replay(run=run), tool_stop(step=3, at=3))

    assert edit_and_continue(replay=replay, answer={"value": 1}).course == {"passed": 2}
