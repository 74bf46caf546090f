"""What forms say of live models: which may be asked, where they are, and what asking one is likely to take."""

from __future__ import annotations

from typing import Any

from sessions_app.core.fork.order import MAX_SAMPLES
from sessions_app.models import Project
from sessions_app.services.fork_checks import Parent
from sessions_app.services.live_budget import budget_of, budget_words
from sessions_app.services.live_models import NONE, LiveModel, live_models
from sessions_app.web.forks.form import SAMPLES
from sessions_app.web.forks.inputs import Typed, number_of, text_of
from sessions_app.web.forks.recorded import Recorded


def offered_models(project: Project, chosen: str) -> dict[str, Any]:
    """All of them, and the one that is asked unless another is chosen. Where none can be asked, `live_off` says why."""
    models = live_models(project)
    askable = sorted((each for each in models if not each.refusal), key=lambda each: each.name != chosen)
    off = " ".join(each.refusal for each in models) or NONE
    return {"live_models": models} | ({"live_asked": askable[0]} if askable else {"live_off": off})


def live_context(parent: Parent, recorded: Recorded, typed: Typed) -> dict[str, Any]:
    """For a fork. Where no model can be asked, nothing can be ticked."""
    offered = offered_models(parent.row.project, text_of(typed, "live_model"))
    if "live_off" in offered:
        return {**offered, "is_sampling": False}
    n, asked = _samples(typed), offered["live_asked"]
    return {
        **offered,
        "is_sampling": bool(typed.get("sampling")),
        "live_name": _model(asked, recorded, typed),
        "live_budget": budget_words(budget_of(parent, recorded.start.row.index, n), n, asked.most_requests),
        "most_samples": MAX_SAMPLES,
    }


def _samples(typed: Typed) -> int:
    """What cannot be used is refused elsewhere; the budget stands beside it all the same."""
    n = number_of(text_of(typed, "samples").strip())
    return n if isinstance(n, int) and 1 <= n <= MAX_SAMPLES else SAMPLES


def _model(asked: LiveModel, recorded: Recorded, typed: Typed) -> str | None:
    """The connection goes before the fork's change, and that before what was recorded."""
    changed = text_of(typed, "model").strip() if typed.get("use_model") else ""
    return asked.model or changed or recorded.request.model
