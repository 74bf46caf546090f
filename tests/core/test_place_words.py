"""Places in values as a headline says them."""

import pytest

from sessions_app.core.place_words import place_in_words


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("args.user_id", "argument user_id"),
        ("arguments", "the arguments"),
        ("args.items[0].sku", "sku in argument items"),
        ("messages[2].parts[0].content[0].order", "order in message 3"),
        ("messages[2].parts[0].content", "message 3"),
        ("messages", "messages"),
        ("settings.temperature", "setting temperature"),
        ('result["user id"]', "user id in the tool result"),
        ("response.parts[0].content", "the model answer"),
        ("parameters.function_tools[0].description", "description in the tools and output schema"),
        ("output", "the outcome"),
        ("waits_with", "waits with"),
        ("", ""),
    ],
)
def test_a_place_is_named_as_people_speak_of_it(path, words):
    assert place_in_words(path) == words
