"""What a recording replay gives to the loop, and what it expects the loop to build."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

from sessions_app.core.history import History, messages
from sessions_app.core.judge.last_calls import were_skipped
from sessions_app.core.partial_histories import steps_in_the_middle, with_whole_histories
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.ran_with import is_told
from sessions_app.core.replay.awaited import with_awaited
from sessions_app.core.replay.changes_told import tools_added, with_reveals
from sessions_app.core.replay.rewriting import Rewriting, read_rewriting, sent_otherwise
from sessions_app.core.replay.told_answers import as_told
from sessions_app.core.run import (
    ATTEMPT,
    OUTPUT_CHECKED,
    OUTPUT_PROCESSED,
    ErrorInfo,
    Fixture,
    ModelCall,
    Run,
    Step,
    ToolCall,
    fixture_of,
    fixtures,
    is_skipped,
    last_history,
    main_model_calls,
)
from sessions_app.core.unplayed import loop_steps

_TOOL_LIST = re.compile(r"Available tools: (.+)\Z")
_QUOTED = re.compile(r"'([^']+)'")


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedAnswer:
    """One recorded model call: what must have been asked, and what to answer."""

    step: int
    """Index of the model step in the recording."""
    history: History | None
    response: Payload | None
    error: ErrorInfo | None
    parameters: Payload | None
    tools: tuple[JsonObject, ...]
    """Tool definitions registered at that moment."""
    settings: JsonObject | None
    model: str | None = None
    """The id that was asked for."""
    rewriting: Rewriting | None = None
    """What code of the team's made of the past, as the recorder tells it."""
    agent: str | None = None
    """Which of several agents asked; None where the recording does not say."""
    after: History | None = None
    """The history of the next request, or that with which the run ended; it may begin in the middle."""
    sent_otherwise: frozenset[str] | None = None
    """How hooks sent other messages than the loop's (`rewriting.SENT_OTHERWISE`); None where nobody would say so."""
    has_refused_text: bool = False
    """Whether the text beside its calls was tried as the output, and refused, for the calls were made: with
    `end_strategy="early"` they would not have been otherwise."""

    @property
    def asked_with(self) -> JsonObject:
        """The parameters of the request; empty where they were not recorded."""
        value = self.parameters.value if self.parameters else None
        return value if isinstance(value, dict) else {}

    @property
    def newest(self) -> JsonObject | None:
        """The message that the loop added last before it asked."""
        value = self.history.message.value if self.history else None
        return value if isinstance(value, dict) else None

    @property
    def asked(self) -> list[str]:
        """Ids of the calls that it asks for, in their order."""
        value = self.response.value if self.response else None
        return [call_id for call_id in _calls_of(value) if isinstance(call_id, str)]


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplayPlan:
    """Everything the rebuilt agent needs, from the recording alone."""

    run: Run
    answers: tuple[PlannedAnswer, ...]
    fixtures: tuple[Fixture, ...]
    tools_are_recorded: bool
    """False when the tools' schemas had to be guessed from the calls."""
    decisions: Mapping[str, str | None] = field(default_factory=dict)
    """What a fork decides otherwise, by the id of the call: the words of a denial, None for an approval."""
    partial: frozenset[int] = frozenset()
    """Steps whose requests were recorded, and go on from one that was not: nothing can be held against them."""

    def denied_between(self, after: int, before: int | None) -> int:
        """How many calls of the steps between are denied, as then or by a fork: no tool is asked for those."""
        steps = (
            (step, call)
            for step, call in self.run.tool_calls
            if after < step.index and (before is None or step.index < before)
        )
        return sum(self._is_denied(call) for _, call in steps)

    def _is_denied(self, call: ToolCall) -> bool:
        if call.call_id is not None and call.call_id in self.decisions:
            return self.decisions[call.call_id] is not None
        return call.outcome == "denied"

    @property
    def asked(self) -> frozenset[str]:
        """Ids of the calls that the recorded answers ask for."""
        return frozenset(call_id for answer in self.answers for call_id in answer.asked)

    @property
    def refused_outputs(self) -> dict[str, list[ToolCall]]:
        """The calls whose output was refused, by their ids."""
        return self.refused_behind(0)

    def refused_behind(self, kept: int) -> dict[str, list[ToolCall]]:
        """Those behind this step."""
        found: dict[str, list[ToolCall]] = {}
        for step, call in self.run.tool_calls:
            is_refused = step.index > kept and call.is_output and call.outcome == "retried" and call.result is not None
            if is_refused and call.call_id and not _has_words_of_success(call):
                found.setdefault(call.call_id, []).append(call)
        return found

    @property
    def held_back(self) -> dict[str, Fixture]:
        """Calls that were denied after their tool itself had asked for an approval, by id."""
        return {call_id: denied for call_id, denied in self.denied.items() if denied.awaited == "approval"}

    @property
    def denied(self) -> dict[str, Fixture]:
        """Calls that were denied, by id. A rebuilt tool that one of them reaches asked for an approval itself, or lost
        the mark that it needs one."""
        denied = ((step, call) for step, call in self.run.tool_calls if call.outcome == "denied")
        return {call.call_id: fixture_of(step, call) for step, call in denied if call.call_id is not None}

    @property
    def total(self) -> int:
        """Steps that the loop will ask for."""
        return len(self.answers) + len(self.fixtures)


def make_plan(run: Run) -> ReplayPlan:
    partial, told = steps_in_the_middle(run), {step.index: call.history for step, call in run.model_calls}
    ended, run = run.final, _as_started(with_whole_histories(run))
    definitions, calls = _Definitions(run), _taken_up(run)
    later = [*(call.history for _, call in calls), run.final][1:]
    behind = [*(told[step.index] for step, _ in calls), ended][1:]
    answers = [(step, call, after) for (step, call), after in zip(calls, later, strict=True)]
    refused = _with_calls_made(run) if run.agent.end_strategy == "early" else frozenset()
    given = with_reveals(last_history(run), fixtures(run))
    return ReplayPlan(
        run=run,
        answers=tuple(
            replace(
                _planned(run, step, _stamped(_stamped(call, after), run.final), definitions),
                after=seen,
                has_refused_text=step.index in refused,
            )
            for (step, call, after), seen in zip(answers, behind, strict=True)
        ),
        fixtures=tuple(_with_unheard(run, as_told(run, with_awaited(run, answers, given)))),
        tools_are_recorded=definitions.are_recorded,
        partial=partial,
    )


def _as_started(run: Run) -> Run:
    """Spans and messages do not tell how a run was started; one whose text made the calls beside it superfluous was
    streamed. They show the end strategy alone that has further outputs checked."""
    if run.agent.entry_point is None and were_skipped(run):
        return replace(run, agent=replace(run.agent, entry_point="run_stream", end_strategy="early"))
    if run.agent.end_strategy is None and any(_was_checked(call) for _, call in run.tool_calls):
        return replace(run, agent=replace(run.agent, end_strategy="exhaustive"))
    return run


def _has_words_of_success(call: ToolCall) -> bool:
    """What the loop says of an output that it took, whatever the step says of it."""
    return call.result is not None and call.result.value == OUTPUT_PROCESSED


def _was_checked(call: ToolCall) -> bool:
    return call.is_output and call.result is not None and str(call.result.value).startswith(OUTPUT_CHECKED)


def _with_calls_made(run: Run) -> frozenset[int]:
    """Steps of answers with a call that was made, or would have been if the tool existed. A stream may end before any
    is: at a text that is refused."""
    is_stream = run.agent.entry_point == "run_stream"
    calls = ((step, call) for step, call in run.tool_calls if not call.is_output and not is_skipped(call))
    made = (step for step, call in calls if not is_stream or fixture_of(step, call).has_ended)
    return frozenset(step.parent for step in made if step.parent is not None) - _taken_as_output(run)


def _taken_as_output(run: Run) -> frozenset[int]:
    """The step of the answer whose text the run ended with."""
    last = max((step.index for step, _ in main_model_calls(run)), default=0)
    by_call = any(call.is_output for step, call in run.tool_calls if step.parent == last)
    return frozenset() if run.output is None or by_call else frozenset({last})


def _with_unheard(run: Run, found: list[Fixture]) -> list[Fixture]:
    """An error may end the run among the calls of its last answer; the last messages hold what was heard before."""
    models = main_model_calls(run)
    if run.error is None or run.final is None or not models:
        return found
    last, newest = models[-1][0].index, run.final.message.value
    parts = newest.get("parts") or [] if isinstance(newest, dict) and newest.get("kind") == "request" else []
    heard = {part.get("tool_call_id") for part in parts if isinstance(part, dict)}
    return [replace(each, is_unheard=each.step > last and each.call.call_id not in heard) for each in found]


def _taken_up(run: Run) -> list[tuple[Step, ModelCall]]:
    repeated = repeated_requests(run)
    return [(step, call) for step, call in main_model_calls(run) if step.index not in repeated]


def repeated_requests(run: Run) -> dict[int, int]:
    """Steps of requests that failed and were made again, each with the step of the one after it: a client or another
    model did that, and the loop was told of the last one alone."""
    calls = main_model_calls(run)
    return {
        step.index: again.index
        for (step, call), (again, later) in pairwise(calls)
        if step.error is not None
        and call.response is None
        and call.history is not None
        and call.history == later.history
    }


def attempts(run: Run) -> frozenset[int]:
    """Steps of all attempts that were repeated outside of the loop, which a replay does not make."""
    of_tools = (step.index for step, _ in run.tool_calls if ATTEMPT in step.extra)
    return frozenset(repeated_requests(run)) | frozenset(of_tools)


def played_steps(run: Run) -> list[Step]:
    """What a replay plays: the steps of the loop, without attempts that were repeated outside of it."""
    repeated = attempts(run)
    return [step for step in loop_steps(run) if step.index not in repeated]


def _planned(run: Run, step: Step, call: ModelCall, definitions: _Definitions) -> PlannedAnswer:
    return PlannedAnswer(
        step=step.index,
        history=call.history,
        response=call.response,
        error=step.error,
        parameters=call.parameters,
        tools=definitions.for_call(call),
        settings=call.settings.value if call.settings else None,
        model=call.model or run.model,
        rewriting=read_rewriting(step),
        sent_otherwise=sent_otherwise(step) if is_told(run) else None,
        agent=agent if isinstance(agent := step.extra.get("agent"), str) else None,
    )


def _stamped(call: ModelCall, after: History | None) -> ModelCall:
    """The answer with what the loop wrote onto it when it put it into the history.

    A recorder sees an answer before the loop stamps it. Only fields that the answer leaves open are
    filled, so an answer that contradicts the history is still found.
    """
    if call.response is None:
        return call
    position = call.history.length + 1 if call.history else 1
    kept = after
    if kept is None or position < kept.length - _NEAR:
        return call
    while kept is not None and kept.length > position:
        kept = kept.parent
    if kept is None or kept.length < position:
        return call
    return replace(call, response=_filled(call.response, kept.message))


def _filled(response: Payload, kept: Payload) -> Payload:
    if not isinstance(response.value, dict):
        return response  # which no replay can load, as the judge says
    stamps = {key: value for key, value in kept.value.items() if value is not None}
    open_keys = [key for key in stamps if response.value.get(key) is None]
    if kept.value.get("kind") != "response" or not open_keys:
        return response
    return Payload.of_json({**response.value, **{key: stamps[key] for key in open_keys}})


_NEAR = 8
"""An answer stands near the end of the history that comes after it; walking further would be quadratic."""


class _Definitions:
    """Which tools were there at each request.

    Best is the list that was recorded for the step. Without it each tool keeps the definition of
    the first request that named it, so that a later change is seen as a difference and not taken
    over. Without any schema, names are taken from the calls, with a schema that allows everything,
    and a tool that the model was told of on the way is there from then on.
    """

    def __init__(self, run: Run) -> None:
        calls = [call for _, call in main_model_calls(run)]
        self.are_recorded = any(call.tools is not None or call.parameters for call in calls)
        self._first: dict[str, JsonObject] = {}
        for call in calls:
            for tool in _sent_tools(call):
                self._first.setdefault(tool["name"], tool)
        self._guessed = () if self.are_recorded else tuple(_guess(run))
        self._added = tools_added(last_history(run)) if self._guessed else {}

    def for_call(self, call: ModelCall) -> tuple[JsonObject, ...]:
        if call.tools is not None:
            return tuple(tool.value for tool in call.tools)
        if call.parameters is not None:
            return tuple(self._first[tool["name"]] for tool in _sent_tools(call))
        there = call.history.length if call.history else 0
        guessed = tuple(tool for tool in self._guessed if self._added.get(tool["name"], 0) <= there)
        return guessed or tuple(self._first.values())


def _sent_tools(call: ModelCall) -> list[JsonObject]:
    value = call.parameters.value if call.parameters else None
    tools = value.get("function_tools") if isinstance(value, dict) else None
    return [tool for tool in tools or [] if isinstance(tool, dict) and isinstance(tool.get("name"), str)]


def _guess(run: Run) -> list[JsonObject]:
    waiting = _waiting_for_approval(run)
    return [
        {
            "name": name,
            "description": None,
            "parameters_json_schema": {"type": "object", "additionalProperties": True},
            "kind": "unapproved" if name in waiting else "function",
        }
        for name in sorted(_known_names(run))
    ]


def _known_names(run: Run) -> set[str]:
    """Tools that were called and existed, and those that the framework listed to the model."""
    called = {
        call.tool_name
        for _, call in run.tool_calls
        if not call.is_output and (call.retry or {}).get("cause") != "unknown_tool"
    }
    listed = {name for _, call in run.tool_calls for name in _listed_names(call.result)}
    return called | (listed - {call.tool_name for _, call in run.tool_calls if call.is_output})


def _listed_names(result: Payload | None) -> list[str]:
    found = _TOOL_LIST.search(result.value) if result and isinstance(result.value, str) else None
    return _QUOTED.findall(found.group(1)) if found else []


def _waiting_for_approval(run: Run) -> set[str]:
    """Tools of the calls that were resumed: an approval had to answer those. Messages alone do not tell an open call
    that waits from one that was cut off."""
    return {call.tool_name for _, call in run.tool_calls if call.call_id in run.decided}


def _calls_of(message: JsonValue) -> list[JsonValue]:
    """Ids of the calls that an answer asked for; a request asks for none."""
    if not _is_response(message):
        return []
    parts = message.get("parts") or []
    return [part.get("tool_call_id") for part in parts if part.get("part_kind") == "tool-call"]


def _is_response(message: JsonValue) -> bool:
    return isinstance(message, dict) and message.get("kind") == "response"


def prior_messages(run: Run) -> list[Payload]:
    return messages(run.prior)
