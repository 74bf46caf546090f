"""The outcome that a fork's form expects, read from its inputs."""

from __future__ import annotations

from sessions_app.core.payload import JsonValue, Payload
from sessions_app.web.forks.inputs import Refused, Typed, Written, json_of, number_of, text_of

EXPECTATIONS = ("words", "contains", "equals", "at_most_calls", "ends_within")


def read_expected(typed: Typed, *, is_json: bool) -> Written | None:
    """None where nothing is expected. Raises `Refused`.

    `is_json`: whether the recorded outcome is JSON, and one that equals it is written as JSON.
    """
    is_left_out = typed.get("expect_kind", "words") == "words" and not text_of(typed, "expect_text").strip()
    if is_left_out and not typed.get("sampling"):
        return None
    inputs = {"": "expect_text", "at_most_calls.tool": "expect_tool", "at_most_calls.n": "expect_n"}
    return Written(value=_expected_value(typed, is_json), inputs=inputs | {"ends_within": "expect_n"})


def _expected_value(typed: Typed, is_json: bool) -> JsonValue:
    kind, text, number = typed.get("expect_kind"), text_of(typed, "expect_text").strip(), typed.get("expect_n", "")
    if kind == "at_most_calls":
        return {"at_most_calls": {"tool": typed.get("expect_tool", ""), "n": number_of(number.strip())}}
    if kind == "ends_within":
        return {"ends_within": number_of(number.strip())}
    if kind not in EXPECTATIONS:
        raise Refused("expect_kind", "Choose how the outcome is judged.")
    if not text:
        raise Refused("expect_text", "Say which outcome is expected.")
    if kind == "equals":
        return {"equals": json_of(typed, "expect_text") if is_json else Payload.of_text(text).parsed}
    return text if kind == "words" else {"contains": text}
