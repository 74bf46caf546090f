"""What a form of forks is about: a run, a step of it, and what was recorded there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from django.http import Http404, HttpRequest
from django.urls import reverse

from sessions_app.core.step_summary import StepSummary
from sessions_app.models import Project
from sessions_app.services.fork_checks import Parent
from sessions_app.web.forks.inputs import Typed
from sessions_app.web.forks.proposals import Proposal, proposals
from sessions_app.web.forks.recorded import Recorded, recorded_at
from sessions_app.web.run_pages import RunPlace, place_of, session_of, whole_number


@dataclass(frozen=True, kw_only=True)
class Desk:
    """The run and the step that a form is about."""

    project: Project
    place: RunPlace
    parent: Parent
    asked: int
    """Step of the address; 0 when it names none."""

    @cached_property
    def row(self) -> StepSummary:
        """The step that was asked for, or the one that is proposed. Raises `Http404`."""
        proposed = self.proposals[0].step if self.proposals else 0
        found = self.place.run.step(self.asked or proposed)
        if found is None:
            raise Http404
        return found

    @cached_property
    def proposals(self) -> list[Proposal]:
        return proposals(self.parent)

    @property
    def address(self) -> str:
        return self.address_of(self.row.index)

    def address_of(self, step: int) -> str:
        path = reverse("fork", args=[self.project.slug, self.place.run.session.session_id])
        return f"{path}{self.place.query}step={step}"

    def recorded(self, typed: Typed) -> Recorded:
        return self._recorded(typed.get("message_index"), typed.get("result_step"))

    def shown_before(self, typed: Typed) -> Recorded:
        """What the inputs were filled from."""
        return self._recorded(typed.get("message_of"), typed.get("result_of"))

    def _recorded(self, message: str | None, tool: str | None) -> Recorded:
        index = whole_number(message, 0) if message else None
        return recorded_at(self.place.run, self.row, message_index=index, tool_step=whole_number(tool, 0))


def desk_of(request: HttpRequest, project: Project, session_id: str) -> Desk:
    place = place_of(session_of(project, session_id), request.GET.get("run", ""))
    asked = whole_number(request.GET.get("step"), 0)
    return Desk(project=project, place=place, parent=Parent(place.run), asked=asked)
