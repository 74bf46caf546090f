"""Calls that failed, with an error or with an answer that tells of one, and that nobody made again with success."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict

from sessions_app.core.judge.anomalies.failed.absences import is_made_later, tells_of_absence
from sessions_app.core.judge.anomalies.failed.fallbacks import is_done_by_another
from sessions_app.core.judge.anomalies.failed.refused_steps import came_to_nothing
from sessions_app.core.judge.anomalies.failed.told_failures import is_set_apart
from sessions_app.core.judge.anomalies.reading.answer_words import plain, question_of
from sessions_app.core.judge.anomalies.reading.lookups import looks_up
from sessions_app.core.judge.anomalies.reading.override_flags import without_overrides
from sessions_app.core.judge.anomalies.reading.vocabulary import ERRORS, FAILED, STATES, SUCCESS
from sessions_app.core.judge.reading import (
    ended_in_error,
    is_number,
    object_of,
    own_tools,
    seen_messages,
    status_code,
    text_of,
    value_of,
)
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import Run, Step, ToolCall
from sessions_app.core.shared_values import once_each, shared_values

FAILED_COUNTS = ("failed", "failures", "failed_count", "rejected", "errors", "error_count")


def told_failure(step: Step, call: ToolCall) -> str | None:
    """What an answer without an error says of a failure, in its own words where it has any."""
    told = value_of(call.result)
    if not isinstance(told, dict):
        return None
    only = next(iter(told.values())) if len(told) == 1 else None
    bare = next((each for each in (told, only) if isinstance(each, dict) and _is_bare_error(each)), None)
    if bare is not None and not told.get("error"):
        return ": ".join(str(item) for key, item in bare.items() if key.lower() in _ERROR_WORDS and item)
    if _failed_whole(told):
        errors = [item for key, item in told.items() if ERRORS.fullmatch(key.lower())]
        inner = [item for each in errors if isinstance(each, dict) for item in each.values()]
        words = (*errors, *inner, told.get("message"), told.get("reason"))
        return next((word for word in words if isinstance(word, str) and word), "")
    return failed_count(step, call)


def failed_count(step: Step, call: ToolCall) -> str | None:
    """How many of a batch failed; who looks up how many failed was told what was asked for."""
    told = {} if looks_up(step, call) else object_of(call.result)
    return next((f"{told[key]} {key.split('_')[0]}" for key in FAILED_COUNTS if _is_count(told.get(key))), None)


def is_failed_state(state: str) -> bool:
    return FAILED.fullmatch(state) is not None


def _failed_whole(told: JsonObject) -> bool:
    return any(
        (item is False and SUCCESS.fullmatch(key))
        or (item and ERRORS.fullmatch(key.lower()))
        or (isinstance(item, str) and STATES.fullmatch(key) and is_failed_state(item))
        for key, item in told.items()
    )


_ERROR_CODES = frozenset({"code", "error_code", "errorcode", "status_code", "statuscode"})
_ERROR_WORDS = frozenset({*_ERROR_CODES, "message", "msg", "error_message", "errormessage", "detail", "description"})
_BESIDE_ERRORS = frozenset({"status", "type", "title", "reason", "request_id", "requestid", "trace_id", "timestamp"})
_OF_ERRORS = re.compile(
    r"(?<![a-z])(?:denied|forbidden|unauthori[sz]ed|unauthenticated|(?:not|no)[ _-]?found|no[ _-]such|invalid|errors?"
    r"|fail(?:ed|ure)|timed?[ _-]?out|exceeded|unavailable|refused|rejected|expired|conflict|throttled|exception"
    r"|not[ _-]allowed|not[ _-]permitted|too many requests|unsupported|bad request|bad gateway)(?![a-z])"
)


def _is_bare_error(told: JsonObject) -> bool:
    """A code of an error, mostly with words for it, and nothing else that anybody could have asked for."""
    said = {key.lower(): item for key, item in told.items() if item is not None}
    if not said.keys() <= _ERROR_WORDS | _BESIDE_ERRORS:
        return False
    codes = [(key, item) for key, item in said.items() if key in _ERROR_CODES]
    words = [item for key, item in said.items() if key not in _ERROR_CODES and key in _ERROR_WORDS]
    if not codes:
        return len(words) == 1 and _IS_REFUSED.fullmatch(str(words[0])) is not None
    return any(_is_error_code(code) and (words or "error" in key) for key, code in codes)


_IS_REFUSED = re.compile(
    r"(?:forbidden|unauthorized|(?:access|permission) denied|internal server error|service unavailable"
    r"|too many requests|bad (?:request|gateway)|gateway timeout|endpoint request timed out|not found)[.!]?",
    re.IGNORECASE,
)


def _is_error_code(code: JsonValue) -> bool:
    if isinstance(code, str) and not code.isdecimal():
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", code).lower().replace("_", " ")
        return _OF_ERRORS.search(words) is not None and not words.startswith(("no error", "ok", "success"))
    number = int(code) if isinstance(code, int | str) and str(code).isdecimal() else 0
    return 400 <= number <= 599


def _is_count(value: JsonValue) -> bool:
    return is_number(value) and value > 0


def has_failed(step: Step) -> bool:
    """With an error, or with an answer that tells of one."""
    return ended_in_error(step) or (isinstance(step.call, ToolCall) and told_failure(step, step.call) is not None)


@once_each
def failed_steps(run: Run) -> dict[int, Step]:
    """By number, in their order, and those that were refused or came to nothing; a lookup that found nobody is none
    where the answer tells just that, or where what it looked for was made then."""
    with shared_values():
        failed = (step for step in run.steps if has_failed(step) or _came_to_nothing(step))
        return {step.index: step for step in failed if not _is_told_absence(run, step)}


def _came_to_nothing(step: Step) -> bool:
    return isinstance(step.call, ToolCall) and not step.call.is_output and came_to_nothing(step, step.call)


def _is_told_absence(run: Run, step: Step) -> bool:
    call = step.call
    if not isinstance(call, ToolCall) or not is_absent(step, call):
        return False
    is_lookup = looks_up(step, call) or _was_got(step)
    return is_made_later(run, step, call) or (is_lookup and _is_expected(run, step, call))


def _is_expected(run: Run, step: Step, call: ToolCall) -> bool:
    return (
        tells_of_absence(run, call)
        or _ABSENT.search(plain(f"{question_of(run)}\n{run.instructions or ''}")) is not None
        or is_set_apart(run, step, call)
    )


def _was_got(step: Step) -> bool:
    return step.http is not None and (step.http.method or "").upper() in ("GET", "HEAD")


_ABSENT = re.compile(r"(?<![\w.,])404(?![\w.,]*\d)")
"""Whoever speaks of it beforehand takes it for an answer."""


def is_absent(step: Step, call: ToolCall) -> bool:
    """Not there, which is an answer to who asks for it."""
    if status_code(step) is not None:
        return status_code(step) == 404
    error = f"{step.error.type or ''} {step.error.message or ''}" if step.error else ""
    said = told_failure(step, call) or error or text_of(call.result) or ""
    return re.search(r"not[ _]?found", plain(said[:_SAID])) is not None


_SAID = 300


@once_each
def unhealed(run: Run) -> list[tuple[Step, ToolCall]]:
    """Calls that failed, and that nobody made again with success: with the same arguments but for an override, or with
    any where the tool had said that these would not do, or by another tool that looks up the same."""
    made_again = succeeded_later(run)
    failed = ((step, call) for step, call in own_tools(run) if step.index in failed_steps(run))
    left = (pair for pair in failed if pair[0].index not in made_again)
    return [pair for pair in left if not is_done_by_another(run, *pair)]


@once_each
def succeeded_later(run: Run) -> dict[int, Step]:
    """By the step of a call that failed, the one that made it again with success."""
    failed: dict[tuple[str, bytes | None], list[tuple[Step, ToolCall]]] = defaultdict(list)
    every, made_again = failed_steps(run), dict[int, Step]()
    for step, call in own_tools(run) if every else ():
        if step.index in every:
            failed[call.tool_name, None if _is_asked_again(step, call) else without_overrides(call)].append(
                (step, call)
            )
        elif call.outcome != "retried":
            for key in ((call.tool_name, None), (call.tool_name, without_overrides(call))):
                before = failed.pop(key, [])
                failed[key] = [pair for pair in before if stays_denied(run, *pair, step)]
                made_again |= {pair[0].index: step for pair in before if pair not in failed[key]}
    return made_again


def stays_denied(run: Run, denied: Step, call: ToolCall, step: Step) -> bool:
    """Whether somebody refused a call, and said nothing more before it was made again."""
    turns = turns_of_users(run) if call.outcome == "denied" else []
    return call.outcome == "denied" and bisect_right(turns, denied.index) == bisect_right(turns, step.index)


@once_each
def turns_of_users(run: Run) -> list[int]:
    return [seen.step for seen in seen_messages(run) if seen.parts_of("user-prompt")]


def _is_asked_again(step: Step, call: ToolCall) -> bool:
    """A loop of one's own may tell of any error in the words of a retry."""
    return call.outcome == "retried" and (step.error is None or step.error.type in _RETRY_ERRORS)


_RETRY_ERRORS = (None, "ToolRetryError", "ModelRetry")
