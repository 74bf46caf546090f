"""Where the recorder itself ended a replay on a person's own machine, because no recorded answer fits.

Its errors are in the observed run by their names, as the errors of the agent are. They are no outcome of the agent.
"""

from __future__ import annotations

from sessions_app.core.replay.observed_pairs import Pair, Pairs, same_error

_STOPS = frozenset({"RequestDiffers", "NoAnswerRecorded", "RecordingExhausted", "RequestNotRecorded"})


def is_stopped(pairs: Pairs) -> bool:
    """Whether the replay did not come to an end of its own, whatever the code made of that."""
    return any(is_stop(pair) for pair in pairs.steps)


def is_stop(pair: Pair) -> bool:
    """An error of this name that was recorded as well is one of the run's own."""
    error = pair.observed.error
    if error is None or error.type not in _STOPS:
        return False
    return pair.recorded is None or not same_error(pair.recorded.error, error)
