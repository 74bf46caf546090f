"""The team's own agents, loaded from where `core/registrations.py` says that they are."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from replay_recorder.replaying.own_agent import is_openai_agents
from sessions_app.core.errors import ReplayProductError
from sessions_app.core.payload import JsonObject, JsonValue


class CannotLoadAgent(ReplayProductError):
    """A registered agent is not where its registration says; the text says what is there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnAgent:
    """An agent of the team's, of Pydantic AI or the OpenAI Agents SDK, and what it is run with."""

    agent: Any
    deps: Any = None
    arguments: JsonObject = field(default_factory=dict)
    """Further arguments of its `run`, such as `output_type`."""
    deps_of_state: Callable[[JsonValue], Any] | None = None
    """Makes its dependencies of a recorded state."""
    state_of_deps: Callable[[Any], JsonValue] | None = None
    """Reads the state from them."""

    @property
    def is_of_sdk(self) -> bool:
        """Whether the OpenAI Agents SDK runs it."""
        return is_openai_agents(self.agent)

    @property
    def _model(self) -> Any:
        """An id, a model, or None for an agent that gets one where it is run."""
        return self.arguments.get("model") or self.agent.model

    @property
    def model_id(self) -> str | None:
        """As requests name it, without its provider."""
        model = self._model
        return model.partition(":")[2] or model if isinstance(model, str) else getattr(model, "model_name", None)

    @property
    def model_settings(self) -> Any:
        """Those that the model itself brings."""
        return getattr(self._model, "settings", None)


def load_agent(target: str) -> OwnAgent:
    """Imports the team's code. Raises `CannotLoadAgent`, and whatever that code raises."""
    module, _, attribute = target.partition(":")
    found = getattr(_imported(module), attribute, None)
    if found is None:
        raise CannotLoadAgent(f"the module has no {attribute!r}.")
    made = found() if isinstance(found, Callable) and not _is_agent(found) else found  # type: ignore[arg-type]
    named = made if isinstance(made, dict) else _named(made)
    unknown = sorted(named.keys() - _KNOWN)
    if unknown:
        raise CannotLoadAgent(f"{attribute!r} names {unknown[0]!r}; known are {', '.join(_KNOWN)}.")
    if not _is_agent(named.get("agent")):
        kind = type(named.get("agent")).__name__
        raise CannotLoadAgent(f"{attribute!r} is no agent of Pydantic AI or the OpenAI Agents SDK but {kind}.")
    return OwnAgent(**{**named, "arguments": dict(named.get("arguments") or {})})


def _imported(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise CannotLoadAgent(_missing(error.name or "", module)) from error


def _missing(name: str, module: str) -> str:
    if f"{module}.".startswith(f"{name}."):
        return f"there is no module {name!r}. PYTHONPATH has to name the folder in which it is."
    package = _PACKAGES.get(name)
    hint = f" It comes with the package {package}." if package else ""
    return f"it imports {name!r}, which is not installed in {sys.prefix}.{hint}"


_PACKAGES = {"agents": "openai-agents"}
"""Of modules that are called otherwise."""
_KNOWN = ("agent", "deps", "arguments", "deps_of_state", "state_of_deps")


def _named(made: Any) -> dict[str, Any]:
    """An agent alone, or with its dependencies and the further arguments of its `run`."""
    return dict(zip(_KNOWN, made, strict=False)) if isinstance(made, tuple) else {"agent": made}


def load_team_agent(target: str) -> OwnAgent:
    """As `load_agent`, in a process that replays: whatever the module sets, no model is asked and nothing is traced.

    Nor is a model made of its name, which would want the provider's package and a key for what is never asked.
    """
    from pydantic_ai import Agent, models

    models.ALLOW_MODEL_REQUESTS = False
    Agent.__init__ = _keeping_names(Agent.__init__)  # type: ignore[method-assign]
    own = load_agent(target)
    models.ALLOW_MODEL_REQUESTS = False
    Agent.instrument_all(False)
    if own.is_of_sdk:
        import agents

        agents.set_tracing_disabled(True)
    return own


def _keeping_names(make: Callable[..., None]) -> Any:
    @wraps(make)
    def made(*arguments: Any, **named: Any) -> None:
        make(*arguments, **{**named, "defer_model_check": True})

    return made


def _is_agent(found: Any) -> bool:
    from pydantic_ai.agent import AbstractAgent

    return isinstance(found, AbstractAgent) or is_openai_agents(found)
