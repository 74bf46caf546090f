"""The tables."""

from sessions_app.models.contents import RunContent, StepBlock
from sessions_app.models.ingest_log import IngestNote
from sessions_app.models.payloads import HistoryNode, PayloadBlock, StoredPayload
from sessions_app.models.projects import ApiKey, Invitation, Membership, Project
from sessions_app.models.recordings import ColdCase, Run, Session
from sessions_app.models.replays import Replay, SessionReplay
from sessions_app.models.sharing import ShareLink
from sessions_app.models.traces import SpanBatch, Trace

__all__ = [
    "ApiKey",
    "ColdCase",
    "HistoryNode",
    "IngestNote",
    "Invitation",
    "Membership",
    "PayloadBlock",
    "Project",
    "Replay",
    "Run",
    "RunContent",
    "Session",
    "SessionReplay",
    "ShareLink",
    "SpanBatch",
    "StepBlock",
    "StoredPayload",
    "Trace",
]
