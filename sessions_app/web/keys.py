"""The keys: this one table makes the handlers (static/js/keys.js reads the sheet) and the `?` sheet.

A key presses, opens or focuses the visible thing on the page that carries `data-key` with the same
text; so a key does something only where its control is, and every action has a control.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Key:
    """`press` as keys.js spells it: `mod+k`, `g s`, `Shift+R`, `j`."""

    press: str
    does: str


@dataclass(frozen=True, slots=True)
class KeyGroup:
    where: str
    keys: tuple[Key, ...]


SHEET = (
    KeyGroup(
        "everywhere",
        (
            Key("mod+k", "command palette"),
            Key("?", "this sheet"),
            Key("Esc", "close, then up one level"),
            Key("Enter", "the page's next step"),
            Key("g n", "now"),
            Key("g s", "sessions"),
            Key("g r", "replays"),
            Key("g c", "cold cases"),
            Key("g g", "goldens"),
            Key("g t", "tools"),
            Key("g m", "cost"),
            Key("g d", "send data"),
            Key("g e", "settings"),
            Key("y", "copy menu"),
            Key("z", "times in my zone or UTC"),
            Key(".", "show what is new"),
            Key("r", "retry or refresh now"),
        ),
    ),
    KeyGroup(
        "lists",
        (
            Key("/", "query"),
            Key("j", "next row"),
            Key("k", "previous row"),
            Key("Space", "side panel"),
            Key("x", "select"),
            Key("t", "time range"),
            Key("d", "dense rows"),
            Key("l", "load more"),
        ),
    ),
    KeyGroup(
        "session, step",
        (
            Key("J", "next step"),
            Key("K", "previous step"),
            Key("/", "find in session"),
            Key("n", "next anomaly or hit"),
            Key("N", "previous anomaly or hit"),
            Key("e", "next error"),
            Key("E", "previous error"),
            Key("1", "steps"),
            Key("2", "timeline"),
            Key("3", "conversation"),
            Key("4", "state"),
            Key("5", "raw"),
            Key("a", "by time or by step"),
            Key("<", "previous run"),
            Key(">", "next run"),
            Key("Shift+R", "replay"),
            Key("l", "keep as a golden"),
            Key("f", "fork from this step"),
            Key("w", "what if it had answered differently"),
            Key("c", "diff with"),
            Key("s", "share"),
            Key("m", "note on the step"),
            Key("M", "note on the run"),
            Key("T", "tag"),
            Key("o", "open or fold"),
            Key("[", "fold all"),
            Key("]", "unfold all"),
            Key("u", "up to the parent"),
        ),
    ),
    KeyGroup(
        "diff",
        (
            Key("n", "next change"),
            Key("N", "previous change"),
            Key("e", "mark as viewed"),
            Key("m", "side by side or one column"),
            Key("v", "volatile parts"),
            Key("x", "swap sides"),
        ),
    ),
    KeyGroup("replay", (Key("Shift+X", "cancel"),)),
    KeyGroup("forms", (Key("mod+Enter", "submit"),)),
)


def keys_are_on(cookies: dict[str, str]) -> bool:
    """Single keys can be switched off (WCAG 2.1.4)."""
    return cookies.get("keys") != "off"
