"""Places in values as people speak of them: `messages[2].parts[0].content.order` is "order in message 3"."""

from __future__ import annotations

import json
import re

_SEGMENT = re.compile(r'\.?(?P<key>[A-Za-z_$][\w$]*)|\[(?P<number>\d+)\]|\[(?P<quoted>"(?:[^"\\]|\\.)*")\]')
_WHOLES = {
    "args": "the arguments",
    "arguments": "the arguments",
    "call_id": "the id of the call",
    "error": "the error",
    "final": "the last messages",
    "guardrails": "the guardrails",
    "http": "the HTTP request",
    "initial_state": "the initial state",
    "input": "the input",
    "instructions": "the instructions",
    "model": "the model",
    "open_calls": "the open calls",
    "output": "the outcome",
    "parameters": "the tools and output schema",
    "ran_with": "what the function was given",
    "request": "the request",
    "response": "the model answer",
    "result": "the tool result",
    "settings": "the settings",
    "state": "the state",
    "status": "the status",
    "steps": "the step",
    "tool_name": "the name of the tool",
    "tool_ran": "whether the tool ran",
    "agents_inside": "the agents that ran inside of the tool",
    "tools": "the tools",
}
_NAMED = {"args": "argument", "arguments": "argument", "settings": "setting"}
"""Where the key below has a word of its own."""
_WRAPPERS = ("content", "kind", "part_kind", "parts", "text", "value")
"""Keys that hold a message together and say nothing of what is in it."""


def place_in_words(path: str) -> str:
    """Where two runs part, for a headline; the path itself stands in the details."""
    root, *below = segments(path) or [path]
    if root == "messages" and below and isinstance(below[0], int):
        return _inside(f"message {below[0] + 1}", below[1:])
    if root in _NAMED and below and isinstance(below[0], str):
        return _inside(f"{_NAMED[root]} {below[0]}", below[1:])
    return _inside(_WHOLES.get(str(root), str(root).replace("_", " ")), below)


def _inside(whole: str, below: list[str | int]) -> str:
    keys = [key for key in below if isinstance(key, str) and key not in _WRAPPERS]
    return f"{keys[-1]} in {whole}" if keys else whole


def segments(path: str) -> list[str | int]:
    """The keys and positions of a path."""
    return [_segment(found) for found in _SEGMENT.finditer(path)]


def _segment(found: re.Match[str]) -> str | int:
    if found["number"] is not None:
        return int(found["number"])
    return str(json.loads(found["quoted"])) if found["quoted"] is not None else found["key"]
