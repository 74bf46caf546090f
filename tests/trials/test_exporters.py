"""Real exporters deliver every span although the server goes away while they send.

By hand, with the packages of another version or of another language in a folder of their own:

    python -m tests.trials.test_exporters SPANS RESTARTS up|held|web PATIENCE COMMAND ...

where PATIENCE is the timeout of the exporter in seconds and COMMAND runs exporting.py or exporting.mjs. With `up` the
whole instance is stopped and started, and its port is closed meanwhile; with `held` somebody holds the port open, as
systemd does; with `web` the web server alone is ended, and `up` starts it again.
"""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.instances import Instance, clean_environment, instance_in, open_folder, start_instance
from tests.trials.delivery import kill_web, rows, wait_until

SCRIPT = str(Path(__file__).with_name("exporting.py"))
GATE = 6  # requests that the server lets in at once
_COUNTS = "SELECT coalesce(sum(span_count), 0), count(*), count(problem) FROM sessions_app_trace"


@pytest.fixture(scope="module")
def instance() -> Iterator[Instance]:
    with open_folder() as folder, instance_in(folder) as instance:
        yield instance


def start_exporter(instance: Instance, *command: str, patience: int = 60) -> subprocess.Popen[str]:
    environment = clean_environment(
        OTEL_EXPORTER_OTLP_ENDPOINT=instance.url,
        OTEL_EXPORTER_OTLP_HEADERS=f"authorization=Bearer {instance.api_key}",
        OTEL_EXPORTER_OTLP_TIMEOUT=str(patience),
        OTEL_EXPORTER_OTLP_TIMEOUT_MS=str(patience * 1000),
        PYDANTIC_AI_NO_BANNER="1",
    )
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def stored_spans(instance: Instance) -> int:
    return int(str(rows(instance, _COUNTS)[0][0]))


def overload(instance: Instance, seconds: float) -> None:
    """Fill the house with requests whose bodies do not come, so that all others are told to come back."""
    address = urlsplit(instance.url)
    head = (
        "POST /v1/traces HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {instance.api_key}\r\nContent-Length: 9\r\n\r\n"
    )
    slow = [socket.create_connection((str(address.hostname), int(address.port or 0))) for _ in range(GATE)]
    for connection in slow:
        connection.sendall(head.encode())
    time.sleep(seconds)
    for connection in slow:
        connection.close()


@pytest.mark.parametrize("source", ["spans", "pydantic_ai"])
def test_every_span_arrives_although_the_server_is_restarted(instance, source):
    before = stored_spans(instance)
    exporter = start_exporter(instance, sys.executable, SCRIPT, "json", source, "100")
    wait_until(lambda: stored_spans(instance) > before)
    kill_web(instance, signal.SIGTERM)

    said, complaints = exporter.communicate(timeout=120)

    assert exporter.returncode == 0, complaints
    assert int(said) >= 100
    assert stored_spans(instance) - before == int(said), complaints
    assert rows(instance, _COUNTS)[0][2] == 0


def trial(spans: int, restarts: int, what: str, patience: int, command: list[str]) -> None:
    """Prints how many spans ended and how many are stored."""
    with open_folder() as folder, socket.create_server(("127.0.0.1", 0)) as held:
        listening = held if what == "held" else None
        instance, started = start_instance(folder / "home", listening), time.monotonic()
        exporter = start_exporter(instance, *command, str(spans), patience=patience)
        for n in range(restarts):
            wait_for_spans(instance, exporter, spans * n // (restarts + 1))
            if n == restarts // 2:
                overload(instance, 4)
            print(f"    at {stored_spans(instance)} spans, the exporter is at work: {exporter.poll() is None}")
            instance = started_again(instance, what, listening)
        said, complaints = exporter.communicate(timeout=600)
        print(f"{stored_spans(instance)} of {said.strip()} spans, {time.monotonic() - started:.0f} s: {command}")
        print(complaints[:600])
        instance.stop()


def wait_for_spans(instance: Instance, exporter: subprocess.Popen[str], count: int) -> None:
    wait_until(lambda: exporter.poll() is not None or stored_spans(instance) >= count)


def started_again(instance: Instance, what: str, listening: socket.socket | None) -> Instance:
    if what == "web":
        kill_web(instance, signal.SIGTERM)
        return instance
    instance.stop()
    return start_instance(instance.home.path, listening, PORT=str(urlsplit(instance.url).port))


if __name__ == "__main__":
    trial(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), sys.argv[5:])
