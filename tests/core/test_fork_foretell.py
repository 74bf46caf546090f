"""What is said of a fork before it is queued."""

import pytest

from sessions_app.core.fork.foretell import foretell
from sessions_app.core.fork.order import read_order
from sessions_app.core.payload import Payload
from sessions_app.core.step_summary import StepSummary
from sessions_app.mapping.rows import value_key


def step(index, kind, name="", arguments=None, result=None):
    arguments_key, result_key = value_key(Payload.of(arguments)), value_key(Payload.of(result))
    return StepSummary(
        index=index, kind=kind, name=name or kind, text=index, arguments_key=arguments_key, result_key=result_key
    )


RESULTS = {2: {"open": True, "by": "u_1"}, 3: "nothing", 5: "done"}
STEPS = [
    step(1, "model"),
    step(2, "tool", "lookup", {"id": 1}, RESULTS[2]),
    step(3, "tool", "lookup", {"id": 2}, RESULTS[3]),
    step(4, "model"),
    step(5, "tool", "cancel", {"id": 1}, RESULTS[5]),
]
ANSWER = {"kind": "tool_result", "step": 2, "value": []}
SAID = {"kind": "model_answer", "step": 4, "value": {"text": "Sorry."}}


def told(*changes, at_step=2, is_edited=True, **order):
    read = read_order({"at_step": at_step, "changes": list(changes), **order})
    found = foretell(read, STEPS, {1, 2, 3, 4, 5}, RESULTS.get, is_edited=is_edited)
    return found and found.words


def asking(name, arguments, step=4):
    return {"kind": "model_answer", "step": step, "value": {"tool_calls": [{"name": name, "arguments": arguments}]}}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([ANSWER], "Stops at step 4: the model's answer is unknown."),
        ([ANSWER | {"step": 5}], "Stops at step 6: the model's answer is unknown."),
        ([ANSWER | {"value": RESULTS[2]}], "This is what was recorded: nothing would change."),
        (
            [ANSWER | {"value": {"by": "u_1", "open": True}}],
            "Stops at step 4: the model's answer is unknown.",
        ),
        ([ANSWER | {"step": 3, "value": "nothing"}], "This is what was recorded: nothing would change."),
        ([{"kind": "instructions", "value": "x"}], "Stops at step 4: the model's answer is unknown."),
        ([ANSWER, SAID], "The run ends at step 4: an answer without tool calls is its outcome."),
        ([asking("cancel", {"id": 9})], "Stops at step 5: no call of cancel with these arguments was recorded."),
        ([asking("lookup", {"id": 1})], "Stops at step 5: no call of lookup with these arguments was recorded."),
        (
            [asking("cancel", {"id": 1})],
            "Stops once these tools have answered: the model's next answer is unknown.",
        ),
    ],
)
def test_where_a_fork_stops_is_said_beforehand(changes, words):
    assert told(*changes) == words


def test_an_error_that_ends_the_run_asks_nobody():
    crash = {"kind": "tool_result", "step": 2, "error": {"message": "late", "crashes": True}}

    assert told(crash) == "The run ends at step 2 with this error."


def test_where_the_order_says_who_answers_it_does_not_stop():
    words = "From step 4 on, the model gives its recorded answers, marked as recorded for another request."
    assert told(ANSWER, on_difference="play_on") == words
    assert told(ANSWER, on_difference="live") == "From step 4 on, a live model answers."
    assert told(ANSWER | {"step": 5}, on_difference="play_on").startswith("Stops at step 6")


def test_before_anybody_has_typed_it_says_what_an_edit_would_lead_to():
    assert told(ANSWER | {"value": RESULTS[2]}, is_edited=False).startswith("Stops at step 4")


@pytest.mark.parametrize(
    "order",
    [
        {"changes": [ANSWER, {"kind": "agent", "value": "orders"}]},
        {"changes": [{"kind": "clock", "value": 60}]},
        {"changes": [ANSWER, {"kind": "rule", "when": "docs is empty", "answer": {"text": "x"}}]},
        {"changes": [ANSWER], "samples": 3},
    ],
)
def test_what_depends_on_code_or_on_a_live_model_is_not_foretold(order):
    assert foretell(read_order({"at_step": 2} | order), STEPS, {1, 2, 3, 4, 5}, RESULTS.get) is None
