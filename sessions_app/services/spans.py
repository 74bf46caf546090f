"""Taking in spans: redact, pack, store; then have a run made of each trace.

Storing is one transaction and what the sender gets its answer for. Making the run comes after it (`trace_runs`): at
once where nobody else waits, else a worker does it.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import lru_cache

from sessions_app.core.payload import compact_json, sha256_hex
from sessions_app.core.redaction import Redactor, Rule, rules_of
from sessions_app.core.spans.batch import write_batch
from sessions_app.core.spans.packing import Packer
from sessions_app.core.spans.remembered import RememberedPieces, key_of
from sessions_app.core.spans.span import LogRecord, Span
from sessions_app.models import Project, Trace
from sessions_app.services.redaction import own_rules, redactor_of
from sessions_app.services.span_store import Arrival, store
from sessions_app.services.trace_runs import join_calls, make_run
from sessions_app.services.wakeups import wake_for_spans

logger = logging.getLogger(__name__)
_SMALL = 200
"""Spans. A trace up to here is made into a run again at each request that brings its end or comes later."""
_GROWTH = 10
"""A longer one when it grew by one part in so many; otherwise a worker does it."""
_SHORT = 20
"""Traces. A loop whose calls come as traces of their own is made into a run again at each call up to here; of a longer
one a worker makes it, for the calls of some time together."""
_AT_ONCE = 2_000
"""Spans of traces that one request makes runs of while its sender waits; a worker makes the others."""


def receive(
    project: Project,
    spans: Sequence[Span],
    logs: Sequence[LogRecord] = (),
    *,
    others_wait: Callable[[], bool] = lambda: False,
) -> None:
    """Store spans and log records. Log records that name no trace are not kept.

    `others_wait` tells, once they are stored, whether other senders want this process: runs are left to a worker then.
    Raises `RedactionFailed`; nothing is stored in that case.
    """
    arrivals = _arrivals(project, spans, logs)
    traces = store(project, arrivals)
    left = 0 if others_wait() else _AT_ONCE
    for arrival in arrivals:
        trace = traces.get(arrival.trace_id)
        if trace is not None and left > 0 and _is_due(trace, arrival):
            left -= trace.span_count
            make_run(trace, just_stored=arrival.batch)
    are_all_made = join_calls(project, longest=_SHORT)
    if (traces and left <= 0) or not are_all_made:
        wake_for_spans()


def _arrivals(project: Project, spans: Sequence[Span], logs: Sequence[LogRecord]) -> list[Arrival]:
    redact = Redact(project)
    spans_of, logs_of = defaultdict(list), defaultdict(list)
    for span in spans:
        spans_of[span.trace_id].append(span)
    for log in logs:
        if log.trace_id is not None:
            logs_of[log.trace_id].append(log)
    return [
        arrival_of(trace_id, spans_of[trace_id], logs_of[trace_id], Packer(redact, redact.is_secret))
        for trace_id in sorted({*spans_of, *logs_of})
    ]


def arrival_of(trace_id: str, spans: Sequence[Span], logs: Sequence[LogRecord], packer: Packer) -> Arrival:
    batch = write_batch(spans, logs, packer)
    has_end = any(span.parent_id is None and span.end_ns for span in spans)
    known = {span.span_id for span in spans}
    is_whole = has_end and all(span.parent_id is None or span.parent_id in known for span in spans)
    return Arrival(
        trace_id=trace_id,
        batch=batch,
        digest=sha256_hex(batch.content),
        span_count=len(spans),
        has_end=has_end,
        is_whole=is_whole,
    )


_REMEMBERED = RememberedPieces(16 * 1024 * 1024)


class Redact:
    """The project's redaction, as the packer asks for it."""

    def __init__(self, project: Project) -> None:
        self._redactor = redactor_of(project)
        self._rules = rules_of(own_rules(project))
        self._memory = bytes(project.redaction_secret) + project.redaction.encode()
        self.has_hit = False
        """Whether something was taken out."""

    def __call__(self, content: bytes, is_json: bool) -> bytes:
        key = key_of(self._memory, content, is_json=is_json)
        known = _REMEMBERED.get(key)
        if known is None:
            known = self._redacted(content, is_json)
            _REMEMBERED.put(key, known)
        self.has_hit = self.has_hit or known != content
        return known

    def _redacted(self, content: bytes, is_json: bool) -> bytes:
        if is_json:
            return self._redactor.redact(content).content
        return self._redactor.redact_text(content.decode()).encode()

    def is_secret(self, name: str) -> bool:
        look = _is_secret if len(name) <= _LONGEST_NAME else _is_secret.__wrapped__
        return look(name, self._rules)


_LONGEST_NAME = 200
"""Characters; longer names are not remembered."""


@lru_cache(maxsize=4096)
def _is_secret(name: str, rules: tuple[Rule, ...]) -> bool:
    """Whether a value is a secret for the name of its attribute alone."""
    probe = compact_json({name: "a word"})
    return Redactor(b"any", rules).redact(probe).content != probe


def _is_due(trace: Trace, arrival: Arrival) -> bool:
    """Making a run anew costs what the whole trace costs. One that is under way is made when it begins and when it
    ends, and by a worker in between; a long one waits until it has grown enough."""
    if trace.batches_received > 1 and not arrival.has_end and not trace.is_closed:
        return False
    return trace.span_count <= _SMALL or arrival.span_count * _GROWTH >= trace.span_count
