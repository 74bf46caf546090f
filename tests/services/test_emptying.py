"""After a test that commits, the database is as it was before, however it is emptied."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import Permission
from django.db import connection, transaction

from sessions_app.models import Project
from tests import emptying
from tests.builders import SESSION_FILE, make_project, post_run, project_client, row_counts
from tests.web.making import make_user

pytestmark = pytest.mark.django_db(transaction=True)


def fill() -> None:
    assert post_run(project_client(), SESSION_FILE).status_code == 201
    make_user("bob", make_project("of bob"))


def test_a_few_rows_are_deleted_and_permissions_stay():
    before = Permission.objects.count()
    fill()
    assert any(row_counts().values())

    assert emptying.delete_rows()

    assert not any(row_counts().values())
    assert before == Permission.objects.count() > 0


def test_many_rows_are_left_for_tables_that_are_made_anew(monkeypatch: pytest.MonkeyPatch):
    fill()
    monkeypatch.setattr(emptying, "FEW", 1)

    assert not emptying.delete_rows()
    assert any(row_counts().values())


def somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND locktype = 'relation')")
        return bool(cursor.fetchone()[0])


def test_what_another_still_writes_is_waited_for():
    has_written, is_emptied = threading.Event(), threading.Event()

    def write() -> None:
        with transaction.atomic():
            make_project("late")
            has_written.set()
            while not somebody_waits() and not is_emptied.wait(0.01):
                pass
        connection.close()

    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(write)
        has_written.wait()
        emptying.delete_rows()
        is_emptied.set()
        written.result()

    assert not Project.objects.exists()
