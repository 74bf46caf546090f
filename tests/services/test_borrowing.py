"""What a fork may borrow: answers that models and tools gave in other runs of the same project, and no others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sessions_app.models import Run
from sessions_app.queries.borrowing import CANDIDATES, model_answer, nearest_calls, tool_answer
from sessions_app.services.ingest import ingest_document
from tests.builders import make_project, make_record, make_tool_step
from tests.losing import lose_payload

pytestmark = pytest.mark.django_db
WANTED = {"order_id": "ORD-1"}


@pytest.fixture
def shop():
    return make_project("shop")


def store(project, run_id: str, *steps: dict[str, Any], origin: str = "recorded", **fields: Any) -> Run:
    record = make_record(run_id, *steps, session_id=f"chat_{run_id}", **fields)
    if origin != "recorded":
        record |= {"origin": origin, "parent": {"run_id": "parent", "step": 1}}
    return ingest_document(project, json.dumps(record).encode()).run


def said(text: str) -> dict[str, Any]:
    return {"kind": "response", "parts": [{"part_kind": "text", "content": text}]}


def model_step(answer: str | None = "Shipped.", prompt: str = "Where is it?", **fields: Any) -> dict[str, Any]:
    request = {"messages": [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": prompt}]}]}
    answered = {} if answer is None else {"response": said(answer)}
    return {"kind": "model", "model": "gpt-4o", "request": request, **answered, **fields}


def call(result: Any = "shipped", arguments: Any = WANTED, tool_name: str = "lookup", **fields: Any) -> dict[str, Any]:
    return make_tool_step(tool_name, arguments=arguments, result=result, **({"outcome": "success"} | fields))


def key_in(run: Run, index: int = 1) -> bytes:
    key = run.steps[index - 1].request_key
    assert key is not None
    return key


def words(found: Any) -> Any:
    return found and json.loads(found.response)["parts"][0]["content"]


# --- models ------------------------------------------------------------------------------------


def test_the_answer_to_an_equal_request_is_borrowed(shop):
    asking = store(shop, "asking", model_step(None))
    store(shop, "other", model_step("Lost."), make_tool_step())

    found = model_answer(shop.pk, key_in(asking), not_in={asking.pk})

    assert found is not None
    assert (found.run_id, found.session_id, found.step) == ("other", "chat_other", 1)
    assert json.loads(found.response) == said("Lost.")


def test_another_request_borrows_nothing(shop):
    asking = store(shop, "asking", model_step(None, prompt="Where is my parcel?"))
    store(shop, "other", model_step("Lost."))

    assert model_answer(shop.pk, key_in(asking), not_in=set()) is None


def test_the_newest_run_lends(shop):
    for run_id in ("first", "second", "third"):
        run = store(shop, run_id, model_step(f"From {run_id}."))

    assert words(model_answer(shop.pk, key_in(run), not_in=set())) == "From third."
    assert words(model_answer(shop.pk, key_in(run), not_in={run.pk})) == "From second."


def test_steps_without_an_answer_lend_none(shop):
    store(shop, "answered", model_step("Lost."))
    store(shop, "broken", model_step("Lo", error={"type": "ReadTimeout", "message": "The answer broke off."}))
    unanswered = store(shop, "unanswered", *[model_step(None)] * (CANDIDATES + 1))

    found = model_answer(shop.pk, key_in(unanswered), not_in=set())

    assert found is not None
    assert found.run_id == "answered"


@pytest.mark.parametrize(
    ("origin", "source", "is_lent"),
    [
        ("recorded", "recorded", True),
        ("recorded", "by_hand", False),
        ("fork", "live", False),
        ("replay", "live", False),
        ("fork", "recorded", False),
        ("fork", "by_hand", False),
        ("fork", "rule", False),
        ("fork", "borrowed", False),
        ("fork", "own_code", False),
        ("replay", "recorded", False),
    ],
)
def test_only_what_was_recorded_is_lent(shop, origin, source, is_lent):
    run = store(shop, "made", model_step(source=source), call(source=source), origin=origin)

    assert (model_answer(shop.pk, key_in(run), not_in=set()) is not None) == is_lent
    assert (tool_answer(shop.pk, "lookup", WANTED, not_in=set()) is not None) == is_lent


def test_experiments_do_not_stand_before_the_recording_that_lends(shop):
    """Live answers to the same request, in more runs than are looked at."""
    store(shop, "recorded", model_step("Lost."), call("lost"))
    for number in range(CANDIDATES + 1):
        made = store(shop, f"live{number}", model_step("Live.", source="live"), call(source="live"), origin="replay")

    answer = tool_answer(shop.pk, "lookup", WANTED, not_in=set())
    assert words(model_answer(shop.pk, key_in(made), not_in=set())) == "Lost."
    assert answer is not None
    assert answer.run_id == "recorded"


def test_an_answer_whose_bytes_are_gone_is_passed_over(shop):
    store(shop, "kept", model_step("Kept."), call("kept"))
    gone = store(shop, "gone", model_step("Gone."), call("gone"))
    found = (
        model_answer(shop.pk, key_in(gone), not_in=set()),
        tool_answer(shop.pk, "lookup", WANTED, not_in=()),
    )
    assert [each and each.run_id for each in found] == ["gone", "gone"]

    for content in (json.dumps(said("Gone.")).encode(), b"gone"):
        lose_payload(content)

    assert words(model_answer(shop.pk, key_in(gone), not_in=set())) == "Kept."
    answer = tool_answer(shop.pk, "lookup", WANTED, not_in=())
    assert answer is not None
    assert answer.run_id == "kept"


# --- tools -------------------------------------------------------------------------------------


def test_the_answer_to_an_equal_call_is_borrowed_whole(shop):
    written = call(
        {"status": "lost"}, '{"order_id": "ORD-1"}', name="step of its own", metadata={"rows": 3}, content="See."
    )
    store(shop, "other", model_step(), written)

    found = tool_answer(shop.pk, "lookup", WANTED, not_in=set())

    assert found is not None
    assert (found.run_id, found.session_id, found.step, found.error) == ("other", "chat_other", 2, None)
    assert found.call.outcome == "success"
    kept = (found.call.result, found.call.metadata, found.call.content)
    assert [payload and payload.value for payload in kept] == [{"status": "lost"}, {"rows": 3}, "See."]


def test_other_tools_and_other_arguments_lend_nothing(shop):
    store(shop, "other", call(), call(tool_name='a "quoted" tool'), *[call(tool_name="look")] * (CANDIDATES + 1))

    assert tool_answer(shop.pk, "lookup", WANTED, not_in=set()) is not None
    assert tool_answer(shop.pk, "lookup", {"order_id": "ORD-2"}, not_in=set()) is None
    assert tool_answer(shop.pk, "lookup_order", WANTED, not_in=set()) is None
    assert tool_answer(shop.pk, 'a "quoted" tool', WANTED, not_in=set()) is not None


def test_arguments_in_another_order_are_another_call(shop):
    store(shop, "turned", call(arguments={"b": 1, "a": 2}))

    assert tool_answer(shop.pk, "lookup", {"b": 1, "a": 2}, not_in=set()) is not None
    assert tool_answer(shop.pk, "lookup", {"a": 2, "b": 1}, not_in=set()) is None


def test_a_tool_that_is_only_spoken_of_does_not_lend(shop):
    run = store(shop, "other", call(tool_name="audit", retry={"tool_name": "lookup"}))

    for tool_name, is_lent in (("lookup", False), ("audit", True)):
        assert (tool_answer(shop.pk, tool_name, WANTED, not_in=set()) is not None) == is_lent
        assert bool(nearest_calls(shop.pk, run, tool_name, WANTED)) == is_lent


@pytest.mark.parametrize(
    "step",
    [
        call("Try another.", outcome="retried"),
        call("No.", outcome="failed"),
        call("No.", outcome="denied"),
        call("Tool not executed - a final result was already processed."),
        call("Boom", error={"type": "CrmDown", "message": "Boom"}),
        make_tool_step("lookup", arguments=WANTED),
        call("Final result processed.", is_output=True),
    ],
)
def test_only_a_tools_success_is_lent(shop, step):
    store(shop, "success", call("lost"))
    store(shop, "other", step)

    found = tool_answer(shop.pk, "lookup", WANTED, not_in=set())

    assert found is not None
    assert found.run_id == "success"


def test_the_newest_call_lends(shop):
    first = store(shop, "first", call("one"), call("two"))
    second = store(shop, "second", call("three"), call("four"))

    def result(not_in: set[int]) -> Any:
        found = tool_answer(shop.pk, "lookup", WANTED, not_in=not_in)
        return found and found.call.result and found.call.result.value

    assert result(set()) == "four"
    assert result({second.pk}) == "two"
    assert result({first.pk, second.pk}) is None


# --- projects, and what it costs ---------------------------------------------------------------


def test_another_projects_answers_are_never_lent(shop):
    """Not even where the bytes of the answer are the project's too."""
    elsewhere = make_project("elsewhere")
    run = store(elsewhere, "other", model_step(), call())
    asking = store(shop, "asking", model_step(None), model_step(source="by_hand"), call(source="by_hand"))

    for project, is_lent in ((shop, False), (elsewhere, True)):
        found = (
            model_answer(project.pk, key_in(asking), not_in=set()),
            tool_answer(project.pk, "lookup", WANTED, not_in=set()),
            nearest_calls(project.pk, asking, "lookup", WANTED) or None,
            nearest_calls(project.pk, run, "lookup", WANTED) or None,
        )
        assert [each is not None for each in found] == [is_lent] * 4


def test_the_number_of_queries_is_fixed(shop, django_assert_num_queries):
    asking = store(shop, "asking", model_step(), *(call(n, {"n": n}) for n in range(5)))
    for run in range(4):
        store(shop, f"r{run}", model_step(), call(run), *(call(n, {"n": n, "run": run}) for n in range(20)))
    key = key_in(asking)

    with django_assert_num_queries(3):
        assert model_answer(shop.pk, key, not_in={asking.pk}) is not None
    with django_assert_num_queries(3):
        assert tool_answer(shop.pk, "lookup", WANTED, not_in={asking.pk}) is not None
    with django_assert_num_queries(2):
        assert len(nearest_calls(shop.pk, asking, "lookup", WANTED, limit=50)) == 50


# --- the nearest -------------------------------------------------------------------------------


def test_nearest_calls_come_with_what_differs(shop):
    run = store(shop, "asking", call(1, {"order_id": "ORD-1", "user": {"id": "u_1", "tier": "gold"}}))
    store(shop, "other", call(2, {"order_id": "ORD-9", "user": {"id": "u_2", "tier": "free"}}), call(tool_name="look"))

    found = nearest_calls(shop.pk, run, "lookup", {"order_id": "ORD-1", "user": {"id": "u_2", "tier": "free"}})

    assert [near.to_json() for near in found] == [
        {
            "run_id": "other",
            "session_id": "chat_other",
            "step": 1,
            "arguments": {"order_id": "ORD-9", "user": {"id": "u_2", "tier": "free"}},
            "differs": ["args.order_id"],
            "is_same_run": False,
        },
        {
            "run_id": "asking",
            "session_id": "chat_asking",
            "step": 1,
            "arguments": {"order_id": "ORD-1", "user": {"id": "u_1", "tier": "gold"}},
            "differs": ["args.user.id", "args.user.tier"],
            "is_same_run": True,
        },
    ]


def test_equally_near_calls_are_those_of_the_run_first_and_then_the_newest(shop):
    store(shop, "old", call(1, {"order_id": "ORD-2"}))
    run = store(shop, "asking", call(2, {"order_id": "ORD-3"}), call(3, {"order_id": "ORD-4"}))
    store(shop, "new", call(4, {"order_id": "ORD-5"}))

    def places(limit: int) -> list[tuple[str, int]]:
        return [(near.run_id, near.step) for near in nearest_calls(shop.pk, run, "lookup", WANTED, limit=limit)]

    assert places(9) == [("asking", 1), ("asking", 2), ("new", 1), ("old", 1)]
    assert places(3) == places(9)[:3]


def test_equal_calls_with_equal_answers_are_told_once(shop):
    run = store(shop, "asking", *[call("nothing", {"q": "refund"})] * 3, call("something", {"q": "refund"}))
    store(shop, "other", call("nothing", {"q": "refund"}))

    found = nearest_calls(shop.pk, run, "lookup", {"q": "refunds"})

    assert [(near.run_id, near.step) for near in found] == [("asking", 1), ("asking", 4)]


def test_spelling_makes_no_difference_and_no_arguments_are_an_empty_object(shop):
    run = store(shop, "asking", call(1, '{"q": "a"}'), make_tool_step("lookup", result="all"))

    assert [near.differs for near in nearest_calls(shop.pk, run, "lookup", {"q": "a"})] == [[], ["args.q"]]
    assert [near.differs for near in nearest_calls(shop.pk, run, "lookup", None)] == [[], ["args.q"]]


def test_calls_without_an_answer_and_answers_by_hand_are_not_near(shop):
    crashed = make_tool_step("lookup", outcome="crashed", arguments=WANTED, error={"type": "CrmDown", "message": "x"})
    run = store(shop, "asking", make_tool_step("lookup", arguments=WANTED), call(source="by_hand"), crashed)
    store(shop, "made", call(source="by_hand"), call(2, source="recorded"), origin="fork")

    assert [(near.run_id, near.step) for near in nearest_calls(shop.pk, run, "lookup", WANTED)] == [("asking", 3)]


def test_request_keys_are_stored_with_the_steps_that_ask_for_something(shop):
    run = store(shop, "r", model_step(), call(), {"kind": "model", "model": "gpt-4o", "response": said("Lost.")})

    stored = [step.request_key for step in run.steps]

    assert [None if key is None else len(key) for key in stored] == [16, None, None]
