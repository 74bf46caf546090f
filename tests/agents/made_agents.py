"""Agents made from a number: tools in every place that Pydantic AI has for them, each counting how often it ran.

`opened` counts toolsets that were opened, as a server would be.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

from pydantic import BaseModel
from pydantic_ai import Agent, FunctionToolset, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelResponse
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset
from pydantic_ai.toolsets.abstract import ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from sessions_app.agents.own_code.registry import OwnAgent
from tests.recorder.scenarios import Scripted, call, says

ANY_OBJECT = SchemaValidator(core_schema.dict_schema(core_schema.str_schema()))
SCHEMA = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}


class Answer(BaseModel):
    text: str
    score: int = 1


@dataclass
class Made:
    """An agent and what its code did so far."""

    random: random.Random
    ran: Counter[str] = field(default_factory=Counter)
    opened: Counter[str] = field(default_factory=Counter)
    names: list[str] = field(default_factory=list)
    """Names of the tools as models see them."""
    toolsets: list[AbstractToolset[Any]] = field(default_factory=list)
    capabilities: list[AbstractCapability[Any]] = field(default_factory=list)
    added: list[Callable[[Agent[None, Any]], object]] = field(default_factory=list)

    def write(self, name: str, key: str) -> dict[str, Any]:
        self.ran[name] += 1
        return {"key": key, "by": name}

    def function(self, name: str) -> Callable[..., Any]:
        """Sync or async, as the agents' tools are."""

        def sync(key: str) -> dict[str, Any]:
            """Write."""
            return self.write(name, key)

        async def later(key: str) -> dict[str, Any]:
            """Write."""
            await asyncio.sleep(0)
            return self.write(name, key)

        made = self.random.choice((sync, later))
        made.__name__ = name
        return made

    def functions(self, name: str) -> FunctionToolset[Any]:
        return FunctionToolset([self.function(name)])


class Server(AbstractToolset[Any]):
    """Has to be opened before it can list its tools, as an MCP server over stdio."""

    def __init__(self, made: Made, name: str, identity: str | None) -> None:
        self._made, self._name, self._identity = made, name, identity

    @property
    def id(self) -> str | None:
        return self._identity

    async def __aenter__(self) -> Self:
        self._made.opened[self._name] += 1
        return self

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        definition = ToolDefinition(name=self._name, description="Of a server.", parameters_json_schema=SCHEMA)
        tool = ToolsetTool(toolset=self, tool_def=definition, max_retries=1, args_validator=ANY_OBJECT)
        return {self._name: tool}

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        return self._made.write(self._name, tool_args["key"])


class Bringing(AbstractCapability[Any]):
    def __init__(self, toolset: AbstractToolset[Any]) -> None:
        self._toolset = toolset

    def get_toolset(self) -> AbstractToolset[Any]:
        return self._toolset


# --- places for a tool --------------------------------------------------------------------------


def on_the_agent(made: Made, name: str) -> str:
    made.added.append(lambda agent: agent.tool_plain(made.function(name)))
    return name


def in_a_toolset(made: Made, name: str) -> str:
    made.toolsets.append(made.functions(name))
    return name


def prefixed(made: Made, name: str) -> str:
    made.toolsets.append(made.functions(name).prefixed("pre"))
    return f"pre_{name}"


def renamed(made: Made, name: str) -> str:
    made.toolsets.append(made.functions(name).renamed({f"new_{name}": name}))
    return f"new_{name}"


def nested(made: Made, name: str) -> str:
    inner = CombinedToolset([made.functions(name).filtered(lambda ctx, tool: True)])
    made.toolsets.append(CombinedToolset([inner]).prefixed("deep"))
    return f"deep_{name}"


def dynamic(made: Made, name: str) -> str:
    functions, each_step = made.functions(name), made.random.random() < 0.5

    def toolset(ctx: RunContext[None]) -> AbstractToolset[Any]:
        return functions

    made.added.append(lambda agent: agent.toolset(per_run_step=each_step)(toolset))
    return name


def dynamic_server(made: Made, name: str) -> str:
    def toolset(ctx: RunContext[None]) -> AbstractToolset[Any]:
        return Server(made, name, f"dynamic_{name}")

    made.added.append(lambda agent: agent.toolset(per_run_step=False)(toolset))
    return name


def of_a_capability(made: Made, name: str) -> str:
    made.capabilities.append(Bringing(made.functions(name)))
    return name


def on_a_server(made: Made, name: str) -> str:
    made.toolsets.append(Server(made, name, made.random.choice((None, f"server_{name}"))))
    return name


def on_a_prefixed_server(made: Made, name: str) -> str:
    made.toolsets.append(Server(made, name, f"server_{name}").prefixed("mcp"))
    return f"mcp_{name}"


def delegating(made: Made, name: str) -> str:
    """The tool runs another agent, whose own tool writes."""
    writing = made.function(f"{name}_helper")
    writing.__name__ = "write"

    async def delegate(key: str) -> str:
        """Delegate."""
        made.write(name, key)
        script = says(call("write", {"key": "k"}, "inner")), says("Done.")
        helper: Agent[None, str] = Agent(Scripted(*script), name=f"helper_{name}", tools=[writing])
        return (await helper.run(key)).output

    delegate.__name__ = name
    made.added.append(lambda agent: agent.tool_plain(delegate))
    return name


PLACES = (
    *(on_the_agent, in_a_toolset, prefixed, renamed, nested, dynamic, dynamic_server, of_a_capability),
    *(on_a_server, on_a_prefixed_server, delegating),
)


# --- the whole ----------------------------------------------------------------------------------


def made_agent(seed: int) -> tuple[OwnAgent, Made]:
    """The same agent for the same number each time."""
    made = Made(random.Random(seed))
    for position, place in enumerate(made.random.sample(PLACES, made.random.randint(1, 4))):
        made.names.append(place(made, f"tool_{position}"))
    output, last = made.random.choice((_text, _structured, _by_function))(made)
    agent: Agent[None, Any] = Agent(
        Scripted(*_script(made), last),
        name=f"made_{seed}",
        instructions="You do as you are told.",
        toolsets=made.toolsets,
        capabilities=made.capabilities,
        output_type=output,
    )
    for add in made.added:
        add(agent)
    return OwnAgent(agent=agent), made


def _script(made: Made) -> list[ModelResponse]:
    """Every tool at least once, some beside each other."""
    called = [*made.names, *made.random.choices(made.names, k=made.random.randint(0, 2))]
    made.random.shuffle(called)
    answers: list[ModelResponse] = []
    while called:
        together = [called.pop() for _ in range(min(len(called), made.random.randint(1, 3)))]
        ids = [f"c{len(answers)}_{position}" for position in range(len(together))]
        pairs = zip(together, ids, strict=True)
        answers.append(says(*(call(name, {"key": made.random.choice("xyz")}, call_id) for name, call_id in pairs)))
    return answers


def _text(made: Made) -> tuple[Any, ModelResponse]:
    return str, says("All done.")


def _structured(made: Made) -> tuple[Any, ModelResponse]:
    return Answer, says(call("final_result", {"text": "done"}, "out"))


def _by_function(made: Made) -> tuple[Any, ModelResponse]:
    def book(text: str) -> str:
        """Book it."""
        made.write("output function", text)
        return f"booked {text}"

    return book, says(call("final_result", {"text": "it"}, "out"))
