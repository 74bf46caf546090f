"""Stored bytes under their own address: as a tree, as text, as bytes, and as a file."""

from __future__ import annotations

import re
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_GET

from sessions_app.core.base64_data import decoded
from sessions_app.core.errors import PayloadMissing
from sessions_app.core.payload import JsonValue, Payload
from sessions_app.models import Project
from sessions_app.queries.access import SEES_RAW
from sessions_app.queries.payloads import kept_as, read_payload
from sessions_app.web.access import project_page
from sessions_app.web.downloads import attachment, picture
from sessions_app.web.htmx import HtmxHttpRequest
from sessions_app.web.render import spelled
from sessions_app.web.render.payloads import Form, guess, show
from sessions_app.web.render.tree import build_tree, find, path_of
from sessions_app.web.run_pages import whole_number

FORMS: tuple[Form, ...] = ("pretty", "json", "bytes")
FOR_EVER = "private, max-age=31536000, immutable"
_DIGEST = re.compile(r"[0-9a-f]{64}")


@require_GET
@project_page(SEES_RAW)
def payload(request: HtmxHttpRequest, project: Project, digest: str) -> HttpResponse:
    """`as` chooses the form, `from` the first byte, `at` a place in JSON, `download` a file, `picture` an image."""
    found = _read(project, digest)
    pointer = request.GET.get("at", "")
    if "download" in request.GET:
        return _file(request, found, pointer)
    if "picture" in request.GET:
        return _picture(found, pointer)
    if pointer or request.GET.get("start"):
        return _branch(request, project, found, pointer)
    asked = request.GET.get("as", "pretty")
    form: Form = asked if asked in FORMS else "pretty"
    shown = show(found, form, start=whole_number(request.GET.get("from"), 0))
    context = _context(project, found, form) | {"shown": shown, "kept": kept_as(project.pk, found.digest)}
    return render(request, "steps/payload.html", context)


def _read(project: Project, digest: str) -> Payload:
    if not _DIGEST.fullmatch(digest):
        raise Http404
    try:
        return guess(read_payload(project.pk, digest))
    except PayloadMissing:
        raise Http404 from None


def _context(project: Project, found: Payload, form: Form) -> dict[str, Any]:
    return {"project": project, "section": "sessions", "payload": found, "form": form, "forms": FORMS}


def _branch(request: HtmxHttpRequest, project: Project, found: Payload, pointer: str) -> HttpResponse:
    """One value inside a document, or the next part of a long list."""
    start = whole_number(request.GET.get("start"), 0)
    value = _value_at(found, pointer)
    tree = build_tree(value, pointer=pointer, path=path_of(pointer), start=start)
    context = _context(project, found, "pretty") | {"node": tree, "pointer": pointer, "start": start}
    if not request.htmx:
        return render(request, "steps/branch.html", context)
    response = render(request, "steps/_branch.html", context | {"digest": found.digest})
    response.headers["Cache-Control"] = FOR_EVER
    patch_vary_headers(response, ("HX-Request", "Cookie"))
    return response


def _value_at(found: Payload, pointer: str) -> JsonValue:
    """Texts that hold JSON are entered as if they were JSON: trees show them so."""
    value = spelled.read(found.content)
    if isinstance(value, spelled.Unreadable):
        raise Http404
    value = spelled.embedded(value)
    for part in pointer.split("/")[1:]:
        try:
            value = spelled.embedded(find(value, f"/{part}"))
        except LookupError:
            raise Http404 from None
    return value


def _file(request: HttpRequest, found: Payload, pointer: str) -> HttpResponse:
    content = _decoded_at(found, pointer) if pointer else found.content
    response = attachment(content, f"{found.digest[:16]}{'-part' if pointer else ''}.bin")
    response.headers["ETag"] = f'"{found.digest}{pointer and "-part"}"'
    response.headers["Cache-Control"] = FOR_EVER
    return response


def _picture(found: Payload, pointer: str) -> HttpResponse:
    """For the page that shows it: only bytes that are an image by their beginning."""
    content = found.content if not pointer else _decoded_at(found, pointer)
    drawn = picture(decoded(content.decode()) or b"") if found.is_text and not pointer else picture(content)
    if drawn is None:
        raise Http404
    drawn.headers["Cache-Control"] = FOR_EVER
    return drawn


def _decoded_at(found: Payload, pointer: str) -> bytes:
    """The bytes that a text in the document spells as base64, or the text itself."""
    value = _value_at(found, pointer)
    if not spelled.is_text(value):
        return spelled.compact(value).encode()
    return decoded(value) or str(value).encode()
