"""Keys of forms that queue something, so that a double click or a reload of the page queues it once."""

from __future__ import annotations

import json
from hashlib import sha256
from secrets import token_urlsafe

from django.http import HttpRequest

from sessions_app.core.payload import JsonValue
from sessions_app.models import Run


def form_token(request: HttpRequest) -> str:
    """The one that was posted: a form that comes back with errors is the same form. Otherwise a new one."""
    return request.POST.get("token") or token_urlsafe(16)


def request_key(request: HttpRequest, run: Run, *wanted: JsonValue) -> str | None:
    """The same for the same form and wish; never that of another person, run or wish. None for a form without token.

    What is wanted is part of the key: who goes back and changes the form asks for something else, and gets it.
    """
    token = request.POST.get("token")
    if not token:
        return None
    said = json.dumps([request.user.pk, token, run.pk, *wanted], sort_keys=True)
    return f"form-{sha256(said.encode()).hexdigest()}"
