"""Runs of other agents inside the one that is replayed: nothing of them was recorded for it, so they end the replay."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NoReturn

from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.models import Model, ModelRequestContext
from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.toolsets.wrapper import WrapperToolset

from sessions_app.agents.loop.outcomes import FixtureNotFound
from sessions_app.agents.own_code.gate import call_under_way
from sessions_app.agents.own_code.policy import FrozenPolicy
from sessions_app.core.replay.fixture_book import missing


class Misses(list[FixtureNotFound]):
    """What the runs of other agents asked for."""

    def __init__(self) -> None:
        super().__init__()
        self._hosts: list[ToolCallPart] = []

    def begins(self) -> None:
        """A run of another agent, in the call under way."""
        call = call_under_way()
        self._hosts += [] if call is None else [call]

    def has_begun_in(self, call: ToolCallPart) -> bool:
        return any(each is call for each in self._hosts)


@contextmanager
def every_run_frozen() -> Iterator[Misses]:
    """In here every run of every agent is kept from models and tools; the yielded list tells what was kept from what.

    All ways to start a run go through `Agent.iter`.
    """
    original, misses = Agent.iter, Misses()

    @functools.wraps(original)
    def iter(self: Any, *arguments: Any, **named: Any) -> Any:
        given = [*(named.get("capabilities") or ())]
        if not any(isinstance(each, FrozenPolicy | SubAgentPolicy) for each in given):
            misses.begins()
            named = {**named, "capabilities": [*given, SubAgentPolicy(misses)]}
        return original(self, *arguments, **named)

    Agent.iter = iter  # type: ignore[method-assign]
    try:
        yield misses
    finally:
        Agent.iter = original  # type: ignore[method-assign]


class SubAgentPolicy(AbstractCapability[Any]):
    """Lets a run begin, and ends the replay at its first request or tool."""

    def __init__(self, misses: Misses) -> None:
        self._misses = misses

    def get_ordering(self) -> CapabilityOrdering | None:
        return CapabilityOrdering(position="outermost")

    async def for_run(self, ctx: RunContext[Any]) -> SubAgentPolicy:
        return self

    def miss(self, name: str, arguments: Any = None) -> NoReturn:
        call = call_under_way()
        missed = missing(name, call.tool_call_id if call else None, arguments, ())
        found = FixtureNotFound(replace(missed, is_of_agent=True))
        self._misses.append(found)
        raise found

    async def wrap_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, handler: Any
    ) -> NoReturn:
        self.miss(f"the model of agent {_name_of(ctx)}")

    def get_wrapper_model(self, model: Model[Any]) -> NoReturn:
        """Reached where something of the team's stands outside of this capability."""
        self.miss("the model of another agent")

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return _NoBodies(toolset, self)

    async def wrap_output_process(
        self, ctx: RunContext[Any], *, output_context: Any, output: Any, handler: Any
    ) -> NoReturn:
        self.miss(output_context.function_name or f"the output of agent {_name_of(ctx)}")


class _NoBodies(WrapperToolset[Any]):
    """Offers nothing, so that nothing has to be opened for it, and runs nothing."""

    def __init__(self, wrapped: AbstractToolset[Any], policy: SubAgentPolicy) -> None:
        super().__init__(wrapped)
        self._policy = policy

    async def for_run(self, ctx: RunContext[Any]) -> AbstractToolset[Any]:
        return self

    async def for_run_step(self, ctx: RunContext[Any]) -> AbstractToolset[Any]:
        return self

    async def __aenter__(self) -> _NoBodies:
        return self

    async def __aexit__(self, *arguments: Any) -> bool | None:
        return None

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, Any]:
        return {}

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: Any) -> NoReturn:
        self._policy.miss(name, tool_args)


def _name_of(ctx: RunContext[Any]) -> str:
    agent = getattr(ctx, "agent", None)
    return repr(getattr(agent, "name", None) or "without a name")
