"""Sessions of the browsers in which a person is signed in (SESSION_ENGINE), so that each can be seen and ended."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from ipaddress import ip_address
from typing import Any

from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.http import HttpRequest
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from sessions_app.core.browsers import browser_in_words
from sessions_app.models import SignIn
from sessions_app.models.sign_ins import BROWSER

_WHERE = "signed_in"
"""The key of what a session says of its sign-in."""


class SessionStore(DatabaseStore):
    """Django's own, with columns for what a person sees of a session."""

    @classmethod
    def get_model_class(cls) -> type[SignIn]:
        return SignIn

    def create_model_instance(self, data: dict[str, Any]) -> SignIn:
        row = super().create_model_instance(data)
        assert isinstance(row, SignIn)
        said = data.get(_WHERE, {})
        row.user_id = int(data[SESSION_KEY]) if SESSION_KEY in data else None
        row.signed_in_at = parse_datetime(said["at"]) if said else None
        row.browser, row.address = said.get("browser", ""), said.get("address")
        return row


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnSignIn:
    """What a person sees of one of their sessions."""

    name: str
    """Stands for its key, which lets whoever has it in."""
    signed_in_at: datetime | None
    expires_at: datetime
    browser: str
    address: str | None
    is_here: bool

    @property
    def browser_words(self) -> str:
        return browser_in_words(self.browser)


def note_where(sender: object, request: HttpRequest, **kwargs: object) -> None:
    """When somebody signs in: when, with which browser and from which address."""
    request.session[_WHERE] = {
        "at": timezone.now().isoformat(),
        "browser": request.headers.get("User-Agent", "")[:BROWSER].replace("\0", ""),
        "address": _address(request.META.get("REMOTE_ADDR", "")),
    }


def _address(said: str) -> str | None:
    """None where the server is reached over a local socket."""
    with suppress(ValueError):
        return str(ip_address(said))
    return None


def own_sign_ins(user: User, here: str | None) -> list[OwnSignIn]:
    """Those that are still good, this one first; `here` is the key of the session that asks."""
    found = [_seen(row, here) for row in _open(user)]
    return sorted(found, key=lambda each: not each.is_here)


def end_sign_ins(user: User, *, names: Iterable[str] | None, here: str | None) -> int:
    """Those of these names, or all; never this one, which is signed out. Returns how many were ended."""
    wanted = None if names is None else set(names)
    others = [row.session_key for row in _open(user) if row.session_key != here]
    ended = [key for key in others if wanted is None or _name(key) in wanted]
    return SignIn.objects.filter(session_key__in=ended).delete()[0]


def _open(user: User) -> Iterable[SignIn]:
    return SignIn.objects.filter(user=user, expire_date__gt=timezone.now()).order_by("-signed_in_at")


def _seen(row: SignIn, here: str | None) -> OwnSignIn:
    return OwnSignIn(
        name=_name(row.session_key),
        signed_in_at=row.signed_in_at,
        expires_at=row.expire_date,
        browser=row.browser,
        address=row.address,
        is_here=row.session_key == here,
    )


def _name(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:16]
