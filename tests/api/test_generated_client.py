"""A client that is generated from the description calls every operation of a real server."""

import json
import os
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from sessions_app.api import examples
from tests.api.described import operations

PACKAGE = "generated_client"
OPERATIONS = {operation["operationId"]: operation["tags"][0].replace(" ", "_") for operation in operations().values()}


class GeneratedClient:
    """The generated functions by their names; which of them were called."""

    def __init__(self, url, token):
        self._client = import_module(PACKAGE).AuthenticatedClient(base_url=url, token=token)
        self.models = import_module(f"{PACKAGE}.models")
        self.called = set()

    def __call__(self, name, *arguments, status=None, **options):
        """The parsed answer, of a status that is good or as expected."""
        function = import_module(f"{PACKAGE}.api.{OPERATIONS[name]}.{name}").sync_detailed
        answer = function(*arguments, client=self._client, **options)
        self.called.add(name)
        assert answer.status_code == status or (status is None and answer.status_code < 300), answer.content
        assert answer.parsed is not None or answer.status_code == 204, name
        return answer.parsed

    def close(self):
        self._client.get_httpx_client().close()

    def body(self, model, value):
        return getattr(self.models, model).from_dict(value)

    def wait_for(self, name, made, *states):
        until = time.monotonic() + 60
        while (found := self(name, made)).state not in states:
            assert time.monotonic() < until, found
            time.sleep(0.1)
        return found


@pytest.fixture(scope="module")
def generated(running_instance, tmp_path_factory):
    folder = tmp_path_factory.mktemp("generated")
    document = folder / "openapi.json"
    key = {"Authorization": f"Bearer {running_instance.api_key}"}
    with urlopen(Request(f"{running_instance.url}/api/v1/openapi.json", headers=key)) as answer:
        document.write_bytes(answer.read())
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none", "--fail-on-warning"]
    beside = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    subprocess.run(
        [*command, "--path", str(document), "--output-path", str(folder / PACKAGE)], check=True, env=beside, cwd=folder
    )
    sys.path.insert(0, str(folder))
    client = GeneratedClient(running_instance.url, running_instance.api_key)
    client.managing = import_module(PACKAGE).AuthenticatedClient(
        base_url=running_instance.url, token=running_instance.connection["my_project_api_key"]
    )
    yield client
    client.managing.get_httpx_client().close()
    client.close()
    sys.path.remove(str(folder))


def test_a_generated_client_calls_every_operation(generated):
    look_around(generated)
    send_and_read(generated)
    replay_and_fork(generated)
    keep_as_golden(generated)
    take_back(generated)
    manage(generated)

    assert generated.called == OPERATIONS.keys()


def look_around(api):
    me = api("get_me")
    assert me.key.scope == "full"
    assert [project.project for project in api("list_projects").items] == [me.project.project]
    assert api("get_version").api == "1"
    assert "order_desk" in {agent.name for agent in api("list_agents").items}


def send_and_read(api):
    record = {**examples.RECORD, "run_id": "generated-1", "session_id": "generated"}
    run = api("post_run", body=record)
    assert run.run_id == "generated-1"
    assert run.verdict.verdict == "replayable"
    # Other tests send the examples to the same server as they are printed.
    several = json.loads(json.dumps(examples.RECORDINGS["several"]).replace("weather-", "client-weather-"))
    assert {item.run_id for item in api("post_run", body=several).items} >= {"client-weather-2"}
    api("post_exchanges", "client-weather-1", body=examples.EXCHANGES["a cassette of vcrpy"])
    assert "generated-1" in {item.run_id for item in api("list_runs", limit=500).items}
    assert api("list_sessions").items
    assert api("get_session", run.session_id).runs[0].run_id == "generated-1"
    assert api("post_tags", run.session_id, body=api.body("TagRequest", examples.TAGS)).tags == examples.TAGS["add"]
    assert api("get_run", "generated-1").output == "It is sunny in Lisbon."
    steps = api("list_steps", "generated-1").items
    assert [step.kind for step in steps] == ["model", "tool", "model"]
    assert api("get_payload", steps[1].result_digest).payload.read() == "sunny, 24 °C".encode()
    assert api("get_kit", "generated-1").total == 12
    assert api("get_record", "generated-1").to_dict()["run_id"] == "generated-1"
    for form in ("JSON", "MD", "TXT", "HTML"):
        assert "generated-1" in api("get_report", "generated-1", format_=getattr(api.models.GetReportFormat, form))
    assert api("get_otlp", "generated-1").to_dict()["resourceSpans"]
    assert api("get_case_file", "generated-1").payload.read(2) == b"PK"
    assert api("get_checkpoint", "generated-1", 2).step == 2
    assert api("list_state_changes", "generated-1").items == []
    assert api("get_comparison", left="generated-1", right="client-weather-2").left == "generated-1"
    assert api("get_run", "nothing", status=404).error.code == "not_found"


def replay_and_fork(api):
    asked = api("post_replay", "generated-1", body=api.body("ReplayRequest", {"mode": "recording"}))
    assert api.wait_for("get_replay", asked.replay_id, "done").verdict == "reproduced"
    assert asked.replay_id in {item.replay_id for item in api("list_replays").items}
    assert "generated-1" in api("get_replay_report", asked.replay_id)
    assert asked.replay_id in {item.replay_id for item in api("list_replays_of_run", "generated-1").items}
    pausing = {**examples.FORK, "at_step": 1, "breakpoints": [{"step": 2}, {"step": 3}]}
    paused = api("post_fork", "generated-1", body=api.body("ForkRequest", pausing)).replay_id
    api.wait_for("get_replay", paused, "paused")
    api("step_replay", paused)
    api.wait_for("get_replay", paused, "paused")
    api("continue_replay", paused)
    assert api.wait_for("get_replay", paused, "done", "paused").mode == "fork"
    api("cancel_replay", paused)
    assert api("list_forks", "generated-1").items
    refused = api("answer_replay", paused, body=api.body("AnswerRequest", {"value": 1}), status=400)
    assert refused.error.message
    api("post_resume", "generated-1", body=api.body("ResumeRequest", examples.RESUME))
    refused = api("post_samples", "generated-1", body=api.body("SamplesRequest", examples.SAMPLES), status=400)
    assert "live model" in refused.error.message
    observe(api)
    session = api("post_session_replay", "generated", body=api.body("ReplayRequest", {})).session_replay_id
    assert api.wait_for("get_session_replay", session, "done").verdict == "reproduced"
    assert "generated" in api("get_session_replay_report", session)
    api("cancel_session_replay", session)


def observe(api):
    seen = {**examples.OBSERVED, "record": {**examples.RECORD, "run_id": "generated-seen"}}
    handed_in = api("post_observed_replay", "generated-1", body=api.body("ObservedRequest", seen))
    assert handed_in.verdict == "reproduced"


def keep_as_golden(api):
    golden = api("post_golden", body=api.body("GoldenRequest", {**examples.GOLDEN, "run_id": "generated-1"})).golden_id
    assert golden in {item.golden_id for item in api("list_goldens").items}
    assert api("get_golden", golden).run_id == "generated-1"
    run = api("post_golden_run", golden, body=api.body("GoldenRunRequest", {})).golden_run_id
    assert api.wait_for("get_golden_run", run, "done").result == "pass"
    seen = {**examples.OBSERVED, "record": {**examples.RECORD, "run_id": "generated-golden"}}
    assert api("post_observed_golden_run", golden, body=api.body("ObservedRequest", seen)).result == "pass"
    batch = api("post_golden_batch", body=api.body("BatchRequest", {"goldens": [golden]})).golden_batch_id
    assert api("get_golden_batch", batch).progress.total == 1
    assert api("get_golden_batch_report", batch)
    api("cancel_golden_batch", batch)
    api("resume_golden_batch", batch)
    assert api("post_golden_not_run", golden, body=api.body("GoldenNotRun", examples.GOLDEN_NOT_RUN)).result
    assert "generated-1" in api("get_golden_dataset")
    assert isinstance(api("get_run_dataset"), str)
    assert api("export_goldens").payload.read(2) == b"PK"
    failed = {**examples.RECORD, "run_id": "generated-failed", "status": "error", "error": {"message": "down"}}
    assert api("post_run", body=failed).run_id
    # Runs of other tests may have failed on the same server as well.
    assert "generated-failed" in {group.representative for group in api("list_failure_groups").items}
    replays = {"agents": ["order_desk"]}
    assert api("post_failure_replays", body=api.body("FailureReplaysRequest", replays)).replays
    assert api("export_golden", golden).payload.read(2) == b"PK"
    api("post_quarantine", golden, body=api.body("QuarantineRequest", examples.QUARANTINE))
    api("delete_quarantine", golden)
    api("delete_golden", golden)


def take_back(api):
    marked = api("post_cold_case", "client-weather-2", body=api.body("ColdCaseRequest", examples.COLD_CASE))
    assert marked.marked_at.tzinfo is not None
    assert api("list_cold_cases").total >= 1
    api("delete_cold_case", "client-weather-2")
    note = api("post_note", "client-weather-2", body=api.body("NoteRequest", examples.NOTE))
    assert [each.text for each in api("list_notes", "client-weather-2").items] == [examples.NOTE["text"]]
    api("delete_note", "client-weather-2", note.note_id)
    api("delete_run", "client-weather-2")
    assert api("get_run", "client-weather-2", status=404).error.code == "not_found"


def manage(api):
    """The key of the examples manages nothing; that of the own project does."""
    examples_key, api._client = api._client, api.managing
    made = api("post_project", body=api.body("NameRequest", examples.PROJECT))
    assert made.name == examples.PROJECT["name"]
    own = api("get_me").project.project
    assert api("patch_project", own, body=api.body("NameRequest", {"name": "Renamed"})).name == "Renamed"
    assert [member.role for member in api("list_members").items] == ["admin"]
    role = api.body("RoleRequest", examples.ROLE)
    assert api("patch_member", "admin", body=role, status=409).error.code == "last_administrator"
    assert api("delete_member", "nobody", status=404).error.code == "not_found"
    invited = api("post_invitation", body=role)
    assert invited.url.startswith("http://127.0.0.1")
    assert [each.invitation_id for each in api("list_invitations").items] == [invited.invitation_id]
    api("delete_invitation", invited.invitation_id)
    key = api("post_key", body=api.body("KeyRequest", examples.KEY))
    rotated = api("rotate_key", key.key_id, body=api.body("RotationRequest", examples.ROTATION))
    assert {key.key_id, rotated.key_id} <= {each.key_id for each in api("list_keys").items}
    api("delete_key", rotated.key_id)
    redact_what_is_stored(api)
    model = api("post_model", body=api.body("ModelRequest", examples.CONNECTED_MODEL))
    assert [each.name for each in api("list_models").items] == [model.name]
    changes = api.body("ModelChanges", examples.MODEL_CHANGES)
    assert api("patch_model", model.model_id, body=changes).requests_per_day == 500
    api("delete_model", model.model_id)
    api._client = examples_key


def redact_what_is_stored(api):
    assert api("post_redaction_job").state == "counting"
    until = time.monotonic() + 60
    while (job := api("get_redaction_job")).state != "counted":
        assert time.monotonic() < until, job
        time.sleep(0.1)
    assert job.counts.to_dict() == {}
    api("delete_redaction_job")
    assert api("start_redaction_job", status=409).error.code == "not_counted"
