"""What the API answers. Scripts may rely on these fields; more may come beside them.

Unknown is `null`, times are ISO 8601 with offset, durations milliseconds.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from sessions_app.api import examples
from sessions_app.core.payload import JsonObject
from sessions_app.core.run import StepSource

NO_NUL = r"^[^\x00]*$"
"""Also refuses half a surrogate pair, which is no text."""


PageSize = Annotated[int, Field(ge=1, le=500)]
"""How many items of a list one answer holds."""


Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
"""ISO 8601 with offset."""


ReportFormat = Literal["json", "md", "txt", "html"]


ChangedSince = AwareDatetime | None
_CHANGED = "In lists with `changed_since`; null elsewhere."


class Answer(BaseModel):
    # Not ninja's Schema: what is answered are plain dicts, and looking at each of them as at an object costs a quarter.
    # Fields such as model_calls are ours and have nothing to do with pydantic's own names.
    model_config = ConfigDict(protected_namespaces=())


class OrderBody(Answer):
    """What is sent to have something done. A member that nobody reads would make it another order without a word."""

    model_config = ConfigDict(extra="forbid")


def shown(example: JsonObject) -> ConfigDict:
    """What a body says of itself beside its fields."""
    return ConfigDict(json_schema_extra={"examples": [example]})


class ErrorBody(Answer):
    code: str
    message: str
    field: str | None


class ErrorAnswer(Answer):
    model_config = shown({"error": {"code": "not_found", "message": "There is no run with this id.", "field": None}})

    error: ErrorBody


class VerdictBody(Answer):
    model_config = shown({"verdict": "replayable", "step": None, "reasons": []})

    verdict: Literal["replayable", "replayable_to_step", "cold"]
    step: int | None = Field(description="Last step that can be replayed, for replayable_to_step.")
    reasons: list[dict[str, Any]] = Field(description="code, message, step, fix")


class Accepted(Answer):
    run_id: str
    session_id: str
    url: str = Field(description="Address of the session's page.")
    verdict: VerdictBody
    digest: str = Field(description="SHA-256 of the recording; equal for equal runs.")


class AcceptedBatch(Answer):
    items: list[Accepted] = Field(description="One for each recording, in the order sent.")


class AttachedBody(Answer):
    run_id: str
    steps: list[int | None] = Field(description="The step of each exchange, in order; null where none fits.")


class Tokens(Answer):
    input: int | None
    output: int | None


class AnswerSourcesBody(Answer):
    steps: list[int] = Field(description="The first step that returned each number, day, id or address of the answer.")
    in_no_step: list[str] = Field(description="Those of its values that neither a step nor the question has, up to 20.")


class ColdCaseBody(Answer):
    reason: str
    marked_at: Moment


class RunBody(Answer):
    run_id: str
    session_id: str
    agent: str | None
    status: Literal["ok", "error", "cut_off", "running"]
    input: Any
    output: Any
    error: dict[str, Any] | None
    model: str | None
    provider: str | None
    user_id: str | None
    tenant_id: str | None
    started_at: Moment | None
    duration_ms: float | None
    tokens: Tokens
    steps: int = Field(description="Model, tool, retrieval and agent steps.")
    model_calls: int
    tool_calls: int
    messages: int
    verdict: VerdictBody
    anomalies: list[dict[str, Any]] = Field(description="code, message, steps, level")
    story: str
    answer_sources: AnswerSourcesBody
    kit_captured: int = Field(description="How many of the twelve replay kit lines were captured.")
    cold_case: ColdCaseBody | None
    origin: Literal["recorded", "replay", "fork"]
    parent_run_id: str | None
    commit: str | None
    source_format: str
    digest: str
    changed_at: Moment | None = Field(description=_CHANGED)


class SessionBody(Answer):
    session_id: str
    runs: list[RunBody]
    started_at: Moment
    last_at: Moment
    user_id: str | None
    tenant_id: str | None
    tags: list[str]


class RunList(Answer):
    items: list[RunBody]
    next_cursor: str | None


class SessionList(Answer):
    items: list[SessionBody]
    next_cursor: str | None


class StepBody(Answer):
    index: int = Field(description="Position in the run, from 1.")
    step_id: str
    kind: Literal["model", "tool", "retrieval", "agent", "other"]
    name: str
    call_id: str | None
    arguments: Any
    arguments_digest: str | None = Field(description="SHA-256 of the exact bytes; see payloads.")
    result: Any
    result_digest: str | None
    decision: str | None = Field(description="The decision made here, in words.")
    error: dict[str, Any] | None
    outcome: str | None
    model: str | None
    tokens: Tokens
    started_at: Moment | None
    first_token_at: Moment | None
    duration_ms: float | None
    parent: int | None
    source: StepSource
    input_state: Any
    output_state: Any
    state_changes: list[str]


class StepList(Answer):
    items: list[StepBody]
    next_cursor: str | None


class KitLineBody(Answer):
    key: str
    title: str
    bucket: Literal["input", "environment", "side_effects"]
    status: Literal["captured", "partial", "missing", "contradictory"]
    detail: str
    fix: str | None
    code: str | None = Field(description="Code that captures it next time.")


class KitBody(Answer):
    lines: list[KitLineBody] = Field(description="The twelve lines of the replay kit.")
    buckets: dict[str, list[dict[str, Any]]] = Field(description="input, environment and side_effects")
    captured: int
    total: int


class ComparedStep(Answer):
    left: int | None
    right: int | None
    status: Literal["same", "changed", "only_left", "only_right", "moved", "not_comparable"]
    model_config = ConfigDict(extra="allow")


class ComparisonBody(Answer):
    left: str
    right: str
    identical: bool | None = Field(
        description="true: every field that a comparison looks at is equal. false: something differs; `divergence` "
        "says where. null: nothing is known to differ, and `not_comparable` fields could not be compared."
    )
    divergence: dict[str, Any] | None = Field(description="left_step, right_step, path, left, right, note")
    compared_fields: int = Field(description="Fields that both runs have and that were compared.")
    not_comparable: int = Field(description="Fields that are cut off, redacted, or captured in one run only.")
    steps: list[ComparedStep]
    ignored: list[dict[str, Any]] = Field(description="Rules for volatile fields, and how much each hid.")
    model_config = ConfigDict(extra="allow")


RequestKey = Annotated[
    str | None, Field(max_length=120, pattern=NO_NUL, description="Sending the same key again returns the same replay.")
]
Tools = Annotated[
    Any,
    Field(
        description='`{"live": [name]}`: read-only tools that run with network access; the others stay frozen. '
        '`{"run": true}`, for forks: the registered agent\'s tools run in isolation from the network; a replay says so '
        "by its mode."
    ),
]
Breakpoints = Annotated[
    Any,
    Field(description='Where to pause, a list of `{"step": 4}`, `{"tool": name}` and `{"when": condition}`.'),
]
OnDifferenceField = Annotated[
    Any,
    Field(
        description="What to do when a model request differs from the recorded one. stop: the replay ends there. "
        "play_on: the recorded answer is used, labelled `recorded_for_another_request`. live: a live model answers, "
        "where one is connected."
    ),
]
LiveModelName = Annotated[
    str | None,
    Field(
        description="Which live model of `GET /models` to call. By default that of the server's environment, or the "
        "only connected one."
    ),
]
Expect = Annotated[
    Any,
    Field(
        description='The expected outcome: words, or one of `{"contains": text}`, `{"equals": value}`, '
        '`{"at_most_calls": {"tool": name, "n": 3}}`, `{"ends_within": steps}`.'
    ),
]
AgentName = Annotated[str | None, Field(description="An agent that the server's settings register.")]


class ReplayRequest(OrderBody):
    model_config = shown(examples.REPLAY)

    mode: Literal["recording", "code", "code_and_tools", "live"] = Field(
        default="recording",
        description="recording: an agent rebuilt from the recording. code: a registered agent, its tools frozen. "
        "code_and_tools: a registered agent whose tools run in isolation from the network. live: the recorded run, "
        "answered by a live model; refused where none is connected.",
    )
    tools: Tools = None
    agent: AgentName = None
    on_difference: OnDifferenceField = None
    breakpoints: Breakpoints = None
    model: Any = Field(
        default=None,
        description='For mode live: a name, or `{"model", "settings"}`. What you omit is as recorded, except the '
        "temperature, which is 0.",
    )
    samples: Any = Field(default=None, description="For mode live: how often to call the model, 1 to 100. Default: 1.")
    live_model: LiveModelName = None
    expect: Expect = None
    request_key: RequestKey = None


class ResumeRequest(OrderBody):
    model_config = shown(examples.RESUME)

    at_step: Any = Field(default=None, description="The step to continue from: a number, or an id such as `step_3`.")
    agent: AgentName = None
    tools: Tools = None
    on_difference: OnDifferenceField = None
    live_model: LiveModelName = None
    breakpoints: Breakpoints = None
    request_key: RequestKey = None


class ForkRequest(ResumeRequest):
    model_config = shown(examples.FORK)

    changes: Any = Field(
        default=None,
        description="A list of changes, each an object with `kind`: instructions, message, tool_result, approval, "
        "model_answer, state, model, clock, agent or rule.",
    )
    hypothesis: Any = Field(default=None, description="Why the change should matter, in words.")
    expect: Expect = None


class SamplesRequest(ForkRequest):
    model_config = shown(examples.SAMPLES)

    samples: Any = Field(default=None, description="How often to call the live model, 1 to 100.")


class AnswerRequest(OrderBody):
    """One of value, error, not_found and twin for a call of a tool, answer for a request to the model."""

    model_config = shown(examples.HAND_ANSWER)

    value: Any = Field(default=None, description="What the tool returns: any JSON, null included.")
    error: Any = Field(default=None, description="How the tool fails: a text, or `{type, message, crashes}`.")
    not_found: Any = Field(default=None, description="true: the tool found nothing.")
    twin: Any = Field(default=None, description="`{run_id, step}` of a recorded call whose outcome to use.")
    answer: Any = Field(default=None, description="`{text, tool_calls: [{name, arguments}]}`.")
    at: int | None = Field(default=None, description="The `stopped_at.at` you are answering; any other is refused.")


class Progress(Answer):
    model_config = shown({"done": 3, "total": 3})

    done: int
    total: int


class Unproven(Answer):
    code: Literal["recorded_for_another_request", "by_hand", "rule", "no_difference", "code_not_run"] = Field(
        description="Recorded answers were given to other requests; a person or a rule wrote the outcome; it is the "
        "original one; or it depends on code that did not run."
    )
    sentence: str


class Expectation(Answer):
    words: str
    met: bool | None = Field(
        description="null before the end, where only a person can say, and where the outcome depends on code "
        "that did not run."
    )
    unproven: Unproven | None = Field(
        description="Why the outcome proves nothing about the agent, whatever `met` says; null where it follows from "
        "the change."
    )


class ReplayBody(Answer):
    replay_id: str
    run_of: str = Field(description="The run that is replayed.")
    session_replay_id: str | None = Field(description="The session replay it belongs to, if any.")
    number: int = Field(description="Number of this replay of the run, from 1; for forks, number of the fork.")
    state: Literal["queued", "running", "paused", "done", "failed", "cancelled", "crashed"]
    mode: str
    attempt: int = Field(description="How many times a worker has started it.")
    progress: Progress
    verdict: str | None
    divergence: dict[str, Any] | None = Field(description="step, path, recorded, replayed")
    proof: dict[str, Any] | None = Field(
        description="requests, parameters, model, tool_arguments, state, outcome: each with state (proven, not_proven, "
        "not_comparable) and reason; outcome_kind; same_steps; not_played. null where nothing was compared."
    )
    live_calls: int | None = Field(description="Calls of live tools; with samples, live model requests too.")
    refused_calls: int | None = Field(
        description="Refused attempts to reach the network, the disk or a program. Native code is not counted; "
        "`facts.fence` names the sandbox it ran in."
    )
    run_id: str | None = Field(description="The run that the replay produced.")
    error: str | None
    facts: dict[str, Any]
    queue: Literal["replays", "code"] = Field(description="Who runs it: workers, or runners with your code.")
    agent: str | None = Field(description="The registered agent whose code runs; null where one is rebuilt.")
    fork_id: str | None = Field(description="Id of the run the fork produces, known before it exists.")
    at_step: int | None
    changes: list[dict[str, Any]]
    hypothesis: str | None
    expect: Any
    expectation: Expectation | None
    sources: dict[str, int] = Field(description="Number of steps by the source of their answers.")
    stopped_at: dict[str, Any] | None = Field(
        description="What it is waiting for: at, asked, kind, step, name, call_id, arguments, why, nearest."
    )
    parent_digest: str = Field(description="`digest` of the run it was made from.")
    changed_at: Moment | None = Field(description=_CHANGED)


class ObservedRequest(OrderBody):
    """Read by `observed_in`, which keeps the record's bytes as they are."""

    model_config = shown(examples.OBSERVED)

    mode: Literal["code", "code_and_tools"] = Field(description="code: tools were frozen. code_and_tools: tools ran.")
    agent: str = Field(description="Whose code ran.")
    record: dict[str, Any] = Field(description="The observed run, as a native record.")
    on_difference: Literal["stop", "play_on"] | None = None


class ObservedReplay(ReplayBody):
    words: str = Field(description="The verdict, as the report says it.")
    url: str = Field(description="Address of the replay's page.")


class ReplayQueued(Answer):
    replay_id: str


class ReplayOfRun(Answer):
    run_id: str
    replay_id: str


class SessionReplayQueued(Answer):
    session_replay_id: str
    replays: list[ReplayOfRun] = Field(description="In the order of the session's runs.")


class SessionReplayBody(Answer):
    title: str
    session_replay_id: str
    session_id: str
    mode: str
    state: Literal["queued", "running", "paused", "done", "cancelled"] = Field(description="Of all runs together.")
    progress: Progress = Field(description="Runs whose replays are over, and all.")
    verdict: str | None = Field(
        description="reproduced only if every run is, otherwise the verdict of the first run that is not; partial "
        "where that one ended as far as its recording reaches; contradictory where every run is reproduced, but their "
        "recordings contradict each other. null before all are over."
    )
    words: str
    first_not_reproduced: dict[str, Any] | None = Field(
        description="run_id, replay_id, step; where the verdict is contradictory those of the first contradiction"
    )
    contradictions: list[dict[str, Any]] = Field(
        description="Places where the recordings of the runs contradict each other: run_id, step, path, other_run_id, "
        "other_step, words. other_run_id and other_step are null for what no run of the session holds."
    )
    next_action: str | None
    runs: list[dict[str, Any]] = Field(
        description="run_id, replay_id, number, state, verdict, words, step, divergence, proof"
    )


class ForkQueued(ReplayQueued):
    fork_id: str


class ForkItem(Answer):
    replay_id: str
    mode: str
    state: str
    verdict: str | None
    depth: int = Field(description="1 for forks of the run itself, 2 for forks of those.")
    parent_run_id: str
    fork_id: str | None
    run_id: str | None
    at_step: int | None
    changes: list[dict[str, Any]]
    hypothesis: str | None
    expectation: Expectation | None
    outcome: str
    divergence: dict[str, Any] | None = Field(description="step and path of the first difference from the parent")
    steps: int | None
    tokens: Tokens
    sources: dict[str, int]
    created_at: Moment


class ReplayList(Answer):
    items: list[ReplayBody]
    next_cursor: str | None


class ForkList(Answer):
    items: list[ForkItem] = Field(description="Each after its parent, oldest first; at most 200.")
    next_cursor: str | None


class ColdCaseRequest(OrderBody):
    model_config = shown(examples.COLD_CASE)

    reason: str = Field(max_length=2000, pattern=NO_NUL)


class NoteRequest(OrderBody):
    model_config = shown(examples.NOTE)

    text: str = Field(max_length=4000, pattern=NO_NUL)
    step: int | None = Field(None, ge=1, description="Omit for a note on the whole run.")


class TagRequest(OrderBody):
    model_config = shown(examples.TAGS)

    add: list[str] = Field(default_factory=list, max_length=20)
    remove: list[str] = Field(default_factory=list, max_length=20)


class TagList(Answer):
    tags: list[str]


class NoteBody(Answer):
    note_id: int
    run_id: str
    step: int | None
    text: str
    author: str
    created_at: Moment


class NoteList(Answer):
    items: list[NoteBody]
    next_cursor: str | None


class ColdCaseGroups(Answer):
    items: list[dict[str, Any]] = Field(description="missing, count, first_at, last_at, runs")
    total: int
    cheapest_fixes: dict[str, Any] = Field(
        description="The two things whose capture makes the most cases replayable: reasons of verdicts, or kit lines."
    )
    next_cursor: str | None
