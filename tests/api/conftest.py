"""Every answer that a test of the API gets is one that the description foresees."""

import gzip

import pytest
from django.test import Client

from tests.api.described import path_of, problem_of


@pytest.fixture(autouse=True)
def described_answers(monkeypatch):
    ask = Client.request

    def request(self, **environment):
        answer = ask(self, **environment)
        if answer.request["PATH_INFO"].startswith("/api/v1/"):
            assert (problem := problem_with(answer)) is None, problem
        return answer

    monkeypatch.setattr(Client, "request", request)


def problem_with(answer):
    method = answer.request["REQUEST_METHOD"]
    if answer.status_code == 405 or method == "HEAD":
        return None
    path = path_of(answer.resolver_match.route)
    content = gzip.decompress(answer.content) if "Content-Encoding" in answer else answer.content
    return problem_of(method, path, answer.status_code, answer.get("Content-Type", ""), content)
