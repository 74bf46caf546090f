"""Nodes of histories lie in the content of their run, which goes on from that of the turn before."""

import json
from typing import Any

import pytest
from django.utils import timezone

from sessions_app.core.history import messages
from sessions_app.mapping.load import load_run
from sessions_app.mapping.run_contents import read_history
from sessions_app.models import Project, Run, RunContent
from sessions_app.services.contents import KEPT_FOR, sweep_contents
from sessions_app.services.deletion import delete_run
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


def nodes_of_steps(run: Run) -> set[int]:
    ends = (node for step in run.steps for node in (step.input_node, step.output_node))
    return {node for node in ends if node is not None}


def test_a_run_that_stands_alone_has_all_of_its_nodes(project):
    run = stored(project, make_growing_record("r", steps=12))

    assert nodes_of_steps(run) == read_history(run.content, nodes_of_steps(run)).keys() == set(range(12))
    assert run.content.node_count == 12
    assert run.content.nodes is not None
    assert len(run.content.nodes) < 80


def test_a_turn_of_a_conversation_goes_on_from_the_turn_before(project):
    runs = [stored(project, turn_of(number)) for number in range(6)]

    assert [run.content.base for run in runs] == [None, *(run.content for run in runs[:-1])]
    assert [run.content.node_count for run in runs] == [2] * 6
    assert {run.content.piece_count for run in runs[1:]} == {3}
    histories = [load_run(run).steps[0].call.history for run in Run.objects.order_by("pk")]
    assert [len(messages(history)) for history in histories] == [1, 3, 5, 7, 9, 11]
    assert list(problems()) == []


@pytest.mark.parametrize("has_prior", [True, False])
def test_turns_in_which_something_else_is_asked_first_share_them_too(project, has_prior):
    """As a guard does, or a model that finds a title. Without what was said before, nobody knows that it is a turn."""
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

    assert counts == [6, *[4] * 7] if has_prior else counts == [2 * number + 4 for number in range(1, 9)]


def test_a_turn_that_others_go_on_from_stays_when_its_run_is_deleted(project):
    runs = [stored(project, turn_of(number)) for number in range(3)]

    delete_run(runs[1])
    RunContent.objects.filter(released_at__isnull=False).update(released_at=timezone.now() - 2 * KEPT_FOR)

    assert sweep_contents() == 0
    assert [len(messages(load_run(run).steps[0].call.history)) for run in Run.objects.order_by("pk")] == [1, 5]
    delete_run(runs[2])
    RunContent.objects.filter(released_at__isnull=False).update(released_at=timezone.now() - 2 * KEPT_FOR)
    assert (sweep_contents(), sweep_contents()) == (2, 0)


def test_an_answer_in_the_middle_of_a_history_is_no_place_of_its_own(project):
    """The second request goes on from the first one, and not from its answer."""
    asked = [said("Q"), said("It is urgent."), said("Really.")]
    first = {"kind": "model", "request": {"messages": asked[:1]}, "response": answered("A")}
    steps = [first, {"kind": "model", "request": {"messages": asked}, "response": answered("B")}]

    run = stored(project, make_record("r", *steps))

    assert list(problems()) == []
    assert run.content.node_count == 5
    assert [len(messages(call.history)) for _, call in load_run(run).model_calls] == [1, 3]


def test_nodes_are_read_as_far_as_they_are_asked_for(project):
    run = stored(project, make_growing_record("r", steps=12))
    first = run.steps[0].input_node

    assert list(read_history(run.content, [first])) == [first]
    assert read_history(run.content, [None]) == {}
    assert read_history(run.content, [99]) == {}
