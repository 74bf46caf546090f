"""Who the agent acts for, and which run and step the current code belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar, Token
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from replay_recorder.writing.json_text import identifier, name

if TYPE_CHECKING:
    from replay_recorder.writing.run_writer import RunWriter


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
            "flags": dict(self.flags) if isinstance(self.flags, Mapping) else None,
            "region": name(self.region),
            **{f"context.{key}": value for key, value in self.extra.items()},
        }

    def step_fields(self) -> dict[str, Any]:
        """What a tool step carries: for whom the tool really acted."""
        return {"user_id": name(self.user_id), "tenant_id": name(self.tenant_id)}


_FACTS = frozenset(each.name for each in fields(Identity)) - {"extra"}


class Place(NamedTuple):
    """A run, and the step in it that the current code runs inside."""

    run: RunWriter
    step: int | None = None


class Scope(Protocol):
    """Code that gets a run of its own only when it turns out to need one: see `functions`."""

    @property
    def session_id(self) -> str | None:
        """The session that runs inside belong to; None while none of them has one."""

    def place(self) -> Place | None:
        """Its run when it has one, else what it runs inside."""

    def open_place(self) -> Place | None:
        """Its run, opened if need be: it has a step of its own to record."""

    def note(self, session_id: str, run: Mapping[str, Any]) -> None:
        """A run has begun inside; see `RunWriter.summary`."""


Held = Place | Scope | None
_identity: ContextVar[Identity] = ContextVar("replay_recorder_identity", default=Identity())
_place: ContextVar[Held] = ContextVar("replay_recorder_place", default=None)


def current_identity() -> Identity:
    return _identity.get()


def current_place() -> Place | None:
    """What the current code runs inside; a recorded function counts once it has a run of its own."""
    held = _place.get()
    return held if held is None or isinstance(held, Place) else held.place()


def place_for_step() -> Place | None:
    """The same for code that has a step to record: a recorded function then gets its run."""
    held = _place.get()
    return held if held is None or isinstance(held, Place) else held.open_place()


def current_scope() -> Scope | None:
    """The recorded function that the current code runs directly inside."""
    held = _place.get()
    return None if held is None or isinstance(held, Place) else held


@contextmanager
def inside(held: Held) -> Iterator[None]:
    """`placed` for anything that can hold steps; None: for nothing."""
    token = _place.set(held)
    try:
        yield
    finally:
        _place.reset(token)


Surroundings = tuple[Identity, Held]


def surroundings() -> Surroundings:
    """All that the recorder knows of where the current code runs."""
    return _identity.get(), _place.get()


def surround(identity: Identity, held: Held) -> None:
    """Put the current code there, until somebody puts it elsewhere."""
    _identity.set(identity)
    _place.set(held)


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
    with inside(Place(run=run, step=step)):
        yield


class placed_from_now:
    """`placed` for hooks of frameworks: it never raises, also where a framework leaves it in another task."""

    def __init__(self, place: Place | None) -> None:
        self._place = place
        self._token: Token[Held] | None = None

    def __enter__(self) -> None:
        if self._place is not None:
            self._token = _place.set(self._place)

    def __exit__(self, *error: object) -> None:
        if self._token is not None:
            # Set in one task and left in another: that task's own value is not ours to change.
            with suppress(ValueError):
                _place.reset(self._token)
