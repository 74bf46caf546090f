"""What Pydantic AI 2.68 reads as a message, a prompt or a tool, as types that pydantic checks as there.

Fields that the library fills in by itself are null where they were not captured, and the loader leaves them out.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, Required, TypeVar

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails
from typing_extensions import TypedDict

Object = dict[str, Any]
Text = str | None
Details = Object | None
Time = datetime | None
Count = int | None
Cause = TypeVar("Cause")


class Retry(TypedDict, Generic[Cause], total=False):
    cause: Required[Cause]
    attempt: int | None
    max_retries: int | None


CallCause = Literal["validation_error", "model_retry", "unknown_tool", "unavailable_tool"]
FeedbackCause = Literal["validation_error", "no_output", "model_retry"]


# --- what a prompt consists of -----------------------------------------------------------------


class FileUrl(TypedDict, total=False):
    kind: Literal["image-url", "audio-url", "video-url", "document-url"]
    url: Required[str]
    force_download: bool | Literal["allow-local"]
    vendor_metadata: Details
    media_type: Text
    identifier: Text


class Binary(TypedDict, total=False):
    __pydantic_config__ = ConfigDict(val_json_bytes="base64")  # type: ignore[misc]

    kind: Literal["binary"]
    data: Required[bytes]
    media_type: Required[str]
    vendor_metadata: Details
    identifier: Text


Provider = Literal["anthropic", "openai", "google", "google-cloud", "google-gla", "google-vertex", "bedrock", "xai"]
"""Whoever keeps an uploaded file."""


class UploadedFile(TypedDict, total=False):
    kind: Literal["uploaded-file"]
    file_id: Required[str]
    provider_name: Required[Provider]
    vendor_metadata: Details
    media_type: Text
    identifier: Text


class TextContent(TypedDict, total=False):
    kind: Literal["text-content"]
    content: Required[str]


class StructuredContent(TypedDict, total=False):
    kind: Literal["structured-content"]
    value: Required[Any]
    content: str


class CachePoint(TypedDict, total=False):
    kind: Literal["cache-point"]
    ttl: Literal["5m", "1h"]


Item = str | FileUrl | Binary | UploadedFile | TextContent | StructuredContent | CachePoint
"""One without a kind is a point of the cache, of which nothing has to be said."""


# --- parts of a request ------------------------------------------------------------------------


class SystemPrompt(TypedDict, total=False):
    part_kind: Required[Literal["system-prompt"]]
    content: Required[str]
    timestamp: Time
    dynamic_ref: Text
    context_id: Text
    scope: Literal["conversation", "request"] | None
    metadata: Details


class UserPrompt(TypedDict, total=False):
    part_kind: Required[Literal["user-prompt"]]
    content: Required[str | list[Item]]
    timestamp: Time


def _texts(value: Any) -> Any:
    """A list is read as one of texts; what is none is passed over."""
    if isinstance(value, list) and not all(isinstance(item, str) for item in value):
        raise ValueError("no list of texts")
    return value


class _ToolReturn(TypedDict, total=False):
    tool_name: Required[str]
    content: Required[Any]
    tool_call_id: Text
    tool_kind: Text
    timestamp: Time
    outcome: Literal["success", "failed", "denied", "interrupted", "retried"] | None
    content_file_digests: Annotated[Any, AfterValidator(_texts)]


class ToolReturn(_ToolReturn, total=False):
    part_kind: Required[Literal["tool-return"]]
    retry: Retry[CallCause] | None


class RetryPrompt(TypedDict, total=False):
    part_kind: Required[Literal["retry-prompt"]]
    content: Required[list[ErrorDetails] | str]
    tool_name: Text
    tool_call_id: Text
    timestamp: Time


class RetryFeedback(TypedDict, total=False):
    part_kind: Required[Literal["retry-feedback"]]
    content: Required[list[ErrorDetails] | str]
    retry: Required[Retry[FeedbackCause]]
    timestamp: Time


# --- tools of the library's own ----------------------------------------------------------------


class _Search(TypedDict):
    queries: Required[list[str]]


class _FoundTool(TypedDict):
    name: Required[str]


class _Found(TypedDict, total=False):
    discovered_tools: Required[list[_FoundTool]]
    message: Text


class _LoadedById(TypedDict):
    id: Required[str]


class _Loaded(TypedDict, total=False):
    message: str
    instructions: str


_OWN_TOOLS: dict[tuple[str, str], tuple[str, TypeAdapter[Any], str]] = {
    ("tool-call", "tool-search"): ("search_tools", TypeAdapter(str | _Search | None), "args"),
    ("tool-return", "tool-search"): ("search_tools", TypeAdapter(_Found), "content"),
    ("builtin-tool-call", "tool-search"): ("tool_search", TypeAdapter(str | _Search | None), "args"),
    ("builtin-tool-return", "tool-search"): ("tool_search", TypeAdapter(_Found), "content"),
    ("tool-call", "capability-load"): ("load_capability", TypeAdapter(str | _LoadedById | None), "args"),
    ("tool-return", "capability-load"): ("load_capability", TypeAdapter(_Loaded), "content"),
}
"""By the kinds of part and tool: the name of the tool, and what is read of the call or of its answer."""


def _own_tool(part: Any) -> tuple[str, TypeAdapter[Any], str] | None:
    is_part = isinstance(part, dict) and part.get("outcome", "success") == "success"
    return _OWN_TOOLS.get((str(part.get("part_kind")), str(part.get("tool_kind")))) if is_part else None


def _named(part: Any) -> Any:
    """The name goes without saying."""
    own = _own_tool(part)
    return part if own is None else {"tool_name": own[0], **part}


def _fitting(part: Any) -> Any:
    """A part that says it is one of these must be."""
    own = _own_tool(part)
    if own is not None and (part["tool_name"] != own[0] or not _is_shaped(own[1], part.get(own[2]))):
        raise ValueError("not of its tool_kind")
    return part


def _is_shaped(shape: TypeAdapter[Any], value: Any) -> bool:
    try:
        shape.validate_python(value)
    except ValidationError:
        return False
    return True


Delta = Literal["instruction-delta", "tool-availability-delta", "capability-load-delta", "model-settings-delta"]


class OtherRequestPart(TypedDict, total=False):
    """What the library wrote for itself."""

    part_kind: Required[
        Literal[
            "instruction-baseline",
            "instruction-delta",
            "tool-availability-delta",
            "capability-load-delta",
            "model-settings-delta",
            "compaction",
            "speech",
        ]
    ]


RequestPart = Annotated[
    SystemPrompt | UserPrompt | ToolReturn | RetryPrompt | RetryFeedback | OtherRequestPart,
    Field(discriminator="part_kind"),
    BeforeValidator(_named),
    AfterValidator(_fitting),
]


# --- parts of an answer ------------------------------------------------------------------------


class _ResponsePart(TypedDict, total=False):
    id: Text
    provider_name: Text
    provider_details: Details


class TextPart(_ResponsePart, total=False):
    part_kind: Required[Literal["text"]]
    content: Required[str]
    citations: list[Object] | None


class Thinking(_ResponsePart, total=False):
    part_kind: Required[Literal["thinking"]]
    content: Required[str]
    signature: Text


class ToolCall(_ResponsePart, total=False):
    part_kind: Required[Literal["tool-call", "builtin-tool-call"]]
    tool_name: Required[str]
    args: str | Object | None
    tool_call_id: Text
    tool_kind: Text


class BuiltinReturn(_ToolReturn, total=False):
    part_kind: Required[Literal["builtin-tool-return"]]
    provider_name: Text
    provider_details: Details


class FilePart(_ResponsePart, total=False):
    part_kind: Required[Literal["file"]]
    content: Required[Binary]


class OtherResponsePart(TypedDict, total=False):
    part_kind: Required[Literal["compaction", "speech"]]


ResponsePart = Annotated[
    TextPart | Thinking | ToolCall | BuiltinReturn | FilePart | OtherResponsePart,
    Field(discriminator="part_kind"),
    BeforeValidator(_named),
    AfterValidator(_fitting),
]


# --- messages ----------------------------------------------------------------------------------


class Usage(TypedDict, total=False):
    input_tokens: Count
    request_tokens: Count
    output_tokens: Count
    response_tokens: Count
    output_reasoning_tokens: Count
    output_audio_tokens: Count
    input_audio_tokens: Count
    cache_read_tokens: Count
    cache_write_tokens: Count
    cache_write_1h_tokens: Count
    cache_audio_read_tokens: Count
    unmeasured_requests: Count
    audio_seconds: float | None
    details: Annotated[dict[str, int], BeforeValidator(lambda details: details or {})]
    cost: Decimal | None


class Attempt(TypedDict, total=False):
    """A request to another model that came before, and gave no answer."""

    model_name: Required[str]
    provider_name: Text
    outcome: Required[Literal["error", "rejected"]]
    error: Text
    timestamp: Required[datetime]
    duration: Required[timedelta]
    usage: Usage | None


class Workspace(TypedDict):
    provider: str
    id: str


class _Message(TypedDict, total=False):
    run_id: Text
    conversation_id: Text
    timestamp: Time
    metadata: Details
    state: Literal["complete", "incomplete", "suspended", "interrupted"] | None


class Request(_Message, total=False):
    kind: Required[Literal["request"]]
    parts: Required[list[RequestPart]]
    instructions: Text


class Response(_Message, total=False):
    kind: Required[Literal["response"]]
    parts: Required[list[ResponsePart]]
    usage: Usage | None
    model_name: Text
    model_id: Text
    provider_name: Text
    provider_url: Text
    canonical_system: Text
    provider_details: Details
    provider_response_id: Text
    finish_reason: Literal["stop", "length", "content_filter", "tool_call", "error"] | None
    failed_attempts: list[Attempt] | None
    workspace_ref: Workspace | None
    history_digest: Text


MESSAGE: TypeAdapter[Request | Response] = TypeAdapter(Annotated[Request | Response, Field(discriminator="kind")])
PROMPT: TypeAdapter[str | list[Item]] = TypeAdapter(str | list[Item])


# --- with what a model was asked ---------------------------------------------------------------


class Tool(TypedDict, total=False):
    name: Required[str]
    parameters_json_schema: Object
    description: Text
    outer_typed_dict_key: Text
    strict: bool | None
    sequential: bool
    kind: Literal["function", "output", "external", "unapproved"]
    metadata: Details
    timeout: float | None
    defer_loading: bool
    unless_native: Text
    with_native: Text
    tool_kind: Text
    unless_tool_kind: Text
    return_schema: Details
    include_return_schema: bool | None
    toolset_id: Text
    capability_id: Text


class OutputObject(TypedDict, total=False):
    json_schema: Required[Object]
    name: Text
    description: Text
    strict: bool | None


class Instruction(TypedDict, total=False):
    content: Required[str]
    dynamic: bool
    on_change: Literal["rewrite", "append"]
    name: Text
    part_kind: Literal["instruction"]


class Parameters(TypedDict, total=False):
    """What a replay takes over of the parameters of a request; everything else it compares as it was written."""

    output_tools: list[Tool] | None
    output_object: OutputObject | None
    instruction_parts: list[Instruction] | None


class ParametersWithTools(Parameters, total=False):
    """Where the tools were not recorded by themselves."""

    function_tools: list[Tool] | None


TOOL: TypeAdapter[Tool] = TypeAdapter(Tool)
PARAMETERS: TypeAdapter[Parameters] = TypeAdapter(Parameters)
PARAMETERS_WITH_TOOLS: TypeAdapter[ParametersWithTools] = TypeAdapter(ParametersWithTools)
