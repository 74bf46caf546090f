"""Forks of recordings: what holds after a change, and where every answer came from."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from agents import handoff
from pydantic_ai.capabilities import ProcessHistory

from benchmarks.compare_runs import make_run
from sessions_app.core.compare.runs import compare_runs
from sessions_app.core.fork.answering import tool_key
from sessions_app.core.fork.expected_words import OF_CODE_NOT_RUN
from sessions_app.core.formats.detect import parse_document
from sessions_app.core.formats.json_writer import iso
from sessions_app.core.formats.native import encode_native, parse_native, run_digest
from sessions_app.core.goldens.traces import trace_of
from sessions_app.core.history import messages
from sessions_app.core.judge.verdict import judge
from sessions_app.core.payload import JsonObject, Payload
from sessions_app.core.replay.request_key import RequestKeys
from sessions_app.core.run import ErrorInfo, ModelCall, Run, ToolCall
from sessions_app.core.state import state_after
from tests.agents.forking import REFUSAL, Elsewhere, answer_of, example, forked, outcome, sources
from tests.agents.own_agents import recorded_run
from tests.growth import LINEAR, growth
from tests.recorder import openai_playing as openai
from tests.recorder import playing
from tests.recorder.replaying import replayed, verdict_of
from tests.recorder.scenarios import (
    Play,
    call,
    native_output,
    one_tool,
    parallel_tools,
    request_limit,
    says,
    support_agent,
    token_limit,
    tool_beside_output,
    tool_calls_limit,
    validation_errors,
)

RECORDS = [*sorted(Path("tests/records").glob("*.json")), *sorted(Path("sessions_app/examples").glob("*.json"))]
UNCHANGED = {"kind": "clock", "value": 0}


def asks_for_user(value: object = "u_7710") -> dict[str, object]:
    call = {"name": "lookup_order", "arguments": {"query": "my order", "user_id": value}}
    return {"kind": "model_answer", "step": 2, "value": {"tool_calls": [call]}}


def _by_function(run: Run) -> Run:
    return replace(run, output=Payload.of(42), agent=replace(run.agent, output_function="up"))


def _by_check(run: Run) -> Run:
    return replace(run, output=Payload.of_text("hey!"), agent=replace(run.agent, output_changed=True))


def _by_tripwire(run: Run) -> Run:
    error = ErrorInfo(type="OutputGuardrailTripwireTriggered", message="Guardrail triggered tripwire")
    return replace(run, output=None, status="error", error=error)


@pytest.mark.parametrize("change", [_by_function, _by_check, _by_tripwire])
@pytest.mark.parametrize(
    ("expect", "met", "source"),
    [
        ({"contains": "documents"}, None, "code_not_run"),
        ({"equals": 42}, None, "code_not_run"),
        ({"ends_within": 9}, None, "code_not_run"),
        ("It refuses.", None, "code_not_run"),
        ({"ends_within": 1}, False, None),
    ],
)
def test_an_outcome_that_depends_on_code_which_did_not_run_is_not_judged(change, expect, met, source):
    result, made = forked(change(example("r_8821")), 1, UNCHANGED, expect=expect)

    expectation = result.facts["expectation"]
    assert (result.verdict, expectation["met"], expectation["source"]) == ("unknown_from_step", met, source)
    assert result.facts["proof"]["outcome"]["state"] == "not_comparable"
    seen = trace_of(made)
    assert (seen.has_ended, seen.output, seen.why_not_ended) == (False, None, OF_CODE_NOT_RUN)


# --- nothing changed ---------------------------------------------------------------------------


@pytest.mark.parametrize("path", [path for path in RECORDS if path.name != "manifest.json"], ids=lambda path: path.name)
def test_a_fork_that_changes_nothing_is_the_recording_again(path: Path):
    run = parse_document(path.read_bytes())

    for step in range(1, len(run.steps) + 1):
        result, made = forked(run, step, UNCHANGED)
        if _is_behind_the_end(run, step):
            assert (result.verdict, made) == ("could_not_run", None)
        elif judge(run).verdict != "replayable":  # its outcome cannot be proven, so neither can the fork's
            assert result.verdict == "unknown_from_step"
        elif (run.run_id, step) == ("run_xyz789", 41):  # this request was never answered
            assert (result.verdict, result.stopped["step"]) == ("unknown_from_step", 41)
        else:
            assert (result.verdict, result.divergence) == ("reproduced", None), step
            assert set(sources(made)) <= {"recorded"}


@pytest.mark.parametrize("play", [token_limit, request_limit, tool_calls_limit])
def test_what_was_used_before_a_fork_counts_for_the_limits_of_the_run(play):
    run = parse_native(playing.recorded(play())[0])

    made = [forked(run, step.index, UNCHANGED)[0] for step in run.steps[:-1]]

    assert run.error.type == "UsageLimitExceeded"
    assert [(each.verdict, each.divergence) for each in made] == [("reproduced", None)] * len(made)


def _is_behind_the_end(run: Run, step: int) -> bool:
    return not any(each.kind in ("model", "tool") for each in run.steps[step - 1 :])


@pytest.mark.parametrize(("shift", "seconds"), [(0, 0), (3600, 3600)])
def test_a_fork_says_at_which_time_its_clock_stands(shift, seconds):
    run = example("cancel_bug")

    result, _ = forked(run, 2, {"kind": "clock", "value": shift})

    begun = run.steps[1].started_at
    assert begun is not None
    assert result.facts["clock"] == iso(begun + timedelta(seconds=seconds))


def test_a_run_without_times_pins_no_clock():
    run = example("cancel_bug")
    timeless = replace(run, started_at=None, steps=tuple(replace(step, started_at=None) for step in run.steps))

    assert forked(timeless, 2, UNCHANGED)[0].facts["clock"] is None


def test_the_parent_is_untouched():
    run = example("cancel_bug")
    before = run_digest(run)

    forked(run, 3, {"kind": "state", "step": 3, "patch": [{"op": "remove", "path": "/orders"}]})

    assert run_digest(run) == before


def test_a_fork_is_linked_to_its_parent():
    _, made = forked(example("r_8821"), 3, UNCHANGED)

    assert (made.origin, made.parent.run_id, made.parent.step) == ("fork", "r_8821", 3)


# --- rules -------------------------------------------------------------------------------------


def test_a_rule_ends_the_twenty_searches_after_two_steps():
    rule = {"kind": "rule", "when": "docs is empty", "answer": {"text": REFUSAL}}

    result, made = forked(
        example("run_xyz789"), "step_1", rule, expect={"at_most_calls": {"tool": "search_docs", "n": 3}}
    )

    assert result.verdict == "diverged"
    assert outcome(made) == ("ok", REFUSAL)
    assert sources(made) == ["recorded", "recorded", "rule"]
    assert result.facts["steps_after"] == 2
    assert result.facts["expectation"] == {
        "words": "at most 3 calls of search_docs",
        "met": True,
        "seen": "search_docs was called 1 ×.",
        "source": "rule",
    }


def test_a_rule_whose_condition_never_holds_changes_nothing():
    rule = {"kind": "rule", "when": "docs is not empty", "answer": REFUSAL}

    result, made = forked(example("run_xyz789"), 1, rule)

    assert (result.verdict, made.error.type, "rule" in sources(made)) == ("reproduced", "TimeoutError", False)


def test_who_resumes_a_run_wants_to_get_past_its_failure():
    resumed, _ = forked(example("run_xyz789"), 39)

    assert (resumed.verdict, resumed.stopped["step"]) == ("unknown_from_step", 41)


def test_a_rule_sees_the_answer_that_came_before_the_fork():
    rule = {"kind": "rule", "when": 'docs is empty and tool = "search_docs"', "answer": REFUSAL}

    _, made = forked(example("run_xyz789"), 3, rule)

    assert (sources(made), outcome(made)) == (["recorded", "recorded", "rule"], ("ok", REFUSAL))


def test_a_rule_may_count_calls():
    rule = {"kind": "rule", "when": "calls.search_docs >= 3", "answer": REFUSAL}

    _, made = forked(example("run_xyz789"), 1, rule)

    assert sources(made) == ["recorded"] * 6 + ["rule"]


# --- unknown, and answers by hand --------------------------------------------------------------


def test_a_call_that_was_never_recorded_stops_the_fork_and_names_what_differs():
    result, made = forked(example("r_8821"), 2, asks_for_user())

    assert result.verdict == "unknown_from_step"
    assert (result.divergence.step, result.divergence.path) == (3, "args.user_id")
    assert (result.divergence.recorded, result.divergence.replayed) == (None, "u_7710")
    assert result.stopped["arguments"] == {"query": "my order", "user_id": "u_7710"}
    assert sources(made) == ["by_hand", "unknown"]
    assert outcome(made) == ("cut_off", None)


def test_a_fork_that_stopped_says_where_it_first_differs_beside_where_it_stopped():
    """Both forks make the same change: the step of their first difference is one."""
    change = {"kind": "tool_result", "step": 2, "value": "no such order"}

    stopped, _ = forked(example("cancel_bug"), 2, change)
    played, _ = forked(example("cancel_bug"), 2, change, on_difference="play_on")

    assert (stopped.divergence.step, played.divergence.step) == (3, 2)
    assert stopped.facts["first_difference"] == {"step": 2, "path": played.divergence.path}


@pytest.mark.parametrize(("value", "absent"), [({"docs": [], "count": None}, None), ({"docs": []}, "replayed")])
def test_a_key_that_a_fork_took_away_is_absent_and_not_null(value, absent):
    change = {"kind": "tool_result", "step": 2, "value": value}

    result, _ = forked(example("run_xyz789"), 2, change, on_difference="play_on")

    assert (result.divergence.path, result.divergence.replayed) == ("result.count", None)
    assert result.facts.get("absent") == absent


def test_a_fork_goes_on_with_answers_by_hand():
    run, change = example("r_8821"), asks_for_user()
    orders = [{"order": "#4398", "user_id": "u_7710"}]
    stop = forked(run, 2, change)[0].stopped
    first = {"at": stop["at"], "asked": stop["asked"], "value": orders}
    stop = forked(run, 2, change, answers=[first])[0].stopped
    second = {"at": stop["at"], "asked": stop["asked"], "answer": {"text": "Order #4398 is processing."}}

    result, made = forked(run, 2, change, answers=[first, second])

    assert result.verdict == "diverged"
    assert sources(made) == ["by_hand", "by_hand", "by_hand"]
    assert answer_of(made, 3) == orders
    assert outcome(made) == ("ok", "Order #4398 is processing.")


def test_an_answer_serves_only_what_it_was_given_to():
    run, change = example("r_8821"), asks_for_user()
    stop = forked(run, 2, change)[0].stopped
    other = tool_key("lookup_order", {"query": "another"})

    result, _ = forked(run, 2, change, answers=[{"at": stop["at"], "asked": other, "value": []}])

    assert (result.verdict, result.stopped["at"]) == ("unknown_from_step", stop["at"])


@pytest.mark.parametrize(
    ("answer", "seen"),
    [
        ({"error": "The index is down."}, ("failed", "The index is down.")),
        ({"not_found": True}, ("failed", "Not found.")),
        ({"value": None}, ("success", None)),
    ],
)
def test_an_answer_by_hand_may_be_an_error_or_nothing(answer, seen):
    run, change = example("r_8821"), asks_for_user()
    stop = forked(run, 2, change)[0].stopped

    _, made = forked(run, 2, change, answers=[{"at": stop["at"], "asked": stop["asked"], **answer}])

    call = made.steps[2].call
    assert isinstance(call, ToolCall)
    assert (call.outcome, call.result.value) == seen


def test_an_answer_whose_keys_stand_in_another_order_is_another_answer():
    run = parse_native(playing.recorded(one_tool())[0])
    recorded = run.steps[1].call.result.value
    turned = dict(reversed(recorded.items()))

    result, made = forked(run, 2, {"kind": "tool_result", "step": 2, "value": turned})

    assert (result.verdict, sources(made)) == ("unknown_from_step", ["recorded", "by_hand", "unknown"])
    assert list(answer_of(made, 2)) == list(turned) != list(recorded)
    assert forked(run, 2, {"kind": "tool_result", "step": 2, "value": recorded})[0].verdict == "reproduced"


def test_an_answer_to_the_same_keys_in_another_order_is_not_borrowed():
    run = parse_native(playing.recorded(one_tool())[0])
    recorded, asked = run.steps[1].call.result.value, run.model_calls[1][1]
    lent = {"response": asked.response.value, "run_id": "another", "step": 3}
    elsewhere = Elsewhere(models={RequestKeys().of(asked, run.model).hex(): lent})
    turned = dict(reversed(recorded.items()))

    _, made = forked(run, 2, {"kind": "tool_result", "step": 2, "value": turned}, elsewhere=elsewhere)

    assert sources(made) == ["recorded", "by_hand", "unknown"]


def crash_behind_a_tool() -> Play:
    both = says(call("search", {"query": "x"}, "a"), call("crm_note", {"text": "x"}, "b"))
    return Play(support_agent(both), "Both")


@pytest.mark.parametrize("scenario", [tool_beside_output, crash_behind_a_tool])
def test_an_outcome_that_no_request_to_the_model_led_to_since_the_change_proves_nothing_about_it(scenario):
    run = parse_native(playing.recorded(scenario())[0])
    change = {"kind": "tool_result", "step": 2, "value": "changed"}

    result, made = forked(run, 2, change, expect={"ends_within": 3}, on_difference="play_on")

    assert (made.status, result.verdict) == (run.status, "diverged")
    assert (result.facts["expectation"]["met"], result.facts["expectation"]["source"]) == (True, "no_difference")


# --- borrowed ----------------------------------------------------------------------------------


def test_a_call_that_another_run_made_is_borrowed_with_its_link():
    found = {"call": {"result": [{"order": "#4398"}], "outcome": "success"}, "run_id": "r_8822", "step": 3}
    elsewhere = Elsewhere(tools=[("lookup_order", {"query": "my order", "user_id": "u_7710"}, found)])

    result, made = forked(example("r_8821"), 2, asks_for_user(), elsewhere=elsewhere)

    assert sources(made) == ["by_hand", "borrowed", "unknown"]
    assert result.facts["links"] == [{"step": 3, "source": "borrowed", "run_id": "r_8822", "from_step": 3}]
    assert answer_of(made, 3) == [{"order": "#4398"}]


def test_a_request_that_another_run_made_is_borrowed():
    run = example("r_8821")
    change = {"kind": "tool_result", "step": 3, "value": []}
    key = forked(run, 3, change)[0].stopped["asked"]
    said = {"parts": [{"content": "You have no orders.", "part_kind": "text"}], "kind": "response"}
    elsewhere = Elsewhere(models={key: {"response": said, "run_id": "r_9000", "step": 4}})

    result, made = forked(run, 3, change, elsewhere=elsewhere)

    assert (sources(made), outcome(made)) == (["recorded", "by_hand", "borrowed"], ("ok", "You have no orders."))
    assert [link["run_id"] for link in result.facts["links"]] == ["r_9000"]


def test_a_forks_request_has_the_key_that_it_will_be_stored_under():
    """Else nothing could ever be borrowed from a fork's continuation, and a wrong answer could be."""
    run = example("r_8821")
    result, made = forked(run, 3, {"kind": "tool_result", "step": 3, "value": []})

    keys = RequestKeys()
    call = made.steps[3].call
    assert keys.of(call, made.model).hex() == result.stopped["asked"]


# --- each change -------------------------------------------------------------------------------


def test_a_tools_answer_is_changed():
    result, made = forked(example("cancel_bug"), 4, {"kind": "tool_result", "step": 4, "value": "not eligible"})

    assert (answer_of(made, 4), made.steps[3].source) == ("not eligible", "by_hand")
    assert (result.verdict, result.stopped["step"]) == ("unknown_from_step", 5)
    assert made.steps[3].state is None, "what the tool did not do it did not do to the state either"


def test_a_fork_acts_for_the_same_user_step_by_step():
    recorded = example("cancel_bug")
    run = replace(recorded, steps=tuple(replace(step, user_id="u_1", tenant_id="t_1") for step in recorded.steps))

    _, made = forked(run, 4, {"kind": "tool_result", "step": 4, "value": "not eligible"})

    assert {(step.user_id, step.tenant_id) for step in made.steps} == {("u_1", "t_1")}


def test_a_tool_crashes():
    failure = {"type": "TimeoutError", "message": "no answer in 10 s", "crashes": True}

    _, made = forked(example("price_429"), 2, {"kind": "tool_result", "step": 2, "error": failure})

    assert (made.status, made.error.type, made.error.message) == ("error", "TimeoutError", "no answer in 10 s")


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "instructions", "value": "Always check eligibility before you cancel."},
        {"kind": "model", "value": {"model": "gpt-5"}},
        {"kind": "model", "value": {"settings": {"temperature": 1.0}}},
        {"kind": "message", "step": 3, "index": 0, "value": "Cancel nothing."},
    ],
)
def test_another_request_has_no_recorded_answer(change):
    result, made = forked(example("cancel_bug"), 3, change)

    assert (result.verdict, result.stopped["step"], result.stopped["kind"]) == ("unknown_from_step", 3, "model")
    assert sources(made) == ["recorded", "recorded", "unknown"]


ANOTHER = "recorded_for_another_request"


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "instructions", "value": "NEVER cancel anything."},
        {"kind": "model", "value": {"model": "gpt-5"}},
        {"kind": "model", "value": {"settings": {"temperature": 1.0}}},
    ],
)
def test_played_on_answers_say_that_they_were_recorded_for_another_request(change):
    """Tools as well: the model that asked for them was asked something else. Control: the recorded model is no
    change."""
    same = {"kind": "model", "value": {"model": "gpt-4o", "settings": {"seed": 20171}}}

    result, made = forked(example("cancel_bug"), 3, change, on_difference="play_on")
    unchanged, as_recorded = forked(example("cancel_bug"), 3, same)

    assert sources(made) == ["recorded", "recorded", ANOTHER, ANOTHER, ANOTHER]
    assert result.facts["sources"] == {"recorded": 2, ANOTHER: 3}
    assert result.verdict == "diverged"
    assert (unchanged.verdict, sources(as_recorded)) == ("reproduced", ["recorded"] * 5)


@pytest.mark.parametrize(
    ("answer", "source"),
    [
        ({"on_difference": "play_on"}, ANOTHER),
        ({"by_hand": True}, "by_hand"),
    ],
)
def test_an_outcome_that_does_not_follow_from_the_change_says_whose_answer_it_rests_on(answer, source):
    """It was expected, and could not fail. Control: an answer by hand to a tool is what is tried out."""
    run, change = example("cancel_bug"), {"kind": "instructions", "value": "NEVER cancel anything."}
    text = {"text": "cancelled, as before"}
    stop = forked(run, 3, change)[0].stopped
    given = [{"at": stop["at"], "asked": stop["asked"], "answer": text}] if answer.pop("by_hand", False) else []

    result, _ = forked(run, 3, change, answers=given, expect={"contains": "cancel"}, **answer)

    assert result.verdict == "diverged"
    assert (result.facts["expectation"]["met"], result.facts["expectation"]["source"]) == (True, source)


LATE = {"type": "TimeoutError", "message": "no answer in 10 s"}


@pytest.mark.parametrize(("crashes", "source"), [(True, "by_hand"), (False, ANOTHER)])
def test_an_exception_written_by_hand_that_ends_the_run_is_an_outcome_written_by_hand(crashes, source):
    """Control: an error that the model is told is what is tried out."""
    change = {"kind": "tool_result", "step": 4, "error": {**LATE, "crashes": crashes}}

    result, _ = forked(example("cancel_bug"), 4, change, on_difference="play_on", expect={"ends_within": 20})

    assert (result.facts["expectation"]["met"], result.facts["expectation"]["source"]) == (True, source)


def test_an_expectation_that_the_recording_meets_as_well_says_that_the_change_made_no_difference():
    same = {"kind": "model", "value": {"model": "gpt-4o"}}

    result, _ = forked(example("cancel_bug"), 3, same, expect={"ends_within": 20})

    assert (result.facts["expectation"]["met"], result.facts["expectation"]["source"]) == (True, "no_difference")


def test_a_recorded_answer_to_the_same_call_is_recorded_whoever_asked_for_it():
    """The model's answer is by hand, and the call that it asks for is the recorded one."""
    again = {"text": "I look.", "tool_calls": [{"name": "lookup_order", "arguments": {"order_id": "ORD-5521"}}]}

    _, made = forked(example("cancel_bug"), 1, {"kind": "model_answer", "step": 1, "value": again})

    assert sources(made)[:2] == ["by_hand", "recorded"]


# --- what was recorded, written by hand


def written(call: Any) -> JsonObject:
    """What somebody writes who writes what was recorded."""
    if isinstance(call, ToolCall):
        return {"kind": "tool_result", "value": call.result.value}
    parts = call.response.value["parts"]
    text = "".join(part["content"] for part in parts if part["part_kind"] == "text")
    asked = [part for part in parts if part["part_kind"] == "tool-call"]
    calls = [{"name": part["tool_name"], "arguments": Payload.of(part["args"]).parsed} for part in asked]
    return {"kind": "model_answer", "value": {"text": text or None, "tool_calls": calls}}


@pytest.mark.parametrize("order", [["p0", "p1", "p2"], ["p2", "p0", "p1"]])
def test_calls_stand_in_the_order_in_which_the_answer_asks_for_them(order: list[str]):
    """Not in that of the recording, where somebody else asked for them in another one."""
    run = recorded_run(parallel_tools)
    answer = written(run.steps[0].call)
    asked = {f"p{number}": call for number, call in enumerate(answer["value"]["tool_calls"])}
    answer["value"]["tool_calls"] = [asked[name] for name in order]

    _, made = forked(run, 1, {**answer, "step": 1})

    recorded = {call.call_id: call.arguments for _, call in run.tool_calls}
    assert [call.arguments for _, call in made.tool_calls] == [recorded[name] for name in order]


@pytest.mark.parametrize("step", [2, 4])
@pytest.mark.parametrize("is_recorded", [True, False])
def test_a_call_whose_arguments_were_refused_is_answered_as_the_change_says(step: int, is_recorded: bool):
    """Also with the very words of the refusal, which are another answer when the tool gives them."""
    run = recorded_run(validation_errors)
    refused = run.steps[step - 1].call
    assert isinstance(refused, ToolCall)
    assert refused.result is not None
    assert (refused.retry or {})["cause"] == "validation_error"
    value = refused.result.value if is_recorded else "Found it."

    result, made = forked(run, step, {"kind": "tool_result", "step": step, "value": value})

    assert (result.verdict, result.stopped["step"]) == ("unknown_from_step", step + 1)
    assert (made.steps[step - 1].source, made.steps[step - 1].call.outcome) == ("by_hand", "success")
    assert answer_of(made, step) == value


def handing_over() -> Run:
    billing = openai.agent([openai.says("Paid.")], name="Billing", instructions="You bill.")
    script = [openai.calls("transfer_to_billing", "{}", "h1")]
    support = openai.agent(script, tools=[openai.lookup], handoffs=[handoff(billing)])
    return parse_native(openai.bytes_of(openai.one_record(lambda: openai.run(support))))


def test_a_handoff_is_answered_as_the_change_says():
    result, made = forked(handing_over(), 2, {"kind": "tool_result", "step": 2, "value": "Nobody is there."})

    assert (result.verdict, result.stopped["step"]) == ("unknown_from_step", 3)
    assert (answer_of(made, 2), sources(made)) == ("Nobody is there.", ["recorded", "by_hand", "unknown"])


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_fork_of_another_loop_goes_as_its_recording(step: int):
    result, made = forked(handing_over(), step, UNCHANGED)

    assert (result.verdict, result.divergence, set(sources(made))) == ("reproduced", None, {"recorded"})


def forgetting() -> Play:
    asked = [says(call("search", {"query": f"q{i}", "limit": 1}, f"s{i}")) for i in range(3)]
    processor = ProcessHistory(lambda messages: messages[-3:])
    return Play(support_agent(*asked, says("Found."), capabilities=[processor]), "Search")


@pytest.mark.parametrize("play", [forgetting, native_output])
def test_a_fork_claims_no_more_than_the_replay_of_its_recording(play: Callable[[], Play]):
    run = recorded_run(play)
    whole, _ = replayed(encode_native(run))

    result, _ = forked(run, 1, UNCHANGED)

    assert (whole.verdict, result.verdict) == ("reproduced", "reproduced")
    for part in ("requests", "parameters", "model", "tool_arguments", "outcome"):
        assert result.facts["proof"][part] == whole.facts["proof"][part]


def test_what_a_fork_keeps_is_not_proven_by_it():
    result, _ = forked(recorded_run(parallel_tools), 3, UNCHANGED)

    proof = result.facts["proof"]
    assert result.verdict == "reproduced"
    kept = {"state": "not_comparable", "reason": "the requests agree; what lies before step 2 was not made again"}
    assert proof["requests"] == kept


@pytest.mark.parametrize("step", [1, 2, 3, 4, 5])
def test_what_was_recorded_is_recorded_whoever_writes_it(step: int):
    """Nobody writes ids, tokens or what became of the state."""
    run = example("cancel_bug")

    result, made = forked(run, step, {**written(run.steps[step - 1].call), "step": step})

    assert (result.verdict, result.divergence, set(sources(made))) == ("reproduced", None, {"recorded"})


@pytest.mark.parametrize(
    "asked", [call("refund", {"order_id": "ORD-1"}, "a"), call("lookup_order", {"order_id": "1"}, "a")]
)
def test_the_words_in_which_a_tool_failed_are_recorded_whoever_writes_them(asked: Any):
    run = recorded_run(lambda: Play(support_agent(says(asked), says("I am sorry.")), "Help me."))
    call_made = run.steps[1].call
    assert isinstance(call_made, ToolCall)
    assert call_made.outcome in ("failed", "retried")
    assert call_made.result is not None

    result, made = forked(run, 2, {"kind": "tool_result", "step": 2, "error": error_in_words(run)})

    assert (result.verdict, result.divergence, set(sources(made))) == ("reproduced", None, {"recorded"})

    result, made = forked(run, 2, {"kind": "tool_result", "step": 2, "value": call_made.result.value})

    assert (result.verdict, sources(made)) == ("unknown_from_step", ["recorded", "by_hand", "unknown"])
    assert [step.call.outcome for step in made.steps[1:2] if isinstance(step.call, ToolCall)] == ["success"]


def error_in_words(run: Run) -> str:
    error = run.steps[1].error
    assert error is not None
    assert error.message is not None
    return error.message


def test_another_text_of_an_answer_that_only_asks_for_calls_is_sent_beside_them():
    run = example("cancel_bug")
    asked = run.steps[0].call
    assert isinstance(asked, ModelCall)
    assert [part["part_kind"] for part in asked.response.value["parts"]] == ["tool-call"]

    result, made = forked(run, 3, {"kind": "message", "step": 3, "index": 1, "value": "I look."})

    sent = made.steps[2].call
    assert isinstance(sent, ModelCall)
    kinds = [[part["part_kind"] for part in each.value["parts"]] for each in messages(sent.history)]
    assert (result.verdict, kinds[1]) == ("unknown_from_step", ["text", "tool-call"])


def test_other_words_by_hand_differ_in_their_words_and_not_in_who_said_them():
    """Nobody writes which model it was, and with how many tokens."""
    record = json.loads(encode_native(example("cancel_bug")))
    last = record["steps"][-1]
    last["response"] = {"model_name": "m-1", "usage": {"input_tokens": 9}, **last["response"]}
    run = parse_native(json.dumps(record).encode())
    step = len(run.steps)

    result, made = forked(run, step, {"kind": "model_answer", "step": step, "value": {"text": "It is cancelled."}})

    found = compare_runs(run, made).divergence
    assert found is not None
    assert found.path.startswith("response.parts[0]")
    assert result.divergence is not None
    assert result.divergence.path == found.path


def test_calls_beside_another_text_keep_their_ids():
    run = example("cancel_bug")
    change = written(run.steps[0].call)

    _, made = forked(run, 1, {**change, "step": 1, "value": {**change["value"], "text": "I look."}})

    assert made.steps[0].source == "by_hand"
    assert made.steps[1].call.call_id == run.steps[1].call.call_id


@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("before", [0, 1])
def test_an_answer_that_asks_for_no_tools_any_more_stands_in_the_place_of_the_one_that_did(step: int, before: int):
    run = example("cancel_bug")
    change = {"kind": "model_answer", "step": step, "value": {"text": "bye"}}

    result, made = forked(run, max(1, step - before), change)

    assert (result.divergence.step, result.divergence.path) == (step, "response.parts[0].tool_name")
    pairs = [(pair.left.index, pair.right and pair.right.index) for pair in compare_runs(run, made).steps]
    assert pairs == [(index, index if index <= step else None) for index in range(1, 6)]


def test_what_was_really_sent_is_kept():
    text = "Always check eligibility before you cancel."

    _, made = forked(example("cancel_bug"), 3, {"kind": "instructions", "value": text})

    request = made.steps[2].call
    assert request.history.message.value["instructions"] == text
    assert text in json.dumps(request.parameters.value)
    assert made.instructions == text


def test_an_edited_message_reaches_the_model():
    _, made = forked(example("cancel_bug"), 3, {"kind": "message", "step": 3, "index": 0, "value": "Cancel nothing."})

    history = made.steps[2].call.history
    assert history.parent.parent.message.value["parts"][0]["content"] == "Cancel nothing."


def test_a_history_that_the_framework_would_repair_is_said():
    orphan = {"parts": [{"tool_name": "x", "content": "y", "tool_call_id": "none", "part_kind": "tool-return"}]}

    result, _ = forked(
        example("cancel_bug"), 3, {"kind": "message", "step": 3, "index": 2, "value": {**orphan, "kind": "request"}}
    )

    assert any("Message 2" in sentence for sentence in result.facts["lint"])


def test_a_message_can_only_be_changed_where_the_fork_begins():
    result, made = forked(example("cancel_bug"), 3, {"kind": "message", "step": 5, "index": 0, "value": "x"})

    assert (result.verdict, made) == ("could_not_run", None)
    assert "step 5 lies elsewhere" in str(result.error)


def test_the_state_is_patched_from_there_on():
    run = example("cancel_bug")
    patch = [{"op": "remove", "path": "/orders/ORD-5521/cancellable"}, {"op": "add", "path": "/seen", "value": True}]

    result, made = forked(run, 3, {"kind": "state", "step": 3, "patch": patch})

    assert "cancellable" not in state_after(made, 3)["orders"]["ORD-5521"]
    assert state_after(made, 5)["seen"] is True
    assert state_after(made, 5)["orders"]["ORD-5521"]["status"] == "cancelled"
    assert "seen" not in state_after(made, 2)
    assert result.facts["started_from"]["state_digest"]


def test_a_rule_sees_the_changed_state():
    run = example("cancel_bug")
    rule = {"kind": "rule", "when": "state.orders.ORD-5521.cancellable = true", "answer": "It may be cancelled."}
    patch = {
        "kind": "state",
        "step": 3,
        "patch": [{"op": "replace", "path": "/orders/ORD-5521/cancellable", "value": True}],
    }

    _, changed = forked(run, 3, rule, patch)
    _, unchanged = forked(run, 3, rule)

    assert outcome(changed)[1] == "It may be cancelled."
    assert outcome(unchanged)[1] == outcome(run)[1]


def test_changes_hold_together():
    changes: list[dict[str, object]] = [
        {"kind": "tool_result", "step": 4, "error": "not eligible"},
        {"kind": "rule", "when": 'result contains "not eligible"', "answer": "It is not eligible."},
        {"kind": "instructions", "value": "Check first."},
    ]

    _, made = forked(example("cancel_bug"), 4, *changes)

    assert (sources(made), outcome(made)) == (
        ["recorded", "recorded", "recorded", "by_hand", "rule"],
        ("ok", "It is not eligible."),
    )


# --- pausing -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("breakpoint_", "step"),
    [
        ({"tool": "cancel_order"}, 4),
        ({"step": 2}, 2),
        ({"when": 'reason contains "mind"'}, 4),
        ({"when": 'state.orders.ORD-5521.status = "cancelled"'}, 5),
        ({"when": 'text contains "non-cancellable" and kind = "model"'}, 3),
    ],
)
def test_a_fork_pauses_at_a_breakpoint_and_goes_on_as_if_it_had_not(breakpoint_, step):
    run = example("cancel_bug")
    result, made = forked(run, 1, UNCHANGED, breakpoints=[breakpoint_])
    assert (result.verdict, result.stopped["step"], result.stopped["why"]) == ("paused", step, "breakpoint")
    assert len(made.steps) == step

    course = {"passed": result.stopped["at"]}
    ended, whole = forked(run, 1, UNCHANGED, breakpoints=[breakpoint_], course=course)

    assert (ended.verdict, ended.stopped) == ("reproduced", None)
    unpaused = forked(run, 1, UNCHANGED)[1]
    assert compare_runs(unpaused, whole).identical


def test_stepping_pauses_at_each_stop():
    run, passed, steps = example("cancel_bug"), 0, []
    while (result := forked(run, 1, UNCHANGED, course={"passed": passed, "is_stepping": True})[0]).stopped:
        steps.append(result.stopped["step"])
        passed = result.stopped["at"]

    assert (steps, result.verdict) == ([1, 2, 3, 4, 5], "reproduced")


# --- long runs ---------------------------------------------------------------------------------


def test_a_long_run_is_forked_near_its_end_at_a_cost_that_grows_with_its_length():
    runs = {steps: make_run(steps, stamp="2026-11-01T00:00:00Z") for steps in (250, 1000)}

    def fork_late(steps: int) -> None:
        forked(runs[steps], steps - 10, {"kind": "tool_result", "step": steps - 10, "value": []})

    assert growth(fork_late, 250, 1000) < LINEAR


def test_a_run_without_its_requests_cannot_be_forked():
    run = example("cancel_bug")
    steps = [replace(s, call=replace(s.call, history=None)) if isinstance(s.call, ModelCall) else s for s in run.steps]

    result, made = forked(replace(run, steps=tuple(steps)), 3, UNCHANGED)

    assert (result.verdict, made) == ("could_not_run", None)
    assert "was not captured" in str(result.error)


# --- what became of it -------------------------------------------------------------------------


def test_a_text_in_the_place_of_a_call_is_kept_whole_and_can_be_replayed():
    """Its part has other fields than the recorded one that it stands for."""
    change = {"kind": "model_answer", "step": 3, "value": "I will not cancel it."}

    _, made = forked(example("cancel_bug"), 3, change)

    assert made.steps[2].call.response.value["parts"][0]["content"] == "I will not cancel it."
    assert made.final.message.value["parts"][0]["content"] == "I will not cancel it."
    assert verdict_of(json.loads(encode_native(made)))[0] == "reproduced"


def test_what_was_written_by_hand_stays_so_in_forks_and_replays_of_the_fork():
    change = {"kind": "model_answer", "step": 3, "value": "I will not cancel it."}
    _, first = forked(example("cancel_bug"), 3, change)

    _, again = forked(first, 1, UNCHANGED)
    _, replayed_run = replayed(encode_native(first))

    assert sources(again) == sources(replayed_run) == sources(first) == ["recorded", "recorded", "by_hand"]


def test_the_words_of_the_framework_are_no_recording():
    call = {"name": "nope", "arguments": {}}

    _, made = forked(example("cancel_bug"), 1, {"kind": "model_answer", "step": 1, "value": {"tool_calls": [call]}})

    assert "Unknown tool" in str(answer_of(made, 2))
    assert sources(made) == ["by_hand", "own_code", "unknown"]


def test_a_change_of_the_state_that_does_not_fit_leaves_the_others():
    patch = {"kind": "state", "step": 3, "patch": [{"op": "remove", "path": "/memory"}]}

    result, made = forked(example("cancel_bug"), 3, patch)

    assert state_after(made, 5)["orders"]["ORD-5521"]["status"] == "cancelled"
    assert any("does not fit any more" in sentence for sentence in result.facts["lint"])


def test_a_rule_at_the_forks_step_sees_the_state_that_was_changed_there():
    patch = {"kind": "state", "step": 3, "patch": [{"op": "add", "path": "/stop", "value": True}]}
    rule = {"kind": "rule", "when": "state.stop = true", "answer": "Stopped."}

    _, made = forked(example("cancel_bug"), 3, patch, rule)

    assert (len(made.steps), outcome(made)) == (3, ("ok", "Stopped."))
