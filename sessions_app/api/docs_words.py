"""Descriptions of the API as HTML: paragraphs, code between backticks, and links from types to their fields."""

from __future__ import annotations

import re
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe


def words_html(text: str) -> SafeString:
    """Where a line of the source ends means nothing; an empty line begins a paragraph."""
    paragraphs = [" ".join(each.split()) for each in re.split(r"\n\s*\n", text.strip())]
    if len(paragraphs) == 1:
        return _line_html(paragraphs[0])
    return format_html_join("", "<p>{}</p>", ((_line_html(each),) for each in paragraphs))


def _line_html(line: str) -> SafeString:
    pieces = line.split("`")
    marked = ((mark_safe("<code>{}</code>" if at % 2 else "{}"), piece) for at, piece in enumerate(pieces))
    return SafeString("".join(format_html(markup, piece) for markup, piece in marked))


def type_html(described: dict[str, Any]) -> SafeString:
    if "$ref" in described:
        return format_html('<a href="#schema-{0}">{0}</a>', str(described["$ref"]).rpartition("/")[2])
    if "anyOf" in described:
        return format_html_join(" or ", "{}", ((type_html(choice),) for choice in described["anyOf"]))
    if "enum" in described:
        return format_html_join(" | ", "<code>{}</code>", ((value,) for value in described["enum"]))
    if described.get("type") == "array":
        return format_html("list of {}", type_html(described.get("items", {})))
    return format_html("{}", described.get("type", "any"))
