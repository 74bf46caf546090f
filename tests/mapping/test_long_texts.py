"""Long instructions are kept once, however many runs have them; previews say that they were cut."""

import json

import pytest

from sessions_app.core.errors import PayloadMissing
from sessions_app.core.payload import Payload
from sessions_app.mapping.load import load_facts, load_run
from sessions_app.mapping.references import payload_references
from sessions_app.mapping.rows import PREVIEW, STEP_PREVIEW, preview
from sessions_app.models import Run, StoredPayload
from sessions_app.queries.run_ends import ends_of
from sessions_app.queries.sharing import run_holds
from sessions_app.services.ingest import ingest_document
from tests.builders import make_client, make_key, make_project, make_record, make_tool_step

pytestmark = pytest.mark.django_db
LONG = "Answer politely and look things up. " * 120
MEDIUM = LONG[:700]
TEXTS = {
    "short": "Be kind.",
    "empty": "",
    "at the limit": "x" * 254,
    "medium": MEDIUM,
    "long": LONG,
    "like an object": json.dumps({"sha256": "0" * 64}) + " " * 300,
    "many signs": "é☃𝄞\u0000" * 100,
}


def ingest(project, run_id, instructions, **fields):
    record = make_record(run_id, make_tool_step(), instructions=instructions, **fields)
    return ingest_document(project, json.dumps(record).encode()).run


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_instructions_come_back(text):
    ingest(make_project(), "r", text)
    run = Run.objects.get()

    assert load_run(run).instructions == text
    assert load_facts(run).instructions == text
    assert ends_of(run).instructions == text


def test_long_instructions_of_many_runs_are_one_payload():
    project = make_project()
    runs = [ingest(project, f"r{number}", LONG) for number in range(3)]

    assert {LONG.encode() in bytes(run.content.header) for run in runs} == {False}
    (shared,) = set.intersection(*(payload_references(bytes(run.content.header)) for run in runs))
    assert isinstance(shared, str)
    assert StoredPayload.objects.filter(digest=bytes.fromhex(shared)).count() == 1
    assert run_holds(runs[0], shared)


def test_others_are_another_payload():
    project = make_project()
    one, other = ingest(project, "r1", LONG), ingest(project, "r2", LONG + "!")

    assert not payload_references(bytes(one.content.header)) & payload_references(bytes(other.content.header))


def test_instructions_whose_bytes_are_gone_are_not_captured():
    run = ingest(make_project(), "r", LONG)
    StoredPayload.objects.all().delete()

    assert ends_of(run).instructions is None
    with pytest.raises(PayloadMissing):
        load_run(run)


@pytest.mark.parametrize(("length", "is_cut"), [(STEP_PREVIEW, False), (STEP_PREVIEW + 1, True), (10_000, True)])
@pytest.mark.parametrize("sign", ["x", "é", "𝄞"])
def test_a_preview_says_that_it_is_one(sign, length, is_cut):
    record = make_record("r", make_tool_step(result=sign * length))
    ingest_document(make_project(), json.dumps(record).encode())
    shown = Run.objects.get().steps[0].result_preview or ""

    assert len(shown) == min(length, STEP_PREVIEW)
    assert shown.endswith("…") == is_cut


@pytest.mark.parametrize("length", [10, 10_000])
def test_so_does_that_of_an_error(length):
    record = make_record("r", make_tool_step(outcome="failed", result="x", error={"message": "e" * length}))
    ingest_document(make_project(), json.dumps(record).encode())
    shown = Run.objects.get().steps[0].error_preview or ""

    assert len(shown) <= PREVIEW
    assert shown.endswith("…") == (length > PREVIEW)


SPELLED = {
    '{"a": "\\u6ce8\\u6587"}': '{"a": "注文"}',
    '{"a": "\\\\u6ce8"}': '{"a": "\\\\u6ce8"}',
    '{"a": "\\ud83d\\ude00 \\u0022 \\u202e \\ud800"}': '{"a": "😀 \\u0022 \\u202e \\ud800"}',
}


@pytest.mark.parametrize(("sent", "shown"), SPELLED.items())
def test_previews_show_the_letters_that_json_spells_as_escapes(sent, shown):
    assert preview(Payload(content=sent.encode(), media_type="application/json")) == shown


def test_a_preview_of_escaped_json_is_as_long_as_any_other():
    shown = preview(Payload(content=json.dumps("注" * 999).encode(), media_type="application/json"))

    assert shown is not None
    assert len(shown) == PREVIEW


def test_a_run_is_found_by_words_that_its_input_spells_as_escapes():
    project = make_project()
    ingest(project, "r", None, input={"question": "注文番号4421の配送状況"})

    client = make_client(make_key(project))
    found = client.get("/api/v1/sessions", {"q": "配送状況"}).json()["items"]

    assert [session["session_id"] for session in found] == [Run.objects.get().session.session_id]
