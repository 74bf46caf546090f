"""The redaction of one project: the built-in rules, and what its administrators made of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from sessions_app.core.errors import ReplayProductError
from sessions_app.core.formats.native import encode_native
from sessions_app.core.redaction import OwnRules, Redactor, rules_of
from sessions_app.mapping.load import load_run
from sessions_app.models import Project, Run

TRIED_ON = 50
"""Runs."""
_ENOUGH = 8 * 1024 * 1024
"""Bytes of recordings that rules are tried on while somebody waits."""


def redactor_of(project: Project) -> Redactor:
    return Redactor(bytes(project.redaction_secret), rules_of(own_rules(project)))


def own_rules(project: Project) -> OwnRules:
    return OwnRules.from_text(project.redaction)


def save_rules(project: Project, rules: OwnRules) -> None:
    """For what arrives from now on."""
    project.redaction = rules.to_text()
    project.save(update_fields=["redaction"])


@dataclass(frozen=True, kw_only=True, slots=True)
class Tried:
    """What rules would take out of the project's last runs, beyond what was taken out when they came in."""

    runs: int
    """How many were looked at."""
    hits: dict[str, tuple[int, int]]
    """By the name of the rule: how many values, in how many runs."""


def try_rules(project: Project, rules: OwnRules) -> Tried:
    values, runs, looked_at = Counter[str](), Counter[str](), 0
    for counts in _counts(Run.objects.filter(project=project).order_by("-pk")[:TRIED_ON], project, rules):
        looked_at += 1
        values.update(counts)
        runs.update(counts.keys())
    return Tried(runs=looked_at, hits={name: (values[name], runs[name]) for name in sorted(values)})


def _counts(rows: Iterable[Run], project: Project, rules: OwnRules) -> Iterable[dict[str, int]]:
    room = _ENOUGH
    for row in rows:
        record = _record_of(row)
        if (room := room - len(record or b"")) < 0:
            return
        if record is not None:
            yield _found(record, project, rules)


def counts_of(row: Run, project: Project) -> dict[str, int]:
    """How many values the project's rules would take out of a stored run, by rule."""
    record = _record_of(row)
    return {} if record is None else _found(record, project, own_rules(project))


def _found(record: bytes, project: Project, rules: OwnRules) -> dict[str, int]:
    return dict(Redactor(bytes(project.redaction_secret), rules_of(rules)).redact(record).counts)


def _record_of(row: Run) -> bytes | None:
    try:
        return encode_native(load_run(row))
    except ReplayProductError:
        return None  # damaged; its own page says so
