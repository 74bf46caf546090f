"""A run as OTLP JSON and as a case file, out of one project and into another."""

import io
import json
import zipfile

import pytest
from django.urls import reverse

from sessions_app.core.errors import RecordError, RunConflict
from sessions_app.core.formats.native import encode_native
from sessions_app.core.otlp.decode import decode_traces
from sessions_app.mapping.load import load_run
from sessions_app.models import Replay, Run
from sessions_app.services.case_files import case_of, import_case
from sessions_app.services.ingest import ingest_document
from sessions_app.services.spans import receive
from tests.builders import (
    RECORDS,
    SESSION_FILE,
    each_sample,
    make_client,
    make_key,
    make_project,
    make_record,
    make_tool_step,
    post_run,
    project_client,
    row_counts,
)
from tests.recorder.replaying import assert_promise_kept, replayed
from tests.web.making import client_of, make_user

pytestmark = pytest.mark.django_db
JUDGED = ("run_id", "verdict", "verdict_step", "verdict_reasons", "kit", "anomalies", "story", "content_digest")


@pytest.fixture
def shop():
    return make_project()


@pytest.fixture
def client(shop):
    return make_client(make_key(shop))


def judged(project, *names):
    rows = Run.objects.filter(project=project).order_by("run_id").values(*names)
    return [
        {key: bytes(value) if isinstance(value, memoryview) else value for key, value in row.items()} for row in rows
    ]


def replay_of(project, run):
    """The run that one replay gives, stored as the worker stores it."""
    result, produced = replayed(encode_native(load_run(run)))
    assert produced is not None
    assert (result.verdict == "reproduced") == (run.verdict == "replayable")
    return ingest_document(project, encode_native(produced)).run


def entries_of(case):
    with zipfile.ZipFile(io.BytesIO(case)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


# --- case files --------------------------------------------------------------------------------


def test_a_case_file_is_a_zip_to_keep_and_not_to_open(client):
    post_run(client, make_record("r", make_tool_step(result="one")))

    answer = client.get("/api/v1/runs/r/case-file")

    assert (answer.status_code, answer["Content-Type"]) == (200, "application/zip")
    assert answer["Content-Disposition"] == 'attachment; filename="case.zip"'
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert json.loads(entries_of(answer.content)["records/0001.json"])["run_id"] == "r"


@each_sample
def test_a_case_gives_the_same_verdict_in_another_project_and_the_same_bytes_again(shop, sample):
    run = ingest_document(shop, sample.read_bytes()).run
    replay_of(shop, run)
    case, other = case_of(run), make_project("other")

    taken_in = import_case(other, case)

    assert [each.created for each in taken_in] == [True, True]
    assert taken_in[0].run.run_id == run.run_id
    assert judged(other, *JUDGED) == judged(shop, *JUDGED)
    assert [case_of(each.run) for each in taken_in[:1]] == [case]
    assert [each.created for each in import_case(other, case)] == [False, False]
    assert_promise_kept(encode_native(load_run(taken_in[0].run)))


def test_a_case_holds_the_run_it_is_about_first_then_its_origin_then_its_replays(shop):
    run = ingest_document(shop, SESSION_FILE.read_bytes()).run
    replay = replay_of(shop, run)
    ingest_document(shop, json.dumps(make_record("unrelated")).encode())

    def runs_in(case):
        return json.loads(entries_of(case)["manifest.json"])["runs"]

    assert runs_in(case_of(run)) == [run.run_id, replay.run_id]
    assert runs_in(case_of(replay)) == [replay.run_id, run.run_id]
    report = json.loads(entries_of(case_of(run))["report.json"])
    assert [attempt["outcome"] for attempt in report["attempts"]] == ["reproduced"]


def test_a_replay_that_went_another_way_is_told_as_different(shop):
    run = ingest_document(shop, json.dumps(make_record("r", make_tool_step(result="one"))).encode()).run
    parent = {"origin": "replay", "parent": {"run_id": "r"}}
    ingest_document(shop, json.dumps(make_record("r_replay_1", make_tool_step(result="two"), **parent)).encode())

    report = json.loads(entries_of(case_of(run))["report.json"])

    assert [attempt["outcome"] for attempt in report["attempts"]] == ["different"]


def test_a_replay_that_ended_with_its_recording_is_told_as_one_in_part(shop):
    whole = json.loads(SESSION_FILE.read_text())
    cut = {**whole, "messages": whole["messages"][:4], "tool_calls": whole["tool_calls"][:1]}
    run = ingest_document(shop, json.dumps(cut).encode()).run
    assert run.verdict == "replayable_to_step"
    replay_of(shop, run)

    report = json.loads(entries_of(case_of(run))["report.json"])

    told = [(attempt["outcome"], attempt["matches_original"]) for attempt in report["attempts"]]
    assert told == [("partial", None)]


@pytest.mark.parametrize(("state", "outcomes"), [("done", ["reproduced"]), ("cancelled", [])])
def test_a_replay_that_was_cancelled_half_way_is_no_attempt_of_a_case(shop, state, outcomes):
    run = ingest_document(shop, SESSION_FILE.read_bytes()).run
    made = replay_of(shop, run)
    Replay.objects.create(project=shop, run=run, content=run.content, number=1, state=state, produced_run=made)

    report = json.loads(entries_of(case_of(run))["report.json"])

    assert [attempt["outcome"] for attempt in report["attempts"]] == outcomes


def test_runs_of_another_project_are_no_part_of_a_case(shop):
    run = ingest_document(shop, SESSION_FILE.read_bytes()).run
    other = make_project("other")
    replay_of(other, ingest_document(other, SESSION_FILE.read_bytes()).run)

    assert len(json.loads(entries_of(case_of(run))["manifest.json"])["runs"]) == 1


def test_a_case_shows_what_was_redacted_and_stays_as_it_is(shop):
    record = make_record("r", make_tool_step(result="write to anna@example.org"))
    run = ingest_document(shop, json.dumps(record).encode()).run
    case, other = case_of(run), make_project("other")

    import_case(other, case)

    assert json.loads(entries_of(case)["redaction.json"])["placeholders"] == {"email": 1}
    assert case_of(Run.objects.get(project=other)) == case


def test_a_changed_case_is_refused_and_nothing_is_stored(shop):
    case = bytearray(case_of(ingest_document(shop, SESSION_FILE.read_bytes()).run))
    case[case.index(b'"format":"agent-replay.run"')] ^= 1
    other = make_project("other")
    before = row_counts()

    with pytest.raises(RecordError, match=r"records/0001\.json was changed"):
        import_case(other, bytes(case))
    assert row_counts() == before


def test_a_case_of_which_one_run_is_there_with_other_content_is_refused_whole(shop):
    run = ingest_document(shop, SESSION_FILE.read_bytes()).run
    replay = replay_of(shop, run)
    other = make_project("other")
    ingest_document(other, json.dumps(make_record(replay.run_id)).encode())
    before = row_counts()

    with pytest.raises(RunConflict):
        import_case(other, case_of(run))
    assert row_counts() == before


# --- OTLP --------------------------------------------------------------------------------------


def test_a_run_is_given_as_otlp_json(client):
    post_run(client, make_record("r/1", make_tool_step(result="one")))

    answer = client.get("/api/v1/runs/r/1/otlp")

    assert (answer.status_code, answer["Content-Type"]) == (200, "application/json")
    assert [span.name for span in decode_traces(answer.content, is_json=True).spans] == [
        "invoke_agent",
        "execute_tool search",
    ]


def taken_back(export):
    """The run that an export gives in another project."""
    other = make_project("other")
    receive(other, decode_traces(export, is_json=True).spans)
    return Run.objects.get(project=other)


@each_sample
def test_an_export_that_comes_in_again_has_the_same_verdict_and_replays_alike(client, sample):
    run_id = post_run(client, sample).json()["run_id"]

    copy = taken_back(client.get(f"/api/v1/runs/{run_id}/otlp").content)

    names = ("verdict", "verdict_step", "verdict_reasons", "story")
    assert judged(copy.project, *names) == judged(Run.objects.get(run_id=run_id, project__slug="shop").project, *names)
    assert_promise_kept(encode_native(load_run(copy)))


def test_an_export_with_a_changed_tool_result_replays_otherwise(client):
    run_id = post_run(client, RECORDS / "parallel-tools.messages.json").json()["run_id"]
    request = client.get(f"/api/v1/runs/{run_id}/otlp").json()
    attributes = request["resourceSpans"][0]["scopeSpans"][0]["spans"][2]["attributes"]
    result = next(each for each in attributes if each["key"] == "gen_ai.tool.call.result")
    result["value"]["stringValue"] = '"something else"'

    copy = taken_back(json.dumps(request).encode())

    replay, _ = replayed(encode_native(load_run(copy)))
    assert replay.verdict == "diverged"


# --- pages and keys ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["otlp", "case-file"])
def test_exports_are_for_those_who_may_read(client, kind):
    post_run(client, make_record("r"))

    assert project_client("other").get(f"/api/v1/runs/r/{kind}").status_code == 404
    assert client.get(f"/api/v1/runs/none/{kind}").status_code == 404
    assert make_client(None).get(f"/api/v1/runs/r/{kind}").status_code == 401


@pytest.mark.parametrize(("name", "ending"), [("otlp", "otlp.json"), ("case_file", "case.zip")])
def test_the_page_of_a_run_offers_the_files(client, shop, name, ending):
    post_run(client, make_record("r"))
    bob = client_of(make_user("bob", shop))
    address = reverse(name, args=["shop", "r"])

    answer = bob.get(address)

    assert f'href="{address}?run=r"' in bob.get(reverse("session", args=["shop", "r"])).content.decode()
    assert (
        f'href="{address}?run=r"' in bob.get(reverse("session", args=["shop", "r"]), {"view": "raw"}).content.decode()
    )
    assert answer["Content-Disposition"] == f'attachment; filename="r.{ending}"'
    assert answer.content == client.get(f"/api/v1/runs/r/{name.replace('_', '-')}").content
    assert client_of(make_user("eve")).get(address).status_code == 404
