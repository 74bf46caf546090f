"""The page on which a fork is put together: what to change at a step, and what is expected of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from sessions_app.core.errors import StoredBytesMissing
from sessions_app.models import Project, Replay
from sessions_app.web.access import project_page
from sessions_app.web.forks.batch import WantedFork, errors_of, gone_words, queue_forks, wanted_forks
from sessions_app.web.forks.desk import Desk, desk_of
from sessions_app.web.forks.drafts import draft_of, drop_draft, keep_draft
from sessions_app.web.forks.form import NAMES, initial, message_input, result_input
from sessions_app.web.forks.inputs import TOP, Refused, Typed, text_of
from sessions_app.web.forks.page import foretold, forks_in_words, form_context, outlook_context
from sessions_app.web.forks.recorded import Recorded
from sessions_app.web.forks.sampling import live_context
from sessions_app.web.form_keys import form_token
from sessions_app.web.replays.stops import run_page


@require_http_methods(["GET", "HEAD", "POST"])
@project_page("member")
def fork(request: HttpRequest, project: Project, session_id: str) -> HttpResponseBase:
    """Without `?step=` the best step to fork from is proposed."""
    view = _typed if request.method == "POST" else _page
    return view(request, project, session_id)


@dataclass(frozen=True, kw_only=True)
class Shown:
    """How a form comes back: what stands in it, what is wrong with it, and a word on what became of it."""

    typed: Typed
    errors: dict[str, str] = field(default_factory=dict)
    note: str = ""
    order_words: dict[str, Any] = field(default_factory=dict)
    status: int = 200


def _page(request: HttpRequest, project: Project, session_id: str) -> HttpResponse:
    desk = desk_of(request, project, session_id)
    draft = draft_of(request, desk.place.run, desk.row.index)
    recorded = desk.recorded(draft or {})
    shown = Shown(typed=initial(recorded) | dict(draft or {}), note="draft" if draft else "")
    if recorded.gone is None:
        return _render(request, desk, recorded, shown)
    if draft is None:
        return _gone(request, desk, recorded.gone)
    return _render(request, desk, recorded, _of_gone(shown, recorded.gone))


def _typed(request: HttpRequest, project: Project, session_id: str) -> HttpResponse:
    desk = desk_of(request, project, session_id)
    if request.POST.get("do") == "discard":
        drop_draft(request, desk.place.run, desk.row.index)
        return redirect(desk.address)
    typed = _posted(request)
    recorded = desk.recorded(typed)
    answer = _answer(request, desk, recorded, _moved(desk, typed, recorded))
    if isinstance(answer, Shown):
        return _kept(request, desk, recorded, answer)
    drop_draft(request, desk.place.run, desk.row.index)
    return _queued(request, desk, answer)


def _posted(request: HttpRequest) -> dict[str, str]:
    """Of presets several may be ticked."""
    typed = {name: request.POST[name] for name in NAMES if name in request.POST}
    return typed | {"preset": " ".join(request.POST.getlist("preset"))}


def _answer(request: HttpRequest, desk: Desk, recorded: Recorded, shown: Shown) -> Shown | list[Replay]:
    """The forks that were queued, or the form with everything that was typed."""
    if recorded.gone is not None:
        return _of_gone(shown, recorded.gone)
    if request.POST.get("do") == "show":
        return shown
    forks = wanted_forks(shown.typed, recorded)
    read = replace(shown, errors=shown.errors | errors_of(forks))
    if request.POST.get("do") == "check":
        orders = [fork.reading.order for fork in forks]
        return replace(read, order_words={} if read.errors else forks_in_words(desk.parent, orders))
    return replace(read, status=422) if read.errors else _queue(request, desk, read, forks)


def _queue(request: HttpRequest, desk: Desk, read: Shown, forks: list[WantedFork]) -> Shown | list[Replay]:
    try:
        return queue_forks(request, desk.place.run, forks)
    except Refused as refused:
        return replace(read, errors={refused.name: refused.message}, status=422)


def _of_gone(shown: Shown, gone: StoredBytesMissing) -> Shown:
    """Nothing can go on from there; what was typed can still be taken elsewhere."""
    return replace(shown, errors={TOP: gone_words(gone)}, status=410)


def _queued(request: HttpRequest, desk: Desk, queued: list[Replay]) -> HttpResponse:
    """One fork is shown as it runs, several in the tree of the run."""
    if len(queued) == 1:
        return redirect("replay", desk.project.slug, queued[0].replay_id)
    messages.success(request, f"{len(queued)} forks queued.")
    return redirect(run_page("forks", desk.project, desk.place.run))


def _moved(desk: Desk, typed: Typed, recorded: Recorded) -> Shown:
    """With another message or tool step chosen, a text that was not edited gives way to the one recorded there."""
    new: dict[str, str] = dict(typed)
    errors: dict[str, str] = {}
    fills = (
        ("message", "message_index", "message_of", message_input(recorded)),
        ("result", "result_step", "result_of", result_input(recorded)),
    )
    for name, chosen, source, filled in fills:
        if typed.get(chosen, "") == typed.get(source, ""):
            continue
        before = message_input if name == "message" else result_input
        if text_of(typed, name) == before(desk.shown_before(typed))[name]:
            new |= filled
            errors[name] = "This is what was recorded there; edit it."
        new[source] = filled[source]
    return Shown(typed=new, errors={name: words for name, words in errors.items() if typed.get(f"use_{name}")})


def _kept(request: HttpRequest, desk: Desk, recorded: Recorded, shown: Shown) -> HttpResponse:
    is_kept = keep_draft(request, desk.place.run, desk.row.index, shown.typed)
    note = "kept" if is_kept else "too_long"
    is_whole = request.POST.get("do") != "show" or shown.status != 200
    return _render(request, desk, recorded, replace(shown, note=note, errors=shown.errors if is_whole else {}))


def _render(request: HttpRequest, desk: Desk, recorded: Recorded, shown: Shown) -> HttpResponse:
    live = live_context(desk.parent, recorded, shown.typed)
    context = {
        **_frame(request, desk),
        **form_context(NAMES, shown.typed, shown.errors, recorded),
        **outlook_context(desk.parent, desk.row, is_sampling=live["is_sampling"], has_live_model="live_asked" in live),
        **live,
        **(shown.order_words or {"foretold": _foretold(desk, recorded, shown)}),
        "fork_request": desk.address_of(recorded.request.row.index) if recorded.request.row else "",
        "note": shown.note,
        "token": form_token(request),
    }
    return render(request, "forks/fork.html", context, status=shown.status)


def _foretold(desk: Desk, recorded: Recorded, shown: Shown) -> list[str]:
    """Of a form that was not checked: where an edit of what fits the step would stop."""
    if shown.errors:
        return []
    of_model = (("With other instructions", "use_instructions"), ("With another answer", "use_answer"))
    edits = (("With another answer", "use_result"),) if desk.row.kind == "tool" else of_model
    return [_under(condition, words) for condition, use in edits for words in _foretold_of(use, desk, recorded, shown)]


def _foretold_of(use: str, desk: Desk, recorded: Recorded, shown: Shown) -> list[str]:
    forks = wanted_forks({**shown.typed, use: "on"}, recorded)
    told = None if errors_of(forks) else foretold(desk.parent, forks[0].reading.order, is_edited=False)
    return [told.words] if told else []


def _under(condition: str, words: str) -> str:
    """`With another answer, the run ends at step 5, as …`."""
    return f"{condition}, {words[:1].lower()}{words[1:].replace(': ', ', as ', 1)}"


def _frame(request: HttpRequest, desk: Desk) -> dict[str, Any]:
    return {
        "project": desk.project,
        "section": "sessions",
        "place": desk.place,
        "run": desk.place.run,
        "row": desk.row,
        "address": desk.address,
        "proposed": None if desk.asked else desk.proposals[0],
        "other_starts": [(each, desk.address_of(each.step)) for each in desk.proposals if each.step != desk.row.index],
        "fork_before": desk.address_of(desk.row.index - 1),
        "fork_after": desk.address_of(desk.row.index + 1),
        "q_session": desk.place.session_address(desk.project),
    }


def _gone(request: HttpRequest, desk: Desk, gone: StoredBytesMissing) -> HttpResponse:
    """Nothing can go on from a step whose bytes are no longer stored."""
    return render(request, "forks/gone.html", {**_frame(request, desk), "gone": gone.name}, status=410)
