"""Goldens and recorded runs as rows for other tools."""

from __future__ import annotations

from collections.abc import Iterable

from sessions_app.core.goldens.dataset import DatasetFormat, Example, GoldenFacts, as_jsonl
from sessions_app.mapping.load import load_run
from sessions_app.models import Golden, Run


def goldens_as_jsonl(goldens: Iterable[Golden], format: DatasetFormat) -> bytes:
    """Raises `StoredBytesMissing`."""
    return as_jsonl((_of_golden(golden) for golden in goldens), format)


def runs_as_jsonl(runs: Iterable[Run], format: DatasetFormat) -> bytes:
    """Raises `StoredBytesMissing`."""
    return as_jsonl((Example(run=load_run(run)) for run in runs), format)


def _of_golden(golden: Golden) -> Example:
    facts = GoldenFacts(
        golden_id=golden.golden_id,
        name=golden.name,
        description=golden.description,
        expected_outcome=golden.expected_outcome,
        checks=golden.checks,
    )
    return Example(run=load_run(golden.run), golden=facts)
