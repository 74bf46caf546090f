"""What was recorded: a run and its steps, as plain data.

A run is one execution of an agent from input to outcome. Fields hold what the producer said; None
always means "not captured" and is never replaced by a guess.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from sessions_app.core.history import History
from sessions_app.core.payload import JsonObject, JsonValue, Payload

RunStatus = Literal["ok", "error", "cut_off", "running"]
Origin = Literal["recorded", "replay", "fork"]
StepKind = Literal["model", "tool", "retrieval", "agent", "other"]
StepSource = Literal[
    "recorded", "recorded_for_another_request", "borrowed", "by_hand", "rule", "own_code", "live", "unknown"
]
REPEATED: frozenset[StepSource] = frozenset({"recorded", "recorded_for_another_request"})
"""Answers of the recording, given to the request that they belong to or to another one."""
ToolKind = Literal["read", "write", "unknown"]
Awaited = Literal["approval", "answer"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorInfo:
    """An exception as it was recorded."""

    type: str | None
    message: str | None
    extra: JsonObject = field(default_factory=dict)

    @property
    def value(self) -> JsonObject:
        """What is compared and shown: tracebacks and the like are not."""
        return {"type": self.type, "message": self.message}

    def allows(self, other: ErrorInfo) -> bool:
        """Whether the other says the same, as far as this one was recorded."""
        pairs = (self.type, other.type), (self.message, other.message)
        return all(left is None or left == right for left, right in pairs)


USAGE_LIMITS = ("request_limit", "tool_calls_limit", "input_tokens_limit", "output_tokens_limit", "total_tokens_limit")
"""Limits of a run that are whole numbers, and that a replay keeps."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentInfo:
    """Which agent ran and the settings of its loop that decide how a run unfolds."""

    name: str | None = None
    version: str | None = None
    framework: str | None = None
    framework_version: str | None = None
    entry_point: str | None = None
    """How the run was started: `run`, `run_stream`, `iter`; the streamed one is another algorithm."""
    end_strategy: str | None = None
    tool_retries: JsonObject | None = None
    """Retry budget by tool name."""
    output_retries: int | None = None
    output_function: str | None = None
    """The team's function that made the output of the model's answer."""
    output_changed: bool | None = None
    """Whether a check of the team's made another text of what the model said."""
    output_unchecked: bool | None = None
    """Whether the output is what the model gave, whatever its schema says, as of a `StructuredDict`."""
    usage_limits: JsonObject | None = None
    """At most so many requests, calls, tokens: `request_limit`, `tool_calls_limit`, `total_tokens_limit` …"""
    extra: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeInfo:
    """The code that ran."""

    commit: str | None = None
    dirty: bool | None = None
    versions: JsonObject | None = None
    """Library name to version."""
    extra: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpExchange:
    """A raw request and answer as they went over the wire, secrets removed."""

    method: str | None = None
    url: str | None = None
    request_headers: tuple[tuple[str, str], ...] = ()
    request_body: Payload | None = None
    status: int | None = None
    response_headers: tuple[tuple[str, str], ...] = ()
    response_body: Payload | None = None
    extra: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelCall:
    """One request to a model and its answer."""

    history: History | None
    """The messages that went in, as the agent's loop held them."""
    response: Payload | None
    """The answer message; None when none came (error, cut off) or none was captured."""
    parameters: Payload | None = None
    """Request parameters: tool definitions, output mode and schema, as sent with this request."""
    tools: tuple[Payload, ...] | None = None
    """Tool definitions registered with the agent at that moment."""
    settings: Payload | None = None
    """Temperature, top_p, seed and the like."""
    model: str | None = None
    answered_model: str | None = None
    provider: str | None = None
    region: str | None = None
    finish_reason: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None

    @property
    def output_history(self) -> History | None:
        """The history with the answer appended."""
        return self.history if self.response is None else History(self.history, self.response)


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCall:
    """One call of a tool and what it answered."""

    tool_name: str
    call_id: str | None = None
    arguments: Payload | None = None
    result: Payload | None = None
    """None when the answer was not captured or never came."""
    outcome: str | None = None
    """`success`, `failed`, `denied`, `retried`, `interrupted`, `crashed`, `deferred`, `unapproved`; None when not
    captured."""
    retry: JsonObject | None = None
    """For `retried`: cause (`model_retry`, `validation_error`, `unknown_tool` …), attempt, max_retries."""
    metadata: Payload | None = None
    """Kept beside the answer and not sent to the model, such as retrieved chunks."""
    content: Payload | None = None
    """What the tool sent to the model as extra user content."""
    is_output: bool = False
    """Whether the call is the agent's structured output and not a tool of its own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Chunk:
    """A piece of text that a retrieval returned."""

    chunk_id: str | None
    score: float | None
    content: Payload | None
    extra: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Retrieval:
    """A search for context."""

    query: Payload | None
    chunks: tuple[Chunk, ...] | None
    index_version: str | None = None
    embedding_version: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentCall:
    """A run of another agent inside this one."""

    run_id: str | None
    arguments: Payload | None = None
    result: Payload | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class OtherCall:
    """Work that is none of the other kinds, such as building a prompt."""

    arguments: Payload | None = None
    result: Payload | None = None


Call = ModelCall | ToolCall | Retrieval | AgentCall | OtherCall


@dataclass(frozen=True, kw_only=True, slots=True)
class StateChange:
    """State around a step as JSON Patch (RFC 6902) lists.

    `before` leads from the previous step's output state to this step's input state and is empty
    when the chain of states holds; `after` leads from this step's input to its output state.
    """

    before: tuple[JsonObject, ...] = ()
    after: tuple[JsonObject, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One operation in a run."""

    index: int
    """Position in the run, from 1."""
    name: str
    call: Call
    parent: int | None = None
    """Index of the step that this one ran inside."""
    started_at: datetime | None = None
    first_token_at: datetime | None = None
    duration_ms: float | None = None
    error: ErrorInfo | None = None
    user_id: str | None = None
    tenant_id: str | None = None
    state: StateChange | None = None
    http: HttpExchange | None = None
    source: StepSource = "recorded"
    """Where the answer of this step came from."""
    extra: JsonObject = field(default_factory=dict)
    """Fields that the format does not know, kept as they came."""

    @property
    def ended_at(self) -> datetime | None:
        """None where start or duration is not known, or where no calendar has such a time."""
        if self.started_at is None or self.duration_ms is None:
            return None
        try:
            return self.started_at + timedelta(milliseconds=self.duration_ms)
        except OverflowError:
            return None

    @property
    def first_token_ms(self) -> float | None:
        """Since the start of the step."""
        if self.started_at is None or self.first_token_at is None:
            return None
        return (self.first_token_at - self.started_at).total_seconds() * 1000

    @property
    def kind(self) -> StepKind:
        return _KINDS[type(self.call)]


_KINDS: dict[type, StepKind] = {
    ModelCall: "model",
    ToolCall: "tool",
    Retrieval: "retrieval",
    AgentCall: "agent",
    OtherCall: "other",
}


def asked(step: Step) -> Payload | None:
    """The arguments, or the query of a retrieval; a model step's request is its history."""
    match step.call:
        case ToolCall() | AgentCall() | OtherCall():
            return step.call.arguments
        case Retrieval():
            return step.call.query
        case ModelCall():
            return None


def answered(step: Step) -> Payload | None:
    """The result, or a model's answer; a retrieval's chunks are no single payload."""
    match step.call:
        case ToolCall() | AgentCall() | OtherCall():
            return step.call.result
        case ModelCall():
            return step.call.response
        case Retrieval():
            return None


@dataclass(frozen=True, kw_only=True, slots=True)
class ParentLink:
    """The run that this one came from: a replay's original, a fork's parent, a sub-agent's caller."""

    run_id: str
    step: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One execution of an agent, from input to outcome."""

    run_id: str
    session_id: str
    status: RunStatus
    input: Payload | None = None
    output: Payload | None = None
    error: ErrorInfo | None = None
    origin: Origin = "recorded"
    parent: ParentLink | None = None
    source_format: str = "native"
    """The format that the producer sent: `native`, `session-file`, `pydantic-ai-messages`."""
    agent: AgentInfo = AgentInfo()
    code: CodeInfo = CodeInfo()
    model: str | None = None
    provider: str | None = None
    region: str | None = None
    instructions: str | None = None
    """The resolved system prompt of the first request, full text."""
    user_id: str | None = None
    tenant_id: str | None = None
    flags: JsonObject | None = None
    started_at: datetime | None = None
    duration_ms: float | None = None
    prior: History | None = None
    """Messages of earlier turns that this run started from."""
    deferred: Payload | None = None
    """Approvals and outside results that this run was continued with, by tool call id."""
    initial_state: Payload | None = None
    steps: tuple[Step, ...] = ()
    final: History | None = None
    """The history when the run ended: the last answer and what the loop added after it."""
    extra: JsonObject = field(default_factory=dict)

    @property
    def is_told_by_others(self) -> bool:
        """Whether its steps were put together from what was seen from outside of the loop: spans, HTTP, callbacks."""
        return self.source_format in (SPANS, EXCHANGES) or self.agent.framework in GRAPHS

    @property
    def decided(self) -> JsonObject:
        """What was decided of the calls that this run was resumed with, by their ids."""
        value = self.deferred.value if self.deferred else None
        return value if isinstance(value, dict) else {}

    @property
    def model_calls(self) -> list[tuple[Step, ModelCall]]:
        return [(step, step.call) for step in self.steps if isinstance(step.call, ModelCall)]

    @property
    def tool_calls(self) -> list[tuple[Step, ToolCall]]:
        return [(step, step.call) for step in self.steps if isinstance(step.call, ToolCall)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Fixture:
    """A recorded tool answer, kept byte for byte, with the call that it answers."""

    step: int
    call: ToolCall
    error: ErrorInfo | None = None
    is_unheard: bool = False
    """Whether the run ended beside it, before the loop took this answer up."""
    parent: int | None = None
    """The answer of the model that asked for the call, where the recording says it."""
    tool_ran: bool | None = None
    """Whether the tool itself began; None where the recording does not say it."""
    awaited: Awaited | None = None
    """For what its tool had it wait until code settled it while the run went on."""
    waits_with: JsonValue = None
    """What the tool said to whoever is to approve or to answer the call; known where `tool_ran` is."""
    reveals: tuple[str, ...] = ()
    """Hidden tools that the answer let the model call."""

    @property
    def ended_before_tool(self) -> bool:
        """Whether a check or a hook of the agent's code ended the call in front of the tool."""
        if self.tool_ran is not None:
            return not self.tool_ran
        return (self.call.retry or {}).get("cause") == "validation_error"

    @property
    def was_put_off(self) -> bool:
        """Whether it was answered behind the calls beside it, from outside while the run went on."""
        return self.awaited == "answer"

    @property
    def has_ended(self) -> bool:
        """Whether it holds an answer, or an error, that whoever makes this call comes to."""
        return self.call.result is not None or self.error is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkpoint:
    """What is needed to go on from a step (source of the field list: docs/record-format.md)."""

    run_id: str
    step: int
    history: History | None
    tool_calls: tuple[Step, ...]
    model_config: JsonObject
    state: object
    agent_version: str | None
    taken_at: datetime | None


OPENAI_AGENTS, PYDANTIC_AI = "openai-agents", "pydantic-ai"
GRAPHS = ("langchain", "langgraph")
"""Frameworks, as their recorders name them."""
SPANS = "otlp"
"""The source format of runs that were put together from spans."""
EXCHANGES = "provider-http"
"""The source format of recorded functions whose calls of models were read from their HTTP."""
MESSAGES = "pydantic-ai-messages"
"""The source format of Pydantic AI's own dumps."""
SESSION_FILE, OPENAI_ITEMS = "session-file", "openai-agents-items"
SAVED_MESSAGES = (SESSION_FILE, MESSAGES)
"""Formats that hold messages of Pydantic AI and nothing beside them: not what was offered with a request, nor where a
turn begins."""
"""The source formats of what a short script around an agent saves: the input stands beside the messages."""
EMPTY_REQUEST = "empty_request"
"""Marks a model's step whose request was recorded, and has no message."""
EMPTY_END = "empty_end"
"""Marks a run of which it was recorded that it ended without any message."""
WAITING = frozenset({"deferred", "unapproved"})
"""Outcomes of calls that were left open for somebody outside the run."""
TOLD_TO_THE_MODEL = frozenset({"retried", "failed"})
"""Outcomes of calls whose failure the loop put into words for the model."""
FRAMEWORK_CAUSES = frozenset({"unknown_tool", "unavailable_tool"})
SKIPPED = "Tool not executed"
"""How Pydantic AI begins its answer to a call that a final result made superfluous."""


OUTPUT_PROCESSED = "Final result processed."
"""What Pydantic AI answers to the call that carried a run's structured output."""
OUTPUT_CHECKED = "Output tool processed, but"
"""How it begins its answer to a further output that it checked, as `end_strategy="exhaustive"` has it do."""
_OUTPUT_SETTLED = (OUTPUT_PROCESSED, OUTPUT_CHECKED, "Output tool not used", "Output not used", SKIPPED)
"""How it begins its answers to calls that carry an output and were not refused."""


def says_there_is_no_tool(content: JsonValue, name: str | None) -> bool:
    """Whether this is how Pydantic AI's loop answers a call of a tool that it does not have."""
    return isinstance(content, str) and content.startswith(f"Unknown tool name: {name!r}")


def counted_steps(run: Run) -> list[Step]:
    """Those that lists show and every count of steps counts: without inner steps of a framework and snapshots."""
    return [step for step in run.steps if is_counted(step)]


def is_counted(step: Step) -> bool:
    return not isinstance(step.call, OtherCall)


def main_steps(run: Run) -> list[Step]:
    """The steps of the agent's own loop, without what ran inside its tools and sub-agents, and what code called by
    itself.

    A record whose model calls all stand inside an agent step has that agent as its loop.
    """
    outer = _outside(run, (ToolCall, AgentCall))
    if any(isinstance(step.call, ModelCall) for step in outer):
        return outer
    return _outside(run, (ToolCall,))


def tools_around(run: Run) -> dict[int, int]:
    """By step that ran inside of a tool: the step of the outermost one."""
    return _around(run, (ToolCall,))


def agents_in_tools(run: Run) -> dict[int, list[str]]:
    """By step of a tool: the names of the agents that it ran."""
    found: dict[int, list[str]] = {}
    for step in run.steps:
        if step.kind == "agent" and step.parent is not None:
            found.setdefault(step.parent, []).append(step.name)
    return found


def _outside(run: Run, calls: tuple[type, ...]) -> list[Step]:
    apart = {*_around(run, calls), *called_by_code(run)}
    return [step for step in run.steps if step.index not in apart]


def called_by_code(run: Run) -> set[int]:
    """Steps of recorded tools that code called by itself, such as one that loads what the prompt is made of."""
    by_code = ((step, call) for step, call in run.tool_calls if step.extra.get(CALLED_BY_CODE) is True)
    return {step.index for step, call in by_code if call.call_id is None}


CALLED_BY_CODE = "called_by_code"
"""Marks a tool step of a loop of one's own that no answer of a model asked for."""


def _around(run: Run, calls: tuple[type, ...]) -> dict[int, int]:
    enclosing = {step.index for step in run.steps if isinstance(step.call, calls)}
    around: dict[int, int] = {}
    for step in run.steps:
        if step.parent is not None and (step.parent in around or step.parent in enclosing):
            around[step.index] = around.get(step.parent, step.parent)
    return around


def message_count(run: Run) -> int:
    """Of the whole conversation, as far as it was recorded."""
    histories = [run.final, *(call.output_history for _, call in run.model_calls)]
    return max((history.length for history in histories if history), default=0)


def broke_off_at(run: Run) -> int | None:
    """The step at which the recording broke off: its process was killed, or the run was stopped from outside.

    None when the run came to an end of its own: then it has its last history, also when it waits for somebody.
    """
    if run.status != "cut_off" or not run.steps or (run.final is not None and not was_stopped(run.error)):
        return None
    return next((step.index for step in main_steps(run) if not _has_end(step)), len(run.steps) + 1)


STOPPED = frozenset({"CancelledError", "GeneratorExit", "KeyboardInterrupt"})
"""Exceptions by which a run is ended from outside."""


def was_stopped(error: ErrorInfo | None) -> bool:
    return error is not None and error.type in STOPPED


def _has_end(step: Step) -> bool:
    if isinstance(step.call, ToolCall) and step.call.outcome is not None:
        return step.call.outcome != "interrupted"
    if was_stopped(step.error) or isinstance(step.call, ToolCall):
        return answered(step) is not None or (step.error is not None and not was_stopped(step.error))
    return step.error is not None or step.duration_ms is not None or answered(step) is not None


def is_of_library_recorder(run: Run) -> bool:
    """Whether one of our recorders for a library wrote it: it says of each call who asked for it, and how it ended.
    A loop of one's own may name the library as well."""
    return run.agent.framework in (PYDANTIC_AI, OPENAI_AGENTS) and "recorder" in run.extra


def last_history(run: Run) -> History | None:
    """All messages of the run; those of its last request where it was not recorded with which it ended."""
    asked = (call.history for _, call in reversed(main_model_calls(run)) if call.history)
    return run.final or next(asked, None)


def main_model_calls(run: Run) -> list[tuple[Step, ModelCall]]:
    return [(step, step.call) for step in main_steps(run) if isinstance(step.call, ModelCall)]


def fixtures(run: Run) -> list[Fixture]:
    """The answers of the tools that the run's own loop called, in recorded order, without those that the
    framework wrote and without attempts that failed before a call had its answer: the loop saw the last one alone.
    What a tool called in turn happened inside its answer."""
    return [
        fixture_of(step, step.call)
        for step in main_steps(run)
        if isinstance(step.call, ToolCall) and is_answered_by_tool(step.call) and ATTEMPT not in step.extra
    ]


ATTEMPT = "attempt_at"
"""Marks a step that tells of a failed attempt at a call: whoever called tried again. It names the call's id."""


def fixture_of(step: Step, call: ToolCall) -> Fixture:
    return Fixture(
        step=step.index,
        call=call,
        error=step.error,
        parent=step.parent,
        tool_ran=tool_ran(step),
        awaited=_awaited(step, call),
        waits_with=step.extra.get("waits_with"),
    )


def tool_ran(step: Step) -> bool | None:
    """Whether the tool of a tool step itself began; None where the recording does not say it."""
    said = step.extra.get("tool_ran")
    return said if isinstance(said, bool) else None


def _awaited(step: Step, call: ToolCall) -> Awaited | None:
    """Of a call that still waits, nothing is settled."""
    said = step.extra.get("waited_for")
    return said if said in ("approval", "answer") and call.outcome not in WAITING else None


def is_answered_by_tool(call: ToolCall) -> bool:
    """False for structured output, denied and skipped calls and calls of tools that do not exist."""
    if call.is_output or call.outcome == "denied":
        return False
    return (call.retry or {}).get("cause") not in FRAMEWORK_CAUSES and not is_skipped(call)


def is_settled_output(call: ToolCall) -> bool:
    """Whether the answer to a call that carries an output is one with which Pydantic AI refuses nothing."""
    told = call.result.value if call.result else None
    return isinstance(told, str) and told.startswith(_OUTPUT_SETTLED)


def is_skipped(call: ToolCall) -> bool:
    """Whether a final result made it superfluous."""
    told = call.result.value if call.result else None
    return isinstance(told, str) and told.startswith(SKIPPED)
