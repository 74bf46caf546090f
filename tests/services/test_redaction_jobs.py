"""Rules of redaction applied to what is stored: counted first, then nothing of the secret is left anywhere."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from sessions_app.agents.process.sandbox import ChildPool
from sessions_app.core.redaction import OwnRules
from sessions_app.core.redaction.own_rules import ON_AT_FIRST
from sessions_app.mapping.load import load_run
from sessions_app.models import (
    ColdCase,
    Golden,
    HistoryNode,
    IngestNote,
    Note,
    Project,
    RedactionJob,
    Replay,
    Run,
    RunContent,
    Session,
    SessionReplay,
    SpanBatch,
)
from sessions_app.services import redacted_runs, redaction_jobs, replay_work
from sessions_app.services.contents import sweep_contents
from sessions_app.services.ingest import ingest_document
from sessions_app.services.redaction import save_rules
from sessions_app.services.replays import request_replay
from sessions_app.services.verification import problems
from tests.agents.talking import example
from tests.builders import make_client, make_key, make_project, make_record, make_tool_step
from tests.otlp_requests import PROTOBUF, as_protobuf, make_span, make_traces
from tests.stored_bytes import everything

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "CUST-123456"
RULES = OwnRules(patterns=(("customer", "CUST-[0-9]{6}"),), fields=("shipping.street",), kinds=ON_AT_FIRST)
LONG = "".join(f"{SECRET} paid {n * 7919 % 10007}; " for n in range(400))
ANSWER = {"who": SECRET, "shipping": {"street": "Elm Row 7"}, "long": LONG}
CHAT = [{"role": "user", "content": f"I am {SECRET}. {n} " + "x" * 300} for n in range(8)]


@pytest.fixture
def project(settings, tmp_path) -> Project:
    settings.REPLAY_BLOBS = str(tmp_path)
    settings.REPLAY_BLOB_THRESHOLD_BYTES = 1024
    return make_project()


@pytest.fixture
def user() -> User:
    return User.objects.create_user("ann")


def fill(project: Project) -> Run:
    """A run, a turn that goes on from it, a trace, and what was written beside them."""
    said = json.loads(json.dumps(example("run_xyz789")).replace("refund policy", SECRET))
    run = ingest_document(project, json.dumps(said).encode()).run
    ingest_document(project, json.dumps(make_record("native", make_tool_step(result=ANSWER), user_id=SECRET)).encode())
    spans = make_traces(
        make_span({"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps(CHAT), "customer": SECRET})
    )
    make_client(make_key(project)).post("/v1/traces", as_protobuf(spans), content_type=PROTOBUF)
    Note.objects.create(run=run, text=f"Asked {SECRET}")
    ColdCase.objects.create(run=Run.objects.get(run_id="native"), reason=f"{SECRET} is gone")
    now = timezone.now()
    IngestNote.objects.create(
        project=project, door="api", status=400, words=f"{SECRET} is bad", first_at=now, last_at=now
    )
    return run


def replayed(run: Run) -> str | None:
    replay, children = request_replay(run=run), ChildPool()
    try:
        assert replay_work.work_on(replay.pk, worker="a", children=children)
    finally:
        children.close()
    replay.refresh_from_db()
    return replay.verdict


def work_to_the_end() -> None:
    """As a worker does in its rounds; contents that were replaced go after their minute."""
    for _ in range(3):
        while redaction_jobs.go_on():
            pass
        RunContent.objects.filter(released_at__isnull=False).update(released_at=timezone.now() - timedelta(hours=1))
        sweep_contents()


def applied(project: Project, user: User) -> RedactionJob:
    save_rules(project, RULES)
    redaction_jobs.ask_for_count(project, user)
    work_to_the_end()
    redaction_jobs.start(project, user)
    work_to_the_end()
    return RedactionJob.objects.get()


def places_of(secret: str) -> set[str]:
    return {place for place, content in everything() if secret.encode() in content}


def test_what_is_redacted_is_gone_from_everything_that_is_stored(project, user):
    run = fill(project)
    assert replayed(run) == "reproduced"
    before = places_of(SECRET)
    assert {"piece", "payload", "spans", "sessions_app_note.text", "sessions_app_run.input_preview"} <= before
    count = Run.objects.count()

    job = applied(project, user)

    assert (job.state, job.unchanged) == ("done", [])
    assert places_of(SECRET) - {"sessions_app_project.redaction"} == set()
    assert places_of("Elm Row 7") == set()
    assert list(problems()) == []
    assert Run.objects.count() == count
    assert replayed(Run.objects.get(pk=run.pk)) == "reproduced"
    assert [job.requested_by, job.started_by] == [user, user]


def test_a_count_says_what_would_change_and_changes_nothing(project, user):
    fill(project)
    stored = [bytes(run.content_digest) for run in Run.objects.order_by("pk")]
    save_rules(project, RULES)

    redaction_jobs.ask_for_count(project, user)
    work_to_the_end()

    job = RedactionJob.objects.get()
    assert (job.state, job.looked_at) == ("counted", 3)
    assert job.counts["customer"][1] == 3
    assert job.counts["own_field"] == [1, 1]
    assert [bytes(run.content_digest) for run in Run.objects.order_by("pk")] == stored


def test_nothing_is_applied_that_was_not_counted(project, user):
    redaction_jobs.ask_for_count(project, user)
    work_to_the_end()
    save_rules(project, RULES)

    with pytest.raises(redaction_jobs.NotCounted):
        redaction_jobs.start(project, user)

    assert redaction_jobs.ask_for_count(project, user).rules == project.redaction
    assert RedactionJob.objects.filter(state="cancelled").count() == 1


def test_a_worker_that_dies_in_the_middle_loses_nothing_and_another_goes_on(project, user, monkeypatch):
    fill(project)
    rewrite, times = redacted_runs.rewrite, []

    def dies_once(*arguments, **named):
        times.append(1)
        if len(times) == 2:
            raise KeyboardInterrupt
        rewrite(*arguments, **named)

    monkeypatch.setattr(redacted_runs, "rewrite", dies_once)
    with pytest.raises(KeyboardInterrupt):
        applied(project, user)
    assert list(problems()) == []

    work_to_the_end()

    assert RedactionJob.objects.get().state == "done"
    assert places_of(SECRET) - {"sessions_app_project.redaction"} == set()
    assert list(problems()) == []


def test_done_again_it_changes_nothing(project, user):
    fill(project)
    applied(project, user)
    digests = [bytes(run.content_digest) for run in Run.objects.order_by("pk")]

    redaction_jobs.ask_for_count(project, user)
    work_to_the_end()
    redaction_jobs.start(project, user)
    work_to_the_end()

    newest = RedactionJob.objects.latest("pk")
    assert newest.counts == {}
    assert {name: count for name, count in newest.changed.items() if count} == {}
    assert [bytes(run.content_digest) for run in Run.objects.order_by("pk")] == digests


def test_a_payload_that_another_run_needs_stays(project, user):
    """It was doomed with a run that was changed, and is the same in both."""
    common = "".join(f"row {n * 7919 % 10007} of a catalogue; " for n in range(400))
    for name, more in (("a", SECRET), ("b", "nothing")):
        steps = [make_tool_step(result=common), make_tool_step("other", result=more)]
        ingest_document(project, json.dumps(make_record(name, *steps)).encode())

    applied(project, user)

    for run in Run.objects.all():
        assert common in load_run(run).steps[0].call.result.as_text()
    assert list(problems()) == []
    assert not HistoryNode.objects.exists()
    assert not SpanBatch.objects.exists()


# --- ids that a rule finds -----------------------------------------------------------------------


def recorded(project: Project, name: str, **fields: object) -> Run:
    record = make_record(name, make_tool_step(result="one"), session_id=f"chat with {SECRET}", **fields)
    return ingest_document(project, json.dumps(record).encode()).run


def test_links_lead_to_runs_whose_ids_a_rule_changed(project, user):
    run = recorded(project, f"order-{SECRET}")
    child = recorded(project, f"below-{SECRET}", parent={"run_id": run.run_id, "step": 1})
    Session.objects.update(tags=["refund"])
    asked = SessionReplay.objects.create(project=project, session=run.session)
    fork = Replay.objects.create(
        project=project, run=run, content=run.content, number=1, mode="fork", fork_id=f"{run.run_id}_fork_1"
    )
    golden = Golden.objects.create(
        project=project, run=run, name="kept", checks=[], fails_on=[run.run_id], passes_on=["other", child.run_id]
    )

    applied(project, user)

    for row in (run, child, asked, fork, golden):
        row.refresh_from_db()
    assert places_of(SECRET) - {"sessions_app_project.redaction"} == set()
    assert child.parent_run_id == load_run(run).run_id == run.run_id
    assert (golden.fails_on, golden.passes_on) == ([run.run_id], ["other", child.run_id])
    assert fork.fork_id == f"{run.run_id}_fork_1"
    assert asked.session == run.session == child.session == Session.objects.get()
    assert run.session.tags == ["refund"]
    assert list(problems()) == []


def test_a_session_and_what_came_of_it_since_the_rule_are_one(project, user):
    run = recorded(project, "before")
    Session.objects.update(tags=["refund"])
    asked = SessionReplay.objects.create(project=project, session=run.session)
    save_rules(project, RULES)
    later = recorded(project, "since")
    assert later.session != run.session

    applied(project, user)

    for row in (run, asked):
        row.refresh_from_db()
    assert asked.session == run.session == later.session == Session.objects.get()
    assert run.session.tags == ["refund"]


def test_a_run_whose_changed_id_is_taken_stays_and_is_named(project, user):
    """It was sent once more after the rule was saved."""
    run = recorded(project, f"order-{SECRET}")
    save_rules(project, RULES)
    recorded(project, run.run_id)

    job = applied(project, user)

    assert (job.state, job.unchanged) == ("done", [run.run_id])
    assert list(problems()) == []
