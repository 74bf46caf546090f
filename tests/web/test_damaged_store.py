"""Bytes that are gone or changed: no page fails, and what cannot be shown is said."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from sessions_app.models import ContentBlock, Project, Run, RunContent, SpanBatch
from sessions_app.services.keys import create_key
from sessions_app.services.sharing import create_link
from sessions_app.services.spans import receive
from tests.losing import lose_payloads
from tests.traces.captures import CHOICE, Capture
from tests.web.all_pages import pages_of, read
from tests.web.making import make_user

pytestmark = pytest.mark.django_db


def changed(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def change_steps() -> None:
    for block in ContentBlock.objects.all():
        ContentBlock.objects.filter(pk=block.pk).update(data=changed(bytes(block.data)))


def change_spans() -> None:
    for batch in SpanBatch.objects.all():
        SpanBatch.objects.filter(pk=batch.pk).update(content=b"no zstd", is_compressed=True)


def change_histories() -> None:
    for content in RunContent.objects.exclude(nodes=None):
        RunContent.objects.filter(pk=content.pk).update(nodes=changed(bytes(content.nodes or b"")))


def lose_histories() -> None:
    RunContent.objects.update(nodes=None)


def lose_all_payloads() -> None:
    for project in Project.objects.all():
        lose_payloads(project)


def change_outlines() -> None:
    for content in RunContent.objects.all():
        RunContent.objects.filter(pk=content.pk).update(outline=changed(bytes(content.outline)))


def change_headers() -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE sessions_app_runcontent SET header = set_byte(header, 0, 7)")


def lose_steps() -> None:
    ContentBlock.objects.all().delete()


OF_THE_RUN = [
    lose_all_payloads, change_steps, change_outlines, change_headers, lose_steps, change_histories, lose_histories
]  # fmt: skip
HARM = [*OF_THE_RUN, change_spans]


@pytest.fixture
def run(shop) -> Run:
    """One that came as spans: it has everything that can be damaged."""
    receive(shop, Capture(CHOICE / "pydantic-ai-v5" / "order_lookup").spans)
    return Run.objects.get(project=shop)


def addresses(run: Run) -> list[str]:
    trace = run.trace.trace_id
    shop = run.project.slug
    return [
        *pages_of(run, step=2),
        reverse("trace", args=[shop, trace]),
        reverse("spans_file", args=[shop, trace, "spans"]),
    ]


@pytest.mark.parametrize("harm", HARM)
def test_every_page_answers(run, bob, harm):
    asked = addresses(run)
    assert {address: read(bob, address) for address in asked} == dict.fromkeys(asked, 200)
    harm()

    statuses = {address: read(bob, address) for address in asked}

    assert set(statuses.values()) <= {200, 404, 410}
    assert statuses[reverse("sessions", args=["shop"])] == 200
    assert set(statuses.values()) != {200}


@pytest.mark.parametrize("harm", OF_THE_RUN)
def test_the_api_says_what_is_gone(run, harm):
    key = create_key(project=run.project, name="reader", scope="full")[1]
    client = Client(headers={"Authorization": f"Bearer {key}"})
    assert client.get(f"/api/v1/runs/{run.run_id}").status_code == 200
    harm()

    answer = client.get(f"/api/v1/runs/{run.run_id}/record")

    assert answer.status_code == 410
    assert answer.json()["error"]["code"] == "payload_missing"


@pytest.mark.parametrize("harm", OF_THE_RUN)
def test_a_shared_run_tells_no_more_than_that(run, harm):
    token = create_link(run=run, user=make_user("ann", run.project))[1]
    address = f"/shared/{token}/steps/2"
    assert Client().get(address).status_code == 200
    harm()

    assert read(Client(), address) in (200, 410)
