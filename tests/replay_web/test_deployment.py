"""The commands of docker-compose.yml as they are written, in a folder that the image's steps make."""

import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis
import yaml

from replay_web.supervisor.account import Account
from replay_web.supervisor.home import PROJECT_ROOT, Home
from replay_web.supervisor.postgres import INSTALL, WHEEL, site
from replay_web.supervisor.redis import Redis, answers
from tests.builders import make_record
from tests.instances import PATIENCE, clean_environment, manage

COMPOSE: dict[str, Any] = yaml.safe_load((PROJECT_ROOT / "docker-compose.yml").read_text())


DOCKERFILE = (PROJECT_ROOT / "Dockerfile").read_text().replace("\\\n", "")
ELSEWHERE = ("RUN useradd ", "RUN sed ")
"""Steps that make a user and install packages: here both are there."""


def placed(text: str, folder: Path) -> str:
    """With the folders of the image below this one."""
    return text.replace("/var/lib/replay", f"{folder}/home").replace("/app", f"{folder}/app")


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the image copies and makes, and nothing else."""
    folder = tmp_path_factory.mktemp("image")
    (folder / "app").mkdir()
    for step in DOCKERFILE.splitlines():
        if step.startswith("COPY "):
            *sources, target = step.split()[1:]
            copies = [f"cp -r {PROJECT_ROOT / source} {target}" for source in sources]
            in_image(folder, " && ".join(copies))
        elif step.startswith("RUN ") and not step.startswith(ELSEWHERE):
            in_image(folder, placed(step.removeprefix("RUN "), folder))
    return folder


def in_image(folder: Path, command: str) -> None:
    subprocess.run(command, shell=True, cwd=folder / "app", env=image_environment(folder), check=True)


def image_environment(folder: Path) -> dict[str, str]:
    (said,) = re.findall(r"^ENV (.*)$", DOCKERFILE, re.MULTILINE)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {"PATH": path} | dict(pair.split("=", 1) for pair in placed(said, folder).split())


@pytest.fixture
def given_database() -> Iterator[str]:
    """An empty database beside that of the tests."""
    address = os.environ["DATABASE_URL"]
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE DATABASE deployed")
        yield address.replace("/replay?", "/deployed?")
        connection.execute("DROP DATABASE deployed WITH (FORCE)")


@pytest.fixture
def environment(given_database: str, image: Path, tmp_path: Path) -> dict[str, str]:
    """The variables of image and compose file, its secrets in files of ours."""
    secrets = {"database_url": given_database, "secret_key": "k" * 50}
    for name, value in secrets.items():
        (tmp_path / name).write_text(value + "\n")
    declared = {
        name: str(value).replace("/run/secrets", str(tmp_path))
        for name, value in COMPOSE["services"]["web"]["environment"].items()
        if not str(value).startswith("${")
    }
    return image_environment(image) | declared | {"REDIS_URL": os.environ["REDIS_URL"]}


@contextmanager
def running(command: list[str], image: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(command, env=environment, cwd=image / "app") as process:
        yield process
        process.terminate()
        assert process.wait(20) == 0


def done(command: list[str], image: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=environment, cwd=image / "app", capture_output=True, text=True, timeout=PATIENCE)


def until(check: Any, seconds: float = 20) -> Any:
    end = time.monotonic() + seconds
    while not (found := check()):
        assert time.monotonic() < end
        time.sleep(0.1)
    return found


def image_command() -> list[str]:
    command: list[str] = json.loads(DOCKERFILE.rpartition("CMD ")[2])
    return command


def command_of(service: str) -> list[str]:
    command: list[str] = COMPOSE["services"][service].get("command") or image_command()
    return command


def test_migrate_web_and_worker_run_with_what_they_are_given(image, environment):
    assert done(command_of("migrate"), image, environment).returncode == 0
    port = free_port()

    with running(web_command(port), image, environment), running(command_of("worker"), image, environment):
        assert set(until(lambda: readiness(port)).values()) == {"ok"}
        assert web_health(port, image, environment) == 0
        said = until(lambda: doctor_is_well(image, {**environment, "PORT": "0"}))
        assert worker_health(image, environment) == 0
        account = json.loads(done(["python", "manage.py", "bootstrap"], image, environment).stdout)
        assert status_of_a_run(port, account["api_key"]) == 201
        assert status_of_a_run(port, account["api_key"][:-1] + "?") == 401
        assert style_sheet(port).startswith("text/css")
    assert "ok      worker" in said
    assert worker_health(image, environment) == 1
    assert web_health(port, image, environment) == 1


def test_what_answers_ends_with_a_web_server_that_was_killed(image, environment):
    port = free_port()
    with subprocess.Popen(web_command(port), env=environment, cwd=image / "app") as server:
        until(lambda: is_open(port))
        server.kill()

    until(lambda: not is_open(port), seconds=10)


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return str(probe.getsockname()[1])


def web_command(port: str) -> list[str]:
    return [{"0.0.0.0": "127.0.0.1", "8000": port}.get(word, word) for word in command_of("web")]


def is_open(port: str) -> bool:
    """Whether something answers there."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5):
            return True
    except OSError:
        return False


def test_a_runner_takes_up_replays_of_code_with_what_it_is_given(image, environment, tmp_path):
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "shop.py").write_text("from pydantic_ai import Agent\n\norders = Agent()\n")
    runner = COMPOSE["services"]["runner"]
    folder = runner["environment"]["PYTHONPATH"]
    given = {"PYTHONPATH": str(tmp_path / "agents"), "REPLAY_AGENTS": "orders=shop:orders"}
    assert done(command_of("migrate"), image, environment).returncode == 0

    with running(command_of("runner"), image, environment | given):
        until(lambda: worker_health(image, environment) == 0)
        look = "celery --app replay_web.celery inspect active_queues --json"
        queues = json.loads(done(["python", "-m", *look.split()], image, environment).stdout)
    assert [queue["name"] for found in queues.values() for queue in found] == ["code"]
    assert f"./agents:{folder}:ro" in runner["volumes"]
    assert runner["profiles"] == ["runner"]


def test_the_image_compiles_all_code_that_it_holds_while_it_may_write():
    """Else each process of a replay compiles it anew."""
    text = (PROJECT_ROOT / "Dockerfile").read_text()
    compiled = re.search(r"^RUN python -m compileall -q (.*)$", text, re.MULTILINE)
    copied = re.findall(r"^COPY (\S+) ", text, re.MULTILINE)
    code = [name for name in copied if name == "manage.py" or (PROJECT_ROOT / name / "__init__.py").exists()]

    assert compiled
    assert sorted(compiled[1].split()) == sorted(code)
    assert text.rindex("\nCOPY ") < compiled.start() < text.index("\nUSER ")


def test_machines_that_start_together_migrate_in_turn(image, environment):
    both = [
        subprocess.Popen(command_of("migrate"), env=environment, cwd=image / "app", stdout=subprocess.DEVNULL)
        for _ in range(2)
    ]

    assert [process.wait(PATIENCE) for process in both] == [0, 0]


@pytest.mark.parametrize("command", [["bootstrap"], ["keys", "my-project"], ["verify"]])
def test_a_command_before_migrate_says_so_in_one_line(command, given_database, tmp_path):
    given = {"SECRET_KEY": "k" * 50, "REPLAY_HOME": str(tmp_path), "DATABASE_URL": given_database}

    done = manage(*command, environment=clean_environment(**given))

    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        1,
        "The database has not all tables of this version. Run `migrate` first.",
    )
    assert "Traceback" not in done.stderr


def status_of_a_run(port: str, key: str) -> int:
    body = json.dumps(make_record("first")).encode()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/api/v1/runs", body, headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code


def worker_health(image: Path, environment: dict[str, str]) -> int:
    return done(COMPOSE["services"]["worker"]["healthcheck"]["test"][1:], image, environment).returncode


def web_health(port: str, image: Path, environment: dict[str, str]) -> int:
    test = [word.replace(":8000", f":{port}") for word in COMPOSE["services"]["web"]["healthcheck"]["test"]]
    return done(test[1:], image, environment).returncode


def style_sheet(port: str) -> str:
    """The type of the first one that the page of signing in names."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/sign-in", timeout=10) as page:
        address = re.search(r'href="(/static/[^"]+\.css)"', page.read().decode())
    assert address
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{address[1]}", timeout=10) as answer:
        return str(answer.headers["Content-Type"])


def readiness(port: str) -> dict[str, str] | None:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10) as answer:
            checks: dict[str, str] = json.load(answer)["checks"]
            return checks
    except OSError:
        return None


def doctor_is_well(image: Path, environment: dict[str, str]) -> str:
    looked = done(["python", "manage.py", "doctor"], image, environment)
    return looked.stdout if looked.returncode == 0 else ""


def test_no_database_port_is_published():
    published = {name for name, service in COMPOSE["services"].items() if "ports" in service}

    assert published == {"web"}
    assert COMPOSE["services"]["web"]["ports"][0].startswith("127.0.0.1:")


def test_secrets_come_from_files():
    text = (PROJECT_ROOT / "docker-compose.yml").read_text()

    assert set(COMPOSE["secrets"]) == {"database_password", "database_url", "secret_key"}
    assert not [line for line in text.splitlines() if "PASSWORD:" in line or "SECRET_KEY:" in line]


@pytest.mark.parametrize("https", ["0", "1"])
def test_the_shipped_settings_pass_the_deployment_checks(https, tmp_path):
    environment = clean_environment(SECRET_KEY=os.urandom(32).hex(), HTTPS=https, REPLAY_HOME=str(tmp_path))

    checked = manage("check", "--deploy", "--fail-level", "WARNING", environment=environment)

    assert (checked.returncode, checked.stderr) == (0, "")


def test_redis_keeps_nothing_with_what_it_is_given(tmp_path):
    program, *options = command_of("redis")
    account = Account(os.geteuid(), os.getegid())
    binary = Redis(home=Home(tmp_path), account=account, services=tmp_path, sockets=tmp_path).binary()
    place = ["--port", "0", "--unixsocket", str(tmp_path / "redis.sock"), "--dir", str(tmp_path)]

    with subprocess.Popen([binary, *options, *place], stdout=subprocess.DEVNULL) as process:
        until(lambda: answers(tmp_path / "redis.sock"))
        with redis.Redis(unix_socket_path=str(tmp_path / "redis.sock"), decode_responses=True) as client:
            said = {**client.config_get("save"), **client.config_get("maxmemory*"), **client.config_get("appendonly")}
        process.terminate()

    assert program == "redis-server"
    assert (said["save"], said["appendonly"]) == ("", "no")
    assert (said["maxmemory"], said["maxmemory-policy"]) == (str(64 * 2**20), "noeviction")


@pytest.mark.parametrize(("port", "code"), [(None, 0), ("1", 2)])
def test_whether_postgres_is_ready_is_asked_in_words_that_it_knows(port, code):
    """`redis-cli ping` has no words of ours; the binary is not in the package that carries the server."""
    program, *words = COMPOSE["services"]["postgres"]["healthcheck"]["test"][1:]
    given = psycopg.conninfo.conninfo_to_dict(os.environ["DATABASE_URL"])
    place = {"PGHOST": str(given["host"]), "PGPORT": port or str(given.get("port", 5432))}

    asked = subprocess.run([program_of_postgres(program), *words], env=place, capture_output=True)

    assert (asked.returncode, asked.stderr) == (code, b"")


def program_of_postgres(name: str) -> Path:
    spec = importlib.util.find_spec(WHEEL)
    assert spec is not None
    assert spec.origin is not None
    return site(spec.origin) / INSTALL / "bin" / name


def test_every_service_is_started_by_a_test():
    """`postgres` is the image as it is: its own users and commands, and no words of ours but its variables."""
    started = {"migrate", "web", "worker", "runner", "redis"}

    assert set(COMPOSE["services"]) == started | {"postgres"}
    assert "command" not in COMPOSE["services"]["postgres"]


# --- variables ---------------------------------------------------------------------------------

PAGE = (PROJECT_ROOT / "docs/deploying.md").read_text()
OF_COMPOSE_ALONE = {"RUNNER_IMAGE"}


def test_every_variable_is_documented():
    assert read_by_code() - documented_in(PAGE) == set()


def test_every_documented_variable_is_read():
    assert documented_in(PAGE) - read_by_code() - OF_COMPOSE_ALONE == set()


def test_a_variable_that_nobody_reads_is_found():
    page = PAGE + "\n| `REPLAY_KETTLE`, `REPLAY_CUP` | | nothing |\n"

    assert documented_in(page) - read_by_code() - OF_COMPOSE_ALONE == {"REPLAY_KETTLE", "REPLAY_CUP"}


def test_what_compose_takes_from_its_own_environment_is_what_the_page_says():
    (said,) = re.findall(r"^((?:`[A-Z_]+`,? ?(?:and )?)+) are taken from the environment or from `.env`", PAGE, re.M)
    asked = set(re.findall(r"\$\{([A-Z_]+)", (PROJECT_ROOT / "docker-compose.yml").read_text()))

    assert asked - OF_COMPOSE_ALONE == set(re.findall("[A-Z_]+", said))


def test_every_variable_that_compose_gives_is_read():
    own = [service for service in COMPOSE["services"].values() if service["image"].startswith(("agent-", "${RUNNER"))]
    given = {name.removesuffix("_FILE") for service in own for name in service["environment"]}

    assert len(own) == 4
    assert given - read_by_code() == set()


@pytest.mark.parametrize("service", ["web", "worker", "runner", "migrate"])
def test_the_environment_file_reaches_every_service_and_the_table_what_it_may_hold(service):
    assert [file["path"] for file in COMPOSE["services"][service]["env_file"]] == ["replay.env"]
    (lines,) = re.findall(r"In `replay.env`:\n\n((?: {4}.+\n)+)", PAGE)
    examples = set(re.findall(r"^ +([A-Z_]+)=", lines, re.MULTILINE))

    assert examples == {"REPLAY_AGENTS", "WORKER_QUEUES"}
    assert examples <= documented_in(PAGE) - set(COMPOSE["services"][service]["environment"])


def documented_in(page: str) -> set[str]:
    """The names in the first column of the table, and what is for compose alone."""
    rows = re.findall(r"^\| ((?:`[A-Z_]+`(?:, )?)+) \|", page, re.MULTILINE)
    named = {name for row in rows for name in re.findall("[A-Z_]+", row)}
    return named | {name for name in OF_COMPOSE_ALONE if f"`{name}`" in page}


def read_by_code() -> set[str]:
    return {name for source in (PROJECT_ROOT / "replay_web").rglob("*.py") for name in variables_in(source.read_text())}


def variables_in(text: str) -> set[str]:
    return set(re.findall(r'(?:env\.\w+|environ\.get|is_given)\(\s*"([A-Z_]+)"', text)) - {"PATH"}


def test_the_locks_name_no_address():
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = (PROJECT_ROOT / name).read_text()
        assert "//" not in text
        assert "--hash=sha256:" in text
