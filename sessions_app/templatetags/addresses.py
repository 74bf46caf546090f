"""Addresses that differ between a project's own pages and what a share link shows."""

from __future__ import annotations

from django import template
from django.template import Context
from django.urls import reverse

register = template.Library()


@register.simple_tag(takes_context=True)
def payload_address(context: Context, digest: str) -> str:
    """Under a share link only payloads of its run have one; for a viewer of the project none has."""
    token = context.get("share_token")
    if token:
        return reverse("shared_payload", args=[token, digest])
    project = context["project"]
    return reverse("payload", args=[project.slug, digest]) if project.sees_raw else ""
