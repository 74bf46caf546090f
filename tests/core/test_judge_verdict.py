"""Which runs can be replayed, and to which step."""

import json

import pytest

from sessions_app.core.formats.detect import parse_document
from sessions_app.core.judge.verdict import Verdict, judge
from sessions_app.core.run import ErrorInfo, Run
from tests.core.test_judge_runs import (
    history,
    make_run,
    model,
    prompt,
    request_message,
    response_message,
    tool,
)

TIMEOUT = ErrorInfo(type="Timeout", message="30 s")


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
        [model(), tool(result=None, outcome="crashed")],
        [model(), tool(result=None, error=TIMEOUT), model()],
        [model(), tool(), model(), tool(result=None)],
        [model(), tool(result=None, outcome="deferred")],
        [model(), tool(), tool(result=None, outcome="denied"), model()],
        [model(), tool(), tool(result=None, retry={"cause": "validation_error"}), model()],
        [model(), tool(), tool(result=None, retry={"cause": "unknown_tool"}), model()],
        [model(), tool(result=None, is_output=True), model(), tool(result=None, is_output=True)],
    ],
)
def test_end_that_can_be_enacted_again_is_no_gap(steps):
    assert judge(make_run(*steps, status="error")).verdict == "replayable"


def test_steps_inside_a_tool_need_no_answers_of_their_own():
    inner = model(None, parent=2)
    run = make_run(model(), tool("ask_expert"), inner, model())

    assert judge(run).verdict == "replayable"


def test_run_error_stands_for_the_last_answer():
    run = make_run(model(), tool(), model(None), status="error", error=TIMEOUT)

    assert judge(run).verdict == "replayable"


def test_message_of_an_unknown_kind_stops_the_replay_before_it():
    strange = {"kind": "response", "parts": [{"part_kind": "telepathy"}]}
    asked = history(request_message(prompt()), response_message("a"), strange)
    run = make_run(model(), tool(), model(history=asked))

    assert shown(run) == ("replayable_to_step", 2, ["unknown_message_part"])
    assert judge(run).reasons[0].message == (
        "A message part of the unknown kind 'telepathy' stands at step 3; the replay cannot load that message."
    )


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
    assert found.reasons[0].message == "The tools' answers were not recorded, from the first call on."


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
