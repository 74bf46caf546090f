"""What became of a check."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from replay_goldens.trace import Trace


@dataclass(frozen=True)
class Seen:
    """Whether a check holds, and what was seen, in words. None where the run does not say."""

    passed: bool | None
    words: str


class Check(ABC):
    """One thing that a run must hold."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def words(self) -> str: ...

    @abstractmethod
    def judge(self, trace: Trace) -> Seen: ...

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """As it is read again."""


def at_most(trace: Trace, seen: int, limit: int, words: str) -> Seen:
    """Too many are too many at once; that there were not more is known at the end."""
    if seen > limit:
        return Seen(False, words)
    return Seen(True, words) if trace.has_ended else Seen(None, f"{words} so far; {trace.why_not_ended}")


def never(trace: Trace, found: str | None, words: str) -> Seen:
    """Something that must not happen: `found` says that it did."""
    if found is not None:
        return Seen(False, found)
    return Seen(True, words) if trace.has_ended else Seen(None, f"{words} so far; {trace.why_not_ended}")


def missing(trace: Trace, words: str) -> Seen:
    """Something that must happen and has not."""
    return Seen(False, words) if trace.has_ended else Seen(None, f"{words}; {trace.why_not_ended}")


def counted(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"
