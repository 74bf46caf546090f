"""Sessions of an agent as OTLP export requests, of the shape that Pydantic AI's instrumentation sends.

One `invoke_agent` span around a `chat` span for each model call and an `execute_tool` span for each tool. A chat span
carries the whole conversation so far and, unchanged each time, instructions and tool definitions: a session of n steps
has 2n spans, and the bytes sent grow with n². The same seed gives the same bytes.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from sessions_app.core.payload import JsonObject

RARE_WORD = "quokkazine"
"""Stands in the prompt of one session in a hundred."""
_VOCABULARY = """
order refund customer shipped invoice price policy search result document error retry account please check the
details and confirm update request response delivery address parcel late missing return window credit note of to in
a is that for it on with as at are this from or have an you were which their not been will more if about
"""
_WORDS = _VOCABULARY.split()
_MODEL = "gpt-4o"
_START_NS = 1_760_000_000_000_000_000
_SECOND = 1_000_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """What the sessions look like."""

    steps: int = 10
    """Calls of the model; each but the last asks for one tool."""
    result_bytes: int = 600
    """About how long a tool's answer is."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One body to post to `/v1/traces`."""

    body: bytes
    span_count: int
    ended: tuple[str, ...]
    """Ids of the traces whose last span is in it."""


def requests(seed: str, count: int, shape: Shape, *, spans_each: int = 0) -> Iterator[Request]:
    """`count` sessions in requests of at most so many spans and 4 MB, as batching exporters send them; 0: no limit."""
    for number in range(count):
        trace = _Session(f"{seed}/{number}", shape).trace()
        for spans in _batches(trace, spans_each or len(trace)):
            ended = (trace[0].trace_id.hex(),) if spans[-1] is trace[-1] else ()
            yield Request(body=_body(spans), span_count=len(spans), ended=ended)


_MOST_BYTES = 4_000_000


def _batches(trace: list[Span], most: int) -> Iterator[list[Span]]:
    batch: list[Span] = []
    size = 0
    for span in trace:
        if batch and (len(batch) == most or size + span.ByteSize() > _MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(span)
        size += span.ByteSize()
    yield batch


def _body(spans: list[Span]) -> bytes:
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.extend(_attributes({"service.name": "agent-service", "service.version": "1.4.2"}))
    scope = resource.scope_spans.add()
    scope.scope.name, scope.scope.version = "pydantic-ai", "1.0.0"
    scope.spans.extend(spans)
    return bytes(request.SerializeToString())


@dataclass
class _Session:
    """Makes the spans of one session, in the order in which they end."""

    seed: str
    shape: Shape
    history: list[str] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)

    def trace(self) -> list[Span]:
        self._draw = random.Random(self.seed)
        self._trace_id, self._root_id = self._draw.randbytes(16), self._draw.randbytes(8)
        self._clock = _START_NS + self._draw.randrange(86_400 * _SECOND)
        self._agent = f"agent_{self._draw.randrange(8)}"
        self._common = {"gen_ai.agent.name": self._agent, "gen_ai.conversation.id": self._trace_id.hex()}
        began = self._clock
        self._say("user", {"type": "text", "content": self._prompt()})
        for step in range(self.shape.steps):
            self._chat(is_last=step == self.shape.steps - 1)
        self._invoke_agent(began)
        return self.spans

    def _prompt(self) -> str:
        words = self._text(200)
        return f"{words} {RARE_WORD}" if self._draw.randrange(100) == 0 else words

    def _text(self, size: int) -> str:
        return " ".join(self._draw.choices(_WORDS, k=max(1, size // 6)))

    def _say(self, role: str, part: JsonObject) -> str:
        message = json.dumps({"role": role, "parts": [part]}, separators=(",", ":"))
        self.history.append(message)
        return message

    def _chat(self, *, is_last: bool) -> None:
        asked = "[" + ",".join(self.history) + "]"
        call: JsonObject = {"type": "tool_call", "id": f"call_{self._draw.randbytes(12).hex()}", "name": "lookup_order"}
        call |= {"arguments": {"order": f"ORD-{self._draw.randrange(10**6)}", "why": self._text(40)}}
        part: JsonObject = {"type": "text", "content": self._text(160)} if is_last else call
        said = self._say("assistant", part)
        self._add(
            f"chat {_MODEL}",
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "openai",
                "gen_ai.request.model": _MODEL,
                "gen_ai.response.model": _MODEL,
                "gen_ai.request.temperature": 0.2,
                "gen_ai.system_instructions": _instructions(self._agent),
                "gen_ai.tool.definitions": _TOOLS,
                "gen_ai.input.messages": asked,
                "gen_ai.output.messages": f"[{said}]",
                "gen_ai.usage.input_tokens": len(asked) // 4,
                "gen_ai.usage.output_tokens": len(said) // 4,
                "gen_ai.response.finish_reasons": ["stop" if is_last else "tool_call"],
            },
        )
        if not is_last:
            self._execute_tool(call)

    def _execute_tool(self, call: JsonObject) -> None:
        result = {"status": "shipped", "note": self._text(self.shape.result_bytes)}
        self._add(
            f"execute_tool {call['name']}",
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": call["name"],
                "gen_ai.tool.call.id": call["id"],
                "gen_ai.tool.call.arguments": json.dumps(call["arguments"]),
                "gen_ai.tool.call.result": json.dumps(result),
            },
        )
        self._say("user", {"type": "tool_call_response", "id": call["id"], "name": call["name"], "result": result})

    def _invoke_agent(self, began: int) -> None:
        said: JsonObject = {"gen_ai.operation.name": "invoke_agent", "user.id": f"u_{self._draw.randrange(5000)}"}
        said |= {"pydantic_ai.all_messages": "[" + ",".join(self.history) + "]"}
        self._add(f"invoke_agent {self._agent}", said, span_id=self._root_id)
        root = self.spans[-1]
        root.start_time_unix_nano, root.parent_span_id = began, b""

    def _add(self, name: str, said: JsonObject, span_id: bytes | None = None) -> None:
        began, self._clock = self._clock, self._clock + self._draw.randrange(_SECOND // 50, 2 * _SECOND)
        self.spans.append(
            Span(
                trace_id=self._trace_id,
                span_id=span_id or self._draw.randbytes(8),
                parent_span_id=self._root_id,
                name=name,
                kind=Span.SPAN_KIND_CLIENT,
                start_time_unix_nano=began,
                end_time_unix_nano=self._clock,
                attributes=_attributes(said | self._common),
            )
        )


def _instructions(agent: str) -> str:
    words = " ".join(random.Random(agent).choices(_WORDS, k=250))
    return json.dumps([{"type": "text", "content": words}])


_TOOLS = json.dumps(
    [
        {
            "type": "function",
            "name": name,
            "description": " ".join(random.Random(name).choices(_WORDS, k=15)),
            "parameters": {"type": "object", "properties": {"order": {"type": "string"}, "why": {"type": "string"}}},
        }
        for name in ("lookup_order", "search_docs", "cancel_order", "send_email", "price_quote")
    ]
)


def _attributes(said: JsonObject) -> list[KeyValue]:
    return [KeyValue(key=name, value=_value(value)) for name, value in said.items()]


def _value(value: object) -> AnyValue:
    match value:
        case int():
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
        case list():
            return AnyValue(array_value=ArrayValue(values=map(_value, value)))
        case _:
            return AnyValue(string_value=str(value))
