"""Two writers that wait for each other: PostgreSQL ends one of them, and that one begins again."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from django.db import OperationalError, connection
from psycopg.errors import DeadlockDetected

_ATTEMPTS = 4
_P = ParamSpec("_P")
_T = TypeVar("_T")


def again_after_deadlock(work: Callable[_P, _T]) -> Callable[_P, _T]:
    """For work that is one transaction; inside a larger one the error goes to whoever began that."""

    @wraps(work)
    def repeated(*arguments: _P.args, **named: _P.kwargs) -> _T:
        for attempt in range(1, _ATTEMPTS):
            try:
                return work(*arguments, **named)
            except OperationalError as error:
                if connection.in_atomic_block or not isinstance(error.__cause__, DeadlockDetected):
                    raise
                time.sleep(random.uniform(0, 0.05) * attempt)
        return work(*arguments, **named)

    return repeated
