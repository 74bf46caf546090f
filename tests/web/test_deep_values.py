"""What was accepted opens: values nested as deep as a record may be, on every page."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client
from django.urls import reverse

from sessions_app.core.errors import RecordTooLarge
from sessions_app.core.json_text import Limits
from sessions_app.core.payload import sha256_hex
from sessions_app.mapping.load import load_run
from sessions_app.models import Replay, Run
from sessions_app.services.ingest import ingest_document
from sessions_app.services.sharing import create_link
from sessions_app.web.render.tree import LEVELS
from tests.web.all_pages import pages_of, read
from tests.web.making import make_user
from tests.web.records import load_record, make_record, model_step, tool_step

pytestmark = pytest.mark.django_db
DEEPEST = Limits().max_depth


def nested(levels: int, text: str = "order") -> Any:
    value: Any = text
    for level in range(levels):
        value = [value] if level % 2 else {"in": value}
    return value


def said(value: Any) -> dict[str, Any]:
    return {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": [value]}]}


def deep_steps(levels: int, text: str = "order") -> list[dict[str, Any]]:
    """Each value as deep as its place in the document lets it be: `levels` are those of the whole document."""
    at_step, in_message = nested(levels - 3, text), nested(levels - 9, text)
    asking = model_step(request={"messages": [said(in_message)]}, settings=at_step)
    state = {"after": [{"op": "add", "path": "/plan", "value": nested(levels - 7, text)}]}
    return [asking, tool_step(arguments=at_step, result=at_step, state=state, extra_fact=at_step)]


def deep_record(levels: int = DEEPEST, **fields: Any) -> dict[str, Any]:
    return {"steps": deep_steps(levels), "input": nested(levels - 1), "output": nested(levels - 1)} | fields


@pytest.fixture
def run(shop) -> Run:
    record = deep_record(initial_state={"plan": nested(DEEPEST - 2)})
    assert load_record(shop, run_id="shallow", session_id="other").run_id == "shallow"
    return load_record(shop, **record)


@pytest.mark.parametrize("step", [1, 2])
def test_every_page_opens(run, bob, step):
    asked = pages_of(run, step=step)

    assert {address: read(bob, address) for address in asked} == dict.fromkeys(asked, 200)


def test_two_runs_that_differ_in_the_deepest_place_are_told_apart(run, shop, bob):
    load_record(shop, **deep_record(run_id="other", steps=deep_steps(DEEPEST, "another")))

    page = bob.get(reverse("diff", args=["shop", run.run_id, "other"]))

    assert page.status_code == 200
    assert "another" in page.content.decode()


def test_what_lies_deeper_than_is_drawn_opens_from_there(run, bob):
    result = load_run(run).steps[1].call.result
    address = reverse("payload", args=["shop", sha256_hex(result.content)])
    whole = bob.get(address).content.decode()
    pointer = "/in/0" * (LEVELS // 2)

    deeper = bob.get(address, {"at": pointer, "start": "0"}).content.decode()

    assert f"at={quote(pointer, safe='')}&amp;start=0" in whole
    assert "order" not in whole.split("<main")[1]
    drawn = deeper.split("<main")[1].count("<details")
    assert drawn == whole.split("<main")[1].count("<details")


def test_a_deeper_document_is_refused(shop):
    one_more = json.dumps(make_record(**deep_record(DEEPEST + 1))).encode()

    with pytest.raises(RecordTooLarge, match="nested deeper than 200 levels"):
        ingest_document(shop, one_more)


def test_pages_of_a_replay_open(run, shop, bob):
    fork = load_record(shop, **deep_record(run_id="made", steps=deep_steps(DEEPEST, "another"), origin="fork"))
    columns = {"state": "done", "verdict": "diverged", "divergence": {"step": 2, "path": "result"}}
    replay = Replay.objects.create(project=shop, run=run, content=run.content, number=1, produced_run=fork, **columns)
    page = reverse("replay", args=["shop", replay.replay_id])
    kinds = ("md", "txt", "json")
    asked = [page, *(reverse("replay_report", args=["shop", replay.replay_id, kind]) for kind in kinds)]

    assert {address: read(bob, address) for address in asked} == dict.fromkeys(asked, 200)


def test_shared_pages_open(run):
    token = create_link(run=run, user=make_user("ann", run.project))[1]

    assert [read(Client(), f"/shared/{token}{rest}") for rest in ("", "/steps/1", "/steps/2")] == [200] * 3
