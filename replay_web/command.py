"""`incident-replay`, and what manage.py does once it is in its environment."""

import os
import sys

COMMANDS = {
    "up": "run the product: PostgreSQL and Redis unless they are given, web server and worker",
    "doctor": "say what is wrong with this installation and what to do about it",
    "bootstrap": "make the first administrator, a project and its key, and print them once",
    "projects": "list the projects, create one, rename one",
    "members": "who belongs to a project: list, invite by a link, change roles, remove",
    "keys": "the API keys of a project: list, create, rotate, revoke",
    "redaction": "apply a project's rules of redaction to what is stored, with counts first",
    "import": "take in recordings from files",
    "replay": "replay a run",
    "fork": "fork a run from a step, with a change",
    "resume": "go on from a recorded checkpoint",
    "goldens": "run goldens and report for CI",
    "agents": "load each registered agent and say which cannot be",
    "mcp": "serve a coding agent over stdio, by the Model Context Protocol",
    "runner": "run replays with the team's own agents, in the team's environment",
    "verify": "compare everything that is stored with its digests",
    "migrate": "bring the database up to date",
    "collectstatic": "collect static files into STATIC_ROOT",
    "prepare_home": "migrate, collect, and fill a new home, as `up` does before it serves",
    "database_url": "print the address of the database, for backups",
    "redis_url": "print the address of Redis",
    "changepassword": "set somebody's password",
    "axes_reset_username": "open sign-in again for a name after too many wrong passwords",
    "test": "run the test suite, in a checkout",
}
"""By name, in the order of use. `COMMAND --help` tells more."""


def main(arguments: list[str] | None = None) -> None:
    """Run a command. `up` stays out of Django, for it lives as long as the product; `doctor` at first, and `help`."""
    given = sys.argv[1:] if arguments is None else arguments
    kind = "test" if given[:1] == ["test"] else "base"
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", f"replay_web.settings.{kind}")
    if given in ([], ["help"], ["--help"], ["-h"]):
        print(help_text())
    elif given == ["--version"]:
        from sessions_app.core.version import VERSION

        print(VERSION)
    elif given == ["up"]:
        from replay_web.supervisor.up import main as up

        sys.exit(up())
    elif given == ["doctor"]:
        from replay_web.doctor import main as doctor

        sys.exit(doctor())
    else:
        _run_in_django(given)


def _run_in_django(given: list[str]) -> None:
    from django.core.management import execute_from_command_line
    from django.db import OperationalError, ProgrammingError, connection
    from psycopg.errors import UndefinedColumn, UndefinedTable

    from replay_web.supervisor.errors import CannotStart

    try:
        execute_from_command_line([sys.argv[0], *given])
    except CannotStart as error:
        sys.exit(str(error))
    except OperationalError as error:
        if connection.connection is not None:
            raise
        reason = str(error).strip().splitlines()[0].rstrip(".")
        sys.exit(f"The database cannot be reached: {reason}. DATABASE_URL says where it is; `doctor` looks into it.")
    except ProgrammingError as error:
        if not isinstance(error.__cause__, UndefinedTable | UndefinedColumn):
            raise
        sys.exit("The database has not all tables of this version. Run `migrate` first.")


def help_text() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:{width}}  {about}" for name, about in COMMANDS.items()]
    return "\n".join(["Incident replay for AI agents. Commands:", "", *lines, "", "COMMAND --help tells more of each."])


if __name__ == "__main__":
    main()
