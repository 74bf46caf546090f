"""Batches that carry their pieces come back to the letter."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.payload import LONG, sha256_hex
from sessions_app.core.spans.batch import Batch, read_batch, write_batch
from sessions_app.core.spans.carried import MANY, apart, carry
from sessions_app.core.spans.packing import Packer, Pieces, Unpacker
from sessions_app.core.spans.span import Span
from tests.builders import a_span
from tests.traces.captures import CHOICE, Capture

CAPTURES = [Capture(folder) for folder in sorted(CHOICE.glob("*/*")) if (folder / "meta.json").exists()]


def batch_of(spans: list[Span]) -> Batch:
    return write_batch(spans, [], Packer(lambda content, is_json: content, lambda name: False))


def both(pieces: Pieces, beside: Pieces) -> Pieces:
    return Pieces(payloads=pieces.payloads | beside.payloads, nodes=pieces.nodes | beside.nodes)


@pytest.mark.parametrize("capture", CAPTURES, ids=str)
@pytest.mark.parametrize("most", [0, 2_000, MANY])
def test_real_batches_come_back(capture, most):
    batch = batch_of(list(capture.spans))

    stored = carry(batch, most=most)
    content, carried = apart(stored.content)

    assert content == batch.content
    assert both(carried, stored.beside) == batch.pieces


WORDS = st.sampled_from(["a", "[", '["~0"]', ',"nodes":', '\\",\\"nodes\\":[', "\x00", "é", "x" * LONG, "y" * 300])
MESSAGES = st.lists(st.builds(lambda words: {"content": "".join(words)}, st.lists(WORDS, max_size=4)), max_size=6)


@given(st.lists(st.tuples(WORDS, MESSAGES), max_size=4), st.sampled_from([0, 100, 1_000, MANY]))
def test_any_batch_comes_back(said, most):
    spans = [
        a_span(span_id=f"{number:016x}", name=name, attributes={"messages": json.dumps(messages), "text": name * 500})
        for number, (name, messages) in enumerate(said)
    ]
    batch = batch_of(spans)

    stored = carry(batch, most=most)
    content, carried = apart(stored.content)

    assert content == batch.content
    assert both(carried, stored.beside) == batch.pieces
    unpacker = Unpacker(both(carried, stored.beside))
    assert sorted(read_batch(content, spans[0].trace_id if spans else "", unpacker, exact=True)[0], key=str) == sorted(
        spans, key=str
    )


def test_short_pieces_are_carried_and_long_ones_are_not():
    messages = [{"content": "short " * 20}, {"content": "long " * LONG}]
    batch = batch_of([a_span(attributes={"messages": json.dumps(messages)})])

    stored = carry(batch, most=MANY)

    assert [len(piece) >= LONG for piece in stored.beside.payloads.values()] == [True]
    assert stored.beside.nodes == {}
    assert len(apart(stored.content)[1].nodes) == 2


def test_what_many_traces_have_is_not_carried():
    messages = [{"content": "tools " * 100}, {"content": "tool"}, {"content": "asked " * 100}]
    batch = batch_of([a_span(attributes={"messages": json.dumps(messages)})])
    common = {digest for digest, piece in batch.pieces.payloads.items() if b"tool" in piece}

    stored = carry(batch, most=MANY, is_common=common.__contains__)
    content, carried = apart(stored.content)

    assert [piece.count(b"tools") for piece in stored.beside.payloads.values()] == [100]
    assert (content, both(carried, stored.beside)) == (batch.content, batch.pieces)


def test_more_than_a_batch_may_carry_stays_beside_it():
    batch = batch_of([a_span(attributes={"messages": json.dumps([{"content": "x" * 500}] * 3)})])
    size = sum(map(len, batch.pieces.payloads.values()))

    assert carry(batch, most=size).content == batch.content
    assert carry(batch, most=size + 100).content != batch.content


def test_a_changed_piece_shows_in_the_digest_of_the_batch():
    batch = batch_of([a_span(attributes={"messages": json.dumps([{"content": "x" * 500}, {"content": "z"}])})])
    stored = carry(batch, most=MANY).content

    assert sha256_hex(apart(stored)[0]) == sha256_hex(batch.content)
    assert sha256_hex(apart(stored.replace(b"xxx", b"xyx", 1))[0]) != sha256_hex(batch.content)
