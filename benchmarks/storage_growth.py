"""What runs with growing histories cost to store, as JSON: `python3 manage.py test benchmarks/storage_growth.py -s`.

A run of N steps sends its whole history with each request: O(N²) bytes of messages. Stored, it has to
cost O(N). `payloads` is compressed content, `rows` the rows as PostgreSQL packs them. Ratios near 2 from one size to
the next mean linear.
"""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from django.db import connection

from sessions_app.models import Project
from sessions_app.services.ingest import ingest_document
from tests.builders import make_growing_record

SIZES = (200, 400, 800)
_ROWS = """
SELECT (SELECT coalesce(sum(stored_size), 0) FROM sessions_app_storedpayload WHERE project_id = %(project)s),
       (SELECT coalesce(sum(pg_column_size(p.*) - coalesce(pg_column_size(p.data), 0)), 0)
          FROM sessions_app_storedpayload p WHERE project_id = %(project)s)
     + (SELECT coalesce(sum(pg_column_size(n.*)), 0) FROM sessions_app_historynode n WHERE project_id = %(project)s)
     + (SELECT coalesce(sum(pg_column_size(r.*)), 0) FROM sessions_app_run r WHERE project_id = %(project)s)
     + (SELECT coalesce(sum(pg_column_size(s.*)), 0) FROM sessions_app_step s
          JOIN sessions_app_run r ON r.id = s.run_id WHERE r.project_id = %(project)s)
"""


def measure(steps: int) -> dict[str, float]:
    """Bytes of one run in a project of its own."""
    project = Project.objects.create(slug=f"growth-{steps}", name="growth")
    document = json.dumps(make_growing_record(f"growth-{steps}", steps)).encode()
    run = ingest_document(project, document).run
    with connection.cursor() as cursor:
        cursor.execute(_ROWS, {"project": project.pk})
        payloads, rows = (int(number) for number in cursor.fetchone())
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


@pytest.mark.django_db
def test_storage_growth() -> None:
    print(json.dumps(measure_all()))
