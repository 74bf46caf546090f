"""Every file that people's own code prints, at the API and on the page: taken in, or refused with what to send."""

import json
from itertools import pairwise

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from sessions_app.core.importers.documents import read_document
from sessions_app.mapping.load import load_run
from sessions_app.models import Run
from tests.api.printed import PAGE, PRINTED, page
from tests.builders import (
    make_client,
    make_key,
    make_project,
    make_record,
    make_tool_step,
    post_run,
    project_client,
    row_counts,
)
from tests.web.making import client_of, make_user

pytestmark = pytest.mark.django_db
BY_NAME = {printed.name: printed for printed in PRINTED}
TAKEN = {
    "session_file.json": ["model", "lookup_order", "model", "cancel_order", "model"],
    "session_short.json": ["model", "lookup_order", "model", "cancel_order", "model"],
    "openai_record.json": ["model", "get_weather", "get_weather", "model"],
    "snapshot.json": ["lookup_order", "check_eligibility", "snapshot of step 2"],
    "step_events.json": ["search_docs", "search_docs", "step_3"],
    "checkpoint.json": ["model", "search_docs"],
    "checkpoint_blob.json": ["search_docs"],
    "tool_recordings.json": ["search_docs", "search_docs"],
    "recorded_tool.json": ["search_docs", "search_docs"],
    "spans_console.txt": ["retrieve_docs", "search_docs", "rerank", "send_email", "generate", "gpt-4"],
    "langsmith_nested.json": ["lookup_order"],
    "cassette.yaml": ["GET prices.example.com/price", "POST orders.example.com/lookup"],
    "nock.json": ["GET prices.example.com/price"],
    "wiremock.json": ["GET /price"],
}
REFUSED = {
    "checkpoint_delta.json": "Send the checkpoints whole",
    "golden_trace.json": "Send the recording of that run",
    "attempt.json": "Send the recording of the run",
    "attempts.json": "Send the recording of the run",
    "analysis.json": "Send the session file",
    "report.txt": "Send the session file",
    "tool_results.txt": "Write it with json.dump",
    "tool_calls.txt": "Send the session file",
    "tool_calls_named.txt": "Send the session file",
    "steps.txt": "Send what it was printed of",
    "recorded_tool_places.json": "Send all of them as one object",
}


def send(client, name, **headers):
    return post_run(client, BY_NAME[name].content, **headers)


def the_run():
    return load_run(Run.objects.get())


def test_every_printed_file_is_expected_to_be_taken_or_refused():
    assert TAKEN.keys() | REFUSED.keys() == BY_NAME.keys()


@pytest.mark.parametrize("name", TAKEN)
def test_a_printed_file_is_taken_by_the_api(name):
    answer = send(project_client(), name)

    assert answer.status_code == 201, answer.content
    assert [step.name for step in the_run().steps] == TAKEN[name]


@pytest.mark.parametrize("name", TAKEN)
def test_a_printed_file_is_taken_by_the_page(name):
    shop = make_project()
    client = client_of(make_user("ann", shop))

    answer = client.post("/p/shop/upload", {"file": SimpleUploadedFile(name, BY_NAME[name].content)})

    assert answer.status_code == 200
    assert [step.name for step in the_run().steps] == TAKEN[name]


@pytest.mark.parametrize("name", TAKEN)
def test_a_printed_file_is_shown_and_given_out_like_any_run(name):
    shop = make_project()
    key, ann = make_client(make_key(shop)), client_of(make_user("ann", shop))
    send(key, name)
    row = Run.objects.select_related("session").get()

    for part in ("", "/steps", "/kit", "/record", "/report", "/otlp", "/case-file", "/checkpoints/1"):
        assert key.get(f"/api/v1/runs/{row.run_id}{part}").status_code == 200, part
    for view in ("", "?view=messages", "?view=raw", "?view=state", "?step=1"):
        assert ann.get(f"/p/shop/s/{row.session.session_id}{view}").status_code == 200, view
    again = key.post("/api/v1/runs", key.get(f"/api/v1/runs/{row.run_id}/record").content, content_type="text/plain")
    assert again.status_code == 200, again.content


@pytest.mark.parametrize(("name", "words"), REFUSED.items())
def test_what_is_no_recording_is_refused_with_what_to_send(name, words):
    shop = make_project()
    client = client_of(make_user("ann", shop))
    before = row_counts()

    answer = client.post("/p/shop/upload", {"file": SimpleUploadedFile(name, BY_NAME[name].content)})
    assert answer.status_code == 400
    assert words in answer.content.decode()

    by_api = send(project_client("other"), name)
    assert by_api.status_code == 400
    assert words in by_api.json()["error"]["message"]
    kept = ("Run", "RunContent", "ContentBlock")
    assert [row_counts()[key] for key in kept] == [before[key] for key in kept]


def test_the_page_in_the_docs_says_what_the_server_answers():
    assert PAGE.read_text(encoding="utf-8") == page()


# --- what each of them gives -------------------------------------------------------------------


def test_the_short_session_has_input_output_and_a_replayable_loop():
    send(project_client(), "session_short.json")

    run = the_run()
    assert run.input.value == "Cancel order ORD-5521, changed my mind"
    assert run.output.value == "I've cancelled order ORD-5521 for you..."
    assert Run.objects.get().verdict == "replayable"


def test_items_of_printed_objects_are_read_and_marked_as_derived():
    send(project_client(), "openai_record.json")

    run = the_run()
    tools = [(call.tool_name, call.arguments.value, call.result.value) for _, call in run.tool_calls]
    assert tools == [
        ("get_weather", '{"city":"Paris"}', "Paris: 72°F, sunny"),
        ("get_weather", '{"city":"London"}', "London: 72°F, sunny"),
    ]
    assert run.extra["derived"] == {"from": "the text of Python objects", "items": 5, "read": 5}
    assert len(run.extra["items"]) == 5


def test_items_that_cannot_be_read_are_kept_as_their_text():
    record = json.loads(BY_NAME["openai_record.json"].content)
    record["items"] = [{"type": "ToolCallItem", "raw": "<Item at 0x7f>"}]

    post_run(project_client(), record)

    run = the_run()
    assert run.extra["derived"]["read"] == 0
    assert [(step.kind, step.call.result.value) for step in run.steps] == [("other", "<Item at 0x7f>")]


def test_one_item_that_cannot_be_read_leaves_no_loop_that_could_be_replayed():
    record = json.loads(BY_NAME["openai_record.json"].content)
    record["items"][0]["raw"] = "<Item at 0x7f>"

    post_run(project_client(), record)

    assert {step.kind for step in the_run().steps} == {"other"}
    assert the_run().extra["derived"] == {"from": "the text of Python objects", "items": 5, "read": 4}
    assert Run.objects.get().verdict == "cold"


def test_a_snapshot_is_the_state_behind_its_results():
    client = project_client()
    run_id = send(client, "snapshot.json").json()["run_id"]

    steps = client.get(f"/api/v1/runs/{run_id}/steps").json()["items"]
    assert steps[2]["output_state"] == json.loads(BY_NAME["snapshot.json"].content)


def test_a_result_that_was_taken_back_stays_among_the_steps():
    before = json.loads(BY_NAME["snapshot.json"].content)
    result = {"step": 3, "tool": "cancel_order", "args": {"id": "ORD-5521"}, "result": "ERROR: already delivered"}
    after = {**before, "step_number": 3, "iteration_count": 3, "tool_results": [*before["tool_results"], result]}

    post_run(project_client(), [after, before])

    names = [step.name for step in the_run().steps]
    assert names == [
        "lookup_order", "check_eligibility", "cancel_order", "snapshot of step 3", "snapshot of step 2",
    ]  # fmt: skip


@pytest.mark.parametrize("form", ["list", "lines", "wrapped"])
def test_events_keep_all_eight_facts_in_each_form(form):
    events = json.loads(BY_NAME["step_events.json"].content)
    bodies = {
        "list": json.dumps(events),
        "lines": "\n".join(map(json.dumps, events)),
        "wrapped": json.dumps({"run_id": "run_xyz789", "events": events}),
    }
    client = project_client()
    run_id = post_run(client, bodies[form].encode()).json()["run_id"]

    steps = client.get(f"/api/v1/runs/{run_id}/steps").json()["items"]
    for event, step in zip(events, steps, strict=True):
        assert step["input_state"] == event["input_state"]
        assert step["output_state"] == event["output_state"]
        assert step["decision"] == event["decision"]
        assert step["started_at"].startswith(event["timestamp"][:23])
        if event["tool_name"] is not None:
            assert (step["name"], step["arguments"], step["result"]) == (
                event["tool_name"], event["tool_args"], event["tool_result"],
            )  # fmt: skip
    assert [step.extra["step_id"] for step in the_run().steps] == ["step_1", "step_2", "step_3"]
    assert form != "wrapped" or run_id == "run_xyz789"


def test_events_play_back_state_by_state_and_say_beforehand_that_no_replay_checks_them():
    """`replay_run` of such a file: its states are the recorded ones at each of 20 steps."""
    states = [{"step": step, "docs": [f"doc {n}" for n in range(step)]} for step in range(21)]
    told = {"decision": "search", "tool_name": "search_docs", "tool_args": {}, "tool_result": "ok"}
    events = [
        {"step_id": f"step_{n}", "input_state": before, "output_state": after, "timestamp": f"2026-02-16T10:00:{n:02}Z"}
        for n, (before, after) in enumerate(pairwise(states), start=1)
    ]
    client = project_client()
    answer = post_run(client, [{**event, **told} for event in events]).json()

    steps = client.get(f"/api/v1/runs/{answer['run_id']}/steps").json()["items"]
    assert [steps[0]["input_state"], *(step["output_state"] for step in steps)] == states
    run = Run.objects.get()
    assert run.verdict == "cold"
    assert [reason["message"] for reason in run.verdict_reasons] == [
        "No model call was recorded, so there is no request that a replay could check. "
        "The recorded states play back, step by step."
    ]


def test_a_state_that_changed_between_two_events_is_seen():
    events = json.loads(BY_NAME["step_events.json"].content)
    events[1]["input_state"]["tries"] = 7

    post_run(project_client(), events)

    assert [bool(step.state.before) for step in the_run().steps] == [False, True, False]


def test_a_second_checkpoint_sent_alone_says_to_send_a_list():
    client = project_client()
    send(client, "checkpoint.json")
    other = json.loads(BY_NAME["checkpoint.json"].content) | {"step_id": "step_6", "step_number": 6}

    answer = post_run(client, json.dumps(other).encode())

    assert answer.status_code == 409
    assert "Delete that run and send all its checkpoints together, as one list." in answer.json()["error"]["message"]


def test_arguments_of_a_recorded_tool_are_those_that_python_was_given():
    send(project_client(), "recorded_tool.json")

    assert [step.call.arguments.value for step in the_run().steps] == [["refund policy"], {"query": "refund policy"}]


def test_a_checkpoint_has_messages_state_settings_and_version():
    client = project_client()
    send(client, "checkpoint.json")

    answer = client.get("/api/v1/runs/run_abc123/checkpoints/2").json()
    said = json.loads(BY_NAME["checkpoint.json"].content)
    assert answer["state"] == said["state"]
    assert answer["run"]["agent_version"] == "v1"
    assert answer["model_config"]["model"] == "gpt-4"
    assert answer["model_config"]["settings"]["seed"] == 42
    assert answer["model_config"]["prompt_version"] == "v3"
    assert the_run().steps[1].duration_ms == 240.0


def test_checkpoints_of_one_step_each_keep_equal_calls():
    one = json.loads(BY_NAME["checkpoint_blob.json"].content)
    post_run(project_client(), [{**one, "run_id": "run_xyz789", "step_number": n} for n in (1, 2, 3)])

    assert [step.name for step in the_run().steps] == ["search_docs"] * 3


def test_checkpoints_that_repeat_all_calls_so_far_count_each_once():
    one = json.loads(BY_NAME["checkpoint_blob.json"].content)
    call = one["tool_calls"][0]
    post_run(project_client(), [{**one, "run_id": "r", "tool_calls": [call] * n, "state": {"n": n}} for n in (1, 2, 3)])

    run = the_run()
    assert [step.name for step in run.steps] == ["search_docs"] * 3
    assert all(step.state is not None for step in run.steps)


def test_checkpoints_of_two_runs_are_refused():
    one = json.loads(BY_NAME["checkpoint_blob.json"].content)
    answer = post_run(project_client(), [{**one, "run_id": "a"}, {**one, "run_id": "b"}])

    assert answer.status_code == 400
    assert "document of its own" in answer.json()["error"]["message"]


def test_spans_with_plain_attributes_are_found_by_their_run_id_and_by_their_trace():
    shop = make_project()
    client = client_of(make_user("ann", shop))
    client.post("/p/shop/upload", {"file": SimpleUploadedFile("spans.txt", BY_NAME["spans_console.txt"].content)})

    run = the_run()
    assert (run.run_id, run.input.value) == ("run_abc123", "What is the refund policy?")
    assert "run_abc123" in client.get("/find?q=run_abc123", follow=True).content.decode()
    assert "run_abc123" in client.get(f"/find?q={run.extra['trace']['trace_id']}", follow=True).content.decode()


def test_plain_attributes_of_a_good_and_a_failing_tool_are_all_there():
    client = project_client()
    send(client, "spans_console.txt")

    answer = client.get("/api/v1/runs/run_abc123")
    assert answer.status_code == 200
    good, bad = [step for step, _ in the_run().tool_calls]
    assert good.call.arguments.value == {"query": "refund policy"}
    assert good.extra["span"]["attributes"].keys() == {"success", "result_size", "duration_ms"}
    assert bad.extra["span"]["attributes"].keys() == {"success", "error", "duration_ms"}
    assert (bad.error.type, bad.error.message) == ("TimeoutError", "the mail server did not answer")


def test_a_second_trace_of_one_run_id_keeps_the_id_of_its_trace():
    client = project_client()
    send(client, "spans_console.txt")
    text = BY_NAME["spans_console.txt"].content.decode()
    trace_id = the_run().extra["trace"]["trace_id"]

    answer = post_run(client, text.replace(trace_id, "a" * 32).encode())

    assert answer.json()["items"][0]["run_id"] == "a" * 32
    assert set(Run.objects.values_list("run_id", flat=True)) == {"run_abc123", "a" * 32}


def test_plain_attributes_over_otlp_name_the_run():
    """As exporters send them: children end before their parents, each batch in a request of its own."""
    key = project_client()
    spans = read_document(BY_NAME["spans_console.txt"].content).value

    for span in spans:
        attributes = [{"key": name, "value": otlp_value(value)} for name, value in span["attributes"].items()]
        said = {
            "traceId": span["context"]["trace_id"][2:],
            "spanId": span["context"]["span_id"][2:],
            "name": span["name"],
            "startTimeUnixNano": "1000",
            "endTimeUnixNano": "2000",
            "attributes": attributes,
            **({"parentSpanId": span["parent_id"][2:]} if span["parent_id"] else {}),
        }
        body = {"resourceSpans": [{"scopeSpans": [{"spans": [said]}]}]}
        assert key.post("/v1/traces", json.dumps(body), content_type="application/json").status_code == 200

    answer = key.get("/api/v1/runs/run_abc123")
    assert answer.json()["run_id"] == "run_abc123"
    assert key.get(f"/api/v1/runs/{spans[0]['context']['trace_id'][2:]}").json()["run_id"] == "run_abc123"
    assert Run.objects.count() == 1


def otlp_value(value):
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}


def test_a_run_gets_its_name_when_its_topmost_span_comes_last():
    client = project_client()
    spans = BY_NAME["spans_console.txt"].content.decode().replace("\n}\n{", "\n}\x00{").split("\x00")

    for span in spans:
        post_run(client, span.encode())

    assert list(Run.objects.values_list("run_id", "session__session_id")) == [("run_abc123", "run_abc123")]


# --- recorded HTTP of a run --------------------------------------------------------------------


def a_run_with_two_calls(client):
    price = make_tool_step("get_price", call_id="c1", arguments={"item": "widget"}, result='{"price": 12')
    order = make_tool_step("lookup_order", call_id="c2", arguments={"order": "ORD-5521"}, result="found")
    post_run(client, make_record("r_8821", price, order))


@pytest.mark.parametrize(("name", "steps"), [("cassette.yaml", [1, 2]), ("nock.json", [1]), ("wiremock.json", [1])])
def test_recorded_http_is_put_onto_the_calls_it_belongs_to(name, steps):
    client = project_client()
    a_run_with_two_calls(client)

    answer = client.post("/api/v1/runs/r_8821/exchanges", BY_NAME[name].content, content_type="text/plain")

    assert (answer.status_code, answer.json()) == (200, {"run_id": "r_8821", "steps": steps})
    http = the_run().steps[0].http
    assert (http.status, http.response_body.content) == (429, b'{"price": 12')
    assert "sk-not-to-be-kept" not in str(http)


def test_recorded_http_that_fits_no_call_is_refused_and_changes_nothing():
    client = project_client()
    post_run(client, make_record("r_8821", make_tool_step("ping", arguments={}, result="pong")))
    before = bytes(Run.objects.get().content_digest)

    answer = client.post("/api/v1/runs/r_8821/exchanges", BY_NAME["nock.json"].content, content_type="text/plain")

    assert answer.status_code == 400
    assert "No exchange matches" in answer.json()["error"]["message"]
    assert bytes(Run.objects.get().content_digest) == before


def test_a_recording_is_no_recorded_http():
    client = project_client()
    a_run_with_two_calls(client)

    body = BY_NAME["session_file.json"].content
    answer = client.post("/api/v1/runs/r_8821/exchanges", body, content_type="text/plain")

    assert answer.status_code == 400
    assert "not recorded HTTP" in answer.json()["error"]["message"]


def test_the_page_attaches_recorded_http_to_a_run():
    shop = make_project()
    client = client_of(make_user("ann", shop))
    record = json.dumps(make_record("r_8821", make_tool_step(arguments={"item": "widget"}, result='{"price": 12')))
    client.post("/p/shop/upload", {"file": SimpleUploadedFile("r.json", record.encode())})

    file = SimpleUploadedFile("prices.yaml", BY_NAME["cassette.yaml"].content)
    page = client.post("/p/shop/upload", {"file": file, "run_id": "r_8821"}).content.decode()
    assert "1 of 2 exchanges attached" in page
    assert "The others match no tool call of this run." in page

    missing = client.post("/p/shop/upload", {"file": SimpleUploadedFile("n.json", b"[]"), "run_id": "nobody"})
    assert missing.status_code == 400
    assert "There is no run nobody" in missing.content.decode()
