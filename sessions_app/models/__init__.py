"""The tables."""

from sessions_app.models.ingest_log import IngestNote
from sessions_app.models.projects import ApiKey, Membership, Project
from sessions_app.models.recordings import (
    ColdCase,
    HistoryNode,
    PayloadBlock,
    Run,
    RunHistory,
    Session,
    Step,
    StepBlock,
    StoredPayload,
)
from sessions_app.models.replays import Replay, SessionReplay
from sessions_app.models.sharing import ShareLink
from sessions_app.models.traces import SpanBatch, Trace

__all__ = [
    "ApiKey",
    "ColdCase",
    "HistoryNode",
    "IngestNote",
    "Membership",
    "PayloadBlock",
    "Project",
    "Replay",
    "Run",
    "RunHistory",
    "Session",
    "SessionReplay",
    "ShareLink",
    "SpanBatch",
    "Step",
    "StepBlock",
    "StoredPayload",
    "Trace",
]
