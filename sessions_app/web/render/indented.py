"""JSON on a line for each value. Every value stays spelled as it was: no number is read and written again."""

from __future__ import annotations

import re

_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def indented(text: str) -> str:
    """Of a text that parses; an empty object or list stays on its line."""
    written: list[str] = []
    depth, last = 0, ""
    for token in _TOKENS.findall(text):
        is_end = token in "}]"
        depth -= is_end
        if last not in "{[" if is_end else last in "{[,":
            written.append("\n" + "  " * depth)
        written.append(": " if token == ":" else token)
        depth += token in "{["
        last = token
    return "".join(written).lstrip()
