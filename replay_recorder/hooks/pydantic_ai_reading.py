"""What the recorder reads off Pydantic AI's own objects."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from typing import Any

from pydantic import ValidationError
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry, ToolFailed

from replay_recorder.context import Identity, current_identity
from replay_recorder.guard import guard
from replay_recorder.hooks.pydantic_ai_messages import (
    answer_value,
    contents_of,
    holds_still,
    json_value,
    message_text,
    metadata_value,
)
from replay_recorder.recorder import Recorder
from replay_recorder.redaction import safe_settings
from replay_recorder.tools.calls import error_of
from replay_recorder.writing.json_text import JsonText, name
from replay_recorder.writing.run_writer import NULL

ALWAYS_SAID = ("temperature", "top_p", "seed")
"""Settings that are written also when they were left to the provider, as null."""
LIMITS = ("request_limit", "tool_calls_limit", "input_tokens_limit", "output_tokens_limit", "total_tokens_limit")
_STOPPED = (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt)


def identity_of(recorder: Recorder, ctx: Any) -> Identity:
    """Who this is for, as the team's own callback reads it from the run's context."""
    identity = current_identity()
    if recorder.settings.context is not None:
        with guard("context callback"):
            return identity.with_facts(recorder.settings.context(ctx) or {})
    return identity


def was_stopped(error: BaseException) -> bool:
    """Whether the run was ended from outside and did not fail by itself."""
    return isinstance(error, _STOPPED)


def output_value(output: Any) -> Any:
    if output is None:
        return NULL
    return output if isinstance(output, str) else json_value(output)


def is_structured_dict(kind: Any) -> bool:
    """Whether it is what `StructuredDict` makes: a class of dicts that shows a schema and checks nothing by it."""
    return isinstance(kind, type) and issubclass(kind, dict) and hasattr(kind, "__is_model_like__")


@cache
def version() -> str | None:
    """Reading it takes a millisecond."""
    try:
        return metadata.version("pydantic-ai-slim")
    except metadata.PackageNotFoundError:
        return None


def limits(ctx: Any) -> dict[str, int] | None:
    """Where this run was to stop; not said when it shares its use with another run, as a sub-agent may."""
    if ctx.usage_limits is None or ctx.usage.requests:
        return None
    found = {limit: getattr(ctx.usage_limits, limit, None) for limit in LIMITS}
    return {limit: value for limit, value in found.items() if value is not None}


# --- requests and answers ----------------------------------------------------------------------


def instructions(messages: list[Any]) -> str:
    """The whole system prompt of the first request, resolved: its system prompts and behind them its instructions;
    empty when none was sent."""
    newest = next((message for message in reversed(messages) if message.kind == "request"), None)
    said = getattr(newest, "instructions", None)
    prompts = [part.content for message in messages for part in message.parts if part.part_kind == "system-prompt"]
    return "\n\n".join([*prompts, said] if said else prompts)


def settings_value(settings: Any) -> JsonText:
    """All settings of the request."""
    return json_value(safe_settings({**dict.fromkeys(ALWAYS_SAID), **(settings or {})}))


def registered_tools(ctx: Any) -> list[Any] | None:
    """The tools that the agent had at this moment; None where the library does not say."""
    tools = getattr(getattr(ctx, "tool_manager", None), "tools", None)
    if not isinstance(tools, dict):
        return None
    return [tool.tool_def for tool in tools.values() if tool.tool_def.kind != "output"]


class Expected:
    """An answer as the loop is about to take it into the history: with its stamps.

    Shallow, and compared by what may be put into it on the way: this is done at every step.
    """

    __slots__ = ("_contents", "_usage", "message")

    def __init__(self, response: Any, ctx: Any, request_context: Any) -> None:
        self.message = object.__new__(type(response))
        said = vars(self.message)
        said.update(vars(response), parts=list(response.parts))
        stamps = {"run_id": ctx.run_id, "conversation_id": ctx.conversation_id, "model_id": _serving(request_context)}
        for stamp, value in stamps.items():
            if said.get(stamp, value) is None:
                said[stamp] = value
        self._contents, self._usage = contents_of(response), dict(vars(response.usage))

    def is_what_came(self, message: Any) -> bool:
        if vars(message) != vars(self.message) or vars(message.usage) != self._usage:
            return False
        return holds_still(message, self._contents)


def _serving(request_context: Any) -> str | None:
    said = getattr(request_context, "model_id", None)
    return said or getattr(request_context.model, "model_id", None)


def answer_facts(response: Any) -> dict[str, Any]:
    """Why the answer ended, and what it cost."""
    usage = response.usage
    return {
        "finish_reason": name(response.finish_reason),
        "input_tokens": usage.input_tokens or None,
        "output_tokens": usage.output_tokens or None,
    }


def history_value(after: int | None, new: list[Any]) -> JsonText:
    """A history of the record format: what was added, and to which step's."""
    messages = ",".join([message_text(message) for message in new])
    start = "" if after is None else f'"after":{after},'
    return JsonText(f'{{{start}"messages":[{messages}]}}')


# --- calls of tools ----------------------------------------------------------------------------


def calls_in(message: Any) -> Iterator[Any]:
    return (part for part in message.parts if part.part_kind == "tool-call")


def answers_in(message: Any) -> Iterator[Any]:
    """What a request says of calls, be it a result or why there is none."""
    return (part for part in message.parts if part.part_kind in ("tool-return", "retry-prompt"))


def arguments_value(part: Any) -> Any:
    """As the model sent them: a string stays that string."""
    if part.args is None:
        return NULL
    return part.args if isinstance(part.args, str) else answer_value(part.args)


def retry_value(part: Any) -> JsonText | None:
    retry = getattr(part, "retry", None)
    return None if retry is None else json_value(retry)


def failure(ctx: Any, error: BaseException) -> tuple[str, dict[str, Any]]:
    """Outcome and fields of a call that did not give a value."""
    if isinstance(error, ToolFailed):
        return "failed", {"result": str(error.message)}
    if isinstance(error, ModelRetry):
        return "retried", {"result": error.message, "retry": _attempt(ctx, "model_retry")}
    if isinstance(error, ValidationError):
        details = json_value(error.errors(include_url=False, include_context=False))
        return "retried", {"result": details, "retry": _attempt(ctx, "validation_error")}
    if isinstance(error, CallDeferred | ApprovalRequired):
        told = {} if error.metadata is None else {"waits_with": metadata_value(error.metadata)}
        is_put_off = isinstance(error, CallDeferred)
        return "deferred" if is_put_off else "unapproved", {"waited_for": "answer" if is_put_off else "approval"} | told
    if was_stopped(error):
        return "interrupted", {}
    return "crashed", {"error": error_of(error)}


def _attempt(ctx: Any, cause: str) -> dict[str, Any]:
    return {"cause": cause, "attempt": ctx.retry + 1, "max_retries": ctx.max_retries}
