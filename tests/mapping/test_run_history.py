"""Nodes of histories: those that no other run has lie together beside their run."""

import json
from dataclasses import replace
from typing import Any

import pytest

from sessions_app.core.formats.native import run_digest
from sessions_app.core.history import extend, messages
from sessions_app.core.payload import Payload
from sessions_app.core.run import ModelCall
from sessions_app.mapping.history_nodes import write_nodes
from sessions_app.mapping.load import load_run
from sessions_app.mapping.run_history import own_nodes, read_history
from sessions_app.models import HistoryNode, Project, Run, RunHistory
from sessions_app.services.ingest import ingest_document
from sessions_app.services.run_store import store_assembled
from sessions_app.services.verification import problems
from tests.builders import make_growing_record, make_project, make_record

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return make_project()


def said(text: str) -> dict[str, Any]:
    return {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": text}]}


def answered(text: str) -> dict[str, Any]:
    return {"kind": "response", "parts": [{"part_kind": "text", "content": text}]}


def turn_of(number: int) -> dict[str, Any]:
    """A turn of a conversation, which goes on from all turns before it."""
    prior = [message for turn in range(number) for message in (said(f"Q{turn}"), answered(f"A{turn}"))]
    step = {
        "kind": "model",
        "request": {"messages": [*prior, said(f"Q{number}")]},
        "response": answered(f"A{number}"),
    }
    return make_record(f"turn-{number}", step, prior=prior)


def stored(project: Project, record: dict[str, Any]) -> Run:
    return ingest_document(project, json.dumps(record).encode()).run


def nodes_of_steps(run: Run) -> set[str]:
    ends = run.steps.values_list("input_node", "output_node")
    return {bytes(node).hex() for pair in ends for node in pair if node is not None}


def test_a_run_that_stands_alone_has_all_of_its_nodes(project):
    run = stored(project, make_growing_record("r", steps=12))

    nodes = own_nodes([run.pk])
    assert not HistoryNode.objects.exists()
    assert nodes.keys() == nodes_of_steps(run)
    assert run.own_history.count == len(nodes) == 12
    assert len(run.own_history.nodes) == 12 * 32 + 36


def test_turns_of_a_conversation_share_what_stood_in_front_of_them(project):
    runs = [stored(project, turn_of(number)) for number in range(6)]

    # Each message of a turn is stored once for its turn and once for all that follow: twice, and not once a turn.
    assert [run.own_history.count for run in runs] == [2] * 6
    assert HistoryNode.objects.count() == 2 * 5
    histories = [load_run(run).steps[0].call.history for run in runs]
    assert [len(messages(history)) for history in histories] == [1, 3, 5, 7, 9, 11]


@pytest.mark.parametrize("has_prior", [True, False])
def test_turns_in_which_something_else_is_asked_first_share_them_too(project, has_prior):
    """As a guard does, or a model that finds a title."""
    counts = []
    for number in range(1, 9):
        turn = turn_of(number) | ({} if has_prior else {"prior": []})
        guard = {
            "kind": "model",
            "request": {"messages": [said(f"Is Q{number} harmless?")]},
            "response": answered("Yes."),
        }
        run = stored(project, turn | {"steps": [guard, *turn["steps"]]})
        counts.append(run.own_history.count)
        assert [len(messages(call.history)) for _, call in load_run(run).model_calls] == [1, 2 * number + 1]

    assert counts == [4] * 8
    assert HistoryNode.objects.count() == 2 * 8


def test_a_row_follows_rows_only(project):
    """The second request goes on from the first one, and not from its answer."""
    asked = [said("Q"), said("It is urgent."), said("Really.")]
    first = {"kind": "model", "request": {"messages": asked[:1]}, "response": answered("A")}
    steps = [first, {"kind": "model", "request": {"messages": asked}, "response": answered("B")}]

    run = stored(project, make_record("r", *steps))

    assert list(problems()) == []
    assert (HistoryNode.objects.count(), run.own_history.count) == (2, 3)
    assert [len(messages(call.history)) for _, call in load_run(run).model_calls] == [1, 3]


def test_nodes_are_read_as_far_as_they_are_asked_for(project):
    run = stored(project, make_growing_record("r", steps=12))
    call = load_run(run).steps[0].call
    assert isinstance(call, ModelCall)
    assert call.history
    assert call.history.length == 1

    assert list(read_history(run, [call.history.digest])) == [call.history.digest]
    assert read_history(run, [None]) == {}
    assert read_history(run, ["0" * 64]) == {}


def test_a_run_that_is_made_anew_while_it_is_read_is_the_new_one(project):
    row = stored(project, make_growing_record("r", steps=12))
    _, last = load_run(row).model_calls[-1]
    words = ("One end.", "Another end.")
    ends = [extend(last.output_history, [Payload.of_json(answered(each))]) for each in words]
    one, other = [replace(load_run(row), final=end) for end in ends]
    store_assembled(project, one, source=b"{}", made_before=row.pk)
    read_before = Run.objects.get(pk=row.pk)

    store_assembled(project, other, source=b"{}", made_before=row.pk)

    assert run_digest(load_run(read_before)) == run_digest(other)


def test_a_run_from_before_has_rows_for_all(project):
    run = stored(project, make_growing_record("r", steps=12))
    whole = load_run(run)
    write_nodes(project.pk, own_nodes([run.pk]))

    RunHistory.objects.all().delete()

    assert load_run(run) == whole
