"""What is too much is refused before it is built.

Bombs end in bytes that are malformed: the answer names the limit only where reading stopped in time.
"""

import json
import tracemalloc

import pytest

from sessions_app.core.otlp.decode import decode_traces
from sessions_app.core.otlp.errors import OtlpError, OtlpTooLarge
from sessions_app.core.otlp.json_scan import _CHUNK as CHUNK
from sessions_app.core.otlp.json_scan import check_json
from sessions_app.core.otlp.limits import DEFAULT_LIMITS, OtlpLimits
from sessions_app.core.otlp.wire import FieldBudget, fields
from tests.otlp_requests import SPAN_ID, TRACE_ID, around_spans, as_json, as_protobuf, make_span, make_traces, sized

MIB = 1024 * 1024
BROKEN = b"\x0b"
IDS = as_protobuf(make_span())
SMALL = OtlpLimits(max_records=3, max_items=3, max_depth=3)


def in_one_span(content):
    return around_spans(sized(2, IDS + content))


def peak_of(work):
    """What the work raised, and the bytes that were allocated for it at one time."""
    tracemalloc.start()
    try:
        with pytest.raises(OtlpError) as raised:
            work()
        return raised.value, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


BOMBS = {
    "spans": (around_spans(b"\x12\x00" * (10 * MIB) + BROKEN), "more than 10000 spans"),
    "scopes": (sized(1, b"\x12\x00" * (10 * MIB) + BROKEN), "more than 20000 scope_spans"),
    "resources": (b"\x0a\x00" * (10 * MIB) + BROKEN, "more than 20000 resource_spans"),
}


@pytest.mark.parametrize(("body", "words"), BOMBS.values(), ids=BOMBS)
def test_twenty_mib_of_nothing_are_refused_in_little_memory(body, words):
    error, peak = peak_of(lambda: decode_traces(body, is_json=False))

    assert isinstance(error, OtlpTooLarge)
    assert words in str(error)
    assert peak < 8 * MIB


FIELDS = {
    "values": sized(9, sized(2, sized(5, b"\x0a\x00" * 50_000 + BROKEN))),
    "pairs": sized(9, sized(2, sized(6, b"\x0a\x00" * 50_000 + BROKEN))),
    "unknown fields": b"\xf0\x01\x00" * 50_000 + BROKEN,
    "the same field": b"\x2a\x00" * 50_000 + BROKEN,
    "junk in a value": sized(9, sized(2, b"\x78\x00" * 50_000 + BROKEN)),
    "junk in an attribute": sized(9, b"\x78\x00" * 50_000 + BROKEN),
}


@pytest.mark.parametrize("content", FIELDS.values(), ids=FIELDS)
def test_fields_of_any_kind_are_counted(content):
    limits = OtlpLimits(max_fields=40_000)

    with pytest.raises(OtlpTooLarge, match="too many fields"):
        decode_traces(in_one_span(content), is_json=False, limits=limits)
    assert decode_traces(in_one_span(content), is_json=False).reasons == ("malformed protobuf: wire type 3 (1)",)


def test_the_budget_counts_each_field_and_each_message():
    budget = FieldBudget(left=10)

    assert list(fields(b"\x08\x01\x10\x02", (0, 4), budget)) == [(8, 1), (16, 2)]
    assert budget.left == 7


@pytest.mark.parametrize(
    ("content", "name"), [(b"\x4a\x00", "attributes"), (b"\x5a\x00", "events"), (b"\x6a\x00", "links")]
)
def test_a_million_items_of_a_span_are_not_read(content, name):
    body = in_one_span(content * MIB + BROKEN) + around_spans(sized(2, IDS))

    decoded = decode_traces(body, is_json=False)

    assert (len(decoded.spans), decoded.refused) == (1, 1)
    assert decoded.reasons == (f"there are more than 2000 {name} (1)",)


@pytest.mark.parametrize("is_json", [False, True])
def test_limits_are_reached_but_not_passed(is_json):
    def decode(*spans):
        request = make_traces(*spans)
        return decode_traces(as_json(request) if is_json else as_protobuf(request), is_json=is_json, limits=SMALL)

    three = {"a": 1, "b": 2, "c": [[1]]}
    assert len(decode(*[make_span(three)] * 3).spans) == 3
    with pytest.raises(OtlpTooLarge):
        decode(*[make_span()] * 4)
    assert decode(make_span(three | {"d": 4})).refused == 1
    assert decode(make_span({"a": [[[1]]]})).refused == 1
    assert decode(make_span({"a": {"b": {"c": {"d": 1}}}})).refused == 1
    assert decode(make_span(events=[{"name": "e"}] * 3)).refused == 0
    assert decode(make_span(events=[{"name": "e"}] * 4)).refused == 1


def nested(levels, wrap):
    value = "x"
    for _ in range(levels - 1):
        value = wrap(value)
    return value


@pytest.mark.parametrize("wrap", [lambda value: [value], lambda value: {"k": value}], ids=["lists", "objects"])
@pytest.mark.parametrize("is_json", [False, True])
@pytest.mark.parametrize(("levels", "refused"), [(32, 0), (33, 1)])
def test_values_of_32_levels_are_read(wrap, is_json, levels, refused):
    event = {"name": "e", "attributes": make_span({"a": nested(levels, wrap)}).attributes}
    request = make_traces(make_span({"a": nested(levels, wrap)}), make_span(events=[event]), make_span())
    body = as_json(request) if is_json else as_protobuf(request)

    decoded = decode_traces(body, is_json=is_json)

    assert decoded.refused == 2 * refused
    if not refused:
        assert decoded.spans[0].attributes == {"a": nested(levels, wrap)}
    else:
        assert decoded.reasons == ("a value is nested deeper than 32 levels (2)",)


def test_a_hundred_thousand_levels_of_protobuf_are_refused():
    deep = b""
    for _ in range(20_000):
        deep = sized(5, sized(1, deep))

    assert decode_traces(in_one_span(sized(9, sized(2, deep))), is_json=False).refused == 1


# JSON


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'{"\\"":[', b'{"a":{"b":[1],"c":'])
def test_deep_json_is_refused_before_it_is_parsed(opening):
    with pytest.raises(OtlpError, match="nested deeper than 400"):
        decode_traces(opening * 100_000, is_json=True)


@pytest.mark.parametrize("item", [b"{}", b'{"a":1}', b"[]", b"7", b'"\\""', b'"a,b"'])
def test_many_json_values_are_refused_before_they_are_parsed(item):
    body = b'{"resourceSpans":[' + b",".join([item] * 1_000_001) + b"]}"

    error, peak = peak_of(lambda: decode_traces(body, is_json=True))

    assert isinstance(error, OtlpTooLarge)
    assert peak < 5 * len(body)


@pytest.mark.parametrize(
    "text",
    [
        '"[[[["',
        r'"\"[[[["',
        r'"\\", "[[[["',
        r'"\\\"[[[["',
        r'"\\\\"',
        '"{" , "}"',
        '"' + "x" * CHUNK + '[[[["',
        '"' + "x" * (CHUNK - 9) + '","[[[["',
    ],
)
def test_brackets_within_texts_do_not_count(text):
    body = f'{{"a": [{text}]}}'.encode()
    json.loads(body)

    check_json(body, OtlpLimits(max_json_depth=2))
    with pytest.raises(OtlpError, match="deeper"):
        check_json(body, OtlpLimits(max_json_depth=1))


@pytest.mark.parametrize("count", [DEFAULT_LIMITS.max_records, DEFAULT_LIMITS.max_records + 1])
def test_ten_thousand_spans_in_json_are_read(count):
    span = json.dumps({"traceId": TRACE_ID.hex(), "spanId": SPAN_ID.hex()})
    body = f'{{"resourceSpans": [{{"scopeSpans": [{{"spans": [{", ".join([span] * count)}]}}]}}]}}'.encode()

    if count > DEFAULT_LIMITS.max_records:
        with pytest.raises(OtlpTooLarge, match="more than 10000 spans"):
            decode_traces(body, is_json=True)
    else:
        assert len(decode_traces(body, is_json=True).spans) == count
