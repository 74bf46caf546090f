"""Background doors: load, call one service, return."""

from sessions_app.tasks import sweeper
from sessions_app.tasks.replays import run_replay

__all__ = ["run_replay", "sweeper"]
