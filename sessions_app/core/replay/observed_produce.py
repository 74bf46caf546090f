"""The run that a replay on another machine produced: the observed one in the shape of its recording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sessions_app.core.compare.strict import same_json
from sessions_app.core.guardrails import guardrail_fields
from sessions_app.core.payload import JsonObject, Payload
from sessions_app.core.ran_with import OF_APPROVAL, TOLD, is_told, said_of, told_of
from sessions_app.core.replay.asked_model import asked_in
from sessions_app.core.replay.fixture_book import recorded_arguments
from sessions_app.core.replay.observed_comparison import ObservedComparison, is_same_answer
from sessions_app.core.replay.observed_pairs import Pair, Pairs, Tools
from sessions_app.core.replay.observed_stops import is_stop, is_stopped
from sessions_app.core.replay.produce import parameters_in_shape, played_back, spelled_as, spelled_output
from sessions_app.core.replay.projection import Projection, in_shape_of
from sessions_app.core.replay.raw_answers import RAW
from sessions_app.core.replay.rewriting import sent_otherwise
from sessions_app.core.run import ModelCall, ParentLink, Run, StateChange, Step, StepSource, ToolCall, tool_ran
from sessions_app.core.unplayed import loop_steps


def observed_run(pairs: Pairs, seen: ObservedComparison, *, tools: Tools, run_id: str) -> Run:
    """A run of its own, linked to the recording, each step with the source of its answer."""
    return _Produced(pairs, seen, tools).run(run_id)


class _Produced:
    """The observed run as one of the recording's: in its shape, each step with its source."""

    def __init__(self, pairs: Pairs, seen: ObservedComparison, tools: Tools) -> None:
        self._pairs = pairs
        self._seen = seen
        self._tools = tools
        self._projection = Projection(_message_in_shape)
        self._pair_of = {pair.observed.index: pair for pair in pairs.steps}

    def run(self, run_id: str) -> Run:
        recorded, observed = self._pairs.recorded, self._pairs.observed
        recorded_of = {pair.observed.index: pair.recorded.index for pair in self._pairs.steps if pair.recorded}
        steps, is_cut_short = tuple(_renumbered(list(self._steps()), recorded_of)), is_stopped(self._pairs)
        return replace(
            recorded,
            run_id=run_id,
            origin="replay",
            parent=ParentLink(run_id=recorded.run_id),
            source_format="native",
            input=self._input(),
            status="cut_off" if is_cut_short else observed.status,
            output=None if is_cut_short else self._output(),
            error=None if is_cut_short else observed.error,
            code=observed.code,
            agent=replace(
                recorded.agent,
                version=observed.agent.version or recorded.agent.version,
                framework_version=observed.agent.framework_version or recorded.agent.framework_version,
            ),
            instructions=observed.instructions or recorded.instructions,
            started_at=observed.started_at,
            duration_ms=observed.duration_ms,
            initial_state=observed.initial_state if self._tools == "run" else recorded.initial_state,
            steps=steps,
            final=self._projection.pair(recorded.final, observed.final),
            extra=({TOLD: True} if is_told(observed) else {}) | guardrail_fields(observed),
        )

    def _input(self) -> Payload | None:
        recorded, observed = self._pairs.recorded, self._pairs.observed
        is_told = recorded.source_format == "native" and recorded.input is not None and observed.input is not None
        return spelled_as(recorded.input, observed.input) if is_told else recorded.input

    def _output(self) -> Payload | None:
        """None where a function makes it that did not run: what it made in the recording was given."""
        recorded, observed = self._pairs.recorded, self._pairs.observed
        is_given = self._tools == "frozen" and recorded.agent.output_function is not None
        return None if is_given else spelled_output(recorded.output, observed.output)

    def _steps(self) -> Iterator[tuple[int, Step]]:
        """Each with the index that it had. Where tools are frozen, work that is no part of the loop did not run; it
        goes with the steps around it, as it was recorded."""
        beside = iter(self._played_back() if self._tools == "frozen" else [])
        waiting_step = next(beside, None)
        newest: StepSource = "recorded"
        for step in self._pairs.observed.steps:
            pair = self._pair_of.get(step.index)
            place = pair.recorded.index if pair and pair.recorded else 0
            while waiting_step is not None and waiting_step.index < place:
                yield -waiting_step.index, played_back(waiting_step, newest)
                waiting_step = next(beside, None)
            if pair is not None:
                made = self._step(pair)
                newest = made.source
                yield step.index, made
            elif self._tools == "run":
                yield step.index, replace(step, source="own_code")
        if not self._pairs.unused:
            rest = (step for step in [waiting_step, *beside] if step is not None)
            yield from ((-step.index, played_back(step, newest)) for step in rest)

    def _played_back(self) -> list[Step]:
        loop = {step.index for step in loop_steps(self._pairs.recorded)}
        return [step for step in self._pairs.recorded.steps if step.index not in loop]

    def _step(self, pair: Pair) -> Step:
        step, source = pair.observed, self._seen.sources[pair.observed.index]
        error = None if is_stop(pair) else step.error
        if pair.recorded is None:
            return replace(step, source=source, error=error, state=self._state(pair), extra=_said(step, self._tools))
        return replace(
            pair.recorded,
            index=step.index,
            call=self._call(pair),
            parent=step.parent,
            started_at=step.started_at,
            first_token_at=None,
            duration_ms=step.duration_ms,
            error=error,
            user_id=step.user_id or pair.recorded.user_id,
            tenant_id=step.tenant_id or pair.recorded.tenant_id,
            state=self._state(pair),
            http=step.http if self._tools == "run" else pair.recorded.http,
            source=pair.recorded.source if source == "recorded" else source,
            extra=_said(step, self._tools),
        )

    def _state(self, pair: Pair) -> StateChange | None:
        """Where no tool ran it is carried over, as the proof says."""
        if self._tools == "run":
            return pair.observed.state
        return pair.recorded.state if pair.recorded else None

    def _call(self, pair: Pair) -> ModelCall | ToolCall:
        assert pair.recorded is not None
        recorded, call = pair.recorded.call, pair.observed.call
        if isinstance(recorded, ModelCall) and isinstance(call, ModelCall):
            return self._model_call(recorded, pair.observed, call)
        assert isinstance(recorded, ToolCall)
        assert isinstance(call, ToolCall)
        return replace(
            call,
            arguments=_spelled(recorded.arguments, call.arguments),
            result=spelled_as(recorded.result, call.result),
            outcome=call.outcome if recorded.outcome is not None else None,
            metadata=spelled_as(recorded.metadata, call.metadata),
            content=spelled_as(recorded.content, call.content),
        )

    def _model_call(self, recorded: ModelCall, step: Step, call: ModelCall) -> ModelCall:
        is_recorded = call.response is None or is_same_answer(recorded.response, call.response)
        kept = recorded if is_recorded else call
        asking = asked_in(step, call).as_recorded(recorded)
        return replace(
            kept,
            history=self._projection.pair(recorded.history, call.history),
            response=recorded.response if is_recorded and call.response is not None else call.response,
            parameters=parameters_in_shape(recorded.parameters, call.parameters),
            model=asking.model,
            settings=asking.settings,
            provider=recorded.provider,
            tools=recorded.tools if _have_same_names(recorded.tools, call.tools) else call.tools,
        )


def _said(step: Step, tools: Tools) -> JsonObject:
    """What a recorder says beside the messages; of a frozen tool, which ends as it ended then, that it was come to."""
    told = told_of(step) if tools == "run" or tool_ran(step) is False else {}
    kept = {name: step.extra[name] for name in (RAW, *OF_APPROVAL) if name in step.extra}
    return said_of(step) | told | kept | dict.fromkeys(sorted(sent_otherwise(step)), True)


def _have_same_names(recorded: Sequence[Payload] | None, now: Sequence[Payload] | None) -> bool:
    """Definitions are compared with the parameters; ids in them are drawn anew by each process."""
    if recorded is None or now is None:
        return True
    return [tool.value.get("name") for tool in recorded] == [tool.value.get("name") for tool in now]


def _message_in_shape(recorded: Payload, observed: Payload) -> Payload:
    """An answer that says the same is the recorded one."""
    is_answer = isinstance(recorded.value, dict) and recorded.value.get("kind") == "response"
    return recorded if is_answer and is_same_answer(recorded, observed) else in_shape_of(recorded, observed)


def _spelled(recorded: Payload | None, now: Payload | None) -> Payload | None:
    same = same_json(recorded_arguments(recorded), recorded_arguments(now))
    return recorded if same else now


def _renumbered(steps: list[tuple[int, Step]], recorded_of: Mapping[int, int]) -> Iterator[Step]:
    """Indexes without gaps, parents following their steps; a step that was only read may stand in one that was
    played."""
    new = {was: index for index, (was, _) in enumerate(steps, start=1)}
    new |= {-recorded_of[was]: index for was, index in new.items() if was in recorded_of}
    for index, (was, step) in enumerate(steps, start=1):
        known = None if step.parent is None else step.parent if was > 0 else -step.parent
        yield replace(step, index=index, parent=new.get(known) if known is not None else None)
