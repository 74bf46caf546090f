"""Checks that a run suggests: what it did, as things that may be demanded of the next run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import islice

from replay_goldens.checks import all_passed, judge, read_checks
from replay_goldens.trace import Trace
from replay_goldens.values import as_text, value_at
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import Run

MOST_OF_A_KIND = 8
"""Proposals of one kind that a form shows."""
_LONGEST = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Proposal:
    """A check whose last member a person may still write."""

    words: str
    """What the check says, up to the value."""
    check: JsonObject
    """Without the member that is written."""
    member: str | None = None
    """`n`, `equals`, `contains` …; None where there is nothing to write."""
    value: JsonValue = None
    """What stands in the input at first: what this run did, or nothing."""
    is_null: bool = False
    """Whether what this run did is a JSON null."""

    @property
    def has_value(self) -> bool:
        return self.value is not None or self.is_null


def proposals(run: Run, trace: Trace) -> list[Proposal]:
    """In the order of the form: how it ends, calls, their arguments and answers, state, people."""
    return [
        *_ends(trace),
        *_calls(trace),
        *_of_calls(trace),
        *_states(run, trace),
        Proposal(words="no tool that changes something is called", check={"kind": "no_write"}),
        *_people(trace),
    ]


def proposals_of_fix(run: Run, good: Trace, *, bad: Trace) -> tuple[list[Proposal], set[int]]:
    """What a run that went right did, and the places of the proposals that tell it from the run that went wrong."""
    found = [_shortest_telling(proposal, bad) for proposal in proposals(run, good)]
    return found, telling(found, bad=bad, good=good)


def _shortest_telling(proposal: Proposal, bad: Trace) -> Proposal:
    """Of an answer the part that the bad one lacks: no later answer has all the words of this one."""
    if proposal.check != {"kind": "output"} or not isinstance(proposal.value, str) or bad.output_text is None:
        return proposal
    part = part_unlike(proposal.value, bad.output_text)
    return replace(proposal, value=part) if part else proposal


def part_unlike(text: str, other: str) -> str | None:
    """The first words in a row that the other text does not have."""
    words, others = text.split(), other.split()
    blocks = SequenceMatcher(None, others, words, autojunk=False).get_opcodes()
    parts = (" ".join(words[start:end]).strip(".,;:!?") for tag, _, _, start, end in blocks if tag != "equal")
    return next((part for part in parts if part and part not in other), None)


def telling(found: list[Proposal], *, bad: Trace, good: Trace) -> set[int]:
    """The places of those that fail on the one run and pass on the other."""
    return {place for place, proposal in enumerate(found) if _tells(proposal, bad, good)}


def _tells(proposal: Proposal, bad: Trace, good: Trace) -> bool:
    return holds(proposal, bad) is False and holds(proposal, good) is True


def holds(proposal: Proposal, trace: Trace) -> bool | None:
    """None where it cannot be judged, or a person has to write its value first."""
    if proposal.member is not None and not proposal.has_value:
        return None
    written = {proposal.member: proposal.value} if proposal.member else {}
    return all_passed(judge(read_checks([{**proposal.check, **written}]), trace))


def _ends(trace: Trace) -> Iterator[Proposal]:
    yield _contains("the answer contains", {"kind": "output"}, trace.output_text)
    yield Proposal(
        words="steps until the end, at most", check={"kind": "ends_within"}, member="n", value=max(1, trace.steps)
    )


def _calls(trace: Trace) -> Iterator[Proposal]:
    counts = Counter(call.tool for call in trace.calls)
    for tool, count in islice(counts.items(), MOST_OF_A_KIND):
        check = {"kind": "at_most_calls", "tool": tool}
        yield Proposal(words=f"calls of {tool}, at most", check=check, member="n", value=count)
    if len(counts) > 1:
        tools = list(counts)[:MOST_OF_A_KIND]
        yield Proposal(
            words=f"tools are called in the order {', '.join(tools)}", check={"kind": "tool_order", "tools": tools}
        )


def _of_calls(trace: Trace) -> Iterator[Proposal]:
    for tool in islice(dict.fromkeys(call.tool for call in trace.calls), MOST_OF_A_KIND):
        last = trace.calls_of(tool)[-1]
        names = [name for name, value in plain_members(last.arguments)][:MOST_OF_A_KIND]
        for name in names:
            check = {"kind": "arguments", "tool": tool, "path": f"/{escaped(name)}"}
            sent = last.arguments[name]
            words = f"{tool} is called with {name}"
            yield Proposal(words=words, check=check, member="equals", value=sent, is_null=sent is None)
        said = None if last.result is None else as_text(last.result)
        yield _contains(f"an answer of {tool} contains", {"kind": "result", "tool": tool}, said)


def _contains(words: str, check: JsonObject, said: str | None) -> Proposal:
    """What was said stands in one line of a form, so the first of its lines."""
    return Proposal(words=words, check=check, member="contains", value=first_line(said))


def first_line(said: str | None) -> str | None:
    lines = (said or "").strip().splitlines()
    return lines[0][:_LONGEST] if lines else None


def plain_members(value: JsonValue) -> list[tuple[str, JsonValue]]:
    members = value.items() if isinstance(value, dict) else ()
    return [(name, item) for name, item in members if isinstance(item, (str, int, float, bool)) or item is None]


def _states(run: Run, trace: Trace) -> Iterator[Proposal]:
    """Places that the run changed, with what stands there at the end, and behind each step that changed them."""
    if trace.state_after is None:
        return
    changes = [
        (step.index, path)
        for step in run.steps
        for operation in (step.state.after if step.state else ())
        if not (path := str(operation.get("path"))).endswith("/-")
    ]
    for path in islice(dict.fromkeys(path for _, path in changes), MOST_OF_A_KIND):
        yield from _at_end(trace, path)
    for index, path in islice(changes, MOST_OF_A_KIND):
        yield _of_state(trace, index, path, "is", "equals")


def _at_end(trace: Trace, path: str) -> Iterator[Proposal]:
    last = _of_state(trace, None, path, "is", "equals")
    yield last
    if isinstance(last.value, (int, float)) and not isinstance(last.value, bool):
        yield _of_state(trace, None, path, "is more than", "more_than")


def _of_state(trace: Trace, step: int | None, path: str, verb: str, member: str) -> Proposal:
    place = "at the end" if step is None else f"after step {step}"
    found = _standing(trace, step, path)
    return Proposal(
        words=f"{path or 'the state'} {place} {verb}",
        check={"kind": "state", "step": step or "end", "path": path},
        member=member,
        value=next(iter(found), None),
        is_null=found == [None],
    )


def _standing(trace: Trace, step: int | None, path: str) -> list[JsonValue]:
    """Empty where there is no such place."""
    assert trace.state_after is not None
    try:
        return [value_at(trace.state_after(step), path)]
    except LookupError:
        return []


def _people(trace: Trace) -> Iterator[Proposal]:
    if trace.user_id is not None or trace.tenant_id is not None:
        yield Proposal(words="no value of another user is revealed", check={"kind": "no_value_of_other_user"})


def escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
