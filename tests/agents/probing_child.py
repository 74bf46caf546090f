"""The replay process as it is, but a recording whose input is `probe: …` runs that probe in the loop's place."""

import json
from typing import Any

from sessions_app.agents.loop import replaying
from sessions_app.agents.process import child
from sessions_app.agents.process.sandbox import ChildPool, ReplayChild
from sessions_app.core.replay.observed import Result
from tests.agents import probes

PROBE = "probe: "


class ProbingChild(ReplayChild):
    module = "tests.agents.probing_child"


def probing_pool() -> ChildPool:
    return ChildPool(ProbingChild)


def main() -> None:
    real = replaying.replay

    async def replay(record: bytes, run_id: str, on_progress: Any, *more: Any) -> Any:
        asked = json.loads(record)["input"]
        if not isinstance(asked, str) or not asked.startswith(PROBE):
            return await real(record, run_id, on_progress, *more)
        on_progress(1, 2)
        return Result(verdict="reproduced", facts={"found": probes.run(asked.removeprefix(PROBE))}), None

    replaying.replay = replay  # type: ignore[assignment]  # it takes whatever the real one takes
    child.main()
