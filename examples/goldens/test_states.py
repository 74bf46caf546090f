"""What the bot does in the scene, step by step: its tools in their order, and the state behind each step.

pytest examples/goldens                                               # the repaired bot, which the golden names
GOLDEN_AGENT=examples.order_bot:as_it_was pytest examples/goldens     # the bot with its bug
"""

from __future__ import annotations

from replay_goldens.events import events_beside

load_events = events_beside(__file__)


def test_the_tools_are_called_in_this_order() -> None:
    events = load_events("cancel_5521")

    assert [event.tool_name for event in events] == ["lookup_order", "cancel_order", None]


def test_the_order_stays_delivered_behind_every_step() -> None:
    events = load_events("cancel_5521")

    assert [event.output_state["orders"]["ORD-5521"]["status"] for event in events] == ["delivered"] * 3
    assert "cannot be cancelled" in events[1].tool_result
