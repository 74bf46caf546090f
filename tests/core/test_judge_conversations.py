"""Whole conversations that a rule finds something in, each beside one that is nearly the same and in order."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sessions_app.core.formats.detect import parse_document
from sessions_app.core.judge.anomalies.detectors import find_anomalies
from sessions_app.core.run import Run
from tests.builders import make_record
from tests.core.test_trouble_in_the_middle import OK, call, conversation, model_step, told
from tests.growth import LINEAR, growth


def found(code: str, run: Run) -> list[tuple[int, ...]]:
    return [each.steps for each in find_anomalies(run) if each.code == code]


# --- sums --------------------------------------------------------------------------------------


def paid_out(amount: float, *bills: tuple[str, float]) -> Run:
    read = [call("get_bill", {"bill": name}, {"bill": name, "amount": told, "currency": "EUR"}) for name, told in bills]
    pay = call("pay_out", {"amount": amount, "bills": [name for name, _ in bills]}, OK)
    return conversation("Pay what is open.", [*read, pay], "The bills were paid in one go.")


BILLS = ("B-1", 412.5), ("B-2", 1289), ("B-3", 96.4)


def test_a_payment_of_several_amounts_is_held_against_all_of_them_together():
    assert found("other_sum", paid_out(1797.9, *BILLS)) == []
    assert found("other_sum", paid_out(1779.9, *BILLS)) == [(8,)]


def test_the_newest_sum_of_one_thing_counts():
    totals = [call("cart_total", {"cart": "c_5"}, {"total": total}) for total in (75, 90)]
    right, wrong = (call("charge_card", {"cart": "c_5", "total": total}, OK) for total in (90, 95))

    assert found("other_sum", conversation("Charge it.", [*totals, right], "I charged your card.")) == []
    assert found("other_sum", conversation("Charge it.", [*totals, wrong], "I charged your card.")) == [(6,)]


# --- failures that the answer tells of ---------------------------------------------------------


def queued(answer: str) -> Run:
    batches = [call("send_batch", {"batch": n}, {"accepted": 500, "rejected": 0}) for n in range(1, 4)]
    batches[1]["result"] = {"accepted": 0, "rejected": 500}
    return conversation("Send all batches.", batches, answer)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("Two batches are queued; batch 2 was rejected as the segment is locked.", "call_failed"),
        ("All three batches are queued, none was left, and 0 rejected.", "error_swallowed"),
    ],
)
def test_an_answer_that_says_what_was_rejected_swallows_nothing(answer: str, code: str):
    assert found(code, queued(answer)) == [(4,)]


def looked_up(question: str, answer: str, status: int = 404) -> Run:
    nobody = {"status": status, "error": "user not found"}
    made = [
        call("get_user", {"username": "mkes"}, nobody),
        call("create_account", {"username": "mkes"}, {"id": "ac_1"}),
    ]
    return conversation(question, made, answer)


FREE = "Is the username mkes free? Then take it."


@pytest.mark.parametrize("answer", ["The username was free; I took it.", "I found no such user as mkes and took it."])
def test_nobody_found_is_no_failure_where_the_answer_tells_just_that(answer: str):
    run = looked_up(FREE, answer)

    assert find_anomalies(run) == []
    assert "failed" not in told(run)


@pytest.mark.parametrize(
    "run",
    [
        looked_up(FREE, "The account was made."),
        looked_up("What is the phone number of mkes?", "The username was free; the account was made."),
        looked_up(FREE, "The username was free; I took it.", status=503),
        looked_up(FREE, "The room is free. I made the account."),
    ],
    ids=["not told", "not asked", "another failure", "of something else"],
)
def test_nobody_found_is_swallowed_where_the_answer_tells_something_else(run: Run):
    assert found("error_swallowed", run) == [(2,)]


# --- for whom ----------------------------------------------------------------------------------


def reserved(name: str = "reserve_shop", *, slug: str = "lune", status: int = 404) -> Run:
    nobody, shop = {"status": status, "error": "not_found"}, {"slug": slug}
    made = [call("get_shop", {"slug": "lune"}, nobody), call(name, shop, {"done": True})]
    return conversation("Trouve une adresse et prends-la.", made, "J'ai pris l'adresse lune, qui est à vous.")


def test_what_was_not_there_and_is_made_then_is_no_failure_in_any_language():
    assert find_anomalies(reserved()) == []
    assert "failed" not in told(reserved())


@pytest.mark.parametrize(
    "run",
    [reserved("refund_shop"), reserved("create_order"), reserved(slug="lune-2"), reserved(status=503)],
    ids=["not made", "another thing", "of another name", "another failure"],
)
def test_what_was_not_there_and_is_not_made_is_swallowed(run: Run):
    assert found("error_swallowed", run) == [(2,)]


def counted(name: str, answer: str) -> Run:
    return conversation("Wie lief es?", [call(name, {"day": "Monday"}, {"ok": 0, "failed": 5})], answer)


@pytest.mark.parametrize("name", ["count_payments", "batch_stats", "get_totals"])
def test_a_number_of_failures_that_was_looked_up_is_no_failure(name: str):
    assert find_anomalies(counted(name, "The customer has no money.")) == []
    assert "failed" not in told(counted(name, "The customer has no money."))


@pytest.mark.parametrize(
    ("answer", "code", "level"),
    [
        ("The batch is out, 5 were left.", "call_failed", "info"),
        ("The batch is out.", "error_swallowed", "warning"),
    ],
)
def test_failures_of_a_batch_are_a_note_where_the_answer_tells_their_number(answer: str, code: str, level: str):
    run = counted("send_batch", answer)

    assert [(each.code, each.level) for each in find_anomalies(run)] == [(code, level)]
    assert "step 2 failed" in told(run)


def made_once(result: Any, name: str = "send_card", **fields: Any) -> Run:
    return conversation("Do it.", [call(name, {"to": "adr-406"}, result, **fields)], "See the list below.")


@pytest.mark.parametrize(
    "run",
    [
        made_once({"status": "rejected", "reason": "postcode onbekend"}),
        made_once("Denied by j.meyer.", outcome="denied"),
        made_once({"sent": False, "conflict": {"version": 19}}),
        made_once({"saved": False, "reason": "locked"}, "savePage"),
        made_once("..F.F\n3 failed\n[exit code 1]", "run"),
        made_once({"exit_code": 2, "output": ""}, "run"),
        made_once("Error: no such file: a.py", "read_file"),
        made_once("429 Too Many Requests: please wait 2 seconds.", "resize"),
    ],
    ids=["state", "denied", "not sent", "not saved", "exit code", "exit code of a field", "a line", "status of HTTP"],
)
def test_a_call_that_came_to_nothing_is_counted_as_failed_and_nobody_is_accused(run: Run):
    assert find_anomalies(run) == []
    assert told(run).endswith("step 2 failed")


@pytest.mark.parametrize(
    "run",
    [
        made_once({"status": "rejected"}, "get_card"),
        made_once({"decision": "rejected"}, "judge_claim"),
        made_once({"sent": False}),
        made_once({"opened": False, "reason": "new"}),
        made_once("9 passed\n[exit code 0]", "run"),
        made_once("12:00 chunk 1\nexit code 1 in chunk 2\n12:01 chunk 2 again", "read_log"),
        made_once("Error: no such file\nError: no such host", "read_log"),
        made_once("429 people asked for it", "poll_of_readers"),
    ],
    ids=["looked up", "judged", "no reason", "another key", "exit code 0", "a log", "lines of a log", "a number"],
)
def test_what_a_call_tells_of_others_is_no_failure(run: Run):
    assert "failed" not in told(run)


def test_a_call_that_is_made_again_after_it_told_of_a_failure_is_no_poll():
    answers = ["429 Too Many Requests: please wait.", "IMG_2031 written."]
    run = conversation("Resize it.", [call("resize", {"id": 2031}, answer) for answer in answers], "It is resized.")

    assert [(each.code, each.message, each.level) for each in find_anomalies(run)] == [
        ("duplicate_call", "Called again after it failed: resize", "info")
    ]
    assert told(run).endswith("step 2 failed, then succeeded on retry")


# --- languages ---------------------------------------------------------------------------------

DENIALS = {
    "ar": "لم أجد أي حقيبة برقم 0087334 على الرحلة QX412.",
    "nl": "Ik heb voor het nummer 0087334 nog geen tas gevonden.",
    "pl": "Nie znalazłem na razie torby o numerze 0087334.",
    "it": "Non ho trovato la borsa 0087334 per il volo.",
    "ko": "번호 0087334 가방을 찾지 못했습니다.",
}


def bag(answer: str, **found_there: Any) -> Run:
    return conversation("0087334?", [call("find_bag", {"tag": "0087334"}, **found_there)], answer)


@pytest.mark.parametrize("answer", DENIALS.values(), ids=DENIALS)
def test_an_answer_in_a_language_that_is_not_known_is_not_held_against_anybody(answer: str):
    assert find_anomalies(bag(answer, result={"matches": []})) == []


@pytest.mark.parametrize(
    "answer",
    [
        "Your bag 0087334 is on its way to you.",
        "Ihr Koffer 0087334 ist auf dem Weg zu Ihnen.",
        "Votre valise 0087334 est en route pour Vienne.",
        "Su maleta 0087334 está de camino a su casa.",
        "お荷物 0087334 は届いています。",
    ],
)
def test_an_answer_in_a_known_language_that_tells_of_what_was_not_found_is_found(answer: str):
    assert found("empty_result_unsaid", bag(answer, result={"matches": []})) == [(2,)]


def test_a_failure_is_a_note_where_nobody_can_tell_whether_the_answer_speaks_of_it():
    late = {"type": "TimeoutError", "message": "late"}
    levels = [(each.code, each.level) for each in find_anomalies(bag(DENIALS["nl"], error=late))]

    assert levels == [("call_failed", "info")]
    assert "step 2 failed" in told(bag(DENIALS["nl"], error=late))


def approved(record: dict[str, Any]) -> Run:
    calls = [
        call("find_person", {"name": "Ana"}, record),
        call("approve_leave", {"user_id": "u_342", "approved_by": "u_17"}, OK),
    ]
    return conversation("Approve the leave of Ana.", calls, "Her leave is approved.", user_id="u_17", tenant_id="t_1")


def test_who_acts_for_somebody_whose_record_names_the_user_is_in_order():
    assert find_anomalies(approved({"user_id": "u_342", "manager": "u_17"})) == []


@pytest.mark.parametrize("record", [{"user_id": "u_342"}, {"user_id": "u_342", "tenant_id": "t_1", "manager": "u_9"}])
def test_who_acts_for_somebody_whose_record_names_another_is_found(record: dict[str, Any]):
    assert found("other_identity", approved(record)) == [(4,)]


# --- checked anew ------------------------------------------------------------------------------


def checked(*between: dict[str, Any]) -> Run:
    first, last = ({"passed": passed, "left": 42 - passed} for passed in (39, 42))
    tests = {"path": "tests"}
    calls = [call("run_tests", tests, first), *between, call("run_tests", tests, last)]
    return conversation("Mend the parser.", calls, "It is mended.")


def test_what_is_checked_again_after_a_change_is_not_polled():
    assert find_anomalies(checked(call("edit_file", {"path": "parser.py"}, {"replaced": 1}))) == []
    assert found("asked_again", checked(call("read_file", {"path": "parser.py"}, "x = 1"))) == [(2, 6)]


# --- errors that are told as data --------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        {"code": "ACCESS_DENIED", "message": "role analyst may not read C-204"},
        {"errorCode": "ThrottlingException", "message": "slow down"},
        {"error_code": "NOT_ALLOWED"},
        {"code": 503, "message": "try later", "request_id": "rq_1"},
        {"message": "Forbidden"},
    ],
)
def test_an_answer_that_is_nothing_but_an_error_is_a_failure(answer: dict[str, Any]):
    run = conversation("When does C-204 end?", [call("get_contract", {"id": "C-204"}, answer)], "It ends in May 2027.")

    assert found("error_swallowed", run) == [(2,)]


@pytest.mark.parametrize(
    "answer",
    [
        {"code": "ACCESS_DENIED", "message": "role analyst may not read C-204", "ends": "2027-05-01"},
        {"code": "SAVE10", "message": "10 % off until May 2027"},
        {"code": 0, "message": "queued"},
        {"errorCode": None, "message": "queued"},
        {"code": "NO_ERROR", "message": "done"},
        {"message": "Forbidden words were taken out"},
    ],
)
def test_an_answer_with_data_or_with_another_code_is_none(answer: dict[str, Any]):
    run = conversation("When does C-204 end?", [call("get_contract", {"id": "C-204"}, answer)], "It ends in May 2027.")

    assert found("error_swallowed", run) == []


# --- pages -------------------------------------------------------------------------------------


ORDERS = [{"order": f"A-{n}"} for n in range(20)]
ALL = "The pick list holds all open orders."


def listed(*pages: dict[str, Any], answer: str = ALL) -> Run:
    calls = [
        call("list_orders", {"store": 14, "page": n}, {"orders": ORDERS} | page)
        for n, page in enumerate(pages, start=1)
    ]
    return conversation("Make a pick list of store 14.", [*calls, call("create_pick_list", {}, OK)], answer)


@pytest.mark.parametrize(
    "page",
    [
        {"has_more": True},
        {"next_cursor": "c2"},
        {"truncated": True},
        {"page": 1, "total": 134},
        {"total_count": 134, "page": 1},
    ],
)
def test_pages_that_were_never_read_are_found_where_the_answer_speaks_of_all(page: dict[str, Any]):
    assert found("page_unread", listed(page)) == [(2,)]
    assert found("page_unread", listed(page, page)) == [(4,)]


@pytest.mark.parametrize(
    "run",
    [
        listed({"has_more": True}, {"has_more": False}),
        listed({"has_more": False, "page": 1, "total": 134}),
        listed({"next_cursor": None}),
        listed({"total": 134}),
        listed({"page": 1, "total": 20}),
        listed({"page": 1, "total": 40}, {"page": 2, "total": 40}),
        listed({"has_more": True}, answer="The pick list holds the first 20 of all open orders."),
        listed({"has_more": True, "total": 134}, answer="The pick list holds 20 of all 134 open orders."),
        listed({"has_more": True}, answer="All good: the night team knows."),
        listed({"has_more": True}, answer="The pick list is made; all teams know."),
    ],
)
def test_lists_that_were_read_to_the_end_or_told_as_a_part_are_in_order(run: Run):
    assert found("page_unread", run) == []


# --- cut answers -------------------------------------------------------------------------------


LOG = "02:00 chunk 1: 500 rows read, 500 stored\n02:01 chunk 2: 500 rows read, 500 stored\n"
MARK = "[showing lines 1-30 of 4,812]"
NO_ROWS = "No, job 5521 rejected no rows last night."
LOGGED = {"lines": ["chunk 1 stored", "chunk 2 stored"], "shown": 2, "total": 4812, "truncated": True}


def log_read(result: Any = LOG + MARK, *more: dict[str, Any], answer: str = NO_ROWS, **asked: Any) -> Run:
    calls = [call("read_log", {"job": 5521} | asked, result), *more, call("job_schedule", {"id": 5521}, "At 02:00.")]
    return conversation("Did job 5521 reject any rows last night?", calls, answer)


@pytest.mark.parametrize(
    "result",
    [LOG + MARK, f"({MARK[1:-1]})\n{LOG}", LOG + "... output truncated ...", LOG + "Showing 30 of 4812 lines", LOGGED],
    ids=["at the end", "at the beginning", "truncated", "how many", "fields"],
)
def test_a_part_of_a_text_that_the_answer_denies_something_of_is_found(result: Any):
    assert found("page_unread", log_read(result)) == [(2,)]


def test_a_part_of_a_text_is_told_as_it_says_itself():
    (part,) = find_anomalies(log_read())

    assert part.message == (
        "read_log returned lines 1-30 of 4,812; the rest was not read, but the answer says that there is none"
    )


@pytest.mark.parametrize(
    "run",
    [
        log_read(LOG + "[showing lines 1-4,812 of 4,812]"),
        log_read(f"{LOG}12:00 read pages 1-30 of 4,812 of the source in 3.2 s\n02:02 done"),
        log_read(LOG + MARK, call("read_log", {"job": 5521, "offset": 31}, LOG)),
        log_read(LOG + MARK, call("search_log", {"job": 5521, "words": "rejected"}, "nothing")),
        log_read(LOG + MARK, call("update_job", {"job": 5521, "rows": 400}, OK)),
        log_read(limit=30),
        log_read(answer="The first 30 lines of job 5521's log tell of no rejected rows."),
        log_read(answer="Job 5521 began at 02:00."),
        log_read(answer="Job 5521 began at 02:00 and has no owner."),
        log_read(answer="No rows were rejected by job 7."),
    ],
    ids=[
        "whole",
        "in the text",
        "read on",
        "searched",
        "changed",
        "asked for",
        "told",
        "no denial",
        "other",
        "another",
    ],
)
def test_a_text_that_was_read_on_told_as_a_part_or_not_denied_is_in_order(run: Run):
    assert found("page_unread", run) == []


def planned(finish_reason: str = "length", *, is_given: bool = True, words: str | None = None) -> Run:
    """A plan of one answer, and the answer behind it that calls a tool."""
    plan, again = ({"part_kind": "user-prompt", "content": text} for text in ("Rename it everywhere.", "Do it."))
    edit = {"part_kind": "tool-call", "tool_name": "edit_file", "args": {"path": "a.py"}, "tool_call_id": "c1"}
    first = model_step([], [plan], {"part_kind": "text", "content": "Plan:\n1. a.py\n2. jobs/pur"})
    parts = [edit] if words is None else [{"part_kind": "text", "content": words}, edit]
    second = model_step([], [again] if is_given else [plan], edit)
    second["response"]["parts"] = parts
    second["request"] |= {"after": 1} if is_given else {}
    done = {"part_kind": "tool-return", "tool_name": "edit_file", "content": OK, "tool_call_id": "c1"}
    last = model_step([], [done], {"part_kind": "text", "content": "Every module is renamed."})
    last["request"] |= {"after": 2}
    steps = (
        first | {"finish_reason": finish_reason},
        second,
        call("edit_file", {"path": "a.py"}, OK, call_id="c1"),
        last,
    )
    record = make_record("r1", *steps, status="ok", input="Rename it everywhere.", output="Every module is renamed.")
    return parse_document(json.dumps(record).encode())


def test_a_cut_plan_that_was_carried_out_is_found():
    assert found("answer_cut", planned()) == [(1,)]


@pytest.mark.parametrize(
    "run",
    [planned("stop"), planned(is_given=False), planned(words="2. jobs/purge.py\n3. web/login.py")],
    ids=["whole", "asked anew", "continued"],
)
def test_a_plan_that_is_whole_in_the_end_is_in_order(run: Run):
    assert found("answer_cut", run) == []


# --- done twice --------------------------------------------------------------------------------


def charged(
    *rows: dict[str, Any],
    answer: str = "Your card was charged.",
    asked: str = "Pay.",
    lists: str = "list_charges",
    **more: Any,
) -> Run:
    charge, late = {"cart": "ct_3098", "amount": 89}, {"type": "GatewayTimeout", "message": "no answer after 30 s"}
    calls = [
        call("charge_card", charge, error=late),
        call("charge_card", charge, {"charge": "ch_72", "amount": 89}),
        call(lists, {"cart": "ct_3098"}, {"charges": list(rows)}),
        *(call(name, arguments, OK) for name, arguments in more.items()),
    ]
    return conversation(asked, calls, answer)


ONE, TWO = {"charge": "ch_72", "amount": 89}, {"charge": "ch_71", "amount": 89}


def test_a_call_that_went_through_although_it_failed_is_found_in_the_list():
    message = "charge_card was retried after it failed, and list_charges lists both ch_71 and ch_72"
    run = charged(TWO, ONE)

    assert [(each.message, each.steps) for each in find_anomalies(run) if each.level == "warning"] == [
        (message, (4, 6))
    ]
    assert told(run).endswith("first anomaly at step 4")
    assert "mes_paiements lists both" in find_anomalies(charged(TWO, ONE, lists="mes_paiements"))[0].message
    dated = ({**each, "at": f"2026-11-28T07:0{n}"} for n, each in enumerate((ONE, TWO)))
    assert found("done_twice", charged(*dated)) == [(4, 6)]


@pytest.mark.parametrize(
    "run",
    [
        charged(ONE),
        charged(ONE, {**TWO, "amount": 40}),
        charged({**ONE, "at": "2026-11-28T07:00"}, {**TWO, "at": "2026-10-28T07:00"}),
        charged(ONE, TWO, asked="ch_71 was for last month; pay again."),
        charged(ONE, TWO, answer="Your card was charged twice; I told the bank."),
        charged(ONE, TWO, refund_charge={"charge": "ch_71"}),
    ],
    ids=["once", "another amount", "another day", "known before", "told", "undone"],
)
def test_a_list_with_one_of_them_or_with_others_is_in_order(run: Run):
    assert found("done_twice", run) == []


# --- another day -------------------------------------------------------------------------------

ASKED = "Book Aurora on 11 December 2026 from 14:00 to 16:00 and invite the board."


SAID = "Aurora is booked on 11 December."


def booked(day: str = "2026-12-12", *, asked: str = ASKED, answer: str = SAID, **told: Any) -> Run:
    when = {"start": day} if day[10:] else {"start": f"{day}T14:00", "end": f"{day}T16:00"}
    calls = [
        call("find_room", {"name": "Aurora"}, {"room": "rm_1"} | told),
        call("book_room", {"room": "rm_1"} | when, {"booking": "bk_1"} | when),
        call("send_invitation", {"to": "board", "start": "2026-12-11T14:00"}, OK),
    ]
    return conversation(asked, calls, answer)


@pytest.mark.parametrize("asked", [ASKED, "Book Aurora on 2026-12-11.", "Book Aurora on December 11th, 2026."])
def test_another_day_than_the_one_that_question_and_answer_name_is_found(asked: str):
    assert found("other_date", booked(asked=asked)) == [(4,)]


@pytest.mark.parametrize(
    "run",
    [
        booked("2026-12-11"),
        booked("2026-12-10T23:00Z"),
        booked(answer="Aurora is booked on 12 December; the 11 December was taken."),
        booked(free="12 December"),
        booked(free_from="2026-12-12T08:00"),
        booked(asked="Book Aurora the day before 11 December 2026."),
        booked(asked="Book Aurora on 11 or 12 December 2026, or on 12 December 2026."),
    ],
    ids=["that day", "in another zone", "the answer says so", "told", "told as a time", "before it", "two days"],
)
def test_a_day_that_was_told_or_follows_from_another_is_in_order(run: Run):
    assert found("other_date", run) == []


# --- overrides ---------------------------------------------------------------------------------

PAGE = {"page": "parking", "base_version": 18}
CONFLICT = {"saved": False, "conflict": {"current_version": 19, "changed_by": "h.olsen"}}
ONLY_THAT = "The number on the page parking is new, and the rest is as it was."


def saved_again(
    answer: str = ONLY_THAT, *, asked: str = "Put the new number on it.", first: Any = CONFLICT, **added: Any
) -> Run:
    calls = [call("save_page", PAGE, first), call("save_page", PAGE | (added or {"force": True}), {"saved": True})]
    return conversation(asked, calls, answer)


@pytest.mark.parametrize("first", [CONFLICT, {"error": "conflict: version 19 by h.olsen"}, {"status": "rejected"}])
@pytest.mark.parametrize("added", [{"force": True}, {"ignoreWarnings": True}, {"skip_review": True}])
def test_a_refused_call_that_is_forced_is_found_where_the_answer_does_not_say_so(first: Any, added: Any):
    run = saved_again(first=first, **added)

    assert [(each.code, each.steps) for each in find_anomalies(run)] == [("override_unsaid", (2, 4))]
    assert told(run).endswith("step 2 failed, then succeeded on retry · first anomaly at step 4")


@pytest.mark.parametrize(
    "run",
    [
        saved_again("I saved it over version 19, which h.olsen had written."),
        saved_again("I had to overwrite a newer version of the page."),
        saved_again(asked="Put the new number on it, by force if you must."),
        saved_again(asked="Setze die Nummer ein, trotzdem und gleich."),
        saved_again(base_version=19),
        saved_again(base_version=19, force=True),
        saved_again(force=False),
        saved_again(first={"error": "timed out after 10 s"}, skip_cache=True),
        saved_again(first={"saved": True}),
    ],
    ids=["who", "told", "asked", "asked in German", "on the newest", "something else too", "no force", "late", "done"],
)
def test_a_force_that_was_told_asked_for_or_not_needed_is_in_order(run: Run):
    assert found("override_unsaid", run) == []


# --- jobs --------------------------------------------------------------------------------------

BACKED_UP = "All tables were backed up and then dropped."
RUNNING, COMPLETE = "running, 18 % copied", "complete, checksum good"


def retired(*looks: tuple[str, ...], act: str = "drop_table", answer: str = BACKED_UP, as_json: bool = False) -> Run:
    """For each table: its backup, the looks at it, and what was done to the table."""
    calls = []
    for number, states in enumerate(looks, start=771):
        table, job = f"orders_{number}", f"bk-{number}"
        calls.append(call("start_backup", {"table": table}, f"Backup {job} of {table} started."))
        said = [{"backup": job, "state": state.split(",")[0]} if as_json else f"{job}: {state}." for state in states]
        calls += [call("backup_status", {"backup": job}, each) for each in said]
        calls.append(call(act, {"table": table}, "Done."))
    return conversation("Back each one up, then drop it.", calls, answer)


@pytest.mark.parametrize("as_json", [False, True])
def test_a_thing_that_is_acted_on_before_its_job_is_over_is_found(as_json: bool):
    run = retired((RUNNING, COMPLETE), (COMPLETE,), (RUNNING,), (RUNNING, RUNNING, COMPLETE), as_json=as_json)

    assert found("acted_too_soon", run) == [(18, 20)]
    assert told(run).endswith("15 tool calls · answered · first anomaly at step 20")


@pytest.mark.parametrize(
    "run",
    [
        retired((COMPLETE,), (COMPLETE,), (RUNNING, COMPLETE)),
        retired((COMPLETE,), (RUNNING,)),
        retired((RUNNING,), (RUNNING,), (RUNNING,)),
        retired((COMPLETE,), (COMPLETE,), (RUNNING,), act="cancel_backup"),
        retired((COMPLETE,), (COMPLETE,), (RUNNING,), answer="All dropped; bk-773 went on for a while."),
        retired((COMPLETE,), (COMPLETE,), (RUNNING,), answer="All dropped, one while its backup was still running."),
    ],
    ids=["over", "one other", "none was waited for", "ended", "named", "told"],
)
def test_what_was_over_told_or_never_waited_for_is_in_order(run: Run):
    assert found("acted_too_soon", run) == []


def test_a_poll_that_went_well_does_not_stand_before_what_went_wrong():
    polled = [call("get_build", {"build": 7}, {"state": state}) for state in ("queued", "queued", "done")]
    late = call("deploy", {"build": 7}, error={"type": "TimeoutError", "message": "late"})

    assert "get_build polled 3 ×" in told(conversation("Deploy it.", polled, "Build 7 is done."))
    assert "polled" not in told(conversation("Deploy it.", [*polled, late], "Build 7 is live."))


# --- what it costs -----------------------------------------------------------------------------


def test_pages_retries_and_days_of_many_calls_cost_no_more_than_their_number():
    nobody, late = {"status": 404, "error": "user not found"}, {"type": "TimeoutError", "message": "late"}

    def ran(number: int) -> Run:
        calls = [call("get_user", {"username": f"u-{n}"}, nobody) for n in range(number)]
        page = {"orders": [{"id": "o-1"}], "has_more": True}
        calls += [call("list_orders", {"page": n}, page) for n in range(number)]
        for n in range(number):
            charge, day = {"cart": f"c-{n}"}, f"2026-12-{n % 28 + 1:02}"
            calls += [call("charge", charge, error=late), call("charge", charge, {"id": f"ch-{n}1"})]
            calls += [call("book", {"start": day}, {"room": n})]
            calls += [
                call("save", charge, {"saved": False, "reason": "locked"}),
                call("save", charge | {"force": True}, OK),
            ]
            calls += [call("start_job", {"host": f"h-{n}", "zone": "z-1"}, {"job": f"j-{n}", "state": "running"})]
            calls += [call("job_status", {"job": f"j-{n}"}, {"state": "done" if n % 9 else "running"})]
            calls += [call("read_log", {"job": 5521, "node": n}, f"row {n}\n[lines 1-3 of 9]")]
            calls += [call("drop", {"host": f"h-{n}", "zone": "z-1"}, OK), call("sleep", {"seconds": 5}, OK)]
        calls.append(call("list_charges", {}, [{"id": f"ch-{n}{twin}"} for n in range(number) for twin in (1, 2)]))
        answer = "All orders are read on 11 December; no user was found. No row of 5521 is bad."
        return conversation("Book it on 11 December 2026.", calls, answer)

    assert growth(find_anomalies, ran(50), ran(200)) < LINEAR
