"""What an exported folder costs in CI, as JSON: `.venv/bin/python -m benchmarks.exported_goldens [GOLDENS]`.

The goldens of `examples/goldens`, copied until there are so many, each with a recording of its own, run under pytest in
a process of its own, without a server; beside it the same folder with one golden. CPU seconds, the median of pairs.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from replay_web.supervisor.home import PROJECT_ROOT
from sessions_app.services.exported_tests import TEST_FILE

SOURCE = PROJECT_ROOT / "examples" / "goldens"
ROUNDS = 3


def fill(folder: Path, count: int) -> None:
    known = json.loads((SOURCE / "goldens.json").read_bytes())
    rows = [_copied(folder, row, number) for number, row in enumerate(islice(cycle(known["goldens"]), count))]
    (folder / "goldens.json").write_text(json.dumps({**known, "goldens": rows}))
    (folder / "test_goldens.py").write_text(TEST_FILE)


def _copied(folder: Path, row: dict[str, Any], number: int) -> dict[str, Any]:
    recording = folder / f"{number}.json"
    recording.write_bytes((SOURCE / row["recording"]).read_bytes())
    return {**row, "name": f"{row['name']} {number}", "recording": recording.name}


def run(folder: Path) -> tuple[float, float]:
    """Seconds by the clock, and of the processor."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "replay_goldens.pytest_plugin", "-p", "no:cacheprovider"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("REPLAY_")}
    began, used = time.perf_counter(), _children()
    subprocess.run(
        [*command, "-c", os.devnull, "--rootdir", str(folder), str(folder)],
        env={**environment, "PYTHONPATH": str(PROJECT_ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return time.perf_counter() - began, _children() - used


def _children() -> float:
    return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


def measure(count: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as all_of_them:
        for folder, number in ((one, 1), (all_of_them, count)):
            fill(Path(folder), number)
            run(Path(folder))  # modules are compiled
        pairs = [(run(Path(one)), run(Path(all_of_them))) for _ in range(ROUNDS)]
    first, whole = (statistics.median(cpu for _, cpu in each) for each in zip(*pairs, strict=True))
    return {
        "goldens": count,
        "cpu_seconds": {"one": round(first, 2), "all": round(whole, 2)},
        "cpu_ms_per_golden": round((whole - first) / (count - 1) * 1000, 1),
        "over_one": round(statistics.median(many / few for (_, few), (_, many) in pairs), 2),
        "seconds": round(statistics.median(clock for _, (clock, _) in pairs), 1),
    }


def main() -> None:
    print(json.dumps(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 100), indent=2))


if __name__ == "__main__":
    main()
