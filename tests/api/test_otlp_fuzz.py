"""Hostile requests at the doors for recordings: no status but the known ones, and whatever was taken in then opens.

`FUZZ_BODIES=20000` sends more, `FUZZ_SEED=7` others, `FUZZ_FROM=1234` starts at that number, `FUZZ_OPEN=20` opens only
what came of every twentieth.
"""

import io
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse

from sessions_app.api import exports
from sessions_app.core.errors import ReplayProductError
from sessions_app.core.otlp.decode import decode_traces
from sessions_app.models import Run, Trace
from sessions_app.services.case_files import import_case
from sessions_app.services.verification import problems
from tests.builders import make_client, make_key, make_project, post_run, project_client
from tests.otlp_requests import PROTOBUF, TRACE_ID, as_protobuf, make_span, make_traces
from tests.trials.mutations import Fuzzer, Request
from tests.web.making import client_of, make_user

BODIES = int(os.environ.get("FUZZ_BODIES") or 120)
SEED = int(os.environ.get("FUZZ_SEED") or 1)
FROM = int(os.environ.get("FUZZ_FROM") or 0)
OPEN = int(os.environ.get("FUZZ_OPEN") or 1)
STATUSES = {200, 201, 400, 401, 403, 404, 409, 413, 415}
"""No 503: nothing is overloaded here and the database is well."""
_STEPS = 5
"""Pages of so many steps are opened, and that of the last one."""
OURS = b"Something went wrong here"
CONFLICT = "another recording has this id"
REPORTS = ("json", "md", "txt", "html")


class Doors:
    """A project, who sends to it and who reads it."""

    def __init__(self) -> None:
        self.project = make_project()
        self.other = make_project("other")
        self.sender = make_client(make_key(self.project))
        self.receiver = make_client(make_key(self.other))
        self.member = client_of(make_user("mara", self.project))
        self.member.raise_request_exception = False

    def complaints(self, request: Request, seen: Counter[str]) -> Iterator[str]:
        """Sends it, and says what is not as it should be."""
        if request.before:
            self.sender.post("/v1/traces", request.before, content_type="application/json")
        answer = send(self.sender, request)
        seen[f"{request.path} {answer.status_code}"] += 1
        if answer.status_code not in STATUSES:
            yield f"{request.path} answers {answer.status_code}"
        if OURS in answer.content:
            yield f"{request.path} meets an error of ours"
        if answer.status_code in (200, 201) and request.number % OPEN == 0:
            yield from self.what_does_not_open(request.number)

    def what_does_not_open(self, number: int) -> Iterator[str]:
        """A third of the places each time, by turns: opening all of them costs ten times what taking in does."""
        for trace in Trace.objects.exclude(problem=None).exclude(problem=CONFLICT):
            yield f"no run is made: {trace.problem}"
        for run in Run.objects.filter(project=self.project).select_related("session"):
            yield from (self.bad_pages, self.bad_answers, self.bad_files)[number % 3](run)
        if number % 3 == 0:
            yield from (f"verify: {problem}" for problem in problems())

    def bad_pages(self, run: Run) -> Iterator[str]:
        page, this = [self.project.slug, run.session.session_id], {"run": run.run_id}
        addresses = {"page": reverse("session", args=page, query=this)}
        addresses["diff"] = reverse("diff", args=[self.project.slug, run.run_id, run.run_id])
        for step in {*range(1, min(run.step_count, _STEPS) + 1), run.step_count} - {0}:
            addresses[f"page of step {step}"] = reverse("step", args=[*page, step], query=this)
        for name, address in addresses.items():
            if (status := self.member.get(address).status_code) != 200:
                yield f"{name} answers {status}"

    def bad_answers(self, run: Run) -> Iterator[str]:
        same = urlencode({"left": run.run_id, "right": run.run_id})
        paths = ["", "/steps", "/kit", *(f"/report?format={form}" for form in REPORTS)]
        for address in [*(address_of(run) + path for path in paths), f"/api/v1/comparisons?{same}"]:
            if (status := self.sender.get(address).status_code) != 200:
                yield f"{address.replace(address_of(run), '')} answers {status}"

    def bad_files(self, run: Run) -> Iterator[str]:
        """What is handed out as a file for others has to be taken in again."""
        answers = {name: self.sender.get(f"{address_of(run)}/{name}") for name in ("record", "otlp", "case-file")}
        wrong = {name: answer.status_code for name, answer in answers.items() if answer.status_code != 200}
        yield from (f"{name} answers {status}" for name, status in wrong.items())
        if not wrong:
            yield from self.what_does_not_return(run, {name: answer.content for name, answer in answers.items()})

    def what_does_not_return(self, run: Run, files: dict[str, bytes]) -> Iterator[str]:
        again = self.receiver.post("/api/v1/runs", files["record"], content_type="application/json")
        if again.status_code != 201:
            yield f"the record is refused: {again.status_code} {again.content[:150]!r}"
        elif again.json()["digest"] != bytes(run.content_digest).hex():
            yield "the record is of another run"
        if refused := decode_traces(files["otlp"], is_json=True).reasons:
            yield f"spans of the export are refused: {refused}"
        try:
            import_case(self.other, files["case-file"])
        except ReplayProductError as error:
            yield f"the case file is refused: {error}"


def address_of(run: Run) -> str:
    return f"/api/v1/runs/{quote(run.run_id, safe='')}"


def send(client: Client, request: Request):
    """The environment is whole here, so that a length may be a lie."""
    said: dict[str, Any] = {"wsgi.input": io.BytesIO(request.body), "CONTENT_LENGTH": str(len(request.body))}
    return client.generic("POST", request.path, request.body, **said | request.extra)


@pytest.mark.django_db
def test_hostile_requests_are_refused_or_open():
    fuzzer, doors, seen = Fuzzer(SEED), Doors(), Counter[str]()
    complaints: dict[str, list[int]] = {}
    for number in range(FROM, FROM + BODIES):
        with transaction.atomic():
            for words in doors.complaints(fuzzer.request(number), seen):
                complaints.setdefault(words, []).append(number)
            transaction.set_rollback(True)
    print(f"seed {SEED}, {BODIES} bodies: {json.dumps(dict(sorted(seen.items())))}")
    assert {words: numbers[:5] for words, numbers in complaints.items()} == {}


@pytest.mark.django_db
def test_what_does_not_open_is_told(monkeypatch):
    """The control of the test above."""
    monkeypatch.setattr(exports, "export_run", lambda run: 1 / 0)
    monkeypatch.setattr(sys.modules[__name__], "OPEN", 1)
    body = as_protobuf(make_traces(make_span({"gen_ai.operation.name": "chat"})))
    request = Request(number=2, path="/v1/traces", body=body, extra={"CONTENT_TYPE": PROTOBUF})

    assert list(Doors().complaints(request, Counter())) == ["otlp answers 500"]


# What it found, each as small as it gets


@pytest.mark.django_db
def test_a_call_id_of_another_type_is_refused_in_words():
    call = {"type": "function_call", "call_id": [], "name": "look", "arguments": "{}"}
    record = {"input": "Hi", "final_output": "x", "items": [{"type": "ToolCallItem", "raw": call}]}

    answer = post_run(project_client(), record)

    assert answer.status_code in (201, 400)


@pytest.mark.django_db
def test_a_record_with_deep_json_in_an_attribute_is_taken_in_again():
    request = make_traces(make_span({"gen_ai.operation.name": "chat", "x": "[" * 199 + "]" * 199}))
    client = project_client()
    client.post("/v1/traces", as_protobuf(request), content_type=PROTOBUF)

    record = client.get(f"/api/v1/runs/{TRACE_ID.hex()}/record").content

    assert post_run(project_client("other"), record).status_code == 201


@pytest.mark.django_db
def test_a_run_of_the_year_9999_is_exported_as_spans_that_are_taken():
    client = project_client()
    record = {"format": "agent-replay.run", "version": 1, "run_id": "r", "started_at": "9999-12-31T23:59:59Z"}
    assert post_run(client, record | {"steps": [{"kind": "other"}]}).status_code == 201

    assert decode_traces(client.get("/api/v1/runs/r/otlp").content, is_json=True).reasons == ()
