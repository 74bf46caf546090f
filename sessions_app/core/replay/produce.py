"""The run that a replay produced, from what was seen of the loop.

The requests and calls of the loop hold what the loop built. What ran inside of tools, steps of other kinds and attempts
that a client repeated are not played; they are carried over as they were recorded, and the report names them.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Container, Iterator
from dataclasses import replace

from sessions_app.core.compare.facts import is_spelled_as_text
from sessions_app.core.compare.strict import same_json
from sessions_app.core.history import History
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.ran_with import OF_APPROVAL
from sessions_app.core.ran_with import TOLD as TOLD_OF_ARGUMENTS
from sessions_app.core.replay.fixture_book import recorded_arguments
from sessions_app.core.replay.observed import Observations, ObservedCall, ObservedRequest
from sessions_app.core.replay.outputs import same_output
from sessions_app.core.replay.plan import repeated_requests
from sessions_app.core.replay.projection import Projection, in_shape_of
from sessions_app.core.replay.raw_answers import RAW
from sessions_app.core.replay.rewriting import TOLD
from sessions_app.core.replay.snapshot_states import states_at_snapshots
from sessions_app.core.run import (
    ATTEMPT,
    CALLED_BY_CODE,
    REPEATED,
    WAITING,
    ModelCall,
    ParentLink,
    Run,
    RunStatus,
    StateChange,
    Step,
    StepSource,
    ToolCall,
    called_by_code,
    main_steps,
)


def produced_run(recorded: Run, seen: Observations, *, run_id: str) -> Run:
    """A run of its own, linked to the recording, for diff, report and anything else that takes runs."""
    rebuilt = _Rebuilt(recorded, seen)
    return replace(
        recorded,
        run_id=run_id,
        origin="replay",
        parent=ParentLink(run_id=recorded.run_id),
        source_format="native",
        status=_status(seen),
        output=spelled_output(recorded.output, seen.output) if _has_own_output(recorded, seen) else None,
        error=seen.error,
        initial_state=None if seen.states == "unknown" else recorded.initial_state,
        duration_ms=None,
        steps=tuple(_renumbered(rebuilt.steps())),
        final=rebuilt.final(),
        extra={TOLD_OF_ARGUMENTS: True} if seen.hears_arguments else {},
    )


def _status(seen: Observations) -> RunStatus:
    if seen.error is not None:
        return "error"
    return "ok" if seen.output is not None else "cut_off"


class _Rebuilt:
    """Puts each recorded step beside what the loop did at its place."""

    def __init__(self, recorded: Run, seen: Observations) -> None:
        self._recorded = recorded
        self._repeated = repeated_requests(recorded)
        self._main = {step.index for step in main_steps(recorded)}
        self._by_code = called_by_code(recorded)
        self._has_run_tools = seen.has_run_tools
        self._requests = {request.step: request for request in seen.requests if request.step}
        self._calls = {call.step: call for call in seen.calls}
        self._states = seen.states
        self._open_calls = seen.open_calls
        self._snapshots = states_at_snapshots(recorded, seen)
        self._projection = Projection()
        self._final = seen.final
        self._answers = _parts_by_call(_new_requests(seen), "tool-return")
        self._asked = _parts_by_call(
            [request.response.value for request in seen.requests if request.response], "tool-call"
        )
        self._parameters: dict[tuple[Payload | None, Payload], Payload | None] = {}

    def final(self) -> History | None:
        """Behind the steps: a message has the shape of the request that it first stood in."""
        return self._projection.pair(self._recorded.final, self._final)

    def steps(self) -> Iterator[Step]:
        """What lies behind a request that was not answered, such as a snapshot, was not come to."""
        made: dict[int, StepSource] = {}
        newest: StepSource = "recorded"
        has_ended = False
        for step in self._recorded.steps:
            has_ended = has_ended or self._ends_at(step)
            rebuilt = self._step(step) if step.index in self._main else self._beside(step, made)
            if has_ended and (step.kind not in ("model", "tool") or step.index in self._by_code):
                continue
            if rebuilt is step:
                rebuilt = self._played_back(step, made.get(step.parent or 0, newest))
            elif rebuilt is not None:
                newest = rebuilt.source
            if rebuilt is not None:
                made[step.index] = rebuilt.source
                state = self._state(step)
                names = (*TOLD, RAW, *OF_APPROVAL, CALLED_BY_CODE)
                told = {name: step.extra[name] for name in names if name in step.extra}
                told |= self._given(step)
                yield replace(rebuilt, started_at=None, first_token_at=None, duration_ms=None, state=state, extra=told)

    def _played_back(self, step: Step, beside: StepSource) -> Step:
        """The state of a snapshot may be that of the code that ran."""
        if self._snapshots is not None and step.state is not None:
            return replace(step, source="own_code")
        return played_back(step, beside)

    def _given(self, step: Step) -> JsonObject:
        """What the replay heard of a call, and of the arguments of its tool."""
        call = self._calls.get(step.index)
        return {} if call is None else {**(call.given or {}), **call.told}

    def _ends_at(self, step: Step) -> bool:
        if not isinstance(step.call, ModelCall) or step.parent is not None:
            return False
        request = self._requests.get(self._taken_up(step.index))
        return request is None or (request.response is None and request.error is None)

    def _state(self, step: Step) -> StateChange | None:
        """What no code of the team's did in the replay is carried over as it was recorded."""
        if self._states == "carried":
            return step.state
        if self._snapshots is not None:
            return self._snapshots.change_at(step)
        seen = self._requests.get(step.index) or self._calls.get(step.index)
        return seen.state if seen is not None else None

    def _step(self, step: Step) -> Step | None:
        match step.call:
            case ModelCall():
                request = self._requests.get(self._taken_up(step.index))
                return None if request is None else self._model_step(step, step.call, request)
            case ToolCall() if ATTEMPT not in step.extra:
                return self._tool_step(step, step.call)
            case _:
                return step

    def _beside(self, step: Step, made: Container[int]) -> Step | None:
        """What ran inside a tool comes with its recorded answer; what code called by itself is read as recorded."""
        is_inside = step.parent in made and not self._has_run_tools
        return step if is_inside or step.index in self._by_code else None

    def _taken_up(self, step: int) -> int:
        """The last attempt at this request, which is the one that the loop made."""
        while step in self._repeated:
            step = self._repeated[step]
        return step

    def _model_step(self, step: Step, call: ModelCall, request: ObservedRequest) -> Step:
        rebuilt = replace(
            call,
            history=self._projection.pair(call.history, request.history),
            response=None if step.index in self._repeated else self._response(call.response, request),
            parameters=self._in_shape(call.parameters, request.parameters),
        )
        asking = request.asked.as_recorded(rebuilt) if request.asked else rebuilt
        return replace(step, call=asking, source=source_of(step, request))

    def _in_shape(self, recorded: Payload | None, rebuilt: Payload) -> Payload | None:
        """Of parameters; most requests of a run have the same."""
        if (recorded, rebuilt) not in self._parameters:
            self._parameters[recorded, rebuilt] = parameters_in_shape(recorded, rebuilt)
        return self._parameters[recorded, rebuilt]

    def _response(self, recorded: Payload | None, request: ObservedRequest) -> Payload | None:
        given = request.response
        if recorded is None or given is None or request.source not in REPEATED:
            return given
        # What the loop stamps onto an answer stands in the histories; see `plan`.
        # How its stream ended was given as recorded; the loop marks what it was busy with when something else failed.
        held = {key for key in given.value if key != "state" and recorded.value.get(key) is not None}
        unstamped = {key: value for key, value in given.value.items() if key in held}
        taken = {key: value for key, value in recorded.value.items() if value is None or key in given.value}
        return in_shape_of(recorded, Payload.of_json({**taken, **unstamped}))

    def _tool_step(self, step: Step, call: ToolCall) -> Step | None:
        """A call that the loop made, or that it was asked for and left open; each once."""
        observed = self._calls.get(step.index)
        asked, part = self._next(self._asked, call), self._next(self._answers, call)
        is_open = asked is not None and call.result is None and step.error is None
        if observed is None and part is None and not is_open:
            return None
        rebuilt = _rebuilt_call(call, observed, asked, part)
        return replace(step, call=self._waiting(rebuilt), source=source_of(step, observed))

    def _waiting(self, call: ToolCall) -> ToolCall:
        """As the loop left it open, where the recording says what it waited for."""
        now = (self._open_calls or {}).get(call.call_id or "")
        return replace(call, outcome=now) if now is not None and call.outcome in WAITING else call

    def _next(self, parts: PartsByCall, call: ToolCall) -> JsonObject | None:
        waiting = parts.get(call.call_id or "", [])
        return waiting.pop(0) if waiting else None


def played_back(step: Step, beside: StepSource) -> Step:
    """A recorded step that is no answer of its own, such as a snapshot or what ran inside of a tool: where the answer
    that it came with was given to another request, it belongs to that as well."""
    is_of_another = beside == "recorded_for_another_request" and step.source == "recorded"
    return replace(step, source=beside) if is_of_another else step


def source_of(step: Step, seen: ObservedRequest | ObservedCall | None) -> StepSource:
    """An answer that is repeated keeps the source that it had: what was written by hand stays so for ever."""
    return step.source if seen is None or seen.source == "recorded" else seen.source


def parameters_in_shape(recorded: Payload | None, rebuilt: Payload | None) -> Payload | None:
    if recorded is None or rebuilt is None:
        return None if recorded is None else rebuilt
    return in_shape_of(recorded, rebuilt, path="parameters")


def _rebuilt_call(
    call: ToolCall, observed: ObservedCall | None, asked: JsonObject | None, part: JsonObject | None
) -> ToolCall:
    call = _with_given_along(replace(call, tool_name=_name(call, asked), call_id=_id(call, observed)), observed)
    arguments = _spelled_arguments(call.arguments, observed.arguments if observed else _arguments(call, asked))
    if part is None:
        # The run ended before the answer reached the history; this is what the tool gave.
        given = (observed.answer if observed else None) or call
        return replace(call, arguments=arguments, result=given.result, outcome=given.outcome)
    return replace(
        call,
        arguments=arguments,
        result=spelled_as(call.result, Payload.of_json(part.get("content"))),
        outcome=part.get("outcome") if call.outcome is not None else None,
        retry=shared_keys(call.retry, part.get("retry")),
    )


def _with_given_along(call: ToolCall, observed: ObservedCall | None) -> ToolCall:
    """What a tool that ran gave beside its result."""
    given = observed.answer if observed is not None and observed.source == "own_code" else None
    if given is None:
        return call
    metadata, content = spelled_as(call.metadata, given.metadata), spelled_as(call.content, given.content)
    return replace(call, metadata=metadata, content=content)


def _new_requests(seen: Observations) -> list[JsonValue]:
    """The newest message of each request, and the end: a rewritten history keeps less."""
    histories = [*(request.history for request in seen.requests), seen.final]
    return [history.message.value for history in histories if history is not None]


def _id(call: ToolCall, observed: ObservedCall | None) -> str | None:
    """The one under which the loop made the call; spans need not tell of any."""
    return call.call_id if call.call_id is None or observed is None else observed.call_id


def _name(call: ToolCall, asked: JsonObject | None) -> str:
    name = asked.get("tool_name") if asked else None
    return name if isinstance(name, str) else call.tool_name


def _arguments(call: ToolCall, asked: JsonObject | None) -> Payload | None:
    """As the model asked for them, for a call that no tool answered."""
    if asked is None:
        return call.arguments
    sent = asked.get("args")
    if sent is None and call.arguments is None:
        return None
    return Payload.of(sent)


PartsByCall = dict[str, list[JsonObject]]


def _parts_by_call(messages: list[JsonValue], kind: str) -> PartsByCall:
    """Parts of this kind by call id, in the order of the history."""
    found: PartsByCall = {}
    for message in messages:
        for part in message.get("parts") or []:
            if part.get("part_kind") == kind:
                found.setdefault(part.get("tool_call_id") or "", []).append(part)
    return found


def shared_keys(recorded: JsonObject | None, rebuilt: JsonObject | None) -> JsonObject | None:
    """Older recordings hold less of a retry; what they lack cannot be compared."""
    if recorded is None or rebuilt is None:
        return None
    return {key: value for key, value in rebuilt.items() if key in recorded}


def _has_own_output(run: Run, seen: Observations) -> bool:
    """What a function would have made of it that did not run is not known."""
    return run.agent.output_function is None or seen.has_run_tools


def spelled_output(recorded: Payload | None, now: Payload | None) -> Payload | None:
    """The recorded bytes where the output is the same, and is a text or fields on both sides."""
    if recorded is None or now is None or is_spelled_as_text(recorded, now):
        return now
    return recorded if same_output(recorded, now) else now


def _spelled_arguments(recorded: Payload | None, rebuilt: Payload | None) -> Payload | None:
    """The loop makes an empty object of no arguments and of an empty text, and of other spellings its own."""
    if rebuilt is not None and same_json(recorded_arguments(recorded), rebuilt.value):
        return recorded
    return spelled_as(recorded, rebuilt)


def spelled_as(recorded: Payload | None, rebuilt: Payload | None) -> Payload | None:
    """The recorded bytes where the loop built the same value: its JSON has a spelling of its own."""
    if recorded is None or rebuilt is None:
        return rebuilt
    if not (recorded.is_json or recorded.is_text):
        # Messages hold bytes in base64, or the text that they spell.
        spelled = (urlsafe_b64encode(recorded.content).decode(), recorded.content.decode(errors="replace"))
        return recorded if rebuilt.value in spelled else rebuilt
    return recorded if same_json(recorded.parsed, rebuilt.parsed) else rebuilt


def _renumbered(steps: Iterator[Step]) -> Iterator[Step]:
    """Indexes without gaps, parents following their steps."""
    new: dict[int, int] = {}
    for index, step in enumerate(steps, start=1):
        new[step.index] = index
        yield replace(step, index=index, parent=new.get(step.parent) if step.parent else None)
