"""Calls that failed and succeeded later, where more than a retry lies between: something that they name was changed by
another tool, or the first of them may have been done."""

from __future__ import annotations

import re

from sessions_app.core.judge.anomalies.course.repeats import made_ids
from sessions_app.core.judge.anomalies.failed.failures import is_absent, succeeded_later
from sessions_app.core.judge.anomalies.failed.fallbacks import acts
from sessions_app.core.judge.anomalies.failed.overrides import is_refused
from sessions_app.core.judge.anomalies.reading.answer_words import is_named
from sessions_app.core.judge.anomalies.reading.lookups import looks_up
from sessions_app.core.judge.reading import argument_key, leaves, object_of, own_tools, value_of
from sessions_app.core.run import Run, Step, ToolCall


def made_again_in_words(run: Run, step: Step, call: ToolCall) -> str | None:
    """`step 10 was refused; step 12 called set_attributes on snap-0422, then step 14 succeeded`."""
    again = succeeded_later(run).get(step.index)
    if again is None or looks_up(step, call):
        return None
    if _may_have_been_done(step, call, again):
        return f"step {step.index} timed out, was sent again at step {again.index}: it may have happened twice"
    between = _called_between(run, step, call, again)
    if between is None:
        return None
    changed, name = between
    failed = "was refused" if is_refused(step, call) and not is_absent(step, call) else "failed"
    made = f"step {changed.index} called {changed.name} on {name}"
    return f"step {step.index} {failed}; {made}, then step {again.index} succeeded"


# --- out of time -------------------------------------------------------------------------------

_TIMED_OUT = re.compile(r"time(?:d|[ _-]?)[ _-]?out|deadline[ _-]?exceeded", re.IGNORECASE)
_KEY = re.compile(r"idempot|dedup|request_?id|(?:request|client|transaction)_?(?:token|key|ref)|nonce", re.IGNORECASE)
"""By which a service knows a request that it has served."""


def _may_have_been_done(step: Step, call: ToolCall, again: Step) -> bool:
    """A write, by its name or as it gave an id, that was sent with the same arguments and without a key."""
    later = again.call
    if not isinstance(later, ToolCall) or _TIMED_OUT.search(_said(step, call)) is None or _has_key(step, call):
        return False
    return argument_key(call) == argument_key(later) and (acts(step, call) or bool(made_ids([later])))


def _has_key(step: Step, call: ToolCall) -> bool:
    headers = step.http.request_headers if step.http else ()
    is_asked = any(_KEY.search(key or "") for key, _ in leaves(value_of(call.arguments)))
    return is_asked or any("idempot" in name.lower() for name, _ in headers)


# --- changed between ---------------------------------------------------------------------------


def _called_between(run: Run, step: Step, call: ToolCall, again: Step) -> tuple[Step, str] | None:
    """The last call of another tool that did something to what the failed one, or its failure, names. What is busy or
    late passes without one."""
    if not is_refused(step, call) and step.error is not None:
        return None
    said = f"{_text(call)}\n{_said(step, call)}".lower()
    made = [(other, made) for other, made in own_tools(run) if step.index < other.index < again.index]
    for other, each in reversed(made):
        name = _object_of(each)
        is_other = other.name != step.name and not looks_up(other, each) and value_of(each.result) is not None
        if is_other and name and other.error is None and is_named(name.lower(), said):
            return other, name
    return None


_NAME = re.compile(r"(?=.*[\d./_@-])[\w./@:-]{4,80}")


def _object_of(call: ToolCall) -> str | None:
    """The first name among its arguments."""
    items = object_of(call.arguments).values()
    return next((item for item in items if isinstance(item, str) and _NAME.fullmatch(item)), None)


_READ = 4_000


def _said(step: Step, call: ToolCall) -> str:
    error = f"{step.error.type or ''} {step.error.message or ''}" if step.error else ""
    return f"{error}\n{call.result.as_text() if call.result else ''}"[:_READ]


def _text(call: ToolCall) -> str:
    return call.arguments.as_text()[:_READ] if call.arguments else ""
