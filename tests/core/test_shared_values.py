"""Conversions are done once for each object, and only where somebody asked for that."""

from sessions_app.core.shared_values import each_once, once_each, shared_values


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


def test_an_inner_block_keeps_for_the_outer_one():
    convert, calls = counting()
    value = {"a": 1}

    with shared_values():
        with shared_values():
            convert(value)
        convert(value)

    assert len(calls) == 1


def counting_each():
    calls = []

    def convert(value):
        calls.append(value)
        return [value]

    return each_once(convert), calls


def test_of_a_list_that_grew_only_the_new_values_are_converted():
    convert, calls = counting_each()
    first, second, third = {"a": 1}, {"b": 2}, {"c": 3}

    with shared_values():
        made = [convert([first, second]), convert([first, second, third]), convert([first])]

    assert made == [[[first], [second]], [[first], [second], [third]], [[first]]]
    assert calls == [first, second, third]


def test_a_list_that_only_begins_alike_is_converted_on_its_own():
    convert, _ = counting_each()
    first, left, right = {"a": 1}, {"b": 2}, {"b": 3}

    with shared_values():
        assert convert([first, left]) == [[first], [left]]
        assert convert([first, right]) == [[first], [right]]
        assert convert([first, left]) == [[first], [left]]


def test_lists_are_converted_outside_everything_too():
    convert, calls = counting_each()

    assert (convert([1, 2]), convert([1, 2]), convert([])) == ([[1], [2]], [[1], [2]], [])
    assert calls == [1, 2, 1, 2]
