"""The ground gives way: the database is away, the disk is full, the server is stopped while it serves.

`TRIAL_SIZE=full` keeps the database away for 90 s. Each test prints its figure.
"""

import http.client
import json
import os
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from replay_web.supervisor.account import Account, services_folder, socket_folder
from replay_web.supervisor.home import Home
from replay_web.supervisor.postgres import Postgres
from replay_web.supervisor.watch import Watched
from tests.builders import make_record, make_tool_step
from tests.instances import Instance, fails_to_start, instance_in, open_folder
from tests.otlp_requests import JSON
from tests.trials.delivery import Delivery, Parcel, wait_until

AWAY = 90 if os.environ.get("TRIAL_SIZE") == "full" else 8
ENOUGH = 5
"""Seconds until it serves again."""
DISK = 700 * 1024 * 1024
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a small disk")


def native(n: int, size: int = 1) -> Parcel:
    record = make_record(f"native-{n}", make_tool_step(call_id="c", arguments={"n": n}, result="x" * size))
    return Parcel(name=f"native-{n}", path="/api/v1/runs", content_type=JSON, body=json.dumps(record).encode())


def seconds_until_acknowledged(delivery: Delivery, parcel: Parcel) -> float:
    """Tried twice a second, as by a sender that is in a hurry."""
    began = time.monotonic()
    while delivery.attempt(parcel) not in (200, 201):
        assert time.monotonic() - began < 120
        time.sleep(0.5)
    return time.monotonic() - began


@contextmanager
def database_server(folder: Path) -> Iterator[tuple[Watched, str]]:
    """A PostgreSQL that is not of the instance, and its address."""
    home, account = Home(folder / "database"), Account.for_services()
    home.prepare()
    services = services_folder(home, account)
    sockets = socket_folder(services, account)
    postgres = Postgres(home=home, account=account, services=services, sockets=sockets)
    server = Watched(postgres.program(), lambda name, pid: None, print)
    server.start()
    server.wait_ready(60)
    try:
        yield server, home.database_url(sockets)
    finally:
        server.ask_to_end()
        server.wait_end()


def test_serving_resumes_soon_after_the_database_is_back_however_long_it_was_away():
    with (
        open_folder() as folder,
        database_server(folder) as (server, url),
        instance_in(folder, DATABASE_URL=url) as instance,
    ):
        delivery = Delivery(instance)
        seconds_until_acknowledged(delivery, native(0))
        server.ask_to_end()
        server.wait_end()
        until = time.monotonic() + AWAY
        while time.monotonic() < until:
            delivery.attempt(native(1))
        server.start()
        server.wait_ready(60)
        took = seconds_until_acknowledged(delivery, native(2))

    print(f"away for {AWAY} s, serving {took:.1f} s after its return, {dict(delivery.statuses)}")
    assert set(delivery.statuses) == {201, 503}
    assert took < ENOUGH


def test_a_database_that_hangs_is_answered_503_within_ten_seconds():
    """Stopped, not gone: connections stay, and nothing ever comes over them."""
    with (
        open_folder() as folder,
        database_server(folder) as (server, url),
        instance_in(folder, DATABASE_URL=url) as instance,
    ):
        delivery = Delivery(instance)
        delivery.send_all([native(n) for n in range(8)])
        with hanging(server.process.pid), ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(timed_answer, [instance] * 16, list(_DOORS) * 4))
        took = seconds_until_acknowledged(delivery, native(9))

    slowest = max(seconds for _, seconds in answers)
    print(f"hanging: slowest answer after {slowest:.1f} s; serving {took:.1f} s after it went on")
    assert {status for status, _ in answers} == {503}
    assert slowest < 10
    assert took < ENOUGH


_DOORS = ("/api/v1/runs/native-1", "/api/v1/sessions", "/", "/readyz")
_HEADERS = {"Cookie": "sessionid=that-has-to-be-looked-for"}


@contextmanager
def hanging(postmaster: int) -> Iterator[None]:
    """Each session of PostgreSQL is a process of its own."""
    sessions = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    processes = [postmaster, *map(int, sessions)]
    for pid in processes:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in processes:
            os.kill(pid, signal.SIGCONT)


def timed_answer(instance: Instance, path: str) -> tuple[int, float]:
    began = time.monotonic()
    connection = http.client.HTTPConnection(urlsplit(instance.url).netloc, timeout=60)
    connection.request("GET", path, headers=_HEADERS | {"Authorization": f"Bearer {instance.api_key}"})
    status = connection.getresponse().status
    connection.close()
    return status, time.monotonic() - began


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """The home of an instance in this folder is a disk of its own."""
    place = folder / "home"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=711", "tmpfs", str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(place: Path) -> Path:
    """Until nothing more can be written."""
    filling = place / "filling"
    with filling.open("wb", buffering=0) as file:
        for size in (1024 * 1024, 4096, 1):
            try:
                while file.write(b"x" * size) == size:
                    pass
            except OSError:
                continue
    return filling


@needs_root
def test_after_a_full_disk_has_space_again_it_is_soon_serving():
    """The database falls over it: it cannot start again while nothing can be written."""
    with open_folder() as folder, small_disk(folder) as place, instance_in(folder) as instance:
        delivery = Delivery(instance)
        seconds_until_acknowledged(delivery, native(0))
        (pid,) = instance.pids("postgres")
        filling = fill(place)
        while_full = [delivery.attempt(native(n, size=300_000)) for n in range(1, 20)]
        os.kill(pid, signal.SIGKILL)
        until = time.monotonic() + AWAY
        while time.monotonic() < until:
            delivery.attempt(native(30))
            time.sleep(0.1)
        filling.unlink()
        took = seconds_until_acknowledged(delivery, native(31))

    print(f"serving {took:.1f} s after there was space again, {dict(delivery.statuses)}")
    assert 503 in while_full
    assert set(delivery.statuses) <= {201, 503}
    assert took < ENOUGH


@needs_root
def test_a_start_on_a_full_disk_says_so():
    with open_folder() as folder, small_disk(folder) as place:
        fill(place)
        assert fails_to_start(place) == f"The disk of {place} is full. Make room on it and start again.\n"


def test_a_stop_under_load_loses_no_request_that_was_sent():
    """What was sent is answered; a connection that was not made, or not yet asked for anything, may be refused."""
    with open_folder() as folder, instance_in(folder) as instance:
        answers: Counter[object] = Counter()
        senders = [threading.Thread(target=send_until_refused, args=(instance, n, answers)) for n in range(8)]
        for sender in senders:
            sender.start()
        wait_until(lambda: answers[201] > 100)
        began = time.monotonic()
        instance.process.send_signal(signal.SIGTERM)
        assert instance.process.wait(60) == 0
        took = time.monotonic() - began
        for sender in senders:
            sender.join()

    print(f"stopped within {took:.1f} s under load, {dict(answers)}")
    assert set(answers) <= {201, 503, "refused"}
    assert took < 30


def send_until_refused(instance: Instance, sender: int, answers: Counter[object]) -> None:
    address, key, n = urlsplit(instance.url), instance.api_key, 0
    while not answers["refused"]:
        n += 1
        body = native(sender * 100_000 + n, size=20_000).body
        answers[sent_once(str(address.netloc), key, body)] += 1


def sent_once(netloc: str, key: str, body: bytes) -> object:
    """The status, `refused` before anything was sent, or what became of a request that was sent."""
    connection = http.client.HTTPConnection(netloc, timeout=30)
    try:
        connection.connect()
    except OSError:
        return "refused"
    try:
        connection.request("POST", "/api/v1/runs", body, {"Authorization": f"Bearer {key}", "Content-Type": JSON})
        return connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return type(error).__name__
    finally:
        connection.close()
