"""What all commands of ours have in common."""

import pytest
from django.core.management import get_commands, load_command_class

from tests.instances import clean_environment, manage

OURS = {"replay_web", "sessions_app"}


def test_no_command_of_ours_loads_every_page_before_it_begins():
    """Django's checks do; `manage.py check` is there for them. Control: one does."""
    ours = {name: load_command_class(app, name) for name, app in get_commands().items() if app in OURS}

    assert {"replay", "verify", "doctor"} <= ours.keys()
    assert [name for name, command in ours.items() if command.requires_system_checks] == ["migrate"]  # Django's own


@pytest.mark.parametrize("pool", ["10", "0"])
def test_a_database_that_cannot_be_reached_is_said_in_one_line(pool, tmp_path):
    nowhere = "postgresql://replay@127.0.0.1:1/replay"
    environment = clean_environment(
        SECRET_KEY="x" * 50, REPLAY_HOME=str(tmp_path), DATABASE_URL=nowhere, DATABASE_POOL_SIZE=pool
    )

    done = manage("keys", "shop", environment=environment)

    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("The database cannot be reached: ")
