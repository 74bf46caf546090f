"""What kind of operation a span of the GenAI convention is."""

from __future__ import annotations

from sessions_app.core.conventions.genai.said import Said
from sessions_app.core.spans.attributes import as_text
from sessions_app.core.spans.reading import ReadingKind

_WORDS: dict[str, ReadingKind] = {
    **dict.fromkeys(("chat", "generate_content", "text_completion", "completion", "responses"), "model"),
    **dict.fromkeys(("llm", "chat_model"), "model"),
    **dict.fromkeys(("execute_tool", "tool"), "tool"),
    **dict.fromkeys(("invoke_agent", "agent"), "agent"),
    "handoff": "handoff",
}
"""Values of `gen_ai.operation.name`. Frameworks use words of their own beside those of the specification."""

_ANSWERS = (
    *("gen_ai.output.messages", "gen_ai.response.model", "gen_ai.response.id", "gen_ai.response.finish_reasons"),
    *("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "gen_ai.usage.output_tokens"),
)
_CALL = ("gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "gen_ai.tool.call.id")
_AGENT_RUN = ("pydantic_ai.all_messages", "all_messages_events", "final_result")


def kind_of(said: Said, *, has_events: bool) -> ReadingKind | None:
    """None when the span holds facts of the convention but does not say what it did.

    `has_events` says whether the span's messages came as events.
    """
    word = said.take(as_text, "gen_ai.operation.name")
    kind = _of_word(word.lower()) if word else _of_contents(said, has_events=has_events)
    if kind == "chain" and said.has("gen_ai.tool.name") and said.has_any(*_CALL):
        kind = "tool"  # a word of its own for running a tool
    is_of_text = is_output_function(said) and not said.has("gen_ai.tool.call.id")
    return "chain" if kind == "tool" and (_is_label(said) or is_of_text) else kind


def is_output_function(said: Said) -> bool:
    """Pydantic AI tells of a function that makes the output as of a tool, though the model is told another result. One
    that makes it of a text was asked for by no model."""
    return (as_text(said.peek("logfire.msg")) or "").startswith("running output function: ")


def _of_word(word: str) -> ReadingKind:
    if word in _WORDS:
        return _WORDS[word]
    if "retriev" in word:
        return "retrieval"
    return "embedding" if "embedding" in word else "chain"


def _of_contents(said: Said, *, has_events: bool) -> ReadingKind | None:
    if said.has_any(*_AGENT_RUN):
        return "agent"
    if said.has("gen_ai.tool.name"):
        return "tool"
    if said.has_any("gen_ai.retrieval.documents", "gen_ai.retrieval.query.text"):
        return "retrieval"
    has_answer = has_events or said.has_any(*_ANSWERS)
    return "model" if has_answer and said.has("gen_ai.request.model") else None


def _is_label(said: Said) -> bool:
    """A span around several tools goes by words in brackets, which no model may call a tool."""
    return (as_text(said.peek("gen_ai.tool.name")) or "").startswith("(")
