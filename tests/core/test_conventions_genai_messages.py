"""The GenAI conventions: messages as attributes, as one event, and as events of their own."""

import json

import pytest

from sessions_app.core.conventions.genai.span import read
from sessions_app.core.payload import JsonValue
from sessions_app.core.spans.reading import (
    CallPart,
    ChatMessage,
    OtherPart,
    Part,
    Reading,
    ResultPart,
    Role,
    TextPart,
    ThinkingPart,
)
from sessions_app.core.spans.span import Attributes, Span, SpanEvent

DETAILS = "gen_ai.client.inference.operation.details"


def reading_of(attributes: Attributes, **fields: object) -> Reading:
    span = Span(
        trace_id="1" * 32,
        span_id="2" * 16,
        attributes={"gen_ai.operation.name": "chat", **attributes},
        **fields,  # type: ignore[arg-type]
    )
    reading = read(span)
    assert reading is not None
    return reading


def message(role: Role, *parts: Part) -> ChatMessage:
    return ChatMessage(role=role, parts=parts)


def says(role: Role, text: str) -> ChatMessage:
    return message(role, TextPart(text=text))


def event(name: str, body: JsonValue = None, **attributes: JsonValue) -> SpanEvent:
    return SpanEvent(name=name, attributes=attributes, body=body)


def wire(role: str, *parts: JsonValue, **more: JsonValue) -> JsonValue:
    return {"role": role, "parts": list(parts), **more}


def text(words: str) -> JsonValue:
    return {"type": "text", "content": words}


ASKED = wire("user", text("Where is my kettle?"))
CALL = {"type": "tool_call", "id": "c1", "name": "lookup", "arguments": {"item": "kettle"}}
RESULT = {"type": "tool_call_response", "id": "c1", "response": "[]"}
ANSWER = [wire("assistant", text("Let me see."), CALL, finish_reason="tool_call")]

READ_ANSWER = message(
    "assistant",
    TextPart(text="Let me see."),
    CallPart(tool_name="lookup", call_id="c1", arguments={"item": "kettle"}),
)


# --- attributes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("written", [json.dumps, lambda value: value], ids=["as text", "structured"])
def test_messages_of_attributes_are_read(written):
    reading = reading_of(
        {
            "gen_ai.input.messages": written([wire("system", text("Be kind.")), ASKED]),
            "gen_ai.output.messages": written(ANSWER),
        }
    )

    assert reading.messages == (says("system", "Be kind."), says("user", "Where is my kettle?"))
    assert reading.answer == READ_ANSWER
    assert reading.finish_reason == "tool_call"
    assert {"gen_ai.input.messages", "gen_ai.output.messages"} <= reading.used


@pytest.mark.parametrize("where", ["events", "logs"])
def test_details_event_fills_what_the_span_does_not_say(where):
    details = event(
        DETAILS, **{"gen_ai.input.messages": [ASKED], "gen_ai.request.model": "other", "gen_ai.usage.input_tokens": 7}
    )

    reading = reading_of({"gen_ai.request.model": "m"}, **{where: (details,)})

    assert reading.messages == (says("user", "Where is my kettle?"),)
    assert (reading.model, reading.input_tokens) == ("m", 7)


def test_details_may_come_as_several_events():
    sent = event(DETAILS, **{"gen_ai.input.messages": json.dumps([ASKED])})
    answered = event(DETAILS, **{"gen_ai.output.messages": json.dumps(ANSWER)})

    reading = reading_of({}, events=(sent, answered))

    assert reading.messages == (says("user", "Where is my kettle?"),)
    assert reading.answer == READ_ANSWER


def test_result_in_a_users_message_becomes_a_tools_message_in_its_place():
    mixed = wire("user", text("Before."), RESULT, text("After."))

    reading = reading_of({"gen_ai.input.messages": json.dumps([mixed])})

    assert reading.messages == (
        says("user", "Before."),
        message("tool", ResultPart(call_id="c1", content="[]")),
        says("user", "After."),
    )


@pytest.mark.parametrize(
    ("said", "content"),
    [
        ({"result": {"a": 1}}, {"a": 1}),
        ({"response": "words"}, "words"),
        ({"response": [{"text": '{"a": 1}'}]}, '{"a": 1}'),
        ({"result": []}, []),
        ({"result": [{"text": "one"}, {"text": "two"}]}, [{"text": "one"}, {"text": "two"}]),
    ],
)
def test_result_of_a_tool_is_read_in_every_spelling(said, content):
    part = {"type": "tool_call_response", "id": "c1", "name": "lookup", **said}

    reading = reading_of({"gen_ai.input.messages": json.dumps([wire("tool", part)])})

    assert reading.messages == (message("tool", ResultPart(call_id="c1", tool_name="lookup", content=content)),)


def test_arguments_that_came_as_text_stay_text():
    call = {**CALL, "arguments": '{"item":  "kettle"}'}

    reading = reading_of({"gen_ai.output.messages": json.dumps([wire("assistant", call)])})

    assert reading.answer == message(
        "assistant", CallPart(tool_name="lookup", call_id="c1", arguments='{"item":  "kettle"}')
    )


def test_thinking_and_unknown_parts_are_kept():
    image = {"type": "uri", "modality": "image", "uri": "https://example.org/kettle.png"}
    thought = {"type": "reasoning", "content": "A kettle."}

    reading = reading_of(
        {
            "gen_ai.input.messages": json.dumps([wire("user", image)]),
            "gen_ai.output.messages": json.dumps([wire("assistant", thought, text("Yes."))]),
        }
    )

    assert reading.messages == (message("user", OtherPart(kind="uri", value=image)),)
    assert reading.answer == message("assistant", ThinkingPart(text="A kettle."), TextPart(text="Yes."))


def test_answer_in_several_messages_is_one():
    pieces = [wire("assistant", text("Let me see.")), wire("assistant", CALL, finish_reason="tool_call")]

    assert reading_of({"gen_ai.output.messages": json.dumps(pieces)}).answer == READ_ANSWER


def test_of_several_alternatives_the_first_is_the_answer():
    said = json.dumps([wire("assistant", text("One.")), wire("assistant", text("Two."))])

    alone = reading_of({"gen_ai.output.messages": said, "gen_ai.request.choice.count": 2})
    joined = reading_of({"gen_ai.output.messages": said})

    assert alone.answer == says("assistant", "One.")
    assert joined.answer == message("assistant", TextPart(text="One."), TextPart(text="Two."))


@pytest.mark.parametrize("said", [["Order ", "A-1", " is here."], ["Order ", "A-1 is here.", "Order A-1 is here."]])
def test_pieces_of_a_stream_before_the_finished_message_are_one_answer(said):
    pieces = [wire("assistant", text(piece), finish_reason="") for piece in said[:-1]]
    finished = wire("assistant", text(said[-1]), finish_reason="stop")

    reading = reading_of({"gen_ai.output.messages": json.dumps([*pieces, finished])})

    assert reading.answer == says("assistant", "Order A-1 is here.")
    assert reading.finish_reason == "stop"


def test_calls_in_pieces_of_a_stream_are_asked_once():
    piece = wire("assistant", {**CALL, "arguments": None}, finish_reason="")
    whole = wire("assistant", CALL, finish_reason="stop")

    reading = reading_of({"gen_ai.output.messages": json.dumps([piece, piece, whole])})

    assert reading.answer == message(
        "assistant", CallPart(tool_name="lookup", call_id="c1", arguments=CALL["arguments"])
    )


def test_finished_message_after_pieces_without_text_keeps_its_order():
    thought = {"type": "reasoning", "content": "A kettle."}
    said = [
        wire("assistant", thought, finish_reason=""),
        wire("assistant", thought, text("Yes."), finish_reason="stop"),
    ]

    reading = reading_of({"gen_ai.output.messages": json.dumps(said)})

    assert reading.answer == message("assistant", ThinkingPart(text="A kettle."), TextPart(text="Yes."))


def test_empty_finish_reasons_alone_make_no_stream():
    said = [wire("assistant", text("Let me see."), finish_reason=""), wire("assistant", CALL, finish_reason="")]

    assert reading_of({"gen_ai.output.messages": json.dumps(said)}).answer == READ_ANSWER


@pytest.mark.parametrize(
    ("said", "instructions"),
    [
        ('[{"type": "text", "content": "Be kind."}]', "Be kind."),
        (
            '[{"type": "text", "content": "Be kind."}, {"type": "text", "content": "Be short."}]',
            "Be kind.\n\nBe short.",
        ),
        ("Be kind.", "Be kind."),
        ([{"type": "text", "content": "Be kind."}], "Be kind."),
        ('[{"type": "text", "content": "Be ki', None),
        ("", None),
    ],
)
def test_system_instructions_are_read_in_every_spelling(said, instructions):
    assert reading_of({"gen_ai.system_instructions": said}).instructions == instructions


# --- content switched off -------------------------------------------------------------------------


def test_messages_without_their_content_were_not_captured():
    asked = [wire("user", {"type": "text"}), wire("user", {"type": "tool_call_response", "id": "c1", "name": "lookup"})]
    answer = [wire("assistant", {"type": "text"}, {"type": "tool_call", "id": "c2", "name": "lookup"})]

    reading = reading_of({"gen_ai.input.messages": json.dumps(asked), "gen_ai.output.messages": json.dumps(answer)})

    assert reading.messages is None
    assert reading.answer == message("assistant", CallPart(tool_name="lookup", call_id="c2", arguments=None))
    assert "gen_ai.input.messages" not in reading.used


def test_answer_without_its_content_was_not_captured_and_an_empty_one_was():
    hollow = reading_of({"gen_ai.output.messages": json.dumps([wire("assistant", {"type": "text"})])})
    empty = reading_of({"gen_ai.output.messages": json.dumps([wire("assistant", text(""))])})

    assert hollow.answer is None
    assert empty.answer is not None


def test_no_messages_at_all_are_none():
    reading = reading_of({"gen_ai.input.messages": "[]"})

    assert (reading.messages, reading.answer) == (None, None)


# --- events ---------------------------------------------------------------------------------------

FUNCTION = {"id": "c1", "type": "function", "function": {"name": "lookup", "arguments": '{"item": "kettle"}'}}
TOLD = (
    says("system", "Be kind."),
    says("user", "Where is my kettle?"),
    message("assistant", CallPart(tool_name="lookup", call_id="c1", arguments='{"item": "kettle"}')),
    message("tool", ResultPart(call_id="c1", content='[{"order": 1}]')),
)


def test_log_records_are_messages():
    logs = (
        event("gen_ai.system.message", {"content": "Be kind."}),
        event("gen_ai.user.message", {"content": "Where is my kettle?"}),
        event("gen_ai.assistant.message", {"tool_calls": [FUNCTION]}),
        event("gen_ai.tool.message", {"id": "c1", "content": '[{"order": 1}]'}),
        event("gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": {"content": "Here."}}),
        event("gen_ai.choice", {"index": 1, "finish_reason": "length", "message": {"content": "There."}}),
    )

    reading = reading_of({}, logs=logs)

    assert reading.messages == TOLD
    assert reading.answer == says("assistant", "Here.")
    assert reading.finish_reason == "stop"


def test_log_records_without_their_content_were_not_captured():
    logs = (
        event("gen_ai.user.message", {}),
        event("gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": {"role": "assistant"}}),
    )

    reading = reading_of({}, logs=logs)

    assert (reading.messages, reading.answer, reading.finish_reason) == (None, None, "stop")


def test_attributes_come_before_events():
    logs = (event("gen_ai.user.message", {"content": "Other words."}),)

    reading = reading_of({"gen_ai.input.messages": json.dumps([ASKED])}, logs=logs)

    assert reading.messages == (says("user", "Where is my kettle?"),)


def test_events_that_an_attribute_lists_are_messages():
    listed = [
        {"event.name": "gen_ai.system.message", "role": "system", "content": "Be kind."},
        {"event.name": "gen_ai.user.message", "role": "user", "content": "Where is my kettle?"},
        {"event.name": "gen_ai.assistant.message", "role": "assistant", "tool_calls": [FUNCTION]},
        {"event.name": "gen_ai.tool.message", "role": "tool", "id": "c1", "content": '[{"order": 1}]'},
        {"event.name": "gen_ai.choice", "index": 0, "message": {"role": "assistant", "content": "Here."}},
    ]

    reading = reading_of({"events": json.dumps(listed)})

    assert reading.messages == TOLD
    assert reading.answer == says("assistant", "Here.")
    assert "events" in reading.used


def test_events_of_the_span_hold_blocks_as_text():
    use = {"toolUse": {"toolUseId": "c1", "name": "lookup", "input": {"item": "kettle"}}}
    result = {"toolResult": {"toolUseId": "c1", "status": "error", "content": [{"text": "[]"}]}}
    events = (
        event("gen_ai.system.message", content='[{"text": "Be kind."}]'),
        event("gen_ai.user.message", content='[{"text": "Where is my kettle?"}]'),
        event("gen_ai.assistant.message", content=json.dumps([use])),
        event("gen_ai.user.message", content=json.dumps([result, {"text": "And?"}])),
        event("gen_ai.choice", finish_reason="end_turn", message='[{"text": "Here."}]'),
    )

    reading = reading_of({}, events=events)

    assert reading.messages == (
        says("system", "Be kind."),
        says("user", "Where is my kettle?"),
        message("assistant", CallPart(tool_name="lookup", call_id="c1", arguments={"item": "kettle"})),
        message("tool", ResultPart(call_id="c1", content="[]", is_error=True)),
        says("user", "And?"),
    )
    assert reading.answer == says("assistant", "Here.")
    assert reading.finish_reason == "end_turn"


@pytest.mark.parametrize("words", ["[1, 2]", '[{"order": 1}]', "[]", "plain"])
def test_text_of_an_event_that_holds_no_blocks_stays_text(words):
    reading = reading_of({}, events=(event("gen_ai.user.message", content=words),))

    assert reading.messages == (says("user", words),)


def test_oldest_events_hold_all_messages():
    events = (
        event("gen_ai.content.prompt", **{"gen_ai.prompt": '[{"role": "user", "content": "Hi"}]'}),
        event("gen_ai.content.completion", **{"gen_ai.completion": '[{"role": "assistant", "content": "Hello"}]'}),
    )

    reading = reading_of({}, events=events)

    assert (reading.messages, reading.answer) == ((says("user", "Hi"),), says("assistant", "Hello"))


# --- events as other senders spell them --------------------------------------------------------

ASKS_FOR_IT = {"id": "c1", "type": "function", "function": {"name": "lookup", "arguments": '{"item":"kettle"}'}}
LOOKUP = CallPart(tool_name="lookup", call_id="c1", arguments='{"item":"kettle"}')


@pytest.mark.parametrize(
    "choice",
    [
        {
            "gen_ai.event.content": json.dumps(
                {"index": 0, "message": {"content": "Here.", "tool_calls": [ASKS_FOR_IT]}}
            )
        },
        {"role": "assistant", "content": "Here.", "tool_calls": [json.dumps(ASKS_FOR_IT)]},
        {"message": json.dumps({"role": "assistant", "content": "Here.", "tool_calls": [ASKS_FOR_IT]})},
    ],
    ids=["azure", "livekit", "message-as-text"],
)
def test_a_choice_is_read_however_an_event_holds_it(choice):
    reading = reading_of({}, events=(event("gen_ai.user.message", content="Where?"), event("gen_ai.choice", **choice)))

    assert reading.messages == (says("user", "Where?"),)
    assert reading.answer == message("assistant", TextPart(text="Here."), LOOKUP)


def test_a_body_that_is_the_text_of_one_is_read():
    logs = (
        event("gen_ai.user.message", '{"role": "user", "content": "Where?"}'),
        event("gen_ai.choice", '{"index": 0, "message": {"content": "{\\"a\\": 1}"}}'),
    )
    reading = reading_of({}, logs=logs)

    assert reading.messages == (says("user", "Where?"),)
    assert reading.answer == says("assistant", '{"a": 1}')


def test_a_text_that_only_looks_like_json_stays_what_was_said():
    for said in ('{"order": 7}', '{"content": "a draft"}'):
        reading = reading_of({}, events=(event("gen_ai.choice", message=said),))

        assert reading.answer == says("assistant", said)


def test_json_that_a_user_said_is_no_body():
    logs = (event("gen_ai.user.message", '{"content": "a draft"}'), event("gen_ai.choice", "Here."))

    assert reading_of({}, logs=logs).messages == (says("user", '{"content": "a draft"}'),)


def test_half_a_surrogate_pair_costs_that_sign_alone():
    said = r'[{"role":"user","parts":[{"type":"text","content":"smile \ud83d"}]}]'

    assert reading_of({"gen_ai.input.messages": said}).messages == (says("user", "smile \ufffd"),)
