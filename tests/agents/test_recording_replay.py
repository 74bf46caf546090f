"""Recordings of real agents, replayed from their native record alone."""

import copy
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, NativeOutput, StructuredDict, ToolOutput

from sessions_app.agents.loop.stage import RecordedStage
from sessions_app.core.compare.runs import compare_runs
from sessions_app.core.formats.detect import parse_document
from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.judge.kit import audit_kit
from sessions_app.core.judge.verdict import judge
from sessions_app.core.replay.proof import read_proof
from sessions_app.core.replay.words import ReplayFacts, verdict_in_words
from sessions_app.core.run import SPANS, Run, Step, ToolCall
from tests.agents.forking import forked
from tests.agents.own_agents import place, recorded_run
from tests.recorder.playing import last_record
from tests.recorder.replaying import assert_promise_kept, assert_reproduced, replayed, verdict_of
from tests.recorder.scenarios import (
    Play,
    Scenario,
    Scripted,
    call,
    model_retry,
    native_output,
    native_output_retry,
    one_tool,
    output_validator_retry,
    parallel_tools,
    says,
    support_agent,
    tool_calls_limit,
    tool_crash,
    tools_that_appear,
    unknown_tool,
    validation_errors,
    validation_retries_exhausted,
)

RECORDS = sorted(Path("tests/records").glob("*.json"))
EXAMPLES = [path for path in sorted(Path("sessions_app/examples").glob("*.json")) if path.name != "manifest.json"]


@pytest.mark.parametrize("path", RECORDS + EXAMPLES, ids=lambda path: path.name)
def test_replay_of_a_recorded_file_ends_as_it_was_judged(path: Path):
    assert_promise_kept(encode_native(parse_document(path.read_bytes())))


def record_of(run: Run) -> dict[str, Any]:
    return dict(json.loads(encode_native(run)))


@pytest.fixture(scope="module")
def recorded() -> Run:
    """Steps: 1 model, 2 to 4 three parallel lookups, 5 model."""
    return parse_native(last_record(Scenario(parallel_tools), "run"))


def test_one_changed_byte_in_one_fixture_is_found(recorded: Run):
    record = record_of(recorded)
    record["steps"][2]["result"]["status"] = "Shipped"

    assert verdict_of(record) == ("diverged", 5, "messages[2].parts[1].content.status")


def test_a_changed_tool_description_is_found(recorded: Run):
    record = record_of(recorded)
    record["tools"][0]["description"] = "Find one order by its ID."

    assert judge(parse_native(json.dumps(record).encode())).reasons[0].code == "tools_contradicted"
    assert verdict_of(record)[0] == "could_not_run"


@pytest.mark.parametrize(
    ("without", "reason"),
    [
        (
            ("parameters",),
            "the definitions of tools were recorded; how they were offered and the output schema were not",
        ),
        (("parameters", "tools"), "tools and output schema were not recorded"),
    ],
)
def test_the_proof_says_what_was_recorded_of_the_tools(recorded: Run, without: tuple[str, ...], reason: str):
    record = record_of(recorded)
    for step in record["steps"]:
        for field in without:
            step.pop(field, None)

    result, _ = replayed(json.dumps(record).encode())

    assert result.facts["proof"]["parameters"] == {"state": "not_comparable", "reason": reason}


def test_a_description_that_changes_between_requests_without_being_registered_is_found(recorded: Run):
    record = record_of(recorded)
    for step in record["steps"]:
        step.pop("tools", None)
    second = json.loads(json.dumps(record["parameters"][0]))
    second["function_tools"][0]["description"] = "Something else."
    record["parameters"].append(second)
    record["steps"][4]["parameters"] = len(record["parameters"]) - 1

    assert verdict_of(record) == ("diverged", 5, "parameters.function_tools[0].description")


@pytest.mark.parametrize("spelled", ["{}\n", " {}", "{}\u00a0", "\n{}"])
def test_white_space_at_the_ends_of_later_instructions_is_found(recorded: Run, spelled: str):
    record = record_of(recorded)
    message = record["steps"][-1]["request"]["messages"][0]
    message["instructions"] = spelled.format(message["instructions"])

    assert verdict_of(record) == ("diverged", 5, "messages[2].instructions")


def test_white_space_around_instructions_is_as_recorded_where_the_parameters_do_not_say_otherwise(recorded: Run):
    record = record_of(recorded)
    for parameters in record["parameters"]:
        del parameters["instruction_parts"]
    message = record["steps"][-1]["request"]["messages"][0]
    message["instructions"] += "\n"

    assert verdict_of(record) == ("reproduced", None, None)


def test_a_missing_model_answer_is_found(recorded: Run):
    record = record_of(recorded)
    del record["steps"][4], record["final"]

    assert verdict_of(record) == ("ran_past_recording", 5, "response")


def test_a_missing_tool_answer_is_found(recorded: Run):
    record = record_of(recorded)
    del record["steps"][3]["result"]

    verdict, step, _ = verdict_of(record)

    assert (verdict, step) == ("fixture_missing", 4)


def test_answers_behind_a_difference_are_counted_as_given_to_other_requests(recorded: Run):
    """As the steps of the run that the replay made say."""
    record = record_of(recorded)
    whole, _ = replayed(json.dumps(record).encode())
    record["steps"][1]["result"] = "another"

    result, made = replayed(json.dumps(record).encode())

    assert whole.facts["sources"] == {"recorded": len(recorded.steps)}
    assert made is not None
    assert result.facts["sources"] == Counter(step.source for step in made.steps)
    assert result.facts["sources"]["recorded_for_another_request"] > 0


def test_an_answer_to_a_request_that_was_answered_is_judged_beforehand(recorded: Run):
    record = record_of(recorded)
    assert judge(parse_native(json.dumps(record).encode())).limit is None
    record["steps"].append(record["steps"][4])

    limit = judge(parse_native(json.dumps(record).encode())).limit

    assert limit is not None
    assert (limit.code, limit.step) == ("other_course", 6)
    assert limit.message == "The request of step 6 (scripted-1) is that of step 5 (scripted-1), which was answered."
    assert verdict_of(record) == ("unknown_from_step", 6, "steps[6]")


def broken_off(recorded: Run, *, steps: int, **changes: Any) -> dict[str, Any]:
    """What a process leaves that was killed in this step."""
    record = record_of(recorded)
    kept = record["steps"][:steps]
    kept[-1] = {key: value for key, value in kept[-1].items() if key in ("kind", "tool_name", "call_id", "arguments")}
    gone = ("final", "output", "status")
    return {**{key: value for key, value in record.items() if key not in gone}, "steps": kept, **changes}


def test_a_recording_that_broke_off_in_a_tool_is_the_same_up_to_there(recorded: Run):
    record = broken_off(recorded, steps=4)

    assert judge(parse_native(json.dumps(record).encode())).step == 3
    assert verdict_of(record) == ("unknown_from_step", 4, "steps[4]")


def test_a_recording_that_broke_off_in_a_model_call_is_the_same_up_to_there(recorded: Run):
    assert verdict_of(broken_off(recorded, steps=5)) == ("unknown_from_step", 5, "steps[5]")


def test_a_recording_that_broke_off_is_still_checked_before(recorded: Run):
    record = broken_off(recorded, steps=5)
    record["input"] = "Where are they??"

    assert verdict_of(record) == ("diverged", 1, "messages[0].parts[0].content")


def test_a_recording_that_claims_an_end_is_not_taken_for_a_broken_one(recorded: Run):
    record = broken_off(recorded, steps=4, status="ok", output="All shipped.")

    assert verdict_of(record)[0] == "fixture_missing"


def test_a_tool_answer_too_many_is_found(recorded: Run):
    record = record_of(recorded)
    record["steps"].append({**record["steps"][3], "call_id": "p9"})

    verdict, step, _ = verdict_of(record)

    assert (verdict, step) == ("unknown_from_step", 6)
    assert judge(parse_native(json.dumps(record).encode())).reasons[0].code == "call_contradicted"


def test_two_swapped_parallel_answers_are_found(recorded: Run):
    record = record_of(recorded)
    first, second = record["steps"][1], record["steps"][2]
    first["result"], second["result"] = second["result"], first["result"]

    assert verdict_of(record) == ("diverged", 5, "messages[2].parts[0].content.id")


def test_other_arguments_miss_the_fixture_and_name_the_nearest(recorded: Run):
    record = record_of(recorded)
    record["steps"][1]["arguments"] = {"order_id": "ORD-9"}

    result, _ = replayed(json.dumps(record).encode())

    assert result.verdict == "fixture_missing"
    assert result.facts["asked_for"] == {"tool": "lookup_order", "arguments": {"order_id": "ORD-0"}, "call_id": "p0"}
    assert {"step": 2, "arguments": {"order_id": "ORD-9"}} in result.facts["nearest"]


def test_another_input_is_found(recorded: Run):
    record = record_of(recorded)
    record["input"] = "Where are they??"

    assert verdict_of(record) == ("diverged", 1, "messages[0].parts[0].content")


def test_another_output_is_found(recorded: Run):
    record = record_of(recorded)
    record["output"] = "All shipped!"

    assert verdict_of(record) == ("diverged", 5, "output")


def test_an_unknown_part_kind_cannot_run_and_says_where(recorded: Run):
    record = record_of(recorded)
    record["steps"][0]["response"]["parts"].append({"part_kind": "hologram", "content": "?"})

    result, produced = replayed(json.dumps(record).encode())

    assert result.verdict == "could_not_run"
    assert "hologram" in (result.error or "")
    assert produced is None


def test_ids_and_times_may_differ(recorded: Run):
    record = record_of(recorded)
    text = json.dumps(record).replace(recorded.final.message.value["run_id"], "another-run")

    result, _ = replayed(text.encode())

    assert result.verdict == "reproduced"


def test_a_key_added_to_a_fixture_is_found(recorded: Run):
    record = record_of(recorded)
    record["steps"][2]["result"]["refund"] = "approved"

    assert verdict_of(record) == ("diverged", 5, "messages[2].parts[1].content.refund")


def test_a_key_added_to_a_schema_is_found(recorded: Run):
    record = record_of(recorded)
    record["tools"][0]["parameters_json_schema"]["properties"]["user_id"] = {"type": "string"}

    assert judge(parse_native(json.dumps(record).encode())).reasons[0].code == "tools_contradicted"
    assert verdict_of(record)[0] == "could_not_run"


@pytest.mark.parametrize("key", ["timestamp", "run_id", "conversation_id"])
def test_recorded_data_is_never_volatile(recorded: Run, key: str):
    record = record_of(recorded)
    record["steps"][1]["result"][key] = "then"
    for message in [*record["steps"][4]["request"]["messages"], *record["final"]["messages"]]:
        for part in message["parts"]:
            if part.get("tool_call_id") == "p0" and part["part_kind"] == "tool-return":
                part["content"][key] = "now"

    assert verdict_of(record) == ("diverged", 5, f"messages[2].parts[0].content.{key}")


def test_an_answer_missing_from_a_dump_is_found():
    dump = json.loads(Path("tests/records/parallel-tools.messages.json").read_bytes())
    del dump[2]["parts"][0]

    result, _ = replayed(encode_native(parse_document(json.dumps(dump).encode())))

    assert (result.verdict, result.divergence and result.divergence.step) == ("fixture_missing", 2)


@pytest.mark.parametrize(
    ("message", "change", "found"),
    [
        (2, {"part_kind": "retry-prompt"}, ("diverged", 2, "messages[2].parts[0].retry")),
        (2, {"outcome": "failed"}, ("diverged", 2, "messages[2].parts[0].retry")),
        (2, {"outcome": "denied"}, ("diverged", 2, "messages[2].parts[0].retry")),
        (10, {"outcome": "retried"}, ("diverged", 10, "messages[10].parts[0].content")),
    ],
)
def test_how_an_answer_ended_is_found_at_its_call_and_not_at_the_request_that_tells_it(
    message: int, change: dict[str, str], found: tuple[str, int, str]
):
    dump = json.loads(Path("tests/records/retries.messages.json").read_bytes())
    dump[message]["parts"][0].update(change)

    assert verdict_of(record_of(parse_document(json.dumps(dump).encode()))) == found


def test_an_answer_of_a_step_that_its_message_does_not_have_is_found_at_the_request(recorded: Run):
    record = record_of(recorded)
    record["steps"][4]["request"]["messages"][0]["parts"][0]["content"]["status"] = "lost"

    assert verdict_of(record) == ("diverged", 5, "messages[2].parts[0].content.status")


@pytest.mark.parametrize("index", [1, 3, 5])
@pytest.mark.parametrize("said", [{"outcome": "interrupted"}, {"outcome": "denied"}, {"is_output": True}])
def test_a_call_without_an_answer_that_nobody_asked_for_is_found(recorded: Run, said: dict[str, Any], index: int):
    ghost = Step(index=index + 1, name="ghost", call=ToolCall(tool_name="ghost", call_id="g", **said))
    steps = [*recorded.steps[:index], ghost, *recorded.steps[index:]]
    moved = replace(recorded, steps=tuple(replace(step, index=at) for at, step in enumerate(steps, start=1)))

    record = record_of(moved)

    is_judged = "is_output" in said  # by the tools of the request before
    found = ("unknown_from_step", f"steps[{index + 1}]") if is_judged else ("diverged", f"steps[{index}]")
    assert verdict_of(record) == (found[0], index + 1, found[1])
    result, made = replayed(json.dumps(record).encode())
    assert made is not None
    assert not compare_runs(parse_native(json.dumps(record).encode()), made).identical
    assert result.facts["proof"]["same_steps"] == index


@pytest.mark.parametrize("outcome", ["failed", "denied"])
def test_a_call_that_failed_and_is_answered_with_a_result_is_judged(outcome: str):
    dump = json.loads(Path("tests/records/retries.messages.json").read_bytes())
    dump[10]["parts"][0]["outcome"] = outcome

    judged = assert_promise_kept(encode_native(parse_document(json.dumps(dump).encode())))

    assert [(reason.code, reason.step) for reason in judged.reasons] == [("call_contradicted", 10)]


def test_an_answer_too_many_in_a_session_file_is_found():
    session = json.loads(Path("tests/records/session_abc123.json").read_bytes())
    session["messages"].append(session["messages"][-1])

    judged = assert_promise_kept(encode_native(parse_document(json.dumps(session).encode())))

    assert [(reason.code, reason.step) for reason in judged.reasons] == [("prompt_missing", 6)]


# --- tools that come on the way ----------------------------------------------------------------


@pytest.mark.parametrize("framework", ["pydantic-ai", "other"])
def test_new_tools_are_told_of_only_where_the_recorded_loop_tells_of_them(framework: str):
    """As spans of another framework hold a handoff to an agent that has other tools."""
    run = parse_native(last_record(Scenario(tools_that_appear), "run"))
    record = record_of(replace(run, source_format=SPANS, agent=replace(run.agent, framework=framework)))
    assert verdict_of(record)[0] == ("reproduced" if framework == "pydantic-ai" else "diverged")

    requests = [step["request"]["messages"] for step in record["steps"] if step["kind"] == "model"]
    told = [part for messages in requests for part in messages[-1]["parts"] if part["part_kind"] == DELTA]
    for messages in [*requests, record["final"]["messages"]]:
        for message in messages:
            message["parts"] = [part for part in message["parts"] if part["part_kind"] != DELTA]

    for parameters in record["parameters"]:
        del parameters["revealed_tool_names"], parameters["introduced_tool_names"]

    assert len(told) == 1
    assert verdict_of(record)[0] == ("diverged" if framework == "pydantic-ai" else "reproduced")


DELTA = "tool-availability-delta"


# --- attempts that a client repeated -----------------------------------------------------------


def repeated_request() -> dict[str, Any]:
    """Steps: 1 model, 2 tool, 3 a request that failed, 4 the same request again, which was answered."""
    record: dict[str, Any] = json.loads(last_record(Scenario(one_tool), "run"))
    asked = record["steps"].pop()
    failed = {key: value for key, value in asked.items() if key != "response"}
    failed["error"] = {"type": "APIConnectionError", "message": "Connection error."}
    record["steps"] += [failed, {**asked, "request": {"after": 3, "messages": []}}]
    record["final"]["after"] = 4
    return record


def test_an_attempt_that_was_repeated_is_shown_and_not_claimed():
    record = json.dumps(repeated_request()).encode()

    assert_reproduced(record)

    result, produced = replayed(record)
    assert produced is not None
    assert [step.error is not None for step in produced.steps] == [False, False, True, False]
    assert result.facts["played_back"] == ["scripted-1"]
    assert result.facts["proof"]["same_steps"] == 3
    told = "the requests agree; one failed attempt was read from the recording and not repeated"
    assert result.facts["proof"]["requests"] == {"state": "not_comparable", "reason": told}


def test_a_fork_shows_an_attempt_that_was_repeated_too():
    run = parse_document(json.dumps(repeated_request()).encode())

    for step in range(1, len(run.steps) + 1):
        result, made = forked(run, step, {"kind": "clock", "value": 0})
        assert (result.verdict, compare_runs(run, made).divergence) == ("reproduced", None)


def test_what_was_changed_behind_a_repeated_attempt_is_found():
    record = repeated_request()
    record["steps"][1]["result"]["status"] = "lost"

    judged = assert_promise_kept(json.dumps(record).encode())

    assert [(reason.code, reason.step) for reason in judged.reasons] == [("answer_contradicted", 3)]


def test_an_attempt_with_another_request_was_not_repeated():
    record = repeated_request()
    record["steps"][3]["request"] = {
        "after": 1,
        "messages": json.loads(json.dumps(record["steps"][2]["request"]["messages"])),
    }
    record["steps"][2]["request"]["messages"][0]["parts"][0]["content"]["status"] = "lost"

    judged = assert_promise_kept(json.dumps(record).encode())

    reasons = [(reason.code, reason.step) for reason in judged.reasons]
    assert reasons == [("model_answer_missing", 3), ("answer_contradicted", 3)]


# --- errors of calls that never ran --------------------------------------------------------------


MADE_UP = {"type": "ValueError", "message": "made up"}


@pytest.mark.parametrize(("scenario", "step"), [(tool_calls_limit, 6), (validation_errors, 2)])
def test_an_error_of_a_tool_that_never_ran_is_not_reproduced(scenario: Any, step: int):
    record = record_of(parse_native(last_record(Scenario(scenario), "run")))
    record["steps"][step - 1]["error"] = MADE_UP
    judged = assert_promise_kept(json.dumps(record).encode())

    assert judged.step == step - 1
    assert [reason.code for reason in judged.reasons][:1] == ["answer_contradicted"]


@pytest.mark.parametrize(
    "outcome", ["deferred", "unapproved", "denied", "interrupted", "success", "crashed", "retried"]
)
def test_an_outcome_of_a_call_that_the_limit_kept_from_running_is_judged(outcome: str):
    record = record_of(parse_native(last_record(Scenario(tool_calls_limit), "run")))
    record["steps"][5]["outcome"] = outcome

    judged = assert_promise_kept(json.dumps(record).encode())

    assert [(reason.code, reason.step) for reason in judged.reasons] == [("answer_contradicted", 6)]
    assert verdict_of(record) == ("unknown_from_step", 6, "steps[6]")


ADDED = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "And then?"}]}


@pytest.mark.parametrize("changed", ["Something else.", None])
def test_the_loop_s_words_to_an_output_are_compared_although_its_function_does_not_run(changed):
    def book(seats: int) -> str:
        return f"Booked {seats}."

    agent = Agent(Scripted(says(call("final_result", {"seats": 3}, "1"))), name="shop", output_type=ToolOutput(book))
    record = json.loads(encode_native(recorded_run(lambda: Play(agent, "Book."))))
    untouched, _ = replayed(json.dumps(record).encode())
    record["steps"][1]["result"] = changed
    result, _ = replayed(json.dumps(record).encode())

    assert place(untouched) == ("unknown_from_step", 3, "output")
    assert place(result) == ("diverged", 2, "result")
    assert result.facts["proof"]["same_steps"] == 1


@pytest.mark.parametrize(("output_function", "code"), [(None, None), ("book", "output_function")])
def test_a_message_added_at_the_end_is_found_behind_all_steps_with_and_without_a_limit(
    output_function: str | None, code: str | None
):
    record = record_of(parse_native(last_record(Scenario(structured_dict), "run")))
    if output_function:
        record["agent"]["output_function"] = output_function
    limit = judge(parse_native(json.dumps(record).encode())).limit
    assert (limit and limit.code) == code
    record["final"]["messages"].append(ADDED)

    result, _ = replayed(json.dumps(record).encode())

    assert verdict_of(record) == ("diverged", 2, "messages[3]")
    assert result.facts["proof"]["same_steps"] == 1


def test_what_an_end_says_behind_left_over_answers_takes_nothing_from_their_place():
    record = record_of(parse_native(last_record(Scenario(tool_calls_limit), "run")))
    del record["agent"]["framework"]
    added = copy.deepcopy(record)
    added["final"]["messages"].append(ADDED)
    assert verdict_of(added) == ("diverged", 6, "messages[7]")

    record["steps"][5]["error"] = MADE_UP
    assert verdict_of(record) == ("answers_left_over", 6, "steps[6]")

    record["final"]["messages"].append(ADDED)
    assert verdict_of(record) == ("answers_left_over", 6, "steps[6]")


@pytest.mark.parametrize("make", [output_validator_retry, native_output_retry])
def test_what_a_check_of_the_output_told_the_model_is_not_called_proven(make: Any):
    result = replayed(last_record(Scenario(make), "run"))[0]
    without = replayed(last_record(Scenario(native_output), "run"))[0]

    words = "the requests agree; what output validation told the model was taken from the recording"
    assert result.verdict == without.verdict == "reproduced"
    assert result.facts["proof"]["requests"] == {"state": "not_comparable", "reason": words}
    assert without.facts["proof"]["requests"] == {"state": "proven", "reason": None}


@pytest.mark.parametrize("half", ["type", "message"])
@pytest.mark.parametrize("kept", [{}, {"type": None, "message": None}], ids=["absent", "null"])
def test_a_half_of_the_error_that_was_not_recorded_is_named(half: str, kept: dict[str, None]):
    record = json.loads(last_record(Scenario(tool_crash), "run"))
    whole = replayed(json.dumps(record).encode())[0]
    del record["error"][half]
    record["error"] = {**kept, **record["error"]}

    result = replayed(json.dumps(record).encode())[0]

    assert (whole.verdict, whole.facts["proof"]["outcome"]["reason"]) == ("reproduced", None)
    words = f"the {half} of the error was not recorded"
    assert (result.verdict, result.facts["proof"]["outcome"]) == ("reproduced", {"state": "proven", "reason": words})
    sentence = verdict_in_words(ReplayFacts(verdict="reproduced", proof=read_proof(result.facts["proof"])))
    assert sentence.endswith(f"same error; {words}")


def test_an_error_that_nobody_came_to_is_left_over():
    """A record that no recorder of ours wrote may hold calls without an outcome."""
    record = record_of(parse_native(last_record(Scenario(tool_calls_limit), "run")))
    del record["agent"]["framework"]
    assert verdict_of(record)[0] == "reproduced"

    record["steps"][5]["error"] = MADE_UP
    assert verdict_of(record) == ("answers_left_over", 6, "steps[6]")


@pytest.mark.parametrize("part", ["_pause", "_check"])
def test_a_fault_of_the_product_is_not_the_recorded_error(part: str, monkeypatch: pytest.MonkeyPatch):
    """The tool ended in an exception of the same type."""
    record = record_of(parse_native(last_record(Scenario(tool_crash), "run")))
    for holder in (record, record["steps"][-1]):
        holder["error"] = {"type": "TypeError"}
    assert verdict_of(record) == ("reproduced", None, None)
    monkeypatch.setattr(RecordedStage, part, None)

    with pytest.raises(TypeError, match="not callable"):
        replayed(json.dumps(record).encode())


# --- outputs that nothing checks -----------------------------------------------------------------


REFUND = StructuredDict({"type": "object", "properties": {"amount": {"type": "number"}}}, name="Refund")
GIVEN = {"amount": 1, "note": ["kept"]}


def structured_dict() -> Play:
    return Play(support_agent(says(call("final_result", GIVEN, "o")), output_type=REFUND), "Refund?")


def native_structured_dict() -> Play:
    return Play(support_agent(says(json.dumps(GIVEN)), output_type=NativeOutput(REFUND)), "Refund?")


@pytest.mark.parametrize("way", ["run", "run_stream"])
@pytest.mark.parametrize("play", [structured_dict, native_structured_dict])
def test_a_structured_dict_is_what_the_model_gave(play: Any, way: str):
    record = record_of(parse_native(last_record(Scenario(play), way)))

    assert record["output"] == GIVEN
    assert assert_promise_kept(json.dumps(record).encode()).verdict == "replayable"
    record["output"] = {**GIVEN, "amount": 2}
    assert verdict_of(record)[0] != "reproduced"


def test_an_output_of_fields_that_was_recorded_as_text_is_named_and_counted():
    record = record_of(parse_native(last_record(Scenario(structured_dict), "run")))
    record["output"] = json.dumps(GIVEN)

    result, made = replayed(json.dumps(record).encode())

    assert made is not None
    assert result.verdict == "reproduced"
    assert result.facts["proof"]["outcome"]["reason"] == "equal by the rule output-text"
    comparison = compare_runs(parse_native(json.dumps(record).encode()), made)
    assert comparison.identical
    assert {each.rule.key: each.count for each in comparison.ignored if each.rule.key == "output-text"} == {
        "output-text": 1
    }


@pytest.mark.parametrize("is_text", [True, False])
def test_another_spelling_of_a_number_in_the_output_is_judged_and_not_reproduced(is_text: bool):
    record = record_of(parse_native(last_record(Scenario(structured_dict), "run")))
    for part in [part for step in record["steps"] for part in (step.get("response") or {}).get("parts", [])]:
        part["args"] = json.dumps({**GIVEN, "amount": 1.5})
    for step in record["steps"][1:]:
        step["arguments"] = json.dumps({**GIVEN, "amount": 1.5})
    record["output"] = {**GIVEN, "amount": 1.5}
    assert_reproduced(json.dumps(record).encode())
    spelled = json.dumps(record["output"]).replace("1.5", "1.50")
    record["output"] = spelled if is_text else "@"
    changed = json.dumps(record).replace('"@"', spelled).encode()

    judged = assert_promise_kept(changed)

    result, _ = replayed(changed)
    assert judged.verdict == "replayable_to_step"
    assert result.divergence is not None
    assert result.divergence.path == "output"
    assert result.divergence.recorded != result.divergence.replayed


def test_an_output_of_fields_needs_no_rule():
    record = last_record(Scenario(structured_dict), "run")

    result, made = replayed(record)

    assert made is not None
    assert result.facts["proof"]["outcome"] == {"state": "proven", "reason": None}
    assert "output-text" not in {each.rule.key for each in compare_runs(parse_native(record), made).ignored}


def test_a_structured_dict_of_which_the_record_does_not_say_so_is_named():
    record = record_of(parse_native(last_record(Scenario(structured_dict), "run")))
    assert record["agent"].pop("output_unchecked") is True
    judged = assert_promise_kept(json.dumps(record).encode())

    assert [reason.message for reason in judged.reasons] == [
        "The output is what the model returned, but by its schema the team's type would have changed it."
    ]


# --- answers of many levels ----------------------------------------------------------------------


def deep_answer(levels: int) -> Any:
    def play() -> Play:
        agent = support_agent(says(call("deep", {}, "d")), says("Done."))

        @agent.tool_plain
        def deep() -> Any:
            """Levels of lists."""
            value: Any = "leaf"
            for _ in range(levels):
                value = [value]
            return value

        return Play(agent, "How deep?")

    return play


@pytest.mark.parametrize(("levels", "step"), [(95, None), (99, 2), (150, 1)])
def test_an_answer_of_many_levels_is_cut_and_contradicts_nothing(levels: int, step: int | None):
    """A message holds it some levels deeper than its step."""
    record = last_record(Scenario(deep_answer(levels)), "run")
    judged = assert_promise_kept(record)

    assert judged.step == step
    assert [reason.code for reason in judged.reasons] == ([] if step is None else ["value_cut"])
    assert [line.key for line in audit_kit(parse_native(record)).lines if line.status == "contradictory"] == []


@pytest.mark.parametrize("text", ['{"a":' * 400 + "1" + "}" * 400, "[" * 700 + "1" + "]" * 700, "[" * 20_000])
def test_a_text_of_many_levels_is_an_answer_as_any_other(text: str):
    session = json.loads(Path("tests/records/session_abc123.json").read_bytes())
    session["messages"][2]["parts"][0]["content"] = text

    assert assert_promise_kept(encode_native(parse_document(json.dumps(session).encode()))).verdict == "replayable"


# --- budgets of retries --------------------------------------------------------------------------


@pytest.mark.parametrize("more", [-1, 1])
@pytest.mark.parametrize(
    ("scenario", "step"),
    [(model_retry, 2), (unknown_tool, 2), (validation_retries_exhausted, 4), (validation_retries_exhausted, 8)],
)
def test_another_budget_is_found_at_its_own_step(scenario: Any, step: int, more: int):
    """Also where no request behind tells of it, for the run ended there."""
    record = record_of(parse_native(last_record(Scenario(scenario), "run")))
    assert verdict_of(record)[0] == "reproduced"
    record["steps"][step - 1]["retry"]["max_retries"] += more

    judged = judge(parse_native(json.dumps(record).encode()))
    assert (judged.step, judged.reasons[0].code) == (step - 1, "retry_contradicted")
    assert verdict_of(record) == ("unknown_from_step", step, f"steps[{step}]")


def test_arguments_as_another_text_than_the_model_gave_are_judged(recorded: Run):
    record = record_of(recorded)
    step = next(step for step in record["steps"] if step["kind"] == "tool")
    given = step["arguments"] if isinstance(step["arguments"], dict) else json.loads(step["arguments"])
    step["arguments"] = json.dumps(given, indent=1)

    judged = judge(parse_native(json.dumps(record).encode()))

    assert (judged.verdict, judged.reasons[0].code) == ("replayable_to_step", "spelling_contradicted")
    assert verdict_of(record)[0] == "unknown_from_step"


@pytest.mark.parametrize(
    ("sent", "path"),
    [
        ({"order_id": "ORD-9"}, "arguments.order_id"),
        ({"order_id": "ORD-1", "more": 1}, "arguments.more"),
    ],
)
def test_arguments_that_the_model_did_not_give_are_judged_with_their_field(recorded: Run, sent: Any, path: str):
    record = record_of(recorded)
    step = next(step for step in record["steps"] if step["kind"] == "tool")
    given = step["arguments"] if isinstance(step["arguments"], dict) else json.loads(step["arguments"])
    name = next(iter(given))
    renamed = {
        name if key == "order_id" else key: given[name] if each == "ORD-1" else each for key, each in sent.items()
    }
    step["arguments"] = renamed

    judged = judge(parse_native(json.dumps(record).encode()))

    index = record["steps"].index(step) + 1
    field = path.replace("order_id", name)
    assert judged.words == f"The arguments of step {index} ({step['name']}) are not those that the model gave: {field}."
    assert judged.step == index - 1
    verdict, place, where = verdict_of(record)
    assert (verdict in ("diverged", "fixture_missing"), place) == (True, index)
    assert str(where).startswith("arguments")


def test_a_last_answer_that_cannot_be_loaded_leaves_what_was_before_it_to_be_compared(recorded: Run):
    record = record_of(recorded)
    record["steps"][4]["response"]["metadata"] = "no object"

    assert_promise_kept(json.dumps(record).encode())
    result, _ = replayed(json.dumps(record).encode())

    assert (result.verdict, result.divergence and result.divergence.step) == ("unknown_from_step", 5)
    assert result.facts["proof"]["same_steps"] == 4
    assert result.facts["proof"]["requests"]["state"] == "proven"


@pytest.mark.parametrize("make", [one_tool, parallel_tools])
@pytest.mark.parametrize("entry", ["run", "run_stream"])
def test_a_final_message_that_cannot_be_loaded_is_named_at_the_end_alone(make: Any, entry: str):
    recorded = parse_native(last_record(Scenario(make), entry))
    record, steps = record_of(recorded), len(recorded.steps)
    record["final"]["messages"].append({"kind": "request", "parts": [{"part_kind": "tool-return", "tool_kind": 0}]})

    result, made_run = replayed(json.dumps(record).encode())

    assert (result.verdict, result.divergence and result.divergence.step) == ("unknown_from_step", steps + 1)
    assert result.facts["proof"]["same_steps"] == steps
    assert made_run is not None
    assert [pair.status for pair in compare_runs(recorded, made_run).steps] == ["same"] * steps


@pytest.mark.parametrize(
    "said", [[], [{"part_kind": "thinking", "content": "Hm."}], [{"part_kind": "text", "content": ""}]]
)
def test_a_last_answer_that_says_nothing_ends_the_promise_behind_it(recorded: Run, said: list[Any]):
    record = record_of(recorded)
    record["steps"][4]["response"]["parts"] = said

    judged = assert_promise_kept(json.dumps(record).encode())

    assert (judged.step, judged.reasons[0].code) == (5, "empty_answer")


@pytest.mark.parametrize("said", [[], [{"part_kind": "thinking", "content": "Hm."}]])
def test_messages_that_end_with_an_answer_that_says_nothing_are_judged(said: list[Any]):
    prompt = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Hello"}]}
    run = parse_document(json.dumps([prompt, {"kind": "response", "parts": said}]).encode())

    judged = assert_promise_kept(encode_native(run))

    assert (judged.step, judged.reasons[0].code) == (1, "empty_answer")
