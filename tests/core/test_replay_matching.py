"""What a difference between a recorded and a rebuilt value is said to be."""

import pytest

from sessions_app.core.payload import JsonValue
from sessions_app.core.replay.matching import Mismatch, Tally, first_mismatch

ARGUMENTS = "messages[1].parts[0].args"


@pytest.mark.parametrize(
    ("recorded", "rebuilt"),
    [({"order": "A", "note": None}, {"order": "A"}), ({"order": "A"}, {"order": "A", "note": None}), ([1, None], [1])],
)
def test_null_in_place_of_nothing_is_shown_with_what_holds_it(recorded: JsonValue, rebuilt: JsonValue):
    found = first_mismatch(recorded, rebuilt, raw=recorded, path=ARGUMENTS, tally=Tally())

    assert found == Mismatch(path=ARGUMENTS, recorded=recorded, rebuilt=rebuilt)


def test_a_field_that_is_not_there_is_named():
    recorded, rebuilt = {"order": "A", "note": "fast"}, {"order": "A"}

    found = first_mismatch(recorded, rebuilt, raw=recorded, path=ARGUMENTS, tally=Tally())

    assert found == Mismatch(path=f"{ARGUMENTS}.note", recorded="fast", rebuilt=None)
