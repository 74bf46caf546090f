"""Bodies that the description shows. Each is one that the server takes."""

from __future__ import annotations

from sessions_app.core.payload import JsonObject

_QUESTION = "What is the weather in Lisbon?"
_ASKED: JsonObject = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": _QUESTION}]}
_CALL: JsonObject = {
    "part_kind": "tool-call",
    "tool_name": "get_weather",
    "args": {"city": "Lisbon"},
    "tool_call_id": "call_1",
}
_ANSWER: JsonObject = {
    "part_kind": "tool-return",
    "tool_name": "get_weather",
    "content": "sunny, 24 °C",
    "tool_call_id": "call_1",
}
RECORD: JsonObject = {
    "format": "agent-replay.run",
    "version": 1,
    "run_id": "weather-1",
    "agent": {"name": "weather_desk"},
    "input": _QUESTION,
    "output": "It is sunny in Lisbon.",
    "steps": [
        {
            "kind": "model",
            "request": {"messages": [_ASKED]},
            "response": {"kind": "response", "parts": [_CALL]},
        },
        {
            "kind": "tool",
            "tool_name": "get_weather",
            "call_id": "call_1",
            "arguments": {"city": "Lisbon"},
            "result": "sunny, 24 °C",
        },
        {
            "kind": "model",
            "request": {"after": 1, "messages": [{"kind": "request", "parts": [_ANSWER]}]},
            "response": {"kind": "response", "parts": [{"part_kind": "text", "content": "It is sunny in Lisbon."}]},
        },
    ],
}
RECORDINGS: JsonObject = {
    "one record": RECORD,
    "several": {"runs": [RECORD, {**RECORD, "run_id": "weather-2"}]},
}
EXCHANGES: JsonObject = {
    "a cassette of vcrpy": {
        "version": 1,
        "interactions": [
            {
                "request": {
                    "method": "GET",
                    "uri": "https://weather.example.com/now?city=Lisbon",
                    "body": None,
                    "headers": {},
                },
                "response": {
                    "status": {"code": 200, "message": "OK"},
                    "headers": {"Content-Type": ["text/plain; charset=utf-8"]},
                    "body": {"string": "sunny, 24 °C"},
                },
            }
        ],
    }
}
REPLAY: JsonObject = {"mode": "recording", "request_key": "build-1734-weather-1"}
RESUME: JsonObject = {"at_step": 3}
FORK: JsonObject = {
    "at_step": 2,
    "changes": [{"kind": "tool_result", "step": 2, "value": "rain, 12 °C"}],
    "hypothesis": "The answer names the weather that the tool gave.",
    "expect": {"contains": "rain"},
}
SAMPLES: JsonObject = {**FORK, "samples": 5}
HAND_ANSWER: JsonObject = {"value": {"status": "delivered"}}
NOTE: JsonObject = {"text": "The policy page was renamed on Monday; #2 searches under its old name.", "step": 2}
TAGS: JsonObject = {"add": ["refund", "seen by support"], "remove": ["new"]}
COLD_CASE: JsonObject = {"reason": "The tool's answers were not recorded."}
OBSERVED: JsonObject = {"mode": "code", "agent": "shop.agents:weather_desk", "record": RECORD}
GOLDEN: JsonObject = {
    "name": "Asks for the weather once",
    "run_id": "weather-1",
    "checks": [{"kind": "at_most_calls", "tool": "get_weather", "n": 1}],
}
GOLDEN_RUN: JsonObject = {"agent": "weather_desk"}
FAILURE_REPLAYS: JsonObject = {"agents": ["weather_desk"], "q": "tool:search_docs"}
GOLDEN_NOT_RUN: JsonObject = {"agent": "shop:agent", "reason": "ModuleNotFoundError: No module named 'shop'"}
PROJECT: JsonObject = {"name": "Support agent"}
ROLE: JsonObject = {"role": "viewer"}
KEY: JsonObject = {"name": "support agent, production", "scope": "ingest", "expires_in_days": 90}
CONNECTED_MODEL: JsonObject = {
    "name": "Claude",
    "provider": "anthropic",
    "model": "claude-sonnet-4-5",
    "key": "the key of your account",
    "requests_per_day": 200,
}
ROTATION: JsonObject = {"overlap_hours": 48}
QUARANTINE: JsonObject = {"reason": "The tool is being replaced this week."}
BATCH: JsonObject = {"label": "commit 4f1c2d9"}
