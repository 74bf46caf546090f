"""Background doors: load, call one service, return."""

from sessions_app.tasks import bulk, redaction, sweeper
from sessions_app.tasks.replays import run_replay
from sessions_app.tasks.spans import make_runs

__all__ = ["bulk", "make_runs", "redaction", "run_replay", "sweeper"]
