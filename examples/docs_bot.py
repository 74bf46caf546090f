"""The docs bot with its endless search: it asks for the same words twenty times, finds nothing, and gives up.

    python -m examples.docs_bot            # the loop
    python -m examples.docs_bot --fixed    # the same question to the repaired bot, which says that it knows nothing

Needs pydantic-ai-slim. The model is scripted, so it needs no key and loops the same way every time; the agent, its tool
and the recording are real. With REPLAY_URL and REPLAY_KEY set the run is sent to that server, else it stays in a
folder.
"""

from __future__ import annotations

import argparse
import tempfile
import uuid
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, UsageLimitExceeded, UsageLimits
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import replay_recorder

QUESTION = "What is your refund policy?"
LIMIT = UsageLimits(request_limit=20)


def docs_bot(*, checks_for_empty: bool) -> Agent[None, str]:
    model = FunctionModel(decide, model_name="scripted-1")
    agent = Agent(model, name="docs_bot", instructions="You answer from our documents. Search them first.")

    @agent.tool_plain
    def search_docs(query: str) -> dict[str, Any]:
        """Search the documents, of which there are none."""
        found: dict[str, Any] = {"docs": [], "count": 0}
        if checks_for_empty:
            found["advice"] = f"I don't have any documents about {query}. Please ask our support team."
        return found

    return agent


def decide(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """The model: it searches until it finds something, unless it is told what to say."""
    match messages[-1].parts[-1]:
        case ToolReturnPart(content={"advice": str(advice)}):
            return ModelResponse([TextPart(advice)])
        case ToolReturnPart(content={"docs": [document, *_]}):
            return ModelResponse([TextPart(str(document))])
        case _:
            return ModelResponse([ToolCallPart("search_docs", {"query": "refund policy"})])


def main(is_fixed: bool, folder: str) -> None:
    replay_recorder.install(spool=folder, agent_version="v2_with_empty_check" if is_fixed else "v1")
    run_id = f"run_{uuid.uuid4().hex[:6]}"
    print(f"Asked:    {QUESTION}")
    with replay_recorder.context(user_id="u_4630", tenant_id="t_east", flags={}):
        try:
            bot = docs_bot(checks_for_empty=is_fixed)
            result = bot.run_sync(QUESTION, run_id=run_id, conversation_id=run_id, usage_limits=LIMIT)
            print(f"Answered: {result.output} (tool calls: {result.usage.tool_calls})")
        except UsageLimitExceeded as error:
            print(f"Gave up:  {str(error).partition('. ')[0]}")
    print(f"Recorded: {run_id}, {whereabouts(folder)}")


def whereabouts(folder: str) -> str:
    """Where the recording is now."""
    replay_recorder.flush()
    if replay_recorder.stats().get("delivered"):
        return "sent"
    newest = sorted(Path(folder).glob("*/*.run"))[-1:]
    return " ".join(["replay-recorder inspect", *map(str, newest)])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A docs bot that searches for ever, recorded.")
    parser.add_argument("--fixed", action="store_true", help="run the repaired bot")
    parser.add_argument("--folder", help="where the recording is kept; by default a temporary folder")
    given = parser.parse_args()
    main(given.fixed, given.folder or tempfile.mkdtemp(prefix="docs-bot-"))
