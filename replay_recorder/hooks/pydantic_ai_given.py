"""What a tool's own function is given: the arguments of the model as checks, hooks and toolsets in front of it hand
them on. The recorder and every replay read it here, so that equal arguments are equal everywhere."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Secret, SecretBytes, SecretStr
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset, WrapperToolset
from pydantic_ai.toolsets._dynamic import DynamicToolset
from pydantic_core import PydanticSerializationError, to_jsonable_python

_NOT_THEIRS = ("pydantic_ai.", "replay_recorder.", "sessions_app.")
_SECRETS = (Secret, SecretStr, SecretBytes)
_MAX_DEPTH = 50


class NoJson(Exception):
    """A value that two processes would not write alike."""


# --- the arguments -----------------------------------------------------------------------------


def given_fields(asked: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a tool step: `ran_with` where the arguments are not those that the model `asked` with, and the names of
    those that cannot be compared."""
    values: dict[str, Any] = {}
    for name, value in given.items():
        try:
            values[name] = as_json(value)
        except (NoJson, RecursionError):
            continue
    unknown = sorted(given.keys() - values.keys())
    fields: dict[str, Any] = {"ran_with_unknown": {"arguments": unknown}} if unknown else {}
    asked = {name: asked[name] for name in asked if name not in unknown} if isinstance(asked, dict) else asked
    return fields if _text(asked) == _text(values) else {"ran_with": values, **fields}


def asked_arguments(sent: Any) -> Any:
    """As the model sent them; what is no JSON stays text."""
    if not isinstance(sent, str):
        return sent or {}
    try:
        return json.loads(sent) if sent else {}
    except (ValueError, RecursionError):
        return sent


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def as_json(value: Any, depth: int = 0) -> Any:
    """Raises `NoJson`. What is hidden on purpose is no JSON either, and nothing is read that can be read once."""
    if value is None or type(value) in (bool, int, float, str):
        return to_jsonable_python(value, inf_nan_mode="strings")
    if depth > _MAX_DEPTH or isinstance(value, _SECRETS) or hasattr(type(value), "__next__"):
        raise NoJson
    if isinstance(value, BaseModel):
        value = dict(value)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(as_json(key)): as_json(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(item, depth + 1) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((as_json(item, depth + 1) for item in value), key=_text)  # its own order is drawn at random
    try:
        return to_jsonable_python(value, bytes_mode="base64", inf_nan_mode="strings")
    except (PydanticSerializationError, ValueError, TypeError):
        raise NoJson from None


# --- the way to the function -------------------------------------------------------------------


def code_between(toolset: AbstractToolset[Any], tool: Any = None) -> Iterator[str]:
    """The team's own `call_tool` between a call and the tool's function, such as `Proxy.call_tool`; without a `tool`
    all that there are."""
    if isinstance(toolset, WrapperToolset):
        yield from _if_theirs(toolset)
        yield from code_between(toolset.wrapped, tool)
    elif isinstance(toolset, DynamicToolset):
        yield from () if toolset._toolset is None else code_between(toolset._toolset, tool)
    elif hasattr(tool, "source_toolset"):
        yield from code_between(tool.source_toolset, tool.source_tool)
    elif isinstance(toolset, FunctionToolset):
        yield from _if_theirs(toolset)
    else:
        for each in getattr(toolset, "toolsets", ()) if tool is None else ():
            yield from code_between(each)


def _if_theirs(toolset: AbstractToolset[Any]) -> Sequence[str]:
    is_theirs = not str(type(toolset).call_tool.__module__).startswith(_NOT_THEIRS)
    return (f"{type(toolset).__name__}.call_tool",) if is_theirs else ()
