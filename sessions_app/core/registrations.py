"""The team's own agents, as the settings register them: a name, and where in the team's code the agent is.

Only the name ever comes from a page, a request or the database; the place is looked up in the settings.
"""

from __future__ import annotations

import re

_NAME = re.compile(r"[A-Za-z0-9_][\w.-]{0,99}")
IGNORES_STATE = (
    "The registered agent does not say how its dependencies are made of a state (deps_of_state), so nothing would read "
    "the changed one."
)
_TARGET = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


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
