"""Lists that were flattened into attribute names: `messages.0.role`, `messages.0.content`, `messages.1.role` …"""

from __future__ import annotations

from collections.abc import Mapping

from sessions_app.core.payload import JsonObject, JsonValue

MAX_DIGITS = 9
"""Of a number in a name; longer ones are no positions."""


def numbered(values: Mapping[str, JsonValue]) -> list[JsonObject]:
    """What stands under each number, in the order of the numbers: `{"0.role": …}` gives `[{"role": …}]`.

    Numbers that are missing leave no gap, so that a huge one costs nothing. A value at the number itself is named "".
    """
    groups: dict[int, JsonObject] = {}
    for name, value in values.items():
        number, _, rest = name.partition(".")
        if _is_position(number):
            groups.setdefault(int(number), {})[rest] = value
    return [groups[number] for number in sorted(groups)]


def below(values: Mapping[str, JsonValue], prefix: str) -> JsonObject:
    """The values whose name begins so, without that beginning."""
    return {name[len(prefix) :]: value for name, value in values.items() if name.startswith(prefix)}


def _is_position(text: str) -> bool:
    return len(text) <= MAX_DIGITS and text.isascii() and text.isdecimal()
