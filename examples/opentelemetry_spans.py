"""An agent that says what it does in OpenTelemetry spans: one for the run, for each step, each model and tool call.

    pip install opentelemetry-sdk opentelemetry-exporter-otlp-json-http
    python -m examples.opentelemetry_spans

The names of attributes are those of OpenTelemetry's conventions for generative AI. The search fails once and is tried
again: two spans, the second linked to the first. With REPLAY_URL set the spans are sent to `/v1/traces` there, as OTLP
in JSON with REPLAY_KEY as key; else they are printed.
"""

from __future__ import annotations

import json
import os
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

try:
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.json.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter
except ImportError:
    sys.exit("This example needs: pip install opentelemetry-sdk opentelemetry-exporter-otlp-json-http")

tracer = trace.get_tracer("docs-bot")

# --- spans


@contextmanager
def step(number: int, name: str) -> Iterator[trace.Span]:
    with tracer.start_as_current_span(name, attributes={"step_number": number}) as span:
        yield span


def call_tool(tool: Callable[..., Any], *, attempts: int = 3, **args: Any) -> Any:
    """What the tool answers. Every attempt is a span; what it raises is recorded there."""
    call_id = f"call_{uuid.uuid4().hex[:8]}"
    failed: list[trace.Link] = []
    for attempt in range(1, attempts + 1):
        try:
            with tracer.start_as_current_span(f"execute_tool {tool.__name__}", links=failed) as span:
                span.set_attributes({"gen_ai.tool.call.id": call_id, "attempt": attempt})
                return observed(span, tool, args)
        except TimeoutError:
            if attempt == attempts:
                raise
            failed = [trace.Link(span.get_span_context())]


def observed(span: trace.Span, tool: Callable[..., Any], args: dict[str, Any]) -> Any:
    span.set_attribute("gen_ai.operation.name", "execute_tool")
    span.set_attribute("gen_ai.tool.name", tool.__name__)
    span.set_attribute("gen_ai.tool.call.arguments", json.dumps(args))
    began = time.perf_counter()
    try:
        result = tool(**args)
        said = json.dumps(result)
        span.set_attributes({"success": True, "result_size": len(said), "gen_ai.tool.call.result": said})
        return result
    except Exception as error:
        span.set_attributes({"success": False, "error": str(error), "error.type": type(error).__name__})
        raise
    finally:
        span.set_attribute("duration_ms", (time.perf_counter() - began) * 1000)


def call_model(question: str, document: str) -> str:
    """One request to the model, which is scripted here: it answers with the document. A token is a word."""
    asked = [message("system", document), message("user", question)]
    with tracer.start_as_current_span("chat scripted-1") as span:
        span.set_attribute("gen_ai.operation.name", "chat")
        span.set_attribute("gen_ai.provider.name", "scripted")
        span.set_attribute("gen_ai.request.model", "scripted-1")
        span.set_attribute("gen_ai.request.temperature", 0.2)
        span.set_attribute("gen_ai.request.max_tokens", 200)
        span.set_attribute("gen_ai.input.messages", json.dumps(asked))
        span.set_attribute("gen_ai.output.messages", json.dumps([message("assistant", document, finish_reason="stop")]))
        span.set_attribute("gen_ai.response.model", "scripted-1")
        span.set_attribute("gen_ai.response.finish_reasons", ["stop"])
        span.set_attribute("gen_ai.usage.input_tokens", len(f"{document} {question}".split()))
        span.set_attribute("gen_ai.usage.output_tokens", len(document.split()))
    return document


def message(role: str, text: str, **more: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}], **more}


# --- the agent


def run_agent(query: str, run_id: str) -> str:
    facts = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "docs_bot", "gen_ai.conversation.id": run_id}
    with tracer.start_as_current_span("agent_run", attributes={**facts, "run_id": run_id, "query": query}):
        with step(1, "retrieve_docs") as span:
            docs = call_tool(search_docs, query=query)
            span.set_attribute("docs_count", len(docs))
        with step(2, "rerank"):
            best = min(docs, key=len)
        with step(3, "generate") as span:
            answer = call_model(query, best)
            span.set_attribute("answer_length", len(answer))
    return answer


failures = [TimeoutError("the search service did not answer")]


def search_docs(query: str) -> list[str]:
    """Stands for a search service that is slow the first time."""
    if failures:
        raise failures.pop()
    return ["Unused goods can be returned within 30 days.", "Goods that were opened can be returned within 14 days."]


# --- where the spans go


def in_words(span: ReadableSpan) -> str:
    lines = [span.name if span.status.is_ok else f"{span.name}  ({span.status.status_code.name})"]
    lines += [f"    {name} = {value!r}" for name, value in (span.attributes or {}).items()]
    lines += [f"    {event.name}: {(event.attributes or {}).get('exception.message')!r}" for event in span.events]
    lines += [f"    after the failed attempt {link.context.span_id:016x}" for link in span.links]
    return "\n".join(lines) + "\n"


def main() -> None:
    url = os.environ.get("REPLAY_URL", "").rstrip("/")
    headers = {"Authorization": f"Bearer {os.environ.get('REPLAY_KEY', '')}"}
    printer = ConsoleSpanExporter(formatter=in_words)
    exporter: SpanExporter = OTLPSpanExporter(f"{url}/v1/traces", headers=headers, timeout=5) if url else printer
    provider = TracerProvider(resource=Resource({"service.name": "docs-bot"}))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)

    answer = run_agent("May I return my kettle?", f"run_{uuid.uuid4().hex[:6]}")
    provider.shutdown()
    print(f"Answer: {answer}")
    if url:
        print(f"The spans were given to the exporter for {url}/v1/traces; above it says what it could not deliver.")


if __name__ == "__main__":
    main()
