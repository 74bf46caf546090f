"""The sections of a step's page: what went in, what came out, and everything around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from types import MappingProxyType
from typing import Literal

from sessions_app.core.judge.fixes import FIXES
from sessions_app.core.model_names import is_same_model
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.run import (
    AgentCall,
    Call,
    ErrorInfo,
    HttpExchange,
    ModelCall,
    OtherCall,
    Retrieval,
    Step,
    ToolCall,
)
from sessions_app.queries.steps import GonePayload
from sessions_app.web.render import spelled
from sessions_app.web.render.payloads import Form, Shown, show
from sessions_app.web.render.tree import Node, build_tree
from sessions_app.web.steps.messages import Message, message_of
from sessions_app.web.steps.spans import StepSpan, step_span

NODES = 200
SMALL = 80
"""Nodes of a tree that stands folded."""
CHUNKS = 50
OPERATIONS = 100

Body = Literal[
    "payload", "message", "messages", "chunks", "error", "changes", "http", "facts", "tools", "fields", "span"
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Fact:
    """A name and a value; None is `not captured`."""

    name: str
    value: str | None
    note: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownChunk:
    """A retrieved piece."""

    chunk_id: str | None
    score: float | None
    content: Shown | None
    rest: Node | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """One operation of a JSON Patch."""

    op: str
    path: str
    value: str | None
    origin: str | None = None
    before: str | None = None
    """What stood there until then; None where nothing did, and where the state is not known."""


Before = Mapping[bool, Sequence[str | None]]
"""Of each operation of a step what it took away, first of those between the previous step and this one (True)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """One part of the page. `body` names the partial that draws it."""

    key: str
    title: str
    body: Body = "payload"
    digest: str | None = None
    size: int | None = None
    count: str = ""
    """How much there is, in words, when bytes do not say it."""
    is_open: bool = True
    is_gone: bool = False
    """The bytes are no longer stored; `digest` names them."""
    missing: str = ""
    """What is not captured, in words; then nothing else is set but `fix`."""
    fix: str = ""
    shown: Shown | None = None
    message: Message | None = None
    messages: tuple[Message, ...] = ()
    has_earlier: bool = False
    """Whether there are messages before those shown."""
    rewritten: bool = False
    """The history does not go on from the previous request."""
    chunks: tuple[ShownChunk, ...] = ()
    facts: tuple[Fact, ...] = ()
    changes: tuple[Change, ...] = ()
    error: ErrorInfo | None = None
    tree: Node | None = None
    http: ShownHttp | None = None
    tools: tuple[ToolDefinition, ...] = ()
    span: StepSpan | None = None


SAME_MESSAGE = 64 * 1024
"""Longer answers are not compared with the message of an error."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolDefinition:
    """A tool as it was offered to the model."""

    name: str
    description: str
    shown: Shown


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownHttp:
    """An exchange over the wire."""

    method: str | None
    url: str | None
    status: int | None
    request_headers: tuple[tuple[str, str], ...]
    request: Shown | None
    response_headers: tuple[tuple[str, str], ...]
    response: Shown | None
    rest: Node | None = None

    @property
    def has_failed(self) -> bool:
        return self.status is not None and self.status >= 400


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What the reader chose to see, from the address."""

    form: Form = "pretty"
    nodes: int = NODES


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelInput:
    """The messages that are new in a request; they lie outside of the step's own record."""

    messages: tuple[Payload, ...] = ()
    has_earlier: bool = False
    is_captured: bool = True
    rewritten: bool = False
    """The history does not go on from the previous request."""
    provider: str | None = None
    """Of the run, for a step that names none."""


def sections(
    step: Step, model_input: ModelInput, asked: Asked = Asked(), before: Before = MappingProxyType({})
) -> list[Section]:
    return [
        *_call_sections(step, model_input, asked),
        *_error(step),
        *_state(step, before),
        *_http(step.http, asked),
        *_settings(step.call, model_input.provider),
        *_beside(step.extra),
    ]


def _call_sections(step: Step, model_input: ModelInput, asked: Asked) -> list[Section]:
    match step.call:
        case ModelCall():
            return [_messages(model_input), _answer(step, step.call, asked), *offered(step.call)]
        case ToolCall():
            return _tool(step, step.call, asked)
        case Retrieval():
            return [_value("in", "Query", step.call.query, asked, "retrieval"), _chunks(step.call, asked)]
        case AgentCall():
            called = Fact(name="run", value=step.call.run_id)
            agent = Section(key="agent", title="Sub-agent", body="facts", facts=(called,))
            return [agent, *_in_and_out(step, step.call, asked)]
        case OtherCall():
            return [] if _is_only_state(step, step.call) else _in_and_out(step, step.call, asked)


def _is_only_state(step: Step, call: OtherCall) -> bool:
    """A snapshot, or a node of a graph: nothing went in or came out that could have been captured."""
    has_values = call.arguments is not None or call.result is not None
    return not has_values and step.error is None and (step.state is not None or step.http is not None)


# --- model -------------------------------------------------------------------------------------


def _messages(given: ModelInput) -> Section:
    base = {"key": "in", "title": "What went in", "body": "messages"}
    if not given.is_captured:
        return Section(**base, missing="The messages of this request", fix=_fix("model_request_missing"))  # type: ignore[arg-type]
    shown = tuple(read_message(payload) for payload in given.messages)
    size = sum(payload.size for payload in given.messages)
    words = "1 new message" if len(shown) == 1 else f"{len(shown)} new messages"
    return Section(
        **base,  # type: ignore[arg-type]
        messages=shown,
        has_earlier=given.has_earlier,
        rewritten=given.rewritten,
        size=size,
        count=words,
    )


def read_message(payload: Payload) -> Message:
    if isinstance(payload, GonePayload):
        return Message(role="unknown", digest=payload.digest, size=0)
    return message_of(payload)


_WAITING = Section(
    key="out", title="What came out", missing="Nothing yet: this answer is unknown, and the run waits here for one."
)


def _answer(step: Step, call: ModelCall, asked: Asked) -> Section:
    if call.response is None and step.error is not None:
        return _error_section("What came out", step.error)
    if call.response is None and step.source == "unknown":
        return _WAITING
    if call.response is None:
        fix = _fix("model_answer_missing")
        return Section(key="out", title="What came out", missing="The model's answer", fix=fix)
    if asked.form != "pretty" or isinstance(call.response, GonePayload):
        return _value("out", "What came out", call.response, asked, "model_answer_missing")
    return Section(
        key="out",
        title="What came out",
        body="message",
        digest=call.response.digest,
        size=call.response.size,
        message=message_of(call.response),
    )


def offered(call: ModelCall) -> list[Section]:
    found = []
    if call.tools is not None:
        tools = tuple(_tool_definition(payload) for payload in call.tools)
        words = "1 tool" if len(tools) == 1 else f"{len(tools)} tools"
        found.append(Section(key="tools", title="Tools offered", body="tools", tools=tools, count=words, is_open=False))
    if call.parameters is not None:
        asked = Asked(nodes=SMALL)
        found.append(_value("parameters", "Request parameters", call.parameters, asked, "", is_open=False))
    return found


def _tool_definition(payload: Payload) -> ToolDefinition:
    value = spelled.read(payload.content)
    body = value if isinstance(value, spelled.Pairs) else spelled.Pairs()
    function = body.get("function")
    named = function if isinstance(function, spelled.Pairs) else body
    return ToolDefinition(
        name=named.text("name") or "unnamed tool",
        description=named.text("description") or "",
        shown=show(payload, nodes=SMALL),
    )


# --- other calls -------------------------------------------------------------------------------


def _tool(step: Step, call: ToolCall, asked: Asked) -> list[Section]:
    found = _in_and_out(step, call, asked)
    if call.content is not None:
        found.append(_value("content", "Also sent to the model", call.content, asked, ""))
    if call.metadata is not None:
        found.append(_value("metadata", "Kept, but not sent to the model", call.metadata, asked, "", is_open=False))
    if call.retry:
        found += _unknown_fields("retry", "Retry", call.retry, is_open=True)
    return found


def _in_and_out(step: Step, call: ToolCall | AgentCall | OtherCall, asked: Asked) -> list[Section]:
    return [_value("in", "What went in", call.arguments, asked, "tool_io"), _result(step, call, asked)]


def _result(step: Step, call: ToolCall | AgentCall | OtherCall, asked: Asked) -> Section:
    if call.result is None and step.error is not None:
        return _error_section("What came out", step.error)
    if call.result is None and step.source == "unknown":
        return _WAITING
    return _value("out", "What came out", call.result, asked, "tool_answer_missing")


def _value(key: str, title: str, payload: Payload | None, asked: Asked, fix: str, *, is_open: bool = True) -> Section:
    if payload is None:
        return Section(key=key, title=title, missing=_MISSING.get(key, title), fix=_fix(fix))
    if isinstance(payload, GonePayload):
        return Section(key=key, title=title, digest=payload.digest, is_gone=True)
    shown = show(payload, asked.form, nodes=asked.nodes)
    return Section(key=key, title=title, digest=payload.digest, size=payload.size, shown=shown, is_open=is_open)


_MISSING = {"in": "What went in", "out": "The answer"}


def _fix(name: str) -> str:
    found = FIXES.get(name)
    return found.sentence if found else ""


def _chunks(call: Retrieval, asked: Asked) -> Section:
    facts = (
        Fact(name="index", value=call.index_version),
        Fact(name="embedding", value=call.embedding_version),
    )
    if call.chunks is None:
        return Section(
            key="out", title="What came out", missing="The retrieved chunks", fix=_fix("retrieval"), facts=facts
        )
    shown = tuple(
        ShownChunk(
            chunk_id=chunk.chunk_id,
            score=chunk.score,
            content=_shown(chunk.content, Asked(form=asked.form, nodes=SMALL)),
            rest=_tree(chunk.extra),
        )
        for chunk in call.chunks[:CHUNKS]
    )
    count = f"{len(shown)} of {len(call.chunks)} chunks" if len(call.chunks) > CHUNKS else f"{len(shown)} chunks"
    size = sum(chunk.content.size for chunk in call.chunks if chunk.content)
    return Section(key="out", title="What came out", body="chunks", chunks=shown, count=count, size=size, facts=facts)


def _shown(payload: Payload | None, asked: Asked) -> Shown | None:
    if payload is None or isinstance(payload, GonePayload):
        return None
    return show(payload, asked.form, nodes=asked.nodes)


# --- around it ---------------------------------------------------------------------------------


def _error(step: Step) -> list[Section]:
    """Beside an answer: without one it is what came out. Where the answer says the same there is no more to tell."""
    if step.error is None or not _has_answer(step.call):
        return []
    is_told = _says_the_same(step.call, step.error) and not step.error.extra
    return [] if is_told else [_error_section("Error", step.error)]


def _error_section(title: str, error: ErrorInfo) -> Section:
    return Section(key="error", title=title, body="error", error=error, tree=_tree(error.extra))


def _has_answer(call: Call) -> bool:
    match call:
        case ModelCall():
            return call.response is not None
        case ToolCall() | AgentCall() | OtherCall():
            return call.result is not None
        case Retrieval():
            return True


def _says_the_same(call: object, error: ErrorInfo) -> bool:
    result = call.result if isinstance(call, ToolCall | AgentCall | OtherCall) else None
    if result is None or isinstance(result, GonePayload) or error.message is None or error.type is None:
        return False
    said = result.as_text() if result.is_text else spelled.read(result.content)
    return result.size < SAME_MESSAGE and said == error.message


def _state(step: Step, before: Before) -> list[Section]:
    if step.state is None:
        return []
    changes = _changes(step.state.after, before.get(False, ()))
    found = [Section(key="state", title="State, before → after", body="changes", changes=changes)]
    if step.state.before:
        words = "State was changed between the previous step and this one"
        changes = _changes(step.state.before, before.get(True, ()))
        found.append(Section(key="state-before", title=words, body="changes", changes=changes))
    return found


def _changes(operations: Sequence[JsonObject], before: Sequence[str | None]) -> tuple[Change, ...]:
    pairs = zip_longest(operations[:OPERATIONS], before[: len(operations[:OPERATIONS])])
    return tuple(replace(_change(operation), before=was) for operation, was in pairs)


def _change(operation: JsonObject) -> Change:
    value = change_text(operation["value"]) if "value" in operation else None
    return Change(
        op=str(operation["op"]), path=str(operation["path"]), value=value, origin=_text(operation.get("from"))
    )


def change_text(value: JsonValue) -> str:
    return spelled.compact(spelled.of_value(value))[:2000]


def _text(value: JsonValue) -> str | None:
    return None if value is None else str(value)


def _http(http: HttpExchange | None, asked: Asked) -> list[Section]:
    if http is None:
        return []
    shown = ShownHttp(
        method=http.method,
        url=http.url,
        status=http.status,
        request_headers=http.request_headers,
        request=_shown(http.request_body, asked),
        response_headers=http.response_headers,
        response=_shown(http.response_body, asked),
        rest=_tree(http.extra),
    )
    body = http.response_body
    size, digest = (body.size, body.digest) if body else (None, None)
    return [Section(key="http", title="HTTP exchange", body="http", http=shown, size=size, digest=digest)]


_SETTINGS = ("temperature", "top_p", "seed")


def _settings(call: object, provider: str | None) -> list[Section]:
    """Missing ones are said: an unset temperature is a source of difference of its own."""
    if not isinstance(call, ModelCall):
        return []
    given = _object(call.settings)
    facts = [
        Fact(name="model asked for", value=call.model),
        Fact(name="model that answered", value=call.answered_model, note=_other_model(call)),
        Fact(name="provider", value=call.provider or provider),
        Fact(name="region", value=call.region),
        *(Fact(name=name, value=_setting(given, name)) for name in _SETTINGS),
        *(Fact(name=key, value=spelled.compact(value)) for key, value in given.without(*_SETTINGS)),
        Fact(name="finish reason", value=call.finish_reason),
    ]
    return [Section(key="settings", title="Settings", body="facts", facts=tuple(facts))]


def _object(payload: Payload | None) -> spelled.Pairs:
    value = None if payload is None else spelled.read(payload.content)
    return value if isinstance(value, spelled.Pairs) else spelled.Pairs()


def _setting(given: spelled.Pairs, name: str) -> str | None:
    if name not in dict(given):
        return None
    value = given.get(name)
    return "not set, left to the provider" if value is None else spelled.compact(value)


def _other_model(call: ModelCall) -> str:
    is_other = call.model and call.answered_model and not is_same_model(call.model, call.answered_model)
    return "not the model asked for" if is_other else ""


def _beside(extra: JsonObject) -> list[Section]:
    """What the format has no field for: the span behind the step, and everything else."""
    span, rest = step_span(extra)
    unknown = _unknown_fields("extra", "Unknown fields", rest)
    return [_span_section(span), *unknown] if span else unknown


def _span_section(span: StepSpan) -> Section:
    unknown = len(span.attributes)
    words = "1 attribute" if unknown == 1 else f"{unknown} attributes"
    count = f"{words} not understood" if unknown else ""
    return Section(key="span", title="Span", body="span", span=span, count=count, is_open=bool(span.note))


def _unknown_fields(key: str, title: str, extra: JsonObject, *, is_open: bool = False) -> list[Section]:
    tree = _tree(extra)
    if tree is None:
        return []
    count = "1 field" if tree.count == 1 else f"{tree.count} fields"
    return [Section(key=key, title=title, body="fields", tree=tree, count=count, is_open=is_open)]


def _tree(extra: JsonObject) -> Node | None:
    return build_tree(spelled.of_value(extra), nodes=SMALL) if extra else None
