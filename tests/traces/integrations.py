"""Writes docs/integrations.md from the whole set of captures: `python -m tests.traces.integrations`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from textwrap import fill

from sessions_app.core.judge.convention_fixes import BY_ORIGIN
from sessions_app.core.judge.verdict import judge
from tests.traces.captures import Capture, captures
from tests.traces.explained import EXPLAINED
from tests.traces.integrations_groups import GROUPS, Group, Row
from tests.traces.sides import agent_runs
from tests.traces.test_replays import outcome
from tests.traces.truth import FACTS, is_told

TARGET = Path("docs/integrations.md")
HEAD = Path(__file__).with_name("integrations_head.md")
COLUMNS: dict[str, tuple[str, ...]] = {
    "messages": (
        *("input", "output", "instructions", "answers", "order of answers"),
        *("calls asked for", "earlier turns"),
    ),
    "tools": ("calls of tools", "tool answers", "tool answers in requests"),
    "schemas": ("tool schemas",),
    "settings": ("temperature", "seed"),
    "model": ("model calls", "models", "finish reason"),
    "tokens": ("input tokens", "output tokens"),
    "errors": ("tool errors", "model errors", "error of the run"),
    "who": ("session", "user"),
    "searches": ("searches", "documents found"),
}
"""What each column of the tables sums up; every fact but `spans` is in one."""
_SETTINGS = ("model_answers_missing", "tool_schemas", "sampling", "identity", "retrieval")


def document() -> str:
    parts = [HEAD.read_text().rstrip(), *(_section(group) for group in GROUPS)]
    return "\n\n".join(parts) + "\n"


def _section(group: Group) -> str:
    parts = [f"## {group.title}", _wrapped(group.setup), "\n".join(_table(group))]
    settings, gaps = list(_settings(group)), list(_gaps(group))
    parts += ["Settings that bring what is missing:", "\n".join(settings).rstrip()] if settings else []
    parts += ["Known gaps:", "\n".join(gaps)] if gaps else []
    return "\n\n".join(parts)


# --- tables ------------------------------------------------------------------------------------


def _table(group: Group) -> Iterator[str]:
    yield f"| as tested | {' | '.join(COLUMNS)} | reproduced |"
    yield "| --- " * (len(COLUMNS) + 2) + "|"
    for variant, row in group.rows.items():
        own = _of(variant)
        cells = [_cell(own, facts) for facts in COLUMNS.values()]
        yield f"| {_words(row, own[0])} | {' | '.join(cells)} | {_reproduced(own)} |"


@cache
def _of(variant: str) -> list[Capture]:
    return [capture for capture in captures() if capture.variant == variant]


def _words(row: Row, capture: Capture) -> str:
    versions = capture.truth["versions"]
    return f"{row.label} ({', '.join(f'{name} {versions[name]}' for name in row.packages)})"


def _cell(own: list[Capture], facts: tuple[str, ...]) -> str:
    told = [
        is_told(*sides) for each in own for fact in facts for sides in [FACTS[fact][1](each)] if _occurred(sides[0])
    ]
    if not told:
        return "–"
    return "yes" if all(told) else "partly" if any(told) else "no"


def _occurred(true: object) -> bool:
    return any(true) if isinstance(true, list) else bool(true)


def _reproduced(own: list[Capture]) -> str:
    runs = [run for capture in own for run in agent_runs(capture)]
    verdicts = [outcome(run)[0] for run in runs if judge(run).verdict == "replayable"]
    return f"{verdicts.count('reproduced')} of {len(runs)}"


# --- lists -------------------------------------------------------------------------------------


def _settings(group: Group) -> Iterator[str]:
    fixes = dict(BY_ORIGIN).get(group.origin or "", {})
    for fix in dict.fromkeys(fixes[key] for key in _SETTINGS if key in fixes):
        code = "" if fix.code is None else f"\n\n{_indented(fix.code)}\n"
        yield _item(fix.sentence) + code


def _gaps(group: Group) -> Iterator[str]:
    """What one reason explains stands together."""
    found: dict[str, dict[str, list[str]]] = {}
    for (name, fact), reason in EXPLAINED.items():
        if _is_within(name, group):
            found.setdefault(reason, {}).setdefault(_place(name, group), []).append(fact)
    for reason, places in found.items():
        said = [f"{place}: {', '.join(facts)}" for place, facts in places.items()]
        yield _item(f"{'; '.join(said)}. {reason}")


def _is_within(name: str, group: Group) -> bool:
    return name.partition("/")[0] in group.rows


def _place(name: str, group: Group) -> str:
    """Which row, and in which situation."""
    variant, _, scenario = name.partition("/")
    label = f"*{group.rows[variant].label}*"
    return f"{label} ({scenario.replace('_', ' ')})" if scenario else label


# --- lines -------------------------------------------------------------------------------------


def _wrapped(text: str) -> str:
    """Paragraphs of at most 120 signs in a line; code stays as it is."""
    return "\n\n".join(each if each.startswith("    ") else _filled(each) for each in text.split("\n\n"))


def _item(text: str) -> str:
    return _filled(f"- {text}", indent="  ")


def _filled(text: str, indent: str = "") -> str:
    return fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _indented(code: str) -> str:
    return "\n".join(f"      {line}" for line in code.splitlines())


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    TARGET.write_text(document())
