"""One fork, or the same scene with nothing changed, several times over, each answered by a live model, and counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from django.db import transaction

from sessions_app.core.fork.order import read_order
from sessions_app.core.fork.sampling import Outcome, Samples, differing_in, estimate, outcome_of, prove_samples
from sessions_app.core.payload import JsonObject
from sessions_app.core.run import Run as RecordedRun
from sessions_app.mapping.load import load_run
from sessions_app.mapping.rows import storable
from sessions_app.models import Replay, Run
from sessions_app.models.replays import ReplayState
from sessions_app.services import leases
from sessions_app.services.replay_results import produced_run_id, store_produced

_AROUND = ("isolation", "fence", "clock", "commit")


class Sampling:
    """The samples of one claimed replay."""

    def __init__(self, replay: Replay, run: RecordedRun) -> None:
        """`run` is the one that is asked about."""
        self._replay, self._run = replay, run
        order = read_order(replay.order)
        self._samples = Samples(n=order.samples or 1)
        self._budget = estimate(run, order.at_step or 1, self._samples.n).to_json()
        self._live_calls, self._live_requests, self._refused_calls = 0, 0, 0
        self._refused: list[str] = []
        """What was tried outside, each once."""
        self._around: JsonObject = {}
        """What was kept out, and at which time the clock stood."""
        self._asked: JsonObject | None = None
        self._sources: dict[str, int] = {}
        self._first: Run | None = None

    def run_ids(self) -> Iterator[str]:
        """The first sample has the id of the replay's run."""
        name = produced_run_id(self._replay)
        yield name
        yield from (f"{name}_{number}" for number in range(2, self._samples.n + 1))

    def add(self, run_id: str, result: JsonObject, *, live_requests: int, asked: JsonObject | None) -> None:
        """A sample that came to no end is counted apart. `live_requests` are those of all samples so far, `asked` says
        which model was asked."""
        self._asked = asked
        self._live_calls, self._live_requests = self._live_calls + result["live_calls"], live_requests
        self._refused_calls += result["refused_calls"]
        self._around |= {name: result["facts"][name] for name in _AROUND if name in result["facts"]}
        self._refused += [event for event in result["facts"].get("refused") or () if event not in self._refused]
        if result["verdict"] in ("could_not_run", "unknown_from_step", "paused"):
            self._samples = self._samples.fail(result.get("error") or "It stopped where no answer was known.")
            return
        row = self._store(run_id, result["record"])
        self._first = self._first or row
        facts = result["facts"]
        for source, count in (facts.get("sources") or {}).items():
            self._sources[source] = self._sources.get(source, 0) + count
        self._samples = self._samples.add(self._outcome(row, (facts.get("expectation") or {}).get("met")))

    def _outcome(self, row: Run, met: bool | None) -> Outcome:
        made = load_run(row)
        return replace(outcome_of(made, met), differs=differing_in(self._run, made))

    def _store(self, run_id: str, record: str) -> Run:
        """An attempt before this one may have left a run of this name."""
        with transaction.atomic():
            before = Run.objects.filter(project=self._replay.project_id, run_id=run_id).first()
            row = store_produced(self._replay, record, made_before=before)
            assert row is not None
        return row

    def facts(self) -> JsonObject:
        return {
            "samples": {**self._samples.to_json(), "budget": self._budget, "requests": self._live_requests},
            "sources": self._sources,
            "live_model": self._asked,
            **({"refused": self._refused} if self._refused else {}),
            **self._around,
            **self._proof(),
        }

    def _proof(self) -> JsonObject:
        return {"proof": prove_samples(self._samples, self._run).to_json()} if self._samples.outcomes else {}

    def finish(self) -> None:
        """Nothing was sampled when every sample failed."""
        failed = not self._samples.outcomes
        verdict = "reproduced" if self._samples.came_again_each_time else "diverged"
        leases.finish(
            self._replay,
            state=ReplayState.FAILED if failed else ReplayState.DONE,
            verdict="could_not_run" if failed else verdict,
            error=self._samples.errors[0] if failed else None,
            live_calls=self._live_calls + self._live_requests,
            refused_calls=self._refused_calls,
            facts=storable(self.facts()),
            produced_run=self._first,
            progress_done=len(self._samples.outcomes),
        )
