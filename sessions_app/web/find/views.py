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
from sessions_app.core.search.query import Query, parse_query
from sessions_app.models import Project
from sessions_app.queries.access import projects_of, server_administrators
from sessions_app.queries.find import Found, Hit, arrivals, find_ids, near_runs, newest_project
from sessions_app.queries.find_in_calls import InCall, find_in_calls
from sessions_app.queries.sessions import SessionRow, count_matching, count_without_each, session_page
from sessions_app.services.trace_runs import make_asked_runs
from sessions_app.web.access import signed_in
from sessions_app.web.run_pages import run_address

LONGEST = 4000
PROJECTS, ROWS = 6, 5
"""What a search for words looks at, and shows of each project."""
CALLS = 20
"""Runs with such a call, that are shown."""
COUNTED = 1000
"""Sessions that are counted; more are many."""
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
    searched = list((projects.filter(pk=asked.pk) if asked else projects).order_by("name")[:PROJECTS])
    in_words = sessions_with_words(searched, text)
    asks_tools = "tools" in request.GET
    if found and not found.hits and not asks_tools and (address := list_address(in_words)):
        return redirect(address)
    is_none = found is not None and not found.hits and not in_words
    in_calls = in_tools(searched, text) if asks_tools or is_none else None
    is_none = is_none and not (in_calls and in_calls.lines)
    hits = found.hits if found else []
    facts = {
        "q": text,
        "section": "find",
        "project": (project := asked or newest_project(projects)),
        "asked": asked,
        "box_is_here": not (text and project),
        "found": found,
        "hits": [(hit, hit_address(hit)) for hit in hits],
        "in_words": _not_in(hits, in_words),
        "in_calls": in_calls,
        "near": near_runs(projects, text) if is_none else [],
        "offers": offers(searched, text) if is_none else [],
        "counted": COUNTED,
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


def sessions_with_words(searched: list[Project], text: str) -> list[InWords]:
    query = query_of(text)
    found = ((each, session_page(each, query, limit=ROWS).items) for each in searched) if query else ()
    return [InWords(project=each, rows=rows, address=listed(each, text)) for each, rows in found if rows]


def _not_in(hits: list[Hit], in_words: list[InWords]) -> list[InWords]:
    """Each session once: those that were found by an id stand above."""
    shown = {(hit.project.pk, hit.session_id) for hit in hits}
    rows = [[row for row in each.rows if (each.project.pk, row.session.session_id) not in shown] for each in in_words]
    return [replace(each, rows=left) for each, left in zip(in_words, rows, strict=True) if left]


@dataclass(frozen=True, kw_only=True, slots=True)
class InTools:
    """Calls of tools with the words of a text in what was asked or answered."""

    lines: list[tuple[Project, InCall, str]]
    """With the address of the step."""
    more: int
    looked_at: int
    """Runs; 0 where these are all."""


def in_tools(searched: list[Project], text: str) -> InTools:
    query = query_of(text)
    phrases = query.phrases if query and not query.terms else ()
    looked = [(each, find_in_calls(each, phrases)) for each in searched]
    lines = [(each, one, _step_address(each, one)) for each, found in looked for one in found.found]
    is_cut = any(found.is_cut for _, found in looked)
    looked_at = sum(found.looked_at for _, found in looked) if is_cut else 0
    return InTools(lines=lines[:CALLS], more=len(lines[CALLS:]), looked_at=looked_at)


def _step_address(project: Project, one: InCall) -> str:
    return run_address(one.run, project, step=one.snippet.step)


def query_of(text: str) -> Query | None:
    """None where nothing is asked, or what cannot be understood."""
    try:
        return parse_query(text) if text else None
    except QueryError:
        return None


def listed(project: Project, text: str) -> str:
    return f"{reverse('sessions', args=[project.slug])}?{urlencode({'q': text})}"


def list_address(in_words: list[InWords]) -> str | None:
    """Where all matching sessions are in one project, its list shows them best."""
    return in_words[0].address if len(in_words) == 1 else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """A shorter query, and the sessions of a project that it finds."""

    words: str
    part: str
    project: Project
    count: int
    address: str


def offers(searched: list[Project], text: str) -> list[Offer]:
    """Where no session holds all words: what holds all but one; where none does, each word alone."""
    query = query_of(text)
    if query is None or len(query.parts) < 2:
        return []
    return _without_each(searched, query) or _alone(searched, query)


def _without_each(searched: list[Project], query: Query) -> list[Offer]:
    found = ((each, count_without_each(each, query, COUNTED)) for each in searched)
    return [
        Offer(words="without", part=part, project=each, count=count, address=listed(each, rest))
        for each, counts in found
        for part, rest, count in counts
        if count
    ]


def _alone(searched: list[Project], query: Query) -> list[Offer]:
    words = [(part, alone) for part in query.parts[:PROJECTS] if (alone := query_of(part))]
    found = ((each, part, count_matching(each, alone, COUNTED)) for each in searched for part, alone in words)
    return [
        Offer(words="only", part=part, project=each, count=count, address=listed(each, part))
        for each, part, count in found
        if count
    ]


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
