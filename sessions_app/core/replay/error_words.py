"""What an error of the library says, which may repeat a message as the version that raised it writes messages."""

from __future__ import annotations

from dataclasses import replace

from sessions_app.core.payload import JsonValue, Payload
from sessions_app.core.replay.matching import Tally, first_mismatch
from sessions_app.core.run import ErrorInfo

_BODY = ", body:\n"


def as_recorded(raised: ErrorInfo, recorded: ErrorInfo | None) -> ErrorInfo:
    """In the recorded words, where these differ in nothing but fields that a version of the library adds."""
    if recorded is None or recorded.message is None or raised.message is None:
        return raised
    (words, body), (own_words, own_body) = (_parts(each.message or "") for each in (recorded, raised))
    if words != own_words or not isinstance(body, list) or not isinstance(own_body, list):
        return raised
    other = first_mismatch(body, own_body, raw=body, path="messages", tally=Tally())
    return raised if other is not None else replace(raised, message=recorded.message)


def _parts(message: str) -> tuple[str, JsonValue]:
    words, _, body = message.partition(_BODY)
    return words, Payload.of_text(body).parsed
