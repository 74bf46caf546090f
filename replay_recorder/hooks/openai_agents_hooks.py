"""Where the OpenAI Agents SDK calls the recorder: its run hooks and its tracing."""

from __future__ import annotations

from collections.abc import Coroutine
from types import TracebackType
from typing import Any, ClassVar
from weakref import WeakSet

from agents.lifecycle import RunHooksBase
from agents.models.interface import Model
from agents.tracing import TracingProcessor, get_current_trace, get_trace_provider

from replay_recorder.context import Place, current_place
from replay_recorder.guard import guard
from replay_recorder.hooks.openai_agents_models import watch_models
from replay_recorder.hooks.openai_agents_run import RunLog, guardrail_step, traced_guardrails
from replay_recorder.recorder import active
from replay_recorder.writing.json_text import name

Done = Coroutine[Any, Any, None]


class ReplayRunHooks(RunHooksBase[Any, Any]):
    """Records the one run that it is given to, and calls the hooks that it is put around.

    `install()` does this for every run of the SDK's own runner. For a runner of your own:

        with ReplayRunHooks(my_hooks) as hooks:
            await my_runner.run(agent, "…", hooks=hooks)

    The methods are no coroutine functions: they do their work when they are called, in the task that goes on to
    ask the model or to run the tool, so that what happens there belongs to the right step.
    """

    def __init__(self, hooks: RunHooksBase[Any, Any] | None = None, *, log: RunLog | None = None) -> None:
        """`log` is the run's recording; without one it begins with the first hook that is called."""
        self.hooks: RunHooksBase[Any, Any] = hooks if hooks is not None else RunHooksBase()
        self._log = log
        self._has_own_log = False

    def on_agent_start(self, context: Any, agent: Any) -> Done:
        with guard("on_agent_start"):
            self._begin(agent, getattr(context, "turn_input", None) or [], context)
            if self._log is not None:
                self._log.trace_began(get_current_trace())
        return self.hooks.on_agent_start(context, agent)

    def on_llm_start(self, context: Any, agent: Any, system_prompt: str | None, input_items: Any) -> Done:
        with guard("on_llm_start"):
            self._begin(agent, input_items, context)
            if self._log is not None:
                watch_models(Model)
                self._log.model_asked(agent, system_prompt, input_items)
        return self.hooks.on_llm_start(context, agent, system_prompt, input_items)

    def on_llm_end(self, context: Any, agent: Any, response: Any) -> Done:
        with guard("on_llm_end"):
            if self._log is not None:
                self._log.model_answered(response)
        return self.hooks.on_llm_end(context, agent, response)

    def on_tool_start(self, context: Any, agent: Any, tool: Any) -> Done:
        with guard("on_tool_start"):
            if self._log is not None:
                self._log.tool_started(context, agent, tool)
        return self.hooks.on_tool_start(context, agent, tool)

    def on_tool_end(self, context: Any, agent: Any, tool: Any, result: object) -> Done:
        with guard("on_tool_end"):
            if self._log is not None:
                self._log.tool_ended(context, tool, result)
        return self.hooks.on_tool_end(context, agent, tool, result)

    def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> Done:
        with guard("on_handoff"):
            if self._log is not None:
                self._log.handed_off(from_agent, to_agent)
        return self.hooks.on_handoff(context, from_agent, to_agent)

    def on_agent_end(self, context: Any, agent: Any, output: Any) -> Done:
        with guard("on_agent_end"):
            if self._log is not None:
                self._log.agent_ended(agent, output)
        return self.hooks.on_agent_end(context, agent, output)

    # --- a run that the SDK's own runner does not know

    def _begin(self, agent: Any, items: Any, context: Any) -> None:
        recorder = active()
        if self._log is None and recorder is not None and not self._has_own_log:
            self._has_own_log = True
            self._log = RunLog.open(recorder, agent, items, {"context": context}, "run")

    def __enter__(self) -> ReplayRunHooks:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with guard("run_ended"):
            if self._log is not None and self._has_own_log:
                self._log.ended(error)


def pass_on(hooks: type, base: type) -> None:
    """Hooks that this version of the SDK has beside the above go straight to those of the team."""
    for hook in dir(base):
        if hook.startswith("on_") and hook not in vars(hooks):
            setattr(hooks, hook, _passed_on(hook))


def _passed_on(hook: str) -> Any:
    def call(self: ReplayRunHooks, *args: Any, **named: Any) -> Any:
        return getattr(self.hooks, hook)(*args, **named)

    return call


pass_on(ReplayRunHooks, RunHooksBase)


class ReplayTracingProcessor(TracingProcessor):
    """What hooks do not see, from the SDK's tracing: the team's own spans, guardrails, lists of MCP tools.

    Each becomes a step of the run that it began in. `install()` adds one beside the processors that are there.
    """

    _steps: ClassVar[dict[str, Place]] = {}
    """Steps by the span that they stand for, as long as it is open; shared, so that two processors write one."""

    def on_span_start(self, span: Any) -> None:
        with guard("on_span_start"):
            place, read = current_place(), _SPANS.get(getattr(span.span_data, "type", ""))
            if active() is None or place is None or read is None or span.span_id in self._steps:
                return
            outer = self._steps.get(span.parent_id or "")
            parent = outer.step if outer is not None and outer.run is place.run else place.step
            step = place.run.begin("other", name=name(read(span.span_data)["name"]), parent=parent)
            self._steps[span.span_id] = Place(run=place.run, step=step)
            if span.span_data.type == "guardrail":
                traced_guardrails.add(place.run)

    def on_span_end(self, span: Any) -> None:
        with guard("on_span_end"):
            place = self._steps.pop(span.span_id, None)
            if place is None or place.step is None:
                return
            error = span.error and {"type": None, "message": span.error["message"], "data": span.error.get("data")}
            place.run.end(place.step, **_SPANS[span.span_data.type](span.span_data), error=error)

    def on_trace_start(self, trace: Any) -> None:
        return None

    def on_trace_end(self, trace: Any) -> None:
        return None

    def shutdown(self) -> None:
        return None

    def force_flush(self) -> None:
        return None


def _custom(data: Any) -> dict[str, Any]:
    return {"name": name(data.name) or "span", "span": "custom", "result": data.data or None}


def _guardrail(data: Any) -> dict[str, Any]:
    return guardrail_step(data.name, data.triggered)


def _mcp_tools(data: Any) -> dict[str, Any]:
    return {"name": "MCP tools", "span": "mcp_tools", "arguments": {"server": data.server}, "result": data.result}


_SPANS = {"custom": _custom, "guardrail": _guardrail, "mcp_tools": _mcp_tools}
_PROCESSOR = ReplayTracingProcessor()


_added: WeakSet[Any] = WeakSet()
"""Providers of the team's own that have it; they do not say what they have."""


def ensure_processor() -> None:
    """Add our processor unless one is there. The team may have set its own list since the last run."""
    provider = get_trace_provider()
    processors = getattr(getattr(provider, "_multi_processor", None), "_processors", None)
    if processors is None:
        is_there = provider in _added
    else:
        is_there = any(isinstance(each, ReplayTracingProcessor) for each in processors)
    if not is_there:
        provider.register_processor(_PROCESSOR)
        _added.add(provider)
