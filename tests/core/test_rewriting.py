"""Messages that code made for several requests."""

from __future__ import annotations

import pytest

from sessions_app.core.history import History, extend
from sessions_app.core.payload import Payload
from sessions_app.core.replay.rewriting import Rewriting, made_otherwise

MADE = Rewriting(made=(1,))


def history(*words: str) -> History:
    found = extend(None, [Payload.of_json({"words": each}) for each in words])
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("second", "third", "said"),
    [
        (("go", "short", "a"), ("go", "short", "b"), None),
        (("go", "shorter", "a"), ("go", "short", "b"), "messages[1] of step 5 is not that of step 3"),
        (("go", "short", "a"), ("go",), None),
    ],
    ids=["alike", "otherwise", "gone"],
)
def test_a_message_that_is_made_twice_and_otherwise_is_named(second, third, said):
    histories = {1: history("go"), 3: history(*second), 5: history(*third)}

    assert made_otherwise({3: MADE, 5: MADE}, histories) == said
