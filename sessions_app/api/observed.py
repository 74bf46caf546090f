"""Replays that ran on a person's own machine, handed in."""

from __future__ import annotations

from django.http import HttpRequest
from django.urls import reverse
from ninja import Router, Status

from sessions_app.api.auth import FullKeyHolder
from sessions_app.api.bodies import read_body
from sessions_app.api.openapi import named, takes
from sessions_app.api.runs import find_run
from sessions_app.api.schemas import ErrorAnswer, ObservedReplay, ObservedRequest
from sessions_app.api.shapes import replay_body
from sessions_app.core.formats.fields import Fields
from sessions_app.core.json_text import load_strict
from sessions_app.core.payload import JsonObject
from sessions_app.models import Replay
from sessions_app.services.ingest import limits
from sessions_app.services.observed_replays import take_in_observed
from sessions_app.services.reports import report_of

router = Router(auth=FullKeyHolder(), tags=["replays"])
_MODES = ("code", "code_and_tools")


@router.post(
    "/runs/{path:run_id}/replays/observed",
    response={
        200: ObservedReplay,
        201: ObservedReplay,
        409: ErrorAnswer,
    },
    openapi_extra=takes(named(ObservedRequest)),
)
def post_observed_replay(request: HttpRequest, run_id: str) -> Status[JsonObject]:
    """Submit a replay that ran on your own machine. The server makes the verdict, first difference, proof and sources
    by comparing it with the recording.

    `mode` is `code` where tools were frozen and `code_and_tools` where they ran, `agent` says whose code ran, and
    `record` is the observed run as a native record. 201 when it is new, 200 for the same again, 409 when another run
    has its id.
    """
    run = find_run(request, run_id)
    record, order = observed_in(read_body(request))
    taken = take_in_observed(run, record, order)
    return Status(201 if taken.created else 200, _answer(request, taken.replay))


def observed_in(body: bytes) -> tuple[bytes, JsonObject]:
    """The record that was sent, and what was asked for on that machine. Raises `RecordError`."""
    load_strict(body, limits())
    fields = Fields(body)
    record, order = fields.required("record", fields.slice), _order(fields)
    fields.refuse_rest()
    return record, order


def _order(fields: Fields) -> JsonObject:
    def mode(name: str) -> str | None:
        found: str | None = fields.choice(name, _MODES)
        return found

    order: JsonObject = {
        "agent": fields.required("agent", fields.name),
        "tools": {"run": fields.required("mode", mode) == "code_and_tools"},
    }
    on_difference = fields.choice("on_difference", ("stop", "play_on"))
    return order if on_difference is None else {**order, "on_difference": on_difference}


def _answer(request: HttpRequest, replay: Replay) -> JsonObject:
    address = reverse("replay", args=[replay.project.slug, replay.replay_id])
    return {
        **replay_body(replay),
        "words": report_of(replay).verdict,
        "url": request.build_absolute_uri(address),
    }
