"""What the team's own code can do with a run on this server."""

from __future__ import annotations

import json

from sessions_app.core.fork.order import Order
from sessions_app.core.replay.parts import NOT_WITH_SDK
from sessions_app.core.run import OPENAI_AGENTS
from sessions_app.models import Run


def why_not_forked(run: Run) -> str | None:
    """What keeps a registered agent from forking this run, or from going live for it; None when nothing does."""
    agent = json.loads(run.content.intact_header).get("agent")
    is_of_sdk = isinstance(agent, dict) and agent.get("framework") == OPENAI_AGENTS
    return f"This run was recorded by the OpenAI Agents SDK. {NOT_WITH_SDK}" if is_of_sdk else None


def why_not_replayed(run: Run, order: Order) -> tuple[str, str] | None:
    """What keeps the order's agent from replaying this run, and the field of the order that asks for it."""
    if order.agent is None or not (order.is_fork or order.tools.live):
        return None
    refusal = why_not_forked(run)
    return None if refusal is None else (refusal, "agent" if order.is_fork else "tools.live")
