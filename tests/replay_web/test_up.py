"""`manage.py up`, as people use it and as machines fail."""

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
import urllib.request
import venv
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import psycopg
import pytest

from replay_web.supervisor.account import STATE_FOLDER, Account, services_folder
from replay_web.supervisor.home import PROJECT_ROOT
from replay_web.supervisor.processes import session_members, stat_fields, wait_gone
from tests.instances import (
    PATIENCE,
    Instance,
    clean_environment,
    fails_to_start,
    instance_in,
    manage,
    open_folder,
    start_instance,
)

SECOND_START = 5.0  # seconds
LOADS_OF_DJANGO = 8  # or as long as this many commands take one after the other, where the machine is busy


@pytest.fixture
def folder() -> Iterator[Path]:
    with open_folder() as made:
        yield made


def get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=10) as answer:
        body: bytes = answer.read()
        return body


def database(instance: Instance, **options: Any) -> psycopg.Connection:
    sockets = instance.home.state()["postgres_sockets"]
    return psycopg.connect(instance.home.database_url(Path(sockets)), autocommit=True, **options)


def all_pids(instance: Instance) -> list[int]:
    """Everything that works for the instance; PostgreSQL's processes leave their parent's session."""
    children = instance.pids()
    members = [member for pid in children for member in session_members(pid)]
    backends = [int(name) for name in os.listdir("/proc") if name.isdecimal() and parent(int(name)) in children]
    return sorted({instance.process.pid, *members, *backends})


def parent(pid: int) -> int:
    fields = stat_fields(pid)
    return int(fields[1]) if fields else 0


def test_up_serves_and_stops_without_a_trace_also_where_the_path_is_too_long_for_sockets(folder):
    long = folder / ("a" * 100) / ("b" * 100)
    long.mkdir(parents=True)

    with instance_in(long) as instance:
        pids = all_pids(instance)
        sockets = Path(instance.home.state()["sockets"])
        assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
        assert get(f"{instance.url}/healthz") == b"ok\n"
        assert b'"ready": true' in get(f"{instance.url}/readyz")

        assert instance.stop(signal.SIGINT) == 0

    assert len(pids) >= 8
    assert wait_gone(pids, 2)
    assert "up.json" not in os.listdir(instance.home.path / "run")
    assert not sockets.exists()


@pytest.fixture(scope="module")
def used_folder() -> Iterator[Path]:
    """The folder of an instance that ran before and holds a table with one row."""
    with open_folder() as made:
        with instance_in(made) as instance, database(instance) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 1 AS number")
        yield made


def kept(instance: Instance) -> Any:
    with database(instance) as connection:
        return connection.execute("SELECT number FROM kept").fetchone()


def test_a_second_start_is_quick_and_finds_the_data(used_folder):
    started = time.monotonic()
    with instance_in(used_folder) as instance:
        took = time.monotonic() - started
        assert kept(instance) == (1,)
        assert took < max(SECOND_START, LOADS_OF_DJANGO * seconds_of_a_command())


def seconds_of_a_command() -> float:
    started = time.monotonic()
    done = manage("check", environment=clean_environment(DJANGO_SETTINGS_MODULE="replay_web.settings.dev"))
    assert done.returncode == 0, done.stderr
    return time.monotonic() - started


def test_commands_find_the_agents_of_the_instance(used_folder):
    """The command's own environment names none; the next start without any forgets them."""
    with instance_in(used_folder, REPLAY_AGENTS="desk=sessions_app.examples.agents:order_desk") as instance:
        environment = clean_environment(REPLAY_HOME=str(instance.home.path))
        found = manage("replay", "cancel_5521", "--agent", "desk", environment=environment)
        unknown = manage("replay", "cancel_5521", "--agent", "order_desk", environment=environment)
    with instance_in(used_folder):
        forgotten = manage("replay", "cancel_5521", "--agent", "desk", environment=environment)

    assert (found.returncode, "done: reproduced" in found.stdout) == (0, True), found.stderr
    assert (unknown.returncode, "there are: desk. To register it, set REPLAY_AGENTS" in unknown.stderr) == (2, True)
    assert (forgotten.returncode, "No agent 'desk' is registered" in forgotten.stderr) == (2, True)


def test_an_agent_that_cannot_be_loaded_is_named_by_up_and_doctor(used_folder, tmp_path):
    """The folder of the modules is named from where `up` is started, and known to other commands."""
    (tmp_path / "desk_shop.py").write_text("from sessions_app.examples.agents import order_desk")
    agents = "desk=desk_shop:order_desk, gone=desk_shop:gone"
    folder = os.path.relpath(tmp_path, PROJECT_ROOT)
    with instance_in(used_folder, REPLAY_AGENTS=agents, PYTHONPATH=folder) as instance:
        environment = clean_environment(REPLAY_HOME=str(instance.home.path))
        doctor = manage("doctor", environment=environment)
        until = time.monotonic() + PATIENCE
        while "PROBLEM" not in (said := instance.output.read_text()) and time.monotonic() < until:
            time.sleep(0.1)

    lines = [
        "  ok      desk=desk_shop:order_desk",
        "  PROBLEM gone=desk_shop:gone: could not be loaded: the module has no 'gone'.",
    ]
    assert said.splitlines()[-2:] == lines
    assert (doctor.returncode, [line for line in lines if line not in doctor.stdout]) == (1, []), doctor.stdout


def test_a_runner_replays_from_the_team_s_own_folder(used_folder, tmp_path):
    """Control: before it runs nobody takes the replay up, and `up` has not tried to load its agents."""
    (tmp_path / "desk_shop.py").write_text("from sessions_app.examples.agents import order_desk")
    agents = "desk=desk_shop:order_desk"
    with instance_in(used_folder, REPLAY_AGENTS=agents, WORKER_QUEUES="replays") as instance:
        environment = clean_environment(REPLAY_HOME=str(instance.home.path))
        doctor = manage("doctor", environment=environment)
        manage("replay", "cancel_5521", "--agent", "desk", "--no-wait", environment=environment)
        time.sleep(2)
        with database(instance) as connection:
            before = connection.execute("SELECT state FROM sessions_app_replay ORDER BY id DESC LIMIT 1").fetchone()
        with runner_in(tmp_path, environment | {"REPLAY_AGENTS": agents, "PYTHONPATH": "."}) as said:
            found = manage("replay", "cancel_5521", "--agent", "desk", "--tools", "run", environment=environment)

    assert (before, "PROBLEM" in instance.output.read_text()) == (("queued",), False)
    assert doctor.returncode == 0, doctor.stdout
    assert (found.returncode, "done: reproduced" in found.stdout) == (0, True), found.stderr
    assert said.read_text().startswith(f"This runner has the packages of {sys.prefix}, with Pydantic AI ")
    assert "  ok      desk=desk_shop:order_desk" in said.read_text()


@contextmanager
def runner_in(folder: Path, environment: dict[str, str]) -> Iterator[Path]:
    """What it says, while it runs."""
    said = folder / "runner.log"
    with said.open("w") as output:
        command = [sys.executable, str(PROJECT_ROOT / "manage.py"), "runner"]
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=output)
    try:
        yield said
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE)


def test_a_runner_stays_in_its_environment_and_names_what_that_lacks(tmp_path):
    """Control: any other command goes on in the server's."""
    venv.create(tmp_path / "team")
    command = [tmp_path / "team/bin/python", PROJECT_ROOT / "manage.py"]
    environment = clean_environment(SECRET_KEY="x")

    runner, other = (
        subprocess.run([*command, *more], env=environment, capture_output=True, text=True, timeout=120)
        for more in (["runner"], ["runner_of_another_name"])
    )

    assert (runner.returncode, runner.stdout) == (1, "")
    assert runner.stderr.startswith(f"The environment {tmp_path / 'team'} lacks axes, celery, django, ")
    assert f"-m pip install -r {PROJECT_ROOT / 'requirements-runner.in'}" in runner.stderr
    assert "Unknown command: 'runner_of_another_name'" in other.stderr


@pytest.mark.parametrize("victims", ["supervisor", "everything"])
def test_a_killed_instance_comes_back_with_its_data(used_folder, victims):
    instance = start_instance(used_folder / "home")
    pids = all_pids(instance)
    for pid in [instance.process.pid] if victims == "supervisor" else pids:
        with suppress(ProcessLookupError):  # some end with one that was killed before them
            os.kill(pid, signal.SIGKILL)
    instance.process.wait()

    with instance_in(used_folder) as again:
        assert kept(again) == (1,)
        assert wait_gone(pids, 2)


@pytest.mark.parametrize("name", ["postgres", "redis", "web", "worker"])
def test_what_dies_is_started_again(running_instance, name):
    [before] = running_instance.pids(name)

    os.kill(before, signal.SIGKILL)

    until = time.monotonic() + 40
    while running_instance.pids(name) == [before] or not is_ready(running_instance):
        assert time.monotonic() < until
        time.sleep(0.1)


def test_somebody_answers_while_the_web_server_is_down(running_instance):
    """Nothing is refused: some senders throw a batch away when nobody listens."""
    [before] = running_instance.pids("web")
    port = int(running_instance.url.rpartition(":")[2])

    os.kill(before, signal.SIGKILL)
    answers = answers_until("503 after 2", port)
    until = time.monotonic() + 40  # it was killed before: there is a pause, and the machine may be busy
    while {answer_of(port) for _ in range(20)} != {401}:  # for a moment both answer
        assert time.monotonic() < until
        time.sleep(0.05)

    # One that it had begun, or had just ended, goes down with it.
    assert set(answers) <= {"503 after 2", "ConnectionResetError", "RemoteDisconnected", 401}


def test_the_port_is_free_at_once_although_somebody_answered_to_the_end(used_folder):
    with instance_in(used_folder) as instance:
        port = int(instance.url.rpartition(":")[2])
        os.kill(instance.pids("web")[0], signal.SIGKILL)
        answers_until("503 after 2", port)

    with instance_in(used_folder, PORT=str(port)) as again:
        assert again.url == instance.url


def test_a_port_that_systemd_holds_is_never_closed(used_folder):
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        with instance_in(used_folder, held) as first:
            assert first.url == f"http://127.0.0.1:{port}"
            assert answer_of(port) == 401

        with ThreadPoolExecutor() as pool:
            waiting = pool.submit(answer_of, port)
            with instance_in(used_folder, held):
                assert waiting.result() == 401


@pytest.mark.parametrize("kind", [(socket.AF_UNIX, socket.SOCK_STREAM), (socket.AF_INET, socket.SOCK_DGRAM)])
def test_a_socket_of_another_kind_is_refused(folder, kind):
    with socket.socket(*kind) as other:
        assert "LISTEN_FDS has to give one TCP socket" in fails_to_start(folder / "home", other)


def answers_until(wanted: str, port: int) -> Counter[int | str]:
    """What was answered until this came; the children of one that was killed answer for a moment longer."""
    answers: Counter[int | str] = Counter()
    until = time.monotonic() + 40
    while wanted not in answers:
        assert time.monotonic() < until, answers
        answers[answer_of(port)] += 1
    return answers


def answer_of(port: int) -> int | str:
    """The status, with the pause that is asked for, or what went wrong."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("POST", "/v1/traces", b"x" * 100_000, {"Content-Type": "application/x-protobuf"})
        answer = connection.getresponse()
    except OSError as error:
        return type(error).__name__
    finally:
        connection.close()
    pause = answer.headers["Retry-After"]
    return answer.status if pause is None else f"{answer.status} after {pause}"


def is_ready(instance: Instance) -> bool:
    try:
        return b'"ready": true' in get(f"{instance.url}/readyz")
    except OSError:
        return False


def test_a_second_up_on_the_same_home_says_where_the_first_is(running_instance):
    said = fails_to_start(running_instance.home.path)

    assert f"already runs on {running_instance.home.path}, at {running_instance.url}" in said


def test_a_taken_port_is_named(folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"Port {port} is taken" in fails_to_start(folder / "home", PORT=str(port))


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"PORT": "http"}, "PORT is 'http'; it has to be a number"),
        ({"PORT": "9" * 5000}, "it has to be a number from 0 to 65535"),
        ({"HOST": "0.0.0.0"}, "Set ALLOWED_HOSTS to the names they use"),
        ({"REPLAY_HOME": "/proc/replay"}, "The folder /proc/replay cannot be written"),
        ({"REPLAY_LEASE_SECONDS": "soon"}, "REPLAY_LEASE_SECONDS is 'soon'"),
    ],
)
def test_a_bad_environment_is_named(folder, environment, expected):
    assert expected in fails_to_start(folder / "home", **environment)


def test_a_wrong_database_password_is_refused(running_instance):
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        database(running_instance, password="wrong")


def test_the_role_of_the_product_is_no_superuser(running_instance):
    with database(running_instance) as connection:
        query = "SELECT rolsuper FROM pg_roles WHERE rolname = current_user"
        assert connection.execute(query).fetchone() == (False,)


def test_a_crash_of_the_machine_loses_no_answer(running_instance):
    with database(running_instance) as connection:
        settings = [connection.execute(f"SHOW {name}").fetchone() for name in ("fsync", "synchronous_commit")]
    assert settings == [("on",), ("on",)]


def test_only_the_web_server_listens(running_instance):
    pids = all_pids(running_instance)
    inodes = {inode for pid in pids for inode in socket_inodes(pid)}
    listening = [
        line.split() for table in ("tcp", "tcp6") for line in Path(f"/proc/net/{table}").read_text().splitlines()
    ]
    ports = {int(row[1].rpartition(":")[2], 16) for row in listening if row[3] == "0A" and row[9] in inodes}

    assert ports == {int(running_instance.url.rpartition(":")[2])}


def socket_inodes(pid: int) -> set[str]:
    links = [os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir() if entry.is_symlink()]
    return {link.removeprefix("socket:[").removesuffix("]") for link in links if link.startswith("socket:")}


def test_what_is_secret_is_for_its_owner_alone(running_instance):
    home = running_instance.home
    private = [Path(home.state()["sockets"]), home.path / "run", home.path / "logs", home.path / "secrets"]

    assert [oct(stat.S_IMODE(path.stat().st_mode)) for path in private] == ["0o700"] * 4
    assert {stat.S_IMODE(path.stat().st_mode) for path in (home.path / "secrets").iterdir()} == {0o600}


def test_no_secret_is_on_a_command_line_or_in_a_service(running_instance):
    secrets = [path.read_bytes() for path in (running_instance.home.path / "secrets").iterdir()]
    lines = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in all_pids(running_instance)]
    lines += [
        Path(f"/proc/{pid}/environ").read_bytes()
        for name in ("postgres", "redis")
        for pid in running_instance.pids(name)
    ]

    assert not [line for line in lines for secret in secrets if secret in line]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs PostgreSQL as another user")
def test_a_home_under_a_closed_folder_leaves_that_folder_closed(tmp_path):
    tmp_path.chmod(0o700)
    modes = [path.stat().st_mode for path in (tmp_path, *tmp_path.parents)]

    with instance_in(tmp_path) as instance:
        place = instance.home.services.resolve()
        assert place.parent == STATE_FOLDER
        assert [path.stat().st_mode for path in (tmp_path, *tmp_path.parents)] == modes
    assert services_folder(instance.home, Account.for_services()) == place
    shutil.rmtree(place)
