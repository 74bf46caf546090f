"""Through the server that people run: bodies in pieces, packed bodies, a record sent on, and secrets looked for."""

import gzip
import http.client
import json
import time
import zlib
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
import redis
import zstandard

from sessions_app.payloads.compression import decompress
from tests.builders import EXAMPLES, SESSION_FILE, make_project, make_record, make_tool_step, post_run, project_client

ERROR = ["code", "message", "field"]


def ask(instance, method, path, body=None, *, key=None, chunked=False, **headers):
    """Status and body of one request."""
    connection = http.client.HTTPConnection(urlsplit(instance.url).netloc, timeout=30)
    headers = {"Authorization": f"Bearer {key or instance.api_key}", **headers}
    connection.request(method, path, body, headers, encode_chunked=chunked)
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def send(instance, body, **options):
    status, said = ask(instance, "POST", "/api/v1/runs", body, **options)
    return status, json.loads(said)


def record(run_id):
    return json.dumps(make_record(run_id, make_tool_step(result=run_id))).encode()


def test_a_chunked_body_is_read_and_limited(running_instance):
    body = record("chunked")
    options = {"chunked": True, "Transfer-Encoding": "chunked"}

    status, said = send(running_instance, (body[n : n + 7] for n in range(0, len(body), 7)), **options)
    assert (status, said["run_id"]) == (201, "chunked")
    status, said = send(running_instance, (b" " * 1_000_000 for _ in range(22)), **options)
    assert (status, said["error"]["code"]) == (413, "too_large")
    packed = gzip.compress(record("chunked-gzip"))
    status, said = send(running_instance, iter([packed[:9], packed[9:]]), **options, **{"Content-Encoding": "gzip"})
    assert (status, said["run_id"]) == (201, "chunked-gzip")


@pytest.mark.parametrize(
    ("encoding", "pack"), [("gzip", gzip.compress), ("zstd", zstandard.compress), ("deflate", zlib.compress)]
)
def test_packed_bodies_are_read(running_instance, encoding, pack):
    status, said = send(running_instance, pack(record(encoding)), **{"Content-Encoding": encoding})

    assert (status, said["run_id"]) == (201, encoding)


def test_bad_bodies_are_refused_in_our_words(running_instance):
    bomb = gzip.compress(bytes(300 * 1024 * 1024), 9)
    cases = [
        (b"{", {}, 400),
        (bomb, {"Content-Encoding": "gzip"}, 413),
        (b"x", {"Content-Encoding": "br"}, 415),
        (gzip.compress(b"{}")[:-1], {"Content-Encoding": "gzip"}, 400),
        (b"[" * 10_000, {}, 413),
    ]
    for body, headers, expected in cases:
        status, said = send(running_instance, body, **headers)
        assert (status, list(said["error"])) == (expected, ERROR)
    assert send(running_instance, record("x"), key="rpk_wrong")[0] == 401


@pytest.mark.django_db
def test_a_record_sent_to_another_instance_gives_an_equal_run(running_instance):
    here = project_client()
    accepted = post_run(here, (EXAMPLES / "price_429.json").read_bytes().replace(b"price_429", b"price_sent_on")).json()
    exported = here.get(f"/api/v1/runs/{accepted['run_id']}/record").content

    status, said = send(running_instance, exported)

    assert (status, said["digest"]) == (201, accepted["digest"])
    assert ask(running_instance, "GET", f"/api/v1/runs/{accepted['run_id']}/record") == (200, exported)


def test_the_session_file_is_new_once_although_it_is_among_the_examples(running_instance):
    answers = [send(running_instance, SESSION_FILE.read_bytes()) for _ in range(2)]

    assert [(status, said["run_id"]) for status, said in answers] == [(201, "abc123"), (200, "abc123")]


# --- secrets -----------------------------------------------------------------------------------

# Put together here, so that no scanner takes this file for a leak.
KEY = "sk-" + "proj-" + "Zq81LmTx04VbNc77RwPd5KfHsJ2g"
TOKEN = "Tk9wQ4xZ7" + "LmR2vB8nC5sD1fG6hJ3"
EMAIL = "mara.quill" + "@planted-mail.com"
CARD = "4111 1111" + " 1111 1111"
PEM_LINE = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7"
PEM = "-----BEGIN " + f"PRIVATE KEY-----\n{PEM_LINE}\n-----END " + "PRIVATE KEY-----"
JWT = "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiJwbGFudGVkIn0.c2lnbmF0dXJlLXBsYW50ZWQ"
PASSWORD = "hunter2-" + "planted-pass"
MARKER = "harmless-marker-5521"
PLANTS = [KEY, TOKEN, EMAIL, CARD, CARD.replace(" ", ""), PEM_LINE, JWT, PASSWORD]


def planted_record():
    """An example whose prompt, arguments, answers and errors hold secrets; each in all places it has in the run."""
    text = (EXAMPLES / "cancel_bug.json").read_text()
    text = text.replace("cancel_5521", f"planted-{EMAIL}").replace("chat_2071_1116", f"chat-{KEY}")
    text = text.replace("changed my mind", f"{KEY} {EMAIL} {CARD}").replace("u_2071", MARKER)
    value = json.loads(text)
    value |= {
        "flags": {"password": PASSWORD, "note": MARKER},
        "x_pem": PEM,
        "x_embedded": json.dumps({"api_key": PASSWORD}),
    }
    value["steps"].append(
        {
            "kind": "other",
            "arguments": json.dumps({"token": TOKEN, "q": f"Bearer {TOKEN}"}),
            "result": {"password": PASSWORD, "jwt": JWT, "pem": PEM},
            "error": {"type": "E", "message": f"refused: Authorization: Bearer {TOKEN} for {EMAIL}"},
            "http": {
                "url": f"https://user:{PASSWORD}@example.com/?mail={EMAIL}",
                "request_headers": [["Authorization", f"Bearer {TOKEN}"], ["Cookie", f"s={JWT}"], ["X-Api-Key", KEY]],
                "request_body": {
                    "base64": "eyJwYXNzd29yZCI6Imh1bnRlcjItcGxhbnRlZC1wYXNzIn0=",
                    "media_type": "application/json",
                },
                "response_body": f"{{cut off {EMAIL} {KEY}",
            },
        }
    )
    return json.dumps(value).encode()


def wait_for_replay(instance, replay_id):
    until = time.monotonic() + 60
    while True:
        replay = json.loads(ask(instance, "GET", f"/api/v1/replays/{replay_id}")[1])
        if replay["state"] in ("done", "failed", "cancelled", "crashed"):
            return replay
        assert time.monotonic() < until, replay
        time.sleep(0.1)


def database_values(url):
    """Every value of every row, binary columns opened when they are compressed."""
    with psycopg.connect(url, autocommit=True) as connection:
        names = connection.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")
        for (table,) in names.fetchall():
            for row in connection.execute(f'SELECT * FROM "{table}"').fetchall():
                for value in row:
                    yield table, opened(bytes(value)) if isinstance(value, bytes | memoryview) else str(value).encode()


def opened(data):
    try:
        return decompress(data) if data[:4] == b"\x28\xb5\x2f\xfd" else data
    except zstandard.ZstdError:
        return data


def file_values(*folders: Path):
    for folder in folders:
        for file in folder.rglob("*"):
            if file.is_file():
                yield str(file), opened(file.read_bytes())


def redis_values(url):
    client = redis.Redis.from_url(url)
    for name in client.scan_iter():
        yield "redis", bytes(name) + (client.dump(name) or b"")
    client.close()


def places_with(values, text):
    forms = {text.encode(), json.dumps(text)[1:-1].encode()}
    return sorted({place for place, value in values if any(form in value for form in forms)})


def test_no_planted_secret_is_found_anywhere_and_the_run_still_replays(running_instance):
    home, environment = running_instance.home, running_instance.home.environment()
    status, said = send(running_instance, planted_record())
    assert status == 201, said
    run_id = said["run_id"]
    assert EMAIL not in run_id
    refused = send(running_instance, planted_record().replace(b'"ok"', b'"okay"'))
    assert refused[0] == 400
    path = f"/api/v1/runs/{run_id.replace('[', '%5B').replace(']', '%5D')}"
    record = ask(running_instance, "GET", f"{path}/record")[1]
    status, queued = ask(running_instance, "POST", f"{path}/replays", b"{}")
    assert status == 202
    replay = wait_for_replay(running_instance, json.loads(queued)["replay_id"])

    stored = list(database_values(environment["DATABASE_URL"])) + list(redis_values(environment["REDIS_URL"]))
    files = list(file_values(home.services.resolve(), home.path / "logs", home.path / "blobs"))
    spoken = [("answers", json.dumps([said, refused[1], replay]).encode() + record)]
    spoken.append(("output", running_instance.output.read_bytes()))
    everything = stored + files + spoken
    found = {plant: places_with(everything, plant) for plant in PLANTS}
    control = places_with(everything, MARKER)

    print(f"searched {sum(len(value) for _, value in everything) // 1024} KiB in {len(everything)} values and files")
    assert found == {plant: [] for plant in PLANTS}
    assert {"sessions_app_run", "sessions_app_contentblock", "answers"} <= set(control)
    assert [place for place in control if "/services/" in place or "/pg" in place or "postgres" in place]
    assert (replay["state"], replay["verdict"], replay["live_calls"]) == ("done", "reproduced", 0)


@pytest.mark.django_db
def test_the_same_secret_has_the_same_placeholder_in_a_project_and_another_elsewhere():
    clients = [project_client("one"), project_client("two")]
    found = []
    for client in clients:
        for run_id in ("a", "b"):
            post_run(client, make_record(run_id, input=f"write to {EMAIL}"))
            found.append(client.get(f"/api/v1/runs/{run_id}").json()["input"])

    assert found[0] == found[1] != found[2] == found[3]
    assert EMAIL not in "".join(found)
    assert make_project("three").redaction_secret != make_project("four").redaction_secret
