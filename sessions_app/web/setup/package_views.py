"""The recorder as a file that pip installs by its address. It is open code: nobody has to sign in for it."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from sessions_app.services.client_wheels import RECORDER, wheel, wheel_name, wheel_names
from sessions_app.web.downloads import attachment


@require_safe
def package(request: HttpRequest, name: str) -> HttpResponse:
    found = wheel_names().get(name)
    if found is None:
        raise Http404
    return attachment(wheel(found), name)


def recorder_address() -> str:
    """Its path, with the version that this server brings."""
    return reverse("package", args=[wheel_name(RECORDER)])
