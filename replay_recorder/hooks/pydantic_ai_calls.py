"""The calls of tools in one run, from the answer that asked for them to what the loop made of the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic_ai.messages import ToolReturn
from pydantic_ai.tools import DeferredToolResults

from replay_recorder.context import placed
from replay_recorder.hooks.pydantic_ai_given import asked_arguments, given_fields
from replay_recorder.hooks.pydantic_ai_messages import answer_value, metadata_value, prompt_value
from replay_recorder.hooks.pydantic_ai_reading import (
    answers_in,
    arguments_value,
    calls_in,
    failure,
    retry_value,
)
from replay_recorder.hooks.pydantic_ai_sent import requests_at_the_end
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
        self._reached: set[int] = set()
        """Steps whose tool itself began; the others ended in a check or a hook in front of it."""
        self._asked: dict[int, Any] = {}
        """Arguments of the model, by step."""
        self._ran_with: dict[int, dict[str, Any]] = {}
        """What is to be said of the arguments that a tool was given, by step."""
        self._behind: set[int] = set()
        """Steps whose arguments the team's own code handed on to a place that has not been heard."""
        self._outcomes: dict[int, str] = {}
        self._budgets: dict[str, int] = {}
        self.ended_by: BaseException | None = None
        """What a tool raised to end the whole process."""

    # --- asked for

    def carry_over(self, messages: list[Any], given: DeferredToolResults) -> None:
        """Calls that an earlier run left open: this run answers them, without a model step before. Others of the same
        answer may have had theirs in that run; behind these the loop goes on without calls that nobody decided."""
        self._given = given.calls
        if messages[-1].kind == "request" and not (given.calls or given.approvals):
            return
        for part in _left_open(messages):
            approval = given.approvals.get(part.tool_call_id)
            self._begin(part, parent=None, approved_arguments=getattr(approval, "override_args", None))
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
                self._asked[step] = part.args
                self.run.amend(step, tool_name=name(part.tool_name), arguments=arguments_value(part))

    def _begin(self, part: Any, *, parent: int | None, is_output: bool = False, **more: Any) -> int:
        step = self.run.begin(
            "tool",
            tool_name=name(part.tool_name),
            call_id=name(part.tool_call_id),
            parent=parent,
            arguments=arguments_value(part),
            **({"is_output": True} if is_output else self._who),
            **more,
        )
        self._unsettled.setdefault(part.tool_call_id, []).append(step)
        self._asked[step] = part.args
        return step

    # --- run

    def called(self, ctx: Any, call: Any, *, parent: int | None) -> None:
        """The loop takes the call up: its arguments are checked now."""
        open_steps = [step for step in self._unsettled.get(call.tool_call_id, ()) if self._is_to_come(step)]
        # A call that no answer asked for is one that another tool made, as code that calls tools does.
        step = open_steps[0] if open_steps else self._begin(call, parent=parent)
        self._running[call.tool_call_id] = step
        self._outcomes.pop(step, None)
        if self._budgets.get(call.tool_name) != ctx.max_retries:
            self._budgets[call.tool_name] = ctx.max_retries
            self.run.put_agent(tool_retries={call.tool_name: ctx.max_retries})

    def _is_to_come(self, step: int) -> bool:
        """A tool that asked for an approval is called again when code gives it while the run goes on."""
        return self._outcomes.get(step, "unapproved") == "unapproved"

    def started(self, call: Any, who: dict[str, Any]) -> None:
        """The tool itself begins."""
        step = self._running.get(call.tool_call_id)
        if step is not None:
            self.run.started(step, **({} if who == self._who else who))

    def reached(self, call_id: str | None, given: dict[str, Any], behind: tuple[str, ...]) -> None:
        """The call came through all checks and hooks in front of the tool; code of the team's that is `behind` this
        place may give the tool other arguments."""
        step = self._running.get(call_id or "")
        if step is None:
            return
        self._reached.add(step)
        if behind:
            self._behind.add(step)
            self._ran_with[step] = {"ran_with_unknown": {"behind": list(behind)}}
        else:
            self._put_given(step, given)

    def function_called(self, call_id: str | None, given: dict[str, Any]) -> None:
        """The tool's own function begins, with these arguments."""
        step = self._running.get(call_id or "")
        if step in self._behind:
            self._behind.remove(step)
            self._put_given(step, given)

    def _put_given(self, step: int, given: dict[str, Any]) -> None:
        """Before the tool runs, which may change them."""
        self._ran_with[step] = {"ran_with_unknown": {"arguments": sorted(given)}}  # where reading them fails
        self._ran_with[step] = given_fields(asked_arguments(self._asked.get(step)), given)

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
        has_run = step in self._reached
        if outcome != "success" or not has_run:
            fields["tool_ran"] = has_run
        fields |= self._ran_with.pop(step, {})
        http = http_fields(self.run, step) if self._has_http else {}
        write = self.run.end if self.run.is_open(step) else self.run.amend
        write(step, outcome=outcome, **fields, **http)

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


def _left_open(messages: Sequence[Any]) -> Iterator[Any]:
    """Calls of the last answer that the request behind it, if there is one, does not answer."""
    asking = next((at for at in reversed(range(len(messages))) if messages[at].kind == "response"), 0)
    answered = {part.tool_call_id for message in messages[asking + 1 : asking + 2] for part in answers_in(message)}
    return (part for part in calls_in(messages[asking]) if part.tool_call_id not in answered)


def _metadata(answer: Any) -> Any:
    """What is kept for the team beside an answer."""
    metadata = getattr(answer, "metadata", None)
    return None if metadata is None else metadata_value(metadata)
