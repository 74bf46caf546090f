"""What tools are given: code of the team's in front of a tool may hand on something else than the model sent."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BeforeValidator, InstanceOf, SecretStr
from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ModelRetry, SkipToolExecution, SkipToolValidation
from pydantic_ai.toolsets import FunctionToolset, WrapperToolset

from sessions_app.agents.own_code.registry import OwnAgent
from sessions_app.core.compare.runs import compare_runs
from sessions_app.core.fork.order import read_order
from sessions_app.core.formats.native import encode_native
from sessions_app.core.replay.agreement import produced
from sessions_app.core.replay.observed import Result
from sessions_app.core.run import Run
from tests.agents.forking import IN_WORDS
from tests.agents.own_agents import forked_by, observed_by, place, recorded_run, replayed_by
from tests.recorder.replaying import replayed
from tests.recorder.scenarios import Play, Scripted, call, says

Replays = Callable[[Run, Play], Result]


def code(run: Run, today: Play) -> Result:
    return replayed_by(run, OwnAgent(agent=today.agent))


def code_and_tools(run: Run, today: Play) -> Result:
    return replayed_by(run, OwnAgent(agent=today.agent), runs_tools=True)


def own_machine(run: Run, today: Play) -> Result:
    return observed_by(run, today)


def own_machine_and_tools(run: Run, today: Play) -> Result:
    return observed_by(run, today, tools="run")


REPLAYS = (code, code_and_tools, own_machine, own_machine_and_tools)
each_replay = pytest.mark.parametrize("replay", REPLAYS, ids=lambda each: each.__name__)


class Hook(AbstractCapability[Any]):
    """Hands on ten times as much, at one place on the way to the tool."""

    def __init__(self, place: str) -> None:
        self._place = place

    def _at(self, place: str, args: Any) -> Any:
        return {"n": 20} if place == self._place else args

    async def before_tool_validate(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
        return self._at("before_tool_validate", args)

    async def wrap_tool_validate(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        if self._place == "SkipToolValidation":
            raise SkipToolValidation({"n": 20})
        return self._at("wrap_tool_validate", await handler(args))

    async def after_tool_validate(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
        return self._at("after_tool_validate", args)

    async def before_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
        return self._at("before_tool_execute", args)

    async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        return await handler(self._at("wrap_tool_execute", args))


@dataclass
class Proxy(WrapperToolset[Any]):
    """Hands on `factor` times as much."""

    factor: int = 1

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        return await super().call_tool(name, {"n": tool_args["n"] * self.factor}, ctx, tool)


def play(
    *capabilities: AbstractCapability[Any], kind: Any = int, sent: Any = 2, around: Any = None, fails: bool = False
) -> Play:
    """What `pay` answers does not tell what it was given."""
    tools: FunctionToolset[Any] = FunctionToolset()

    def pay(n: Any) -> str:
        if fails:
            raise ModelRetry("not now")
        return "paid"

    pay.__annotations__["n"] = kind
    tools.add_function(pay)
    model = Scripted(says(call("pay", {"n": sent}, "1")), says("Done."))
    toolset = tools if around is None else around(tools)
    return Play(Agent(model, name="shop", toolsets=[toolset], capabilities=list(capabilities)), "Pay.")


def tenfold(value: int) -> int:
    return value * 10


def hooked(place: str) -> Play:
    return play(Hook(place))


PLACES = (
    "before_tool_validate", "wrap_tool_validate", "after_tool_validate", "SkipToolValidation", "before_tool_execute",
    "wrap_tool_execute",
)  # fmt: skip
CHANGES: dict[str, Callable[[], Play]] = {
    **{place: partial(hooked, place) for place in PLACES},
    "AfterValidator": lambda: play(kind=Annotated[int, AfterValidator(tenfold)]),
    "BeforeValidator": lambda: play(kind=Annotated[int, BeforeValidator(tenfold)]),
}
each_change = pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())


def arguments(result: Result) -> tuple[str, str | None]:
    part = result.facts["proof"]["tool_arguments"]
    return part["state"], part["reason"]


@each_replay
@each_change
def test_a_tool_that_is_given_other_arguments_today_is_a_difference(change: Callable[[], Play], replay: Replays):
    result = replay(recorded_run(play), change())

    assert place(result) == ("diverged", 2, "arguments.n")
    assert (result.divergence.recorded, result.divergence.replayed) == (2, 20)
    assert arguments(result) == ("not_proven", "differs at step 2, arguments.n")


@each_replay
@each_change
def test_code_that_changes_arguments_as_then_is_reproduced(change: Callable[[], Play], replay: Replays):
    result = replay(recorded_run(change), change())

    assert place(result) == ("reproduced", None, None)
    assert arguments(result) == ("proven", None)


@each_replay
@each_change
def test_code_that_changes_arguments_no_more_is_a_difference(change: Callable[[], Play], replay: Replays):
    assert place(replay(recorded_run(change), play())) == ("diverged", 2, "arguments.n")


class Money:
    """Written as JSON by nobody, and by another text in each process."""


def as_money(value: int) -> Money:
    return Money()


VALUES: dict[str, tuple[Any, Any]] = {
    "date": (date, "2026-11-25"),
    "set": (set[str], ["b", "a", "c"]),
    "bytes": (bytes, "text"),
    "lax": (int, "2"),
    "none": (int | None, None),
}


@each_replay
@pytest.mark.parametrize(("kind", "sent"), VALUES.values(), ids=VALUES.keys())
def test_values_of_other_kinds_are_no_difference(kind: Any, sent: Any, replay: Replays):
    result = replay(recorded_run(lambda: play(kind=kind, sent=sent)), play(kind=kind, sent=sent))

    assert (place(result), arguments(result)) == (("reproduced", None, None), ("proven", None))


UNKNOWN = {
    "object": (Annotated[InstanceOf[int], AfterValidator(as_money)], 2),
    "secret": (SecretStr, "x"),
}


@each_replay
@pytest.mark.parametrize(("kind", "sent"), UNKNOWN.values(), ids=UNKNOWN.keys())
def test_what_is_no_json_is_not_comparable(kind: Any, sent: Any, replay: Replays):
    result = replay(recorded_run(lambda: play(kind=kind, sent=sent)), play(kind=kind, sent=sent))

    assert place(result) == ("reproduced", None, None)
    words = "the tools were called with the same arguments; n of pay is not comparable as JSON"
    assert arguments(result) == ("not_comparable", words)


def test_a_rebuilt_replay_does_not_claim_what_code_made_of_the_arguments():
    changed, same = (replayed(encode_native(recorded_run(made)))[0] for made in (CHANGES["AfterValidator"], play))

    words = (
        "the tools were called with the same arguments; "
        "code that transforms the arguments before the tools did not run again"
    )
    assert (changed.verdict, arguments(changed)) == ("reproduced", ("not_comparable", words))
    assert (same.verdict, arguments(same)) == ("reproduced", ("proven", None))


def test_a_recording_without_the_arguments_proves_nothing_of_them():
    def look(place: str) -> str:
        return "found"

    model = Scripted(says(call("look", {"place": "Lisbon"}, "1")), says("Done."))
    record = json.loads(encode_native(recorded_run(lambda: Play(Agent(model, name="shop", tools=[look]), "Look."))))
    whole = replayed(json.dumps(record).encode())[0]
    del record["steps"][1]["arguments"]

    result = replayed(json.dumps(record).encode())[0]

    assert (whole.verdict, arguments(whole)) == ("reproduced", ("proven", None))
    assert (result.verdict, arguments(result)[1]) == ("reproduced", "the arguments of step 2 were not recorded")


@each_replay
def test_a_recording_that_does_not_tell_what_tools_were_given_proves_nothing_of_it(replay: Replays):
    run = replace(recorded_run(play), extra={})

    result = replay(run, play(Hook("before_tool_execute")))

    words = "the tools were called with the same arguments; what they received was not recorded"
    assert (place(result), arguments(result)) == (("reproduced", None, None), ("not_comparable", words))


BEHIND = "the tools were called with the same arguments; Proxy.call_tool may have given them something else"


@pytest.mark.parametrize("factor", [1, 10])
@pytest.mark.parametrize("replay", [code, own_machine], ids=lambda each: each.__name__)
def test_a_toolset_that_does_not_run_in_front_of_a_frozen_tool_is_named(replay: Replays, factor: int):
    result = replay(recorded_run(play), play(around=lambda tools: Proxy(tools, factor)))

    assert (place(result), arguments(result)) == (("reproduced", None, None), ("not_comparable", BEHIND))


@pytest.mark.parametrize("replay", [code_and_tools, own_machine_and_tools], ids=lambda each: each.__name__)
def test_a_toolset_that_runs_is_held_to_what_it_hands_on(replay: Replays):
    def proxied(factor: int) -> Play:
        return play(around=lambda tools: Proxy(tools, factor))

    assert place(replay(recorded_run(play), proxied(10))) == ("diverged", 2, "arguments.n")
    assert place(replay(recorded_run(lambda: proxied(10)), play())) == ("diverged", 2, "arguments.n")
    again = replay(recorded_run(lambda: proxied(10)), proxied(10))
    assert (place(again), arguments(again)) == (("reproduced", None, None), ("proven", None))


def test_the_two_runs_beside_each_other_show_what_a_tool_was_given():
    run = recorded_run(play)
    result = code(run, CHANGES["AfterValidator"]())
    assert result.observations is not None

    made = produced(run, result, result.observations, run_id="made")[1]

    found = [each for pair in compare_runs(run, made).steps for each in pair.differences]
    assert [(each.path, each.left, each.right) for each in found] == [("ran_with.n", 2, 20)]


# --- whether the tool ran ----------------------------------------------------------------------


class Answers(AbstractCapability[Any]):
    """In the tool's place."""

    def __init__(self, says: BaseException) -> None:
        self._says = says

    async def before_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
        raise self._says


@each_replay
def test_a_hook_that_answers_in_the_tools_place_with_the_same_words_is_a_difference(replay: Replays):
    result = replay(recorded_run(play), play(Answers(SkipToolExecution("paid"))))

    assert place(result) == ("diverged", 2, "tool_ran")
    assert (result.divergence.recorded, result.divergence.replayed) == (True, False)


@each_replay
def test_a_hook_that_refuses_with_the_words_of_the_tool_is_a_difference(replay: Replays):
    run = recorded_run(lambda: play(fails=True))

    assert place(replay(run, play(Answers(ModelRetry("not now")))))[:2] == ("diverged", 2)


@pytest.mark.parametrize("replay", [code_and_tools, own_machine_and_tools], ids=lambda each: each.__name__)
def test_a_tool_that_ran_then_by_no_means_and_runs_now_is_a_difference(replay: Replays):
    run = recorded_run(lambda: play(Answers(SkipToolExecution("paid"))))

    assert place(replay(run, play())) == ("diverged", 2, "tool_ran")


@each_replay
def test_a_hook_that_answers_as_then_is_reproduced(replay: Replays):
    run = recorded_run(lambda: play(Answers(SkipToolExecution("paid"))))

    assert place(replay(run, play(Answers(SkipToolExecution("paid"))))) == ("reproduced", None, None)


def fork_of_code(run: Run, today: Play) -> Result:
    order = read_order({"at_step": 1, "agent": "shop", "changes": [], **IN_WORDS})
    return forked_by(run, OwnAgent(agent=today.agent), order)


@pytest.mark.parametrize("replay", [code, own_machine, fork_of_code], ids=lambda each: each.__name__)
def test_the_recorded_answer_of_a_tool_that_is_given_something_else_is_for_another_request(replay: Replays):
    """Control: given the same, it is recorded."""
    run = recorded_run(play)

    changed, same = replay(run, hooked("before_tool_execute")), replay(run, play())

    assert changed.facts["sources"] == {"recorded": 2, "recorded_for_another_request": 1}
    assert same.facts["sources"] == {"recorded": 3}
