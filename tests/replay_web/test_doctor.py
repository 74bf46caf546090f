"""What the doctor finds."""

import os
import signal
import socket
from urllib.parse import urlsplit

import pytest

from replay_web import doctor
from tests.instances import clean_environment, fails_to_start, manage, wait_for_worker


def see_doctor(**environment: str) -> tuple[int, str]:
    done = manage("doctor", environment=clean_environment(**environment))
    return done.returncode, done.stdout + done.stderr


def test_a_running_home_is_well(running_instance):
    wait_for_worker(running_instance)

    code, said = see_doctor(REPLAY_HOME=str(running_instance.home.path))

    assert said.startswith(f"Replay runs on {running_instance.home.path}, at {running_instance.url}.")
    assert (code, said.splitlines()[-1]) == (0, "All is well.")


def test_a_stopped_worker_is_found(running_instance):
    [worker] = running_instance.pids("worker")
    os.kill(worker, signal.SIGSTOP)
    try:
        code, said = see_doctor(REPLAY_HOME=str(running_instance.home.path))
    finally:
        os.kill(worker, signal.SIGCONT)

    assert (code, "No worker answers" in said) == (1, True)


@pytest.mark.parametrize(
    ("kept", "wrong"),
    [(b"", "is empty. It holds a secret"), (b"\xff\xfe", "is damaged: it does not hold text. It holds a secret")],
)
def test_a_broken_secret_is_named_by_doctor_up_and_any_command(tmp_path, kept, wrong):
    secret = tmp_path / "home/secrets/secret_key"
    secret.parent.mkdir(parents=True)
    secret.write_bytes(kept)
    environment = clean_environment(REPLAY_HOME=str(tmp_path / "home"))

    said = [manage(command, environment=environment) for command in ("doctor", "verify")]
    said_by_up = fails_to_start(tmp_path / "home")

    assert [done.returncode for done in said] == [1, 1]
    texts = [done.stdout + done.stderr for done in said] + [said_by_up]
    assert all(f"{secret} {wrong}" in text and "Traceback" not in text for text in texts)


def test_a_fresh_machine_is_well(tmp_path):
    code, said = see_doctor(REPLAY_HOME=str(tmp_path / "home"), PORT="0")

    assert (code, "`python3 manage.py up` starts it" in said) == (0, True)
    assert not (tmp_path / "home").exists()


def test_a_taken_port_is_found(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, said = see_doctor(REPLAY_HOME=str(tmp_path), PORT=port)

    assert (code, f"Port {port} is taken" in said) == (1, True)


def test_services_that_do_not_answer_are_found(tmp_path):
    code, said = see_doctor(
        REPLAY_HOME=str(tmp_path),
        PORT="0",
        SECRET_KEY="x" * 50,
        DATABASE_URL="postgresql://replay@127.0.0.1:1/replay",
        REDIS_URL="redis://127.0.0.1:1/0",
    )

    assert code == 1
    assert 'PROBLEM database: connection to server at "127.0.0.1", port 1 failed: Connection refused. Check' in said
    assert "PROBLEM Redis: Error 111 connecting to 127.0.0.1:1. Connection refused. Check REDIS_URL" in said
    assert [line.split()[1] for line in said.splitlines() if line.startswith("  unknown")] == [
        *("migrations", "shared", "worker", "queue")
    ]


def test_a_wrong_password_is_not_a_server_that_is_away(running_instance, tmp_path):
    home = clean_environment(REPLAY_HOME=str(running_instance.home.path))
    address = urlsplit(manage("database_url", environment=home).stdout.strip())
    wrong = address._replace(netloc="replay:wrong@").geturl()

    _, said = see_doctor(REPLAY_HOME=str(tmp_path), PORT="0", SECRET_KEY="x" * 50, DATABASE_URL=wrong)

    assert 'failed: FATAL: password authentication failed for user "replay". Check DATABASE_URL' in said


def test_a_bad_setting_does_not_silence_the_doctor(tmp_path):
    code, said = see_doctor(REPLAY_HOME=str(tmp_path), PORT="0", DATABASE_URL="mysql://somewhere/replay")

    assert (code, "SECRET_KEY is not set" in said) == (1, True)


def test_a_missing_redis_is_told_how_to_install(tmp_path, monkeypatch):
    monkeypatch.delenv("REDIS_URL")
    monkeypatch.setenv("REPLAY_HOME", str(tmp_path))
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr("replay_web.supervisor.redis.BUNDLED", "nowhere")

    assert "apt install redis-server" in (doctor.redis_can_start() or "")


def test_data_that_is_gone_is_found(tmp_path, monkeypatch):
    monkeypatch.delenv("DATABASE_URL")
    monkeypatch.setenv("REPLAY_HOME", str(tmp_path))
    (tmp_path / "services").symlink_to(tmp_path / "gone")

    assert f"was in {tmp_path}/gone, which is gone" in (doctor.postgres_can_start() or "")


def test_a_full_disk_is_found(monkeypatch):
    monkeypatch.setattr(doctor, "SPACE_NEEDED", 2**80)

    assert "make room" in (doctor.disk_has_space() or "")


@pytest.mark.django_db
def test_pending_migrations_are_found(monkeypatch):
    monkeypatch.setattr("replay_web.health.pending_migrations", lambda: ["sessions_app.0002"])

    assert "1 pending" in (doctor.migrations_are_applied() or "")
