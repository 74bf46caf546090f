"""Under load a worker makes the runs of what was stored; whoever asks for one of them before has it made at once."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from sessions_app.api.otlp_gate import Gate
from sessions_app.core.formats.native import encode_native
from sessions_app.mapping.load import load_run
from sessions_app.models import Project, Run, Trace
from sessions_app.services import spans as service
from sessions_app.services import trace_runs, wakeups
from sessions_app.services.keys import create_key
from sessions_app.services.spans import receive
from sessions_app.services.trace_runs import make_waiting_runs
from tests.builders import make_project
from tests.traces.captures import CHOICE, Capture

pytestmark = pytest.mark.django_db
ORDER = Capture(CHOICE / "pydantic-ai-v5" / "order_lookup")
TRACE = ORDER.spans[0].trace_id


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    calls: list[str] = []
    monkeypatch.setattr(service, "wake_for_spans", lambda: calls.append("now"))
    return calls


def leave(project: Project) -> None:
    """The spans come while other senders wait."""
    receive(project, ORDER.spans, others_wait=lambda: True)


def record_of(project: Project) -> bytes:
    return encode_native(load_run(Run.objects.get(project=project)))


def test_a_run_that_was_left_to_a_worker_is_the_one_that_would_have_been_made_at_once(told):
    left, at_once = make_project("left"), make_project("at-once")
    leave(left)
    waiting = Run.objects.filter(project=left).count()
    receive(at_once, ORDER.spans)
    told_for_both = list(told)

    assert make_waiting_runs() == 1
    assert (waiting, told_for_both) == (0, ["now"])
    assert record_of(left) == record_of(at_once)
    assert make_waiting_runs() == 0


def test_what_came_before_wakes_nobody(told):
    project = make_project()
    receive(project, ORDER.spans)

    leave(project)

    assert told == []


def ask_by_api(project: Project, client: Client) -> None:
    key = create_key(project=project, name="test", scope="full")[1]
    answer = client.get(f"/api/v1/runs/{TRACE}", headers={"Authorization": f"Bearer {key}"})
    assert answer.status_code == 200
    assert json.loads(answer.content)["status"] == "ok"


def ask_by_box(project: Project, client: Client) -> None:
    answer = client.get("/find", {"q": TRACE})
    assert TRACE in answer["Location"]


def ask_by_trace(project: Project, client: Client) -> None:
    page = client.get(reverse("trace", args=[project.slug, TRACE])).content.decode()
    assert reverse("session", args=[project.slug, Run.objects.get().session.session_id]) in page


def ask_by_trace_with_dashes(project: Project, client: Client) -> None:
    client.get(reverse("trace", args=[project.slug, f"{TRACE[:8]}-{TRACE[8:].upper()}"]))


def ask_by_session(project: Project, client: Client) -> None:
    client.get(reverse("session", args=[project.slug, TRACE]))


@pytest.mark.parametrize("ask", [ask_by_api, ask_by_box, ask_by_trace, ask_by_trace_with_dashes, ask_by_session])
def test_whoever_asks_for_a_run_that_waits_has_it_made(ask: Callable[..., None], told, admin_client):
    project = make_project()
    leave(project)

    ask(project, admin_client)

    assert Run.objects.get().run_id == TRACE


def test_another_project_has_nothing_made(told, client):
    leave(make_project())
    key = create_key(project=make_project("other"), name="test", scope="full")[1]

    answer = client.get(f"/api/v1/runs/{TRACE}", headers={"Authorization": f"Bearer {key}"})

    assert (answer.status_code, Run.objects.count()) == (404, 0)


def test_the_foot_of_the_list_counts_what_waits(told, admin_client):
    project = make_project()
    leave(project)
    address = reverse("unread_traces", args=[project.slug])

    before = admin_client.get(address, headers={"HX-Request": "true"}).content.decode()
    own_page = admin_client.get(address).content.decode()
    make_waiting_runs()
    after = admin_client.get(address, headers={"HX-Request": "true"}).content.decode()

    assert "1 trace has arrived and will appear in the list in a moment" in before
    assert "None so far." in own_page
    assert "in a moment" not in after


def test_a_trace_that_cannot_be_made_now_still_waits_and_is_not_counted(told, monkeypatch):
    leave(make_project())
    with monkeypatch.context() as patch:
        patch.setattr(trace_runs, "store_assembled", fail)

        assert make_waiting_runs() == 0
        assert Trace.objects.get().batches_assembled == 0
    assert make_waiting_runs() == 1


def fail(*_: object, **__: object) -> None:
    raise OSError("disk full")


def test_a_run_that_another_worker_is_making_is_left_to_it(told):
    project = make_project()
    leave(project)
    name = (f"trace {TRACE}", project.pk)
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(hashtextextended(%s, %s))", name)

            assert make_waiting_runs() == 0
            assert (Run.objects.count(), Trace.objects.get().problem) == (0, None)
            cursor.execute("SELECT pg_advisory_unlock(hashtextextended(%s, %s))", name)
    finally:
        other.close()
    assert make_waiting_runs() == 1


def test_one_message_tells_of_all_that_came_until_it_is_sent(monkeypatch):
    sent, came = [], threading.Event()

    def send(*arguments: object, **more: object) -> None:
        sent.append(arguments)
        came.set()

    monkeypatch.setattr(wakeups, "_SOON", 0.05)
    monkeypatch.setattr(wakeups, "_send", send)
    for _ in range(20):
        wakeups.wake_for_spans()
    assert came.wait(5)
    came.clear()

    wakeups.wake_for_spans()

    assert came.wait(5)
    assert len(sent) == 2


def test_the_gate_tells_whether_somebody_else_is_inside():
    gate = Gate()
    with gate.enter(1):
        alone = gate.is_busy()
        with gate.enter(1):
            shared = gate.is_busy()

    assert (alone, shared, gate.is_busy()) == (False, True, False)


def test_the_gate_tells_whether_many_came_lately(settings, monkeypatch):
    settings.OTLP_BUSY_REQUESTS_PER_SECOND = 3
    clock = iter([0.0, 0.4, 0.8, 0.9, 1.1])
    monkeypatch.setattr("sessions_app.api.otlp_gate.monotonic", lambda: next(clock))
    gate, found = Gate(), []
    for _ in range(3):
        with gate.enter(1):
            found.append(gate.is_busy())
    later = gate.is_busy()

    assert (found, later) == ([False, False, True], False)


def test_a_run_under_way_is_made_again_for_whoever_asks(told, client):
    """Its end has come, and the worker has not."""
    project = make_project()
    end = next(span for span in ORDER.spans if span.parent_id is None)
    receive(project, [span for span in ORDER.spans if span is not end])
    assert Run.objects.get().status == "running"
    receive(project, [end], others_wait=lambda: True)

    ask_by_api(project, client)


def test_nobody_waits_for_a_long_one(told, monkeypatch):
    monkeypatch.setattr(trace_runs, "_SOON_MADE", 1)
    project = make_project()
    end = next(span for span in ORDER.spans if span.parent_id is None)
    receive(project, [span for span in ORDER.spans if span is not end])
    receive(project, [end], others_wait=lambda: True)

    found = trace_runs.first_or_made(Run.objects.filter(run_id=TRACE), project, TRACE)

    assert found is not None
    assert found.status == "running"
