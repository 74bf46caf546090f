"""Where an observed replay was ended from outside: by the recorder, because no recorded answer fits, or by a pause.

Those errors are in the observed run by their names, as the errors of the agent are. They are no outcome of the agent.
"""

from __future__ import annotations

from sessions_app.core.replay.observed_pairs import Pair, Pairs, same_error

_PAUSED = "ReplayPaused"
_STOPS = frozenset({"RequestDiffers", "NoAnswerRecorded", "RecordingExhausted", "RequestNotRecorded", _PAUSED})


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
