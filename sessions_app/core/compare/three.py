"""A third run beside two others: both comparisons with the left run, joined by its steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sessions_app.core.compare.facts import Fact
from sessions_app.core.compare.field_words import field_words
from sessions_app.core.compare.json_diff import MISSING, Difference
from sessions_app.core.compare.runs import StepPair
from sessions_app.core.payload import JsonValue
from sessions_app.core.run import Step


@dataclass(frozen=True, kw_only=True, slots=True)
class Trio:
    """What stands beside one step of the left run; without one, a step that only one of the others has."""

    second: StepPair | None
    third: StepPair | None

    @property
    def steps(self) -> tuple[Step | None, Step | None, Step | None]:
        second, third = self.second, self.third
        left = (second and second.left) or (third and third.left) or None
        return left, second.right if second else None, third.right if third else None

    @property
    def is_same(self) -> bool:
        return all(pair is not None and pair.status == "same" for pair in (self.second, self.third))


@dataclass(frozen=True, kw_only=True, slots=True)
class ThreeValues:
    """One field of three runs that is not the same in all of them."""

    path: str
    left: JsonValue
    right: JsonValue
    third: JsonValue
    differs: tuple[bool, bool]
    """Whether the right, and the third, differ from the left here."""
    note: str | None = None
    uncaptured: str = ""
    """Letters of the runs that did not capture it, or what it stands in."""
    is_told: bool = True
    """Whether one of the runs holds something else, and none merely lacks it."""


def join_steps(second: Sequence[StepPair], third: Sequence[StepPair]) -> list[Trio]:
    """In the order of the left run; after each of its steps those that only one of the others has there."""
    beside = {pair.left.index: pair for pair in third if pair.left}
    lonely = _lonely(third)
    trios = [Trio(second=None, third=pair) for pair in lonely.pop(0, ())]
    waiting: list[StepPair] = []
    for pair in second:
        if pair.left is not None:
            trios += [Trio(second=None, third=each) for each in waiting]
            waiting = lonely.pop(pair.left.index, [])
        trios.append(Trio(second=pair, third=beside.get(pair.left.index) if pair.left else None))
    return [*trios, *(Trio(second=None, third=each) for each in waiting)]


def _lonely(pairs: Sequence[StepPair]) -> dict[int, list[StepPair]]:
    """Steps that the left run lacks, by the step of it that they come after; 0 before its first."""
    found: dict[int, list[StepPair]] = {}
    after = 0
    for pair in pairs:
        if pair.left is None:
            found.setdefault(after, []).append(pair)
        else:
            after = pair.left.index
    return found


def join_facts(second: Sequence[Fact], third: Sequence[Fact]) -> list[tuple[str, list[ThreeValues]]]:
    """Facts that differ in one of the runs, by name."""
    others = {fact.name: fact for fact in third}
    names = [fact.name for fact in second] + [name for name in others if name not in {fact.name for fact in second}]
    found = {fact.name: fact for fact in second}
    joined = [(name, list(join_differences(_of(found.get(name)), _of(others.get(name))))) for name in names]
    return [(name, values) for name, values in joined if values]


def _of(fact: Fact | None) -> tuple[Difference, ...]:
    if fact is None or fact.status == "same":
        return ()
    whole = Difference(path=fact.name, left=fact.left, right=fact.right, status="changed")
    return fact.differences or (whole,)


def join_differences(second: Sequence[Difference], third: Sequence[Difference]) -> Iterator[ThreeValues]:
    """Each field once. Where only one run differs from the left, the other holds what the left holds."""
    others = {each.path: each for each in third}
    for each in second:
        other = others.pop(each.path, None)
        yield _values(each.path, each, other, inside=None if other else _touching(each.path, third))
    for other in others.values():
        yield _values(other.path, None, other, inside=_touching(other.path, second))


def _values(
    path: str, second: Difference | None, third: Difference | None, *, inside: Difference | None
) -> ThreeValues:
    """`inside` is where the other run differs, above or below the path: it is told, and not taken for equal."""
    one = second or third
    assert one is not None
    sides = (("B", second or inside), ("C", third or inside))
    lacking = [_lacking(letter, each) for letter, each in sides if each]
    notes = [each.note for each in (second, third) if each and each.note and not each.uncaptured_on]
    if inside and not inside.uncaptured_on:
        notes.append(f"{'C' if second else 'B'} differs in {field_words(inside.path)}")
    return ThreeValues(
        path=path,
        left=one.left,
        right=second.right if second else MISSING if inside else one.left,
        third=third.right if third else MISSING if inside else one.left,
        differs=(second is not None or inside is not None, third is not None or inside is not None),
        note="; ".join(dict.fromkeys(notes)) or None,
        uncaptured="".join(dict.fromkeys(lacking)),
        is_told=any(each is not None and not each.uncaptured_on for each in (second, third)),
    )


def _lacking(letter: str, found: Difference) -> str:
    """Letter of the run that did not capture it; `letter` is the one beside A."""
    side = found.uncaptured_on
    return letter if side == "right" else "A" if side == "left" else ""


def _touching(path: str, differences: Sequence[Difference]) -> Difference | None:
    """A difference that lies above or below this path."""
    return next((each for each in differences if _is_within(each.path, path) or _is_within(path, each.path)), None)


def _is_within(inner: str, outer: str) -> bool:
    return inner.startswith((f"{outer}.", f"{outer}["))
