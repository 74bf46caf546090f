"""The texts of steps lie in blocks, and come back as they were whichever of them are asked for."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.core.errors import StepMissing
from sessions_app.core.payload import compact_json
from sessions_app.mapping.details import BLOCK_BYTES, details, details_of, write_details
from sessions_app.models import Run, Step, StepBlock
from sessions_app.services.ingest import ingest_document
from tests.builders import make_growing_record, make_project

pytestmark = pytest.mark.django_db
STEPS = 400


@pytest.fixture
def run() -> Run:
    return ingest_document(make_project(), compact_json(make_growing_record("r", STEPS))).run


def test_texts_fill_blocks_of_one_size(run):
    sizes = [len(text) for _, text in details(run.steps.order_by("index"))]
    blocks = StepBlock.objects.filter(content=run.content).order_by("first")

    assert len(sizes) == STEPS
    assert sum(sizes) // BLOCK_BYTES < blocks.count() < sum(sizes) // BLOCK_BYTES + 4
    assert sum(len(bytes(block.data)) for block in blocks) < sum(sizes) / 3


def test_each_is_found_in_the_block_that_holds_it(run):
    every = dict(details(run.steps))
    edges = [index for block in StepBlock.objects.order_by("first") for index in (block.first - 1, block.first)][1:]

    assert edges[0] == 1
    for index in (*edges, STEPS):
        assert details(run.steps.filter(index=index)) == [(index, every[index])]


def test_they_come_in_the_order_that_was_asked_for(run):
    forwards = details(run.steps.order_by("index"))

    assert details(run.steps.order_by("-index")) == forwards[::-1]
    assert details_of(list(run.steps.filter(index__in=(3, 390)).order_by("-index"))) == [
        forwards[389][1],
        forwards[2][1],
    ]


def test_one_query_reads_those_of_several_runs(run):
    other = ingest_document(run.project, compact_json(make_growing_record("other", 4))).run
    rows = list(Step.objects.filter(index=2).order_by("content_id"))

    with CaptureQueriesContext(connection) as queries:
        texts = details_of(rows)

    assert len(queries) == 1
    assert texts == [dict(details(run.steps))[2], dict(details(other.steps))[2]]


def test_nothing_is_read_for_nothing(run):
    with CaptureQueriesContext(connection) as queries:
        assert details_of([]) == []
    assert not queries


@pytest.mark.parametrize(
    "sizes", [[1], [BLOCK_BYTES], [BLOCK_BYTES + 1], [BLOCK_BYTES, 1], [1, BLOCK_BYTES, 1, 1], [0, 0]]
)
def test_texts_of_any_length_come_back(run, sizes):
    texts = [(index, b"\0" * size) for index, size in enumerate(sizes, start=1)]
    StepBlock.objects.all().delete()

    write_details(run.content, texts)

    assert details(run.steps.filter(index__lte=len(sizes)).order_by("index")) == texts


def test_a_step_whose_text_is_gone_is_named(run):
    StepBlock.objects.order_by("first").last().delete()

    with pytest.raises(StepMissing, match=f"step {STEPS}"):
        details(run.steps.filter(index=STEPS))
