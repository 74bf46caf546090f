"""Which columns of the list a person sees; kept in a cookie, as the look is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_POST

from sessions_app.models import Project
from sessions_app.web.access import project_page
from sessions_app.web.account.views import remember
from sessions_app.web.session_list.address import ListAddress, to_list

COLUMNS = {
    "when": "Started",
    "steps": "Steps",
    "odd": "Anomalies",
    "took": "Took",
    "model": "Model",
    "agent": "Agent",
    "user": "User",
    "replay": "Replay",
}
"""State, session, input and answer are always there."""


def columns_context(cookies: Mapping[str, str]) -> dict[str, Any]:
    """Without a choice the width decides which of them there is room for."""
    chosen = cookies.get("columns", "").split(".") if cookies.get("columns") else None
    hidden = [name for name in COLUMNS if chosen is not None and name not in chosen]
    return {
        "columns": [(name, words, name not in hidden) for name, words in COLUMNS.items()],
        "columns_chosen": chosen is not None,
        "columns_hidden": " ".join(hidden),
    }


@require_POST
@project_page()
def choose(request: HttpRequest, project: Project) -> HttpResponseBase:
    address = ListAddress.read(QueryDict(request.POST.get("back", "").removeprefix("?")))
    response = to_list(project, address)
    chosen = [name for name in COLUMNS if name in request.POST.getlist("column")]
    if "usual" in request.POST:
        response.delete_cookie("columns")
    else:
        remember(response, "columns", ".".join(chosen) or "none")
    return response
