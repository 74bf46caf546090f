"""A session replayed as a whole: its runs in their order, all of them or none."""

import pytest

from sessions_app.agents.process.sandbox import ChildPool
from sessions_app.core.errors import NotReplayable
from sessions_app.core.fork.changes import ForkError
from sessions_app.models import Replay, SessionReplay
from sessions_app.services import replay_work, session_replays
from sessions_app.services.replays import RequestKeyUsed, request_replay
from sessions_app.services.session_replays import cancel_session_replay, request_session_replay, session_report
from tests.agents.talking import example
from tests.contradicting import turns_that_contradict
from tests.tasks.incidents import make_project, make_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def project():
    return make_project()


def make_session(project, count=3, session_id="chat"):
    """Runs of one session; the later ones have ids that come first in the alphabet."""
    runs = [make_run(project, run_id=f"run {9 - i}", session_id=session_id) for i in range(count)]
    return runs[0].session, runs


def test_every_run_of_the_session_is_queued_in_its_order(project):
    session, runs = make_session(project)
    make_run(project, run_id="another", session_id="another")

    asked = request_session_replay(session=session)

    replays = list(asked.replays.order_by("pk"))
    assert [replay.run_id for replay in replays] == [run.pk for run in runs]
    assert {(replay.state, replay.mode, replay.number) for replay in replays} == {("queued", "recording", 1)}
    assert [run.run_id for run in session_report(asked).runs] == ["run 9", "run 8", "run 7"]
    assert Replay.objects.count() == 3


def test_its_replays_are_numbered_as_any_other(project):
    session, runs = make_session(project)
    request_replay(run=runs[1])

    asked = request_session_replay(session=session)

    assert [run.number for run in session_report(asked).runs] == [1, 2, 1]
    assert request_replay(run=runs[0]).number == 2


def test_what_replays_produced_is_no_run_of_the_session(project):
    session, _ = make_session(project, 1)
    make_run(project, run_id="made", session_id="chat", origin="replay")

    assert request_session_replay(session=session).replays.count() == 1


def test_the_order_is_that_of_each_replay(project):
    session, _ = make_session(project, 2)
    wanted = {"agent": "order_desk", "on_difference": "play_on"}

    asked = request_session_replay(session=session, mode="code_and_tools", order=wanted)

    orders = [(each.mode, each.queue, each.order) for each in asked.replays.all()]
    assert orders == [("code_and_tools", "code", {**wanted, "tools": {"run": True}})] * 2
    assert session_report(asked).preset == "Your code and tools"


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        ({"mode": "nothing"}, NotReplayable),
        ({"mode": "code"}, ForkError),
        ({"mode": "code", "order": {"agent": "nobody"}}, ForkError),
        ({"order": {"at_step": 2}}, ForkError),
        ({"order": {"breakpoints": 7}}, ForkError),
    ],
)
def test_an_order_that_no_replay_takes_queues_nothing(project, wanted, error):
    session, _ = make_session(project)

    with pytest.raises(error):
        request_session_replay(session=session, **wanted)

    assert (Replay.objects.count(), SessionReplay.objects.count()) == (0, 0)


def test_a_session_without_recorded_runs_is_refused(project):
    made = make_run(project, run_id="made", origin="replay")

    with pytest.raises(NotReplayable, match="no recorded run"):
        request_session_replay(session=made.session)


def test_a_session_of_too_many_runs_is_refused(project, monkeypatch):
    session, _ = make_session(project)
    monkeypatch.setattr(session_replays, "MOST_RUNS", 2)

    with pytest.raises(NotReplayable, match="more than 2 runs"):
        request_session_replay(session=session)

    monkeypatch.setattr(session_replays, "MOST_RUNS", 3)
    assert request_session_replay(session=session).replays.count() == 3


def test_the_same_key_again_is_the_same_session_replay(project):
    session, _ = make_session(project)
    other = make_run(project, run_id="another", session_id="another").session
    first = request_session_replay(session=session, request_key="a")

    assert request_session_replay(session=session, request_key="a").pk == first.pk
    assert Replay.objects.count() == 3
    with pytest.raises(RequestKeyUsed):
        request_session_replay(session=session, request_key="a", order={"breakpoints": [{"step": 2}]})
    with pytest.raises(RequestKeyUsed):
        request_session_replay(session=other, request_key="a")


def test_cancelling_stops_what_is_open_and_leaves_what_is_over(project):
    session, _ = make_session(project, 4)
    alone = request_replay(run=session.runs.first())
    asked = request_session_replay(session=session)
    done, running, paused, _ = asked.replays.order_by("pk")
    Replay.objects.filter(pk=done.pk).update(state="done", verdict="reproduced")
    Replay.objects.filter(pk=running.pk).update(state="running")
    Replay.objects.filter(pk=paused.pk).update(state="paused")

    cancel_session_replay(asked)

    states = list(asked.replays.order_by("pk").values_list("state", "verdict", "is_cancel_wanted"))
    assert states == [
        ("done", "reproduced", False),
        ("running", None, True),
        ("cancelled", "cancelled", False),
        ("cancelled", "cancelled", False),
    ]
    alone.refresh_from_db()
    assert alone.state == "queued"


def test_the_report_asks_once_for_any_number_of_runs(project, django_assert_num_queries):
    for count, session_id in ((1, "one"), (3, "three")):
        session, _ = make_session(project, count, session_id) if count == 1 else _others(project)
        asked = request_session_replay(session=session)
        Replay.objects.filter(session_replay=asked).update(state="done", verdict="reproduced")
        with django_assert_num_queries(1):
            assert len(session_report(asked).runs) == count


def _others(project):
    runs = [make_run(project, run_id=f"other {i}", session_id="three") for i in range(3)]
    return runs[0].session, runs


def test_recordings_that_contradict_each_other_are_found_when_the_replay_is_asked_for(project):
    runs = [make_run(project, turn) for turn in turns_that_contradict()]

    asked = request_session_replay(session=runs[0].session)
    Replay.objects.update(state="done", verdict="reproduced")

    report = session_report(asked)
    assert (report.verdict, [found.path for found in report.contradictions]) == (
        "contradictory",
        ["messages[1].parts[0].content"],
    )
    runs[0].delete()
    assert session_report(asked).contradictions == ()


def test_runs_that_do_not_go_on_from_each_other_are_not_loaded(project, monkeypatch):
    session, _ = make_session(project)
    monkeypatch.setattr(session_replays, "load_run", None)

    assert request_session_replay(session=session).contradictions == []


@pytest.mark.django_db(transaction=True)
def test_a_session_is_replayed_from_the_request_to_the_verdict():
    project = make_project()
    [first, second] = [make_run(project, example(name), session_id="chat") for name in ("run_xyz789", "cancel_bug")]
    asked = request_session_replay(session=first.session)
    children = ChildPool()
    try:
        for replay in asked.replays.order_by("pk"):
            assert replay_work.work_on(replay.pk, worker="a", children=children)
    finally:
        children.close()

    report = session_report(asked)

    alone = [replay.shown_verdict for replay in Replay.objects.order_by("pk")]
    assert [run.verdict for run in report.runs] == alone
    assert str(first.started_at) > str(second.started_at)  # so they arrived in another order than they ran in
    assert [run.run_id for run in report.runs] == [second.run_id, first.run_id]
    assert report.state == "done"
    assert (report.verdict == "reproduced") is (set(alone) == {"reproduced"})
