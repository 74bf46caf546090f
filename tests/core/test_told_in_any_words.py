"""What tools say in other languages and under other keys, each beside a case that says something else."""

from __future__ import annotations

from typing import Any

import pytest

from sessions_app.core.judge.anomalies.detectors import find_anomalies
from sessions_app.core.run import Run
from tests.core.test_trouble_in_the_middle import OK, call, conversation, told
from tests.growth import LINEAR, growth


def warned(run: Run) -> list[tuple[str, int]]:
    return [(each.code, each.steps[0]) for each in find_anomalies(run) if each.level == "warning"]


# --- failures ----------------------------------------------------------------------------------


def booked(result: Any, answer: str = "Alles ist gebucht.") -> Run:
    calls = [call("buchen", {"ref": ref}, {"ref": ref, "stand": "gebucht"}) for ref in ("TP-439", "TP-440")]
    return conversation("Buche alles.", [*calls, call("buchen", {"ref": "HT-9912"}, result)], answer)


@pytest.mark.parametrize(
    "result",
    [
        {"fehler": "System nicht erreichbar"},
        {"erreur": {"code": 503, "message": "indisponible"}},
        {"problema": {"code": 503, "message": "no disponible"}},
        {"błąd": "niedostępny"},
        {"エラー": "接続できません"},
        {"错误": "系统不可用"},
        {"code": 500, "msg": "系统不可用", "data": None},
        {"exito": False, "motivo": "sin red"},
        {"sucesso": False},
        {"ref": "HT-9912", "statut": "échec"},
        {"ref": "HT-9912", "estado": "fallido"},
    ],
)
def test_a_failure_under_a_key_of_another_language_is_found(result: Any):
    run = booked(result)

    assert warned(run) == [("error_swallowed", 6)]
    assert warned(booked(result, "Zwei sind gebucht, HT-9912 konnte ich leider nicht buchen.")) == []


@pytest.mark.parametrize(
    "result",
    [
        {"fehler": None, "ref": "HT-9912"},
        {"erreur": ""},
        {"erfolg": True},
        {"preis": {"code": 503, "message": "x", "stand": "gebucht"}},
        {"preis": 450, "name": "Stuhl"},
        {"estado": "creada"},
        {"fehlerquote": 0.2},
        {"msg": "gebucht", "code": 0},
    ],
)
def test_an_answer_that_tells_of_no_failure_is_none(result: Any):
    assert warned(booked(result)) == []
    assert "failed" not in told(booked(result))


# --- leave that was not given ------------------------------------------------------------------

SENT = "The offer was approved and sent."


def asked_leave(result: Any, answer: str = SENT, *, tool: str = "check_approval", of: int = 5583, **fields: Any) -> Run:
    calls = [
        call(tool, {"candidate": of, "salary": 118_000}, result, **fields),
        call("send_letter", {"candidate": 5583}, {"letter": "L-1"}),
    ]
    return conversation("Send the offer once it is approved.", calls, answer)


def dropped(
    result: Any,
    answer: str,
    *,
    tool: str = "request_approval",
    by: str = "run_sql",
    asked: str = "Drop it if approved.",
) -> Run:
    operation = "drop_index" if by == "drop_index" else "DROP INDEX idx_1"
    made = {"index": "idx_1"} if by == "drop_index" else {"statement": operation}
    calls = [call(tool, {"operation": operation}, result), call(by, made, {"took_ms": 212})]
    return conversation("删除索引之前必须得到变更审批。" if tool == "变更审批" else asked, calls, answer)


@pytest.mark.parametrize(
    "run",
    [
        asked_leave({"approved": False}),
        asked_leave({"candidate": 5583, "allowed": False, "reason": "above the band"}),
        asked_leave({"valid": False}, "The offer is valid and out.", tool="validate_offer"),
        asked_leave({"decision": "reject"}),
        asked_leave({"status": "denied"}, "The offer is out."),
        asked_leave("NOT APPROVED: above the band"),
        asked_leave("denied by the user", outcome="denied"),
        asked_leave({"genehmigt": False}, "Das Angebot ist genehmigt und verschickt.", tool="freigabe_holen"),
        asked_leave({"aprobado": False}, "La oferta fue aprobada: aprobado y enviada.", tool="consultar"),
        asked_leave({"estado": "rechazado"}, "Enviada.", tool="pedir_approval"),
        dropped({"批准": False, "意见": "12月2日之前不得删除。"}, "按变更流程删除了无用索引 idx_1。", tool="变更审批"),
        dropped({"approved": False, "reason": "still used by a job"}, "I dropped idx_1, which is no longer used."),
        dropped({"approved": False, "reason": "frozen until May"}, "It is closed: idx_1 is gone.", asked="Tidy."),
        dropped({"status": "denied"}, "按变更流程删除了无用索引 idx_1。", tool="变更审批"),
        dropped({"granted": False, "note": "wait for May"}, "idx_1 is gone.", by="drop_index", asked="Tidy."),
    ],
)
def test_what_was_done_without_leave_is_found(run: Run):
    assert ("refusal_unsaid", 2) in warned(run)


@pytest.mark.parametrize(
    "run",
    [
        asked_leave({"approved": True}),
        asked_leave({"approved": False}, "It was not approved, so I wrote to the candidate."),
        asked_leave({"approved": False}, "Approval was denied; I wrote to the candidate."),
        asked_leave({"approved": False}, of=7),
        asked_leave({"approved": False}, "It is pending.", tool="get_candidate"),
        asked_leave({"in_stock": False}),
        asked_leave({"valid": False}, "I added the salary, and it is out.", tool="validate_offer"),
        asked_leave({"approved": False, "reason": "contract runs until May"}, "Her contract runs until May, I wrote."),
        asked_leave({"status": "rejected"}, "She has her letter.", tool="get_application"),
        asked_leave("Approved by Ana."),
        dropped({"approved": False, "reason": "still used by a job"}, "It was not approved; I dropped idx_1 anyway."),
        dropped({"approved": False, "reason": "frozen until May"}, "The table is frozen until May.", asked="Tidy."),
        dropped({"approved": False, "reason": "wait for May"}, "Ana knows it.", by="send_mail", asked="Tidy."),
        dropped({"approved": False}, "idx_1 is gone.", asked="Tidy."),
        dropped({"approved": True, "reason": "it is fine by me"}, "I dropped idx_1, which is no longer used."),
    ],
)
def test_leave_that_was_given_or_told_or_asked_for_another_is_in_order(run: Run):
    assert "refusal_unsaid" not in [code for code, _ in warned(run)]


def test_a_call_that_somebody_denied_is_not_healed_by_making_it_again():
    calls = [
        call("send_letter", {"candidate": 5583}, "The user said no.", outcome="denied"),
        call("send_letter", {"candidate": 5583}, {"letter": "L-1"}),
    ]
    run = conversation("Send it.", calls, "The letter is out.")

    assert warned(run) == [("override_unsaid", 2)]
    assert "step 2 failed" in told(run)
    assert "retry" not in told(run)
    assert warned(conversation("Send it.", calls, "You had declined it first; it is out now.")) == []


# --- one that told nothing ---------------------------------------------------------------------


def clauses(
    nothing: Any = "",
    answer: str = "I checked all clauses; they are standard.",
    *,
    of: int = 6,
    usual: Any = "Clause {}",
) -> Run:
    def told_of(n: int) -> Any:
        return nothing if n == 4 else usual.format(n) if isinstance(usual, str) else usual

    calls = [call("get_clause", {"document": "KB-301", "clause": n}, told_of(n)) for n in range(1, of + 1)]
    return conversation("Check the clauses.", calls, answer)


TITLES = ("基本契約", "保守契約", "秘密保持", "個別契約(配送)", "賃貸借", "覚書")


def titled(nothing: Any, answer: str, *, usual: Any = "第20条 6か月前") -> Run:
    calls = [
        call("文書を読む", {"文書": f"K-88-{n} {title}"}, nothing if n == 4 else usual)
        for n, title in enumerate(TITLES, start=1)
    ]
    return conversation("契約書を要約してください。", calls, answer)


@pytest.mark.parametrize(
    "run",
    [
        clauses(),
        clauses("  \n", of=12),
        clauses({}, usual={"text": "as usual"}),
        clauses({"clause": 4, "text": ""}, usual={"clause": 1, "text": "as usual"}),
        clauses(answer="Die sechs Klauseln sind üblich."),
        clauses(answer="6件の条項を確認しました。"),
        clauses(answer="Toutes les clauses sont usuelles."),
        titled("", "4. 個別契約(配送):30日前の通知"),
        titled(None, "4. 個別契約(配送):30日前の通知"),
        titled("", "- 個別契約(配送): 30 days"),
        titled({}, "全ての契約は解約できます。", usual={"条項": "6か月前"}),
    ],
)
def test_a_call_that_told_nothing_among_those_that_did_is_found(run: Run):
    assert warned(run) == [("empty_result_unsaid", 8)]
    assert "first anomaly at step 8" in told(run)


def commands() -> Run:
    lines = ["git status", "ls -la src", "touch a.py", "cat src/a.py", "python -m a"]
    calls = [call("shell", {"command": line}, "" if line.startswith("touch") else "done") for line in lines]
    return conversation("Run them.", calls, "All five commands ran.")


@pytest.mark.parametrize(
    "run",
    [
        clauses("Clause 4"),
        clauses(answer="I checked all clauses; clause 4 came back empty, I could not read it."),
        clauses(answer="All clauses but one are standard: clause 4 has no text."),
        clauses([], usual=[1]),
        clauses({"alerts": []}, usual={"alerts": ["disk"]}),
        clauses(answer="The agreement may be signed."),
        clauses(usual=""),
        clauses(of=3),
        titled("", "個別契約(配送)は本文がありません。"),
        titled("", "基本契約は3か月前に解約できます。"),
        commands(),
    ],
)
def test_what_may_be_empty_or_is_told_is_in_order(run: Run):
    assert warned(run) == []


# --- one in another state ----------------------------------------------------------------------


def copied(odd: Any, answer: str, *, of: int = 80, again: Any = None, tool: str = "tabelle_kopieren") -> Run:
    def told_of(n: int) -> Any:
        usual = {"tabelle": f"t_{n}", "status": "fertig", "zeilen": n, "kopiert": n, "gleich": True}
        return {"tabelle": f"t_{n}"} | odd if n == 4 else usual

    calls = [call(tool, {"tabelle": f"t_{n}"}, told_of(n)) for n in range(1, of + 1)]
    calls += [] if again is None else [call(tool, {"tabelle": "t_4"}, again)]
    return conversation("Kopiere alles.", calls, answer)


ALL = "Alle 80 Tabellen wurden übernommen."


@pytest.mark.parametrize(
    "run",
    [
        copied({"status": "abgebrochen", "meldung": "Verklemmung", "kopiert": 0}, ALL),
        copied({"status": "aborted", "message": "deadlock detected", "kopiert": 0}, ALL),
        copied({"status": "skipped", "kopiert": 0}, "All tables are copied.", of=6),
        copied({"status": "przerwano", "kopiert": 0}, "The 6 tables were copied.", of=6),
        copied({"status": "中断", "kopiert": 0, "gleich": False}, "Toutes les tables sont copiées.", of=7),
    ],
)
def test_one_that_ended_in_another_state_and_did_nothing_is_found(run: Run):
    assert warned(run) == [("other_shape", 8)]


def test_one_in_another_state_is_a_note_that_is_told_where_nobody_knows_whether_it_did_nothing():
    run = copied({"status": "abgebrochen"}, ALL)

    assert warned(run) == []
    assert told(run).endswith("(step 8)")


@pytest.mark.parametrize(
    "run",
    [
        copied({"status": "abgebrochen", "kopiert": 0}, "79 von 80 Tabellen sind da; t_4 wurde abgebrochen."),
        copied({"status": "abgebrochen", "kopiert": 0}, "All tables but one are copied."),
        copied(
            {"status": "abgebrochen", "kopiert": 0}, ALL, again={"tabelle": "t_4", "status": "fertig", "kopiert": 4}
        ),
        copied({"status": "exists already", "kopiert": 0}, ALL),
        copied({"status": "verschoben", "zeilen": 4, "kopiert": 4, "gleich": True}, ALL),
        copied({"status": "abgebrochen", "kopiert": 0}, "All 5 are copied.", of=5),
        copied({"status": "abgebrochen", "kopiert": 0}, "All 80 have a state.", tool="get_state"),
    ],
)
def test_one_in_another_state_that_is_told_or_mended_or_whole_is_in_order(run: Run):
    assert "other_shape" not in [each.code for each in find_anomalies(run)]


# --- the record of another ---------------------------------------------------------------------

DOSE = "Die Dosis ist bestimmt."


def measured(
    told_of: Any, answer: str = DOSE, *, key: str = "paziente_id", asked: Any = "P-20418", to: Any = 1.3
) -> Run:
    calls = [
        call("esami", {key: asked, "tipo": "INR"}, told_of),
        call("dose", {"inr": to, "farmaco": "warfarin"}, {"mg": 6.25}),
    ]
    return conversation("Bestimme die Dosis.", calls, answer)


@pytest.mark.parametrize(
    "run",
    [
        measured({"paziente_id": "P-20481", "valore": 1.3}),
        measured({"paziente": {"paziente_id": "P-20481"}, "valore": 1.3}),
        measured({"risultati": [{"paziente_id": "P-20481", "valore": 1.3}]}),
        measured([{"paziente_id": "P-20481", "valore": 1.3}]),
        measured({"paziente": {"id": "P-20481", "valore": 1.3}}),
        measured({"paziente_id": 20_481, "valore": 1.3}, asked=20_418),
        measured({"paziente_id": "P-20481", "inr": 2}, to=2),
        measured({"email": "bob@x.example", "plan": "A1"}, key="email", asked="ann@x.example", to="A1"),
    ],
)
def test_a_small_value_of_another_record_is_found(run: Run):
    assert ("other_record", 2) in warned(run)


@pytest.mark.parametrize(
    "run",
    [
        measured({"paziente_id": "P-20418", "valore": 1.3}),
        measured({"paziente_id": "P-20481", "merged_from": "P-20418", "valore": 1.3}),
        measured({"paziente_id": "P-20481", "valore": 1.3}, "Der Wert ist von P-20481."),
        measured({"paziente_id": "P-20481", "valore": 1.3}, to=2.4),
        measured({"paziente_id": "P-20481", "valore": 2}, to=2),
        measured({"paziente_id": "P-20481", "urgente": True}, to=True),
        measured({"medico": {"paziente_id": "P-20481"}, "valore": 1.3}),
    ],
)
def test_a_record_that_was_asked_for_or_not_used_is_in_order(run: Run):
    assert "other_record" not in [code for code, _ in warned(run)]


# --- a part of a list --------------------------------------------------------------------------

PARCELS = [{"nr": f"PL44{n}"} for n in range(100, 150)]


def parcels(
    beside: Any, answer: str = "W listopadzie opóźnionych było 50 przesyłek.", *more: Any, rows: Any = PARCELS
) -> Run:
    calls = [call("szukaj", {"od": "2026-11-01", "kursor": ""}, {"przesylki": rows} | beside)]
    calls += [call("szukaj", {"od": "2026-11-01"} | asked, {"przesylki": rows} | told_of) for asked, told_of in more]
    return conversation("Ile przesyłek było opóźnionych?", calls, answer)


TOKEN = {"zwrocono": 50, "wszystkich": 1284, "nastepny_kursor": "eyJ"}


@pytest.mark.parametrize(
    "run",
    [
        parcels(TOKEN),
        parcels({"zwrocono": 50, "wszystkich": 1284}),
        parcels({"total": 1284}),
        parcels({"meta": {"total": 1284}}, "Es waren 50 Sendungen."),
        parcels({"page": 1, "pages": 26}, "There were 50."),
        parcels({"links": {"next": "https://a.example/?page=2"}}, "Eran 50 envíos."),
        parcels({"@odata.nextLink": "https://a.example/?$skip=50"}, "50件でした。"),
        parcels({"suivant": "p002", "total": 4867}, "Il y en avait 50."),
        parcels({"weiter": "x"}, "Es waren 50 Sendungen."),
    ],
)
def test_a_part_that_is_counted_as_all_is_found_whatever_the_keys_are(run: Run):
    assert warned(run) == [("page_unread", 2)]


@pytest.mark.parametrize(
    "run",
    [
        parcels(TOKEN, "Jest ich 1284; przeczytałem 50."),
        parcels(TOKEN, "W listopadzie było ich dużo."),
        parcels(TOKEN, "Razem 100.", ({"kursor": "eyJ"}, {"zwrocono": 50, "wszystkich": 100, "nastepny_kursor": None})),
        parcels({"strona": 1, "total": 100}, "Razem 50.", ({"strona": 2}, {"strona": 2, "total": 100})),
        parcels({"zwrocono": 50, "wszystkich": 50}),
        parcels({"nastepny_kursor": ""}),
        parcels({"page": 26, "pages": 26}),
        parcels({"next": "2026-12-01"}, "There were 50."),
        parcels(TOKEN, "Hier sind die neuesten 50 Sendungen."),
        parcels({"total": 12_840}, "You bought 50 things.", rows=[{"price": 2.5} for _ in range(50)]),
        parcels({"total": 1284}, "You bought 50 things.", rows=[{"price": 25} for _ in range(50)]),
    ],
)
def test_a_list_that_is_whole_or_read_on_or_told_as_a_part_is_in_order(run: Run):
    assert "page_unread" not in [code for code, _ in warned(run)]


# --- a tool's own total ------------------------------------------------------------------------

LINES = [(12, 34.9), (8, 112.5), (40, 4.75)]  # 1508.80


def ordered(
    total: float = 1598.8,
    *,
    key: str = "total",
    lines: Any = None,
    paid: Any = None,
    answer: str = "Hecho.",
    **beside: Any,
) -> Run:
    rows = [{"sku": f"S-{n}", "cantidad": n, "precio": p, "importe": round(n * p, 2)} for n, p in LINES]
    told_of = {"orden": "OC-1", "lineas": rows if lines is None else lines, key: total, **beside}
    paying = call("solicitar_pago", {"orden": "OC-1", "importe": total if paid is None else paid}, {"id": "PG-1"})
    return conversation("Pide lo que falta.", [call("crear_orden", {"tienda": 14}, told_of), paying], answer)


def amounts(*numbers: float, **fields: Any) -> list[dict[str, Any]]:
    return [{"concepto": f"G-{at}", "importe": number, **fields} for at, number in enumerate(numbers, start=1)]


@pytest.mark.parametrize(
    "run",
    [
        ordered(),
        ordered(key="gesamt", moneda="EUR"),
        ordered(15_088.0, key="合計"),
        ordered(616.0, lines=amounts(120.5, 88.0, 45.25, 310.0, 97.25)),
        ordered(560, key="sum", lines=amounts(100, 250, 300)),
        ordered(paid=0, answer="La orden es de 1.598,80 EUR."),
        ordered(lines=[{"qty": n, "price": p} for n, p in LINES]),
        ordered(620.5, lines=[row | {"tipo": "viaje"} for row in amounts(120.5, 88.0, 45.25, 310.0, 97.25)]),
    ],
)
def test_a_total_of_a_tool_that_its_own_lines_do_not_make_is_found(run: Run):
    assert warned(run)[:1] == [("other_total", 2)]


@pytest.mark.parametrize(
    "run",
    [
        ordered(1508.8),
        ordered(1508.79),
        ordered(descuento=10.0),
        ordered(envio="90.00"),
        ordered(1810.56),
        ordered(1357.92),
        ordered(3, key="total"),
        ordered(paid=1, answer="Hecho."),
        ordered(page=1),
        ordered(key="limite"),
        ordered(key="open_total"),
        ordered(208.5, lines=[*amounts(120.5, 88.0, estado="abierta"), *amounts(45.0, estado="pagada")]),
        ordered(300.0, lines=[*amounts(100, 150, divisa="EUR"), *amounts(45, divisa="USD")]),
        ordered(90, lines=[{"lat": 1.5, "lon": 2.5, "alt": 30.0}, {"lat": 1.0, "lon": 3.0, "alt": 31.0}]),
    ],
)
def test_a_total_that_something_beside_the_lines_explains_is_in_order(run: Run):
    assert "other_total" not in [code for code, _ in warned(run)]


# --- the number of another ---------------------------------------------------------------------


def refunded_order(used: Any, *, asked: str = "Pedido 88412 quebrado.", first: Any = "30 dias", **more: Any) -> Run:
    made = {"pedido": used, **more}
    calls = [
        call("politica", {"tema": "dano"}, first),
        call("consultar_pedido", made, made | {"cliente": "Renata", "valor": 389.9}),
        call("reembolsar", made, OK),
    ]
    return conversation(asked, calls, "O reembolso foi aprovado.")


@pytest.mark.parametrize(
    "run",
    [
        refunded_order(88421),
        refunded_order("88421"),
        refunded_order(84812, asked="Bestellung 88412: bitte erstatten."),
        refunded_order(1002943, asked="Refund order #1002934, please."),
        refunded_order("55190238", asked="注文55190283を返金してください。"),
    ],
)
def test_a_number_in_another_order_that_nobody_named_is_found(run: Run):
    assert ("unnamed_id", 4) in warned(run)


@pytest.mark.parametrize(
    "run",
    [
        refunded_order(88412),
        refunded_order(88421, first="88412 was renamed 88421"),
        refunded_order(88421, asked="Compare 88412 with 88421."),
        refunded_order(88412, desde=88421),
        refunded_order(90210),
        refunded_order(20261120, asked="Since 20261102."),
        refunded_order(21000, asked="Send 12000 of them."),
    ],
)
def test_a_number_that_was_named_or_is_no_name_is_in_order(run: Run):
    assert "unnamed_id" not in [code for code, _ in warned(run)]


# --- a sum in words ----------------------------------------------------------------------------


def added(answer: str, asked: str = "Pay all of them.", told_before: Any = "4 invoices") -> Run:
    return conversation(asked, [call("read", {"of": "F-0318"}, told_before)], answer)


@pytest.mark.parametrize(
    "run",
    [
        added("Les factures font 1 240,50 + 980,00 + 310,25 + 415,00 = 2 495,75 €."),
        added("That is 1,240.50 + 980.00 + 310.25 = 2,430.75."),
        added("Zusammen 1.240,50 € + 980 € = 2.320,50 €."),
        added("$40 + $25 + $10 = $85 was charged."),
        added("合計は 1200+800+350=2450 円です。"),
    ],
)
def test_a_sum_written_down_with_all_its_terms_that_they_do_not_make_is_found(run: Run):
    assert warned(run) == [("other_total", 3)]


@pytest.mark.parametrize(
    "run",
    [
        added("Les factures font 1 240,50 + 980,00 + 310,25 + 415,00 = 2 945,75 €."),
        added("First 40 + 25 = 75, no: 65."),
        added("It is 2 × 40 + 25 = 105, and 33 + 33 + 33 = 100 in percent."),
        added("You wrote 1 + 1 + 1 = 4.", asked="Is 1 + 1 + 1 = 4 right?"),
        added("It is 1.250 + 1.250 = 2.500, or 10 + 20 = 36 - 6."),
        added("The file says 5 + 5 = 11.", told_before="5 + 5 = 11"),
        added("20% + 5 = 25.5 and x1 + 2 = 4."),
    ],
)
def test_a_sum_that_is_right_or_mended_or_no_sum_is_in_order(run: Run):
    assert warned(run) == []


def test_a_long_row_of_terms_costs_no_more_than_its_length():
    assert growth(find_anomalies, added("1 + " * 500 + "="), added("1 + " * 2_000 + "=")) < LINEAR


# --- sub-agents that were recorded as tools ----------------------------------------------------


def asked_agent(
    said: str, *, tool: str = "ask_ticket_agent", key: str = "question", answer: str = "120 tickets."
) -> Run:
    return conversation("Write the report.", [call(tool, {key: "tickets"}, said)], answer)


NO_ACCESS = "I was unable to access the tickets. By experience there are about 120."


@pytest.mark.parametrize(
    "run",
    [
        asked_agent(NO_ACCESS),
        asked_agent("I don't have access to the tickets, so about 120 is a guess."),
        asked_agent("Access denied. There may be 120.", tool="delegate"),
        asked_agent(
            "Leider konnte ich nicht zugreifen; etwa 120.", tool="recherche", key="aufgabe", answer="120 Stück."
        ),
        asked_agent("No tengo acceso; serán unos 120.", answer="Hay 120 tickets."),
        asked_agent("Nie mam dostępu; około 120.", answer="120 tickets this week."),
        asked_agent("抱歉,我无法访问系统。大约120张。", tool="调用助手", answer="工单120张。"),
    ],
)
def test_a_guess_of_a_tool_that_is_an_agent_is_found(run: Run):
    assert warned(run) == [("sub_agent_unsaid", 2)]


@pytest.mark.parametrize(
    "run",
    [
        asked_agent("There are 120 tickets; 3 could not be classified."),
        asked_agent("I could not access them at first, but after a retry I got them: 120 tickets."),
        asked_agent(NO_ACCESS, answer="About 120; the agent could not access the tickets."),
        asked_agent(NO_ACCESS, tool="search_docs", key="query"),
        asked_agent("120 tickets. Two were unable to log in."),
    ],
)
def test_an_agent_that_has_something_or_whose_failure_is_told_is_in_order(run: Run):
    assert warned(run) == []


# --- one cause, one warning --------------------------------------------------------------------


STOPPED = "Found so far: Acornly $19, Birchdesk $25. I had to stop here because my quota is used up."
EVERY = "The comparison with all 12 is published."


@pytest.mark.parametrize(
    "run",
    [
        asked_agent(STOPPED, answer=EVERY),
        asked_agent("We ran out of time after 4 of 12.", tool="delegate", answer="All prices are in the page."),
        asked_agent("Bisher 4 Preise. Ich musste hier abbrechen.", answer="Alle 12 Preise sind da."),
        asked_agent("Cuatro precios. Tuve que parar por la cuota.", answer="Todos los precios están en la página."),
        asked_agent("4件です。途中で停止しました。", answer="全12社の比較を公開しました。"),
    ],
)
def test_an_agent_that_stopped_before_all_was_done_is_found_where_the_answer_says_all(run: Run):
    assert warned(run) == [("sub_agent_unsaid", 2)]


@pytest.mark.parametrize(
    "run",
    [
        asked_agent(STOPPED, answer="Two prices are published."),
        asked_agent(STOPPED, answer="Not all 12 are published: the quota was used up."),
        asked_agent(f"{STOPPED} Later it came back, and I did the others.", answer=EVERY),
        asked_agent("All 12 have a price; the drivers had to stop at the border.", answer=EVERY),
        asked_agent(STOPPED, tool="search_docs", key="query", answer=EVERY),
    ],
)
def test_an_agent_that_went_on_or_whose_stop_is_told_is_in_order(run: Run):
    assert warned(run) == []


def test_a_call_that_took_effect_twice_is_told_once_and_by_its_name():
    late = {"error": {"type": "TimeoutError", "message": "no response"}}
    paid = [{"ref": f"INV-{n}", "amount": n + 0.9} for n in range(1, 5)]
    made = [call("transfer", row, {"ok": True}) for row in paid]
    calls = [*made[:2], call("transfer", paid[2], **late), *made[2:]]
    listed = call("list_bookings", {"day": "today"}, {"bookings": [*paid, paid[2]]})
    run = conversation("Pay them.", [*calls, listed], "All are paid.")

    found = [each.message for each in find_anomalies(run) if each.level == "warning"]
    assert found == [
        "transfer was made again after it failed and took effect twice: "
        "list_bookings has INV-3 twice as often as the others"
    ]


# --- cents -------------------------------------------------------------------------------------


def refunded(answer: str, amount: Any = 250, key: str = "amount_cents") -> Run:
    receipt = {"refund": "rf_1", "amount": "2.50"}
    return conversation("Refund the order.", [call("issue_refund", {"order": "O-1", key: amount}, receipt)], answer)


@pytest.mark.parametrize(
    "run",
    [
        refunded("I refunded 250.00 USD."),
        refunded("Ich habe 250 € erstattet.", key="amountCents"),
        refunded("He reembolsado 250,00 EUR.", key="importe_centimos"),
        refunded("Zwróciłem 250 zł.", key="kwota_grosze"),
        refunded("J'ai remboursé 250 €.", key="centimes"),
    ],
)
def test_as_many_dollars_as_cents_were_asked_for_are_found(run: Run):
    assert ("other_receipt", 2) in warned(run)


@pytest.mark.parametrize(
    "run",
    [
        refunded("I refunded 2.50 USD."),
        refunded("I refunded 250 cents."),
        refunded("It is refunded."),
        refunded("Of 250.00 USD I refunded 2.50."),
        refunded("I refunded 250.00 USD.", key="amount"),
        refunded("It is held for 250 hours.", key="ore"),
        refunded("It is for 250.", key="store"),
        refunded("250 percent of it.", key="percent"),
    ],
)
def test_cents_that_are_told_as_such_are_in_order(run: Run):
    assert "other_receipt" not in [code for code, _ in warned(run)]


def test_a_check_that_said_no_with_a_reason_is_told_once():
    run = asked_leave({"approved": False, "error": "above the band"})

    assert warned(run) == [("refusal_unsaid", 2)]


# --- what the instructions put first -----------------------------------------------------------

FIRST = "Refunds above 200 EUR need leave: call request_leave first and issue_refund only after it answered yes."


def instructed(
    instructions: str = FIRST, amount: float = 540, answer: str = "It is refunded.", *, asks: bool = False
) -> Run:
    calls = [call("issue_refund", {"order": "O-1", "amount": amount}, {"refund": "RF-1"})]
    leave = [call("request_leave", {"order": "O-1"}, "yes")] if asks else []
    return conversation("I want it back.", [*leave, *calls], answer, instructions=instructions)


@pytest.mark.parametrize(
    "run",
    [
        instructed(),
        instructed("Über 200 EUR braucht es eine Freigabe. Rufe zuerst request_leave auf, dann issue_refund."),
        instructed("Llama primero a request_leave y luego a issue_refund."),
        instructed("Appelle request_leave avant issue_refund."),
        instructed("必ず先に request_leave を呼び、その後 issue_refund を呼ぶ。"),
    ],
)
def test_a_tool_that_the_instructions_put_first_and_nobody_called_is_found(run: Run):
    assert warned(run) == [("check_skipped", 2)]


@pytest.mark.parametrize(
    "run",
    [
        instructed(asks=True),
        instructed(amount=79),
        instructed("You may use request_leave and issue_refund."),
        instructed("If the customer is new, call request_leave before issue_refund."),
        instructed("Call issue_refund first."),
        instructed(answer="It is refunded. I did not request leave as it was urgent."),
    ],
)
def test_an_order_that_was_kept_or_does_not_hold_is_in_order(run: Run):
    assert warned(run) == []


# --- what it costs -----------------------------------------------------------------------------


def test_what_tools_say_of_many_calls_costs_no_more_than_their_number():
    def ran(number: int) -> Run:
        calls = [call("check_approval", {"of": f"o-{n}", "zone": "z-1"}, {"approved": False}) for n in range(number)]
        for n in range(number):
            of = {"of": f"o-{n}", "zone": "z-1"}
            calls += [
                call("buscar_cliente", of, {"status": 404, "fehler": "x"}),
                call(f"mandar_{n % 9}", of, {"id": n}),
            ]
            calls += [call("get_clause", {"n": n}, "" if n == 3 else "as usual"), call("agent", of, NO_ACCESS)]
            calls += [call("szukaj", {"kursor": f"k-{n}"}, {"rows": PARCELS, "total": 9 * n, "next": f"k-{n + 1}"})]
            calls += [call("esami", of, {"of": f"o-{n}9", "valore": n + 0.3}), call("dose", {"inr": n + 0.3}, "x")]
            calls += [call("crear", of, {"lineas": amounts(1, 2, 4), "total": 9.5}), call("deny", of, outcome="denied")]
        answer = "".join(f"Approved o-{n} with 9.5 of {n}.\n" for n in range(number))
        return conversation("Approve them.", calls, answer, instructions=FIRST * number)

    assert growth(find_anomalies, ran(25), ran(100)) < LINEAR
