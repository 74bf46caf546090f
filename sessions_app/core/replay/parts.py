"""The four parts of a replay, each chosen: whose agent runs, who answers for the model, what becomes of tools, state.

preset              agent     model     tools   what it proves
recording           rebuilt   recorded  frozen  that the recording is complete and consistent; nothing of your code
code                yours     recorded  frozen  that today's code makes the same requests as the code of that day
code_and_tools      yours     recorded  run     that today's code and tools do what they did, or where a fix begins
live                either    live      frozen  how often a model of today does it again; nothing of what it did then
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

AgentPart = Literal["rebuilt", "yours"]
ModelPart = Literal["recorded", "recorded_for_others", "recorded_then_live", "live"]
ToolsPart = Literal["frozen", "run"]
Preset = Literal["recording", "code", "code_and_tools", "live"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """What a replay is made of."""

    agent: AgentPart
    tools: ToolsPart
    model: ModelPart = "recorded"
    asked: str | None = None
    """Which live model was asked, and how; None where none was."""
    is_on_own_machine: bool = False
    """Whether it ran on a person's own machine, where nothing is sealed."""
    name: str | None = None
    """Of the agent, where it is yours."""
    live: tuple[str, ...] = ()
    """Tools that ran with a network, whatever became of the others."""

    @property
    def brief(self) -> str:
        """What was chosen, for one line among other attempts; what became of the state is for its proof to say."""
        agent = f"your code, {self.name}" if self.name else _BRIEF_AGENTS[self.agent]
        place = " on your own machine" if self.is_on_own_machine else ""
        live = f", live: {', '.join(self.live)}" if self.live else ""
        return f"agent: {agent}{place} · model: {_BRIEF_MODELS[self.model]} · tools: {self.tools}{live}"

    @property
    def proves(self) -> str:
        """What this combination can show, and what it cannot: sentences for the head of a report."""
        if self.model == "live":
            return _PROVES_LIVE
        return _PROVES_LIVE_TOOLS if self.live else _PROVES[self.agent, self.tools]

    def in_words(self, *, has_proof: bool) -> str:
        """What became of the state is for the proof to say, where there is one."""
        rows = (row for row in self.rows if row[0] != "state" or not has_proof)
        return "; ".join(f"{name}: {words}" for name, words in rows)

    @property
    def rows(self) -> list[tuple[str, str]]:
        """Each part and what was chosen, in words."""
        return [
            ("agent", _AGENTS[self.agent]),
            ("model", _MODELS[self.model] + (f" ({self.asked})" if self.asked else "")),
            ("tools", self._tools),
            ("state", self._state),
        ]

    @property
    def _state(self) -> str:
        if self.model == "live":
            return _CARRIED
        if self.is_on_own_machine:
            return _OWN_STATE if self.tools == "run" else _CARRIED
        if self.agent == "rebuilt":
            return _CARRIED
        return _REGISTERED_STATE if self.tools == "run" else _RESTORED

    @property
    def _tools(self) -> str:
        words = _UNSEALED_TOOLS if self.is_on_own_machine and self.tools == "run" else _TOOLS[self.tools]
        return f"{words}; live, with a network: {', '.join(self.live)}" if self.live else words


NOT_WITH_SDK = (
    "OpenAI Agents SDK code replays with the recorded model answers, and its tools are either frozen or run. It cannot "
    "fork a run, and it cannot use a live model or live tools."
)

PRESET_WORDS: dict[Preset, str] = {
    "recording": "From the recording",
    "code": "Your code",
    "code_and_tools": "Your code and tools",
    "live": "Recorded run, live model",
}


def parts_of(
    *,
    agent: str | None,
    runs_tools: bool,
    model: ModelPart = "recorded",
    asked: str | None = None,
    is_on_own_machine: bool = False,
    live: Iterable[str] = (),
) -> Parts:
    """`agent` is the registered name, or None for one that is rebuilt from the recording."""
    return Parts(
        agent="rebuilt" if agent is None else "yours",
        tools="run" if runs_tools else "frozen",
        model=model,
        asked=asked,
        is_on_own_machine=is_on_own_machine,
        name=agent,
        live=tuple(sorted(live)),
    )


_AGENTS: dict[AgentPart, str] = {"rebuilt": "rebuilt from the recording", "yours": "today's version of your code"}
_MODELS: dict[ModelPart, str] = {
    "recorded": "the recorded answers",
    "recorded_for_others": "the recorded answers, even to requests that differ",
    "recorded_then_live": "the recorded answers; a live model from the first request that differs",
    "live": "a live model, called at every step",
}
_BRIEF_AGENTS: dict[AgentPart, str] = {"rebuilt": "rebuilt", "yours": "your code"}
_BRIEF_MODELS: dict[ModelPart, str] = {
    "recorded": "recorded",
    "recorded_for_others": "recorded, even for different requests",
    "recorded_then_live": "recorded, then live",
    "live": "live",
}
_TOOLS: dict[ToolsPart, str] = {
    "frozen": "frozen: they return the recorded answers",
    "run": "run: your functions, in isolation",
}
_UNSEALED_TOOLS = "run: your functions, on your own machine, not sandboxed"
_CARRIED = "carried over where it was recorded, not run"
_REGISTERED_STATE = "restored and read after each step, where the registration says how; otherwise not compared"
_RESTORED = "restored at the start, where the registration says how; what frozen tools change is carried over, not run"
_OWN_STATE = "as your code left it, compared where it was observed"
_PROVES_LIVE = (
    "Shows how often today's model does the same in the recorded scene: the same calls, the same outcome. "
    "It is a sample and says nothing about what the model did then."
)
_PROVES_LIVE_TOOLS = (
    "Shows whether your code sends the model the recorded requests, and whether the live tools return the recorded "
    "answers. The other tools returned their recorded answers and did not run."
)
_PROVES: dict[tuple[AgentPart, ToolsPart], str] = {
    ("rebuilt", "frozen"): "This checks the recording, not your code.",
    ("yours", "frozen"): "Shows whether your code sends the model the recorded requests. The tools did not run, "
    "so a change inside a tool does not show.",
    ("yours", "run"): "Shows whether your code and tools behave as recorded, or where a change takes effect.",
}
