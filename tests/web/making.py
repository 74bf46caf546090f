"""Rows for tests of pages: projects, people, sessions."""

import json
import re
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from sessions_app.models import ContentBlock, Membership, Project, Run, RunContent, Session
from sessions_app.services.ingest import ingest_document

HOSTILE = "\u202egpj.exe\u202c <script>alert(1)</script> {{ 7|add:7 }} \x1b[31m\x07"


def make_project(slug: str = "shop", name: str = "") -> Project:
    return Project.objects.create(slug=slug, name=name or slug.title())


def make_user(name: str, project: Project | None = None, role: str = "member") -> User:
    user = User.objects.create_user(name, password="right")
    if project is not None:
        Membership.objects.create(project=project, user=user, role=role)
    return user


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def make_session(project: Project, session_id: str, *, minutes_ago: int = 5, **columns: Any) -> Run:
    """One session with one run as a session file would bring it; columns of the run are set as given."""
    at = timezone.now() - timedelta(minutes=minutes_ago)
    run = ingest_document(project, json.dumps(session_file(session_id, at)).encode()).run
    if columns:
        Run.objects.filter(pk=run.pk).update(**columns)
    run.refresh_from_db()
    return run


def match(pattern: str, text: str) -> str:
    """The first group of the pattern's first find; it has to be there."""
    found = re.search(pattern, text, re.DOTALL)
    assert found, f"{pattern} is not in the page"
    return found[1]


def session_file(session_id: str, at: datetime) -> dict[str, Any]:
    return {
        "session_id": session_id,
        "timestamp": at.isoformat(),
        "user_input": "Where is my order?",
        "final_output": "It is on its way.",
        "model": "openai:gpt-4o",
        "messages": [
            {"type": "ModelRequest", "parts": [{"kind": "user-prompt", "content": "Where is my order?"}]},
            {"type": "ModelResponse", "parts": [{"kind": "text", "content": "It is on its way."}]},
        ],
        "duration_ms": 1200,
    }


def copied_content(content: RunContent) -> RunContent:
    copied = RunContent.objects.get(pk=content.pk)
    copied.pk = None
    copied.save()
    blocks = content.own_blocks.values_list("first", "data")
    ContentBlock.objects.bulk_create(ContentBlock(content=copied, first=first, data=data) for first, data in blocks)
    return copied


def another_run(session: Session, run: Run, run_id: str, **columns: Any) -> Run:
    """A copy of a run in the same session."""
    copied = Run.objects.get(pk=run.pk)
    copied.pk = None
    copied.run_id = run_id
    copied.session = session
    copied.content = copied_content(run.content)
    for name, value in columns.items():
        setattr(copied, name, value)
    copied.save()
    return copied
