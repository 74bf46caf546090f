"""How far something was captured, said in one sentence of facts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from sessions_app.core.run import Retrieval, Run, Step

Status = Literal["captured", "partial", "missing", "contradictory"]

OBJECT_NAME = re.compile(
    r"<(function|bound method|coroutine|built-in|class|lambda)\b|\[?(SourcedInstruction|"
    r"SystemPromptRunner|functools\.partial)\(|\bobject at 0x[0-9a-fA-F]+>"
)
"""What Python prints for an object, which is neither a text nor an id."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """A status and the facts that it rests on."""

    status: Status
    detail: str


def captured(detail: str) -> Finding:
    return Finding(status="captured", detail=detail)


def partial(detail: str) -> Finding:
    return Finding(status="partial", detail=detail)


def missing(detail: str) -> Finding:
    return Finding(status="missing", detail=detail)


def contradictory(detail: str) -> Finding:
    return Finding(status="contradictory", detail=detail)


def graded(detail: str, *, have: int, total: int) -> Finding:
    """All is captured, none is missing, some is partial."""
    status: Status = "missing" if not have else "captured" if have >= total else "partial"
    return Finding(status=status, detail=detail)


def retrievals_of(run: Run) -> list[tuple[Step, Retrieval]]:
    return [(step, step.call) for step in run.steps if isinstance(step.call, Retrieval)]
