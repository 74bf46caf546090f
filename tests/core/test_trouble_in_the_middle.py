"""Recorded conversations whose trouble is in the middle, and ones that went well, written from complaints of users.

They were written without a look at the rules that judge them, as whole records with every message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest

from sessions_app.core.formats.detect import parse_document
from sessions_app.core.judge.anomalies.detectors import find_anomalies
from sessions_app.core.judge.story import story
from sessions_app.core.run import Run
from tests.builders import make_record, make_tool_step

BUSY = {"type": "HTTPError", "message": "503 Service Unavailable"}
OK, TIMEOUT = {"ok": True}, {"type": "TimeoutError", "message": "read timed out after 10 s"}
DEADLOCK = {"type": "OperationalError", "message": "deadlock detected"}
ORDER = {"order_id": "4421", "status": "shipped", "eta": "2026-03-04"}

Calls = Sequence[dict[str, Any]]


def call(name: str, arguments: Any, result: Any = None, **fields: Any) -> dict[str, Any]:
    made = make_tool_step(name, arguments=arguments, **fields)
    return made if "error" in fields else made | {"result": result}


def conversation(asked: str, calls: Calls, answer: str, **fields: Any) -> Run:
    """A model step before each call, as a loop makes them: call n is step 2n."""
    steps: list[dict[str, Any]] = []
    news: list[dict[str, Any]] = [{"part_kind": "user-prompt", "content": asked}]
    for number, made in enumerate(calls, start=1):
        name = made["tool_name"]
        wants = {"tool_name": name, "args": made["arguments"], "tool_call_id": f"c{number}"}
        steps += [model_step(steps, news, {"part_kind": "tool-call", **wants}), made | {"call_id": f"c{number}"}]
        content = made["result"] if "result" in made else made["error"]["message"]
        kind = "tool-return" if "result" in made else "retry-prompt"
        news = [{"part_kind": kind, "tool_name": name, "content": content, "tool_call_id": f"c{number}"}]
    steps.append(model_step(steps, news, {"part_kind": "text", "content": answer}))
    header = {"agent": {"name": "support"}, "status": "ok", "input": asked, "output": answer, **fields}
    return parse_document(json.dumps(make_record("r1", *steps, **header)).encode())


def model_step(before: Calls, news: Calls, part: dict[str, Any]) -> dict[str, Any]:
    after = {"after": len(before) - 1} if before else {}
    request = {"messages": [{"kind": "request", "parts": list(news)}]} | after
    return {"kind": "model", "request": request, "response": {"kind": "response", "parts": [part]}}


def migrations(fails: int | None = None) -> list[dict[str, Any]]:
    made = [call("migrate_table", {"table": f"t_{n:03}"}, {"rows": n * 7}) for n in range(1, 101)]
    if fails is not None:
        made[fails - 1] = call("migrate_table", {"table": f"t_{fails:03}"}, error=DEADLOCK)
    return made


BAD: dict[str, tuple[Run, int]] = {
    "a deadlock behind 147 good steps": (
        conversation("Migrate all tables.", migrations(74), "All 100 tables were migrated."), 148,
    ),
    "a wrong total": (
        conversation(
            "Charge my cart.",
            [
                call("list_cart", {"cart": "c_5"}, {"items": [{"price": 40}, {"price": 25}, {"price": 10}]}),
                call("cart_total", {"cart": "c_5"}, {"total": 75}),
                call("charge_card", {"cart": "c_5", "total": 85}, OK),
                call("send_receipt", {"cart": "c_5"}, OK),
            ],
            "I charged your card 85.",
        ), 6,
    ),
    "an apology that names the failure": (
        conversation(
            "Cancel my subscription.",
            [
                call("find_subscription", {"email": "ann@example.com"}, {"id": "sub_91", "plan": "pro"}),
                call("cancel_subscription", {"id": "sub_91"}, error=BUSY),
                call("open_ticket", {"about": "sub_91"}, {"ticket": 18}),
            ],
            "I could not cancel sub_91: the billing service is unavailable (503). I opened ticket 18 for you.",
        ), 4,
    ),
    "retried and never healed": (
        conversation(
            "Book the room for Monday.",
            [
                call("free_rooms", {"day": "Monday"}, ["Blue", "Green"]),
                *[call("book_room", {"room": "Blue", "day": "Monday"}, error=TIMEOUT) for _ in range(3)],
                call("send_invitation", {"room": "Blue"}, OK),
            ],
            "The room Blue is booked for Monday, and everybody is invited.",
        ), 4,
    ),
    "a silent empty answer": (
        conversation(
            "When does order 4421 arrive?",
            [
                call("find_customer", {"email": "ann@example.com"}, {"user": "u_1"}),
                call("lookup_order", {"order_id": "4421"}, []),
                call("shipping_policy", {"country": "AT"}, "Parcels take two days."),
            ],
            "Your order 4421 was sent yesterday and arrives tomorrow.",
        ), 4,
    ),
    "another customer's order": (
        conversation(
            "Where is my order?",
            [
                call("get_profile", {"user_id": "u_7710"}, {"name": "Ann"}),
                call("list_orders", {"user_id": "u_7701"}, [ORDER]),
                call("get_tracking", {"order_id": "4421"}, {"at": "Graz"}),
            ],
            "Your order 4421 is in Graz.",
            user_id="u_7710",
        ), 4,
    ),
    "a failure told as data": (
        conversation(
            "Pay invoice 12.",
            [
                call("get_invoice", {"id": 12}, {"amount": 90, "due": "2026-03-01"}),
                call("pay_invoice", {"id": 12}, {"status": "error", "message": "insufficient funds"}),
                call("send_receipt", {"id": 12}, OK),
            ],
            "Invoice 12 was paid. The receipt is on its way.",
        ), 4,
    ),
    "a part that failed": (
        conversation(
            "Import the customers.",
            [
                call("read_file", {"name": "customers.csv"}, {"rows": 100}),
                call("import_rows", {"file": "customers.csv"}, {"inserted": 90, "failed": 10}),
                call("notify", {"team": "sales"}, OK),
            ],
            "All 100 customers were imported.",
        ), 4,
    ),
    "charged twice": (
        conversation(
            "Pay my bill.",
            [
                call("get_bill", {"user": "u_1"}, {"amount": 30}),
                call("charge_card", {"user": "u_1", "amount": 30}, {"charge": "ch_1"}),
                call("charge_card", {"user": "u_1", "amount": 30}, {"charge": "ch_2"}),
                call("send_receipt", {"user": "u_1"}, OK),
            ],
            "Your bill of 30 is paid.",
        ), 6,
    ),
    "the same empty search twenty times": (
        conversation(
            "What is our refund policy?",
            [
                call("list_topics", {}, ["shipping", "billing"]),
                *[call("search_docs", {"query": "refund policy"}, []) for _ in range(20)],
                call("get_topic", {"topic": "billing"}, "Bills are sent monthly."),
            ],
            "Refunds are given within 30 days.",
        ), 4,
    ),
    "a refusal that is called done": (
        conversation(
            "Tell Ann that I am late.",
            [
                call("find_contact", {"name": "Ann"}, {"email": "ann@example.com"}),
                call("send_email", {"to": "ann@example.com"}, {"status": "rejected", "id": "m_7"}),
            ],
            "Your message to Ann was sent.",
        ), 4,
    ),
    "the account of somebody whom nobody named": (
        conversation(
            "Close the account of c_12.",
            [
                call("get_policy", {"topic": "closing"}, "Accounts are closed at the end of the month."),
                call("close_account", {"customer": "c_21"}, OK),
            ],
            "The account is closed.",
        ), 4,
    ),
}  # fmt: skip

HEALTHY: dict[str, Run] = {
    "a hundred good steps": conversation("Migrate all tables.", migrations(), "All 100 tables were migrated."),
    "retried and healed": conversation(
        "Book the room for Monday.",
        [
            call("free_rooms", {"day": "Monday"}, ["Blue"]),
            call("book_room", {"room": "Blue"}, error=TIMEOUT),
            call("book_room", {"room": "Blue"}, {"booking": 5}),
        ],
        "Blue is booked for Monday.",
    ),
    "searched with other words": conversation(
        "How do I get my money back?",
        [
            call("search_docs", {"query": "money back"}, []),
            call("search_docs", {"query": "refund"}, ["Refunds are given within 30 days."]),
        ],
        "Refunds are given within 30 days.",
    ),
    "nothing was there, and the answer says so": conversation(
        "Are there open incidents?",
        [call("get_team", {"name": "core"}, {"id": 3}), call("open_incidents", {"team": 3}, [])],
        "There are no open incidents for the core team.",
    ),
    "waited for a build": conversation(
        "Build and deploy.",
        [
            call("start_build", {"ref": "main"}, {"build": 9}),
            *[call("build_status", {"build": 9}, {"state": "running"}) for _ in range(5)],
            call("build_status", {"build": 9}, {"state": "done"}),
            call("deploy", {"build": 9}, OK),
        ],
        "Build 9 is deployed.",
    ),
    "read a log full of errors": conversation(
        "What went wrong last night?",
        [
            call("tail_log", {"host": "db1"}, ["02:10 ERROR deadlock detected", "02:11 ERROR timeout", "02:12 failed"]),
            call("check_health", {"host": "db1"}, {"error": None, "failed": 0, "errors": [], "success": True}),
        ],
        "At 02:10 db1 met a deadlock and a timeout; it is healthy now.",
    ),
    "sent money to somebody else": conversation(
        "Send 20 to Bob.",
        [
            call("get_profile", {"user_id": "u_1"}, {"name": "Ann"}),
            call("find_contact", {"name": "Bob"}, {"user_id": "u_2"}),
            call("transfer", {"from_user": "u_1", "to_user": "u_2", "amount": 20}, OK),
        ],
        "20 went to Bob.",
        user_id="u_1",
    ),
    "a total in another spelling": conversation(
        "What does my cart cost?",
        [
            call("list_cart", {"cart": "c_5"}, {"items": [{"price": 1000}, {"price": 75}]}),
            call("cart_total", {"cart": "c_5"}, {"total": 1075}),
            call("convert", {"amount": 1075, "to": "USD"}, {"total": 1161.5}),
        ],
        "Your cart costs 1,075.00 €, that is $1,161.50.",
    ),
    "tools that answer nothing": conversation(
        "Clean up and tell the team.",
        [
            call("delete_file", {"path": "/tmp/a"}, None),
            call("send_email", {"to": "team@example.com"}, ""),
            call("list_files", {"path": "/tmp"}, ["b"]),
        ],
        "The file is deleted, and the team has a mail.",
    ),
    "read, changed and read again": conversation(
        "Add tea to my cart.",
        [
            call("get_cart", {"cart": "c_5"}, {"items": ["milk"]}),
            call("add_item", {"cart": "c_5", "item": "tea"}, OK),
            call("get_cart", {"cart": "c_5"}, {"items": ["milk", "tea"]}),
        ],
        "Your cart has milk and tea.",
    ),
    "a user whom the tools have no use for": conversation(
        "Will it rain in Graz?",
        [call("get_weather", {"city": "Graz"}, {"sky": "rain"}), call("get_time", {"zone": "CET"}, "14:02")],
        "Yes, it rains in Graz.",
        user_id="u_1",
    ),
    "many tables, as asked": conversation("Migrate 100 tables.", migrations(), "Done.", user_id="u_1"),
    "a claim that was rejected by others": conversation(
        "What is with my claim?",
        [call("get_claim", {"id": "cl_77"}, {"status": "rejected", "filed": "2026-01-02"})],
        "Your claim cl_77 was rejected.",
    ),
}  # fmt: skip


def told(run: Run) -> str:
    return story(run, find_anomalies(run))


def place_in(line: str) -> int | None:
    found = re.search(r"first anomaly at step (\d+)|\bstep (\d+) failed(?:, and the answer says so)?$", line)
    return None if found is None else int(found[1] or found[2])


@pytest.mark.parametrize(("run", "at"), BAD.values(), ids=BAD)
def test_the_story_names_the_place_of_the_trouble(run: Run, at: int):
    assert place_in(told(run)) == at, told(run)


@pytest.mark.parametrize("run", HEALTHY.values(), ids=HEALTHY)
def test_the_story_of_a_healthy_run_names_no_place(run: Run):
    assert place_in(told(run)) is None, told(run)


def test_an_apology_that_names_the_failure_swallows_nothing():
    run, at = BAD["an apology that names the failure"]

    assert [(found.code, found.steps) for found in find_anomalies(run)] == [("call_failed", (at,))]
