"""The tables."""

from sessions_app.models.projects import ApiKey, Membership, Project
from sessions_app.models.recordings import ColdCase, HistoryNode, Run, Session, Step, StoredPayload
from sessions_app.models.replays import Replay
from sessions_app.models.sharing import ShareLink

__all__ = [
    "ApiKey",
    "ColdCase",
    "HistoryNode",
    "Membership",
    "Project",
    "Replay",
    "Run",
    "Session",
    "ShareLink",
    "Step",
    "StoredPayload",
]
