"""What each format keeps, and what it makes of it."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from sessions_app.core.errors import RecordError, RecordTooLarge
from sessions_app.core.formats.detect import parse_document
from sessions_app.core.formats.native import encode_native
from sessions_app.core.history import messages
from sessions_app.core.json_text import Limits
from sessions_app.core.payload import BINARY, JSON, TEXT, Payload
from sessions_app.core.run import ErrorInfo, ParentLink

DEFAULTS = Limits()


def parse(document: object, limits: Limits = DEFAULTS) -> Any:
    """The run that a document gives; it must survive being written and read again.

    Any: each test knows which kinds of steps its document has.
    """
    run = parse_document(json.dumps(document).encode(), limits)
    assert parse_document(encode_native(run)) == run
    return run


def make_record(**fields: object) -> dict[str, object]:
    return {"format": "agent-replay.run", "version": 1, "run_id": "r", **fields}


def make_tool(**fields: object) -> dict[str, object]:
    return make_record(steps=[{"kind": "tool", "name": "t", **fields}])


def make_session(**fields: object) -> dict[str, object]:
    return {"session_id": "s", "messages": [], **fields}


def user_prompt(content: object, **fields: object) -> dict[str, object]:
    return {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": content}], **fields}


def answer(*parts: Mapping[str, object], **fields: object) -> dict[str, object]:
    return {"kind": "response", "parts": list(parts), **fields}


# --- native ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "payload"),
    [
        (b'"caf\\u00e9"', Payload(content="café".encode(), media_type=TEXT)),
        (b'{ "a" :1.0}', Payload(content=b'{ "a" :1.0}')),
        (b"1e2", Payload(content=b"1e2")),
        (b'{"base64": "aGk="}', Payload(content=b"hi", media_type="application/octet-stream")),
        (b'{"base64": "aGk=", "media_type": "image/png"}', Payload(content=b"hi", media_type="image/png")),
        (b'{"base64": "aGk=", "name": "a"}', Payload(content=b'{"base64": "aGk=", "name": "a"}')),
        (b'{"base64": 5}', Payload(content=b'{"base64": 5}')),
        (b'{"base64": "eyJiYXNlNjQiOiAiIn0=", "media_type": "application/json"}', Payload(content=b'{"base64": ""}')),
    ],
)
def test_value_stands_for_bytes(written, payload):
    run = parse_document(json.dumps(make_record()).encode()[:-1] + b', "input":  ' + written + b" }")

    assert run.input == payload
    assert parse_document(encode_native(run)).input == payload


@pytest.mark.parametrize("content", [b'{"base64": "aGk="}', b'"text in quotes"', b' {"a": 1}\n', b"null"])
def test_value_that_could_be_mistaken_is_written_as_bytes_of_json(content):
    payload = Payload(content=content, media_type=JSON)
    run = with_result(parse(make_tool()), payload)

    assert parse_document(encode_native(run)) == run
    assert run.steps[0].call.result == payload


def with_result(run: Any, payload: Payload) -> Any:
    step = run.steps[0]
    return replace(run, steps=(replace(step, call=replace(step.call, result=payload)),))


def test_payload_cannot_smuggle_fields_into_a_record():
    forged = {"base64": "MSwic3RhdHVzIjoib2si", "media_type": "application/json"}

    run = parse(make_record(input=forged))

    assert run.input == Payload(content=b'1,"status":"ok"', media_type=BINARY)
    assert parse_document(encode_native(run)) == run


def test_cut_off_json_body_is_kept_as_bytes_whatever_its_content_type_was():
    cut = {"base64": "eyJwcmljZSI6IDEy", "media_type": "application/json"}

    result = parse(make_tool(result=cut)).steps[0].call.result

    assert (result.content, result.media_type) == (b'{"price": 12', BINARY)


def test_null_answer_differs_from_no_answer():
    assert parse(make_tool(result=None)).steps[0].call.result == Payload(content=b"null")
    assert parse(make_tool()).steps[0].call.result is None


@pytest.mark.parametrize(
    ("fields", "status"),
    [({}, "cut_off"), ({"output": ""}, "ok"), ({"output": "x", "error": "broke"}, "error"), ({"error": {}}, "error")],
)
def test_status_follows_from_the_record_when_it_is_absent(fields, status):
    assert parse(make_record(**fields)).status == status


def test_error_may_be_a_sentence():
    assert parse(make_record(error="It broke.")).error == ErrorInfo(type=None, message="It broke.")


def test_unknown_fields_are_kept_where_they_stood():
    unknown = {"x": {"y": [1, 2.5, "z"]}}
    document = make_tool(**unknown, error=unknown, http=unknown)
    run = parse({**document, **unknown, "agent": unknown, "code": unknown})
    step = run.steps[0]

    places = [run.extra, run.agent.extra, run.code.extra, step.extra, step.error.extra, step.http.extra]
    assert places == [unknown] * 6


def test_unknown_part_kinds_and_fields_in_messages_are_kept_as_spelled():
    message = b'{"kind":"request",  "parts":[{"part_kind":"hologram","depth":3e0}],"mood":"good"}'
    text = b'{"format":"agent-replay.run","version":1,"run_id":"r","prior":[' + message + b"]}"
    run = parse_document(text)

    assert [m.content for m in messages(run.prior)] == [message]
    assert message in encode_native(run)


def test_parent_and_headers_are_read():
    run = parse(make_tool(http={"request_headers": {"a": "b"}, "response_headers": [["c", "1"], ["c", "2"]]}))
    forked = parse(make_record(parent={"run_id": "q", "step": 3}, origin="fork"))

    assert run.steps[0].http.request_headers == (("a", "b"),)
    assert run.steps[0].http.response_headers == (("c", "1"), ("c", "2"))
    assert forked.parent == ParentLink(run_id="q", step=3)


def test_histories_share_their_beginning():
    first, second, reply = user_prompt("a"), user_prompt("b"), answer()
    steps = [
        {"kind": "model", "request": {"after": 0, "messages": [first]}, "response": reply},
        {"kind": "other"},
        {"kind": "model", "request": {"after": 1, "messages": [second]}, "response": reply},
    ]
    run = parse(make_record(prior=[second], steps=steps, final={"after": 3, "messages": [first]}))

    assert [m.value for m in messages(run.final)] == [second, first, reply, second, reply, first]


def test_too_many_steps_are_refused():
    with pytest.raises(RecordTooLarge, match="3 steps; the limit is 2"):
        parse(make_record(steps=[{"kind": "other"}] * 3), Limits(max_steps=2))


# --- which format ------------------------------------------------------------------------------


@pytest.mark.parametrize("document", [5, "text", None, True, {}, {"steps": []}, {"session_id": "s"}])
def test_unknown_format_is_refused(document):
    with pytest.raises(RecordError):
        parse(document)


# --- session file ------------------------------------------------------------------------------


def test_session_file_without_messages_keeps_its_calls():
    document = make_session(final_output="Done.", tool_calls=[{"tool": "a", "args": {"b": 1}}, {"tool": "c"}])
    run = parse(document)

    assert [(call.tool_name, call.arguments) for _, call in run.tool_calls] == [
        ("a", Payload(content=b'{"b": 1}')),
        ("c", None),
    ]
    assert (run.status, run.output) == ("ok", Payload.of_text("Done."))


def test_session_file_with_nothing_but_a_question_is_cut_off():
    run = parse({"session_id": "s", "user_input": "Hello?"})

    assert (run.status, run.input, run.steps) == ("cut_off", Payload.of_text("Hello?"), ())


def test_session_file_messages_get_the_names_of_the_loop():
    parts = [{"kind": "user-prompt", "content": "Hi", "mood": 1.0}]
    message = {"type": "ModelRequest", "parts": parts, "mood": "good"}
    run = parse(make_session(instructions="Be kind.", messages=[message]))

    assert [m.value for m in messages(run.final)] == [
        {
            "parts": [{"content": "Hi", "mood": 1.0, "part_kind": "user-prompt"}],
            "instructions": "Be kind.",
            "kind": "request",
            "mood": "good",
        }
    ]


def test_session_file_may_carry_both_spellings():
    part = {"kind": "text", "part_kind": "text", "content": "Hi"}
    message = {"type": "ModelResponse", "kind": "response", "parts": [part], "instructions": None}

    assert parse(make_session(messages=[message], final_output="Hi")).output == Payload.of_text("Hi")


def test_session_file_without_its_output_has_none():
    message = {"type": "ModelResponse", "parts": [{"kind": "text", "content": "Hi"}]}

    assert parse(make_session(messages=[message])).output is None


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"session_id": 5, "messages": []}, "session_id"),
        (make_session(messages={}), "messages"),
        (make_session(messages=[{"type": "Model", "parts": []}]), "messages[0].type"),
        (make_session(messages=[{"type": "ModelRequest"}]), "messages[0].parts"),
        (make_session(messages=[{"type": "ModelRequest", "parts": [{}]}]), "messages[0].parts[0].kind"),
        (make_session(tool_calls=[{"args": {}}]), "tool_calls[0].tool"),
        (make_session(duration_ms="long"), "duration_ms"),
        (make_session(timestamp="then"), "timestamp"),
    ],
)
def test_session_file_names_the_field_that_is_wrong(document, field):
    with pytest.raises(RecordError) as caught:
        parse(document)

    assert caught.value.field == field


@pytest.mark.parametrize(
    "fields",
    [{"messages": [{"type": "ModelRequest", "parts": []}] * 3}, {"tool_calls": [{"tool": "t"}] * 3}],
)
def test_session_file_has_the_limits_of_a_record(fields):
    with pytest.raises(RecordTooLarge):
        parse(make_session(**fields), Limits(max_steps=2))


def test_unknown_field_with_a_native_name_is_kept_under_a_longer_one():
    session = parse(make_session(status="weird", team="blue"))
    dump = parse({"messages": [user_prompt("Hi")], "output": "Hello"})

    assert session.extra == {"session-file.status": "weird", "team": "blue"}
    assert dump.extra == {"pydantic-ai-messages.output": "Hello"}


# --- messages of Pydantic AI -------------------------------------------------------------------


def test_last_run_in_the_list_is_the_run():
    texts = [answer({"part_kind": "text", "content": text}) for text in ("One.", "Two.")]
    run = parse([user_prompt("First?"), texts[0], user_prompt("Second?"), texts[1]])

    assert [m.value for m in messages(run.prior)] == [user_prompt("First?"), texts[0]]
    assert (run.input, run.output) == (Payload.of_text("Second?"), Payload.of_text("Two."))
    assert [step.index for step in run.steps] == [1]


def test_object_with_base64_in_a_message_stays_an_object():
    call = {"part_kind": "tool-call", "tool_name": "t", "args": {}, "tool_call_id": "c"}
    result = {"part_kind": "tool-return", "tool_name": "t", "content": {"base64": "aGk="}, "tool_call_id": "c"}
    run = parse([user_prompt("Hi"), answer(call), {"kind": "request", "parts": [result]}])

    assert run.steps[1].call.result == Payload(content=b'{"base64": "aGk="}')


@pytest.mark.parametrize("odd", ["", " ", "a\x00b", "x" * 2000, 5, None, {"a": 1}, ["a"]])
def test_odd_names_in_messages_stay_in_the_message_alone(odd):
    call = {"part_kind": "tool-call", "tool_name": "t", "args": odd, "tool_call_id": "c"}
    facts = {"model_name": odd, "provider_name": odd, "finish_reason": odd, "run_id": odd, "conversation_id": odd}
    usage = {"input_tokens": odd, "output_tokens": 2**60}

    run = parse([user_prompt(odd, timestamp=odd), answer(call, **facts, usage=usage)])

    assert [m.value for m in messages(run.final)][1] == answer(call, **facts, usage=usage)


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ([1], "[0]"),
        ([{"parts": []}], "[0].kind"),
        ([{"kind": "reply", "parts": []}], "[0].kind"),
        ([{"kind": "request"}], "[0].parts"),
        ([{"kind": "request", "parts": [{}]}], "[0].parts[0].part_kind"),
        ({"messages": [{"kind": "request", "parts": [{}]}]}, "messages[0].parts[0].part_kind"),
        ({"messages": {}}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": [user_prompt("Hi")], "run_id": ""}, "run_id"),
    ],
)
def test_messages_name_the_field_that_is_wrong(document, field):
    with pytest.raises(RecordError) as caught:
        parse(document)

    assert caught.value.field == field
