"""Texts that speak to the model that reads them: how they address it, and what they want it to forget or to hide."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sessions_app.core.judge.anomalies.reading.answer_words import plain

_ORDERS = (
    r"instructions?|rules?|prompts?|guidelines?|anweisungen|regeln|vorgaben|consignes?|istruzioni|regole|instrucciones"
    r"|reglas|instruções|regras|instructies|instrukcj\w+|poleceni\w+"
)
_IGNORES = re.compile(
    rf"(?<!\w)(?:ignor\w*|disregard|forget|override|vergiss|vergessen sie|missachte|oubliez?|olvid[ae]|dimentica"
    rf"|esqueça|negeer|vergeet|zignoruj)(?: \w+){{0,4}} (?:{_ORDERS})(?!\w)"
    r"|(?<!\w)if you are an? (?:ai|llm|(?:large )?language model)(?!\w)"
    r"|(?:指示|命令|ルール)を?(?:すべて|全て)?(?:無視|忘れ)|(?:忽略|无视|忘记)[^。,,]{0,12}(?:指令|指示|规则|提示)"
)
_HIDES = re.compile(
    r"(?<!\w)(?:do not|don't|never) (?:mention|tell|report|reveal|inform|disclose)"
    r"|without (?:mentioning|telling|asking)|silently|secretly|tell no ?one|no need to mention|erwähne \w+ nicht"
    r"|nicht erwähnen|sans (?:le |en )?(?:mentionner|parler)|ne (?:le )?mentionnez? pas|sin mencionar\w*"
    r"|no (?:lo )?menciones|sem mencion\w+|não mencione|senza menzion\w+|non menzionar\w+|nie wspominaj"
    r"|報告しない|言及しない|伝えない|不要(?:告诉|提及|报告)"
)
_MODEL = (
    r"(?:(?:the |an? |all |any |your )?(?:(?:ai|ki|ia|llm) ?-? ?)?(?:assistants?|agents?|language models?|chat ?bots?)"
    r"|(?:den |die |alle )?(?:ki-)?assistent\w*|l'(?:assistant|assistente|agente)\w*|(?:el |los |o |os )?asist\w+"
    r"|(?:o |os )?assistentes?|asystent\w+|models?)"
)
_ADDRESSES = re.compile(
    rf"(?<!\w)(?:notes?|messages?|instructions?|attention|important|hinweis|nachricht|anweisung|nota|mensaje|avviso"
    rf"|instrucciones|instruções|istruzioni|notatka)(?: \w+)? ?:?"
    rf" ?(?:to|for|an|für|à|pour|per|para|a|al|ao|dla) {_MODEL}(?!\w)"
    rf"|(?:^|[.!?\n\]>\"(]\s*)(?:dear )?(?:ai )?(?:assistants?|agents?) ?[,:]|\[system\]|<system>"
    rf"|(?<!\w){_MODEL} (?:must|should|shall|need to|has to|have to|processing|reading)(?!\w)"
    r"|(?:ai)?(?:アシスタント|エージェント)(?:へ|は|の皆)|(?:ai)?助手(?:请|注意|[::,])"
)


_READ = 20_000
"""Characters of a text."""
_BEFORE, _BEHIND = 200, 400
_OF_THE_HARNESS = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
"""What an agent's own loop puts into the answers of tools."""
_MARKS = re.compile(f"{_IGNORES.pattern}|{_HIDES.pattern}", re.MULTILINE)


def planted_words(text: str) -> Iterator[str]:
    """Passages, in small letters. People ask each other not to tell, too: here a model is told to hide something."""
    said, end = _OF_THE_HARNESS.sub(" ", plain(text[:_READ])), 0
    for found in _MARKS.finditer(said):
        start = max(end, found.start() - _BEFORE)
        if found.start() >= end and (_IGNORES.match(found[0]) or _ADDRESSES.search(said, start, found.end() + _BEHIND)):
            end = found.end() + _BEHIND
            yield said[start:end]
