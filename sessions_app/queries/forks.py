"""The tree of forks that grew out of a run."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection

from sessions_app import models
from sessions_app.core.fork.changes import ForkError
from sessions_app.core.fork.expectations import Expectation, read_expectation
from sessions_app.core.payload import JsonObject
from sessions_app.models.replays import ReplayMode

MAX_DEPTH = 10
MAX_ROWS = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class ForkRow:
    """A fork, a resumed run, a code replay or a sampling, as trees and lists show it."""

    replay: models.Replay
    run: models.Run | None
    """What it produced, with its session; None before it stored anything."""
    depth: int
    """1 for what was made of the run itself, 2 for what was made of that, and so on."""
    parent_run_id: str

    @property
    def changes(self) -> list[JsonObject]:
        """As they were asked for (core/fork/changes.py)."""
        changes: list[JsonObject] = self.replay.order.get("changes") or []
        return changes

    @property
    def hypothesis(self) -> str:
        return self.replay.order.get("hypothesis") or ""

    @property
    def outcome(self) -> str:
        """How its run ended, cut as lists cut it, or what it does now."""
        stopped = self.replay.stopped_at
        if stopped:
            what = f"{stopped['kind']} {stopped['name']}" if stopped["kind"] == "tool" else "the model"
            word = "paused" if self.replay.state == "paused" else "stopped"
            return f"{word} at step {stopped['step']}, {what}"
        ended = self.run and (self.run.output_preview or self.run.error_preview)
        return ended or self.replay.error or self.replay.get_state_display().lower()

    @property
    def expectation(self) -> str:
        """What is expected, in words; empty where nothing is."""
        return expectation_words(self.replay)

    @property
    def met(self) -> bool | None:
        return self.replay.expectation_met

    @property
    def divergence(self) -> JsonObject | None:
        """`step` and `path` of the first difference from the parent; where a fork stopped is another place."""
        found = self.replay.facts.get("first_difference") or self.replay.shown_divergence
        return found and {"step": found.get("step"), "path": found.get("path")}

    @property
    def steps(self) -> int | None:
        return self.run.step_count if self.run else None

    @property
    def input_tokens(self) -> int | None:
        return self.run.input_tokens if self.run else None

    @property
    def output_tokens(self) -> int | None:
        return self.run.output_tokens if self.run else None

    @property
    def sources(self) -> dict[str, int]:
        return sources_of(self.replay)


def agent_of(replay: models.Replay) -> str | None:
    """Name of the registered agent whose code runs; None where an agent is rebuilt."""
    changes = replay.order.get("changes") or []
    named: list[str | None] = [change["value"] for change in changes if change.get("kind") == "agent"]
    return (named or [replay.order.get("agent")])[0]


def sources_of(replay: models.Replay) -> dict[str, int]:
    """Steps by where their answers came from."""
    sources: dict[str, int] = replay.facts.get("sources") or {}
    return sources


def expectation_words(replay: models.Replay) -> str:
    """What is expected of a fork; empty where nothing is."""
    expected = expectation_of(replay)
    return expected.words if expected else ""


def expectation_of(replay: models.Replay) -> Expectation | None:
    try:
        return read_expectation(replay.order["expect"]) if replay.order.get("expect") else None
    except ForkError:
        return None


_TREE = """
WITH RECURSIVE tree AS (
    SELECT id, produced_run_id, 1 AS depth, ARRAY[id] AS place FROM sessions_app_replay
    WHERE run_id = %(run)s AND mode <> %(recording)s AND NOT is_golden
  UNION ALL
    SELECT replay.id, replay.produced_run_id, tree.depth + 1, tree.place || replay.id FROM sessions_app_replay replay
    JOIN tree ON replay.run_id = tree.produced_run_id
    WHERE replay.mode <> %(recording)s AND NOT replay.is_golden AND tree.depth < %(max_depth)s
)
SELECT id, depth FROM tree ORDER BY place LIMIT %(max_rows)s
"""


_OF_RUN = (
    *("run_id", "session__session_id", "status", "step_count", "input_tokens", "output_tokens"),
    *("output_preview", "error_preview"),
)
_SHOWN = (
    *(field.attname for field in models.Replay._meta.concrete_fields),
    *(f"produced_run__{name}" for name in _OF_RUN),
    *("content__base_steps", "content__step_count"),
    "run__run_id",
    "requested_by__username",
)
"""Without the large columns of the runs."""


def fork_rows(run: models.Run) -> list[ForkRow]:
    """What was made of a run and of what that produced: each after its parent, the oldest first. Two queries."""
    values: dict[str, int | str] = {
        "run": run.pk,
        "recording": ReplayMode.RECORDING.value,
        "max_depth": MAX_DEPTH,
        "max_rows": MAX_ROWS,
    }
    with connection.cursor() as cursor:
        cursor.execute(_TREE, values)
        places: list[tuple[int, int]] = cursor.fetchall()
    rows = models.Replay.objects.select_related("run", "requested_by", "produced_run__session", "content")
    found = rows.only(*_SHOWN).in_bulk([pk for pk, _ in places])
    return [_row(found[pk], depth) for pk, depth in places if pk in found]


def _row(replay: models.Replay, depth: int) -> ForkRow:
    return ForkRow(replay=replay, run=replay.produced_run, depth=depth, parent_run_id=replay.run.run_id)
