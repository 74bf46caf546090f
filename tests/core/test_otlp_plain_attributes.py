"""Reading plain attributes in one go finds what reading them field by field finds, limits included."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_app.core.otlp import protobuf_reader
from sessions_app.core.otlp.decode import decode_traces
from sessions_app.core.otlp.errors import OtlpError
from sessions_app.core.otlp.limits import OtlpLimits
from sessions_app.core.otlp.plain_attributes import plain_attributes
from tests.otlp_requests import around_spans, as_protobuf, make_attributes, make_span, make_traces, sized

PLAIN = {
    "text": "gpt-4o",
    "empty": "",
    "é": "ü" * 300,
    "long": "x" * 20_000,
    "yes": True,
    "no": False,
    "count": 300,
    "below": -1,
    "least": -(2**63),
    "half": 0.5,
    "nan": float("nan"),
    "reasons": ["stop", 1, 2.5, False],
    "none": [],
    "many": ["x" * 200] * 3,
}
NAME = sized(1, b"a")
ODD = {
    "no name": sized(2, sized(1, b"b")),
    "no value": NAME,
    "nothing": b"",
    "an empty value": NAME + b"\x12\x00",
    "the name last": sized(2, sized(1, b"b")) + NAME,
    "two names": NAME + NAME + sized(2, sized(1, b"b")),
    "two values": NAME + sized(2, b"\x18\x01") * 2,
    "two kinds": NAME + sized(2, b"\x18\x01\x10\x01"),
    "bytes": NAME + sized(2, sized(7, b"b")),
    "an object": NAME + sized(2, sized(6, b"")),
    "a list in a list": NAME + sized(2, sized(5, sized(1, sized(5, b"")))),
    "an empty item": NAME + sized(2, sized(5, b"\x0a\x00")),
    "text that is not UTF-8": NAME + sized(2, sized(1, b"\xff")),
    "a name that is not UTF-8": sized(1, b"\xff") + sized(2, sized(1, b"b")),
    "a long name": sized(1, b"a" * 128) + sized(2, sized(1, b"b")),
    "a text beyond its value": NAME + sized(2, b"\x0a\x02b"),
    "a number without an end": NAME + sized(2, b"\x18" + b"\xff" * 11),
    "a double cut off": NAME + sized(2, b"\x21\x00"),
    "a value beyond its attribute": NAME + b"\x12\x05\x0a\x01b",
    "a field after the value": NAME + sized(2, b"\x18\x01") + b"\x18\x01",
    "an unknown kind": NAME + sized(2, b"\x40\x01"),
    "a group": NAME + sized(2, b"\x0b\x0c"),
}


def read_field_by_field(patch):
    patch.setattr(protobuf_reader, "plain_attributes", lambda body, at, end, most: ([], at))


def outcome(body, limits=None):
    """What a request gives, in words that tell 1, 1.0 and True apart; or its error."""
    try:
        return repr(decode_traces(body, is_json=False, limits=limits or OtlpLimits()))
    except OtlpError as error:
        return f"{type(error).__name__}: {error}"


def outcome_field_by_field(body, limits=None):
    with pytest.MonkeyPatch.context() as patch:
        read_field_by_field(patch)
        return outcome(body, limits)


def fields_of_attributes(*attributes):
    return b"".join(sized(9, attribute) for attribute in attributes)


def test_all_plain_attributes_are_read_in_one_go():
    body = fields_of_attributes(*map(as_protobuf, make_attributes(PLAIN)))

    pairs, after = plain_attributes(body, 0, len(body), 2000)

    assert dict(pairs) == PLAIN | {"nan": {"double": "NaN"}}
    assert after == len(body)


@pytest.mark.parametrize("attribute", ODD.values(), ids=ODD)
def test_what_is_not_plain_is_left_alone(attribute):
    (good,) = map(as_protobuf, make_attributes({"good": 1}))
    body = fields_of_attributes(good, attribute, good)

    assert plain_attributes(body, 0, len(body), 2000) == ([("good", 1)], len(fields_of_attributes(good)))
    assert outcome(in_one_span(body)) == outcome_field_by_field(in_one_span(body))


def test_it_stops_at_another_field_at_the_end_and_at_the_most():
    (good,) = map(as_protobuf, make_attributes({"good": "x"}))
    one = fields_of_attributes(good)

    assert plain_attributes(one + sized(5, b"name"), 0, len(one) + 6, 2000) == ([("good", "x")], len(one))
    assert plain_attributes(one * 2, 0, len(one), 2000) == ([("good", "x")], len(one))
    assert plain_attributes(one * 2, 0, len(one) * 2 - 1, 2000) == ([("good", "x")], len(one))
    assert plain_attributes(one * 3, 0, len(one) * 3, 2) == ([("good", "x")] * 2, len(one) * 2)


def in_one_span(more):
    return around_spans(sized(2, as_protobuf(make_span()) + more))


REQUEST = as_protobuf(
    make_traces(
        make_span(
            {"a": "x", "b": ["p", 3], "c": {"k": [True]}, "d": 2.5, "e": -1, "f": b"1", "long": "y" * 300},
            events=[{"name": "e", "attributes": make_attributes({"a": 1, "b": []})}],
        ),
        make_span({"a": 300}),
    )
)


def test_limits_stand_where_they_stand_field_by_field():
    limits = [OtlpLimits(max_fields=count) for count in range(130)]
    limits += [OtlpLimits(max_items=items, max_depth=depth) for items in range(9) for depth in range(4)]

    found = [outcome(REQUEST, each) for each in limits]

    assert found == [outcome_field_by_field(REQUEST, each) for each in limits]
    assert len(set(found)) > 5


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_a_damaged_request_gives_what_it_gives_field_by_field(data):
    body = bytearray(REQUEST)
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))

    assert outcome(bytes(body)) == outcome_field_by_field(bytes(body))
