"""Cost that must grow with the size and not with its square, measured as a ratio in one run."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

LINEAR = 9
"""Four times the size may cost this many times as much; quadratic work costs sixteen times."""


def growth(work: Callable[[T], object], small: T, four_times: T) -> float:
    """How many times the CPU time of the larger is that of the smaller; the best of five counts, taken in turn.

    The work must not remember what it did before.
    """
    seconds = [(_seconds(work, small), _seconds(work, four_times)) for _ in range(5)]
    return min(large for _, large in seconds) / min(little for little, _ in seconds)


def _seconds(work: Callable[[T], object], size: T) -> float:
    started = time.process_time()
    work(size)
    return max(time.process_time() - started, 1e-4)
