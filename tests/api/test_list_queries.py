"""Lists ask the database the same number of times, however many rows they show."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.builders import make_client, make_key, make_project, make_record, post_run

pytestmark = pytest.mark.django_db


def queries_of_list(client, *, limit):
    with CaptureQueriesContext(
        connection,
    ) as asked:
        answer = client.get(f"/api/v1/sessions?limit={limit}")
    return len(answer.json()["items"]), len(asked)


def test_the_list_of_sessions_asks_nothing_for_each_row():
    client = make_client(make_key(make_project()))
    for number in range(7):
        post_run(client, make_record(f"r{number}"))
    queries_of_list(client, limit=1)  # notes the use of the key

    few, many = queries_of_list(client, limit=2), queries_of_list(client, limit=7)

    assert (few[0], many[0]) == (2, 7)
    assert few[1] == many[1]
