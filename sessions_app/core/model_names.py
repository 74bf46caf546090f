"""Names of models: an alias, a version of it with its date, and a provider in front stand for one model."""

from __future__ import annotations

import re
from collections.abc import Sequence

_VERSION = re.compile(r"([-@](\d{4}-?\d{2}-?\d{2}|\d{3,4}|latest))?")


def is_same_model(asked: str, answered: str) -> bool:
    """`openai:gpt-4o` and `gpt-4o-2024-08-06` are one model: an alias and a dated version. Of Pydantic AI's fallbacks,
    `fallback:one,other`, any may have answered."""
    return asked == answered or any(_stands_for(each, answered) for each in asked.split(","))


def _stands_for(asked: str, answered: str) -> bool:
    asked, answered = (re.split(r"[:/]", name)[-1].lower() for name in (asked, answered))
    return answered.startswith(asked) and _VERSION.fullmatch(answered, len(asked)) is not None


def without_aliases(names: Sequence[str]) -> dict[str, list[str]]:
    """The models among the names, each with what else it is called there: `gpt-4o` was asked for, its dated version
    answered."""
    aliases = {name: [other for other in names if _is_alias(other, name)] for name in names}
    known = {other for others in aliases.values() for other in others}
    return {name: others for name, others in aliases.items() if name not in known}


def _is_alias(name: str, of: str) -> bool:
    """Of two names that stand for each other the shorter one is kept."""
    return (
        name != of and is_same_model(name, of) and not (is_same_model(of, name) and (len(name), name) < (len(of), of))
    )


def could_be_same_model(left: str | None, right: str | None) -> bool:
    """Whichever was asked for; what nobody names is no other one."""
    return not left or not right or is_same_model(left, right) or is_same_model(right, left)
