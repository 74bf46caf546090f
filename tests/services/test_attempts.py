"""Attempts at reproducing a run: how they are numbered, and what reports say of those that were stopped."""

import json

import pytest
from django.db import IntegrityError, transaction

from sessions_app.core.reports.run_report import as_json
from sessions_app.models import Replay
from sessions_app.services.forks import request_fork
from sessions_app.services.replays import cancel_replay, request_replay
from sessions_app.services.reports import report_of, report_of_run
from tests.services.forking import make_fork
from tests.tasks.incidents import make_project, make_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def run():
    return make_run(make_project())


def test_forks_do_not_count_among_the_attempts(run):
    asked = [make_fork(run), request_replay(run=run), make_fork(run), request_replay(run=run)]
    resumed = request_fork(run=run, order={"at_step": 4}, mode="resume")

    assert [replay.number for replay in asked] == [1, 1, 2, 2]
    assert resumed.number == 3


def test_attempts_of_all_modes_are_counted_together(run):
    modes = [("recording", {}), ("code", {"agent": "order_desk"}), ("code_and_tools", {"agent": "order_desk"})]

    asked = [request_replay(run=run, mode=mode, order=order) for mode, order in modes]

    assert [replay.number for replay in asked] == [1, 2, 3]


@pytest.mark.parametrize(("mode", "taken"), [("recording", True), ("code", True), ("fork", False), ("sampling", False)])
def test_a_number_is_given_once_in_its_kind(run, mode, taken):
    request_replay(run=run)
    try:
        with transaction.atomic():
            Replay.objects.create(project=run.project, run=run, content=run.content, number=1, mode=mode)
        refused = False
    except IntegrityError:
        refused = True

    assert refused is taken


def test_a_cancelled_attempt_is_cancelled_in_every_report(run):
    replay = cancel_replay(request_replay(run=run))

    for report in (report_of(replay), report_of_run(run)):
        body = json.loads(json.dumps(as_json(report)))
        assert [(each["number"], each["outcome"], each["error"]) for each in body["attempts"]] == [
            (1, "cancelled", None)
        ]
        assert body["replay"]["verdict"] == "cancelled"
        assert body["steps_done"] == []


def test_an_attempt_that_failed_is_an_error_and_not_cancelled(run):
    replay = request_replay(run=run)
    Replay.objects.update(state="failed", verdict="could_not_run", error="no agent")
    replay.refresh_from_db()

    assert [each.outcome for each in report_of(replay).attempts] == ["error"]
