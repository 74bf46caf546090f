"""Large payloads in an S3-compatible store: obstore against a server of moto; skipped without these two packages."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator

import pytest

from replay_web import health
from sessions_app.mapping import payloads
from sessions_app.mapping.load import load_run
from sessions_app.models import StoredPayload
from sessions_app.payloads.blob_bucket import BlobBucket
from sessions_app.services.ingest import ingest_document
from sessions_app.services.verification import find_orphans, problems, remove
from tests.builders import make_client, make_key, make_project, make_record, make_tool_step, post_run
from tests.services.test_store_files import LARGE

pytest.importorskip("obstore")
moto_server = pytest.importorskip("moto.server")
pytestmark = pytest.mark.django_db


@pytest.fixture
def bucket(settings, monkeypatch, tmp_path) -> Iterator[str]:
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {"ENDPOINT": f"http://{host}:{port}", "REGION": "us-east-1", "ALLOW_HTTP": "true"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    urllib.request.urlopen(urllib.request.Request(f"http://{host}:{port}/replay", method="PUT")).close()
    settings.REPLAY_BLOBS = f"s3://replay/of-{tmp_path.name}"
    settings.REPLAY_BLOB_THRESHOLD_BYTES = 1024
    payloads._blob_store.cache_clear()
    yield settings.REPLAY_BLOBS
    server.stop()


def ingest() -> StoredPayload:
    record = make_record("r", make_tool_step(result=LARGE))
    ingest_document(make_project(), json.dumps(record).encode())
    return StoredPayload.objects.get(size=len(LARGE))


def test_a_large_payload_is_written_to_the_bucket_and_read_from_it(bucket):
    row = ingest()

    store = payloads.blob_store()
    assert row.data is None
    assert store.has(row.project_id, str(row))
    assert payloads.read_many(row.project_id, [str(row)])[str(row)].decode() == LARGE
    assert list(problems()) == []
    assert (health.blobs(), health.shared_blobs()) == ("ok", "ok")


def test_what_is_gone_from_the_bucket_is_said(bucket):
    row = ingest()
    payloads.blob_store().delete(row.project_id, str(row))

    assert payloads.read_many(row.project_id, [str(row)]) == {}
    assert any("is missing from the blob folder" in problem for problem in problems())
    assert health.shared_blobs().startswith("1 of ")


def test_objects_that_no_row_speaks_of_are_found_and_removed(bucket, monkeypatch):
    row, store = ingest(), payloads.blob_store()
    store.write(row.project_id, "ab" * 32, b"left behind")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 7200)

    orphans = find_orphans()
    remove(orphans)

    assert orphans.blobs == ((row.project_id, "ab" * 32),)
    assert store.has(row.project_id, str(row))
    assert find_orphans().count == 0


def test_while_the_bucket_does_not_answer_nothing_is_taken_in(bucket, settings, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT", "http://127.0.0.1:9")
    settings.REPLAY_BLOBS = f"{bucket}/elsewhere"

    began = time.monotonic()
    answer = post_run(make_client(make_key(make_project())), make_record("r", make_tool_step(result=LARGE)))

    assert answer.status_code == 503
    assert time.monotonic() - began < 10
    assert health.blobs() == "the bucket cannot be reached"
    assert not StoredPayload.objects.exists()


def test_a_bucket_that_is_not_there_is_not_a_store_that_is_away(bucket):
    assert BlobBucket("s3://another").problem() == "the bucket cannot be used: NoSuchBucket"


def test_a_run_is_loaded_from_the_bucket(bucket):
    record = make_record("r", make_tool_step(result=LARGE))
    run = ingest_document(make_project(), json.dumps(record).encode()).run

    assert load_run(run).steps[0].call.result.content == LARGE.encode()
