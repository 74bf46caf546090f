"""Small charts."""

from __future__ import annotations

from collections.abc import Sequence

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

register = template.Library()

_WIDTH, _GAP, _HEIGHT = 5, 1, 16


@register.simple_tag
def spark(counts: Sequence[int], most: int) -> SafeString:
    """One bar a day, today last; `most`, the largest of all rows, is as high as the row."""
    heights = [max(round(count / most * _HEIGHT), 2) if count else 0 for count in counts]
    rects = format_html_join(
        "",
        '<rect x="{}" y="{}" width="{}" height="{}"/>',
        ((at * (_WIDTH + _GAP), _HEIGHT - high, _WIDTH, high) for at, high in enumerate(heights) if high),
    )
    width = len(counts) * (_WIDTH + _GAP) - _GAP
    words = f"in the last {len(counts)} days: {', '.join(map(str, counts))}"
    return format_html(
        '<svg class="spark" width="{0}" height="{1}" viewBox="0 0 {0} {1}" role="img" aria-label="{2}">{3}</svg>',
        width, _HEIGHT, words, rects,
    )  # fmt: skip
