"""The fields of two steps that stand beside each other, in the order in which they came about.

Not compared: token counts (a captured answer carries its own). Where an answer came from, and in two recordings names
of steps, HTTP headers and fields that the format does not know, are left out by rules, which count them. States are
compared where both runs recorded any: the state that a step left, wherever the two changed it otherwise. Parents,
handoffs, the agent of a step, whether a tool itself began, and what it gave before it was made a text are compared
where both steps have them, for few producers tell of these, and a replay not of all; in two runs that one recorder
wrote, what one step has and the other lacks is a difference too. So are, in all native records, the arguments that
somebody approved a call with. What a tool was given in place of what the model sent is compared where both recorders
heard it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from sessions_app.core.compare.json_diff import MISSING, Difference, Missing
from sessions_app.core.compare.payload_fields import FieldComparer
from sessions_app.core.compare.provider_http import answers
from sessions_app.core.compare.requests import NewMessages, RunMessages
from sessions_app.core.compare.strict import Interner, same_json
from sessions_app.core.history import messages
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.ran_with import FIELDS as GIVEN
from sessions_app.core.ran_with import OF_APPROVAL, both_given, has_run, said_of
from sessions_app.core.run import (
    AgentCall,
    Chunk,
    ErrorInfo,
    HttpExchange,
    ModelCall,
    Retrieval,
    Run,
    StateChange,
    Step,
    ToolCall,
    answered,
    asked,
    tool_ran,
)
from sessions_app.core.state import PatchError, after_steps
from sessions_app.core.told_otherwise import told_of_step

_SAID = ("agent", "decision", "returned", "handoff", "tool_ran", *OF_APPROVAL, "waited_for", "waits_with")


class RunStates:
    """The states of a run, as its steps changed them: asked for step by step, so that each change is applied once."""

    def __init__(self, run: Run) -> None:
        self._steps = run.steps
        self.are_recorded = run.initial_state is not None or any(step.state is not None for step in run.steps)
        self._first = None if run.initial_state is None else run.initial_state.value
        self._reached, self._state = 0, self._first

    def change_of(self, step: Step) -> StateChange | None:
        """None in a run without states; no operations for a step that left the state as it was."""
        return (step.state or StateChange()) if self.are_recorded else None

    def after(self, step: Step) -> JsonValue:
        """The state that the step left; the operations themselves where they do not fit the state."""
        if step.index < self._reached:
            self._reached, self._state = 0, self._first
        try:
            self._state = after_steps(self._state, self._steps[self._reached : step.index])
        except PatchError:
            change = step.state or StateChange()
            return {"before": list(change.before), "after": list(change.after)}
        self._reached = step.index
        return self._state

    def before(self, step: Step) -> JsonValue:
        """The state that the step was given; the operations themselves where they do not fit the state."""
        earlier = self._steps[step.index - 2] if step.index > 1 else None
        state = self._first if earlier is None else self.after(earlier)
        given = StateChange(before=(step.state or StateChange()).before)
        try:
            return after_steps(state, [replace(step, state=given)])
        except PatchError:
            return {"before": list(given.before)}


def _is_same_change(left: StateChange, right: StateChange) -> bool:
    """To the letter: 1, 1.0 and true are three values."""
    one, other = ([list(each.before), list(each.after)] for each in (left, right))
    return same_json(one, other)


def _same_state(left: JsonValue, right: JsonValue) -> bool:
    """Keys of a state have no order."""
    return Interner(any_key_order=True).same(left, right)


@dataclass(frozen=True, kw_only=True, slots=True)
class StepComparer:
    """Compares steps of two runs whose messages are known."""

    fields: FieldComparer
    provider_http: FieldComparer
    """For the HTTP of a model's step."""
    runs: tuple[Run, Run]
    left: RunMessages
    right: RunMessages
    left_states: RunStates
    right_states: RunStates
    are_of_one_recorder: bool
    """Both were recorded as they ran, and of the same framework: what a step does not say did not happen."""
    are_recordings: bool
    """Neither was made by a replay."""
    are_told_whole: bool
    """The recorders of both heard what tools were given and what they gave along: what a step does not say of its call
    was not there, and its tool was given what the model sent."""
    agents: tuple[Mapping[int, list[str]], Mapping[int, list[str]]]
    """The agents that the tools of each ran, by the tool's step."""
    partners: Mapping[int, int]
    """Which step of the right, by its index, stands beside each of the left."""

    def differences(self, left: Step, right: Step) -> Iterator[Difference]:
        """Lazily, so that who only wants the first one pays for no more."""
        if isinstance(left.call, ModelCall) and isinstance(right.call, ModelCall):
            yield from self._model(left, left.call, right, right.call)
        else:
            yield from self._call(left, right)
        yield from self._parent(left, right)
        yield from self._said_by_recorder(left, right)
        yield from self._surroundings(left, right)
        yield from self._state(left, right)
        yield from self._times(left, right)

    def _parent(self, left: Step, right: Step) -> Iterator[Difference]:
        """Other steps before it move a step and its parent alike."""
        expected = None if left.parent is None else self.partners.get(left.parent)
        if None not in (expected, right.parent) and expected != right.parent:
            yield from self.fields.present("parent", left.parent, right.parent)
        if self.are_of_one_recorder and (left.parent is None) != (right.parent is None):
            yield from self.fields.present("parent", left.parent or MISSING, right.parent or MISSING)

    def _state(self, left: Step, right: Step) -> Iterator[Difference]:
        """Two lists of operations may lead to the same state, which then is no difference. What a step was given is one
        of its own where its list says that it was not what the step before had left."""
        one, other = self.left_states.change_of(left), self.right_states.change_of(right)
        if one is None or other is None or _is_same_change(one, other):
            return
        if one.before or other.before:
            given = self.left_states.before(left), self.right_states.before(right)
            if not _same_state(*given):
                yield from self.fields.present("input_state", *given)
        states = self.left_states.after(left), self.right_states.after(right)
        if not _same_state(*states):
            yield from self.fields.present("state", *states)

    def _surroundings(self, left: Step, right: Step) -> Iterator[Difference]:
        """For whom the step worked, and what went over the wire."""
        for name in ("user_id", "tenant_id"):
            yield from self.fields.values(name, getattr(left, name), getattr(right, name))
        one, other = left.http or HttpExchange(), right.http or HttpExchange()
        for name in ("method", "url", "status"):
            yield from self.fields.values(f"http.{name}", getattr(one, name), getattr(other, name))
        if isinstance(left.call, ModelCall):
            yield from self.provider_http.payloads("http.request_body", one.request_body, other.request_body)
            yield from answers(self.provider_http, "http.response_body", one.response_body, other.response_body)
        else:
            yield from self.fields.payloads("http.request_body", one.request_body, other.request_body)
            yield from self.fields.payloads("http.response_body", one.response_body, other.response_body)

    def _model(self, left: Step, one: ModelCall, right: Step, other: ModelCall) -> Iterator[Difference]:
        fields = self.fields
        yield from self._request(left, right)
        for name in ("model", "provider", "region"):
            yield from fields.values(name, getattr(one, name), getattr(other, name))
        yield from fields.payloads("settings", one.settings, other.settings)
        yield from fields.payloads("parameters", one.parameters, other.parameters)
        yield from self.fields.optional_lists("tools", one.tools, other.tools)
        yield from fields.values("answered_model", one.answered_model, other.answered_model)
        yield from self.error("error", left.error, right.error)
        yield from fields.payloads("response", *_model_answers(left, right))
        yield from fields.values("finish_reason", one.finish_reason, other.finish_reason)
        yield from self._tokens(one, other)

    def _tokens(self, one: ModelCall, other: ModelCall) -> Iterator[Difference]:
        """Of an answer whose message does not count them on both sides nothing is missing; where the messages tell the
        same counts, their difference has been named."""
        usages = _usage_of(one), _usage_of(other)
        for name in ("input_tokens", "output_tokens"):
            counts = getattr(one, name), getattr(other, name)
            is_named = counts[0] != counts[1] and counts == (usages[0].get(name), usages[1].get(name))
            if None not in counts and not is_named:
                yield from self.fields.values(name, *counts)

    def _request(self, left: Step, right: Step) -> Iterator[Difference]:
        one, other = self.left.requests.get(left.index), self.right.requests.get(right.index)
        return self.new_messages("request", one, other)

    def new_messages(self, path: str, left: NewMessages | None, right: NewMessages | None) -> Iterator[Difference]:
        """What each side added; a history that one side rewrote or cut short is compared as a whole."""
        if left is None or right is None:
            return self.fields.values(path, left and _length(left), right and _length(right))
        if left.history.digest == right.history.digest:
            return self.fields.lists(f"{path}.messages", left.added, left.added, (0, 0))
        if left.behind != right.behind:
            return self.fields.lists(f"{path}.messages", _all(left), _all(right), (0, 0))
        starts = left.start, right.start
        return self.fields.lists(f"{path}.messages", left.added, right.added, starts)

    def _call(self, left: Step, right: Step) -> Iterator[Difference]:
        if isinstance(left.call, ToolCall) and isinstance(right.call, ToolCall):
            yield from self.fields.values("tool_name", left.call.tool_name, right.call.tool_name)
            yield from self.fields.values("call_id", left.call.call_id, right.call.call_id)
        yield from self.fields.payloads("args", asked(left), asked(right), as_fields=True)
        ended = (self.error("error", left.error, right.error), self._result(left, right))
        for differences in ended if None in map(answered, (left, right)) else ended[::-1]:
            yield from differences
        if isinstance(left.call, ToolCall) and isinstance(right.call, ToolCall):
            yield from self._tool(left.call, right.call)
            yield from self._agents_inside(left, right)
        if isinstance(left.call, AgentCall) and isinstance(right.call, AgentCall):
            ids = left.call.run_id, right.call.run_id
            yield from self.fields.present("run_id", *ids) if None not in ids else ()

    def _result(self, left: Step, right: Step) -> Iterator[Difference]:
        if isinstance(left.call, Retrieval) and isinstance(right.call, Retrieval):
            return self._chunks(left.call, right.call)
        return self.fields.payloads("result", *_results(left, right))

    def _said_by_recorder(self, left: Step, right: Step) -> Iterator[Difference]:
        """What a replay makes holds none of it."""
        for name in _SAID:
            one, other = self._sides(name, left, right)
            sides = sum(each is not MISSING for each in (one, other))
            if sides == 2 or (sides == 1 and self._is_told(name, left, right)):
                yield from self.fields.present(name, one, other)
        yield from self._given(left, right)
        yield from self._left_out(left, right)

    def _is_told(self, name: str, *steps: Step) -> bool:
        """Whether a step that does not say it had none of it."""
        if name in OF_APPROVAL:
            return all(run.source_format == "native" for run in self.runs)
        are_known = name == "waits_with" and all(tool_ran(step) is not None for step in steps)
        return are_known or self.are_of_one_recorder

    def _sides(self, name: str, *steps: Step) -> list[JsonValue | Missing]:
        """That a tool ran is known, too, of a call that simply got its answer, of which a recorder does not say it."""
        said: list[JsonValue | Missing] = [step.extra.get(name, MISSING) for step in steps]
        ran: list[JsonValue | Missing] = [has_run(run, step) for run, step in zip(self.runs, steps, strict=True)]
        return ran if name == "tool_ran" and None not in ran else said

    def _left_out(self, left: Step, right: Step) -> Iterator[Difference]:
        """What rules leave out, which thereby is counted."""
        if left.source != right.source:
            yield from self.fields.present("source", left.source, right.source)
        told = told_of_step(left), told_of_step(right)
        yield from self.told_otherwise(*told)
        known = {*_SAID, *(GIVEN if self.are_told_whole else ()), *told[0], *told[1]}
        yield from self.other_fields(
            *({n: v for n, v in each.extra.items() if n not in known} for each in (left, right))
        )
        yield from self._in_recordings("", {"name": left.name}, {"name": right.name})
        yield from self._in_recordings("http.", *map(_beside_bodies, (left.http, right.http)))

    def told_otherwise(self, left: JsonObject, right: JsonObject) -> Iterator[Difference]:
        """What spans of a step, or of a run, tell twice: one of the two recordings contradicts itself there."""
        return self._in_recordings("told_otherwise.", left, right)

    def other_fields(self, left: JsonObject, right: JsonObject) -> Iterator[Difference]:
        """Of a step or a run."""
        return self._in_recordings("extra.", left, right)

    def _in_recordings(self, place: str, left: JsonObject, right: JsonObject) -> Iterator[Difference]:
        """A replay makes none of them."""
        for name in sorted({*left, *right}) if self.are_recordings else ():
            one, other = left.get(name, MISSING), right.get(name, MISSING)
            if one is MISSING or other is MISSING or not same_json(one, other):
                yield from self.fields.present(f"{place}{name}", one, other)

    def _given(self, left: Step, right: Step) -> Iterator[Difference]:
        """What tools were given whose model asked with the same."""
        one, other, sent = said_of(left), said_of(right), _asked_of_both(left, right)
        if not self.are_told_whole or not (one or other) or sent is None:
            return
        given = both_given(sent, one, other)
        if given is not None:
            yield from self.fields.present("ran_with", *given)

    def _tool(self, left: ToolCall, right: ToolCall) -> Iterator[Difference]:
        yield from self.fields.values("outcome", left.outcome, right.outcome)
        if left.is_output != right.is_output:
            yield from self.fields.present("is_output", left.is_output, right.is_output)
        if left.retry or right.retry:
            yield from self.fields.present("retry", _retry(left), _retry(right))
        for name in ("metadata", "content"):
            nothing = MISSING if self.are_told_whole else None
            yield from self.fields.payloads(name, *(getattr(call, name) or nothing for call in (left, right)))

    def _agents_inside(self, left: Step, right: Step) -> Iterator[Difference]:
        """Of a tool that ran in a replay: their own steps were not played where the replay is one of the server."""
        one, other = self.agents[0].get(left.index), self.agents[1].get(right.index)
        if one != other and self.are_told_whole and "own_code" in (left.source, right.source):
            yield from self.fields.present("agents_inside", one or MISSING, other or MISSING)

    def _chunks(self, left: Retrieval, right: Retrieval) -> Iterator[Difference]:
        yield from self.fields.values("result", _chunk_values(left), _chunk_values(right))
        for name in ("index_version", "embedding_version"):
            yield from self.fields.values(name, getattr(left, name), getattr(right, name))

    def error(self, path: str, left: ErrorInfo | None, right: ErrorInfo | None) -> Iterator[Difference]:
        """No error is a fact and not a gap. Tracebacks and the like are not compared."""
        if left is None or right is None:
            if left is not right:
                yield from self.fields.present(
                    path, *(MISSING if each is None else each.value for each in (left, right))
                )
            return
        for name in ("type", "message"):
            yield from self.fields.values(f"{path}.{name}", getattr(left, name), getattr(right, name))

    def _times(self, left: Step, right: Step) -> Iterator[Difference]:
        for name in ("started_at", "first_token_at", "duration_ms"):
            one, other = getattr(left, name), getattr(right, name)
            if one != other and (self.are_recordings or None not in (one, other)):
                yield from self.fields.present(name, _time(one), _time(other))


def _beside_bodies(http: HttpExchange | None) -> JsonObject:
    """What is said of an exchange besides what it sent and got."""
    if http is None:
        return {}
    headers = {name: [list(pair) for pair in getattr(http, name)] for name in ("request_headers", "response_headers")}
    others = {name if name in _HTTP_TIMES else f"extra.{name}": value for name, value in http.extra.items()}
    return {**{name: pairs for name, pairs in headers.items() if pairs}, **others}


_HTTP_TIMES = ("started_at", "first_byte_at", "duration_ms")


def _usage_of(call: ModelCall) -> JsonObject:
    answer = call.response.parsed if call.response else None
    usage = answer.get("usage") if isinstance(answer, dict) else None
    return usage if isinstance(usage, dict) else {}


def _length(new: NewMessages) -> JsonObject:
    return {"messages": new.history.length}


def _all(new: NewMessages) -> list[Payload]:
    return messages(new.history)


def _asked_of_both(*steps: Step) -> JsonValue | None:
    """What the model asked a tool with, where that is the same."""
    sent = [each.parsed if each is not None else None for each in map(asked, steps)]
    one, other = ({} if arguments in (None, "") else arguments for arguments in sent)
    return one if same_json(one, other) else None


def _results(*steps: Step) -> list[Payload | Missing | None]:
    """A step that failed has no result; any other without one was not captured."""
    return [answered(step) or (MISSING if step.error else None) for step in steps]


def _model_answers(*steps: Step) -> list[Payload | Missing | None]:
    """Whoever writes an answer writes its parts, and not which model gave it with how many tokens."""
    found = _results(*steps)
    if _WRITTEN.isdisjoint(step.source for step in steps):
        return found
    return [_parts_alone(each) if isinstance(each, Payload) else each for each in found]


_WRITTEN = frozenset({"by_hand", "rule"})


def _parts_alone(response: Payload) -> Payload:
    said = response.value
    return Payload.of_json({"parts": said["parts"]}) if isinstance(said, dict) and "parts" in said else response


def _retry(call: ToolCall) -> JsonValue:
    return call.retry or MISSING


def _chunk_values(call: Retrieval) -> JsonValue:
    return None if call.chunks is None else [_chunk_value(chunk) for chunk in call.chunks]


def _chunk_value(chunk: Chunk) -> JsonObject:
    """What was not captured of it is left out, so that it is not counted as the same on both sides."""
    value = {"id": chunk.chunk_id, "score": chunk.score, "content": chunk.content and chunk.content.value}
    return {name: each for name, each in value.items() if each is not None}


def _time(value: datetime | float | None) -> JsonValue:
    return value.isoformat() if isinstance(value, datetime) else MISSING if value is None else value
