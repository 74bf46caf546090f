"""What runs with growing histories cost to store, as JSON: `python3 manage.py test benchmarks/storage_growth.py -s`.

A run of N steps sends its whole history with each request: O(N²) bytes of messages. Stored, it has to cost O(N).
`payloads` is compressed content, `rows` all rows as PostgreSQL packs them, without indexes. For native records the
ratios from one size to the next near 2 mean linear; for spans `over_shortest` compares the bytes of a span with those
of a span of the shortest sessions.
"""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from django.db import connection

from benchmarks.traces import Shape, requests
from sessions_app.core.otlp.decode import decode_traces
from sessions_app.core.payload import JsonObject
from sessions_app.models import Project, RunContent
from sessions_app.services.ingest import ingest_document
from sessions_app.services.spans import receive
from sessions_app.services.trace_runs import make_waiting_runs
from tests.builders import make_growing_record

SIZES = (200, 400, 800)
SPAN_SIZES = (10, 50, 200, 1000)
_SPANS_EACH = 200
_STEPS = 200
"""Short sessions are stored several times over, up to so many steps."""
_ROWS = """
SELECT (SELECT coalesce(sum(stored_size), 0) FROM sessions_app_storedpayload WHERE project_id = %(project)s),
       (SELECT coalesce(sum(pg_column_size(p.*) - coalesce(pg_column_size(p.data), 0)), 0)
          FROM sessions_app_storedpayload p WHERE project_id = %(project)s)
     + (SELECT coalesce(sum(pg_column_size(n.*)), 0) FROM sessions_app_historynode n WHERE project_id = %(project)s)
     + (SELECT coalesce(sum(pg_column_size(c.*)), 0) FROM sessions_app_runcontent c WHERE project_id = %(project)s)
     + (SELECT coalesce(sum(pg_column_size(r.*)), 0) FROM sessions_app_run r WHERE project_id = %(project)s)
     + (SELECT coalesce(sum(pg_column_size(b.*)), 0) FROM sessions_app_contentblock b
          JOIN sessions_app_runcontent c ON c.id = b.content_id WHERE c.project_id = %(project)s)
     + (SELECT coalesce(sum(pg_column_size(t.*)), 0) FROM sessions_app_trace t WHERE project_id = %(project)s)
     + (SELECT coalesce(sum(pg_column_size(b.*)), 0) FROM sessions_app_spanbatch b
          JOIN sessions_app_trace t ON t.id = b.trace_id WHERE t.project_id = %(project)s)
"""


def stored(project: Project) -> tuple[int, int]:
    """Bytes of payloads and of rows."""
    with connection.cursor() as cursor:
        cursor.execute(_ROWS, {"project": project.pk})
        payloads, rows = (int(number) for number in cursor.fetchone())
    return payloads, rows


def measure(steps: int) -> dict[str, float]:
    """Bytes of one run in a project of its own."""
    project = Project.objects.create(slug=f"growth-{steps}", name="growth")
    document = json.dumps(make_growing_record(f"growth-{steps}", steps)).encode()
    run = ingest_document(project, document).run
    payloads, rows = stored(project)
    return {"steps": steps, "payloads": payloads, "rows": rows, "bytes": payloads + rows, "id": run.pk}


def measure_all() -> dict[str, list[float]]:
    found = [measure(steps) for steps in SIZES]
    return {
        "steps": [row["steps"] for row in found],
        "bytes": [row["bytes"] for row in found],
        "payload_bytes": [row["payloads"] for row in found],
        "row_bytes": [row["rows"] for row in found],
        "bytes_per_step": [round(row["bytes"] / row["steps"], 1) for row in found],
        "ratios": [round(large["bytes"] / small["bytes"], 3) for small, large in pairwise(found)],
    }


def measure_spans(steps: int) -> JsonObject:
    """Sessions of so many steps in a project of their own, in requests as large as exporters send them."""
    project = Project.objects.create(slug=f"spans-{steps}", name="growth")
    sent = spans = 0
    shape = Shape(steps=steps, result_bytes=200)
    for request in requests(f"growth-{steps}", max(1, _STEPS // steps), shape, spans_each=_SPANS_EACH):
        receive(project, decode_traces(request.body, is_json=False).spans)
        sent, spans = sent + len(request.body), spans + request.span_count
    make_waiting_runs()
    RunContent.objects.filter(project=project, run=None).delete()  # as a sweeper does a minute later
    payloads, rows = stored(project)
    return {
        "steps": steps,
        "spans": spans,
        "sent_bytes_per_span": round(sent / spans),
        "stored_bytes_per_span": round((payloads + rows) / spans),
        "stored_over_sent": round((payloads + rows) / sent, 4),
    }


def measure_all_spans() -> list[JsonObject]:
    found = [measure_spans(steps) for steps in SPAN_SIZES]
    shortest = found[0]["stored_bytes_per_span"]
    return [{**row, "over_shortest": round(row["stored_bytes_per_span"] / shortest, 3)} for row in found]


_DISK = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relname LIKE 'sessions_app_%'"
_SESSIONS = {10: 400, 50: 80, 200: 20, 1000: 8}
_VACUUMS = 8
"""How often space that was given up on the way is made free, as PostgreSQL does by itself."""


def disk() -> int:
    """Bytes of all tables with their indexes, as they lie there."""
    with connection.cursor() as cursor:
        cursor.execute(_DISK)
        return int(cursor.fetchone()[0])


def measure_disk(steps: int) -> JsonObject:
    """What a session takes with indexes and free space, in the mean of several."""
    project, before = Project.objects.create(slug=f"disk-{steps}", name="growth"), disk()
    shape = Shape(steps=steps, result_bytes=550)
    for number in range(_SESSIONS[steps]):
        for request in requests(f"disk-{steps}-{number}", 1, shape, spans_each=_SPANS_EACH):
            receive(project, decode_traces(request.body, is_json=False).spans)
        if number % (_SESSIONS[steps] // _VACUUMS) == 0:
            _tidy(project)
    _tidy(project)
    return {"steps": steps, "bytes_per_session": round((disk() - before) / _SESSIONS[steps])}


def _tidy(project: Project) -> None:
    make_waiting_runs()
    RunContent.objects.filter(project=project, run=None).delete()
    with connection.cursor() as cursor:
        cursor.execute("VACUUM")


@pytest.mark.django_db(transaction=True)  # what is remembered of a trace is what was committed
def test_storage_growth() -> None:
    disk_of = [measure_disk(steps) for steps in SPAN_SIZES]
    print(json.dumps({"records": measure_all(), "spans": measure_all_spans(), "with_indexes": disk_of}))
