"""What redaction made of pieces is remembered, up to a size, and never across projects."""

from sessions_app.core.spans.remembered import RememberedPieces, key_of


def test_a_piece_is_known_again_by_what_arrived():
    pieces = RememberedPieces(10_000)
    pieces.put(key_of(b"project", b"arrived", is_json=True), b"redacted")

    assert pieces.get(key_of(b"project", b"arrived", is_json=True)) == b"redacted"
    assert pieces.get(key_of(b"project", b"arrived", is_json=False)) is None
    assert pieces.get(key_of(b"another", b"arrived", is_json=True)) is None


def test_those_not_used_for_longest_make_room():
    pieces = RememberedPieces(3 * 1250)
    for name in (b"1", b"2", b"3"):
        pieces.put(name, b"x" * 1000)
    pieces.get(b"1")

    pieces.put(b"4", b"x" * 1000)

    assert [pieces.get(name) is not None for name in (b"1", b"2", b"3", b"4")] == [True, False, True, True]


def test_a_piece_larger_than_all_room_is_not_kept():
    pieces = RememberedPieces(100)

    pieces.put(b"1", b"x" * 1000)

    assert pieces.get(b"1") is None
