"""Connecting models to a project, changing them and trying them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from time import monotonic
from urllib.parse import urlsplit

from django.db import IntegrityError, transaction

from sessions_app.agents.live_model.client import LiveModelClient
from sessions_app.agents.live_model.endpoint import ModelUnavailable
from sessions_app.core.errors import ReplayProductError
from sessions_app.core.payload import JsonObject
from sessions_app.models import ConnectedModel, Project
from sessions_app.models.connected_models import Provider
from sessions_app.services.live_models import ENVIRONMENT, check_address, connected, pick, spend
from sessions_app.services.sealing import seal

BASE_URLS = {Provider.OPENAI: "https://api.openai.com/v1", Provider.ANTHROPIC: "https://api.anthropic.com/v1"}
REQUESTS_PER_DAY = 200
MOST_A_DAY = 1_000_000
_DESCRIBED = ["name", "provider", "base_url", "model", "sealed_key", "requests_per_day"]
_NAME = re.compile(r"\w[\w .-]{0,59}")
_LONGEST_KEY = 1000
_PATIENCE_SECONDS = 15
_PROMPT: JsonObject = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Answer with: ok"}]}


class CannotConnect(ReplayProductError):
    """What was said of a model cannot be; `field` names the part."""

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message)
        self.message, self.field = message, field


@dataclass(frozen=True, kw_only=True, slots=True)
class Connection:
    """What somebody says of a model that is to be connected, or of one that is to be changed."""

    name: str
    provider: str
    base_url: str = ""
    """Without it that of the provider."""
    model: str = ""
    key: str = field(default="", repr=False)
    """Without it the stored one stays, as long as it goes to the same host."""
    requests_per_day: int = REQUESTS_PER_DAY


def connection_of(row: ConnectedModel) -> Connection:
    """Without its key. The address of a provider is left out, so that it follows when another one is chosen."""
    return Connection(
        name=row.name,
        provider=row.provider,
        base_url="" if row.base_url in BASE_URLS.values() else row.base_url,
        model=row.model,
        requests_per_day=row.requests_per_day,
    )


def connect(project: Project, wanted: Connection) -> ConnectedModel:
    """Raises `CannotConnect`."""
    row = ConnectedModel(project=project)
    change(row, wanted)
    return row


def change(row: ConnectedModel, wanted: Connection) -> None:
    """Raises `CannotConnect`. What was sent today is counted on meanwhile."""
    describe(row, wanted)
    try:
        with transaction.atomic():
            row.save(update_fields=_DESCRIBED if row.pk else None)
    except IntegrityError:
        raise CannotConnect("A model with this name is already connected.", field="name") from None


def describe(row: ConnectedModel, wanted: Connection) -> None:
    """Save nothing. Raises `CannotConnect`."""
    stored = (row.sealed_key, row.base_url)
    row.name = _name(wanted.name)
    row.provider = _provider(wanted.provider)
    row.base_url = _base_url(wanted)
    row.model = _line(wanted.model, "model", 200)
    row.requests_per_day = _budget(wanted.requests_per_day)
    try:
        check_address(row)
    except ModelUnavailable as problem:
        raise CannotConnect(problem.reason, field="base_url") from None
    row.sealed_key = _sealed(wanted) or _kept_key(row, *stored)


def try_out(row: ConnectedModel, model: str = "") -> str:
    """Ask it one short question and say how that went; once it is connected, that counts as a request of the day.
    `model` is asked for where the connection names none. Raises `ModelUnavailable`."""
    known = pick([connected(row)], row.name)
    endpoint = replace(known.endpoint(), timeout_seconds=_PATIENCE_SECONDS)
    begun = monotonic()
    client = LiveModelClient(endpoint, spend=lambda: spend(row) if row.pk else None, sleep=lambda seconds: None)
    answer = client.answer([_PROMPT], None, model=model or None, settings={"max_tokens": 16})
    return f"{row.name} answered as {answer['model_name']} in {monotonic() - begun:.1f} s."


def _name(name: str) -> str:
    name = name.strip()
    if not _NAME.fullmatch(name) or name == ENVIRONMENT:
        words = "A name may have up to 60 letters, digits, spaces, dots, dashes and underscores"
        raise CannotConnect(f"{words}, but not be {ENVIRONMENT!r}.", field="name")
    return name


def _provider(provider: str) -> str:
    if provider not in Provider.values:
        raise CannotConnect(f"The provider must be one of {', '.join(Provider.values)}.", field="provider")
    return provider


def _base_url(wanted: Connection) -> str:
    """An address may not carry what people would take for a secret: pages show it."""
    url = _line(wanted.base_url, "base_url", 300) or BASE_URLS.get(Provider(wanted.provider), "")
    if not url:
        raise CannotConnect("An OpenAI-compatible server needs its base URL.", field="base_url")
    if "?" in url:
        raise CannotConnect("A base URL cannot have a query: remove the ? and everything after it.", field="base_url")
    return url


def _sealed(wanted: Connection) -> str:
    key = wanted.key.strip()
    if len(key) > _LONGEST_KEY or not (key.isascii() and (key.isprintable() or not key)):
        raise CannotConnect("The key is too long or contains a character that is not allowed in a header.", field="key")
    return seal(key) if key else ""


def _kept_key(row: ConnectedModel, sealed_key: str, base_url: str) -> str:
    """A stored key never goes to another host than the one it was entered for."""
    if sealed_key and urlsplit(row.base_url)[:2] != urlsplit(base_url)[:2]:
        raise CannotConnect("The stored key is for another host. Enter the key of this one.", field="key")
    if not sealed_key and row.provider != Provider.COMPATIBLE:
        raise CannotConnect(f"{Provider(row.provider).label} needs a key.", field="key")
    return sealed_key


def _line(text: str, field: str, longest: int) -> str:
    text = text.strip()
    if len(text) > longest or not (text.isprintable() or not text):
        raise CannotConnect(f"Enter a single line of at most {longest} characters.", field=field)
    return text


def _budget(requests: int) -> int:
    if not 1 <= requests <= MOST_A_DAY:
        raise CannotConnect(
            f"The budget must be a number from 1 to {MOST_A_DAY:,} requests a day.", field="requests_per_day"
        )
    return requests
