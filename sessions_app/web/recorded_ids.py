"""Ids of other people's systems in our addresses: they may hold any character."""

from __future__ import annotations

import re
from urllib.parse import unquote


class RecordedId:
    """One part of a path for any id.

    A server decodes an address once before we see it, so a slash in an id has to survive that: what
    would split or be folded away (`/`, leading, trailing and doubled dots) is percent-encoded by us,
    and the address is percent-encoded as a whole once more. Ids of plain characters stay as they are.
    """

    regex = r"[^/]+?"

    def to_python(self, value: str) -> str:
        return unquote(value, errors="strict")

    def to_url(self, value: str) -> str:
        text = re.sub(r"[%/\\]", lambda found: f"%{ord(found.group()):02X}", value)
        return text.replace(".", "%2E") if needs_dots_hidden(value) else text


class OneOf:
    """One of a few words, as it stands."""

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


class ReportSuffix(OneOf):
    """The forms of a report that are files."""

    regex = "md|txt|json"


class Signal(OneOf):
    """What arrived of a trace."""

    regex = "spans|logs"


def needs_dots_hidden(value: str) -> bool:
    """Browsers fold `.` and `..` away, and three dots stand between two ids."""
    return value.startswith(".") or value.endswith(".") or ".." in value
