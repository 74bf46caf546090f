"""Where an observed run and its recording differ first, and where the answer of each observed step came from."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from sessions_app.core.compare.runs import call_value
from sessions_app.core.compare.strict import same_json
from sessions_app.core.history import History, nodes
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.ran_with import has_run, is_told, said_of
from sessions_app.core.replay.asked_model import asked_in, first_other
from sessions_app.core.replay.fixture_book import (
    NO_LONGER_WAITS,
    FixtureMiss,
    is_same_call,
    missing,
    reached_words,
    recorded_arguments,
    was_never_answered,
)
from sessions_app.core.replay.matching import Mismatch, Tally, first_mismatch, note_untold_parameters
from sessions_app.core.replay.observed import Divergence
from sessions_app.core.replay.observed_pairs import Pair, Pairs, Tools, same_error
from sessions_app.core.replay.observed_states import ObservedStates
from sessions_app.core.replay.observed_stops import cut_off, is_paused, is_stop
from sessions_app.core.replay.plan import PlannedAnswer
from sessions_app.core.replay.projection import in_shape_of
from sessions_app.core.replay.ran_with import first_other as first_given
from sessions_app.core.replay.refusal_words import refusal_in_words
from sessions_app.core.replay.rewriting import was_rewritten_in_place
from sessions_app.core.replay.tool_http import observed_http, observed_miss, observed_output_miss
from sessions_app.core.run import (
    WAITING,
    Fixture,
    ModelCall,
    Step,
    StepSource,
    ToolCall,
    agents_in_tools,
    is_answered_by_tool,
    tool_ran,
)


@dataclass
class ObservedComparison:
    """Goes through the observed steps in their order."""

    pairs: Pairs
    tools: Tools
    tally: Tally = field(default_factory=Tally)
    divergence: Divergence | None = None
    ran_past: int | None = None
    miss: FixtureMiss | None = None
    acts: list[JsonObject] = field(default_factory=list)
    """What a tool answers today where it first differs: `step`, `kind`, `name`, `recorded`, `now`."""
    sources: dict[int, StepSource] = field(default_factory=dict)
    """Where the answer of each observed step came from, by its index."""
    states: ObservedStates | None = field(init=False)
    """None where no tool ran, which alone changes a state."""
    _checked: tuple[History, History] | None = None
    """How far the recorded and the observed conversation are known to agree."""
    _has_parted: bool = False
    """Whether a request was not the recorded one: what is asked for behind it belongs to another run."""
    _last: int = 0
    """The recorded step that stood beside the newest one."""
    _cut_off: frozenset[int] = field(init=False)
    _agents: tuple[dict[int, list[str]], dict[int, list[str]]] = field(init=False)
    """The agents that tools ran, then and now."""

    def __post_init__(self) -> None:
        self.states = ObservedStates(self.pairs) if self.tools == "run" else None
        self._cut_off = cut_off(self.pairs)
        self._agents = agents_in_tools(self.pairs.recorded), agents_in_tools(self.pairs.observed)

    @property
    def is_same(self) -> bool:
        """Whether nothing went another way so far."""
        return self.divergence is None and self._is_answered

    @property
    def _is_answered(self) -> bool:
        return self.ran_past is None and self.miss is None

    def compare(self) -> None:
        if self.states is not None:
            self.divergence = self.states.at_start()
        self._compare_input()
        for pair in self.pairs.steps:
            self._compare(pair)
            self._compare_state(pair)
            self._last = pair.recorded.index if pair.recorded else self._last
            self.sources[pair.observed.index] = self._source(pair)
        self._compare_output(None)
        self._compare_end()

    def _compare_input(self) -> None:
        """Of recordings of other makers the input may be told in another shape."""
        recorded, observed = self.pairs.recorded, self.pairs.observed
        if recorded.source_format == "native" and recorded.input is not None and observed.input is not None:
            then, now = recorded.input.parsed, observed.input.parsed
            self._diverged(1, first_mismatch(then, now, raw=then, path="input", tally=Tally()))

    def _compare(self, pair: Pair) -> None:
        if not self.is_same or is_paused(pair) or pair.observed.index in self._cut_off:
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
        found = self._of_request(planned, pair.observed, call, self.tally)
        if found is None and call.response is not None and not is_same_answer(planned.response, call.response):
            found = Mismatch(path="response", recorded=_value(planned.response), rebuilt=call.response.value)
        self._diverged(planned.step, found)

    def _of_request(self, planned: PlannedAnswer, step: Step, call: ModelCall, tally: Tally) -> Mismatch | None:
        return (
            self._of_messages(planned.history, call.history, tally)
            or _of_parameters(planned, call, tally)
            or first_other(planned, asked_in(step, call), tally)
        )

    def _of_messages(self, recorded: History | None, observed: History | None, tally: Tally) -> Mismatch | None:
        if recorded is None or observed is None:
            tally.note_missing("messages")
            return None
        start = self._agreed_up_to(recorded, observed)
        expected, actual = _messages(recorded, start), _messages(observed, start)
        for offset in range(max(len(expected), len(actual))):
            left, right = (side[offset] if offset < len(side) else None for side in (expected, actual))
            found = _of_message(left, right, f"messages[{start + offset}]", tally)
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

    # --- calls of tools

    def _compare_tool(self, pair: Pair, call: ToolCall) -> None:
        if pair.recorded is None:
            self._compare_unknown_call(pair.observed, call)
            return
        recorded = pair.recorded.call
        assert isinstance(recorded, ToolCall)
        if recorded.is_output:
            self._compare_output(call)
        if not self.is_same:
            return
        fixture = Fixture(
            step=pair.recorded.index, call=recorded, error=pair.recorded.error, tool_ran=tool_ran(pair.recorded)
        )
        if self._is_missed(fixture, pair.observed):
            arguments = recorded_arguments(call.arguments)
            self.miss = missing(call.tool_name, call.call_id, arguments, [fixture])
            return
        found = self._of_call(pair.recorded, recorded, pair.observed, call)
        reached = reached_words(fixture) if is_stop(pair) and fixture.ended_before_tool else None
        if found is not None and found.path == "result" and reached is not None:
            found = replace(found, rebuilt=reached)
        elif found is not None and found.path == "result" and is_stop(pair) and recorded.outcome in WAITING:
            found = Mismatch(path="outcome", recorded=recorded.outcome, rebuilt=NO_LONGER_WAITS)
        request = observed_miss(pair.observed, self.pairs.recorded, pair.recorded) if self.tools == "run" else None
        if request is not None and found is not None and not found.path.startswith("arguments"):
            miss = missing(call.tool_name, call.call_id, recorded_arguments(call.arguments), [fixture])
            self.miss = replace(miss, request=request)
            return
        if found is not None and found.path == "result":
            then, now = refusal_in_words(found.recorded), refusal_in_words(found.rebuilt)
            found = replace(found, recorded=then, rebuilt=now)
        self._diverged(pair.recorded.index, found or self._of_http(pair.observed))
        if found is not None and found.path.startswith("result"):
            failed = {"has_failed": True} if call.outcome == "crashed" and reached is None else {}
            said = {
                "recorded": _ended(pair.recorded, recorded),
                "now": reached or _ended(pair.observed, call),
                **failed,
            }
            self.acts.append({"step": pair.recorded.index, "kind": "tool", "name": call.tool_name, **said})

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
        found = None
        if recorded.arguments is not None:
            found = first_mismatch(one, other, raw=one, path="arguments", tally=self.tally)
        found = found or (self._of_given(step, observed, self.tally) if is_answered_by_tool(call) else None)
        if found is not None:
            return found
        if call.outcome == "crashed" and not same_error(step.error, observed.error):
            return Mismatch(path="result", recorded=_ended(step, recorded), rebuilt=_ended(observed, call))
        if self._are_told_whole and _is_of_another_kind(recorded.result, call.result):
            return Mismatch(path="result", recorded=_value(recorded.result), rebuilt=_value(call.result))
        for path, left, right in _answers(recorded, call):
            is_said = left is not None and right is not None
            if is_said or (path in _BESIDE and self._are_told_whole):
                found = first_mismatch(left, right, raw=left, path=path, tally=self.tally)
                if found is not None:
                    return found
        if (recorded.result is None) != (call.result is None) and observed.error is None:
            return Mismatch(path="result", recorded=_parsed(recorded.result), rebuilt=_parsed(call.result))
        if not same_error(step.error, observed.error):
            return Mismatch(
                path="error", recorded=step.error and step.error.value, rebuilt=observed.error and observed.error.value
            )
        ran, runs = has_run(self.pairs.recorded, step), has_run(self.pairs.observed, observed)
        if None not in (ran, runs) and ran != runs:
            return Mismatch(path="tool_ran", recorded=ran, rebuilt=runs)
        if self.tools == "run" and ran and self._are_told_whole:
            then, now = self._agents[0].get(step.index), self._agents[1].get(observed.index)
            found = first_mismatch(then, now, raw=then, path="agents_inside", tally=self.tally)
            if found is not None:
                return found
        one, other = step.extra.get("waits_with"), observed.extra.get("waits_with")
        return first_mismatch(one, other, raw=one, path="waits_with", tally=self.tally) if self._knows(step) else None

    def _of_given(self, step: Step, observed: Step, tally: Tally) -> Mismatch | None:
        """Where the tool began on both sides, and both recorders heard with what."""
        have_begun = tool_ran(step) is not False and tool_ran(observed) is not False
        return first_given(step, said_of(observed), tally) if self._are_told_whole and have_begun else None

    @property
    def _are_told_whole(self) -> bool:
        """Whether what both runs do not say of a call was not there."""
        return is_told(self.pairs.recorded) and is_told(self.pairs.observed)

    def _knows(self, step: Step) -> bool:
        """Whether the recording would say with what a call waits for somebody, and the tool ran again."""
        return tool_ran(step) is not None and self.tools == "run"

    def _of_http(self, observed: Step) -> Mismatch | None:
        return observed_http(observed) if self.tools == "run" else None

    # --- states

    def _compare_state(self, pair: Pair) -> None:
        if self.states is not None and self._is_answered:
            found = self.states.after(pair, is_same_so_far=self.divergence is None)
            self.divergence = self.divergence or found

    # --- the end

    def _compare_output(self, call: ToolCall | None) -> None:
        """What a function that makes the output sent, be it that of this call or that of an answer in words."""
        if self.tools != "run" or not self.is_same:
            return
        request = observed_output_miss(self.pairs.observed, self.pairs.recorded)
        if request is not None:
            name = self.pairs.recorded.agent.output_function or "output function"
            call_id = None if call is None else call.call_id
            arguments = None if call is None else recorded_arguments(call.arguments)
            self.miss = replace(missing(name, call_id, arguments, ()), request=request)
        elif call is None:
            self._diverged(len(self.pairs.recorded.steps), observed_http(self.pairs.observed))

    def _compare_end(self) -> None:
        """What the loop wrote behind the last answer; an early end has a verdict of its own."""
        recorded, observed = self.pairs.recorded.final, self.pairs.observed.final
        is_whole = self.is_same and not self.pairs.unused
        if is_whole and recorded is not None and observed is not None:
            self._diverged(len(self.pairs.recorded.steps), self._of_messages(recorded, observed, self.tally))
        self._compare_changes_in_place()

    def _compare_changes_in_place(self) -> None:
        """The recorder sees at the end that they happened, and not where; code of then did none."""
        runs = self.pairs.recorded, self.pairs.observed
        was, is_now = map(was_rewritten_in_place, runs)
        if is_now and not was and self.is_same:
            found = Mismatch(path="messages", recorded="as they were", rebuilt="changed after they had been sent")
            self._diverged(len(self.pairs.recorded.steps), found)

    def _diverged(self, step: int, found: Mismatch | None) -> None:
        if found is not None and self.divergence is None:
            self.divergence = Divergence(step=step, path=found.path, recorded=found.recorded, replayed=found.rebuilt)

    def _source(self, pair: Pair) -> StepSource:
        if is_paused(pair):
            return "unknown"
        is_same = self.divergence is None or (not self._has_parted and self._is_asked_again(pair))
        self._has_parted = self._has_parted or (not is_same and isinstance(pair.observed.call, ModelCall))
        again: StepSource = "recorded" if is_same else "recorded_for_another_request"
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

    def _is_asked_again(self, pair: Pair) -> bool:
        """Whether this very request or call is the recorded one, whatever differed before."""
        call, recorded = pair.observed.call, pair.recorded.call if pair.recorded else None
        if isinstance(call, ModelCall):
            return pair.planned is not None and self._of_request(pair.planned, pair.observed, call, Tally()) is None
        if not isinstance(call, ToolCall) or not isinstance(recorded, ToolCall):
            return False
        assert pair.recorded is not None
        is_given_as_then = self._of_given(pair.recorded, pair.observed, Tally()) is None
        return is_given_as_then and is_same_call(recorded, recorded_arguments(call.arguments))

    def _source_of_answer(self, pair: Pair, call: ModelCall, again: StepSource) -> StepSource:
        if call.response is None:
            return again if pair.is_answered else "unknown"
        is_recorded = pair.planned is not None and is_same_answer(pair.planned.response, call.response)
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


def _of_message(recorded: Payload | None, observed: Payload | None, path: str, tally: Tally) -> Mismatch | None:
    if recorded is None or observed is None:
        return Mismatch(path=path, recorded=_value(recorded), rebuilt=_value(observed))
    raw, now = _said(recorded.value), _said(in_shape_of(recorded, observed).value)
    return first_mismatch(raw, now, raw=raw, path=path, tally=tally)


def _of_parameters(planned: PlannedAnswer, call: ModelCall, tally: Tally) -> Mismatch | None:
    if planned.parameters is None or call.parameters is None:
        tally.note_missing("parameters")
        return None
    recorded, now = planned.parameters.value, in_shape_of(planned.parameters, call.parameters, path="parameters")
    note_untold_parameters(recorded, call.parameters.value, tally)
    return first_mismatch(recorded, now.value, raw=recorded, path="parameters", tally=tally)


def _said(message: JsonValue) -> JsonValue:
    """Of an answer what it said: who gave it, and at what cost, is a matter of the recording."""
    if isinstance(message, dict) and message.get("kind") == "response":
        return {"kind": "response", "parts": message.get("parts")}
    return message


def is_same_answer(recorded: Payload | None, given: Payload) -> bool:
    if recorded is None:
        return False
    raw, now = _said(recorded.value), _said(in_shape_of(recorded, given).value)
    return first_mismatch(raw, now, raw=raw, path="messages[0]", tally=Tally()) is None


def _is_of_another_kind(recorded: Payload | None, now: Payload | None) -> bool:
    """A text, null, or another value: a text that spells a value is none."""
    kinds = [(each.is_text, each.value is None) for each in (recorded, now) if each is not None]
    return len(kinds) == 2 and kinds[0] != kinds[1]


_BESIDE = ("metadata", "content")


def _answers(recorded: ToolCall, call: ToolCall) -> Iterator[tuple[str, JsonValue, JsonValue]]:
    """What the tool gave, part by part."""
    yield "result", *_said_by_tools(recorded.result, call.result)
    for name in _BESIDE:
        yield name, _parsed(getattr(recorded, name)), _parsed(getattr(call, name))
    yield "outcome", recorded.outcome, call.outcome
    yield "retry", recorded.retry, call.retry


def _ended(step: Step, call: ToolCall) -> JsonValue:
    """What a call answered, or the exception with which it ended."""
    if call.result is not None or step.error is None:
        return refusal_in_words(_said_by_tool(call.result))
    return f"{step.error.type}: {step.error.message}"


def _value(payload: Payload | None) -> JsonValue:
    return None if payload is None else payload.value


def _said_by_tools(*results: Payload | None) -> list[JsonValue]:
    """Two texts that are the same JSON as they are: the model reads its spaces."""
    said = [_said_by_tool(result) for result in results]
    are_texts = all(result is not None and result.is_text for result in results)
    return [_value(result) for result in results] if are_texts and same_json(*said) else said


def _said_by_tool(result: Payload | None) -> JsonValue:
    """Bytes as messages hold them."""
    if result is None or result.is_json or result.is_text:
        return _parsed(result)
    return urlsafe_b64encode(result.content).decode()


def _parsed(payload: Payload | None) -> JsonValue:
    return None if payload is None else payload.parsed
