"""User agents in words."""

import pytest

from sessions_app.core.browsers import browser_in_words

CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36"


@pytest.mark.parametrize(
    ("user_agent", "words"),
    [
        (CHROME, "Chrome on Linux"),
        (f"{CHROME} Edg/141.0".replace("X11; Linux x86_64", "Windows NT 10.0; Win64"), "Edge on Windows"),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 15.1; rv:133.0) Gecko/20100101 Firefox/133.0", "Firefox on macOS"),
        ("curl/8.9.1", "curl/8.9.1"),
        ("", ""),
    ],
)
def test_a_user_agent_is_told_as_a_person_would(user_agent, words):
    assert browser_in_words(user_agent) == words
