"""Tools that run at a model's provider: the loop hands them on and does nothing with them, so they need not be rebuilt.

Only the library's own search for tools is made by the loop.
"""

from __future__ import annotations

from collections.abc import Iterable

from sessions_app.core.payload import JsonObject
from sessions_app.core.replay.plan import PlannedAnswer


def native_tools(parameters: JsonObject) -> list[JsonObject]:
    tools = parameters.get("native_tools")
    return [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []


def is_tool_search(tool: JsonObject) -> bool:
    return bool(tool.get("kind") == "tool_search")


class FirstNativeTools:
    """As the first request of each agent with any holds them; a later change shows."""

    def __init__(self, answers: Iterable[PlannedAnswer]) -> None:
        self._tools: dict[tuple[str | None, str], JsonObject] = {}
        for answer in answers:
            for tool in native_tools(answer.asked_with):
                self._tools.setdefault((answer.agent, _id_of(tool)), tool)

    def beside(self, asked_with: JsonObject, planned: PlannedAnswer) -> JsonObject:
        """The parameters that the loop made, with the tools that were offered at this moment, in their order."""
        recorded = native_tools(planned.asked_with)
        taken = {each: self._tools[planned.agent, each] for each in map(_id_of, recorded)}
        own = {_id_of(tool): tool for tool in asked_with["native_tools"]}
        both = {**taken, **own}
        offered = {each: tool for each, tool in both.items() if each in own or not is_tool_search(tool)}
        return {**asked_with, "native_tools": list(offered.values())} if taken else asked_with


def _id_of(tool: JsonObject) -> str:
    """A provider may be given several servers, each by its own id."""
    return f"{tool.get('kind')} {tool.get('id')}"
