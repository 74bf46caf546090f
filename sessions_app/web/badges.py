"""How states look: one icon and one word each, the same on every page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sessions_app.core.fork.expected_words import UNPROVEN, Unproven, ended_in_words, judged_in_words
from sessions_app.models import Replay
from sessions_app.models.replays import ReplayState


@dataclass(frozen=True, kw_only=True, slots=True)
class State:
    """`css` names the colour in base.css, `icon` a symbol of icons.svg."""

    word: str
    icon: str
    css: str


UNKNOWN = State(word="unknown", icon="circle-dashed", css="unknown")

RUN_STATES = {
    "ok": State(word="ok", icon="check", css="ok"),
    "error": State(word="error", icon="x", css="error"),
    "cut_off": State(word="cut off", icon="scissors", css="error"),
    "running": State(word="running", icon="loader-circle", css="running"),
}

RUN_VERDICTS = {
    "replayable": State(word="replayable", icon="play", css="replayable"),
    "replayable_to_step": State(word="replayable to step", icon="skip-forward", css="partial"),
    "cold": State(word="cold", icon="snowflake", css="cold"),
    "not_ended": State(word="not finished yet", icon="loader-circle", css="running"),
}

SHORT_RUN_VERDICTS = RUN_VERDICTS | {
    "replayable_to_step": State(word="to step", icon="skip-forward", css="partial"),
    "not_ended": State(word="not yet", icon="loader-circle", css="running"),
}
"""For a narrow column whose head says what it is about."""

REPLAY_STATES = {
    "queued": State(word="queued", icon="circle", css="queued"),
    "claimed": State(word="starting", icon="loader-circle", css="running"),
    "running": State(word="running", icon="loader-circle", css="running"),
    "paused": State(word="paused", icon="pause", css="partial"),
    "done": State(word="done", icon="check", css="ok"),
    "failed": State(word="could not run", icon="minus", css="stopped"),
    "cancelled": State(word="cancelled", icon="ban", css="cancelled"),
    "crashed": State(word="crashed", icon="x", css="crashed"),
}

REPLAY_VERDICTS = {
    "reproduced": State(word="reproduced", icon="equal", css="reproduced"),
    "diverged": State(word="diverged", icon="git-fork", css="diverged"),
    "contradictory": State(word="contradictory", icon="git-fork", css="diverged"),
    "ran_past_recording": State(word="ran past the recording", icon="git-fork", css="diverged"),
    "answers_left_over": State(word="answers left over", icon="git-fork", css="diverged"),
    "partial": State(word="in part", icon="contrast", css="partial"),
    "fixture_missing": State(word="fixture missing", icon="minus", css="stopped"),
    "could_not_run": State(word="could not run", icon="minus", css="stopped"),
    "cancelled": State(word="cancelled", icon="ban", css="cancelled"),
    "unknown_from_step": State(word="stopped", icon="circle-dashed", css="unknown"),
    "waits_for_answer": State(word="needs an answer", icon="circle-question-mark", css="partial"),
}

SOURCES = {
    "recorded": State(word="recorded", icon="history", css="ok"),
    "recorded_for_another_request": State(word="recorded for another request", icon="history", css="partial"),
    "borrowed": State(word="borrowed", icon="link", css="ok"),
    "by_hand": State(word="by hand", icon="hand", css="ok"),
    "rule": State(word="rule", icon="split", css="ok"),
    "own_code": State(word="own code", icon="code", css="ok"),
    "live": State(word="live", icon="radio", css="partial"),
    "unknown": UNKNOWN,
}
"""Where the answer of a step came from."""

SOURCE_MEANS = {
    "recorded": "the answer that was recorded at this step",
    "recorded_for_another_request": "the answer that was recorded at this step, to a request other than this one",
    "borrowed": "the same request, answered in another recorded run of this project",
    "by_hand": "an answer that somebody wrote",
    "rule": "an answer that a rule supplied",
    "own_code": "your own code ran",
    "live": "a real model or a real tool was called",
    "unknown": "no answer was known; the replay stopped there",
}


def _ended(met: bool | None, source: Unproven | None, words: Callable[..., str] = ended_in_words) -> State:
    """What came although nothing proves it is not green; what did not come is red either way."""
    icon, css = {True: ("check", "reproduced"), False: ("x", "error"), None: ("eye", "ok")}[met]
    return State(word=words(met, source), icon=icon, css="partial" if met and source else css)


def expectation_of(met: bool | None, source: Unproven | None) -> str:
    """The key of `EXPECTATIONS`: `met`, `not_met_by_hand`."""
    if met is None:
        return "not_judged" if source == "code_not_run" else "open"
    return "_".join(filter(None, ("met" if met else "not_met", source)))


EXPECTATIONS = {
    expectation_of(met, source): _ended(met, source) for met in (True, False, None) for source in (None, *UNPROVEN)
} | {"not_judged": _ended(None, "code_not_run")}
"""Whether a fork ended as it was expected to; `open` where only a person can say."""

SHORT_EXPECTATIONS = {
    expectation_of(met, source): _ended(met, source, judged_in_words)
    for met in (True, False, None)
    for source in (None, *UNPROVEN)
} | {"not_judged": _ended(None, "code_not_run", judged_in_words)}
"""For a column of states; why the outcome proves nothing stands beside it."""

KIT_STATES = {
    "captured": State(word="captured", icon="check", css="ok"),
    "partial": State(word="partial", icon="contrast", css="partial"),
    "missing": State(word="not captured", icon="circle-dashed", css="unknown"),
    "contradictory": State(word="contradictory", icon="triangle-alert", css="error"),
}

GOLDEN_RESULTS = {
    "pass": State(word="passed", icon="check", css="reproduced"),
    "fail": State(word="failed", icon="x", css="error"),
    "could_not_run": State(word="could not run", icon="minus", css="stopped"),
    "nothing_covered": State(word="not judged", icon="circle-dashed", css="unknown"),
}
CHECK_RESULTS = {
    "pass": State(word="passed", icon="check", css="reproduced"),
    "fail": State(word="failed", icon="x", css="error"),
    "nothing_covered": State(word="not judged", icon="circle-dashed", css="unknown"),
}
FAILURE_OUTCOMES = {
    "fixed": State(word="fixed", icon="check", css="reproduced"),
    "still_fails": State(word="still fails", icon="x", css="error"),
    "fails_otherwise": State(word="fails differently", icon="x", css="error"),
    "could_not_run": State(word="could not run", icon="minus", css="stopped"),
    "not_judged": State(word="not judged", icon="circle-dashed", css="unknown"),
    "not_known": State(word="no result", icon="circle-dashed", css="unknown"),
}

ATTEMPTS = {
    "reproduced": REPLAY_VERDICTS["reproduced"],
    "different": REPLAY_VERDICTS["diverged"],
    "partial": REPLAY_VERDICTS["partial"],
    "unknown": State(word="stopped: answer unknown", icon="circle-question-mark", css="stopped"),
    "cancelled": REPLAY_VERDICTS["cancelled"],
    "error": REPLAY_VERDICTS["could_not_run"],
    "of_another_record": State(word="of another state of the recording", icon="circle-dashed", css="unknown"),
}
"""Outcomes of replays as reports count them, in the words of their verdicts."""

TABLES = {
    "attempt": ATTEMPTS,
    "failure": FAILURE_OUTCOMES,
    "golden": GOLDEN_RESULTS,
    "check": CHECK_RESULTS,
    "run": RUN_STATES,
    "verdict": RUN_VERDICTS,
    "verdict_short": SHORT_RUN_VERDICTS,
    "replay": REPLAY_STATES,
    "replay_verdict": REPLAY_VERDICTS,
    "source": SOURCES,
    "expectation": EXPECTATIONS,
    "expectation_short": SHORT_EXPECTATIONS,
    "kit": KIT_STATES,
}


def replay_key(replay: Replay, expectations: str = "expectation") -> tuple[str, str]:
    """The table of its state, and the key there. Of a fork from which something was expected, whether that came: that
    it differs is no news."""
    if replay.state != ReplayState.DONE or not replay.verdict:
        return "replay", replay.state
    if replay.waits_for_answer:
        return "replay_verdict", "waits_for_answer"
    if replay.expectation_met is not None:
        return expectations, expectation_of(replay.expectation_met, replay.unproven_source)
    return "replay_verdict", replay.shown_verdict or ""


def state_of(table: str, value: str | None) -> State:
    """A value that a table does not know is shown as unknown, by its own name."""
    if value is None:
        return UNKNOWN
    known = TABLES[table].get(value)
    return known or State(word=value.replace("_", " "), icon=UNKNOWN.icon, css=UNKNOWN.css)
