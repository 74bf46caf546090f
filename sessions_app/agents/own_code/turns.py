"""Tools that run beside each other, where the error of one ended the run: they end in the order of then.

Which of them ends first is chance, and whoever is late is interrupted by the error.
"""

from __future__ import annotations

import asyncio
from time import monotonic

from pydantic_ai.messages import ToolCallPart

from sessions_app.agents.loop.frozen_tools import IS_INTERRUPTED_WITHIN, until_its_turn
from sessions_app.agents.own_code.gate import raw_arguments
from sessions_app.core.replay.fixture_book import FixtureBook
from sessions_app.core.run import Fixture

_LOOKS_EVERY = 0.005
"""Seconds."""


class Turns:
    """Nothing waits for more than a second: today's code may end otherwise."""

    def __init__(self, book: FixtureBook) -> None:
        self._book = book

    def of(self, call: ToolCallPart) -> Fixture | None:
        """What the call came to then, where the run ended beside it."""
        found = self._book.look_up(call.tool_name, call.tool_call_id, raw_arguments(call))
        return found if found is not None and found.is_unheard else None

    async def before_error(self, then: Fixture | None) -> None:
        """Answers that were heard then come first."""
        if then is None or then.call.outcome != "crashed":
            return
        end = monotonic() + IS_INTERRUPTED_WITHIN
        while self._book.awaits_beside(then) and monotonic() < end:
            await asyncio.sleep(_LOOKS_EVERY)
        await until_its_turn(then)

    async def before_answer(self, then: Fixture | None) -> None:
        if then is not None and then.call.outcome == "interrupted":
            await asyncio.sleep(IS_INTERRUPTED_WITHIN)

    async def behind_answer(self, then: Fixture | None) -> None:
        """One that came too late to be heard comes too late again."""
        if then is not None and then.call.outcome == "success":
            await until_its_turn(then)
