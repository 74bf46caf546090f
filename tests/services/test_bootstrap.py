"""What a new home holds."""

import json
import stat
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from sessions_app.models import ApiKey, Project, Run
from sessions_app.services import bootstrap
from sessions_app.services.bootstrap import prepare_home, remove_examples
from sessions_app.services.ingest import ingest_document
from sessions_app.services.keys import find_key, revoke_key
from tests.builders import make_record, row_counts

pytestmark = pytest.mark.django_db
EXAMPLES = {"abc123", "cancel_5521", "charged_3107", "price_429", "r_8821", "run_xyz789"}


def connection_of(home):
    return json.loads((home / "secrets" / "connection.json").read_bytes())


def test_a_new_home_has_an_account_a_key_and_the_examples(tmp_path):
    prepare_home(tmp_path, "http://here")

    said = connection_of(tmp_path)
    assert set(said) == {"url", "username", "password", "api_key", "my_project_api_key"}
    assert User.objects.get().check_password(said["password"])
    assert find_key(said["api_key"]).project.slug == "examples"
    own = find_key(said["my_project_api_key"])
    assert (own.project.slug, own.project.name, own.project.runs.count()) == ("my-project", "My project", 0)
    assert set(Run.objects.values_list("run_id", flat=True)) == EXAMPLES
    assert stat.S_IMODE((tmp_path / "secrets" / "connection.json").stat().st_mode) == 0o600


def test_preparing_again_changes_the_address_alone(tmp_path):
    prepare_home(tmp_path, "http://here")
    before, said = row_counts(), connection_of(tmp_path)

    prepare_home(tmp_path, "http://there")

    assert row_counts() == before
    assert connection_of(tmp_path) == {**said, "url": "http://there"}


def test_a_revoked_key_is_offered_no_more(tmp_path):
    prepare_home(tmp_path, "http://here")
    said = connection_of(tmp_path)
    del said["api_key"]
    revoke_key(ApiKey.objects.get(project__slug="examples"))

    prepare_home(tmp_path, "http://here")

    assert connection_of(tmp_path) == said


def test_what_another_database_knew_is_offered_no_more(tmp_path):
    """As when a dump of one home is restored in another."""
    prepare_home(tmp_path, "http://here")
    User.objects.all().delete()
    ApiKey.objects.all().delete()
    User.objects.create_superuser("admin", password="of the other home")

    prepare_home(tmp_path, "http://here")

    assert connection_of(tmp_path) == {"url": "http://here"}


def test_an_example_that_somebody_sends_becomes_theirs(tmp_path):
    prepare_home(tmp_path, "http://here")
    project, sample = Project.objects.get(slug="examples"), Path("tests/records/session_abc123.json").read_bytes()

    assert [ingest_document(project, sample).created for _ in range(2)] == [True, False]
    assert remove_examples(project) == len(EXAMPLES) - 1
    assert list(Run.objects.values_list("run_id", flat=True)) == ["abc123"]


def test_removed_examples_stay_removed_and_own_recordings_stay(tmp_path):
    prepare_home(tmp_path, "http://here")
    project = Project.objects.get(slug="examples")
    ingest_document(project, json.dumps(make_record("own")).encode())

    assert remove_examples(project) == len(EXAMPLES)
    prepare_home(tmp_path, "http://here")

    assert list(Run.objects.values_list("run_id", flat=True)) == ["own"]


def test_a_server_on_its_own_services_gets_its_first_account(capsys):
    call_command("bootstrap", username="ann", project="Support agent")

    said = json.loads(capsys.readouterr().out)
    assert set(said) == {"username", "password", "project", "api_key"}
    assert User.objects.get(username="ann").check_password(said["password"])
    assert find_key(said["api_key"]).project.slug == said["project"] == "support-agent"


def test_where_there_is_an_account_nobody_gets_another_one(capsys):
    call_command("bootstrap")

    with pytest.raises(CommandError, match="has an account already"):
        call_command("bootstrap", username="eve")
    assert User.objects.count() == Project.objects.count() == 1


def test_of_two_machines_that_start_at_once_the_second_starts_as_well(tmp_path, monkeypatch):
    """Without an account that it could name: only the first one knows the password."""
    first = bootstrap.first_account

    def second(*args, **kwargs):
        first(*args, **kwargs)
        return first(*args, **kwargs)

    monkeypatch.setattr(bootstrap, "first_account", second)

    prepare_home(tmp_path, "http://127.0.0.1:8102")

    assert json.loads((tmp_path / "secrets" / "connection.json").read_text()) == {"url": "http://127.0.0.1:8102"}
