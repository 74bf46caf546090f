"""Places in JSON values, written as people read them: `messages[3].parts[0].content`."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

_PLAIN_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")


class Place(NamedTuple):
    """A place below another one; its text is only made when it is asked for."""

    above: Place | str
    segment: str | int


def path_text(place: Place | str) -> str:
    segments = []
    while isinstance(place, Place):
        segments.append(segment_text(place.segment))
        place = place.above
    text = place + "".join(reversed(segments))
    return text if place else text.removeprefix(".")


def segment_text(segment: str | int) -> str:
    if isinstance(segment, int):
        return f"[{segment}]"
    if _PLAIN_KEY.fullmatch(segment):
        return f".{segment}"
    return f"[{json.dumps(segment, ensure_ascii=False)}]"
