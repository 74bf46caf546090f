"""Giving a run up, and taking that back."""

import json

import pytest

from sessions_app.core.errors import RecordError
from sessions_app.models import ColdCase
from sessions_app.services.cold_cases import mark_cold, take_back
from sessions_app.services.ingest import ingest_document
from tests.builders import make_project, make_record

pytestmark = pytest.mark.django_db


@pytest.fixture
def run():
    return ingest_document(make_project(), json.dumps(make_record()).encode()).run


def test_a_mark_keeps_what_was_missing(run):
    case = mark_cold(run=run, reason="  no logs ")

    assert case.reason == "no logs"
    assert case.missing == [line["key"] for line in run.kit["lines"] if line["status"] != "captured"]
    assert case.missing


def test_marking_again_replaces_the_mark(run):
    mark_cold(run=run, reason="one")
    mark_cold(run=run, reason="two")

    assert [case.reason for case in ColdCase.objects.all()] == ["two"]


@pytest.mark.parametrize("reason", ["", " \n", "x" * 2001, "a\0b"])
def test_a_mark_needs_a_reason(run, reason):
    with pytest.raises(RecordError) as caught:
        mark_cold(run=run, reason=reason)

    assert caught.value.field == "reason"
    assert not ColdCase.objects.exists()


def test_taking_back_says_whether_there_was_a_mark(run):
    mark_cold(run=run, reason="one")

    assert [take_back(run=run), take_back(run=run)] == [True, False]
