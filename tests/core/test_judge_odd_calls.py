"""Calls that stand out beside others of their run, each beside a run that is nearly the same and in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from sessions_app.core.failures import signs_of
from sessions_app.core.judge.anomalies.detectors import find_anomalies
from sessions_app.core.judge.anomalies.reading.statements import figures_in, is_stated
from sessions_app.core.run import Run
from tests.core.test_judge_conversations import booked, found
from tests.core.test_trouble_in_the_middle import OK, call, conversation, told
from tests.growth import LINEAR, growth

Call = dict[str, Any]
Calls = list[Call]


def words(code: str, run: Run) -> list[str]:
    return [each.message for each in find_anomalies(run) if each.code == code]


# --- figures -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        ("3,000 EUR, not 5000.", {3.0, 3000.0, 5000.0}),
        ("1.250,75 € and 12,5 µL", {1250.75, 12.5}),
        ("1,234,567 rows; 1'500 CHF", {1234567.0, 1500.0}),
        ("82.4°C を 16に、 P-07, gw-23, 4.2.0", {82.4, 16.0}),
    ],
)
def test_figures_are_read_in_every_way_that_they_may_be_meant(text: str, figures: set[float]):
    assert figures_in(text) == figures


def test_a_name_stands_as_a_word_of_its_own_in_any_script():
    assert [is_stated(*each) for each in (("gw-23", "gw-23を更新"), ("4.2.0", "All at 4.2.0."))] == [True, True]
    assert [is_stated(*each) for each in (("gw-2", "gw-23"), ("4.2", "4.2.0"), ("23", "gw-23"))] == [False] * 3


# --- the record of another ---------------------------------------------------------------------


def letter(
    given: int = 3381,
    *,
    answer: str = "The letter for Ines Falk lists Apixaban.",
    tool: str = "get_medication",
    asked: str = "Write the letter of patient 3318.",
    others: int = 2,
    then: int = 3318,
    **more: Any,
) -> Run:
    patient = {"patient_id": 3318}
    calls = [call(f"get_part_{n}", patient, patient | {"value": n}) for n in range(others)]
    calls.append(call(tool, patient, {"patient_id": given, "drug": "Apixaban"} | more))
    calls.append(call("save_letter", {"patient_id": then, "body": "Apixaban"}, OK))
    return conversation(asked, calls, answer)


def test_the_record_of_another_that_was_used_is_found():
    message = "get_medication was called with patient_id 3318 but returned patient_id 3381, and its data was used"

    assert words("other_record", letter()) == [message]
    assert found("other_record", letter()) == [(6,)]
    assert found("other_record", letter(others=0)) == [(2,)]
    assert told(letter()).endswith("first anomaly at step 6")


def test_an_id_with_letters_is_one_under_any_name():
    def ran(given: str) -> Run:
        calls = [call("get_contract", {"customer": "C-3318"}, {"contract": {"customer": given, "plan": "gold"}})]
        return conversation("What plan has C-3318?", calls, "C-3318 has the plan gold.")

    assert found("other_record", ran("C-3381")) == [(2,)]
    assert found("other_record", ran("c-3318")) == []


@pytest.mark.parametrize(
    "run",
    [
        letter(3318),
        letter(merged_from=[3318]),
        letter(then=3381),
        letter(answer="Patient 3318 is now 3381, with Apixaban."),
        letter(asked="Write the letter of patient 3318, who is 3381 in the pharmacy."),
        letter(tool="get_next_patient"),
        letter(tool="get_manager"),
        letter(tool="create_draft"),
        letter(drug="-"),
    ],
    ids=[
        "its own",
        "merged",
        "gone on with",
        "told",
        "asked for",
        "the next",
        "the manager",
        "a new one",
        "nothing used",
    ],
)
def test_a_record_under_a_new_id_is_in_order(run: Run):
    assert found("other_record", run) == []


def test_a_tool_that_always_gives_another_id_means_it():
    calls = [call("get_order", {"order_id": n}, {"order_id": n + 500, "label": f"parcel-{n}"}) for n in range(100, 104)]
    answer = "The labels are parcel-100, parcel-101, parcel-102 and parcel-103."

    assert found("other_record", conversation("Which labels?", calls, answer)) == []


# --- less than was asked for -------------------------------------------------------------------


def scaled(
    given: int = 10,
    *,
    asked: int = 16,
    answer: str = "search now runs 16 replicas.",
    tool: str = "scale",
    before: Sequence[Call] = (),
    after: Sequence[Call] = (),
    **more: Any,
) -> Run:
    wanted = {"service": "search", "replicas": asked}
    calls = [*before, call(tool, wanted, {"service": "search", "replicas": given} | more), *after]
    return conversation("Scale search to 16 replicas.", calls, answer)


ANSWERS = [
    "search now runs 16 replicas.",
    '{"checkout": 24, "search": 16}',
    "| service | replicas |\n| search | 16 |",
    "Scaled search from 6 to 16 replicas.",
]


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_limit_that_the_answer_goes_past_is_found(answer: str):
    run = scaled(answer=answer, limited_by="quota")

    assert words("done_in_part", run) == ["scale was called with replicas 16 but returned 10; the answer says 16"]
    assert found("done_in_part", scaled(answer=answer)) == [(2,)]


def of(service: str, replicas: int, tool: str = "scale") -> dict[str, Any]:
    said = {"service": service, "replicas": replicas}
    return call(tool, said if tool == "scale" else {"service": service}, said)


def test_more_than_was_asked_for_is_found_where_the_tool_gives_back_what_it_set():
    assert found("done_in_part", scaled(20)) == []
    assert found("done_in_part", scaled(20, before=[of("cart", 12), of("images", 8)])) == [(6,)]


@pytest.mark.parametrize(
    "run",
    [
        scaled(16),
        scaled(answer="search runs 10 replicas, not 16."),
        scaled(answer="I asked for 16 replicas of search; the quota allows fewer.", limited_by="quota"),
        scaled(answer="search could get ten of the 16 replicas."),
        scaled(answer="The peak is at 16:00; search is ready."),
        scaled(after=[of("search", 16, "get_service")]),
        scaled(6, before=[of("search", 6, "get_service")]),
        scaled(status="scaling"),
        scaled(desired=16),
        scaled(1600),
        scaled(14, kept_back=2),
        scaled(tool="get_replicas"),
        scaled(tool="remove_replicas"),
    ],
    ids=[
        *("as asked", "told", "why", "in words", "another figure", "reached later", "as before", "on its way"),
        *("wanted", "another unit", "explained", "a lookup", "what is left"),
    ],
)
def test_a_number_that_is_told_or_reached_or_explained_is_in_order(run: Run):
    assert found("done_in_part", run) == []


def test_another_service_that_has_the_number_does_not_make_it_reached():
    assert found("done_in_part", scaled(after=[of("cart", 16, "get_service")])) == [(2,)]
    assert found("done_in_part", scaled(before=[of("cart", 10, "get_service")])) == [(4,)]


# --- one that returned another value -----------------------------------------------------------


ROLLED_OUT = "All {n} gateways run 4.2.0."


def rolled_out(
    number: int = 5,
    *,
    answer: str = ROLLED_OUT,
    says: str = "{gateway} reports firmware {version}, uptime {n} s.",
    asked: str = "Bring the gateways to 4.2.0 and verify each.",
    odd: int = 3,
    push: bool = True,
    after: Sequence[Call] = (),
) -> Run:
    calls: Calls = []
    for n in range(1, number + 1):
        gateway, version = f"gw-{n:02}", "4.1.7" if n == odd else "4.2.0"
        text = says.format(gateway=gateway, version=version, n=30 + n) if says else None
        if push:
            calls.append(call("push_firmware", {"gateway": gateway, "version": "4.2.0"}, f"Sent to {gateway}."))
        calls.append(call("read_version", {"gateway": gateway}, text or {"gateway": gateway, "version": version}))
    return conversation(asked, [*calls, *after], answer.format(n=number))


@pytest.mark.parametrize("says", ["{gateway} reports firmware {version}, uptime {n} s.", ""], ids=["text", "json"])
def test_the_one_that_is_not_at_what_was_set_is_found(says: str):
    message = "read_version for gw-03 returned 4.1.7, unlike the other 4 calls (4.2.0); the answer does not say so"

    assert words("other_value", rolled_out(says=says)) == [message]
    assert found("other_value", rolled_out(40, says=says)) == [(12,)]
    assert found("other_value", rolled_out(says=says, push=False)) == [(6,)]
    assert told(rolled_out(says=says)).endswith("first anomaly at step 12")


def test_a_table_that_gives_the_one_as_the_others_does_not_tell_of_it():
    table = "\n".join(f"| gw-{n:02} | 4.2.0 |" for n in range(1, 6))

    assert found("other_value", rolled_out(answer=table)) == [(12,)]
    assert found("other_value", rolled_out(answer=table.replace("| gw-03 | 4.2.0 |", "| gw-03 | old |"))) == []


def read(gateway: str, version: str) -> dict[str, Any]:
    return call("read_version", {"gateway": gateway, "again": True}, {"gateway": gateway, "version": version})


@pytest.mark.parametrize(
    "run",
    [
        rolled_out(odd=0),
        rolled_out(4),
        rolled_out(answer="4 of {n} gateways run 4.2.0."),
        rolled_out(answer="All gateways but one run 4.2.0."),
        rolled_out(answer="All run 4.2.0. gw-03 has to be looked at."),
        rolled_out(answer="All run 4.2.0 except for a gateway at 4.1.7."),
        rolled_out(answer="The gateways were verified."),
        rolled_out(after=[read("gw-03", "4.2.0")]),
        rolled_out(push=False, answer="Most gateways are at 4.2.0."),
        rolled_out(push=False, asked="Which firmware do they run?"),
        rolled_out(says="{gateway} runs 4.2.0, before {version}, uptime {n} s."),
    ],
    ids=[
        *("all the same", "too few", "counted", "but one", "named", "told", "no claim", "set right", "not of all"),
        *("not asked for", "the usual one too"),
    ],
)
def test_one_that_is_told_or_set_right_is_in_order(run: Run):
    assert found("other_value", run) == []


@pytest.mark.parametrize(("key", "at"), [("replicas", [(18,)]), ("restarts", [])])
def test_a_small_number_counts_only_under_the_name_that_it_was_set_by(key: str, at: list[tuple[int, ...]]):
    names = [f"svc-{letter}" for letter in "abcde"]
    calls = [call("scale", {"service": name, "replicas": 3}, OK) for name in names]
    calls += [call("get_service", {"service": name}, {key: 2 if name == "svc-d" else 3}) for name in names]
    run = conversation("Scale all 5 services to 3 replicas.", calls, "All 5 services have 3 replicas.")

    assert found("other_value", run) == at


# --- a check that is missing -------------------------------------------------------------------

BUCKETS = ["acme-raw", "borealis-logs", "cobalt-tmp", "delta-mail"]


def swept(
    *,
    check: str = "legal_hold_check",
    unchecked: str = "cobalt-tmp",
    number: int = 4,
    asked: str = "Delete the expired buckets.",
    answer: str = "All expired buckets are gone.",
    tool: str = "delete_bucket",
    before: Sequence[Call] = (),
) -> Run:
    calls = [call("list_expired", {"quarter": "Q4"}, {"buckets": BUCKETS}), *before]
    for name in BUCKETS[:number]:
        calls += [call(check, {"bucket": name}, {"hold": "clear"})] if name != unchecked else []
        calls.append(call(tool, {"bucket": name}, {"deleted": True}))
    return conversation(asked, calls, answer)


def test_a_call_without_the_check_of_all_others_is_found():
    message = (
        "delete_bucket was called for bucket cobalt-tmp without legal_hold_check, "
        "which came before each of the other 3 calls"
    )

    assert words("check_skipped", swept()) == [message]
    assert found("check_skipped", swept()) == [(12,)]
    assert found("check_skipped", swept(check="start_backup")) == [(12,)]


@pytest.mark.parametrize(
    "run",
    [
        swept(unchecked=""),
        swept(number=3),
        swept(check="get_size"),
        swept(asked="Delete the expired buckets; cobalt-tmp has been checked."),
        swept(answer="All are gone. I did not check cobalt-tmp."),
        swept(before=[call("legal_hold_check", {"prefix": "c"}, "cobalt-tmp: clear")]),
        swept(before=[call("find_owner", {"bucket": "cobalt-tmp"}, {"owner": "ops"})]),
        swept(tool="get_bucket"),
    ],
    ids=["all checked", "too few", "no check", "in the question", "told", "checked with others", "asked", "a lookup"],
)
def test_a_call_whose_check_is_not_needed_or_is_told_is_in_order(run: Run):
    assert found("check_skipped", run) == []


# --- a row that is carried out otherwise -------------------------------------------------------

WELLS = [{"well": f"A{n}", "source": "primer", "volume_ul": volume} for n, volume in enumerate((5, 1.25, 2.5) * 2)]


def filled(
    used: Any = 12.5,
    *,
    wells: Calls = WELLS,
    asked: str = "Fill the plate by its protocol.",
    answer: str = "The wells are filled as in the protocol.",
    tool: str = "dispense",
    more: Sequence[Call] = (),
) -> Run:
    calls = [call("get_protocol", {"plate": "X"}, {"wells": wells}), *more[:-1]]
    calls += [call(tool, well | ({"volume_ul": used} if well["well"] == "A4" else {}), OK) for well in wells]
    return conversation(asked, [*calls, *more[-1:]], answer)


def test_the_one_row_that_is_carried_out_otherwise_is_found():
    assert words("other_row", filled()) == [
        "dispense was called with volume_ul 12.5 for well A4; get_protocol lists 1.25"
    ]
    assert found("other_row", filled()) == [(12,)]
    assert told(filled()).endswith("first anomaly at step 12")
    assert found("other_row", filled(answer="A0, A1, A2, A3, A4 and A5 are filled.")) == [(12,)]


@pytest.mark.parametrize(
    "run",
    [
        filled(1.25),
        filled(5),
        filled(wells=WELLS[1:5]),
        filled(asked="Fill the plate by its protocol, but A4 with ten times as much."),
        filled(asked="Fill the plate by its protocol, 12.5 µL where it says 1.25."),
        filled(answer="The wells are filled; one of them got 12,5 µL."),
        filled(answer="The wells are filled. A4 got more."),
        filled(more=[call("get_stock", {}, {"left": 12.5}), call("seal", {}, OK)]),
        filled(more=[call("dispense", WELLS[4], OK)]),
        filled(tool="get_volume"),
        filled(1.2),
        filled(wells=[well | {"volume_ul": "much"} for well in WELLS], used="little"),
        filled(wells=[well | {"well": f"A{n % 5}"} for n, well in enumerate(WELLS)]),
    ],
    ids=[
        *("as its row", "told in another row", "too few", "asked for", "asked for as a value", "told", "named"),
        *("told by a tool", "set right", "a lookup", "rounded", "no figure", "two rows of one name"),
    ],
)
def test_a_row_whose_other_value_is_told_is_in_order(run: Run):
    assert found("other_row", run) == []


@pytest.mark.parametrize(
    ("used", "at"),
    [("Ann Lee 7", []), ("Dr Ann Lee 7", []), ("Ann Lee 8", [(10,)])],
    ids=["other marks", "more of it", "another one"],
)
def test_a_text_with_other_marks_or_with_more_is_the_same(used: str, at: list[tuple[int, ...]]):
    people = [{"id": n, "name": f"ann-lee {n - 97}"} for n in range(101, 107)]
    made = [call("invite", each | ({"name": used} if each["id"] == 104 else {}), OK) for each in people]
    calls = [call("list_people", {}, {"people": people}), *made]

    assert found("other_row", conversation("Invite all.", calls, "All are invited.")) == at


# --- another thing than the one with the value -------------------------------------------------


def watched(
    stopped: str = "P-04",
    *,
    answer: str = "One bearing was at 82.4 °C, so I stopped that pump.",
    asked: str = "Walk through the pumps. If a bearing is above 75 °C, stop that pump.",
    value: float = 82.4,
    json: bool = False,
    more: Sequence[Call] = (),
) -> Run:
    calls: Calls = []
    for n in range(1, 5):
        heat = value if n == 3 else 48.2 + n
        text = f"Pump P-0{n}: bearing {heat} °C, vibration 1.{n} mm/s."
        calls.append(call("read_bearing", {"pump": f"P-0{n}"}, {"bearing_c": heat} if json else text))
    return conversation(asked, [*calls, *more, call("stop_pump", {"pump": stopped}, OK)], answer)


@pytest.mark.parametrize("json", [True, False])
def test_an_action_on_another_than_the_one_with_the_value_is_found(json: bool):
    message = (
        "stop_pump was called for P-04, for which read_bearing had returned 52.2; "
        "the 82.4 in the answer belongs to P-03"
    )

    assert words("other_subject", watched(json=json)) == [message]
    assert found("other_subject", watched(json=json)) == [(10,)]
    assert found("other_subject", watched(answer="P-03 was at 82.4 °C; I stopped it.", json=json)) == [(10,)]


@pytest.mark.parametrize(
    "run",
    [
        watched("P-03"),
        watched("P-09"),
        watched(answer="P-03 is at 82.4 °C; I stopped P-04 as it feeds the same line."),
        watched(answer="One bearing was at 82.4 °C, the pump that I stopped at 52.2 °C."),
        watched(answer="One pump was stopped."),
        watched(asked="Walk through the pumps and stop P-04 for its service; 75 °C is the limit."),
        watched(asked="Walk through the pumps and stop the one that is due."),
        watched(value=74.5, answer="The warmest was at 74.5 °C; I stopped the one for the test."),
        watched(more=[call("get_standby", {"pump": "P-03"}, "P-03 is backed by P-04.")]),
        watched(more=[call("stop_pump", {"pump": "P-03"}, OK)]),
    ],
    ids=[
        *("that one", "none of them", "named", "its value told", "no value", "asked for", "no limit"),
        *("within the limit", "tied", "that one too"),
    ],
)
def test_an_action_that_is_named_or_wanted_is_in_order(run: Run):
    assert found("other_subject", run) == []


# --- in groups, and what it costs --------------------------------------------------------------


@pytest.mark.parametrize(
    ("run", "sign"),
    [
        (letter(), "get_medication returned a different patient_id from the one it was called with"),
        (scaled(), "scale returned a different replicas from the one in the answer"),
        (rolled_out(), "read_version returned a different value in one of many calls"),
        (swept(), "delete_bucket was called without legal_hold_check"),
        (filled(), "dispense was called with a different volume_ul from the one in get_protocol"),
        (booked(), "book_room was called with a different day from the one in the question"),
        (watched(), "stop_pump was called for one thing, and the answer gives a reason about another"),
    ],
)
def test_runs_with_the_same_kind_of_odd_call_share_a_sign(run: Run, sign: str):
    assert signs_of(status="ok", error=None, anomalies=find_anomalies(run)) == (sign,)


def test_a_whole_number_that_no_float_holds_is_none_to_reckon_with():
    huge = 10**400
    calls = [
        call("get_item", {"item_id": 5}, {"item_id": 6, "amount": huge, "name": "Anna"}),
        call("set_size", {"item": "a", "amount": huge}, {"item": "a", "amount": 7}),
        call("set_size", {"item": "b", "amount": 9}, {"item": "b", "amount": 7, "left": huge}),
    ]

    assert found("done_in_part", conversation("Set the amounts.", calls, "b has the amount 9.")) == [(6,)]


def test_odd_calls_among_many_cost_no_more_than_their_number():
    def ran(number: int) -> Run:
        rows = [{"id": n, "size": n * 1.5} for n in range(number)]
        calls = [call("list_rows", {}, {"rows": rows})]
        for n in range(number):
            subject, odd = {"item": f"i-{n}"}, n % 2
            calls += [
                call("get_item", subject, {"item": f"i-{n + odd}", "name": f"name-{n}", "heat": 50.5 + n}),
                call("check_item", subject, OK),
                call("set_size", subject | {"size": 100 + n}, subject | {"size": 100 + n - odd}),
                call("cut", {"id": n, "size": n * 1.5 + odd * 0.1}, f"Item i-{n} is at 4.{n}, or {n}."),
            ]
        answer = " ".join(f"i-{n} has the size {100 + n} and name-{n}." for n in range(number))
        return conversation("Set all above 60 to 100.", calls, answer)

    assert growth(find_anomalies, ran(50), ran(200)) < LINEAR
