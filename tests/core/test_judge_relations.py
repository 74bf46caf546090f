"""What was asked for, what came of it and what the answer says: three that must agree, in any language."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sessions_app.core.judge.anomalies.detectors import find_anomalies
from sessions_app.core.judge.anomalies.reading.statements import counts_in
from sessions_app.core.judge.anomalies.reading.written_dates import days_in
from sessions_app.core.payload import Payload
from sessions_app.core.run import ModelCall, Run
from tests.core.test_judge_conversations import found
from tests.core.test_trouble_in_the_middle import OK, TIMEOUT, call, conversation
from tests.growth import LINEAR, growth


def codes(run: Run) -> list[tuple[str, tuple[int, ...]]]:
    return [(each.code, each.steps) for each in find_anomalies(run) if each.level == "warning"]


# --- days and numbers in words -----------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["2026-12-03T08:15", "3 December", "December 3rd, 2026", "3. Dezember", "le 3 décembre 2026", "3 de diciembre",
     "3 de dezembro de 2026", "12月3日", "03.12.2026"],
)  # fmt: skip
def test_a_day_is_read_in_the_languages_of_answers(text: str):
    assert days_in(text, "2026") == {"2026-12-03"}


def test_no_other_number_is_a_day():
    assert days_in("3 of 12, 2026-12-033, 8:15, version 3.12, may 2026", "2026") == set()


def test_numbers_are_read_in_words_too():
    assert counts_in("All fourteen, dann acht, puis 3; zéro") == {14.0, 8.0, 3.0}


# --- another day -------------------------------------------------------------------------------


def booking(receipt: Any, answer: str, *, asked: Any = None, day: str = "2027-03-08", tool: str = "reserve") -> Run:
    calls = [call(tool, asked or {"table": "Erker", "date": day, "guests": 4}, receipt)]
    return conversation("Please see to it.", calls, answer)


@pytest.mark.parametrize(
    "run",
    [
        booking("Tisch Erker reserviert für 4 Personen am 18. März 2027.", "Der Tisch ist für den 8. März reserviert."),
        booking("Erker、4名様、2027年3月18日で承りました。", "3月8日に予約しました。"),
        booking({"id": "R-7", "date": "2027-08-03"}, "Your table is booked for 8 March."),
        booking({"reservation": {"date": "2027-04-08"}}, "La table est réservée pour le 8 mars."),
        booking("Confirmado: 9 de marzo.", "La mesa está reservada para el 8 de marzo."),
    ],
)
def test_a_receipt_for_another_day_than_the_answer_says_is_found(run: Run):
    assert found("other_receipt", run) == [(2,)]


@pytest.mark.parametrize(
    "run",
    [
        booking("Tisch Erker reserviert für den 8. März 2027, Storno bis 1. März.", "Reserviert für den 8. März."),
        booking("Erker is yours for 4. Free cancellation until 1 March.", "Your table is booked for 8 March."),
        booking({"id": "R-7", "created": "2027-03-01"}, "Your table is booked for 8 March."),
        booking("Booked Erker for 9 March: the 8th is full.", "The 8 March was full, so it is 9 March."),
        booking({"date": "2027-03-18"}, "Here is what there is on 8 March.", tool="find_table"),
        booking("Parcel Erker 4 ships 12 March.", "Ordered for 8 March."),
        booking({"date": "2027-03-09"}, "The table is booked."),
        booking(
            {"date": "2027-03-08T23:30:00Z"}, "Booked for 9 March, 00:30.", asked={"date": "2027-03-09T00:30:00+01:00"}
        ),
    ],
)
def test_a_day_that_comes_with_the_one_asked_for_is_in_order(run: Run):
    assert codes(run) == []


# --- another number ----------------------------------------------------------------------------


def order(told: Any, asked: Any, receipt: Any, answer: str, tool: str = "order") -> Run:
    return conversation(
        "Order what is needed.", [call("need", {"site": "B"}, told), call(tool, asked, receipt)], answer
    )


@pytest.mark.parametrize(
    "run",
    [
        order("Benötigt: 318,5 l", {"menge_l": 3185}, "3185 l bestellt.", "Ich habe 318,5 l bestellt."),
        order({"dose_mg": 12.5}, {"mg": 125}, {"mg": 125}, "The dose is set to 12.5 mg.", "set_dose"),
        order("Il faut 47,25 m de câble.", {"longueur_m": 47}, "47 m", "J'ai commandé 47,25 m."),
        order("必要量: 1284.5 kg", {"weight_kg": 128450}, "128450 kg", "1284.5 kgを注文しました。"),
        order("Pay 4,512.80 EUR", {"amount_eur": 451.28}, "451.28 EUR sent", "I sent 4,512.80 EUR.", "pay"),
    ],
)
def test_digits_with_another_point_are_found(run: Run):
    assert found("other_receipt", run) == [(4,)]


@pytest.mark.parametrize(
    "run",
    [
        order({"total": 12.75}, {"amount": 1275}, {"amount": 1275}, "I charged 12.75.", "charge"),
        order("Needed: 12.5 kg", {"grams": 12500}, "12500", "I ordered 12.5 kg."),
        order("Benötigt: 318,5 l", {"menge_l": 3185}, "3185 l bestellt.", "Ich habe 3185 l bestellt statt 318,5 l."),
        order("30 in stock", {"pieces": 300}, "300 ordered", "There were 30, and more are ordered."),
        order("Rate 4.55, or 45.5 a week", {"rate": 45.5}, "45.5", "It is 4.55 a day.", "set_rate"),
        order("Needed: 318.5 l", {"liters": 319}, "319 ordered", "I ordered 319, as 318.5 is not sold."),
    ],
)
def test_another_unit_and_what_the_answer_tells_are_in_order(run: Run):
    assert found("other_receipt", run) == []


# --- what was counted and what was changed -----------------------------------------------------

SQL = "DELETE FROM carts WHERE age > 30 OR true"


def purge(
    counted: Any,
    changed: Any,
    answer: str,
    *,
    look: Any = None,
    act: Any = None,
    more: Any = (),
    tool: str = "count_rows",
) -> Run:
    calls = [
        call(tool, look or {"table": "carts"}, counted),
        call("run_sql", act or {"sql": SQL}, changed),
        *more,
    ]
    return conversation("Clean up the old ones.", calls, answer)


@pytest.mark.parametrize(
    "run",
    [
        purge({"count": 31}, {"rows_affected": 9020}, "Die 31 alten Warenkörbe sind gelöscht."),
        purge({"matches": 7}, {"deleted": 700}, "Seven carts are gone."),
        purge({"rows": [{"count": 310}]}, "9020 rows deleted", "310件のカートを削除しました。"),
        purge("31", {"removed_count": 12}, "Los 31 carritos fueron eliminados."),
    ],
)
def test_more_changed_than_counted_is_found(run: Run):
    assert found("other_count", run) == [(4,)]


@pytest.mark.parametrize(
    "run",
    [
        purge({"count": 31}, {"rows_affected": 31}, "The 31 carts are gone."),
        purge({"count": 31}, {"rows_affected": 9020}, "31 were expected, but 9020 carts were deleted."),
        purge(
            {"count": 31}, {"deleted": 20}, "31 are gone.", more=[call("run_sql", {"sql": SQL + "2"}, {"deleted": 11})]
        ),
        purge({"count": 31}, {"deleted": 400}, "31 users remain.", look={"of": "users"}),
        purge({"count": 31}, {"rows_affected": 9020}, "The old carts are gone."),
        purge({"count": 31}, {"updated": 30}, "I went through all 31 carts."),
        purge({"count": 31}, {"selected": 9020}, "There are 31 carts."),
        purge({"count": 31}, {"deleted": 9020}, "The 31 carts are gone.", tool="edit_rows"),
    ],
)
def test_counts_that_agree_or_are_of_other_things_are_in_order(run: Run):
    assert found("other_count", run) == []


# --- one of a list that was left out -----------------------------------------------------------


def walk(answer: str, skip: Any = (4,), *, size: int = 9, prose: bool = False, extra: Any = (), **more: Any) -> Run:
    names = [f"pump-{n}" for n in range(31, 31 + size)]
    listing = f"{size} pumps: {', '.join(names)}." if prose else {"pumps": [{"name": name} for name in names]}
    calls = [call("list_pumps", {"hall": "B"}, listing)]
    calls += [call("inspect", {"pump": name} | more, "OK") for at, name in enumerate(names) if at not in skip]
    return conversation("Inspect them.", [*calls, *extra], answer)


@pytest.mark.parametrize(
    "run",
    [
        walk("All 9 pumps are inspected."),
        walk("Alle neun Pumpen sind geprüft.", prose=True),
        walk("9台すべてを点検しました。", hall="B"),
        walk("Las 20 bombas fueron revisadas.", (4, 9), size=20),
    ],
)
def test_one_that_was_left_out_of_a_list_is_found(run: Run):
    assert [steps[-1] for steps in found("left_out", run)] == [2]


@pytest.mark.parametrize(
    "run",
    [
        walk("All 9 pumps are inspected.", ()),
        walk("8 of the 9 pumps are inspected."),
        walk("9 pumps are there, and pump-35 was not inspected."),
        walk("The pumps are inspected."),
        walk("The first 5 of 9 are inspected.", (5, 6, 7, 8)),
        walk("All 9 are in order.", extra=[call("close_round", {"hall": "B"}, "pump-35: checked by Ana")]),
        walk("All 9 are in order.", extra=[call("inspect_twin", {"pumps": "pump-35 and others"}, "OK")]),
    ],
)
def test_a_list_that_was_gone_through_or_of_which_it_is_told_is_in_order(run: Run):
    assert found("left_out", run) == []


# --- a part of a list, counted as all of it ----------------------------------------------------


def read(answer: str, *, asked: str = "How many tickets are open?", total: int = 64, pages: int = 2) -> Run:
    calls = [
        call("list_tickets", {"cursor": n}, {"items": [{"no": n * 10 + at} for at in range(10)], "total_count": total,
             "has_more": n * 10 + 10 < total, "next_cursor": n + 1}) for n in range(pages)
    ]  # fmt: skip
    return conversation(asked, calls, answer)


@pytest.mark.parametrize(
    "run",
    [
        read("There are 20 open tickets."),
        read("Es gibt 20 offene Tickets."),
        read("未対応は20件です。"),
        read("Hay 10 tickets abiertos.", pages=1),
    ],
)
def test_the_number_of_what_was_read_given_for_all_is_found(run: Run):
    assert len(found("page_unread", run)) == 1


@pytest.mark.parametrize(
    "run",
    [
        read("There are 64 open tickets, of which I read 20."),
        read("The first 20 are listed."),
        read("Here are 20 tickets.", asked="Give me 20 tickets."),
        read("There are 20 open tickets.", total=20),
        read("Several are open."),
    ],
)
def test_a_part_that_is_told_or_asked_for_is_in_order(run: Run):
    assert found("page_unread", run) == []


@pytest.mark.parametrize(("read_on", "at"), [("AAEx7", []), (None, [(2,)])])
def test_a_page_is_read_on_with_the_token_that_the_answer_gave_under_any_name(read_on: str | None, at: list[Any]):
    first = {"keys": [{"id": "AK-1"}, {"id": "AK-2"}], "account": "lake", "IsTruncated": True, "Marker": "AAEx7"}
    last = {"keys": [{"id": "AK-3"}], "account": "lake", "IsTruncated": False}
    more = [call("list_keys", {"account": "lake", "marker": read_on}, last)] if read_on else []

    run = conversation("Audit the keys.", [call("list_keys", {"account": "lake"}, first), *more], "I checked all keys.")

    assert found("page_unread", run) == at


# --- last seen unfinished ----------------------------------------------------------------------


def rollout(last: Any, answer: str, *, first: Any = "Waiting: 1 of 6 shards copied.") -> Run:
    calls = [call("copy_status", {"index": "logs"}, each) for each in (first, last, last)]
    return conversation("Copy the index.", [call("copy_index", {"index": "logs"}, "Begun."), *calls], answer)


@pytest.mark.parametrize(
    "run",
    [
        rollout("Waiting: 4 of 6 shards copied.", "All 6 shards are copied."),
        rollout("Noch 4 von 6 Shards, läuft.", "Alle sechs Shards sind kopiert."),
        rollout("En cours : 4 sur 6 fragments.", "Les six fragments sont copiés."),
        rollout({"state": "progressing", "done": 4}, "The copy is finished."),
    ],
)
def test_a_poll_that_ended_before_its_end_is_found(run: Run):
    assert found("unfinished_unsaid", run) == [(8,)]


def test_pieces_that_all_came_are_in_order():
    calls = [call("upload_piece", {"n": n}, f"{n} of 3 received, {'waiting' if n < 3 else 'done'}.") for n in (1, 2, 3)]

    assert codes(conversation("Upload it.", calls, "All 3 pieces are uploaded.")) == []
    assert found("unfinished_unsaid", conversation("Upload it.", calls[:2], "All 3 pieces are uploaded.")) == [(4,)]


@pytest.mark.parametrize(
    "run",
    [
        rollout("All 6 of 6 shards copied, done.", "All 6 shards are copied."),
        rollout("Waiting: 4 of 6 shards copied.", "4 of 6 shards are copied so far."),
        rollout("Waiting: 4 of 6 shards copied.", "The copy is not finished."),
        rollout("Document 4 of 6: terms.", "All 6 documents are read.", first="Document 3 of 6: scope."),
    ],
)
def test_a_poll_that_went_to_its_end_or_is_told_is_in_order(run: Run):
    assert found("unfinished_unsaid", run) == []


# --- claims ------------------------------------------------------------------------------------


def claiming(said: str, *tools: str, made: Any = ()) -> Run:
    calls = [call("find_parcel", {"no": 5}, {"parcel": "p_5"}), *made]
    definitions = [{"name": name, "parameters_json_schema": {}} for name in tools]
    return with_tools(conversation("Please help me with parcel 5.", calls, said), definitions)


def with_tools(run: Run, tools: list[dict[str, Any]]) -> Run:
    parameters = Payload.of({"function_tools": tools})
    steps = (replace(s, call=replace(s.call, parameters=parameters)) if isinstance(s.call, ModelCall) else s
             for s in run.steps)  # fmt: skip
    return replace(run, steps=tuple(steps))


@pytest.mark.parametrize(
    "run",
    [
        claiming("I have redirected your parcel to the shop.", "redirect_parcel"),
        claiming("Done! I've cancelled the order.", "cancel_order", "find_parcel"),
        claiming("We have now sent the invoices again.", "send_invoice"),
    ],
)
def test_a_claim_without_its_call_is_found(run: Run):
    assert found("claim_unmade", run) == [(3,)]


@pytest.mark.parametrize(
    "run",
    [
        claiming("I have redirected your parcel.", "find_parcel"),
        claiming("I have redirected it.", "redirect_parcel"),
        claiming("I can redirect your parcel; have you moved?", "redirect_parcel"),
        claiming("I have redirected your parcel.", "redirect_parcel", made=[call("redirect_parcel", {"no": 5}, OK)]),
        claiming("I have redirected your parcel.", "redirect_parcel", made=[call("update_parcel", {"to": "x"}, OK)]),
        claiming("I have found your parcel.", "cancel_parcel"),
        claiming("I have compared the parcels and checked yours.", "compare_parcels", "check_parcel"),
    ],
)
def test_a_claim_of_what_was_done_by_any_call_is_in_order(run: Run):
    assert found("claim_unmade", run) == []


# --- done twice --------------------------------------------------------------------------------


def billed(listing: Any, answer: str = "Alle vier sind abgebucht.", *, fails: bool = True, more: Any = ()) -> Run:
    bill = [call("abbuchen", {"konto": f"K-{n}", "betrag": 20}, f"K-{n}: 20 EUR") for n in range(1, 5)]
    failed = [call("abbuchen", {"konto": "K-3", "betrag": 20}, error=TIMEOUT)] if fails else []
    calls = [*bill[:2], *failed, *bill[2:], call("list_bookings", {"day": 1}, listing), *more]
    return conversation("Buche ab.", calls, answer)


TWICE = ["K-1", "K-2", "K-3", "K-3", "K-4"]


@pytest.mark.parametrize(
    "run",
    [
        billed("K-1 20; K-2 20; K-3 20; K-3 20; K-4 20"),
        billed([{"konto": name, "betrag": 20} for name in TWICE]),
        billed({"rows": TWICE}, "4件すべて引き落としました。"),
    ],
)
def test_what_a_list_holds_twice_after_a_time_out_is_found(run: Run):
    assert found("done_twice", run) == [(8, 12)]


@pytest.mark.parametrize(
    "run",
    [
        billed("K-1 20; K-2 20; K-3 20; K-4 20"),
        billed("K-1 20; K-2 20; K-3 20; K-3 20; K-4 20", fails=False),
        billed("K-1 20; K-1 20; K-2 20; K-3 20; K-3 20; K-4 20; K-4 20"),
        billed("K-1 20; K-2 20; K-3 20; K-3 20; K-4 20", "K-3 was charged twice."),
        billed({"rows": TWICE}, more=[call("refund", {"konto": "K-3"}, OK)]),
    ],
)
def test_what_a_list_holds_once_or_is_told_is_in_order(run: Run):
    assert found("done_twice", run) == []


# --- an answer in other words ------------------------------------------------------------------


def series(odd: Any, answer: str, usual: Any = "Karte {} gespeichert ({} KB).", tool: str = "speichere") -> Run:
    def told(n: int) -> Any:
        return usual.format(f"KA-{n}", n * 3) if isinstance(usual, str) else usual

    calls = [call(tool, {"karte": f"KA-{n}"}, odd if n == 15 else told(n)) for n in range(10, 22)]
    return conversation("Speichere alle.", calls, answer)


@pytest.mark.parametrize(
    ("run", "level"),
    [
        (series("Kein Platz auf dem Laufwerk, nichts abgelegt.", "Alle 12 Karten sind gespeichert."), "warning"),
        (series("No room left on the device. Nothing was stored.", "All twelve cards are stored."), "warning"),
        (series({"ok": False}, "12枚すべて保存しました。", {"ok": True, "ref": 1}, tool="hozon"), None),
        (series({"abgelegt": False}, "Alle 12 sind abgelegt.", {"abgelegt": True}), "warning"),
        (series("Levy on täynnä.", "Kaikki 12 korttia on tallennettu."), "info"),
    ],
)
def test_one_of_many_in_other_words_is_found(run: Run, level: str | None):
    found = [(each.level, each.steps) for each in find_anomalies(run) if each.code == "other_shape"]
    assert found == ([(level, (12,))] if level else [])


@pytest.mark.parametrize(
    "run",
    [
        series("Karte KA-15 gespeichert (1 KB, groß).", "Alle 12 Karten sind gespeichert."),
        series("KA-15 war bereits da, nichts zu tun.", "Alle 12 Karten sind gespeichert."),
        series("Kein Platz auf dem Laufwerk, nichts abgelegt.", "11 der 12 Karten sind gespeichert."),
        series("Kein Platz auf dem Laufwerk, nichts abgelegt.", "12 Karten, ohne KA-15."),
        series("Kein Platz auf dem Laufwerk, nichts abgelegt.", "Die Karten sind gespeichert."),
        series("Nobody is in.", "I looked at all 12.", tool="get_card"),
    ],
)
def test_one_of_many_that_is_alike_or_told_is_in_order(run: Run):
    assert [each for each in find_anomalies(run) if each.code == "other_shape"] == []


# --- cost --------------------------------------------------------------------------------------


def test_the_cost_grows_with_the_steps():
    def work(run: Run) -> object:
        return find_anomalies(run)

    small, large = (walk(f"All {size} are inspected.", (4,), size=size, prose=True) for size in (100, 400))

    assert growth(work, small, large) < LINEAR
