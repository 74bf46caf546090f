"""The agent that a person named, as `module:attribute`, and what it is run with."""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import dataclass, field
from typing import Any


class CannotLoadAgent(Exception):
    """It is not where it was said to be; the text says what is there."""


@dataclass(frozen=True)
class OwnAgent:
    """An agent, or what a function of the team's made: the agent, its dependencies, further arguments of its run."""

    agent: Any
    deps: Any = None
    arguments: dict[str, Any] = field(default_factory=dict)


def load_agent(target: str) -> OwnAgent:
    """Imports this module and no other, from the current folder or from where Python finds it."""
    module, colon, attribute = target.partition(":")
    if not (module and colon and attribute):
        raise CannotLoadAgent(f"{target!r} does not say which agent; write it as module:attribute, like shop:agent.")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    made = _made(target, module, attribute)
    agent, deps, arguments = (*made, None, None)[:3] if isinstance(made, tuple) else (made, None, None)
    if not _is_agent(agent):
        raise CannotLoadAgent(
            f"{target} is no agent of Pydantic AI or the OpenAI Agents SDK but {type(agent).__name__}. Name an agent, "
            "or a function without parameters that returns it, alone or as (agent, deps, arguments of its run)."
        )
    return OwnAgent(agent, deps, dict(arguments or {}))


def _made(target: str, module: str, attribute: str) -> Any:
    """What the name stands for, or what the function of this name returns."""
    try:
        found = getattr(importlib.import_module(module), attribute, None)
        is_function = callable(found) and not isinstance(found, type) and not _is_agent(found)
        made = found() if is_function else found  # type: ignore[misc]  # a function, as was just seen
    except ModuleNotFoundError as error:
        raise CannotLoadAgent(f"{target}: {error}. Run this in the agent's own environment and folder.") from error
    except Exception as error:
        raise CannotLoadAgent(f"{target} cannot be loaded: {type(error).__name__}: {error}") from error
    if found is None:
        raise CannotLoadAgent(f"{target}: the module {module} has no {attribute!r}.")
    return made


def _is_agent(found: Any) -> bool:
    return is_pydantic_ai(found) or is_openai_agents(found)


def is_pydantic_ai(found: Any) -> bool:
    return _is_of(found, "pydantic_ai.agent", "AbstractAgent")


def is_openai_agents(found: Any) -> bool:
    return _is_of(found, "agents", "Agent")


def _is_of(found: Any, module: str, name: str) -> bool:
    """Without importing a framework that nobody has loaded."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(found, kind)
