"""Playing exported goldens with the agent of today: no server, no key, no network."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from replay_goldens.checks import Judged, all_passed, judge, read_checks
from replay_goldens.records import Record, trace_of
from replay_recorder.replaying.notes import AnotherRequest, checked
from replay_recorder.replaying.observing import Replay, observe
from replay_recorder.replaying.own_agent import load_agent
from replay_recorder.replaying.recording import Recording, main_steps, read_recording

FILE = "goldens.json"
AGENT_VARIABLE = "GOLDEN_AGENT"


@dataclass(frozen=True)
class ExportedGolden:
    """One golden of an exported folder."""

    golden_id: str
    name: str
    run_id: str
    recording: Path
    checks: list[dict[str, Any]]
    tools: Literal["frozen", "run"]
    on_difference: str
    agent: str | None
    """`module:attribute`, as the server knew it; None where it names none."""
    quarantine: str | None = None

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Played:
    """What a golden came to with an agent."""

    judged: Sequence[Judged]
    error: str | None = None
    """What ended the run, where an error did."""

    @property
    def passed(self) -> bool:
        """Only if every check holds and no error ended the run: what cannot be judged is no success."""
        return all_passed(self.judged) is True and self.error is None

    def __str__(self) -> str:
        lines = [f"{_SIGNS[each.seen.passed]} {each.check.words}: {each.seen.words}" for each in self.judged]
        return "\n".join(lines if self.error is None else [*lines, f"FAIL It ended with an error: {self.error}"])


_SIGNS = {True: "ok  ", False: "FAIL", None: "?   "}


def goldens_in(folder: str | Path) -> list[ExportedGolden]:
    """Those of an exported folder, or of the folder that this file is in."""
    place = Path(folder)
    place = place if place.is_dir() else place.parent
    rows = json.loads((place / FILE).read_text(encoding="utf-8"))["goldens"]
    return [_golden(place, row) for row in rows]


def golden_of(run_id: str, folder: str | Path) -> ExportedGolden:
    """The first of the folder with this run as its scene, or with this id. Raises `LookupError`."""
    for golden in goldens_in(folder):
        if run_id in (golden.run_id, golden.golden_id):
            return golden
    raise LookupError(f"No golden in {folder} has the run {run_id!r}.")


def _golden(place: Path, row: dict[str, Any]) -> ExportedGolden:
    return ExportedGolden(
        golden_id=row["golden_id"],
        name=row["name"],
        run_id=row["run_id"],
        recording=place / row["recording"],
        checks=row["checks"],
        tools=row["tools"],
        on_difference=row["on_difference"],
        agent=row.get("agent"),
        quarantine=row.get("quarantine"),
    )


def play(golden: ExportedGolden, *, agent: str | None = None) -> Played:
    """Run the agent in the recorded scene and judge what it did. `agent` is `module:attribute`, in place of the
    golden's.

    Raises `ValueError` where no agent is named, and what `replay_recorder` raises where the agent cannot be run.
    """
    recording, notes = read_recording(golden.recording), list[AnotherRequest]()
    record = played_record(golden, agent=agent, notes=notes)
    first = _first_of_another(record, recording, notes)
    trace = trace_of(record, recording.record, tools=golden.tools, first_of_another=first)
    error = (trace.error or "not recorded") if trace.has_failed else None
    return Played(judge(read_checks(golden.checks), trace), error)


def _first_of_another(record: Record, recording: Recording, notes: Sequence[AnotherRequest]) -> int | None:
    """The model step that was given the first answer to another request: answers are given in their order."""
    if not notes:
        return None
    given = [answer.step for answer in recording.answers].index(notes[0].step)
    return [index for index, step in main_steps(record) if step["kind"] == "model"][: given + 1][-1]


def played_record(
    golden: ExportedGolden, *, agent: str | None = None, notes: list[AnotherRequest] | None = None
) -> Record:
    """What the agent did in the recorded scene, as a native record. Arguments and errors as for `play`. `notes` takes
    the requests to the model that were not the recorded ones and were given the recorded answer."""
    target = agent or os.environ.get(AGENT_VARIABLE) or golden.agent
    if target is None:
        raise ValueError("Say whose code runs: --golden-agent module:attribute, or GOLDEN_AGENT in the environment.")
    recording = read_recording(golden.recording)
    replay = _replay(golden, recording, target)
    record = json.loads(observe(replay))
    if notes is not None:
        notes.extend(replay.notes)
    return _known(record, recording.record)


def _replay(golden: ExportedGolden, recording: Recording, target: str) -> Replay:
    """Which commit runs, nobody looks at here, and asking git starts two programs."""
    return Replay(recording, load_agent(target), golden.tools, on_difference=checked(golden.on_difference), code={})


def _known(record: dict[str, Any], scene: dict[str, Any]) -> dict[str, Any]:
    """For whom the agent acts is part of the scene, and not of what the agent does."""
    return {**{name: scene.get(name) for name in ("user_id", "tenant_id")}, **_without_nulls(record)}


def _without_nulls(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if value is not None}
