"""The tools of the team's agent, their bodies behind the gate, and servers left unopened."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets import AbstractToolset, WrapperToolset
from pydantic_ai.toolsets._dynamic import DynamicToolset
from pydantic_ai.toolsets.abstract import ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from replay_recorder.hooks.pydantic_ai_given import code_between
from sessions_app.agents.loop.library import load_definition
from sessions_app.agents.loop.replay_model import ReplayModel
from sessions_app.agents.own_code.gate import BodyReached, Gate
from sessions_app.core.payload import JsonObject
from sessions_app.core.replay.budgets import Budgets
from sessions_app.core.replay.marks import MARK, without_mark

_DRAWN = re.compile(r"<(.+):[0-9a-f]+>")
_ANY_OBJECT = SchemaValidator(core_schema.dict_schema(core_schema.str_schema()))


class Unopened(AbstractToolset[Any]):
    """In the place of a toolset that has to be opened, such as an MCP server. The recording has its tools."""

    def __init__(self, identity: str | None) -> None:
        self._identity = identity

    @property
    def id(self) -> str | None:
        return self._identity

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        return {}

    async def call_tool(self, name: str, tool_args: Any, ctx: RunContext[Any], tool: ToolsetTool[Any]) -> Any:
        raise BodyReached


RunLive = Callable[[ToolCallPart, str, str | None, dict[str, Any], RunContext[Any]], Any]
"""Runs a tool in the process that has a network: its call, its name in its toolset, the toolset's id, validated
arguments."""


@dataclass
class Elsewhere(WrapperToolset[Any]):
    """In front of a toolset's own functions: the last place where a call can be sent to another process."""

    gate: Gate
    run_live: RunLive

    @property
    def id(self) -> str | None:
        return self.wrapped.id

    async def call_tool(self, name: str, tool_args: Any, ctx: RunContext[Any], tool: ToolsetTool[Any]) -> Any:
        call = self.gate.called_now()
        self.gate.hear_function(tool_args, code_between(self.wrapped, tool))
        if not self.gate.goes_live(call.tool_name):
            return await self.gate.run_here(call, lambda: self.wrapped.call_tool(name, tool_args, ctx, tool))
        return self.run_live(call, getattr(tool, "original_name", None) or name, self.wrapped.id, tool_args, ctx)


@dataclass
class Leaves:
    """Which toolsets were left unopened, and what the recording knows of their tools."""

    model: ReplayModel
    budgets: Budgets
    gate: Gate
    run_live: RunLive
    unopened: set[str | None] = field(default_factory=set)

    def closed(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        """The same tools without anything that has to be opened."""
        return toolset.visit_and_replace(self._replace)

    def _replace(self, leaf: AbstractToolset[Any]) -> AbstractToolset[Any]:
        if isinstance(leaf, DynamicToolset):
            return _closing(leaf, self)
        if isinstance(leaf, WrapperToolset):
            return leaf
        if type(leaf).__aenter__ is AbstractToolset.__aenter__:
            return Elsewhere(leaf, self.gate, self.run_live)
        self.unopened.add(leaf.id)
        return Unopened(leaf.id)

    def comparable(self, offered: dict[str, ToolsetTool[Any]]) -> dict[str, ToolsetTool[Any]]:
        """Without what models never see and what differs for no reason: marks for replays that the recorded tools
        did not have, and ids that are drawn anew for each object."""
        recorded = {tool["name"]: tool for tool in self.model.nearest.tools}
        return {name: _comparable(tool, recorded.get(name, {})) for name, tool in offered.items()}

    def completed(
        self, offered: dict[str, ToolsetTool[Any]], toolset: AbstractToolset[Any]
    ) -> dict[str, ToolsetTool[Any]]:
        """With the recorded tools of what was left unopened, in the recorded order. A wrapped server's tools do not
        say where they are from; nor do those that today's code no longer has, which are offered on then."""
        if not self.unopened:
            return offered
        recorded = {tool["name"]: tool for tool in self.model.nearest.tools}
        for name, tool in recorded.items():
            if name not in offered and tool.get("toolset_id") in {None, *self.unopened}:
                offered[name] = self._recorded(name, tool, toolset)
        names = list(recorded)
        return dict(sorted(offered.items(), key=lambda item: names.index(item[0]) if item[0] in names else len(names)))

    def _recorded(self, name: str, tool: Any, toolset: AbstractToolset[Any]) -> ToolsetTool[Any]:
        return ToolsetTool(
            toolset=toolset,
            tool_def=load_definition(tool),
            max_retries=self.budgets.of_tool(name),
            args_validator=_ANY_OBJECT,
        )


def _comparable(tool: ToolsetTool[Any], recorded: JsonObject) -> ToolsetTool[Any]:
    found, marks = tool.tool_def, tool.tool_def.metadata
    if marks and MARK in marks and MARK not in (recorded.get("metadata") or {}):
        marks = without_mark(marks)
    was, now = recorded.get("capability_id"), found.capability_id
    identity = was if was and now and _stem(was) == _stem(now) else now
    return replace(tool, tool_def=replace(found, metadata=marks, capability_id=identity))


def _stem(identity: str) -> str:
    """Capabilities without an id are called `<Name:…>`, with six digits that nobody chose."""
    return _DRAWN.sub("<\\1>", identity)


def _closing(dynamic: DynamicToolset[Any], leaves: Leaves) -> DynamicToolset[Any]:
    """What the team's function makes at each step is looked through as well."""

    async def make(ctx: RunContext[Any]) -> AbstractToolset[Any] | None:
        made = dynamic.toolset_func(ctx)
        made = await made if inspect.isawaitable(made) else made
        return None if made is None else leaves.closed(made)

    return DynamicToolset(make, per_run_step=dynamic.per_run_step, id=dynamic.id)


@dataclass
class Bodies(WrapperToolset[Any]):
    """Stands between the loop and every tool of the agent's, whatever made the tool."""

    gate: Gate
    leaves: Leaves

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        offered = await super().get_tools(ctx)
        for name, tool in offered.items():
            self.gate.offered(name, tool.tool_def)
        return self.leaves.completed(self.leaves.comparable(offered), self)

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        is_unopened = tool.toolset is self
        self.gate.hear(tool_args, code_between(self.wrapped, None if is_unopened else tool))
        if is_unopened:
            raise BodyReached
        return await self.gate.body(ctx, lambda: self._run(name, tool_args, ctx, tool))

    async def _run(self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]) -> Any:
        return await self.wrapped.call_tool(name, tool_args, ctx, tool)
