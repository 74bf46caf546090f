"""A new home: the first account, the project with the examples, and how to reach both."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path

from django.contrib.auth.models import User
from django.db import transaction

from sessions_app.models import Membership, Project, Run, RunContent
from sessions_app.models.projects import KeyScope, Role
from sessions_app.services.contents import release
from sessions_app.services.deadlocks import again_after_deadlock
from sessions_app.services.ingest import ingest_document
from sessions_app.services.keys import create_key

USERNAME = "admin"
EXAMPLES = "examples"
_FOLDER = Path(__file__).resolve().parent.parent / "examples"


def prepare_home(home: Path, url: str) -> None:
    """Fill an empty database, and write the address of this start into `secrets/connection.json`.

    `up` publishes it as `connection.json` once the server answers, so that whoever finds the file can
    connect.

    Running it again changes nothing but the address; removed examples stay removed.
    """
    connection = home / "secrets" / "connection.json"
    known = _read(connection)
    if not User.objects.exists():
        known = _first_account()
        load_examples(Project.objects.get(slug=EXAMPLES))
    connection.parent.mkdir(mode=0o700, exist_ok=True)
    write_private(connection, {**known, "url": url})


@transaction.atomic
def _first_account() -> dict[str, str]:
    password = secrets.token_urlsafe(16)
    user = User.objects.create_superuser(USERNAME, password=password)
    project = Project.objects.create(slug=EXAMPLES, name="Example incidents")
    Membership.objects.create(project=project, user=user, role=Role.ADMIN)
    _, key = create_key(project=project, name="connection.json", scope=KeyScope.FULL, user=user)
    return {"username": USERNAME, "password": password, "api_key": key}


def load_examples(project: Project) -> int:
    """Take in the example recordings like any other; returns how many there are."""
    manifest = json.loads((_FOLDER / "manifest.json").read_bytes())
    for example in reversed(manifest):
        ingested = ingest_document(project, (_FOLDER / example["file"]).read_bytes())
        if ingested.created:
            Run.objects.filter(pk=ingested.run.pk).update(is_example=True)
    return len(manifest)


@again_after_deadlock
@transaction.atomic
def remove_examples(project: Project) -> int:
    """Delete the example sessions of a project, with their replays; its other recordings stay."""
    sessions = project.sessions.filter(runs__is_example=True).distinct()
    removed = sessions.count()
    release(RunContent.objects.filter(run__session__in=sessions))
    sessions.delete()
    return removed


def write_private(file: Path, content: dict[str, str]) -> None:
    """For the owner's eyes alone; replaced in one step, so a reader never sees half of it."""
    temporary = file.with_suffix(".new")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as out:
        json.dump(content, out, indent=2)
    temporary.replace(file)


def _read(connection: Path) -> dict[str, str]:
    try:
        return dict(json.loads(connection.read_bytes()))
    except (FileNotFoundError, ValueError):
        return {}
