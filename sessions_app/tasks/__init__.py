"""Background doors: load, call one service, return."""

from sessions_app.tasks import redaction, sweeper
from sessions_app.tasks.replays import run_replay
from sessions_app.tasks.spans import make_runs

__all__ = ["make_runs", "redaction", "run_replay", "sweeper"]
