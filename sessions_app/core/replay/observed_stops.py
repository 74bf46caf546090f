"""Where an observed replay was ended from outside: by the recorder, because no recorded answer fits, or by a pause.

Those errors are in the observed run by their names, as the errors of the agent are. They are no outcome of the agent.
"""

from __future__ import annotations

from itertools import takewhile

from replay_goldens.trace import STOPS
from sessions_app.core.replay.observed_pairs import Pair, Pairs, same_error
from sessions_app.core.run import ToolCall

_PAUSED = "ReplayPaused"
_STOPS = frozenset({*STOPS, _PAUSED})


def is_stopped(pairs: Pairs) -> bool:
    """Whether the replay did not come to an end of its own, whatever the code made of that."""
    error, recorded = pairs.observed.error, pairs.recorded.error
    is_of_run = error is not None and error.type in _STOPS and not same_error(recorded, error)
    return is_of_run or any(is_stop(pair) for pair in pairs.steps)


def is_stop(pair: Pair) -> bool:
    """An error of this name that was recorded as well is one of the run's own."""
    error = pair.observed.error
    if error is None or error.type not in _STOPS:
        return False
    return pair.recorded is None or not same_error(pair.recorded.error, error)


def is_paused(pair: Pair) -> bool:
    """Whether the replay waits before this step is answered."""
    return is_stop(pair) and pair.observed.error is not None and pair.observed.error.type == _PAUSED


def cut_off(pairs: Pairs) -> frozenset[int]:
    """Observed steps, by index, of calls beside the one at which the replay stopped: those that ended with it, and
    those whose answer was not yet put into the words that the model is told. What they came to is not known."""
    calls = list(takewhile(lambda pair: isinstance(pair.observed.call, ToolCall), reversed(pairs.steps)))
    if not any(map(is_stop, calls)):
        return frozenset()
    return frozenset(pair.observed.index for pair in calls if not is_stop(pair) and _is_unfinished(pair))


def _is_unfinished(pair: Pair) -> bool:
    recorded, call = pair.recorded.call if pair.recorded else None, pair.observed.call
    if not isinstance(recorded, ToolCall) or not isinstance(call, ToolCall):
        return False
    if call.outcome == "interrupted":
        return True
    then, now = recorded.result, call.result
    return then is not None and now is not None and then.is_text and not now.is_text
