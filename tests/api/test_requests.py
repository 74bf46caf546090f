"""What holds for every request: unknown parameters and fields, HEAD, packed answers, ids."""

import gzip
import http.client
import json
from urllib.parse import urlsplit

import pytest

from sessions_app.api.examples import COLD_CASE, CONNECTED_MODEL, FORK, GOLDEN, REPLAY
from sessions_app.models.projects import KeyScope
from tests.api.described import description, operations
from tests.builders import make_client, make_key, make_project, make_record, make_tool_step, post_run
from tests.instances import instance_in, open_folder

pytestmark = pytest.mark.django_db
READS_ITS_BODY = {"post_run", "post_exchanges"}
"""Recordings: what is not known of them is kept."""
GETS = [path for method, path in operations() if method == "GET"]


@pytest.fixture
def client():
    client = make_client(make_key(make_project("shop"), KeyScope.ADMIN))
    post_run(client, make_record("r", make_tool_step(result="one")))
    return client


# --- refused unread ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "key", "status"),
    [
        ("/api/v1/goldens/g_none/runs/observed", None, 404),
        ("/api/v1/runs/none/replays/observed", None, 404),
        ("/api/v1/runs?nothing=1", None, 400),
        ("/api/v1/runs", "Bearer rpk_none", 401),
    ],
)
def test_the_body_of_what_is_refused_is_read(client, address, key, status):
    """What is left of it ends the connection under the next request."""
    headers = {"HTTP_AUTHORIZATION": key} if key else {}

    refused = client.post(address, b"[" * 100_000, content_type="application/json", **headers)

    assert (refused.status_code, refused.wsgi_request.read()) == (status, b"")


# --- unknown parameters and fields ---------------------------------------------------------------


BODIES = {
    "/api/v1/goldens": {**GOLDEN, "run_id": "r"},
    "/api/v1/runs": make_record("x"),
    "/api/v1/projects": {"name": "Another"},
    "/api/v1/invitations": {"role": "viewer"},
    "/api/v1/keys": {"name": "another"},
    "/api/v1/models": CONNECTED_MODEL,
    "/api/v1/failure-groups/replays": {"agents": ["weather_desk"]},
}


@pytest.mark.parametrize(("method", "path"), [key for key in operations() if "{" not in key[1]], ids=str)
def test_an_unknown_parameter_is_named(client, method, path):
    needed = "left=r&right=r" if path.endswith("comparisons") else ""
    body = BODIES.get(path, {})
    data = {"data": body, "content_type": "application/json"} if method == "POST" else {}

    answer = getattr(client, method.lower())(f"{path}?{needed}&nothing=1", **data)

    assert (answer.status_code, answer.json()["error"]["field"]) == (400, "nothing"), answer.content
    assert not client.get("/api/v1/goldens").json()["items"]


def test_a_parameter_that_is_known_is_none_of_that(client):
    assert client.get("/api/v1/runs?q=&limit=1&cursor=").status_code == 200


def test_who_has_no_key_learns_nothing_of_parameters(client):
    client.defaults.pop("HTTP_AUTHORIZATION")

    assert client.get("/api/v1/runs?nothing=1").status_code == 401


@pytest.mark.parametrize(
    ("address", "body"),
    [("runs/r/cold-case", COLD_CASE), ("runs/r/replays", REPLAY), ("runs/r/forks", FORK), ("goldens", GOLDEN)],
)
def test_an_unknown_field_is_named(client, address, body):
    answer = client.post(f"/api/v1/{address}", {**body, "nothing": 1}, content_type="application/json")

    assert (answer.status_code, answer.json()["error"]["field"]) == (400, "nothing")


def test_every_body_but_recordings_is_closed():
    for operation in operations().values():
        content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        if content and operation["operationId"] not in READS_ITS_BODY:
            schema = content["schema"]
            name = next(each["$ref"] for each in (schema, *schema.get("anyOf", [])) if "$ref" in each)
            named = description()["components"]["schemas"][name.rpartition("/")[2]]
            assert named["additionalProperties"] is False, name


# --- HEAD ----------------------------------------------------------------------------------------


REFUSED = ("comparisons", "exports/goldens", "redaction-job")
"""Where nothing is named, or nothing is there."""


@pytest.mark.parametrize("path", [path for path in GETS if "{" not in path and not path.endswith(REFUSED)])
def test_head_is_answered_as_get_without_a_body(client, path):
    head, get = client.head(path), client.get(path)

    assert (head.status_code, head.content) == (200, b"")
    assert head["Content-Type"] == get["Content-Type"]


def test_head_of_a_thing_of_nobody_and_of_what_has_no_get(client):
    assert client.head("/api/v1/runs/r").status_code == 200
    assert client.head("/api/v1/runs/nothing").status_code == 404
    assert client.head("/api/v1/golden-batches").status_code == 405
    assert client.head("/metrics").status_code == 200


# --- packed answers ------------------------------------------------------------------------------


def test_an_answer_is_packed_for_who_asks_for_it(client):
    plain = client.get("/api/v1/runs/r/steps")
    packed = client.get("/api/v1/runs/r/steps", headers={"accept-encoding": "br, gzip"})

    assert packed["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.content) == plain.content
    assert len(packed.content) < len(plain.content)
    assert "Content-Encoding" not in plain
    assert plain["Vary"] == packed["Vary"] == "Accept-Encoding"


def test_packed_answers_of_one_thing_differ_in_length(client):
    """Their lengths tell less of what is in them."""
    lengths = {len(client.get("/api/v1/runs/r", headers={"accept-encoding": "gzip"}).content) for _ in range(20)}

    assert len(lengths) > 5


def test_pages_are_not_packed(client):
    assert "Content-Encoding" not in client.get("/sign-in", headers={"accept-encoding": "gzip"})


# --- ids of requests -----------------------------------------------------------------------------


def test_the_id_that_was_sent_comes_back(client):
    assert client.get("/api/v1/runs", headers={"x-request-id": "build-7/1"})["X-Request-ID"] == "build-7/1"


@pytest.mark.parametrize("sent", ["", "two words", "x" * 129, "line\tbreak", "ü"])
def test_another_one_is_made_where_it_could_spoil_a_log(client, sent):
    names = {client.get("/api/v1/runs", headers={"x-request-id": sent})["X-Request-ID"] for _ in range(2)}

    assert len(names) == 2
    assert all(len(name) == 16 and int(name, 16) for name in names)


def test_pages_and_spans_have_ids_too(client):
    assert client.get("/sign-in")["X-Request-ID"]
    assert client.post("/v1/traces", b"{}", content_type="application/json")["X-Request-ID"]


# --- through the server that people run ----------------------------------------------------------


def test_the_server_logs_the_id_packs_and_leaves_the_body_of_head_out():
    with open_folder() as folder, instance_in(folder) as instance:
        connection = http.client.HTTPConnection(urlsplit(instance.url).netloc, timeout=30)
        headers = {"Authorization": f"Bearer {instance.api_key}", "Accept-Encoding": "gzip"}

        def ask(method, path, **more):
            connection.request(method, path, None, headers | more)
            answer = connection.getresponse()
            return answer, answer.read()

        head, nothing = ask("HEAD", "/api/v1/openapi.json")
        assert (head.status, nothing) == (200, b"")
        got, content = ask("GET", "/api/v1/openapi.json")  # on the same connection: nothing of HEAD's is left in it
        assert got.headers["Content-Encoding"] == "gzip"
        assert json.loads(gzip.decompress(content))["openapi"]
        refused, _ = ask("GET", "/api/v1/runs?nothing=1", **{"X-Request-ID": "looked-for-5521"})
        assert (refused.status, refused.headers["X-Request-ID"]) == (400, "looked-for-5521")
        connection.close()
        lines = instance.output.read_text() + "".join(
            path.read_text(errors="replace") for path in instance.home.path.rglob("*.log")
        )
    assert " WARNING [looked-for-5521] django.request: Bad Request: /api/v1/runs" in lines
