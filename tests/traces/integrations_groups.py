"""The sections of docs/integrations.md: how to point each instrumentation here, and the rows of its table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One variant of the captures, in words for its row."""

    label: str
    packages: tuple[str, ...]
    """Whose versions are named."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """One instrumentation."""

    title: str
    rows: dict[str, Row]
    """By variant."""
    setup: str
    origin: str | None = None
    """Key of its settings in `BY_ORIGIN`."""


def _row(label: str, *packages: str) -> Row:
    return Row(label=label, packages=packages)


_PYDANTIC = "pydantic-ai-slim"
_LANGCHAIN = ("langchain", "langgraph")
_VERCEL = "ai"

GROUPS: tuple[Group, ...] = (
    Group(
        title="Pydantic AI, and Logfire's SDK",
        rows={
            "pydantic-ai-v6": _row("spans of version 6", _PYDANTIC),
            "pydantic-ai-v5": _row("version 5, the default", _PYDANTIC),
            "pydantic-ai-v5-responses": _row("version 5, Responses API", _PYDANTIC),
            "pydantic-ai-v5-nocontent": _row("version 5, without contents", _PYDANTIC),
            "pydantic-ai-v4": _row("version 4", _PYDANTIC),
            "pydantic-ai-v3": _row("version 3", _PYDANTIC),
            "pydantic-ai-v2": _row("version 2", _PYDANTIC),
            "pydantic-ai-v1-attributes": _row("version 1, events as attributes", _PYDANTIC),
            "logfire-pydantic-ai": _row("by Logfire's SDK", _PYDANTIC, "logfire"),
            "encodings-proto-gzip": _row("protobuf, gzip", _PYDANTIC),
            "encodings-proto-none": _row("protobuf, plain", _PYDANTIC),
            "encodings-json-gzip": _row("JSON, gzip", _PYDANTIC),
            "limits-value-length": _row("values cut off at 256 characters", _PYDANTIC),
        },
        setup="The three variables above, a tracer provider with the OTLP exporter, and `Agent.instrument_all()`. With "
        "Logfire: `logfire.configure(send_to_logfire=False)` and `logfire.instrument_pydantic_ai()`.",
        origin="pydantic-ai",
    ),
    Group(
        title="OpenAI Agents SDK",
        rows={
            "openai-agents-native": _row("own tracing, Responses API", "openai-agents"),
            "openai-agents-native-chat": _row("own tracing, chat completions", "openai-agents"),
            "openai-agents-openinference": _row(
                "by OpenInference", "openai-agents", "openinference-instrumentation-openai-agents"
            ),
            "openai-agents-traceloop": _row(
                "by Traceloop", "openai-agents", "opentelemetry-instrumentation-openai-agents"
            ),
        },
        setup="""Its own tracing:

    from agents.tracing import set_trace_processors
    from agents.tracing.processors import BackendSpanExporter, BatchTraceProcessor

    exporter = BackendSpanExporter(endpoint="http://127.0.0.1:8000/api/v1/runs", api_key="rpk_…")
    set_trace_processors([BatchTraceProcessor(exporter)])

OpenInference's or Traceloop's instrumentation: the three variables above.""",
        origin="openai-agents",
    ),
    Group(
        title="OpenTelemetry's own instrumentations",
        rows={
            "openai-sdk-otel-genai": _row("genai-openai", "opentelemetry-instrumentation-genai-openai", "openai"),
            "openai-sdk-otel-contrib": _row("openai-v2", "opentelemetry-instrumentation-openai-v2", "openai"),
            "openai-sdk-otel-contrib-legacy": _row(
                "openai-v2, contents as log records", "opentelemetry-instrumentation-openai-v2", "openai"
            ),
        },
        setup="The three variables above, for traces and for logs: contents may come as log records. These "
        "instrumentations make no spans of tools; the rows with tools had spans of the application's own.",
        origin="otel-genai",
    ),
    Group(
        title="OpenInference, Phoenix",
        rows={
            "openai-sdk-openinference": _row("OpenAI SDK", "openinference-instrumentation-openai", "openai"),
            "openai-sdk-openinference-responses": _row(
                "OpenAI SDK, Responses API", "openinference-instrumentation-openai", "openai"
            ),
            "openai-sdk-openinference-simple": _row(
                "OpenAI SDK, one span in each request", "openinference-instrumentation-openai", "openai"
            ),
            "openai-sdk-phoenix-register": _row("OpenAI SDK, set up by Phoenix", "arize-phoenix-otel", "openai"),
            "anthropic-sdk-openinference": _row(
                "Anthropic SDK", "openinference-instrumentation-anthropic", "anthropic"
            ),
            "langgraph-openinference": _row("LangGraph", "openinference-instrumentation-langchain", *_LANGCHAIN),
            "langgraph-openinference-anthropic": _row(
                "LangGraph with Anthropic", "openinference-instrumentation-langchain", *_LANGCHAIN
            ),
            "llama-index-openinference": _row(
                "LlamaIndex", "openinference-instrumentation-llama-index", "llama-index-core"
            ),
            "litellm-openinference": _row("LiteLLM", "openinference-instrumentation-litellm", "litellm"),
        },
        setup='The three variables above, or `phoenix.otel.register(endpoint="http://127.0.0.1:8000/v1/traces", '
        'headers={"Authorization": "Bearer rpk_…"})`.',
        origin="openinference",
    ),
    Group(
        title="Traceloop (OpenLLMetry)",
        rows={
            "openai-sdk-traceloop": _row("OpenAI SDK", "traceloop-sdk", "openai"),
            "openai-sdk-traceloop-legacy": _row("OpenAI SDK, older release", "traceloop-sdk", "openai"),
            "anthropic-sdk-traceloop": _row("Anthropic SDK", "traceloop-sdk", "anthropic"),
            "anthropic-sdk-traceloop-legacy": _row("Anthropic SDK, older release", "traceloop-sdk", "anthropic"),
            "langgraph-traceloop": _row("LangGraph", "opentelemetry-instrumentation-langchain", *_LANGCHAIN),
            "langgraph-traceloop-legacy": _row(
                "LangGraph, older release", "opentelemetry-instrumentation-langchain", *_LANGCHAIN
            ),
        },
        setup='`Traceloop.init(api_endpoint="http://127.0.0.1:8000", headers={"Authorization": "Bearer rpk_…"})`, or '
        "one of its instrumentations with the three variables above.",
        origin="traceloop",
    ),
    Group(
        title="Langfuse",
        rows={
            "openai-sdk-langfuse-v5": _row("OpenAI SDK", "langfuse", "openai"),
            "openai-sdk-langfuse-v3": _row("OpenAI SDK, older release", "langfuse", "openai"),
            "langgraph-langfuse-v3": _row("LangGraph", "langfuse", *_LANGCHAIN),
        },
        setup="""The SDK sends OTLP and has its own variables; any public key will do:

    LANGFUSE_HOST=http://127.0.0.1:8000          # LANGFUSE_BASE_URL in newer releases
    LANGFUSE_PUBLIC_KEY=any
    LANGFUSE_SECRET_KEY=rpk_…""",
        origin="langfuse",
    ),
    Group(
        title="LangSmith",
        rows={
            "openai-sdk-langsmith-otel": _row("OpenAI SDK, as spans", "langsmith", "openai"),
            "langgraph-langsmith-otel": _row("LangGraph, as spans", "langsmith", *_LANGCHAIN),
            "openai-sdk-langsmith": _row("OpenAI SDK, its client's own bodies", "langsmith", "openai"),
        },
        setup="`LANGSMITH_TRACING=true` and `LANGSMITH_OTEL_ENABLED=true`, with the three variables above. What its "
        "client sends on its own (multipart) is taken as a file.",
        origin="langsmith",
    ),
    Group(
        title="MLflow",
        rows={
            "openai-sdk-mlflow-otlp": _row("OpenAI SDK", "mlflow", "openai"),
            "openai-sdk-mlflow-otlp-genai": _row(
                "OpenAI SDK, MLFLOW_ENABLE_OTEL_GENAI_SEMCONV=true", "mlflow", "openai"
            ),
            "langgraph-mlflow-otlp": _row("LangGraph", "mlflow", *_LANGCHAIN),
        },
        setup="The three variables above.",
        origin="mlflow",
    ),
    Group(
        title="Vercel AI SDK",
        rows={
            "vercel-ai-v7": _row("AI SDK 7", _VERCEL, "@ai-sdk/otel"),
            "vercel-ai-v6": _row("AI SDK 6", _VERCEL),
            "vercel-ai-v5": _row("AI SDK 5", _VERCEL),
            "vercel-ai-langfuse": _row("AI SDK 5, by Langfuse", _VERCEL, "@langfuse/otel"),
            "vercel-ai-openinference": _row("AI SDK 5, by OpenInference", _VERCEL, "@arizeai/openinference-vercel"),
        },
        setup="""`experimental_telemetry: { isEnabled: true }`, or in AI SDK 7 `registerTelemetry(new OpenTelemetry())`,
with

    new OTLPTraceExporter({
      url: "http://127.0.0.1:8000/v1/traces",
      headers: { Authorization: "Bearer rpk_…" },
    })""",
        origin="vercel-ai-sdk",
    ),
    Group(
        title="Google ADK",
        rows={
            "google-adk": _row("Gemini, with contents", "google-adk", "google-genai"),
            "google-adk-litellm": _row("OpenAI by LiteLLM, with contents", "google-adk", "litellm"),
            "google-adk-default-nocontent": _row("Gemini, the default: no contents", "google-adk", "google-genai"),
        },
        setup="""The three variables above.

The span of an agent tells neither what it was asked nor what it answered: what a model answered last stands in the span
of that call alone, and in its log record where events are sent. No other span can contradict it.""",
        origin="gcp.vertex.agent",
    ),
    Group(
        title="Strands Agents",
        rows={
            "strands-latest-semconv": _row("latest conventions, tool definitions", "strands-agents"),
            "strands": _row("the default", "strands-agents"),
        },
        setup="The three variables above, and `StrandsTelemetry().setup_otlp_exporter()`.",
        origin="strands.telemetry.tracer",
    ),
)
