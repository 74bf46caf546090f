"""What a browser calls itself, in the words that a person uses for it."""

from __future__ import annotations

_NAMES = (("Edg", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome"), ("Safari/", "Safari"))
"""What stands in a user agent, and the name; most of them also name those further down."""
_SYSTEMS = (
    ("Windows", "Windows"), ("Android", "Android"), ("iPhone", "iPhone"), ("iPad", "iPad"), ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"), ("Linux", "Linux"),
)  # fmt: skip


def browser_in_words(user_agent: str) -> str:
    """`Firefox on Linux`; as it stands where it is no browser that is known."""
    name, system = (next((word for mark, word in known if mark in user_agent), "") for known in (_NAMES, _SYSTEMS))
    return f"{name} on {system}" if name and system else user_agent
