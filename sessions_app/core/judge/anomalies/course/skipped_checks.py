"""A call that does something, made without the check that went before all others like it, or that had to."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.anomalies.failed.failures import has_failed
from sessions_app.core.judge.anomalies.reading.answer_words import ANSWER, SAYS_NOTHING, SENTENCE, plain, question_of
from sessions_app.core.judge.anomalies.reading.lookups import looks_up
from sessions_app.core.judge.anomalies.reading.statements import is_stated, plain_values, statements
from sessions_app.core.judge.anomalies.reading.words import stems_in
from sessions_app.core.judge.anomalies.values.sums import PLAIN_NUMBER
from sessions_app.core.judge.reading import has_answer, is_number, object_of, own_tools
from sessions_app.core.run import Run, Step, ToolCall

MANY = 4
"""Calls for different things, one of them without its check."""
_CHECKS = re.compile(
    r"(?:^|_)(?:check|verify|validate|confirm|approv(?:e|al)|inspect|audit|review|authori[sz]e|permission|consent"
    r"|backup|snapshot|preview|dry_?run)(?:ed|s)?(?:_|$)"
)


@dataclass(frozen=True, slots=True)
class _Uses:
    """By each thing that a tool was called for, the first step."""

    acts: dict[tuple[str, str], dict[str, Step]] = field(default_factory=lambda: defaultdict(dict))
    """Of each tool that does something, and each of its arguments."""
    checks: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))
    others: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The tools that were called for a thing."""


def skipped_checks(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """Nothing else was called for that thing, no check names it, and no sentence says that there was none."""
    uses, told = _uses(run), set[int]()
    for (_, key), acted in uses.acts.items() if has_answer(run) and uses.checks else ():
        for check, checked in uses.checks.items() if len(acted) >= MANY else ():
            without = [name for name, step in acted.items() if checked.get(name, step.index) >= step.index]
            step = acted[without[0]] if len(without) == 1 else None
            if step is None or step.index in told or not _is_alone(run, uses, step, without[0], check):
                continue
            told.add(step.index)
            message = (
                f"{step.name} was called for {key} {without[0]} without {check}, which came before each of the other "
                f"{len(acted) - 1} calls"
            )
            yield Anomaly(code="check_skipped", message=message, steps=(step.index,))


def _uses(run: Run) -> _Uses:
    uses = _Uses()
    for step, call in own_tools(run):
        is_check = _CHECKS.search(call.tool_name) is not None
        for key, item in plain_values(object_of(call.arguments)).items():
            name = str(item)
            uses.others[name].add(call.tool_name)
            if is_check and not has_failed(step):
                uses.checks[call.tool_name].setdefault(name, step.index)
            elif not is_check and not looks_up(step, call) and not has_failed(step):
                uses.acts[call.tool_name, key].setdefault(name, step)
    return uses


def _is_alone(run: Run, uses: _Uses, step: Step, name: str, check: str) -> bool:
    is_excused = is_stated(name, f"{question_of(run)}\n{run.instructions or ''}") or any(
        is_stated(name, sentence) and SAYS_NOTHING.search(plain(sentence)) for sentence in statements(run)
    )
    return uses.others[name] == {step.name} and not is_excused and not any(_names(run, check, name))


def _names(run: Run, check: str, name: str) -> Iterator[bool]:
    """Answers of the check, which may be of several things."""
    calls = (call for _, call in own_tools(run) if call.tool_name == check)
    yield from (is_stated(name, text.as_text()) for call in calls for text in (call.arguments, call.result) if text)


# --- as the instructions say -------------------------------------------------------------------


def steps_left_out(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """The instructions name a tool that comes first and was never called, and the one that comes after it was."""
    called: dict[str, list[tuple[Step, ToolCall]]] = defaultdict(list)
    for step, call in own_tools(run):
        called[call.tool_name].append((step, call))
    sentences = SENTENCE.split((run.instructions or "")[:ANSWER]) if has_answer(run) else []
    for before, sentence in pairwise(["", *sentences]):
        names = list(dict.fromkeys(_TOOL.findall(sentence)))
        missing, made = [name for name in names if name not in called], [name for name in names if name in called]
        if len(missing) != 1 or len(made) != 1 or not _FIRST.search(plain(sentence)) or _says_why(run, missing[0]):
            continue
        limits = {float(found) for found in PLAIN_NUMBER.findall(f"{before} {sentence}")}
        act = next(
            (pair for pair in called[made[0]] if not has_failed(pair[0]) and _is_meant(pair, limits, sentence)), None
        )
        if act is not None:
            message = f"{act[0].name} was called without {missing[0]}, which the instructions say comes first"
            yield Anomaly(code="check_skipped", message=message, steps=(act[0].index,))


_TOOL = re.compile(r"(?<![\w-])[a-z]+(?:_[a-z0-9]+)+(?![\w-])")
_FIRST = re.compile(
    r"(?<!\w)(?:first|before|only after|prior to|zuerst|erst nach\w*|vorher|bevor|d'abord|avant|seulement après|primero"
    r"|antes|sólo después|solo después|primeiro|só depois|prima|solo dopo|najpierw|dopiero po|eerst|pas na)(?!\w)"
    r"|先に|まず|首先|之前|先"
)
_IF = re.compile(r"(?<!\w)(?:if|when|unless|where|wenn|falls|si|cuando|quand|se|quando|jeśli|als)(?!\w)|場合|如果")


def _is_meant(made: tuple[Step, ToolCall], limits: set[float], sentence: str) -> bool:
    """Above the limit that is given with it; without one, where it holds in any case."""
    numbers = [float(item) for item in object_of(made[1].arguments).values() if is_number(item)]
    return any(number > max(limits) for number in numbers) if limits else _IF.search(plain(sentence)) is None


def _says_why(run: Run, tool: str) -> bool:
    """Whether the answer denies something of it."""
    stems = stems_in(tool.replace("_", " "))
    denied = (sentence for sentence in statements(run) if SAYS_NOTHING.search(plain(sentence)))
    return any(not stems.isdisjoint(stems_in(sentence)) for sentence in denied)
