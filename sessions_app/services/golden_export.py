"""Goldens as a folder for the team's own tests: a constant test file, what must hold, and the recordings, as a zip."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from urllib.parse import quote

from django.conf import settings

from sessions_app.core.errors import ReplayProductError
from sessions_app.core.formats.native import encode_native
from sessions_app.core.payload import JsonObject, compact_json
from sessions_app.mapping.load import load_run
from sessions_app.models import Golden
from sessions_app.models.replays import ReplayMode
from sessions_app.services.client_wheels import GOLDENS, RECORDER, wheel_name
from sessions_app.services.exported_tests import READ_ME, TEST_FILE

_BEGINNING = (1980, 1, 1, 0, 0, 0)
"""The time of every file in it, so that equal goldens give equal bytes."""


_LONGEST_NAME = 200


class NotExportable(ReplayProductError):
    """A golden cannot run without the server."""


def export_goldens(goldens: Sequence[Golden]) -> bytes:
    """One zip for all of them. Raises `NotExportable`."""
    if any(golden.mode == ReplayMode.LIVE for golden in goldens):
        raise NotExportable("A golden with a live model runs on the server alone; it cannot be exported.")
    if not goldens:
        raise NotExportable("There is no golden to export: those with a live model run on the server alone.")
    rows = {"format": "agent-replay.goldens", "version": 1, "goldens": [_row(golden) for golden in goldens]}
    files = {
        "test_goldens.py": TEST_FILE.encode(),
        "README.md": _read_me().encode(),
        "goldens.json": compact_json(rows),
        **{_recording(golden): encode_native(load_run(golden.run)) for golden in goldens},
    }
    return _zipped(files)


def _read_me() -> str:
    return READ_ME.replace("RECORDER", wheel_name(RECORDER)).replace("GOLDENS", wheel_name(GOLDENS))


def _recording(golden: Golden) -> str:
    """Named by the run, as `ToolReplayer` looks for it; goldens of one scene share it."""
    name = quote(golden.run.run_id, safe=" ")
    return f"recordings/{name if len(name) <= _LONGEST_NAME else golden.golden_id}.json"


def _row(golden: Golden) -> JsonObject:
    agent = golden.order.get("agent")
    return {
        "golden_id": golden.golden_id,
        "name": golden.name,
        "description": golden.description,
        "expected_outcome": golden.expected_outcome,
        "run_id": golden.run.run_id,
        "recording": _recording(golden),
        "checks": golden.checks,
        "tools": "run" if golden.mode == ReplayMode.CODE_AND_TOOLS else "frozen",
        "on_difference": golden.order.get("on_difference") or "stop",
        "agent": settings.REPLAY_AGENTS.get(agent),
        "quarantine": golden.quarantine_reason or None,
    }


def _zipped(files: dict[str, bytes]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, _BEGINNING), content, zipfile.ZIP_DEFLATED)
    return held.getvalue()
