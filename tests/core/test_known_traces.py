"""What is remembered of traces under way, and batches that leave out what their trace has."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.spans.batch import Batch, read_batch, write_batch
from sessions_app.core.spans.carried import MANY, apart, carry, lacking
from sessions_app.core.spans.known import Known, KnownTraces, Newest
from sessions_app.core.spans.packing import Packer, Pieces, Unpacker
from tests.builders import a_span


def batch_of(messages: list[object], number: int = 0, **attributes: str) -> Batch:
    span = a_span(span_id=f"{number:016x}", attributes={"messages": json.dumps(messages), **attributes})
    return write_batch([span], [], Packer(lambda content, is_json: content, lambda name: False))


def told(*words: str) -> list[object]:
    return [{"role": "user", "content": word * 300} for word in words]


def newest(position: int) -> Newest:
    return Newest(position, "d", datetime(2026, 11, 1, tzinfo=UTC))


def having(*batches: Batch) -> Known:
    known = Known(trace=1, newest=newest(1))
    for batch in batches:
        known.add(batch.pieces, newest(1))
    return known


def test_a_batch_brings_what_its_trace_has_not_yet():
    first, second = batch_of(told("a", "b")), batch_of(told("a", "b", "c"), number=1)

    stored = carry(second, most=MANY, known=having(first))
    content, carried = apart(stored.content)

    assert content == second.content
    assert [json.loads(piece)["content"][0] for piece in carried.payloads.values()] == ["c"]
    assert len(carried.nodes) == 1
    assert stored.beside == Pieces()
    heads, digests = lacking([content], carried)
    assert heads <= first.pieces.nodes.keys()
    assert len(heads) == 1
    assert digests <= first.pieces.payloads.keys()


def test_a_batch_that_brings_nothing_new_names_what_is_there():
    batch = batch_of(told("a", "b"))

    stored = carry(batch, most=MANY, known=having(batch))

    assert apart(stored.content) == (batch.content, Pieces())
    assert stored.beside == Pieces()


def test_long_pieces_that_the_trace_has_are_not_written_again():
    first, second = batch_of(told("a" * 20)), batch_of(told("a" * 20, "b" * 20), number=1)

    stored = carry(second, most=MANY, known=having(first))

    assert [json.loads(piece)["content"][0] for piece in stored.beside.payloads.values()] == ["b"]
    assert apart(stored.content)[0] == second.content


def test_what_is_too_much_to_be_carried_are_rows_that_lead_to_rows():
    first, second = batch_of(told("a", "b")), batch_of(told("a", "b", "c"), number=1)

    stored = carry(second, most=10, known=having(first))

    assert (stored.content, stored.beside) == (second.content, second.pieces)


WORDS = st.lists(st.sampled_from("abcdef"), max_size=8)


@given(st.lists(WORDS, min_size=1, max_size=8), st.sampled_from([0, 300, 900, MANY]))
def test_batches_of_a_trace_come_back_from_what_they_carry_together(histories, most):
    known, carried, beside = Known(trace=1, newest=newest(1)), Pieces(), Pieces()
    batches = [batch_of(told(*words), number) for number, words in enumerate(histories)]
    contents = []
    for batch in batches:
        stored = carry(batch, most=most, known=known)
        known.add(batch.pieces, newest(1))
        content, pieces = apart(stored.content)
        contents.append(content)
        carried.add(pieces)
        beside.add(stored.beside)

    assert contents == [batch.content for batch in batches]
    heads, digests = lacking(contents, carried)
    assert heads <= beside.nodes.keys()
    assert digests <= beside.payloads.keys()
    assert all(parent is None or parent in beside.nodes for parent, _ in beside.nodes.values())
    assert all(element in beside.payloads for _, element in beside.nodes.values())
    carried.add(beside)
    unpacker = Unpacker(carried)
    for content, words in zip(contents, histories, strict=True):
        (span,), _ = read_batch(content, "a" * 32, unpacker, exact=True)
        assert json.loads(span.attributes["messages"]) == told(*words)


def test_one_trace_is_not_another():
    traces, batch = KnownTraces(100), batch_of(told("a", "b"))
    traces.add(1, "aa", trace=7, newest=newest(2), pieces=batch.pieces)

    assert traces.get(2, "aa") is traces.get(1, "bb") is None
    known = traces.get(1, "aa")
    assert known is not None
    assert known.without(batch.pieces) == Pieces()
    assert (known.trace, known.newest) == (7, newest(2))


def test_of_a_trace_that_came_anew_nothing_older_is_known():
    traces, old, new = KnownTraces(100), batch_of(told("a")), batch_of(told("b"))
    traces.add(1, "aa", trace=7, newest=newest(5), pieces=old.pieces)
    traces.add(1, "aa", trace=8, newest=newest(1), pieces=new.pieces)

    known = traces.get(1, "aa")
    assert known is not None
    assert known.without(old.pieces) == old.pieces
    assert (known.trace, known.newest) == (8, newest(1))


def test_the_traces_that_got_something_last_are_remembered():
    batches = [batch_of(told(word)) for word in "abc"]
    traces = KnownTraces(2 * having(batches[0]).cost)
    for number in (0, 1, 0, 2):
        traces.add(1, str(number), trace=number, newest=newest(1), pieces=batches[number].pieces)

    assert [traces.get(1, str(number)) is not None for number in range(3)] == [True, False, True]


def test_traces_without_pieces_take_room_too():
    traces = KnownTraces(100)
    for number in range(50):
        traces.add(1, str(number), trace=number, newest=newest(1), pieces=Pieces())

    assert sum(traces.get(1, str(number)) is not None for number in range(50)) == 10


def test_the_newest_batch_speaks_whoever_tells_of_it_last():
    traces = KnownTraces(100)
    for position in (2, 1):
        traces.add(1, "aa", trace=7, newest=newest(position), pieces=Pieces())

    known = traces.get(1, "aa")
    assert known is not None
    assert known.newest == newest(2)
