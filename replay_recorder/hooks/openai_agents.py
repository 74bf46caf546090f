"""Records runs of the OpenAI Agents SDK (0.8 and later): `install()` does it for every run of the SDK's own runner.

What a run is made of comes from the SDK's run hooks, beside the team's own; see `openai_agents_hooks`. Three things
no hook says: when a run begins and how it ends, what exactly a model was asked, and what a tool raised when the
model is told of it. For these the runner, the classes of models and one function are wrapped.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from types import ModuleType
from typing import TYPE_CHECKING, Any

from replay_recorder.guard import guard
from replay_recorder.hooks.openai_agents_calls import current_call
from replay_recorder.hooks.openai_agents_run import RunLog, recording_of, version
from replay_recorder.recorder import active

if TYPE_CHECKING:
    from replay_recorder.hooks.openai_agents_hooks import ReplayRunHooks, ReplayTracingProcessor

__all__ = ["ReplayRunHooks", "ReplayTracingProcessor", "patch"]

_TELLS_THE_MODEL = "maybe_invoke_function_tool_failure_error_function"
_entry_point: ContextVar[str] = ContextVar("replay_recorder_openai_entry_point", default="run")


def __getattr__(name: str) -> Any:
    """These need the SDK, which may not be loaded yet, or may be loading this module."""
    if name in ("ReplayRunHooks", "ReplayTracingProcessor"):
        from replay_recorder.hooks import openai_agents_hooks

        return getattr(openai_agents_hooks, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def patch(module: ModuleType) -> None:
    """Record every run; `module` is `agents.run`. A module of somebody else's that has this name is left alone."""
    runner = getattr(module, "AgentRunner", None)
    if not isinstance(runner, type) or version() is None or hasattr(getattr(runner, "run", None), "replay_recorder"):
        return
    _replace(runner, "run", _recorded_run)
    _replace(runner, "run_sync", _recorded_run_sync)
    _replace(runner, "run_streamed", _recorded_run_streamed)
    if hasattr(_tool_module(), _TELLS_THE_MODEL):
        _replace(_tool_module(), _TELLS_THE_MODEL, _noting_failures)


def _tool_module() -> ModuleType:
    import agents.tool

    return agents.tool


def _replace(owner: Any, function: str, recorded: Callable[[Any], Any]) -> None:
    original = getattr(owner, function)
    replaced: Any = functools.wraps(original)(recorded(original))
    replaced.replay_recorder = True
    setattr(owner, function, replaced)


def _open(agent: Any, input: Any, options: dict[str, Any], entry: str) -> tuple[RunLog | None, dict[str, Any]]:
    """The recording of a run, and the options with which it is recorded; None when it is not."""
    recorder = active()
    if recorder is None:
        return None, options
    with guard("run_began"):
        from replay_recorder.hooks.openai_agents_hooks import ensure_processor

        with guard("ensure_processor"):
            ensure_processor()
        log = RunLog.open(recorder, agent, input, options, entry)
        if log is not None:
            return log, {**options, "hooks": _hooks(options.get("hooks"), log)}
    return None, options


def _hooks(given: Any, log: RunLog) -> Any:
    """Around those of the team; what is no run hook is the SDK's to refuse."""
    from agents.lifecycle import RunHooksBase

    from replay_recorder.hooks.openai_agents_hooks import ReplayRunHooks

    if isinstance(given, ReplayRunHooks):
        given = given.hooks
    return ReplayRunHooks(given, log=log) if given is None or isinstance(given, RunHooksBase) else given


def _recorded_run(original: Callable[..., Any]) -> Callable[..., Any]:
    async def run(self: Any, starting_agent: Any, input: Any, **options: Any) -> Any:
        entry = _entry_point.get()
        _entry_point.set("run")
        log, options = _open(starting_agent, input, options, entry)
        if log is None:
            return await original(self, starting_agent, input, **options)
        with recording_of(log):
            try:
                result = await original(self, starting_agent, input, **options)
            except BaseException as error:
                with guard("run_failed"):
                    log.failed(error)
                raise
        with guard("run_ended"):
            log.succeeded(result)
        return result

    return run


def _recorded_run_sync(original: Callable[..., Any]) -> Callable[..., Any]:
    """It goes through `run`, in a task that knows what is set here."""

    def run_sync(self: Any, starting_agent: Any, input: Any, **options: Any) -> Any:
        token = _entry_point.set("run_sync")
        try:
            return original(self, starting_agent, input, **options)
        finally:
            _entry_point.reset(token)

    return run_sync


def _recorded_run_streamed(original: Callable[..., Any]) -> Callable[..., Any]:
    """The loop runs in a task of its own, which takes over what is set here."""

    def run_streamed(self: Any, starting_agent: Any, input: Any, **options: Any) -> Any:
        log, options = _open(starting_agent, input, options, "run_streamed")
        if log is None:
            return original(self, starting_agent, input, **options)
        with recording_of(log):
            try:
                streamed = original(self, starting_agent, input, **options)
            except BaseException as error:
                with guard("run_failed"):
                    log.failed(error)
                raise
        with guard("run_ended"):
            _watch(log, streamed)
        return streamed

    return run_streamed


def _watch(log: RunLog, streamed: Any) -> None:
    task = getattr(streamed, "run_loop_task", None)
    if task is not None:
        task.add_done_callback(functools.partial(_stream_ended, log, streamed))
    else:
        # An old SDK: nobody will say how the run ends, and its file must not stay open.
        log.ended(None)


def _stream_ended(log: RunLog, streamed: Any, task: Any) -> None:
    with guard("run_ended"):
        log.stream_ended(streamed, task)


def _noting_failures(original: Callable[..., Any]) -> Callable[..., Any]:
    """The model is told in words what a tool raised; the exception itself comes by here."""

    async def maybe_invoke(*args: Any, **named: Any) -> Any:
        with guard("tool_failed"):
            call = current_call.get()
            if call is not None:
                call.error = named.get("error")
        return await original(*args, **named)

    return maybe_invoke
