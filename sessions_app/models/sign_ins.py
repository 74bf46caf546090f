"""Who is signed in where. Django's sessions, with a person's own to be found by."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models

BROWSER = 200
"""Characters of what a browser says of itself that are kept."""


class SignIn(AbstractBaseSession):
    """One browser's session. `services/sign_ins.py` is the engine that writes it."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="sign_ins")
    """None as long as nobody has signed in there."""
    signed_in_at = models.DateTimeField(null=True)
    browser = models.CharField(max_length=BROWSER, blank=True)
    address = models.GenericIPAddressField(null=True)

    @classmethod
    def get_session_store_class(cls) -> Any:
        return import_module(settings.SESSION_ENGINE).SessionStore
