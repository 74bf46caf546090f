"""Writes to things that a read just before had told to be in a state that forbids them, each beside one that may be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sessions_app.core.formats.detect import parse_document
from sessions_app.core.judge.anomalies.detectors import find_anomalies
from sessions_app.core.run import Run
from tests.core.test_trouble_in_the_middle import BUSY, OK, call, conversation, told
from tests.growth import LINEAR, growth

ORDER = {"order_id": "ORD-5521"}
DELIVERED = "Order ORD-5521: Widget Pro, status: delivered, non-cancellable"
ASKED, CANCELLED = "Cancel order ORD-5521, changed my mind", "I've cancelled order ORD-5521 for you."


def found(run: Run) -> list[tuple[str, tuple[int, ...]]]:
    return [(each.code, each.steps) for each in find_anomalies(run) if each.level == "warning"]


def run(asked: str, *calls: tuple[str, Any, Any], answer: str, **fields: Any) -> Run:
    return conversation(asked, [call(*each) for each in calls], answer, **fields)


BAD = {
    "an order that cannot be cancelled": run(
        ASKED,
        ("lookup_order", ORDER, DELIVERED),
        ("cancel_order", ORDER | {"reason": "changed my mind"}, "Order ORD-5521 cancelled."),
        answer=CANCELLED,
    ),
    "a fare without refunds": run(
        "Please give me my money back for flight booking QX-81.",
        ("get_booking", {"ref": "QX-81"}, {"ref": "QX-81", "fare": "light", "refundable": False, "paid": 89.0}),
        ("refund_booking", {"ref": "QX-81", "amount": 89.0}, {"refund": "R-4"}),
        answer="The 89.00 for QX-81 are on their way back to your card.",
    ),
    "a locked invoice": run(
        "Change the address on invoice INV-77.",
        ("fetch_invoice", {"id": "INV-77"}, {"id": "INV-77", "note": "Posted in March. Locked, cannot be edited."}),
        ("edit_invoice", {"id": "INV-77", "address": "Hill Rd 3"}, OK),
        answer="The address on INV-77 is now Hill Rd 3.",
    ),
    "a ticket that stays closed": run(
        "Open ticket T-310 again, the printer is still broken.",
        ("get_ticket", {"id": "T-310"}, {"id": "T-310", "state": "archived", "info": "may no longer be reopened"}),
        ("reopen_ticket", {"id": "T-310"}, {"id": "T-310", "state": "open"}),
        answer="Ticket T-310 is open again.",
    ),
    "an order in German": run(
        "Storniere bitte die Bestellung 44-1709.",
        ("bestellung_lesen", {"nr": "44-1709"}, "Bestellung 44-1709: geliefert am 3.11., nicht mehr stornierbar"),
        ("bestellung_stornieren", {"nr": "44-1709"}, "Storniert."),
        answer="Die Bestellung 44-1709 ist storniert.",
    ),
    "a flag in French": run(
        "Annulez la commande CF-19.",
        ("consulter_commande", {"id": "CF-19"}, {"commande": {"id": "CF-19", "etat": "expédiée", "annulable": False}}),
        ("annuler_commande", {"id": "CF-19"}, {"ok": True}),
        answer="La commande CF-19 est annulée.",
    ),
    "a tariff in Spanish": run(
        "Quiero que me devuelvan el dinero de la reserva RS-88.",
        ("consultar_reserva", {"codigo": "RS-88"}, {"codigo": "RS-88", "tarifa": "básica, no reembolsable"}),
        ("reembolsar_reserva", {"codigo": "RS-88"}, {"abono": "A-1"}),
        answer="Listo, el dinero de la reserva RS-88 está en camino.",
    ),
    "an order in Japanese": run(
        "注文 A-1207 をキャンセルしてください。",
        ("注文照会", {"番号": "A-1207"}, "注文 A-1207:配送済み、キャンセル不可"),
        ("注文キャンセル", {"番号": "A-1207"}, {"結果": "完了"}),
        answer="注文 A-1207 をキャンセルしました。",
    ),
    "an order in Chinese": run(
        "请取消订单 D-991。",
        ("查询订单", {"编号": "D-991"}, {"编号": "D-991", "状态": "已发货", "备注": "不可取消"}),
        ("取消订单", {"编号": "D-991"}, {"成功": True}),
        answer="订单 D-991 已取消。",
    ),
    "a flag in a list": run(
        "Send the headphones of order o-31 back.",
        ("list_items", {"order": "o-31"}, {"items": [
            {"sku": "HP-20", "name": "headphones", "flags": ["opened", "non-returnable"]},
            {"sku": "CB-11", "name": "cable", "flags": []},
        ]}),
        ("create_return", {"sku": "HP-20"}, {"label": "L-9"}),
        answer="The return is registered; your label is L-9.",
    ),
    "a permission": run(
        "Delete the folder F-7 of the audit.",
        ("get_folder", {"folder": "F-7"}, {"name": "audit", "permissions": {"can_read": True, "can_delete": False}}),
        ("delete_folder", {"folder": "F-7"}, OK),
        answer="The folder of the audit is deleted.",
    ),
    "a frozen account": run(
        "Move 500 EUR from account AC-5501 to savings.",
        ("get_account", {"account": "AC-5501"}, "AC-5501 | balance 1,900.00 EUR | outgoing transfers are blocked"),
        ("transfer_funds", {"account": "AC-5501", "amount": 500}, {"transfer": "X-1"}),
        answer="500 EUR are in your savings account.",
    ),
    "a window that is over": run(
        "Return order PO-14 please.",
        ("get_order", {"id": "PO-14"}, {"status": "delivered", "policy": "return window closed on 2 May"}),
        ("return_order", {"id": "PO-14"}, {"rma": "RMA-3"}),
        answer="Your return is booked under RMA-3.",
    ),
    "a protected branch": run(
        "Push the fix to release-9.",
        ("get_branch", {"branch": "release-9"}, {"branch": "release-9", "rule": "direct pushes are not permitted"}),
        ("push_commit", {"branch": "release-9", "sha": "ab12"}, OK),
        answer="The fix is on release-9.",
    ),
    "an order in Portuguese": run(
        "Cancele o pedido PD-40.",
        ("ver_pedido", {"id": "PD-40"}, {"id": "PD-40", "aviso": "Este pedido já saiu e não pode ser cancelado."}),
        ("cancelar_pedido", {"id": "PD-40"}, {"ok": True}),
        answer="O pedido PD-40 foi cancelado.",
    ),
    "an order in Italian": run(
        "Annulla l'ordine IT-5.",
        ("leggi_ordine", {"id": "IT-5"}, "IT-5, spedito, non annullabile"),
        ("annulla_ordine", {"id": "IT-5"}, {"esito": "ok"}),
        answer="L'ordine IT-5 è annullato.",
    ),
    "behind a note that changes nothing": run(
        ASKED,
        ("lookup_order", ORDER, DELIVERED),
        ("add_note", ORDER | {"text": "customer changed her mind"}, OK),
        ("cancel_order", ORDER, "cancelled"),
        answer=CANCELLED,
    ),
    "a locked sheet": run(
        "Set the rent in sheet S-12 to 900.",
        ("read_sheet", {"sheet": "S-12"}, {"sheet": "S-12", "rent": 850, "locked": True}),
        ("update_sheet", {"sheet": "S-12", "rent": 900}, OK),
        answer="The rent in S-12 is 900 now.",
    ),
    "an expired voucher": run(
        "Use my voucher VC-2020 for basket K-4.",
        ("get_voucher", {"code": "VC-2020"}, {"code": "VC-2020", "status": "expired", "value": 20}),
        ("redeem_voucher", {"code": "VC-2020", "basket": "K-4"}, {"total": 31}),
        answer="Your voucher VC-2020 was used; you pay 31.",
    ),
    "a row of a list": run(
        "Merge PR 481.",
        ("list_pulls", {"repo": "shop"}, [{"number": 480, "mergeable": True}, {"number": 481, "mergeable": False}]),
        ("merge_pull", {"repo": "shop", "number": 481}, {"merged": True}),
        answer="PR 481 is merged.",
    ),
    "a record in German": run(
        "Bitte ändere das Geburtsdatum in Akte AK-71.",
        ("akte_anzeigen", {"akte": "AK-71"}, {"hinweis": "Die Akte ist gesperrt und darf nicht geändert werden."}),
        ("akte_ändern", {"akte": "AK-71", "geburt": "1980-01-01"}, {"gespeichert": True}),
        answer="Das Geburtsdatum ist geändert.",
    ),
    "a flag beside the thing": run(
        "Change my seat to 4A, booking ZX-10.",
        ("booking_details", {"pnr": "ZX-10"}, {"pnr": "ZX-10", "seat": "22F", "seat_change_allowed": False}),
        ("change_seat", {"pnr": "ZX-10", "seat": "4A"}, {"seat": "4A"}),
        answer="You now sit in 4A.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_write_that_the_state_forbids_is_found(case: str):
    last = max(step.index for step, _ in BAD[case].tool_calls)

    assert [(code, steps[-1]) for code, steps in found(BAD[case])] == [("state_forbids", last)]
    assert told(BAD[case]).endswith(f" · first anomaly at step {last}")


HEALTHY = {
    "it may be cancelled": run(
        ASKED,
        ("lookup_order", ORDER, "Order ORD-5521: Widget Pro, status: open, cancellable"),
        ("cancel_order", ORDER, "Order ORD-5521 cancelled."),
        answer=CANCELLED,
    ),
    "it is not locked": run(
        "Change the address on invoice INV-77.",
        ("fetch_invoice", {"id": "INV-77"}, {"id": "INV-77", "locked": False, "note": "not locked, can be edited"}),
        ("edit_invoice", {"id": "INV-77", "address": "Hill Rd 3"}, OK),
        answer="The address on INV-77 is now Hill Rd 3.",
    ),
    "it was unlocked between": run(
        "Change the address on invoice INV-77.",
        ("fetch_invoice", {"id": "INV-77"}, {"id": "INV-77", "note": "Locked, cannot be edited."}),
        ("unlock_invoice", {"id": "INV-77"}, OK),
        ("edit_invoice", {"id": "INV-77", "address": "Hill Rd 3"}, OK),
        answer="The address on INV-77 is now Hill Rd 3.",
    ),
    "somebody approved it": run(
        ASKED,
        ("lookup_order", ORDER, DELIVERED),
        ("request_approval", ORDER | {"action": "cancel"}, {"approved": True, "by": "Kim"}),
        ("cancel_order", ORDER, "Order ORD-5521 cancelled."),
        answer=CANCELLED,
    ),
    "it failed and the answer says so": run(
        ASKED,
        ("lookup_order", ORDER, DELIVERED),
        ("cancel_order", ORDER, {"error": "order was delivered"}),
        answer="I could not cancel order ORD-5521: it was delivered already.",
    ),
    "the answer names the state": run(
        ASKED,
        ("lookup_order", ORDER, DELIVERED),
        ("cancel_order", ORDER, "Order ORD-5521 cancelled."),
        answer="I've cancelled order ORD-5521 although it is marked as non-cancellable; please check with the shop.",
    ),
    "the state of another order": run(
        "Cancel my open order.",
        ("list_orders", {"customer": "C-9"}, [
            {"id": "o-1", "status": "delivered", "note": "non-cancellable"}, {"id": "o-2", "status": "open"},
        ]),
        ("cancel_order", {"customer": "C-9", "id": "o-2"}, OK),
        answer="I've cancelled order o-2.",
    ),
    "another line of a text": run(
        "Cancel my open order.",
        ("list_orders", {"customer": "C-9"}, "o-1: delivered, non-cancellable\no-2: open, cancellable"),
        ("cancel_order", {"customer": "C-9", "id": "o-2"}, OK),
        answer="I've cancelled order o-2.",
    ),
    "another act": run(
        "Send me the invoice of order ORD-5521.",
        ("lookup_order", ORDER, DELIVERED),
        ("send_invoice", ORDER, OK),
        answer="The invoice of ORD-5521 is in your mail.",
    ),
    "a flag that tells what was done": run(
        "Refund booking QX-81.",
        ("get_booking", {"ref": "QX-81"}, {"ref": "QX-81", "refunded": False, "refundable": True}),
        ("refund_booking", {"ref": "QX-81"}, {"refund": "R-4"}),
        answer="The refund R-4 is on its way.",
    ),
    "a general policy": run(
        "Return order PO-14 please.",
        ("search_policy", {"q": "returns"}, {"text": "Opened software cannot be returned. Furniture can be returned."}),
        ("get_order", {"id": "PO-14"}, {"id": "PO-14", "item": "chair", "status": "delivered"}),
        ("return_order", {"id": "PO-14"}, {"rma": "RMA-3"}),
        answer="Your return is booked under RMA-3.",
    ),
    "read again and otherwise": run(
        ASKED,
        ("lookup_order", ORDER, "ORD-5521: in the packing machine, cannot be cancelled now"),
        ("lookup_order", ORDER, "ORD-5521: open"),
        ("cancel_order", ORDER, "Order ORD-5521 cancelled."),
        answer=CANCELLED,
    ),
    "asked for all the same": run(
        "Refund booking QX-81 even though it is non-refundable, the manager agreed.",
        ("get_booking", {"ref": "QX-81"}, {"ref": "QX-81", "refundable": False}),
        ("refund_booking", {"ref": "QX-81"}, {"refund": "R-4"}),
        answer="The refund R-4 is on its way.",
    ),
    "only looked at": run(
        "Can I cancel ORD-5521?",
        ("lookup_order", ORDER, DELIVERED),
        ("check_cancel_options", ORDER, {"options": ["return"]}),
        answer="You can return it.",
    ),
    "a request for an exception": run(
        "Refund booking QX-81.",
        ("get_booking", {"ref": "QX-81"}, {"ref": "QX-81", "refundable": False}),
        ("request_refund_exception", {"ref": "QX-81"}, {"case": "E-4"}),
        answer="I asked for an exception; your case is E-4.",
    ),
    "a part in German": run(
        "Storniere Bestellung 44-1709.",
        ("bestellung_lesen", {"nr": "44-1709"}, "Bestellung 44-1709: offen, Geschenkverpackung nicht stornierbar"),
        ("bestellung_stornieren", {"nr": "44-1709"}, "Storniert."),
        answer="Die Bestellung 44-1709 ist storniert, nur die Geschenkverpackung war nicht stornierbar.",
    ),
    "a ticket that is closed and opened again": run(
        "Open ticket T-310 again.",
        ("get_ticket", {"id": "T-310"}, {"id": "T-310", "state": "closed"}),
        ("reopen_ticket", {"id": "T-310"}, {"id": "T-310", "state": "open"}),
        answer="Ticket T-310 is open again.",
    ),
    "an expired passport that is renewed": run(
        "Renew the certificate CE-1.",
        ("get_certificate", {"id": "CE-1"}, {"id": "CE-1", "status": "expired"}),
        ("renew_certificate", {"id": "CE-1"}, {"id": "CE-1", "until": "2028"}),
        answer="CE-1 is valid until 2028.",
    ),
    "in Chinese and allowed": run(
        "请取消订单 D-991。",
        ("查询订单", {"编号": "D-991"}, {"编号": "D-991", "状态": "未发货", "备注": "可以取消"}),
        ("取消订单", {"编号": "D-991"}, {"成功": True}),
        answer="订单 D-991 已取消。",
    ),
    "in Japanese and allowed": run(
        "注文 A-1207 をキャンセルしてください。",
        ("注文照会", {"番号": "A-1207"}, "注文 A-1207:準備中、キャンセル可、返品不可"),
        ("注文キャンセル", {"番号": "A-1207"}, {"結果": "完了"}),
        answer="注文 A-1207 をキャンセルしました。",
    ),
    "nothing is impossible": run(
        "Move 500 EUR from account AC-5501 to savings.",
        ("get_account", {"account": "AC-5501"}, "AC-5501 | no transfer limit | transfers are not blocked"),
        ("transfer_funds", {"account": "AC-5501", "amount": 500}, {"transfer": "X-1"}),
        answer="500 EUR are in your savings account.",
    ),
    "the order itself is what cannot be changed": run(
        ASKED,
        ("lookup_order", ORDER, "ORD-5521: paid; this order cannot be changed, only cancelled"),
        ("cancel_order", ORDER, "Order ORD-5521 cancelled."),
        answer=CANCELLED,
    ),
    "a dry run": run(
        ASKED,
        ("lookup_order", ORDER, DELIVERED),
        ("cancel_order", ORDER | {"dry_run": True}, {"would_cancel": False}),
        answer="Order ORD-5521 was delivered, so it stays as it is.",
    ),
    "a fee that stays": run(
        "Refund T-90.",
        ("get_ticket", {"id": "T-90"}, {"id": "T-90", "refundable": True, "service_fee": "non-refundable"}),
        ("refund_ticket", {"id": "T-90", "amount": 120}, OK),
        answer="120 is on the way.",
    ),
    "not by everybody": run(
        "Move appointment AP-3 to Friday.",
        ("get_appointment", {"id": "AP-3"}, {"id": "AP-3", "note": "Cannot be moved by the patient; staff may."}),
        ("move_appointment", {"id": "AP-3", "day": "Fri"}, OK),
        answer="AP-3 is on Friday.",
    ),
    "not on every day": run(
        "Refund stay HB-2.",
        ("get_stay", {"stay": "HB-2"}, {"stay": "HB-2", "terms": "Cannot be refunded after 1 December."}),
        ("refund_stay", {"stay": "HB-2"}, OK),
        answer="HB-2 is refunded.",
    ),
    "a state that is lifted": run(
        "Unblock card CD-4.",
        ("get_card", {"id": "CD-4"}, "CD-4: card is blocked, payments are not possible"),
        ("unblock_card", {"id": "CD-4"}, OK),
        answer="CD-4 works again.",
    ),
    "a comment on what is read-only": run(
        "Add a comment to the doc D-5.",
        ("get_doc", {"id": "D-5"}, {"id": "D-5", "read_only": True}),
        ("add_comment", {"id": "D-5", "text": "x"}, OK),
        answer="The comment is there.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", HEALTHY)
def test_a_write_that_may_be_is_not_accused(case: str):
    assert [code for code, _ in found(HEALTHY[case]) if code == "state_forbids"] == []


def test_the_example_of_a_cancelled_order_leads_to_the_cancellation():
    record = Path("sessions_app/examples/cancel_bug.json").read_bytes()

    assert told(parse_document(record)).endswith(" · first anomaly at step 4")


def test_a_call_that_failed_is_told_by_others():
    calls = [call("lookup_order", ORDER, DELIVERED), call("cancel_order", ORDER, error=BUSY)]

    assert [code for code, _ in found(conversation(ASKED, calls, CANCELLED))] == ["error_swallowed"]


def test_many_reads_and_writes_take_no_longer_each():
    def of(size: int) -> Run:
        calls = [
            each
            for n in range(size)
            for each in (
                call("lookup_order", {"order_id": f"o-{n}"}, f"o-{n}: delivered, non-cancellable"),
                call("cancel_order", {"order_id": f"o-{n}"}, "cancelled"),
            )
        ]
        return conversation("Cancel all.", calls, "I've cancelled all orders.")

    assert growth(find_anomalies, of(50), of(200)) < LINEAR
