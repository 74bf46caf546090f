"""Any run that can be held can be written, and reads back equal to the byte."""

import json
from datetime import UTC
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_app.core.errors import RecordError
from sessions_app.core.formats.detect import parse_document
from sessions_app.core.formats.native import FIELD_NAMES, encode_native, run_digest
from sessions_app.core.formats.values import read_value, write_value
from sessions_app.core.history import History, extend
from sessions_app.core.payload import Payload
from sessions_app.core.run import (
    AgentCall,
    AgentInfo,
    Chunk,
    CodeInfo,
    ErrorInfo,
    HttpExchange,
    ModelCall,
    OtherCall,
    ParentLink,
    Retrieval,
    Run,
    StateChange,
    Step,
    ToolCall,
)

TEXTS = st.text(max_size=12) | st.sampled_from(
    ["", " ", "\x00", "\r\n\t", "\u202eevil\u2066", "\ufeff", "\u2028", '"', "\\", "e\u0301", "\U0001f600", "{", "[1"]
)
NAMES = TEXTS.filter(lambda text: "\x00" not in text)
IDS = NAMES.filter(lambda text: text.strip() and all(ord(c) >= 32 for c in text))
NUMBERS = st.integers() | st.sampled_from([2**70, -(2**70), 0, 10**200]) | st.floats(-1e300, 1e300)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=6
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=3)
EXTRAS = st.dictionaries(TEXTS.map(lambda text: f"x-{text}"), VALUES, max_size=2)
WRAPPERS = st.fixed_dictionaries(
    {"base64": st.sampled_from(["", "aGk=", "?", 5])},
    optional={"media_type": st.sampled_from(["a/b", "c", 1]), "x": SCALARS},
)
SPELLINGS: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {"separators": (",", ":"), "ensure_ascii": False},
        {"separators": (" , ", " :  ")},
        {"indent": "\t"},
        {"indent": 1, "ensure_ascii": False},
    ]
)


@st.composite
def spelled(draw: st.DrawFn, values: st.SearchStrategy[object]) -> bytes:
    """A JSON value in some spelling of its own."""
    return json.dumps(draw(values), **draw(SPELLINGS)).encode()


PAYLOADS = st.one_of(
    TEXTS.map(Payload.of_text),
    spelled(VALUES.filter(lambda value: value is not None) | WRAPPERS).map(lambda text: Payload(content=text)),
    st.builds(
        Payload,
        content=st.binary(max_size=8),
        media_type=st.sampled_from(["application/octet-stream", "image/png", "text/html; charset=x"]),
    ),
)
MESSAGES = spelled(OBJECTS).map(lambda text: Payload(content=text))
SHARED = spelled(OBJECTS | TEXTS).map(lambda text: Payload(content=text))
TOOLS = spelled(st.builds(lambda name, more: {**more, "name": name}, TEXTS, OBJECTS)).map(
    lambda text: Payload(content=text)
)
HISTORIES = st.lists(MESSAGES, max_size=3).map(lambda found: extend(None, found))
TIMES = st.datetimes(timezones=st.just(UTC))
COUNTS = st.integers(0, 2**53)
ERRORS = st.builds(ErrorInfo, type=st.none() | NAMES, message=st.none() | TEXTS, extra=EXTRAS)
HEADERS = st.lists(st.tuples(TEXTS, TEXTS), max_size=2).map(tuple)
PATCHES = st.lists(st.fixed_dictionaries({"op": TEXTS, "path": TEXTS, "value": VALUES}), max_size=2).map(tuple)


def maybe(strategy: st.SearchStrategy) -> st.SearchStrategy:
    return st.none() | strategy


EXCHANGES = st.builds(
    HttpExchange,
    method=maybe(NAMES),
    url=maybe(TEXTS),
    request_headers=HEADERS,
    request_body=maybe(PAYLOADS),
    status=maybe(COUNTS),
    response_headers=HEADERS,
    response_body=maybe(PAYLOADS),
    extra=EXTRAS,
)
ANSWERS = {"arguments": maybe(PAYLOADS), "result": maybe(PAYLOADS | st.just(Payload(content=b"null")))}
TOOL_CALLS = st.builds(
    ToolCall,
    tool_name=NAMES.filter(bool),
    call_id=maybe(NAMES),
    **ANSWERS,
    outcome=maybe(NAMES),
    retry=maybe(OBJECTS),
    metadata=maybe(PAYLOADS),
    content=maybe(PAYLOADS),
    is_output=st.booleans(),
)
CHUNKS = st.builds(Chunk, chunk_id=maybe(NAMES), score=maybe(NUMBERS), content=maybe(PAYLOADS), extra=EXTRAS)
RETRIEVALS = st.builds(
    Retrieval,
    query=maybe(PAYLOADS),
    chunks=maybe(st.lists(CHUNKS, max_size=2).map(tuple)),
    index_version=maybe(NAMES),
    embedding_version=maybe(NAMES),
)


@st.composite
def model_calls(draw: st.DrawFn, histories: list[History | None]) -> ModelCall:
    """The history goes on from any earlier one, or begins anew."""
    base = draw(st.sampled_from([None, *histories]))
    return draw(
        st.builds(
            ModelCall,
            history=st.lists(MESSAGES, max_size=2).map(lambda added: extend(base, added)),
            response=maybe(MESSAGES),
            parameters=maybe(SHARED),
            tools=maybe(st.lists(TOOLS, max_size=2).map(tuple)),
            settings=maybe(PAYLOADS),
            model=maybe(NAMES),
            answered_model=maybe(NAMES),
            provider=maybe(NAMES),
            region=maybe(NAMES),
            finish_reason=maybe(NAMES),
            input_tokens=maybe(COUNTS),
            output_tokens=maybe(COUNTS),
        )
    )


@st.composite
def steps(draw: st.DrawFn, prior: History | None) -> tuple[Step, ...]:
    histories = [prior]
    found = []
    for index in range(1, draw(st.integers(1, 5))):
        agents = st.builds(AgentCall, run_id=maybe(IDS), **ANSWERS)
        others = st.builds(OtherCall, **ANSWERS)
        call = draw(st.one_of(model_calls(histories), TOOL_CALLS, RETRIEVALS, agents, others))
        if isinstance(call, ModelCall):
            histories.append(call.output_history)
        step = st.builds(
            Step,
            index=st.just(index),
            name=NAMES.filter(bool),
            call=st.just(call),
            parent=maybe(st.integers(1, index - 1)) if index > 1 else st.none(),
            started_at=maybe(TIMES),
            first_token_at=maybe(TIMES),
            duration_ms=maybe(NUMBERS),
            error=maybe(ERRORS),
            user_id=maybe(NAMES),
            tenant_id=maybe(NAMES),
            state=maybe(st.builds(StateChange, before=PATCHES, after=PATCHES)),
            http=maybe(EXCHANGES),
            source=st.sampled_from(["recorded", "borrowed", "unknown"]),
            extra=EXTRAS,
        )
        found.append(draw(step))
    return tuple(found)


@st.composite
def runs(draw: st.DrawFn) -> Run:
    prior = draw(HISTORIES)
    taken = draw(steps(prior))
    ends = [step.call.output_history for step in taken if isinstance(step.call, ModelCall)]
    final = extend(draw(st.sampled_from([prior, None, *ends])), draw(st.lists(MESSAGES, max_size=2)))
    names = {name: maybe(NAMES) for name in ("model", "provider", "region", "user_id", "tenant_id")}
    facts = ("name", "version", "framework", "framework_version", "entry_point", "end_strategy")
    agents = st.builds(
        AgentInfo,
        **{name: maybe(NAMES) for name in facts},
        tool_retries=maybe(OBJECTS),
        output_retries=maybe(COUNTS),
        output_function=maybe(NAMES),
        usage_limits=maybe(OBJECTS),
        extra=EXTRAS,
    )
    codes = st.builds(CodeInfo, commit=maybe(NAMES), dirty=maybe(st.booleans()), versions=maybe(OBJECTS), extra=EXTRAS)
    return draw(
        st.builds(
            Run,
            run_id=IDS,
            session_id=IDS,
            status=st.sampled_from(["ok", "error", "cut_off", "running"]),
            input=maybe(PAYLOADS),
            output=maybe(PAYLOADS),
            error=maybe(ERRORS),
            origin=st.sampled_from(["recorded", "replay", "fork"]),
            parent=maybe(st.builds(ParentLink, run_id=IDS, step=maybe(st.integers(1, 99)))),
            source_format=NAMES.filter(bool),
            agent=agents,
            code=codes,
            **names,
            instructions=maybe(TEXTS),
            flags=maybe(OBJECTS),
            started_at=maybe(TIMES),
            duration_ms=maybe(NUMBERS),
            prior=st.just(prior),
            deferred=maybe(PAYLOADS),
            initial_state=maybe(PAYLOADS),
            steps=st.just(taken),
            final=st.just(final),
            extra=EXTRAS,
        )
    )


@settings(max_examples=150, deadline=None)
@given(runs())
def test_any_run_survives_a_round_trip(run):
    written = encode_native(run)
    again = parse_document(written)

    assert again == run
    assert encode_native(again) == written
    assert run_digest(again) == run_digest(run)


@given(PAYLOADS)
def test_any_payload_keeps_its_digest(payload):
    again = read_value(write_value(payload), "input")

    assert (again.digest, again.media_type) == (payload.digest, payload.media_type)


@given(spelled(VALUES.filter(lambda value: value is not None and not isinstance(value, str))))
def test_json_in_a_document_is_kept_as_it_is_spelled(text):
    document = b'{ "format":"agent-replay.run" ,"version": 1,"run_id":"r","input" :\n' + text + b"\t}"

    assert parse_document(document).input == Payload(content=text)


PARTS = st.fixed_dictionaries(
    {"part_kind": st.sampled_from(["user-prompt", "text", "tool-call", "tool-return", "retry-prompt", "new"])},
    optional={
        "content": VALUES | WRAPPERS,
        "tool_name": st.sampled_from(["a", "b"]),
        "tool_call_id": st.sampled_from(["1", "2"]),
        "args": VALUES,
        "outcome": VALUES,
        "metadata": VALUES,
        "retry": VALUES,
    },
)
FACTS = dict.fromkeys(
    ["run_id", "conversation_id", "model_name", "provider_name", "timestamp", "state", "instructions", "usage"], SCALARS
)
DUMPED = st.fixed_dictionaries(
    {"kind": st.sampled_from(["request", "response"]), "parts": st.lists(PARTS, max_size=3)}, optional=FACTS
)
UNKNOWN = st.dictionaries(st.sampled_from(sorted(FIELD_NAMES)) | TEXTS, VALUES, max_size=3)


def shortened(message: dict[str, Any]) -> dict[str, Any]:
    """The message as a session file has it."""
    parts = [{"kind" if name == "part_kind" else name: part[name] for name in part} for part in message["parts"]]
    kind = {"request": "ModelRequest", "response": "ModelResponse"}[message["kind"]]
    return {**message, "type": kind, "parts": parts}


DOCUMENTS = st.one_of(
    st.lists(DUMPED, min_size=1, max_size=5),
    st.tuples(UNKNOWN, st.lists(DUMPED, min_size=1, max_size=5)).map(lambda f: {**f[0], "messages": f[1]}),
    st.tuples(UNKNOWN, st.lists(DUMPED.map(shortened), max_size=5)).map(
        lambda f: {**f[0], "session_id": "s", "user_input": None, "messages": f[1]}
    ),
)


@settings(max_examples=300, deadline=None)
@given(spelled(DOCUMENTS))
def test_any_other_format_becomes_a_record_or_a_clear_error(text):
    try:
        run = parse_document(text)
    except RecordError:
        return

    assert parse_document(encode_native(run)) == run
