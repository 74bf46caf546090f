"""Calls in one line, without the frame of their JSON."""

import pytest

from sessions_app.core.call_words import call_words, unframed


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"order_id": "ORD-5521"}', "ORD-5521"),
        ('{"order_id":"ORD-5521", "reason":"mistake"}', "order_id ORD-5521, reason mistake"),
        (
            '{"total": 1.0, "items": [{"a": "x"}], "note": "", "who": null}',
            'total 1.0, items [{"a": "x"}], note "", who null',
        ),
        ('{"order_id": "ORD-5521", "reason": "mis…', "order_id ORD-5521, reason mis…"),
        ('{"order_id": "ORD-5521", "rea…', "ORD-5521"),
        ('{"said": "a \\"b\\" c", "n": 1}', 'said a \\"b\\" c, n 1'),
        ("{}", "{}"),
        ("[1, 2]", "[1, 2]"),
        ("a word", "a word"),
        ("", ""),
    ],
)
def test_a_call_is_told_without_its_frame(text, words):
    assert call_words(text) == words


def test_a_value_that_was_cut_keeps_what_is_there():
    assert unframed('{"a": {"b": 1, "c…') == [("a", '{"b": 1, "c…')]
