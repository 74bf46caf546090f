"""The text of a note: escaped, with its links and its step numbers as links."""

from __future__ import annotations

import re

from django import template
from django.utils.html import format_html, format_html_join, urlize
from django.utils.safestring import SafeString, mark_safe

from sessions_app.templatetags.recorded import visible

register = template.Library()
_STEP = re.compile(r"(?<!\S)#(\d{1,6})(?![\w#/])")
_LONGEST_LINK = 80


@register.filter
def noted(text: str, session_address: str) -> SafeString:
    """`session_address` is ready for `step=…`; `#4` leads to that step."""
    text, pieces, at = visible(text), [], 0
    for found in _STEP.finditer(text):
        pieces += [_linked(text[at : found.start()]), _step_link(session_address, found[1])]
        at = found.end()
    return format_html_join("", "{}", ((piece,) for piece in [*pieces, _linked(text[at:])]))


def _linked(text: str) -> SafeString:
    return mark_safe(urlize(text, trim_url_limit=_LONGEST_LINK, nofollow=True, autoescape=True))  # which escapes


def _step_link(session_address: str, number: str) -> SafeString:
    return format_html('<a href="{}step={}" data-step="{}">#{}</a>', session_address, number, number, number)
