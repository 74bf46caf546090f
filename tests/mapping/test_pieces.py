"""The pieces of a content lie in blocks, and come back as they were whichever of them are asked for."""

import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.core.errors import StepMissing
from sessions_app.core.payload import compact_json, sha256_hex
from sessions_app.mapping import pieces as module
from sessions_app.mapping.pieces import open_pieces, read_pieces, step_texts, write_pieces
from sessions_app.models import ContentBlock, Run, RunContent
from sessions_app.queries.payloads import read_payload
from sessions_app.services.ingest import ingest_document
from tests.builders import make_growing_record, make_project, make_record, make_tool_step

pytestmark = pytest.mark.django_db
STEPS = 400
BLOCK_BYTES = 16 * 1024


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch):
    monkeypatch.setattr(module, "BLOCK_BYTES", BLOCK_BYTES)


@pytest.fixture
def run() -> Run:
    return ingest_document(make_project(), compact_json(make_growing_record("r", STEPS))).run


def fresh(run: Run) -> RunContent:
    """Of which nothing was read."""
    return RunContent.objects.get(run=run)


def every(run: Run) -> dict[int, bytes]:
    return read_pieces(fresh(run), range(run.content.piece_count))


def test_pieces_fill_blocks_of_one_size(run):
    sizes = [len(piece) for piece in every(run).values()]
    blocks = ContentBlock.objects.filter(content=run.content)

    assert len(sizes) == run.content.piece_count > 2 * STEPS
    assert sum(sizes) // BLOCK_BYTES < blocks.count() < sum(sizes) // BLOCK_BYTES + 4
    assert sum(len(bytes(block.data)) for block in blocks) < sum(sizes) / 3


def test_each_is_found_in_the_block_that_holds_it(run):
    pieces = every(run)
    firsts = list(ContentBlock.objects.order_by("first").values_list("first", flat=True))
    edges = [number for first in firsts for number in (first - 1, first)][1:]

    assert edges[0] == 0
    for number in (*edges, run.content.piece_count - 1):
        assert read_pieces(fresh(run), [number]) == {number: pieces[number]}


def test_texts_of_steps_come_in_the_order_that_was_asked_for(run):
    forwards = step_texts(fresh(run), run.steps)

    assert step_texts(fresh(run), run.steps[::-1]) == forwards[::-1]
    assert step_texts(fresh(run), [run.step(390), run.step(3)]) == [forwards[389], forwards[2]]
    assert b'"kind":"tool"' in forwards[1]


def test_one_query_reads_those_of_several_runs_and_none_what_was_read_before(run):
    other = ingest_document(run.project, compact_json(make_growing_record("other", 4))).run
    contents = [fresh(run), fresh(other)]

    with CaptureQueriesContext(connection) as queries:
        open_pieces((content, 1) for content in contents)
        found = [read_pieces(content, [1]) for content in contents]

    assert len(queries) == 1
    assert found == [{1: every(run)[1]}, {1: every(other)[1]}]


def test_nothing_is_read_for_nothing(run):
    with CaptureQueriesContext(connection) as queries:
        assert (step_texts(fresh(run), []), read_pieces(run.content, [])) == ([], {})
    assert len(queries) == 1  # that finds the content


@pytest.mark.parametrize(
    "sizes", [[1], [BLOCK_BYTES], [BLOCK_BYTES + 1], [BLOCK_BYTES, 1], [1, BLOCK_BYTES, 1, 1], [0, 0], []]
)
@pytest.mark.parametrize("first", [0, 1_000])
def test_pieces_of_any_length_come_back(run, sizes, first):
    pieces = [b"\0" * size for size in sizes]
    ContentBlock.objects.all().delete()
    content = fresh(run)
    content.first_piece = first

    write_pieces(content, pieces)

    assert read_pieces(content, range(first, first + len(sizes))) == dict(enumerate(pieces, first))


def test_a_step_whose_text_is_gone_is_named(run):
    ContentBlock.objects.order_by("first").last().delete()

    with pytest.raises(StepMissing, match=f"step {STEPS}"):
        step_texts(fresh(run), [run.step(STEPS)])


LIKE_A_STEP = b'{"kind":"other","name":"x"}'
MESSAGES = [
    {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Hello."}]},
    {"kind": "response", "parts": [{"part_kind": "text", "content": "Hello?"}]},
]


@pytest.mark.parametrize("same_run", [True, False])
def test_a_payload_that_is_equal_to_the_text_of_a_step_is_found(same_run):
    project, step = make_project(), json.loads(LIKE_A_STEP)
    first = make_record("first", *[step] * (not same_run), final={"messages": MESSAGES})
    second = make_record("second", *[step] * same_run, make_tool_step(result=step), prior=MESSAGES)

    before, after = (ingest_document(project, compact_json(record)).run for record in (first, second))

    assert after.content.base == before.content
    assert read_payload(project.pk, sha256_hex(LIKE_A_STEP)) == LIKE_A_STEP
