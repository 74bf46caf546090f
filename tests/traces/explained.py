"""What captures do not hold, although a plain search finds it in them: by variant, or its scenario, and fact."""

from __future__ import annotations

_NO_DOCUMENTS = (
    "The span of the search holds neither its query nor what was found: the texts stand in the prompt alone."
)
_NO_SEARCH = "The framework makes no span for a search: the texts stand in the prompt alone."
_TEMPLATE = "The prompt is a template around the input, and the topmost span does not hold the input."
_STREAM = "The instrumentation's spans of streamed answers hold no content."
_CUT_OFF = "The length limit for values cut the messages off in the middle of their JSON."
_CUT_SCHEMAS = "The length limit for values cut the definitions off in the middle of their JSON."
_RESPONSES = "The SDK's own trace of a call of the Responses API holds its id and usage alone."
_NO_SPAN = "The call that failed has no span."
_FAILED_BARE = "The span of the failed call holds no settings."
_NO_SEED = "No span holds the seed; the number stands elsewhere."
_NO_REASON = "No span says why the answer ended; the word stands elsewhere."
_ASKED_MODEL = "In streams the instrumentation names the model that was asked for as the one that answered."
_NO_CONTENT = "Content is switched off; the words stand in the message of an exception."

EXPLAINED: dict[tuple[str, str], str] = {
    ("anthropic-sdk-traceloop-legacy/stream", "answers"): _STREAM,
    ("anthropic-sdk-traceloop-legacy/stream", "calls asked for"): _STREAM,
    ("anthropic-sdk-traceloop-legacy/stream", "order of answers"): _STREAM,
    ("anthropic-sdk-traceloop-legacy/model_error", "model calls"): _NO_SPAN,
    ("anthropic-sdk-traceloop-legacy/model_error", "model errors"): _NO_SPAN,
    ("anthropic-sdk-traceloop-legacy/model_error", "temperature"): _NO_SPAN,
    ("anthropic-sdk-traceloop/stream", "output tokens"): "The instrumentation counts one token too many in streams.",
    ("google-adk-default-nocontent/tool_exception", "calls asked for"): _NO_CONTENT,
    ("google-adk-default-nocontent/tool_exception", "calls of tools"): _NO_CONTENT,
    ("google-adk-default-nocontent", "tool schemas"): "Without contents tools are named without their schemas.",
    ("langgraph-langfuse-v3/loop", "seed"): _NO_SEED,
    ("langgraph-traceloop/loop", "seed"): _NO_SEED,
    ("langgraph-traceloop/retrieval", "documents found"): "The documents stand there without their ids.",
    ("langgraph-traceloop/stream", "models"): _ASKED_MODEL,
    ("langgraph-traceloop-legacy/loop", "seed"): _NO_SEED,
    ("langgraph-traceloop-legacy/retrieval", "documents found"): _NO_SEARCH,
    ("langgraph-traceloop-legacy/retrieval", "searches"): _NO_SEARCH,
    ("langgraph-traceloop-legacy/stream", "models"): _ASKED_MODEL,
    ("limits-value-length/order_lookup", "tool schemas"): _CUT_SCHEMAS,
    ("limits-value-length/parallel_tools", "answers"): _CUT_OFF,
    ("limits-value-length/parallel_tools", "calls asked for"): _CUT_OFF,
    ("limits-value-length/parallel_tools", "order of answers"): _CUT_OFF,
    ("limits-value-length/parallel_tools", "tool answers in requests"): _CUT_OFF,
    ("limits-value-length/parallel_tools", "tool schemas"): _CUT_SCHEMAS,
    (
        "litellm-openinference",
        "models",
    ): "Spans of answers that are plain text hold the model that was asked for alone.",
    ("llama-index-openinference", "models"): "The answering model stands in the printed form of a Python object alone.",
    ("openai-agents-native", "calls asked for"): _RESPONSES,
    ("openai-agents-native-chat/model_error", "finish reason"): _NO_REASON,
    ("openai-agents-native-chat/stream", "finish reason"): _NO_REASON,
    ("openai-agents-openinference/model_error", "temperature"): _FAILED_BARE,
    ("openai-agents-traceloop/model_error", "temperature"): _FAILED_BARE,
    ("openai-sdk-langfuse-v3/model_error", "finish reason"): _NO_REASON,
    ("openai-sdk-langfuse-v3/truncated", "finish reason"): _NO_REASON,
    ("openai-sdk-mlflow-otlp-genai/retrieval", "documents found"): _NO_DOCUMENTS,
    ("openai-sdk-mlflow-otlp-genai/retrieval", "input"): _TEMPLATE,
    ("openai-sdk-mlflow-otlp-genai/retrieval", "searches"): _NO_DOCUMENTS,
    ("openai-sdk-otel-contrib/retrieval", "documents found"): _NO_DOCUMENTS,
    ("openai-sdk-otel-contrib/retrieval", "input"): _TEMPLATE,
    ("openai-sdk-otel-contrib/retrieval", "searches"): _NO_DOCUMENTS,
    ("openai-sdk-otel-genai/retrieval", "documents found"): _NO_DOCUMENTS,
    ("openai-sdk-otel-genai/retrieval", "input"): _TEMPLATE,
    ("openai-sdk-otel-genai/retrieval", "searches"): _NO_DOCUMENTS,
    ("openai-sdk-traceloop-legacy/retrieval", "documents found"): "The search is marked as a task like any other.",
    ("openai-sdk-traceloop-legacy/retrieval", "searches"): "The search is marked as a task like any other.",
    ("strands/session", "tool schemas"): "The schema of a tool stands on its own span alone, and not every tool ran.",
    ("vercel-ai-openinference/retrieval", "documents found"): _NO_SEARCH,
    ("vercel-ai-openinference/retrieval", "input"): _TEMPLATE,
    ("vercel-ai-openinference/retrieval", "searches"): _NO_SEARCH,
    ("vercel-ai-v5/retrieval", "documents found"): _NO_SEARCH,
    ("vercel-ai-v5/retrieval", "input"): _TEMPLATE,
    ("vercel-ai-v5/retrieval", "searches"): _NO_SEARCH,
    ("vercel-ai-v7/retrieval", "documents found"): _NO_SEARCH,
    ("vercel-ai-v7/retrieval", "input"): _TEMPLATE,
    ("vercel-ai-v7/retrieval", "searches"): _NO_SEARCH,
}


def explanation(capture: str, fact: str) -> tuple[str, str] | None:
    """The entry for a capture's fact, the scenario's own before the variant's."""
    keys = ((capture, fact), (capture.partition("/")[0], fact))
    return next((key for key in keys if key in EXPLAINED), None)
