"""Goldens: recorded scenes that are played again after every change, what must hold in them, and how each run went."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models

from sessions_app.core.goldens.results import RESULT_WORDS
from sessions_app.models.projects import Project
from sessions_app.models.recordings import Run
from sessions_app.models.replays import Replay, ReplayMode
from sessions_app.models.spelled import SpelledJsonField


def new_golden_id() -> str:
    return f"gd_{secrets.token_hex(8)}"


def new_golden_run_id() -> str:
    return f"gr_{secrets.token_hex(8)}"


def new_golden_batch_id() -> str:
    return f"gb_{secrets.token_hex(8)}"


class Golden(models.Model):
    """What must hold when a scene is played again. Scene, checks and parts never change: another check is another
    golden."""

    golden_id = models.CharField(max_length=40, unique=True, default=new_golden_id)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="goldens", db_index=False)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="goldens")
    """The scene: its recorded answers are what the replay plays with."""
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    expected_outcome = models.TextField(blank=True)
    """In words, for people; the checks decide."""
    checks = SpelledJsonField()
    """As replay_goldens/checks.py reads them."""
    mode = models.CharField(max_length=16, choices=ReplayMode, default=ReplayMode.RECORDING)
    order = SpelledJsonField(default=dict)
    """The other parts of its replays, as they were asked for; the agent may be left to each run."""
    fails_on = ArrayField(models.CharField(max_length=512), default=list)
    passes_on = ArrayField(models.CharField(max_length=512), default=list)
    """Runs by which it was shown that it can fail and that it can pass, those that were seen first in front."""
    is_decided_by_code = models.BooleanField(default=False)
    """Whether a run of code came to another result than its scene, or than another one."""
    quarantined_at = models.DateTimeField(null=True)
    quarantine_reason = models.TextField(blank=True)
    """Why its result does not count for now; it still runs."""
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["project", "-id"], name="goldens_newest_first")]

    def __str__(self) -> str:
        return self.name


class GoldenBatch(models.Model):
    """Several goldens asked for at once, each with every one of the agents: what a change breaks, as a table."""

    golden_batch_id = models.CharField(max_length=40, unique=True, default=new_golden_batch_id)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="golden_batches")
    label = models.CharField(max_length=200, blank=True)
    """What it was run for, such as a commit or the name of a deploy."""
    is_deploy = models.BooleanField(default=False)
    """Whether the label is what was deployed just before."""
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.label or self.golden_batch_id


class GoldenRun(models.Model):
    """One time that a golden was run. Its state is that of its replay."""

    golden_run_id = models.CharField(max_length=40, unique=True, default=new_golden_run_id)
    golden = models.ForeignKey(Golden, on_delete=models.CASCADE, related_name="runs")
    batch = models.ForeignKey(GoldenBatch, null=True, on_delete=models.CASCADE, related_name="runs")
    replay = models.OneToOneField(Replay, on_delete=models.CASCADE, related_name="golden_run")
    result = models.CharField(max_length=16, choices=list(RESULT_WORDS.items()), null=True)
    """None until the replay is over and somebody has looked."""
    words = models.TextField(blank=True)
    """Why it came to this result."""
    checks = SpelledJsonField(default=list)
    """What became of each check: `check`, `words`, `passed`, `seen`."""
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.golden_run_id
