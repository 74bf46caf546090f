"""Two runs side by side."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_GET, require_POST

from sessions_app.core.compare.runs import Comparison
from sessions_app.core.compare.summary import summary, ticket_lines
from sessions_app.core.compare.volatile import ALL_RULES
from sessions_app.core.errors import StoredBytesMissing
from sessions_app.models import Project, Run
from sessions_app.queries.replays import run_by_id
from sessions_app.services.comparisons import compare
from sessions_app.web.access import project_page
from sessions_app.web.diff.comparison import Chosen, shown_comparison
from sessions_app.web.diff.three_columns import alike_words, in_words, shown_three
from sessions_app.web.diff.viewed_marks import mark_of, set_viewed, viewed
from sessions_app.web.run_pages import run_address, whole_number

MODES = ("aligned", "unified")
_MARK = re.compile(r"(?=.{2,24}$)\d*-\d*", re.ASCII)


@require_GET
@project_page()
def diff(request: HttpRequest, project: Project, left: str, right: str) -> HttpResponse:
    """`?third=` is a run that stands in a third column."""
    one, other = run_by_id(project, left), run_by_id(project, right)
    third_id = request.GET.get("third", "")
    third = run_by_id(project, third_id) if third_id else None
    frame = {"project": project, "section": "sessions", "left_id": left, "right_id": right, "third_id": third_id}
    if one is None or other is None or (third_id and third is None):
        missing = [run_id for run_id, run in ((left, one), (right, other), (third_id, third)) if run_id and run is None]
        return render(request, "diff/missing.html", frame | {"missing": missing}, status=404)
    off = frozenset(part for part in request.GET.get("v", "").split(",") if part)
    try:
        comparison = compare(one, other, switched_off=off)
        beside = compare(one, third, switched_off=off) if third else None
    except StoredBytesMissing as gone:
        return render(request, "diff/missing.html", frame | {"gone": gone.name}, status=410)
    told = summary(comparison)
    lead = told.places[0].row if told.places else None
    shown = shown_comparison(comparison, _chosen(request, one, other), partial(mark_of, one, other), lead)
    context = frame | {
        "left_link": run_address(one, project),
        "right_link": run_address(other, project),
        "relation": _relation(one, other, third),
        "made_by": getattr(other, "produced_by", None),
        "comparison": comparison,
        "told": told,
        "shown": shown,
        "ticket": _ticket(request, ticket_lines(comparison, told)),
        **_third(request, project, comparison, beside, third),
        "here": request.GET.urlencode(),
        **_switches(request, project, one, other, off, comparison.ignored),
    }
    return render(request, "diff/diff.html", context)


def _relation(left: Run, right: Run, third: Run | None) -> str:
    """What the second run is to the first."""
    if third is not None:
        made = [getattr(run, "produced_by", None) for run in (right, third)]
        names = [f"{each.kind} #{each.number}" if each else "another run" for each in made]
        return " and ".join(names) if any(made) else "two other runs"
    if right.parent_run_id == left.run_id:
        return "its fork" if right.origin == "fork" else "its replay"
    if left.parent_run_id == right.run_id:
        return "the run that it came from"
    return "another run of its session" if left.session_id == right.session_id else "another run"


def _third(
    request: HttpRequest, project: Project, comparison: Comparison, beside: Comparison | None, third: Run | None
) -> dict[str, Any]:
    if beside is None or third is None:
        return {}
    told, words = summary(beside, "C"), in_words(comparison, beside)
    lines = [
        f"{words.removesuffix('.')}.",
        *ticket_lines(comparison, summary(comparison)),
        *ticket_lines(beside, told, letter="C"),
    ]
    return {
        "third_link": run_address(third, project),
        "third_made_by": getattr(third, "produced_by", None),
        "third_told": told,
        "ticket": _ticket(request, lines),
        "three_words": words,
        "are_alike": alike_words(comparison, beside) is not None,
        "three": shown_three(comparison, beside, _asked(request)),
    }


def _ticket(request: HttpRequest, lines: list[str]) -> str:
    return "\n".join([*lines, request.build_absolute_uri()])


@require_POST
@project_page()
def mark_viewed(request: HttpRequest, project: Project) -> HttpResponse:
    """A person's own mark on a pair; the way back is to the same place of the same diff."""
    left, right = request.POST.get("left", ""), request.POST.get("right", "")
    one, other = run_by_id(project, left), run_by_id(project, right)
    mark = request.POST.get("mark", "")
    if one is None or other is None or not _MARK.fullmatch(mark):
        raise Http404
    set_viewed(request.session, one, other, [mark], is_viewed=request.POST.get("viewed") == "yes")
    query = urlencode(parse_qsl(request.POST.get("here", "")[:500]))
    address = reverse("diff", args=[project.slug, left, right])
    return redirect(f"{address}?{query}#p{whole_number(request.POST.get('pair'), 0)}")


def _chosen(request: HttpRequest, left: Run, right: Run) -> Chosen:
    return replace(_asked(request), viewed=viewed(request.session, left, right))


def _asked(request: HttpRequest) -> Chosen:
    return Chosen(
        step=whole_number(request.GET.get("step"), 0) or None,
        at=whole_number(request.GET.get("at"), 0),
        only_changes=request.GET.get("only") == "changes",
    )


def _switches(
    request: HttpRequest, project: Project, left: Run, right: Run, off: frozenset[str], ignored: Any
) -> dict[str, Any]:
    """The address with one thing changed, for each thing that can be chosen."""
    mode = request.GET.get("mode", "aligned")
    mode = mode if mode in MODES else "aligned"
    only = request.GET.get("only", "")
    third = request.GET.get("third", "")
    state = {"mode": mode if mode != "aligned" else "", "only": only, "v": ",".join(sorted(off)), "third": third}
    counts = {each.rule.key: each.count for each in ignored}
    swapped = reverse("diff", args=[project.slug, right.run_id, left.run_id])
    return {
        "mode": mode,
        "only": only,
        "query": _query(state),
        "other_mode": _query(state | {"mode": "" if mode == "unified" else "unified"}),
        "other_only": _query(state | {"only": "" if only else "changes"}),
        "swapped": swapped + _query(state),
        "without_third": _query(state | {"third": ""}),
        "rules": [
            {
                "rule": rule,
                "count": counts.get(rule.key, 0),
                "is_off": rule.key in off,
                "switch": _query(state | {"v": ",".join(sorted(off ^ {rule.key}))}),
            }
            for rule in ALL_RULES
            if rule.key in counts or rule.key in off
        ],
    }


def _query(state: dict[str, str]) -> str:
    """Ready for more to be added."""
    text = urlencode({key: value for key, value in state.items() if value})
    return f"?{text}&" if text else "?"
