"""What a replay that plays on leaves behind: where a recorded answer was given to another request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

OnDifference = Literal["stop", "play_on"]
"""What to do about a request that is not the recorded one: stop with `RequestDiffers`, or give the recorded answer."""


@dataclass(frozen=True)
class AnotherRequest:
    """The recorded answer of this step was given, and its request was another one."""

    step: int
    path: str
    recorded: Any
    now: Any

    source = "recorded_for_another_request"


def checked(on_difference: str) -> OnDifference:
    if on_difference not in ("stop", "play_on"):
        raise ValueError(f'on_difference must be "stop" or "play_on" and is {on_difference!r}.')
    return "stop" if on_difference == "stop" else "play_on"
