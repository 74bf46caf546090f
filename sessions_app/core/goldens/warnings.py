"""Whether a golden can fail: what speaks against it, in words that stay with it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from replay_goldens.judged import Check
from sessions_app.core.payload import JsonObject

NO_CODE = (
    "Nothing of your code runs, so this golden repeats the recording: it passes whatever your code does. "
    "Choose your code, with or without its tools."
)
NEVER_FAILS = "It fails on no run that is known here, so nothing shows that it can fail."
NEVER_PASSES = "It passes on no run that is known here, so nothing shows that a fix can pass."


def warnings_for(
    checks: Sequence[Check],
    *,
    mode: str,
    on_difference: str,
    fails_on: Collection[str],
    passes_on: Collection[str],
    is_decided_by_code: bool,
) -> list[JsonObject]:
    """Each with `code` and `message`; empty for a golden that fails on one run and passes on another, and that code
    can make fail."""
    repeated = None if is_decided_by_code else _repeats(checks, mode, on_difference)
    found = [("repeats_the_recording", repeated)] if repeated else []
    found += [] if fails_on else [("fails_on_nothing", NEVER_FAILS)]
    found += [] if passes_on else [("passes_on_nothing", NEVER_PASSES)]
    return [{"code": code, "message": message} for code, message in found]


def _repeats(checks: Sequence[Check], mode: str, on_difference: str) -> str | None:
    """A mutant of the recording shows it: with other recorded answers the golden turns out otherwise, with other code
    it does not. A replay that stops at a difference can fail by that alone."""
    if mode == "recording":
        return NO_CODE
    by_code = {"code", "tools"} if mode == "code_and_tools" else {"code"}
    if mode == "live" or on_difference != "play_on" or any(check.decider in by_code for check in checks):
        return None
    return (
        f"Only recorded answers decide whether {checks[0].words}: with another recorded answer this golden turns out "
        "otherwise, with other code it does not. Check what your code decides, such as state or the number of calls; "
        "let its tools run; or stop at the first difference."
    )
