"""Recorded texts keep their spaces on the page, so a template must add none around them."""

from __future__ import annotations

import re

from django.conf import settings

OPENED = re.compile(r'class="[^"]*\brecorded\b[^"]*"[^>]*>\s*\n\s*\{\{')


def test_no_template_puts_space_into_a_recorded_text():
    folder = settings.TEMPLATES[0]["DIRS"][0]
    pages = [file for file in folder.rglob("*.html") if OPENED.search(file.read_text(encoding="utf-8"))]

    assert pages == []
    assert OPENED.search('<dd class="recorded">\n  {{ words }}\n</dd>')
