"""Where a replay differs is said with the same step everywhere: API, page and all forms of the report."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from sessions_app.models import Project, Replay
from sessions_app.services.ingest import ingest_document
from tests.builders import make_client, make_key
from tests.recorder.replaying import replayed
from tests.web.records import EXAMPLES

pytestmark = pytest.mark.django_db

Record = dict[str, Any]


def other_output(record: Record) -> None:
    record["output"] = "Something else."


def no_output(record: Record) -> None:
    del record["output"]


def an_error(record: Record) -> None:
    del record["output"]
    record |= {"status": "error", "error": {"type": "TimeoutError", "message": "Too late."}}


def other_request(record: Record) -> None:
    record["steps"][2]["request"]["messages"][0]["parts"][0]["content"] = "Nothing was found."


def other_arguments(record: Record) -> None:
    record["steps"][1]["arguments"] = {"order_id": "ORD-0"}


def an_answer_too_many(record: Record) -> None:
    record["steps"].append({"kind": "model", "request": {"messages": []}, "response": record["steps"][-1]["response"]})


@pytest.mark.parametrize(
    "change", [other_output, no_output, an_error, other_request, other_arguments, an_answer_too_many]
)
def test_a_replay_differs_at_the_same_step_everywhere(shop: Project, bob: Client, change: Callable[[Record], None]):
    record = json.loads((EXAMPLES / "cancel_bug.json").read_bytes())
    change(record)
    replay = replay_of(shop, record)

    api = make_client(make_key(shop))
    told = api.get(f"/api/v1/replays/{replay.replay_id}").json()
    step = told["divergence"]["step"]
    named = {name: steps_named(text) for name, text in places_of(api, bob, replay).items()}

    assert (step is None) is (change in (no_output, an_error)), "what a run came to is at none of its steps"
    assert set().union(*named.values()) <= ({str(step)} if step else set())
    assert told["verdict"] != "diverged" or (named["txt"] and named["page"] and named["API"])


def steps_named(text: str) -> set[str]:
    """Where the replay differs, by all sentences of the text."""
    words = re.sub(r"<[^>]*>", "", text)
    return set(re.findall(r"(?:differs|diverged|unknown|recording) (?:at|from) step (\d+)", words, re.IGNORECASE))


def replay_of(project: Project, record: Record) -> Replay:
    """The run as it really replays."""
    run = ingest_document(project, json.dumps(record).encode()).run
    result, _ = replayed(json.dumps(record).encode())
    assert result.divergence is not None
    return Replay.objects.create(
        project=project,
        run=run,
        content=run.content,
        number=1,
        state="done",
        live_calls=0,
        verdict=result.verdict,
        divergence=asdict(result.divergence),
        facts=result.facts,
    )


def places_of(api: Client, client: Client, replay: Replay) -> dict[str, str]:
    address = f"/api/v1/replays/{replay.replay_id}"
    reports = {name: api.get(f"{address}/report?format={name}") for name in ("md", "txt", "html", "json")}
    answers = {"API": api.get(address), "page": client.get(reverse("replay", args=["shop", replay.replay_id]))}
    return {name: answer.content.decode() for name, answer in (answers | reports).items()}
