"""What the answer says, held against what was recorded. Each detector with a case that fires and one just below it."""

from datetime import timedelta
from typing import Any

import pytest

from sessions_app.core.judge.anomalies.anomaly import first_odd_step
from sessions_app.core.judge.anomalies.detectors import find_anomalies
from sessions_app.core.run import AgentCall, ErrorInfo, Run, Step
from tests.core.test_judge_anomalies import answered, found
from tests.core.test_judge_runs import (
    NOON,
    history,
    make_run,
    make_step,
    model,
    payload,
    prompt,
    request_message,
    response_message,
    retrieval,
    tool,
)
from tests.growth import LINEAR, growth

FAILED = ErrorInfo(type="Timeout", message="30 s")

# --- cut answers -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "is_found"),
    [
        ("length", True),
        ("max_tokens", True),
        ("MAX_TOKENS", True),
        ("stop", False),
        ("tool_calls", False),
        (None, False),
    ],
)
def test_a_last_answer_that_was_cut_is_found(reason, is_found):
    cut = model("Let me see where it", finish_reason="length")
    run = make_run(cut, tool(), model("Your order is", finish_reason=reason))

    assert found("answer_cut", run) == ([(f"The answer was cut off: finish reason {reason}", (3,))] if is_found else [])


def test_a_reason_that_only_the_answer_itself_holds_counts():
    said = payload({**response_message("Your order is"), "finish_reason": "length"})
    run = make_run(model(response=said), output=payload("Your order is"))

    assert found("answer_cut", run) == [("The answer was cut off: finish reason length", (1,))]


CUT = "The offer is accepted, and it was agreed that no"


def summarised(saved: str, summary: str = CUT, **fields) -> Run:
    """A model inside of a tool, whose text is saved."""
    inner = model(summary, parent=2, finish_reason="length")
    summarise = tool("summarise", {"part": 3}, summary)
    return make_run(model(), summarise, inner, model(), tool("save", {"text": saved}), model("Saved."), **fields)


@pytest.mark.parametrize("saved", [CUT, f"Ann opened the meeting.\n{CUT}\nThe next one is on Monday."])
def test_a_cut_answer_that_a_tool_was_called_with_is_found(saved):
    message = "A model's answer was cut off (finish reason length), and save used it"

    assert found("answer_cut", summarised(saved)) == [(message, (3,))]
    assert first_odd_step(find_anomalies(summarised(saved))) == 3


def test_a_cut_answer_that_the_run_ends_with_is_found():
    run = summarised("Ann", output=payload(CUT))

    message = "A model's answer was cut off (finish reason length), and the run's answer used it"
    assert found("answer_cut", run) == [(message, (3,))]


@pytest.mark.parametrize(
    "run",
    [
        summarised(f"{CUT} money is paid before it is there."),
        summarised("The meeting was short."),
        summarised("and no", summary="and no"),
        summarised(CUT, status="error", output=None),
    ],
    ids=["continued", "not used", "too short", "no answer"],
)
def test_a_cut_answer_that_nobody_used_is_in_order(run):
    assert found("answer_cut", run) == []


def called(reason: str, **fields) -> Run:
    part = {"part_kind": "tool-call", "tool_name": "find", "args": {"q": "x"}, "tool_call_id": "c1"}
    return make_run(model([part], finish_reason=reason), tool("find", {"q": "x"}, [1], call_id="c1", **fields), model())


def test_a_call_of_a_cut_answer_is_found_where_it_was_made():
    message = "A model's answer was cut off (finish reason max_tokens), and find used it"

    assert found("answer_cut", called("max_tokens")) == [(message, (1,))]
    assert found("answer_cut", called("tool_calls")) == []
    assert found("answer_cut", called("max_tokens", outcome="retried")) == []
    assert found("answer_cut", called("max_tokens", error=FAILED)) == []


# --- searches that found nothing ---------------------------------------------------------------


WITHIN = "Refunds are given within 30 days."


@pytest.mark.parametrize("empty", [[], {"results": []}])
def test_a_number_that_no_search_found_is_found(empty):
    run = answered(WITHIN, tool("search_docs", {"query": "refunds"}, empty))

    message = "search_docs found nothing for refunds; the 30 in the answer has no source"
    assert found("no_source", run) == [(message, (2,))]
    assert first_odd_step(find_anomalies(run)) == 2


OTHER_HIT = tool("search_docs", {"query": "annual leave"}, [{"text": "There are 24 days of annual leave."}])
LEAVE = tool("search_docs", {"query": "parental leave Portugal"}, [])


HALF = tool("get_leave", {"kind": "parental leave"}, {"half": 13})


def leave(answer: str, *more: Step, **fields) -> Run:
    return make_run(model(), OTHER_HIT, LEAVE, *more, model(), output=payload(answer), **fields)


def test_a_number_that_other_searches_did_not_find_either_is_found():
    run = leave("You have 24 days of holiday. Parental leave is 26 weeks.")

    message = "search_docs found nothing for parental leave Portugal; the 26 in the answer has no source"
    assert found("no_source", run) == [(message, (3,))]


@pytest.mark.parametrize(
    "run",
    [
        leave("You have 24 days. Parental leave is 26 weeks.", tool("search_docs", {"query": "x"}, ["26 weeks of it"])),
        leave("You have 24 days. Parental leave is 26 weeks.", instructions="Parental leave: 26 weeks."),
        leave("You have 24 days. Parental leave is 26 weeks.", tool("read_page", {"page": 3}, None)),
        leave("You have 24 days. I found no parental leave of 26 weeks."),
        leave("You have 24 days. The office has 26 desks."),
        leave("You have 24 days. Parental leave is POL-26."),
        leave(
            "You have 24 days. Parental leave is 26 weeks.", tool("get_leave", {"kind": "parental leave"}, {"half": 13})
        ),
    ],
    ids=["told later", "instructions", "not recorded", "denied", "of something else", "an id", "made of what came"],
)
def test_a_number_that_was_told_or_is_of_something_else_is_in_order(run):
    assert found("no_source", run) == []


@pytest.mark.parametrize(
    ("answer", "instructions", "level"),
    [
        ("Yes, dogs of any size are welcome.", "", "warning"),
        ("No, that is never possible.", "", "warning"),
        ("Dogs of any size are welcome.", "", "info"),
        ("Yes, that name is still free.", "", "info"),
        ("Yes, dogs of any size are welcome.", "Dogs are welcome.", "info"),
        ("No, that is never possible.", "Dogs are not welcome.", None),
        ("No, I do not know.", "", None),
    ],
)
def test_a_rule_that_only_documents_could_tell_is_a_warning(answer, instructions, level):
    run = make_run(
        model(), tool("search_docs", {"query": "dogs"}, []), model(), output=payload(answer), instructions=instructions
    )

    assert [a.level for a in find_anomalies(run) if a.code == "no_source"] == ([level] if level else [])


SEARCH = tool("search_docs", {"query": "refunds"}, [])
TURN = history(request_message(prompt("And refunds?")), response_message(WITHIN), request_message(prompt("Sure?")))


@pytest.mark.parametrize(
    "run",
    [
        answered("I found nothing about refunds in our documents.", SEARCH),
        answered("Could you tell me which product you bought?", SEARCH),
        answered("Hello Ann!", SEARCH),
        answered(WITHIN, SEARCH, tool("search_docs", {"query": "money back"}, [WITHIN])),
        answered(WITHIN, SEARCH, tool("read_page", {"page": 3}, WITHIN)),
        answered(WITHIN, SEARCH, retrieval(("c1", 0.9, WITHIN))),
        make_run(model(history=TURN), SEARCH, model(WITHIN), output=payload(WITHIN)),
        answered("All old files are deleted now.", tool("delete_files", {"age": 30}, [])),
    ],
    ids=["said", "question", "greeting", "other words", "another tool", "retrieval", "earlier turn", "no search"],
)
def test_an_answer_with_a_source_or_without_a_claim_is_in_order(run):
    assert found("no_source", run) == []


# --- one of many -------------------------------------------------------------------------------


def imported(answer: str, *odd: dict[str, int], calls: int = 30) -> Run:
    rows = [*({"rows_read": 9, "rows_written": 9, "rows_rejected": 0} for _ in range(calls - len(odd))), *odd]
    steps = [tool("import_list", {"supplier": f"S-{n:03}"}, told) for n, told in enumerate(rows)]
    return make_run(model(), *steps, model(), output=payload(answer))


ALL = "All 30 lists were imported; there is nothing to follow up."
REJECTED_ROWS = {"rows_read": 9, "rows_written": 0, "rows_rejected": 9}


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        (REJECTED_ROWS, "rows_rejected 9"),
        ({**REJECTED_ROWS, "rows_rejected": 0}, "rows_written 0"),
        ({"rows_read": 9, "rows_written": 8, "rows_rejected": 1}, "rows_rejected 1"),
    ],
)
def test_the_one_of_many_calls_that_left_something_out_is_found(odd, said):
    message = f"import_list for S-029 returned {said}, unlike the other calls; the answer does not say so"

    assert found("one_of_many", imported(ALL, odd)) == [(message, (31,))]
    assert first_odd_step(find_anomalies(imported(ALL, odd))) == 31


@pytest.mark.parametrize(
    "run",
    [
        imported(ALL),
        imported("All but S-029 were imported.", REJECTED_ROWS),
        imported("One list failed.", REJECTED_ROWS),
        imported(ALL, REJECTED_ROWS, REJECTED_ROWS),
        imported(ALL, REJECTED_ROWS, calls=19),
        imported(ALL, {"rows_read": 0, "rows_written": 0, "rows_rejected": 0}),
        imported(ALL, {"rows_read": 4, "rows_written": 4, "rows_rejected": 0}),
    ],
    ids=["none", "named", "owned up", "two of thirty", "a short series", "nothing to do", "other numbers"],
)
def test_one_of_many_that_is_told_or_does_not_stand_out_is_in_order(run):
    assert found("one_of_many", run) == []


def test_a_long_series_costs_no_more_than_its_length():
    def judge(calls: int) -> None:
        assert len(found("one_of_many", imported(ALL, REJECTED_ROWS, calls=calls))) == 1

    assert growth(judge, 500, 2_000) < LINEAR


# --- what a tool says against its own answer ---------------------------------------------------

STOCK = "You can ship 118 tents."
DOWN = "warehouse feed is down since 9 days"


def stock(answer: str, **told: object) -> Run:
    return answered(answer, tool("get_stock", {"sku": "T"}, {"on_hand": 118, **told}))


def test_stale_data_that_the_answer_takes_as_fresh_is_found():
    stale, warned = stock(STOCK, stale=True, warning=DOWN), stock(STOCK, warnings=[DOWN])

    message = f"get_stock said that its data is out of date: {DOWN}; the answer does not say so"
    assert found("warning_unsaid", stale) == [(message, (2,))]
    assert first_odd_step(find_anomalies(stale)) == 2
    assert found("warning_unsaid", warned) == [(f"get_stock warned: {DOWN}; the answer does not say so", (2,))]
    assert first_odd_step(find_anomalies(warned)) is None


@pytest.mark.parametrize(
    "run",
    [
        stock(STOCK, stale=False, warning=None, warnings=[]),
        stock("There were 118 tents, but the number is nine days old.", stale=True),
        stock("118 tents; the feed of the warehouse is down.", warning=DOWN),
        stock("Unfortunately I have no fresh number.", stale=True),
    ],
    ids=["fresh", "told", "told in its words", "apology"],
)
def test_stale_data_that_is_told_or_not_stale_is_in_order(run):
    assert found("warning_unsaid", run) == []


def stocks(answer: str, *ages: timedelta, arguments: Any = None) -> Run:
    taken = [(NOON - age).isoformat() for age in ages]
    steps = [tool("get_stock", arguments or {"at": n}, {"on_hand": n, "as_of": at}) for n, at in enumerate(taken)]
    return make_run(model(), *steps, model(), output=payload(answer), started_at=NOON)


FRESH, OLD = timedelta(minutes=10), timedelta(days=9)


def test_data_that_is_far_older_than_that_of_the_other_calls_is_found():
    message = "get_stock returned data that is 9 days old, unlike its other calls; the answer does not say so"

    assert found("warning_unsaid", stocks(STOCK, FRESH, OLD, FRESH)) == [(message, (3,))]
    assert first_odd_step(find_anomalies(stocks(STOCK, FRESH, OLD, FRESH))) == 3


@pytest.mark.parametrize(
    "run",
    [
        stocks(STOCK, FRESH, FRESH, FRESH),
        stocks(STOCK, FRESH, OLD),
        stocks(STOCK, FRESH, timedelta(hours=23), FRESH),
        stocks(STOCK, OLD, OLD, OLD),
        stocks("118 tents, as of 9 days ago.", FRESH, OLD, FRESH),
        stocks(STOCK, FRESH, OLD, FRESH, arguments={"on": "2026-02-08"}),
    ],
    ids=["fresh", "two", "of today", "all old", "told", "asked for"],
)
def test_old_data_that_is_usual_or_told_or_asked_for_is_in_order(run):
    assert found("warning_unsaid", run) == []


# --- sub-agents --------------------------------------------------------------------------------

NO_FIGURE = "I was not able to open the filings: the registry answered 403. I have no figure."


def briefed(answer: str, result: str | None = NO_FIGURE, **fields) -> Run:
    agent = make_step("researcher", AgentCall(run_id="r_2", result=payload(result) if result else None), fields)
    return make_run(model(), agent, model(), output=payload(answer))


def test_a_sub_agent_that_came_to_nothing_is_told_at_the_step_that_called_it():
    run = briefed("The revenue of Northwind was USD 1.64 bn, of Quarry 0.87 bn.")

    said = "I was not able to open the filings: the registry answered 403"
    message = f"researcher, a sub-agent, said: {said}; the answer does not say so"
    assert found("sub_agent_unsaid", run) == [(message, (2,))]
    assert first_odd_step(find_anomalies(run)) == 2
    failed = briefed("The revenue was USD 1.64 bn.", None, error=FAILED)
    assert found("sub_agent_unsaid", failed) == [("researcher, a sub-agent, failed; the answer does not say so", (2,))]


@pytest.mark.parametrize(
    "run",
    [
        briefed("There is no figure for Northwind."),
        briefed("The filings could not be opened."),
        briefed("The revenue was USD 1.64 bn.", "Northwind's revenue was USD 1.64 bn."),
    ],
    ids=["told", "owned up", "went well"],
)
def test_a_sub_agent_whose_failure_is_told_or_that_went_well_is_in_order(run):
    assert found("sub_agent_unsaid", run) == []


# --- totals beside what they are made of -------------------------------------------------------

RECEIPTS = {"RC-901": 412.5, "RC-902": 89.9, "RC-903": 1240.35}


def reported(total: float, *ids: str, question: str = "File it.", more: Any = None, shipping: Any = None) -> Run:
    read = [tool("get_receipt", {"id": name}, {"id": name, "amount": sum_}) for name, sum_ in RECEIPTS.items()]
    report = tool("create_report", {"total": total, "receipts": list(ids or RECEIPTS), **(more or {})})
    extra = [tool("get_extra", None, shipping)] if shipping else []
    return make_run(model(), *read, *extra, report, model(), input=payload(question))


def test_a_total_that_is_not_the_sum_of_the_amounts_is_found():
    message = "create_report was called with total 1724.75; the 3 amounts from RC-901 to RC-903 add up to 1742.75"

    assert found("other_sum", reported(1724.75)) == [(message, (5,))]
    assert first_odd_step(find_anomalies(reported(1724.75))) == 5


@pytest.mark.parametrize(
    "run",
    [
        reported(1742.75),
        reported(502.4, "RC-901", "RC-902"),
        reported(1724.75, "RC-901", "RC-902", "RC-904"),
        reported(1724.75, more={"allowance": 18}),
        reported(1724.75, question="File it, without the 18 of the coffee."),
        reported(1724.75, question="File it with 1724.75."),
        reported(1747.75, shipping={"cost": 5}),
        reported(1732.75, shipping={"code": "SAVE10", "amount": 10}),
    ],
    ids=[
        "right",
        "some of them",
        "one never told",
        "another number",
        "made of the question's",
        "asked for",
        "shipping",
        "a voucher",
    ],
)
def test_a_total_that_is_right_or_may_be_made_of_more_is_in_order(run):
    assert found("other_sum", run) == []


def test_amounts_in_two_currencies_have_no_sum():
    rows = [{"id": "a1", "amount": 5, "currency": "EUR"}, {"id": "a2", "amount": 7, "currency": "USD"}]
    report = tool("report", {"total": 99, "rows": ["a1", "a2"]})

    assert found("other_sum", make_run(model(), tool("list_rows", {}, {"rows": rows}), report)) == []
    rows[1]["currency"] = "EUR"
    assert len(found("other_sum", make_run(model(), tool("list_rows", {}, {"rows": rows}), report))) == 1


def test_listed_totals_of_many_calls_cost_no_more_than_their_number():
    def judge(number: int) -> None:
        rows = [tool("get", {"id": f"r{n}"}, {"id": f"r{n}", "amount": n, "weight": n + 0.5}) for n in range(number)]
        sums = [tool("add", {"ids": [f"r{n}", f"r{n + 1}"], "total": 1e7 + n}) for n in range(number - 1)]
        assert found("other_sum", make_run(model(), *rows, *sums))

    assert growth(judge, 100, 400) < LINEAR


@pytest.mark.parametrize(
    "text",
    [
        "It cost €1,708.35 in total: flight €412.50, train €89.90, hotel €1,240.35 and taxi €37.60.",
        "Flight €412.50, train €89.90, hotel €1,240.35 and taxi €37.60: €1,708.35 in total.",
        "- flight: 412.50\n- train: 89.90\n- hotel: 1,240.35\n- taxi: 37.60\nTotal: 1,708.35",
        "The total for TRIP-118 is $1,708.35 (flight $412.50, train $89.90, hotel $1,240.35, taxi $37.60).",
    ],
)
def test_a_total_that_the_answers_own_list_does_not_make_is_found(text):
    message = "The answer gives a total of 1708.35, but its items add up to 1780.35"

    assert found("other_total", answered(text)) == [(message, (2,))]
    assert first_odd_step(find_anomalies(answered(text))) == 2


@pytest.mark.parametrize(
    "text",
    [
        "It cost €540.00 in total: flight €412.50, train €89.90 and taxi €37.60.",
        "It cost €640.00 in total: flight €412.50, train €89.90 and 3 taxis at €37.60.",
        "It costs €640.00 in total: room €200.00 per night and breakfast €18.00.",
        "It cost €540.00 in total, of which €40.00 are for the taxi and €12.00 for the train.",
        "It cost €600.00 in total: flight €412.50.",
        "The suite costs €240.00, breakfast €18.00, and you have €828.00 in total.",
        "The net is €82.25, the VAT €15.63: €107.88 in total.",
    ],
    ids=["right", "a quantity", "per night", "of which", "one", "no list", "tax"],
)
def test_a_total_that_is_right_or_made_otherwise_is_in_order(text):
    assert found("other_total", answered(text)) == []
