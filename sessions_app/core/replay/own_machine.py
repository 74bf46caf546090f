"""A replay that ran on a person's own machine: what was observed there beside what was recorded.

The machine sends a run, and nothing of what it says about itself is taken over: verdict, first difference, proof and
the source of each step come from comparing the two runs here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from sessions_app.core.compare.runs import call_value
from sessions_app.core.compare.strict import same_json
from sessions_app.core.history import History, nodes
from sessions_app.core.judge.last_calls import waiting
from sessions_app.core.judge.outcome import OF_OTHER_CODE
from sessions_app.core.judge.verdict import judge
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.replay.agreement import agreeing
from sessions_app.core.replay.ending import Ending, Played, conclude
from sessions_app.core.replay.fixture_book import FixtureMiss, missing, recorded_arguments, was_never_answered
from sessions_app.core.replay.isolation import OWN_MACHINE
from sessions_app.core.replay.matching import Mismatch, Tally, first_mismatch
from sessions_app.core.replay.observed import Divergence, Observations, ObservedCall, ObservedRequest, Result
from sessions_app.core.replay.outputs import same_output
from sessions_app.core.replay.plan import PlannedAnswer, ReplayPlan, make_plan
from sessions_app.core.replay.produce import parameters_in_shape, spelled_as
from sessions_app.core.replay.projection import Projection, in_shape_of
from sessions_app.core.run import (
    ErrorInfo,
    Fixture,
    ModelCall,
    ParentLink,
    Run,
    StateChange,
    Step,
    StepSource,
    ToolCall,
    is_answered_by_tool,
    main_steps,
)

Tools = Literal["frozen", "run"]
_OF_CODE_THAT_RAN = OF_OTHER_CODE | {"output_function"}
"""What keeps an outcome from being proven only as long as tools and functions of the team's do not run."""


def judge_observed(recorded: Run, observed: Run, *, tools: Tools, run_id: str) -> tuple[Result, Run]:
    """What the replay proved, and the run that it produced, under this id."""
    pairs = pair_steps(recorded, observed)
    seen = _Comparison(pairs, tools=tools)
    seen.compare()
    result = _concluded(pairs, seen, tools)
    made = _Produced(pairs, seen, tools).run(run_id)
    result = agreeing(recorded, result, made)
    return replace(result, facts={**result.facts, **_facts(pairs, seen, made, tools)}), made


# --- which steps stand beside each other -------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """A step of the observed loop, and the recorded one in whose place it stands."""

    observed: Step
    recorded: Step | None
    planned: PlannedAnswer | None = None
    """Of a request to the model: what was to be asked and answered."""

    @property
    def is_answered(self) -> bool:
        """Whether the recorded answer of a model step was taken: it was given, or failed as it had failed."""
        call, planned = self.observed.call, self.planned
        if not isinstance(call, ModelCall) or planned is None:
            return False
        failed_again = planned.response is None and same_error(planned.error, self.observed.error)
        return call.response is not None or failed_again


@dataclass(frozen=True, kw_only=True, slots=True)
class Pairs:
    """All steps of the observed loop, in their order."""

    plan: ReplayPlan
    observed: Run
    steps: tuple[Pair, ...]

    @property
    def recorded(self) -> Run:
        return self.plan.run

    @property
    def unused(self) -> tuple[PlannedAnswer, ...]:
        taken = {pair.planned.step for pair in self.steps if pair.planned and pair.is_answered}
        return tuple(answer for answer in self.plan.answers if answer.step not in taken)

    @property
    def left_over(self) -> list[Fixture]:
        taken = {pair.recorded.index for pair in self.steps if pair.recorded}
        return [each for each in self.plan.fixtures if each.step not in taken and each.call.result is not None]


def pair_steps(recorded: Run, observed: Run) -> Pairs:
    """A request stands beside the recorded one of the same number, a call beside the recorded one of the same id."""
    plan = make_plan(recorded)
    waiting_calls = [step for step in main_steps(recorded) if isinstance(step.call, ToolCall)]
    answers = iter(plan.answers)
    by_index = {step.index: step for step in recorded.steps}
    pairs = []
    for step in main_steps(observed):
        if isinstance(step.call, ModelCall):
            planned = next(answers, None)
            pairs.append(Pair(observed=step, recorded=by_index[planned.step] if planned else None, planned=planned))
        elif isinstance(step.call, ToolCall):
            pairs.append(Pair(observed=step, recorded=_take_call(waiting_calls, step.call)))
    return Pairs(plan=plan, observed=observed, steps=tuple(pairs))


def _take_call(left: list[Step], call: ToolCall) -> Step | None:
    found = next((step for step in left if _is_call(step.call, call)), None)
    if found is not None:
        left.remove(found)
    return found


def _is_call(recorded: object, call: ToolCall) -> bool:
    """An id decides; recordings without ids are matched by what was called."""
    assert isinstance(recorded, ToolCall)
    if recorded.call_id is not None and call.call_id is not None:
        return (recorded.call_id, recorded.tool_name) == (call.call_id, call.tool_name)
    same = same_json(recorded_arguments(recorded.arguments), recorded_arguments(call.arguments))
    return recorded.tool_name == call.tool_name and same


# --- where they differ -------------------------------------------------------------------------


@dataclass
class _Comparison:
    """Goes through the observed steps in their order."""

    pairs: Pairs
    tools: Tools
    tally: Tally = field(default_factory=Tally)
    divergence: Divergence | None = None
    ran_past: int | None = None
    miss: FixtureMiss | None = None
    sources: dict[int, StepSource] = field(default_factory=dict)
    """Where the answer of each observed step came from, by its index."""
    _checked: tuple[History, History] | None = None
    """How far the recorded and the observed conversation are known to agree."""
    _last: int = 0
    """The recorded step that stood beside the newest one."""

    def compare(self) -> None:
        for pair in self.pairs.steps:
            self._compare(pair)
            self._last = pair.recorded.index if pair.recorded else self._last
            self.sources[pair.observed.index] = self._source(pair)
        self._compare_end()

    def _compare(self, pair: Pair) -> None:
        if self.divergence is not None or self.ran_past is not None or self.miss is not None:
            return
        call = pair.observed.call
        if isinstance(call, ModelCall):
            self._compare_model(pair, call)
        elif isinstance(call, ToolCall):
            self._compare_tool(pair, call)

    # --- requests to the model

    def _compare_model(self, pair: Pair, call: ModelCall) -> None:
        planned = pair.planned
        if planned is None:
            self.ran_past = len(self.pairs.plan.answers)
            return
        found = self._of_messages(planned.history, call.history) or self._of_parameters(planned, call)
        if found is None and call.response is not None and not _is_same_answer(planned.response, call.response):
            found = Mismatch(path="response", recorded=_value(planned.response), rebuilt=call.response.value)
        self._diverged(planned.step, found)

    def _of_messages(self, recorded: History | None, observed: History | None) -> Mismatch | None:
        if recorded is None or observed is None:
            self.tally.note_missing("messages")
            return None
        start = self._agreed_up_to(recorded, observed)
        expected, actual = _messages(recorded, start), _messages(observed, start)
        for offset in range(max(len(expected), len(actual))):
            left, right = (side[offset] if offset < len(side) else None for side in (expected, actual))
            found = self._of_message(left, right, f"messages[{start + offset}]")
            if found is not None:
                return found
        self._checked = recorded, observed
        return None

    def _agreed_up_to(self, recorded: History, observed: History) -> int:
        """The number of messages that both share with what was compared before."""
        if self._checked is None:
            return 0
        one, other = self._checked
        goes_on = _reaches(recorded, one) and _reaches(observed, other)
        return one.length if goes_on and one.length == other.length else 0

    def _of_message(self, recorded: Payload | None, observed: Payload | None, path: str) -> Mismatch | None:
        if recorded is None or observed is None:
            return Mismatch(path=path, recorded=_value(recorded), rebuilt=_value(observed))
        raw, now = _said(recorded.value), _said(in_shape_of(recorded, observed).value)
        return first_mismatch(raw, now, raw=raw, path=path, tally=self.tally)

    def _of_parameters(self, planned: PlannedAnswer, call: ModelCall) -> Mismatch | None:
        if planned.parameters is None or call.parameters is None:
            self.tally.note_missing("parameters")
            return None
        recorded, now = planned.parameters.value, in_shape_of(planned.parameters, call.parameters, path="parameters")
        return first_mismatch(recorded, now.value, raw=recorded, path="parameters", tally=self.tally)

    # --- calls of tools

    def _compare_tool(self, pair: Pair, call: ToolCall) -> None:
        if pair.recorded is None:
            self._compare_unknown_call(pair.observed, call)
            return
        recorded = pair.recorded.call
        assert isinstance(recorded, ToolCall)
        fixture = Fixture(step=pair.recorded.index, call=recorded, error=pair.recorded.error)
        if self._is_missed(fixture, pair.observed):
            arguments = recorded_arguments(call.arguments)
            self.miss = missing(call.tool_name, call.call_id, arguments, [fixture])
            return
        self._diverged(pair.recorded.index, self._of_call(pair.recorded, recorded, pair.observed, call))

    def _compare_unknown_call(self, step: Step, call: ToolCall) -> None:
        arguments = recorded_arguments(call.arguments)
        if self.tools == "frozen" and is_answered_by_tool(call):
            self.miss = missing(call.tool_name, call.call_id, arguments, self.pairs.plan.fixtures)
        else:
            place = f"steps[{self._last}]"
            self._diverged(self._last + 1, Mismatch(path=place, recorded=None, rebuilt=call_value(step)))

    def _is_missed(self, fixture: Fixture, observed: Step) -> bool:
        """A frozen call of which no end was recorded, and which ended the replay for that reason."""
        return self.tools == "frozen" and observed.error is not None and was_never_answered(fixture)

    def _of_call(self, step: Step, recorded: ToolCall, observed: Step, call: ToolCall) -> Mismatch | None:
        one, other = recorded_arguments(recorded.arguments), recorded_arguments(call.arguments)
        found = first_mismatch(one, other, raw=one, path="arguments", tally=self.tally)
        if found is not None:
            return found
        if not same_error(step.error, observed.error):
            return Mismatch(path="error", recorded=_error(step.error), rebuilt=_error(observed.error))
        for path, left, right in _answers(recorded, call):
            if left is not None and right is not None:
                found = first_mismatch(left, right, raw=left, path=path, tally=self.tally)
                if found is not None:
                    return found
        if (recorded.result is None) != (call.result is None) and observed.error is None:
            return Mismatch(path="result", recorded=_parsed(recorded.result), rebuilt=_parsed(call.result))
        return self._of_state(step, observed)

    def _of_state(self, step: Step, observed: Step) -> Mismatch | None:
        """Only tools that run change anything."""
        if self.tools == "frozen" or step.state is None or observed.state is None:
            return None
        one, other = list(step.state.after), list(observed.state.after)
        return first_mismatch(one, other, raw=one, path="state.after", tally=self.tally)

    # --- the end

    def _compare_end(self) -> None:
        """What the loop wrote behind the last answer; an early end has a verdict of its own."""
        recorded, observed = self.pairs.recorded.final, self.pairs.observed.final
        is_whole = self.ran_past is None and self.miss is None and not self.pairs.unused
        if is_whole and self.divergence is None and recorded is not None and observed is not None:
            self._diverged(len(self.pairs.recorded.steps), self._of_messages(recorded, observed))

    def _diverged(self, step: int, found: Mismatch | None) -> None:
        if found is not None and self.divergence is None:
            self.divergence = Divergence(step=step, path=found.path, recorded=found.recorded, replayed=found.rebuilt)

    def _source(self, pair: Pair) -> StepSource:
        """From the first difference on nothing is asked for as it was recorded."""
        again: StepSource = "recorded" if self.divergence is None else "recorded_for_another_request"
        call = pair.observed.call
        if isinstance(call, ModelCall):
            return self._source_of_answer(pair, call, again)
        assert isinstance(call, ToolCall)
        if self.tools == "run" and is_answered_by_tool(call):
            return "own_code"
        known = pair.recorded.call.result if pair.recorded and isinstance(pair.recorded.call, ToolCall) else None
        if call.result is None:
            return again if pair.recorded is not None else "unknown"
        return again if known is not None and same_json(known.parsed, call.result.parsed) else "own_code"

    def _source_of_answer(self, pair: Pair, call: ModelCall, again: StepSource) -> StepSource:
        if call.response is None:
            return again if pair.is_answered else "unknown"
        is_recorded = pair.planned is not None and _is_same_answer(pair.planned.response, call.response)
        return again if is_recorded else "own_code"


def _reaches(history: History, beginning: History) -> bool:
    return any(node.digest == beginning.digest for node in nodes(history) if node.length == beginning.length)


def _messages(history: History, start: int) -> list[Payload]:
    found: list[Payload] = []
    for node in nodes(history):
        if node.length <= start:
            break
        found.append(node.message)
    return found[::-1]


def _said(message: JsonValue) -> JsonValue:
    """Of an answer what it said: who gave it, and at what cost, is a matter of the recording."""
    if isinstance(message, dict) and message.get("kind") == "response":
        return {"kind": "response", "parts": message.get("parts")}
    return message


def _is_same_answer(recorded: Payload | None, given: Payload) -> bool:
    if recorded is None:
        return False
    raw, now = _said(recorded.value), _said(in_shape_of(recorded, given).value)
    return first_mismatch(raw, now, raw=raw, path="messages[0]", tally=Tally()) is None


def _answers(recorded: ToolCall, call: ToolCall) -> Iterator[tuple[str, JsonValue, JsonValue]]:
    """What the tool gave, part by part."""
    for name in ("result", "metadata", "content"):
        yield name, _parsed(getattr(recorded, name)), _parsed(getattr(call, name))
    yield "outcome", recorded.outcome, call.outcome
    yield "retry", recorded.retry, call.retry


def same_error(recorded: ErrorInfo | None, now: ErrorInfo | None) -> bool:
    if recorded is None or now is None:
        return recorded is now
    pairs = (recorded.type, now.type), (recorded.message, now.message)
    return all(left is None or left == right for left, right in pairs)


def _error(error: ErrorInfo | None) -> JsonValue:
    return None if error is None else {"type": error.type, "message": error.message}


def _value(payload: Payload | None) -> JsonValue:
    return None if payload is None else payload.value


def _parsed(payload: Payload | None) -> JsonValue:
    return None if payload is None else payload.parsed


# --- what was proven ---------------------------------------------------------------------------


def _concluded(pairs: Pairs, seen: _Comparison, tools: Tools) -> Result:
    limit = judge(pairs.recorded).limit(without=OF_OTHER_CODE if tools == "frozen" else _OF_CODE_THAT_RAN)
    played = Played(
        plan=pairs.plan,
        limit=limit,
        observations=_observations(pairs, seen),
        ending=_ending(pairs.observed, seen),
        divergence=seen.divergence,
        unused=pairs.unused,
        left_over=pairs.left_over,
        prompt=None,
        not_captured=frozenset(seen.tally.not_captured or ()),
    )
    return conclude(played, {})


def _ending(observed: Run, seen: _Comparison) -> Ending:
    open_calls = frozenset(call.call_id for _, call in waiting(observed) if call.call_id)
    return Ending(
        output=observed.output,
        error=observed.error,
        open_calls=open_calls if open_calls and observed.output is None and observed.error is None else None,
        ran_past=seen.ran_past,
        miss=seen.miss,
    )


def _observations(pairs: Pairs, seen: _Comparison) -> Observations:
    requests, calls = [], []
    for pair in pairs.steps:
        step, source = pair.observed, seen.sources[pair.observed.index]
        if isinstance(step.call, ModelCall):
            requests.append(
                ObservedRequest(
                    step=pair.planned.step if pair.planned else None,
                    history=step.call.history,
                    parameters=step.call.parameters or Payload.of_json(None),
                    response=step.call.response,
                    source=source,
                    error=step.error,
                )
            )
        elif isinstance(step.call, ToolCall):
            arguments = step.call.arguments or Payload.of_json({})
            place = pair.recorded.index if pair.recorded else 0
            calls.append(
                ObservedCall(
                    step=place,
                    call_id=step.call.call_id,
                    tool_name=step.call.tool_name,
                    arguments=arguments,
                    source=source,
                )
            )
    observed = pairs.observed
    return Observations(
        requests=tuple(requests),
        calls=tuple(calls),
        final=observed.final,
        output=observed.output,
        error=observed.error,
        ended_open=bool(waiting(observed)),
    )


def _facts(pairs: Pairs, seen: _Comparison, made: Run, tools: Tools) -> JsonObject:
    given = [step.source for step in made.steps if step.kind in ("model", "tool")]
    ran = [pair.observed.name for pair in pairs.steps if seen.sources[pair.observed.index] == "own_code"]
    return {
        "ran_on": OWN_MACHINE,
        "tools": tools,
        "fields_compared": seen.tally.compared,
        "not_captured": sorted(seen.tally.not_captured or ()),
        "sources": {source: given.count(source) for source in dict.fromkeys(given)},
        "tools_that_ran": {name: ran.count(name) for name in dict.fromkeys(ran)} if tools == "run" else {},
    }


# --- the produced run --------------------------------------------------------------------------


class _Produced:
    """The observed run as one of the recording's: in its shape, each step with its source."""

    def __init__(self, pairs: Pairs, seen: _Comparison, tools: Tools) -> None:
        self._pairs = pairs
        self._seen = seen
        self._tools = tools
        self._projection = Projection(_message_in_shape)
        self._pair_of = {pair.observed.index: pair for pair in pairs.steps}

    def run(self, run_id: str) -> Run:
        recorded, observed = self._pairs.recorded, self._pairs.observed
        steps = tuple(_renumbered(list(self._steps())))
        return replace(
            recorded,
            run_id=run_id,
            origin="replay",
            parent=ParentLink(run_id=recorded.run_id),
            source_format="native",
            status=observed.status,
            output=_output(recorded.output, observed.output),
            error=observed.error,
            code=observed.code,
            agent=replace(
                recorded.agent,
                version=observed.agent.version or recorded.agent.version,
                framework_version=observed.agent.framework_version or recorded.agent.framework_version,
            ),
            instructions=observed.instructions or recorded.instructions,
            started_at=observed.started_at,
            duration_ms=observed.duration_ms,
            initial_state=observed.initial_state if self._tools == "run" else recorded.initial_state,
            steps=steps,
            final=self._projection.pair(recorded.final, observed.final),
            extra={},
        )

    def _steps(self) -> Iterator[tuple[int, Step]]:
        """Each with the index that it had. Where tools are frozen, work that is no part of the loop did not run; it
        goes with the steps around it, as it was recorded."""
        beside = iter(self._played_back() if self._tools == "frozen" else [])
        waiting_step = next(beside, None)
        for step in self._pairs.observed.steps:
            pair = self._pair_of.get(step.index)
            place = pair.recorded.index if pair and pair.recorded else 0
            while waiting_step is not None and waiting_step.index < place:
                yield -waiting_step.index, waiting_step
                waiting_step = next(beside, None)
            if pair is not None:
                yield step.index, self._step(pair)
            elif self._tools == "run":
                yield step.index, step
        if not self._pairs.unused:
            yield from ((-step.index, step) for step in [waiting_step, *beside] if step is not None)

    def _played_back(self) -> list[Step]:
        return [step for step in self._pairs.recorded.steps if step.kind not in ("model", "tool")]

    def _step(self, pair: Pair) -> Step:
        step, source = pair.observed, self._seen.sources[pair.observed.index]
        if pair.recorded is None:
            return replace(step, source=source, state=self._state(step), extra={})
        return replace(
            pair.recorded,
            index=step.index,
            call=self._call(pair),
            parent=step.parent,
            started_at=step.started_at,
            first_token_at=None,
            duration_ms=step.duration_ms,
            error=step.error,
            user_id=step.user_id or pair.recorded.user_id,
            tenant_id=step.tenant_id or pair.recorded.tenant_id,
            state=self._state(step),
            http=step.http if self._tools == "run" else pair.recorded.http,
            source=pair.recorded.source if source == "recorded" else source,
            extra={},
        )

    def _state(self, step: Step) -> StateChange | None:
        return step.state if self._tools == "run" else None

    def _call(self, pair: Pair) -> ModelCall | ToolCall:
        assert pair.recorded is not None
        recorded, call = pair.recorded.call, pair.observed.call
        if isinstance(recorded, ModelCall) and isinstance(call, ModelCall):
            return self._model_call(recorded, call)
        assert isinstance(recorded, ToolCall)
        assert isinstance(call, ToolCall)
        return replace(
            call,
            arguments=_spelled(recorded.arguments, call.arguments),
            result=spelled_as(recorded.result, call.result),
            outcome=call.outcome if recorded.outcome is not None else None,
            metadata=spelled_as(recorded.metadata, call.metadata),
            content=spelled_as(recorded.content, call.content),
        )

    def _model_call(self, recorded: ModelCall, call: ModelCall) -> ModelCall:
        is_recorded = call.response is None or _is_same_answer(recorded.response, call.response)
        kept = recorded if is_recorded else call
        return replace(
            kept,
            history=self._projection.pair(recorded.history, call.history),
            response=recorded.response if is_recorded and call.response is not None else call.response,
            parameters=parameters_in_shape(recorded.parameters, call.parameters),
            model=recorded.model,
            provider=recorded.provider,
            tools=recorded.tools if _have_same_names(recorded.tools, call.tools) else call.tools,
        )


def _have_same_names(recorded: Sequence[Payload] | None, now: Sequence[Payload] | None) -> bool:
    """Definitions are compared with the parameters; ids in them are drawn anew by each process."""
    if recorded is None or now is None:
        return True
    return [tool.value.get("name") for tool in recorded] == [tool.value.get("name") for tool in now]


def _message_in_shape(recorded: Payload, observed: Payload) -> Payload:
    """An answer that says the same is the recorded one."""
    is_answer = isinstance(recorded.value, dict) and recorded.value.get("kind") == "response"
    return recorded if is_answer and _is_same_answer(recorded, observed) else in_shape_of(recorded, observed)


def _spelled(recorded: Payload | None, now: Payload | None) -> Payload | None:
    same = same_json(recorded_arguments(recorded), recorded_arguments(now))
    return recorded if same else now


def _output(recorded: Payload | None, now: Payload | None) -> Payload | None:
    return recorded if recorded and now and same_output(recorded, now) else now


def _renumbered(steps: list[tuple[int, Step]]) -> Iterator[Step]:
    """Indexes without gaps, parents following their steps."""
    new = {was: index for index, (was, _) in enumerate(steps, start=1)}
    for index, (was, step) in enumerate(steps, start=1):
        known = None if step.parent is None else step.parent if was > 0 else -step.parent
        yield replace(step, index=index, parent=new.get(known) if known is not None else None)
