"""The replay kit: twelve things a recording must hold so that its run can be played again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sessions_app.core.judge import kit_environment as environment
from sessions_app.core.judge import kit_input, kit_side_effects
from sessions_app.core.judge.buckets import BUCKETS, BucketName, BucketRow, bucket_rows
from sessions_app.core.judge.conventions import fix_for
from sessions_app.core.judge.grading import Finding, Status
from sessions_app.core.payload import JsonObject
from sessions_app.core.run import Run
from sessions_app.core.shared_values import shared_values

KitKey = Literal[
    "ids",
    "identity",
    "input",
    "instructions",
    "tool_schemas",
    "retrieval",
    "model",
    "sampling",
    "tool_io",
    "timestamps",
    "commit",
    "flags",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class KitLine:
    """One of the twelve things; `fix` and `code` say how to capture it next time."""

    key: KitKey
    title: str
    bucket: BucketName
    status: Status
    detail: str
    fix: str | None = None
    code: str | None = None

    def to_json(self) -> JsonObject:
        names = ("key", "title", "bucket", "status", "detail", "fix", "code")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, kw_only=True, slots=True)
class Kit:
    """What was captured of a run: the twelve lines, and ten rows in three buckets."""

    lines: tuple[KitLine, ...]
    rows: tuple[BucketRow, ...]

    @property
    def captured(self) -> int:
        """The score: how many of the twelve lines are captured whole."""
        return sum(1 for line in self.lines if line.status == "captured")

    @property
    def lacks(self) -> tuple[KitKey, ...]:
        """The other lines."""
        return tuple(line.key for line in self.lines if line.status != "captured")

    @property
    def total(self) -> int:
        return len(self.lines)

    def line(self, key: KitKey) -> KitLine:
        return next(line for line in self.lines if line.key == key)

    def buckets(self) -> dict[BucketName, tuple[BucketRow, ...]]:
        return {name: tuple(row for row in self.rows if row.bucket == name) for name in BUCKETS}

    def to_json(self) -> JsonObject:
        return {
            "captured": self.captured,
            "total": self.total,
            "lines": [line.to_json() for line in self.lines],
            "buckets": {name: [row.to_json() for row in rows] for name, rows in self.buckets().items()},
        }


@shared_values()
def audit_kit(run: Run) -> Kit:
    found: dict[str, Finding] = {key: audit(run) for key, _, _, audit in KIT_LINES}
    lines = tuple(_line(run, key, title, bucket, found[key]) for key, title, bucket, _ in KIT_LINES)
    return Kit(lines=lines, rows=bucket_rows(run, found))


Audit = Callable[[Run], Finding]
KIT_LINES: tuple[tuple[KitKey, str, BucketName, Audit], ...] = (
    ("ids", "Run id and parents", "environment", kit_input.ids),
    ("identity", "User, tenant and session", "input", kit_input.identity),
    ("input", "Input, byte for byte", "input", kit_input.input_message),
    ("instructions", "Instructions, full text", "input", kit_input.instructions),
    ("tool_schemas", "Tool schemas at the time", "environment", environment.tool_schemas),
    ("retrieval", "Retrieved chunks", "side_effects", kit_side_effects.retrieval),
    ("model", "Model, provider and region", "environment", environment.model),
    ("sampling", "Temperature, top_p and seed", "environment", environment.sampling),
    ("tool_io", "Tool requests and answers", "side_effects", kit_side_effects.tool_io),
    ("timestamps", "Start, first token and end", "environment", environment.timestamps),
    ("commit", "Commit of the agent's code", "environment", environment.commit),
    ("flags", "Feature flags", "environment", environment.flags),
)


def _line(run: Run, key: KitKey, title: str, bucket: BucketName, found: Finding) -> KitLine:
    fix = None if found.status == "captured" else fix_for(run, key)
    return KitLine(
        key=key,
        title=title,
        bucket=bucket,
        status=found.status,
        detail=found.detail,
        fix=fix.sentence if fix else None,
        code=fix.code if fix else None,
    )
