"""What comes back from the store is what was put in, in a fixed number of queries."""

import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.core.formats.detect import parse_document
from sessions_app.core.redaction import Redactor
from sessions_app.core.state import input_state, state_after
from sessions_app.mapping.load import load_facts, load_run, load_step, load_steps
from sessions_app.mapping.pieces import step_texts
from sessions_app.mapping.references import payload_references
from sessions_app.services.ingest import ingest_document
from sessions_app.services.verification import problems
from tests.builders import each_sample, make_growing_record, make_project, make_record, make_tool_step

pytestmark = pytest.mark.django_db


def ingest(value, project=None):
    content = value if isinstance(value, bytes) else json.dumps(value).encode()
    return ingest_document(project or make_project(), content).run


@each_sample
def test_load_run_gives_the_run_that_was_parsed(sample):
    project = make_project()
    content = sample.read_bytes()
    parsed = parse_document(Redactor(bytes(project.redaction_secret)).redact(content).content)

    row = ingest(content, project)
    run = load_run(row)
    facts = load_facts(row)

    assert run == parsed
    assert [load_step(row, step.index) for step in run.steps] == list(parsed.steps)
    assert (facts.input, facts.output, facts.error, facts.extra) == (run.input, run.output, run.error, run.extra)


def test_load_run_is_not_the_run_with_another_byte():
    document = json.dumps(make_growing_record("r", 4)).encode()

    row = ingest(document)

    assert load_run(row) != parse_document(document.replace(b"Sum up", b"Sum Up"))


def test_load_takes_the_same_number_of_queries_for_any_length():
    project = make_project()
    counts = []
    for steps in (4, 300):
        row = ingest(make_growing_record(f"r{steps}", steps), project)
        counts.append([count(load, row) for load in (load_run, load_facts, load_last_step, load_all_steps)])

    assert counts[0] == counts[1]
    print("queries for load_run, load_facts, load_step, load_steps:", counts[0])


def count(load, row):
    with CaptureQueriesContext(connection) as queries:
        load(row)
    return len(queries)


def load_last_step(row):
    return load_step(row, row.step_count)


def load_all_steps(row):
    return load_steps(row, after=0, limit=500)


def test_messages_that_changed_later_survive():
    first, edited = ({"kind": "request", "parts": [{"part_kind": "user-prompt", "content": text}]} for text in "ab")
    steps = [{"kind": "model", "request": {"messages": [message]}} for message in (first, edited, first)]

    run = load_run(ingest(make_record("r", *steps)))

    histories = [call.history for _, call in run.model_calls]
    assert [history.message.value for history in histories] == [first, edited, first]
    assert [history.length for history in histories] == [1, 1, 1]


CHANGES = [
    {"after": [{"op": "add", "path": "/docs", "value": [1, 2]}, {"op": "remove", "path": "/plan"}]},
    None,
    {"before": [{"op": "remove", "path": "/docs"}], "after": [{"op": "add", "path": "/a~1b", "value": {"x": None}}]},
    {"before": [{"op": "replace", "path": "/count", "value": 2}]},
    {"after": []},
    {"after": [{"op": "replace", "path": "/count", "value": 1.0}, {"op": "remove", "path": "/a~1b/x"}]},
]


@pytest.mark.parametrize("changes", [CHANGES, [*CHANGES[3:4], None], [None, None]], ids=["all", "between", "none"])
def test_pages_of_steps_show_the_states_of_the_whole_run(changes):
    steps = [make_tool_step(**({"state": change} if change else {})) for change in changes]
    row = ingest(make_record("r", *steps, initial_state={"plan": "x", "docs": [], "count": 0}))
    run = load_run(row)
    states = [(input_state(run, n), state_after(run, n)) for n in range(1, len(steps) + 1)]

    for after in range(len(steps)):
        _, found, _ = load_steps(row, after=after, limit=2)
        assert [(before, left) for before, left, _ in found] == states[after : after + 2]
    assert states[0][0] is not None


def test_states_are_unknown_after_a_change_that_does_not_fit():
    steps = [
        make_tool_step(state={"after": [{"op": "add", "path": "/a", "value": 1}]}),
        make_tool_step(state={"after": [{"op": "remove", "path": "/nothing"}]}),
        make_tool_step(state={"after": [{"op": "add", "path": "/b", "value": 1}]}),
    ]
    row = ingest(make_record("r", *steps))

    _, found, _ = load_steps(row, after=0, limit=10)

    assert found == [({}, {"a": 1}, ["+a"]), ({"a": 1}, None, ["\N{MINUS SIGN}nothing"]), (None, None, ["+b"])]


def test_a_reference_in_recorded_text_is_only_text():
    other = make_project("other")
    secret = ingest(make_record("r", input="of another project"), other)
    digest = load_run(secret).input.digest
    forged = {"sha256": digest, "node": digest}

    run = load_run(ingest(make_record("r", make_tool_step(result=forged, extra=forged), flags=forged)))

    assert run.steps[0].call.result.value == forged
    assert (run.flags, run.steps[0].extra) == (forged, {"extra": forged})


@pytest.mark.parametrize("forged", [{"piece": 9_999_999_999}, {"piece": 3}, {"sha256": "0" * 64}, {'x"piece': 3}])
def test_what_was_recorded_is_no_reference_to_a_payload(forged):
    state = {"after": [{"op": "add", "path": "/a", "value": forged}]}
    step = make_tool_step(odd=[forged], state=state, error={"type": "E", "odd": forged, "message": '"piece": 4}'})

    row = ingest(make_record("r", step, odd=forged, flags=forged, instructions='"piece": 5'))

    texts = [bytes(row.content.header), *step_texts(row.content, row.steps)]
    assert [payload_references(text) for text in texts] == [set(), set()]
    assert load_run(row).steps[0].extra == {"odd": [forged]}
    assert not list(problems())
