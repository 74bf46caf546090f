"""`manage.py doctor`: what is wrong with this installation, in words, and what to do about it.

Each check answers None when all is well, else a sentence for the person at the keyboard, which the name of the check
leads; NOT_KNOWN where another check has said why it could not ask. The first list needs no Django, so that a broken
setting cannot keep the doctor from speaking.
"""

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress

from replay_web.supervisor import programs
from replay_web.supervisor.account import Account, services_folder
from replay_web.supervisor.errors import CannotStart
from replay_web.supervisor.home import SECRETS, Home, read_secret
from replay_web.supervisor.port import bound, check_host, host_from_environment, number_from_environment
from replay_web.supervisor.postgres import Postgres
from replay_web.supervisor.redis import Redis
from replay_web.supervisor.up import is_given

Check = Callable[[], str | None]
NOT_KNOWN = ""
SPACE_NEEDED = 512 * 1024 * 1024
WORKER_PATIENCE = 15
"""Seconds that a worker may take to answer: one that is just starting hears no question that came before it."""
QUEUE_PATIENCE = 60
"""Seconds that a replay may wait in the queue."""


def home_is_writable() -> str | None:
    home = Home.from_environment().path
    folder = next(path for path in (home, *home.parents) if path.exists())
    with (
        suppress(OSError),
        tempfile.TemporaryFile(dir=folder),
    ):  # asking for permission is not enough: disks go read-only
        return None
    return f"{folder} cannot be written. Set REPLAY_HOME to a folder that can, or give this one to your user."


def disk_has_space() -> str | None:
    home = Home.from_environment().path
    free = shutil.disk_usage(next(path for path in (home, *home.parents) if path.exists())).free
    if free >= SPACE_NEEDED:
        return None
    return f"Only {free // 1024**2} MiB are free where {home} lies. Below that PostgreSQL stops; make room."


def port_is_free() -> str | None:
    """While this home is in use its own web server has the port; also one that outlived its supervisor."""
    home = Home.from_environment()
    if home.is_held() or home.state():
        return None
    try:
        host = host_from_environment()
        check_host(host)
        bound(host, number_from_environment()).close()
    except CannotStart as error:
        return str(error)
    return None


def secrets_can_be_read() -> str | None:
    folder = Home.from_environment().path / "secrets"
    return said_by(lambda: [read_secret(folder / name) for name in SECRETS if (folder / name).exists()])


def postgres_can_start() -> str | None:
    home = Home.from_environment()
    if is_given("DATABASE_URL") or not os.path.lexists(home.services):
        return None
    return said_by(lambda: private_postgres(home).check())


def redis_can_start() -> str | None:
    home = Home.from_environment()
    if is_given("REDIS_URL"):
        return None
    account, folder = Account.for_services(), home.services
    return said_by(lambda: Redis(home=home, account=account, services=folder, sockets=folder).binary())


def private_postgres(home: Home) -> Postgres:
    account = Account.for_services()
    folder = services_folder(home, account)
    return Postgres(home=home, account=account, services=folder, sockets=folder / "sockets")


def said_by(attempt: Callable[[], object]) -> str | None:
    try:
        attempt()
    except CannotStart as error:
        return str(error)
    return None


def web_answers() -> str | None:
    home = Home.from_environment()
    url = home.state().get("url", "") if home.is_held() else ""
    host, _, port = url.removeprefix("http://").rpartition(":")
    if not url or programs.answers(host.strip("[]"), int(port)):
        return None
    return f"The web server does not answer at {url}. {home.logs / 'web.log'} says why."


def settings_are_valid() -> str | None:
    import django
    from django.core.exceptions import ImproperlyConfigured

    os.environ["DATABASE_POOL_SIZE"] = "0"  # a pool keeps trying; we want the answer now
    try:
        django.setup()
    except (ImproperlyConfigured, CannotStart) as error:
        return str(error)
    return None


def database_answers() -> str | None:
    from replay_web import health

    if (error := health.database_error()) is None:
        return None
    return f"{reason_of(error)}. Check DATABASE_URL, that the server runs, and its log."


def redis_answers() -> str | None:
    from replay_web import health

    if (error := health.broker_error()) is None:
        return None
    return f"{reason_of(error)}. Check REDIS_URL and that the server runs. Nothing is lost; replays start later."


def reason_of(error: Exception) -> str:
    """What the service or the network said, in a line: a wrong password is not a server that is away."""
    first = next(iter(str(error).splitlines()), "") or type(error).__name__
    return " ".join(first.removeprefix("connection failed: ").rstrip(".").split())


def migrations_are_applied() -> str | None:
    from replay_web import health

    answer = health.migrations()
    advice = f"{answer}. Run `python3 manage.py migrate`, or restart `python3 manage.py up`."
    return unless_well(answer, advice)


def blobs_can_be_used() -> str | None:
    from replay_web import health

    answer = health.blobs()
    return unless_well(answer, f"{answer}. Check the address in REPLAY_BLOBS, and who may use it.")


def blobs_are_shared() -> str | None:
    from replay_web import health

    answer = health.shared_blobs()
    advice = (
        f"{answer}. Web and all workers need the same folder or bucket in REPLAY_BLOBS, on every "
        "machine: mount one that they share, and copy the files of each into it. `python3 manage.py verify` names what "
        "is nowhere."
    )
    return unless_well(answer, advice)


def unless_well(answer: str, advice: str) -> str | None:
    if answer == "ok":
        return None
    return NOT_KNOWN if answer.startswith("unknown") else advice


def worker_consumes() -> str | None:
    from replay_web import health
    from replay_web.celery import app

    if health.broker() != "ok":
        return NOT_KNOWN
    asked = app.control.inspect(timeout=1.0, limit=1)
    if any(asked.ping() for _ in range(WORKER_PATIENCE)):
        return None
    return "No worker answers, so replays stay queued. Start one: `python3 manage.py up`, or the `worker` service."


def queue_moves() -> str | None:
    """A worker may answer and take nothing: what counts is how long the oldest replay waits."""
    from django.db import DatabaseError
    from django.utils import timezone

    from sessions_app.services.leases import waiting_since

    try:
        since = waiting_since()
    except DatabaseError:
        return NOT_KNOWN
    waited = (timezone.now() - since).total_seconds() if since else 0
    if waited < QUEUE_PATIENCE:
        return None
    return f"A replay has waited for {waited:.0f} s and no worker took it. Look at the worker's log, then restart it."


def agents_can_be_loaded() -> str | None:
    """Those that the team registered; ours are known to be there, and those of runners are loaded there."""
    from django.conf import settings

    is_registered = is_given("REPLAY_AGENTS") or "REPLAY_AGENTS" in Home.from_environment().environment()
    if not is_registered or "code" not in settings.WORKER_QUEUES:
        return None
    from sessions_app.services.registered_agents import agent_line, problems_of_agents

    found = list(problems_of_agents())
    is_well = all(problem is None for _, problem in found)
    return None if is_well else "\n".join(["REPLAY_AGENTS", *(agent_line(*each) for each in found)])


ON_THE_MACHINE: dict[str, Check] = {
    "home folder": home_is_writable,
    "disk": disk_has_space,
    "secrets": secrets_can_be_read,
    "port": port_is_free,
    "private PostgreSQL": postgres_can_start,
    "private Redis": redis_can_start,
    "web server": web_answers,
}
IN_DJANGO: dict[str, Check] = {
    "settings": settings_are_valid,
    "database": database_answers,
    "Redis": redis_answers,
    "migrations": migrations_are_applied,
    "blobs": blobs_can_be_used,
    "shared blobs": blobs_are_shared,
    "worker": worker_consumes,
    "queue": queue_moves,
    "agents": agents_can_be_loaded,
}


def main() -> int:
    """Print what was found. The exit code: 0 when all is well, 1 when something is not."""
    home = Home.from_environment()
    print(situation(home))
    is_well = report(ON_THE_MACHINE)
    if home.is_held() or is_given("DATABASE_URL"):
        is_well = report(IN_DJANGO) and is_well
    print("All is well." if is_well else "Something needs you; see above.")
    return 0 if is_well else 1


def situation(home: Home) -> str:
    if home.is_held():
        return f"Replay runs on {home.path}, at {home.state().get('url')}."
    if is_given("DATABASE_URL"):
        return "PostgreSQL is the one of DATABASE_URL."
    killed = "The last run was killed; the next start recovers by itself. " if home.state() else ""
    return f"{killed}Replay is not running on {home.path}. `python3 manage.py up` starts it."


def report(checks: dict[str, Check]) -> bool:
    """One line for each check; the later ones need the settings, so those being wrong ends the list."""
    is_well = True
    for name, check in checks.items():
        problem = check()
        found = {None: "ok", NOT_KNOWN: "unknown"}.get(problem, "PROBLEM")
        print(f"  {found:8}{name}{': ' + problem if problem else ''}")
        is_well = is_well and problem is None
        if problem and check is settings_are_valid:
            break
    return is_well
