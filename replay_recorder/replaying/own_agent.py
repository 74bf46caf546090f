"""The agent that a person named, as `module:attribute`, and what it is run with."""

from __future__ import annotations

import copy
import importlib
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from replay_recorder.writing.json_text import jsonable


class CannotLoadAgent(Exception):
    """It is not where it was said to be; the text says what is there."""


@dataclass(frozen=True)
class OwnAgent:
    """An agent, or what a function of the team's made: the agent, its dependencies, further arguments of its run."""

    agent: Any
    deps: Any = None
    arguments: dict[str, Any] = field(default_factory=dict)
    deps_of_state: Callable[[Any], Any] | None = None
    """Makes the dependencies of a recorded state."""
    state_of_deps: Callable[[Any], Any] | None = None
    """Reads the state from them."""

    def begun_with(self, state: Any) -> OwnAgent:
        """With the dependencies that it says belong to this state; None for a run of which none was recorded."""
        if self.deps_of_state is None or (state is None and self.deps is not None):
            return self
        if state is None:
            raise CannotLoadAgent(
                "The run has no recorded state, so deps_of_state has nothing to begin with. Give deps as well, or "
                "record the run with install(state=…)."
            )
        try:
            return replace(self, deps=self.deps_of_state(copy.deepcopy(state)))
        except Exception as error:
            raise CannotLoadAgent(f"deps_of_state failed: {type(error).__name__}: {error}") from error

    @property
    def lacks(self) -> str | None:
        """What the agent says that it needs and is not given, in words: its code fails where it reads that."""
        wanted = _deps_type(self.agent)
        if wanted in (None, type(None), object, Any) or self.deps is not None or self.deps_of_state is not None:
            return None
        name = getattr(wanted, "__name__", str(wanted))
        kind = "a context" if is_openai_agents(self.agent) else "dependencies"
        return f"takes {kind} ({name}) and is given none. Name a function that returns (agent, {name}(…))."

    @property
    def state(self) -> Callable[[], Any] | None:
        """The recorder's `state` callback that its registration amounts to."""
        read = self.state_of_deps
        return None if read is None else lambda: jsonable(read(self.deps))


_KEYS = ("agent", "deps", "arguments", "deps_of_state", "state_of_deps")


def load_agent(target: str) -> OwnAgent:
    """Imports this module and no other, from the current folder or from where Python finds it."""
    module, colon, attribute = target.partition(":")
    if not (module and colon and attribute):
        raise CannotLoadAgent(f"{target!r} does not say which agent; write it as module:attribute, like shop:agent.")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    made = _made(target, module, attribute)
    named = _named(target, made)
    if not _is_agent(named["agent"]):
        raise CannotLoadAgent(
            f"{target} is no agent of Pydantic AI or the OpenAI Agents SDK but {type(named['agent']).__name__}. "
            "Name an agent, or a function without parameters that returns it, alone, as (agent, deps, arguments of its "
            f"run), or as a dict with {', '.join(_KEYS)}."
        )
    return OwnAgent(**{**named, "arguments": dict(named.get("arguments") or {})})


def _named(target: str, made: Any) -> dict[str, Any]:
    """By their names: an agent alone, a tuple, or a dict as it is registered on the server."""
    if isinstance(made, tuple):
        return dict(zip(_KEYS[:3], made, strict=False)) if made else {"agent": None}
    if not isinstance(made, Mapping):
        return {"agent": made}
    unknown = sorted(str(key) for key in made.keys() - set(_KEYS))
    if unknown:
        raise CannotLoadAgent(f"{target} names {unknown[0]!r}; known are {', '.join(_KEYS)}.")
    if "agent" not in made:
        raise CannotLoadAgent(f"{target} gives a dict without 'agent'; it may have {', '.join(_KEYS)}.")
    for key in ("deps_of_state", "state_of_deps"):
        if made.get(key) is not None and not callable(made[key]):
            raise CannotLoadAgent(f"{target}: {key} is no function but {type(made[key]).__name__}.")
    return dict(made)


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


def _deps_type(agent: Any) -> Any:
    """An agent of the OpenAI Agents SDK that was made as `Agent[Desk](…)` says it so."""
    (of_context, *_) = get_args(getattr(agent, "__orig_class__", None)) or (None,)
    return getattr(agent, "deps_type", of_context)


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
