"""What several golden runs came to: one result, an exit code, JUnit XML and Markdown for a pull request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree

from sessions_app.core.clipping import one_line
from sessions_app.core.goldens.results import EXIT_CODES, RESULT_WORDS, WORST_FIRST, Result, worst_of
from sessions_app.core.payload import JsonObject
from sessions_app.core.reports.run_report import code


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """One golden run as reports tell it."""

    golden_id: str
    name: str
    golden_run_id: str
    agent: str | None
    result: Result | None
    """None while its replay is open."""
    state: str
    """Of its replay."""
    words: str
    checks: Sequence[JsonObject] = ()
    seconds: float | None = None
    quarantine: str | None = None
    """Why its result does not count; None where it does."""
    address: str | None = None
    before: Result | None = None
    """At the last deploy before it; None where it was not run then."""

    @property
    def counts(self) -> bool:
        return self.quarantine is None

    @property
    def change(self) -> Literal["broke", "repaired"] | None:
        """Since the last deploy; what could not run or be judged tells of none."""
        return _CHANGES.get((self.before, self.result))

    @property
    def took_ms(self) -> float | None:
        return None if self.seconds is None else self.seconds * 1000

    @property
    def title(self) -> str:
        return self.name if self.agent is None else f"{self.name} [{self.agent}]"


_CHANGES: dict[tuple[Result | None, Result | None], Literal["broke", "repaired"]] = {
    ("pass", "fail"): "broke",
    ("fail", "pass"): "repaired",
}


def overall(outcomes: Sequence[Outcome]) -> Result | None:
    """The worst result of those that count; `nothing_covered` where none does, None while one is open."""
    return worst_of(outcome.result for outcome in outcomes if outcome.counts)


def exit_code(outcomes: Sequence[Outcome]) -> int:
    """0 passed, 1 behaviour changed, 2 could not run, 3 nothing covered."""
    worst = overall(outcomes)
    return EXIT_CODES["could_not_run"] if worst is None else EXIT_CODES[worst]


def summary(outcomes: Sequence[Outcome]) -> str:
    """`3 of 4 goldens passed, 1 failed; 1 in quarantine; since the last deploy 1 broke`."""
    counted = Counter(outcome.result for outcome in outcomes if outcome.counts)
    total, held = sum(counted.values()), len(outcomes) - sum(counted.values())
    parts = [f"{counted['pass']} of {total} golden run{'' if total == 1 else 's'} passed"]
    for result, words in _OTHERS:
        parts += [f"{counted[result]} {words}"] if counted[result] else []
    return ", ".join(parts) + (f"; {held} in quarantine" if held else "") + _since_the_deploy(outcomes)


def _since_the_deploy(outcomes: Sequence[Outcome]) -> str:
    changes = Counter(outcome.change for outcome in outcomes if outcome.counts)
    told = [f"{changes[change]} {change}" for change in ("broke", "repaired") if changes[change]]
    return f"; since the last deploy {' and '.join(told)}" if told else ""


_OTHERS: tuple[tuple[Result | None, str], ...] = (
    ("fail", "failed"),
    ("could_not_run", "could not run"),
    ("nothing_covered", "could not be judged"),
    (None, "not finished"),
)


def as_junit(outcomes: Sequence[Outcome], *, suite: str = "goldens") -> bytes:
    """JUnit XML as CI systems read it: a failed golden is a failure, one that could not run or be judged an error, one
    in quarantine is skipped."""
    counted = [outcome for outcome in outcomes if outcome.counts]
    root = ElementTree.Element(
        "testsuite",
        name=suite,
        tests=str(len(outcomes)),
        failures=str(sum(outcome.result == "fail" for outcome in counted)),
        errors=str(sum(outcome.result in _ERRORS for outcome in counted)),
        skipped=str(len(outcomes) - len(counted)),
    )
    for outcome in outcomes:
        root.append(_case(outcome, suite))
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text


_ERRORS = ("could_not_run", "nothing_covered", None)


def _case(outcome: Outcome, suite: str) -> ElementTree.Element:
    seconds = f"{outcome.seconds or 0:.3f}"
    case = ElementTree.Element("testcase", classname=suite, name=_plain(outcome.title), time=seconds)
    if not outcome.counts:
        ElementTree.SubElement(case, "skipped", message=_plain(f"in quarantine: {outcome.quarantine}"))
    elif outcome.result != "pass":
        tag = "failure" if outcome.result == "fail" else "error"
        told = ElementTree.SubElement(case, tag, message=_plain(outcome.words), type=outcome.result or "running")
        told.text = _plain("\n".join([*map(_line, outcome.checks), outcome.address or ""]).strip())
    return case


def _line(check: JsonObject) -> str:
    return f"{_SIGNS[check['passed']]} {check['words']}: {check['seen']}"


_SIGNS = {True: "ok  ", False: "FAIL", None: "?   "}


def _plain(text: str) -> str:
    """XML 1.0 has no place for most control characters, not even escaped."""
    return "".join(char if char in "\t\n" or (char >= " " and char not in "\ufffe\uffff") else "�" for char in text)


def as_markdown(outcomes: Sequence[Outcome], *, site: str | None = None) -> str:
    """For a comment on a pull request, with what failed in front. Recorded text stands in code, where it has no
    meaning. `site` is the server's address, such as `https://replay.example`; without it nothing is linked."""
    table = [
        "| Result | Golden | Agent | Why |",
        "| --- | --- | --- | --- |",
        *(_row(outcome, site) for outcome in worst_first(outcomes)),
    ]
    return f"## Goldens\n\n**{summary(outcomes)}**\n\n" + "\n".join(table) + "\n"


def worst_first(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """What failed in front, what does not count at the end."""
    order = {result: place for place, result in enumerate((*WORST_FIRST, None))}
    return sorted(outcomes, key=lambda outcome: (not outcome.counts, order[outcome.result]))


def _row(outcome: Outcome, site: str | None) -> str:
    result = RESULT_WORDS[outcome.result] if outcome.result else "Running"
    shown = result if outcome.counts else f"{result} (in quarantine)"
    shown += f", {outcome.change}" if outcome.change else ""
    name = _cell(outcome.name)
    linked = f"[{name}]({site}{outcome.address})" if outcome.address and site is not None else name
    agent = _cell(outcome.agent) if outcome.agent else ""
    return f"| {shown} | {linked} | {agent} | {_cell(outcome.words)} |"


def _cell(text: str) -> str:
    return code(one_line(text).replace("|", "¦")) if text else ""


def as_json(outcomes: Sequence[Outcome]) -> JsonObject:
    return {
        "result": overall(outcomes),
        "words": summary(outcomes),
        "exit_code": exit_code(outcomes),
        "runs": [_to_json(outcome) for outcome in outcomes],
    }


def _to_json(outcome: Outcome) -> JsonObject:
    return {
        "golden_id": outcome.golden_id,
        "name": outcome.name,
        "golden_run_id": outcome.golden_run_id,
        "agent": outcome.agent,
        "result": outcome.result,
        "words": outcome.words,
        "quarantine": outcome.quarantine,
        "checks": list(outcome.checks),
        "url": outcome.address,
        "before": outcome.before,
        "change": outcome.change,
    }
