"""A run of N steps sends O(N²) bytes of history and costs O(N) to store."""

import json

import pytest

from benchmarks.storage_growth import measure_all
from sessions_app.mapping.pieces import read_pieces
from sessions_app.services.ingest import ingest_document
from tests.builders import make_growing_record, make_project, make_record

pytestmark = pytest.mark.django_db


def test_storage_grows_with_the_number_of_steps():
    found = measure_all()
    print(json.dumps(found))

    assert found["ratios"] == [pytest.approx(2.0, abs=0.2)] * 2


def test_rows_grow_with_the_number_of_steps():
    counts = []
    for steps in (100, 200, 400):
        project = make_project(f"p{steps}")
        run = ingest_document(project, json.dumps(make_growing_record("r", steps)).encode()).run
        counts.append([run.content.node_count, run.content.piece_count - run.content.step_count])

    # A turn has a request, an answer, arguments and a result.
    assert counts == [[100, 200], [200, 400], [400, 800]]


def test_a_message_in_forty_requests_is_stored_once():
    long = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "the one message " * 50}]}
    steps = [
        {"kind": "model", "request": {"messages": [long, {"kind": "request", "parts": [], "n": n}]}} for n in range(40)
    ]
    project = make_project()
    run = ingest_document(project, json.dumps(make_record("r", *steps)).encode()).run

    content = json.dumps(long).encode()
    pieces = read_pieces(run.content, range(run.content.piece_count))
    assert list(pieces.values()).count(content) == 1
    assert run.content.node_count == 1 + 40
    assert len(pieces) == 40 + 1 + 40
