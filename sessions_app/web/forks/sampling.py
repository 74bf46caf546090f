"""What a fork's form says of a live model: which one is asked, where it is, and what asking it is likely to take."""

from __future__ import annotations

from typing import Any

from sessions_app.agents.live_model.endpoint import Endpoint, ModelUnavailable
from sessions_app.core.fork.order import MAX_SAMPLES
from sessions_app.services.fork_checks import Parent
from sessions_app.services.live_budget import budget_of, budget_words
from sessions_app.services.replay_questions import live_endpoint
from sessions_app.web.forks.form import SAMPLES
from sessions_app.web.forks.inputs import Typed, number_of, text_of
from sessions_app.web.forks.recorded import Recorded


def live_context(parent: Parent, recorded: Recorded, typed: Typed) -> dict[str, Any]:
    """Without an endpoint nothing can be ticked, and `live_off` says why."""
    try:
        endpoint = live_endpoint()
        host = endpoint.target.host
    except ModelUnavailable as off:
        return {"is_sampling": False, "live_off": off.reason}
    n = _samples(typed)
    return {
        "is_sampling": bool(typed.get("sampling")),
        "live_host": host,
        "live_name": _model(endpoint, recorded, typed),
        "live_budget": budget_words(budget_of(parent, recorded.start.row.index, n), n, endpoint.max_requests),
        "most_samples": MAX_SAMPLES,
    }


def _samples(typed: Typed) -> int:
    """What cannot be used is refused elsewhere; the budget stands beside it all the same."""
    n = number_of(text_of(typed, "samples").strip())
    return n if isinstance(n, int) and 1 <= n <= MAX_SAMPLES else SAMPLES


def _model(endpoint: Endpoint, recorded: Recorded, typed: Typed) -> str | None:
    """The server's settings go before the fork's change, and that before what was recorded."""
    changed = text_of(typed, "model").strip() if typed.get("use_model") else ""
    return endpoint.model or changed or recorded.request.model
