"""What a recording holds and lacks, and what waits in a spool folder, in lines for people."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from replay_recorder.delivery.spool import Spool, is_spool
from replay_recorder.settings import Settings
from replay_recorder.writing.assembly import SpoolError, assemble, is_spool_file

_ANSWERS = {"model": "response", "tool": "result", "retrieval": "chunks", "agent": "result", "other": "result"}
_OF_RUN = ("input", "output", "instructions", "model", "user_id", "tenant_id", "code.commit", "agent.version")
_OF_STEP = {
    "model": ("request", "response", "parameters", "tools", "settings"),
    "tool": ("arguments", "result"),
    "retrieval": ("query", "chunks"),
}
"""What a replay asks for; the server's replay kit says the same at more length."""
_LOSSES = ("recorder.lost", "recorder.lost_runs", "recorder.faults", "sampling")


def described_file(path: Path) -> Iterator[str]:
    """Raises `OSError`, and `SpoolError` or `UnicodeDecodeError` for what is no recording."""
    content = path.read_bytes()
    record = assemble(content) if is_spool_file(content) else content
    try:
        document = json.loads(record)
    except (ValueError, RecursionError):
        raise SpoolError("It is neither a .run file nor JSON.") from None
    runs = document.get("runs", [document]) if isinstance(document, dict) else [document]
    yield f"{path.name}: {_size(len(record))}"
    for run in runs:
        yield from _described(run)


def _described(run: Any) -> Iterator[str]:
    if not isinstance(run, dict) or not isinstance(run.get("steps", []), list) or "format" not in run:
        yield f"{_run_id(run)}: no native record; the server knows more formats, this command does not."
        return
    steps = [step for step in run.get("steps", []) if isinstance(step, dict)]
    yield f"run {_run_id(run)}  {_word(run, 'status')}  {len(steps)} steps  started {_word(run, 'started_at')}"
    for index, step in enumerate(steps, start=1):
        yield _step_line(index, step)
    missing = [field for field in _OF_RUN if _value(run, field) is None]
    missing += [f"{field} in {_listed(indexes)}" for field, indexes in _holes(steps).items()]
    yield f"missing: {', '.join(missing) or 'nothing'}"
    for field in _LOSSES:
        if (lost := _value(run, field)) is not None:
            yield f"{field}: {printable(json.dumps(lost, ensure_ascii=False))}"


def _run_id(run: Any) -> str:
    said = run.get("run_id") or run.get("session_id") if isinstance(run, dict) else None
    return printable(str(said or "without an id"))


def _step_line(index: int, step: Mapping[str, Any]) -> str:
    kind = _word(step, "kind")
    name = step.get("name") or step.get("tool_name") or step.get("model") or ""
    duration = step.get("duration_ms")
    lasted = f"{duration:.0f} ms" if isinstance(duration, (int, float)) else "-"
    answer = "answer" if _ANSWERS.get(kind, "result") in step else "no answer"
    failed = ", error" if step.get("error") is not None else ""
    return f"{index:5}  {kind:9}  {printable(str(name))[:40]:40}  {lasted:>10}  {answer}{failed}"


def _holes(steps: list[dict[str, Any]]) -> dict[str, list[int]]:
    """Fields that steps lack, with the indexes of these steps."""
    found: dict[str, list[int]] = defaultdict(list)
    for index, step in enumerate(steps, start=1):
        for field in _OF_STEP.get(_word(step, "kind"), ()):
            if field not in step:
                found[field].append(index)
    return found


def _listed(indexes: list[int]) -> str:
    shown = ", ".join(map(str, indexes[:5]))
    more = f" and {len(indexes) - 5} more" if len(indexes) > 5 else ""
    return f"step{'s' if len(indexes) > 1 else ''} {shown}{more}"


def _value(run: Mapping[str, Any], field: str) -> Any:
    """A field by its name, or inside an object by `object.field`."""
    if run.get(field) is not None:
        return run[field]
    outer, _, inner = field.partition(".")
    held = run.get(outer)
    return held.get(inner) if isinstance(held, dict) else None


def _word(fields: Mapping[str, Any], field: str) -> str:
    return printable(str(fields.get(field, "-")))


# --- folders


def described_folder(path: Path) -> Iterator[str]:
    """What waits, what was refused and why, what was lost."""
    if not is_spool(path):
        raise SpoolError("It is no spool folder: it has no folder `open` and no folder `ready`.")
    yield from _waiting(Spool(Settings(spool=path)))
    yield from _grouped("refused", _reasons(path / "refused"))
    yield from _grouped("lost, or not recorded whole", _lost(path / "lost.log"))


def _waiting(spool: Spool) -> Iterator[str]:
    found: dict[str, list[int]] = defaultdict(list)
    for parcel in spool.parcels(last={}):
        found["waiting to be sent" if parcel.take() else "being recorded or sent now"].append(parcel.size)
        parcel.release()
    for words in ("waiting to be sent", "being recorded or sent now"):
        yield f"{words}: {len(found[words])}, {_size(sum(found[words]))}"


def _reasons(folder: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for file in sorted(folder.glob("*.run")):
        reason = file.with_suffix(".reason")
        found[reason.read_text(encoding="utf-8").strip() if reason.exists() else "no reason"].append(file.name)
    return found


def _lost(log: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for line in log.read_text(encoding="utf-8").splitlines() if log.exists() else ():
        _, _, said = line.partition(" ")
        name, _, reason = said.partition(" ")
        found[reason].append(name)
    return found


def _grouped(what: str, names: Mapping[str, list[str]]) -> Iterator[str]:
    yield f"{what}: {sum(map(len, names.values()))}"
    for reason, files in names.items():
        yield f"  {len(files)} × {printable(reason)}"
        yield f"      {printable(files[0])}{', …' if len(files) > 1 else ''}"


def printable(text: str) -> str:
    """Recorded text may hold what a terminal takes for a command."""
    return text if text.isprintable() else "".join(sign if sign.isprintable() else "\ufffd" for sign in text)


def _size(count: int) -> str:
    return f"{count} bytes" if count < 10_000 else f"{count / 1000:,.0f} kB"
