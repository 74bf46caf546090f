"""Requests as the middleware of django-htmx hands them to views."""

from __future__ import annotations

from django.http import HttpRequest
from django_htmx.middleware import HtmxDetails


class HtmxHttpRequest(HttpRequest):
    """True is what `htmx` says of a request that htmx sent."""

    htmx: HtmxDetails
