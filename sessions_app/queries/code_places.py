"""Where the team's own code can replay a run."""

from __future__ import annotations

import json

from sessions_app.core.run import OPENAI_AGENTS
from sessions_app.models import Run

ONLY_ON_OWN_MACHINE = (
    "This run was recorded by the OpenAI Agents SDK, and the server runs agents of Pydantic AI alone. "
    "Your code replays it on your own machine."
)


def why_not_on_the_server(run: Run) -> str | None:
    """What keeps a registered agent from replaying this run; None when nothing does."""
    agent = json.loads(bytes(run.content.header)).get("agent")
    is_of_sdk = isinstance(agent, dict) and agent.get("framework") == OPENAI_AGENTS
    return ONLY_ON_OWN_MACHINE if is_of_sdk else None
