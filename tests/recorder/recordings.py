"""What some work leaves in the spool, as the server reads it; and a recorder that fails at every point."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import replay_recorder
from replay_recorder.delivery.spool import RunFile
from replay_recorder.recorder import Recorder
from replay_recorder.writing.assembly import assemble
from replay_recorder.writing.run_writer import RunWriter
from sessions_app.core.formats.native import parse_native
from sessions_app.core.payload import Payload
from sessions_app.core.run import Run

BREAKING_POINTS = (
    (Recorder, "begin"),
    (Recorder, "end"),
    (RunWriter, "begin"),
    (RunWriter, "end"),
    (RunWriter, "put"),
    (RunWriter, "_encoded"),
    (RunFile, "append"),
)


def runs_of(work: Callable[[], Any], **settings: Any) -> list[Run]:
    """The runs that this work leaves, those that began first first."""
    return [parse_native(record) for record in records_of(work, **settings)]


def only_run_of(work: Callable[[], Any], **settings: Any) -> Run:
    (run,) = runs_of(work, **settings)
    return run


def records_of(work: Callable[[], Any], **settings: Any) -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        replay_recorder.install(spool=folder, **settings)
        try:
            work()
        finally:
            replay_recorder.uninstall()
        assert list(Path(folder, "open").iterdir()) == [], "a run has not been ended"
        return [assemble(path.read_bytes()) for path in sorted(Path(folder, "ready").iterdir())]


def value(payload: Payload | None) -> Any:
    """What a payload says; None when there is none, and when it says null."""
    return None if payload is None else payload.value


class Broken(Exception):
    """The recorder has failed."""


def break_at(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> list[str]:
    """Make it raise; the list grows with every time that it did."""
    times: list[str] = []

    def broken(*args: Any, **kwargs: Any) -> Any:
        times.append(name)
        raise Broken

    monkeypatch.setattr(owner, name, broken)
    return times
