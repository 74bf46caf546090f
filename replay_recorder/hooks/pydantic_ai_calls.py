"""The calls of tools in one run, from the answer that asked for them to what the loop made of the result."""

from __future__ import annotations

from typing import Any

from pydantic_ai.messages import ToolReturn

from replay_recorder.context import placed
from replay_recorder.hooks.pydantic_ai_messages import answer_value, metadata_value, prompt_value
from replay_recorder.hooks.pydantic_ai_reading import (
    answers_in,
    arguments_value,
    calls_in,
    failure,
    requests_at_the_end,
    retry_value,
)
from replay_recorder.raw_http.tee import http_fields
from replay_recorder.tools.retrieval import record_retrieval
from replay_recorder.writing.json_text import jsonable, name
from replay_recorder.writing.run_writer import RunWriter


class CallLog:
    """Steps of kind `tool`. A call id may come again, in one answer or in a later one."""

    def __init__(self, run: RunWriter, *, who: dict[str, Any], has_http: bool) -> None:
        self.run = run
        self._who = who
        """For whom the run acts; a tool may find that it acts for somebody else."""
        self._has_http = has_http
        self.carried: dict[str, str] = {}
        """Outcome of each call that an earlier run had left open, by call id."""
        self._given: dict[str, Any] = {}
        """What somebody outside gave for those."""
        self._unsettled: dict[str, list[int]] = {}
        """Steps whose answer has not been seen in the history."""
        self._running: dict[str, int] = {}
        self._outcomes: dict[int, str] = {}
        self._budgets: dict[str, int] = {}
        self.ended_by: BaseException | None = None
        """What a tool raised to end the whole process."""

    # --- asked for

    def carry_over(self, messages: list[Any], given: dict[str, Any]) -> None:
        """Calls that an earlier run left open: this run answers them, without a model step before. Others of the same
        answer may have had theirs in that run."""
        self._given = given
        answered = {part.tool_call_id for part in answers_in(messages[-1]) if part.tool_call_id}
        for part in calls_in(messages[-2] if answered and len(messages) > 1 else messages[-1]):
            if part.tool_call_id not in answered:
                self._begin(part, parent=None)
                self.carried[part.tool_call_id] = "success"

    def open(self, response: Any, *, parent: int, output_names: frozenset[str]) -> None:
        """The calls that an answer asks for; those of the answer before have had their turn."""
        self._unsettled.clear()
        for part in calls_in(response):
            self._begin(part, parent=parent, is_output=part.tool_name in output_names)

    def asked_otherwise(self, response: Any) -> None:
        """Somebody changed the answer before the loop took it up."""
        for part in calls_in(response):
            for step in self._unsettled.get(part.tool_call_id, ())[:1]:
                self.run.amend(step, tool_name=name(part.tool_name), arguments=arguments_value(part))

    def _begin(self, part: Any, *, parent: int | None, is_output: bool = False) -> int:
        step = self.run.begin(
            "tool",
            tool_name=name(part.tool_name),
            call_id=name(part.tool_call_id),
            parent=parent,
            arguments=arguments_value(part),
            **({"is_output": True} if is_output else self._who),
        )
        self._unsettled.setdefault(part.tool_call_id, []).append(step)
        return step

    # --- run

    def called(self, ctx: Any, call: Any, *, parent: int | None) -> None:
        """The loop takes the call up: its arguments are checked now."""
        open_steps = [step for step in self._unsettled.get(call.tool_call_id, ()) if step not in self._outcomes]
        # A call that no answer asked for is one that another tool made, as code that calls tools does.
        step = open_steps[0] if open_steps else self._begin(call, parent=parent)
        self._running[call.tool_call_id] = step
        if self._budgets.get(call.tool_name) != ctx.max_retries:
            self._budgets[call.tool_name] = ctx.max_retries
            self.run.put_agent(tool_retries={call.tool_name: ctx.max_retries})

    def started(self, call: Any, who: dict[str, Any]) -> None:
        """The tool itself begins."""
        step = self._running.get(call.tool_call_id)
        if step is not None:
            self.run.started(step, **({} if who == self._who else who))

    def step_of(self, call: Any) -> int | None:
        return self._running.get(call.tool_call_id)

    def answered(self, call: Any, result: Any) -> None:
        step = self._running[call.tool_call_id]
        if not isinstance(result, ToolReturn):
            self._end(step, "success", result=answer_value(result))
            return
        self._end(
            step,
            "success",
            result=answer_value(result.return_value),
            content=prompt_value(result.content),
            metadata=_metadata(result),
        )
        self._put_chunks(step, call, result.metadata)

    def failed(self, ctx: Any, call: Any, error: BaseException) -> None:
        """Called for the check of the arguments and for the tool; the first that fails counts."""
        step = self._running.get(call.tool_call_id)
        if isinstance(error, SystemExit | KeyboardInterrupt):
            self.ended_by = error
        if step is not None and step not in self._outcomes:
            outcome, fields = failure(ctx, error)
            self._end(step, outcome, **fields)

    def stop(self) -> None:
        """The run was ended from outside: what runs now will not be heard of again."""
        for step in self._running.values():
            if step not in self._outcomes and self.run.is_open(step):
                self._end(step, "interrupted")

    def _end(self, step: int, outcome: str, **fields: Any) -> None:
        self._outcomes[step] = outcome
        http = http_fields(self.run, step) if self._has_http else {}
        self.run.end(step, outcome=outcome, **fields, **http)

    def _put_chunks(self, step: int, call: Any, metadata: Any) -> None:
        """`ToolReturn(metadata={"chunks": […]})` is how a tool says what it retrieved."""
        chunks = metadata.get("chunks") if isinstance(metadata, dict) else None
        if isinstance(chunks, list):
            with placed(self.run, step):
                record_retrieval(
                    jsonable(call.args_as_dict()),
                    chunks,
                    index_version=metadata.get("index_version"),
                    embedding_version=metadata.get("embedding_version"),
                )

    # --- answered, as the loop wrote it into the history

    def settle(self, messages: list[Any]) -> None:
        """Answers that the framework gave (unknown tools, refusals, output), and what it added to the tools' own."""
        for message in requests_at_the_end(messages):
            for part in answers_in(message):
                if self._unsettled.get(part.tool_call_id):
                    self._settle(self._unsettled[part.tool_call_id].pop(0), part)

    def _settle(self, step: int, part: Any) -> None:
        outcome = getattr(part, "outcome", None) or "retried"
        if part.tool_call_id in self.carried:
            self.carried[part.tool_call_id] = outcome
        retry = retry_value(part)
        fields: dict[str, Any] = {} if retry is None else {"retry": retry}
        if self._outcomes.get(step) != outcome or outcome == "retried":
            given = self._given.get(part.tool_call_id) if part.tool_call_id in self.carried else None
            content = prompt_value(given.content) if isinstance(given, ToolReturn) else None
            result, metadata = answer_value(part.content), _metadata(part)
            fields |= {"outcome": outcome, "result": result, "content": content, "metadata": metadata}
        self._outcomes[step] = outcome
        if self.run.is_open(step):
            self.run.end(step, **fields)
        elif fields:
            self.run.amend(step, **fields)


def _metadata(answer: Any) -> Any:
    """What is kept for the team beside an answer."""
    metadata = getattr(answer, "metadata", None)
    return None if metadata is None else metadata_value(metadata)
