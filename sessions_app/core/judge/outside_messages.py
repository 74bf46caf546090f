"""Messages that code outside of the loop put into a run: a replay, which has none of that code, cannot make them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from sessions_app.core.judge.last_calls import calls_in, kinds_said
from sessions_app.core.judge.reading import (
    first_requests,
    is_of_recorder,
    main_models,
    object_of,
    own_tools,
    seen_message,
    step_name,
)
from sessions_app.core.judge.reasons import Reason, reason_at
from sessions_app.core.payload import JsonValue
from sessions_app.core.replay.rewriting import read_rewriting, sent_otherwise
from sessions_app.core.run import (
    EXCHANGES,
    OPENAI_AGENTS,
    OPENAI_ITEMS,
    PYDANTIC_AI,
    SAVED_MESSAGES,
    ModelCall,
    Run,
    Step,
    ToolCall,
)


def outside_messages(run: Run) -> Iterator[Reason]:
    if is_of_recorder(run):
        yield from _added_at_once(run)
        yield from _queued(run)
        yield from _other_instructions(run)
    if is_of_recorder(run) or run.source_format in SAVED_MESSAGES:
        yield from _retries_from_outside(run)
    if run.source_format in SAVED_MESSAGES:
        yield from _refused_by_hooks(run)
        yield from _hidden_tools(run)
    if run.is_told_by_others or run.source_format == OPENAI_ITEMS or _is_of_own_loop(run):
        yield from _beside_answers(run)
    if run.is_told_by_others:
        yield from _behind_empty_answers(run)
        yield from _system_in_between(run)
    if run.source_format == EXCHANGES:
        yield from _not_carried(run)


def _is_of_own_loop(run: Run) -> bool:
    """Which wrote its record itself."""
    return run.source_format == "native" and run.agent.framework not in (PYDANTIC_AI, OPENAI_AGENTS)


def _system_in_between(run: Run) -> Iterator[Reason]:
    """Words of the system behind those of a user or of a tool: a loop puts them before everything else."""
    for step, call in main_models(run):
        newest = seen_message(call.history.message, step=0) if call.history else None
        if newest is not None and newest.parts_of("system-prompt"):
            message = f"The request of {step_name(step)} holds words of the system among those of the conversation."
            yield reason_at(run, "message_from_code", message, step)
            return


def _not_carried(run: Run) -> Iterator[Reason]:
    """Requests that go on from turns which stayed with the provider."""
    for step, call in main_models(run)[1:]:
        if call.history is None:
            message = f"The request of {step_name(step)} goes on from turns that it does not carry."
            yield reason_at(run, "history_rewritten", message, step)
            return


def _beside_answers(run: Run) -> Iterator[Reason]:
    """More messages than the calls say that their tools gave: most records do not tell who put them there. Tools of
    the OpenAI Agents SDK give none."""
    of_sdk = run.source_format == OPENAI_ITEMS
    kinds = ("user-prompt", "system-prompt") if of_sdk else ("user-prompt",)
    for (asking, _), (step, call) in pairwise(main_models(run)):
        newest = seen_message(call.history.message, step=0) if call.history else None
        is_behind = newest is not None and bool(newest.parts_of("tool-return", "retry-prompt"))
        beside = newest.parts_of(*kinds) if newest is not None and is_behind else []
        if len(beside) > (0 if of_sdk else len(_given_along(run, asking))):
            message = f"The request of {step_name(step)} holds a message beside the answers of tools; no step gave it."
            yield reason_at(run, "message_from_code", message, step)
            return


def _given_along(run: Run, asking: Step | None) -> list[ToolCall]:
    """Calls of one answer whose tools gave a message along with theirs."""
    at = None if asking is None else asking.index
    return [call for step, call in own_tools(run) if step.parent == at and call.content is not None]


def _behind_empty_answers(run: Run) -> Iterator[Reason]:
    """A loop asks again when an answer says nothing, and spans do not tell its words from those of a user."""
    for (_, asking), (step, call) in pairwise(main_models(run)):
        newest = seen_message(call.history.message, step=0) if call.history else None
        says_nothing = asking.response is not None and not kinds_said(asking)
        if says_nothing and newest is not None and newest.parts_of("user-prompt"):
            message = f"The request of {step_name(step)} holds a message behind an answer that says nothing."
            yield reason_at(run, "message_from_code", message, step)
            return


def _added_at_once(run: Run) -> Iterator[Reason]:
    """By a hook that sends more than the loop holds, or by code that makes a message of its own beside the first one,
    where the loop makes a single one."""
    models = main_models(run)
    first = [step for step, _ in models[:1] if "rewritten" not in step.extra and len(first_requests(run)) > 1]
    for step in first:
        message = f"The request of {step_name(step)} was sent with words that code outside of the loop put there."
        yield reason_at(run, "past_rewritten", message, step)
    for step in [step for step, _ in models if "words_added" in sent_otherwise(step)][:1]:
        message = (
            f"A hook sent more with the request of {step_name(step)} than the loop holds, and that was not recorded."
        )
        yield reason_at(run, "sent_otherwise", message, step)


def _queued(run: Run) -> Iterator[Reason]:
    """More prompts of a user behind an answer than its tools gave along, or words in place of what the calls gave. A
    run that is resumed may begin with a prompt of its own."""
    own = 0 if run.input is None else 1
    resumed = [(None, own, pair) for pair in main_models(run)[:1] if run.deferred is not None]
    later = [(asking, 0, pair) for (asking, _), pair in pairwise(main_models(run))]
    for asking, prompts, (step, call) in [*resumed, *later]:
        parts = seen_message(call.history.message, step=0).parts_of("user-prompt") if call.history else []
        if len(parts) > len(_given_along(run, asking)) + prompts or _is_refused_whole(run, asking, call):
            message = f"The request of {step_name(step)} holds a message that code outside of the loop put there."
            yield reason_at(run, _who_put_it(step), message, step)
            return


def _who_put_it(step: Step) -> str:
    """A history processor, where the recorder tells that it made another past; else a tool may have been it."""
    return "message_from_code" if read_rewriting(step) is None else "past_rewritten"


def _refused_by_hooks(run: Run) -> Iterator[Reason]:
    """An answer with calls, or the request behind it."""
    for (asking, _), (step, call) in pairwise(main_models(run)):
        if _is_refused_whole(run, asking, call):
            message = f"The request of {step_name(step)} holds a message that code outside of the loop put there."
            yield reason_at(run, "message_from_code", message, step)
            return


def _hidden_tools(run: Run) -> Iterator[Reason]:
    """The library's search looks through tools that no message names before it finds them."""
    for (asking, before), (step, _) in pairwise(main_models(run)):
        if any(part.get("tool_kind") == "tool-search" for part in calls_in(before)):
            message = f"The answer of {step_name(asking)} asks to search hidden tools, which were not saved."
            yield reason_at(run, "tool_not_offered", message, step)
            return


def _is_refused_whole(run: Run, asking: Step | None, call: ModelCall) -> bool:
    """Whether a hook refused an answer with its calls, of which none was made."""
    at = None if asking is None else asking.index
    if call.history is None or not any(step.parent == at for step, _ in run.tool_calls):
        return False
    newest = seen_message(call.history.message, step=0)
    return bool(newest.parts_of("retry-feedback")) and not newest.parts_of("tool-return", "retry-prompt")


def _retries_from_outside(run: Run) -> Iterator[Reason]:
    """Somebody outside asked for another try of a call, which counts otherwise than when a tool does."""
    for step, call in own_tools(run):
        is_resumed = call.call_id in run.decided
        if is_resumed and call.outcome == "retried" and (call.retry or {}).get("attempt") is None:
            message = f"The answer of {step_name(step)} came from outside and asked for another try."
            yield reason_at(run, "retry_from_outside", message, step)
            return


def _other_instructions(run: Run) -> Iterator[Reason]:
    """Instructions that are said to stay as they are, and do not: a toolset may be made anew at each request. Others
    are appended to what the model was told."""
    for (_, before), (step, call) in pairwise(main_models(run)):
        newest = seen_message(call.history.message, step=0) if call.history else None
        is_appended = newest is not None and bool(newest.parts_of("instruction-delta"))
        if is_appended or _lasting(before) != _lasting(call):
            message = f"The instructions of {step_name(step)} are others, and the record does not say what made them."
            yield reason_at(run, "message_from_code", message, step)
            return


def _lasting(call: ModelCall) -> list[JsonValue]:
    parts = object_of(call.parameters).get("instruction_parts") or []
    return [part.get("content") for part in parts if isinstance(part, dict) and not part.get("dynamic")]
