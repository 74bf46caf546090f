"""Records runs of LangChain and LangGraph by LangChain's own callbacks: `install()` adds a handler to every run.

The outermost chain is the run: a graph, an agent, or models and prompts behind each other. A graph that a tool starts
is a run inside of it. What nobody put into a chain, such as a model that is asked by itself, belongs to `@record`.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from types import ModuleType
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage

from replay_recorder.context import Place, Surroundings, current_place, surround, surroundings
from replay_recorder.guard import guard
from replay_recorder.hooks.langchain_run import RunLog
from replay_recorder.raw_http.tee import patch_transports
from replay_recorder.recorder import active


@dataclass(eq=False, kw_only=True)
class _Work:
    """What goes on under one of LangChain's ids."""

    log: RunLog
    is_outermost: bool = False
    step: int | None = None
    kind: str = "chain"
    call_id: str | None = None
    has_token: bool = False
    before: Surroundings | None = None
    """Where the code ran before the step began."""


class ReplayCallbackHandler(BaseCallbackHandler):  # type: ignore[misc, unused-ignore]  # without types where it is missing
    """One for all runs: they are told apart by their ids.

    It runs inline, in the thread or task that goes on to ask the model or to run the tool, so that what happens there
    belongs to the right step.
    """

    run_inline = True

    def __init__(self) -> None:
        self._open: dict[UUID, _Work] = {}

    # --- chains

    def on_chain_start(
        self, serialized: Any, inputs: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **said: Any
    ) -> None:
        with guard("on_chain_start"):
            outer, recorder = self._outer(parent_run_id), active()
            if outer is not None and outer.kind == "chain":
                self._open[run_id] = _Work(log=outer.log, step=outer.step)
            elif recorder is not None:
                called, facts = said.get("name") or (serialized or {}).get("name"), said.get("metadata") or {}
                log = RunLog(recorder, str(run_id), called, inputs, facts, _place(outer))
                self._open[run_id] = _Work(log=log, is_outermost=True)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **said: Any) -> None:
        with guard("on_chain_end"):
            work = self._open.pop(run_id, None)
            if work is not None and work.is_outermost:
                work.log.ended(outputs)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **said: Any) -> None:
        with guard("on_chain_error"):
            work = self._open.pop(run_id, None)
            if work is not None:
                (work.log.failed if work.is_outermost else work.log.node_failed)(error)

    # --- models

    def on_chat_model_start(
        self, serialized: Any, messages: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **said: Any
    ) -> None:
        with guard("on_chat_model_start"):
            self._asked(messages[0], run_id, parent_run_id, said)

    def on_llm_start(
        self, serialized: Any, prompts: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **said: Any
    ) -> None:
        """A model that goes on with a text."""
        with guard("on_llm_start"):
            self._asked([HumanMessage(content=prompts[0])], run_id, parent_run_id, said)

    def _asked(self, messages: Any, run_id: UUID, parent_run_id: UUID | None, said: dict[str, Any]) -> None:
        outer = self._outer(parent_run_id)
        if outer is not None:
            params, facts = said.get("invocation_params") or {}, said.get("metadata") or {}
            self._enter(run_id, outer.log, outer.log.model_asked(messages, params, facts), "model")

    def on_llm_new_token(self, token: Any, *, run_id: UUID, **said: Any) -> None:
        work = self._open.get(run_id)
        if work is not None and not work.has_token:
            work.has_token = True
            with guard("on_llm_new_token"):
                if work.step is not None:
                    work.log.first_token(work.step)

    def on_llm_end(self, response: Any, *, run_id: UUID, **said: Any) -> None:
        with guard("on_llm_end"):
            work = self._leave(run_id)
            if work is not None and work.step is not None:
                generation = response.generations[0][0]
                message = getattr(generation, "message", None) or AIMessage(content=generation.text)
                work.log.model_answered(work.step, message)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **said: Any) -> None:
        with guard("on_llm_error"):
            work = self._leave(run_id)
            if work is not None and work.step is not None:
                work.log.step_failed(work.step, error)

    # --- tools

    def on_tool_start(
        self, serialized: Any, input_str: str, *, run_id: UUID, parent_run_id: UUID | None = None, **said: Any
    ) -> None:
        with guard("on_tool_start"):
            outer = self._outer(parent_run_id)
            if outer is not None:
                called, call_id = said.get("name") or (serialized or {}).get("name"), said.get("tool_call_id")
                given = said["inputs"] if said.get("inputs") is not None else input_str
                step = outer.log.tool_started(called, call_id, given, said.get("metadata") or {})
                self._enter(run_id, outer.log, step, "tool", call_id)

    def on_tool_end(self, output: Any, *, run_id: UUID, **said: Any) -> None:
        with guard("on_tool_end"):
            work = self._leave(run_id)
            if work is not None and work.step is not None:
                work.log.tool_ended(work.step, work.call_id, output)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **said: Any) -> None:
        with guard("on_tool_error"):
            work = self._leave(run_id)
            if work is not None and work.step is not None:
                work.log.tool_failed(work.step, work.call_id, error)

    # --- searches

    def on_retriever_start(
        self, serialized: Any, query: str, *, run_id: UUID, parent_run_id: UUID | None = None, **said: Any
    ) -> None:
        with guard("on_retriever_start"):
            outer = self._outer(parent_run_id)
            if outer is not None:
                called = said.get("name") or (serialized or {}).get("name")
                step = outer.log.search_began(called, query, said.get("metadata") or {})
                self._enter(run_id, outer.log, step, "retrieval")

    def on_retriever_end(self, documents: Any, *, run_id: UUID, **said: Any) -> None:
        with guard("on_retriever_end"):
            work = self._leave(run_id)
            if work is not None and work.step is not None:
                work.log.search_ended(work.step, documents)

    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **said: Any) -> None:
        with guard("on_retriever_error"):
            work = self._leave(run_id)
            if work is not None and work.step is not None:
                work.log.step_failed(work.step, error)

    # --- where the code runs

    def _outer(self, run_id: UUID | None) -> _Work | None:
        return None if run_id is None else self._open.get(run_id)

    def _enter(self, run_id: UUID, log: RunLog, step: int | None, kind: str, call_id: str | None = None) -> None:
        self._open[run_id] = work = _Work(log=log, step=step, kind=kind, call_id=call_id)
        run = log.run
        if run is not None and step is not None:
            patch_transports()
            work.before = surroundings()
            surround(log.identity, Place(run=run, step=step))

    def _leave(self, run_id: UUID) -> _Work | None:
        """The step is over. Where it ends in another task than it began in, that task's own place stays."""
        work = self._open.pop(run_id, None)
        here = current_place()
        if work is not None and work.before is not None and here is not None and here.step == work.step:
            surround(*work.before)
        return work


def _place(outer: _Work | None) -> Place | None:
    """What a run is inside of: the tool that started it, else what the code runs in."""
    run = None if outer is None else outer.log.run
    return current_place() if outer is None or run is None else Place(run=run, step=outer.step)


def patch(module: ModuleType) -> None:
    """Record every run; `module` is `langchain_core.callbacks.manager`."""
    from langchain_core.tracers.context import register_configure_hook

    if not hasattr(module, "replay_recorder"):
        handler = ReplayCallbackHandler()
        # A default is what every thread and task finds, also those that take over nothing.
        variable: ContextVar[Any] = ContextVar("replay_recorder_langchain", default=handler)
        register_configure_hook(variable, inheritable=True)
        vars(module)["replay_recorder"] = variable
