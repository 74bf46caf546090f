"""Health addresses."""

import random
import re

import pytest
import redis
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.test import Client

from replay_web import doctor, health
from tests.builders import make_record, post_run, project_client

WELL = dict.fromkeys(("database", "redis", "migrations", "static_files", "blobs", "shared_blobs"), "ok")


def test_healthz_touches_no_database(client: Client):
    assert client.get("/healthz").content == b"ok\n"


@pytest.mark.django_db
def test_readyz_names_each_check(client: Client):
    answer = client.get("/readyz")

    assert answer.json() == {"ready": True, "degraded": False, "checks": WELL}


@pytest.mark.django_db
def test_without_redis_a_server_is_ready_and_says_what_is_away(client: Client, monkeypatch, settings):
    away = redis.Redis.from_url("redis://127.0.0.1:1/0", socket_connect_timeout=1)
    monkeypatch.setattr(health, "redis_client", lambda: away)

    answer = client.get("/readyz")

    said = answer.json()
    assert (answer.status_code, said["ready"], said["degraded"]) == (200, True, True)
    assert said["checks"] == WELL | {"redis": "unreachable (ConnectionError)"}


@pytest.mark.django_db
def test_without_static_files_or_blobs_it_is_not(client: Client, monkeypatch, settings, tmp_path):
    def missing(self: object, name: str, force: bool = False) -> str:
        raise ValueError(name)

    with monkeypatch.context() as patched:
        patched.setattr(StaticFilesStorage, "url", missing)
        assert client.get("/readyz").status_code == 503

    (tmp_path / "file").write_text("no folder")
    settings.REPLAY_BLOBS = str(tmp_path / "file")
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["checks"]["blobs"]) == (503, "not readable and writable")

    settings.REPLAY_BLOBS = str(tmp_path / "not" / "made" / "yet")
    assert client.get("/readyz").status_code == 200


@pytest.mark.django_db
def test_a_folder_that_other_machines_do_not_share_is_told(client: Client, settings, tmp_path):
    settings.REPLAY_BLOB_THRESHOLD_BYTES, settings.REPLAY_BLOBS = 1024, str(tmp_path / "first")
    post_run(project_client(), make_record("r", input=random.Random(1).randbytes(6000).hex()))
    assert client.get("/readyz").json()["checks"] == WELL
    assert doctor.blobs_are_shared() is None

    settings.REPLAY_BLOBS = str(tmp_path / "second")
    answer = client.get("/readyz")

    said = answer.json()
    assert (answer.status_code, said["degraded"]) == (200, True)
    assert re.fullmatch(r"\d of \d payloads are not there", said["checks"]["shared_blobs"])
    assert "mount one that they share" in str(doctor.blobs_are_shared())
