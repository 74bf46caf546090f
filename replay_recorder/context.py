"""Who the agent acts for, and which run and step the current code belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from replay_recorder.json_text import identifier, name

if TYPE_CHECKING:
    from replay_recorder.run_writer import RunWriter


@dataclass(frozen=True)
class Identity:
    """The facts of a run that only the team knows. None means "not said" and is never guessed."""

    user_id: str | None = None
    tenant_id: str | None = None
    session_id: str | None = None
    flags: Mapping[str, Any] | None = None
    """Feature flags as resolved for this user; `{}` says that there are none."""
    region: str | None = None
    agent_version: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Anything else; it is kept and shown with the run."""

    def with_facts(self, facts: Mapping[str, Any]) -> Identity:
        """Facts by field name, those that are not None; unknown names go to `extra`."""
        known = {key: value for key, value in facts.items() if key in _FACTS and value is not None}
        unknown = {key: value for key, value in facts.items() if key not in _FACTS}
        return replace(self, **known, extra={**self.extra, **unknown})

    def run_fields(self) -> dict[str, Any]:
        """As fields of a record."""
        return {
            "user_id": name(self.user_id),
            "tenant_id": name(self.tenant_id),
            "session_id": identifier(self.session_id),
            "flags": None if self.flags is None else dict(self.flags),
            "region": name(self.region),
            **{f"context.{key}": value for key, value in self.extra.items()},
        }

    def step_fields(self) -> dict[str, Any]:
        """What a tool step carries: for whom the tool really acted."""
        return {"user_id": name(self.user_id), "tenant_id": name(self.tenant_id)}


_FACTS = frozenset(each.name for each in fields(Identity)) - {"extra"}


@dataclass(frozen=True)
class Place:
    """A run, and the step in it that the current code runs inside."""

    run: RunWriter
    step: int | None = None


_identity: ContextVar[Identity] = ContextVar("replay_recorder_identity", default=Identity())
_place: ContextVar[Place | None] = ContextVar("replay_recorder_place", default=None)


def current_identity() -> Identity:
    return _identity.get()


def current_place() -> Place | None:
    return _place.get()


@contextmanager
def context(**facts: Any) -> Iterator[None]:
    """Facts for every run that starts inside the block, and for the tool calls in it.

    `user_id`, `tenant_id`, `session_id`, `flags` (a dict), `region`, `agent_version`; any other name is kept
    with the run.
    """
    token = _identity.set(_identity.get().with_facts(facts))
    try:
        yield
    finally:
        _identity.reset(token)


@contextmanager
def placed(run: RunWriter, step: int | None) -> Iterator[None]:
    """What is recorded inside the block belongs to this step of this run."""
    token = _place.set(Place(run=run, step=step))
    try:
        yield
    finally:
        _place.reset(token)
