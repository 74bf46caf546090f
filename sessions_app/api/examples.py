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
    "hypothesis": "The answer names the weather from the tool.",
    "expect": {"contains": "rain"},
}
SAMPLES: JsonObject = {**FORK, "samples": 5}
HAND_ANSWER: JsonObject = {"value": {"status": "delivered"}}
NOTE: JsonObject = {"text": "The policy page was renamed on Monday; #2 searches under its old name.", "step": 2}
TAGS: JsonObject = {"add": ["refund", "seen by support"], "remove": ["new"]}
COLD_CASE: JsonObject = {"reason": "Tool answers were not recorded."}
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
MODEL_CHANGES: JsonObject = {"model": "claude-opus-4-5", "requests_per_day": 500}
ROTATION: JsonObject = {"overlap_hours": 48}
QUARANTINE: JsonObject = {"reason": "The tool is being replaced this week."}
BATCH: JsonObject = {"label": "commit 4f1c2d9"}

VALUES: dict[str, JsonObject] = {
    "string": {
        "agent": "weather_desk",
        "agent_name": "weather_desk",
        "agent_version": "2.4.0",
        "api": "1",
        "api_key": "rpk_…",
        "arguments_digest": "6b1f0c…",
        "author": "support agent, production",
        "call_id": "call_1",
        "commit": "4f1c2d9",
        "created_by": "alice",
        "description": "Asked for the weather once.",
        "detail": "2 of 2 model requests have all their messages.",
        "digest": "9c56cc51b374c3ba189210d5b6d4bf57790d351c96c47c02190ecf1e430635ab",
        "expected_outcome": "Names the weather from the tool.",
        "fork_id": "weather-1-fork-1",
        "golden_batch_id": "gb_4K7tM2",
        "golden_id": "gd_8sXw1Q",
        "golden_run_id": "gr_2pLz9V",
        "group": "f8d60f36d2",
        "host": "api.anthropic.com",
        "key": "messages",
        "kind": "tool",
        "label": "commit 4f1c2d9",
        "left": "weather-1",
        "message": "Tool answers were not recorded.",
        "mode": "recording",
        "model": "gpt-4o",
        "name": "get_weather",
        "outcome": "It is sunny in Lisbon.",
        "parent_digest": "9c56cc51b374c3ba189210d5b6d4bf57790d351c96c47c02190ecf1e430635ab",
        "parent_run_id": "weather-1",
        "path": "/city",
        "prefix": "rpk_4f1c",
        "project": "support-agent",
        "provider": "openai",
        "reason": "Tool answers were not recorded.",
        "replay_id": "rp_5Jd3Hk",
        "representative": "weather-1",
        "requested_by": "alice",
        "result_digest": "a3d2e8…",
        "right": "weather-2",
        "run_id": "weather-1",
        "run_of": "weather-1",
        "session_id": "weather-1",
        "session_replay_id": "sr_7Qm0Bn",
        "source_format": "agent-replay.run",
        "started_by": "alice",
        "state": "done",
        "state_digest": "0d4c1b…",
        "step_id": "step_2",
        "story": "It asked get_weather once and answered.",
        "answer_sources": {"steps": [2], "in_no_step": []},
        "tags": "refund",
        "tenant_id": "acme",
        "text": "The policy page was renamed on Monday.",
        "title": "Tool schemas",
        "unchanged": "weather-2",
        "url": "https://replay.example.com/p/support-agent/sessions/weather-1",
        "user_id": "u_ana",
        "username": "alice",
        "verdict": "reproduced",
        "version": "1.0.0",
        "words": "Reproduced: 2 of 2 requests are equal.",
        "fails_on": "weather-1",
        "passes_on": "weather-2",
        "signs": "get_weather failed: timeout",
    },
    "integer": {
        "compared_fields": 84,
        "input": 412,
        "kit_captured": 9,
        "messages": 4,
        "model_calls": 2,
        "not_comparable": 0,
        "output": 38,
        "step": 2,
        "steps": 3,
        "total": 12,
        "done": 12,
        "captured": 9,
    },
    "number": {"duration_ms": 1840.5},
    "any": {
        "arguments": {"city": "Lisbon"},
        "input": _QUESTION,
        "output": "It is sunny in Lisbon.",
        "result": "sunny, 24 °C",
    },
}
"""By type and name of a field: what an answer may have there."""
