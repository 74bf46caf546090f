"""Statements with parameters in binary form are in the log of queries, as all others are."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.mapping.binary_rows import binary_cursor

pytestmark = pytest.mark.django_db
ASKED = "SELECT octet_length(%(content)b), %(numbers)b::int[]"


def ask() -> tuple[int, list[int]]:
    with binary_cursor() as cursor:
        cursor.execute(ASKED, {"content": b"\xab\xcd", "numbers": [1, 2]})
        found: tuple[int, list[int]] = cursor.fetchone()
    return found


def test_it_is_counted_with_what_it_asked():
    with CaptureQueriesContext(connection) as queries:
        found = ask()

    assert found == (2, [1, 2])
    assert len(queries) == 1
    assert "abcd" in queries.captured_queries[0]["sql"]


def test_it_is_not_kept_where_nobody_counts():
    assert ask() == (2, [1, 2])
    assert not connection.queries_log
