"""Whether each request is the one that the agent's loop makes of the answer before it.

A replay makes every request anew from the recorded answers. Where the record tells of another course, because a call
of a model is missing, agents worked at once, or somebody shortened what a tool had answered, it ends there.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import islice, pairwise, takewhile

from sessions_app.core.compare.strict import same_json
from sessions_app.core.history import History, nodes
from sessions_app.core.judge.kit_side_effects import answers_differ
from sessions_app.core.judge.last_calls import calls_in, kinds_said, names_of_tools
from sessions_app.core.judge.openai_loop import rewritten_requests
from sessions_app.core.judge.reading import (
    SeenMessage,
    ends_at_answer,
    is_framework_written,
    is_of_recorder,
    is_respelled,
    main_models,
    object_of,
    seen_message,
    seen_messages,
    step_name,
)
from sessions_app.core.judge.reasons import Reason, reason_at
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.replay.hand_overs import is_openai_agents
from sessions_app.core.replay.rewriting import read_rewriting
from sessions_app.core.run import (
    EMPTY_REQUEST,
    EXCHANGES,
    GRAPHS,
    OPENAI_ITEMS,
    SAVED_MESSAGES,
    SPANS,
    ModelCall,
    Run,
    Step,
    ToolCall,
    fixtures,
    is_skipped,
    main_steps,
)
from sessions_app.core.unplayed import lost_spans

_ANSWERS = ("tool-return", "retry-prompt")
_LOOK_BACK = 8
"""Messages that one turn adds at most."""


def course_gaps(run: Run) -> Iterator[Reason]:
    yield from _unasked(run)
    yield from _not_offered(run)
    yield from _output_not_offered(run)
    yield from _begins_elsewhere(run)
    yield from _ends_elsewhere(run)
    yield from _other_course(run)
    yield from islice(_asked_the_same(run), 1)
    yield from _unprompted(run)
    yield from _answered_out_of_turn(run)
    yield from _doubled_ids(run)
    yield from _failed_with_a_result(run)
    yield from _other_answers(run)
    yield from _respelled_at_end(run)


# --- calls that no recorded answer asks for ----------------------------------------------------


def _unasked(run: Run) -> Iterator[Reason]:
    """The span of the answer that asked for them was lost, or code made them. Those that an approval let run belong to
    an earlier turn."""
    if not run.is_told_by_others and run.source_format != "native":
        return
    code = "model_answer_missing" if run.is_told_by_others else "call_of_no_answer"
    by_id, by_name = _asked_before(run)
    if not by_id and not run.is_told_by_others:
        return  # answers of which the calls were not recorded
    told: Counter[str | None] = Counter()
    for fixture in fixtures(run):
        call = fixture.call
        by_name_or_id = by_name[call.tool_name] if call.call_id is None else by_id[call.call_id]
        may_be_twice = run.is_told_by_others and call.call_id is not None
        asks = by_name_or_id[0 if may_be_twice else told[call.call_id or call.tool_name] :]
        told[call.call_id or call.tool_name] += 1
        is_asked = bool(asks) and asks[0] < fixture.step
        if (call.result or fixture.error) and not is_asked and call.call_id not in run.decided:
            step = run.steps[fixture.step - 1]
            yield reason_at(run, code, f"No recorded answer of the model asks for {step_name(step)}.", step)
            return


def _asked_before(run: Run) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """The steps that ask for a call, by its id and, where no fixture has that, by the tool's name: each has as many
    calls as were asked for."""
    told = {fixture.call.call_id for fixture in fixtures(run)}
    by_id: dict[str, list[int]] = defaultdict(list)
    by_name: dict[str, list[int]] = defaultdict(list)
    for step, call in main_models(run):
        for part in calls_in(call):
            by_id[str(part.get("tool_call_id"))].append(step.index)
            if part.get("tool_call_id") not in told:
                by_name[str(part.get("tool_name"))].append(step.index)
    return by_id, by_name


def _not_offered(run: Run) -> Iterator[Reason]:
    """Calls that something answered although the request offered no such tool; the loop answers that there is none. A
    run that was resumed makes its calls with the tools of its first request, unless another agent takes over there."""
    offered = {step.index: names_of_tools(call) for step, call in main_models(run)}
    hands_over = any("handoff" in step.extra for step, call in run.tool_calls if call.call_id in run.decided)
    first = None if hands_over else next(iter(offered.values()), None)
    for step, call in _own_calls(run):
        is_resumed = step.parent is None and call.call_id in run.decided
        tools = first if is_resumed else offered.get(step.parent or 0)
        if (
            tools is not None
            and call.tool_name not in tools
            and call.result is not None
            and not is_framework_written(call)
        ):
            name = step_name(step)
            where = "behind" if is_resumed else "before"
            message = f"{name[0].upper()}{name[1:]} was answered, and the request {where} it offered no such tool."
            yield reason_at(run, "tool_not_offered", message, _first_skipped(run, step) or step)
            return


def _output_not_offered(run: Run) -> Iterator[Reason]:
    """The last answer asks for a tool that nobody ran, and the run has an output: of spans nobody knows that the call
    carries it, where the request offered no such output and the span may be lost that tells."""
    if not run.is_told_by_others:
        return
    offered = {step.index: object_of(call.parameters).get("output_tools") for step, call in main_models(run)}
    for step, call in run.tool_calls:
        tools = offered.get(step.parent or 0)
        if call.is_output and isinstance(tools, list) and not any(tool.get("name") == call.tool_name for tool in tools):
            name = step_name(step)
            message = f"{name[0].upper()}{name[1:]} seems to carry the output, and the request offered no such tool."
            yield reason_at(run, "tool_not_offered", message, _first_skipped(run, step) or step)
            return


def _first_skipped(run: Run, output: Step) -> Step | None:
    """The first call that was not made because of this one, where nothing says that it was the output."""
    beside = (pair for pair in run.tool_calls if pair[0].parent == output.parent and pair[0].index < output.index)
    return next((step for step, call in beside if is_skipped(call)), None)


# --- requests that do not follow ---------------------------------------------------------------


def _asked_the_same(run: Run) -> Iterator[Reason]:
    """A loop of a library goes on from an answer, and asks for none once more that it has. The OpenAI Agents SDK leaves
    out of a request what repeats a call by its id."""
    pairs = pairwise(main_models(run)) if run.source_format == "native" and not run.is_told_by_others else ()
    for (step, call), (after, later) in pairs:
        is_same = call.history is not None and later.history is not None and call.history == later.history
        is_answered = call.response is not None and (is_of_recorder(run) or not calls_in(call))
        if is_same and is_answered and read_rewriting(after) is None:
            message = f"The request of {step_name(after)} is that of {step_name(step)}, which was answered."
            yield reason_at(run, "other_course", message, after)


def _other_course(run: Run) -> Iterator[Reason]:
    """Of spans: a recorder writes down what one loop did, and a replay compares it."""
    if not run.is_told_by_others:
        return
    lost = lost_spans(run)
    for (step, call), (after, later) in pairwise(main_models(run)):
        if call.response is None or later.history is None:
            continue
        is_next = _is_within(call.history, later.history) if lost else _goes_on(call, later.history)
        if not (_answers_all(call, later.history) and is_next):
            message = f"The request of {step_name(after)} does not follow from the answer of {step_name(step)}."
            yield reason_at(run, "other_course", message, after)
            return


def _begins_elsewhere(run: Run) -> Iterator[Reason]:
    """The span of an agent was lost, and its calls stand beside those of another one, with which the run began."""
    first = next(iter(main_models(run)), None)
    if first is not None and lost_spans(run) and first[0].index != run.model_calls[0][0].index:
        message = f"The span around {step_name(first[0])} was lost; its request is not the one that the run began with."
        yield reason_at(run, "other_course", message, first[0])


def _ends_elsewhere(run: Run) -> Iterator[Reason]:
    """The span of an agent was lost, and another one went on behind it: the run's end is not that of its own loop."""
    own = [step.index for step, _ in main_models(run)]
    last = own[-1] if own else 0
    behind = next((step for step, _ in run.model_calls if step.index > last), None)
    if own and lost_spans(run) and behind is not None:
        message = f"The span around {step_name(run.steps[last - 1])} was lost; another agent went on behind it."
        yield reason_at(run, "other_course", message, behind)


def _unprompted(run: Run) -> Iterator[Reason]:
    """A request that asks for nothing, or of which the message that asks was not saved: a loop does not make it."""
    before = None
    for step, call in main_models(run):
        said = _says_that_nobody_asked(run, before, step, call)
        if said is not None:
            yield reason_at(run, "prompt_missing", said, step)
            return
        before = call


def _says_that_nobody_asked(run: Run, before: ModelCall | None, step: Step, call: ModelCall) -> str | None:
    if EMPTY_REQUEST in step.extra and not is_openai_agents(run):  # whose empty input is judged as such
        return f"The request of {step_name(step)} holds no message."
    if call.history is None:
        begins = before is None and (run.source_format == EXCHANGES or _is_saved_prompt(run))
        return f"Nobody asked for the answer of {step_name(step)}: no message comes before it." if begins else None
    if ends_at_answer(call) and not is_of_recorder(run) and run.deferred is None and not _is_written_anew(run, step):
        return f"The request of {step_name(step)} ends with words of the model: nobody asked for its answer."
    must_ask = run.source_format == EXCHANGES or (
        run.source_format in SAVED_MESSAGES and before and _is_last_answer(before)
    )
    if must_ask and not _says_something(call.history):
        return f"The request of {step_name(step)} holds no message of a user."
    return None


def _is_written_anew(run: Run, step: Step) -> bool:
    """As the SDK sums up for the next agent what was said, in words of the assistant."""
    rewritten = rewritten_requests(run) if is_openai_agents(run) else None
    return rewritten is not None and rewritten[1] is step


def _is_saved_prompt(run: Run) -> bool:
    return run.source_format in SAVED_MESSAGES and run.input is not None


def _is_last_answer(call: ModelCall) -> bool:
    return "text" in kinds_said(call) and not calls_in(call)


def _answered_out_of_turn(run: Run) -> Iterator[Reason]:
    """Saved messages that no loop makes: a request answers a call that comes later, or never, or that is answered
    already. Earlier turns may begin behind their calls."""
    ever = {str(part.get("tool_call_id")) for _, call in main_models(run) for part in calls_in(call)}
    begins = next((step.index for step, _ in main_models(run)), 0)
    asked: Counter[str] = Counter()
    told: Counter[str] = Counter()
    for seen in seen_messages(run) if run.source_format in (*SAVED_MESSAGES, OPENAI_ITEMS) else ():
        step = run.steps[seen.step - 1] if 0 < seen.step <= len(run.steps) else None
        asked.update(_ids(seen, "tool-call"))
        for call_id in _ids(seen, *_ANSWERS):
            told[call_id] = min(told[call_id], asked[call_id]) + 1
            is_early = call_id in ever and not asked[call_id]
            if step is None or told[call_id] <= asked[call_id]:
                continue
            if is_early or step.index > begins:
                yield _of_turn(run, step, is_early=is_early, is_again=bool(asked[call_id]))
                return
            if run.source_format in SAVED_MESSAGES:
                yield _begun_behind_its_calls(run, step)
                return


def _ids(seen: SeenMessage, *kinds: str) -> list[str]:
    """Of calls, and of what is told of calls: a refused text has none."""
    return [str(part.get("tool_call_id")) for part in seen.parts_of(*kinds) if part.get("tool_name")]


def _begun_behind_its_calls(run: Run, step: Step) -> Reason:
    message = f"The request of {step_name(step)} answers a call, and the message that asks for it was not saved."
    return reason_at(run, "calls_not_saved", message, step)


def _of_turn(run: Run, step: Step, *, is_early: bool, is_again: bool) -> Reason:
    if is_early:
        message = f"The request of {step_name(step)} answers a call that the model asks for behind it."
        return reason_at(run, "other_course", message, step)
    which = "that is answered already" if is_again else "that no answer of the model asks for"
    return reason_at(run, "answer_contradicted", f"The request of {step_name(step)} answers a call {which}.", step)


def _doubled_ids(run: Run) -> Iterator[Reason]:
    """The loop makes none of the calls of an answer in which two have one id."""
    is_held = run.source_format in (*SAVED_MESSAGES, OPENAI_ITEMS, "native")
    if not is_held or is_of_recorder(run):
        return
    doubled = next((step for step, call in main_models(run) if _asks_twice(call)), None)
    made = doubled and next((each for each in main_steps(run) if each.index > doubled.index), None)
    if doubled and made:
        message = f"The answer of {step_name(doubled)} asks for two calls under one id; no loop makes them."
        yield reason_at(run, "call_ids_doubled", message, made)


def _asks_twice(call: ModelCall) -> bool:
    ids = [call_id for part in calls_in(call) if (call_id := part.get("tool_call_id"))]
    return len(set(map(str, ids))) < len(ids)


def _failed_with_a_result(run: Run) -> Iterator[Reason]:
    """A loop tells of a call that failed, or was denied, in words."""
    for step, call in run.tool_calls if run.source_format in SAVED_MESSAGES else ():
        result = None if call.result is None else call.result.value
        if call.outcome in ("failed", "denied") and isinstance(result, (dict, list)):
            message = f"S{step_name(step)[1:]} failed or was denied, and yet is answered with a result."
            yield reason_at(run, "call_contradicted", message, step)
            return


def _says_something(history: History) -> bool:
    """Whether the newest message is a request with anything but the system's prompt."""
    newest = seen_message(history.message, step=0)
    return newest.message.get("kind") == "request" and len(newest.parts) > len(newest.parts_of("system-prompt"))


def _answers_all(call: ModelCall, history: History) -> bool:
    """Whether the newest message answers the calls that were asked for, each once, and no other."""
    asked = Counter(str(part.get("tool_call_id")) for part in calls_in(call))
    told = Counter(str(part.get("tool_call_id")) for part in _told(history) if part.get("tool_name") is not None)
    return asked == told


def _told(history: History) -> list[JsonObject]:
    return seen_message(history.message, step=0).parts_of(*_ANSWERS)


def _is_within(before: History | None, history: History) -> bool:
    """Where spans were lost, nothing else says that two requests belong to one conversation."""
    return before is None or any(node == before for node in nodes(history) if node.length == before.length)


def _goes_on(call: ModelCall, history: History) -> bool:
    """One answer and one request longer than before; a history that was rewritten may have any length."""
    if call.history is None:
        return True
    node: History | None = history
    for added in range(_LOOK_BACK):
        if node is None:
            return True
        if node == call.history:
            return added == 2
        node = node.parent
    return True


# --- answers that the model was told otherwise -------------------------------------------------


def _other_answers(run: Run) -> Iterator[Reason]:
    """The first request that holds an answer of a tool in other words than the tool gave it."""
    told = (None, "success", "retried") if is_of_recorder(run) else (None, "success")
    given = {
        call.call_id: (step, call) for step, call in _own_calls(run) if call.outcome in told and _has_plain_answer(call)
    }
    counts = Counter(call.call_id for _, call in _own_calls(run))
    began_at, begun_with = _beginning(run)
    # Each request tells again what the one before it told; these histories need no second look.
    settled: set[str] = set()
    told_as_given: set[int] = set()
    for step, call in main_models(run):
        for node in _newly_told(run, call, settled):
            pairs = [(given.get(str(part.get("tool_call_id"))), part) for part in _answers_in(node)]
            due = [(pair, part) for pair, part in pairs if pair is not None and counts[pair[1].call_id] == 1]
            if node.message in begun_with:  # of later calls it tells what earlier turns gave under their ids
                due = [(pair, part) for pair, part in due if pair[0].index <= began_at]
            if run.agent.framework in GRAPHS:  # whose middleware may clear what the model was told before
                due = [(pair, part) for pair, part in due if pair[0].index not in told_as_given]
            for pair, part in due:
                is_told = pair[0].index <= step.index and part.get("outcome") in (None, _outcome_of(pair[1]))
                if is_told and (_is_other(run, pair[1], part) or _is_respelled(run, pair[1], node, part)):
                    yield _told_otherwise(run, step, pair, part)
                    return
                told_as_given.add(pair[0].index)
            goes_on = node.parent is None or node.parent.digest in settled
            if goes_on and all(pair[0].index <= step.index for pair, _ in due):
                settled.add(node.digest)


def _respelled_at_end(run: Run) -> Iterator[Reason]:
    """What tools beside the last answer gave is told in the messages at the end alone."""
    if run.final is None:
        return
    calls = {call.call_id: (step, call) for step, call in _own_calls(run)}
    for part in _answers_in(run.final):
        step, call = calls.get(str(part.get("tool_call_id")), (None, None))
        if step is not None and call is not None and _is_respelled(run, call, run.final, part):
            message = f"The messages at the end spell a number in the answer of {step_name(step)} otherwise."
            yield reason_at(run, "spelling_contradicted", message, step)


def _beginning(run: Run) -> tuple[int, set[Payload]]:
    """The step of the first request, and the messages in it."""
    for step, call in main_models(run)[:1]:
        return step.index, {node.message for node in nodes(call.history)}
    return 0, set()


def _own_calls(run: Run) -> list[tuple[Step, ToolCall]]:
    return [(step, step.call) for step in main_steps(run) if isinstance(step.call, ToolCall) and step.call.call_id]


def _outcome_of(call: ToolCall) -> str:
    return call.outcome or "success"


def _has_plain_answer(call: ToolCall) -> bool:
    return call.result is not None and (call.result.is_json or call.result.is_text)


def _newly_told(run: Run, call: ModelCall, settled: set[str]) -> list[History]:
    """Spans hold each request as it was sent. Elsewhere code of the team's may have rewritten what came before, which a
    replay puts in place; the newest message is the loop's own."""
    if call.history is None or not run.is_told_by_others:
        return [] if call.history is None else [call.history]
    return list(takewhile(lambda node: node.digest not in settled, nodes(call.history)))[::-1]


def _answers_in(node: History) -> list[JsonObject]:
    return [part for part in seen_message(node.message, step=0).parts_of("tool-return") if "content" in part]


def _is_other(run: Run, call: ToolCall, part: JsonObject) -> bool:
    """Spans tell one answer in several spellings (decision 007)."""
    by_letter = run.source_format == "native"
    return call.result is not None and answers_differ(call.result, part["content"], by_letter=by_letter)


def _is_respelled(run: Run, call: ToolCall, node: History, part: JsonObject) -> bool:
    """Of spans each exporter spells numbers as it does."""
    told = part["content"]
    if call.result is None or run.source_format != "native":
        return False
    return is_respelled(call.result, told, node.message, part, "content")


def _told_otherwise(run: Run, step: Step, pair: tuple[Step, ToolCall], part: JsonObject) -> Reason:
    tool, call = pair
    if call.result is not None and _is_cut_short(call.result.as_text(), part.get("content")):
        message = f"The request of {step_name(step)} shows the answer of {step_name(tool)} cut short."
        return reason_at(run, "answer_cut_short", message, step)
    if run.source_format == SPANS and call.result is not None and _is_emptied(call.result.parsed, part.get("content")):
        message = (
            f"The request of {step_name(step)} has an empty list where the span of {step_name(tool)} has values, as "
            "for a result that can be read only once, such as a generator."
        )
        return reason_at(run, "answer_read_once", message, step)
    if not _is_other(run, call, part):
        message = f"The request of {step_name(step)} spells a number in the answer of {step_name(tool)} otherwise."
        return reason_at(run, "spelling_contradicted", message, step)
    message = f"The answer of {step_name(tool)} is not what the request of {step_name(step)} told the model."
    return reason_at(run, "answer_contradicted", message, step)


def _is_cut_short(whole: str, told: JsonValue) -> bool:
    """A text that is the beginning of the answer, perhaps with a mark where the rest was left out."""
    if not isinstance(told, str):
        return False
    kept, given = "".join(_MARK.sub("", told).split()), "".join(whole.split())
    return bool(kept) and kept != given and given.startswith(kept)


def _is_emptied(whole: JsonValue, told: JsonValue) -> bool:
    """Whether some lists in it have become empty, and nothing else is another value."""
    if isinstance(whole, dict) and isinstance(told, dict) and whole.keys() == told.keys():
        return _are_emptied([(whole[key], told[key]) for key in whole])
    if isinstance(whole, list) and isinstance(told, list) and whole:
        return not told or (len(whole) == len(told) and _are_emptied(list(zip(whole, told, strict=True))))
    return False


def _are_emptied(pairs: list[tuple[JsonValue, JsonValue]]) -> bool:
    others = [pair for pair in pairs if not same_json(*pair)]
    return bool(others) and all(_is_emptied(*pair) for pair in others)


_MARK = re.compile(r"\s*(…|\.\.\.|[\[(<][^\])>]{0,30}(truncated|cut|omitted)[^\])>]{0,30}[\])>])\s*\Z", re.IGNORECASE)
