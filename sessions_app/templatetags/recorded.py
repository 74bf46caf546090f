"""Filters for recorded values: nothing of them is ever markup, and nothing of them stays invisible."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from math import log

from django import template
from django.utils import timezone
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from sessions_app.core import call_words
from sessions_app.core.clipping import shortened
from sessions_app.core.place_words import place_in_words
from sessions_app.core.redaction.builtin import BUILT_IN_RULES
from sessions_app.core.search.query import quoted
from sessions_app.core.search.snippets import marked_whole
from sessions_app.models import Run

register = template.Library()

EMPTY = mark_safe('<em class="missing">empty</em>')
NOT_ANSWERED = mark_safe('<span class="soft">not answered yet</span>')
NOT_CAPTURED = mark_safe('<em class="missing">not captured</em>')  # constant markup of our own

_SHORT_NAMES = {
    "\x00": "NUL", "\x07": "BEL", "\x08": "BS", "\x0b": "VT", "\x0c": "FF", "\r": "CR", "\x1b": "ESC", "\x7f": "DEL",
    "\u00ad": "SHY", "\u061c": "ALM", "\u200b": "ZWSP", "\u200c": "ZWNJ", "\u200d": "ZWJ", "\u200e": "LRM",
    "\u200f": "RLM", "\u2028": "LSEP", "\u2029": "PSEP", "\u202a": "LRE", "\u202b": "RLE", "\u202c": "PDF",
    "\u202d": "LRO", "\u202e": "RLO", "\u2060": "WJ", "\u2066": "LRI", "\u2067": "RLI", "\u2068": "FSI",
    "\u2069": "PDI", "\ufeff": "BOM", "\ufffd": "U+FFFD",
}  # fmt: skip
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_INVISIBLE = re.compile(
    r"\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f"
    r"\ufeff\ufff9-\ufffb\ufffd\U000e0000-\U000e007f\ud800-\udfff]"
    # A joiner between two letters of another script belongs to their spelling (emoji, Indic scripts).
    r"|(?<![^\x00-\x7f])\u200d|\u200d(?![^\x00-\x7f])"
)


_RULES = "|".join(sorted({rule.name for rule in BUILT_IN_RULES}))
_SPECIAL = re.compile(rf"\[(?P<rule>{_RULES}):(?P<value>[0-9a-f]{{8}})\]|{_INVISIBLE.pattern}")
"""Only names of our rules: other bracketed words with a number after them were recorded so."""


@register.filter
def place(path: str) -> str:
    """A place in a step, as people speak of it."""
    return shortened(place_in_words(path), 60)


@register.filter
def recorded(value: object) -> SafeString:
    """The text itself, escaped; control and bidi characters as small tags, placeholders of redaction as chips."""
    if value is None:
        return NOT_CAPTURED
    text = str(value)
    pieces, at = [], 0
    for found in _SPECIAL.finditer(text):
        pieces += [escape(text[at : found.start()]), _chip(found) if found["rule"] else _tag(found.group())]
        at = found.end()
    if not pieces:
        return escape(text)
    return format_html_join("", "{}", ((piece,) for piece in [*pieces, escape(text[at:])]))


@register.filter
def unframed_call(text: str | None, alone: str = "") -> SafeString:
    """Keys and values of an object without its JSON; `alone` leaves out the key of the only one."""
    found = call_words.unframed(text or "")
    if not found:
        return recorded(text)
    if alone and len(found) == 1:
        return recorded(found[0][1])
    words = ((recorded(key), recorded(value)) for key, value in found)
    return format_html_join(" ", '<span class="key-of">{}</span> {}', words)


def _chip(found: re.Match[str]) -> SafeString:
    markup = '<span class="redacted" title="redacted: {}; equal chips stand for the same value">{}:{}</span>'
    return format_html(markup, found["rule"], found["rule"], found["value"])


def _tag(character: str) -> SafeString:
    code = f"U+{ord(character):04X}"
    name = unicodedata.name(character, "")
    css = "ctl ctl-bidi" if character in _BIDI else "ctl"
    return format_html('<span class="{}" title="{}">{}</span>', css, f"{code} {name}".strip(), _label(character))


def _label(character: str) -> str:
    if character < "\x20":
        return _SHORT_NAMES.get(character, f"^{chr(ord(character) + 64)}")
    return _SHORT_NAMES.get(character, f"U+{ord(character):04X}")


_LONG_LINES, _LONG = 20, 1600


@register.filter
def is_long(text: str) -> bool:
    """More than twenty lines as a page shows them, which are folded."""
    return len(text) > _LONG or text.count("\n") >= _LONG_LINES


@register.filter
def coded(sentence: str) -> SafeString:
    """A sentence of the product's own, with what stands in backticks as code."""
    parts = enumerate(sentence.split("`"))
    return format_html_join("", "{}", ((format_html("<code>{}</code>", it) if at % 2 else it,) for at, it in parts))


@register.filter
def marked(pieces: Iterable[tuple[str, bool]]) -> SafeString:
    """A text with the words that were searched for: `pieces` of a `Snippet`."""
    ways = {True: "<mark>{}</mark>", False: "{}"}
    return format_html_join("", "{}", ((format_html(ways[is_word], recorded(piece)),) for piece, is_word in pieces))


@register.filter
def marking(text: str | None, phrases: Sequence[str]) -> SafeString:
    """The text itself with the words that were searched for."""
    return marked(marked_whole(text, phrases)) if text else recorded(text)


@register.filter
def visible(value: object) -> str:
    """As `recorded`, for places that hold text only, such as titles: invisible characters by their names."""
    return _INVISIBLE.sub(lambda found: f"[{_label(found.group())}]", "" if value is None else str(value))


@register.filter
def agent_query(name: str) -> str:
    """The query that finds the runs of the agent."""
    return f"agent:{quoted(name)}"


@register.filter
def tag_query(tag: str) -> str:
    """The query that finds the sessions with the tag."""
    return f"tag:{quoted(tag)}"


@register.filter
def clip_middle(value: object, length: int = 28) -> str | None:
    """Long ids keep their beginning and their end. None stays None, so that `recorded` can say so."""
    if value is None:
        return None
    text = str(value)
    if len(text) <= length:
        return text
    tail = (length - 1) // 2
    return f"{text[: length - 1 - tail]}…{text[-tail:]}"


_MADE_UP = re.compile(r"[0-9a-fA-F-]{32,36}")


@register.filter
def spoken(name: str, asked: str | None) -> str:
    """What people call something: its id, or what was asked where a machine made the id up."""
    return asked if asked and _MADE_UP.fullmatch(name) else name


@register.filter
def ago(value: datetime | None) -> SafeString:
    """Under a day how long ago, else day and time; the exact time with its offset on hover."""
    if value is None:
        return NOT_CAPTURED
    age = timezone.now() - value
    words = f"{_length(age)} ago" if timedelta(0) <= age < timedelta(days=1) else _day(value)
    return _time(value, words, "data-ago")


@register.filter
def running_for(since: datetime | None) -> SafeString:
    """`3 min` of a run that has not ended."""
    if since is None:
        return NOT_CAPTURED
    return _time(since, _length(max(timezone.now() - since, timedelta(0))), "data-since")


@register.filter
def took(run: Run) -> str:
    """How long a run took; how long it has taken where it has not ended."""
    if run.status == "running" and run.started_at:
        return format_html("for {}", running_for(run.started_at))
    return duration(run.duration_ms)


@register.filter
def answer(run: Run) -> SafeString:
    """The first words of what a run answered."""
    if run.output_preview is None and run.status == "running":
        return NOT_ANSWERED
    return EMPTY if run.output_preview == "" else recorded(run.output_preview)


@register.filter
def span(length: timedelta) -> str:
    """In days, hours or minutes, rounded: `3 d`, `2 h`, `7 min`."""
    minutes = round(length.total_seconds() / 60)
    if minutes >= 24 * 60:
        return f"{round(minutes / (24 * 60))} d"
    return f"{round(minutes / 60)} h" if minutes >= 60 else f"{minutes} min"


@register.filter
def moment(value: datetime | None) -> SafeString:
    """Date and time to the second."""
    return NOT_CAPTURED if value is None else _time(value, _moment(timezone.localtime(value)), "data-moment")


@register.filter
def exact(value: datetime | None) -> SafeString:
    """Date and time with the zone, for a page whose readers are elsewhere and come days later."""
    return NOT_CAPTURED if value is None else _time(value, f"{_moment(value.astimezone(UTC))} UTC", "")


def _time(value: datetime, words: str, attribute: str) -> SafeString:
    """The attribute tells clock.js how to spell the time again."""
    stamp = value.astimezone(UTC).isoformat()
    exact = f"{_moment(value.astimezone(UTC))} UTC"  # which is printed
    html = '<time datetime="{}" title="{}" data-exact="{}" {}>{}</time>'
    return format_html(html, stamp, stamp, exact, attribute, words)


def _moment(value: datetime) -> str:
    return value.strftime("%Y-%m-%d %H:%M:%S")


def _day(value: datetime) -> str:
    """`18 Nov 02:43` in this year, `2025-11-18` before it."""
    local = timezone.localtime(value)
    is_this_year = local.year == timezone.localtime().year
    return f"{local.day} {local:%b %H:%M}" if is_this_year else f"{local:%Y-%m-%d}"


def _length(length: timedelta) -> str:
    seconds = int(length.total_seconds())
    if seconds < 60:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 3600 else f"{seconds // 3600} h"


@register.filter
def duration(milliseconds: float | None) -> str:
    """`840 ms`, `1.42 s`, `1 min 04 s`, `2 h 05 min`."""
    if milliseconds is None:
        return NOT_CAPTURED
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    if milliseconds < 59_995:
        return f"{milliseconds / 1000:.2f} s"
    minutes, seconds = divmod(round(milliseconds / 1000), 60)
    if minutes < 60:
        return f"{minutes} min {seconds:02} s"
    return f"{minutes // 60} h {minutes % 60:02} min"


_UNITS = ("KiB", "MiB", "GiB", "TiB")


@register.filter
def bytes_size(size: int | None) -> str:
    """`812 B`, `48 KiB`, `5.1 MiB`."""
    if size is None:
        return NOT_CAPTURED
    if size < 1024:
        return f"{size} B"
    power = min(int(log(size, 1024)), len(_UNITS))
    amount = size / 1024**power
    return f"{amount:.0f} {_UNITS[power - 1]}" if amount >= 10 else f"{amount:.1f} {_UNITS[power - 1]}"


@register.filter
def thousands(number: int | None) -> str:
    return NOT_CAPTURED if number is None else f"{number:,}"
