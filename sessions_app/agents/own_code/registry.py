"""The team's own agents, loaded from where `core/registrations.py` says that they are."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sessions_app.core.errors import ReplayProductError
from sessions_app.core.payload import JsonObject, JsonValue


class CannotLoadAgent(ReplayProductError):
    """A registered agent is not where its registration says; the text says what is there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnAgent:
    """An agent of the team's, and what it is run with."""

    agent: Any
    deps: Any = None
    arguments: JsonObject = field(default_factory=dict)
    """Further arguments of its `run`, such as `output_type`."""
    deps_of_state: Callable[[JsonValue], Any] | None = None
    """Makes its dependencies of a recorded state."""
    state_of_deps: Callable[[Any], JsonValue] | None = None
    """Reads the state from them."""


def load_agent(target: str) -> OwnAgent:
    """Imports the team's code. Raises `CannotLoadAgent`, and whatever that code raises."""
    module, _, attribute = target.partition(":")
    found = getattr(importlib.import_module(module), attribute, None)
    if found is None:
        raise CannotLoadAgent(f"{target}: the module has no {attribute!r}.")
    made = found() if isinstance(found, Callable) and not _is_agent(found) else found  # type: ignore[arg-type]
    named = made if isinstance(made, dict) else _named(made)
    unknown = sorted(named.keys() - _KNOWN)
    if unknown:
        raise CannotLoadAgent(f"{target} names {unknown[0]!r}; known are {', '.join(_KNOWN)}.")
    if not _is_agent(named.get("agent")):
        raise CannotLoadAgent(f"{target} is no agent of Pydantic AI but {type(named.get('agent')).__name__}.")
    return OwnAgent(**{**named, "arguments": dict(named.get("arguments") or {})})


_KNOWN = ("agent", "deps", "arguments", "deps_of_state", "state_of_deps")


def _named(made: Any) -> dict[str, Any]:
    """An agent alone, or with its dependencies and the further arguments of its `run`."""
    return dict(zip(_KNOWN, made, strict=False)) if isinstance(made, tuple) else {"agent": made}


def load_team_agent(target: str) -> OwnAgent:
    """As `load_agent`, in a process that replays: whatever the module sets, no model is asked and nothing is traced."""
    from pydantic_ai import Agent, models

    models.ALLOW_MODEL_REQUESTS = False
    own = load_agent(target)
    models.ALLOW_MODEL_REQUESTS = False
    Agent.instrument_all(False)
    return own


def _is_agent(found: Any) -> bool:
    from pydantic_ai.agent import AbstractAgent

    return isinstance(found, AbstractAgent)
