"""Runs that failed alike, what they have in common, and whether another run still fails so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Literal

from sessions_app.core.judge.anomalies.anomaly import Anomaly
from sessions_app.core.judge.anomalies.failed.failures import failed_steps
from sessions_app.core.run import ErrorInfo, OtherCall, Run, ToolCall, counted_steps

FailureOutcome = Literal["fixed", "still_fails", "fails_otherwise", "could_not_run", "not_judged", "not_known"]
LENGTH = 10
"""Hexadecimal digits of a fingerprint: few enough to be typed."""
_LONGEST = 160
_OF_ONE_RUN = re.compile(
    r"""https?://\S+
    | ["“][^"”]*["”] | (?<!\w)'[^']*'(?!\w) | `[^`]*`
    | \b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b | \b(?=\w*\d)\w{8,}\b
    | (?<!HTTP\ )(?<!\d)\d+(?:[.,:]\d+)*""",
    re.VERBOSE,
)
"""Addresses, quoted values, ids and numbers, but no status of HTTP."""


def failure_group(run: Run, anomalies: Iterable[Anomaly]) -> str | None:
    """The same for runs of one agent that ended in the same error at the same place, and for those that ended well
    although the same went wrong; None for a run that did not fail, or is not over."""
    signs = signs_of(status=run.status, error=None, anomalies=anomalies)
    if run.status in ("error", "cut_off") or run.error is not None:
        alike = ["cut_off" if run.status == "cut_off" else "error", _place(run), _last_error(run)]
    elif signs and run.status != "running":
        alike = ["ok", *signs]
    else:
        return None
    told = "\x00".join([run.agent.name or "", *alike])
    return sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:LENGTH]


def _place(run: Run) -> str:
    """What failed last, by its kind and name; its number differs from run to run. A failure in the middle of a run
    that ended in an error of its own may have nothing to do with it."""
    steps = [step for step in failed_steps(run).values() if not isinstance(step.call, OtherCall)]
    failed = steps[-1] if steps else None
    if failed is None or (run.error is not None and failed is not counted_steps(run)[-1]):
        return ""
    return f"tool {failed.call.tool_name}" if isinstance(failed.call, ToolCall) else failed.kind


def _last_error(run: Run) -> str:
    errors = [run.error, *(step.error for step in reversed(run.steps))]
    return next((_shape(error) for error in errors if error is not None), "")


def _shape(error: ErrorInfo) -> str:
    return f"{error.type or ''}: {' '.join(_alike(error.message or '').lower().split())}"


def signs_of(*, status: str, error: str | None, anomalies: Iterable[Anomaly]) -> tuple[str, ...]:
    """What went wrong, without what is of one run alone; empty for a run that did not fail."""
    found = list(anomalies)
    wrong = {_alike(_kind(each)) for each in _foremost(found)}
    ended = status == "error" and not any(each.code == "no_answer" for each in found)
    return tuple(sorted(wrong | ({_alike(error or "An error ended the run")} if ended else set())))


def headline(*, error: str | None, anomalies: Iterable[Anomaly]) -> str:
    """What went wrong in a run, as people read it: the error, or what went wrong although it ended well."""
    return error or " · ".join(dict.fromkeys(_kind(each) for each in _foremost(anomalies)))


def without_values(text: str) -> str:
    """As a title of several runs: what is of one of them alone is left out."""
    return _alike(text)


def _foremost(anomalies: Iterable[Anomaly]) -> list[Anomaly]:
    """The warnings; those that may be as they were meant, such as of a call that was made twice, only by themselves."""
    warnings = [each for each in anomalies if each.level == "warning"]
    least = min((each.weight for each in warnings), default=0)
    return [each for each in warnings if each.weight == least]


_KINDS = {
    "other_identity": (r"(.+?) was called with (user|tenant)_id .*", r"\1 was called for a different \2"),
    "unnamed_id": (r"(.+?) acted on .*", r"\1 acted on an id that nobody named"),
    "other_date": (r"(.+?) was called for .*", r"\1 was called with a different day from the one in the question"),
    "other_id": (r"(.+?) acted on .*", r"\1 acted on a different id from the one in the question"),
    "duplicate_call": (r"(Duplicate call: \S+) .*", r"\1"),
    "done_twice": (r"(.+?) was retried after it failed.*", r"\1 was retried after it failed, and was done twice"),
    "acted_too_soon": (r"(.+?) went ahead while (.+?) last reported.*", r"\1 went ahead before \2 reported the end"),
    "one_of_many": (r"(.+?) for .*? returned (\S+) .*", r"\1 returned \2 in one of many calls"),
    "other_value": (r"(.+?)(?: for .*?)? returned .*", r"\1 returned a different value in one of many calls"),
    "other_record": (r"(.+?) was called with (\S+) .*", r"\1 returned a different \2 from the one it was called with"),
    "done_in_part": (r"(.+?) was called with (\S+) .*", r"\1 returned a different \2 from the one in the answer"),
    "other_receipt": (r"(.+?) was called (?:for|with) .*", r"\1 did something else than the answer says"),
    "other_count": (r"(.+?) changed .*", r"\1 changed more or less than was counted"),
    "other_shape": (r"(.+?) answered .*", r"\1 answered differently in one of many calls"),
    "left_out": (r"(.+?) lists \d+, and (\S+) was never called .*", r"\2 was not called for everything that \1 lists"),
    "claim_unmade": (r".* was said, and (\S+) was never called", r"\1 was said to be done but was never called"),
    "check_skipped": (r"(.+?) was called for .* without (\S+), .*", r"\1 was called without \2"),
    "other_row": (
        r"(.+?) was called with (\S+) .*; (\S+) lists .*",
        r"\1 was called with a different \2 from the one in \3",
    ),
    "other_subject": (
        r"(.+?) was called for .*",
        r"\1 was called for one thing, and the answer gives a reason about another",
    ),
    "no_source": (r"(.+?) found nothing.*", r"\1 found nothing; the answer has no source"),
    "other_total": (r"The answer gives a total of .*", "The answer gives a total that its items do not add up to"),
    "page_unread": (r"(.+?) returned .*", r"\1 returned only part of what the answer treats as complete"),
    "other_sum": (r"(.+?) was called with (\S+) .*", r"\1 was called with a different \2 than before"),
}
"""Anomalies whose words are about the values of one run."""


def _kind(anomaly: Anomaly) -> str:
    said, kind = _KINDS.get(anomaly.code, ("", ""))
    return re.sub(said, kind, anomaly.message, flags=re.DOTALL) if said else anomaly.message


def _alike(text: str) -> str:
    return _OF_ONE_RUN.sub("…", text[: 2 * _LONGEST])[:_LONGEST]


def outcome_of(
    signs: Sequence[str], *, now: Sequence[str], status: str, is_of_another_request: bool = False
) -> FailureOutcome:
    """What became of a failure in a run that was made since: `now` are the signs of that one. An answer that rests on
    recorded answers to other requests says nothing of it; an error that ended the run all the same, code raised."""
    if status == "ok" and is_of_another_request:
        return "not_judged"
    if set(signs) & set(now):
        return "still_fails"
    if now:
        return "fails_otherwise"
    return "fixed" if status == "ok" else "not_known"
