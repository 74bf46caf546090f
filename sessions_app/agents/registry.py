"""The team's own agents, as the settings register them: a name, and where in the team's code the agent is.

Only the name ever comes from a page, a request or the database; the place is looked up in the settings.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sessions_app.core.errors import ReplayProductError
from sessions_app.core.payload import JsonObject

_NAME = re.compile(r"[A-Za-z0-9_][\w.-]{0,99}")
_TARGET = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


class CannotLoadAgent(ReplayProductError):
    """A registered agent is not where its registration says; the text says what is there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnAgent:
    """An agent of the team's, and what it is run with."""

    agent: Any
    deps: Any = None
    arguments: JsonObject = field(default_factory=dict)
    """Further arguments of its `run`, such as `output_type`."""


def read_registrations(text: str) -> dict[str, str]:
    """Targets by name from `name=package.module:attribute, …`. Raises `ValueError` naming the entry."""
    found: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, target = (part.strip() for part in entry.partition("="))
        if not _NAME.fullmatch(name) or not _TARGET.fullmatch(target):
            raise ValueError(f"{entry!r} is not of the form name=package.module:attribute")
        if name in found:
            raise ValueError(f"{name!r} is registered twice")
        found[name] = target
    return found


def load_agent(target: str) -> OwnAgent:
    """Imports the team's code. Raises `CannotLoadAgent`, and whatever that code raises."""
    module, _, attribute = target.partition(":")
    found = getattr(importlib.import_module(module), attribute, None)
    if found is None:
        raise CannotLoadAgent(f"{target}: the module has no {attribute!r}.")
    made = found() if isinstance(found, Callable) and not _is_agent(found) else found  # type: ignore[arg-type]
    agent, deps, arguments = (*made, None, None)[:3] if isinstance(made, tuple) else (made, None, None)
    if not _is_agent(agent):
        raise CannotLoadAgent(f"{target} is no agent of Pydantic AI but {type(agent).__name__}.")
    return OwnAgent(agent=agent, deps=deps, arguments=dict(arguments or {}))


def _is_agent(found: Any) -> bool:
    from pydantic_ai.agent import AbstractAgent

    return isinstance(found, AbstractAgent)
