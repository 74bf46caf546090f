"""The texts of steps lie in blocks, and come back as they were whichever of them are asked for."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.core.errors import StepMissing
from sessions_app.core.payload import compact_json
from sessions_app.mapping.details import BLOCK_BYTES, details, details_at, write_details
from sessions_app.models import Run, StepBlock
from sessions_app.services.ingest import ingest_document
from tests.builders import make_growing_record, make_project

pytestmark = pytest.mark.django_db
STEPS = 400


@pytest.fixture
def run() -> Run:
    return ingest_document(make_project(), compact_json(make_growing_record("r", STEPS))).run


def every(run: Run) -> list[bytes]:
    return details(run.content, run.steps)


def test_texts_fill_blocks_of_one_size(run):
    sizes = [len(text) for text in every(run)]
    blocks = StepBlock.objects.filter(content=run.content).order_by("first")

    assert len(sizes) == STEPS
    assert sum(sizes) // BLOCK_BYTES < blocks.count() < sum(sizes) // BLOCK_BYTES + 4
    assert sum(len(bytes(block.data)) for block in blocks) < sum(sizes) / 3


def test_each_is_found_in_the_block_that_holds_it(run):
    texts = every(run)
    edges = [index for block in StepBlock.objects.order_by("first") for index in (block.first - 1, block.first)][1:]

    assert edges[0] == 1
    for index in (*edges, STEPS):
        assert details(run.content, [run.step(index)]) == [texts[index - 1]]


def test_they_come_in_the_order_that_was_asked_for(run):
    forwards = every(run)

    assert details(run.content, run.steps[::-1]) == forwards[::-1]
    assert details(run.content, [run.step(390), run.step(3)]) == [forwards[389], forwards[2]]


def test_one_query_reads_those_of_several_runs(run):
    other = ingest_document(run.project, compact_json(make_growing_record("other", 4))).run
    places = [row.content.place_of(2) for row in (run, other)]

    with CaptureQueriesContext(connection) as queries:
        texts = details_at(places)

    assert len(queries) == 1
    assert texts == [every(run)[1], every(other)[1]]


def test_nothing_is_read_for_nothing(run):
    with CaptureQueriesContext(connection) as queries:
        assert details(run.content, []) == []
    assert not queries


@pytest.mark.parametrize(
    "sizes", [[1], [BLOCK_BYTES], [BLOCK_BYTES + 1], [BLOCK_BYTES, 1], [1, BLOCK_BYTES, 1, 1], [0, 0]]
)
def test_texts_of_any_length_come_back(run, sizes):
    texts = [(index, b"\0" * size) for index, size in enumerate(sizes, start=1)]
    StepBlock.objects.all().delete()

    write_details(run.content, texts)

    assert details(run.content, run.steps[: len(sizes)]) == [text for _, text in texts]


def test_a_step_whose_text_is_gone_is_named(run):
    StepBlock.objects.order_by("first").last().delete()

    with pytest.raises(StepMissing, match=f"step {STEPS}"):
        details(run.content, [run.step(STEPS)])
