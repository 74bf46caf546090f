"""Hooks behind the request that change the model's answer: they run again, and are given what the model gave."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic_ai import TextPart
from pydantic_ai.capabilities import Hooks

from sessions_app.agents.own_code.registry import OwnAgent
from sessions_app.core.fork.order import read_order
from sessions_app.core.ran_with import TOLD
from sessions_app.core.replay.agreement import produced
from sessions_app.core.run import Run
from tests.agents.own_agents import fork_made_by, observed_by, place, recorded_run, replayed_by
from tests.recorder.playing import WAYS
from tests.recorder.scenarios import Play, call, says, support_agent


def _marked(response: Any, word: str) -> Any:
    parts = [
        dataclasses.replace(part, content=part.content + word) if isinstance(part, TextPart) else part
        for part in response.parts
    ]
    return dataclasses.replace(response, parts=parts)


def marking(word: str) -> Hooks[Any]:
    hooks: Hooks[Any] = Hooks()

    @hooks.on.after_model_request
    async def mark(ctx: Any, *, request_context: Any, response: Any) -> Any:
        return _marked(response, word)

    return hooks


def marking_in_place(word: str) -> Hooks[Any]:
    hooks: Hooks[Any] = Hooks()

    @hooks.on.after_model_request
    async def mark(ctx: Any, *, request_context: Any, response: Any) -> Any:
        for part in response.parts:
            if isinstance(part, TextPart):
                part.content += word
            else:
                part.args["order_id"] += word
        return response

    return hooks


def marking_around(word: str) -> Hooks[Any]:
    hooks: Hooks[Any] = Hooks()

    @hooks.on.model_request
    async def mark(ctx: Any, *, request_context: Any, handler: Any) -> Any:
        return _marked(await handler(request_context), word)

    return hooks


def play(hooks: Any, word: str, first: str | None = None) -> Play:
    looks = says(*[text for text in [first] if text], call("lookup_order", {"order_id": "ORD-1"}, "a"))
    return Play(support_agent(looks, says("Ok."), capabilities=[hooks(word)]), "Where is it?")


CASES = [
    *((marking, way, "Looking.") for way in WAYS),
    *((hooks, way, None) for hooks in (marking, marking_in_place, marking_around) for way in ("run", "run_stream")),
]


@dataclass(frozen=True)
class Case:
    run: Run
    hooks: Any
    first: str | None

    def play(self, word: str) -> Play:
        return play(self.hooks, word, self.first)

    @property
    def step(self) -> int:
        """Of the first answer that the hook changes."""
        return 1 if self.first or self.hooks is marking_in_place else 3


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0].__name__}-{case[1]}-{case[2]}")
def case(request: Any) -> Case:
    hooks, way, first = request.param
    return Case(recorded_run(lambda: play(hooks, "~", first), way), hooks, first)


WORDS = [("~", False), ("!", True), ("", True)]


@pytest.mark.parametrize(("word", "differs"), WORDS)
def test_todays_hook_changes_what_the_model_gave(case: Case, word: str, differs: bool):
    result = replayed_by(case.run, OwnAgent(agent=case.play(word).agent), runs_tools=True)

    found = ("diverged", case.step, "response") if differs else ("reproduced", None, None)
    assert place(result) == found
    assert result.observations is not None
    agreed, again = produced(case.run, result, result.observations, run_id="again")
    assert place(agreed) == found
    if not differs:
        assert place(replayed_by(again, OwnAgent(agent=case.play(word).agent))) == found


@pytest.mark.parametrize(("word", "differs"), WORDS)
def test_so_it_does_on_a_persons_own_machine(case: Case, word: str, differs: bool):
    result = observed_by(case.run, case.play(word))

    assert place(result) == (("diverged", case.step, "response") if differs else ("reproduced", None, None))


@pytest.mark.parametrize(("word", "verdict"), [("", "reproduced"), ("~", "unknown_from_step")])
def test_a_recording_without_the_models_own_answers_is_judged_in_words(word: str, verdict: str):
    """Of messages alone nobody can say whether a hook has changed them."""
    told = recorded_run(lambda: play(marking, "~"))
    extra = {name: value for name, value in told.extra.items() if name != TOLD}
    steps = tuple(dataclasses.replace(step, extra={}) for step in told.steps)
    run = dataclasses.replace(told, extra=extra, steps=steps)

    result = replayed_by(run, OwnAgent(agent=play(marking, word).agent))

    assert result.verdict == verdict
    observed = observed_by(run, play(marking, word))
    assert observed.verdict == verdict
    if word:
        said = "A hook of the agent changed the recorded answer of step 3."
        assert [each.facts["limit"]["reason"].startswith(said) for each in (result, observed)] == [True, True]


def test_a_fork_of_unchanged_code_keeps_what_the_model_gave():
    run = recorded_run(lambda: play(marking, "~", "Looking."))
    change = {"kind": "agent", "value": "desk"}
    order = read_order({"at_step": 1, "agent": "desk", "changes": [change], "hypothesis": "none", "expect": "the same"})

    result, made = fork_made_by(run, OwnAgent(agent=play(marking, "~", "Looking.").agent), order)

    assert place(result) == ("reproduced", None, None)
    assert made is not None
    again = replayed_by(made, OwnAgent(agent=play(marking, "~", "Looking.").agent))
    assert place(again) == ("reproduced", None, None)
