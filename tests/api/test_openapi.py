"""The description of the API: complete enough to generate a client from."""

import json
import re
import shlex
from urllib.parse import urlsplit

import pytest

from sessions_app.api.docs import GROUPS, Reference
from sessions_app.api.docs_words import words_html
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


REFERENCE = Reference(description())
SHOWN = [each for group in GROUPS for each in REFERENCE.operations(group, "https://replay.example.com")]
EACH_SHOWN = pytest.mark.parametrize("shown", SHOWN, ids=lambda shown: shown["id"])


@EACH_SHOWN
def test_an_operation_has_a_request_to_paste_into_a_shell(shown):
    words = shlex.split(shown["request_example"])

    address = next(word for word in words if word.startswith("https://"))
    assert re.fullmatch(re.sub(r"\{\w+\}", "[^/{}]+", shown["path"]), urlsplit(address).path)
    sent = json.loads(words[words.index("-d") + 1]) if "-d" in words else None
    body = bodies(operations()[shown["method"], shown["path"]])
    assert (sent is not None) == bool(body)
    assert sent is None or errors_in(body["application/json"]["schema"], sent) == []
    assert (words[words.index("-X") + 1] if "-X" in words else "POST" if body else "GET") == shown["method"]


@EACH_SHOWN
def test_an_operation_has_an_answer_that_its_schema_allows(shown):
    if shown["answer_example"] is None:
        assert shown["files"] or not shown["answer"] or "object" in shown["answer"]
        return
    answer = operations()[shown["method"], shown["path"]]["responses"][shown["answer_status"]]
    assert errors_in(answer["content"]["application/json"]["schema"], json.loads(shown["answer_example"])) == []
    assert '""' not in shown["answer_example"], "a field without a value of its own"


@pytest.mark.django_db
def test_the_index_names_each_operation_once_and_what_errors_mean(client):
    page = client.get("/api/v1/docs")

    text = page.content.decode()
    assert page.status_code == 200
    assert "The recorded bytes are missing or damaged on the server." in text
    assert f"{page.wsgi_request.build_absolute_uri('/')}api/v1/runs" in text
    for group in GROUPS:
        for shown in REFERENCE.operations(group):
            assert text.count(f'href="/api/v1/docs/{group.slug}#{shown["id"]}"') == 1


def test_operations_go_from_all_runs_to_one_and_to_its_parts():
    paths = [(each["method"], each["path"]) for each in REFERENCE.operations(GROUPS[0])]

    assert paths[0] == ("POST", "/api/v1/runs")
    assert [path for _, path in paths] == sorted((path for _, path in paths), key=lambda path: path.count("/"))


@pytest.mark.django_db
@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.slug)
def test_a_page_of_operations_has_every_field_that_it_links_to(client, group):
    page = client.get(f"/api/v1/docs/{group.slug}")

    text = page.content.decode()
    assert page.status_code == 200
    assert set(re.findall(r'href="#([^"]+)"', text)) - {"main"} <= set(re.findall(r'id="([^"]+)"', text))
    assert "`" not in re.sub(r"<pre.*?</pre>", "", text, flags=re.DOTALL)


@pytest.mark.django_db
def test_a_page_of_operations_says_what_files_are(client):
    assert "text/markdown, text/plain, text/html, application/json" in client.get("/api/v1/docs/runs").content.decode()
    assert client.get("/api/v1/docs/nothing").status_code == 404


def test_descriptions_are_paragraphs_with_code():
    assert words_html("Send `a < b`\nnow.\n\nThen\nwait.") == "<p>Send <code>a &lt; b</code> now.</p><p>Then wait.</p>"


def test_every_operation_stands_under_a_heading_of_the_page():
    titled = [operation["operationId"] for group in GROUPS for tag in group.tags for operation in of_tag(tag)]

    assert sorted(titled) == sorted(operation["operationId"] for operation in operations().values())


def of_tag(tag):
    return [operation for operation in operations().values() if operation["tags"] == [tag]]


@pytest.mark.django_db
def test_the_description_is_not_for_strangers_unless_the_settings_say_so(client, settings, django_user_model):
    addresses = ("/api/v1/docs", "/api/v1/docs/runs", "/api/v1/openapi.json")
    settings.API_DOCS_PUBLIC = False
    by_key, signed_in = project_client(), type(client)()
    signed_in.force_login(django_user_model.objects.create_user("bob"))

    asked = [[reader.get(address).status_code for address in addresses] for reader in (client, by_key, signed_in)]

    assert asked == [[302, 302, 401], [200] * 3, [200] * 3]
    assert client.get("/api/v1/docs")["Location"] == "/sign-in?next=/api/v1/docs"
    assert client.get("/api/v1/openapi.json").json()["error"]["code"] == "unauthorized"
    assert client.get("/api/v1/openapi.json", headers={"Authorization": "Bearer rpk_wrong"}).status_code == 401
    settings.API_DOCS_PUBLIC = True
    assert [client.get(address).status_code for address in addresses] == [200] * 3
