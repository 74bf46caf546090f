"""One box for any id, and the way home."""

from __future__ import annotations

from dataclasses import dataclass, replace
from urllib.parse import unquote, urlsplit

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import Resolver404, resolve, reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_GET

from sessions_app.core.errors import QueryError
from sessions_app.core.search.query import parse_query
from sessions_app.models import Project
from sessions_app.queries.access import projects_of, server_administrators
from sessions_app.queries.find import Found, Hit, arrivals, find_ids, near_runs, newest_project
from sessions_app.queries.sessions import SessionRow, session_page
from sessions_app.services.trace_runs import make_asked_runs
from sessions_app.web.access import signed_in

LONGEST = 4000
PROJECTS, ROWS, WORDS = 6, 5, 8
"""What a search for words looks at, and shows of each project."""
PAGES = frozenset(
    {"session", "step", "replay", "diff", "sessions", "replays", "cold", "trace", "goldens", "golden", "golden_run"}
    | {"invitation"}
)
"""Pages that a pasted address of this server may lead to."""


@require_GET
@signed_in
def home(request: HttpRequest) -> HttpResponse:
    """Where something arrived last; before that a member of one project is at home there, and others choose."""
    mine = projects_of(request.user)
    newest = newest_project(mine)
    at_home = [newest] if newest else list(mine[:2])
    return redirect("project", at_home[0].slug) if len(at_home) == 1 else redirect("find")


@require_GET
@signed_in
def find(request: HttpRequest) -> HttpResponse:
    """Ids first, then the sessions that hold the words; a single answer is opened."""
    text = request.GET.get("q", "").strip()[:LONGEST]
    if address := our_page(request, text):
        return redirect(address)
    projects = projects_of(request.user)
    asked = projects.filter(slug=request.GET.get("in", "")).first()
    found = _found(projects, text) if text else None
    if found and len(found.hits) == 1:
        return redirect(hit_address(found.hits[0]))
    in_words = sessions_with_words(projects.filter(pk=asked.pk) if asked else projects, text)
    if found and not found.hits and (address := list_address(in_words)):
        return redirect(address)
    facts = {
        "q": text,
        "section": "find",
        "project": (project := asked or newest_project(projects)),
        "asked": asked,
        "box_is_here": not (text and project),
        "found": found,
        "hits": [(hit, hit_address(hit)) for hit in found.hits] if found else [],
        "in_words": in_words or (without_a_word(asked, text) if asked and found and not found.hits else []),
        "is_whole": bool(in_words),
        "near": near_runs(projects, text) if found and not found.hits and not in_words else [],
        "arrivals": arrivals(projects),
        "mine": projects.order_by("name")[:50],
        "administrators": server_administrators,
    }
    return render(request, "find/find.html", facts)


def _found(projects: QuerySet[Project], text: str) -> Found:
    """Also the runs of traces that came a moment ago."""
    found = find_ids(projects, text)
    traces = [hit for hit in found.hits if hit.kind == "trace"]
    if traces and make_asked_runs({hit.project.pk for hit in traces}, [hit.found_id for hit in traces]):
        return find_ids(projects, text)
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class InWords:
    """The sessions of a project that match a text as a query."""

    project: Project
    rows: list[SessionRow]
    address: str
    """Of the list with all of them."""
    left_out: str = ""
    """The word that they do not hold."""


def sessions_with_words(projects: QuerySet[Project], text: str) -> list[InWords]:
    """At most six projects are searched."""
    try:
        query = parse_query(text)
    except QueryError:
        return []
    searched = projects.order_by("name")[:PROJECTS] if text else ()
    found = ((each, session_page(each, query, limit=ROWS).items) for each in searched)
    return [InWords(project=each, rows=rows, address=listed(each, text)) for each, rows in found if rows]


def listed(project: Project, text: str) -> str:
    return f"{reverse('sessions', args=[project.slug])}?{urlencode({'q': text})}"


def list_address(in_words: list[InWords]) -> str | None:
    """Where all matching sessions are in one project, its list shows them best."""
    return in_words[0].address if len(in_words) == 1 else None


def without_a_word(project: Project, text: str) -> list[InWords]:
    """Where no session holds all words: those that hold all but one."""
    words = text.split()
    if not 1 < len(words) <= WORDS:
        return []
    rests = ((word, " ".join(words[:at] + words[at + 1 :])) for at, word in enumerate(words))
    mine = Project.objects.filter(pk=project.pk)
    return [replace(found, left_out=word) for word, rest in rests for found in sessions_with_words(mine, rest)]


def our_page(request: HttpRequest, text: str) -> str | None:
    """The path of an address of this server that was pasted whole."""
    if not text.startswith(("http://", "https://")) or any(character.isspace() for character in text):
        return None
    try:
        parts = urlsplit(text)
        match = resolve(decoded(parts.path))
    except (ValueError, Resolver404):
        return None
    if parts.netloc != request.get_host() or match.url_name not in PAGES:
        return None
    address = reverse(match.view_name, args=match.args, kwargs=match.kwargs)
    return f"{address}?{parts.query}" if parts.query else address


def decoded(path: str) -> str:
    """As the server decodes an address before it is resolved."""
    return unquote(path)


_OF_ONE_ID = {"replay": "replay", "golden": "golden", "golden run": "golden_run", "trace": "trace"}
"""Pages whose address holds the id that was found and nothing else."""


def hit_address(hit: Hit) -> str:
    if hit.kind in _OF_ONE_ID:
        return reverse(_OF_ONE_ID[hit.kind], args=[hit.project.slug, hit.found_id])
    address = reverse("session", args=[hit.project.slug, hit.session_id])
    if hit.kind == "session":
        return address
    step = "" if hit.step is None else f"&step={hit.step}"
    return f"{address}?{urlencode({'run': hit.run_id or hit.found_id})}{step}"
