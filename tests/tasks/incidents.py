"""Projects, recordings and queued replays for the tests of the queue."""

import json
from typing import Any

from sessions_app.models import Project, Replay, Run
from sessions_app.services.ingest import ingest_document
from sessions_app.services.replays import request_replay
from tests.agents.probing_child import PROBE
from tests.agents.talking import example

NAMES = ("run_xyz789", "cancel_bug", "price_429", "r_8821")


def make_project(slug: str = "shop") -> Project:
    return Project.objects.create(slug=slug, name=slug)


def make_run(project: Project, record: dict[str, Any] | None = None, **changes: Any) -> Run:
    """Take in an example, with some fields changed."""
    document = (record or example()) | changes
    return ingest_document(project, json.dumps(document).encode()).run


def make_probe(project: Project, command: str) -> Run:
    """A recording that makes the processes of the tests run a probe."""
    return make_run(project, run_id=f"probe {command}", input=PROBE + command)


def make_runs(project: Project, count: int) -> list[Run]:
    """Different recordings of the examples' kinds."""
    return [make_run(project, example(NAMES[i % len(NAMES)]), run_id=f"incident {i}") for i in range(count)]


def queue_replays(runs: list[Run]) -> list[Replay]:
    return [request_replay(run=run) for run in runs]
