"""Checks and hooks of the team's own that stand in front of a tool: one that is gone today is noticed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel, model_validator
from pydantic_ai import Agent, ApprovalRequired, DeferredToolRequests, ToolOutput
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ModelRetry, SkipToolExecution, ToolFailed

from sessions_app.agents.own_code.registry import OwnAgent
from sessions_app.core.compare.runs import compare_runs
from sessions_app.core.replay.observed import Result
from sessions_app.core.replay.produce import produced_run
from sessions_app.core.run import Run
from tests.agents.own_agents import observed_by, place, recorded_run, replayed_by
from tests.recorder.scenarios import Play, Scripted, call, says


class Refuses(AbstractCapability[Any]):
    """At one place on the way to the tool, and only what is asked for first."""

    def __init__(self, place: str, refusal: BaseException | None) -> None:
        self._place, self._refusal = place, refusal

    def check(self, place: str, call_id: str | None) -> None:
        if self._refusal is not None and (place, call_id) == (self._place, "1"):
            raise self._refusal

    async def before_tool_validate(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
        self.check("before_tool_validate", call.tool_call_id)
        return args

    async def before_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
        self.check("before_tool_execute", call.tool_call_id)
        return args


def play(place: str, refusal: BaseException | None, says_itself: BaseException | None = None) -> Play:
    """`says_itself` is what the tool's own function raises for the first call."""
    model = Scripted(says(call("look", {"x": 1}, "1")), says(call("look", {"x": 2}, "2")), says("Done."))
    checks = Refuses(place, refusal)
    agent = Agent(model, name="agent", capabilities=[checks])

    def validate(ctx: Any, x: int) -> None:
        checks.check("args_validator", ctx.tool_call_id)

    @agent.tool_plain(args_validator=validate)
    def look(x: int) -> str:
        """Look."""
        if says_itself is not None and x == 1:
            raise says_itself
        return "found"

    return Play(agent, "Look it up.")


PLACES = ("args_validator", "before_tool_validate", "before_tool_execute")
REFUSALS = (ModelRetry("not one"), ToolFailed("not one"), PermissionError("not one"))
CASES = [
    *((place, refusal) for place in PLACES for refusal in REFUSALS),
    ("before_tool_execute", SkipToolExecution("cached")),
]
each_check = pytest.mark.parametrize(("check", "refusal"), CASES, ids=lambda each: getattr(each, "__name__", str(each)))


def with_code(run: Run, play: Play, *, runs_tools: bool = False) -> Result:
    return replayed_by(run, OwnAgent(agent=play.agent), runs_tools=runs_tools)


@each_check
def test_a_check_that_is_as_it_was_reproduces(check: str, refusal: BaseException):
    run = recorded_run(lambda: play(check, refusal))

    assert place(with_code(run, play(check, refusal))) == ("reproduced", None, None)
    assert place(with_code(run, play(check, refusal), runs_tools=True)) == ("reproduced", None, None)
    assert place(observed_by(run, play(check, refusal))) == ("reproduced", None, None)


@each_check
def test_a_check_that_is_gone_differs_at_the_call_that_it_ended(check: str, refusal: BaseException):
    run = recorded_run(lambda: play(check, refusal))

    result = with_code(run, play(check, None))

    assert place(result) == ("diverged", 2, "result")
    assert result.facts["own_code"][0]["now"] == "the call reaches the tool now"
    observed = observed_by(run, play(check, None))
    assert place(observed)[:2] == ("diverged", 2)
    if observed.facts["own_code"]:
        assert {"now": "the call reaches the tool now"}.items() <= observed.facts["own_code"][0].items()
        assert "has_failed" not in observed.facts["own_code"][0]


def test_bytes_that_a_tool_gives_are_named_as_messages_hold_them():
    def gives(last: int) -> Play:
        agent = Agent(Scripted(says(call("raw", {}, "a")), says("Done.")), name="agent")

        @agent.tool_plain
        def raw() -> bytes:
            return bytes([255, last])

        return Play(agent, "Go")

    observed = observed_by(recorded_run(lambda: gives(0)), gives(1), tools="run")

    assert place(observed) == ("diverged", 2, "result")
    (act,) = observed.facts["own_code"]
    assert (act["recorded"], act["now"]) == ("_wA=", "_wE=")


@pytest.mark.parametrize("refusal", REFUSALS[:2], ids=lambda each: type(each).__name__)
def test_a_tool_that_runs_and_says_what_a_check_said_then_differs(refusal: BaseException):
    run = recorded_run(lambda: play("args_validator", refusal))
    today = play("args_validator", None, says_itself=refusal)

    assert place(with_code(run, today, runs_tools=True)) == ("diverged", 2, "tool_ran")


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda each: type(each).__name__)
def test_what_the_tool_itself_said_is_given_again(refusal: BaseException):
    run = recorded_run(lambda: play("args_validator", None, says_itself=refusal))

    assert place(with_code(run, play("args_validator", None))) == ("reproduced", None, None)
    assert place(observed_by(run, play("args_validator", None))) == ("reproduced", None, None)


def test_a_recording_that_does_not_say_who_refused_is_given_again():
    run = recorded_run(lambda: play("args_validator", REFUSALS[0]))
    untold = replace(run, steps=tuple(replace(step, extra={}) for step in run.steps))

    assert place(with_code(untold, play("args_validator", None))) == ("reproduced", None, None)


def test_two_recordings_differ_where_the_tool_began_in_one_alone():
    refused = recorded_run(lambda: play("args_validator", REFUSALS[0]))
    ran = recorded_run(lambda: play("args_validator", None, says_itself=REFUSALS[0]))

    paths = {each.path for pair in compare_runs(refused, ran).steps for each in pair.differences}
    assert "tool_ran" in paths


class AnswersInPlace(AbstractCapability[Any]):
    """Of a tool that gives nothing either."""

    async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        return None


def noting(*capabilities: AbstractCapability[Any]) -> Play:
    agent = Agent(Scripted(says(call("note", {}, "1")), says("Done.")), name="agent", capabilities=capabilities)

    @agent.tool_plain
    def note() -> None:
        """Note."""

    return Play(agent, "Note it.")


def waiting(metadata: dict[str, Any] | None) -> Play:
    model = Scripted(says(call("pay", {}, "1")))
    agent = Agent(model, name="agent", output_type=[str, DeferredToolRequests])

    @agent.tool_plain
    def pay() -> None:
        """Pay."""
        raise ApprovalRequired(metadata=metadata)

    return Play(agent, "Pay it.")


@pytest.mark.parametrize(
    ("then", "now", "path"),
    [
        (noting, lambda: noting(AnswersInPlace()), "tool_ran"),
        (lambda: noting(AnswersInPlace()), noting, "tool_ran"),
        (lambda: waiting(None), lambda: waiting({"k": 1}), "waits_with"),
        (lambda: waiting({"k": 1}), lambda: waiting(None), "waits_with"),
        (noting, noting, None),
        (lambda: noting(AnswersInPlace()), lambda: noting(AnswersInPlace()), None),
        (lambda: waiting({"k": 1}), lambda: waiting({"k": 1}), None),
    ],
)
@pytest.mark.parametrize("runs_tools", [True, False])
def test_a_run_and_its_replay_differ_where_the_replay_says_so(then: Any, now: Any, path: str | None, runs_tools: bool):
    run = recorded_run(then)
    result = with_code(run, now(), runs_tools=runs_tools)
    assert result.observations is not None

    found = compare_runs(run, produced_run(run, result.observations, run_id="again")).divergence

    assert (found is None) == (result.divergence is None)
    if runs_tools:
        assert (place(result)[2], found and found.path) == (path, path)


class Refund(BaseModel):
    amount: int


def validated(refusal: str | None) -> Play:
    """With an output validator that refuses the first output, where there is a refusal."""
    model = Scripted(
        says(call("look", {"x": 1}, "1")),
        says(call("final_result", {"amount": 5}, "2")),
        says(call("final_result", {"amount": 1}, "3")),
    )
    agent = Agent(model, name="agent", output_type=Refund)

    @agent.tool_plain
    def look(x: int) -> str:
        """Look."""
        return "found"

    @agent.output_validator
    def check(refund: Refund) -> Refund:
        if refusal is not None and refund.amount == 5:
            raise ModelRetry(refusal)
        return refund

    return Play(agent, "Refund it.")


def test_an_output_validator_that_lets_an_output_through_now_differs_at_the_output_that_it_refused():
    run = recorded_run(lambda: validated("too much"))
    in_code, with_tools = (with_code(run, validated(None), runs_tools=runs_tools) for runs_tools in (False, True))

    assert place(with_code(run, validated("too much"))) == ("reproduced", None, None)
    for result in (in_code, with_tools, observed_by(run, validated(None))):
        found = result.divergence
        assert found is not None
        assert place(result) == ("diverged", 4, "result")
        assert (found.recorded, found.replayed) == ("too much", "Final result processed.")


def test_an_output_validator_that_refuses_now_what_it_let_through_differs_at_the_output():
    run = recorded_run(lambda: validated(None))
    in_code, with_tools = (with_code(run, validated("too much"), runs_tools=runs_tools) for runs_tools in (False, True))

    for result in (in_code, with_tools, observed_by(run, validated("too much"))):
        found = result.divergence
        assert found is not None
        assert place(result) == ("diverged", 4, "result")
        assert (found.recorded, found.replayed) == ("Final result processed.", "too much")


def of_union(most: int | None) -> Play:
    """An output of one of two classes, one of which refuses what is more than `most`."""

    class Ticket(BaseModel):
        amount: int

        @model_validator(mode="after")
        def check(self) -> Ticket:
            if most is not None and self.amount > most:
                raise ValueError("too much")
            return self

    class Refund(BaseModel):
        order: str

    model = Scripted(says(call("final_result", {"response": {"amount": 5}}, "1")), says("x"))
    output: Any = Ticket | Refund
    return Play(Agent(model, name="agent", output_type=ToolOutput(output, name="final_result")), "Go")


def test_why_a_union_is_refused_now_is_said_by_the_names_of_its_classes():
    run = recorded_run(lambda: of_union(None))

    for result in (with_code(run, of_union(3)), observed_by(run, of_union(3))):
        found = result.divergence
        assert found is not None
        assert place(result) == ("diverged", 2, "result")
        assert found.replayed == (
            "response.Ticket: Value error, too much; response.Refund.order: Field required; "
            "response.Ticket or Refund as JSON: JSON input should be string, bytes or bytearray"
        )


def validated_text(refusal: str | None) -> Play:
    """With an output validator that refuses the first text, where there is a refusal."""
    model = Scripted(says(call("look", {"x": 1}, "1")), says("Five."), says("One."))
    agent = Agent(model, name="agent")

    @agent.tool_plain
    def look(x: int) -> str:
        """Look."""
        return "found"

    @agent.output_validator
    def check(text: str) -> str:
        if refusal is not None and text == "Five.":
            raise ModelRetry(refusal)
        return text

    return Play(agent, "Refund it.")


def test_an_output_validator_that_lets_a_text_through_now_differs_where_the_model_was_told_why_it_was_refused():
    run = recorded_run(lambda: validated_text("too much"))
    in_code, with_tools = (with_code(run, validated_text(None), runs_tools=runs) for runs in (False, True))

    assert place(with_code(run, validated_text("too much"))) == ("reproduced", None, None)
    for result in (in_code, with_tools, observed_by(run, validated_text(None))):
        found = result.divergence
        assert found is not None
        assert place(result) == ("diverged", 4, "messages[4].parts[0].content")
        assert (found.recorded, found.replayed) == ("too much", None)


# --- a check that reads what another tool wrote


def noted(place: str, *, refuses: bool) -> Play:
    """The second tool is allowed, or refused, once the first has noted something."""
    notes: list[str] = []

    def check(there: str) -> None:
        if there == place and bool(notes) is refuses:
            raise ModelRetry("Note it first.")

    class Before(AbstractCapability[Any]):
        async def before_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
            if call.tool_name == "pay":
                check("before_tool_execute")
            return {"amount": len(notes)} if call.tool_name == "pay" and place == "arguments" else args

    def validate(ctx: Any, amount: int) -> None:
        check("args_validator")

    asks = says(call("note", {}, "1")), says(call("pay", {"amount": 1}, "2"))
    agent = Agent(Scripted(*asks, says("Done."), says("Done.")), name="agent", capabilities=[Before()])

    @agent.tool_plain
    def note() -> None:
        """Note it."""
        notes.append("one")

    @agent.tool_plain(args_validator=validate)
    def pay(amount: int) -> str:
        """Pay."""
        return "paid"

    @agent.output_validator
    def told(output: str) -> str:
        check("output_validator")
        return output

    return Play(agent, "Pay.")


CAUSE = "an earlier call ({}) may have changed what your code reads, and no tool ran"


@pytest.mark.parametrize(
    ("check", "refuses"),
    [
        ("args_validator", False),
        ("args_validator", True),
        ("before_tool_execute", False),
        ("before_tool_execute", True),
        ("arguments", False),
    ],
)
def test_a_frozen_tool_that_may_be_why_a_check_decides_otherwise_is_named(check: str, refuses: bool):
    """Control: a check in front of the first call, which no tool ran before."""
    run = recorded_run(lambda: noted(check, refuses=refuses))

    frozen = with_code(run, noted(check, refuses=refuses))

    assert (place(frozen)[:2], frozen.facts["possible_cause"]) == (("diverged", 4), CAUSE.format("note"))
    assert place(with_code(run, noted(check, refuses=refuses), runs_tools=True)) == ("reproduced", None, None)
    first = with_code(recorded_run(lambda: play("args_validator", None)), play("args_validator", ModelRetry("No.")))
    assert (place(first)[:2], "possible_cause" in first.facts) == (("diverged", 2), False)


def test_a_frozen_tool_is_named_where_a_check_of_the_output_decides_otherwise():
    run = recorded_run(lambda: noted("output_validator", refuses=True))

    frozen = with_code(run, noted("output_validator", refuses=True))

    assert (frozen.verdict, frozen.facts["possible_cause"]) == ("diverged", CAUSE.format("note, pay"))
