"""Nodes of histories: those that no other run has lie together in its content."""

import json
from typing import Any

import pytest

from sessions_app.core.history import messages
from sessions_app.core.run import ModelCall
from sessions_app.mapping.load import load_run
from sessions_app.mapping.run_contents import own_nodes, read_history
from sessions_app.models import HistoryNode, Project, Run
from sessions_app.services.ingest import ingest_document
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
    ends = (node for step in run.steps for node in (step.input_node, step.output_node))
    return {node.hex() for node in ends if node is not None}


def test_a_run_that_stands_alone_has_all_of_its_nodes(project):
    run = stored(project, make_growing_record("r", steps=12))

    nodes = own_nodes([run.content.pk])
    assert not HistoryNode.objects.exists()
    assert nodes.keys() == nodes_of_steps(run)
    assert run.content.node_count == len(nodes) == 12
    assert run.content.nodes is not None
    assert len(run.content.nodes) == 12 * 32 + 36


def test_turns_of_a_conversation_share_what_stood_in_front_of_them(project):
    runs = [stored(project, turn_of(number)) for number in range(6)]

    # Each message of a turn is stored once for its turn and once for all that follow: twice, and not once a turn.
    assert [run.content.node_count for run in runs] == [2] * 6
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
        counts.append(run.content.node_count)
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
    assert (HistoryNode.objects.count(), run.content.node_count) == (2, 3)
    assert [len(messages(call.history)) for _, call in load_run(run).model_calls] == [1, 3]


def test_nodes_are_read_as_far_as_they_are_asked_for(project):
    run = stored(project, make_growing_record("r", steps=12))
    call = load_run(run).steps[0].call
    assert isinstance(call, ModelCall)
    assert call.history
    assert call.history.length == 1

    assert list(read_history(run.content, [call.history.digest])) == [call.history.digest]
    assert read_history(run.content, [None]) == {}
    assert read_history(run.content, ["0" * 64]) == {}
