"""Find in session: what the line above the steps says, and where its links lead."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import HttpRequest

from sessions_app.core.search.find_terms import FindTerms, find_terms
from sessions_app.queries.find_in_run import Hits, find_in_run
from sessions_app.web.run_pages import RunPlace

IN_PLACE = 1000
"""Steps with hits that a script walks without asking again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Find:
    """A search and the place in it that the page shows."""

    terms: FindTerms
    hits: Hits
    shown: int = 0
    """The step beside the list."""

    @property
    def steps(self) -> list[int]:
        return list(self.hits.counts)

    @property
    def at(self) -> int | None:
        """Which of the steps with hits is shown, from 1."""
        return bisect_right(self.steps, self.shown) if self.shown in self.hits.counts else None

    @property
    def before(self) -> int | None:
        place = bisect_left(self.steps, self.shown)
        return self.steps[place - 1] if place else None

    @property
    def after(self) -> int | None:
        place = bisect_right(self.steps, self.shown)
        return self.steps[place] if place < len(self.steps) else None

    @property
    def in_place(self) -> str:
        """The steps with hits, for session.js; nothing when there are too many."""
        return ",".join(map(str, self.steps)) if len(self.steps) <= IN_PLACE else ""


def asked_text(request: HttpRequest, place: RunPlace) -> str:
    """A shared page is not searched: its readers have no account."""
    return "" if place.token else request.GET.get("find", "").strip()


def kept(request: HttpRequest, place: RunPlace) -> str:
    """The part of an address that keeps the search and what is hidden: `find=…&inner=show&`, or less."""
    text = asked_text(request, place)
    search = f"{urlencode({'find': text})}&" if text else ""
    return search + ("" if folds_inner(request) else "inner=show&")


def folds_inner(request: HttpRequest) -> bool:
    """Whether the inner steps of a framework are left out, as they are until they are asked for."""
    return request.GET.get("inner") != "show"


def search(request: HttpRequest, place: RunPlace) -> Find | None:
    text = asked_text(request, place)
    if not text:
        return None
    terms = find_terms(text)
    return Find(terms=terms, hits=find_in_run(place.run, terms))
