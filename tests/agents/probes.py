"""Ways to reach the world, to misbehave and to look around. Each runs in the replay process by name.

Outside of it, `python -m tests.agents.probes NAME ARGUMENT` shows that each of them does reach the world.
"""

import gc
import multiprocessing
import os
import re
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

# --- the network: ARGUMENT is the port of a server on loopback


def connect(port: str) -> None:
    socket.create_connection(("127.0.0.1", int(port)), 2).close()


def connect_quietly(port: str) -> None:
    with socket.socket() as client:
        assert client.connect_ex(("127.0.0.1", int(port))) == 0


def send_datagram(port: str) -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as client:
        client.sendto(b"hello", ("127.0.0.1", int(port)))


def fetch(port: str) -> None:
    urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=2).close()


def listen(port: str) -> None:
    socket.create_server(("127.0.0.1", 0)).close()


def resolve(port: str) -> None:
    socket.getaddrinfo("localhost", int(port))


def resolve_the_old_way(port: str) -> None:
    socket.gethostbyname("localhost")


# --- programs


def run_program(argument: str) -> None:
    subprocess.run(["true"], check=True)


def run_shell(argument: str) -> None:
    os.system("true")


def fork(argument: str) -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def spawn(argument: str) -> None:
    os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)


def start_process(argument: str) -> None:
    """multiprocessing has a way of its own to start Python."""
    process = multiprocessing.get_context("spawn").Process(target=time.time)
    process.start()
    process.join()


def kill_parent(argument: str) -> None:
    os.kill(os.getppid(), 0)


def replace_itself(argument: str) -> None:
    os.execv("/bin/true", ["true"])


# --- the disk: ARGUMENT is a file that exists


def write(path: str) -> None:
    Path(path).write_text("changed")


def append(path: str) -> None:
    with open(path, "a") as file:
        file.write("more")


def open_low(path: str) -> None:
    os.close(os.open(f"{path}.new", os.O_CREAT | os.O_WRONLY))


def remove(path: str) -> None:
    os.remove(path)


def rename(path: str) -> None:
    os.replace(path, f"{path}.moved")


def make_folder(path: str) -> None:
    os.mkdir(f"{path}.folder")


def link(path: str) -> None:
    os.symlink(path, f"{path}.link")


def change_mode(path: str) -> None:
    os.chmod(path, 0o777)


def keep_in_sqlite(path: str) -> None:
    database = sqlite3.connect(f"{path}.db")
    database.execute("CREATE TABLE kept (number integer)")
    database.close()


NETWORK = (connect, connect_quietly, send_datagram, fetch, listen, resolve, resolve_the_old_way)
PROGRAMS = (run_program, run_shell, fork, spawn, start_process, kill_parent, replace_itself)
DISK = (write, append, open_low, remove, rename, make_folder, link, change_mode, keep_in_sqlite)


# --- misbehaving


def try_three_times(port: str) -> None:
    """As a client with retries does, which goes on without an answer in the end."""
    for _ in range(3):
        try:
            connect_quietly(port)
        except Exception:
            time.sleep(0.001)


def die(number: str) -> None:
    signal.raise_signal(signal.Signals(int(number)))


def leave(argument: str) -> None:
    sys.exit(argument)


def loop_for_ever(argument: str) -> None:
    while True:
        pass


def hold_the_interpreter(argument: str) -> None:
    """No other thread runs while this one matches."""
    re.match(r"(a+)+$", "a" * 60 + "b")


def take_a_nap(seconds: str) -> None:
    time.sleep(float(seconds))


def eat_memory(argument: str) -> None:
    bytearray(5 * 1024**3)


def make_noise(argument: str) -> str:
    print('{"id": "nobody", "result": {}}')
    sys.stdout.write("half a line")
    sys.stdout.flush()
    os.write(1, b"raw\n{not json}\n")
    os.write(2, b"raw\n")
    print("x" * 10_000_000)
    print("secret of the payload", file=sys.stderr)
    return "done"


def close_everything(argument: str) -> None:
    """The pipe of the answers as well; then it lives on in silence."""
    os.closerange(3, 100)
    time.sleep(60)


# --- looking around


def look_around(argument: str) -> dict[str, Any]:
    return {
        "environment": sorted(os.environ),
        "interfaces": [name for _, name in socket.if_nameindex()],
        "limits": {
            name: resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[0] for name in ("AS", "CPU", "CORE", "FSIZE")
        },
    }


def tell_time(argument: str) -> list[str]:
    return [datetime.now(UTC).isoformat(), datetime.fromtimestamp(time.time(), UTC).isoformat()]


def look_at_the_collector(argument: str) -> dict[str, Any]:
    return {"frozen": gc.get_freeze_count(), "is_on": gc.isenabled()}


def run(command: str) -> Any:
    """`NAME ARGUMENT`"""
    name, _, argument = command.partition(" ")
    return globals()[name](argument)


if __name__ == "__main__":
    run(" ".join(sys.argv[1:]))
