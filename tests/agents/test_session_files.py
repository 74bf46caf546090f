"""Session files as a short script around an agent saves them, replayed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic_ai import Agent

from sessions_app.core.errors import RecordError
from sessions_app.core.formats.detect import parse_document
from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.formats.session_file import parse_session_file
from sessions_app.core.judge.verdict import judge
from tests.recorder.replaying import assert_promise_kept, assert_reproduced, replayed

Parts = list[dict[str, Any]]
ASKED: Parts = [{"kind": "user-prompt", "content": "go"}]
OUTPUT: Parts = [{"kind": "tool-call", "tool_name": "final_result", "args": {"x": 1}, "tool_call_id": "f"}]
TAKEN: Parts = [
    {
        "kind": "tool-return",
        "tool_name": "final_result",
        "content": "Final result processed.",
        "tool_call_id": "f",
    }
]
SAID: Parts = [{"kind": "text", "content": "Done."}]


def record_of(instructions: Any, output: Any, *messages: Parts) -> bytes:
    types = ("ModelRequest", "ModelResponse")
    said = [{"type": types[number % 2], "parts": parts} for number, parts in enumerate(messages)]
    saved = {"session_id": "s1", "user_input": "go", "final_output": output, "messages": said}
    return encode_native(parse_session_file(json.dumps({**saved, "instructions": instructions}).encode()))


@pytest.mark.parametrize("instructions", ["", None, "Help."])
def test_with_and_without_instructions(instructions):
    assert_reproduced(record_of(instructions, "Done.", ASKED, SAID))
    assert_reproduced(record_of(instructions, {"x": 1}, ASKED, OUTPUT, TAKEN))


@pytest.mark.parametrize("instructions", ["", "Help."])
def test_a_structured_output_that_was_printed_ends_where_it_was_judged(instructions):
    judged = assert_promise_kept(record_of(instructions, "x=1", ASKED, OUTPUT, TAKEN))

    assert judged.verdict == "replayable_to_step"


def test_instructions_that_a_message_has_itself_stay():
    parsed = parse_session_file(
        json.dumps(
            {
                "session_id": "s1",
                "final_output": {"x": 1},
                "instructions": "Help.",
                "messages": [
                    {"type": "ModelRequest", "parts": ASKED},
                    {"type": "ModelResponse", "parts": OUTPUT},
                    {"type": "ModelRequest", "parts": TAKEN, "instructions": "Others."},
                ],
            }
        ).encode()
    )

    assert parsed.final is not None
    assert parsed.final.message.value["instructions"] == "Others."


# --- as `agent._instructions` prints in Pydantic AI 2 -------------------------------------------


def printed(agent: Agent[Any, Any]) -> Any:
    """What the script saves: `json.dump(…, default=str)`."""
    return json.loads(json.dumps(agent._instructions, default=str))


def made_by_a_function() -> str:
    return "Be quick."


@pytest.mark.parametrize(
    ("instructions", "text"),
    [
        (["Help."], "Help."),
        (["Help.", 'It\'s "short".\nAnd kind.'], 'Help.\n\nIt\'s "short".\nAnd kind.'),
        (["Help.", made_by_a_function], None),
        (None, None),
    ],
)
def test_instructions_as_a_list_are_read_where_they_are_texts(instructions: Any, text: str | None):
    saved = printed(Agent(instructions=instructions))

    record = record_of(saved, "Done.", ASKED, SAID)

    assert isinstance(saved, list)
    run = parse_native(record)
    assert run.instructions == text
    assert run.extra.get("session-file.instructions") == (saved if saved and text is None else None)
    assert_reproduced(record)


def test_a_list_of_plain_texts_is_read():
    assert parse_native(record_of(["Help.", "More."], "Done.", ASKED, SAID)).instructions == "Help.\n\nMore."


@pytest.mark.parametrize("instructions", [7, {"a": "b"}, ["Help.", 7], [{"content": "Help."}]])
def test_other_instructions_are_refused_by_their_name(instructions: Any):
    with pytest.raises(RecordError, match=r"^instructions must be a string, a list of strings or null"):
        record_of(instructions, "Done.", ASKED, SAID)


def proof_of_requests(*messages: Parts) -> dict[str, Any]:
    record = record_of("", "Done.", ASKED, *messages, SAID)
    assert_reproduced(record)
    found: dict[str, Any] = replayed(record)[0].facts["proof"]["requests"]
    return found


def test_an_order_of_answers_that_only_the_messages_tell_is_not_called_proven():
    """Pydantic AI tells of calls in another order where code decided on one of them while the run went on."""
    calls: Parts = [{"kind": "tool-call", "tool_name": "look", "args": {}, "tool_call_id": each} for each in "ab"]
    answers = [{**each, "kind": "tool-return", "content": each["tool_call_id"]} for each in calls]
    for each in answers:
        del each["args"]
    taken = "the requests agree; the order in which tool answers were sent to the model was taken from the recording"

    assert proof_of_requests(calls, answers) == {"state": "proven", "reason": None}
    assert proof_of_requests(calls, answers[::-1]) == {"state": "not_comparable", "reason": taken}
    assert proof_of_requests(calls[::-1], answers) == {"state": "not_comparable", "reason": taken}


def call_of(call_id: str) -> dict[str, Any]:
    return {"kind": "tool-call", "tool_name": "look", "args": {}, "tool_call_id": call_id}


def answer_of(call_id: str, content: str = "") -> dict[str, Any]:
    return {"kind": "tool-return", "tool_name": "look", "content": content or call_id, "tool_call_id": call_id}


@pytest.mark.parametrize(
    ("added", "step", "path", "words"),
    [
        ((4, answer_of("a")), 4, "messages[2].parts[2]", "is answered already"),
        ((4, answer_of("a", "other")), 4, "messages[2].parts[2]", "is answered already"),
        ((6, answer_of("a")), 6, "messages[4].parts[1]", "is answered already"),
        ((6, answer_of("d")), 6, "messages[4].parts[1]", "no answer of the model asks for"),
    ],
)
def test_an_answer_too_many_in_a_request_is_judged_and_is_the_difference(added, step, path, words):
    request, answer = added
    first, second = ([answer_of(each) for each in ids] for ids in ("ab", "c"))
    (first if request == 4 else second).append(answer)
    asked = [call_of("a"), call_of("b")], [call_of("c")]
    record = record_of("", "Done.", ASKED, asked[0], first, asked[1], second, SAID)

    judged, (result, _) = judge(parse_native(record)), replayed(record)

    assert (judged.limit and judged.limit.code, judged.step) == ("answer_contradicted", step - 1)
    assert words in judged.words
    assert result.divergence is not None
    assert (result.divergence.step, result.divergence.path) == (step, path)


def test_ids_that_come_again_are_no_answers_too_many_and_a_history_that_begins_behind_its_calls_is_judged():
    assert_reproduced(
        record_of("", "Done.", ASKED, [call_of("a")], [answer_of("a")], [call_of("a")], [answer_of("a")], SAID)
    )
    record = record_of("", "Done.", [answer_of("z"), *ASKED], [call_of("a")], [answer_of("a")], SAID)
    limit = judge(parse_native(record)).limit
    assert limit is not None
    assert (limit.code, limit.step) == ("calls_not_saved", 1)


@pytest.mark.parametrize(
    ("outcome", "content"),
    [
        *(("success", content) for content in ({"at": "sea", "n": 1.0}, ["sea", None], "sea", 7)),
        *((outcome, content) for outcome in ("failed", "denied") for content in ("sea", 7)),
    ],
)
def test_an_answer_of_any_outcome_is_told_as_it_was_spelled(outcome: str, content: Any):
    calls: Parts = [{"kind": "tool-call", "tool_name": "find", "args": {}, "tool_call_id": "a"}]
    answer = {"kind": "tool-return", "tool_name": "find", "content": content, "tool_call_id": "a", "outcome": outcome}

    assert_reproduced(record_of("", "Done.", ASKED, calls, [answer], SAID))


def test_outputs_of_items_in_another_order_than_the_calls_are_told_in_theirs():
    calls = [{"type": "function_call", "name": "look", "arguments": "{}", "call_id": each} for each in "ab"]
    outputs = [{"type": "function_call_output", "call_id": each, "output": each} for each in "ba"]
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
    items = {"input": "go", "final_output": "Done.", "items": [*calls, *outputs, said]}
    record = encode_native(parse_document(json.dumps(items).encode()))

    assert_reproduced(record)
    requests = replayed(record)[0].facts["proof"]["requests"]
    assert requests["state"] == "not_comparable"
    assert "the order in which tool answers were sent to the model" in requests["reason"]
