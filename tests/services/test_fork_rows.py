"""The tree of forks of a run. Produced runs are stored as the engine stores them; nothing is run here."""

import pytest

from sessions_app.management.telling import stop_lines
from sessions_app.mapping.load import load_run
from sessions_app.models import Replay
from sessions_app.queries.forks import MAX_DEPTH, MAX_ROWS, fork_rows
from sessions_app.services.fork_facts import fork_facts
from sessions_app.services.replays import request_replay
from tests.builders import make_project
from tests.services.forking import make_fork, make_order, make_run, pause, stop, tool_stop

pytestmark = pytest.mark.django_db


@pytest.fixture
def run():
    return make_run(make_project())


def make_child(run, run_id, **changes):
    """A fork that ended, and the run that it made."""
    fork, made = make_fork(run, **changes), make_run(run.project, run_id=run_id)
    Replay.objects.filter(pk=fork.pk).update(produced_run=made, state="done", verdict="diverged")
    return made


def test_forks_of_forks_stand_below_them(run):
    first = make_child(run, "first")
    second = make_child(run, "second")
    make_child(first, "first of first")
    make_child(second, "first of second")
    make_child(first, "second of first")

    rows = [(row.run.run_id, row.depth, row.parent_run_id) for row in fork_rows(run)]

    assert rows == [
        ("first", 1, "cancel_5521"),
        ("first of first", 2, "first"),
        ("second of first", 2, "first"),
        ("second", 1, "cancel_5521"),
        ("first of second", 2, "second"),
    ]
    assert [row.run.run_id for row in fork_rows(second)] == ["first of second"]


def test_replays_that_change_nothing_are_no_forks(run):
    request_replay(run=run)
    fork = make_fork(run)

    assert [row.replay for row in fork_rows(run)] == [fork]


def test_a_row_tells_what_was_asked_and_what_came_of_it(run):
    made = make_child(run, "made", expect={"ends_within": 2})
    facts = {"sources": {"recorded": 1, "by_hand": 1}}
    divergence = {"step": 2, "path": "result", "recorded": 1, "replayed": 2}
    Replay.objects.update(expectation_met=False, facts=facts, divergence=divergence)

    [row] = fork_rows(run)

    assert (row.changes, row.hypothesis) == (make_order()["changes"], "It asks again.")
    assert (row.expectation, row.met) == ("ends within 2 steps", False)
    assert (row.divergence, row.sources) == ({"step": 2, "path": "result"}, facts["sources"])
    assert (row.outcome, row.steps) == (made.output_preview, 5)
    assert (row.input_tokens, row.output_tokens) == (made.input_tokens, made.output_tokens)


def test_a_fork_without_an_end_says_where_it_is(run):
    waiting = make_fork(run)
    stop(make_fork(run), tool_stop())
    pause(make_fork(run), tool_stop(step=4))
    failed = make_fork(run)
    Replay.objects.filter(pk=failed.pk).update(state="failed", error="The request was not captured.")

    assert [row.outcome for row in fork_rows(run)] == [
        "queued",
        "stopped at step 2, tool lookup_order",
        "paused at step 4, tool lookup_order",
        "The request was not captured.",
    ]
    assert fork_rows(run)[0].replay == waiting


def test_a_tree_takes_two_queries_however_large_it_is(run, django_assert_num_queries):
    make_child(run, "0")
    with django_assert_num_queries(2):
        assert seen(fork_rows(run))
    parent = run
    for number in range(1, 4):
        parent = make_child(parent, str(number))

    with django_assert_num_queries(2):
        assert len(seen(fork_rows(run))) == 4


def seen(rows):
    """All that a page shows."""
    return [
        (row.replay.run.run_id, row.run.session.session_id, row.outcome, row.replay.requested_by, row.run.status)
        for row in rows
    ]


def test_a_tree_is_bounded(run):
    parent = run
    for number in range(MAX_DEPTH + 2):
        parent = make_child(parent, str(number))
    assert [row.depth for row in fork_rows(run)] == list(range(1, MAX_DEPTH + 1))

    fork = make_fork(run)
    Replay.objects.bulk_create(
        Replay(project=run.project, run=run, content=run.content, number=number, mode="fork")
        for number in range(1000, 1000 + MAX_ROWS)
    )

    assert len(fork_rows(run)) == MAX_ROWS
    assert fork in [row.replay for row in fork_rows(run)]


def test_a_sessions_other_project_has_its_own_tree(run):
    other = make_run(make_project("other"))
    make_fork(run)

    assert fork_rows(other) == []


def test_a_request_that_a_tool_sent_is_named_where_its_fork_stopped(run):
    sent = {"method": "GET", "url": "http://shop.test/other", "reason": "no recorded exchange"}
    fork = stop(make_fork(run), tool_stop())
    assert fork_facts(fork, load_run(run)).asked == "lookup_order"
    Replay.objects.filter(pk=fork.pk).update(facts={"asked_for": {"tool": "lookup_order", "http": sent}})
    fork.refresh_from_db()

    assert fork_facts(fork, load_run(run)).asked == "GET http://shop.test/other (sent by lookup_order)"
    assert "  it sent GET http://shop.test/other: no recorded exchange" in list(stop_lines(fork))
