"""Failures that the answer tells of, that another tool made good, or that are answers, each beside one that is none."""

from __future__ import annotations

from typing import Any

import pytest

from sessions_app.core.judge.anomalies.detectors import find_anomalies
from sessions_app.core.run import Run
from tests.core.test_trouble_in_the_middle import call, conversation, told


def levels(run: Run) -> list[tuple[str, str]]:
    found = [each for each in find_anomalies(run) if each.code in ("call_failed", "error_swallowed")]
    return [(each.code, each.level) for each in found]


TOLD, WARNED, SWALLOWED = [[("call_failed", "info")], [("call_failed", "warning")], [("error_swallowed", "warning")]]


# --- one of a batch ----------------------------------------------------------------------------


def batch(answer: str, reason: str, names: tuple[str, ...], bad: str, tool: str = "handle") -> Run:
    calls = [
        call(tool, {"item": name}, error={"type": "ToolFailed", "message": reason})
        if name == bad
        else call(tool, {"item": name}, "OK")
        for name in names
    ]
    return conversation("Handle them all and report.", calls, answer)


ROOMS, LETTERS = ("T-1", "T-2", "T-3", "T-4"), ("L-71", "L-72", "L-73")


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (batch("Den Termin T-3 konnte ich nicht verschieben.", "Raum belegt", ROOMS, "T-3"), TOLD),
        (batch("三件を変更しました。T-3は変更できませんでした。", "Raum belegt", ROOMS, "T-3"), TOLD),
        (batch("Two letters are out. L-72 lacks a postal code.", "missing postal code", LETTERS, "L-72"), TOLD),
        (batch("Zwei sind raus. Bei L-72 fehlt die Postleitzahl.", "postal code", LETTERS, "L-72"), TOLD),
        (batch("Envoyées, sauf la L-72, refusée.", "adresse inconnue", LETTERS, "L-72"), TOLD),
        (batch("L-72 could not be sent (503).", "503 Service Unavailable", LETTERS, "L-72"), TOLD),
        (batch("I could not send one of them.", "missing postal code", LETTERS, "L-72"), WARNED),
        (batch("L-71, L-72 and L-73 are out.", "missing postal code", LETTERS, "L-72"), SWALLOWED),
        (batch("Alle vier Termine sind verschoben.", "Raum belegt", ROOMS, "T-3"), SWALLOWED),
        (batch("L-71 is out.\nL-72 is out.\nL-73 is out.", "missing postal code", LETTERS, "L-72"), SWALLOWED),
        (batch("Sorry for the wait, all are out.", "missing postal code", LETTERS, "L-72"), WARNED),
        (batch("L-72 is cancelled.", "missing postal code", ("L-72",), "L-72"), SWALLOWED),
    ],
)
def test_one_of_a_batch_that_the_answer_tells_of_is_a_note(run: Run, expected: list[tuple[str, str]]):
    assert levels(run) == expected


# --- the only failure --------------------------------------------------------------------------


def refused(answer: str, reason: str = "This order belongs to another account") -> Run:
    calls = [call("get_order", {"order": "55120"}, {"ok": False, "message": reason}), call("search_policy", None, "…")]
    return conversation("Can I return order 55120?", calls, answer)


OTHER_ACCOUNT = "この注文は別のアカウントのものです"


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (refused("Order 55120 belongs to another account."), TOLD),
        (refused("You are not allowed to see order 55120."), TOLD),
        (refused("The lookup of order 55120 failed."), TOLD),
        (refused("Leider kann ich sie nicht zurückgeben; das war nicht möglich."), TOLD),
        (refused("申し訳ございませんが、別のアカウントのご注文です: 55120", OTHER_ACCOUNT), TOLD),
        (refused("该订单属于其他账户,因此无法退货。", "该订单属于其他账户"), TOLD),
        (refused("Order 55120 can be returned until Friday."), SWALLOWED),
        (refused("La commande 55120 est retournée."), SWALLOWED),
        (refused("注文 55120 の返品を受け付けました。", OTHER_ACCOUNT), SWALLOWED),
        (refused("Sorry for the delay, it can be returned."), WARNED),
        (refused("We could not find a cheaper parcel; it is returned."), WARNED),
    ],
)
def test_a_failure_that_the_answer_tells_is_a_note(run: Run, expected: list[tuple[str, str]]):
    assert levels(run) == expected
    assert ("failed, and the answer says so" in told(run)) is (expected == TOLD)


def without_an_account(answer: str, tool: str = "loyalty_account", message: str = "404: not found") -> Run:
    asked = call(tool, {"user": "u-7", "airline": "TP"}, error={"type": "ToolFailed", "message": message})
    return conversation("Book the morning flight.", [asked, call("book", {"offer": "of-1"}, {"id": "X7"})], answer)


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (without_an_account("Booked. You have no TAP loyalty number on file."), TOLD),
        (without_an_account("There is no loyalty account for you; the flight is booked."), TOLD),
        (without_an_account("Booked. There are no extra fees."), SWALLOWED),
        (without_an_account("Booked. You have no loyalty number.", message="503 busy"), SWALLOWED),
        (without_an_account("Booked, with no loyalty points.", tool="update_loyalty"), SWALLOWED),
    ],
)
def test_an_answer_that_there_is_none_of_a_kind_tells_of_a_lookup_that_found_none(
    run: Run, expected: list[tuple[str, str]]
):
    assert levels(run) == expected


# --- lookups that found nobody -----------------------------------------------------------------


def lookups(answer: str, *, asked: str = "Look them up.", tool: str = "crate_lookup", status: int = 404) -> Run:
    calls = [
        call(tool, {"name": name}, "404 Not Found", http={"status": status})
        if name in ("tide", "moss")
        else call(tool, {"name": name}, "known", http={"status": 200})
        for name in ("tide", "rust", "moss", "fern")
    ]
    return conversation(asked, calls, answer)


@pytest.mark.parametrize(
    "run",
    [
        lookups("Frei sind tide und moss. Vergeben sind rust und fern."),
        lookups("空いているのは tide と moss です。\nrust と fern は使われています。"),
        lookups("Done.", asked="Look them up; 404 says that a name is free."),
        lookups("Libres: tide, moss.", tool="whois"),
    ],
)
def test_a_lookup_that_found_nobody_is_an_answer_to_who_tells_them_apart(run: Run):
    assert (levels(run), "failed" in told(run)) == ([], False)


@pytest.mark.parametrize(
    "run",
    [
        lookups("I looked up tide, rust, moss and fern."),
        lookups("Frei sind tide und moss. Vergeben sind rust und fern.", status=500),
        lookups("I looked them up.", tool="register_crate"),
    ],
)
def test_a_lookup_that_nobody_speaks_of_has_failed(run: Run):
    assert "failed" in told(run)


NOBODY = {"status": 404, "fehler": "nichts da"}


def made_after(lookup: str, maker: str, answer: str, *, tax: str = "123", made: Any = None) -> Run:
    result = {"id": "CL-99120", "created": True} if made is None else made
    calls = [call(lookup, {"tax_id": "123"}, NOBODY), call(maker, {"tax_id": tax, "name": "Padaria"}, result)]
    return conversation("Abra a conta.", calls, answer)


CREATED = "A conta CL-99120 foi criada."


@pytest.mark.parametrize(
    ("run", "is_expected"),
    [
        (made_after("buscar_cliente", "criar_cliente", "Pronto."), True),
        (made_after("kunde_suchen", "kunde_anlegen", "Alles erledigt: CL-99120."), True),
        (made_after("chercher_client", "creer_client", "C'est fait."), True),
        (made_after("buscar_cliente", "create_customer", CREATED), True),
        (made_after("find_customer", "open_account", "It is open.", made={"customer": "CL-1"}), True),
        (made_after("find_customer", "greet", "The bakery is no customer, I wrote to them."), True),
        (made_after("buscar_cliente", "criar_cliente", "Pronto.", tax="321"), False),
        (made_after("buscar_cliente", "criar_cliente", "Pronto.", made=""), False),
        (made_after("find_customer", "refund_customer", "It is refunded."), False),
        (made_after("find_customer", "issue_refund", "CL-99120 is refunded."), False),
        (made_after("buscar_cliente", "emitir_fatura", "A fatura foi emitida."), False),
    ],
)
def test_what_was_not_there_and_is_made_then_is_no_failure_in_any_language(run: Run, is_expected: bool):
    assert (levels(run) == [], "failed" not in told(run)) == (is_expected, is_expected)


# --- another tool that did the same ------------------------------------------------------------


def asked_twice(second: str, answer: str, *, first: str = "rates_ecb", got: Any = "1 EUR = 1.0873 USD") -> Run:
    asked = {"pair": "EUR/USD"}
    calls = [
        call(first, asked, error={"type": "ToolFailed", "message": "connection refused"}),
        call(second, asked, got),
    ]
    return conversation("What is the rate?", calls, answer)


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (asked_twice("rates_mirror", "Der Kurs ist 1.0873."), []),
        (asked_twice("fetch_rates_backup", "レートは 1.0873 です。", first="fetch_rates"), []),
        (asked_twice("searchCache", "It stands at 1.0873 dollars.", first="searchLive"), []),
        (asked_twice("rates_mirror", "The rate has not moved much."), []),
        (asked_twice("rates_mirror", "The rate has not moved much.", got=""), SWALLOWED),
        (asked_twice("log_event", "The rate is 1.0873."), SWALLOWED),
        (asked_twice("delete_user_b", "The user is deleted: 1.0873.", first="delete_user_a"), SWALLOWED),
    ],
)
def test_what_another_tool_told_in_its_place_is_no_failure(run: Run, expected: list[tuple[str, str]]):
    assert levels(run) == expected


def in_place_of(answer: str) -> Run:
    down = {"type": "ServiceUnavailable", "message": "SkyFind: manutenzione programmata"}
    calls = [
        call("cerca_skyfind", {"a": "OSL"}, error=down),
        call("cerca_volaria", {"a": "OSL", "limite": 5}, ["DY18"]),
    ]
    return conversation("Trova il volo.", calls, answer)


@pytest.mark.parametrize(
    ("answer", "is_told"),
    [
        ("È il DY18. SkyFind era in manutenzione, quindi ho cercato su Volaria.", True),
        ("È il DY18. SkyFind è più caro.", False),
        ("È il DY18.", False),
    ],
)
def test_a_failure_is_told_by_the_name_of_a_service_and_a_word_of_its_error_in_any_language(answer: str, is_told: bool):
    assert ("step 2 failed, and the answer says so" in told(in_place_of(answer))) is is_told


# --- commands that found nothing ---------------------------------------------------------------


def in_maintenance(answer: str, error: str = "Service under maintenance until 10:30", second: str = "ecb") -> Run:
    calls = [
        call("fx_main", {"pair": "EUR/CNY"}, {"error": error}),
        call(second, {"day": "today"}, {"pair": "EUR/CNY", "rate": 8.2}),
    ]
    return conversation("Convert 12,000 EUR to CNY.", calls, answer)


@pytest.mark.parametrize(
    ("answer", "is_told"),
    [
        ("It is 98,400 CNY. The first one is under maintenance.", True),
        ("It is 98,400 CNY, by the backup, as the other is in maintenance.", True),
        ("It is 98,400 CNY. The usual service is under maintenance; this is of the fallback.", True),
        ("Under maintenance until later is the source that I like, so it is 98,400 CNY by another.", True),
        ("It is 98,400 CNY. The service was down, so I used the backup.", True),
        ("It is 98,400 CNY.", False),
        ("It is 98,400 CNY, and a backup was made.", False),
        ("It is 98,400 CNY at your service.", False),
        ("It is 98,400 CNY until tomorrow.", False),
        ("It is 98,400 CNY under the rate of today.", False),
    ],
)
def test_who_repeats_the_words_of_an_error_has_told_it(answer: str, is_told: bool):
    assert ("error_swallowed" in [each.code for each in find_anomalies(in_maintenance(answer))]) is not is_told


def test_a_tool_of_one_kind_is_known_by_short_words_of_chinese():
    calls = [
        call("汇率_主源", {"货币对": "EUR/CNY"}, {"错误": "服务维护中"}),
        call("汇率_备用源", {"货币对": "EUR/CNY"}, {"汇率": 8.2}),
    ]
    run = conversation("换算 12,000 欧元。", calls, "折合人民币 98,400 元。")

    assert levels(run) == []
    assert "step 2 failed, then another tool" in told(run)


def command(line: str, result: Any) -> Run:
    return conversation("Is it used?", [call("shell", {"command": line}, result)], "It is not used.")


SILENT = {"exit_code": 1, "stdout": "", "stderr": ""}


@pytest.mark.parametrize(
    ("run", "is_failure"),
    [
        (command("grep -rn 'old_name' src/", SILENT), False),
        (command("cd app && rg old_name", SILENT), False),
        (command("git diff --quiet", "Exit code: 1"), False),
        (command("grep -rn old_name src/", SILENT | {"exit_code": 2}), True),
        (command("grep -rn old_name src/", SILENT | {"stderr": "grep: src/: No such file"}), True),
        (command("make all", SILENT), True),
        (command("python grep.py", SILENT), True),
    ],
)
def test_a_search_that_exits_with_1_and_says_nothing_found_nothing(run: Run, is_failure: bool):
    assert ("failed" in told(run)) is is_failure


# --- what was healed ---------------------------------------------------------------------------


def test_what_was_healed_is_told_apart_from_what_was_not():
    failing = {"error": {"type": "ToolFailed", "message": "busy"}}
    calls = [call("push", {"n": 1}, **failing), call("push", {"n": 1}, "OK"), call("pull", {"n": 2}, **failing)]
    run = conversation("Sync.", calls, "Synced.")

    assert told(run).endswith("answered · step 6 failed · step 2 failed, then succeeded on retry")


# --- polls -------------------------------------------------------------------------------------


def uploaded(first: Any, tool: str = "write_object") -> Run:
    calls = [call(tool, {"key": "a"}, each) for each in (first, "Stored a, 15966 rows")]
    return conversation("Export it.", calls, "It is exported.")


@pytest.mark.parametrize(
    "first",
    [
        "Upload failed: connection reset by peer after 4.1 MiB (part 2 of 3). Object was not created.",
        "Permission denied.",
        "Hochladen fehlgeschlagen: Verbindung getrennt",
        "La carga falló: tiempo agotado",
        "アップロード失敗: 接続が切れました",
        {"error": "connection reset"},
    ],
)
def test_what_failed_in_words_and_was_made_again_has_succeeded_on_retry_and_was_not_polled(first: Any):
    run = uploaded(first)

    assert "step 2 failed, then succeeded on retry" in told(run)
    assert [(each.code, each.level) for each in find_anomalies(run)] == [("duplicate_call", "info")]


@pytest.mark.parametrize(
    "run",
    [
        uploaded("No part failed: all were stored"),
        uploaded("Stored a, 0 failed"),
        uploaded("3 uploads were stored before, none failed."),
        uploaded("Why uploads failed: a guide"),
        uploaded("Upload failed: connection reset", tool="read_log"),
        uploaded("Stored.\nUpload failed: none"),
    ],
)
def test_what_speaks_of_failures_otherwise_has_not_failed(run: Run):
    assert "failed" not in told(run)


def polled(answer: Any, times: int = 3, tool: str = "build_status") -> Run:
    calls = [call(tool, {"build": 7}, answer) for _ in range(times)]
    return conversation("Build it.", calls, "The build goes on.")


@pytest.mark.parametrize(
    ("run", "is_poll"),
    [
        (polled("Waiting: 3 of 5 nodes are ready."), True),
        (polled("Noch 2 von 9, Job läuft."), True),
        (polled({"state": "progressing", "available": 3}), True),
        (polled("All 5 of 5 nodes are done."), False),
        (polled("red"), False),
        (polled("Waiting: 3 of 5 nodes are ready.", tool="start_build"), False),
    ],
)
def test_a_poll_whose_answers_never_change_is_no_duplicate(run: Run, is_poll: bool):
    assert ("duplicate_call" not in [each.code for each in find_anomalies(run)]) is is_poll
