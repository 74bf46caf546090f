"""`manage.py import FILE…`: store recordings that lie in files."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management import BaseCommand, CommandError

from sessions_app.management.telling import printable
from sessions_app.models import Project, Run
from sessions_app.services.imports import take_in
from sessions_app.services.recording_files import REFUSALS, refusal_words


class Command(BaseCommand):
    requires_system_checks: list[str] = []  # half of the time of every start
    help = "Store recordings from files, in any format that the API takes; exit code 1 if any file was refused."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
        parser.add_argument("--project", metavar="SLUG", help="Where to; not needed where there is one project.")

    def handle(self, *, files: list[Path], project: str | None, **options: Any) -> None:
        target = project_called(project)
        taken_in = [self._take_in(target, file) for file in files]
        if not all(taken_in):
            raise CommandError(f"{taken_in.count(False)} of {len(files)} files were not stored.")

    def _take_in(self, project: Project, file: Path) -> bool:
        try:
            stored = take_in(project, file.read_bytes()).items
        except OSError as error:
            self.stderr.write(f"{file}: {error.strerror}")
        except REFUSALS as error:
            self.stderr.write(f"{file}: {printable(refusal_words(error))}")
        else:
            for each in stored:
                again = "" if each.created else "  (already stored)"
                self.stdout.write(f"{printable(each.run.run_id)}  {verdict_words(each.run)}{again}")
            return True
        return False


def project_called(slug: str | None) -> Project:
    """The project of this slug; without one the only project there is."""
    wanted = Project.objects.all() if slug is None else Project.objects.filter(slug=slug)
    found = list(wanted[:2])
    if len(found) == 1:
        return found[0]
    known = ", ".join(Project.objects.order_by("slug").values_list("slug", flat=True)) or "none"
    raise CommandError(f"Say which project with --project; there are: {known}.")


def verdict_words(run: Run) -> str:
    """`replayable_to_step 5`."""
    return run.verdict if run.verdict_step is None else f"{run.verdict} {run.verdict_step}"
