"""Replays that a live model answers: the same scene once more, and the team's code where it asks something new."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings
from pydantic_ai import ToolOutput

from sessions_app.agents.process.sandbox import ChildPool
from sessions_app.core.errors import NotReplayable
from sessions_app.core.fork.changes import ForkError
from sessions_app.core.formats.native import encode_native
from sessions_app.core.reports.run_report import as_json
from sessions_app.core.run import ModelCall
from sessions_app.core.run import Run as RecordedRun
from sessions_app.mapping.load import load_run
from sessions_app.models import Project, Replay, Run
from sessions_app.services import replay_work
from sessions_app.services.forks import request_fork
from sessions_app.services.replays import request_replay
from sessions_app.services.reports import report_of
from tests.agents.forking import sources
from tests.agents.own_agents import recorded_run
from tests.agents.talking import example
from tests.fake_provider import Answer, FakeProvider, Reply, calls, fake_provider, says
from tests.recorder.scenarios import Play, Refund, call, native_output_retry, output_validator_retry, support_agent
from tests.recorder.scenarios import says as answers
from tests.tasks.incidents import make_project, make_run

pytestmark = pytest.mark.django_db(transaction=True)

SHIPPED = "Order #4421 is shipped."


@pytest.fixture
def project() -> Project:
    return make_project()


@pytest.fixture
def run(project: Project) -> Run:
    """Its tool gave three candidates, and the model took the first, which is another customer's."""
    return make_run(project, example("r_8821"))


@contextmanager
def live_model(reply: Reply) -> Iterator[FakeProvider]:
    with fake_provider(reply) as provider:
        settings = {"REPLAY_MODEL_ENDPOINT": provider.url, "REPLAY_MODEL_ALLOW_PRIVATE": True}
        with override_settings(**settings):
            yield provider


def work(replay: Replay) -> Replay:
    pool = ChildPool()
    try:
        assert replay_work.work_on(replay.pk, worker="a", children=pool)
    finally:
        pool.close()
    replay.refresh_from_db()
    return replay


def made_by(replay: Replay) -> RecordedRun:
    assert replay.produced_run is not None
    return load_run(replay.produced_run)


def takes_the_first(body: dict[str, Any]) -> Answer:
    """A model that looks the order up and believes the first candidate."""
    last = body["messages"][-1]
    if last["role"] != "tool":
        return calls("lookup_order", {"query": "my order"})
    first = json.loads(last["content"])[0]
    return says(f"Order {first['order']} is {first['status']}.")


def test_the_same_scene_with_a_pinned_model_gives_the_wrong_order_again(run):
    with live_model(takes_the_first) as provider:
        replay = work(request_replay(run=run, mode="live", order={"samples": 3}))

    assert (replay.state, replay.verdict, replay.error) == ("done", "reproduced", None)
    assert (replay.live_calls, provider.requests) == (6, 6)
    assert {(body["model"], body["temperature"]) for body in provider.bodies} == {("sonnet-4-2511", 0)}
    assert (replay.number, replay.fork_id) == (1, None)
    made = made_by(replay)
    assert made.origin == "replay"
    assert made.output is not None
    assert (made.output.parsed, sources(made)) == (SHIPPED, ["live", "recorded", "live"])


def test_one_candidate_gives_another_answer(run):
    """The tool as it answers today, where the model looks no other way."""
    own = [{"order": "#4398", "status": "processing"}]
    change = {"kind": "tool_result", "step": 3, "value": own}
    order = {"at_step": 2, "changes": [change], "samples": 1, "hypothesis": "h", "expect": {"contains": "#4421"}}
    with live_model(takes_the_first):
        replay = work(request_fork(run=run, order=order, mode="sampling"))

    assert (replay.verdict, replay.facts["samples"]["met"]) == ("diverged", 0)
    assert replay.facts["samples"]["groups"][0]["words"] == "Order #4398 is processing."


def test_an_attempt_with_a_live_model_says_how_often_it_came_again(run):
    def changes_its_mind(body: dict[str, Any]) -> Answer:
        return says("I cannot find it.") if provider.requests == 2 else takes_the_first(body)

    with live_model(changes_its_mind) as provider:
        replay = work(request_replay(run=run, mode="live", order={"samples": 2}))

    report = report_of(replay)
    assert (replay.verdict, report.verdict) == ("diverged", "The live model did the same again in 1 of 2 samples")
    assert [(each.number, each.outcome, each.matches_original) for each in report.attempts] == [(1, "different", False)]
    told = as_json(report)
    assert told["replay"]["live_calls"] == 4
    assert report.replay is not None
    assert report.replay.parts is not None
    words = "a live model, called at every step (sonnet-4-2511, temperature 0, top_p 0.95, answered as fake-1)"
    assert ("model", words) in report.replay.parts.rows
    assert next(row for row in report.budget if row.key == "sampling").state != "pinned"


def test_requests_that_went_out_are_counted_where_a_replay_was_cancelled(run):
    """Control: one that is cancelled before it asks has none."""

    def is_cancelled_meanwhile(body: dict[str, Any]) -> Answer:
        Replay.objects.update(is_cancel_wanted=True)
        connection.close()  # of the provider's thread
        time.sleep(1.5)
        return says("Too late.")

    with live_model(is_cancelled_meanwhile):
        asked = work(request_replay(run=run, mode="live", order={"samples": 2}))
        Replay.objects.filter(pk=(before := request_replay(run=run, mode="live")).pk).update(is_cancel_wanted=True)
        before = work(before)

    assert (asked.state, asked.live_calls) == ("cancelled", 1)
    assert (before.state, before.live_calls) == ("cancelled", None)


def refusing_a_call() -> Play:
    tool = ToolOutput(Refund)
    bad, good = call("final_result", {"order_id": "x"}, "a"), call("final_result", {"order_id": "x", "amount": 1}, "b")
    return Play(support_agent(answers(bad), answers(good), output_type=tool), "Refund?")


@pytest.mark.parametrize("make", [refusing_a_call, native_output_retry, output_validator_retry])
def test_an_output_that_was_refused_is_refused_again_for_a_live_model(project: Project, make: Callable[[], Play]):
    """Control: a model that gives another one."""
    recorded = recorded_run(make)
    run = make_run(project, json.loads(encode_native(recorded)))
    texts = [step.call.response.value["parts"][0] for step in recorded.steps if isinstance(step.call, ModelCall)]
    given = [answer_again(part, number) for number, part in enumerate(texts)]

    with live_model(lambda body: given[sum(each["role"] == "assistant" for each in body["messages"])]):
        again = work(request_replay(run=run, mode="live", order={"samples": 1}))
        given[1] = says("Something else, and long enough.")
        other = work(request_replay(run=run, mode="live", order={"samples": 1}))

    assert (again.verdict, again.live_calls) == ("reproduced", 2)
    assert other.verdict == "diverged"


def answer_again(part: Any, number: int) -> Answer:
    if part["part_kind"] == "text":
        return says(part["content"])
    return calls(part["tool_name"], part["args"], call_id=f"call_live_{number}")


def test_a_sample_that_failed_is_counted_apart(run):
    def is_busy_once(body: dict[str, Any]) -> Answer:
        return Answer(b'{"error": {"message": "no"}}', 400) if provider.requests == 1 else takes_the_first(body)

    with live_model(is_busy_once) as provider:
        replay = work(request_replay(run=run, mode="live", order={"samples": 3}))

    assert report_of(replay).verdict == "The live model did the same again in 2 of 2 samples; 1 failed"
    assert (replay.verdict, replay.facts["samples"]["done"]) == ("reproduced", 2)
    assert replay.facts["clock"] is not None


def test_another_call_with_the_same_answer_is_not_the_same_again(run):
    def asks_twice(body: dict[str, Any]) -> Answer:
        return takes_the_first(body) if len(body["messages"]) != 2 else says(SHIPPED)

    with live_model(asks_twice):
        replay = work(request_replay(run=run, mode="live"))

    assert (replay.verdict, replay.facts["samples"]["again"]) == ("diverged", 0)
    proof = replay.facts["proof"]
    assert (proof["tool_arguments"]["state"], proof["outcome"]["state"]) == ("not_proven", "proven")
    assert report_of(replay).verdict == "The live model did something different"


def test_the_order_may_name_model_and_settings(run):
    order = {"model": {"model": "sonnet-5", "settings": {"temperature": 0.5, "seed": 7}}}
    with live_model(takes_the_first) as provider:
        work(request_replay(run=run, mode="live", order=order))

    assert [(body["model"], body["temperature"], body["seed"]) for body in provider.bodies] == [
        ("sonnet-5", 0.5, 7)
    ] * 2


@pytest.mark.parametrize(
    ("mode", "order", "field"),
    [
        ("live", {"breakpoints": [{"step": 1}]}, "breakpoints"),
        ("live", {"samples": 0}, "samples"),
        ("live", {"model": 5}, "model"),
        ("live", {"model": ""}, "model.model"),
        ("live", {"model": []}, "model"),
        ("live", {"model": {"model": {}}}, "model.model"),
        ("live", {"model": {"settings": []}}, "model.settings"),
        ("live", {"model": {"setings": {}}}, "model.setings"),
        ("live", {"agent": "order_desk", "model": "mini"}, "model"),
        ("live", {"on_difference": "play_on"}, "on_difference"),
        ("live", {"agent": "order_desk", "tools": {"run": True}}, "tools"),
        ("recording", {"samples": 2}, "samples"),
        ("recording", {"samples": 0}, "samples"),
        ("code", {"agent": "order_desk", "model": "gpt"}, "model"),
        ("code", {"agent": "order_desk", "model": {}}, "model"),
    ],
)
def test_what_a_live_model_is_not_asked_for_is_refused(run, settings, mode, order, field):
    settings.REPLAY_MODEL_ENDPOINT = "https://models.example.org/v1"

    with pytest.raises(ForkError) as refused:
        request_replay(run=run, mode=mode, order=order)

    assert refused.value.field == field


@pytest.mark.parametrize("model", [None, "mini", {}, {"model": "mini"}, {"settings": {}}, {"settings": {"seed": 7}}])
def test_a_model_may_be_named_with_or_without_settings(run, settings, model):
    settings.REPLAY_MODEL_ENDPOINT = "https://models.example.org/v1"

    [change] = request_replay(run=run, mode="live", order={"model": model}).order["changes"]

    assert change["value"]["settings"]["temperature"] == 0


@pytest.mark.parametrize(("mode", "order"), [("live", {}), ("code", {"agent": "order_desk", "on_difference": "live"})])
def test_without_a_live_model_none_is_asked(run, mode, order):
    with pytest.raises((ForkError, NotReplayable), match="No live model is connected"):
        request_replay(run=run, mode=mode, order=order)


# --- the team's own code -----------------------------------------------------------------------


def test_own_code_is_answered_by_a_live_model(project):
    run = make_run(project)
    recorded: list[Answer] = [_said(call.response.parsed) for _, call in load_run(run).model_calls if call.response]

    def goes_as_recorded(body: dict[str, Any]) -> Answer:
        turn: int = sum(message["role"] == "assistant" for message in body["messages"])
        return recorded[turn]

    with live_model(goes_as_recorded) as provider:
        replay = work(request_replay(run=run, mode="live", order={"agent": "order_desk"}))

    assert (replay.verdict, replay.error) == ("reproduced", None)
    assert (replay.queue, replay.live_calls) == ("code", len(recorded))
    assert provider.requests == len(recorded)


def test_a_sampling_of_own_code_that_goes_as_recorded_is_reproduced_by_the_code_that_ran(project, monkeypatch):
    """Also where nobody knows the commit of the code. Its last answer is asked for anew."""
    monkeypatch.setattr(replay_work, "commit_of", lambda target, env: None)
    run = make_run(project)
    step, last = load_run(run).model_calls[-1]
    assert last.response is not None
    answer, order = _said(last.response.parsed), {"at_step": step.index, "agent": "order_desk", "samples": 2}
    with live_model(lambda body: answer):
        said = {"hypothesis": "h", "expect": "It does the same."}
        replay = work(request_fork(run=run, order={**order, **said}, mode="sampling"))

    told = report_of(replay)
    assert told.replay is not None
    assert (replay.verdict, told.replay.agent, told.next_action) == ("reproduced", "order_desk", "Read the outcomes.")
    assert told.replay.proof is not None
    assert told.replay.proof.is_reproduction
    assert [step.words for step in told.harness if step.title == "diff output"] == ["diff output"]


def _said(answer: Any) -> Answer:
    call = next((part for part in answer["parts"] if part["part_kind"] == "tool-call"), None)
    if call is None:
        return says("".join(part.get("content") or "" for part in answer["parts"]))
    arguments = json.loads(call["args"]) if isinstance(call["args"], str) else call["args"]
    return calls(call["tool_name"], arguments, call_id=call["tool_call_id"])


def test_where_the_fixed_code_asks_something_new_the_live_model_answers(project):
    order = {"agent": "order_desk_fixed", "on_difference": "live"}
    with live_model(lambda body: says("That order was delivered.")) as provider:
        replay = work(request_replay(run=make_run(project), mode="code", order=order))

    assert (replay.verdict, replay.divergence["step"], replay.error) == ("diverged", 4, None)
    assert (replay.live_calls, provider.requests) == (1, 1)
    assert "not eligible" in provider.bodies[0]["messages"][-1]["content"]
    made = made_by(replay)
    assert made.origin == "replay"
    assert sources(made)[-1] == "live"
    assert made.output is not None
    assert made.output.parsed == "That order was delivered."


def test_a_model_that_is_away_ends_a_replay_of_own_code_in_words(project):
    order = {"agent": "order_desk_fixed", "on_difference": "live"}
    with override_settings(REPLAY_MODEL_ENDPOINT="http://127.0.0.1:9/v1", REPLAY_MODEL_ALLOW_PRIVATE=True):
        replay = work(request_replay(run=make_run(project), mode="code", order=order))

    assert (replay.state, replay.verdict) == ("failed", "could_not_run")
    assert "crashed" not in str(replay.error)


def test_code_that_asks_nothing_new_asks_no_live_model(project):
    order = {"agent": "order_desk", "on_difference": "live"}
    with live_model(lambda body: says("never asked")) as provider:
        replay = work(request_replay(run=make_run(project), mode="code", order=order))

    assert (replay.verdict, replay.live_calls, provider.requests) == ("reproduced", 0, 0)
