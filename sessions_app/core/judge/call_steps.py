"""Whether the steps of a run are the calls that its answers ask for.

A replay takes calls from the answers. Where no tool ran, as beside a final answer, it never asks for the step, so a
step that tells of another call would go unnoticed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator
from itertools import islice, pairwise

from sessions_app.core.compare.strict import same_json
from sessions_app.core.history import nodes
from sessions_app.core.judge.conventions import fix_for
from sessions_app.core.judge.last_calls import calls_in
from sessions_app.core.judge.reading import (
    LOOP_CAUSES,
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
from sessions_app.core.ran_with import APPROVED, is_told, said_of
from sessions_app.core.replay.call_places import place_without_step
from sessions_app.core.replay.fixture_book import recorded_arguments
from sessions_app.core.replay.hand_overs import is_openai_agents
from sessions_app.core.replay.matching import Mismatch, Tally, first_mismatch
from sessions_app.core.run import (
    EXCHANGES,
    GRAPHS,
    OPENAI_AGENTS,
    OUTPUT_PROCESSED,
    PYDANTIC_AI,
    SKIPPED,
    SPANS,
    TOLD_TO_THE_MODEL,
    WAITING,
    ModelCall,
    Run,
    Step,
    ToolCall,
    broke_off_at,
    main_steps,
    tool_ran,
)


def call_step_gaps(run: Run) -> Iterator[Reason]:
    if run.source_format == "native" or run.is_told_by_others:
        yield from islice(_steps_of_other_calls(run), 1)
    if run.source_format == SPANS:
        yield from islice(_calls_told_twice(run), 1)
    if run.source_format == "native":
        yield from islice(_steps_without_calls(run), 1)
        yield from islice(_steps_out_of_place(run), 1)
        yield from islice(_steps_of_another_kind(run), 1)
        yield from islice(_steps_of_other_decisions(run), 1)
        yield from islice(_steps_approved_otherwise(run), 1)
        yield from islice(_refusals_with_more(run), 1)
        yield from islice(_resumed_in_part(run), 1)
    if is_of_recorder(run):
        yield from islice(_calls_without_steps(run), 1)
        yield from islice(_calls_of_no_answer(run), 1)
        yield from islice(_calls_that_wait_for_two_things(run), 1)
        yield from islice(_refusals_without_words(run), 1)
    else:
        yield from islice(_calls_never_answered(run), 1)
    if run.source_format == "native" and is_openai_agents(run):
        yield from islice(_calls_beside_made_ones(run), 1)
        yield from islice(_resumed_without_steps(run), 1)
        yield from islice(_calls_of_no_answer(run), 1)


def _steps_of_other_calls(run: Run) -> Iterator[Reason]:
    asked = _asked_for(run)
    told: Counter[tuple[int | None, str | None]] = Counter()
    for step, call in run.tool_calls:
        answer = _answer_before(run, step, call, asked)
        parts = asked.get((answer, call.call_id)) or []
        if _was_never_begun(run, step, call):  # its place among calls of the same id is the one of the answer
            number = told[step.parent, call.call_id]
            parts = parts[number : number + 1]
        told[step.parent, call.call_id] += 1
        names = {str(part.get("tool_name")) for part in parts}
        if names and call.tool_name not in names:
            message = f"At {step_name(step)} the model asked for {min(names)}, not for {call.tool_name}."
            yield reason_at(run, "call_contradicted", message, step)
        elif parts and call.arguments is not None:
            others = [found for part in parts if (found := _other_arguments(part, call)) is not None]
            if len(others) == len(parts):
                message = f"The arguments of {step_name(step)} are not those that the model gave: {others[0].path}."
                yield reason_at(run, "call_contradicted", message, step)
            elif len(parts) == 1 and _is_respelled(run, answer, call.arguments, parts[0]):
                message = f"The arguments of {step_name(step)} spell a number otherwise than the model did."
                yield reason_at(run, "spelling_contradicted", message, step)
            elif len(parts) == 1 and _are_written_otherwise(run, call.arguments, parts[0]):
                message = f"The arguments of {step_name(step)} are written otherwise than the model wrote them."
                yield reason_at(run, "spelling_contradicted", message, step)


def _calls_told_twice(run: Run) -> Iterator[Reason]:
    """More spans of one call than answers asked for it, of which none is a failed attempt at it."""
    asked: Counter[JsonValue] = Counter(part.get("tool_call_id") for _, parts in _answers(run) for part in parts)
    told: Counter[JsonValue] = Counter()
    for step, call in run.tool_calls:
        told[call.call_id] += 1
        if told[call.call_id] > asked[call.call_id] > 0:
            message = f"S{step_name(step)[1:]} tells of a call of which another span told before."
            yield reason_at(run, "call_contradicted", message, step)


def _is_respelled(run: Run, answer: int | None, arguments: Payload, part: JsonObject) -> bool:
    asking = run.steps[answer - 1].call if answer and run.source_format == "native" else None
    response = asking.response if isinstance(asking, ModelCall) else None
    return response is not None and is_respelled(arguments, part.get("args"), response, part, "args")


def _are_written_otherwise(run: Run, arguments: Payload, part: JsonObject) -> bool:
    """Recorders of ours and HTTP tell them twice in one form. Others may have an object here, and its text there."""
    sent, said = part.get("args"), arguments.value
    if is_of_recorder(run) or run.source_format == EXCHANGES:
        return not same_json(sent, said)
    are_texts = isinstance(sent, str) and isinstance(said, str)
    return run.source_format == "native" and bool(sent) and (said in (None, "") or (are_texts and sent != said))


def _answer_before(run: Run, step: Step, call: ToolCall, asked: Container[tuple[int | None, JsonValue]]) -> int | None:
    """The answer that asked for the call; records that others write need not say which one it was."""
    if step.parent is not None or is_of_recorder(run):
        return step.parent
    before = (index for index, _ in reversed(main_models(run)) if index.index < step.index)
    return next((each.index for each in before if (each.index, call.call_id) in asked), None)


def _was_never_begun(run: Run, step: Step, call: ToolCall) -> bool:
    """As when the loop refuses an answer in which an id stands twice."""
    is_silent = call.outcome is None and call.result is None and step.error is None
    return is_of_recorder(run) and is_silent


def _other_arguments(part: JsonObject, call: ToolCall) -> Mismatch | None:
    """Where they differ first; a text and the object that it spells are the same."""
    sent = part.get("args")
    given = recorded_arguments(None if sent is None else Payload.of(sent))
    return first_mismatch(given, recorded_arguments(call.arguments), raw=given, path="arguments", tally=Tally())


def _asked_for(run: Run) -> dict[tuple[int | None, JsonValue], list[JsonObject]]:
    """Calls by the step of the answer and their id, which may come again in one answer."""
    found: dict[tuple[int | None, JsonValue], list[JsonObject]] = {}
    for index, parts in _answers(run):
        for part in parts:
            if part.get("tool_call_id") is not None:
                found.setdefault((index, part["tool_call_id"]), []).append(part)
    return found


def _answers(run: Run) -> Iterator[tuple[int | None, list[JsonObject]]]:
    """The calls of each answer, by its step; None is the answer with which the run was resumed."""
    if run.agent.framework in (PYDANTIC_AI, OPENAI_AGENTS, *GRAPHS):
        yield None, _asked_before(run)
    for step, call in main_models(run):
        yield step.index, calls_in(call)


def _named(answer: int | None) -> str:
    return "the answer before this run" if answer is None else f"step {answer}"


def _asked_before(run: Run) -> list[JsonObject]:
    """The calls that this run was resumed with, as the answer of the run before asked for them."""
    if not run.decided or run.prior is None:
        return []
    answers = (seen_message(node.message, step=0) for node in nodes(run.prior))
    newest = next((seen for seen in answers if seen.message.get("kind") == "response"), None)
    parts = [] if newest is None else newest.parts_of("tool-call")
    return [part for part in parts if part.get("tool_call_id") in run.decided]


def _calls_without_steps(run: Run) -> Iterator[Reason]:
    told = Counter((step.parent, call.call_id) for step, call in run.tool_calls)
    for answer, parts in _answers(run):
        asked = [part.get("tool_call_id") for part in parts]
        for part in parts:
            key = (answer, part.get("tool_call_id"))
            if not told[key]:
                yield _without_step(run, answer, part, asked)
            told[key] -= 1


def _resumed_without_steps(run: Run) -> Iterator[Reason]:
    """Calls that the run says it was resumed with; the OpenAI Agents SDK makes them before it asks the model."""
    told = {call.call_id for step, call in run.tool_calls if step.parent is None}
    parts = _asked_before(run)
    asked = [part.get("tool_call_id") for part in parts]
    for part in parts:
        if part.get("tool_call_id") not in told:
            yield _without_step(run, None, part, asked)


def _resumed_in_part(run: Run) -> Iterator[Reason]:
    """A loop goes on from an answer with all of its calls; some frameworks keep those that were answered before."""
    if not run.decided or run.prior is None or run.agent.framework in (PYDANTIC_AI, OPENAI_AGENTS):
        return
    parts = seen_message(run.prior.message, step=0).parts_of("tool-call")
    asked = [part.get("tool_call_id") for part in parts]
    for part in parts:
        if part.get("tool_call_id") not in run.decided:
            yield _without_step(run, None, part, asked)


def _without_step(run: Run, answer: int | None, part: JsonObject, asked: list[JsonValue]) -> Reason:
    message = f"The call of {part.get('tool_name')} that {_named(answer)} asks for has no tool step of its own."
    place = place_without_step(run, answer or 0, asked, part.get("tool_call_id"))
    return Reason(code="tool_step_missing", message=message, step=place, fix=fix_for(run, "tool_step_missing").sentence)


def _calls_never_answered(run: Run) -> Iterator[Reason]:
    """Where a recording may leave out the steps of calls that the loop settled by itself, and ids come again: a replay
    has nothing to answer these with."""
    settled = _settled_by_the_loop(run)
    last_step_of = {step.call.call_id: step.index for step in main_steps(run) if isinstance(step.call, ToolCall)}
    for (step, call), _ in pairwise(main_models(run)):
        asked = [part.get("tool_call_id") for part in calls_in(call)]
        for part in calls_in(call):
            call_id = part.get("tool_call_id")
            if isinstance(call_id, str) and last_step_of.get(call_id, 0) < step.index and call_id not in settled:
                yield _without_step(run, step.index, part, asked)


def _settled_by_the_loop(run: Run) -> set[JsonValue]:
    """Ids of calls that the loop answered by itself: no tool ran, and a step need not tell of it."""
    parts = (part for seen in seen_messages(run) for part in seen.parts_of("tool-return"))
    return {part.get("tool_call_id") for part in parts if _is_of_the_loop(part)}


def _is_of_the_loop(part: JsonObject) -> bool:
    retry, content = part.get("retry"), part.get("content")
    is_refused = isinstance(retry, dict) and retry.get("cause") in LOOP_CAUSES
    is_written = isinstance(content, str) and content.startswith((SKIPPED, OUTPUT_PROCESSED))
    return is_refused or is_written or part.get("outcome") == "denied"


def _calls_beside_made_ones(run: Run) -> Iterator[Reason]:
    """Of the last answer; the OpenAI Agents SDK makes the calls of an answer, or refuses it as a whole."""
    if broke_off_at(run) is not None:
        return
    steps = {(step.parent, call.call_id) for step, call in run.tool_calls}
    for step, call in main_models(run)[-1:]:
        asked = [part.get("tool_call_id") for part in calls_in(call)]
        lacking = [part for part in calls_in(call) if (step.index, part.get("tool_call_id")) not in steps]
        if len(lacking) < len(asked):
            yield from (_without_step(run, step.index, part, asked) for part in lacking)


def _steps_out_of_place(run: Run) -> Iterator[Reason]:
    """Steps stand in the order in which they began: a call before the request that holds what it gave."""
    indexes = [step.index for step, _ in main_models(run)]
    following = dict(pairwise(indexes))
    for step, _ in run.tool_calls:
        end = following.get(step.parent) if step.parent is not None else None
        if end is not None and step.index > end:
            message = f"{step_name(step)} stands behind the request that holds its answer."
            yield reason_at(run, "call_contradicted", message, step)


def _steps_without_calls(run: Run) -> Iterator[Reason]:
    answers = {step.index for step, call in main_models(run) if call.response is not None}
    asked = Counter((index, part.get("tool_call_id") or None) for index, parts in _answers(run) for part in parts)
    for step, call in run.tool_calls:
        key = (step.parent, call.call_id or None)
        if step.parent in answers and (call.call_id or run.agent.framework == PYDANTIC_AI) and not asked[key]:
            message = f"The answer of step {step.parent} does not ask for the call of {step_name(step)}."
            yield reason_at(run, "call_contradicted", message, step)
        asked[key] -= 1


def _calls_that_wait_for_two_things(run: Run) -> Iterator[Reason]:
    """Of a call that its tool left open the step says twice what it waits for."""
    for step, call in run.tool_calls:
        outcome = _LEFT_OPEN.get(str(step.extra.get("waited_for")))
        if call.outcome in WAITING and outcome is not None and call.outcome != outcome:
            message = f"S{step_name(step)[1:]} has the outcome {call.outcome}, and is said to be {outcome} as well."
            yield reason_at(run, "call_contradicted", message, step)


_LEFT_OPEN = {"answer": "deferred", "approval": "unapproved"}
"""Outcomes of calls by what their tools had them wait for."""


def _refusals_without_words(run: Run) -> Iterator[Reason]:
    """A replay refuses an output where a later message tells of it. Behind the last answer that is the end."""
    models = main_models(run)
    if run.final is not None or not models:
        return
    for step, call in run.tool_calls:
        if step.parent == models[-1][0].index and call.is_output and call.outcome == "retried":
            message = f"No message tells in which words the output of {step_name(step)} was refused."
            yield reason_at(run, "tool_answer_missing", message, step)


def _steps_of_another_kind(run: Run) -> Iterator[Reason]:
    """The request says by which tools the output may come: a call of one is no tool's, and of another no output. Those
    that a run was resumed with were offered what its first request offers."""
    offered = {step.index: object_of(call.parameters).get("output_tools") for step, call in main_models(run)}
    resumed = next(iter(offered.values()), None)
    for step, call in run.tool_calls:
        tools = resumed if step.parent is None else offered.get(step.parent)
        if isinstance(tools, list) and call.is_output != any(_is_named(tool, call.tool_name) for tool in tools):
            is_said, is_so = ("an output", "a tool's") if call.is_output else ("a tool's", "an output")
            place = "after" if step.parent is None else "before"
            message = (
                f"The call of {step_name(step)} is said to be {is_said}, and is {is_so} by the request {place} it."
            )
            yield reason_at(run, "call_contradicted", message, step)


def _steps_of_other_decisions(run: Run) -> Iterator[Reason]:
    """What became of a call that the run was resumed with stands in its step, and in the run as well."""
    is_graph = run.agent.framework in GRAPHS
    if not (is_of_recorder(run) or is_openai_agents(run) or is_graph):
        return
    for step, call in run.tool_calls:
        word = run.decided.get(call.call_id or "") if step.parent is None else None
        is_approved = is_graph and word == "success" and call.outcome != "denied"
        is_told = call.outcome in _TOLD or word == "denied"
        if word is not None and is_told and word != call.outcome and not is_approved:
            message = f"The run says that {step_name(step)} ended as {word}; the step says {call.outcome or 'nothing'}."
            yield reason_at(run, "call_contradicted", message, step)


def _steps_approved_otherwise(run: Run) -> Iterator[Reason]:
    """Of what a call was approved with and what its tool was given; where a step says nothing of the latter, that is
    what the model sent."""
    for step, call in run.tool_calls if is_told(run) else ():
        approved = step.extra.get(APPROVED)
        if approved is None or call.arguments is None or said_of(step) or tool_ran(step) is False:
            continue
        if not same_json(approved, recorded_arguments(call.arguments)):
            message = f"S{step_name(step)[1:]} was approved with other arguments than it is said to have run with."
            yield reason_at(run, "call_contradicted", message, step)


def _refusals_with_more(run: Run) -> Iterator[Reason]:
    """Beside what it answers a tool gives nothing when it asks for another try, fails or never ran."""
    ended = {"retried": "asked for another try", "denied": "was denied"}
    if is_of_recorder(run):
        ended["failed"] = "failed"
    for step, call in run.tool_calls:
        more = "content" if call.content is not None else "metadata" if call.metadata is not None else None
        if call.outcome in ended and more is not None:
            message = f"S{step_name(step)[1:]} {ended[call.outcome]}, which takes no {more}, and holds some."
            yield reason_at(run, "call_contradicted", message, step)


_TOLD = TOLD_TO_THE_MODEL | {"success", "denied"}
"""Outcomes of calls whose answer went to the model. Of others a run says what somebody decided, and no more."""


def _is_named(tool: JsonValue, name: str) -> bool:
    return isinstance(tool, dict) and tool.get("name") == name


def _calls_of_no_answer(run: Run) -> Iterator[Reason]:
    """Calls before the first request are those with which a run was resumed, and it says with which."""
    models = main_models(run)
    for step, call in run.tool_calls:
        if models and step.parent is None and step.index < models[0][0].index and call.call_id not in run.decided:
            message = f"The run does not say that it was resumed with the call of {step_name(step)}."
            yield reason_at(run, "call_contradicted", message, step)
