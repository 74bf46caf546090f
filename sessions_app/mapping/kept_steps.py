"""A fork shares the rows of the steps that it took over from its parent, so that it costs what is new in it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from django.db import connection

from sessions_app import models
from sessions_app.core.payload import JsonObject
from sessions_app.core.run import Run
from sessions_app.mapping.binary_rows import binary_cursor
from sessions_app.mapping.details import details, write_details
from sessions_app.mapping.run_history import take_over
from sessions_app.mapping.step_rows import COLUMNS

_HOLD = "SELECT pg_advisory_xact_lock{shared}(hashtextextended('kept steps', %(project)s::bigint))"
_OWN = f"""
INSERT INTO sessions_app_step (run_id, {", ".join(COLUMNS)})
SELECT %(run)s, {", ".join(COLUMNS)} FROM sessions_app_step
WHERE run_id = %(lender)s AND index > %(after)s AND index <= %(upto)s
"""


def hold_steps(project: models.Project, *, alone: bool) -> None:
    """To the end of the transaction: no steps go or change while a fork comes to share some.

    Before any row is locked: alone by who stores a fork, with others by who writes another run anew.
    """
    with binary_cursor() as cursor:
        cursor.execute(_HOLD.format(shared="" if alone else "_shared"), {"project": project.pk})


def kept_steps(project: models.Project, run: Run, rows: list[models.Step]) -> list[JsonObject]:
    """The first steps of a fork that are byte for byte those of its parent, as `models.Run.kept` holds them."""
    if run.origin != "fork" or run.parent is None or run.parent.run_id == run.run_id:
        return []
    parent = models.Run.objects.filter(project=project, run_id=run.parent.run_id).first()
    if parent is None:
        return []
    stored = parent.steps.filter(index__lte=len(rows)).order_by("index")
    return _parts(details(stored, "run_id"), rows)


def _parts(stored: Iterable[tuple[Any, ...]], rows: list[models.Step]) -> list[JsonObject]:
    """A parent that is a fork shares some of them itself: each part names the run that has the rows."""
    equal = []
    for (index, text, owner), row in zip(stored, rows, strict=False):
        if (index, text) != (row.index, row.detail):
            break
        equal.append((owner, index))
    parts = []
    for owner, group in groupby(equal, key=lambda step: step[0]):
        indexes = [index for _, index in group]
        parts.append({"run": owner, "after": indexes[0] - 1, "upto": indexes[-1]})
    return parts


def give_back(lender: models.Run) -> None:
    """Before the steps of a run go or change: whoever shares them gets rows and nodes of their own."""
    sharing = models.Run.objects.exclude(kept=[]).filter(project=lender.project_id)
    for run in sharing.filter(kept__contains=[{"run": lender.pk}]).select_for_update(of=("self",)).order_by("pk"):
        take_over(run, lender.pk)
        for part in run.kept:
            if part["run"] == lender.pk:
                _copy(run, part)
        run.kept = [part for part in run.kept if part["run"] != lender.pk]
        run.save(update_fields=["kept"])


def _copy(run: models.Run, part: JsonObject) -> None:
    lent = models.Step.objects.filter(run=part["run"], index__gt=part["after"], index__lte=part["upto"])
    write_details(run, details(lent.order_by("index")))
    with connection.cursor() as cursor:
        cursor.execute(_OWN, {"run": run.pk, "lender": part["run"], "after": part["after"], "upto": part["upto"]})
