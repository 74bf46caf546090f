"""Which steps the values of an answer come from."""

from __future__ import annotations

import pytest

from sessions_app.core.judge.answer_sources import AnswerSources, answer_sources, sources_in_words
from sessions_app.core.run import Run
from tests.core.test_judge_runs import make_run, model, payload, tool
from tests.core.test_trouble_in_the_middle import OK, call, conversation
from tests.growth import LINEAR, growth

ORDER = {"order": "ORD-5521", "total_cents": 8900, "ship_on": "2026-12-15", "items": [{"sku": "W-20", "n": 12}]}
CALLS = [
    call("find_order", {"q": "lamp"}, ORDER),
    call("get_parcel", {"order": "ORD-5521"}, "ORD-5521 is in parcel P-77, weighing 1,250 g; mail ann@example.com"),
    call("log", {"x": 1, "day": "2026-12-17"}, OK),
]


def words(answer: str, asked: str = "Where is my lamp?") -> str:
    return sources_in_words(answer_sources(conversation(asked, CALLS, answer)).to_json())


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("It comes with order ORD-5521.", "answer from step 2"),
        ("Parcel P-77 of order ORD-5521.", "answer from steps 2 and 4"),
        ("You pay 89.00 EUR on 15 December 2026 for 12 lamps.", "answer from step 2"),
        ("It weighs 1250 g; questions go to ann@example.com.", "answer from step 4"),
        ("Order ORD-5521 costs 410 EUR.", "answer from step 2 · in no step: 410"),
        ("It was sent with R-9, R-8, 410 and 411.", "4 values in no step"),
        ("Sie kommt am 15.12. an.", "answer from step 2"),
        ("Llega el martes 15 a las 9.", "answer from step 2"),
        ("It comes on Friday 18, or on 18.12.", "in no step: 18 and 18.12"),
        ("Invoice 2291/2026 is version 4.2.", ""),
        ("It comes on Thursday 17.", ""),
        ("It is on its way, in 2 parts, since 2026.", ""),
        ("It weighs 1250g.", "answer from step 4"),
        ("Die Bestellung ORD-5521 wiegt 1.250 g.", "answer from steps 2 and 4"),
        ("订单ORD-5521共89.00元。", "answer from step 2"),
    ],
)
def test_values_are_found_where_they_were_told_first(answer: str, told: str):
    assert words(answer) == told


def test_what_the_question_names_has_no_source():
    assert words("Order ORD-5521 is in parcel P-77.", "Where is ORD-5521?") == "answer from step 4"


def test_many_steps_are_counted():
    calls = [call("get_price", {"n": n}, {"price": 100 + n}) for n in range(5)]
    answer = " and ".join(str(100 + n) for n in range(5))

    sources = answer_sources(conversation("Prices?", calls, answer))

    assert sources_in_words(sources.to_json()) == "answer from steps 2, 4, 6 and 2 more"


def test_nothing_is_said_where_an_answer_was_not_recorded():
    run = make_run(model(), tool("get_parcel", {"order": "o-1"}, None), model(), output=payload("P-99"))

    assert answer_sources(run) == AnswerSources()


def test_nothing_is_said_of_what_a_model_alone_answered():
    assert answer_sources(make_run(model(), output=payload("It is 410 km."))) == AnswerSources()


def test_a_long_run_costs_no_more_for_each_step():
    def of(size: int) -> Run:
        calls = [
            call("get_price", {"n": n}, {"price": 1000 + n, "text": "price list, page 7. " * 40}) for n in range(size)
        ]
        return conversation("Prices?", calls, ", ".join(f"{9000 + n}" for n in range(90)))

    assert growth(answer_sources, of(100), of(400)) < LINEAR
