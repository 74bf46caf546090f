"""What the runs of a session say of each other, and say otherwise. Each of them may be whole by itself."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile

from sessions_app.core.compare.strict import same_json
from sessions_app.core.history import History, extend, nodes
from sessions_app.core.judge.cut_values import is_cut
from sessions_app.core.judge.reading import value_of
from sessions_app.core.partial_histories import with_whole_histories
from sessions_app.core.payload import JsonObject, Payload
from sessions_app.core.replay.hand_overs import is_openai_agents
from sessions_app.core.replay.rewriting import was_rewritten_in_place
from sessions_app.core.run import (
    GRAPHS,
    PYDANTIC_AI,
    AgentCall,
    ErrorInfo,
    ModelCall,
    ParentLink,
    Run,
    Step,
    main_model_calls,
)
from sessions_app.core.sessions.handed_on import (
    HistoryReader,
    SaidPart,
    SessionParts,
    ToldOtherwise,
    TurnEnd,
    is_retold,
    prompted_otherwise,
    told_otherwise,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Contradiction:
    """A place of a run that another run of its session says otherwise."""

    run_id: str
    step: int
    path: str
    other_run_id: str | None
    """None where no run of the session holds it."""
    other_step: int | None

    def in_words(self, numbers: Mapping[str, int]) -> str:
        """`numbers` says which run of the session each is, from 1."""
        here = f"{_named(self.run_id, numbers)}, step {self.step}: {self.path}"
        if self.other_run_id is None:
            return f"{here} is in no run of this session"
        return f"{here} is not what {_named(self.other_run_id, numbers)} says at step {self.other_step}"

    @property
    def next_action(self) -> str:
        if self.other_run_id is None:
            return "Send the run that said it, then replay the session again; if there is none, the history is wrong."
        return "Read both runs at these steps: their recordings cannot both be right."

    def to_json(self) -> JsonObject:
        return {
            "run_id": self.run_id,
            "step": self.step,
            "path": self.path,
            "other_run_id": self.other_run_id,
            "other_step": self.other_step,
        }


def _named(run_id: str, numbers: Mapping[str, int]) -> str:
    return f"run {numbers[run_id]} ({run_id})"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Called:
    """A run of another agent, as the run that called it holds it."""

    step: int
    places: frozenset[int | None]
    """What the called run may say of where: that step, or the one around it; None where none is."""
    arguments: Payload | None
    result: Payload | None
    error: ErrorInfo | None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Turn:
    """Of a run what other runs may say otherwise: whole runs of a long session are too much to hold."""

    run_id: str
    agent: str | None
    agents: frozenset[str | None]
    """It and the one that it handed over to last."""
    is_of_graph: bool
    """The turns of a thread go on from each other there, whoever speaks."""
    prior: Sequence[SaidPart]
    end: TurnEnd
    held: Counter[str]
    """The keys of `end`."""
    added: Counter[str]
    """Those that it was not handed."""
    said: Counter[str]
    """`added`, and what was said in it that its end does not hold."""
    prior_prompts: Sequence[SaidPart]
    """The system prompts that it began with, and those of its end; none where code makes them anew for each turn."""
    end_prompts: Sequence[SaidPart]
    has_end: bool
    """Whether all that was said in it is known."""
    reach: Sequence[tuple[int, int]]
    """Each model step, and how many messages there were behind it."""
    called: Mapping[str, _Called]
    """By the id of the run that was called."""
    caller: ParentLink | None
    """Who called it, as it says itself."""
    asked: Payload | None
    """None of a graph, which is called with a state of which its input is a part."""
    answered: Payload | None
    error: ErrorInfo | None
    last_step: int

    @property
    def first_step(self) -> int:
        return next((step for step, _ in self.reach), 1)

    def step_of(self, message: int) -> int:
        """The first model step that held a message, or answered with it."""
        return next((step for step, length in self.reach if length > message), self.last_step)


def find_contradictions(runs: Iterable[Run]) -> list[Contradiction]:
    """`runs` in the order of the session; each is looked at once and not kept."""
    reader = HistoryReader()
    turns = [_read(run, reader) for run in runs]
    places = {turn.run_id: at for at, turn in enumerate(turns)}
    return sorted([*_of_pasts(turns), *_of_callers(turns)], key=lambda found: places[found.run_id])


def _read(run: Run, reader: HistoryReader) -> _Turn:
    whole = with_whole_histories(run)
    models = main_model_calls(whole)
    lengths = [(step.index, call.output_history.length) for step, call in models if call.output_history]
    end = whole.final or next((call.output_history for _, call in reversed(models) if call.output_history), None)
    if was_rewritten_in_place(run):
        end = None
    is_whole = end is not None and whole is run and len(lengths) == len(models)
    prior, parts = (_as_handed_on(run, reader.parts(each)) for each in (run.prior, end))
    turn_end = TurnEnd.of(parts, value_of(run.output) if run.output is not None else None)
    held = Counter(part.key for part in parts)
    added = held - Counter(part.key for part in prior)
    replaced = Counter(part.key for part in reader.parts(_replaced(models, end)))
    return _Turn(
        run_id=run.run_id,
        agent=run.agent.name,
        agents=frozenset({run.agent.name, _last_agent(run)}),
        is_of_graph=run.agent.framework in GRAPHS,
        prior=prior,
        end=turn_end,
        held=held,
        added=added,
        said=added + replaced + Counter(filter(None, [turn_end.answer])),
        prior_prompts=reader.system_prompts(run.prior) if run.agent.framework == PYDANTIC_AI else (),
        end_prompts=reader.system_prompts(end) if run.agent.framework == PYDANTIC_AI else (),
        has_end=is_whole,
        reach=lengths,
        called=_called(run),
        caller=run.parent if run.origin == "recorded" else None,
        asked=None if run.agent.framework in GRAPHS else run.input,
        answered=run.output,
        error=run.error,
        last_step=len(run.steps),
    )


def _replaced(models: Sequence[tuple[Step, ModelCall]], end: History | None) -> History | None:
    """What model steps held or answered that the end does not hold: code rewrote the history, or filtered it for the
    agent that was handed over to."""
    kept = {node.message.digest for node in nodes(end)}
    seen = {node.digest for node in nodes(end)}
    found: dict[str, Payload] = {}
    for _, call in models:
        for node in takewhile(lambda node: node.digest not in seen, nodes(call.output_history)):
            seen.add(node.digest)
            found.setdefault(node.message.digest, node.message)
    return extend(None, [message for digest, message in found.items() if digest not in kept])


def _last_agent(run: Run) -> str | None:
    last = run.extra.get("last_agent")
    return last if isinstance(last, str) else run.agent.name


def _as_handed_on(run: Run, parts: list[SaidPart]) -> list[SaidPart]:
    """Items of the OpenAI Agents SDK do not tell how a call ended."""
    return [part.without("outcome") for part in parts] if is_openai_agents(run) else parts


def _called(run: Run) -> dict[str, _Called]:
    return {
        step.call.run_id: _Called(
            step=step.index,
            places=frozenset({step.index, step.parent}),
            arguments=step.call.arguments,
            result=step.call.result,
            error=step.error,
        )
        for step in run.steps
        if isinstance(step.call, AgentCall) and step.call.run_id is not None
    }


class _SessionSoFar:
    """What the turns before one said, and what all of them say."""

    def __init__(self, turns: Iterable[_Turn]) -> None:
        self._said = Counter[str]()
        self._held = Counter[str]()
        self._of_agents = defaultdict[str | None, Counter[str]](Counter)
        self.is_whole = True
        for turn in turns:
            self._said.update(turn.said)

    def add(self, turn: _Turn) -> None:
        self._held |= turn.held
        self.is_whole &= turn.has_end
        for agent in turn.agents:
            self._of_agents[agent].update(turn.added)

    def parts_for(self, turn: _Turn) -> SessionParts | None:
        """None where not all that was said is known."""
        if not self.is_whole:
            return None
        left_out = self._of_agents[turn.agent] - Counter(part.key for part in turn.prior)
        return SessionParts(counts=self._said | self._held, left_out=left_out.total())


def _of_pasts(turns: Sequence[_Turn]) -> Iterator[Contradiction]:
    """What a turn was handed on in another form is told of that turn, and not again of those behind it."""
    told: set[tuple[str, int]] = set()
    session = _SessionSoFar(turns)
    for at, turn in enumerate(turns):
        before = _turn_before(turn, turns[:at])
        other = _other_past(turn, before, session) if before else None
        if before is None and session.is_whole and (found := _strange_past(turn, turns, at)) is not None:
            yield _contradiction(turn, found.path, None, None)
        session.add(turn)
        if before is None or other is None:
            continue
        told.add((turn.run_id, other.now.message))
        if other.before is None:
            yield _contradiction(turn, other.path, None, None)
        elif (before.run_id, other.before.message) not in told:
            yield _contradiction(turn, other.path, before, before.step_of(other.before.message))


def _other_past(turn: _Turn, before: _Turn, session: _SessionSoFar) -> ToldOtherwise | None:
    others = told_otherwise(turn.prior, before.end, partial(session.parts_for, turn))
    if turn.agent not in before.agents:
        return next((found for found in others if not is_retold(found, before.end)), None)
    return next(others, None) or prompted_otherwise(turn.prior_prompts, before.end_prompts)


def _strange_past(turn: _Turn, turns: Sequence[_Turn], at: int) -> SaidPart | None:
    """Of a history that has nothing in common with any turn before: what no other run holds, if a call is among it.
    Texts alone may be examples, or stand for what was said."""
    if not any(turn.agent in each.agents for each in turns[:at]):
        return None
    held = set[str]().union(*(each.held for each in turns if each is not turn))
    unknown = [part for part in turn.prior if part.key not in held]
    return unknown[0] if any(part.kind == "tool-call" for part in unknown) else None


def _contradiction(turn: _Turn, path: str, other: _Turn | None, other_step: int | None) -> Contradiction:
    step = turn.last_step if path in _AT_THE_END else turn.first_step
    other_run_id = None if other is None else other.run_id
    return Contradiction(run_id=turn.run_id, step=step, path=path, other_run_id=other_run_id, other_step=other_step)


_AT_THE_END = ("output", "error")


def _turn_before(turn: _Turn, earlier: Sequence[_Turn]) -> _Turn | None:
    """The one that shares most with what the turn was handed, the newest of those, of the same agent if it can be. What
    it shares with several turns because each began with it, such as examples, was handed on by none of them."""
    own = {part.key for part in turn.prior}
    most, found = 0, None
    of_graph = [each for each in earlier if turn.is_of_graph and each.is_of_graph and turn.agent not in each.agents]
    for each in reversed([*of_graph, *(each for each in earlier if turn.agent in each.agents)]):
        shared = len(own & each.held.keys())
        if shared > most and not own.isdisjoint(each.added):
            most, found = shared, each
        if most == len(own):  # in a long conversation the newest turn holds all of it
            break
    return found


def _of_callers(turns: Sequence[_Turn]) -> Iterator[Contradiction]:
    """What the run that called another one gave it, and got of it, and which of them was called where."""
    callers = {run_id: (turn, told) for turn in turns for run_id, told in turn.called.items()}
    runs = {turn.run_id: turn for turn in turns}
    for turn in turns:
        caller, told = callers.get(turn.run_id) or _called_another(turn, runs) or (None, None)
        path = _other_field(turn, caller, told) if caller and told else None
        if told is not None and path is not None:
            yield _contradiction(turn, path, caller, told.step)


def _called_another(turn: _Turn, runs: Mapping[str, _Turn]) -> tuple[_Turn, _Called] | None:
    """Of a run that nobody called: whom it says to be called by, and the call there, if that names a run that is not
    of this session."""
    if turn.caller is None or turn.caller.run_id not in runs:
        return None
    caller, step = runs[turn.caller.run_id], turn.caller.step
    others = (told for run_id, told in caller.called.items() if run_id not in runs and step in told.places)
    return next(((caller, told) for told in others), None)


def _other_field(turn: _Turn, caller: _Turn, told: _Called) -> str | None:
    return _other_caller(turn, caller, told) or _other_value(turn, told)


def _other_caller(turn: _Turn, caller: _Turn, told: _Called) -> str | None:
    said = turn.caller
    if said is None:
        return None
    if said.run_id != caller.run_id or turn.run_id not in caller.called:
        return "parent.run_id"
    return "parent.step" if said.step is not None and said.step not in told.places else None


def _other_value(turn: _Turn, told: _Called) -> str | None:
    fields = ("input", turn.asked, told.arguments), ("output", turn.answered, told.result)
    other = (name for name, own, said in fields if own is not None and said is not None and _differ(own, said))
    is_other_error = turn.error is not None and told.error is not None and not turn.error.allows(told.error)
    return next(other, "error" if is_other_error else None)


def _differ(one: Payload, other: Payload) -> bool:
    return not (is_cut(one) or is_cut(other)) and not same_json(value_of(one), value_of(other))
