"""One call of a live tool, as it goes over the pipe to the process that runs it and back.

    {"what": "live_tool", "tool": name that the model knows, "name": name in its toolset, "toolset": id or null,
     "call_id", "retry", "now": ISO 8601 or null, "arguments": {…}}

is answered by one of `{"returned": {…}}`, `{"raised": {…}}`, `{"missing": {…}}` when the tool ran an agent of its own,
and `{"cannot": words}` when the tool did not run. Arguments and answers are JSON; files among them stay files.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry, ToolFailed
from pydantic_ai.messages import ToolReturn
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset
from pydantic_ai.toolsets._dynamic import DynamicToolset
from pydantic_ai.usage import RunUsage
from pydantic_core import InitErrorDetails, PydanticCustomError

from sessions_app.agents.loop.clock import PinnedClock
from sessions_app.agents.loop.outcomes import FixtureNotFound
from sessions_app.agents.loop.sub_agents import every_run_frozen
from sessions_app.agents.own_code.gate import ToolCannotRun, plain
from sessions_app.agents.own_code.registry import OwnAgent
from sessions_app.core.payload import JsonObject, JsonValue, compact_json
from sessions_app.core.replay.fixture_book import missing
from sessions_app.core.replay.marks import MARK

_RETURN: TypeAdapter[ToolReturn[Any]] = TypeAdapter(ToolReturn)
Run = Callable[[], Any]


# --- in the process of the tool


def run_tool(own: OwnAgent, question: JsonObject) -> JsonObject:
    """Runs the tool's function, and nothing else of the agent: no hooks, no checks, no instructions."""
    now = datetime.fromisoformat(question["now"]) if question["now"] else None
    clock = PinnedClock(now)
    try:
        with every_run_frozen() as misses:
            answer = _outcome(own, question)
        if misses:
            return {"missing": {"name": misses[0].miss.tool_name, "arguments": plain(misses[0].miss.arguments)}}
        return answer
    finally:
        clock.release()


def _outcome(own: OwnAgent, question: JsonObject) -> JsonObject:
    try:
        return {"returned": _return_body(asyncio.run(_called(own, question)))}
    except ToolCannotRun as refusal:
        return {"cannot": str(refusal)}
    except SystemExit as leaving:
        return {"cannot": f"crashed: sys.exit({'' if leaving.code is None else leaving.code})"}
    except Exception as error:
        return {"raised": _error_body(error)}
    except BaseException as end:  # by which an agent inside of it was stopped, also in a group of tasks
        return {"cannot": f"crashed: {type(end).__name__}: {end}"}


async def _called(own: OwnAgent, question: JsonObject) -> Any:
    name, identity = question["name"], question["toolset"]
    ctx: RunContext[Any] = RunContext(
        deps=own.deps,
        model=TestModel(),
        usage=RunUsage(),
        tool_name=name,
        tool_call_id=question["call_id"],
        retry=question["retry"],
    )
    leaves = [leaf for leaf in _leaves(own) if leaf.id == identity and not isinstance(leaf, DynamicToolset)]
    found = [leaf for leaf in leaves if isinstance(leaf, FunctionToolset) and name in leaf.tools]
    if len(found) == 1:
        return await _call_function(found[0], ctx, name, question["arguments"])
    others = [leaf for leaf in leaves if not isinstance(leaf, FunctionToolset)]
    if not found and len(others) == 1:
        return await _call_other(others[0], ctx, name, question["arguments"])
    raise ToolCannotRun(
        f"{question['tool']} cannot run live: {len(found) or 'no'} toolsets of the agent have a tool {name!r} that is "
        "there before a run begins."
    )


def _leaves(own: OwnAgent) -> list[AbstractToolset[Any]]:
    """What the agent has before a run begins."""
    found: list[AbstractToolset[Any]] = []
    given: Iterable[Any] = own.arguments.get("toolsets") or ()
    of_capabilities = [each.get_toolset() for each in own.arguments.get("capabilities") or ()]
    for toolset in (*own.agent.toolsets, *given, *of_capabilities):
        if isinstance(toolset, AbstractToolset):
            toolset.apply(found.append)
    return found


async def _call_function(leaf: FunctionToolset[Any], ctx: RunContext[Any], name: str, arguments: JsonObject) -> Any:
    tool = leaf.tools[name]
    _check_mark(name, tool.metadata)
    given = tool.function_schema.validator.validate_json(compact_json(arguments))
    seconds = tool.timeout if tool.timeout is not None else leaf.timeout
    try:
        async with asyncio.timeout(seconds):
            return await tool.function_schema.call(given, ctx)
    except TimeoutError:
        if seconds is None:
            raise
        raise ModelRetry(f"Timed out after {seconds} seconds.") from None  # in the library's words


async def _call_other(leaf: AbstractToolset[Any], ctx: RunContext[Any], name: str, arguments: JsonObject) -> Any:
    """A toolset of the team's own kind says itself which tools it has."""
    tool = (await leaf.get_tools(ctx)).get(name)
    if tool is None:
        raise ToolCannotRun(f"{name} cannot run live: its toolset has no such tool outside of a run.")
    _check_mark(name, tool.tool_def.metadata)
    given = tool.args_validator.validate_json(compact_json(arguments))
    return await leaf.call_tool(name, given, ctx, tool)


def _check_mark(name: str, metadata: Any) -> None:
    if (metadata or {}).get(MARK) != "read":
        raise ToolCannotRun(f'{name} cannot run live: the tool itself does not say metadata={{"{MARK}": "read"}}.')


def _return_body(value: Any) -> JsonObject:
    is_plain = not isinstance(value, ToolReturn)
    whole = ToolReturn(value) if is_plain else value
    try:
        body = _RETURN.dump_python(whole, mode="json", fallback=plain)
    except (ValueError, TypeError):
        body = {"return_value": plain(whole.return_value)}
    return {"is_plain": is_plain, "body": plain(body)}


def _error_body(error: Exception) -> JsonObject:
    body: JsonObject = {"type": type(error).__name__, "message": str(error)}
    match error:
        case ValidationError():
            lines = error.errors(include_url=False, include_context=False)
            return {**body, "title": error.title, "errors": plain(lines)}
        case CallDeferred():
            return {**body, "metadata": plain(error.metadata), "kind": error.kind}
        case ApprovalRequired():
            return {**body, "metadata": plain(error.metadata)}
    return body


# --- in the sealed process


def outcome_of(reply: JsonObject, tool: str) -> Any:
    """What the tool returned; raises what it raised."""
    if "returned" in reply:
        made = _RETURN.validate_python(reply["returned"]["body"])
        return made.return_value if reply["returned"]["is_plain"] else made
    if "raised" in reply:
        raise _error(reply["raised"])
    if "missing" in reply:
        raise FixtureNotFound(missing(reply["missing"]["name"], None, reply["missing"]["arguments"], ()))
    raise ToolCannotRun(str(reply.get("cannot") or f"{tool} was not allowed for this replay."))


def _error(body: JsonObject) -> Exception:
    """The library's own exceptions steer the loop; any other keeps its name and its words."""
    name, message = body["type"], body["message"]
    if name in ("ModelRetry", "ToolFailed"):
        return {"ModelRetry": ModelRetry, "ToolFailed": ToolFailed}[name](message)
    if name == "ApprovalRequired":
        return ApprovalRequired(body["metadata"])
    if name == "CallDeferred":
        return CallDeferred(body["metadata"], kind=body["kind"])
    if "errors" in body:
        return ValidationError.from_exception_data(body["title"], [_line(each) for each in body["errors"]])
    made: Exception = type(name, (Exception,), {})(message)
    return made


def _line(error: Any) -> InitErrorDetails:
    kind = PydanticCustomError(error["type"], error["msg"])
    return InitErrorDetails(type=kind, loc=tuple(error["loc"]), input=error["input"])


def question_of(
    ctx: RunContext[Any], *, tool: str, name: str, toolset: str | None, arguments: JsonValue, now: datetime | None
) -> JsonObject:
    return {
        "what": "live_tool",
        "tool": tool,
        "name": name,
        "toolset": toolset,
        "call_id": ctx.tool_call_id,
        "retry": ctx.retry,
        "now": now.isoformat() if now else None,
        "arguments": arguments,
    }
