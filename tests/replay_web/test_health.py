"""Health addresses."""

import pytest
from django.test import Client


def test_healthz_touches_no_database(client: Client):
    assert client.get("/healthz").content == b"ok\n"


@pytest.mark.django_db
def test_readyz_names_each_check(client: Client):
    answer = client.get("/readyz")

    assert answer.json() == {"ready": True, "checks": {"database": "ok", "redis": "ok", "migrations": "ok"}}
