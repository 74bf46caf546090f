"""What a record says beside its messages, and says otherwise. A replay goes by the messages."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain, islice, takewhile

from sessions_app.core.history import History, nodes
from sessions_app.core.judge.last_calls import asked_last, waiting
from sessions_app.core.judge.listed_calls import listed_calls_contradict
from sessions_app.core.judge.reading import (
    LOOP_CAUSES,
    contradicting_model,
    first_requests,
    is_of_recorder,
    main_models,
    object_of,
    seen_message,
    seen_messages,
    step_name,
)
from sessions_app.core.judge.reasons import Reason, reason_at, reason_at_end
from sessions_app.core.judge.saved_input import saved_input_contradicts
from sessions_app.core.judge.system_prompt import instructions_contradict
from sessions_app.core.judge.unreadable import is_prompt
from sessions_app.core.payload import JsonValue, Payload
from sessions_app.core.replay.hand_overs import is_openai_agents
from sessions_app.core.replay.rewriting import has_prompt_of_code, read_rewriting
from sessions_app.core.replay.told_twice import tools_contradicted
from sessions_app.core.run import (
    EMPTY_END,
    EXCHANGES,
    SPANS,
    WAITING,
    ErrorInfo,
    ModelCall,
    Run,
    Step,
    ToolCall,
    is_of_library_recorder,
)


def record_gaps(run: Run) -> Iterator[Reason]:
    yield from _unreadable_input(run)
    yield from islice(chain(_decided_elsewhere(run), _resumed_elsewhere(run)), 1)
    yield from _prompts(run)
    yield from _saved_input(run)
    yield from _pasts(run)
    yield from _empty_end(run)
    yield from _earlier_answers(run)
    yield from _instructions(run)
    yield from _model(run)
    yield from _tools(run)
    yield from listed_calls_contradict(run)
    yield from islice(_errors(run), 1)


def _unreadable_input(run: Run) -> Iterator[Reason]:
    """A prompt is a text, or a list of texts and files; a replay begins with it, except where a graph made its own."""
    models = main_models(run)
    begins_with_it = bool(models) and models[0][1].history is None and run.prior is None
    prompts = [part for seen in first_requests(run) for part in seen.parts_of("user-prompt")]
    is_asked = begins_with_it or (bool(prompts) and not run.is_told_by_others)
    can_begin = run.input is None or not run.input.is_json or is_prompt(run.input)
    if run.source_format == "native" and is_asked and not can_begin:
        message = "The input is neither a text nor a list of texts and files; no replay can begin with it."
        yield reason_at(run, "input_contradicts", message, models[0][0])


def _decided_elsewhere(run: Run) -> Iterator[Reason]:
    """A run is resumed with what was decided of the calls that the messages before it leave open."""
    if run.source_format != "native" or is_openai_agents(run) or not run.decided or not run.steps:
        return
    before = (seen_message(node.message, step=0) for node in nodes(run.prior))
    asked = {part.get("tool_call_id") for seen in before for part in seen.parts_of("tool-call")}
    other = next((call_id for call_id in run.decided if call_id not in asked), None)
    if other is not None:
        message = f"The run says that it was resumed with the call {other[:60]}; no message before it asks for that."
        yield reason_at(run, "call_contradicted", message, run.steps[0])


def _resumed_elsewhere(run: Run) -> Iterator[Reason]:
    """Pydantic AI takes results for all calls that the last answer leaves open, and for no others."""
    if not is_of_recorder(run) or not run.decided or run.prior is None or not run.steps:
        return
    newest_first = [seen_message(node.message, step=0) for node in nodes(run.prior)]
    behind = list(takewhile(lambda each: each.message.get("kind") != "response", newest_first))
    answered = {part.get("tool_call_id") for each in behind for part in each.parts_of("tool-return", "retry-prompt")}
    asked = [part for each in newest_first[len(behind) :][:1] for part in each.parts_of("tool-call")]
    if {part.get("tool_call_id") for part in asked} - answered != run.decided.keys():
        message = "The run was resumed with results for other calls than those that the messages before it leave open."
        yield reason_at(run, "call_contradicted", message, run.steps[0])


def _prompts(run: Run) -> Iterator[Reason]:
    """The replay begins with the input; a first request that holds another number of prompts was not made of it."""
    models = main_models(run)
    first = models[0][1].history if models else None
    if not is_of_recorder(run) or run.input is None or first is None:
        return
    if run.deferred is not None:
        yield from _prompt_beside_decisions(run, first, models[0][0])
        return
    before = run.prior.length if run.prior else 0
    added = [seen_message(node.message, step=0) for node in nodes(first) if node.length > before]
    is_reworded = has_prompt_of_code(run)
    prompts = sum(len(seen.parts_of("user-prompt")) for seen in added)
    is_rewritten = is_reworded or prompts > 1 or len(first_requests(run)) > 1
    if added and (is_reworded or prompts != 1):
        message = "The first request does not hold the input as its one prompt."
        yield reason_at(run, "past_rewritten" if is_rewritten else "input_contradicts", message, models[0][0])


def _prompt_beside_decisions(run: Run, first: History, step: Step) -> Iterator[Reason]:
    """A run that is resumed may begin with a prompt of its own, beside what the calls gave along with their answers.
    The library joins messages of the turns before, so what is new stands behind the answer that made the calls."""
    newest_first = (seen_message(node.message, step=0) for node in nodes(first))
    behind = takewhile(lambda each: each.message.get("kind") != "response", newest_first)
    prompts = sum(len(each.parts_of("user-prompt")) for each in behind)
    given = sum(call.content is not None for each, call in run.tool_calls if each.index < step.index)
    if prompts <= given:
        message = "The run has an input, and its first request holds no prompt beside the answers it was resumed with."
        yield reason_at(run, "input_contradicts", message, step)


def _saved_input(run: Run) -> Iterator[Reason]:
    """All steps can be replayed; what the run was asked cannot be told."""
    if saved_input_contradicts(run):
        yield reason_at_end(run, "input_contradicts", "The saved input is not the prompt of the first request.")


def _pasts(run: Run) -> Iterator[Reason]:
    """A recorder tells where code rewrote what came before; a replay holds everything else against the loop. Others
    write the earlier turns down as their first request has them."""
    before = run.prior
    is_recorded = run.source_format == "native" and run.origin == "recorded"
    own = None if is_of_recorder(run) else 1
    for step, call in main_models(run)[:own] if is_recorded else ():
        if call.history is None:
            continue
        if before is not None and read_rewriting(step) is None and not _goes_on_from(call.history, before):
            message = f"The request of {step_name(step)} gives a different history from the one the run had."
            yield reason_at(run, "past_contradicted", message, step)
            return
        before = call.history if call.response is not None else before


def _empty_end(run: Run) -> Iterator[Reason]:
    if EMPTY_END in run.extra and any(call.history is not None for _, call in main_models(run)):
        message = "The run is said to have ended without any message, and its requests hold some."
        yield reason_at_end(run, "past_contradicted", message)


def _earlier_answers(run: Run) -> Iterator[Reason]:
    """No step of this run made the calls of earlier turns, so nothing but their messages says which tool answered.
    The first messages of a history that was cut may answer calls that it lost."""
    asked: dict[str, str] = {}
    is_begun = False
    for node in () if run.source_format in (SPANS, EXCHANGES) else [*nodes(run.prior)][::-1]:
        seen = seen_message(node.message, step=0)
        for part in seen.parts_of("tool-return"):
            name, own = asked.get(str(part.get("tool_call_id"))), part.get("tool_name")
            if name is None and is_begun and main_models(run):
                message = f"In an earlier turn {str(own)[:60]} answers a call that no answer makes."
                yield reason_at(run, "past_contradicted", message, main_models(run)[0][0])
                return
            if name is not None and isinstance(own, str) and own != name:
                message = f"In an earlier turn {own[:60]} answers a call of {name[:60]}."
                yield reason_at_end(run, "past_contradicted", message)
                return
        asked |= {str(part.get("tool_call_id")): str(part.get("tool_name")) for part in seen.parts_of("tool-call")}
        is_begun = is_begun or seen.message.get("kind") == "response"


def _goes_on_from(history: History, before: History) -> bool:
    return any(node == before for node in nodes(history) if node.length == before.length)


def _errors(run: Run) -> Iterator[Reason]:
    yield from _failures_with_answers(run)
    of_openai = run.source_format == "native" and is_openai_agents(run)
    yield from _errors_of_no_failure(run)
    if of_openai:
        yield from _other_refusals(run)
    if is_of_recorder(run) and is_of_library_recorder(run):  # a loop of one's own may word both as it likes
        yield from _other_errors(run)
    if run.source_format == "native":
        yield from _answers_of_none(run)
        yield from _outcomes_behind_the_limit(run)
    if run.source_format == EXCHANGES:
        yield from _failures_told_otherwise(run)


def _failures_told_otherwise(run: Run) -> Iterator[Reason]:
    """Of a call with an error the loop may give the model an answer in words."""
    ends: defaultdict[str, set[bool]] = defaultdict(set)
    for part in (part for seen in seen_messages(run) for part in seen.parts_of("tool-return")):
        ends[str(part.get("tool_call_id"))].add(part.get("outcome") == "failed")
    for step, call in run.tool_calls:
        said = ends[str(call.call_id)] - ({False} if step.error is not None else set())
        if said and (call.outcome == "failed") not in said:
            message = f"S{step_name(step)[1:]} has the outcome {call.outcome}; the model was told otherwise."
            yield reason_at(run, "answer_contradicted", message, step)


def _outcomes_behind_the_limit(run: Run) -> Iterator[Reason]:
    """The limit of tool calls ends a run before any call of the last answer is made."""
    error = run.error
    if error is None or error.type != "UsageLimitExceeded" or "tool_calls_limit" not in (error.message or ""):
        return
    for step, call in asked_last(run):
        if call.outcome is not None:
            message = (
                f"S{step_name(step)[1:]} has the outcome {call.outcome}; the limit of tool calls kept it from running."
            )
            yield reason_at(run, "answer_contradicted", message, step)


def _failures_with_answers(run: Run) -> Iterator[Reason]:
    """No replay gives both."""
    for step, model in main_models(run):
        if step.error is not None and model.response is not None and _is_whole(model):
            message = f"S{step_name(step)[1:]} has a whole answer, and an error as well."
            yield reason_at(run, "answer_contradicted", message, step)


def _errors_of_no_failure(run: Run) -> Iterator[Reason]:
    """A recorder writes an error only of what failed. Others may leave out what a call that failed came to."""
    waits = {step.index for step, _ in waiting(run)}
    is_whole = run.source_format == EXCHANGES or (run.source_format != SPANS and is_of_library_recorder(run))
    for step, call in run.tool_calls:
        if call.outcome is None and not is_whole:
            continue
        came_to = _without_failure(call, waits=step.index in waits)
        if step.error is None or (run.source_format == SPANS and _says_why_refused(step.error, call)):
            continue
        if came_to is not None:
            message = f"S{step_name(step)[1:]} {came_to}, and has an error as well."
            yield reason_at(run, "answer_contradicted", message, step)


def _without_failure(call: ToolCall, *, waits: bool) -> str | None:
    """What the call came to, where that is nothing that has an error."""
    if waits:
        return "waits for an answer"
    if call.outcome in _WITHOUT_ERROR:
        return f"has the outcome {call.outcome}"
    if call.outcome is None:
        return "never ran"
    return "was refused before it ran" if (call.retry or {}).get("cause") in LOOP_CAUSES else None


def _says_why_refused(error: ErrorInfo, call: ToolCall) -> bool:
    """The span of a call that Pydantic refused holds the exception too, with the words that the model was told."""
    told = call.result.parsed if call.result is not None else None
    if call.outcome != "retried" or not (error.type or "").endswith("ValidationError") or not isinstance(told, list):
        return False
    said = error.message or ""
    reasons = [f"  {each.get('msg')} [type={each.get('type')}" for each in told if isinstance(each, dict)]
    return said.startswith(f"{len(told)} validation error") and all(each in said for each in reasons)


def _is_whole(call: ModelCall) -> bool:
    """A stream that broke off leaves what had come, and says so."""
    return object_of(call.response).get("state") in (None, "complete")


_WITHOUT_ERROR = WAITING | {"success", "denied", "interrupted"}


def _other_refusals(run: Run) -> Iterator[Reason]:
    """The OpenAI Agents SDK says in words of its own that arguments are no JSON object, before a tool could. Of what a
    tool itself raised, the model may have been told nothing that it could be held against."""
    for step, call in run.tool_calls:
        error = step.error
        if error is None or call.outcome != "failed" or error.type != _REFUSED or error.message is None:
            continue
        is_due = error.message.startswith(_NOT_JSON) or not _are_an_object(call.arguments)
        if is_due and not _says_not_json(error.message, call.tool_name):
            message = f"The error of {step_name(step)} is not what the SDK says of arguments that it cannot read."
            yield reason_at(run, "answer_contradicted", message, step)


_REFUSED = "ModelBehaviorError"
_NOT_JSON = "Invalid JSON input for tool "
_NO_OBJECT = "expected a JSON object"


def _says_not_json(message: str, tool_name: str) -> bool:
    """A server's tool may be named without, or with, what stands before its name."""
    name, _, why = message.removeprefix(_NOT_JSON).partition(": ")
    is_named = bool(name) and (name.endswith(tool_name) or tool_name.endswith(name))
    is_whole = not why.startswith(_NO_OBJECT) or why == _NO_OBJECT
    return message.startswith(_NOT_JSON) and is_named and is_whole


def _are_an_object(arguments: Payload | None) -> bool:
    """As Python reads them; no arguments at all are an empty object."""
    value = None if arguments is None else arguments.value
    try:
        return value in (None, "") or isinstance(json.loads(value) if isinstance(value, str) else value, dict)
    except (ValueError, RecursionError):
        return False


def _other_errors(run: Run) -> Iterator[Reason]:
    """The recorder of Pydantic AI writes the words of a refusal or failure twice: in a result and its error."""
    for step, call in run.tool_calls:
        said = None if call.result is None or not call.result.is_text else call.result.value
        error = None if step.error is None else (step.error.type, step.error.message)
        named = _OF_TOOLS.get(call.outcome or "")
        if named is not None and said is not None and error not in (None, (named, said)):
            message = f"The error of {step_name(step)} does not say what the model was told."
            yield reason_at(run, "answer_contradicted", message, step)


_OF_TOOLS = {"retried": "ToolRetryError", "failed": "ToolFailedError"}
"""What the library makes of every `ModelRetry` and `ToolFailed` of a tool, by the outcome of the call; any other error
is the end of the run."""


def _answers_of_none(run: Run) -> Iterator[Reason]:
    """A denial that the model was told of is told as one; other loops than Pydantic AI's may word it as they like."""
    told = {} if is_of_recorder(run) or is_openai_agents(run) else _told_outcomes(run)
    for step, call in run.tool_calls:
        is_denied = call.outcome == "denied" and call.call_id in told and told[call.call_id] != "denied"
        if call.result is not None and (is_denied or call.outcome in _WITHOUT_ANSWER):
            message = f"S{step_name(step)[1:]} has an answer, and the outcome {call.outcome}."
            yield reason_at(run, "answer_contradicted", message, step)


_WITHOUT_ANSWER = WAITING | {"crashed", "interrupted"}


def _told_outcomes(run: Run) -> dict[str | None, JsonValue]:
    """What the messages say of each call's end, by its id."""
    parts = [part for seen in seen_messages(run) for part in seen.parts_of("tool-return")]
    return {call_id: part.get("outcome") for part in parts if isinstance(call_id := part.get("tool_call_id"), str)}


def _instructions(run: Run) -> Iterator[Reason]:
    """All steps can be replayed; with which instructions they were made cannot be told."""
    if instructions_contradict(run):
        message = "The run's instructions differ from the system prompt of its first request."
        yield reason_at_end(run, "instructions_contradicted", message)


def _tools(run: Run) -> Iterator[Reason]:
    """A replay rebuilds tools from one of the two, and finds the other in the request. Of runs that others tell nobody
    knows what the agent had, and the proof says what was taken from the recording."""
    found = None if run.is_told_by_others else tools_contradicted(run)
    if found is not None:
        yield reason_at(run, "tools_contradicted", f"{found[1][0].upper()}{found[1][1:]}.", found[0])


def _model(run: Run) -> Iterator[Reason]:
    """All steps can be replayed; which model the run was made with is told in two ways."""
    asked = contradicting_model(run)
    if asked is not None and run.origin == "recorded":
        message = f"The run names the model {run.model}; its first request names {asked}."
        yield reason_at_end(run, "model_contradicted", message)
