"""Replays in words. Every sentence that says what a replay showed is made here, of its proof."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from sessions_app.core.base64_data import without_base64
from sessions_app.core.clipping import one_line, shortened
from sessions_app.core.fork.report import ForkFacts, Samples, fork_in_words
from sessions_app.core.judge.reading import count, join_words
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.place_words import place_in_words
from sessions_app.core.replay.parts import Parts
from sessions_app.core.replay.proof import (
    GIVEN_TURNS,
    INNER_REQUESTS,
    PART_WORDS,
    STATE_WORDS,
    TAKEN,
    PartName,
    Proof,
)
from sessions_app.core.replay.ran_with import NO_CALL, NOT_TOLD
from sessions_app.core.unplayed import unplayed_in_words

ReplayVerdict = Literal[
    "reproduced",
    "diverged",
    "ran_past_recording",
    "answers_left_over",
    "fixture_missing",
    "could_not_run",
    "cancelled",
    "unknown_from_step",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """The first place where a replay and its record part."""

    step: int | None
    """None where the runs as a whole differ."""
    path: str
    recorded: str | None
    """As JSON text; None when the place does not exist there."""
    replayed: str | None

    @property
    def sides(self) -> tuple[str, str]:
        """Both values, short enough for a sentence."""
        recorded, replayed = ("absent" if text is None else _brief(text) for text in (self.recorded, self.replayed))
        return recorded, replayed

    def to_json(self) -> JsonObject:
        return {
            "step": self.step,
            "path": self.path,
            "recorded": self.recorded,
            "replayed": self.replayed,
        }


def _brief(text: str) -> str:
    return shortened(without_base64(text))


def _in_headline(text: str) -> str:
    """Two of them fit two lines; the whole values stand below."""
    return shortened(without_base64(text), 72)


@dataclass(frozen=True, kw_only=True, slots=True)
class Effect:
    """A tool of the team's own that ended otherwise than in the recording, as JSON text."""

    step: int
    name: str
    recorded: str
    now: str
    has_failed: bool = False
    """Whether it ended with an exception, which no fix is likely to want."""

    @property
    def words(self) -> str:
        recorded = f"recorded: {_in_headline(self.recorded)}"
        if self.has_failed:
            return f"{self.name} now fails at step {self.step}: {_brief(self.now)}; {recorded}"
        ended = f"{self.name} now answers {_in_headline(self.now)}; {recorded}"
        return f"The change takes effect at step {self.step}: {ended}"


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveModel:
    """A live model that was asked in a replay."""

    name: str
    settings: Mapping[str, JsonValue]
    """As they were sent."""
    answered: str | None = None
    """The name under which it answered."""

    @property
    def words(self) -> str:
        settings = [f"{name} {value}" for name, value in sorted(self.settings.items())]
        answered = [f"answered as {self.answered}"] if self.answered not in (None, self.name) else []
        return ", ".join([self.name, *settings, *answered])


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplayFacts:
    """How one replay went."""

    verdict: ReplayVerdict
    proof: Proof | None = None
    """What was proven; None of a replay that never began or was left before its end."""
    steps: int = 0
    """Steps of the run that it produced."""
    stopped_at: int | None = None
    """The step at which it could not go on."""
    asked_tool: str | None = None
    """The tool whose answer was missing there."""
    limit: str | None = None
    """Why the recording cannot be replayed further, or its outcome not be proven: a sentence."""
    limit_code: str | None = None
    limit_fix: str | None = None
    """What to do about that."""
    possible_cause: str = ""
    """What may be why it differs beside the code: a tool that did not run."""
    snapshots_before: int = 0
    """Snapshots in front of the step that the verdict names, whose number counts them."""
    left_over: int = 0
    """Recorded model answers that nobody asked for."""
    difference: Difference | None = None
    sources: Mapping[str, int] = field(default_factory=dict)
    """Number of steps by where their answer came from."""
    live_calls: int | None = 0
    """Calls of live tools and requests to a live model; None where nobody counted them."""
    world: str = ""
    """What the fence kept out (core/replay/isolation.py)."""
    refused: str = ""
    """What the code tried to do outside and was kept from, in words; empty where it tried nothing."""
    error: str | None = None
    has_record_changed: bool = False
    """Whether the run says something else by now than what was replayed, as when more spans came."""
    is_cold: bool = False
    """Whether the judge says that the recording lacks what any replay needs."""
    has_run: bool = False
    """Whether the loop was played, at least in part. A replay that was refused, or stopped before, did nothing."""
    run_id: str | None = None
    """The run that the replay produced."""
    output: Payload | None = None
    """What the replayed run ended with; None also when it ended with an error."""
    fork: ForkFacts | None = None
    """None of a replay that changes nothing."""
    samples: Samples | None = None
    """How often a live model did the same again in an unchanged scene; a fork has its own."""
    live_model: LiveModel | None = None
    """The one that was asked; None where none was, also where one might have been."""
    live_tools: Mapping[str, int] = field(default_factory=dict)
    """How often each tool ran live, or on a person's own machine."""
    clock: str | None = None
    """The time at which the clock was pinned; None where it was not."""
    agent: str | None = None
    """The registered agent whose code ran; None where one was rebuilt, or none ran."""
    commit: str | None = None
    """Of the code that ran; None where that is not known."""
    parts: Parts | None = None
    """What ran; None of a fork, and where nothing ran."""
    runs_tools: bool = False
    """Whether the order lets the team's tools run."""
    effect: Effect | None = None
    """What the code of today did by itself where the replay first went another way."""
    request: str | None = None
    """Method and address that a tool sent and no recorded exchange answers."""
    agents_not_played: Sequence[str] = ()
    """Agents that ran inside of the tool at which it stopped, then as now."""

    @property
    def lacks_result(self) -> bool:
        """Whether it stopped at a tool call of which no result was recorded."""
        return self.limit_code == "tool_answer_missing" and self.stopped_at is not None

    @property
    def tools_that_ran(self) -> int:
        """Calls that a function of the team's own answered, here or live."""
        return self.sources.get("own_code", 0) + self.sources.get("live", 0)

    @property
    def has_live_model(self) -> bool:
        """Whether one answered, or may have."""
        return self.is_sampled or self.live_model is not None

    @property
    def all_samples(self) -> Samples | None:
        """Of a fork, or of an unchanged scene."""
        return self.samples or (self.fork.samples if self.fork else None)

    @property
    def missing_result(self) -> str:
        return f"the answer of {self.asked_tool} was not recorded" if self.asked_tool else "its answer was not recorded"

    @property
    def is_sampled(self) -> bool:
        """Whether it ran several times, each time with a live model."""
        return self.all_samples is not None


# --- the verdict in words ----------------------------------------------------------------------


def verdict_in_words(facts: ReplayFacts) -> str:
    said = _of_limit(facts) or _of_fork(facts) or _of_samples(facts)
    said = said or VERDICT_WORDS[facts.verdict](facts) + _with_snapshots(facts)
    return said + _with_refused(facts) + ("; the recording has changed since" if facts.has_record_changed else "")


def beside_state(facts: ReplayFacts) -> str:
    """The verdict where its state stands in front of it, and says the first words."""
    said = verdict_in_words(facts)
    return next((said.removeprefix(words) for words in _IN_STATE if said.startswith(words)), said)


_IN_STATE = ("Reproduced: ", "Diverged ", "Could not run: ", "Ran past the recording ", "Cancelled")


def _with_refused(facts: ReplayFacts) -> str:
    """What was refused may be what a change is about, also where the code went on as if nothing had happened."""
    return f"; {facts.refused}" if facts.refused and facts.verdict in ("reproduced", "diverged") else ""


def _with_snapshots(facts: ReplayFacts) -> str:
    """What the number of a step counts, where that is more than what lists show."""
    if not facts.snapshots_before:
        return ""
    return f"; the step number includes {count(facts.snapshots_before, 'snapshot')} before it"


def _of_limit(facts: ReplayFacts) -> str | None:
    """How far the recording reaches says more than how the replay stopped there."""
    if not is_in_part(facts.verdict, facts.limit):
        return None
    if facts.lacks_result:
        return f"Stopped at step {facts.stopped_at}: {facts.missing_result}"
    if not facts.proof or not facts.proof.same_steps:
        return f"Nothing was compared: {_inside(facts.limit or '')}"
    same = f"Same {count(facts.proof.same_steps, 'step')}"
    return f"{same}, but the outcome cannot be compared: {_inside(facts.limit or '')}"


def _inside(sentence: str) -> str:
    """Behind a colon, in a headline; names keep their capitals."""
    said = sentence.removesuffix(".")
    return said if said[1:2].isupper() else said[:1].lower() + said[1:]


def is_in_part(verdict: str | None, limit: object) -> bool:
    """Whether a replay ended where its recording ends, as `limit` says: that is no failure, and no difference."""
    return bool(limit) and verdict in ENDS


def why_in_part(facts: ReplayFacts) -> str:
    """What the recording lacks, where that is all there is to say: it is the same for all runs recorded alike."""
    is_alike = is_in_part(facts.verdict, facts.limit) and not facts.lacks_result
    return facts.limit or "" if is_alike else ""


ENDS: tuple[ReplayVerdict, ...] = ("unknown_from_step", "fixture_missing", "ran_past_recording")
"""Verdicts of a replay that came as far as its recording reaches."""


def _of_fork(facts: ReplayFacts) -> str | None:
    if facts.fork is None:
        return None
    return fork_in_words(facts.fork, facts.verdict, facts.proof, steps=facts.steps, stopped_at=facts.stopped_at)


def _of_samples(facts: ReplayFacts) -> str | None:
    if facts.samples is None or facts.verdict not in ("reproduced", "diverged"):
        return None
    return facts.samples.again_words


def _reproduced(facts: ReplayFacts) -> str:
    """Only a proof makes this sentence: without one there is nothing that it may claim."""
    if facts.proof is None or not facts.proof.is_reproduction:
        return "Not reproduced: the outcome was not compared"
    outcome = f"same {facts.proof.outcome_kind}"
    same = f"same {count(facts.proof.same_steps, 'step')}, {outcome}" if facts.proof.same_steps else outcome
    parts: tuple[PartName, ...] = ("requests", "model", "tool_arguments", "outcome")
    reasons = [_in_a_sentence(facts.proof.parts[name].reason or "") for name in parts]
    unsaid = [reason for reason in reasons if reason and reason not in _OF_THE_PROOF_ALONE]
    not_played = unplayed_in_words(facts.proof.not_played)
    return "; ".join([f"Reproduced: {same}", *unsaid, *([not_played] if not_played else [])])


def _in_a_sentence(reason: str) -> str:
    """What was not played has its own words there."""
    return reason.removesuffix(INNER_REQUESTS).removesuffix("; ")


_OF_THE_PROOF_ALONE = (TAKEN, GIVEN_TURNS, NO_CALL, NOT_TOLD)
"""What holds for most replays of its kind, and would make each sentence longer."""


def _diverged(facts: ReplayFacts) -> str:
    words = facts.effect.words if facts.effect is not None else _difference_in_words(facts)
    return f"{words}; {facts.possible_cause}" if facts.possible_cause else words


def _difference_in_words(facts: ReplayFacts) -> str:
    found = facts.difference
    if found is None:
        return f"Diverged{_at(facts.stopped_at)}"
    left, right = found.sides
    return f"Diverged{_at(found.step)}: {one_line(place_in_words(found.path))}: {left} → {right}"


def _ran_past(facts: ReplayFacts) -> str:
    return f"Ran past the recording{_at(facts.stopped_at)}"


def _left_over(facts: ReplayFacts) -> str:
    verb = "was" if facts.left_over == 1 else "were"
    return f"{count(facts.left_over, 'recorded answer')} {verb} left over"


def _fixture_missing(facts: ReplayFacts) -> str:
    if facts.request is not None:
        return f"Unknown{_at(facts.stopped_at, 'from')}: no recorded exchange answers {shortened(facts.request)}"
    step = "a tool call" if facts.stopped_at is None else f"step {facts.stopped_at}"
    if facts.agents_not_played:
        inner = join_words(list(facts.agents_not_played))
        return (
            f"Could not run: the tool of {step} runs another agent ({inner}), whose answers are not in this recording"
        )
    return f"Could not run: fixture for {step} missing"


def _could_not_run(facts: ReplayFacts) -> str:
    return f"Could not run: {one_line(facts.error or 'the reason was not captured')}"


def _cancelled(facts: ReplayFacts) -> str:
    return "Cancelled"


def _unknown_from(facts: ReplayFacts) -> str:
    return f"Unknown{_at(facts.stopped_at, 'from')}: no recorded answer fits"


def _at(step: int | None, word: str = "at") -> str:
    return "" if step is None else f" {word} step {step}"


VERDICT_WORDS: dict[ReplayVerdict, Callable[[ReplayFacts], str]] = {
    "reproduced": _reproduced,
    "diverged": _diverged,
    "ran_past_recording": _ran_past,
    "answers_left_over": _left_over,
    "fixture_missing": _fixture_missing,
    "could_not_run": _could_not_run,
    "cancelled": _cancelled,
    "unknown_from_step": _unknown_from,
}
NEXT_ACTIONS: dict[ReplayVerdict, str] = {
    "reproduced": "Compare with a healthy run.",
    "diverged": "Open the diff at the first difference.",
    "ran_past_recording": "Open the diff: the replay asked for an answer that was never recorded.",
    "answers_left_over": "Open the diff: the replay ended before the recording did.",
    "fixture_missing": "Compare the call with the nearest recorded ones.",
    "could_not_run": "Fix the cause given above, then replay the run again.",
    "cancelled": "Queue the replay again.",
    "unknown_from_step": "Look for the answer in another run with the same request.",
}
_FIRST_ODD_STEP = "Read the run from its first anomaly, or compare it with a healthy run."
_COLD = "See what the kit lacks; mark the run as a cold case if that data cannot be obtained."
NEXT_ACTIONS_OF_FORKS: dict[ReplayVerdict, str] = {
    "reproduced": "The change makes no difference here: try another one.",
    "diverged": "Read the outcome, and open the diff against the parent run.",
    "unknown_from_step": "Answer and continue: the fork goes on from that answer.",
}


def proof_rows(proof: Proof | None) -> list[tuple[str, str, str]]:
    """Part, state and reason, in words, of all that a replay can prove; and what it does not play."""
    if proof is None:
        return []
    not_played = unplayed_in_words(proof.not_played)
    rows = [(PART_WORDS[name], STATE_WORDS[part.state], part.reason or "") for name, part in proof.parts.items()]
    return [*rows, ("other steps", "not played", not_played)] if not_played else rows


def next_action(replay: ReplayFacts | None, *, has_odd_step: bool = False) -> str:
    """It leads to an odd step, or to what the recording lacks, only where such a thing was found."""
    if replay is None:
        return "Queue a replay."
    if is_in_part(replay.verdict, replay.limit):
        return replay.limit_fix or "Read the run as it was recorded; a new attempt would end in the same place."
    if replay.is_sampled and replay.verdict in ("reproduced", "diverged"):
        return "Read the outcomes."
    if (
        replay.fork is not None
        and replay.verdict == "reproduced"
        and not (replay.proof and replay.proof.is_reproduction)
    ):
        return "Read the outcome: it was not compared with the outcome of the run."
    if replay.fork is not None and replay.verdict == "reproduced" and replay.fork.idle_words:
        return replay.fork.idle_words
    if replay.fork is not None and replay.verdict in NEXT_ACTIONS_OF_FORKS:
        return NEXT_ACTIONS_OF_FORKS[replay.verdict]
    if replay.verdict == "reproduced" and has_odd_step:
        return _FIRST_ODD_STEP
    if replay.agents_not_played:
        return "Replay this run with frozen tools, and the other agent's run by itself."
    if replay.verdict == "could_not_run" and replay.is_cold:
        return _COLD
    return NEXT_ACTIONS[replay.verdict]
