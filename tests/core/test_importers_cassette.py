"""Cassettes of recorded HTTP: every exchange a step, with the answer byte for byte."""

import base64
import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.errors import RecordError, RecordTooLarge
from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.importers.cassette import matches, parse_cassette
from sessions_app.core.importers.documents import read_document
from sessions_app.core.json_text import Limits
from sessions_app.core.payload import BINARY, JSON, TEXT, Payload
from sessions_app.core.run import ErrorInfo, ModelCall, Run, Step, ToolCall

CALL = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}
QUESTION = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Rain?"}]
ASKS = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "sunny"}


def make_interaction(**fields: Any) -> dict[str, Any]:
    """`code`, `uri`, `method`, `sent`, `headers` (both sides), `body` (of the response) replace the defaults."""
    headers = fields.get("headers", {})
    return {
        "request": {
            "method": fields.get("method", "GET"),
            "uri": fields.get("uri", "https://api.example.com/v1/weather?city=Paris"),
            "body": fields.get("sent"),
            "headers": headers,
        },
        "response": {
            "status": {"code": fields.get("code", 200), "message": fields.get("message", "OK")},
            "headers": headers,
            "body": fields.get("body", {"string": '{"sky":  "clear", "t": 1.0}'}),
        },
    }


def make_chat(messages: list[Any], body: str, code: int = 200) -> dict[str, Any]:
    sent = json.dumps({"model": "gpt-4o", "messages": messages})
    uri = "https://llm.example.com/v1/chat/completions"
    return make_interaction(method="POST", uri=uri, sent=sent, body={"string": body}, code=code)


def chat_answer(message: dict[str, Any]) -> str:
    return json.dumps({"id": "x", "model": "gpt-4o-2024", "choices": [{"message": message, "finish_reason": "stop"}]})


def run_of(*interactions: Any, **fields: Any) -> Run:
    return parse_cassette(json.dumps({"version": 1, "interactions": interactions, **fields}).encode())


def step_of(**fields: Any) -> Step:
    (step,) = run_of(make_interaction(**fields)).steps
    return step


def tool_of(step: Step) -> ToolCall:
    assert isinstance(step.call, ToolCall)
    return step.call


# --- tools -------------------------------------------------------------------------------------


def test_interaction_becomes_a_tool_step_with_the_body_as_it_came() -> None:
    call = tool_of(step_of(method="POST", sent='{"a": 1.0}'))

    assert call.tool_name == "POST api.example.com/v1/weather"
    assert call.result == Payload(content=b'{"sky":  "clear", "t": 1.0}', media_type=JSON)
    assert call.outcome == "success"
    assert call.arguments is not None
    assert call.arguments.value == {
        "method": "POST",
        "uri": "https://api.example.com/v1/weather?city=Paris",
        "body": {"a": 1.0},
    }


@pytest.mark.parametrize(
    ("body", "payload"),
    [
        ({"string": "plain ☀"}, Payload(content="plain ☀".encode(), media_type=TEXT)),
        ("plain", Payload(content=b"plain", media_type=TEXT)),
        ({"string": '{"cut": '}, Payload(content=b'{"cut": ', media_type=TEXT)),
        ({"string": '{"a": NaN}'}, Payload(content=b'{"a": NaN}', media_type=TEXT)),
        ({"string": " [1]\n"}, Payload(content=b" [1]\n", media_type=JSON)),
        ({"string": ""}, Payload(content=b"", media_type=TEXT)),
        ({"base64_string": "/wA="}, Payload(content=b"\xff\x00", media_type=BINARY)),
        ({"base64_string": "WzFd"}, Payload(content=b"[1]", media_type=JSON)),
        ({"encoding": "utf-8", "string": "x"}, Payload(content=b"x", media_type=TEXT)),
        (None, None),
    ],
)
def test_body_is_kept_byte_for_byte(body: Any, payload: Payload | None) -> None:
    run = run_of(make_interaction(body=body))

    assert tool_of(run.steps[0]).result == payload
    assert parse_native(encode_native(run)) == run


def test_bytes_that_were_sent_stand_in_base64_among_the_arguments() -> None:
    step = step_of(sent={"base64_string": base64.b64encode(b"\xff\x00").decode()})

    arguments = tool_of(step).arguments
    assert arguments is not None
    assert arguments.value["body"] == {"base64": "/wA="}
    assert step.http is not None
    assert step.http.request_body == Payload(content=b"\xff\x00", media_type=BINARY)


def test_equal_requests_keep_their_recorded_order() -> None:
    run = run_of(*(make_interaction(body={"string": text}) for text in ("first", "second", "first")))

    assert [tool_of(step).result for step in run.steps] == [Payload.of_text(t) for t in ("first", "second", "first")]
    assert len({tool_of(step).arguments for step in run.steps}) == 1


def test_failed_status_is_a_failed_outcome_with_its_body() -> None:
    step = step_of(code=429, message="Too Many Requests", body={"string": "slow down"})

    assert tool_of(step).outcome == "failed"
    assert tool_of(step).result == Payload.of_text("slow down")
    assert step.error == ErrorInfo(type="HTTP 429", message="Too Many Requests")


def test_status_below_400_is_no_error() -> None:
    assert step_of(code=302).error is None


def test_headers_with_secrets_are_left_out_and_others_keep_every_value() -> None:
    secret = {
        name: ["s3cret"] for name in ("Authorization", "cookie", "Set-Cookie", "X-API-Key", "x-amz-security-token")
    }
    step = step_of(
        headers={**secret, "Content-Type": "text/plain", "Via": ["a", "b"], "x-ratelimit-left-tokens": ["9"]}
    )

    assert step.http is not None
    kept = (("Content-Type", "text/plain"), ("Via", "a"), ("Via", "b"), ("x-ratelimit-left-tokens", "9"))
    assert step.http.request_headers == step.http.response_headers == kept


def test_exchange_is_kept_with_its_status() -> None:
    http = step_of(code=404).http

    assert http is not None
    assert (http.method, http.url, http.status) == ("GET", "https://api.example.com/v1/weather?city=Paris", 404)


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("https://user:pass@api.example.com:8443/a", "GET api.example.com:8443/a"),
        ("/relative", "GET /relative"),
        ("http://[broken", "GET http://[broken"),
        ("https://a.example/" + "x" * 500, "GET a.example/" + "x" * 186),
        ("https://a.example/\x00", "GET a.example/"),
    ],
)
def test_tool_is_named_by_method_and_place(uri: str, name: str) -> None:
    run = run_of(make_interaction(uri=uri))

    assert run.steps[0].name == name
    assert parse_native(encode_native(run)) == run


# --- calls of models ---------------------------------------------------------------------------


def test_requests_to_a_model_become_model_steps_and_their_tools() -> None:
    run = run_of(
        make_chat(QUESTION, chat_answer(ASKS)),
        make_interaction(),
        make_chat([*QUESTION, ASKS, RESULT], chat_answer({"role": "assistant", "content": "No."})),
    )

    assert [(step.kind, step.name, step.parent) for step in run.steps] == [
        ("model", "gpt-4o-2024", None),
        ("tool", "get_weather", 1),
        ("tool", "GET api.example.com/v1/weather", None),
        ("model", "gpt-4o-2024", None),
    ]
    assert tool_of(run.steps[1]).result == Payload.of_text("sunny")
    first, last = (step.call for step in run.steps if isinstance(step.call, ModelCall))
    assert last.history is not None
    assert last.history.parent is not None
    assert last.history.parent == first.output_history
    assert (run.input, run.output) == (Payload.of_text("Rain?"), Payload.of_text("No."))
    assert (run.instructions, run.model, run.final) == ("Be kind.", "gpt-4o", last.output_history)
    assert run.status == "ok"
    assert parse_native(encode_native(run)) == run


def test_model_step_keeps_the_exchange() -> None:
    body = chat_answer({"role": "assistant", "content": "No."})
    (step,) = run_of(make_chat(QUESTION, body)).steps

    assert step.http is not None
    assert step.http.response_body == Payload(content=body.encode(), media_type=JSON)
    assert step.extra == {}


def test_streamed_answer_is_put_together() -> None:
    chunks = [{"model": "m", "choices": [{"delta": {"content": text}}]} for text in ("It ", "rains.")]
    stream = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"

    run = run_of(make_chat(QUESTION, stream))

    assert run.output == Payload.of_text("It rains.")
    assert run.steps[0].http is not None
    assert run.steps[0].http.response_body == Payload.of_text(stream)


def test_chunk_that_is_no_clean_json_is_left_out_of_the_answer() -> None:
    good = json.dumps({"choices": [{"delta": {"content": "It rains."}}]})
    half_pair = '{"choices": [{"delta": {"content": "\\ud800"}}]}'

    run = run_of(make_chat(QUESTION, f"data: {good}\n\ndata: {half_pair}\n\ndata: {{cut\n\n"))

    assert run.output == Payload.of_text("It rains.")
    assert parse_native(encode_native(run)) == run


def test_error_of_a_provider_is_an_error_of_the_model_step() -> None:
    run = run_of(make_chat(QUESTION, '{"error": {"type": "rate_limit", "message": "slow"}}', code=429))

    assert run.steps[0].kind == "model"
    expected = ErrorInfo(type="rate_limit", message="slow")
    assert (run.steps[0].error, run.error, run.status, run.output) == (expected, expected, "error", None)


def test_run_whose_last_answer_asks_for_more_is_cut_off() -> None:
    run = run_of(make_chat(QUESTION, chat_answer(ASKS)))

    assert (run.status, run.output, run.final) == ("cut_off", None, None)


def test_messages_that_no_model_answered_are_a_tools_request() -> None:
    run = run_of(make_chat(QUESTION, '{"sent": true}'))

    assert [step.kind for step in run.steps] == ["tool"]
    assert run.input is None


# --- the cassette ------------------------------------------------------------------------------


def test_betamax_cassette_has_times_and_keeps_what_is_unknown() -> None:
    interaction = {**make_interaction(), "recorded_at": "2025-01-01T00:00:00", "note": "n"}
    content = json.dumps({"http_interactions": [interaction], "recorded_with": "betamax/0.9"}).encode()

    run = parse_cassette(content)

    assert run.steps[0].started_at == datetime(2025, 1, 1, tzinfo=UTC)
    assert run.steps[0].extra == {"cassette.note": "n"}
    assert run.extra == {"recorded_with": "betamax/0.9"}
    assert parse_native(encode_native(run)) == run


def test_run_id_comes_from_the_content() -> None:
    first, same, other = run_of(make_interaction()), run_of(make_interaction()), run_of(make_interaction(code=201))

    assert first.run_id == same.run_id
    assert first.run_id != other.run_id
    assert (first.session_id, first.source_format, first.status) == (first.run_id, "cassette", "ok")


def yaml_run(text: str) -> Run:
    return parse_cassette(read_document(text.encode()).content)


def test_yaml_gives_the_run_that_json_gives() -> None:
    cassette = {"interactions": [make_interaction(), make_interaction(code=429)], "version": 1}

    from_yaml = yaml_run(yaml.dump(cassette))
    assert from_yaml.steps == parse_cassette(json.dumps(cassette).encode()).steps


def test_bytes_in_yaml_are_the_bodys_bytes() -> None:
    interaction = make_interaction()
    interaction["response"]["body"] = {"string": b"\x1f\x8b\x00"}

    run = yaml_run(yaml.dump({"interactions": [interaction], "version": 1}))

    assert run.steps[0].http is not None
    assert run.steps[0].http.response_body == Payload(content=b"\x1f\x8b\x00", media_type=BINARY)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("interactions:\n- request: [\n", "not YAML"),
        ("interactions: !!python/object/apply:os.system ['true']\n", "no kind of value"),
        ("interactions:\n- request: 1\n  request: 2\n", "stands twice"),
        (
            "interactions:\n- &a [x,x,x,x,x,x,x,x,x]\n"
            + "".join(f"- &{b} [{','.join(['*' + a] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
            "aliases",
        ),
    ],
)
def test_yaml_that_holds_anything_else_is_refused(text: str, words: str) -> None:
    with pytest.raises(RecordError, match=words):
        yaml_run(text)


def change(path: str, value: Any) -> dict[str, Any]:
    """An interaction with one field replaced, such as `response.status`."""
    interaction = make_interaction()
    *outer, last = path.split(".")
    at = interaction
    for name in outer:
        at = at[name]
    at[last] = value
    return interaction


@pytest.mark.parametrize(
    ("interaction", "field"),
    [
        (change("request", None), "interactions[1].request"),
        (change("response", None), "interactions[1].response"),
        (change("request.method", None), "interactions[1].request.method"),
        (change("request.uri", 5), "interactions[1].request.uri"),
        (change("request.body", 5), "interactions[1].request.body"),
        (change("request.headers", "x"), "interactions[1].request.headers"),
        (change("response.headers", {"a": [1]}), "interactions[1].response.headers.a"),
        (change("response.status", 200), "interactions[1].response.status"),
        (change("response.status.code", "200"), "interactions[1].response.status.code"),
        (change("response.body", {"base64_string": "%"}), "interactions[1].response.body.base64_string"),
        (change("response.body", {"string": 5}), "interactions[1].response.body"),
        (change("recorded_at", "yesterday"), "interactions[1].recorded_at"),
        ("x", "interactions[1]"),
    ],
)
def test_bad_interaction_is_refused_with_its_place(interaction: Any, field: str) -> None:
    with pytest.raises(RecordError) as refused:
        run_of(make_interaction(), interaction)

    assert refused.value.field == field


def test_cassette_of_another_version_is_refused() -> None:
    with pytest.raises(RecordError) as refused:
        run_of(make_interaction(), version=2)

    assert refused.value.field == "version"


def test_cassette_with_too_many_interactions_is_refused() -> None:
    content = json.dumps({"interactions": [make_interaction()] * 3}).encode()

    with pytest.raises(RecordTooLarge):
        parse_cassette(content, Limits(max_steps=2))
    assert len(parse_cassette(content, Limits(max_steps=3)).steps) == 3


def test_cassette_is_known_by_its_interactions() -> None:
    assert matches({"version": 1, "interactions": [make_interaction()]})
    assert matches({"http_interactions": [make_interaction()]})


@pytest.mark.parametrize(
    "value", [{"interactions": []}, {"interactions": [{"request": {}}]}, {"request": {}}, [], None]
)
def test_other_documents_do_not_match(value: Any) -> None:
    assert not matches(value)


# --- hostile input -----------------------------------------------------------------------------

NAMES = ["request", "response", "method", "uri", "body", "headers", "status", "code", "string", "base64_string", "role"]
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.sampled_from(["GET", "{", "[]"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=8,
)


@given(st.binary(max_size=40), st.sampled_from([b"", b"{", b'{"interactions": [']))
def test_any_bytes_give_a_run_or_a_record_error(content: bytes, start: bytes) -> None:
    with suppress(RecordError):
        assert parse_cassette(start + content).source_format == "cassette"


@given(
    st.sampled_from(["request.method", "request.uri", "request.body", "response.body", "response.headers", "extra"]),
    JSON_VALUES,
    st.lists(st.dictionaries(st.sampled_from(NAMES), JSON_VALUES), max_size=2),
)
def test_any_field_gives_a_run_that_can_be_written_or_a_record_error(
    path: str, value: Any, messages: list[Any]
) -> None:
    chat = make_chat([*QUESTION, *messages], json.dumps({"choices": [{"message": value}]}))

    with suppress(RecordError):
        run = run_of(change(path, value), chat)
        assert parse_native(encode_native(run)) == run
