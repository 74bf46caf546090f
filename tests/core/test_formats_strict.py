"""What is not strict JSON is refused in words, before anything else looks at it."""

import pytest

from sessions_app.core.errors import RecordError, RecordTooLarge
from sessions_app.core.formats.detect import parse_document
from sessions_app.core.json_text import Limits, load_strict
from tests.growth import LINEAR, growth

BAD_TEXTS = [
    (b"", "not JSON"),
    (b"{", "not JSON"),
    (b"{'a': 1}", "not JSON"),
    (b'{"a": 1} x', "not JSON"),
    (b'{"a": "\n"}', "not JSON"),
    (b'{"a": NaN}', "NaN"),
    (b'{"a": Infinity}', "Infinity"),
    (b'{"a": -Infinity}', "-Infinity"),
    (b'{"a": 1e999}', "1e999"),
    (b'{"a": -1e999}', "-1e999"),
    (b'{"a": 1, "a": 2}', "'a' stands twice"),
    (b'{"o": [{"b": 1, "\\u0062": 2}]}', "'b' stands twice"),
    (b'{"a": "\\ud800"}', "surrogate"),
    (b'{"a": ["x", "\\udfff\\ud800"]}', "surrogate"),
    (b'{"\\udc00": 1}', "surrogate"),
    (b"[" * 10_000 + b"]" * 10_000, "nested deeper than 200"),
    (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "nested deeper than 200"),
    (b'\xef\xbb\xbf{"a": 1}', "byte order mark"),
    (b'{"a": "\xff"}', "not UTF-8 (byte 7)"),
    ('{"a": 1}'.encode("utf-16"), "not UTF-8"),
    (b'{"a": "\xed\xa0\x80"}', "not UTF-8"),
    (b'{"a": ' + b"9" * 5_000 + b"}", "too long"),
]


@pytest.mark.parametrize(("content", "words"), BAD_TEXTS, ids=[words for _, words in BAD_TEXTS])
def test_bad_text_is_refused_in_words(content, words):
    with pytest.raises(RecordError) as caught:
        load_strict(content)

    assert words in caught.value.message


@pytest.mark.parametrize(("content", "words"), BAD_TEXTS, ids=[words for _, words in BAD_TEXTS])
def test_bad_text_is_refused_as_a_document(content, words):
    with pytest.raises(RecordError):
        parse_document(content)


def test_half_a_surrogate_is_named_with_its_place():
    with pytest.raises(RecordError) as caught:
        load_strict(b'{"a": [1, {"b": "\\ud800"}]}')

    assert caught.value.field == "$.a[1].b"


def test_place_of_a_mistake_is_named():
    with pytest.raises(RecordError, match="line 2, column 7"):
        load_strict(b'{"a": 1,\n "b": }')


def test_too_many_bytes_are_refused_before_they_are_read():
    with pytest.raises(RecordTooLarge, match="has 11 bytes; the limit is 10"):
        load_strict(b"not JSON at all"[:11], Limits(max_bytes=10))


def test_depth_counts_no_brackets_inside_texts():
    assert load_strict(b'["' + b"[" * 500 + b'\\"{"]') == ["[" * 500 + '"{']


def test_depth_of_exactly_the_limit_is_read():
    assert load_strict(b"[" * 200 + b"]" * 200)
    with pytest.raises(RecordTooLarge):
        load_strict(b"[" * 201 + b"]" * 201)


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b'"\\\\ud800"', "\\ud800"),
        (b'"\\u0000"', "\x00"),
        (b"1180591620717411303424", 2**70),
        (b" [1 , 2 ] ", [1, 2]),
    ],
)
def test_odd_but_good_text_is_read(content, value):
    assert load_strict(content) == value


def test_unterminated_text_is_refused_in_linear_time():
    def refuse(quotes: int) -> None:
        with pytest.raises(RecordError, match="not JSON"):
            load_strict(b'["' + b'\\"' * quotes + b"[]" * 300)

    assert growth(refuse, 20_000, 80_000) < LINEAR


def test_a_key_that_stands_twice_among_many_is_found_in_linear_time():
    def refuse(keys: int) -> None:
        with pytest.raises(RecordError, match="stands twice"):
            load_strict(b"{%s}" % b",".join(b'"%d":0' % min(n, keys - 2) for n in range(keys)))

    assert growth(refuse, 5_000, 20_000) < LINEAR


def test_too_many_values_are_refused_before_they_become_objects():
    limits = Limits(max_values=10)

    assert load_strict(b'["a,b,c,d,e,f,g,h,i,j,k,l"]', limits) == ["a,b,c,d,e,f,g,h,i,j,k,l"]
    with pytest.raises(RecordTooLarge, match="more than 10 values"):
        load_strict(b"[" + b"{}," * 11 + b"{}]", limits)
