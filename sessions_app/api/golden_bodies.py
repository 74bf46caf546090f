"""What the API takes and answers of goldens."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from sessions_app.api import examples
from sessions_app.api.schemas import NO_NUL, Answer, Moment, OrderBody, Progress, shown
from sessions_app.api.shapes import moment, replay_state
from sessions_app.core.payload import JsonObject
from sessions_app.models import Golden, GoldenRun
from sessions_app.queries.forks import agent_of
from sessions_app.services.goldens import warnings_of

Text = Field(default="", max_length=2000, pattern=NO_NUL)


class GoldenRequest(OrderBody):
    model_config = shown(examples.GOLDEN)

    name: str = Field(max_length=200, pattern=NO_NUL)
    run_id: str = Field(description="The run whose recorded answers the golden uses.")
    description: str = Text
    expected_outcome: str = Field(default="", max_length=2000, pattern=NO_NUL, description="In words, for people.")
    checks: Any = Field(description="A list of checks, each an object with `kind`; docs/goldens.md names them.")
    replay: dict[str, Any] = Field(
        default_factory=dict,
        description="As for replays: `{mode, agent, tools, on_difference, model, samples}`; the agent may be left to "
        "each run. With `samples` also `at_least`: how many of them have to pass, all where it is left out.",
    )
    against: list[str] = Field(
        default_factory=list,
        max_length=50,
        description="More runs to judge by the checks, beside the scene, what it was made of, and their forks.",
    )


class GoldenBody(Answer):
    golden_id: str
    name: str
    run_id: str
    agent_name: str | None = Field(description="Of the agent in the scene.")
    description: str
    expected_outcome: str
    checks: list[dict[str, Any]]
    replay: dict[str, Any]
    fails_on: list[str] = Field(description="Runs it fails on.")
    passes_on: list[str] = Field(description="Runs it passes on.")
    warnings: list[dict[str, Any]] = Field(description="code, message")
    quarantine: dict[str, Any] | None = Field(description="reason, since. The result does not count while it is set.")
    created_at: Moment


class GoldenList(Answer):
    items: list[GoldenBody]
    next_cursor: str | None


class GoldenRunRequest(OrderBody):
    model_config = shown(examples.GOLDEN_RUN)

    agent: str | None = Field(default=None, description="Overrides the golden's agent.")


class GoldenNotRun(OrderBody):
    model_config = shown(examples.GOLDEN_NOT_RUN)

    agent: str = Field(max_length=200, pattern=NO_NUL, description="The agent that could not run.")
    reason: str = Field(max_length=2000, pattern=NO_NUL, description="Why it could not run.")


class GoldenRunQueued(Answer):
    golden_run_id: str
    replay_id: str


class GoldenRunBody(Answer):
    golden_run_id: str
    golden_id: str
    batch_id: str | None
    state: Literal["queued", "running", "paused", "done", "failed", "cancelled", "crashed"]
    result: Literal["pass", "fail", "could_not_run", "nothing_covered"] | None = Field(
        description="null until it has ended."
    )
    words: str = Field(description="Reason for the result.")
    checks: list[dict[str, Any]] = Field(description="check, words, passed (null: cannot be judged), seen")
    agent: str | None
    replay_id: str
    run_id: str | None = Field(description="The run that the replay produced.")
    divergence: dict[str, Any] | None
    progress: Progress
    created_at: Moment


class QuarantineRequest(OrderBody):
    model_config = shown(examples.QUARANTINE)

    reason: str = Field(max_length=2000, pattern=NO_NUL)


class BatchRequest(OrderBody):
    model_config = shown(examples.BATCH)

    goldens: list[str] | None = Field(
        default=None, max_length=5000, description="Golden ids; all of the project by default."
    )
    agents: list[str] = Field(
        default_factory=list, max_length=100, description="Registered agents. Each golden runs with each of them."
    )
    label: str = Field(default="", max_length=200, pattern=NO_NUL, description="For example a commit or a deploy.")
    is_deploy: bool = Field(default=False, description="This is a deploy.")
    on_own_machine: bool = Field(default=False, description="You make the runs elsewhere and submit them.")


BatchReportFormat = Literal["json", "md", "junit"]


class BatchQueued(Answer):
    golden_batch_id: str
    runs: list[GoldenRunQueued]


class BatchBody(Answer):
    golden_batch_id: str
    label: str
    is_deploy: bool
    baseline: str | None = Field(description="Id of the previous deploy, which `before` and `change` refer to.")
    result: Literal["pass", "fail", "could_not_run", "nothing_covered"] | None = Field(description="The worst result.")
    words: str
    exit_code: int
    progress: Progress
    runs: list[dict[str, Any]]


def golden_body(golden: Golden) -> JsonObject:
    since = moment(golden.quarantined_at)
    return {
        "golden_id": golden.golden_id,
        "name": golden.name,
        "run_id": golden.run.run_id,
        "agent_name": golden.run.agent_name,
        "description": golden.description,
        "expected_outcome": golden.expected_outcome,
        "checks": golden.checks,
        "replay": {"mode": golden.mode, **golden.order},
        "fails_on": golden.fails_on,
        "passes_on": golden.passes_on,
        "warnings": warnings_of(golden),
        "quarantine": {"reason": golden.quarantine_reason, "since": since} if since else None,
        "created_at": moment(golden.created_at),
    }


def golden_run_body(run: GoldenRun) -> JsonObject:
    """Of one that has been settled."""
    replay = run.replay
    return {
        "golden_run_id": run.golden_run_id,
        "golden_id": run.golden.golden_id,
        "batch_id": run.batch.golden_batch_id if run.batch else None,
        "state": replay_state(replay),
        "result": run.result,
        "words": run.words,
        "checks": run.checks,
        "agent": agent_of(replay),
        "replay_id": replay.replay_id,
        "run_id": replay.produced_run.run_id if replay.produced_run else None,
        "divergence": replay.shown_divergence,
        "progress": {"done": replay.progress_done, "total": replay.progress_total},
        "created_at": moment(run.created_at),
    }
