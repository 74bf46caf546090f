"""Regular expressions of checks."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from replay_goldens.reading import CheckError

try:
    import re2
except ImportError:  # in the tests of an exported golden, which trust their own patterns
    _engine: Any = re
    _options: tuple[Any, ...] = ()
else:
    _engine = re2
    _quiet = re2.Options()
    _quiet.log_errors = False
    _options = (_quiet,)


def compiled(pattern: str, *, field: str) -> Callable[[str], bool]:
    """A search for a regular expression, by RE2 where it is installed, as on the server: there, time grows with the
    text alone, whatever the pattern. Raises `CheckError`."""
    try:
        expression = _engine.compile(pattern, *_options)
    except _engine.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else error
        raise CheckError(f"{field} is not a regular expression (RE2): {reason}.", field=field) from None
    return lambda text: expression.search(text) is not None
