"""What the head of a report says a replay was made of, and what that shows."""

from sessions_app.core.replay.parts import parts_of


def test_tools_that_ran_live_are_named_and_not_called_frozen():
    """Control: without one no tool ran."""
    live = parts_of(agent="lookup", runs_tools=False, live=["stock_of", "lookup_order"])
    frozen = parts_of(agent="lookup", runs_tools=False)

    assert dict(live.rows)["tools"] == (
        "frozen: they return the recorded answers; live, with a network: lookup_order, stock_of"
    )
    assert live.brief.endswith("tools: frozen, live: lookup_order, stock_of")
    assert "whether the live tools return the recorded answers" in live.proves
    assert "live" not in frozen.in_words(has_proof=False) + frozen.brief + frozen.proves
    assert "The tools did not run" in frozen.proves
