"""Settings of the recorder: arguments of `install`, or variables of the environment."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

VERSION = "0.1.0"
"""Of this package; pyproject.toml says the same."""

Redact = Callable[[Any], Any]
"""Takes a JSON value that is about to be written and returns what is written instead."""

MIB = 1024 * 1024


@dataclass(frozen=True)
class Settings:
    """Everything that can be chosen. Sizes are bytes, times are seconds."""

    url: str | None = None
    """Address of the server. Without one, recordings stay in the spool until they are pushed."""
    key: str | None = field(default=None, repr=False)
    """An API key that may send recordings."""
    spool: Path | None = None
    """Folder for what is not delivered yet; by default one for each address and key under the user's state folder."""
    enabled: bool = True
    agent_version: str | None = None
    context: Callable[[Any], Mapping[str, Any] | None] | None = None
    """Called with the framework's own context of a run; answers the facts that `context()` takes."""
    state: Callable[[], Mapping[str, Any] | None] | None = None
    """The agent's own state, for automatic snapshots."""
    snapshot_every: int = 5
    """Steps between automatic snapshots; 0 switches them off."""
    redact: Redact | None = None
    sample: float = 1.0
    """Share of successful runs that is kept; failures are kept always."""
    http: bool = False
    """Whether raw HTTP exchanges of model and tool calls are recorded."""
    http_headers: frozenset[str] = frozenset()
    """Names of headers to keep beside the harmless ones, in lower case."""
    max_body_bytes: int = MIB
    """Longest HTTP body that is kept whole; more is cut and said."""
    max_run_bytes: int = 16 * MIB
    """Longest record of one run; the server takes 20 MiB. What comes after it is lost, and the run says so."""
    max_spool_bytes: int = 512 * MIB
    """Disk that undelivered recordings may take; above it runs are not recorded, and counted."""
    max_memory_bytes: int = 32 * MIB
    """The same where no folder can be written."""
    flush_timeout: float = 5.0
    """How long the end of the process waits for the server."""

    def __post_init__(self) -> None:
        if not 0 <= self.sample <= 1:
            raise ValueError(f"sample must be between 0 and 1 and is {self.sample!r}.")
        if self.snapshot_every < 0:
            raise ValueError(f"snapshot_every must not be negative and is {self.snapshot_every!r}.")
        if self.url is not None and not _is_address(self.url):
            raise ValueError(f"url must be like https://replay.example.com and is {self.url!r}.")
        if self.key is not None and not (self.key.isascii() and self.key.isprintable()):
            # Not quoted: it may be a key all the same.
            raise ValueError("key must be one line of printable ASCII characters and is not.")

    @cached_property
    def folder(self) -> Path:
        """Where undelivered recordings are kept."""
        return self.spool if self.spool is not None else state_folder() / self._destination()

    def _destination(self) -> str:
        """Two destinations never share a folder, and the key cannot be read from its name."""
        return hashlib.sha256(f"{self.url}\n{self.key}".encode()).hexdigest()[:12]


def settings_from(environment: Mapping[str, str], **given: Any) -> Settings:
    """Arguments first, then `REPLAY_*` variables, then defaults.

    Raises `ValueError` naming the variable or argument that is wrong.
    """
    found = {name: read(environment[variable], variable) for name, (variable, read) in _VARIABLES.items()
             if environment.get(variable, "").strip()}  # fmt: skip
    found.update({name: value for name, value in given.items() if value is not None})
    if "spool" in found:
        found["spool"] = Path(os.path.expanduser(found["spool"]))
    if "key" in found:
        # Keys often come from files, with a line end.
        found["key"] = str(found["key"]).strip()
    if "http_headers" in found:
        found["http_headers"] = frozenset(header.lower() for header in found["http_headers"])
    return Settings(**found)


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _text(value: str, variable: str) -> str:
    return value.strip()


def _share(value: str, variable: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"{variable} must be a number between 0 and 1 and is {value!r}.") from None


def _switch(value: str, variable: str) -> bool:
    found = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    try:
        return found[value.strip().lower()]
    except KeyError:
        raise ValueError(f"{variable} must be on or off and is {value!r}.") from None


_VARIABLES: dict[str, tuple[str, Callable[[str, str], Any]]] = {
    "url": ("REPLAY_URL", _text),
    "key": ("REPLAY_KEY", _text),
    "spool": ("REPLAY_SPOOL", _text),
    "enabled": ("REPLAY_RECORD", _switch),
    "agent_version": ("REPLAY_AGENT_VERSION", _text),
    "sample": ("REPLAY_SAMPLE", _share),
    "http": ("REPLAY_HTTP", _switch),
}


def state_folder() -> Path:
    """`$XDG_STATE_HOME`, else `~/.local/state`, else a folder of this user among the temporary files."""
    base = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    folder = Path(base) / "replay-recorder"
    # A user without a home leaves the "~" where it is.
    return folder if folder.is_absolute() and _is_ours(folder) else _temporary_folder()


def _temporary_folder() -> Path:
    user = os.getuid() if hasattr(os, "getuid") else "user"
    folder = Path(tempfile.gettempdir()) / f"replay-recorder-{user}"
    # Anybody may have made a folder of this name there, to read what comes into it.
    return folder if _is_ours(folder) else Path(tempfile.mkdtemp(prefix="replay-recorder-"))


def _is_ours(folder: Path) -> bool:
    """Make it if need be; whether this user owns it and may write there."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        is_owner = not hasattr(os, "getuid") or folder.lstat().st_uid == os.getuid()
        return is_owner and os.access(folder, os.W_OK)
    except OSError:
        return False
