"""A fork shares the rows of its parent's steps, and keeps them when the parent goes or changes."""

import json
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from sessions_app.core.formats.native import encode_native, parse_native, run_digest
from sessions_app.core.history import extend
from sessions_app.core.payload import Payload
from sessions_app.core.run import ParentLink, Run
from sessions_app.mapping.history_nodes import write_nodes
from sessions_app.mapping.kept_steps import give_back
from sessions_app.mapping.load import load_run, load_step, load_steps
from sessions_app.mapping.run_history import own_nodes, take_over
from sessions_app.models import Project
from sessions_app.models import Run as Row
from sessions_app.services.bootstrap import remove_examples
from sessions_app.services.ingest import ingest_document
from sessions_app.services.run_store import store_assembled, store_run
from sessions_app.services.verification import problems
from tests.agents.talking import example

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


def test_a_fork_has_rows_for_its_new_steps_only(project, parent):
    fork = stored(project, fork_of(parent, "f", keeps=3))

    assert [step.index for step in fork.own_steps.order_by("index")] == [4, 5]
    assert fork.kept == [{"run": parent.pk, "after": 0, "upto": 3}]
    assert [step.index for step in fork.steps.order_by("index")] == [1, 2, 3, 4, 5]


def test_a_fork_has_the_nodes_of_its_own_only(project, parent):
    same = stored(project, fork_of(parent, "f", keeps=3))
    longer = fork_of(parent, "g", keeps=3)
    after = extend(longer.final, [Payload.of_json({"kind": "response", "parts": []})])

    other = stored(project, replace(longer, final=after))

    assert not own_nodes([same.pk])
    assert list(own_nodes([other.pk])) == [after.digest]
    assert run_digest(load_run(other)) == run_digest(replace(longer, final=after))


def test_forks_of_forks_keep_their_nodes_when_either_goes(project, parent):
    after = extend(load_run(parent).final, [Payload.of_json({"kind": "response", "parts": []})])
    first = stored(project, replace(fork_of(parent, "f", keeps=2), final=after))
    made = replace(fork_of(first, "g", keeps=4), final=after)
    second = stored(project, made)
    assert not own_nodes([second.pk])

    for lender in (first, parent):
        give_back(lender)
        lender.delete()

    second.refresh_from_db()
    assert run_digest(load_run(second)) == run_digest(made)


def test_a_fork_gets_no_more_nodes_than_its_steps_lead_to(project, parent):
    answer = Payload.of_json({"kind": "response", "parts": []})
    run = load_run(parent)
    grown = store_assembled(
        project, replace(run, final=extend(run.final, [answer] * 50)), source=b"{}", made_before=parent.pk
    )
    made = replace(fork_of(grown, "f", keeps=3), final=None)
    fork = stored(project, made)

    give_back(grown)

    assert 0 < len(own_nodes([fork.pk])) <= len(own_nodes([grown.pk])) - 50
    fork.refresh_from_db()
    assert run_digest(load_run(fork)) == run_digest(made)


def test_what_leads_through_another_lender_is_taken_over_too(project, parent):
    """The first fork's node follows the parent's nodes, and those of the second follow it."""
    answer = Payload.of_json({"kind": "response", "parts": []})
    after = extend(load_run(parent).final, [answer])
    first = stored(project, replace(fork_of(parent, "f", keeps=2), final=after))
    made = replace(fork_of(first, "g", keeps=4), final=extend(after, [answer]))
    second = stored(project, made)
    assert len(own_nodes([second.pk])) == 1

    for lender in (parent, first):
        give_back(lender)
        lender.delete()

    second.refresh_from_db()
    assert run_digest(load_run(second)) == run_digest(made)


def test_what_a_fork_has_already_stays_with_it_for_those_that_share_with_it(project, parent):
    """Also when the run that it now shares with has the same nodes."""
    first, second = stored(project, fork_of(parent, "f", keeps=2)), stored(project, fork_of(parent, "g", keeps=2))
    take_over(second, parent.pk)
    has = own_nodes([second.pk])
    assert has
    take_over(first, parent.pk)
    second.kept = [{"run": first.pk, "after": 0, "upto": 1}, *second.kept]

    take_over(second, parent.pk)

    assert own_nodes([second.pk]) == has


def test_a_fork_that_names_itself_keeps_its_steps(project, parent):
    made = replace(fork_of(parent, "f", keeps=3), parent=ParentLink(run_id="f"))
    row = stored(project, made)

    store_assembled(project, replace(made, output=Payload.of_text("more")), source=b"{}", made_before=row.pk)

    assert not list(problems())


def test_a_fork_that_was_read_before_its_parent_changed_has_each_step_once(project, parent):
    fork = stored(project, fork_of(parent, "f", keeps=3))
    renamed = replace(load_run(parent), steps=tuple(replace(s, name="anew") for s in load_run(parent).steps))

    store_assembled(project, renamed, source=b"{}", made_before=parent.pk)

    assert len(fork.kept) == 1
    assert [step.index for step in fork.steps.order_by("index")] == [1, 2, 3, 4, 5]
    assert load_step(fork, 1).name != "anew"


def test_a_fork_of_an_example_keeps_its_steps_when_examples_are_removed(project, parent):
    Row.objects.filter(pk=parent.pk).update(is_example=True)
    made = replace(fork_of(parent, "f", keeps=3), session_id="elsewhere")
    fork = stored(project, made)

    assert remove_examples(project) == 1

    fork.refresh_from_db()
    assert run_digest(load_run(fork)) == run_digest(made)
    assert not list(problems())


def test_a_run_that_is_made_anew_while_it_is_loaded_is_read_again(project, parent):
    run = load_run(parent)
    grown = replace(run, output=Payload.of_text("more"), steps=tuple(replace(step, name="anew") for step in run.steps))

    store_assembled(project, grown, source=b"{}", made_before=parent.pk)

    assert run_digest(load_run(parent)) == run_digest(grown)


@pytest.mark.django_db(transaction=True)
def test_a_fork_that_comes_while_its_parent_is_made_anew_waits(project, parent):
    made = replace(fork_of(parent, "f", keeps=3), session_id="elsewhere")  # those of one session take turns anyway
    renamed = replace(load_run(parent), steps=tuple(replace(s, name="anew") for s in load_run(parent).steps))

    with ThreadPoolExecutor() as pool:
        with transaction.atomic():
            store_assembled(project, renamed, source=b"of its own", made_before=parent.pk)
            fork = pool.submit(in_thread, stored, project, made)
            assert wait([fork], timeout=0.5).not_done
        row = fork.result()

    assert row.kept == []
    assert run_digest(load_run(row)) == run_digest(made)


def in_thread(function, *arguments):
    try:
        return function(*arguments)
    finally:
        connection.close()


def test_a_fork_of_a_run_from_before_has_all_of_its_nodes(project, parent):
    write_nodes(project.pk, own_nodes([parent.pk]))
    parent.own_history.delete()
    parent = Row.objects.get(pk=parent.pk)
    made = fork_of(parent, "f", keeps=3)

    fork = stored(project, made)

    assert len(fork.kept) == 1
    assert len(own_nodes([fork.pk])) == len(own_nodes([ingest_document(project, twin()).run.pk])) > 0
    give_back(parent)
    parent.delete()
    fork.refresh_from_db()
    assert run_digest(load_run(fork)) == run_digest(made)


def twin() -> bytes:
    """The same run under another id."""
    return json.dumps(example() | {"run_id": "twin"}).encode()


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

    assert second.kept == [
        {"run": parent.pk, "after": 0, "upto": 2},
        {"run": first.pk, "after": 2, "upto": 4},
    ]
    assert second.own_steps.count() == 1
    assert [step.name for step in load_run(second).steps][2:] == ["f 3", "f 4", "g 5"]


def test_a_run_that_only_looks_alike_shares_nothing(project, parent):
    run = replace(load_run(parent), run_id="twin")

    twin = stored(project, run)

    assert (twin.kept, twin.own_steps.count()) == ([], 5)


def test_forks_keep_their_steps_when_their_parent_is_made_anew(project, parent):
    made = fork_of(parent, "f", keeps=3)
    fork, second = stored(project, made), stored(project, fork_of(parent, "g", keeps=1))
    grown = replace(load_run(parent), output=Payload.of_text("more came"))
    renamed = replace(grown, steps=tuple(replace(step, name="anew") for step in grown.steps))

    store_assembled(project, renamed, source=b"{}", made_before=parent.pk)

    for row, steps in ((fork, made.steps), (second, fork_of_steps(made, "g", 1))):
        row.refresh_from_db()
        assert (row.kept, row.own_steps.count()) == ([], 5)
        assert [step.name for step in load_run(row).steps] == [step.name for step in steps]
    assert {step.name for step in load_run(Row.objects.get(pk=parent.pk)).steps} == {"anew"}
    assert not list(problems())


def fork_of_steps(made: Run, run_id: str, keeps: int):
    original = example()["steps"]
    return [
        replace(step, name=original[step.index - 1]["name"] if step.index <= keeps else f"{run_id} {step.index}")
        for step in made.steps
    ]


def test_forks_keep_their_steps_when_a_running_parent_is_replaced(project):
    running = ingest_document(project, json.dumps(example() | {"run_id": "live", "status": "running"}).encode()).run
    made = fork_of(running, "f", keeps=3)
    fork = stored(project, made)

    ingest_document(project, json.dumps(example() | {"run_id": "live"}).encode())

    fork.refresh_from_db()
    assert fork.own_steps.count() == 5
    assert run_digest(load_run(fork)) == run_digest(made)


def test_a_run_that_is_made_anew_finds_those_that_share_by_an_index(project, parent):
    """Each late span of a trace makes its run anew; looking through all runs then would grow with what is stored."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_indexscan = off")  # in a small table the primary key costs the same
    with CaptureQueriesContext(connection) as asked:
        give_back(parent)

    [sql] = [query["sql"] for query in asked if '"kept"' in query["sql"]]
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {sql}")
        plan = "\n".join(line for (line,) in cursor.fetchall())

    assert "runs_that_share" in plan
