"""Runs of the OpenAI Agents SDK that went on from a state, replayed where the agent is."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest
from agents import Agent, Handoff, Runner, function_tool, handoff, tool_input_guardrail
from agents.tool_guardrails import ToolGuardrailFunctionOutput

from replay_recorder.replaying.observing import NothingObserved, Replay, Tools, observe
from replay_recorder.replaying.own_agent import OwnAgent
from replay_recorder.replaying.recording import read_recording
from sessions_app.core.formats.native import parse_native
from sessions_app.core.replay.fixture_book import NO_LONGER_WAITS
from sessions_app.core.replay.observed import Divergence
from sessions_app.core.replay.own_machine import judge_observed
from tests.recorder import openai_scenarios as scenarios
from tests.recorder.openai_playing import Record, agent, bytes_of, calls, one_record, recorded, run, says, streamed
from tests.recorder.openai_provider import provider
from tests.recorder.openai_scenarios import SCENARIOS, WAYS, Way

GOES_ON = (
    "a_call_that_a_person_approves",
    "a_call_that_a_person_rejects",
    "a_stored_state_that_goes_on",
    "calls_that_wait_twice",
    "one_call_approved_and_one_left_open",
    "one_call_approved_and_one_rejected",
    "a_call_that_is_approved_for_good",
    "an_approval_behind_a_handoff",
)
Ended = tuple[str, int | None, str | None]


@dataclass
class Played:
    """Notes the agents that runs are started with."""

    way: Way
    agents: list[Agent[Any]] = field(default_factory=list)

    async def __call__(self, agent: Agent[Any], *args: Any, **options: Any) -> Any:
        self.agents.append(agent)
        return await self.way(agent, *args, **options)


def played(name: str, way: str = "run") -> tuple[list[Agent[Any]], list[Record]]:
    """The agent that each run was started with, and all records, also of runs inside of tools."""
    playing = Played(WAYS[way])
    with provider() as speaking:

        async def play() -> None:
            await SCENARIOS[name](speaking, playing)
            await speaking.client.close()

        return playing.agents, recorded(play)


def ended(record: Record, own: Agent[Any], tools: Tools, **more: Any) -> Ended:
    observed = observe(Replay(read_recording(record), OwnAgent(own), tools, **more))
    result, _ = judge_observed(parse_native(bytes_of(record)), parse_native(observed), tools=tools, run_id="again")
    found = result.divergence
    return (result.verdict, found.step, found.path) if found else (result.verdict, None, None)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", GOES_ON)
def test_a_run_that_went_on_from_a_state_reproduces(name: str, way: str):
    agents, records = played(name, way)
    continued = [(own, record) for own, record in zip(agents, records, strict=True) if record.get("deferred")]

    assert continued
    for own, record in continued:
        assert ended(record, own, "frozen") == ended(record, own, "run") == ("reproduced", None, None)


@pytest.mark.parametrize("name", ["an_approved_call_that_ends_the_run", "one_call_approved_and_one_left_open"])
def test_of_a_run_that_asked_no_model_the_recording_does_not_hold_what_it_went_on_from(name: str):
    agents, records = played(name)

    with pytest.raises(NothingObserved, match="its recording does not hold the conversation up to there"):
        observe(Replay(read_recording(records[1]), OwnAgent(agents[1])))


def test_a_call_that_waited_inside_of_an_agent_as_tool_is_refused_in_words():
    agents, records = played("an_approval_inside_an_agent_as_tool")
    record = next(record for record in records if "c0" in (record.get("deferred") or {}))

    with pytest.raises(NothingObserved, match=r"ask \(c0\) waited for a person.*its state was not recorded"):
        observe(Replay(read_recording(record), OwnAgent(agents[-1])))


# --- agents that are handed over to -------------------------------------------------------------


@function_tool(needs_approval=True)
async def refund(order: str) -> str:
    return f"{order} is paid back"


def refunding_behind(make: Callable[[Agent[Any]], Any]) -> Agent[Any]:
    """One agent hands over to another one, which waits; `make` is how it is listed."""
    second = agent([calls("refund", '{"order": "A"}', "c1")], [says("Done.")], tools=[refund])
    second.name = "Refunds"
    return agent([calls("transfer_to_refunds", "{}", "c0")], handoffs=[make(second)])


async def _approved(own: Agent[Any]) -> None:
    state = (await run(own)).to_state()
    for item in state.get_interruptions():
        state.approve(item)
    await Runner.run(own, state)


def by_hand(target: Agent[Any]) -> Handoff[Any, Any]:
    """As the SDK's `handoff` does not make it: it does not tell to whom it leads."""

    async def hand_over(context: Any, sent: str) -> Agent[Any]:
        return target

    return Handoff("transfer_to_refunds", "Refunds.", {}, hand_over, target.name)


@pytest.mark.parametrize("make", [lambda target: target, handoff], ids=["agent", "handoff"])
def test_a_run_that_went_on_behind_a_handoff_reproduces(make: Callable[[Agent[Any]], Any]):
    own = refunding_behind(make)
    record = recorded(lambda: _approved(own))[1]

    assert ended(record, refunding_behind(make), "frozen") == ("reproduced", None, None)
    assert ended(record, refunding_behind(make), "run") == ("reproduced", None, None)


def test_a_run_that_went_on_behind_a_handoff_that_leads_nowhere_known_is_refused_in_words():
    record = recorded(lambda: _approved(refunding_behind(by_hand)))[1]

    with pytest.raises(NothingObserved, match=r"does not find that agent again.*as `handoff\(agent\)`"):
        observe(Replay(read_recording(record), OwnAgent(refunding_behind(by_hand))))


# --- an agent that changed, and other decisions ------------------------------------------------

ran: list[str] = []


def refunding(*script: Any, **facts: Any) -> Agent[Any]:
    async def refund(order: str) -> str:
        ran.append(order)
        return f"{order} is paid back{facts.get('kindly', '')}"

    needs = facts.get("needs_approval", True)
    return agent(*script, tools=[scenarios.lookup, scenarios.function_tool(needs_approval=needs)(refund)])


async def _decided(is_approved: bool) -> None:
    looks = [calls("lookup", '{"order": "A"}', "c0")]
    own = refunding(looks, [calls("refund", '{"order": "A"}', "c1")], [says("Done.")])
    state = (await run(own)).to_state()
    for item in state.get_interruptions():
        state.approve(item) if is_approved else state.reject(item, rejection_message="Not today.")
    await Runner.run(own, state)


def decided(is_approved: bool) -> Record:
    """The record of the run that went on."""
    record = recorded(lambda: _decided(is_approved))[1]
    ran.clear()
    return record


def test_the_way_to_the_state_runs_no_tool_and_leaves_no_recording():
    record = decided(is_approved=True)

    assert ended(record, refunding(), "frozen") == ("reproduced", None, None)
    assert ran == []
    assert ended(record, refunding(), "run") == ("reproduced", None, None)
    assert ran == ["A"]


def test_a_changed_tool_is_found_where_it_answers():
    record = decided(is_approved=True)

    assert ended(record, refunding(kindly=" gladly"), "run") == ("diverged", 1, "result")
    assert ended(record, refunding(kindly=" gladly"), "frozen") == ("reproduced", None, None)


@pytest.mark.parametrize(("was_approved", "tools"), [(True, "frozen"), (False, "run")])
def test_the_decision_on_a_call_can_be_another_one(was_approved: bool, tools: Tools):
    record = decided(was_approved)

    assert ended(record, refunding(), tools, decisions={1: not was_approved}) == ("diverged", 1, "result")
    assert ended(record, refunding(), tools, decisions={1: was_approved}) == ("reproduced", None, None)
    assert ran == ([] if was_approved else ["A"])


def test_an_agent_that_does_not_wait_any_more_is_told_so():
    with pytest.raises(NothingObserved, match=r"refund \(c1\) waited for a person, and your agent of today does not"):
        observe(Replay(read_recording(decided(is_approved=True)), OwnAgent(refunding(needs_approval=False))))


@pytest.mark.parametrize(("tools", "now"), [("frozen", NO_LONGER_WAITS), ("run", "success")])
def test_a_call_that_waited_and_does_not_wait_any_more_differs_in_that(tools: Tools, now: str):
    record = one_record(lambda: run(refunding([calls("refund", '{"order": "A"}', "c1")])))
    own = refunding(needs_approval=False)

    observed = observe(Replay(read_recording(record), OwnAgent(own), tools))
    result, _ = judge_observed(parse_native(bytes_of(record)), parse_native(observed), tools=tools, run_id="again")

    assert result.verdict == "diverged"
    assert result.divergence == Divergence(step=2, path="outcome", recorded="unapproved", replayed=now)
    assert result.facts["own_code"] == []


@pytest.mark.parametrize(
    ("more", "words"), [({"decisions": {2: True}}, "for step 2 when"), ({"input": "Hi"}, "has no prompt of its own")]
)
def test_what_cannot_be_changed_of_a_run_that_went_on_is_refused(more: dict[str, Any], words: str):
    with pytest.raises(NothingObserved, match=words):
        observe(Replay(read_recording(decided(is_approved=True)), OwnAgent(refunding()), **more))


def test_a_run_that_was_not_continued_has_no_decision_to_change():
    record = one_record(lambda: run(refunding([says("Hello.")])))

    with pytest.raises(NothingObserved, match="not continued with approvals"):
        observe(Replay(read_recording(record), OwnAgent(refunding()), decisions={1: True}))


# --- guardrails of tools ------------------------------------------------------------------------


def guarded(*refusing: str) -> Agent[Any]:
    @tool_input_guardrail
    def refuse(data: Any) -> ToolGuardrailFunctionOutput:
        return ToolGuardrailFunctionOutput.reject_content(refusing[0])

    @function_tool(tool_input_guardrails=[refuse] if refusing else [])
    async def find(order: str) -> str:
        return f"{order} has shipped"

    return agent([calls("find", '{"order": "A"}', "c1")], [says("Fine.")], tools=[find])


@pytest.mark.parametrize("way", [run, streamed])
@pytest.mark.parametrize(("then", "now"), [(["A has shipped"], []), ([], ["A has shipped"])])
def test_a_guardrail_before_a_tool_that_comes_or_goes_is_found_though_the_words_are_the_same(
    then: list[str], now: list[str], way: Callable[..., Coroutine[Any, Any, Any]]
):
    record = one_record(lambda: way(guarded(*then)))

    tools: tuple[Tools, ...] = ("frozen", "run")
    for each in tools:
        assert ended(record, guarded(*then), each) == ("reproduced", None, None)
        assert ended(record, guarded(*now), each) == ("diverged", 2, "tool_ran")
