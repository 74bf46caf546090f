"""Runs of Pydantic AI whose own spans tell something in a way of their own: none of it is a contradiction."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.toolsets import FunctionToolset

from sessions_app.core.judge.reading import contradicting_model
from sessions_app.core.judge.verdict import judge
from tests.recorder.scenarios import Play, Scripted, call, says
from tests.traces.test_own_code import run_of_spans
from tests.traces.test_replays import outcome


class Named(Scripted):
    def __init__(self, name: str, *script: Any) -> None:
        super().__init__(*script)
        self._name = name

    @property
    def model_name(self) -> str:
        return self._name


class WithSystemInBetween(Scripted):
    """A model that takes words of the system at any place."""

    @property
    def profile(self) -> Any:
        return {**super().profile, "supports_inline_system_prompts": True}


def fallback() -> Play:
    models = Named("one", ModelHTTPError(500, "one")), Named("other", says("Done."))
    return Play(Agent(FallbackModel(*models)), "Go")


def tool_that_comes_later() -> Play:
    tools: FunctionToolset[None] = FunctionToolset()
    tools.tool_plain(one)
    tools.tool_plain(two)
    script = says(call("one", {"x": 1}, "a")), says(call("two", {"x": 1}, "b")), says("Done.")
    later = tools.filtered(lambda ctx, tool: tool.name == "one" or ctx.run_step > 1)
    return Play(Agent(WithSystemInBetween(*script), instructions="Help.", toolsets=[later]), "Go")


def one(x: int) -> int:
    return x + 1


def two(x: int) -> int:
    return x + 2


@pytest.mark.parametrize("version", [5, 6])
@pytest.mark.parametrize("make", [fallback, tool_that_comes_later])
def test_they_are_reproduced(make, version):
    run = run_of_spans(make(), version)

    assert judge(run).reasons == ()
    assert outcome(run) == ("reproduced", None, None)


def test_a_model_that_no_fallback_names_is_another_one():
    run = run_of_spans(fallback())

    assert contradicting_model(replace(run, model="fallback:one,third")) == "other"
