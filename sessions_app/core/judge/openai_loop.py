"""Where the loop of the OpenAI Agents SDK did something that the loop which replays its recordings cannot do.

What can be put in place is put in place by the replay (`agents/loop/openai_observer.py`); the rest is said here
beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, takewhile

from sessions_app.core.history import History, nodes
from sessions_app.core.judge.handoffs import agent_gaps, agent_name_gap, last_agent_gap
from sessions_app.core.judge.last_calls import asked_last, calls_in, is_settled
from sessions_app.core.judge.reading import (
    first_requests,
    main_models,
    seen_message,
    step_name,
    value_of,
)
from sessions_app.core.judge.reasons import Reason, reason_at, reason_at_end
from sessions_app.core.payload import JsonObject, JsonValue, Payload, canonical_json
from sessions_app.core.replay.hand_overs import is_openai_agents
from sessions_app.core.replay.plan import repeated_requests
from sessions_app.core.run import ModelCall, Run, Step, ToolCall, main_steps, was_stopped
from sessions_app.core.shared_values import once_each

Essence = tuple[bytes, ...]
ENDED_AT_TOOLS = frozenset({"ended_by_tools", "too_many_turns"})
"""Reasons with which the recorded end is what the loop has when it asks the model once more."""


def openai_gaps(run: Run) -> Iterator[Reason]:
    if not is_openai_agents(run):
        return
    for check in _CHECKS:
        yield from check(run)


# --- how it began ------------------------------------------------------------------------------


def _begins_with_nothing(run: Run) -> Iterator[Reason]:
    """The SDK sends its instructions alone; the loop that replays its recordings asks nothing without a message."""
    for step, call in main_models(run)[:1]:
        if call.history is None and value_of(run.input) == []:
            message = "The run was started with an empty input; a replay has no message to begin with."
            yield reason_at(run, "begins_with_nothing", message, step)


def _other_input(run: Run) -> Iterator[Reason]:
    """A replay begins with what the first request holds, unless that is one prompt."""
    for step, _ in main_models(run)[:1]:
        asked = [part for seen in first_requests(run) for part in seen.parts]
        said = {_text(part.get("content")) for part in [*_prior(run), *asked]}
        if _is_prompt(asked):
            continue
        is_empty = value_of(run.input) == [] and run.deferred is None
        if not _texts_in(run.input) <= said or (is_empty and asked):
            message = f"The input of the run and the request of {step_name(step)} say different things."
            yield reason_at(run, "input_contradicts", message, step)
        elif not (_prompts_in(run.input, asked) or _prompts_in(run.input, [*_prior(run), *asked])):
            message = f"The request of {step_name(step)} holds another number of prompts than the input of the run."
            yield reason_at(run, "prompts_beside_input", f"{message} {_UNANSWERED}", step)


_UNANSWERED = (
    "A session that ended with a prompt which nobody answered brings more; a replay cannot tell whose they are."
)


def _other_prompt(run: Run) -> Iterator[Reason]:
    """The prompt of the first request is another one than the run was given."""
    for step, _ in main_models(run)[:1]:
        asked = [part for seen in first_requests(run) for part in seen.parts]
        given = run.input if run.source_format == "native" else None
        if given is None or not _is_prompt(asked):
            continue
        if all(part.get("content") != value_of(given) for part in asked):
            message = f"The request of {step_name(step)} holds another prompt than the input of the run."
            yield reason_at(run, "input_contradicts", message, step)


def _answers_of_nobody(run: Run) -> Iterator[Reason]:
    """What the first request tells of calls is told to the replay; it must be of calls that were made, or come from the
    items that the run was started with."""
    for step, call in main_models(run)[:1]:
        is_told = run.deferred is not None or (run.source_format == "native" and _given(run) is not None)
        if call.history is None or not is_told:
            continue
        parts = [part for node in nodes(call.history) for part in _parts(node.message)]
        new = parts if run.deferred is not None else [part for seen in first_requests(run) for part in seen.parts]
        asked = {part.get("tool_call_id") for part in [*_prior(run), *parts] if part.get("part_kind") in _CALLS}
        told = {part.get("tool_call_id") for part in new if part.get("part_kind") == "tool-return"}
        if told - asked - _ids_in(_given(run)):
            message = f"The request of {step_name(step)} holds an answer to a call that nobody asked for."
            yield reason_at(run, "input_contradicts", message, step)


_CALLS = ("tool-call", "builtin-tool-call")


def _given(run: Run) -> JsonValue:
    """What the run was started with: a text, or items."""
    return run.extra.get("input_items", value_of(run.input))


def _ids_in(given: JsonValue) -> set[JsonValue]:
    rows = [row for row in given if isinstance(row, dict)] if isinstance(given, list) else []
    ids = (row.get(key) for row in rows for key in ("call_id", "approval_request_id", "id"))
    return {each for each in ids if isinstance(each, str)}


def _is_prompt(asked: list[JsonObject]) -> bool:
    """A replay makes it of the input, and compares it with the request."""
    kinds = [part.get("part_kind") for part in asked]
    return kinds.count("user-prompt") == 1 and set(kinds) <= {"user-prompt", "system-prompt"}


def _prompts_in(input: Payload | None, asked: list[JsonObject]) -> bool:
    """Whether these parts hold as many prompts as the input, so that nobody's words stand beside it. An input may
    begin with earlier turns, of which the request adds the last words alone."""
    value = value_of(input)
    rows = [{"role": "user"}] if isinstance(value, str) else value if isinstance(value, list) else None
    prompts = [part for part in asked if part.get("part_kind") == "user-prompt"]
    return (
        rows is None
        or not prompts
        or len(prompts) == sum(isinstance(row, dict) and row.get("role") == "user" for row in rows)
    )


def _texts_in(input: Payload | None) -> set[str]:
    """Of a prompt, or of items as the SDK takes them, what a user or a tool says in a single text."""
    value = value_of(input)
    if isinstance(value, str):
        return {value}
    rows = [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
    said = (row.get("output", row.get("content")) for row in rows if row.get("role") != "assistant")
    return {text for text in said if isinstance(text, str)}


def _prior(run: Run) -> list[JsonObject]:
    return [part for node in nodes(run.prior) for part in _parts(node.message)]


def _text(content: JsonValue) -> str:
    return content if isinstance(content, str) else ""


# --- what happened on the way ------------------------------------------------------------------


def _rewritten(run: Run) -> Iterator[Reason]:
    """A replay puts a history in place that was cut; what code of the team wrote into it, it cannot know."""
    found = rewritten_requests(run)
    if found is not None:
        before, after = found
        message = (
            f"The request of {step_name(after)} does not go on from {step_name(before)}: code such as a handoff's "
            "filter wrote its history anew, and does not run in a replay."
        )
        yield reason_at(run, "history_rewritten", message, after)


@once_each
def rewritten_requests(run: Run) -> tuple[Step, Step] | None:
    """The first request whose history was written anew, behind the one from which it does not go on."""
    for (before, asked), (after, call) in pairwise(main_models(run)):
        if call.history is None or asked.history is None or _goes_on(call.history, asked.history):
            continue
        answered = {part.get("tool_call_id") for part in calls_in(asked)}
        if not _is_known(call.history, _known_before(run, after), answered):
            return before, after
    return None


def _attempt_as_step(run: Run) -> Iterator[Reason]:
    """The recorder writes all attempts at a request into its one step."""
    again = repeated_requests(run) if run.source_format == "native" else {}
    for step, _ in main_models(run):
        if step.index in again:
            after = run.steps[again[step.index] - 1]
            message = f"{step_name(step)} is a failed attempt at {step_name(after)}, which no recorder keeps as a step."
            yield reason_at(run, "attempt_as_step", message[0].upper() + message[1:], step)
            return


def _words_from_code(run: Run) -> Iterator[Reason]:
    """Behind an answer the SDK says what the tools gave, and nothing of its own."""
    for (_, asked), (after, call) in pairwise(main_models(run)):
        if call.history is None or asked.history is None or not _goes_on(call.history, asked.history):
            continue
        if {"user-prompt", "system-prompt"} & {part.get("part_kind") for part in _parts(call.history.message)}:
            message = f"The request of {step_name(after)} holds a message that code outside of the loop put there."
            yield reason_at(run, "message_from_code", message, after)
            return


def _other_instructions(run: Run) -> Iterator[Reason]:
    """Of one agent, whose instructions are a text: they stay as they are, from the handoff to it on."""
    if run.source_format != "native" or run.origin != "recorded":
        return
    known = _said_at_handoffs(run)
    for step, call in main_models(run):
        agent = step.extra.get("agent")
        if call.history is None or not isinstance(agent, str) or "dynamic_instructions" in step.extra:
            continue
        newest = seen_message(call.history.message, step=0).message
        said = newest.get("instructions")
        if newest.get("kind") == "request" and known.setdefault(agent, said) != said:
            message = f"The instructions of {step_name(step)} are others than before, and no code is said to make them."
            yield reason_at(run, "instructions_changed", message, step)
            return


def _said_at_handoffs(run: Run) -> dict[str, JsonValue]:
    """The instructions of each agent that a run was handed over to. Those that are no text are made by code, which its
    requests tell; else the agent has none."""
    said = [step.extra.get("handoff") for step in run.steps]
    return {
        each["to"]: each.get("instructions")
        for each in said
        if isinstance(each, dict) and isinstance(each.get("to"), str)
    }


def _known_before(run: Run, step: Step) -> set[Essence]:
    """What had been said when this request was made."""
    known, visited = {_essence(part) for part in _prior(run)}, {node.digest for node in nodes(run.prior)}
    for _, call in [pair for pair in main_models(run) if pair[0].index < step.index]:
        new = list(takewhile(lambda node: node.digest not in visited, nodes(call.history)))
        visited.update(node.digest for node in new)
        told = [node.message for node in new] + ([call.response] if call.response else [])
        known.update(_essence(part) for message in told for part in _parts(message))
    return known


def _goes_on(history: History, before: History) -> bool:
    return history != before and any(node == before for node in nodes(history))


def _is_known(history: History, known: set[Essence], answered: set[JsonValue]) -> bool:
    """Whether all of it was there before, and the answers to the last calls are the newest of it."""
    answers = [part for part in _parts(history.message) if part.get("part_kind") == "tool-return"]
    told = {part.get("tool_call_id") for part in answers} & answered
    older = [part for node in nodes(history) for part in _parts(node.message) if part not in answers]
    return told == answered and all(_essence(part) in known for part in older)


def _parts(message: Payload) -> list[JsonObject]:
    return seen_message(message, step=0).parts


def _essence(part: JsonObject) -> Essence:
    """What the model reads of a part; ids and the like may be left out when it is sent again."""
    read = ("part_kind", "content", "tool_name", "args", "tool_call_id")
    return tuple(canonical_json(part.get(key)) for key in read)


def _asked_again(run: Run) -> Iterator[Reason]:
    """Pydantic AI's loop tells the model why it is asked again."""
    for (step, call), (after, later) in pairwise(main_models(run)):
        if call.response is not None and not _says_something(call.response) and later.history is not None:
            message = f"The answer of {step_name(step)} says nothing, and the model was asked again without a word."
            yield reason_at(run, "asked_again", f"{message} A replay would tell it why.", after)
            return


def _stopped_calls(run: Run) -> Iterator[Reason]:
    """Something else than a tool beside it ended the call, such as a guardrail that tripped meanwhile."""
    if was_stopped(run.error):
        return
    crashed = {step.parent for step in main_steps(run) if step.error is not None and isinstance(step.call, ToolCall)}
    for step in main_steps(run):
        if _was_interrupted(step) and step.parent not in crashed:
            message = f"{step_name(step).capitalize()} was stopped from outside of the loop before it had an answer."
            yield reason_at(run, "tool_answer_missing", message, step)
            return


def _was_interrupted(step: Step) -> bool:
    call = step.call
    return isinstance(call, ToolCall) and call.outcome == "interrupted" and call.result is None and step.error is None


# --- how it ended ------------------------------------------------------------------------------


def _too_many_turns(run: Run) -> Iterator[Reason]:
    if run.error is not None and run.error.type == "MaxTurnsExceeded":
        message = (
            "The run was out of turns (`max_turns`), of which a replay knows nothing: it would ask the model again."
        )
        yield reason_at_end(run, "too_many_turns", message)


def _ended_without_words(run: Run) -> Iterator[Reason]:
    last = _last(run)
    if last is not None and last.response is not None and not _says_something(last.response) and run.status == "ok":
        message = "The last answer says nothing, which the OpenAI Agents SDK takes for an empty output. A replay would"
        yield reason_at_end(run, "empty_answer", f"{message} ask the model again.")


def _ended_by_tools(run: Run) -> Iterator[Reason]:
    """With what they gave, or what code of the team made of it: `tool_use_behavior`, a handler of errors."""
    if ended_by_tools(run):
        names = step_name(asked_last(run)[-1][0])
        message = f"The run ended behind {names} without a further answer of the model, as `tool_use_behavior` or a"
        yield reason_at_end(run, "ended_by_tools", f"{message} handler can decide. A replay would ask the model again.")


def ended_by_tools(run: Run) -> bool:
    """Whether the SDK took what the last calls gave for the end, so that no answer of the model is missing."""
    last = _last(run)
    if not is_openai_agents(run) or last is None or run.status != "ok" or not calls_in(last):
        return False
    asked = asked_last(run)
    return bool(asked) and all(is_settled(*pair, or_waits=False) for pair in asked)


def _last(run: Run) -> ModelCall | None:
    models = main_models(run)
    return models[-1][1] if models else None


def _says_something(response: Payload) -> bool:
    """A call, or a text that is not empty."""
    return any(_says(part) for part in seen_message(response, step=0).parts)


def _says(part: JsonObject) -> bool:
    return part.get("part_kind") == "tool-call" or (part.get("part_kind") == "text" and bool(part.get("content")))


_CHECKS = (
    agent_gaps,
    last_agent_gap,
    agent_name_gap,
    _begins_with_nothing,
    _other_input,
    _other_prompt,
    _answers_of_nobody,
    _rewritten,
    _words_from_code,
    _attempt_as_step,
    _other_instructions,
    _asked_again,
    _stopped_calls,
    _too_many_turns,
    _ended_without_words,
    _ended_by_tools,
)
