"""Reading what the OpenAI Agents SDK gives to a model, and what comes back."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

from replay_recorder.hooks.openai_agents_items import FAKE_ID, Json, row_of
from replay_recorder.redaction import safe_settings, safe_url
from replay_recorder.writing.json_text import jsonable, name

ALWAYS_SAID = ("temperature", "top_p", "seed")
"""Settings that are written also when they were left to the provider, as null."""
_FINISH_REASONS = {
    "tool_calls": "tool_call",
    "function_call": "tool_call",
    "completed": "stop",
    "max_output_tokens": "length",
    "cancelled": "error",
    "failed": "error",
}
"""Words of the two APIs by the word that messages have for them; others are the same."""

# --- the request -------------------------------------------------------------------------------


def model_name(model: Any) -> str | None:
    """The id that is asked for; custom models say it in `model` or not at all."""
    asked = model if isinstance(model, str) else getattr(model, "model", None) or getattr(model, "model_name", None)
    return name(str(asked)) if asked else None


def provider_of(model: Any) -> str | None:
    """Who serves it, where its class says so."""
    modules = [each.__module__ for each in type(model).__mro__]
    if any(module.startswith("agents.models.openai") for module in modules):
        client = type(getattr(model, "_client", None)).__name__
        return "azure" if "Azure" in client else "openai"
    prefix, slash, _ = (model_name(model) or "").partition("/")
    return prefix if slash and any(module.startswith("agents.extensions.models") for module in modules) else None


def address_of(model: Any) -> str | None:
    """Where the SDK's own models send their requests."""
    url = getattr(getattr(model, "_client", None), "base_url", None)
    return safe_url(str(url)) if url else None


def settings_value(settings: Any) -> Json:
    """All settings of the request that say something."""
    said = {field.name: getattr(settings, field.name) for field in dataclasses.fields(settings)}
    extra = said.get("extra_args") or {}
    said = {key: value for key, value in said.items() if value is not None and key not in ("extra_args", "retry")}
    return safe_settings({**dict.fromkeys(ALWAYS_SAID), **said, **extra})


def _definitions(tools: list[Any], handoffs: list[Any]) -> list[Json]:
    """The functions that the model may call, in the shape of Pydantic AI; a handoff is one of them."""
    return [*(_function(tool) for tool in tools if _is_local(tool)), *map(_handoff, handoffs)]


_LOCAL_TOOLS = {
    "ComputerTool": "computer",
    "LocalShellTool": "local_shell",
    "ShellTool": "shell",
    "ApplyPatchTool": "apply_patch",
}
"""Tools without a schema that the team's process runs, by the name that their calls have in messages."""


def _is_local(tool: Any) -> bool:
    kind = type(tool).__name__
    return hasattr(tool, "params_json_schema") or kind in _LOCAL_TOOLS or kind == "CustomTool"


def _function(tool: Any) -> Json:
    if not hasattr(tool, "params_json_schema"):
        anything = {"type": "object", "additionalProperties": True}
        return {"name": _LOCAL_TOOLS.get(type(tool).__name__, tool.name), "parameters_json_schema": anything}
    return {
        "name": tool.name,
        "parameters_json_schema": jsonable(tool.params_json_schema),
        "description": tool.description,
        "strict": getattr(tool, "strict_json_schema", None),
    }


def _handoff(handoff: Any) -> Json:
    return {
        "name": handoff.tool_name,
        "parameters_json_schema": jsonable(handoff.input_json_schema),
        "description": handoff.tool_description,
        "strict": getattr(handoff, "strict_json_schema", None),
    }


def _hosted_tools(tools: list[Any]) -> list[Json]:
    """Tools without a schema: the provider's own, and those whose calls have types of their own."""
    return [_hosted(tool) for tool in tools if not hasattr(tool, "params_json_schema")]


def _hosted(tool: Any) -> Json:
    """As far as the provider is told of it: what the team's process does with its calls is code."""
    fields = dataclasses.fields(tool) if dataclasses.is_dataclass(tool) else ()
    said = {field.name: getattr(tool, field.name, None) for field in fields if not field.name.startswith("_")}
    plain = {key: jsonable(value) for key, value in said.items() if _is_plain(value)}
    configured = safe_settings({key: plain[key] for key in _CONFIGURED if key in plain})
    return {"type": type(tool).__name__, "name": getattr(tool, "name", None), **plain, **configured}


_CONFIGURED = ("tool_config", "environment")
"""Fields that may hold the key to a server."""


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float | list | dict) or hasattr(type(value), "model_dump")


def parameters_value(given: Json) -> Json:
    """Request parameters in the shape of Pydantic AI, as far as they are known, and beside them what it has no word
    for. `given` are the arguments of a model's methods."""
    tools, handoffs, schema = given.get("tools") or [], given.get("handoffs") or [], given.get("output_schema")
    is_text = schema is None or schema.is_plain_text()
    return {
        "function_tools": _definitions(tools, handoffs),
        "hosted_tools": _hosted_tools(tools),
        "prompt": jsonable(given.get("prompt")),
        "output_mode": "text" if is_text else "native",
        "output_object": None if is_text else _output_object(schema),
        "output_tools": [],
        "allow_text_output": True,
    }


def _output_object(schema: Any) -> Json:
    return {
        "json_schema": jsonable(schema.json_schema()),
        "name": schema.name(),
        "strict": schema.is_strict_json_schema(),
    }


def output_function(schema: Any) -> str | None:
    """The function that turns the answer into the output, where that is more than validation: a schema of the team's
    own may do anything."""
    if schema is None or schema.is_plain_text():
        return None
    is_plain = type(schema).__module__ == "agents.agent_output"
    return None if is_plain else f"{type(schema).__name__}.validate_json"


# --- the answer --------------------------------------------------------------------------------


def usage_value(usage: Any) -> Json | None:
    """In the words of Pydantic AI; None where the provider said nothing."""
    total_in, total_out = _count(usage, "input_tokens"), _count(usage, "output_tokens")
    if not total_in and not total_out:
        return None
    cached = _count(getattr(usage, "input_tokens_details", None), "cached_tokens")
    reasoning = _count(getattr(usage, "output_tokens_details", None), "reasoning_tokens")
    return {
        "input_tokens": total_in,
        "output_tokens": total_out,
        **({"cache_read_tokens": cached} if cached else {}),
        **({"details": {"reasoning_tokens": reasoning}} if reasoning else {}),
    }


def _count(usage: Any, key: str) -> int:
    value = getattr(usage, key, None)
    return value if isinstance(value, int) else 0


def finish_reason(answer: Any) -> str | None:
    """Why the answer ended, in the word that messages have for it."""
    said = None
    with contextlib.suppress(AttributeError, IndexError, TypeError):
        said = answer.choices[0].finish_reason
    details = getattr(answer, "incomplete_details", None)
    said = said or getattr(details, "reason", None) or getattr(answer, "status", None)
    return name(_FINISH_REASONS.get(said, said)) if isinstance(said, str) else None


def answered_model(answer: Any) -> str | None:
    said = getattr(answer, "model", None)
    return name(said) if isinstance(said, str) else None


def output_rows(response: Any) -> list[Json]:
    return [row_of(item) for item in response.output or []]


def answer_id(response: Any) -> str | None:
    """The provider's id of the answer: the SDK's own `ModelResponse` and a stream's `Response` name it differently."""
    found = getattr(response, "response_id", None) or getattr(response, "id", None)
    return found if isinstance(found, str) and found != FAKE_ID else None
