"""How fast spans are taken in, as JSON: `.venv/bin/python -m benchmarks.ingest [--sessions N] [--connections N]`.

A fresh instance takes in sessions of ten steps, once a session in a request and once four spans in a request, and one
session of `--long` steps in large requests. Every request is answered after its commit; `stored` counts seconds until
the last answer, when each run can be opened, `listed` until the last run was made by a worker and stands in the list.
CPU, memory and disk are those of all processes of the instance until then, PostgreSQL included. `of_raw_copy` is the
rate of storing over that of plain rows by COPY in the same PostgreSQL: a figure for any machine.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Sequence

from benchmarks.measured import costs_of, disk, raw_copy_rows_per_second
from benchmarks.posting import Client, post_all, wait_for_runs
from benchmarks.traces import Request, Shape, requests
from sessions_app.core.payload import JsonObject
from tests.instances import Instance, instance_in, open_folder, wait_for_worker

_MB = 1_000_000


def measure(instance: Instance, requests: Sequence[Request], *, connections: int) -> JsonObject:
    """Posts all of them and waits for their runs."""
    spans, sent = sum(each.span_count for each in requests), sum(len(each.body) for each in requests)
    ended = Client(instance).ended_runs() + sum(len(each.ended) for each in requests)
    before = disk(instance)
    began = time.perf_counter()
    with costs_of(instance) as costs:
        taken = post_all(instance, requests, connections=connections)
        stored = time.perf_counter() - began
        wait_for_runs(instance, ended)
        listed = time.perf_counter() - began
    after = disk(instance)
    return {
        "requests": len(requests),
        "spans": spans,
        "sent_mb": round(sent / _MB, 2),
        "spans_per_second": {"stored": round(spans / stored, 1), "listed": round(spans / listed, 1)},
        "mb_per_second": round(sent / _MB / stored, 2),
        "request_ms": _milliseconds(taken),
        "cpu_ms_per_span": round(costs.cpu_seconds / spans * 1000, 3),
        "memory_mb": {"at_rest": round(costs.memory_at_rest / _MB, 1), "peak": round(costs.memory_peak / _MB, 1)},
        "bytes_per_span": {
            "tables_and_indexes": round((after.tables - before.tables) / spans),
            "with_log": round((after.tables - before.tables + after.log - before.log) / spans),
        },
    }


def _milliseconds(taken: list[float]) -> JsonObject:
    whole = [seconds * 1000 for seconds in sorted(taken)]
    p95 = whole[min(len(whole) - 1, int(len(whole) * 0.95))]
    return {"p50": round(statistics.median(whole), 1), "p95": round(p95, 1), "longest": round(whole[-1], 1)}


def measure_all(sessions: int, connections: int, long: int) -> JsonObject:
    ten = Shape(steps=10)
    loads = {
        "session_a_request": (list(requests("whole", sessions, ten)), connections),
        "four_spans_a_request": (list(requests("pieces", sessions // 3, ten, spans_each=4)), connections),
        "one_long_session": (list(requests("long", 1, Shape(steps=long), spans_each=200)), 1),
    }
    with open_folder() as folder, instance_in(folder) as instance:
        wait_for_worker(instance)
        post_all(instance, requests("warm", 10, ten), connections=connections)
        raw = raw_copy_rows_per_second(instance)
        found = {name: measure(instance, some, connections=number) for name, (some, number) in loads.items()}
    for figures in found.values():
        figures["of_raw_copy"] = round(figures["spans_per_second"]["stored"] / raw, 4)
    return {"connections": connections, "raw_copy_rows_per_second": round(raw), **found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=300)
    parser.add_argument("--connections", type=int, default=4)
    parser.add_argument("--long", type=int, default=300, help="steps of the long session")
    chosen = parser.parse_args()
    print(json.dumps(measure_all(chosen.sessions, chosen.connections, chosen.long), indent=2))


if __name__ == "__main__":
    main()
