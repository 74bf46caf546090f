"""What happens in one run of a LangChain or LangGraph agent, written down in the words of the record format."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from typing import Any

from replay_recorder.agent_step import AgentStep
from replay_recorder.context import Identity, Place, current_identity
from replay_recorder.fork_lock import ForkLock
from replay_recorder.guard import guard
from replay_recorder.hooks.langchain_messages import (
    Histories,
    Json,
    answer_of,
    answered_model,
    calls_of,
    finish_reason,
    prompt_of,
    text_of,
)
from replay_recorder.raw_http.tee import http_fields
from replay_recorder.recorder import Recorder
from replay_recorder.tools.calls import error_of, written
from replay_recorder.tools.recorded import REGISTRY
from replay_recorder.tools.retrieval import chunk_of
from replay_recorder.writing.json_text import JsonText, dumps, identifier, jsonable, name
from replay_recorder.writing.run_writer import RunWriter, now

_STEERING = ("GraphBubbleUp", "GraphInterrupt", "NodeInterrupt", "ParentCommand", "Command")
"""Exceptions by which LangGraph goes elsewhere, and which are no failures."""
_BROKEN = "InvalidToolCall"
"""LangChain's name for a call whose arguments are no JSON."""
_INTERRUPTS = ("GraphInterrupt", "NodeInterrupt")
_SETTINGS = (
    *("temperature", "top_p", "top_k", "seed", "max_tokens", "max_completion_tokens", "stop", "tool_choice"),
    *("parallel_tool_calls", "presence_penalty", "frequency_penalty", "reasoning_effort"),
)
_SESSIONS = ("thread_id", "session_id", "conversation_id")


class RunLog:
    """One run, from its start to its end. It is opened with its first step: not each chain asks a model.

    Every method may raise; the callbacks guard them.
    """

    def __init__(
        self, recorder: Recorder, run_id: str, called: str | None, inputs: Any, facts: Json, parent: Place | None
    ) -> None:
        """`facts` are the metadata of LangChain's config."""
        self._recorder = recorder
        self._run_id = run_id
        self._called = called
        self._inputs = inputs
        self._facts = facts
        self._parent = parent
        self._identity = _identity(recorder, facts)
        self._started_at, self._mark = now(), time.perf_counter()
        self._lock = ForkLock()
        self._run: RunWriter | None = None
        self._is_over = False
        self.is_waiting = False
        """Whether a tool or a node waits for somebody."""
        self._agent_step: AgentStep | None = None
        self._histories = Histories()
        self._has_request = False
        self._offered: dict[int, Json] = {}
        """The parameters of each request, by its step."""
        self._asked: dict[str, tuple[int | None, Json]] = {}
        """Calls that answers asked for, by their id, with the step of the answer; None for one of an earlier run."""
        self._steps: dict[str, int] = {}
        """Tool steps by the id of the call that they answer."""
        self._given: dict[str, tuple[str | None, Any]] = {}
        """Of calls that an earlier run asked for, by their id: the tool that ran, and what it was given."""
        self._settled: dict[str, str] = {}
        """The names of calls that were answered and that no tool ran, by the id of the call."""
        self._failed: dict[str, int] = {}
        """Tool steps that raised since the newest answer, by the id of their call."""
        self._results: dict[str, Any] = {}
        """What is written as the result of a call."""
        self._last: tuple[int, Any] | None = None
        """The newest answer, with its step."""

    @property
    def identity(self) -> Identity:
        return self._identity

    def begun(self, facts: Json) -> RunWriter | None:
        """For a step with these facts. None above a limit, and when it is over."""
        with self._lock:
            if self._run is None and not self._is_over:
                self._open("langgraph" if "langgraph_node" in facts else "langchain")
            return self._run

    @property
    def run(self) -> RunWriter | None:
        return self._run

    def _open(self, framework: str) -> None:
        run = self._recorder.begin(
            self._run_id,
            identity=self._identity,
            parent=self._parent,
            session_id=_session(self._facts),
            started_at=self._started_at,
        )
        if run is None:
            self._is_over = True
            return
        self._run = run
        run.put_agent(name=name(self._called), framework=framework, framework_version=version(framework))
        self._agent_step = AgentStep(self._parent, run, name=name(self._called), arguments=_given(self._inputs))

    # --- requests to the model

    def model_asked(self, messages: list[Any], params: Json, facts: Json) -> int | None:
        run = self.begun(facts)
        if run is None:
            return None
        model = name(params.get("model") or params.get("model_name") or facts.get("ls_model_name"))
        provider = name(facts.get("ls_provider"))
        with self._lock:
            if self._steps and not self._has_request:
                self._asked.update(_asked_before(messages))
                self._note_edits(run)
            self._settle(run, messages)
            self._note_order(run, messages)
            node = facts.get("langgraph_node")
            step = run.begin("model", name=model or "model", model=model, provider=provider, node=node)
            asked = self._histories.ask(step, messages)
            if not self._has_request:
                self._has_request = True
                if asked.prior is not None:
                    run.put_prior(asked.prior)
                # Calls that an earlier run of the thread left open, and that ran before this run asked a model.
                deferred = dict.fromkeys(self._steps, "success")
                said = {"model": model, "provider": provider, "instructions": asked.instructions or ""}
                run.put(deferred=deferred or None)
                run.put(input=_input(self._inputs, messages), **said)
                if _is_made_of_input(self._inputs, asked.history):
                    run.amend(step, prompt_rewritten=True)
                elif (before := len(_prompts_in(asked.history)) - 1) > 0:
                    run.amend(step, prompts_before_input=before)
            run.amend(step, request=asked.history, settings=_settings(params))
            with guard("langchain_tools"):
                self._offered[step] = _parameters(params)
                _put_tools(run, step, self._offered[step])
        return step

    def model_answered(self, step: int, message: Any) -> None:
        run = self._run
        if run is None:
            return
        response, usage = answer_of(message), message.usage_metadata or {}
        with self._lock:
            self._histories.answered(step, response)
            self._asked.update({call["id"]: (step, call) for call in calls_of(message) if call["id"]})
            self._last = step, message
            self._failed.clear()
        run.end(
            step,
            response=response,
            answered_model=answered_model(message),
            finish_reason=finish_reason(message),
            input_tokens=usage.get("input_tokens"),
            output_tokens=usage.get("output_tokens"),
            **http_fields(run, step),
        )

    def first_token(self, step: int) -> None:
        if self._run is not None:
            self._run.amend(step, first_token_at=now())

    def step_failed(self, step: int, error: BaseException, **fields: Any) -> None:
        if self._run is not None:
            self._run.end(step, error=error_of(error), **fields, **http_fields(self._run, step))

    # --- calls of tools

    def tool_started(self, called: str | None, call_id: str | None, inputs: Any, facts: Json) -> int | None:
        run = self.begun(facts)
        if run is None:
            return None
        parent, call = self._asked.get(call_id or "", (None, {}))
        if (before := self._failed.pop(call_id or "", None)) is not None:
            run.amend(before, call_id=JsonText("null"), attempt_at=name(call_id))
        step = run.begin(
            "tool",
            tool_name=name(called),
            call_id=name(call_id),
            arguments=written(call.get("args", inputs)),
            parent=parent,
            tool_kind=None if called is None else REGISTRY.kind(called),
            **self._identity.step_fields(),
        )
        if call_id is not None:
            self._steps[call_id] = step
            if parent is None:
                self._given[call_id] = called, inputs
        return step

    def tool_ended(self, step: int, call_id: str | None, output: Any) -> None:
        """A message is what the model is told; other objects steer the graph, and the next request says what it is
        told."""
        if self._run is None:
            return
        is_message = getattr(output, "type", None) == "tool"
        fields: Json = {"outcome": "success"}
        if is_message:
            fields |= {"result": written(output.content), "outcome": _outcome(output)}
            fields["returned"] = None if output.artifact is None else written(output.artifact)
            self._results[output.tool_call_id] = output.content
        elif type(output).__name__ not in _STEERING:
            fields["result"] = written(output)
            if call_id is not None:
                self._results[call_id] = output
        self._run.end(step, **fields, **http_fields(self._run, step))

    def tool_failed(self, step: int, call_id: str | None, error: BaseException) -> None:
        """The graph may tell the model what it raised, and then it goes on, or call the tool once more."""
        if type(error).__name__ in _STEERING and self._run is not None:
            self.is_waiting = True
            self._run.end(step, outcome="unapproved", **http_fields(self._run, step))
        else:
            outcome = "crashed" if isinstance(error, Exception) else "interrupted"
            self.step_failed(step, error, outcome=outcome)
            if call_id is not None:
                self._failed[call_id] = step

    def _settle(self, run: RunWriter, messages: list[Any]) -> None:
        """Answers as the model is told them, also those of calls for which no tool ran."""
        for message in messages:
            call_id = getattr(message, "tool_call_id", None)
            if message.type != "tool" or call_id not in self._asked:
                continue
            if call_id not in self._steps:
                parent, call = self._asked[call_id]
                self._steps[call_id] = step = run.begin(
                    "tool", tool_name=name(call["name"]), call_id=name(call_id), arguments=call["args"], parent=parent
                )
                run.end(step)
                self._settled[call_id] = call["name"]
            if call_id not in self._results or self._results[call_id] != message.content:
                outcome = "failed" if call_id in self._failed else _outcome(message)
                run.amend(self._steps[call_id], result=written(message.content), outcome=outcome)
                self._results[call_id] = message.content

    def _note_edits(self, run: RunWriter) -> None:
        """Who decides on a call may have another one run in its place, and the model's own stays in the messages."""
        for call_id, given in self._given.items():
            _, asked = self._asked.get(call_id, (None, None))
            if asked is not None and given != (asked["name"], asked["args"]):
                called = {"name": asked["name"], "tool_name": asked["name"]}
                tool = {} if given[0] == asked["name"] else {"approved_tool": given[0]}
                said = {"arguments": asked["args"], "approved_arguments": given[1]}
                run.amend(self._steps[call_id], **called, **tool, **said)

    def _note_order(self, run: RunWriter, messages: list[Any]) -> None:
        """Of calls that middleware answered in the place of tools the model may be told before the others."""
        asked = [call["id"] for call in calls_of(_newest_answer(messages))]
        told = [each.tool_call_id for each in messages if getattr(each, "tool_call_id", None) in asked]
        if told != sorted(told, key=asked.index) and self._steps.keys() >= set(told):
            for place, call_id in enumerate(told, start=1):
                run.amend(self._steps[call_id], told_as=place)

    # --- searches

    def search_began(self, called: str | None, query: str, facts: Json) -> int | None:
        run = self.begun(facts)
        return None if run is None else run.begin("retrieval", name=name(called), query=written(query))

    def search_ended(self, step: int, documents: Any) -> None:
        if self._run is not None:
            chunks = [chunk_of(document) for document in documents]
            self._run.end(step, chunks=chunks, **http_fields(self._run, step))

    # --- the end

    def ended(self, outputs: Any) -> None:
        """`outputs` are those of the outermost chain."""
        run = self._run
        if run is None:
            self._is_over = True
            return
        has_ended = True
        with guard("langchain_end"):
            has_ended = self._put_end(run, outputs)
        self._end("ok" if has_ended else "cut_off", output=_output(outputs) if has_ended else None)

    def _put_end(self, run: RunWriter, outputs: Any) -> bool:
        """False where calls wait for somebody: a graph that was interrupted goes on as another run."""
        if self._last is None:
            return True
        step, message = self._last
        self._put_broken_calls(run, step, message)
        open_calls = [call for call in calls_of(message) if call["id"] not in self._steps]
        messages = outputs.get("messages") if isinstance(outputs, Mapping) else None
        messages = messages if isinstance(messages, list) else []
        if _has_structure(outputs):
            self._put_output_tools(run, step, open_calls)
        elif not self.is_waiting:
            kept = [call["id"] for each in messages for call in calls_of(each)]
            self._put_output_tools(run, step, [call for call in open_calls if call["id"] not in kept])
        self._settle(run, messages)
        if not calls_of(message):
            run.put(final={"after": step, "messages": []})
        waiting = [call for call in open_calls if call["id"] not in self._steps]
        for call in waiting:
            fields = {"call_id": name(call["id"]), "arguments": call["args"], "parent": step}
            run.end(run.begin("tool", tool_name=name(call["name"]), **fields), outcome="unapproved")
        return not waiting and not self.is_waiting

    def _put_broken_calls(self, run: RunWriter, step: int, message: Any) -> None:
        """Calls whose arguments are no JSON are made by nobody, and nobody waits for them."""
        for call in message.invalid_tool_calls:
            if call["id"] not in self._steps:
                fields = {"call_id": name(call["id"]), "arguments": call["args"], "parent": step}
                self._steps[call["id"]] = run.begin("tool", tool_name=name(call["name"]), **fields)
                run.end(self._steps[call["id"]], error={"type": _BROKEN, "message": call.get("error")})

    def _put_output_tools(self, run: RunWriter, step: int, calls: list[Json]) -> None:
        """Calls that no tool ran, and that no message keeps, carry the output: LangChain offers its schema as a tool.
        Those of earlier answers were refused."""
        names = {call["name"] for call in calls}
        for call_id, called in self._refused_output(names):
            names.add(called)
            run.amend(self._steps[call_id], is_output=True, outcome="retried")
        for call in calls:
            fields = {"call_id": name(call["id"]), "arguments": call["args"], "parent": step, "is_output": True}
            self._steps[call["id"]] = run.begin("tool", tool_name=name(call["name"]), **fields)
            run.end(self._steps[call["id"]], outcome="success")
            # What LangChain writes behind it is told to no model.
            self._asked.pop(call["id"], None)
        for asked, parameters in self._offered.items() if names else ():
            functions = parameters["function_tools"]
            outputs = [{**each, "kind": "output"} for each in functions if each["name"] in names]
            others = [each for each in functions if each["name"] not in names]
            said = {**parameters, "function_tools": others, "output_tools": outputs, "output_mode": "tool"}
            _put_tools(run, asked, said)

    def _refused_output(self, names: set[str]) -> list[tuple[str, str]]:
        """LangChain asks again for an output that it could not read; by the same schema, or by another one."""
        said = {call_id: str(self._results[call_id]) for call_id in self._settled}
        called = self._settled.items()
        return [each for each in called if each[1] in names or said[each[0]].startswith(_REFUSALS)]

    def node_failed(self, error: BaseException) -> None:
        self.is_waiting = self.is_waiting or type(error).__name__ in _INTERRUPTS

    def failed(self, error: BaseException) -> None:
        status = "error" if isinstance(error, Exception) else "cut_off"
        is_left = isinstance(error, GeneratorExit)
        said = {"recorder.lost": "its stream was left before its end"} if is_left else {"error": error_of(error)}
        self._end(status, **said)

    def _end(self, status: str, **fields: Any) -> None:
        with self._lock:
            run, self._run, self._is_over = self._run, None, True
        if run is None:
            return
        duration = round((time.perf_counter() - self._mark) * 1000, 3)
        with guard("langchain_parent"):
            if self._agent_step is not None:
                said = {"result": fields.get("output"), "error": fields.get("error")}
                self._agent_step.end(duration_ms=duration, **said)
        self._recorder.end(run, status, duration_ms=duration, **fields)


# --- reading LangChain's objects -----------------------------------------------------------------


@cache
def version(framework: str) -> str | None:
    try:
        return metadata.version(framework)
    except metadata.PackageNotFoundError:
        return None


def _identity(recorder: Recorder, facts: Json) -> Identity:
    """Who this is for, as the team's own callback reads it from the config's metadata."""
    identity = current_identity()
    if recorder.settings.context is not None:
        with guard("context callback"):
            identity = identity.with_facts(recorder.settings.context(facts) or {})
    return identity


def _session(facts: Json) -> str | None:
    return next((found for key in _SESSIONS if (found := identifier(facts.get(key)))), None)


def _asked_before(messages: list[Any]) -> dict[str, tuple[None, Json]]:
    """The calls of the newest answer. A run that goes on with some of them is told what became of the others as well:
    they ran before something waited for somebody, or were turned down."""
    return {call["id"]: (None, call) for call in calls_of(_newest_answer(messages)) if call["id"]}


def _newest_answer(messages: list[Any]) -> Any:
    return next((each for each in reversed(messages) if each.type == "ai"), None)


def _given(inputs: Any) -> Any:
    return written(jsonable(inputs))


def _input(inputs: Any, messages: list[Any]) -> Any:
    """The newest question, where a conversation was given; else what was given."""
    if isinstance(inputs, str):
        return inputs
    prompt = _prompt(messages)
    return prompt if _is_conversation(inputs) and prompt is not None else _given(inputs)


def _is_conversation(inputs: Any) -> bool:
    return isinstance(inputs, list) or (isinstance(inputs, Mapping) and "messages" in inputs)


def _is_made_of_input(inputs: Any, history: Json) -> bool:
    """Whether the prompt is not what the chain was given: a template, or a node of a graph, made it of that. A run that
    goes on has none."""
    prompts = _prompts_in(history)
    return not _is_conversation(inputs) and bool(prompts) and prompts[-1] != inputs


def _prompts_in(history: Json) -> list[Any]:
    """Those of the newest message."""
    newest = history["messages"][-1:]
    return [part["content"] for row in newest for part in row["parts"] if part["part_kind"] == "user-prompt"]


def _prompt(messages: list[Any]) -> Any:
    newest = next((each for each in reversed(messages) if each.type == "human"), None)
    return None if newest is None else prompt_of(newest.content)


def _output(outputs: Any) -> Any:
    """The last answer of a conversation, or what was made of it; else all that the chain gave."""
    if _has_structure(outputs):
        return written(outputs["structured_response"])
    messages = outputs.get("messages") if isinstance(outputs, Mapping) else None
    last = messages[-1] if isinstance(messages, list) and messages else outputs
    if getattr(last, "type", None) in ("ai", "AIMessageChunk", "tool"):
        return None if getattr(last, "tool_calls", None) else text_of(last.content)
    return written(outputs)


def _settings(params: Json) -> Json:
    return {key: params[key] for key in _SETTINGS if params.get(key) is not None}


def _outcome(message: Any) -> str:
    return "failed" if getattr(message, "status", None) == "error" else "success"


_REFUSALS = (
    "Error: Failed to parse structured output for tool ",
    "Error: Model incorrectly returned multiple structured responses ",
)
"""LangChain's words for an output that it asks for again, unless the team has words of its own."""


def _has_structure(outputs: Any) -> bool:
    return isinstance(outputs, Mapping) and outputs.get("structured_response") is not None


def _parameters(params: Json) -> Json:
    """Request parameters in the shape of Pydantic AI, as far as they are known."""
    definitions = [_definition(tool) for tool in params.get("tools") or params.get("functions") or []]
    schema = _schema(params.get("response_format"))
    return {
        "function_tools": [each for each in definitions if each is not None],
        "output_mode": "native" if schema else "text",
        "output_object": schema,
        "output_tools": [],
        "allow_text_output": True,
    }


def _put_tools(run: RunWriter, step: int, parameters: Json) -> None:
    run.amend(
        step,
        tools=[run.row("tools", JsonText(dumps(function))) for function in parameters["function_tools"]],
        parameters=run.row("parameters", JsonText(dumps(parameters))),
    )


def _definition(tool: Any) -> Json | None:
    """As providers of several kinds spell it; None for tools that they run themselves."""
    said = tool.get("function", tool) if isinstance(tool, Mapping) else {}
    if not isinstance(said, Mapping) or "name" not in said:
        return None
    schema = next((said[key] for key in ("parameters", "input_schema", "parametersJsonSchema") if key in said), None)
    definition = {"name": said["name"], "description": said.get("description")}
    return definition if schema is None else {**definition, "parameters_json_schema": jsonable(schema)}


def _schema(response_format: Any) -> Json | None:
    said = response_format.get("json_schema") if isinstance(response_format, Mapping) else None
    if not isinstance(said, Mapping) or "schema" not in said:
        return None
    return {"json_schema": jsonable(said["schema"]), "name": said.get("name"), "strict": said.get("strict")}
