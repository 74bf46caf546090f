"""What a fork near the end of a long run costs, as JSON: `python3 manage.py test benchmarks/forks.py -s`.

The tool's answer ten steps before the end is another one, so the fork stops at the next request of the model, ready
to be answered. `child` is the CPU time of the process that forks, `parent` that of the worker, which reads the run and
stores the fork's. `begun` is what it adds before its first new step, `bytes` what it adds then: rows and payloads,
in bytes. Ratios near 2 from one length to the next mean linear.
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from itertools import pairwise

import pytest

from benchmarks.compare_runs import make_run
from benchmarks.storage_growth import stored
from sessions_app.core.formats.native import encode_native
from sessions_app.core.payload import JsonObject
from sessions_app.core.run import Run
from sessions_app.mapping.load import load_run
from sessions_app.models import Project
from sessions_app.models import Run as RunRow
from sessions_app.services.ingest import ingest_document
from sessions_app.services.run_store import store_run
from tests.agents.forking import forked

SIZES = (250, 500, 1000)
BEFORE_THE_END = 10


def measure(steps: int) -> JsonObject:
    project = Project.objects.create(slug=f"forks-{steps}", name="forks")
    parent = ingest_document(project, encode_native(make_run(steps, stamp="2026-11-01T00:00:00Z"))).run
    started = time.process_time()
    recorded = load_run(parent)
    read, at = time.process_time(), steps - BEFORE_THE_END
    result, made = forked(recorded, at, {"kind": "tool_result", "step": at, "value": []})
    forked_at = time.process_time()
    before = sum(stored(project))
    store_run(project, begun(made, at), source=b"{}")
    between, starting = sum(stored(project)), time.process_time()
    store_run(project, made, source=b"{}")
    ended = time.process_time()
    assert result.stopped is not None
    assert (result.verdict, result.stopped["step"]) == ("unknown_from_step", at + 1)
    return {
        "steps": steps,
        "child": round(forked_at - read, 3),
        "parent": round(read - started + ended - starting, 3),
        "begun": between - before,
        "bytes": sum(stored(project)) - between,
    }


def begun(made: Run, at: int) -> Run:
    """The fork when it has the steps that it took over and no other."""
    return replace(made, run_id=f"{made.run_id}-begun", steps=made.steps[: at - 1], final=None)


@pytest.mark.django_db
def test_a_late_fork_costs_what_is_stored() -> None:
    forked(make_run(20, stamp="2026-11-01T00:00:00Z"), 10, {"kind": "clock", "value": 0})  # the library loads once
    found = [measure(steps) for steps in SIZES]
    ratios = {
        name: [round(large[name] / small[name], 2) for small, large in pairwise(found)]
        for name in ("child", "parent", "begun", "bytes")
    }
    print(json.dumps({"forks": found, "ratios": ratios}, indent=1))
    assert RunRow.objects.filter(origin="fork").count() == 2 * len(SIZES)
