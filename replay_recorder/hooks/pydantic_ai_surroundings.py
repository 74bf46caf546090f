"""What surrounds a request and is the same at most steps: model, settings, parameters, tools."""

from __future__ import annotations

from operator import is_
from typing import Any

from replay_recorder.hooks.pydantic_ai_messages import definition_text, parameters_text
from replay_recorder.hooks.pydantic_ai_reading import registered_tools, settings_value
from replay_recorder.writing.json_text import name
from replay_recorder.writing.regions import region_in
from replay_recorder.writing.run_writer import RunWriter


class Surroundings:
    """Encoded once, and again when something of it changes."""

    def __init__(self, run: RunWriter) -> None:
        self.output_names: frozenset[str] = frozenset()
        """Tools that carry the agent's structured output."""
        self._run = run
        self._known: tuple[Any, ...] | None = None
        self._columns = ""

    def columns(self, ctx: Any, request_context: Any, response: Any) -> str:
        """The fields for `RunWriter.end`. `response` is None when no answer came."""
        model, parameters = request_context.model, request_context.model_request_parameters
        settings, tools = request_context.model_settings, registered_tools(ctx)
        answered = response and (response.provider_name, response.provider_url, response.model_name)
        # The library makes all definitions anew at each step, and mostly sends those that are registered: comparing
        # them once is enough.
        others = () if _are_the_same(tools, parameters.function_tools) else tools
        found = (model, settings, parameters, others, answered)
        if found != self._known:
            self._known = found
            self.output_names = frozenset(tool.name for tool in parameters.output_tools)
            with self._run.together():
                self._columns = self._run.columns(**self._fields(model, settings, parameters, tools, answered))
        return self._columns

    def _fields(self, model: Any, settings: Any, parameters: Any, tools: Any, answered: Any) -> dict[str, Any]:
        provider, url, answered_model = answered or (None, None, None)
        return {
            "settings": settings_value(settings),
            "parameters": self._run.row("parameters", parameters_text(parameters)),
            "tools": None if tools is None else [self._run.row("tools", definition_text(tool)) for tool in tools],
            "provider": name(provider or getattr(model, "system", None)),
            "region": region_in(url or getattr(model, "base_url", None)),
            "answered_model": name(answered_model),
        }


def _are_the_same(tools: list[Any] | None, sent: list[Any]) -> bool:
    return tools is not None and len(tools) == len(sent) and all(map(is_, tools, sent))
