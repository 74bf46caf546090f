"""A viewer reads what pages make of a recording, opens no bytes of it and starts nothing, by whatever address."""

from __future__ import annotations

import html
import re

import pytest
from django.test import Client
from django.urls import URLPattern, resolve, reverse

from sessions_app.models import Golden, Replay, Run
from sessions_app.services.spans import receive
from sessions_app.web.urls import of_a_project
from tests.web.making import client_of, make_user, match
from tests.web.records import load_example
from tests.web.test_traces import TRACE, agent, span_id, tool

pytestmark = pytest.mark.django_db
EXAMPLE = {
    "project": "shop",
    "n": 2,
    "model": 1,
    "trace_id": TRACE,
    "span_id": span_id(2),
    "number": 0,
    "signal": "spans",
    "left": "r_8821",
    "right": "r_8821",
    "golden_run_id": "none",
    "golden_batch_id": "none",
    "bulk_job_id": "none",
    "session_replay_id": "none",
    "suffix": "md",
    "member": 1,
    "invitation": 1,
    "key": 1,
    "link": 1,
    "note": 1,
    "query": 1,
    "price": 1,
}
RAW = {"payload", "record", "otlp", "case_file", "trace", "spans_file", "span_value", "export_golden"}
RAW |= {"golden_dataset"}
OF_THE_BROWSER = {"diff_viewed", "choose_columns"}
"""Keep something in the browser: what one has looked at, which columns one sees."""
BYTES = r"view=raw|/payloads/|/record\?|/otlp\?|/case-file\?|\.json\"|/traces/"


@pytest.fixture
def vera(shop) -> Client:
    return client_of(make_user("vera", shop, "viewer"))


@pytest.fixture
def filled(shop) -> dict[str, object]:
    """What addresses of the project need, of things that are there."""
    run = load_example(shop, "r_8821")
    receive(shop, [agent(1), tool(2, 1, **{"gen_ai.tool.call.result": "sun " * 2000})])
    golden = Golden.objects.create(project=shop, run=run, name="kept", checks=[{"kind": "no_write"}])
    replay = Replay.objects.create(project=shop, run=run, content=run.content, number=1, state="done")
    kept = {"golden_id": golden.golden_id, "replay_id": replay.replay_id}
    return {**EXAMPLE, **kept, "session_id": run.session.session_id, "digest": run.document}


def addresses(filled: dict[str, object]) -> dict[str, str]:
    named = [pattern for pattern in of_a_project if isinstance(pattern, URLPattern)]
    needed = {pattern.name or "": {"project", *pattern.pattern.converters} for pattern in named}
    return {name: reverse(name, kwargs={key: filled[key] for key in keys}) for name, keys in needed.items()}


def test_a_viewer_opens_no_recorded_bytes(shop, bob, vera, filled):
    raw = {name: address for name, address in addresses(filled).items() if name in RAW}

    assert {name: (bob.get(raw[name]).status_code, vera.get(raw[name]).status_code) for name in raw} == dict.fromkeys(
        RAW, (200, 403)
    )


def test_no_other_address_gives_a_viewer_a_file(bob, vera, filled):
    """Also finds a door that is added later. Control: to a member these give files."""
    assert files_of(vera, filled) == set()
    assert files_of(bob, filled) == RAW - {"payload", "trace"}


def files_of(client: Client, filled: dict[str, object]) -> set[str]:
    answers = {name: client.get(address) for name, address in addresses(filled).items()}
    return {name for name, answer in answers.items() if "attachment" in answer.get("Content-Disposition", "")}


def test_a_viewer_posts_nothing_anywhere(vera, filled):
    answers = {name: vera.post(address).status_code for name, address in addresses(filled).items()}

    assert {name for name, status in answers.items() if status not in (403, 405)} == OF_THE_BROWSER
    assert [Replay.objects.count(), Golden.objects.count(), Run.objects.count()] == [1, 1, 2]


def test_no_page_offers_a_viewer_what_is_refused(bob, vera, filled):
    """Control: to a member they offer it."""
    assert refused(vera, offers(vera, filled)) == set()
    assert refused(vera, offers(bob, filled)) >= {"fork", "replay_options", "replay_again", "new_golden", "what_if"}


def offers(client: Client, filled: dict[str, object]) -> set[tuple[str, str]]:
    """Links, and forms with their method, of all pages of the project that this user may open."""
    answers = [client.get(address) for address in addresses(filled).values()]
    pages = [answer for answer in answers if answer.status_code == 200 and "html" in answer["Content-Type"]]
    texts = [page.content.decode() for page in pages]
    forms = [form for text in texts for form in re.findall(r"<form[^>]*>", text)]
    links = [("get", link) for text in texts for link in re.findall(r'(?:href|hx-get)="(/p/[^"#]*)', text)]
    posts = [("post", match(r'action="([^"]*)"', form)) for form in forms if 'method="post"' in form]
    return set(links + posts)


def refused(client: Client, offered: set[tuple[str, str]]) -> set[str]:
    inside = [(how, html.unescape(address)) for how, address in offered if address.startswith("/p/")]
    answers = {address: client.generic(how.upper(), address) for how, address in inside}
    return {resolve(at.partition("?")[0]).view_name for at, answer in answers.items() if answer.status_code == 403}


@pytest.mark.parametrize("view", ["steps", "messages", "state", "raw"])
def test_pages_offer_a_viewer_no_address_of_bytes(bob, vera, filled, view):
    for session in Run.objects.values_list("session__session_id", flat=True):
        page = reverse("session", args=["shop", session])
        asked = [f"{page}?view={view}", *(f"{page}?view={view}&step={n}" for n in (1, 2, 3))]
        own = [reverse("step", args=["shop", session, 1]) + "?as=bytes"]
        for address in asked + own:
            assert not re.search(BYTES, links_in(vera.get(address)))
    assert re.search(r"/payloads/", links_in(bob.get(reverse("step", args=["shop", filled["session_id"], 2]))))


def links_in(answer) -> str:
    assert answer.status_code == 200
    return "\n".join(re.findall(r'(?:href|hx-get)="[^"]*"', answer.content.decode()))


def test_a_viewer_is_shown_no_bytes_in_place(bob, vera, filled):
    raw, in_bytes = f"{addresses(filled)['session']}?view=raw", f"{addresses(filled)['step']}?as=bytes"

    assert "Document as received" in bob.get(raw).content.decode()
    assert "Document as received" not in vera.get(raw).content.decode()
    assert 'class="hex"' in bob.get(in_bytes).content.decode()
    assert 'class="hex"' not in vera.get(in_bytes).content.decode()


def test_a_viewer_sees_of_an_http_exchange_where_it_went_and_how_it_ended(shop, bob, vera):
    run = load_example(shop, "price_429")
    address = reverse("step", args=["shop", run.session.session_id, 2])
    exchanges = [match(r">HTTP exchange</h(.*?)</details>", each.get(address).content.decode()) for each in (bob, vera)]

    assert [("pricing.example.com" in shown, "429" in shown, "retry-after" in shown) for shown in exchanges] == [
        (True, True, True),
        (True, True, False),
    ]
