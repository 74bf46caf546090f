"""Which runs can be replayed, and to which step."""

import json
from dataclasses import replace
from typing import Any

import pytest

from sessions_app.core.formats.detect import parse_document
from sessions_app.core.judge.verdict import Verdict, judge
from sessions_app.core.payload import Payload
from sessions_app.core.run import AgentInfo, ErrorInfo, Run
from tests.core.test_judge_runs import (
    history,
    make_run,
    model,
    payload,
    prompt,
    request_message,
    response_message,
    tool,
)

ENDED = history(request_message(prompt()))


TIMEOUT = ErrorInfo(type="Timeout", message="30 s")
BROKEN = ErrorInfo(type="ValueError", message="no such order")
GAVE_UP = ErrorInfo(type="UnexpectedModelBehavior", message="Exceeded maximum retries (1) for output validation")
BY_LIMIT = ErrorInfo(type="UsageLimitExceeded", message="tool_calls_limit of 1")
ANSWER = "It is on its way."
WAITS = Payload.of_json({"name": "lookup_order", "kind": "unapproved"})


def asking(call_id: str, name: str = "lookup_order", args: Any = None) -> Any:
    return [{"part_kind": "tool-call", "tool_name": name, "tool_call_id": call_id, "args": args or {}}]


def shown(run: Run) -> tuple[str, int | None, list[str]]:
    found = judge(run)
    return found.verdict, found.step, [reason.code for reason in found.reasons]


def test_whole_run_is_replayable():
    assert judge(make_run(model(), tool(), model())) == Verdict(verdict="replayable")


@pytest.mark.parametrize(
    ("run", "codes"),
    [
        (make_run(model(), status="running"), ["still_running"]),
        (make_run(), ["only_final_output"]),
        (make_run(output=None), ["nothing_recorded"]),
        (make_run(model(None), tool(), model(None)), ["model_answers_missing"]),
        (make_run(model(None), tool(), model()), ["first_model_answer_missing"]),
        (make_run(model(), tool(result=None), model()), ["tool_answers_missing"]),
        (make_run(model(), input=None), ["input_missing"]),
        (make_run(tool(result=None)), ["model_answers_missing", "tool_answers_missing"]),
    ],
)
def test_run_without_the_essential_is_cold(run, codes):
    assert shown(run) == ("cold", None, codes)


@pytest.mark.parametrize(
    ("steps", "last", "codes"),
    [
        ([model(), tool(), model(None), tool(), model()], 2, ["model_answer_missing"]),
        ([model(), tool(), model(), tool(result=None), model()], 3, ["tool_answer_missing"]),
        ([model(), tool(), tool(result=None), model()], 2, ["tool_answer_missing"]),
        ([model(), tool(), model(None)], 2, ["model_answer_missing"]),
    ],
)
def test_run_with_a_gap_is_replayable_up_to_it(steps, last, codes):
    assert shown(make_run(*steps)) == ("replayable_to_step", last, codes)


@pytest.mark.parametrize(
    "steps",
    [
        [model(), tool(), model(None, error=TIMEOUT)],
        [model(None, error=TIMEOUT)],
        [model(), tool(result=None, outcome="crashed", error=TIMEOUT)],
    ],
)
def test_failure_that_the_loop_passes_on_is_no_gap(steps):
    assert judge(make_run(*steps, status="error", error=TIMEOUT, output=None)).verdict == "replayable"


@pytest.mark.parametrize(
    "steps",
    [
        [model(), tool(result=None, error=TIMEOUT), model()],
        [model(), tool(), tool(result=None, outcome="denied"), model()],
        [model(), tool(), tool(result=None, retry={"cause": "unknown_tool"}), model()],
    ],
)
def test_call_that_the_loop_settles_by_itself_is_no_gap(steps):
    assert judge(make_run(*steps)).verdict == "replayable"


ANSWERED = [model(asking("b")), tool(call_id="b")]
LIMITED = {"status": "error", "agent": AgentInfo(usage_limits={"tool_calls_limit": 1})}


@pytest.mark.parametrize(
    ("steps", "fields"),
    [
        ([*ANSWERED, model(asking("c")), tool(result=None)], {**LIMITED, "error": BY_LIMIT}),
        ([model(asking("c")), tool(result=None, outcome="deferred")], {"status": "cut_off", "final": ENDED}),
        ([model(asking("c")), tool(result=None, outcome="unapproved")], {"status": "cut_off", "final": ENDED}),
        ([model(asking("c"), tools=(WAITS,)), tool(result=None)], {"status": "cut_off", "final": ENDED}),
    ],
)
def test_end_that_the_loop_comes_to_by_itself_is_no_gap(steps, fields):
    assert judge(make_run(*steps, output=None, **fields)).verdict == "replayable"


OUTPUT = {"answer": "It is on its way."}
FUNCTION = AgentInfo(output_function="make_answer")
MORE = {**OUTPUT, "n": 1}
CARRIES = {"call_id": "c", "is_output": True, "result": "Final result processed."}


@pytest.mark.parametrize(
    ("steps", "fields", "code"),
    [
        ([model()], {"output": None}, "output_missing"),
        ([model()], {"output": payload("Something else.")}, "output_differs"),
        ([model()], {"agent": FUNCTION}, "output_function"),
        (
            [model(asking("c", "final_result", MORE)), tool("final_result", MORE, **CARRIES)],
            {},
            "output_made_by_code",
        ),
        ([model(asking("c")), tool(call_id="c")], {}, "model_answer_missing"),
        ([model()], {"output": None, "error": BROKEN}, "error_outside_loop"),
        ([model()], {"output": None, "error": GAVE_UP}, "error_outside_loop"),
        ([model()], {"output": None, "error": BY_LIMIT}, "error_outside_loop"),
        ([model(), tool(result=None, outcome="crashed")], {"output": None, "error": BROKEN}, "error_outside_loop"),
        ([model()], {"output": None, "status": "error"}, "error_missing"),
        ([model()], {"output": None, "error": ErrorInfo(type=None, message=None)}, "error_missing"),
    ],
)
def test_outcome_that_no_replay_can_come_to_by_itself_is_told(steps, fields, code):
    run = make_run(*steps, **{"output": payload(OUTPUT) if len(steps) > 1 else payload(ANSWER), **fields})

    assert shown(run) == ("replayable_to_step", len(steps), [code])


def test_an_error_behind_a_model_call_that_failed_is_not_said_to_follow_an_answer():
    failed = replace(model(None), error=ErrorInfo(type="RateLimitError", message="429: rate limit reached"))
    run = make_run(model(), tool(), failed, output=None, status="error", error=replace(TIMEOUT, type="RateLimitError"))

    [reason] = judge(run).reasons

    assert reason.code == "error_outside_loop"
    assert reason.message.startswith("Step 3 (")
    assert "failed, and the run ended with RateLimitError, worded differently" in reason.message


@pytest.mark.parametrize("outcome", [None, "deferred", "unapproved"])
def test_open_call_beside_an_output_is_a_gap(outcome):
    asked = model(asking("a")), tool(call_id="a")
    run = make_run(*asked, model(asking("c"), tools=(WAITS,)), tool(result=None, outcome=outcome))

    assert shown(run) == ("replayable_to_step", 3, ["tool_answer_missing"])


def test_steps_inside_a_tool_need_no_answers_of_their_own():
    inner = model(None, parent=2)
    run = make_run(model(), tool("ask_expert"), inner, model())

    assert judge(run).verdict == "replayable"


def test_run_error_does_not_stand_for_the_last_answer():
    run = make_run(model(), tool(), model(None), status="error", error=TIMEOUT, output=None)

    assert shown(run) == ("replayable_to_step", 2, ["model_answer_missing"])


@pytest.mark.parametrize(
    ("strange", "words"),
    [
        ({"kind": "response", "parts": [{"part_kind": "telepathy"}]}, "A message part of the unknown kind 'telepathy'"),
        (
            {"kind": "request", "parts": [{"part_kind": "tool-return", "tool_name": None, "content": 1}]},
            "A tool-return part without tool_name",
        ),
    ],
)
def test_message_that_cannot_be_loaded_stops_the_replay_before_it(strange, words):
    asked = history(request_message(prompt()), response_message("a"), strange)
    run = make_run(model(), tool(), model(history=asked))

    assert shown(run) == ("replayable_to_step", 2, ["unknown_message_part"])
    assert judge(run).reasons[0].message == f"{words} stands at step 3; the replay cannot load that message."


@pytest.mark.parametrize(
    "message",
    [
        request_message({"part_kind": "text", "content": "an answer's part"}),
        {"role": "user", "content": "another library's shape"},
    ],
)
def test_unknown_first_message_makes_a_run_cold(message):
    run = make_run(model(history=history(message)))

    assert shown(run) == ("cold", None, ["unknown_message_part"])


def test_unknown_kind_in_earlier_turns_makes_a_run_cold():
    run = make_run(model(), prior=history(request_message({"part_kind": "telepathy"})))

    assert shown(run) == ("cold", None, ["unknown_message_part"])
    assert "in the earlier turns" in judge(run).reasons[0].message


def test_session_file_without_tool_answers_says_so():
    document = {
        "session_id": "s",
        "user_input": "hi",
        "final_output": "bye",
        "messages": [
            {"type": "ModelRequest", "parts": [{"kind": "user-prompt", "content": "hi"}]},
            {"type": "ModelResponse", "parts": [{"kind": "tool-call", "tool_name": "look", "args": {}}]},
            {"type": "ModelResponse", "parts": [{"kind": "text", "content": "bye"}]},
        ],
    }

    found = judge(parse_document(json.dumps(document).encode()))

    assert found.verdict == "cold"
    assert found.reasons[0].message == "Tool answers were not recorded, starting with the first call."


def test_session_file_with_its_output_alone_says_so():
    document = {"session_id": "s", "user_input": "hi", "final_output": "bye", "messages": []}

    found = judge(parse_document(json.dumps(document).encode()))

    assert found.reasons[0].message == "Only the final output was saved: no messages, no steps."
    assert found.reasons[0].fix is not None


def test_verdict_as_json_names_verdict_step_and_reasons():
    assert judge(Run(run_id="r", session_id="r", status="running")).to_json() == {
        "verdict": "cold",
        "step": None,
        "reasons": [
            {"code": "still_running", "message": "The run has not ended yet.", "step": None, "fix": None},
            {
                "code": "nothing_recorded",
                "message": "Neither messages nor steps were recorded.",
                "step": None,
                "fix": "Send the messages of the run, or its steps.",
            },
        ],
    }
