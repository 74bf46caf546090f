"""Forks from the request to the stored run: the real child process, the real database, other runs of the project."""

import json
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings
from django.utils import timezone

from sessions_app.agents.process.sandbox import ChildPool
from sessions_app.core.fork.foretell import foretell
from sessions_app.core.fork.order import read_order
from sessions_app.mapping.load import load_run
from sessions_app.models import Project, Replay, Run
from sessions_app.queries.recorded_steps import StoredSteps
from sessions_app.services import replay_work
from sessions_app.services.fork_checks import Parent
from sessions_app.services.forks import answer_by_hand, request_fork
from sessions_app.services.pauses import continue_replay, edit_and_continue, step_once
from sessions_app.services.replay_questions import Questions
from sessions_app.services.replays import cancel_replay, request_replay
from tests.agents.forking import REFUSAL, sources
from tests.agents.talking import example
from tests.fake_provider import Answer, fake_provider, says, sometimes
from tests.services.forking import make_anew
from tests.tasks.incidents import make_project, make_run

pytestmark = pytest.mark.django_db(transaction=True)

WORDS = {"hypothesis": "a test", "expect": "something"}
LOOKUP = {"name": "lookup_order", "arguments": {"query": "my order", "user_id": "u_7710"}}
ASKS_FOR_USER = {"kind": "model_answer", "step": 2, "value": {"tool_calls": [LOOKUP]}}


@pytest.fixture(scope="module")
def children() -> Iterator[ChildPool]:
    pool = ChildPool()
    yield pool
    pool.close()


@pytest.fixture
def project() -> Project:
    return make_project()


def fork(run: Run, at: int, *changes: dict[str, Any], **more: Any) -> Replay:
    mode = more.pop("mode", "fork")
    return request_fork(run=run, order={"at_step": at, "changes": list(changes), **WORDS, **more}, mode=mode)


def work(replay: Replay, children: ChildPool) -> Replay:
    assert replay_work.work_on(replay.pk, worker="a", children=children)
    replay.refresh_from_db()
    return replay


def steps_of(replay: Replay) -> list[str]:
    assert replay.produced_run is not None
    return sources(load_run(replay.produced_run))


def test_an_order_is_carried_out_on_the_run_for_which_it_was_given(project, children):
    """Its numbers would name other steps of the run that was made anew meanwhile."""
    run = make_run(project, example("run_xyz789"))
    digest = bytes(run.content_digest).hex()
    ordered, paused, plain = (
        fork(run, 2, {"kind": "tool_result", "step": 2, "value": []}),
        request_replay(run=run, order={"breakpoints": [{"step": 2}]}),
        request_replay(run=run),
    )
    make_anew(run)

    assert (work(paused, children).state, paused.stopped_at["step"]) == ("paused", 2)
    assert (work(plain, children).state, plain.verdict) == ("done", "reproduced")
    assert (work(ordered, children).state, steps_of(ordered)[:2]) == ("done", ["recorded", "by_hand"])
    for replay in (ordered, paused, plain):
        assert str(replay.content) == digest != bytes(Run.objects.get(pk=run.pk).content_digest).hex()


def test_a_fork_leaves_a_run_of_its_own_and_its_parent_as_it_was(project, children):
    run = make_run(project, example("run_xyz789"))
    rule = {"kind": "rule", "when": "docs is empty", "answer": {"text": REFUSAL}}

    replay = work(fork(run, 1, rule, expect={"contains": "don't have"}), children)

    assert (replay.state, replay.verdict, replay.expectation_met, replay.live_calls) == ("done", "diverged", True, 0)
    assert replay.produced_run.run_id == replay.fork_id
    assert replay.fork_id.startswith("run_xyz789_fork_")
    assert steps_of(replay) == ["recorded", "recorded", "rule"]
    assert (replay.produced_run.output_preview, replay.produced_run.origin) == (REFUSAL, "fork")
    digest = bytes(run.content_digest)
    run.refresh_from_db()
    assert bytes(replay.content.digest) == bytes(run.content_digest) == digest


def test_the_answer_of_another_run_is_borrowed_and_named(project, children):
    """The other run asked for the same call with the user in it."""
    run = make_run(project, example("r_8821"))
    other = example("r_8821")
    other["steps"][1]["response"]["parts"][0]["args"] = LOOKUP["arguments"]
    other["steps"][2] |= {"arguments": LOOKUP["arguments"], "result": [{"order": "#4398"}]}
    make_run(project, other, run_id="r_8822")

    replay = work(fork(run, 2, ASKS_FOR_USER), children)

    assert (steps_of(replay), replay.verdict) == (["by_hand", "borrowed", "unknown"], "unknown_from_step")
    assert replay.facts["links"] == [{"step": 3, "source": "borrowed", "run_id": "r_8822", "from_step": 3}]


def test_nothing_is_borrowed_from_another_project(project, children):
    run = make_run(project, example("r_8821"))
    other = example("r_8821")
    other["steps"][2] |= {"arguments": LOOKUP["arguments"]}
    make_run(make_project("other"), other, run_id="r_8822")

    replay = work(fork(run, 2, ASKS_FOR_USER), children)

    assert steps_of(replay) == ["by_hand", "unknown"]


def test_the_request_of_a_fork_is_answered_by_a_run_that_made_it(project, children):
    """Another run got an empty answer of the tool, and its model's answer was recorded."""
    run = make_run(project, example("r_8821"))
    other = json.loads(json.dumps(example("r_8821")).replace('"toolu_8821"', '"toolu_9"'))
    other["steps"][2]["result"] = []
    other["steps"][3]["request"]["messages"][0]["parts"][0]["content"] = []
    other["steps"][3]["response"]["parts"][0]["content"] = "You have no orders."
    make_run(project, other, run_id="r_8822", output="You have no orders.")

    replay = work(fork(run, 3, {"kind": "tool_result", "step": 3, "value": []}), children)

    assert steps_of(replay) == ["recorded", "by_hand", "borrowed"]
    assert replay.produced_run.output_preview == "You have no orders."


def test_unknown_names_the_nearest_and_takes_answers_until_the_fork_is_over(project, children):
    run = make_run(project, example("r_8821"))
    replay = work(fork(run, 2, ASKS_FOR_USER), children)
    assert (replay.state, replay.verdict) == ("done", "unknown_from_step")
    assert [(near["run_id"], near["step"], near["differs"]) for near in replay.stopped_at["nearest"]] == [
        ("r_8821", 3, ["args.user_id"])
    ]
    first_run = replay.produced_run_id

    replay = answer_by_hand(replay=replay, answer={"twin": {"run_id": "r_8821", "step": 3}})
    assert (replay.state, replay.verdict, replay.stopped_at) == ("queued", None, None)
    replay = work(replay, children)
    assert (steps_of(replay), replay.stopped_at["kind"]) == (["by_hand", "by_hand", "unknown"], "model")

    replay = work(answer_by_hand(replay=replay, answer={"answer": {"text": "Order #4398."}}), children)

    assert (replay.state, replay.verdict, replay.stopped_at) == ("done", "diverged", None)
    assert steps_of(replay) == ["by_hand", "by_hand", "by_hand"]
    assert replay.produced_run_id == first_run, "one fork is one run"
    assert Run.objects.filter(origin="fork").count() == 1


def test_a_run_that_broke_off_is_resumed_as_a_run_of_its_own(project, children):
    run = make_run(project, example("run_xyz789"))
    replay = work(request_fork(run=run, order={"at_step": 41}, mode="resume"), children)
    assert (replay.verdict, replay.stopped_at["step"]) == ("unknown_from_step", 41)

    replay = work(answer_by_hand(replay=replay, answer={"answer": {"text": REFUSAL}}), children)

    assert replay.produced_run.run_id.startswith("run_xyz789_resume_")
    assert (replay.produced_run.status, replay.produced_run.parent_run_id) == ("ok", "run_xyz789")
    assert steps_of(replay) == ["recorded"] * 40 + ["by_hand"]


# --- pausing -----------------------------------------------------------------------------------


def test_a_replay_pauses_without_a_worker_and_ends_as_if_it_had_not(project, children):
    run = make_run(project)
    whole = work(request_replay(run=run), children)
    replay = work(request_replay(run=run, order={"breakpoints": [{"tool": "cancel_order"}]}), children)
    assert (replay.state, replay.verdict, replay.lease_until, replay.finished_at) == ("paused", None, None, None)
    assert (replay.stopped_at["step"], replay.stopped_at["name"]) == (4, "cancel_order")
    assert replay.stopped_at["arguments"]["order_id"] == "ORD-5521"
    assert (replay.progress_done, replay.progress_total) == (3, 5)
    assert not replay_work.work_on(replay.pk, worker="b", children=children), "nobody takes up what is paused"

    replay = work(continue_replay(replay=replay), children)

    assert (replay.state, replay.verdict) == ("done", "reproduced")
    assert replay.facts["fields_compared"] == whole.facts["fields_compared"]
    assert replay.produced_run.step_count == whole.produced_run.step_count == 5


def test_one_step_at_a_time(project, children):
    replay = request_replay(run=make_run(project), order={"breakpoints": [{"step": 1}]})
    seen = []
    while work(replay, children).state == "paused":
        seen.append(replay.stopped_at["step"])
        assert replay.progress_done == seen[-1] - 1
        replay = step_once(replay=replay)

    assert (seen, replay.verdict) == ([1, 2, 3, 4, 5], "reproduced")


def test_an_edit_at_a_breakpoint_makes_a_fork(project, children):
    run = make_run(project)
    paused = work(request_replay(run=run, order={"breakpoints": [{"tool": "cancel_order"}]}), children)

    replay = work(edit_and_continue(replay=paused, answer={"value": "not eligible"}), children)

    paused.refresh_from_db()
    assert (paused.state, replay.mode, replay.verdict) == ("cancelled", "fork", "unknown_from_step")
    assert steps_of(replay) == ["recorded", "recorded", "recorded", "by_hand", "unknown"]


def test_a_paused_replay_is_cancelled_at_once(project, children):
    replay = work(request_replay(run=make_run(project), order={"breakpoints": [{"step": 2}]}), children)

    assert cancel_replay(replay).state == "cancelled"


# --- sampling ----------------------------------------------------------------------------------


def test_a_sampling_asks_the_live_model_and_counts(project, children):
    run = make_run(project, example("r_8821"))
    answers = iter(["Order #4398 is processing.", "Order #4421 is shipped.", "Order #4398 is processing."])
    with fake_provider(lambda body: says(next(answers))) as provider:
        settings = {"REPLAY_MODEL_ENDPOINT": provider.url, "REPLAY_MODEL_KEY": "k", "REPLAY_MODEL_ALLOW_PRIVATE": True}
        with override_settings(**settings):
            replay = fork(run, 4, mode="sampling", samples=3, expect={"contains": "#4398"})
            replay = work(replay, children)

        assert provider.requests == 3
        assert provider.bodies[0]["messages"][0]["content"].startswith("You help customers")
    samples = replay.facts["samples"]
    assert (samples["n"], samples["done"], samples["met"], samples["unjudged"]) == (3, 3, 2, 0)
    assert [(group["words"], group["count"]) for group in samples["groups"]] == [
        ("Order #4398 is processing.", 2),
        ("Order #4421 is shipped.", 1),
    ]
    assert samples["interval"][0] < 2 / 3 < samples["interval"][1]
    assert steps_of(replay) == ["recorded", "recorded", "live"]
    assert Run.objects.filter(origin="fork").count() == 3
    assert (replay.live_calls, samples["requests"]) == (provider.requests, 3)
    assert datetime.fromisoformat(replay.facts["clock"]) == load_run(run).steps[3].started_at
    assert replay.refused_calls == 0, "the child itself reached for nothing"


def test_a_live_model_is_asked_only_where_the_order_says_so(project):
    replay = fork(make_run(project), 3, {"kind": "instructions", "value": "x"})

    said = {"error": "The order does not say that a live model may be asked."}
    assert Questions(replay).reply({"what": "live", "messages": []}) == said


def test_a_model_that_is_away_is_said(project, children):
    run = make_run(project, example("r_8821"))
    with override_settings(REPLAY_MODEL_ENDPOINT="http://127.0.0.1:9/v1", REPLAY_MODEL_ALLOW_PRIVATE=True):
        replay = work(fork(run, 4, mode="sampling", samples=1), children)

    assert (replay.state, replay.verdict, replay.produced_run) == ("failed", "could_not_run", None)
    assert replay.facts["samples"]["done"] == 0


def test_a_model_that_thinks_for_longer_than_a_lease_does_not_lose_it(project, children):
    run, seen = make_run(project, example("r_8821")), []

    def think(body: dict[str, Any]) -> Answer:
        time.sleep(2.5)
        held = Replay.objects.get()
        seen.append((held.state, held.lease_until is not None and held.lease_until > timezone.now()))
        connection.close()
        return says("Order #4398.")

    with fake_provider(think) as provider:
        settings = {"REPLAY_MODEL_ENDPOINT": provider.url, "REPLAY_MODEL_ALLOW_PRIVATE": True}
        with override_settings(**settings, REPLAY_LEASE_SECONDS=1):
            work(fork(run, 4, mode="sampling", samples=1), children)

    assert seen == [("running", True)]


def test_the_interval_of_a_sampling_covers_how_often_the_provider_errs(project, children):
    """It errs in three of ten answers; that it does so in six of ten is out of the question."""
    run = make_run(project, example("r_8821"))
    errs = sometimes(says("Order #4398."), says("Order #4421 is shipped."), share=0.3, seed=11)
    with fake_provider(errs) as provider:
        settings = {"REPLAY_MODEL_ENDPOINT": provider.url, "REPLAY_MODEL_ALLOW_PRIVATE": True}
        with override_settings(**settings):
            replay = work(fork(run, 4, mode="sampling", samples=60, expect={"contains": "#4421"}), children)

    low, high = replay.facts["samples"]["interval"]
    assert low < 0.3 < high < 0.6
    assert Run.objects.filter(origin="fork").count() == 60


@pytest.mark.parametrize("name", ["run_xyz789", "cancel_bug"])
def test_a_fork_stops_where_it_was_foretold(project, children, name):
    run = make_run(project, example(name))
    parent = Parent(run)
    tools = [step.index for step in run.steps if step.kind == "tool"]
    assert tools

    for index in tools:
        change = {"kind": "tool_result", "step": index, "value": "edited"}
        told = foretell(read_order({"at_step": index, "changes": [change]}), run.steps, parent.main, StoredSteps(run))
        stopped = work(fork(run, index, change), children).stopped_at
        assert told is not None
        assert (told.asks, stopped and stopped["kind"]) == (stopped and stopped["step"], stopped and "model")


def test_a_fork_of_a_fork_that_gives_the_recorded_answer_again_goes_on_with_the_recording(project, children):
    run = make_run(project, example("cancel_bug"))
    recorded = example("cancel_bug")["steps"][1]["result"]
    changes = [
        {"kind": "tool_result", "step": 2, "value": {}},
        {"kind": "model_answer", "step": 3, "value": {"text": "There is none."}},
    ]
    first = work(request_fork(run=run, order={"at_step": 2, "changes": changes}), children)

    assert first.produced_run is not None
    back = work(fork(first.produced_run, 2, {"kind": "tool_result", "step": 2, "value": recorded}), children)

    assert (back.state, back.error) == ("done", None)
    assert steps_of(back) == ["recorded", "by_hand", "borrowed", "borrowed", "borrowed"]
