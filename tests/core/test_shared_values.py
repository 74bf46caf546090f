"""Conversions are done once for each object, and only where somebody asked for that."""

from sessions_app.core.spans.shared_values import once_each, shared_values


def counting():
    calls = []

    @once_each
    def convert(value):
        calls.append(value)
        return len(calls)

    return convert, calls


def test_one_object_is_converted_once():
    convert, calls = counting()
    value = {"a": 1}

    with shared_values():
        made = [convert(value), convert(value), convert({"a": 1})]

    assert made == [1, 1, 2]
    assert len(calls) == 2


def test_outside_everything_is_converted_each_time():
    convert, _ = counting()
    value = {"a": 1}

    with shared_values():
        convert(value)

    assert [convert(value), convert(value)] == [2, 3]


def test_two_conversions_of_one_object_do_not_mix():
    first, second = once_each(len), once_each(list)
    value = ["a"]

    with shared_values():
        assert (first(value), second(value), first(value)) == (1, ["a"], 1)
