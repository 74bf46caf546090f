"""What a convention makes of one span: the same words for every framework.

None always means that the span does not say it. Nothing here is guessed from other spans; that is the assembly's part.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sessions_app.core.payload import JsonObject, JsonValue, canonical_json
from sessions_app.core.run import ErrorInfo

Role = Literal["system", "user", "assistant", "tool"]
ReadingKind = Literal["model", "tool", "retrieval", "embedding", "agent", "handoff", "chain"]
"""`agent`: a span around a whole run or sub-agent. `chain`: work that only holds others together. `embedding`: texts
turned into vectors. `handoff`: one agent passes the conversation on to another."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TextPart:
    """Words that were said."""

    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ThinkingPart:
    """What a model thought before it answered."""

    text: str
    id: str | None = None
    signature: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CallPart:
    """A model asks for a tool."""

    tool_name: str
    call_id: str | None = None
    arguments: JsonValue = None
    """A text stays that text (models send JSON as text); None when it was not captured."""
    is_builtin: bool = False
    """The provider runs the tool itself: nobody else is asked, and what it gave stands in the same answer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ResultPart:
    """What a tool answered, as the model was given it."""

    call_id: str | None = None
    tool_name: str | None = None
    content: JsonValue = None
    is_error: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class BuiltinResultPart:
    """What a tool gave that the provider ran; a part of the model's answer."""

    call_id: str | None = None
    tool_name: str | None = None
    content: JsonValue = None


@dataclass(frozen=True, kw_only=True, slots=True)
class OtherPart:
    """Images, files, audio, and kinds that nobody here knows; `value` is the part as it came."""

    kind: str
    value: JsonValue

    @property
    def spelled(self) -> str:
        """As a text, where there can be no part of its kind."""
        return f"[{self.kind}] {canonical_json(self.value).decode(errors='replace')}"


Part = TextPart | ThinkingPart | CallPart | ResultPart | BuiltinResultPart | OtherPart


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatMessage:
    """One message of a conversation with a model."""

    role: Role
    parts: tuple[Part, ...]
    spelled_role: str | None = field(default=None, compare=False)
    """The role as the message itself names it."""
    name: str | None = field(default=None, compare=False)
    """Which user says it, where the message tells."""
    are_calls_told_otherwise: bool = field(default=False, compare=False)
    """Whether its content tells a call otherwise than its list of calls."""

    def words(self, between: str = "") -> str:
        """All text in it as one."""
        return between.join(part.text for part in self.parts if isinstance(part, TextPart))


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolDefinition:
    """A tool as it was offered to the model."""

    name: str
    description: str | None = None
    parameters: JsonObject | None = None
    """Its JSON Schema; None when the span names the tool alone."""
    beside: JsonObject = field(default_factory=dict, compare=False)
    """What else it says, such as `strict`, which few conventions tell."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RetrievedChunk:
    """A piece of text that a retrieval returned."""

    chunk_id: str | None = None
    score: float | None = None
    content: JsonValue = None
    extra: JsonObject = field(default_factory=dict)


@dataclass(kw_only=True, slots=True)
class Reading:
    """One span in the words of this product.

    Not frozen: its convention fills it in piece by piece, and to build so many fields anew for each piece would be a
    quarter of what making a run of spans costs. Once it is a run's, nobody changes it.
    """

    convention: str
    """The convention's key, as in docs/integrations.md."""
    kind: ReadingKind | None = None
    name: str | None = None
    """Of the agent, or of the operation where it has one better than the span's name."""
    framework: str | None = None
    framework_version: str | None = None

    # A call of a model.
    messages: tuple[ChatMessage, ...] | None = None
    """All that went in, oldest first, with system messages where the convention has them among the others."""
    answer: ChatMessage | None = None
    instructions: str | None = None
    """System prompt, where the convention keeps it apart from the messages."""
    tools: tuple[ToolDefinition, ...] | None = None
    are_messages_told_otherwise: bool = False
    """Whether the call's request or its answer is told twice, and not alike."""
    are_tools_told_otherwise: bool = False
    """Whether the span tells of the same tools twice, and not alike."""
    are_settings_told_otherwise: bool = False
    """Likewise of a setting."""
    model: str | None = None
    answered_model: str | None = None
    provider: str | None = None
    response_id: str | None = None
    settings: JsonObject | None = None
    """temperature, top_p, seed, max_tokens …, without prefixes."""
    finish_reason: str | None = None
    input_tokens: int | None = None
    """With those that came from a cache."""
    output_tokens: int | None = None
    first_token_ns: int | None = None
    """Nanoseconds since 1970."""

    # A call of a tool.
    tool_name: str | None = None
    other_tool_name: str | None = None
    """How the span names the tool once more, where it does."""
    call_id: str | None = None
    other_call_id: str | None = None
    """Likewise of the call's id."""
    arguments: JsonValue = None
    result: JsonValue = None
    has_arguments: bool = False
    """Null is an argument like any other: this says whether it was captured. Likewise `has_result`."""
    has_result: bool = False
    are_arguments_told_otherwise: bool = False
    """Whether the span tells them twice, and not alike. Likewise `is_result_told_otherwise`."""
    is_result_told_otherwise: bool = False
    is_result_quoted: bool = False
    """Whether the span spells the result as the JSON of a text."""
    retry: JsonObject | None = None
    """As `ToolCall.retry`, where the span says that the model was asked to try again."""
    is_output_function: bool = False
    """Whether a function of the team's made the output of what the model gave."""

    # A search.
    query: JsonValue = None
    chunks: tuple[RetrievedChunk, ...] | None = None
    embedding_model: str | None = None

    # The operation as a whole, mostly of agents and chains.
    input: JsonValue = None
    output: JsonValue = None
    is_input_told_otherwise: bool = False
    """Whether an agent's or a chain's span tells it twice, and not alike. Likewise `is_output_told_otherwise`."""
    is_output_told_otherwise: bool = False
    conversation: tuple[ChatMessage, ...] | None = None
    """All messages of a run that its own span carries."""
    initial: tuple[ChatMessage, ...] | None = None
    """The messages with which its own span says that a run began."""
    is_conversation_told_otherwise: bool = False
    """Whether the span tells twice, and not alike, how the run began or what it went through."""
    earlier: tuple[ChatMessage, ...] | None = None
    """Those of earlier runs, with which an agent's run went on."""
    has_varying_instructions: bool = False
    """Of an agent: whether its requests had several, of which its span tells those of one."""
    waiting: dict[str, str] | None = None
    """Outcomes of the calls that a run left open for somebody and ended with, by their ids."""
    summary: ChatMessage | None = None
    """What models and tools said in a run, in an order of its own."""
    run_id: str | None = None
    """The id that the application gave to the run, beside that of the trace."""
    session_id: str | None = None
    user_id: str | None = None
    tenant_id: str | None = None
    agent_name: str | None = None
    agent_version: str | None = None
    flags: JsonObject | None = None
    error: ErrorInfo | None = None
    """What went wrong, from the span's status, its exception event or the convention's own words."""
    is_error_told_otherwise: bool = False
    """Whether the span tells its words twice, and not alike."""
    is_error_harmless: bool = False
    """The span ended with an exception that only steers the framework, such as a handoff."""
    used: frozenset[str] = frozenset()
    """Names of the attributes that were understood; the others are kept and shown as they came."""


NOTHING = Reading(convention="none")
"""For a span of no convention."""
