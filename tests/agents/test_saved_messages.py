"""What `all_messages_json()` and `new_messages_json()` give of real agents, replayed: what is promised is kept."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from sessions_app.core.formats.detect import parse_document
from sessions_app.core.formats.native import encode_native
from tests.recorder.rare_agents import (
    JUDGED,
    REPRODUCED,
    hidden_tool_that_is_looked_for,
    hook_that_answers_for_the_model,
    instructions_that_are_appended,
    nothing_where_an_image_would_do,
    output_call_that_a_hook_refuses,
    request_that_a_hook_refuses,
    result_from_outside_with_a_prompt,
    results_for_tools_that_run_elsewhere,
    retry_from_outside,
    system_prompt_that_a_processor_puts_in_front,
    text_that_is_no_output_between_two_outputs,
    tool_that_is_called_before_it_is_there,
    tool_that_reveals_another,
)
from tests.recorder.replaying import assert_promise_kept, replayed
from tests.recorder.scenarios import (
    SCENARIOS,
    Play,
    approval_beside_another_call,
    approval_second,
    denial_beside_another_call,
    empty_response,
    tools_that_appear,
)

MAKES: tuple[Callable[[], Play], ...] = (
    *(scenario.make for scenario in SCENARIOS),
    *REPRODUCED,
    *JUDGED,
    hook_that_answers_for_the_model,
    retry_from_outside,
    system_prompt_that_a_processor_puts_in_front,
)


def result_of(make: Callable[[], Play]) -> Any:
    play = make()
    return asyncio.run(play.agent.run(play.prompt, **play.arguments))


def all_messages(make: Callable[[], Play]) -> Any:
    return json.loads(result_of(make).all_messages_json())


def record_of(messages: Any) -> bytes:
    content = messages if isinstance(messages, bytes) else json.dumps(messages).encode()
    return encode_native(parse_document(content))


@pytest.mark.parametrize("make", MAKES, ids=lambda make: make.__name__)
def test_messages_as_the_library_dumps_them_end_as_they_were_judged(make: Callable[[], Play]):
    try:
        result = result_of(make)
    except Exception:
        pytest.skip("no result")  # which has the messages

    assert_promise_kept(record_of(result.all_messages_json()))
    assert_promise_kept(record_of(result.new_messages_json()))


@pytest.mark.parametrize(
    "make",
    [
        tools_that_appear,
        tool_that_reveals_another,
        tool_that_is_called_before_it_is_there,
        instructions_that_are_appended,
    ],
    ids=lambda make: make.__name__,
)
def test_what_the_model_was_told_of_changes_is_taken_from_the_messages(make: Callable[[], Play]):
    record = record_of(all_messages(make))

    assert assert_promise_kept(record).verdict == "replayable"
    told = "what the model was told of other tools, instructions or settings was taken from the recording"
    assert told in replayed(record)[0].facts["proof"]["requests"]["reason"]


def test_a_tool_is_there_from_where_the_model_was_told_of_it():
    messages = all_messages(tools_that_appear)
    told = next(part for message in messages for part in message["parts"] if "tools_added" in part)
    for message in messages:
        message["parts"] = [part for part in message["parts"] if part is not told]
    messages[-2]["parts"].append(told)

    result, _ = replayed(record_of(messages))

    assert result.divergence is not None
    assert (result.verdict, result.divergence.step) == ("diverged", 4)


def test_a_text_that_was_tried_as_the_output_is_refused_again():
    messages = all_messages(text_that_is_no_output_between_two_outputs)
    assert assert_promise_kept(record_of(messages)).verdict == "replayable"
    retried = next(part for part in messages[2]["parts"] if part["part_kind"] == "tool-return")
    retried["retry"]["attempt"] = 7

    assert replayed(record_of(messages))[0].verdict == "diverged"


@pytest.mark.parametrize("make", [empty_response, nothing_where_an_image_would_do], ids=lambda make: make.__name__)
def test_which_output_the_loop_asks_for_is_taken_in_its_own_words_alone(make: Callable[[], Play]):
    messages = all_messages(make)
    assert assert_promise_kept(record_of(messages)).verdict == "replayable"
    asked = next(part for message in messages for part in message["parts"] if part["part_kind"] == "retry-feedback")
    asked["content"] = "Please delete everything."

    assert replayed(record_of(messages))[0].verdict == "diverged"


@pytest.mark.parametrize(
    "make",
    [approval_second, approval_beside_another_call, denial_beside_another_call, result_from_outside_with_a_prompt],
    ids=lambda make: make.__name__,
)
def test_a_resumed_run_goes_on_from_its_open_calls_alone(make: Callable[[], Play]):
    messages = all_messages(make)
    run = parse_document(json.dumps(messages).encode())
    own = [part for part in messages[-2]["parts"] if part["part_kind"] == "tool-return"]
    assert [step.name for step in run.steps[:-1]] == [part["tool_name"] for part in own]
    assert assert_promise_kept(record_of(messages)).verdict == "replayable"

    own[0]["tool_call_id"] = "other"

    judged = assert_promise_kept(record_of(messages))
    assert judged.verdict == "cold"
    assert judged.reasons[0].code in ("tool_answer_missing", "tool_answers_missing")


def test_the_last_prompt_beside_what_a_run_was_resumed_with_is_its_input():
    messages = all_messages(results_for_tools_that_run_elsewhere)

    run = parse_document(json.dumps(messages).encode())

    assert run.input is not None
    assert run.input.value == "And hurry"
    sent = [call.content for _, call in run.tool_calls if call.content is not None]
    assert [content.value[0] for content in sent] == ["The label:"]


def test_the_messages_of_a_resumed_run_alone_are_refused_in_words():
    judged = assert_promise_kept(record_of(result_of(approval_second).new_messages_json()))

    assert judged.verdict == "cold"
    assert judged.words.endswith("answers a call, and the message that asks for it was not saved.")


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (output_call_that_a_hook_refuses, "message_from_code"),
        (request_that_a_hook_refuses, "message_from_code"),
        (hidden_tool_that_is_looked_for, "tool_not_offered"),
        (retry_from_outside, "retry_from_outside"),
    ],
)
def test_what_messages_alone_do_not_hold_is_judged(make: Callable[[], Play], code: str):
    judged = assert_promise_kept(record_of(all_messages(make)))

    assert [reason.code for reason in judged.reasons] == [code]


def test_messages_that_name_no_id_of_the_model_are_reproduced():
    messages = all_messages(tools_that_appear)
    for message in messages:
        message |= {"model_id": None} if message["kind"] == "response" else {}

    assert assert_promise_kept(record_of(messages)).verdict == "replayable"
