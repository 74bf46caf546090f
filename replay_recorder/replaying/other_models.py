"""Models that the code of a Pydantic AI agent asks on its own, such as those of agents that its tools run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic_ai import models

from replay_recorder.replaying.errors import ModelNotRecorded
from replay_recorder.replaying.inner_agents import asked_inside
from replay_recorder.replaying.pydantic_ai import call_under_way
from replay_recorder.replaying.recording import Recording


class OtherModels:
    """Stands where the library looks up whether models may be asked. A plain no is an exception that tools make an
    answer of, which would then be told as what the tool does today."""

    def __init__(self, recording: Recording) -> None:
        self.reasons: list[str] = []
        """Why the replay ends, once for each request that was kept back."""
        self._recording = recording

    def __bool__(self) -> bool:
        call = call_under_way()
        self.reasons.append(asked_inside(self._recording, None if call is None else call.tool_call_id))
        raise ModelNotRecorded(self.reasons[-1])


@contextmanager
def other_models_refused(recording: Recording) -> Iterator[OtherModels]:
    """In here a request to a model that sends it ends the replay."""
    refused = OtherModels(recording)
    with models.override_allow_model_requests(refused):  # type: ignore[arg-type]  # read as a truth value
        yield refused
