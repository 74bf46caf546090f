"""Code replays from the request to the stored run: the team's own agent in a process of its own."""

from typing import Any

import pytest

from sessions_app.agents.process.sandbox import ChildPool
from sessions_app.core.fork.changes import ForkError
from sessions_app.core.replay.parts import NOT_WITH_SDK
from sessions_app.mapping.load import load_run
from sessions_app.models import Project, Replay, Run
from sessions_app.services import replay_work
from sessions_app.services.forks import answer_by_hand, request_fork
from sessions_app.services.pauses import continue_replay
from sessions_app.services.replays import request_replay
from sessions_app.services.reports import report_of
from tests.agents import sdk_agents
from tests.agents.forking import REFUSAL, sources
from tests.agents.misbehaving import KEY
from tests.agents.talking import example
from tests.builders import all_stored_bytes
from tests.tasks.incidents import make_project, make_run

pytestmark = pytest.mark.django_db(transaction=True)
WORDS = {"hypothesis": "a test", "expect": "something"}


@pytest.fixture
def project() -> Project:
    return make_project()


def sources_of(replay: Replay) -> list[str]:
    assert replay.produced_run is not None
    return sources(load_run(replay.produced_run))


def work(replay: Replay) -> Replay:
    assert replay_work.work_on(replay.pk, worker="a", children=ChildPool())
    replay.refresh_from_db()
    return replay


def test_the_agent_as_it_was_reproduces_the_recording(project):
    replay = work(request_replay(run=make_run(project), mode="code", order={"agent": "order_desk"}))

    assert (replay.state, replay.verdict, replay.error) == ("done", "reproduced", None)
    assert replay.live_calls == 0


def test_the_repaired_agent_diverges_where_it_refuses_and_writes_nothing(project):
    replay = work(request_replay(run=make_run(project), mode="code", order={"agent": "order_desk_fixed"}))

    assert (replay.state, replay.verdict) == ("done", "diverged")
    assert replay.divergence["step"] == 4
    assert "not eligible" in replay.divergence["replayed"]
    assert replay.live_calls == 0


def test_what_differs_is_told_as_it_was_spelled(project):
    """The database has an order of its own for the keys of objects, and no negative zero."""
    replay = work(request_replay(run=make_run(project), mode="code", order={"agent": "order_desk_fixed"}))
    (act,) = (each for each in replay.facts["own_code"] if each["step"] == 4)
    replay.divergence |= {"recorded": -0.0, "replayed": {"i": 1e21, "f": 0.0}}
    replay.facts["own_code"] = [act | {"recorded": -0.0, "now": {"i": 1e21, "f": 0.0}}]
    replay.save()

    told = report_of(Replay.objects.get()).replay

    assert (told.difference.recorded, told.difference.replayed) == ("-0.0", '{"i":1e+21,"f":0.0}')
    assert (told.effect.recorded, told.effect.now) == ("-0.0", '{"i":1e+21,"f":0.0}')


def test_steps_of_tools_that_ran_count_as_done(project):
    """The fifth step is where nobody knows what the model would say."""
    same, mended = (
        work(
            request_replay(run=make_run(project), mode="code_and_tools", order={"agent": agent, "tools": {"run": True}})
        )
        for agent in ("order_desk", "order_desk_repaired")
    )

    assert [(each.progress_done, each.progress_total) for each in (same, mended)] == [(5, 5), (4, 5)]


def test_what_code_says_when_it_fails_is_stored_without_secrets(project, settings):
    settings.REPLAY_AGENTS = {**settings.REPLAY_AGENTS, "complaining": "tests.agents.misbehaving:complaining"}

    replay = work(request_replay(run=make_run(project), mode="code", order={"agent": "complaining"}))

    assert replay.error is not None
    assert "401 from the backend" in replay.error
    stored = b"".join(content for _, content in all_stored_bytes())
    assert KEY.encode() not in stored
    assert b"correct-horse-7" not in stored


def test_the_commit_that_ran_is_written_down(project, settings):
    settings.REPLAY_AGENT_ENV = {**settings.REPLAY_AGENT_ENV, "REPLAY_COMMIT": "1f2e3d"}

    ran = work(request_replay(run=make_run(project), mode="code", order={"agent": "order_desk"}))
    rebuilt = work(request_replay(run=ran.run))

    assert ran.facts["commit"] == "1f2e3d"
    assert "commit" not in rebuilt.facts


def test_own_code_that_answers_by_itself_is_named_as_the_source(project):
    run = make_run(project, example("run_xyz789"))

    replay = work(request_replay(run=run, mode="code", order={"agent": "v2_with_empty_check"}))

    assert (replay.verdict, replay.divergence["step"]) == ("diverged", 3)
    assert replay.produced_run.output_preview == REFUSAL
    assert sources_of(replay) == ["recorded", "recorded", "own_code"]


# --- forks with the team's own code ------------------------------------------------------------


def code_fork(run: Run, at: int, agent: str, *changes: dict[str, Any], **more: Any) -> Replay:
    order = {"at_step": at, "changes": [{"kind": "agent", "value": agent}, *changes], **WORDS, **more}
    return request_fork(run=run, order=order)


def test_the_repaired_assistant_refuses_two_steps_after_the_first(project):
    run = make_run(project, example("run_xyz789"))

    replay = work(code_fork(run, 1, "v2_with_empty_check", expect={"ends_within": 2}))

    assert (replay.state, replay.verdict, replay.error, replay.expectation_met) == ("done", "diverged", None, True)
    assert (replay.produced_run.run_id, replay.produced_run.origin) == (replay.fork_id, "fork")
    assert replay.produced_run.output_preview == REFUSAL
    assert sources_of(replay) == ["recorded", "recorded", "own_code"]
    assert replay.facts["steps_after"] == 2


def test_own_code_meets_a_changed_answer_of_a_tool_and_stops_at_what_nobody_knows(project):
    replay = work(code_fork(make_run(project), 2, "order_desk", {"kind": "tool_result", "step": 2, "value": "Gone."}))

    assert replay.verdict == "unknown_from_step"
    assert (replay.stopped_at["kind"], replay.stopped_at["step"]) == ("model", 3)
    assert sources_of(replay) == ["recorded", "by_hand", "unknown"]

    replay = work(answer_by_hand(replay=replay, answer={"answer": {"text": "That order is gone."}}))

    assert (replay.verdict, replay.produced_run.output_preview) == ("diverged", "That order is gone.")


def test_an_unchanged_fork_of_own_code_is_the_recording_again(project):
    replay = work(code_fork(make_run(project), 3, "order_desk", {"kind": "clock", "value": 0}))

    assert (replay.verdict, replay.divergence, replay.error) == ("reproduced", None, None)


def test_own_code_says_itself_what_its_model_is_asked(project):
    with pytest.raises(ForkError, match="change that in the code") as refused:
        code_fork(make_run(project), 3, "order_desk", {"kind": "instructions", "value": "x"})

    assert refused.value.field == "changes[1]"


# --- agents of the OpenAI Agents SDK


@pytest.fixture
def of_sdk(settings) -> None:
    names = ("desk", "fixed", "telling", "with_key", "asking", "asking_otherwise")
    settings.REPLAY_AGENTS = {name: f"tests.agents.sdk_agents:{name}" for name in names}


@pytest.mark.usefixtures("of_sdk")
def test_a_fix_of_an_sdk_agent_s_tool_is_found_behind_the_fence(project):
    run = make_run(project, sdk_agents.recorded())

    same = work(request_replay(run=run, mode="code_and_tools", order={"agent": "desk"}))
    fixed = work(request_replay(run=run, mode="code_and_tools", order={"agent": "fixed"}))

    assert [(each.state, each.verdict, each.error) for each in (same, fixed)] == [
        ("done", "reproduced", None),
        ("done", "diverged", None),
    ]
    assert [(each.live_calls, each.refused_calls) for each in (same, fixed)] == [(0, 0), (0, 0)]
    assert sources_of(same) == ["recorded", "own_code", "recorded", "own_code", "recorded"]
    report = report_of(fixed)
    assert report.replay is not None
    assert report.replay.parts is not None
    assert report.verdict.startswith("The change takes effect at step 4: cancel_order now answers")
    assert "in isolation" in report.replay.parts.in_words(has_proof=True)
    assert "own machine" not in report.replay.parts.brief


@pytest.mark.usefixtures("of_sdk")
def test_an_agent_inside_of_a_tool_is_given_the_answers_of_its_own_run_which_the_worker_finds(project):
    """Another project's run of the same id is none of it."""
    outer, inner = sdk_agents.recorded_with_inner()
    run, elsewhere = make_run(project, outer), make_project("elsewhere")
    make_run(elsewhere, inner)
    order = {"agent": "asking"}

    alone = work(request_replay(run=run, mode="code_and_tools", order=order))
    frozen = work(request_replay(run=run, mode="code", order=order))
    make_run(project, inner)
    same = work(request_replay(run=run, mode="code_and_tools", order=order))
    other = work(request_replay(run=run, mode="code_and_tools", order={"agent": "asking_otherwise"}))

    assert [each.verdict for each in (alone, frozen, same, other)] == [
        "could_not_run",
        "reproduced",
        "reproduced",
        "diverged",
    ]
    assert "the recording of its own run is missing" in (alone.error or "")
    assert (other.divergence["step"], other.divergence["path"]) == (2, "result")


@pytest.mark.usefixtures("of_sdk")
def test_secrets_of_an_sdk_agent_are_taken_out_before_it_is_judged(project):
    """Control: another secret than then is a difference."""
    run = make_run(project, sdk_agents.recorded(sdk_agents.with_key))

    same = work(request_replay(run=run, mode="code", order={"agent": "with_key"}))
    told = work(request_replay(run=run, mode="code_and_tools", order={"agent": "telling"}))

    assert (same.verdict, told.verdict) == ("reproduced", "diverged")
    assert sdk_agents.KEY.encode() not in b"".join(content for _, content in all_stored_bytes())


@pytest.mark.usefixtures("of_sdk")
def test_an_sdk_agent_pauses_and_goes_on_to_its_end(project):
    run = make_run(project, sdk_agents.recorded())
    order = {"agent": "desk", "breakpoints": [{"tool": "cancel_order"}]}

    paused = work(request_replay(run=run, mode="code_and_tools", order=order))

    assert (paused.state, paused.stopped_at["step"], paused.stopped_at["name"]) == ("paused", 4, "cancel_order")
    assert sources_of(paused) == ["recorded", "own_code", "recorded", "unknown"]
    done = work(continue_replay(replay=paused))
    assert (done.state, done.verdict) == ("done", "reproduced")


@pytest.mark.usefixtures("of_sdk")
@pytest.mark.parametrize(
    ("mode", "order", "field"),
    [
        ("code", {"tools": {"live": ["lookup_order"]}}, "tools.live"),
        ("code", {"on_difference": "live"}, "agent"),
        ("live", {}, "agent"),
    ],
)
def test_what_code_of_the_sdk_cannot_do_is_refused_in_words(project, settings, mode, order, field):
    settings.REPLAY_MODEL_ENDPOINT, settings.REPLAY_MODEL_ALLOW_PRIVATE = "http://127.0.0.1:9/v1", True
    run = make_run(project, sdk_agents.recorded())

    with pytest.raises(ForkError, match=NOT_WITH_SDK) as refused:
        request_replay(run=run, mode=mode, order={**order, "agent": "desk"})
    assert refused.value.field == field
    assert not Replay.objects.exists()
