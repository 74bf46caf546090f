"""Histories beside their runs: the way there, and back."""

import json

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from sessions_app.core.formats.native import run_digest
from sessions_app.mapping.load import load_run
from sessions_app.models import HistoryNode, Run, RunHistory, Step
from sessions_app.services.ingest import ingest_document
from sessions_app.services.verification import problems
from tests.builders import make_growing_record, make_project

pytestmark = pytest.mark.django_db(transaction=True)


def migrate(name: str) -> None:
    MigrationExecutor(connection).migrate([("sessions_app", name)])


def migrate_to_the_newest() -> None:
    """Other tests use the same database."""
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes("sessions_app"))


def test_who_goes_back_has_rows_again_and_whoever_comes_there_again_loses_nothing():
    run = ingest_document(make_project(), json.dumps(make_growing_record("r", steps=12)).encode()).run
    digest, keys = (
        run_digest(load_run(run)),
        list(Step.objects.order_by("index").values_list("index", "request_key", "result_key")),
    )

    migrate("0012_step_blocks")
    try:
        rows = HistoryNode.objects.count()
        Step.objects.exclude(request_key=None).update(request_key=bytes(32))
    finally:
        migrate_to_the_newest()

    assert (rows, RunHistory.objects.count()) == (12, 0)
    assert run_digest(load_run(Run.objects.get())) == digest
    assert not list(problems())
    found = list(Step.objects.order_by("index").values_list("index", "request_key", "result_key"))
    assert [(at, result) for at, _, result in found] == [(at, result) for at, _, result in keys]
    assert {len(key) for _, key, _ in found if key is not None} == {16}
