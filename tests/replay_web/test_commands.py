"""What all commands of ours have in common."""

from django.core.management import get_commands, load_command_class

OURS = {"replay_web", "sessions_app"}


def test_no_command_of_ours_loads_every_page_before_it_begins():
    """Django's checks do; `manage.py check` is there for them. Control: one does."""
    ours = {name: load_command_class(app, name) for name, app in get_commands().items() if app in OURS}

    assert {"replay", "verify", "doctor"} <= ours.keys()
    assert [name for name, command in ours.items() if command.requires_system_checks] == ["migrate"]  # Django's own
