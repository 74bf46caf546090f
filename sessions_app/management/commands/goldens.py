"""`manage.py goldens list`, `run` and `dataset`: the goldens of a project, from a terminal or in CI."""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management import BaseCommand, CommandError

from sessions_app.agents.process.sandbox import ChildPool
from sessions_app.core.goldens.dataset import FORMATS
from sessions_app.core.goldens.report import Outcome, as_json, as_junit, as_markdown, exit_code, summary
from sessions_app.core.goldens.results import RESULT_WORDS
from sessions_app.management.replaying import PATIENCE, refusals_in_words
from sessions_app.management.telling import printable
from sessions_app.models import Golden, GoldenBatch, Project, Replay
from sessions_app.models.replays import ReplayMode, ReplayState
from sessions_app.queries.goldens import batch_by_id, goldens_of
from sessions_app.queries.replays import busy_workers
from sessions_app.services.datasets import goldens_as_jsonl
from sessions_app.services.golden_batches import outcomes_of, run_batch
from sessions_app.services.live_budget import goldens_in_words
from sessions_app.services.replay_work import work_on

_POLL = 0.3


class Command(BaseCommand):
    requires_system_checks: list[str] = []  # half of the time of every start
    help = (
        "List goldens, print them as JSON lines for other tools, or run them and wait. "
        "Exit code 0: all passed, 1: behaviour changed, 2: one could not run, "
        "3: nothing was covered. Goldens in quarantine run and do not count."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("what", choices=["list", "run", "dataset"])
        parser.add_argument(
            "--golden", dest="golden_ids", action="append", default=[], metavar="ID",
            help="Only this one. May be given again.",
        )  # fmt: skip
        parser.add_argument("--project", metavar="SLUG", help="By default the only one that has goldens.")
        parser.add_argument(
            "--agent", action="append", default=[], metavar="NAME",
            help="Run the goldens of your code with this registered agent. May be given again.",
        )  # fmt: skip
        parser.add_argument("--label", default="", help="What it is run for, such as a commit.")
        parser.add_argument("--deploy", action="store_true", help="The label is what was deployed just now.")
        parser.add_argument("--junit", type=Path, metavar="FILE", help="Write JUnit XML there.")
        parser.add_argument("--markdown", type=Path, metavar="FILE", help="Write a summary for a pull request there.")
        parser.add_argument("--json", action="store_true", help="Print the results as JSON.")
        parser.add_argument(
            "--format", choices=FORMATS, default="rows", help="Of a dataset: rows, or samples of another tool."
        )
        parser.add_argument("--here", action="store_true", help="Run them from here, without a worker or runner.")

    def handle(self, *, what: str, golden_ids: list[str], project: str | None, **options: Any) -> None:
        goldens = _goldens(project, golden_ids)
        if what == "list":
            self._list(goldens)
            return
        if what == "dataset":
            self.stdout.write(goldens_as_jsonl(goldens, options["format"]).decode(), ending="")
            return
        if not goldens:
            raise CommandError("There is no golden to run.", returncode=3)
        live = [golden for golden in goldens if golden.mode == ReplayMode.LIVE]
        if budget := goldens_in_words(goldens[0].project, live):
            self.stderr.write(budget)
        with refusals_in_words():
            named = {"label": options["label"][:200], "is_deploy": options["deploy"]}
            batch = run_batch(goldens[0].project, goldens, agents=options["agent"], **named)
        outcomes = self._over(batch, here=options["here"])
        self._tell(outcomes, options)
        sys.exit(exit_code(outcomes))

    def _list(self, goldens: list[Golden]) -> None:
        for golden in goldens:
            aside = "  in quarantine" if golden.quarantined_at else ""
            self.stdout.write(printable(f"{golden.golden_id}  {golden.name}  ({golden.run.run_id}){aside}"))

    def _over(self, batch: GoldenBatch, *, here: bool) -> list[Outcome]:
        """Those that are paused or that nobody takes up are left as they are."""
        if here:
            _work(batch)
        since = time.monotonic()
        while True:
            outcomes = outcomes_of(_fresh(batch))
            if all(outcome.result is not None for outcome in outcomes):
                return outcomes
            if _nobody_works(batch) and time.monotonic() - since > PATIENCE:
                words = f"No worker took them up within {PATIENCE:g} s"
                raise CommandError(f"{words}. Start one (manage.py up), or add --here.", returncode=2)
            time.sleep(_POLL)

    def _tell(self, outcomes: list[Outcome], options: dict[str, Any]) -> None:
        if options["junit"]:
            options["junit"].write_bytes(as_junit(outcomes))
        if options["markdown"]:
            options["markdown"].write_text(as_markdown(outcomes), encoding="utf-8")
        if options["json"]:
            self.stdout.write(json.dumps(as_json(outcomes), ensure_ascii=False, indent=2))
            return
        for outcome in outcomes:
            self.stdout.write(printable(_line(outcome)))
        self.stdout.write(summary(outcomes))


def _line(outcome: Outcome) -> str:
    result = RESULT_WORDS[outcome.result] if outcome.result else "Running"
    aside = " (in quarantine)" if not outcome.counts else ""
    why = "" if outcome.result == "pass" else f": {outcome.words}"
    return f"{result}{aside}  {outcome.title}{why}"


def _goldens(slug: str | None, golden_ids: list[str]) -> list[Golden]:
    """In the order in which they were kept. Raises `CommandError`."""
    found = list(goldens_of(_project(slug, golden_ids)).select_related("project", "run__session"))
    by_id = {golden.golden_id: golden for golden in found}
    lacking = next((name for name in golden_ids if name not in by_id), None)
    if lacking is not None:
        raise CommandError(printable(f"There is no golden {lacking}."), returncode=2)
    return [by_id[name] for name in golden_ids] if golden_ids else found[::-1]


def _project(slug: str | None, golden_ids: list[str]) -> Project:
    projects = Project.objects.filter(goldens__isnull=False).distinct()
    if slug is not None:
        projects = Project.objects.filter(slug=slug)
    elif golden_ids:
        projects = projects.filter(goldens__golden_id__in=golden_ids)
    found = list(projects[:2])
    if not found:
        raise CommandError(
            "There is no golden to run." if slug is None else f"There is no project {slug}.", returncode=3
        )
    if len(found) > 1:
        raise CommandError("Goldens of several projects are here: say which with --project.", returncode=2)
    return found[0]


def _work(batch: GoldenBatch) -> None:
    children = ChildPool()
    try:
        for key in Replay.objects.filter(golden_run__batch=batch).order_by("pk").values_list("pk", flat=True):
            work_on(key, worker="manage.py", children=children)
    finally:
        children.close()


def _nobody_works(batch: GoldenBatch) -> bool:
    replays = Replay.objects.filter(golden_run__batch=batch)
    waits = replays.filter(state=ReplayState.QUEUED).exists()
    return waits and not busy_workers()


def _fresh(batch: GoldenBatch) -> GoldenBatch:
    found = batch_by_id(batch.project, batch.golden_batch_id)
    if found is None:
        raise CommandError("The runs were deleted.", returncode=2)
    return found
