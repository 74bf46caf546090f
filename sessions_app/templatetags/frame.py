"""Tags for what every page shares: icons, states, step strips, the bar and the sheet of keys."""

from __future__ import annotations

from functools import lru_cache
from itertools import groupby, starmap
from math import log2
from typing import Any

from django import template
from django.http import HttpRequest
from django.template import Context
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from sessions_app.core.strip import strip_of
from sessions_app.models import Replay, Run
from sessions_app.web.badges import State, replay_key, state_of
from sessions_app.web.frame import bar_facts, theme_of
from sessions_app.web.keys import SHEET, keys_are_on

register = template.Library()


@register.simple_tag
@lru_cache(maxsize=256)
def icon(name: str, css: str = "") -> SafeString:
    """Decoration only: words stand beside it."""
    address = f"{static('icons.svg')}#{name}"
    return format_html(
        '<svg class="icon {}" width="16" height="16" aria-hidden="true"><use href="{}"/></svg>', css, address
    )


@register.simple_tag
def state(table: str, value: str | None, suffix: object = "", css: str = "") -> SafeString:
    """`{% state "run" run.status %}`, `{% state "verdict" run.verdict run.verdict_step %}`; `state-chip` frames it."""
    return state_html(state_of(table, value), suffix, css)


@register.simple_tag
def verdict_state(run: Run, table: str = "verdict", css: str = "") -> SafeString:
    """Whether the run can be replayed, with the step up to which it can; of one that has not ended nobody knows yet."""
    value = "not_ended" if run.status == "running" else run.verdict
    return state(table, value, run.verdict_step if value == "replayable_to_step" else "", css)


@register.simple_tag
def replay_state(replay: Replay) -> SafeString:
    """How a replay ended, with the step that it stopped at; its state while it has not ended."""
    return state_html(state_of(*replay_key(replay)), _where_stopped(replay))


def _where_stopped(replay: Replay) -> str:
    step = (replay.stopped_at or {}).get("step") if replay.shown_verdict == "unknown_from_step" else None
    return f"at step {step}" if step else ""


@register.simple_tag
def run_state(run: Run) -> SafeString:
    """How a run ended; one that was made here, how the replay or fork that made it did."""
    made_by = None if run.origin == "recorded" else getattr(run, "produced_by", None)
    return replay_state(made_by) if made_by else state("run", run.status)


@register.simple_tag
def replay_icon(replay: Replay) -> SafeString:
    """That of `replay_state`, beside words of their own."""
    return icon(state_of(*replay_key(replay)).icon)


def state_html(shown: State, suffix: object = "", css: str = "") -> SafeString:
    return _state_html(shown, shown.word if suffix in ("", None) else f"{shown.word} {suffix}", css)


@lru_cache(maxsize=512)
def _state_html(shown: State, words: str, css: str) -> SafeString:
    markup = '<span class="state state-{} {}">{}<span>{}</span></span>'
    return format_html(markup, shown.css, css, icon(shown.icon), words)


_MARK, _GAP, _HEIGHT = 3, 1, 18
_SINGLE, _LONGEST = 20, 26
"""Marks: up to here one for each step, and never more."""


@register.simple_tag
def strip(letters: str, step_count: int) -> SafeString:
    """One mark a step, failed ones tall and red, repeats joined by a line; of a long run a mark stands for several."""
    shown = strip_of(letters, _marks(step_count))
    width = max(len(shown) * (_MARK + _GAP) - _GAP, 1)
    return format_html(
        '<svg class="strip" width="{0}" height="{1}" viewBox="0 0 {0} {1}" preserveAspectRatio="none"'
        ' role="img" aria-label="{2}">{3}{4}</svg>',
        width,
        _HEIGHT,
        strip_words(letters, step_count),
        mark_safe("".join(starmap(_rectangle, _joints(shown)))),
        mark_safe("".join(starmap(_mark, enumerate(shown)))),
    )


def _marks(step_count: int) -> int:
    """Longer runs have longer strips, by the order of their length."""
    return min(_SINGLE + round(log2(max(step_count / _SINGLE, 1))), _LONGEST)


@lru_cache(maxsize=1024)
def _mark(index: int, letter: str) -> SafeString:
    x = index * (_MARK + _GAP)
    return _rectangle("failed", x, 1, _MARK, 16) if letter.isupper() else _rectangle(letter, x, 5, _MARK, 8)


def _rectangle(css: str, x: int, y: int, width: int, height: int) -> SafeString:
    return format_html('<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>', css, x, y, width, height)


def _joints(letters: str) -> list[tuple[str, int, int, int, int]]:
    """Lines under three or more equal marks in a row."""
    joints, at = [], 0
    for _, group in groupby(letters):
        length = len(list(group))
        if length > 2:
            joints.append(("joint", at * (_MARK + _GAP), 16, length * (_MARK + _GAP) - _GAP, 1))
        at += length
    return joints


def strip_words(letters: str, step_count: int) -> str:
    failed = sum(letter.isupper() for letter in letters)
    steps = "1 step" if step_count == 1 else f"{step_count} steps"
    # Where a letter stands for several steps, nobody can tell here how many of them failed.
    return f"{steps}, {failed if step_count <= len(letters) else 'some'} failed" if failed else steps


@register.inclusion_tag("_bar.html", takes_context=True)
def bar(context: Context) -> dict[str, Any]:
    facts = bar_facts(context["request"], context.get("project"), str(context.get("section", "")))
    return facts | {"has_box": not context.get("box_is_here")}


@register.inclusion_tag("_keys.html", takes_context=True)
def key_sheet(context: Context) -> dict[str, Any]:
    return {"groups": SHEET, "are_on": keys_are_on(context["request"].COOKIES)}


@register.simple_tag(takes_context=True)
def theme(context: Context) -> str:
    return theme_of(_request(context))


@register.simple_tag(takes_context=True)
def key_hints(context: Context) -> str:
    request = _request(context)
    return "on" if request is None or keys_are_on(request.COOKIES) else "off"


def _request(context: Context) -> HttpRequest | None:
    """Error pages may be made without one."""
    found = context.get("request")
    return found if isinstance(found, HttpRequest) else None


@register.filter
def story_parts(story: str) -> list[tuple[str, bool]]:
    """The parts of a run's story, and whether each tells of a failure that nothing made good."""
    return [(part, part.endswith(" failed") or part.startswith("ended in ")) for part in story.split(" · ")]
