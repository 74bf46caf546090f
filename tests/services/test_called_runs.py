"""What went wrong in the runs of sub-agents is told at the step that called them."""

import json
from typing import Any

import pytest

from sessions_app.models import Run
from sessions_app.services.ingest import ingest_document
from sessions_app.services.reports import report_of_run
from tests.builders import make_project, make_record, make_tool_step

pytestmark = pytest.mark.django_db

DENIED = {"type": "HTTPError", "message": "403 Forbidden"}
CALL = {"kind": "agent", "name": "researcher", "run_id": "child", "result": "Northwind made USD 1.64 bn."}
BRIEF = "Northwind made USD 1.64 bn, and Quarry USD 0.87 bn."


def ingested(*records: dict[str, Any]) -> list[str]:
    """What the last of them is said to have of sub-agents; its report says the same."""
    project = make_project()
    *_, run = (ingest_document(project, json.dumps(record).encode()).run for record in records)
    found = [each["message"] for each in run.anomalies if each["code"] == "sub_agent_unsaid"]
    told = [each.message for each in report_of_run(run).anomalies if each.code == "sub_agent_unsaid"]
    assert told == found
    return found


def child(*steps: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return make_record("child", *steps, **{"session_id": "s", "status": "ok", "output": "USD 1.64 bn.", **fields})


def parent(output: str = BRIEF) -> dict[str, Any]:
    return make_record("parent", CALL, session_id="s", status="ok", output=output)


@pytest.mark.parametrize(
    ("called", "words"),
    [
        (child(make_tool_step("open_filing", error=DENIED)), "Error swallowed: open_filing failed"),
        (child(status="error", error=DENIED, output=None), "HTTPError"),
    ],
    ids=["a call failed", "ended in an error"],
)
def test_what_went_wrong_in_a_called_run_is_told(called, words):
    (message,) = ingested(called, parent())

    assert message.startswith(f"researcher, a sub-agent, went wrong: {words}")
    assert message.endswith("; the answer does not say so")


def test_runs_that_were_called_know_by_which_step():
    """Their recordings need not say so."""
    project = make_project()
    records = [make_record(name, session_id=session) for name, session in (("child", "s"), ("other", "t"))]
    calls = make_record("parent", make_tool_step(), CALL, {**CALL, "run_id": "other"}, session_id="s")

    for record in (*records, calls):
        ingest_document(project, json.dumps(record).encode())

    found = dict(Run.objects.values_list("run_id", "parent_run_id"))
    assert found == {"child": "parent", "other": None, "parent": None}
    assert Run.objects.get(run_id="child").parent_step == 2


def test_a_called_run_that_arrives_after_its_caller_knows_by_which_step_and_is_told_there():
    project = make_project()
    calls = make_record("parent", make_tool_step(), CALL, session_id="s", status="ok", output=BRIEF)

    for record in (calls, child(make_tool_step("open_filing", error=DENIED)), make_record("stranger", session_id="s")):
        ingest_document(project, json.dumps(record).encode())

    runs = {run.run_id: run for run in Run.objects.all()}
    called = {run_id: (run.parent_run_id, run.parent_step) for run_id, run in runs.items()}
    assert called == {"parent": (None, None), "child": ("parent", 2), "stranger": (None, None)}
    assert "sub_agent_unsaid" in [each["code"] for each in runs["parent"].anomalies]
    assert "first anomaly" in runs["parent"].story


def test_runs_that_call_each_other_have_one_caller():
    project = make_project()
    for name, other in (("one", "two"), ("two", "one")):
        record = make_record(name, {**CALL, "run_id": other}, session_id="s")
        ingest_document(project, json.dumps(record).encode())

    assert dict(Run.objects.values_list("run_id", "parent_run_id")) == {"one": None, "two": "one"}


FAILED = child(make_tool_step("open_filing", error=DENIED))


@pytest.mark.parametrize(
    "records",
    [
        [child(make_tool_step("open_filing", result="USD 1.64 bn")), parent()],
        [FAILED, parent("There is no figure for Northwind.")],
        [parent()],
    ],
    ids=["went well", "told", "did not arrive"],
)
def test_a_called_run_of_which_nothing_wrong_is_hidden_is_in_order(records):
    assert ingested(*records) == []
