"""The zone that a person's times are shown and typed in."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo, available_timezones

from django.http import HttpRequest, HttpResponse
from django.utils import timezone


def known_zone(name: str) -> str:
    """The name itself, or nothing."""
    return name if name in available_timezones() else ""


def own_zone(request: HttpRequest) -> str:
    """What the person chose, else what their browser says (static/js/clock.js)."""
    chosen = known_zone(request.COOKIES.get("zone", ""))
    return chosen or known_zone(request.COOKIES.get("browser_zone", ""))


def shown_zone(request: HttpRequest) -> tzinfo:
    """That of the times on the page now: UTC, until the person switches to their own."""
    name = own_zone(request) if request.COOKIES.get("clock") == "mine" else ""
    return ZoneInfo(name) if name else UTC


def in_shown_zone(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware: pages spell their times in that zone, with scripts on or off."""

    def respond(request: HttpRequest) -> HttpResponse:
        with timezone.override(shown_zone(request)):
            return get_response(request)

    return respond
