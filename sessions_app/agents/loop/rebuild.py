"""An agent from the recording alone: its prompts, tools, output and limits, none of its code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from pydantic_ai import Agent, StructuredDict
from pydantic_ai.capabilities import ToolSearch
from pydantic_ai.messages import BinaryImage, ModelMessage, ModelResponse, SystemPromptPart, UserPromptPart
from pydantic_ai.output import NativeOutput, PromptedOutput, ToolOutput
from pydantic_ai.tools import (
    DeferredToolRequests,
    DeferredToolResults,
    RunContext,
    ToolDenied,
)
from pydantic_ai.usage import RunUsage

from sessions_app.agents.loop.frozen_tools import FrozenToolset, LibraryTools
from sessions_app.agents.loop.library import load_messages, load_prompt, load_request
from sessions_app.agents.loop.native_tools import is_tool_search, native_tools
from sessions_app.agents.loop.observer import Observer
from sessions_app.agents.loop.replay_model import ReplayModel
from sessions_app.agents.loop.stage import Stage
from sessions_app.core.fork.plan import NewPrompt
from sessions_app.core.history import messages, nodes
from sessions_app.core.judge.saved_input import saved_input_contradicts
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.replay.budgets import Budgets
from sessions_app.core.replay.hand_overs import asks_in_several_ways
from sessions_app.core.replay.outputs import hides_output_tools
from sessions_app.core.replay.plan import PlannedAnswer, ReplayPlan, prior_messages
from sessions_app.core.run import SPANS, WAITING, ToolCall

_PLACEHOLDER: JsonObject = {"type": "object", "additionalProperties": True}
"""Recorded output schemas may be recursive, which `StructuredDict` refuses; the observer puts the
recorded one into each request instead."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """What a run is started with."""

    prompt: Any
    history: list[ModelMessage]
    deferred: DeferredToolResults | None
    system_prompts: tuple[str, ...] = ()
    dynamic_prompts: tuple[tuple[str, str], ...] = ()
    """Behind those: the name of the function that made each, and what it said."""
    instructions: NewPrompt | None = None
    """From some request on in place of the recorded ones."""
    usage: RunUsage | None = None
    """What was used up before, as limits count it."""


def rebuild_agent(
    plan: ReplayPlan, model: ReplayModel, stage: Stage, observer: Observer, start: Start
) -> Agent[None, Any]:
    budgets, library = Budgets(plan.run), LibraryTools(stage)
    agent: Agent[None, Any] = Agent(
        model,
        name=plan.run.agent.name,
        output_type=_output_type(plan),
        instructions=_instructions(plan, model) if start.instructions is None else [_new(model, start.instructions)],
        system_prompt=start.system_prompts,
        model_settings=_settings(model),
        retries={"tools": budgets.default, "output": budgets.of_output},
        toolsets=[FrozenToolset(model, stage, budgets)],
        end_strategy=_end_strategy(plan),
        capabilities=[observer, library, *_tool_search(plan, library)],
        deps_type=type(None),
    )
    for made_by, words in start.dynamic_prompts:
        agent.system_prompt(dynamic=True)(_saying(made_by, words))
    return agent


def _tool_search(plan: ReplayPlan, library: LibraryTools) -> list[ToolSearch[None]]:
    """Where the team chose how it searches; the library adds a search of its own otherwise."""
    told = (tool for answer in plan.answers for tool in native_tools(answer.asked_with) if is_tool_search(tool))
    strategy = next((tool.get("strategy") for tool in told), None)
    chosen: Any = library.search if strategy == "custom" else strategy
    return [ToolSearch(strategy=chosen)] if chosen in ("bm25", "regex", library.search) else []


def _saying(name: str, words: str) -> Callable[[], str]:
    """A function of this name, by which the library marks what it made."""

    def prompt() -> str:
        return words

    prompt.__qualname__ = name
    return prompt


def _end_strategy(plan: ReplayPlan) -> Any:
    return plan.run.agent.end_strategy or "graceful"


# --- how it began ------------------------------------------------------------------------------


def recorded_start(plan: ReplayPlan) -> Start:
    """As the recorded run was started."""
    history, first = load_messages(prior_messages(plan.run)), _first_request(plan)
    deferred = _deferred(plan)
    if deferred is not None:
        parts = load_request(first).parts if first is not None else ()
        has_prompt = any(isinstance(part, UserPromptPart) for part in parts)
        prompt = _prompt(plan, first) if first is not None and has_prompt and plan.run.input is not None else None
        return Start(prompt=prompt, history=history, deferred=deferred, system_prompts=())
    if first is None or not _is_plain(first) or (history and _has_fixed_prompts(first)) or _has_open_calls(history):
        extra, prompt = load_messages([first]) if first else [], None if plan.answers[0].history else _input(plan)
        return Start(prompt=prompt, history=[*history, *extra], deferred=None, system_prompts=())
    request = load_request(first)
    system = [part for part in request.parts if isinstance(part, SystemPromptPart)]
    return Start(
        prompt=_prompt(plan, first),
        history=history,
        deferred=None,
        system_prompts=tuple(part.content for part in system if part.dynamic_ref is None),
        dynamic_prompts=_dynamic_prompts(plan),
    )


def _dynamic_prompts(plan: ReplayPlan) -> tuple[tuple[str, str], ...]:
    """As the first request held them: those of earlier turns are made anew when a run begins."""
    requests = (message for message in load_messages(messages(plan.answers[0].history)) if message.kind == "request")
    parts = (part for request in requests for part in request.parts if isinstance(part, SystemPromptPart))
    return tuple({part.dynamic_ref: part.content for part in parts if part.dynamic_ref is not None}.items())


def _first_request(plan: ReplayPlan) -> Payload | None:
    """The first message that this run added to what it started from."""
    history, prior = plan.answers[0].history if plan.answers else None, plan.run.prior
    first, position = messages(history), prior.length if prior else 0
    goes_on = prior is None or any(node == prior for node in nodes(history))
    if goes_on and len(first) > position:
        return first[position]
    # The library drops answers of tools at the beginning for which there is no call, and code such as a history
    # processor may have changed earlier turns, as the library itself does where answers of tools came in two turns;
    # what was added stands last.
    if not first or history == prior:
        return None
    return first[-1] if plan.run.deferred is not None or _is_plain(first[-1]) else None


def _is_plain(first: Payload) -> bool:
    """System prompts and behind them one user prompt: what a run makes of its own start. Others begin as recorded."""
    request = load_request(first)
    kinds = [type(part) for part in request.parts] if request.kind == "request" else []
    return kinds[-1:] == [UserPromptPart] and set(kinds[:-1]) <= {SystemPromptPart}


def _has_fixed_prompts(first: Payload) -> bool:
    """System prompts that no function made: behind earlier turns the loop adds none."""
    return any(isinstance(p, SystemPromptPart) and p.dynamic_ref is None for p in load_request(first).parts)


def _has_open_calls(history: Sequence[ModelMessage]) -> bool:
    """Behind calls that nobody decided the library takes no prompt: it was one of the messages."""
    return bool(history) and isinstance(history[-1], ModelResponse) and bool(history[-1].tool_calls)


def _prompt(plan: ReplayPlan, first: Payload) -> Any:
    """The recorded input; the message that carried it where the input was not captured, where other code than
    this loop made the message of it, and where the record says otherwise beside it."""
    is_own = not plan.run.is_told_by_others and not saved_input_contradicts(plan.run)
    given = _input(plan) if is_own else None
    if given is not None:
        return given
    return next(p.content for p in load_request(first).parts if isinstance(p, UserPromptPart))


def _input(plan: ReplayPlan) -> Any:
    given = plan.run.input
    return load_prompt(given.value) if given is not None and (given.is_text or given.is_json) else None


def _deferred(plan: ReplayPlan) -> DeferredToolResults | None:
    if plan.run.deferred is None:
        return None
    answers = {call.call_id: call for _, call in plan.run.tool_calls}
    results = DeferredToolResults()
    for call_id, outcome in plan.run.decided.items():
        denial = plan.decisions.get(call_id, _denial(answers.get(call_id), outcome))
        results.approvals[call_id] = True if denial is None else ToolDenied(denial)
    return results


def _denial(call: ToolCall | None, outcome: JsonValue) -> str | None:
    """What the model was told of it; None of a call that was approved."""
    return str(call.result.value) if outcome == "denied" and call is not None and call.result is not None else None


def decided_before(plan: ReplayPlan) -> frozenset[str]:
    """Ids of the calls that this run was resumed with: approved, denied, or answered from outside."""
    return frozenset(plan.run.decided)


# --- instructions, settings --------------------------------------------------------------------


def _instructions(plan: ReplayPlan, model: ReplayModel) -> Sequence[Any]:
    """One entry for each recorded part. Those that the agent always has stand in front; the others follow the cursor,
    for functions may say other things from request to request, or nothing."""
    parts = _instruction_parts(plan.answers[0]) if plan.answers else []
    if not parts:
        return [_following(model, _whole_instructions)]
    fixed = [part.get("content", "") for part in takewhile(lambda part: not part.get("dynamic"), parts)]
    most = max(len(_instruction_parts(answer)) for answer in plan.answers)
    return [*fixed, *(_following(model, _part_reader(position)) for position in range(len(fixed), most))]


def _following(
    model: ReplayModel, read: Callable[[PlannedAnswer], str | None]
) -> Callable[[RunContext[None]], str | None]:
    def instructions(ctx: RunContext[None]) -> str | None:
        return read(model.nearest)

    return instructions


def _new(model: ReplayModel, prompt: NewPrompt) -> Callable[[RunContext[None]], str | None]:
    def instructions(ctx: RunContext[None]) -> str | None:
        is_new = model.cursor >= prompt.since and not prompt.is_system_prompt
        return prompt.text if is_new else _whole_instructions(model.nearest)

    return instructions


def _whole_instructions(planned: PlannedAnswer) -> str | None:
    value = (planned.newest or {}).get("instructions")
    return value if isinstance(value, str) else None


def _part_reader(position: int) -> Callable[[PlannedAnswer], str | None]:
    def read(planned: PlannedAnswer) -> str | None:
        parts = _instruction_parts(planned)
        return parts[position].get("content") if position < len(parts) else None

    return read


def _instruction_parts(planned: PlannedAnswer) -> list[JsonObject]:
    return [part for part in planned.asked_with.get("instruction_parts") or [] if isinstance(part, dict)]


def _settings(model: ReplayModel) -> Any:
    def settings(ctx: RunContext[None]) -> Any:
        return model.nearest.settings or {}

    return settings


# --- output ------------------------------------------------------------------------------------


def _output_type(plan: ReplayPlan) -> Any:
    types = [*_structured(plan), *_images(plan)]
    if not types or _allows_text(plan):
        types.append(str)
    if _may_wait(plan):
        types.append(DeferredToolRequests)
    return types[0] if len(types) == 1 else types


def _structured(plan: ReplayPlan) -> list[Any]:
    if asks_in_several_ways(plan.run, plan.answers):
        return []  # each answer is taken for a text, which it is
    parameters = _first_parameters(plan)
    mode = parameters.get("output_mode")
    schema = StructuredDict(_PLACEHOLDER, name="output")
    if mode == "native":
        return [NativeOutput(schema)]
    if mode == "auto":
        return [StructuredDict(dict(_PLACEHOLDER), name=name) for name in _names_of_types(plan)]
    if mode == "prompted":
        return [PromptedOutput(schema, template=parameters.get("prompted_output_template"))]
    return [ToolOutput(StructuredDict(_PLACEHOLDER), name=name) for name in _output_tools(plan)]


def _images(plan: ReplayPlan) -> list[Any]:
    return [BinaryImage] if _first_parameters(plan).get("allow_image_output") else []


def _output_tools(plan: ReplayPlan) -> list[str]:
    first = _first_parameters(plan)
    recorded = first.get("output_tools")
    if hides_output_tools(first):
        recorded = next(filter(None, (each.asked_with.get("output_tools") for each in plan.answers)), recorded)
    if isinstance(recorded, list):
        return [tool["name"] for tool in recorded]
    return sorted({call.tool_name for _, call in plan.run.tool_calls if call.is_output})


def _names_of_types(plan: ReplayPlan) -> list[str | None]:
    """Of several types that go without names the library calls each tool by its type."""
    names = _output_tools(plan)
    return [None] if len(names) < 2 else [name.removeprefix(_UNNAMED) for name in names]


_UNNAMED = "final_result_"


def _allows_text(plan: ReplayPlan) -> bool:
    parameters = _first_parameters(plan)
    if parameters.get("output_mode") in ("auto", "native", "prompted", "image"):
        return False
    is_likely = plan.run.source_format == SPANS or not _output_tools(plan) or _was_text_refused(plan)
    return bool(parameters.get("allow_text_output", is_likely))


def _was_text_refused(plan: ReplayPlan) -> bool:
    """Whether a text was tried as the output: the loop itself refuses one where none is allowed."""
    told = (part for answer in plan.answers for part in (answer.newest or {}).get("parts") or [])
    refused = (part.get("retry") or {} for part in told if part.get("part_kind") == "retry-feedback")
    return any(retry.get("cause") != "no_output" for retry in refused)


def _may_wait(plan: ReplayPlan) -> bool:
    """Output may include calls that wait for somebody; seen in the tools' kinds and in calls left open."""
    kinds = {tool.get("kind") for answer in plan.answers for tool in answer.tools}
    outcomes = {call.outcome for _, call in plan.run.tool_calls}
    return bool(kinds & {"unapproved", "external"} or outcomes & WAITING)


def _first_parameters(plan: ReplayPlan) -> JsonObject:
    return plan.answers[0].asked_with if plan.answers else {}
