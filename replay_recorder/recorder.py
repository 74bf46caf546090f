"""The recorder of this process: settings, spool and sender, and the runs that are open."""

from __future__ import annotations

import atexit
import os
import uuid
from typing import Any

from replay_recorder.context import Identity, Place, current_identity, current_scope
from replay_recorder.delivery.http_client import Client
from replay_recorder.delivery.sampling import tree_of
from replay_recorder.delivery.sender import Sender
from replay_recorder.delivery.spool import Spool
from replay_recorder.guard import FAULTS, guard, logger
from replay_recorder.settings import VERSION, Settings
from replay_recorder.state import watch
from replay_recorder.writing.code_facts import commit_facts, versions
from replay_recorder.writing.json_text import identifier, name
from replay_recorder.writing.run_writer import RunWriter, now


class Recorder:
    """One for a process; see `replay_recorder.install`."""

    def __init__(self, settings: Settings, code: dict[str, Any] | None = None) -> None:
        FAULTS.forget()
        self.settings = settings
        self.spool = Spool(settings)
        self.recorded = 0
        self.sampled_out = 0
        self.hears_clients = False
        """Whether HTTP clients are teed for recorded functions."""
        self.code = commit_facts() if code is None else code
        self.sender = self._new_sender()
        if self.sender is not None:
            self.sender.start()
        else:
            logger.warning("No url is set: recordings stay in %s until they are pushed.", self.spool.folder)

    # --- runs

    def begin(
        self, run_id: str | None = None, *, identity: Identity | None = None, parent: Place | None = None, **fields: Any
    ) -> RunWriter | None:
        """Open the recording of a run; None when it cannot be kept, which is counted.

        `fields` are fields of a record. A run inside another one belongs to the same session.
        """
        file = self.spool.create(_file_name())
        if file is None:
            return None
        run = RunWriter(identifier(run_id) or uuid.uuid4().hex, file, redact=self.settings.redact)
        tree_of(run, parent.run if parent else None, self.settings.sample).begin(run)
        with guard("the start of a run"):
            self._introduce(run, identity or current_identity(), parent, fields)
        return run

    def _introduce(self, run: RunWriter, identity: Identity, parent: Place | None, fields: dict[str, Any]) -> None:
        facts = {key: value for key, value in identity.run_fields().items() if value is not None}
        scope = current_scope()
        said = facts.get("session_id") or (scope and scope.session_id) or fields.get("session_id")
        fields = {**fields, **facts, **_parent(parent)}
        run.session_id = fields["session_id"] = _session(run, parent, said)
        run.put(**fields, code={**self.code, "versions": versions()}, recorder={"version": VERSION})
        run.put_agent(version=name(identity.agent_version or self.settings.agent_version))
        watch(run, self.settings)
        if scope is not None:
            scope.note(run.session_id, run.summary)

    def end(self, run: RunWriter, status: str, **fields: Any) -> None:
        """Close the recording; `status` is `ok`, `error` or `cut_off`. A run that was closed stays as it is."""
        if not run.file.is_open or run.tree is None:
            return
        run.finish(status, recorder={"version": VERSION, **self._losses()}, **fields)
        self.recorded += 1
        for decided in run.tree.end(run):
            if run.tree.keeps(decided):
                decided.file.finish()
            else:
                self.sampled_out += 1
                decided.file.discard()
        if self.sender is not None:
            self.sender.start()
            self.sender.wake()

    def _losses(self) -> dict[str, Any]:
        lost, faults = self.spool.losses.counts, FAULTS.counts
        return {**({"lost_runs": lost} if lost else {}), **({"faults": faults} if faults else {})}

    # --- the process

    def flush(self, timeout: float | None = None) -> bool:
        """Deliver what waits; whether nothing is left. Seconds; by default the setting `flush_timeout`."""
        seconds = self.settings.flush_timeout if timeout is None else timeout
        return self.sender is not None and self.sender.flush(seconds)

    def close(self) -> None:
        """Deliver as far as `flush_timeout` allows and stop. What is left waits in the spool."""
        with guard("close"):
            if self.sender is not None:
                self.sender.stop(self.settings.flush_timeout)
            self.spool.give_up_memory()
            waiting, folder = self.spool.waiting, self.spool.folder
            if waiting and self.sender is not None:
                logger.warning(
                    "Recordings wait in %s (%d); the next process sends them, or `replay-recorder push %s`.",
                    folder, waiting, folder,
                )  # fmt: skip

    def stats(self) -> dict[str, Any]:
        """Counts since the start of this process."""
        return {
            "recorded": self.recorded,
            "sampled_out": self.sampled_out,
            "delivered": self.sender.delivered if self.sender else 0,
            "refused": self.sender.refused if self.sender else 0,
            "waiting": self.spool.waiting,
            "lost": self.spool.losses.counts,
            "faults": FAULTS.counts,
            "trouble": self.sender.trouble if self.sender else None,
        }

    def after_fork(self) -> None:
        """A child process has no thread of the sender, and what is under way is the parent's."""
        self.recorded = self.sampled_out = 0
        self.spool.after_fork()
        self.sender = self._new_sender()

    def _new_sender(self) -> Sender | None:
        url = self.settings.url
        return None if url is None else Sender(self.spool, Client(url, self.settings.key))


def _session(run: RunWriter, parent: Place | None, said: Any) -> str:
    return parent.run.session_id if parent is not None else identifier(said) or run.run_id


def _parent(place: Place | None) -> dict[str, Any]:
    if place is None:
        return {}
    return {"parent": {"run_id": place.run.run_id, **({"step": place.step} if place.step else {})}}


def _file_name() -> str:
    """Sorted by time; unique whatever the run is called."""
    moment = now().replace(":", "").replace("+0000", "Z")
    return f"{moment}-{os.getpid()}-{uuid.uuid4().hex[:8]}.run"


_active: Recorder | None = None


def active() -> Recorder | None:
    """The recorder of this process, when one is installed and switched on."""
    return _active


def activate(settings: Settings, code: dict[str, Any] | None = None) -> Recorder | None:
    """Start recording in this process, in place of what was set before. `code` says which commit runs, for a process
    that may not ask git."""
    global _active
    deactivate()
    _active = Recorder(settings, code) if settings.enabled else None
    return _active


def deactivate() -> None:
    """Stop recording, and deliver what can be delivered."""
    global _active
    previous, _active = _active, None
    if previous is not None:
        previous.close()


def _after_fork() -> None:
    if _active is not None:
        with guard("after_fork"):
            _active.after_fork()


atexit.register(deactivate)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
