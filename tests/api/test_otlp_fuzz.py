"""Hostile requests at the doors for recordings: no status but the known ones, and whatever was taken in then opens.

`FUZZ_BODIES=20000` sends more, `FUZZ_SEED=7` others, `FUZZ_FROM=1234` starts at that number.
"""

import io
import json
import os
import zipfile
from collections import Counter
from collections.abc import Iterator
from urllib.parse import quote, urlencode

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse

from sessions_app.core.otlp.decode import decode_traces
from sessions_app.models import Project, Run, Trace
from sessions_app.services.verification import problems
from tests.builders import make_client, make_key, make_project
from tests.trials.mutations import Fuzzer, Request
from tests.web.making import client_of, make_user

BODIES = int(os.environ.get("FUZZ_BODIES") or 300)
SEED = int(os.environ.get("FUZZ_SEED") or 1)
FROM = int(os.environ.get("FUZZ_FROM") or 0)
STATUSES = {200, 201, 400, 401, 403, 404, 409, 413, 415}
"""No 503: nothing is overloaded here and the database is well."""
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
        if answer.status_code in (200, 201):
            yield from self.what_does_not_open()

    def what_does_not_open(self) -> Iterator[str]:
        for trace in Trace.objects.exclude(problem=None).exclude(problem=CONFLICT):
            yield f"no run is made: {trace.problem}"
        for run in Run.objects.filter(project=self.project).select_related("session"):
            yield from self.what_is_wrong_with_pages(run)
            yield from self.what_is_wrong_with_files(run)
        yield from (f"verify: {problem}" for problem in problems())

    def what_is_wrong_with_pages(self, run: Run) -> Iterator[str]:
        page, this = [self.project.slug, run.session.session_id], {"run": run.run_id}
        addresses = {"page": reverse("session", args=page, query=this)}
        addresses["diff"] = reverse("diff", args=[self.project.slug, run.run_id, run.run_id])
        if run.step_count:
            addresses["page of a step"] = reverse("step", args=[*page, run.step_count], query=this)
        for name, address in addresses.items():
            if (status := self.member.get(address).status_code) != 200:
                yield f"{name} answers {status}"

    def what_is_wrong_with_files(self, run: Run) -> Iterator[str]:
        """All that the API says of it; what is a file for others is taken in again."""
        answers = {name: self.sender.get(address) for name, address in api_addresses(run).items()}
        wrong = {name: answer.status_code for name, answer in answers.items() if answer.status_code != 200}
        yield from (f"{name} answers {status}" for name, status in wrong.items())
        if not wrong:
            yield from self.what_does_not_return({name: answer.content for name, answer in answers.items()})

    def what_does_not_return(self, files: dict[str, bytes]) -> Iterator[str]:
        again = self.receiver.post("/api/v1/runs", files["record"], content_type="application/json")
        if again.status_code not in (200, 201):
            yield f"the record is refused: {again.status_code} {again.content[:150]!r}"
        if refused := decode_traces(files["otlp"], is_json=True).reasons:
            yield f"spans of the export are refused: {refused}"
        if zipfile.ZipFile(io.BytesIO(files["case-file"])).testzip():
            yield "the case file is broken"


def api_addresses(run: Run) -> dict[str, str]:
    address = f"/api/v1/runs/{quote(run.run_id, safe='')}"
    found = {name: f"{address}/{name}" for name in ("steps", "kit", "record", "otlp", "case-file")}
    found |= {f"report {form}": f"{address}/report?format={form}" for form in REPORTS}
    same = urlencode({"left": run.run_id, "right": run.run_id})
    return found | {"run": address, "comparison": f"/api/v1/comparisons?{same}"}


def send(client: Client, request: Request):
    environment = {"wsgi.input": io.BytesIO(request.body), "CONTENT_LENGTH": str(len(request.body))} | request.extra
    return client.generic("POST", request.path, request.body, **environment)


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
