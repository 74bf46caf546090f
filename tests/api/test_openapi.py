"""The description of the API: complete enough to generate a client from."""

import json
import re

import pytest

from sessions_app.api.docs import GROUPS
from sessions_app.models import Run
from tests.api.described import description, errors_in, operations, problem_of, whole
from tests.builders import make_tool_step, post_run, project_client

WITHOUT_BODY = {
    "post_redaction_job",
    "start_redaction_job",
    "continue_replay",
    "step_replay",
    "cancel_replay",
    "cancel_session_replay",
    "cancel_golden_batch",
    "resume_golden_batch",
}
EACH = pytest.mark.parametrize("operation", operations().values(), ids=lambda operation: operation["operationId"])


def bodies(operation):
    return operation.get("requestBody", {}).get("content", {})


@EACH
def test_an_operation_has_a_short_name_and_says_who_may(operation):
    assert re.fullmatch(r"[a-z]+(_[a-z]+){1,4}", operation["operationId"])
    assert operation["security"]
    assert operation["tags"]


def test_no_two_operations_have_one_name():
    names = [operation["operationId"] for operation in operations().values()]

    assert len(names) == len(set(names))
    assert {"post_run", "list_runs", "get_run", "delete_run", "get_report", "cancel_replay"} <= set(names)


@pytest.mark.parametrize(("method", "path"), operations(), ids=str)
def test_an_operation_describes_what_it_takes(method, path):
    operation = operations()[method, path]
    takes_body = method in ("POST", "PATCH") and operation["operationId"] not in WITHOUT_BODY

    assert bool(bodies(operation)) == takes_body
    assert all(described["schema"] for described in bodies(operation).values())
    named = set(re.findall(r"\{(\w+)\}", path))
    assert {each["name"] for each in operation["parameters"] if each["in"] == "path"} == named


@EACH
def test_an_operation_describes_what_it_answers(operation):
    answers = {int(status): whole(answer) for status, answer in operation["responses"].items()}
    good = {status: answer for status, answer in answers.items() if status < 300}

    assert good
    for status, answer in answers.items():
        assert answer["description"]
        assert bool(answer.get("content")) == (status != 204)
    assert {400, 401, 405, 503} <= answers.keys()
    assert (413 in answers) or not bodies(operation)


def test_every_time_is_one_by_its_format():
    for name, schema in description()["components"]["schemas"].items():
        for field, about in schema.get("properties", {}).items():
            if field.endswith("_at") and about.get("anyOf", [{}])[0].get("type") != "object":
                assert "date-time" in json.dumps(about), (name, field)


def described_examples():
    for operation in operations().values():
        as_json = bodies(operation).get("application/json", {})
        for each in as_json.get("examples", {}).values():
            yield operation["operationId"], as_json["schema"], each["value"]
        inline = [as_json.get("schema", {}), *as_json.get("schema", {}).get("anyOf", [])]
        for schema in inline:
            named = description()["components"]["schemas"].get(schema.get("$ref", "").rpartition("/")[2], schema)
            for example in named.get("examples", []):
                yield operation["operationId"], as_json["schema"], example


def test_every_body_has_an_example_that_its_schema_allows():
    examples = list(described_examples())

    assert {name for name, _, _ in examples} == {
        operation["operationId"] for operation in operations().values() if bodies(operation)
    }
    for name, schema, example in examples:
        assert errors_in(schema, example) == [], name


@pytest.mark.django_db
def test_the_server_takes_the_examples():
    client = project_client()
    examples = {name: example for name, _, example in reversed(list(described_examples()))}

    def ask(address, name):
        return client.post(f"/api/v1/{address}", examples[name], content_type="application/json").status_code

    assert ask("runs", "post_run") == 201
    assert Run.objects.get().verdict == "replayable"
    assert ask("runs/weather-1/exchanges", "post_exchanges") == 200
    assert ask("runs/weather-1/replays", "post_replay") == 202
    assert ask("runs/weather-1/resume", "post_resume") == 202
    assert ask("runs/weather-1/forks", "post_fork") == 202
    assert ask("runs/weather-1/cold-case", "post_cold_case") == 200
    assert ask("runs/weather-1/notes", "post_note") == 201
    assert ask("goldens", "post_golden") == 201
    golden = client.get("/api/v1/goldens").json()["items"][0]["golden_id"]
    assert ask(f"goldens/{golden}/quarantine", "post_quarantine") == 200
    assert ask("golden-batches", "post_golden_batch") == 202


# --- that the check of every answer can fail -------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "content_type", "content"),
    [
        (418, "application/json", b"{}"),
        (200, "text/csv", b""),
        (200, "application/json", b'{"items": []}'),
        (200, "application/json; charset=utf-8", b'{"items": {}, "next_cursor": null}'),
        (404, "application/json", b'{"error": "no"}'),
    ],
)
def test_an_answer_that_is_not_described_is_found(status, content_type, content):
    assert problem_of("GET", "/api/v1/runs/{run_id}/replays", status, content_type, content) is not None


def test_an_answer_that_is_described_is_let_through():
    nothing = b'{"items": [], "next_cursor": null}'

    assert problem_of("GET", "/api/v1/runs/{run_id}/replays", 200, "application/json; charset=utf-8", nothing) is None


@pytest.mark.parametrize("moment", ["yesterday", "2026-01-01T10:00:00"])
def test_a_time_without_an_offset_is_found(moment):
    schema = {"$ref": "#/components/schemas/ColdCaseBody"}

    assert errors_in(schema, {"reason": "x", "marked_at": "2026-01-01T10:00:00+00:00"}) == []
    assert errors_in(schema, {"reason": "x", "marked_at": moment}) != []


@pytest.mark.django_db
def test_every_answer_of_these_tests_is_checked(monkeypatch):
    client = project_client()
    post_run(client, {"format": "agent-replay.run", "version": 1, "run_id": "r", "steps": [make_tool_step(result=1)]})
    monkeypatch.setitem(operations()["GET", "/api/v1/runs/{run_id}/kit"], "responses", {})

    with pytest.raises(AssertionError, match="200 is not described"):
        client.get("/api/v1/runs/r/kit")


@pytest.mark.django_db
def test_the_page_shows_what_refusals_mean_and_what_files_are(client):
    page = client.get("/api/v1/docs")

    text = page.content.decode()
    assert page.status_code == 200
    assert "The bytes that were recorded are missing or damaged on the server." in text
    assert "text/markdown, text/plain, text/html, application/json" in text
    assert 'href="#schema-ErrorAnswer"' in text
    assert 'id="schema-ObservedRequest"' in text
    assert f"{page.wsgi_request.build_absolute_uri('/')}api/v1/runs" in text


def test_every_operation_stands_under_a_heading_of_the_page():
    titled = [operation["operationId"] for tag in sum(GROUPS.values(), ()) for operation in of_tag(tag)]

    assert sorted(titled) == sorted(operation["operationId"] for operation in operations().values())


def of_tag(tag):
    return [operation for operation in operations().values() if operation["tags"] == [tag]]


@pytest.mark.django_db
def test_the_description_is_not_for_strangers_unless_the_settings_say_so(client, settings, django_user_model):
    addresses = ("/api/v1/docs", "/api/v1/openapi.json")
    settings.API_DOCS_PUBLIC = False
    by_key, signed_in = project_client(), type(client)()
    signed_in.force_login(django_user_model.objects.create_user("bob"))

    asked = [[reader.get(address).status_code for address in addresses] for reader in (client, by_key, signed_in)]

    assert asked == [[302, 401], [200, 200], [200, 200]]
    assert client.get("/api/v1/docs")["Location"] == "/sign-in?next=/api/v1/docs"
    assert client.get("/api/v1/openapi.json").json()["error"]["code"] == "unauthorized"
    assert client.get("/api/v1/openapi.json", headers={"Authorization": "Bearer rpk_wrong"}).status_code == 401
    settings.API_DOCS_PUBLIC = True
    assert [client.get(address).status_code for address in addresses] == [200, 200]
