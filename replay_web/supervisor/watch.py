"""Keeping programs alive: restarted when they end, with growing pauses, and ended in order."""

import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from replay_web.supervisor import processes
from replay_web.supervisor.errors import CannotStart
from replay_web.supervisor.processes import Program

FIRST_PAUSE = 0.5
STEADY_AFTER = 60.0  # seconds after which a program counts as well again


class Recorder(Protocol):
    """Told of each process as it starts, so that the next supervisor can find it."""

    def __call__(self, name: str, pid: int) -> None: ...


@dataclass
class Watched:
    """A program and the process that runs it now."""

    program: Program
    record: Recorder
    say: Callable[[str], None]
    process: subprocess.Popen[bytes] = field(init=False)
    started: float = field(init=False)
    was_ready: bool = False
    pause: float = FIRST_PAUSE
    due: float | None = None
    """When to start it again, while it is down."""

    def start(self) -> None:
        self.process = processes.start(self.program)
        self.started, self.due = time.monotonic(), None
        self.record(self.program.name, self.process.pid)

    def wait_ready(self, seconds: float) -> None:
        """Wait until it serves; if it cannot, say what it wrote last."""
        until = time.monotonic() + seconds
        while not self.program.is_ready(self.process.pid):
            if self.process.poll() is not None or time.monotonic() > until:
                raise CannotStart(
                    f"{self.program.name} did not start. {self.program.log} ends with:\n{self.last_words()}"
                )
            time.sleep(0.02)
        self.was_ready = True

    def last_words(self) -> str:
        lines = self.program.log.read_text(errors="replace").splitlines()[-12:]
        return "\n".join(lines).strip() or "(nothing)"

    def look(self) -> None:
        """Notice its end, and start it again when the pause is over."""
        now = time.monotonic()
        if self.due is not None:
            if now >= self.due:
                self.start()
        elif self.process.poll() is not None:
            self.note_end(now)

    def note_end(self, now: float) -> None:
        """Each quick end doubles the pause; a long life makes it short again."""
        processes.kill_group(self.process.pid)
        steady = now - self.started > STEADY_AFTER
        self.pause = FIRST_PAUSE if steady else min(self.pause * 2, self.program.longest_pause)
        self.due = now + self.pause
        code = self.process.returncode
        self.say(f"{self.program.name} ended ({code}); starting it again in {self.pause:.0f} s. See {self.program.log}")

    def note_well(self) -> None:
        """It serves again: if it ends once more, it need not wait as one that cannot start."""
        self.pause = FIRST_PAUSE

    def ask_to_end(self) -> None:
        if self.program.is_killed_while_starting and not self.was_ready:
            processes.kill_group(self.process.pid)
        elif self.process.poll() is None:
            self.process.send_signal(self.program.stop_signal)

    def wait_end(self) -> None:
        processes.wait_end(self.process, self.program.grace)


def stop_all(groups: Iterable[list[Watched]]) -> None:
    """Group after group: first who uses a service, then the service. Within a group all at once."""
    for group in groups:
        running = [each for each in group if hasattr(each, "process")]
        for each in running:
            each.ask_to_end()
        for each in running:
            each.wait_end()
    processes.kill_adopted()
