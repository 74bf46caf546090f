"""`manage.py redaction`: a project's rules of redaction applied to what is stored."""

import time
from argparse import ArgumentParser
from typing import Any

from django.core.management import BaseCommand, CommandError

from sessions_app.management.projects import project_named
from sessions_app.models import Project, RedactionJob
from sessions_app.services import redaction_jobs


class Command(BaseCommand):
    requires_system_checks: list[str] = []  # half of the time of every start
    help = (
        "Count what a project's rules of redaction would take out of what is stored, then take it out, or leave it. "
        "Workers do it; the rules are those of the project's settings."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project")
        parser.add_argument("--wait", action="store_true", help="until the workers are through")
        actions = parser.add_subparsers(dest="action")
        actions.add_parser("state", help="how far it is, with the counts by rule")
        actions.add_parser("count", help="what would be taken out; nothing is changed")
        actions.add_parser("start", help="take out what was counted; this cannot be undone")
        actions.add_parser("cancel", help="leave it as it is; what was started goes on")

    def handle(self, *, project: str, action: str | None, wait: bool, **options: Any) -> None:
        of_project = project_named(project)
        try:
            self._act(of_project, action)
        except redaction_jobs.NotCounted as error:
            raise CommandError(str(error)) from None
        job = redaction_jobs.last_job(of_project)
        while wait and job and job.is_at_work:
            time.sleep(1)
            job.refresh_from_db()
        self._say(job)

    def _act(self, project: Project, action: str | None) -> None:
        if action == "count":
            redaction_jobs.ask_for_count(project, None)
        elif action == "start":
            redaction_jobs.start(project, None)
        elif action == "cancel":
            redaction_jobs.cancel(project)

    def _say(self, job: RedactionJob | None) -> None:
        if job is None:
            self.stdout.write("Nothing was counted yet.")
            return
        self.stdout.write(f"{job.state}\t{job.looked_at} of {redaction_jobs.size_of(job)}")
        for rule, (values, runs) in job.counts.items():
            self.stdout.write(f"{rule}\t{values} values\t{runs} runs")
        for name in job.unchanged:
            self.stdout.write(f"could not be changed\t{name}")
