"""Names and ids from spans as a record takes them; spans may hold anything."""

from __future__ import annotations

from sessions_app.core.formats.fields import MAX_NAME, is_identifier


def name(text: str | None) -> str | None:
    """Without U+0000, and cut where it is too long to be a name."""
    return text.replace("\x00", "\ufffd")[:MAX_NAME] if text else None


def identifier(text: str | None) -> str | None:
    """The printable signs of it; None when nothing is left."""
    kept = "".join(sign for sign in text or "" if sign.isprintable())[:512]
    return kept if is_identifier(kept) else None
