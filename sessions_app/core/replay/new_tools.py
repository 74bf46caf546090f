"""Tools that a later request offers and the one before did not: Pydantic AI tells the model of them in a message."""

from __future__ import annotations

import re

from sessions_app.core.replay.changes_told import NEW_TOOLS
from sessions_app.core.replay.hand_overs import is_of_another_loop
from sessions_app.core.replay.matching import Mismatch
from sessions_app.core.run import SPANS, Run

_FIRST_TO_TELL = [2, 27]


def are_new_tools_told(run: Run) -> bool:
    """Whether the loop that made it told the model of new tools: others, and earlier versions, only offer them."""
    version = re.findall(r"\d+", run.agent.framework_version or "")[:2]
    is_before = run.source_format == SPANS and bool(version) and list(map(int, version)) < _FIRST_TO_TELL
    return not (is_of_another_loop(run) or is_before)


def found_by_search(run: Run) -> frozenset[str]:
    """The tools that were named by the answers of a search for hidden ones."""
    answers = (call.result.parsed for _, call in run.tool_calls if call.result is not None)
    lists = (answer.get("discovered_tools") for answer in answers if isinstance(answer, dict))
    found = (tool for each in lists if isinstance(each, list) for tool in each if isinstance(tool, dict))
    return frozenset(name for tool in found if isinstance(name := tool.get("name"), str))


def at_tools(run: Run, found: Mismatch | None) -> Mismatch | None:
    """Spans say which tools a request offered. Where they lack the message that follows from these, it is the tools
    that do not fit: no request was sent with that message."""
    added = found.rebuilt if found is not None and found.recorded is None else None
    if run.source_format != SPANS or not isinstance(added, dict) or added.get("part_kind") != NEW_TOOLS:
        return found
    return Mismatch(path="parameters.introduced_tool_names", recorded=None, rebuilt=added.get("tools_added"))
