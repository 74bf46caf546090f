"""Tools that answer from the recording: nothing of the team's code runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from typing import Any, cast

from pydantic import ValidationError
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry, ToolFailed
from pydantic_ai.messages import ToolCallPart, ToolReturn
from pydantic_ai.tools import RunContext, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.toolsets.abstract import ToolsetTool
from pydantic_core import InitErrorDetails, PydanticCustomError, SchemaValidator, core_schema

from sessions_app.agents.loop.library import load_definition, load_prompt
from sessions_app.agents.loop.outcomes import FixtureNotFound, RecordedError
from sessions_app.agents.loop.replay_model import ReplayModel
from sessions_app.agents.loop.stage import Stage
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.replay.budgets import Budgets
from sessions_app.core.replay.fixture_book import FixtureBook, missing, sayable, was_never_answered
from sessions_app.core.run import WAITING, ErrorInfo, Fixture

_ANY_OBJECT = SchemaValidator(core_schema.dict_schema(core_schema.str_schema()))
IS_INTERRUPTED_WITHIN = 1.0
"""Seconds; a call that nobody interrupts in this time was never answered."""

_TURNS_OF_SIBLINGS = 50
"""Turns of the event loop, of which a recorded answer needs a few."""


_ADDED_BY_THE_LIBRARY = "tool-search"
"""The kind of the tool that the library offers beside tools that are loaded when they are looked for."""


class RawArguments(dict[str, Any]):
    """What a model sent in place of an object, for loops that hand it to the tool all the same."""

    def __init__(self, said: JsonValue) -> None:
        super().__init__()
        self.said = said


def said_in(arguments: JsonValue) -> JsonValue:
    """Arguments as the model sent them, read where they are JSON."""
    return Payload.of_text(arguments).parsed if isinstance(arguments, str) else arguments


class FrozenToolset(AbstractToolset[None]):
    """Offers the tools of the recorded moment and gives their recorded answers."""

    def __init__(self, model: ReplayModel, stage: Stage, budgets: Budgets) -> None:
        self._model = model
        self._stage = stage
        self._budgets = budgets
        self._definitions: dict[int, tuple[JsonObject, ToolDefinition]] = {}

    @property
    def id(self) -> str | None:
        return None

    async def get_tools(self, ctx: RunContext[None]) -> dict[str, ToolsetTool[None]]:
        offered = self._model.offered_at(ctx.run_step).tools
        own = (tool for tool in offered if tool.get("tool_kind") != _ADDED_BY_THE_LIBRARY)
        return {tool["name"]: self._tool(self._definition(tool)) for tool in own}

    def _definition(self, recorded: JsonObject) -> ToolDefinition:
        """Each is read once: most requests of a run have the same."""
        known = self._definitions.get(id(recorded))
        if known is None:
            known = self._definitions[id(recorded)] = (recorded, load_definition(recorded))
        return copy(known[1])

    def _tool(self, definition: ToolDefinition) -> ToolsetTool[None]:
        return ToolsetTool(
            toolset=self,
            tool_def=definition,
            max_retries=self._budgets.of_tool(definition.name),
            args_validator=_ANY_OBJECT,
        )

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[None], tool: ToolsetTool[None]
    ) -> Any:
        arguments = tool_args.said if isinstance(tool_args, RawArguments) else tool_args
        return await give_recorded(self._stage, name, ctx.tool_call_id, arguments)


class LibraryTools(AbstractCapability[None]):
    """The library's search for tools runs, for the loop needs what it finds; the next request tells whether that is
    what was recorded. What a search of the team's own found is taken from the recording."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._found: list[str] = []

    async def wrap_tool_execute(
        self, ctx: RunContext[None], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, handler: Any
    ) -> Any:
        if tool_def.tool_kind == _ADDED_BY_THE_LIBRARY:
            said = await give_recorded(self._stage, call.tool_name, call.tool_call_id, call.args_as_dict())
            found = said.get("discovered_tools") if isinstance(said, dict) else None
            self._found = [tool["name"] for tool in found or []]
        return await handler(args)

    def search(self, ctx: RunContext[None], queries: Sequence[str], tools: Sequence[ToolDefinition]) -> Sequence[str]:
        return self._found


async def give_recorded(
    stage: Stage,
    name: str,
    call_id: str | None,
    arguments: JsonValue,
    *,
    is_refused: Callable[[Fixture], bool] = lambda fixture: False,
) -> Any:
    """As the tool ended then: with a value, or by an exception.

    Raises `FixtureNotFound` for a call that had no end, and for an answer that is refused.
    """
    arguments = sayable(arguments)
    found = stage.fixture(name, call_id, arguments)
    if found.call.outcome == "interrupted" and found.call.result is None:
        # Something beside it ended the run meanwhile, and will do so again.
        await asyncio.sleep(IS_INTERRUPTED_WITHIN)
    if was_never_answered(found) or is_refused(found):
        raise FixtureNotFound(missing(name, call_id, arguments, [found]))
    stage.called(name, call_id, arguments, found)
    if found.is_unheard:
        await until_its_turn(found)
    return reenact(found)


def hold_back(book: FixtureBook, ctx: RunContext[Any], call: ToolCallPart, arguments: JsonValue) -> None:
    """As the tool did then that asked for an approval; somebody decided on the call while the run went on."""
    waited = book.awaited_approval(call.tool_name, call.tool_call_id, arguments)
    if waited is not None and not ctx.tool_call_approved:
        raise ApprovalRequired(metadata=waited.waits_with)


async def until_its_turn(fixture: Fixture) -> None:
    """Of calls beside each other one may have ended the run: behind those that were answered before, and before those
    whose answers came too late."""
    if fixture.call.outcome == "success":
        await asyncio.sleep(IS_INTERRUPTED_WITHIN)
    for _ in range(_TURNS_OF_SIBLINGS):
        await asyncio.sleep(0)


def reenact(fixture: Fixture) -> Any:
    """Let the call end as it ended: with a value, or with the exception that the loop turned into one."""
    call = fixture.call
    value = _value(call.result) if call.result else None
    if call.outcome in WAITING:
        raise CallDeferred if call.outcome == "deferred" else ApprovalRequired
    if call.outcome == "failed":
        raise ToolFailed(cast(Any, value))  # which the library tells as it is
    if call.outcome == "retried":
        is_invalid = (call.retry or {}).get("cause") == "validation_error"
        raise validation_error(call.tool_name, value) if is_invalid else ModelRetry(str(value))
    if call.outcome == "crashed" or (fixture.error is not None and call.result is None):
        raise RecordedError(fixture.error or ErrorInfo(type=None, message=None))
    if call.metadata is None and call.content is None and not fixture.reveals:
        return value
    content = load_prompt(call.content.value) if call.content else None
    metadata = deepcopy(call.metadata.value) if call.metadata else None
    return ToolReturn(return_value=value, content=content, metadata=metadata, tools=list(fixture.reveals) or None)


def _value(result: Payload) -> Any:
    """What the tool gave: JSON, a text, or bytes. The team's code may change what it gets, and not the recording."""
    return deepcopy(result.value) if result.is_json or result.is_text else result.content


def validation_error(title: str, content: JsonValue) -> ValidationError:
    """The recorded error list as the exception that the loop makes the same list of."""
    items = content if isinstance(content, list) else [content]
    return ValidationError.from_exception_data(title, [_line(item) for item in items])


def _line(item: JsonValue) -> InitErrorDetails:
    item = item if isinstance(item, dict) else {"msg": str(item)}
    error = PydanticCustomError(cast(Any, str(item.get("type", "value_error"))), str(item.get("msg", "")))
    said = item.get("loc")
    loc = tuple(each for each in said if isinstance(each, str | int)) if isinstance(said, list) else ()
    return InitErrorDetails(type=error, loc=loc, input=item.get("input"))
