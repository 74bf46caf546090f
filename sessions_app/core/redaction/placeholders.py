"""Placeholders: what stands in a redacted text where a secret was.

`[email:1a2b3c4d]` names the rule that hit and carries 8 hex digits of an HMAC of the value. Within
a project (one secret) the same value always gives the same placeholder, so redacted runs still
compare and replay; another project's placeholders tell nothing about it.
"""

import hmac
import re

PLACEHOLDER = re.compile(r"\[[a-z][a-z_]{0,31}:[0-9a-f]{8}\]")
LONGEST_PLACEHOLDER = 42


class Placeholders:
    """Makes the placeholders of one project; remembers them, as secrets come again and again."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._known: dict[tuple[str, str], str] = {}

    def of(self, rule_name: str, value: str) -> str:
        known = self._known.get((rule_name, value))
        if known is None:
            known = self._known[rule_name, value] = self._make(rule_name, value)
        return known

    def _make(self, rule_name: str, value: str) -> str:
        # JSON can spell lone surrogates, which plain UTF-8 refuses.
        message = rule_name.encode() + b"\0" + value.encode("utf-8", "surrogatepass")
        digest = hmac.digest(self._secret, message, "sha256")
        return f"[{rule_name}:{digest[:4].hex()}]"


def is_placeholder(text: str) -> bool:
    return PLACEHOLDER.fullmatch(text) is not None


def inside_placeholder(text: str, start: int, end: int) -> bool:
    """Whether the span lies within one placeholder: `api_key:1a2b3c4d` looks like a secret."""
    opening = text.rfind("[", max(0, start - LONGEST_PLACEHOLDER), start + 1)
    found = PLACEHOLDER.match(text, opening) if opening >= 0 else None
    return found is not None and end <= found.end()
