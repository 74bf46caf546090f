"""Rows of steps from before their texts were compressed, or lay in blocks, are found and read as new ones are."""

import pytest
from django.db import connection

from sessions_app.core.payload import compact_json
from sessions_app.mapping.details import details
from sessions_app.mapping.load import load_run, steps_with_state
from sessions_app.mapping.rows import value_key
from sessions_app.models import Run, Step, StepBlock
from sessions_app.queries.borrowing import nearest_calls, tool_answer
from sessions_app.queries.sharing import run_holds
from sessions_app.services.ingest import ingest_document
from tests.builders import make_project, make_record, make_tool_step

pytestmark = pytest.mark.django_db
ASKED = {"query": "late orders"}
CHANGE = {"after": [{"op": "add", "path": "/plan", "value": "x"}]}


def in_rows() -> list[bytes | None]:
    """What the database has in the rows of steps."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT detail FROM sessions_app_step ORDER BY index")
        return [None if detail is None else bytes(detail) for (detail,) in cursor.fetchall()]


def make_compressed(run: Run) -> None:
    """As the rows of a run were before there were blocks."""
    for index, text in details(run.steps):
        Step.objects.filter(index=index).update(detail=text)
    StepBlock.objects.all().delete()


def make_old(run: Run) -> None:
    """As they were before they were compressed."""
    with connection.cursor() as cursor:
        for index, text in details(run.steps):
            plain = "UPDATE sessions_app_step SET detail = %s, has_state = NULL, tool_name = NULL WHERE index = %s"
            cursor.execute(plain, [text, index])
        cursor.execute("UPDATE sessions_app_run SET header = %s", [bytes(run.header)])
    StepBlock.objects.all().delete()


def form(detail: bytes | None) -> str:
    if detail is None:
        return "new"
    return "old" if detail.startswith(b"{") else "compressed"


@pytest.fixture(params=["new", "compressed", "old"])
def run(request):
    steps = [
        make_tool_step(arguments=ASKED, result="none are late", name="looking for orders"),
        make_tool_step(tool_name="other", arguments=ASKED, state={"after": []}),
        make_tool_step(tool_name="other", arguments=ASKED, state=CHANGE),
    ]
    record = make_record("r", *steps, input="Which orders are late?")
    run = ingest_document(make_project(), compact_json(record)).run
    {"new": lambda run: None, "compressed": make_compressed, "old": make_old}[request.param](run)
    assert list(map(form, in_rows())) == [request.param] * 3
    return Run.objects.get()


def test_texts_are_read(run):
    found = load_run(run)

    assert found.steps[0].call.result.value == "none are late"
    assert found.input.value == "Which orders are late?"


def test_steps_that_speak_of_the_state_are_found(run):
    assert [step.index for step in steps_with_state(run)] == [2, 3]


def test_answers_are_found_by_the_tool_and_not_by_the_name_of_the_step(run):
    key = value_key(load_run(run).steps[0].call.arguments) or b""

    assert tool_answer(run.project_id, "search", key, not_in=()).call.result.value == "none are late"
    assert tool_answer(run.project_id, "looking for orders", key, not_in=()) is None
    near = nearest_calls(run.project_id, run, "search", {"query": "orders"})
    assert [(found.step, found.is_same_run) for found in near] == [(1, True)]


def test_a_payload_of_a_step_belongs_to_the_run(run):
    result = load_run(run).steps[0].call.result

    assert run_holds(run, result.digest)
    assert not run_holds(run, "0" * 64)
