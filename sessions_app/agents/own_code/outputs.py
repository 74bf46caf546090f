"""Functions that make the output of the team's agent. What they gave then is given again; where tools run they do too,
and what they send is answered from the recording."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from copy import deepcopy
from typing import Any

from sessions_app.agents.loop.observer import Observer
from sessions_app.agents.loop.outcomes import FixtureNotFound
from sessions_app.agents.loop.replay_model import ReplayModel
from sessions_app.agents.own_code.gate import raw_arguments
from sessions_app.agents.own_code.recorded_http import RecordedHttp
from sessions_app.agents.own_code.stage import OwnStage
from sessions_app.core.payload import JsonValue, canonical_json
from sessions_app.core.replay.fixture_book import missing, recorded_arguments
from sessions_app.core.run import Run


class OwnOutputs:
    def __init__(self, run: Run, observer: Observer, stage: OwnStage, model: ReplayModel, http: RecordedHttp) -> None:
        self._run = run
        self._model = model
        self._http = http
        self._observer = observer
        self._stage = stage

    def recorded(self, output_context: Any) -> JsonValue:
        """The recorded output for the recorded arguments. Raises as the function did, or `FixtureNotFound`."""
        call, name = output_context.tool_call, output_context.function_name or "output function"
        arguments = raw_arguments(call) if call is not None else None
        if self._stage.has_own_answers or (call is not None and not self._was_asked_for(call.tool_name, arguments)):
            raise FixtureNotFound(missing(name, call.tool_call_id if call else None, arguments, ()))
        self._observer._retry_as_recorded(output_context)
        if self._run.output is None:
            raise FixtureNotFound(missing(name, call.tool_call_id if call else None, arguments, ()))
        return deepcopy(self._run.output.value)

    async def made_now(self, ctx: Any, output_context: Any, run: Callable[[], Awaitable[Any]]) -> Any:
        """The function runs."""
        if ctx.partial_output:
            return await run()
        name, step = output_context.function_name or "output function", self._answer
        made, found = await self._http.during_output(name, output_context.tool_call, step, run)
        if found is not None:
            self._stage.differed(step, found)
        return made

    @property
    def _answer(self) -> int:
        """The recorded step of the answer that was given last; 0 behind the last one."""
        answers, given = self._model.answers, self._model.cursor
        return answers[given - 1].step if 0 < given <= len(answers) else 0

    def _was_asked_for(self, name: str, arguments: JsonValue) -> bool:
        asked = canonical_json(arguments)
        return any(
            call.is_output and call.tool_name == name and canonical_json(recorded_arguments(call.arguments)) == asked
            for _, call in self._run.tool_calls
        )
