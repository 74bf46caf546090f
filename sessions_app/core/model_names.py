"""Names of models: an alias, a version of it with its date, and a provider in front stand for one model."""

from __future__ import annotations

import re

_VERSION = re.compile(r"([-@](\d{4}-?\d{2}-?\d{2}|\d{3,4}|latest))?")


def is_same_model(asked: str, answered: str) -> bool:
    """`openai:gpt-4o` and `gpt-4o-2024-08-06` are one model: an alias and a dated version. Of Pydantic AI's fallbacks,
    `fallback:one,other`, any may have answered."""
    return asked == answered or any(_stands_for(each, answered) for each in asked.split(","))


def _stands_for(asked: str, answered: str) -> bool:
    asked, answered = (re.split(r"[:/]", name)[-1].lower() for name in (asked, answered))
    return answered.startswith(asked) and _VERSION.fullmatch(answered, len(asked)) is not None


def could_be_same_model(left: str | None, right: str | None) -> bool:
    """Whichever was asked for; what nobody names is no other one."""
    return not left or not right or is_same_model(left, right) or is_same_model(right, left)
