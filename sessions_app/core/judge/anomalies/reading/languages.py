"""Whether an answer is in a language whose words for failures and for nothing the rules know."""

from __future__ import annotations

import re
from collections import Counter

from sessions_app.core.judge.anomalies.reading.answer_words import plain, words_of
from sessions_app.core.run import Run
from sessions_app.core.shared_values import once_each

_READ = {
    "en": "the of and to is are was were for with your you has have had not no this that it in on at from by i we all",
    "de": "der die das und ist sind nicht kein keine ein eine für mit ich wir wurde wurden auf von im den dem zu es",
    "fr": "le la les des et est sont pas une un pour dans je vous nous votre qui que au du ai été en sur",
    "es": "el la los las una un que por para con no se su sus ha he está son del al ya en de",
    "pt": "o a os as um uma que por para com não se sua foi está são do da dos em ao de",
}
"""Japanese and Chinese, which are read too, are told by their script."""
_OTHERS = {
    "nl": "de het een en van is niet geen ik heb heeft voor met op zijn wordt werd aan bij nog dat er naar",
    "it": "il lo la gli un una che per con non ho è sono del della di nel alla stato ha e i",
    "sv": "och att det är inte en ett för med på jag har av till som den",
    "da": "og det er ikke en et for med på jeg har af til som den blev",
    "pl": "nie na w z jest się że są został dla i po o ma za",
    "cs": "je se na v že není a s jsem byl byla pro nebyl k",
    "ro": "nu este și în pentru care cu la de am a fost din",
    "hu": "nem a az és hogy egy van meg volt",
    "fi": "ei on ja että oli en ole tai sen",
    "tr": "bir ve için bu değil ile da de olarak",
    "id": "yang tidak dan di untuk ini dengan ke dari telah",
    "vi": "không là và của đã cho trong có được này",
}
_LANGUAGES = {name: frozenset(words.split()) for name, words in (_OTHERS | _READ).items()}
_READ_LENGTH = 4_000
"""Characters from the beginning."""
_WORD = re.compile(r"[^\W\d_]+")
_SCRIPTS = re.compile(r"[a-z\u00c0-\u024f\u1e00-\u1eff\u3040-\u30ff\u4e00-\u9fff]", re.IGNORECASE)
"""Latin, and those of Japanese and Chinese."""


@once_each
def answers_in_a_known_language(run: Run) -> bool:
    """By its script, then by its commonest words; a text with none of them, such as a list of names, may be in any."""
    text = plain(words_of(run.output)[:_READ_LENGTH])
    letters = "".join(_WORD.findall(text))
    if 2 * len(_SCRIPTS.findall(letters)) < len(letters):
        return False
    counts = _counts(text)
    return max(counts.values(), default=0) <= max((counts[name] for name in _READ), default=0)


@once_each
def is_in_english(run: Run) -> bool:
    counts = _counts(plain(words_of(run.output)[:_READ_LENGTH]))
    return bool(counts) and max(counts.values()) == counts["en"]


def _counts(text: str) -> Counter[str]:
    words = _WORD.findall(text)
    return Counter(name for word in words for name, common in _LANGUAGES.items() if word in common)
