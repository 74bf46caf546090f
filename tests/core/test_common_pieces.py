from concurrent.futures import ThreadPoolExecutor

from sessions_app.core.spans.common import CommonPieces


def test_a_piece_is_common_from_its_second_trace_on():
    pieces = CommonPieces(10)

    assert [pieces.is_common("tools", trace) for trace in ("a", "a", "b", "c")] == [False, False, True, True]
    assert not pieces.is_common("message", "b")


def test_the_oldest_is_forgotten():
    pieces = CommonPieces(2)
    for digest in ("one", "two", "three"):
        pieces.is_common(digest, "a")

    assert [pieces.is_common(digest, "b") for digest in ("three", "one")] == [True, False]


def test_of_many_threads_all_but_one_find_it_common():
    pieces = CommonPieces(1_000)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: pieces.is_common("tools", str(number)), range(500)))

    assert found.count(False) == 1
