"""Small agents that nobody thought of: what their models say, what their tools do, and how they are started."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import strategies as st
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, NativeOutput, PromptedOutput, ToolOutput, ToolReturn
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.usage import UsageLimits

from tests.recorder.playing import WAYS, recorded
from tests.recorder.scenarios import CrmDown, Play, Scripted

TEXTS = st.text(max_size=6) | st.sampled_from(["", " ", "Müller’s 箱 🎁", "1.0", "null", "{}", "a\nb", "\x00", "{x}"])
NUMBERS = st.integers(-3, 3) | st.sampled_from([0.0, -0.0, 1.0, 0.1, 1e300, 5e-324, 2**53 + 1, 2**70, -(2**63)])
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(TEXTS, inside, max_size=3),
    max_leaves=5,
)
SPELLINGS = st.sampled_from(
    [
        *('{"value": 1.0}', '{"value": 1e2}', '{"value": 1E+2}', '{"value": -0}', '{"value": 0.10}', "{}", "", " "),
        *('{"value": 123456789012345678901234567890}', '{"value": "\\u00e9"}', ' {"value" :\n1 } ', "null", "[]"),
        *('{"value": 1, "value": 2}', '{"value": NaN}', '{"value": Infinity}', '{"value": ', '"text"', "text"),
    ]
)
"""Arguments as models write them."""


class Refund(BaseModel):
    order_id: str
    amount: int = 1


OUTPUTS: dict[str, Any] = {
    "text": str,
    "tool": Refund,
    "list": list[int],
    "either": [str, Refund],
    "two": [ToolOutput(Refund, name="pay"), ToolOutput(list[int], name="count")],
    "native": NativeOutput(Refund),
    "prompted": PromptedOutput(Refund),
}


@dataclass(frozen=True)
class Script:
    """An agent and a way to start it; its `repr` is all that is needed to see a failure again."""

    answers: tuple[Any, ...]
    output: str = "text"
    way: str = "run"
    prompt: Any = "Go."
    end_strategy: Any = "graceful"
    refusals: int = 0
    """How many outputs the team's check refuses."""
    request_limit: int | None = None
    has_history: bool = False

    def record(self) -> bytes:
        return recorded(self.play(), self.way)[-1]

    def play(self) -> Play:
        limits = UsageLimits(request_limit=self.request_limit)
        arguments: dict[str, Any] = {"usage_limits": limits}
        if self.has_history:
            arguments["message_history"] = _earlier_turn()
        return Play(_agent(self), self.prompt, **arguments)


def _earlier_turn() -> list[Any]:
    agent = Agent(Scripted(ModelResponse(parts=[TextPart("Hello.")])))
    return asyncio.run(agent.run("Hi")).all_messages()


def _agent(script: Script) -> Agent[None, Any]:
    agent: Agent[None, Any] = Agent(
        Scripted(*[_said(answer) for answer in script.answers]),
        output_type=OUTPUTS[script.output],
        instructions="You help.",
        end_strategy=script.end_strategy,
    )
    left = [None] * script.refusals

    @agent.output_validator
    def check(output: Any) -> Any:
        if left:
            left.pop()
            raise ModelRetry("Say it otherwise.")
        return output

    @agent.tool_plain
    def echo(value: Any = None) -> Any:
        """Give it back."""
        return value

    @agent.tool_plain(retries=2)
    def typed(value: int, names: list[str] = ["a"]) -> dict[str, Any]:  # noqa: B006
        """Takes numbers alone."""
        return {"value": value, "names": names}

    @agent.tool_plain
    def again(value: Any = None) -> Any:
        """Is never pleased."""
        raise ModelRetry(f"Not {value!r}.")

    @agent.tool_plain
    def fails(value: Any = None) -> Any:
        """Says no."""
        raise ToolFailed("No.")

    @agent.tool_plain
    def crashes(value: Any = None) -> Any:
        """Ends the run."""
        raise CrmDown("the CRM is down")

    @agent.tool_plain
    def attaches(value: Any = None) -> ToolReturn:
        """Gives more than an answer."""
        return ToolReturn(return_value=value, content=["See:", "this"], metadata={"value": value})

    return agent


def _said(answer: Any) -> ModelResponse | Exception:
    if answer is None:
        return CrmDown("no connection")
    return ModelResponse(parts=[_part(*part) for part in answer])


def _part(kind: str, *said: Any) -> Any:
    if kind == "text":
        return TextPart(*said)
    return ThinkingPart(*said) if kind == "thinking" else ToolCallPart(said[0], said[1], tool_call_id=said[2])


# --- what is tried ------------------------------------------------------------------------------

TOOLS = st.sampled_from(["echo"] * 3 + ["typed"] * 2 + ["again", "fails", "attaches", "crashes", "unknown"])
ARGUMENTS = st.fixed_dictionaries({"value": VALUES}) | st.fixed_dictionaries({"value": st.integers(0, 9)}) | SPELLINGS
IDS = st.sampled_from([f"c{i}" for i in range(30)])
CALLS = st.tuples(st.just("call"), TOOLS, ARGUMENTS | st.none(), IDS)
WORDS = st.tuples(st.just("text"), TEXTS)
THOUGHTS = st.tuples(st.just("thinking"), TEXTS)
OUTPUTS_SAID = st.tuples(
    st.just("call"),
    st.sampled_from(["final_result", "pay", "count"]),
    st.sampled_from(
        [
            *({"order_id": "é", "amount": 2}, {"order_id": "a"}, '{"order_id": "a", "amount": 1.0}', {"amount": -1}),
            *({"order_id": "a", "more": 1}, {"response": [1, 2]}, '{"response": [1.0, "2"]}', {"response": ["x"]}),
            *('{"order_id": ', "", {"order_id": 5}),
        ]
    ),
    IDS,
)
JSON_TEXTS = st.tuples(
    st.just("text"),
    st.sampled_from(
        ['{"order_id": "a"}', '{"order_id":"a","amount":1.0}', '{"order_id": 1}', "no", '{"order_id": "a", "x": 1}']
    ),
)
ANSWERS = st.one_of(
    st.lists(CALLS, min_size=1, max_size=3),
    st.lists(CALLS, min_size=1, max_size=3),
    st.tuples(WORDS, CALLS),
    st.tuples(THOUGHTS, CALLS, CALLS),
    st.lists(WORDS | THOUGHTS | CALLS | OUTPUTS_SAID | JSON_TEXTS, max_size=3),
    st.none(),
)
LAST = st.lists(WORDS, min_size=1, max_size=2) | st.tuples(OUTPUTS_SAID) | st.tuples(JSON_TEXTS)


@st.composite
def scripts(draw: st.DrawFn) -> Script:
    answers = [*draw(st.lists(ANSWERS, max_size=4)), *draw(st.lists(LAST, min_size=1, max_size=2))]
    return Script(
        answers=tuple(None if answer is None else tuple(answer) for answer in answers),
        output=draw(st.sampled_from(["text"] * 3 + [*OUTPUTS])),
        way=draw(st.sampled_from(["run", *WAYS])),
        prompt=draw(st.just("Go.") | TEXTS),
        end_strategy=draw(st.sampled_from(["graceful", "early", "exhaustive"])),
        refusals=draw(st.sampled_from([0, 0, 0, 1, 2])),
        request_limit=draw(st.sampled_from([None, None, 1, 2])),
        has_history=draw(st.booleans()),
    )


# --- recordings of which something is missing ---------------------------------------------------

Record = dict[str, Any]


def cut(record: Record, random: Random) -> Record:
    """As a process leaves it that was killed, or as somebody shortened it."""
    kept = random.randrange(len(record["steps"]))
    is_killed = random.random() < 0.5
    left_out = _WRITTEN_LAST if is_killed else ("final",)
    facts = {key: value for key, value in record.items() if key not in left_out}
    return {**facts, "steps": record["steps"][:kept], **({"status": "cut_off"} if is_killed else {})}


_WRITTEN_LAST = ("output", "error", "final", "duration_ms")


def without_a_field(record: Record, random: Random) -> Record:
    """Of the run, of its agent, or of one step."""
    places = [record, record.get("agent") or {}, *record["steps"]]
    place = random.choice([each for each in places if each])
    names = [name for name in place if name not in _NEEDED]
    if names:
        del place[random.choice(sorted(names))]
    return record


_NEEDED = ("format", "version", "run_id", "kind", "steps", "tool_name")
