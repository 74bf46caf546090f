"""The tables."""

from sessions_app.models.bulk_jobs import BulkJob
from sessions_app.models.connected_models import ConnectedModel
from sessions_app.models.contents import ContentBlock, RunContent
from sessions_app.models.goldens import Golden, GoldenBatch, GoldenRun
from sessions_app.models.ingest_log import IngestNote
from sessions_app.models.notes import Note
from sessions_app.models.payloads import HistoryNode, StoredPayload
from sessions_app.models.prices import ModelPrice
from sessions_app.models.projects import ApiKey, Invitation, Membership, Project
from sessions_app.models.recordings import ColdCase, Run, Session
from sessions_app.models.redaction_jobs import RedactionJob
from sessions_app.models.replays import Replay, SessionReplay
from sessions_app.models.saved_queries import SavedQuery
from sessions_app.models.sharing import ShareLink
from sessions_app.models.sign_ins import SignIn
from sessions_app.models.traces import LoneCall, SpanBatch, Trace

__all__ = [
    "ApiKey",
    "BulkJob",
    "ColdCase",
    "ConnectedModel",
    "ContentBlock",
    "Golden",
    "GoldenBatch",
    "GoldenRun",
    "HistoryNode",
    "IngestNote",
    "Invitation",
    "LoneCall",
    "Membership",
    "ModelPrice",
    "Note",
    "Project",
    "RedactionJob",
    "Replay",
    "Run",
    "RunContent",
    "SavedQuery",
    "Session",
    "SessionReplay",
    "ShareLink",
    "SignIn",
    "SpanBatch",
    "StoredPayload",
    "Trace",
]
