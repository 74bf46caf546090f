"""Whether a golden can fail: what speaks against it, in words that stay with it."""

from __future__ import annotations

from collections.abc import Sequence

from sessions_app.core.payload import JsonObject

NO_CODE = "This golden repeats the recording and runs none of your code, so no change to your code alters its result."
NEVER_FAILS = "No known run fails, so this golden has not been shown to catch the bug."
NEVER_PASSES = "No known run passes, so this golden has not been shown to accept a fix."


def warnings_for(
    *, mode: str, on_difference: str, fails_on: Sequence[str], passes_on: Sequence[str], is_decided_by_code: bool
) -> list[JsonObject]:
    """Each with `code` and `message`; empty for a golden that fails on one run and passes on another because of what
    code did, and not because of what was recorded."""
    repeated = None if is_decided_by_code else _repeats(mode, on_difference, fails_on, passes_on)
    found = [("repeats_the_recording", repeated)] if repeated else []
    found += [] if fails_on else [("fails_on_nothing", NEVER_FAILS)]
    found += [] if passes_on else [("passes_on_nothing", NEVER_PASSES)]
    return [{"code": code, "message": message} for code, message in found]


def _repeats(mode: str, on_difference: str, fails_on: Sequence[str], passes_on: Sequence[str]) -> str | None:
    """A mutant of the recording shows it: with other recorded answers the golden turns out otherwise, and no code has
    made it do so. A replay that stops at a difference can fail by that alone."""
    if mode == "recording":
        return NO_CODE
    if mode == "live" or on_difference != "play_on" or not (fails_on and passes_on):
        return None
    return (
        f"It fails on {fails_on[0]} and passes on {passes_on[0]} because something else is recorded in them; no run of "
        "your code has changed the result yet. Run it with the code that went wrong and with the repaired code. If "
        "both come to the same result, check what your code decides, let its tools run, or stop at the first "
        "difference."
    )
