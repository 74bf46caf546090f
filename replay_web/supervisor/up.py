"""`manage.py up`: start what is not given, make the home ready, serve, and stop everything in the end."""

import errno
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from replay_web.supervisor import processes, programs
from replay_web.supervisor.account import Account, services_folder, socket_folder
from replay_web.supervisor.errors import CannotStart
from replay_web.supervisor.home import Home, redis_url, write_private
from replay_web.supervisor.leftovers import boot_id, end_leftovers
from replay_web.supervisor.port import Port, port_of_environment
from replay_web.supervisor.postgres import Postgres
from replay_web.supervisor.processes import Program
from replay_web.supervisor.redis import Redis
from replay_web.supervisor.stand_in import StandIn
from replay_web.supervisor.watch import Watched, stop_all

LOOK_EVERY = 0.25


class Stopped(BaseException):
    """SIGTERM or Ctrl-C came; raised wherever we are, so that even a slow start can be stopped."""


@dataclass
class Supervisor:
    """Runs one instance on one home."""

    home: Home
    port: Port
    say: Callable[[str], None] = field(default=lambda line: print(line, flush=True))
    is_durable: bool = True
    services: list[Watched] = field(default_factory=list)
    doors: list[Watched] = field(default_factory=list)
    stand_in: StandIn = field(init=False)
    agents: Watched | None = None
    """Loads the team's agents once, to say which cannot be."""
    trouble: str = ""
    """What went wrong in the last round of the watch."""

    def __post_init__(self) -> None:
        self.stand_in = StandIn(self.port.listening)

    def run(self) -> None:
        """Serve until stopped."""
        try:
            environment = self.environment(self.start_services())
            self.start_doors(environment)
            self.say(ready_line(self.port.url, self.home.connection))
            if is_given("REPLAY_AGENTS") and not has_runners():
                self.agents = self.started(programs.agents(self.home, environment))
            while True:
                time.sleep(LOOK_EVERY)
                self.look_on()
        finally:
            ignore_signals()
            self.stop()

    def start_services(self) -> dict[str, str]:
        """PostgreSQL and Redis where no address of one is given; both come up at the same time."""
        wanted = [name for name in ("DATABASE_URL", "REDIS_URL") if not is_given(name)]
        if not wanted:
            return {}
        account = Account.for_services()
        folder = services_folder(self.home, account)
        sockets = socket_folder(folder, account)
        self.home.remember(sockets=str(sockets))
        found = {}
        if "DATABASE_URL" in wanted:
            postgres = Postgres(
                home=self.home, account=account, services=folder, sockets=sockets, is_durable=self.is_durable
            )
            self.services.append(self.started(postgres.program()))
            found["DATABASE_URL"] = self.home.database_url(sockets)
            self.home.remember(postgres_sockets=str(sockets))
        if "REDIS_URL" in wanted:
            redis = Redis(home=self.home, account=account, services=folder, sockets=sockets)
            self.services.append(self.started(redis.program()))
            found["REDIS_URL"] = redis_url(redis.socket)
            self.home.remember(redis_socket=str(redis.socket))
        for service in self.services:
            service.wait_ready(60)  # after a crash PostgreSQL first reads its log again
        return found

    def start_doors(self, environment: Mapping[str, str]) -> None:
        """The web server beside the preparation when the code is that of the last one, else after it.

        The worker comes last: three programs loading Django on two cores would make the first page wait.
        """
        self.home.withdraw_connection()
        code = programs.fingerprint()
        is_known = self.home.is_prepared_for(code)
        url = self.port.url
        preparation = self.started(programs.preparation(self.home, environment, url, with_static=not is_known))
        if not is_known:
            self.say("Preparing the database ...")
            wait_done(preparation)
        web = self.started(programs.web(self.home, environment, self.port))
        self.doors.append(web)
        wait_done(preparation)
        write_private(self.home.prepared, code)
        web.wait_ready(60)
        self.home.publish_connection()
        self.doors.append(self.started(programs.worker(self.home, environment)))

    def started(self, program: Program) -> Watched:
        program.log.unlink(missing_ok=True)
        watched = Watched(program, self.record, self.say)
        watched.start()
        return watched

    def record(self, name: str, pid: int) -> None:
        children = self.home.state().get("children", {})
        children[name] = {"pid": pid, "started": processes.started_at(pid) or 0}
        self.home.remember(children=children)

    def environment(self, found: Mapping[str, str]) -> dict[str, str]:
        """What web and worker are told."""
        told = {
            "DJANGO_SETTINGS_MODULE": "replay_web.settings.base",
            "REPLAY_HOME": str(self.home.path),
            "MALLOC_ARENA_MAX": "2",  # with threads glibc otherwise keeps much more memory than is used
            "PYDANTIC_AI_NO_BANNER": "1",
            **os.environ,
            **shared_settings(),
            **found,
        }
        if not is_given("SECRET_KEY"):
            told["SECRET_KEY_FILE"] = str(self.home.secret_file("secret_key"))
        return told

    def look_on(self) -> None:
        """What goes wrong in one round, as on a full disk, must not end everything: the next one comes."""
        try:
            self.look()
        except OSError as error:
            if str(error) != self.trouble:
                self.say(f"The watch goes on after: {error}")
            self.trouble = str(error)
        else:
            self.trouble = ""

    def look(self) -> None:
        """One round of the watch."""
        self.see_who_answers()
        self.hear_of_agents()
        for watched in (*self.services, *self.doors):
            watched.look()
            processes.trim_log(watched.program.log)
        one_time = [self.agents] if self.agents else []
        processes.reap_adopted({each.process.pid for each in (*self.services, *self.doors, *one_time)})

    def hear_of_agents(self) -> None:
        if self.agents is not None and self.agents.process.poll() is not None:
            self.say(self.agents.program.log.read_text(errors="replace").rstrip())
            self.agents = None

    def see_who_answers(self) -> None:
        """The web server, or the stand-in until it is back."""
        web = self.doors[0]
        if web.due is not None or web.process.poll() is not None:
            self.stand_in.serve()
        elif self.stand_in.is_serving and web.program.is_ready(web.process.pid):
            self.stand_in.step_aside()
            web.note_well()

    def stop(self) -> None:
        self.say("Stopping ...")
        self.stand_in.serve()
        stop_all([self.doors, self.services])
        self.port.refuse_new()
        self.stand_in.end()
        sockets = self.home.state().get("sockets")
        self.home.forget()
        if sockets and self.home.services.resolve() not in Path(sockets).parents:
            with suppress(OSError):
                Path(sockets).rmdir()


def wait_done(preparation: Watched) -> None:
    if preparation.process.wait():
        raise CannotStart(f"The database could not be prepared:\n{preparation.last_words()}")


def shared_settings() -> dict[str, str]:
    """Where the team's agents are, what they are given, and which live model may be asked; commands on the same home
    are told too. The key of the model is not written down: the worker alone asks it.

    Our programs run in another folder, so folders that were named from here are named whole.
    """
    model = ("REPLAY_MODEL_ENDPOINT", "REPLAY_MODEL_NAME", "REPLAY_MODEL_HOSTS", "REPLAY_MODEL_ALLOW_PRIVATE")
    names = ("REPLAY_AGENTS", "REPLAY_AGENT_ENV", "WORKER_QUEUES", *model)
    found = {name: os.environ[name] for name in names if os.environ.get(name)}
    folders = [os.path.abspath(each) for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    return {**found, "PYTHONPATH": os.pathsep.join(folders)} if folders else found


def has_runners() -> bool:
    """Whether the team's agents are loaded elsewhere: here nobody takes up what needs them."""
    queues = [name.strip() for name in os.environ.get("WORKER_QUEUES", "").split(",") if name.strip()]
    return bool(queues) and "code" not in queues


def is_given(name: str) -> bool:
    """Whether the environment names it, itself or in a file."""
    return bool(os.environ.get(name) or os.environ.get(f"{name}_FILE"))


def ready_line(url: str, connection: Path) -> str:
    try:
        name = json.loads(connection.read_text())["username"]
    except (OSError, ValueError, KeyError):
        return f"Replay is ready at {url}"
    return f"Replay is ready at {url}  (sign in as {name}; password in {connection})"


@contextmanager
def stopping_on_signals() -> Iterator[None]:
    def stop(number: int, frame: object) -> None:
        raise Stopped

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    with suppress(Stopped):
        yield


def ignore_signals() -> None:
    """Once we are stopping, being told so again changes nothing."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def up() -> None:
    home = Home.from_environment()
    home.prepare()
    with home.held(), stopping_on_signals():
        end_leftovers(home)
        supervisor = Supervisor(home, port_of_environment())
        processes.adopt_orphans()
        home.remember(
            url=supervisor.port.url,
            boot=boot_id() if sys.platform == "linux" else None,
            shared_settings=shared_settings(),
        )
        supervisor.run()


def main() -> int:
    """The exit code: 0 after a stop that was asked for, 1 when it could not start."""
    try:
        up()
    except CannotStart as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        print(f"The disk of {Home.from_environment().path} is full. Make room on it and start again.", file=sys.stderr)
        return 1
    return 0
