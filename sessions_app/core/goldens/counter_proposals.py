"""Checks that what went wrong in a run suggests: they fail on that run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from json import dumps

from replay_goldens.trace import ToolUse, Trace
from sessions_app.core.goldens.proposals import Proposal, escaped, first_line, holds, plain_members, proposals
from sessions_app.core.judge.anomalies.anomaly import Anomaly
from sessions_app.core.judge.anomalies.failed.refusals import claim_of_success
from sessions_app.core.judge.anomalies.reading.answer_words import is_named
from sessions_app.core.payload import JsonObject
from sessions_app.core.run import Run

_OUTPUT: JsonObject = {"kind": "output"}


def proposals_against(run: Run, trace: Trace, anomalies: Iterable[Anomaly]) -> tuple[list[Proposal], set[int]]:
    """What may not happen again stands before what the run did, which then demands neither the wrong answer nor the
    calls that were too many. With the places of those that the run itself shows to be worth demanding: the first of
    what may not happen again, and a value of another user that it reveals."""
    against = _against(trace, anomalies)
    found = [*against, *_without(against, proposals(run, trace))]
    revealing = {at for at, each in enumerate(found) if each.check["kind"] == "no_value_of_other_user"}
    return found, {at for at in {0, *revealing} if found and holds(found[at], trace) is False}


def _against(trace: Trace, anomalies: Iterable[Anomaly]) -> list[Proposal]:
    """In the order of the anomalies, each once."""
    found: dict[str, Proposal] = {}
    for anomaly in anomalies:
        for proposal in _BY_CODE[anomaly.code](trace, anomaly) if anomaly.code in _BY_CODE else ():
            if holds(proposal, trace) is False:
                found.setdefault(dumps([proposal.check, proposal.value]), proposal)
    return list(found.values())


def _without(against: list[Proposal], found: Iterable[Proposal]) -> Iterator[Proposal]:
    said = [proposal.check for proposal in against]
    for proposal in found:
        if proposal.check not in said:
            yield proposal
        elif proposal.check == _OUTPUT:
            yield replace(proposal, value=None)


def _not_claimed(trace: Trace, anomaly: Anomaly) -> Iterator[Proposal]:
    yield from _not_said(claim_of_success(trace.output_text or "") or _sentence(trace))


def _not_stated(trace: Trace, anomaly: Anomaly) -> Iterator[Proposal]:
    yield from _not_said(_sentence(trace))


def _not_said(wrong: str | None) -> Iterator[Proposal]:
    if wrong:
        yield Proposal(words="the answer does not contain", check=_OUTPUT, member="not_contains", value=wrong)


def _sentence(trace: Trace) -> str | None:
    line = first_line(trace.output_text)
    return re.split(r"(?<=[.!?])\s", line)[0] if line else None


def _answers(trace: Trace, anomaly: Anomaly) -> Iterator[Proposal]:
    yield Proposal(words="the run gives an answer", check={**_OUTPUT, "matches": r"\S"})


def _not_again(trace: Trace, anomaly: Anomaly) -> Iterator[Proposal]:
    """As often as the tool was called with other arguments."""
    for call in _calls_at(trace, anomaly):
        calls = {dumps(each.arguments, sort_keys=True) for each in trace.calls_of(call.tool)}
        check: JsonObject = {"kind": "at_most_calls", "tool": call.tool}
        yield Proposal(words=f"calls of {call.tool}, at most", check=check, member="n", value=len(calls))


def _not_with(trace: Trace, anomaly: Anomaly) -> Iterator[Proposal]:
    """The arguments that the anomaly names."""
    for call in _calls_at(trace, anomaly):
        for name, value in plain_members(call.arguments):
            if value and is_named(str(value), anomaly.message):
                words = f"{call.tool} is called with {name} that does not contain"
                yield Proposal(words=words, check=_argument(call, name), member="not_contains", value=str(value))


def _for_its_owner(trace: Trace, anomaly: Anomaly) -> Iterator[Proposal]:
    name, owner = ("user_id", trace.user_id) if trace.user_id else ("tenant_id", trace.tenant_id)
    for call in _calls_at(trace, anomaly):
        yield Proposal(
            words=f"{call.tool} is called with {name}", check=_argument(call, name), member="equals", value=owner
        )


def _calls_at(trace: Trace, anomaly: Anomaly) -> Iterator[ToolUse]:
    return (call for call in trace.calls if call.step == anomaly.odd_step)


def _argument(call: ToolUse, name: str) -> JsonObject:
    return {"kind": "arguments", "tool": call.tool, "path": f"/{escaped(name)}"}


_BY_CODE: Mapping[str, Callable[[Trace, Anomaly], Iterator[Proposal]]] = {
    "no_answer": _answers,
    **dict.fromkeys(("refusal_unsaid", "unfinished_unsaid", "error_swallowed", "sub_agent_unsaid"), _not_claimed),
    **dict.fromkeys(("one_of_many", "other_shape"), _not_claimed),
    **dict.fromkeys(("no_source", "empty_result_unsaid", "warning_unsaid", "page_unread", "other_total"), _not_stated),
    **dict.fromkeys(("duplicate_call", "empty_result_retried", "done_twice"), _not_again),
    **dict.fromkeys(("unnamed_id", "other_id", "other_date", "other_identity", "other_sum"), _not_with),
    "unscoped_call": _for_its_owner,
}
