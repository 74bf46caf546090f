"""The recorder of this process: settings, spool and sender, and the runs that are open."""

from __future__ import annotations

import atexit
import os
import threading
import uuid
from typing import Any

from replay_recorder.code_facts import commit_facts, versions
from replay_recorder.context import Identity, Place, current_identity
from replay_recorder.guard import FAULTS, guard, logger
from replay_recorder.http_client import Client
from replay_recorder.json_text import identifier, name
from replay_recorder.run_writer import RunWriter, now
from replay_recorder.sampling import Tree
from replay_recorder.sender import Sender
from replay_recorder.settings import Settings
from replay_recorder.spool import Spool

VERSION = "0.1.0"


class Recorder:
    """One for a process; see `replay_recorder.install`."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.spool = Spool(settings)
        self.recorded = 0
        self.sampled_out = 0
        self._commit = commit_facts()
        self._trees: dict[str, Tree] = {}
        self._lock = threading.Lock()
        self.sender = Sender(self.spool, Client(settings.url, settings.key)) if settings.url else None
        if self.sender is not None:
            self.sender.start()
        else:
            logger.warning("No url is set: recordings stay in %s until they are pushed.", settings.folder)

    # --- runs

    def begin(
        self, run_id: str | None = None, *, identity: Identity | None = None, parent: Place | None = None, **fields: Any
    ) -> RunWriter | None:
        """Open the recording of a run; None when it cannot be kept, which is counted.

        `fields` are fields of a record. A run inside another one belongs to the same session.
        """
        run_id = identifier(run_id) or uuid.uuid4().hex
        file = self.spool.create(_file_name(run_id))
        if file is None:
            return None
        run = RunWriter(run_id, file, redact=self.settings.redact)
        self._enter_tree(run, parent)
        identity = identity or current_identity()
        facts = {key: value for key, value in identity.run_fields().items() if value is not None}
        fields = {**fields, **facts, **_parent(parent)}
        run.session_id = fields["session_id"] = _session(run, parent, fields.get("session_id"))
        run.put(**fields, code={**self._commit, "versions": versions()})
        run.put_agent(version=name(identity.agent_version or self.settings.agent_version))
        return run

    def end(self, run: RunWriter, status: str, **fields: Any) -> None:
        """Close the recording; `status` is `ok`, `error` or `cut_off`."""
        facts = {"version": VERSION, **self._losses()}
        run.finish(status, recorder=facts, **fields)
        self.recorded += 1
        with self._lock:
            tree = self._trees.pop(run.run_id, None)
        decided = [run] if tree is None else tree.end(run)
        if decided is not None:
            self._decide(tree, decided)

    def _enter_tree(self, run: RunWriter, parent: Place | None) -> None:
        with self._lock:
            tree = self._trees.get(parent.run.run_id) if parent else None
            tree = tree or Tree(root_id=run.run_id, share=self.settings.sample)
            tree.begin()
            self._trees[run.run_id] = tree

    def _decide(self, tree: Tree | None, runs: list[RunWriter]) -> None:
        keeps = tree is None or tree.keeps(runs)
        for run in runs:
            if not keeps:
                self.sampled_out += 1
                run.file.discard()
                continue
            if tree is not None:
                tree.note(run, runs)
            run.file.finish()
        if keeps and self.sender is not None:
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
            waiting = self.spool.waiting
            if waiting and self.sender is not None:
                logger.warning("%d recordings wait in %s; the next process sends them, or "
                               "`replay-recorder push %s`.", waiting, self.spool.folder, self.spool.folder)  # fmt: skip

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
        """Threads do not survive a fork, and a lock may have been held at that moment."""
        self._lock = threading.Lock()
        self._trees = {}
        self.spool.after_fork()
        if self.settings.url:
            self.sender = Sender(self.spool, Client(self.settings.url, self.settings.key))


def _session(run: RunWriter, parent: Place | None, said: Any) -> str:
    return parent.run.session_id if parent is not None else identifier(said) or run.run_id


def _parent(place: Place | None) -> dict[str, Any]:
    if place is None:
        return {}
    return {"parent": {"run_id": place.run.run_id, **({"step": place.step} if place.step else {})}}


def _file_name(run_id: str) -> str:
    """Sorted by time; unique whatever the run is called."""
    moment = now().replace(":", "").replace("+0000", "Z")
    return f"{moment}-{os.getpid()}-{uuid.uuid4().hex[:8]}.run"


_active: Recorder | None = None


def active() -> Recorder | None:
    """The recorder of this process, when one is installed and switched on."""
    return _active


def activate(settings: Settings) -> Recorder | None:
    """Start recording in this process, in place of what was set before."""
    global _active
    deactivate()
    _active = Recorder(settings) if settings.enabled else None
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
