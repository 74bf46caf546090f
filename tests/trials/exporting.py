"""A program with a real exporter: python exporting.py EXPORTER SOURCE COUNT.

EXPORTER is `json` or `proto`, SOURCE is `spans` or `pydantic_ai`; the variables OTEL_EXPORTER_OTLP_* say where to.
It makes COUNT spans, a few at a time, and prints how many it ended. It imports nothing of ours, for it runs beside
other versions of the libraries.
"""

import logging
import sys
import time
from importlib import import_module

from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

PER_SECOND = 50


class Counter(SpanProcessor):
    ended = 0

    def on_end(self, span: object) -> None:
        self.ended += 1


def make_exporter(encoding: str) -> SpanExporter:
    """Each is a package of its own; one of them is enough."""
    module = import_module(f"opentelemetry.exporter.otlp.{encoding}.http.trace_exporter")
    exporter: SpanExporter = module.OTLPSpanExporter()
    return exporter


def make_spans(provider: TracerProvider, counter: Counter, count: int) -> None:
    """Traces of five spans."""
    tracer = provider.get_tracer("trial")
    while counter.ended < count:
        with tracer.start_as_current_span("invoke_agent a", attributes={"gen_ai.operation.name": "invoke_agent"}):
            for n in range(4):
                with tracer.start_as_current_span("execute_tool t", attributes={"gen_ai.tool.call.id": f"c{n}"}):
                    time.sleep(1 / PER_SECOND)


def run_agents(provider: TracerProvider, counter: Counter, count: int) -> None:
    from pydantic_ai import Agent, InstrumentationSettings
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        time.sleep(2 / PER_SECOND)
        if len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart("look", {"page": n}) for n in range(2)])
        return ModelResponse(parts=[TextPart("done")])

    Agent.instrument_all(InstrumentationSettings(tracer_provider=provider))
    agent: Agent[None, str] = Agent(FunctionModel(answer), name="trial")

    @agent.tool_plain
    def look(page: int) -> str:
        return f"page {page}"

    while counter.ended < count:
        agent.run_sync("Look at two pages.")


def main() -> None:
    exporter, source, count = sys.argv[1:]
    logging.basicConfig(level=logging.WARNING)  # what an exporter gives up it only logs
    provider, counter = TracerProvider(), Counter()
    provider.add_span_processor(counter)
    provider.add_span_processor(
        BatchSpanProcessor(make_exporter(exporter), schedule_delay_millis=200, max_export_batch_size=25)
    )
    {"spans": make_spans, "pydantic_ai": run_agents}[source](provider, counter, int(count))
    provider.force_flush(120_000)
    provider.shutdown()
    print(counter.ended)


if __name__ == "__main__":
    main()
