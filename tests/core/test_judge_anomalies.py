"""Each detector with a case that fires and one just below it that does not."""

import inspect
import json
import re
import sys
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.judge.anomalies.anomaly import Rules, first_odd_step
from sessions_app.core.judge.anomalies.answers.cut_json import is_cut_json
from sessions_app.core.judge.anomalies.detectors import DETECTORS, RULES, find_anomalies
from sessions_app.core.judge.anomalies.failed.nothing_found import is_empty
from sessions_app.core.judge.story import story
from sessions_app.core.model_names import is_same_model
from sessions_app.core.payload import JSON, Payload
from sessions_app.core.run import ErrorInfo, HttpExchange, Run, StateChange, Step, ToolCall
from tests.core.test_judge_runs import (
    NOON,
    codes,
    history,
    make_run,
    make_step,
    model,
    other,
    payload,
    prompt,
    request_message,
    response_message,
    retrieval,
    tool,
)
from tests.growth import LINEAR, growth

FAILED = ErrorInfo(type="Timeout", message="30 s")


DEFAULTS = Rules()


def found(code: str, run: Run, rules: Rules = DEFAULTS) -> list[tuple[str, tuple[int, ...]]]:
    return [(a.message, a.steps) for a in find_anomalies(run, rules) if a.code == code]


def calls(number: int) -> list[Step]:
    return [tool(arguments={"page": page}) for page in range(number)]


def with_output(output: Payload) -> Run:
    return make_run(model(), output=output)


def http(status: int) -> HttpExchange:
    return HttpExchange(status=status)


# --- how often, and again ----------------------------------------------------------------------


def test_every_code_has_its_sentence():
    sources = (inspect.getsource(sys.modules[detector.__module__]) for detector in DETECTORS)
    assert set(re.findall(r'code="(\w+)"', "".join(sources))) == set(RULES)


def test_eleven_tool_calls_are_many_and_ten_are_not():
    eleven = found("many_tool_calls", make_run(model(), *calls(11)))

    assert eleven == [("11 tool calls", ())]
    assert found("many_tool_calls", make_run(model(), *calls(10))) == []


@pytest.mark.parametrize(
    ("last", "level"),
    [
        ([tool(arguments={"page": 11})], "info"),
        ([tool(arguments={"page": 0})], "info"),
        ([tool(arguments={"page": 0})] * 2, "warning"),
        ([tool(error=FAILED)], "info"),
    ],
    ids=["all others", "one read again", "one again and again", "one failed"],
)
def test_many_calls_are_a_note_where_none_was_made_again_without_a_reason(last, level):
    run = make_run(model(), *calls(10), *last)

    assert [a.level for a in find_anomalies(run) if a.code == "many_tool_calls"] == [level]


def test_the_number_of_calls_is_told_last():
    again = [tool("pay", {"id": n}, {"payment": f"p_{n}"}) for n in (*range(10), 0)]

    assert codes(find_anomalies(make_run(model(), *again))) == ["duplicate_call", "many_tool_calls"]
    assert codes(find_anomalies(make_run(model(duration_ms=40_000.0), *calls(11)))) == ["slow_step", "many_tool_calls"]


def test_structured_output_is_no_tool_call():
    run = make_run(model(), *calls(10), tool("final_result", {}, is_output=True))

    assert found("many_tool_calls", run) == []


def test_calls_that_a_session_file_only_lists_are_counted():
    listed = [{"tool": "look", "args": {"page": page}} for page in range(11)]

    run = make_run(model(), extra={"tool_calls": [*listed, {"tool": "look", "args": {"page": 0}}]})

    assert found("many_tool_calls", run) == [("12 tool calls", ())]
    assert found("duplicate_call", run) == [("Duplicate call: look", ())]


@pytest.mark.parametrize(
    "again",
    [{"id": 1, "full": True}, {"full": True, "id": 1}, '{"full":true, "id":1}'],
    ids=["same", "other key order", "as JSON text"],
)
def test_duplicate_call_links_both_steps(again):
    run = make_run(model(), tool("pay", {"id": 1, "full": True}), tool("pay", again))

    assert found("duplicate_call", run) == [("Duplicate call: pay", (2, 3))]


def test_each_repeat_is_one_anomaly():
    run = make_run(model(), *[tool(arguments={"id": 1})] * 3)

    assert [steps for _, steps in found("duplicate_call", run)] == [(2, 3), (2, 4)]


@pytest.mark.parametrize("second", [tool(arguments={"id": 2}), tool("other", {"id": 1})])
def test_other_call_is_no_duplicate(second):
    assert found("duplicate_call", make_run(model(), tool(arguments={"id": 1}), second)) == []


@pytest.mark.parametrize(("outcome", "is_check"), [("failed", True), ("success", True), ("denied", False)])
def test_what_is_read_again_after_a_call_that_may_have_changed_it_is_a_check(outcome, is_check):
    look, write = tool("get_plan", {"id": "SUB-9"}), tool("cancel_plan", {"id": "SUB-9"}, outcome=outcome)

    assert (found("duplicate_call", make_run(model(), look, write, look)) == []) == is_check


def test_a_call_that_is_made_again_after_it_failed_is_no_duplicate():
    run = make_run(model(), tool(error=FAILED), model(), tool())

    assert found("duplicate_call", run) == [("Called again after it failed: lookup_order", (2, 4))]


def job(*states: str, name: str = "get_job", **fields) -> list[Step]:
    return [step for state in states for step in (model(), tool(name, {"id": "j_1"}, {"state": state}, **fields))]


@pytest.mark.parametrize(
    "steps",
    [
        job("running", "running", "done"),
        job("running", "running", "running"),
        job("4 %", "9 %", "9 %", name="progress"),
    ],
    ids=["until it is done", "not done yet", "a tool of any name"],
)
def test_asking_how_far_something_is_is_one_note(steps):
    run = make_run(*steps, model())

    assert [(a.message, a.steps, a.level) for a in find_anomalies(run)] == [
        (f"{steps[1].name} polled 3 ×", (2, 4, 6), "info")
    ]
    assert f"{steps[1].name} polled 3 ×" in story(run)


@pytest.mark.parametrize(
    "steps",
    [
        job("done", "done", "done"),
        job("started", "started", "started", name="build"),
        job("new", "old", "new", name="build", extra={"tool_kind": "write"}),
    ],
    ids=["done already", "no look-up", "a write"],
)
def test_a_call_that_was_answered_or_does_something_is_not_polled(steps):
    assert [steps for _, steps in found("duplicate_call", make_run(*steps, model()))] == [(2, 4), (2, 6)]


def looks(*answers: object, name: str = "resolve", wait: str = "sleep", took: float = 40.0) -> Run:
    """Each of them behind a call that lets 30 seconds pass."""
    pause = tool(wait, {"seconds": 30}, {"slept": 30}, duration_ms=took)
    steps = [step for answer in answers for step in (tool(name, {"host": "mx"}, answer), pause)]
    return make_run(*steps, model(), output=payload("The run looked until it was over."))


@pytest.mark.parametrize(
    "run",
    [
        looks({"answers": []}, {"answers": []}, {"answers": ["10.0.0.1"]}),
        looks({"answers": []}, {"answers": []}, {"answers": []}),
        looks("up", "up", "up", name="get_host"),
        looks("no", "no", "yes", wait="tea_time", took=30_000.0),
    ],
    ids=["until it is there", "still nothing", "a look-up", "a wait by its length"],
)
def test_a_call_that_is_made_again_after_a_wait_is_polled(run):
    assert [(a.code, a.steps) for a in find_anomalies(run)] == [("asked_again", (1, 3, 5))]
    assert "polled 3 ×" in story(run)


@pytest.mark.parametrize(
    "run",
    [looks(*["charged"] * 3, name="charge_card"), looks({"answers": []}, {"answers": []}, wait="tea_time")],
    ids=["a call that does something", "no wait between"],
)
def test_a_wait_is_no_reason_to_do_something_again(run):
    assert "duplicate_call" in [a.code for a in find_anomalies(run) if a.level == "warning"]


CART = {"cart": "c_5"}


def read_again(between: Step) -> Run:
    return make_run(tool("get_cart", CART, ["milk"]), between, tool("get_cart", CART, ["milk"]), model())


def test_a_read_after_a_change_of_what_it_reads_is_no_duplicate():
    added = tool("add_item", {**CART, "item": "tea"}, {"ok": True})

    assert find_anomalies(read_again(added)) == []
    assert "3 tool calls" in story(read_again(added))


@pytest.mark.parametrize(
    "between",
    [
        tool("add_item", {"cart": "c_6", "item": "tea"}),
        tool("get_prices", CART),
    ],
    ids=["of another", "a read"],
)
def test_a_read_after_no_change_of_what_it_reads_is_a_repeat(between):
    assert found("duplicate_call", read_again(between)) == [("Called again with the same answer: get_cart", (1, 3))]


def charged_twice(question: str, answer: str) -> Run:
    charges = [tool("charge_card", {"booking": "B-77", "cents": 5900}, {"charge": name}) for name in ("ch_3a", "ch_3b")]
    return make_run(*charges, model(), input=payload(question), output=payload(answer))


@pytest.mark.parametrize(
    ("question", "answer", "message", "level"),
    [
        ("Charge 59 euros.", "Charged.", "Duplicate call: charge_card (ch_3a and ch_3b)", "warning"),
        ("Charge 59 euros.", "Charged, ch_3b.", "Duplicate call: charge_card (ch_3a and ch_3b)", "warning"),
        ("Charge 59 euros twice.", "Charged.", "Called again as asked: charge_card", "info"),
        ("Charge both.", "Charged, ch_3a and ch_3b.", "Called again as the answer says: charge_card", "info"),
    ],
)
def test_what_was_asked_for_twice_or_is_owned_up_to_is_a_note(question, answer, message, level):
    anomalies = find_anomalies(charged_twice(question, answer))

    assert [(a.code, a.message, a.level) for a in anomalies] == [("duplicate_call", message, level)]


def test_repeats_of_many_calls_cost_no_more_than_their_number():
    def looked_up(number: int) -> Run:
        turns = [(tool("get_cart", CART, [n]), tool("add_item", {**CART, "n": n}, "ok")) for n in range(number)]
        return make_run(*[step for turn in turns for step in turn], model())

    assert growth(find_anomalies, looked_up(500), looked_up(2_000)) < LINEAR


EMPTY: list[object] = [None, "", " ", "null", [], {}, "[]", {"docs": [], "count": 0}, {"hits": 0, "query": "x"}]
NOT_EMPTY = ["none", [0], {"docs": ["a"], "count": 1}, {"price": 12, "tags": []}, 0, False, {"a": 0}]


@pytest.mark.parametrize("value", EMPTY)
def test_empty_result_that_is_asked_for_again_is_found(value):
    empty = Payload.of_json(value) if value is None else payload(value)
    asked = payload({"q": "x"})
    first = ToolCall(tool_name="search", arguments=asked, result=empty)
    run = make_run(model(), make_step("search", first, {}), model(), tool("search", {"q": "x"}, []))

    assert found("empty_result_retried", run) == [("Empty result retried: search", (2, 4))]


@pytest.mark.parametrize("value", NOT_EMPTY)
def test_result_that_holds_something_is_not_empty(value):
    assert not is_empty(payload(value).parsed)


def test_empty_result_asked_for_otherwise_is_no_retry():
    run = make_run(model(), tool(arguments={"q": "x"}, result=[]), tool(arguments={"q": "y"}))

    assert found("empty_result_retried", run) == []


def test_a_retry_that_found_something_is_in_order():
    looks = [tool("search", {"q": "x"}, result) for result in ([], [], ["a"])]

    assert found("empty_result_retried", make_run(model(), *looks)) == []


def test_empty_last_result_is_no_retry():
    run = make_run(model(), tool(arguments={"q": "x"}), tool(arguments={"q": "x"}, result=[]))

    assert found("empty_result_retried", run) == []


# --- the answer --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("I got an unexpected error", "error"),
        ("Error: the order is unknown", "error"),
        ("SORRY, no", "sorry"),
        ("Done? No. I'm so sorry", "sorry"),
        ("I am unable to", "unable"),
        ("Unable to open it", "unable"),
        ("We have failed", "failed"),
        ("I can't do that", "can't"),
        ("I can\u2019t do that", "can't"),
    ],
)
def test_error_word_of_the_runs_own_work_is_a_hint(text, word):
    run = with_output(payload(text))

    assert found("error_words", run) == [(f"Possible error in output: contains '{word}'", (1,))]
    assert [a.level for a in find_anomalies(run)] == ["info"]


@pytest.mark.parametrize(
    "text",
    [
        "All is well",
        "Terror films",
        "I can do that",
        "checkout: error rate 2 %",
        "Error rate 2 %, p95 300 ms",
        "I checked the error rate and restarted the failed job",
        "Errors: 0. Failed: none. Failed: 3 of 200 builds",
        "Your card was charged once: the first attempt failed",
        "I am sorry to hear that. Your order is on its way.",
        "Sorry to hear that. Your order is on its way.",
    ],
)
def test_words_of_what_the_answer_is_about_are_no_hint(text):
    assert found("error_words", with_output(payload(text))) == []


@pytest.mark.parametrize("step", [tool(error=FAILED), tool(result={"ok": False}), model(error=FAILED)])
def test_an_answer_that_speaks_of_a_failure_that_happened_is_honest(step):
    run = make_run(model(), step, model(), output=payload("I'm sorry, I failed to refund it."))

    assert found("error_words", run) == []


def test_words_are_a_setting():
    run = with_output(payload("Leider error"))

    assert found("error_words", run, Rules(error_words=("leider",))) == [
        ("Possible error in output: contains 'leider'", (1,))
    ]


def test_words_of_structured_output_count_where_they_say_something():
    assert found("error_words", with_output(payload({"error": None, "note": "fine"}))) == []
    assert found("error_words", with_output(payload({"error": {"code": 5}, "note": "unable"}))) == [
        ("Possible error in output: contains 'unable'", (1,))
    ]


@pytest.mark.parametrize(
    ("run", "ending"),
    [
        (make_run(model(), output=None), "no output was recorded"),
        (make_run(model(), output=payload("")), "the output is empty"),
        (make_run(model(), status="error", error=FAILED), "Timeout: 30 s"),
        (make_run(model(), status="error"), "an error ended the run"),
    ],
)
def test_run_without_an_answer_is_found(run, ending):
    assert found("no_answer", run) == [(f"Ended without an answer: {ending}", (1,))]


def test_a_recording_that_breaks_off_is_said_to_end_and_not_the_run():
    assert found("no_answer", make_run(model(), status="cut_off")) == [("Recording cut off without an answer", (1,))]


@pytest.mark.parametrize("origin", ["fork", "replay"])
def test_run_of_a_fork_or_a_replay_that_stopped_is_not_odd(origin):
    assert found("no_answer", make_run(model(), status="cut_off", origin=origin)) == []


def test_run_that_waits_for_an_approval_says_for_which_tool():
    run = make_run(model(), tool("refund", {}, None), tool("refund", {"a": 1}, None), status="cut_off")

    message = "Ended without an answer: refund never returned"
    assert found("no_answer", run) == [(message, (3,))]


@pytest.mark.parametrize("run", [make_run(model()), make_run(model(), status="running", output=None)])
def test_answered_or_running_run_is_no_anomaly(run):
    assert found("no_answer", run) == []


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (tool(error=FAILED), ""),
        (tool(outcome="failed"), ""),
        (tool(http=http(500)), " (HTTP 500)"),
        (tool(result={"status_code": 429, "body": ""}), " (HTTP 429)"),
    ],
)
def test_error_that_the_answer_hides_is_found(step, words):
    message = f"Error swallowed: lookup_order failed{words} and the answer does not say so"

    assert found("error_swallowed", make_run(model(), step, model())) == [(message, (2,))]


@pytest.mark.parametrize(
    "run",
    [
        make_run(model(), tool(http=http(399)), model()),
        make_run(model(), tool(error=FAILED), model(), output=payload("Sorry, it is down.")),
        make_run(model(), tool(error=FAILED), model(), tool(), model()),
        make_run(model(), tool(error=FAILED), status="error"),
    ],
    ids=["no error", "said", "tried again", "run ended in it"],
)
def test_error_that_is_not_hidden_is_no_anomaly(run):
    assert found("error_swallowed", run) == []


# --- what tools were asked and answered --------------------------------------------------------


def test_cut_off_json_names_the_status():
    run = make_run(model(), tool("get_price", {}, '{"price": 12', http=http(429)), model())

    assert found("cut_off_json", run) == [("Truncated JSON in the answer of get_price (HTTP 429)", (2,))]


@pytest.mark.parametrize(
    "step",
    [
        tool(result={"status": 200, "body": '{"price": 12'}),
        tool(http=HttpExchange(status=200, response_body=payload('{"price": 12'))),
        tool(result=None, http=HttpExchange(response_body=Payload(content=b'{"p": 1', media_type=JSON))),
    ],
    ids=["inside the answer", "on the wire", "bytes that only claim to be JSON"],
)
def test_cut_off_json_is_found_wherever_it_stands(step):
    assert found("cut_off_json", make_run(model(), step, model())) == [
        ("Truncated JSON in the answer of lookup_order", (2,))
    ]


@pytest.mark.parametrize(
    "text",
    ['{"price": 12}', "12", "price", "[1] As said", "[note]", "{name}", '{"a": oops}', '{"a" "b"}', '{"a":1} x'],
)
def test_whole_or_wrong_json_is_not_cut_off(text):
    assert not is_cut_json(text)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(value=st.dictionaries(st.text(), VALUES, min_size=1), data=st.data())
def test_every_beginning_of_an_object_is_cut_off(value, data):
    text = json.dumps(value)
    length = data.draw(st.integers(1, len(text) - 1))

    assert is_cut_json(text[:length])
    assert not is_cut_json(text)


TAKES_USER = (payload({"name": "lookup_order", "parameters_json_schema": {"properties": {"user_id": {}}}}),)


@pytest.mark.parametrize(
    "steps",
    [
        [model(), tool(arguments={"query": "my order"})],
        [model(), tool(arguments={"query": "x"}, result=[{"order": 1, "user_id": "u_7710"}])],
        [model(), tool(arguments={"query": "x"}), tool(arguments={"query": "y", "user_id": "u_7710"})],
        [model(), tool(arguments={"query": "x"}), tool("get_cart", {"cart": 5}, user_id="u_7710")],
        [model(), tool(arguments={"query": "x"}, tenant_id="t_1")],
        [model(tools=TAKES_USER), tool(arguments={"query": "x", "user_id": None})],
        [model(tools=TAKES_USER), tool(arguments=None)],
    ],
)
def test_call_that_does_not_say_for_whom_is_found(steps):
    run = make_run(*steps, model(), user_id="u_7710")

    assert found("unscoped_call", run) == [("lookup_order was called without user_id", (2,))]


@pytest.mark.parametrize("arguments", [{"city": "Graz"}, {"city": None}, {"text": "how do I reset my password"}, None])
def test_a_tool_of_which_nothing_shows_that_it_acts_for_somebody_is_not_accused(arguments):
    beside = tool("get_profile", {"user_id": "u_7710"}, {"name": "Ann"})
    run = make_run(model(), beside, tool("get_weather", arguments, {"sky": "clear"}), model(), user_id="u_7710")

    assert found("unscoped_call", run) == []


@pytest.mark.parametrize(
    "step",
    [
        tool(arguments={"user_id": "u_7710"}),
        tool(arguments={"customer_id": 5}),
        tool(arguments={"filter": {"owner": ["u_7710"]}}),
        tool(arguments={"tenant_id": "t_1"}),
        tool(arguments='{"who": "u_7710"}'),
        tool(arguments={"query": "x"}, user_id="u_7710"),
        tool(arguments={"answer": 1}, is_output=True),
    ],
)
def test_call_that_says_for_whom_is_no_anomaly(step):
    assert found("unscoped_call", make_run(model(), step, model(), user_id="u_7710")) == []


def test_run_that_knows_only_its_tenant_asks_for_it():
    steps = [model(tools=TAKES_USER), tool(), model()]

    assert found("unscoped_call", make_run(*steps, tenant_id="t_1")) == [
        ("lookup_order was called without tenant_id", (2,))
    ]
    assert found("unscoped_call", make_run(*steps)) == []


def test_call_for_somebody_else_is_found():
    wrong = make_run(model(), tool(arguments={"user_id": "u_2"}), user_id="u_1")
    right = make_run(model(), tool(arguments={"user_id": "u_1"}), user_id="u_1")

    message = "lookup_order was called with user_id u_2; the run is for u_1"
    assert found("other_identity", wrong) == [(message, (2,))]
    assert found("other_identity", right) == []


ORDER = {"order_id": "ORD-12", "user_id": "u_2", "status": "shipped"}
OWN_ORDER = {**ORDER, "user_id": "u_1"}


def looked_up_and_cancelled(*answers, cancelled="ORD-12", **asked):
    lookups = [tool("lookup_order", {"order_id": "ORD-21"} | asked, result=answer) for answer in answers]
    return make_run(*lookups, tool("cancel_order", {"order_id": cancelled}), user_id="u_1")


@pytest.mark.parametrize("asked", ["Forward it to u_9, please.", "And now for (u_9)."])
def test_a_call_for_somebody_whom_the_question_names_is_in_order(asked):
    forward = tool("forward", {"user_id": "u_9"})

    assert found("other_identity", make_run(model(), forward, user_id="u_1", input=payload(asked))) == []
    told = history(request_message(prompt(asked)), response_message("Whom else?"), request_message(prompt("Nobody.")))
    assert found("other_identity", make_run(model(history=told), forward, user_id="u_1")) == []


def test_a_call_for_somebody_whom_the_question_does_not_name_as_a_word_is_found():
    run = make_run(model(), tool("forward", {"user_id": "u_9"}), user_id="u_1", input=payload("Forward it to u_99."))

    assert len(found("other_identity", run)) == 1


def test_call_with_what_a_tool_gave_as_somebody_elses_is_found():
    """As a hint: nothing went wrong for certain."""
    run = looked_up_and_cancelled(ORDER)

    said = "lookup_order returned a record of u_2, and cancel_order was called with its ORD-12; the run is for u_1"
    assert found("used_of_other", run) == [(said, (1, 2))]
    assert [each.weight for each in find_anomalies(run) if each.code == "used_of_other"] == [1]


@pytest.mark.parametrize(
    "run",
    [
        looked_up_and_cancelled(OWN_ORDER),
        looked_up_and_cancelled(ORDER, cancelled="ORD-21"),
        looked_up_and_cancelled(ORDER, user_id="u_2"),
        looked_up_and_cancelled([ORDER, {**ORDER, "user_id": "u_3"}]),
        looked_up_and_cancelled(ORDER, {**ORDER, "user_id": "u_3"}),
        looked_up_and_cancelled({"user_id": "u_2"}, cancelled="u_2"),
        make_run(tool("lookup_order", {}, result=ORDER), tool("lookup_order", {"order_id": "ORD-12"}), user_id="u_1"),
        make_run(tool("lookup_order", {}, result=ORDER), tool("cancel_order", {"order_id": "ORD-12"})),
    ],
)
def test_who_asks_for_others_or_is_given_several_is_not_accused(run):
    assert found("used_of_other", run) == []


# --- models, state, time -----------------------------------------------------------------------


def test_model_that_changes_on_the_way_is_found():
    changed = make_run(model(model="a"), tool(), model(model="b"))
    inside = make_run(model(model="a"), tool(), model(model="b", parent=2), model(model="a"))

    assert found("model_changed", changed) == [("Model changed: a, then b", (1, 3))]
    assert found("model_changed", inside) == []


def test_other_model_in_the_answer_is_found():
    other_one = make_run(*[model(model="gpt-4o", answered_model="gpt-4o-mini")] * 2)
    dated = make_run(model(model="openai:gpt-4o", answered_model="gpt-4o-2024-08-06"))

    assert found("other_model_answered", other_one) == [("Requested gpt-4o, but gpt-4o-mini answered", (1, 2))]
    assert found("other_model_answered", dated) == []


@pytest.mark.parametrize(
    ("asked", "answered", "same"),
    [
        ("sonnet-4", "sonnet-4-20251101", True),
        ("sonnet-4", "sonnet-4-2511", True),
        ("sonnet-4-2510", "sonnet-4-2511", False),
        ("models/gemini", "gemini", True),
        ("gpt-4", "gpt-4o", False),
        ("fallback:gpt-4,sonnet-4", "sonnet-4-2511", True),
        ("fallback:gpt-4,sonnet-4", "fallback:gpt-4,sonnet-4", True),
        ("fallback:gpt-4,sonnet-4", "gpt-4o", False),
        ("fallback:gpt-4,sonnet-4", "fallback:gpt-4,gpt-4o", False),
    ],
)
def test_dated_version_is_the_same_model(asked, answered, same):
    assert is_same_model(asked, answered) is same


def test_broken_state_chain_is_found():
    change = ({"op": "replace", "path": "/docs", "value": 0},)
    broken = make_run(model(state=StateChange()), tool(state=StateChange(before=change)))
    whole = make_run(model(state=StateChange()), tool(state=StateChange(after=change)))

    message = "State changed between steps, not by a step: /docs"
    assert found("state_chain_broken", broken) == [(message, (1, 2))]
    assert found("state_chain_broken", whole) == []


def timed(name: str, start: int, length: int) -> Step:
    at = NOON + timedelta(milliseconds=start)
    return tool(name, {"id": name}, started_at=at, duration_ms=float(length))


def test_parallel_calls_that_overtake_are_found():
    overtaken = make_run(model(), timed("a", 0, 300), timed("b", 10, 100), model())
    in_order = make_run(model(), timed("a", 0, 100), timed("b", 10, 100), model())
    in_turn = make_run(model(), timed("a", 0, 100), timed("b", 100, 10), model())

    message = "Parallel calls finished out of order: a (step 2) and b (step 3)"
    assert found("finish_order", overtaken) == [(message, (2, 3))]
    assert found("finish_order", in_order) == []
    assert found("finish_order", in_turn) == []


def test_slow_step_is_found():
    assert found("slow_step", make_run(model(duration_ms=30_001.0))) == [("1 slow step, the longest took 30.0 s", (1,))]
    assert found("slow_step", make_run(model(duration_ms=30_000.0))) == []


def test_first_odd_step_is_the_repeat_and_no_remark():
    run = make_run(model(duration_ms=40_000.0), *[tool("pay", {"id": 1})] * 2, model())

    assert codes(find_anomalies(run)) == ["duplicate_call", "slow_step"]
    assert first_odd_step(find_anomalies(run)) == 3
    assert first_odd_step([]) is None


def test_nothing_is_odd_about_a_run_of_other_work():
    assert find_anomalies(make_run(other(), model())) == []


# --- another sum than was told -----------------------------------------------------------------

MADE = (90, 97, 110, 300, 103, 33.33, 400)
SUMS = [*((amount, []) for amount in MADE), (55, ["other_sum"]), (33.3, ["other_sum"])]


@pytest.mark.parametrize(("amount", "found"), SUMS)
def test_another_sum_than_was_told_is_found_unless_a_recorded_number_makes_it(amount, found):
    told = tool("order", {"id": "A-1", "n": 3, "less": 10}, {"amount": 100})
    run = make_run(told, tool("refund", {"id": "A-1", "amount": amount}, "done"))

    assert [code for code in codes(find_anomalies(run)) if code == "other_sum"] == found


def test_sums_of_many_calls_cost_no_more_than_their_number():
    def judge(calls: int) -> None:
        told = [tool("pay", {"id": "A", "amount": n + 0.123}, {"amount": n + 1_000_000.5}) for n in range(calls)]
        assert "other_sum" in codes(find_anomalies(make_run(*told)))

    assert growth(judge, 100, 400) < LINEAR


# --- answers that say more than was done or found ------------------------------------------------


def answered(text: str, *steps: Step) -> Run:
    return make_run(model(), *steps, model(text), output=payload(text))


SENT = "Your message was sent to Ann."
REJECTED = tool("send_message", {"to": "Ann"}, {"status": "rejected"})


@pytest.mark.parametrize("state", ["rejected", "Declined", "denied"])
def test_a_refusal_that_the_answer_does_not_tell_is_found(state):
    run = answered(SENT, tool("send_message", {"to": "Ann"}, {"status": state}))

    message = f"send_message answered {state.lower()}, and the answer does not say so"
    assert found("refusal_unsaid", run) == [(message, (2,))]
    assert first_odd_step(find_anomalies(run)) == 2


@pytest.mark.parametrize(
    "run",
    [
        answered("Your message was rejected.", REJECTED),
        answered("Your message was not sent.", REJECTED),
        answered("Unfortunately the service rejects it; I have opened a ticket.", REJECTED),
        answered("Which address should I use?", REJECTED),
        answered(SENT, REJECTED, tool("send_message", {"to": "ann@example.com"}, {"status": "queued"})),
        answered("Your claim was filed on Monday.", tool("get_claim", {"id": 7}, {"status": "rejected"})),
        answered("Your claim was filed.", tool("claim", {"id": 7}, {"status": "denied"}, extra={"tool_kind": "read"})),
        answered(SENT, tool("send_message", {"to": "Ann"}, {"status": "sent"})),
    ],
    ids=["told", "denied", "apology", "question", "sent in the end", "looked up", "reads", "sent"],
)
def test_a_refusal_that_is_told_or_was_looked_up_is_in_order(run):
    assert found("refusal_unsaid", run) == []


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"decision": "refused"}, "refused"),
        ({"state": "declined", "by": "Ann"}, "declined"),
        ({"request": {"result": "Denied"}}, "denied"),
        ({"outcome": "failed"}, "failed"),
        ({"approved": False}, "approved: false"),
    ],
)
def test_a_refusal_is_read_wherever_an_answer_says_it(answer, said):
    run = answered("I have refunded 540 EUR.", tool("ask_approval", {"sum": 540}, answer), tool("refund", {"sum": 540}))

    message = f"ask_approval answered {said}, refund was called anyway, and the answer does not say so"
    assert found("refusal_unsaid", run) == [(message, (2,))]


@pytest.mark.parametrize("text", ["Paid: 420 EUR with your card.", "Thank you. Booked!", "The room is ready."])
def test_an_answer_says_in_many_ways_that_something_is_done(text):
    assert found("refusal_unsaid", answered(text, tool("charge", {"id": 1}, {"status": "declined"})))


@pytest.mark.parametrize(
    "run",
    [
        answered("I have opened the change.", tool("open_change", {"id": 7}, {"state": "open", "approved": False})),
        answered("It is placed, and paid.", tool("place_order", {"id": 7}, {"order": {"id": 1}, "accepted": False})),
        answered("I have sent your parcel back.", tool("return_parcel", {"id": 7}, {"status": "returned"})),
        answered("The payment was returned.", tool("pay", {"id": 7}, {"status": "returned"})),
        answered("Your card was turned down.", tool("pay", {"id": 7}, {"status": "declined"})),
        answered(
            "Ann is invited.", tool("invite", {"id": 7}, {"guests": [{"state": "declined"}, {"state": "denied"}]})
        ),
    ],
    ids=["not approved yet", "under way", "what was to be done", "told", "in other words", "of a list"],
)
def test_a_state_that_is_no_refusal_or_is_told_is_in_order(run):
    assert found("refusal_unsaid", run) == []


def test_money_that_was_sent_back_was_refused():
    run = answered("The invoice is paid.", tool("create_payment", {"id": 7}, {"state": "returned"}))

    message = "create_payment answered returned, and the answer does not say so"
    assert found("refusal_unsaid", run) == [(message, (2,))]


ROLL_OUT = tool("roll_out", {"build": 91}, {"id": "ro_1", "status": "started"})
PAY = tool("pay", {"invoice": "i_7"}, {"payment": "p_1", "status": "pending"})


def waited(*states: str) -> list[Step]:
    return [tool("roll_out_status", {"id": "ro_1"}, {"status": state}) for state in states]


@pytest.mark.parametrize(
    ("run", "name", "at"),
    [
        (answered("Build 91 is live.", ROLL_OUT, *waited("pending", "pending")), "roll_out_status", 4),
        (answered("Invoice i_7 is paid.", PAY, tool("update_ledger", {"payment": "p_1"}, {"state": "paid"})), "pay", 2),
    ],
    ids=["asked in vain", "an act"],
)
def test_what_is_not_over_and_is_called_done_is_found(run, name, at):
    message = f"{name} last reported pending, but the answer says that it is done"

    assert found("unfinished_unsaid", run) == [(message, (at,))]
    assert first_odd_step(find_anomalies(run)) == at


@pytest.mark.parametrize(
    "run",
    [
        answered("Build 91 is live.", ROLL_OUT, *waited("pending", "live")),
        answered("Invoice i_7 is paid.", PAY, tool("get_payment", {"payment": "p_1"}, {"status": "settled"})),
        answered("Build 91 is live soon.", ROLL_OUT, *waited("pending", "pending")),
        answered("Build 91 is not live.", ROLL_OUT, *waited("pending", "pending")),
        answered("Your refund is submitted and the ticket is closed.", PAY),
        answered("Your order is paid.", tool("get_order", {"id": 7}, {"status": "pending"})),
        answered("Your parcel is heavy.", PAY),
        answered("The server is up.", tool("start_server", {"id": 7}, {"state": "running"})),
    ],
    ids=["went live", "asked for", "under way", "denied", "submitted", "one look", "of something else", "a server"],
)
def test_what_was_over_or_is_not_called_done_is_in_order(run):
    assert found("unfinished_unsaid", run) == []


def test_states_of_many_calls_cost_no_more_than_their_number():
    def ran(number: int) -> Run:
        begun = [tool("start", {"n": n}, {"job": n, "status": "pending"}) for n in range(number)]
        return answered(
            "All is done.", *begun, *[tool("get_job", {"job": n}, {"status": "done"}) for n in range(number)]
        )

    assert growth(find_anomalies, ran(300), ran(1_200)) < LINEAR


LINES = {"items": [{"name": "tea", "price": 40}, {"name": "milk", "price": 25}, {"name": "eggs", "price": 10.5}]}


def summed(answer: str, *more: Step, lines=LINES, **fields) -> Run:
    return make_run(model(), tool("list_cart", None, lines), *more, model(), output=payload(answer), **fields)


@pytest.mark.parametrize("answer", ["Your total is 85.", "In all $85.00, thank you!"])
def test_a_total_that_is_not_the_sum_of_the_lines_is_a_hint(answer):
    message = "The answer gives a total of 85, but the lines of list_cart add up to 75.5"

    assert found("other_total", summed(answer)) == [(message, (2,))]
    assert first_odd_step(find_anomalies(summed(answer))) is None


def test_the_id_of_the_question_and_a_tool_without_numbers_are_no_other_source():
    bill = tool("get_bill", {"id": "INV-2041"}, {"id": "INV-2041", "currency": "EUR"})
    run = summed("The total of INV-2041 is €85.00.", bill, input=payload("What is the total of INV-2041?"))

    assert [steps for _, steps in found("other_total", run)] == [(2,)]


PAGE = [{"id": n, "price": 10} for n in range(3)]


@pytest.mark.parametrize(
    "run",
    [
        summed("Your total is 75.50 €."),
        summed("Your total is 1,000.50.", lines=[{"price": 1000}, {"price": 0.5}]),
        summed("Three items in all, the dearest costs 40."),
        summed("The total of the two dearest is 65."),
        summed("You have 3 items in all."),
        summed("Your total is 85, with 9.50 for shipping."),
        summed("The cart c_85 holds three in all."),
        summed("The mean price is 25.17."),
        summed("Your total is 85.", tool("shipping", None, {"price": 9.5})),
        summed("Your total is 85.", input=payload("My cart and 9.50 for shipping, please.")),
        summed("Your total is 85.", instructions="Add 9.50 for shipping."),
        summed("Your total is 85.", lines={**LINES, "shipping": 9.5}),
        summed("Your total is 85.", lines=PAGE),
        summed("Your total is 85.", retrieval(("c1", 0.9, "Shipping is 9.50."))),
        make_run(model(), tool("list_cart", {"shipping": 9.5}, LINES), output=payload("Your total is 85.")),
        summed("Your total is 85.", lines="40, 25 and 10.50"),
    ],
)
def test_a_total_that_may_be_made_of_other_numbers_is_in_order(run):
    assert found("other_total", run) == []


# --- ids that nobody named -----------------------------------------------------------------------


def asked(text: str, *steps: Step, **fields) -> Run:
    return make_run(model(), *steps, model(), input=payload(text), **fields)


CLOSE = "Close the account of c_12."
TURN_OF_C_21 = history(request_message(prompt("Who is c_21?")), response_message("It is Ann."))
CLOSED = tool("close_account", {"customer": "c_21"}, {"ok": True})


def test_an_id_that_nobody_named_is_found():
    said = history(request_message(prompt(CLOSE), timestamp="2026-02-21T21:21:00Z"))
    policy = tool("get_policy", {"topic": "closing"}, "Ask for the reason.")
    run = make_run(model(history=said), policy, CLOSED, model(), input=payload(CLOSE))

    message = "close_account acted on c_21, which nobody named; the question names c_12"
    assert found("unnamed_id", run) == [(message, (3,))]
    assert first_odd_step(find_anomalies(run)) == 3


def test_ids_are_spelled_as_they_were_recorded():
    run = asked("Close C-12.", tool("close_account", {"customer": "C-21"}, {"ok": True}))

    message = "close_account acted on C-21, which nobody named; the question names C-12"
    assert found("unnamed_id", run) == [(message, (2,))]


def guest(charged: str, *more: Step, **fields) -> Run:
    find = tool("find_guest", {"room": "412"}, {"guest_id": "g_412", "name": "Irene"})
    charge = tool("list_charges", {"guest_id": charged}, [{"amount": 61.5}])
    return make_run(model(), find, *more, charge, model(), input=payload("Charge room 412."), **fields)


def test_the_digits_of_an_id_that_a_tool_gave_in_another_order_are_found():
    message = "list_charges acted on g_214, which nobody named; an earlier answer gives g_412"

    assert found("unnamed_id", guest("g_214")) == [(message, (3,))]


@pytest.mark.parametrize(
    "run",
    [
        guest("g_412"),
        guest("g_215"),
        guest("h_214"),
        guest("g_214", tool("find_guest", {"room": "214"}, {"guest_id": "g_214"})),
        guest("g_214", tool("list_charges", {"guest_id": "g_142"}, [])),
        guest("g_214", instructions="Guest 214 pays for all."),
        make_run(*[tool("copy", {"table": f"t_{n:02}"}, {"table": f"t_{n:02}"}) for n in range(22)], model()),
    ],
    ids=["given", "other digits", "other prefix", "given too", "a row", "instructions", "of the same tool"],
)
def test_an_id_that_is_not_that_of_a_tool_with_its_digits_turned_is_in_order(run):
    assert found("unnamed_id", run) == []


CREDIT = "Customer C-2041 got a broken lamp. Please give her store credit."
HITS = [
    {"customer_id": "C-2041", "name": "Maria Keller", "manager": "C-2040"},
    {"customer_id": "C-2014", "name": "Mario Keller"},
]


def credited(customer: str, answer: str, *more: Step, question: str = CREDIT, before: str = "C-2041") -> Run:
    search, read = tool("search_customers", {"query": "Keller"}, HITS), tool("get_customer", {"customer_id": before})
    credit = tool("issue_credit", {"customer_id": customer, "amount": 64.95}, {"ok": True})
    return make_run(model(), search, read, credit, *more, model(), input=payload(question), output=payload(answer))


def test_an_act_on_another_than_the_question_and_the_answer_speak_of_is_found():
    run = credited("C-2014", "Maria Keller now has 64.95 of store credit.")

    message = "issue_credit acted on C-2014; the question and the answer name C-2041"
    assert found("other_id", run) == [(message, (4,))]
    assert first_odd_step(find_anomalies(run)) == 4


@pytest.mark.parametrize(
    "run",
    [
        credited("C-2041", "Maria Keller now has 64.95 of store credit."),
        credited("C-2014", "Mario Keller now has 64.95 of store credit for Maria Keller's lamp."),
        credited("C-2014", "C-2014 has it, for Maria Keller."),
        credited("C-2014", "Done."),
        credited("C-2014", "Maria Keller now has it.", question=f"{CREDIT} Her husband is C-2014."),
        credited("C-2014", "Maria Keller now has it.", before="C-2014"),
        credited("C-2014", "Maria Keller now has it.", tool("remind", {"customer_id": "C-2099"})),
        credited("C-2015", "Maria Keller now has it."),
        credited("C-2040", "The manager of Maria Keller (C-2041) has it."),
    ],
    ids=[
        "the same",
        "named",
        "its id named",
        "of neither",
        "asked for",
        "looked at before",
        "a row",
        "not told",
        "of its record",
    ],
)
def test_an_act_on_another_that_the_answer_speaks_of_or_that_is_one_of_a_row_is_in_order(run):
    assert found("other_id", run) == []


@pytest.mark.parametrize(
    "run",
    [
        asked(CLOSE, tool("close_account", {"customer": "c_12"}, {"ok": True})),
        asked(CLOSE, tool("find_customer", {"old": "c_12"}, {"id": "c_21"}), CLOSED),
        asked(CLOSE, tool("find_customer", {"old": "c_12"}, {"id": 21}), CLOSED),
        asked(CLOSE, tool("find_customer", {"old": "c_12"}, None), CLOSED),
        asked("Close c_12 to c_25.", CLOSED),
        asked("Close every account from c_12 on.", CLOSED, tool("close_account", {"customer": "c_22"}, {"ok": True})),
        asked("What is new since c_12?", tool("close_account", {"customer": "c_12"}, 1), CLOSED),
        asked(CLOSE, tool("close_account", {"customer": "a_21"}, {"ok": True})),
        asked(CLOSE, tool("close_account", {"customer": "c_2100"}, {"ok": True})),
        asked("Close my account.", CLOSED),
        asked(CLOSE, CLOSED, instructions="Always close c_21 as well."),
        asked(CLOSE, CLOSED, prior=TURN_OF_C_21),
    ],
    ids=[
        "asked", "a tool told it", "told as a number", "not recorded", "a range", "a row", "compared", "other prefix",
        "other form", "none asked", "instructions", "earlier turn",
    ],
)  # fmt: skip
def test_an_id_that_was_named_or_may_have_been_is_in_order(run):
    assert found("unnamed_id", run) == []


def test_ids_of_many_calls_cost_no_more_than_their_number():
    def looked_up(number: int) -> Run:
        return asked(CLOSE, *[tool("look", {"id": f"c_{n % 80 + 13}"}, {"n": n}) for n in range(number)])

    assert growth(find_anomalies, looked_up(1_000), looked_up(4_000)) < LINEAR
