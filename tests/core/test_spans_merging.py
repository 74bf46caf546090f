"""Spans that came more than once: the same again, in pieces, or another one under the same id."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

from sessions_app.core.judge.anomalies.anomaly import Anomaly
from sessions_app.core.judge.anomalies.detectors import find_anomalies
from sessions_app.core.spans.merging import merge
from sessions_app.core.spans.span import Span
from tests.core.test_assembly import agent, chat, made, span, text

ASKED = [text("user", "Where?")]
FIRST = span(3, 1, name="execute_tool w", attributes={"gen_ai.operation.name": "execute_tool", "answer": "sun"})
OTHER = replace(FIRST, attributes={**FIRST.attributes, "answer": "rain"}, end_ns=(FIRST.end_ns or 0) + 5)


def test_another_span_under_one_id_is_kept_beside_it_in_whatever_order_they_come():
    for order in permutations([FIRST, OTHER, FIRST]):
        (merged,) = merge(order, [])

        assert merged.attributes["answer"] == "rain"
        assert merged.namesakes == (FIRST,)


def test_of_spans_that_ended_together_the_one_that_says_more_is_on_top():
    less = replace(FIRST, attributes={"answer": "zz"})

    for order in permutations([FIRST, less]):
        (merged,) = merge(order, [])

        assert merged.attributes == FIRST.attributes
        assert merged.namesakes == (less,)


def test_the_same_span_again_and_one_that_is_completed_have_no_namesakes():
    begun = replace(FIRST, end_ns=None, attributes={**FIRST.attributes, "answer": "not yet"})
    more = replace(FIRST, attributes={**FIRST.attributes, "more": 1})

    for versions in ([FIRST, FIRST], [begun, FIRST], [FIRST, more]):
        (merged,) = merge(versions, [])
        assert merged.namesakes == ()


def test_the_run_says_so_at_the_step():
    answer = chat(2, ASKED, text("assistant", "There."))
    other = chat(2, ASKED, text("assistant", "Here."))

    (found,) = anomalies_of(agent(), answer, other)

    assert found.steps == (1,)
    assert answer.span_id in found.message
    assert anomalies_of(agent(), answer, answer) == []


def anomalies_of(*spans: Span) -> list[Anomaly]:
    return [found for found in find_anomalies(made(merge(spans, []))) if found.code == "spans_under_one_id"]
