"""Files that say the prompt beside their messages: it is one prompt, and a contradiction is named."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sessions_app.core.formats.detect import parse_document
from sessions_app.core.formats.native import encode_native
from sessions_app.core.judge.kit import audit_kit
from sessions_app.core.judge.reading import first_requests
from sessions_app.core.judge.verdict import judge
from sessions_app.core.run import Run
from tests.recorder.replaying import assert_promise_kept, assert_reproduced

Json = dict[str, Any]
SESSION: Json = json.loads(Path("tests/records/session_abc123.json").read_text())
ASKED = SESSION["user_input"]
CALL = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
ANSWER = {"type": "function_call_output", "call_id": "c1", "output": "Nothing."}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Bye"}]}
ITEMS: Json = {"input": "Hi", "final_output": "Bye", "items": [CALL, ANSWER, SAID]}


def parsed(document: Json) -> Run:
    run = parse_document(json.dumps(document).encode())
    assert isinstance(run, Run)
    return run


def changed(change: Callable[[Json], object]) -> Run:
    document = copy.deepcopy(SESSION)
    change(document)
    return parsed(document)


def prompts(run: Run) -> list[Any]:
    return [part["content"] for seen in first_requests(run) for part in seen.parts_of("user-prompt")]


def first_parts(*parts: Json) -> Callable[[Json], object]:
    return lambda document: document["messages"][0].update(parts=list(parts))


PROMPT = {"kind": "user-prompt", "content": ASKED}
IN_ONE_PLACE = {
    "in both": lambda document: None,
    "in the messages alone": lambda document: document.pop("user_input"),
    "the input is empty": lambda document: document.update(user_input=""),
    "no first request": lambda document: document["messages"].pop(0),
    "an empty first request": first_parts(),
    "a system prompt alone": first_parts({"kind": "system-prompt", "content": "Be kind."}),
}


@pytest.mark.parametrize("change", IN_ONE_PLACE.values(), ids=IN_ONE_PLACE)
def test_a_prompt_that_stands_in_one_of_two_places_is_one_prompt(change: Callable[[Json], object]):
    run = changed(change)

    assert (prompts(run), run.input and run.input.value) == ([ASKED], ASKED)
    assert judge(run).verdict == "replayable"
    assert_reproduced(encode_native(run))


ANSWERED = {"type": "ModelResponse", "parts": [{"kind": "text", "content": "How can I help?"}]}
GREETED = [{"type": "ModelRequest", "parts": [{"kind": "user-prompt", "content": "Hello"}]}, ANSWERED]
UNPROMPTED = {
    "not saved": lambda messages: messages.pop(0),
    "an empty message": lambda messages: messages[0].update(parts=[]),
    "a system prompt alone": lambda messages: messages[0].update(parts=[{"kind": "system-prompt", "content": "Be"}]),
}


@pytest.mark.parametrize("change", UNPROMPTED.values(), ids=UNPROMPTED)
@pytest.mark.parametrize("before", [GREETED, [*SESSION["messages"][:3], ANSWERED]], ids=["a text", "a call"])
def test_a_turn_whose_prompt_was_not_saved_is_judged_where_the_loop_ends(
    before: list[Json], change: Callable[[list[Json]], object]
):
    newest = copy.deepcopy(SESSION["messages"])
    saved = {"session_id": "a", "final_output": SESSION["final_output"]}
    assert_reproduced(encode_native(parsed({**saved, "messages": [*before, *newest]})))
    change(newest)

    judged = assert_promise_kept(encode_native(parsed({**saved, "messages": [*before, *newest]})))

    reasons = [(reason.code, reason.step) for reason in judged.reasons]
    assert reasons == [("prompt_missing", len(before))]


def test_an_answer_before_anything_was_asked_is_nothing_to_begin_with():
    document = copy.deepcopy(SESSION)
    document["messages"][:2] = document["messages"][1::-1]

    judged = assert_promise_kept(encode_native(parsed(document)))

    assert (judged.verdict, judged.limit and judged.limit.code) == ("cold", "prompt_missing")


def test_an_answer_of_a_tool_before_its_call_is_judged_at_its_request():
    document = copy.deepcopy(SESSION)
    del document["tool_calls"]
    again = [copy.deepcopy(each) for each in document["messages"][1:3]]
    for message in again:
        message["parts"] = [part | {"tool_call_id": "later"} for part in message["parts"] if "tool_name" in part]
    document["messages"][3:3] = again
    assert judge(parsed(document)).verdict == "replayable"
    document["messages"][3:5] = again[::-1]

    judged = assert_promise_kept(encode_native(parsed(document)))

    assert judged.limit is not None
    assert (judged.limit.code, judged.limit.step) == ("other_course", 3)


def test_two_calls_of_one_answer_with_one_id_are_judged_where_they_would_be_made():
    document = copy.deepcopy(SESSION)
    parts = document["messages"][1]["parts"]
    parts.insert(0, {"kind": "tool-call", "tool_name": "look", "args": {}, "tool_call_id": "call_0"})
    document["messages"][2]["parts"].insert(
        0, {"kind": "tool-return", "tool_name": "look", "content": "", "tool_call_id": "call_0"}
    )
    parts.append(parts[-1])

    judged = assert_promise_kept(encode_native(parsed(document)))

    assert judged.limit is not None
    assert (judged.limit.code, judged.limit.step) == ("call_ids_doubled", 2)


CONTRADICTIONS = {
    "another input": lambda document: document.update(user_input="Another"),
    "another prompt": first_parts({"kind": "user-prompt", "content": "Another"}),
    "a second prompt": first_parts(PROMPT, {"kind": "user-prompt", "content": "And this."}),
    "a list": first_parts({"kind": "user-prompt", "content": [ASKED]}),
    "an object": lambda document: document.update(user_input={"question": ASKED}),
}


@pytest.mark.parametrize("change", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_an_input_that_is_not_the_prompt_is_named(change: Callable[[Json], object]):
    run = changed(change)
    judged = assert_promise_kept(encode_native(run))

    assert (judged.verdict, judged.step) == ("replayable_to_step", 5)
    assert [reason.code for reason in judged.reasons] == ["input_contradicts"]
    assert [line.key for line in audit_kit(run).lines if line.status == "contradictory"] == ["input"]


ASKED_ITEM = {"role": "user", "content": "Hi"}


@pytest.mark.parametrize("asked", ["Hi", [ASKED_ITEM], None])
def test_rows_that_begin_with_the_input_hold_one_prompt(asked: Any):
    run = parsed({**ITEMS, "input": asked, "items": [ASKED_ITEM, *ITEMS["items"]]})

    assert prompts(run) == ["Hi"]
    assert_reproduced(encode_native(run))


def test_rows_that_begin_with_another_prompt_are_named():
    run = parsed({**ITEMS, "input": "Ho", "items": [ASKED_ITEM, *ITEMS["items"]]})
    judged = assert_promise_kept(encode_native(run))

    assert [reason.code for reason in judged.reasons] == ["input_contradicts"]
    assert prompts(run) == ["Hi"]


@pytest.mark.parametrize("output", [{}, {"output": None}], ids=["absent", "null"])
def test_an_item_without_an_output_is_no_answer(output: Json):
    row = {"type": "function_call_output", "call_id": "c2", **output}
    run = parsed({**ITEMS, "items": [CALL, {**CALL, "call_id": "c2"}, ANSWER, row, SAID]})
    judged = assert_promise_kept(encode_native(run))

    assert [call.result and call.result.value for _, call in run.tool_calls] == ["Nothing.", None]
    assert (judged.step, [reason.code for reason in judged.reasons]) == (2, ["tool_answer_missing"])


def test_an_empty_answer_is_an_answer():
    run = parsed({**ITEMS, "items": [CALL, {**ANSWER, "output": ""}, SAID]})

    assert [call.result and call.result.value for _, call in run.tool_calls] == [""]
    assert_reproduced(encode_native(run))


@pytest.mark.parametrize("instructions", ["Help.", "Help.\n", "\n  Help. ", " ", "", "Help.\n\nMore.\n"])
def test_white_space_at_the_ends_of_instructions_is_kept_by_a_replay(instructions: str):
    """Pydantic AI's loop takes it away, other frameworks do not."""
    for document in (ITEMS, SESSION):
        assert_reproduced(encode_native(parsed({**document, "instructions": instructions})))


@pytest.mark.parametrize("final", [{}, {"final_output": None}], ids=["left out", "null"])
def test_items_without_what_the_run_ended_with_do_not_say_that_it_ended_so(final: Json):
    judged = assert_promise_kept(
        encode_native(parsed({name: value for name, value in ITEMS.items() if name != "final_output"} | final))
    )

    assert [(reason.code, reason.step) for reason in judged.reasons] == [("output_missing", 4)]
