"""The content of a run never changes: forks share its steps, and it goes when nothing needs it any more."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import RestrictedError
from django.utils import timezone

from sessions_app.core.formats.native import encode_native, parse_native, run_digest
from sessions_app.core.history import extend
from sessions_app.core.payload import Payload
from sessions_app.core.run import ParentLink, Run
from sessions_app.mapping import contents_by_key
from sessions_app.mapping.load import load_content, load_run, load_step, load_steps
from sessions_app.models import Project, RunContent
from sessions_app.models import Run as Row
from sessions_app.services.bootstrap import remove_examples
from sessions_app.services.contents import KEPT_FOR, sweep_contents
from sessions_app.services.ingest import ingest_document
from sessions_app.services.replays import request_replay
from sessions_app.services.run_store import store_assembled, store_run
from sessions_app.services.verification import problems
from sessions_app.tasks.sweeper import StandIn, sweep
from tests.agents.talking import example
from tests.builders import make_record

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return Project.objects.create(slug="shop", name="shop")


@pytest.fixture
def parent(project: Project) -> Row:
    return ingest_document(project, json.dumps(example()).encode()).run


def fork_of(row: Row, run_id: str, *, keeps: int) -> Run:
    """Its steps up to `keeps` are the parent's, those after it are named anew."""
    run = load_run(row)
    steps = tuple(step if step.index <= keeps else replace(step, name=f"{run_id} {step.index}") for step in run.steps)
    return replace(run, run_id=run_id, origin="fork", parent=ParentLink(run_id=run.run_id, step=keeps + 1), steps=steps)


def stored(project: Project, run: Run) -> Row:
    return store_run(project, run, source=b"{}").run


def grown(row: Row) -> Run:
    """The same run with another answer and other names of its steps."""
    run = load_run(row)
    return replace(run, output=Payload.of_text("more"), steps=tuple(replace(step, name="anew") for step in run.steps))


def made_anew(project: Project, row: Row) -> Row:
    return store_assembled(project, grown(row), source=b"{}", made_before=row.pk)


def some_time_passes() -> None:
    ago = timezone.now() - KEPT_FOR - timedelta(seconds=1)
    RunContent.objects.filter(released_at__isnull=False).update(released_at=ago)


def swept() -> int:
    some_time_passes()
    return sweep_contents()


# --- what a fork shares ------------------------------------------------------------------------


def test_a_fork_has_rows_for_its_new_steps_only(project, parent):
    fork = stored(project, fork_of(parent, "f", keeps=3))

    assert [step.index for step in fork.content.own_steps] == [4, 5]
    assert fork.content.base == parent.content
    assert fork.content.base_steps == 3
    assert [step.index for step in fork.steps] == [1, 2, 3, 4, 5]


def test_a_fork_has_the_nodes_of_its_own_only(project, parent):
    same = stored(project, fork_of(parent, "f", keeps=3))
    longer = fork_of(parent, "g", keeps=3)
    after = extend(longer.final, [Payload.of_json({"kind": "response", "parts": []})])

    other = stored(project, replace(longer, final=after))

    assert (same.content.nodes, same.content.node_count) == (None, 0)
    assert (other.content.first_node, other.content.node_count) == (parent.content.node_count, 1)
    assert run_digest(load_run(other)) == run_digest(replace(longer, final=after))


def test_a_fork_is_read_as_it_was_stored(project, parent):
    made = fork_of(parent, "f", keeps=3)

    fork = stored(project, made)

    assert run_digest(load_run(fork)) == run_digest(made)
    assert parse_native(encode_native(load_run(fork))).steps == parse_native(encode_native(made)).steps
    steps, states, _ = load_steps(fork, after=2, limit=2)
    assert [step.index for step in steps] == [3, 4]
    assert states == load_steps(parent, after=2, limit=2)[1]


def test_a_fork_of_a_fork_shares_with_both(project, parent):
    first = stored(project, fork_of(parent, "f", keeps=2))

    second = stored(project, fork_of(first, "g", keeps=4))

    assert [(part.content, part.base_steps) for part in second.content.parts] == [
        (parent.content.pk, 0),
        (first.content.pk, 2),
        (second.content.pk, 4),
    ]
    assert second.content.base == first.content
    assert len(second.content.own_steps) == 1
    assert [step.name for step in load_run(second).steps][2:] == ["f 3", "f 4", "g 5"]


def test_a_fork_of_a_fork_may_begin_with_steps_of_the_first_run_alone(project, parent):
    first = stored(project, fork_of(parent, "f", keeps=3))

    second = stored(project, fork_of(first, "g", keeps=2))

    assert (second.content.base, second.content.base_steps) == (first.content, 2)
    assert [step.name for step in second.steps] == [step.name for step in load_run(second).steps]
    assert second.steps[:2] == parent.steps[:2]


def test_a_run_that_only_looks_alike_shares_nothing(project, parent):
    twin = stored(project, replace(load_run(parent), run_id="twin"))

    assert (twin.content.base_steps, twin.content.base, len(twin.content.own_steps)) == (0, None, 5)


def test_a_fork_that_names_itself_keeps_its_steps(project, parent):
    made = replace(fork_of(parent, "f", keeps=3), parent=ParentLink(run_id="f"))
    row = stored(project, made)

    store_assembled(project, replace(made, output=Payload.of_text("more")), source=b"{}", made_before=row.pk)

    assert not list(problems())


# --- what becomes of it when its parent changes or goes ----------------------------------------


def test_a_fork_keeps_the_steps_that_it_was_made_of(project, parent):
    made = fork_of(parent, "f", keeps=3)
    fork, second = stored(project, made), stored(project, fork_of(parent, "g", keeps=1))
    before = parent.content

    made_anew(project, parent)

    assert swept() == 0
    for row in (fork, second):
        row.refresh_from_db()
        assert row.content.base == before
    assert run_digest(load_run(fork)) == run_digest(made)
    assert load_step(second, 1).name != "anew"
    assert {step.name for step in load_run(Row.objects.get(pk=parent.pk)).steps} == {"anew"}
    assert not list(problems())


def test_a_fork_keeps_its_steps_when_a_running_parent_is_replaced(project):
    running = ingest_document(project, json.dumps(example() | {"run_id": "live", "status": "running"}).encode()).run
    made = fork_of(running, "f", keeps=3)
    fork = stored(project, made)

    ingest_document(project, json.dumps(example() | {"run_id": "live"}).encode())

    assert swept() == 0
    fork.refresh_from_db()
    assert run_digest(load_run(fork)) == run_digest(made)


def test_a_fork_of_an_example_keeps_its_steps_when_examples_are_removed(project, parent):
    Row.objects.filter(pk=parent.pk).update(is_example=True)
    made = replace(fork_of(parent, "f", keeps=3), session_id="elsewhere")
    fork = stored(project, made)

    assert remove_examples(project) == 1

    assert swept() == 0
    fork.refresh_from_db()
    assert run_digest(load_run(fork)) == run_digest(made)
    assert not list(problems())


def test_forks_of_forks_keep_what_they_share_when_either_goes(project, parent):
    answer = Payload.of_json({"kind": "response", "parts": []})
    after = extend(load_run(parent).final, [answer])
    first = stored(project, replace(fork_of(parent, "f", keeps=2), final=after))
    made = replace(fork_of(first, "g", keeps=4), final=extend(after, [answer]))
    second = stored(project, made)
    assert second.content.node_count == 1

    for row in (parent, first):
        RunContent.objects.filter(pk=row.content.pk).update(released_at=timezone.now())
        row.delete()

    assert swept() == 0
    second.refresh_from_db()
    assert run_digest(load_run(second)) == run_digest(made)


# --- what goes ---------------------------------------------------------------------------------


def test_a_content_that_its_run_has_released_is_swept_after_a_while(project, parent):
    before = parent.content
    made_anew(project, parent)

    assert sweep_contents() == 0
    assert before.own_blocks.exists()
    assert swept() == 1

    assert not RunContent.objects.filter(pk=before.pk).exists()
    assert not before.own_blocks.exists()
    assert not list(problems())


def test_the_sweeper_of_a_worker_deletes_what_nothing_needs(project, parent):
    made_anew(project, parent)
    some_time_passes()

    sweep(StandIn(threads=1))

    assert RunContent.objects.count() == 1


def test_whoever_found_a_run_before_it_was_made_anew_reads_it_as_it_was(project, parent):
    before = run_digest(load_run(parent))
    found = Row.objects.select_related("content").get(pk=parent.pk)

    made_anew(project, parent)

    assert run_digest(load_run(found)) == before
    assert run_digest(load_run(Row.objects.get(pk=parent.pk))) != before


def test_a_replay_keeps_what_it_was_asked_for(project, parent):
    before = run_digest(load_run(parent))
    replay = request_replay(run=parent, user=None, request_key=None)

    made_anew(project, parent)

    assert swept() == 0
    assert str(replay.content) == before == run_digest(load_content(replay.content))


def test_the_content_of_a_deleted_run_is_swept(project, parent):
    Row.objects.filter(pk=parent.pk).update(is_example=True)
    remove_examples(project)

    assert swept() == 1
    assert not RunContent.objects.exists()


def test_a_content_that_is_needed_cannot_be_deleted(project, parent):
    stored(project, fork_of(parent, "f", keeps=3))

    with pytest.raises(RestrictedError):
        parent.content.delete()


def test_a_project_goes_with_all_of_its_contents(project, parent):
    stored(project, fork_of(parent, "f", keeps=3))
    request_replay(run=parent, user=None, request_key=None)

    project.delete()

    assert not RunContent.objects.exists()


def test_contents_are_found_by_key_without_walking_through_all_of_them(project, parent):
    """Control: an order and a limit make PostgreSQL walk."""
    have = RunContent.objects.filter(keys__overlap=[1, 2, 3, 4]).order_by("-pk")[:1]
    with connection.cursor() as cursor:
        columns = (str(field.column) for field in RunContent._meta.concrete_fields)
        names = [column for column in columns if column not in ("id", "keys")]
        cursor.execute(_COPIES.format(columns=", ".join(names)), [parent.content_id])
        cursor.execute("SELECT gin_clean_pending_list('contents_by_key')")
        cursor.execute("ANALYZE sessions_app_runcontent")
        question = contents_by_key._FIND.replace(")b", ")s")
        cursor.execute(f"EXPLAIN {question}", {"keys": [1, 2, 3, 4], "projects": [project.pk], "most": 1})
        plan = str(cursor.fetchall())

    assert "Bitmap Index Scan on contents_by_key" in plan
    assert "Index Scan Backward using sessions_app_runcontent_pkey" in have.explain()


_COPIES = """
INSERT INTO sessions_app_runcontent (keys, {columns})
SELECT (SELECT array_agg((random() * 9e18)::bigint) FROM generate_series(1, 40) WHERE number > 0), {columns}
FROM sessions_app_runcontent, generate_series(1, 4000) number WHERE id = %s
"""


def test_two_growing_runs_that_add_no_message_do_not_go_on_from_each_other(project):
    prior = [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Hello."}]}]
    facts = {"status": "running", "session_id": "s", "prior": prior, "final": {"after": 0, "messages": []}}
    for time in range(4):
        for name in ("a", "b"):
            ingest_document(project, json.dumps(make_record(name, **facts, output=time)).encode())

    swept()

    assert RunContent.objects.count() == 2


# --- what is damaged ---------------------------------------------------------------------------

DAMAGED = {
    "outline": {"outline": b"damaged"},
    "nodes": {"nodes": b"damaged"},
}


@pytest.mark.parametrize("columns", DAMAGED.values(), ids=DAMAGED)
def test_what_goes_on_from_a_damaged_content_is_stored_whole(project, parent, columns):
    made = fork_of(parent, "f", keeps=3)
    RunContent.objects.filter(pk=parent.content.pk).update(**columns)

    fork = stored(project, made)

    assert encode_native(load_run(Row.objects.get(pk=fork.pk))) == encode_native(made)
