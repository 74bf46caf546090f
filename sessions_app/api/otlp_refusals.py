"""What an error means for a sender: whether to send the same again.

OTLP senders repeat a request that was answered with 503 and give up the data at 400. So 503 is for what may pass, and
nothing else: an error of ours that the same bytes would meet again must not make anybody send them for ever.
"""

from __future__ import annotations

import logging
import secrets
import traceback

from django.db import DatabaseError, DataError, InterfaceError
from django.http import UnreadablePostError

from sessions_app.api.errors import Refused
from sessions_app.core.otlp.errors import OtlpError, OtlpTooLarge
from sessions_app.core.redaction import RedactionFailed

logger = logging.getLogger(__name__)
_MAY_PASS = (DatabaseError, InterfaceError, OSError, MemoryError)
"""The database is away, busy or not yet migrated, two requests met, a disk is full."""


def refusal_for(error: Exception) -> Refused:
    """The answer to a request that ended with this error."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, OtlpError):
        status = 413 if isinstance(error, OtlpTooLarge) else 400
        return Refused(status, "bad_request", f"The request cannot be read: {error}.")
    if isinstance(error, UnreadablePostError):
        return Refused(400, "bad_request", "The body ended before it was complete.")
    if isinstance(error, RedactionFailed):
        return Refused(400, "redaction_failed", "The request could not be redacted and was not stored.")
    return _of_ours(error)


def _of_ours(error: Exception) -> Refused:
    reference = secrets.token_hex(6)
    # The type and the place are enough to find it; the message may quote recorded text.
    place = traceback.extract_tb(error.__traceback__)[-1]
    logger.error("Reference %s: %s at %s:%s", reference, type(error).__name__, place.filename, place.lineno)
    if isinstance(error, _MAY_PASS) and not isinstance(error, DataError):
        return Refused(503, "unavailable", f"It could not be stored now; send it again. Reference {reference}.")
    return Refused(400, "internal", f"Something went wrong here and will again. Reference {reference}.")
