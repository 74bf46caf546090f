"""What an answer says of itself: that something failed, or that there is nothing."""

from __future__ import annotations

import re

from sessions_app.core.judge.anomalies.anomaly import Rules
from sessions_app.core.judge.reading import (
    leaves,
    text_of,
    value_of,
)
from sessions_app.core.payload import Payload
from sessions_app.core.run import Run


def error_words_in(output: Payload | None, rules: Rules) -> list[str]:
    text = plain(words_of(output))
    return [word for word in rules.error_words if begins_word(plain(word), text)]


def plain(text: str) -> str:
    return text.lower().replace("\u2019", "'").replace("\u02bc", "'")


def begins_word(word: str, text: str) -> bool:
    """`errors` holds `error`, `terror` and `no errors` do not."""
    return bool(word) and re.search(rf"(?<!\w)(?<!no )(?<!(?<!\d)0 )(?<!without ){re.escape(word)}", text) is not None


def words_of(output: Payload | None) -> str:
    """The text; of structured output its texts, and the names of fields that say something."""
    text = text_of(output)
    if text is not None:
        return text
    said = [(key, item) for key, item in leaves(value_of(output)) if item not in (None, "", False)]
    texts = [item for _, item in said if isinstance(item, str)]
    return "\n".join([*texts, *(key for key, _ in said if key)])


_OWNING_UP = re.compile(
    r"(?<!\w)(?:could not|couldn't|cannot|was not able|were not able|not possible|unsuccessful|unavailable|went wrong"
    r"|did not work|didn't work|no luck|timed out|try again|unfortunately|apologi[sz]e|regret"
    r"|leider|konnten?(?: \w+){0,4}? nicht|nicht möglich|désolée?s?|malheureusement|n'\w+ pas pu|impossible de"
    r"|lo siento|no (?:se )?(?:le )?pud\w+|no fue posible|não consegui|não foi possível"
    r"|(?<!0 )(?:fehlgeschlagen|gescheitert|échou\w+|fall(?:ó|aron|ado|ada)|falh(?:ou|aram|ado)))"
    r"|申し訳|(?:でき|出来)ません|できなかった|失敗|抱歉|无法|失败|未能"
)
"""How people are told that something failed; Japanese and Chinese have no space before a word."""


def owns_up(output: Payload | None) -> bool:
    return owns_up_in(plain(words_of(output)))


def owns_up_in(text: str) -> bool:
    return _OWNING_UP.search(text) is not None


_APOLOGIES = re.compile(
    r"(?<!\w)(?:sorry|unfortunately|apologi[sz]e|regret|leider|désolée?s?|malheureusement|lo siento)(?!\w)|申し訳|抱歉"
)


def without_apologies(text: str) -> str:
    """What is said beside them, as they are made for a delay, too."""
    return _APOLOGIES.sub("", plain(text))


REFUSAL = re.compile(
    r"(?<!\w)(?<!no )(?<!not )(?<!(?<!\d)0 )(?<!none )(?:rejected|declined|denied|refused|turned down)(?!\w)"
)


SAYS_NOTHING = re.compile(
    r"(?<!\w)(?<!\d[.,])(no|not|none|nothing|never|without|0(?![.,]\d)|zero|empty|\w+n't|kein\w*|nicht\w*|aucun\w*|pas|rien|ning[uú]n\w*|nada"
    r"|não|nenhum\w*)(?!\w)|ありません|ない|見つかりません|没有|未找到|无"
)


_ALL = re.compile(
    r"(?<!\w)(?<!at )(?:all|every|each|entire|whole|alle[nrms]?|tou(?:s|tes)|tod[oa]s)(?!\w)"
    r"(?! (?:good|fine|set|right|well|done))|全(?!然)|所有"
)


def says_all(text: str) -> bool:
    """Whether it speaks of all of something."""
    return _ALL.search(plain(text)) is not None


ANSWER = 20_000
"""Characters; longer ones are documents, and each name is looked for in all of it."""
SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
"""What stands between two sentences."""


def question_of(run: Run) -> str:
    """The beginning of what the run was asked, where that is a text."""
    return (text_of(run.input) or "")[:ANSWER]


def answer_of(run: Run) -> str:
    """The beginning of what the run answered, where that is a text."""
    return (text_of(run.output) or "")[:ANSWER]


def is_named(name: str, text: str) -> bool:
    """Whether a name stands in a text as a word of its own."""
    return name in text and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None
