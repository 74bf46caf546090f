"""Why a run cannot be replayed, or not further."""

from __future__ import annotations

from dataclasses import dataclass

from sessions_app.core.judge.conventions import fix_for
from sessions_app.core.payload import JsonObject
from sessions_app.core.run import Run, Step


@dataclass(frozen=True, kw_only=True, slots=True)
class Reason:
    """One thing that stands in the way."""

    code: str
    message: str
    step: int | None = None
    """The step at which the replay would have to stop; one more than the last for the outcome."""
    fix: str | None = None
    """How to capture it next time."""

    def to_json(self) -> JsonObject:
        return {"code": self.code, "message": self.message, "step": self.step, "fix": self.fix}


def reason_at(run: Run, code: str, message: str, step: Step | None = None) -> Reason:
    index = None if step is None else step.index
    return Reason(code=code, message=message, step=index, fix=fix_for(run, code).sentence)


def reason_at_end(run: Run, code: str, message: str) -> Reason:
    """All steps can be replayed; what the run came to cannot be shown."""
    return Reason(code=code, message=message, step=len(run.steps) + 1, fix=fix_for(run, code).sentence)
