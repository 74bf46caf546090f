"""Ingest is all or nothing, once, whatever fails and however many send at once."""

import json
import threading
from collections import Counter
from datetime import UTC, datetime

import pytest
from django.db import DatabaseError, connection, transaction

from sessions_app.core.errors import RecordTooLarge, RunConflict
from sessions_app.core.payload import sha256_hex
from sessions_app.core.redaction import RedactionFailed, Redactor
from sessions_app.mapping.load import load_run
from sessions_app.models import Run, Session, StoredPayload
from sessions_app.services.ingest import ingest_document
from tests.builders import (
    EXAMPLES,
    SESSION_FILE,
    make_client,
    make_key,
    make_project,
    make_record,
    make_tool_step,
    post_run,
    row_counts,
)


def document(*steps, **fields):
    return json.dumps(make_record("r", *steps, **fields)).encode()


@pytest.mark.django_db
def test_the_same_again_is_found_and_another_is_refused():
    project = make_project()
    first = ingest_document(project, document(input="a"))
    before = row_counts()

    again = ingest_document(project, document(input="a"))
    with pytest.raises(RunConflict):
        ingest_document(project, document(input="b"))

    assert (first.created, again.created, again.run) == (True, False, first.run)
    assert row_counts() == before


@pytest.mark.django_db
def test_a_running_run_is_replaced_by_its_end():
    project = make_project()
    ingest_document(project, document(make_tool_step(), status="running"))

    ended = ingest_document(project, document(make_tool_step(), make_tool_step(), output="done", status="ok"))

    assert ended.created
    assert [(run.status, run.step_count) for run in Run.objects.all()] == [("ok", 2)]


@pytest.mark.django_db
def test_run_ids_are_unique_within_a_project_only():
    one, other = make_project("one"), make_project("other")

    assert ingest_document(one, document(input="a")).created
    assert ingest_document(other, document(input="b")).created


@pytest.mark.django_db
def test_nothing_is_stored_when_redaction_fails(monkeypatch):
    monkeypatch.setattr(Redactor, "_redact", lambda self, text: 1 / 0)
    project = make_project()
    before = row_counts()

    with pytest.raises(RedactionFailed):
        ingest_document(project, document(input="a"))

    assert row_counts() == before


@pytest.mark.django_db
def test_a_state_that_copies_itself_is_refused():
    doubling = [{"op": "copy", "from": "", "path": f"/{n}"} for n in range(40)]
    with pytest.raises(RecordTooLarge):
        ingest_document(make_project(), document(make_tool_step(state={"after": doubling}), initial_state={"a": 1}))

    assert not Run.objects.exists()
    assert ingest_document(make_project("few"), document(make_tool_step(state={"after": doubling[:4]}))).created


class FailingWrite:
    """Lets the database fail at the N-th statement that writes."""

    def __init__(self, at):
        self.at = at
        self.seen = 0

    def __call__(self, execute, sql, params, many, context):
        if sql.lstrip().startswith(("INSERT", "UPDATE", "DELETE", "WITH block")):
            self.seen += 1
            if self.seen == self.at:
                raise DatabaseError("the disk is full")
        return execute(sql, params, many, context)


@pytest.mark.django_db(transaction=True)
def test_a_failure_at_any_write_stores_nothing(settings):
    settings.REPLAY_BLOB_THRESHOLD_BYTES = 1024
    project = make_project()
    client = make_client(make_key(project))
    body = (EXAMPLES / "cancel_bug.json").read_bytes()
    client.get("/api/v1/cold-cases")  # notes the use of the key
    before, failures = row_counts(), 0

    while True:
        fault = FailingWrite(failures + 1)
        with connection.execute_wrapper(fault):
            answer = post_run(client, body)
        if fault.seen < fault.at:
            break
        failures += 1
        assert (answer.status_code, row_counts()) == (503, before)

    assert answer.status_code == 201
    assert row_counts() != before
    assert failures >= 4
    print(f"{failures} places to fail at, nothing stored at any of them")


@pytest.mark.django_db(transaction=True)
def test_a_failure_at_commit_stores_nothing(monkeypatch):
    project = make_project()
    client = make_client(make_key(project))
    before = row_counts()
    with monkeypatch.context() as patched:
        patched.setattr(connection, "_commit", raise_database_error)
        answer = post_run(client, SESSION_FILE)

    assert (answer.status_code, answer.headers["Retry-After"].isdecimal()) == (503, True)
    assert row_counts() == before
    assert post_run(client, SESSION_FILE).status_code == 201


def raise_database_error():
    raise DatabaseError("the disk is full")


def at_once(calls):
    """Results of the calls, each in a thread of its own, all begun together."""
    barrier, found = threading.Barrier(len(calls)), []

    def work(call):
        try:
            barrier.wait()
            found.append(call())
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=[call]) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def status_of(key, body):
    return lambda: post_run(make_client(key), body).status_code


@pytest.mark.django_db(transaction=True)
def test_fifty_equal_posts_at_once_give_one_run():
    key = make_key(make_project())
    body = (EXAMPLES / "r_8821.json").read_bytes()

    answers = at_once([status_of(key, body)] * 50)

    assert Counter(answers) == {201: 1, 200: 49}
    assert (Run.objects.count(), Session.objects.count()) == (1, 1)


@pytest.mark.django_db(transaction=True)
def test_two_bodies_of_one_run_at_once_give_one_run():
    key = make_key(make_project())
    bodies = [document(input=text) for text in ("a", "b")]

    answers = at_once([status_of(key, body) for body in bodies])

    assert sorted(answers) == [201, 409]
    assert Run.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_runs_that_share_payloads_do_not_wait_for_each_other_for_ever():
    project = make_project()
    key = make_key(project)
    steps = [make_tool_step(arguments={"n": n}, result=f"{n}: " + "a long answer " * 300) for n in range(40)]
    bodies = [json.dumps(make_record(f"r{n}", *steps[n:], *steps[:n], session_id="s")).encode() for n in range(10)]

    answers = at_once([status_of(key, body) for body in bodies])

    assert answers == [201] * 10
    assert Session.objects.count() == 1
    assert StoredPayload.objects.filter(digest=bytes.fromhex(sha256_hex(b"7: " + b"a long answer " * 300))).count() == 1
    assert StoredPayload.objects.count() == 40 + 10


@pytest.mark.django_db
def test_a_session_spans_its_runs_in_any_order():
    project = make_project()
    for run_id, hour in (("b", 12), ("a", 9), ("c", 11)):
        at = f"2026-02-03T{hour:02}:00:00Z"
        ingest_document(project, json.dumps(make_record(run_id, session_id="s", started_at=at)).encode())

    session = Session.objects.get()
    assert (session.started_at, session.last_at) == tuple(datetime(2026, 2, 3, hour, tzinfo=UTC) for hour in (9, 12))


@pytest.mark.django_db
def test_twenty_thousand_steps_are_taken_and_one_more_is_not():
    step = make_tool_step(result="same")
    project = make_project()
    with pytest.raises(RecordTooLarge):
        ingest_document(project, document(*[step] * 20_001))
    assert not Run.objects.exists()

    run = ingest_document(project, document(*[step] * 20_000)).run

    assert run.step_count == 20_000
    assert len(load_run(run).steps) == 20_000
    assert StoredPayload.objects.count() == 1
    assert run.content.piece_count == 2


@pytest.mark.django_db
def test_ingest_works_inside_the_transaction_of_its_caller():
    project = make_project()
    with transaction.atomic():
        ingest_document(project, document(input="a"))
        transaction.set_rollback(True)

    assert not Run.objects.exists()
