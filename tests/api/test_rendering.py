"""Answers are JSON whatever was recorded; the list, which is written past its schema, is what the schema says."""

import json

import pytest
from django.test import RequestFactory
from pydantic import ValidationError

from sessions_app.api.rendering import QuickRenderer
from sessions_app.api.schemas import SessionList
from tests.builders import SAMPLES, make_client, make_key, make_project, make_record, post_run

pytestmark = pytest.mark.django_db
ODD = {
    "long number": {"n": 10**40},
    "half a pair": {"text": "\ud800"},
    "a text of its own class": {"text": type("Words", (str,), {})("x")},
    "deep": json.loads("[" * 150 + "]" * 150),
    "plain": {"a": [1, 2.5, None, True, "é☃𝄞", 1e300]},
}


@pytest.mark.parametrize("value", ODD.values(), ids=ODD)
def test_what_is_answered_is_read_back(value):
    text = QuickRenderer().render(RequestFactory().get("/"), value, response_status=200)

    assert json.loads(text) == value


@pytest.fixture
def full():
    client = make_client(make_key(make_project()))
    for sample in SAMPLES:
        client.post("/api/v1/runs", sample.read_bytes(), content_type="application/json")
    post_run(client, make_record("bad", error={"type": "Broken", "message": '\u2603 \\ " \u0000'}, status="error"))
    client.post("/api/v1/runs/bad/cold-case", data={"reason": "gone"}, content_type="application/json")
    return client


def test_the_list_is_what_its_schema_says(full):
    answer = full.get("/api/v1/sessions?limit=500")
    said = answer.json()

    assert answer["Content-Type"] == full.get("/api/v1/cold-cases")["Content-Type"]
    assert SessionList.model_validate(said, strict=True).model_dump(mode="json") == said
    del said["items"][0]["runs"][0]["anomalies"]
    with pytest.raises(ValidationError):
        SessionList.model_validate(said, strict=True)


def test_the_list_says_of_a_run_what_the_run_says(full):
    listed = [run for item in full.get("/api/v1/sessions?limit=500").json()["items"] for run in item["runs"]]
    cut = {"input", "output", "error"}

    assert len(listed) >= len(SAMPLES)
    assert any(run["anomalies"] for run in listed)
    assert any(run["verdict"]["reasons"] for run in listed)
    for run in listed:
        whole = full.get(f"/api/v1/runs/{run['run_id']}").json()
        assert {key: run[key] for key in run.keys() - cut} == {key: whole[key] for key in run.keys() - cut}
