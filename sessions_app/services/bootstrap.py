"""A new home: the first account, the project with the examples, and how to reach both."""

from __future__ import annotations

import json
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from django.contrib.auth.models import User
from django.db import connection, transaction

from sessions_app.core.errors import ReplayProductError
from sessions_app.models import Project, Run, RunContent
from sessions_app.models.projects import KeyScope
from sessions_app.services.contents import release
from sessions_app.services.deadlocks import again_after_deadlock
from sessions_app.services.ingest import ingest_document
from sessions_app.services.keys import create_key, find_key
from sessions_app.services.projects import create_project

USERNAME = "admin"
EXAMPLES = "examples"
OWN_PROJECT = "My project"
_KEY_NAME = "connection.json"
_FOLDER = Path(__file__).resolve().parent.parent / "examples"


def prepare_home(home: Path, url: str) -> None:
    """Fill an empty database, and write the address of this start into `secrets/connection.json`.

    `up` publishes it as `connection.json` once the server answers, so that whoever finds the file can
    connect.

    Running it again changes nothing but the address; removed examples stay removed.
    """
    file = home / "secrets" / _KEY_NAME
    known = _still_good(_read(file))
    if not User.objects.exists():
        with suppress(NotEmpty):  # another machine that started at the same moment has filled it
            known = _fill()
    file.parent.mkdir(mode=0o700, exist_ok=True)
    write_private(file, {**known, "url": url})


def address_of(home: Path) -> str | None:
    """Where `up` served at its last start; none where the server is run without it."""
    return _read(home / "secrets" / _KEY_NAME).get("url")


def _fill() -> dict[str, str]:
    """The first account with two projects: the examples, and one for what is recorded here."""
    first = first_account(USERNAME, OWN_PROJECT, key_name=_KEY_NAME)
    examples = create_project("Example incidents", first.user, slug=EXAMPLES)
    _, key = create_key(project=examples, name=_KEY_NAME, scope=KeyScope.FULL, user=first.user)
    load_examples(examples)
    said = {"username": first.user.get_username(), "password": first.password}
    return {**said, "api_key": key, "my_project_api_key": first.api_key}


@dataclass(frozen=True, kw_only=True, slots=True)
class FirstAccount:
    """The administrator of a new server, with a project and a key that may do all in it. Neither the password nor the
    key can be shown again."""

    user: User
    password: str
    project: Project
    api_key: str


class NotEmpty(ReplayProductError):
    """Somebody has an account already."""


@transaction.atomic
def first_account(username: str, project_name: str, *, key_name: str) -> FirstAccount:
    """Raises `NotEmpty` where there is an account; of two at once the second one waits and is told so."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('first account', 0))")
    if User.objects.exists():
        raise NotEmpty("This server has an account already; its administrators make more by invitation.")
    password = secrets.token_urlsafe(16)
    user = User.objects.create_superuser(username, password=password)
    project = create_project(project_name, user)
    _, key = create_key(project=project, name=key_name, scope=KeyScope.ADMIN, user=user)
    return FirstAccount(user=user, password=password, project=project, api_key=key)


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


def _still_good(known: dict[str, str]) -> dict[str, str]:
    """What of it this database knows: it may be another's, restored here, or a key may be revoked."""
    keys = {name: known[name] for name in ("api_key", "my_project_api_key") if find_key(known.get(name, ""))}
    user = User.objects.filter(username=known.get("username", "")).first()
    is_theirs = user is not None and user.check_password(known.get("password", ""))
    account = {name: known[name] for name in ("username", "password")} if keys or is_theirs else {}
    return {**account, **keys}


def _read(file: Path) -> dict[str, str]:
    try:
        return dict(json.loads(file.read_bytes()))
    except (FileNotFoundError, ValueError):
        return {}
