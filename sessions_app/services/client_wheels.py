"""Wheels of what runs beside an agent, made of the code that this server brings: who has the server needs no registry.

What a wheel is: https://packaging.python.org/en/latest/specifications/binary-distribution-format/
"""

from __future__ import annotations

import base64
import hashlib
import io
import tomllib
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

RECORDER = "replay_recorder"
GOLDENS = "replay_goldens"
_ROOT = Path(__file__).resolve().parents[2]
_TAG = "py3-none-any"


@cache
def wheel_names() -> dict[str, str]:
    """The names of the files, and which package each holds."""
    return {wheel_name(package): package for package in (RECORDER, GOLDENS)}


def wheel_name(package: str) -> str:
    """With the version that this server brings."""
    return f"{_stem(package)}-{_TAG}.whl"


@cache
def wheel(package: str) -> bytes:
    """The same bytes for the same code."""
    files = dict(_code(package)) | _about(package)
    record = f"{_stem(package)}.dist-info/RECORD"
    files[record] = "".join(f"{name},{_digest(content)},{len(content)}\n" for name, content in files.items()).encode()
    files[record] += f"{record},,\n".encode()
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)  # of 1980
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return written.getvalue()


def _code(package: str) -> Iterator[tuple[str, bytes]]:
    for file in sorted((_ROOT / package).rglob("*")):
        below = file.relative_to(_ROOT)
        if (file.suffix == ".py" or file.name == "py.typed") and "build" not in below.parts:
            yield below.as_posix(), file.read_bytes()


def _about(package: str) -> dict[str, bytes]:
    folder, project = f"{_stem(package)}.dist-info", _project(package)
    groups = {"console_scripts": project.get("scripts", {}), **project.get("entry-points", {})}
    points = [f"[{group}]\n" + "".join(f"{key} = {at}\n" for key, at in each.items()) for group, each in groups.items()]
    return {
        f"{folder}/METADATA": _metadata(package, project).encode(),
        f"{folder}/WHEEL": f"Wheel-Version: 1.0\nGenerator: {package}\nRoot-Is-Purelib: true\nTag: {_TAG}\n".encode(),
        f"{folder}/entry_points.txt": "\n".join(points).encode(),
    }


def _metadata(package: str, project: dict[str, Any]) -> str:
    fields = {
        "Metadata-Version": "2.4",
        "Name": project["name"],
        "Version": project["version"],
        "Summary": project["description"],
        "License-Expression": project["license"],
        "Requires-Python": project["requires-python"],
        "Description-Content-Type": "text/markdown",
    }
    lines = [f"{name}: {value}" for name, value in fields.items()]
    lines += [f"Requires-Dist: {need}" for need in project["dependencies"]]
    return "\n".join([*lines, "", (_ROOT / package / project["readme"]).read_text()])


@cache
def _project(package: str) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((_ROOT / package / "pyproject.toml").read_text())["project"]
    return found


def _stem(package: str) -> str:
    return f"{package}-{_project(package)['version']}"


def _digest(content: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
