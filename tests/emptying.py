"""Emptying the database after a test that commits.

Django's own way makes every table anew, and then its content types and permissions, which are the same each time. Most
tests leave a few rows in a few tables.
"""

from __future__ import annotations

from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.db import connection, transaction
from django.test import TransactionTestCase

KEPT = {ContentType._meta.db_table, Permission._meta.db_table}
"""They come of the models and not of a test."""
FEW = 1_000
"""Rows of one table. Deleting looks for what refers to each of them."""

_make_anew = TransactionTestCase._fixture_teardown


def install() -> None:
    TransactionTestCase._fixture_teardown = empty_or_make_anew


def empty_or_make_anew(test_case: TransactionTestCase) -> None:
    if not delete_rows():
        _make_anew(test_case)


@transaction.atomic
def delete_rows() -> bool:
    """Whether there were few enough. Like Django's way, it waits for those who are still writing."""
    tables = connection.introspection.django_table_names(only_existing=True, include_views=False)
    own = [connection.ops.quote_name(table) for table in tables if table not in KEPT]
    with connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLE {', '.join(own)} IN EXCLUSIVE MODE")
        counted = (f"SELECT '{table}', count(*) FROM (SELECT FROM {table} LIMIT {FEW + 1}) few" for table in own)
        cursor.execute(" UNION ALL ".join(counted))
        rows = dict(cursor.fetchall())
        if max(rows.values()) > FEW:
            return False
        for table, count in rows.items():
            if count:
                cursor.execute(f"DELETE FROM {table}")
    return True
