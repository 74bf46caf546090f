"""The run that a fork makes: the recorded steps before it, and what the loop did from there, each with its source."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile

from sessions_app.core.fork.order import Order
from sessions_app.core.fork.plan import ForkPlan
from sessions_app.core.history import History, messages
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.ran_with import OF_APPROVAL, TOLD
from sessions_app.core.replay.observed import Observations, ObservedCall, ObservedRequest
from sessions_app.core.replay.plan import attempts
from sessions_app.core.replay.produce import parameters_in_shape, played_back, shared_keys, source_of, spelled_as
from sessions_app.core.replay.projection import Projection
from sessions_app.core.replay.raw_answers import RAW
from sessions_app.core.replay.snapshot_states import of_recorder, states_at_snapshots
from sessions_app.core.run import (
    REPEATED,
    ErrorInfo,
    ModelCall,
    ParentLink,
    Run,
    RunStatus,
    StateChange,
    Step,
    StepSource,
    ToolCall,
    answered,
    tools_around,
)


def forked_run(plan: ForkPlan, order: Order, seen: Observations, *, run_id: str) -> Run:
    """`seen` is what the loop did after the steps that are kept."""
    parent = plan.run
    builder = _Builder(plan, seen)
    steps = (*parent.steps[: plan.kept], *builder.steps())
    return replace(
        parent,
        run_id=run_id,
        origin="fork",
        parent=ParentLink(run_id=parent.run_id, step=order.at_step),
        source_format="native",
        status=_status(seen),
        output=spelled_as(parent.output, seen.output),
        error=seen.error,
        model=plan.model if plan.model and seen.requests else parent.model,
        instructions=plan.instructions.text if plan.instructions and seen.requests else parent.instructions,
        duration_ms=None,
        steps=steps,
        final=builder.final,
        extra={TOLD: True} if seen.hears_arguments else {},
    )


def _status(seen: Observations) -> RunStatus:
    if seen.error is not None:
        return "error"
    return "ok" if seen.output is not None else "cut_off"


class _Builder:
    """Steps in the order of the loop: an answer of the model, then the calls that it asked for."""

    def __init__(self, plan: ForkPlan, seen: Observations) -> None:
        self._plan = plan
        self._seen = seen
        self._projection = Projection()
        self._longest = _longest(plan)
        self._calls: dict[tuple[str | None, str], list[ObservedCall]] = defaultdict(list)
        for call in seen.calls:
            self._calls[call.call_id, call.tool_name].append(call)
        self.final = self._end()
        asked = [request.history for request in seen.requests]
        told_before = 1 if self._asks_first() and plan.kept else 0
        self._answers = answer_parts([*asked[told_before:], seen.final])
        self._snapshots = states_at_snapshots(plan.run, seen)
        self._next = plan.kept + 1
        self._newest: StepSource = "recorded"
        """The source of the step that was made last."""
        self._asked: StepSource = "recorded"
        """The source of the answer whose calls are made."""
        self._repeated: int | None = plan.kept
        """The recorded step that was repeated last; None once the fork goes its own way."""
        self._tools_around = tools_around(plan.run)
        self._attempts = attempts(plan.run)
        self._moved: dict[int, int] = {}
        """Where repeated tools, and what ran inside of them, stand now, by their recorded steps."""
        self._placed: set[int] = set()
        """Recorded steps of calls that no tool answered, in whose places steps of the fork stand."""

    def steps(self) -> Iterator[Step]:
        if not self._asks_first():
            yield from self._tool_steps(self._plan.asking, parent=self._plan.kept or None)
        elif not self._plan.kept:
            yield from self._steps_of_waiting_calls()
        for request in self._seen.requests:
            yield from self._beside(request.step, before=request)
            self._repeated = request.step if request.source in REPEATED else None
            step = self._model_step(request)
            self._asked = step.source
            yield step
            if request.response is not None:
                is_as_asked = request.source in REPEATED or self._asks_as_recorded(request)
                yield from self._tool_steps(request.response, parent=step.index, is_as_asked=is_as_asked)
        if self._seen.output is not None or self._seen.error is not None:
            yield from self._beside(len(self._plan.run.steps) + 1)

    def _steps_of_waiting_calls(self) -> Iterator[Step]:
        """Of an answer whose other calls were answered before this run was continued."""
        decided = self._plan.run.decided
        answers = (each.value for each in reversed(messages(self._plan.history)) if each.value["kind"] == "response")
        newest: JsonObject = next(answers, {}) if decided else {}
        waiting = [part for part in newest.get("parts") or [] if part.get("tool_call_id") in decided]
        yield from self._tool_steps(Payload.of_json({"parts": waiting}), parent=None)

    def _beside(self, recorded: int | None, *, before: ObservedRequest | None = None) -> Iterator[Step]:
        """Recorded work that is no part of the loop, such as building a prompt, up to the recorded step in whose place
        the next one stands. It did not run again and goes with the steps before it, as long as these are the recorded
        ones."""
        last = self._repeated
        if last is None:
            return
        self._repeated = recorded
        if recorded is None:
            return
        between = self._plan.run.steps[last : recorded - 1]
        if not any(step.kind in ("model", "tool") and not self._is_outside(step) for step in between):
            yield from (self._step_beside(step, before) for step in between)

    def _is_outside(self, step: Step) -> bool:
        """Whether it ran inside of a tool, or is an attempt at the next step that failed."""
        return self._is_inner(step) or step.index in self._attempts

    def _step_beside(self, step: Step, before: ObservedRequest | None) -> Step:
        if self._is_inner(step):
            return self._inner(step)
        if isinstance(step.call, ModelCall) and before is not None:
            call = replace(step.call, history=self._shaped(before.history, step.call.history))
            return self._played_back(replace(step, call=call, source=source_of(step, before)))
        return self._played_back(step)

    def _played_back(self, step: Step) -> Step:
        self._next += 1
        state = self._state_beside(step)
        is_of_code = step.state is not None and (self._snapshots is not None or self._seen.states == "changed")
        step = replace(step, source="own_code") if is_of_code else played_back(step, self._newest)
        return replace(step, index=self._next - 1, parent=None, started_at=None, duration_ms=None, state=state)

    def _state_beside(self, step: Step) -> StateChange | None:
        """What a step that did not run again says of the state. Of a changed one the steps of the code tell; a recorded
        snapshot goes on with what the recorder itself writes into it."""
        if self._seen.states == "changed":
            return of_recorder(step.state, self._seen.first_state)
        return step.state if self._snapshots is None else self._snapshots.change_at(step)

    def _asks_first(self) -> bool:
        return bool(self._plan.history.message.value.get("kind") == "request")

    def _model_step(self, request: ObservedRequest) -> Step:
        recorded = self._recorded_step(request.step) or self._newest_recorded()
        call = recorded.call
        assert isinstance(call, ModelCall)
        usage = (request.response.value.get("usage") if request.response else None) or {}
        is_live = request.source == "live"
        repeated = call if request.source in REPEATED else None
        answered = replace(
            call,
            history=self._shaped(request.history, call.history),
            response=repeated.response if repeated and request.response else request.response,
            parameters=parameters_in_shape(call.parameters, request.parameters),
            model=self._plan.model or call.model,
            settings=self._settings(request),
            answered_model=repeated.answered_model if repeated else None,
            finish_reason=repeated.finish_reason if repeated else None,
            input_tokens=repeated.input_tokens if repeated else usage.get("input_tokens") if is_live else None,
            output_tokens=repeated.output_tokens if repeated else usage.get("output_tokens") if is_live else None,
        )
        asking = request.asked.as_recorded(answered) if request.asked else answered
        return self._numbered(recorded, asking, request, parent=None)

    def _settings(self, request: ObservedRequest) -> Payload | None:
        planned = next((a for a in self._plan.replay.answers if a.step == request.step), self._plan.replay.answers[-1])
        return None if planned.settings is None else Payload.of_json(planned.settings)

    def _asks_as_recorded(self, request: ObservedRequest) -> bool:
        """Whether a new answer asks for the same calls in the same order."""
        recorded = self._recorded_step(request.step)
        then = recorded.call.response if recorded and isinstance(recorded.call, ModelCall) else None
        return then is not None and [*map(_asked, _calls_in(then))] == [*map(_asked, _calls_in(request.response))]

    def _tool_steps(self, response: Payload, *, parent: int | None, is_as_asked: bool = True) -> Iterator[Step]:
        called = [(part, self._observed(part)) for part in _calls_in(response)]
        given = REPEATED | {"by_hand"}
        if is_as_asked and all(observed and observed.step and observed.source in given for _, observed in called):
            # Calls of one answer stand in the order in which they ended then.
            called.sort(key=lambda each: each[1].step if each[1] else 0)
        for part, observed in called:
            yield from self._tool_step(part, observed, parent)
        yield from self._left_inside({observed.step for _, observed in called if observed})

    def _observed(self, part: JsonObject) -> ObservedCall | None:
        waiting = self._calls.get((part.get("tool_call_id"), part.get("tool_name", ""))) or []
        return waiting.pop(0) if waiting else None

    def _tool_step(self, part: JsonObject, observed: ObservedCall | None, parent: int | None) -> Iterator[Step]:
        name, call_id = part.get("tool_name", ""), part.get("tool_call_id")
        answered = self._answers.get(call_id or "") or []
        answer = answered.pop(0) if answered else None
        if observed is None and answer is None:
            yield from self._open_call(name, call_id)
            return
        recorded = self._recorded_step(observed.step) if observed else self._in_place_of(name, call_id)
        call = _tool_call(part, observed, answer, recorded, is_output=name in self._output_tools())
        is_repeated = _is_repeated(observed, recorded, call)
        yield from self._beside(recorded.index if recorded else None)
        self._repeated = self._repeated if is_repeated else None
        if observed is None:
            yield self._of_framework(call, recorded if is_repeated else None, parent)
        else:
            yield self._numbered(recorded, call, observed, parent=parent)
        if recorded is not None and is_repeated:
            yield from self._inside(recorded.index)

    def _open_call(self, name: str, call_id: str | None) -> Iterator[Step]:
        """A call that waits for somebody, or that an error came before, as in the recording."""
        for recorded, call in self._plan.run.tool_calls:
            is_call = (call.tool_name, call.call_id) == (name, call_id) and recorded.index > self._plan.kept
            was_open = self._seen.error is not None and call.result is None and recorded.error is None
            if is_call and (was_open or self._seen.open_calls is not None):
                yield self._played_back(recorded)

    def _inside(self, index: int) -> Iterator[Step]:
        """What ran inside a recorded tool comes with its answer, as far as no other step stands before it."""
        self._moved[index] = self._next - 1
        for step in takewhile(self._is_inner, self._plan.run.steps[index:]):
            self._repeated = self._repeated and step.index
            yield self._inner(step)

    def _left_inside(self, tools: set[int]) -> Iterator[Step]:
        """What ran inside of these and stands behind a call of the same answer that the fork answers otherwise."""
        if self._repeated is None:
            for index, tool in self._tools_around.items():
                if tool in tools & self._moved.keys() and index not in self._moved:
                    yield self._inner(self._plan.run.steps[index - 1])

    def _is_inner(self, step: Step) -> bool:
        return self._tools_around.get(step.index) in self._moved

    def _inner(self, step: Step) -> Step:
        assert step.parent is not None
        self._moved[step.index] = self._next
        self._next += 1
        return replace(played_back(step, self._newest), index=self._next - 1, parent=self._moved[step.parent])

    def _numbered(
        self,
        recorded: Step | None,
        call: ModelCall | ToolCall,
        seen: ObservedRequest | ObservedCall,
        *,
        parent: int | None,
    ) -> Step:
        """`recorded` is the step in whose place it stands; an answer that is repeated keeps the source it had there."""
        is_repeated = recorded is not None and seen.source in REPEATED
        link = recorded.extra.get("borrowed_from") if recorded and is_repeated else seen.link
        heard = {**(seen.given or {}), **seen.told} if isinstance(seen, ObservedCall) else {}
        raw = {RAW: recorded.extra[RAW]} if recorded and is_repeated and RAW in recorded.extra else {}
        step = Step(
            index=self._next,
            name=recorded.name if recorded else _name(call),
            call=call,
            parent=parent,
            error=_error(recorded, call, seen),
            user_id=recorded.user_id if recorded else self._plan.run.user_id,
            tenant_id=recorded.tenant_id if recorded else self._plan.run.tenant_id,
            state=self._state(recorded, seen),
            source=source_of(recorded, seen) if recorded else seen.source,
            extra={**({"borrowed_from": link} if link else {}), **raw, **self._approved(recorded), **heard},
        )
        self._next += 1
        self._newest = step.source
        return step

    def _approved(self, recorded: Step | None) -> JsonObject:
        """What a person approved the call with, unless the fork decides otherwise on it."""
        call = recorded.call if recorded is not None else None
        is_decided = isinstance(call, ToolCall) and call.call_id in self._plan.replay.decisions
        return {} if recorded is None or is_decided else {n: v for n, v in recorded.extra.items() if n in OF_APPROVAL}

    def _state(self, recorded: Step | None, seen: ObservedRequest | ObservedCall) -> StateChange | None:
        """Where snapshots tell of it, they do so for the steps before them."""
        if self._snapshots is None:
            return seen.state
        return self._snapshots.change_at(recorded) if recorded is not None else None

    def _in_place_of(self, name: str, call_id: str | None) -> Step | None:
        """The recorded step of a call that no tool answered, each once: ids may be used again."""
        calls = ((step, call) for step, call in self._plan.run.tool_calls if step.index > self._plan.kept)
        places = (step for step, call in calls if (call.tool_name, call.call_id) == (name, call_id))
        found = next((step for step in places if step.index not in self._placed), None)
        self._placed |= {found.index} if found else set()
        return found

    def _of_framework(self, call: ToolCall, again: Step | None, parent: int | None) -> Step:
        """An answer that no tool gave, as to a call of one that does not exist: the framework's code, unless it is the
        recorded one again, or the fork denies the call."""
        source: StepSource = "by_hand" if call.call_id in self._plan.replay.decisions else "own_code"
        step = Step(index=self._next, name=call.tool_name, call=call, parent=parent, source=source)
        self._next += 1
        if again is None or not isinstance(again.call, ToolCall):
            return step
        call = replace(call, is_output=again.call.is_output)
        source = self._asked if self._asked in REPEATED else again.source
        return replace(step, name=again.name, call=call, source=source)

    def _recorded_step(self, index: int | None) -> Step | None:
        return self._plan.run.steps[index - 1] if index else None

    def _newest_recorded(self) -> Step:
        return self._plan.run.steps[self._plan.replay.answers[-1].step - 1]

    def _output_tools(self) -> set[str]:
        before = self._plan.replay.answers[max(self._plan.cursor - 1, 0)].asked_with
        newest = self._seen.requests[-1].parameters.value if self._seen.requests else before
        return {tool["name"] for tool in newest.get("output_tools") or []}

    def _end(self) -> History | None:
        """Where the recording ends with an answer as it was given, and that answer was repeated, so does the fork."""
        final, recorded = self._shaped(self._seen.final, self._plan.run.final), self._plan.run.final
        call = self._repeated_at_the_end()
        if final is None or recorded is None or call is None or call.output_history != recorded:
            return final
        return History(final.parent, recorded.message)

    def _repeated_at_the_end(self) -> ModelCall | None:
        """The recorded call whose answer was given last, if the loop wrote nothing behind it."""
        asked = self._seen.requests[-1] if self._seen.requests else None
        if asked is None or asked.response is None or asked.source not in REPEATED or self._seen.final is None:
            return None
        step = self._recorded_step(asked.step) if self._seen.final.parent == asked.history else None
        return step.call if step is not None and isinstance(step.call, ModelCall) else None

    def _shaped(self, history: History | None, recorded: History | None = None) -> History | None:
        """Messages that are as recorded in the recorded spelling: of the request in whose place it stands, as the one
        before may have told another past."""
        known = (each for each in (recorded, self._longest) if each is not None and _reaches(each, history))
        return self._projection.pair(next(known, self._plan.history), history)


def _longest(plan: ForkPlan) -> History:
    """The recorded history that reaches furthest: a run that failed may have none of its end."""
    known = [plan.recorded, plan.run.final, *(answer.history for answer in plan.replay.answers)]
    return max((history for history in known if history is not None), key=lambda history: history.length)


def _reaches(reference: History, history: History | None) -> bool:
    return history is not None and reference.length >= history.length


def answer_parts(histories: list[History | None]) -> dict[str, list[JsonObject]]:
    """Answers of tools by call id, as they stand in the newest message of each history."""
    found: dict[str, list[JsonObject]] = {}
    seen: set[str] = set()
    for history in histories:
        if history is None or history.digest in seen:
            continue
        seen.add(history.digest)
        for part in _parts(history.message.value):
            if part.get("part_kind") == "tool-return":
                found.setdefault(part.get("tool_call_id") or "", []).append(part)
    return found


def _name(call: ModelCall | ToolCall) -> str:
    return call.tool_name if isinstance(call, ToolCall) else "model"


def gave_the_same(recorded: Step | None, call: ToolCall | None) -> bool:
    """Whether a tool that ran did what it did then, so that the fork is still on the recorded course."""
    then = recorded.call if recorded else None
    if not isinstance(then, ToolCall) or call is None:
        return False
    is_as_then = then.outcome in (None, call.outcome)
    return is_as_then and then.result == spelled_as(then.result, call.result)


def _error(recorded: Step | None, call: ModelCall | ToolCall, seen: ObservedRequest | ObservedCall) -> ErrorInfo | None:
    """A call that was told the same words in the same manner failed with the recorded error."""
    if recorded is None or not isinstance(call, ToolCall) or call.outcome == "crashed":
        return seen.error
    return recorded.error if gave_the_same(recorded, call) else seen.error


def _is_repeated(observed: ObservedCall | None, recorded: Step | None, call: ToolCall) -> bool:
    """Of a call that no tool answered, its answer is what the framework said."""
    if observed is not None:
        return observed.source in REPEATED or gave_the_same(recorded, call)
    then = answered(recorded) if recorded else None
    if then is None:
        return _is_taken_again(recorded, call)
    return call.result is not None and then.value == call.result.value


def _is_taken_again(recorded: Step | None, call: ToolCall) -> bool:
    """Other loops than Pydantic AI's say nothing to a call that carries the output."""
    then = recorded.call if recorded else None
    return isinstance(then, ToolCall) and then.is_output and then.outcome == call.outcome == "success"


def _calls_in(response: Payload | None) -> list[JsonObject]:
    return [part for part in _parts(response and response.value) if part.get("part_kind") == "tool-call"]


def _asked(part: JsonObject) -> tuple[str | None, bytes]:
    return part.get("tool_name"), Payload.of(part.get("args") or {}).canonical


def _parts(message: JsonValue) -> list[JsonObject]:
    parts = message.get("parts") if isinstance(message, dict) else None
    return [part for part in parts or [] if isinstance(part, dict)]


def _tool_call(
    part: JsonObject,
    observed: ObservedCall | None,
    answer: JsonObject | None,
    recorded: Step | None,
    *,
    is_output: bool,
) -> ToolCall:
    """The call as it was asked for, with the answer that reached the model, or else the one that was given."""
    given = _given(observed, recorded)
    told = Payload.of(answer.get("content")) if answer else None
    arguments = part.get("args")
    spelled = Payload.of(arguments if isinstance(arguments, str) else arguments or {})
    if given is not None and given.result is not None and (told is None or _is_told_as(given.result, told)):
        retry = answer.get("retry") if answer else given.retry
        call = replace(given, call_id=part.get("tool_call_id"), arguments=spelled, retry=retry)
    else:
        call = _answered(part, answer, spelled, given)
    if recorded is not None and isinstance(recorded.call, ToolCall):
        is_untold = answer is None and gave_the_same(recorded, call)
        call = _spelled(recorded.call, replace(call, retry=recorded.call.retry) if is_untold else call)
    return replace(call, is_output=is_output)


def _given(observed: ObservedCall | None, recorded: Step | None) -> ToolCall | None:
    """Of the team's code that refused the call as it did then, what the recording holds."""
    if observed is not None and observed.answer is None and observed.source in REPEATED and recorded is not None:
        return recorded.call if isinstance(recorded.call, ToolCall) else None
    return observed.answer if observed else None


def _spelled(recorded: ToolCall, call: ToolCall) -> ToolCall:
    """As the recording spells what is the same in it, and of a retry as far as it tells of one."""
    return replace(
        call,
        arguments=spelled_as(recorded.arguments, call.arguments),
        result=spelled_as(recorded.result, call.result),
        metadata=spelled_as(recorded.metadata, call.metadata),
        content=spelled_as(recorded.content, call.content),
        retry=call.retry if recorded.retry is None else shared_keys(recorded.retry, call.retry),
    )


def _is_told_as(result: Payload, told: Payload) -> bool:
    """Messages hold bytes as a text."""
    is_of_bytes = not (result.is_json or result.is_text)
    return spelled_as(result, told) is result if is_of_bytes else bool(result.value == told.value)


def _answered(part: JsonObject, answer: JsonObject | None, arguments: Payload, given: ToolCall | None) -> ToolCall:
    content = answer.get("content") if answer else None
    result = Payload.of(content)
    return ToolCall(
        tool_name=part.get("tool_name", ""),
        call_id=part.get("tool_call_id"),
        arguments=arguments,
        result=result if answer else (given.result if given else None),
        outcome=answer.get("outcome") if answer else (given.outcome if given else None),
        retry=answer.get("retry") if answer else None,
    )
