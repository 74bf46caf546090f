import pytest

from sessions_app.core.model_names import could_be_same_model, without_aliases


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("gpt-4o", "gpt-4o-2024-08-06"),
        ("openai:gpt-4o", "gpt-4o"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("anthropic/claude-sonnet-4", "claude-sonnet-4-20250514"),
        ("GPT-4o", "gpt-4o"),
        (None, "gpt-4o"),
    ],
)
def test_one_model_has_several_names(one: str | None, other: str):
    assert could_be_same_model(one, other)
    assert could_be_same_model(other, one)


@pytest.mark.parametrize(("one", "other"), [("gpt-4o", "gpt-4o-mini"), ("gpt-4", "gpt-4o"), ("a", "b")])
def test_a_longer_name_is_another_model(one: str, other: str):
    assert not could_be_same_model(one, other)
    assert not could_be_same_model(other, one)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["gpt-4o", "gpt-4o-2024-08-06"], {"gpt-4o-2024-08-06": ["gpt-4o"]}),
        (["gpt-4o", "gpt-4o-mini"], {"gpt-4o": [], "gpt-4o-mini": []}),
        (["gpt-4o", "openai:gpt-4o"], {"gpt-4o": ["openai:gpt-4o"]}),
        ([], {}),
    ],
)
def test_an_alias_is_named_with_the_model_that_it_stands_for(names: list[str], expected: dict[str, list[str]]):
    assert without_aliases(names) == expected
