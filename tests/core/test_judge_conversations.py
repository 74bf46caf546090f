"""Whole conversations that a rule finds something in, each beside one that is nearly the same and in order."""

from __future__ import annotations

from sessions_app.core.judge.anomalies.detectors import find_anomalies
from sessions_app.core.run import Run
from tests.core.test_trouble_in_the_middle import OK, call, conversation


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
