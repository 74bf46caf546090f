"""Replays: rows are the queue's truth, a Celery message only wakes a worker."""

from __future__ import annotations

import secrets
from copy import copy

from django.conf import settings
from django.db import models

from sessions_app.core.fork.expected_words import Unproven
from sessions_app.core.payload import JsonObject
from sessions_app.core.replay.words import is_in_part
from sessions_app.models.contents import RunContent
from sessions_app.models.projects import Project
from sessions_app.models.recordings import Run, Session
from sessions_app.models.spelled import SpelledJsonField


def new_replay_id() -> str:
    return f"rp_{secrets.token_hex(8)}"


def new_session_replay_id() -> str:
    return f"sr_{secrets.token_hex(8)}"


class ReplayState(models.TextChoices):
    QUEUED = "queued"
    CLAIMED = "claimed"
    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    CRASHED = "crashed"


OPEN_STATES = (ReplayState.QUEUED, ReplayState.CLAIMED, ReplayState.RUNNING, ReplayState.PAUSED)
HELD_STATES = (ReplayState.CLAIMED, ReplayState.RUNNING)
"""States in which a worker holds the lease."""


class ReplayMode(models.TextChoices):
    RECORDING = "recording"
    """An agent rebuilt from the recording, nothing changed: it proves the recording."""
    CODE = "code"
    """The team's own agent with the recorded answers."""
    CODE_AND_TOOLS = "code_and_tools"
    """The same, and its tools run."""
    LIVE = "live"
    """The same scene, nothing changed, answered by a live model from its beginning, once or several times."""
    FORK = "fork"
    RESUME = "resume"
    """A fork that changes nothing: a run that broke off goes on."""
    SAMPLING = "sampling"
    """A fork that a live model answers, several times."""


OF_CODE = (ReplayMode.CODE, ReplayMode.CODE_AND_TOOLS)
"""In which code of the team runs, in an unchanged scene."""
FORK_MODES = (ReplayMode.FORK, ReplayMode.RESUME, ReplayMode.SAMPLING)
IS_ATTEMPT = models.Q(is_golden=False) & ~models.Q(mode__in=list(FORK_MODES))
"""An attempt at reproducing a run: neither a fork of it nor a run of a golden."""


class ReplayQueue(models.TextChoices):
    """Who may take it up."""

    REPLAYS = "replays"
    CODE = "code"
    """Runners, which have the team's own code."""


class SessionReplay(models.Model):
    """One request to replay all runs of a session. Each of its replays is one as any other."""

    session_replay_id = models.CharField(max_length=40, unique=True, default=new_session_replay_id)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="session_replays")
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="session_replays")
    mode = models.CharField(max_length=16, choices=ReplayMode, default=ReplayMode.RECORDING)
    order = SpelledJsonField(default=dict)
    """The order of each of its replays."""
    contradictions = models.JSONField(default=list)
    """Places where its recordings say otherwise of each other (core/sessions/contradictions.py)."""
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    request_key = models.CharField(max_length=120, null=True)
    """Chosen by the client: the same key again is the same session replay."""
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "request_key"], name="one_session_replay_a_request_key"),
        ]

    def __str__(self) -> str:
        return self.session_replay_id


class Replay(models.Model):
    """One request to replay a run, from queue to result."""

    replay_id = models.CharField(max_length=40, unique=True, default=new_replay_id)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="replays")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="replays")
    session_replay = models.ForeignKey(SessionReplay, null=True, on_delete=models.SET_NULL, related_name="replays")
    """What asked for it, where all runs of the session are replayed."""
    number = models.IntegerField()
    """From 1 within its kind: which attempt at reproducing this run it is, or which fork of it."""
    mode = models.CharField(max_length=16, choices=ReplayMode, default=ReplayMode.RECORDING)
    queue = models.CharField(max_length=10, choices=ReplayQueue, default=ReplayQueue.REPLAYS)
    order = SpelledJsonField(default=dict)
    """What was asked for beside the mode (core/fork/order.py); never changes."""
    course = SpelledJsonField(default=dict)
    """How far it has come over its stops, and the answers that were given by hand."""
    content = models.ForeignKey(RunContent, on_delete=models.RESTRICT, related_name="replays")
    """What of the run it was asked for. Late spans give a run another content, whose steps may have other numbers."""
    is_golden = models.BooleanField(default=False)
    """Of a golden's run: no attempt at reproducing the run, and numbered by itself."""
    fork_id = models.CharField(max_length=512, null=True)
    """Id of the run that a fork makes, given when it is asked for."""
    state = models.CharField(max_length=10, choices=ReplayState, default=ReplayState.QUEUED)
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    request_key = models.CharField(max_length=120, null=True)
    """Chosen by the client: the same key again is the same replay."""
    created_at = models.DateTimeField(auto_now_add=True)

    attempt = models.IntegerField(default=0)
    """How many workers have taken it up, the present one included."""
    fence = models.BigIntegerField(default=0)
    """Grows with each claim; a result under an older fence is refused."""
    worker = models.CharField(max_length=120, null=True)
    lease_until = models.DateTimeField(null=True)
    woken_at = models.DateTimeField(null=True)
    """When a worker was last told about it."""
    claimed_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    is_cancel_wanted = models.BooleanField(default=False)
    cancelled_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    """None also where a key of the API asked for it."""
    takeovers = models.JSONField(default=list)
    """Times at which another worker took it over, ISO 8601."""

    progress_done = models.IntegerField(default=0)
    progress_total = models.IntegerField(default=0)
    verdict = models.CharField(max_length=24, null=True)
    divergence = SpelledJsonField(null=True)
    live_calls = models.IntegerField(null=True)
    """Calls of live tools that happened, and requests to a live model."""
    refused_calls = models.IntegerField(null=True)
    """Attempts to reach the world that the audit hook refused."""
    facts = SpelledJsonField(default=dict)
    """What the engine found out: sources, fields compared, fields not captured, which fence held."""
    produced_run = models.OneToOneField(Run, null=True, on_delete=models.SET_NULL, related_name="produced_by")
    error = models.TextField(null=True)
    stopped_at = SpelledJsonField(null=True)
    """What it waits for while it is paused, or what nothing could answer: `at`, `asked`, `kind`, `step`, `name`,
    `arguments`, `why`, `nearest`."""
    expectation_met = models.BooleanField(null=True)
    """Of a fork; null when only a person can say, and before its end."""

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "fork_id"], name="one_fork_an_id"),
            models.UniqueConstraint(
                fields=["run", "number"],
                name="one_attempt_a_number",
                condition=IS_ATTEMPT,
            ),
            models.UniqueConstraint(
                fields=["run", "number"], name="one_golden_run_a_number", condition=models.Q(is_golden=True)
            ),
            models.UniqueConstraint(
                fields=["run", "number"], name="one_fork_a_number", condition=models.Q(mode__in=list(FORK_MODES))
            ),
            models.UniqueConstraint(fields=["project", "request_key"], name="one_replay_a_request_key"),
        ]
        indexes = [
            models.Index(fields=["id"], name="open_replays", condition=models.Q(state__in=list(OPEN_STATES))),
            models.Index(fields=["project", "-id"], name="replays_newest_first"),
        ]

    def __str__(self) -> str:
        return self.replay_id

    @property
    def asks_live_model(self) -> bool:
        """By its order; whether it came to that, `live_calls` says."""
        return self.order.get("samples") is not None or self.order.get("on_difference") == "live"

    @property
    def is_sampled(self) -> bool:
        """Whether it runs several times, each time with a live model."""
        return self.order.get("samples") is not None

    @property
    def is_in_part(self) -> bool:
        """Whether it ended where the recording ends."""
        return is_in_part(self.verdict, self.facts.get("limit"))

    @property
    def shown_verdict(self) -> str | None:
        """The verdict, or `partial`: where the recording ends, how the replay stopped there is no news."""
        return "partial" if self.is_in_part else self.verdict

    @property
    def shown_divergence(self) -> JsonObject | None:
        """`divergence`, with no step where it lies behind the last one: there is what the run came to, and no step."""
        found: JsonObject | None = self.divergence
        if not found or not self.is_in_part or (found.get("step") or 0) <= self.content.length:
            return found
        path = "output" if found["path"].startswith("steps[") else found["path"]
        return {**found, "step": None, "path": path}

    @property
    def unproven_source(self) -> Unproven | None:
        """Whose answer the outcome of a fork rests on where it does not follow from the change."""
        found: Unproven | None = (self.facts.get("expectation") or {}).get("source")
        return found

    @property
    def is_over(self) -> bool:
        return self.state not in OPEN_STATES

    @property
    def kind(self) -> str:
        """What its number counts: `golden`, `fork` or `replay`."""
        return "golden" if self.is_golden else "fork" if self.mode in FORK_MODES else "replay"

    @property
    def run_as_asked(self) -> Run:
        """The run with the content that it had then: the one whose steps this replay speaks of by their numbers."""
        run = copy(self.run)
        run.content = self.content
        return run

    @property
    def waits_for_answer(self) -> bool:
        """Whether it stopped at a request that nothing could answer; an answer by hand lets it go on."""
        return self.verdict == "unknown_from_step" and self.mode in FORK_MODES and not self.is_in_part
