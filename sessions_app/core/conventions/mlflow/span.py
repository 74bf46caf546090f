"""MLflow's spans: every attribute's value is JSON inside text, also numbers and plain words.

| attribute | holds |
| --- | --- |
| `mlflow.spanType` | `CHAT_MODEL`, `LLM`, `TOOL`, `AGENT`, `CHAIN`, `RETRIEVER`, `EMBEDDING` ... |
| `mlflow.spanInputs`, `mlflow.spanOutputs` | arguments and result; of a model the provider's request and response |
| `mlflow.chat.tools`, `mlflow.chat.tokenUsage`, `mlflow.llm.model` | of a model, in MLflow's own words |
| `temperature`, `seed` ...; `invocation_params` | settings of the request, without a prefix; LangChain's |
| event `mlflow.chunk.item.N` | a chunk of a stream |

With `MLFLOW_ENABLE_OTEL_GENAI_SEMCONV` the `mlflow.*` attributes give way to `gen_ai.*`, the settings stay.
Source: https://mlflow.org/docs/latest/genai/tracing/ and `mlflow.tracing.constant`.
"""

from __future__ import annotations

from collections.abc import Callable

from sessions_app.core.conventions.mlflow.model import CONVENTION, embedding_reading, model_reading
from sessions_app.core.conventions.mlflow.tool import retrieval_reading, tool_reading
from sessions_app.core.conventions.owners import SESSION, TENANT, USER, identifier
from sessions_app.core.conventions.steering import is_steering
from sessions_app.core.payload import JsonObject
from sessions_app.core.spans.attributes import Read, error_of
from sessions_app.core.spans.provider_messages import last_words, messages_in_state
from sessions_app.core.spans.reading import Reading, ReadingKind
from sessions_app.core.spans.span import Span


def read(span: Span) -> Reading | None:
    """What MLflow says of the span, or None when it says nothing."""
    said = Read(span.attributes)
    is_own = span.scope.name.startswith("mlflow.") or any(name.startswith("mlflow.span") for name in said.names())
    if not is_own:
        return None
    metadata = said.object("metadata") or {}
    kind = _kind(said, span, metadata)
    reading = _READERS.get(kind or "", _nothing)(said, span)
    said.raw("mlflow.traceRequestId", "mlflow.spanLogLevel", "mlflow.message.format")
    reading.kind = kind
    reading.session_id = _text(said, "mlflow.trace.session") or identifier(metadata, SESSION)
    reading.user_id = _text(said, "mlflow.trace.user") or identifier(metadata, USER)
    reading.tenant_id = identifier(metadata, TENANT)
    reading.agent_name = _agent_name(said, span, kind, metadata)
    reading.error = error_of(span)
    reading.is_error_harmless = is_steering(reading.error)
    reading.used = frozenset(said.used)
    return reading


def _text(said: Read, name: str) -> str | None:
    value = said.json(name)
    return value if isinstance(value, str) and value else None


def _kind(said: Read, span: Span, metadata: JsonObject) -> ReadingKind | None:
    """With OpenTelemetry's attributes MLflow's own kinds stand in `gen_ai.operation.name`, where they have no other."""
    kind = _KINDS.get(str(_text(said, "mlflow.spanType") or span.attributes.get("gen_ai.operation.name")))
    # LangChain's agents are chains that bear the agent's name.
    is_agent = kind == "chain" and bool(span.name) and metadata.get("lc_agent_name") == span.name
    return "agent" if is_agent else kind


_KINDS: dict[str, ReadingKind] = {
    "CHAT_MODEL": "model",
    "LLM": "model",
    "TOOL": "tool",
    "AGENT": "agent",
    "RETRIEVER": "retrieval",
    "EMBEDDING": "embedding",
    **dict.fromkeys(("CHAIN", "WORKFLOW", "TASK", "PARSER", "RERANKER", "MEMORY", "GUARDRAIL", "EVALUATOR"), "chain"),
}


def _agent_name(said: Read, span: Span, kind: ReadingKind | None, metadata: JsonObject) -> str | None:
    own = _text(said, "mlflow.spanFunctionName") or span.name if kind == "agent" else None
    name = metadata.get("lc_agent_name") or own
    return name if isinstance(name, str) and name else None


def _nothing(said: Read, span: Span) -> Reading:
    """Settings stand on spans of models alone; they are read there also when OpenTelemetry says that it is one."""
    return model_reading(said, span) if said.has("model") else Reading(convention=CONVENTION)


def _whole(said: Read, span: Span) -> Reading:
    """An agent or a chain."""
    inputs, outputs = said.json("mlflow.spanInputs"), said.json("mlflow.spanOutputs")
    is_run = span.parent_id is None
    return Reading(
        convention=CONVENTION,
        name=_text(said, "mlflow.spanFunctionName"),
        input=last_words(inputs, "user"),
        output=last_words(outputs, "assistant"),
        initial=messages_in_state(inputs) if is_run else None,
        conversation=messages_in_state(outputs) if is_run else None,
    )


def _chain(said: Read, span: Span) -> Reading:
    """A node of a graph is given its state, and gives back changes of it."""
    reading = _whole(said, span)
    if span.parent_id is not None:
        reading.input, reading.output = said.json("mlflow.spanInputs"), said.json("mlflow.spanOutputs")
    return reading


_READERS: dict[str, Callable[[Read, Span], Reading]] = {
    "model": model_reading,
    "tool": tool_reading,
    "retrieval": retrieval_reading,
    "embedding": embedding_reading,
    "agent": _whole,
    "chain": _chain,
}
