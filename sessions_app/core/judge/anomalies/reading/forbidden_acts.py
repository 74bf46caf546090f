"""Acts that a text or a field says cannot be done: `non-cancellable`, `refundable: false`, `transfers are blocked`."""

from __future__ import annotations

import re
from unicodedata import normalize

from sessions_app.core.judge.anomalies.reading.answer_words import plain
from sessions_app.core.judge.anomalies.reading.words import stems_in
from sessions_app.core.payload import JsonValue

_ABLE = r"\w{3,}(?:[aiá]ble?s?|[aíi]vel|[aíi]veis|[ai]bil[ei]|bare?|baar|able|abile)"
_NOT = r"(?:non|not|no|no longer|never|nicht|nicht mehr|pas|plus|não|niet|nie)"
_BE = r"(?:(?:be|been|ser|être|essere|worden|more|mehr|plus|longer|longer be|mais ser|mais|más) )*"
_MODAL = (
    r"(?:can ?not|can't|may not|may no|must not|mustn't|must never|can no"
    r"|(?:kann|darf|können|dürfen) (?:\w+ ){0,2}?nicht"
    r"|peu(?:t|vent) (?:pas|plus)|(?:no|não|non) (?:se )?(?:pued\w+|pode\w*|può|possono)|kan niet"
    r"|nie (?:można|da się|może))"
)
_FORBIDDEN = (
    r"(?:not|nicht|pas|no|não|non|niet) (?:possible|allowed|permitted|available|supported|möglich|erlaubt|gestattet"
    r"|zulässig|permise?s?|autorisée?s?|permitid[oa]s?|posibles?|consentit[oaie]|possibile|toegestaan|mogelijk)"
    r"|blocked|disabled|suspended|prohibited|forbidden|excluded|frozen|gesperrt|ausgeschlossen|unzulässig|impossible"
    r"|interdite?s?|bloquée?s?|prohibid[oa]s?|bloquead[oa]s?|proibid[oa]s?|bloccat[oaie]"
)
_IS = r"(?:[:=]|is|are|was|were|has been|have been|ist|sind|est|sont|está|están|são|é|è|sono)"
_TERM = r"(?:window|period|deadline|time|term)"
_OVER = r"(?:(?:has|have|is|was) )?(?:closed|expired|over|ended|passed|lapsed|elapsed)"
_PATTERNS = (
    re.compile(rf"(?<!\w){_NOT}[ -]?({_ABLE})(?!\w)"),
    re.compile(rf"(?<!\w)(?:un|in|ir)({_ABLE})(?!\w)"),
    re.compile(rf"(?<!\w){_MODAL} {_BE}(\w+)"),
    re.compile(rf"(?<!\w)((?:\w++ )?\w++) ?{_IS}? (?:{_FORBIDDEN})(?!\w)"),
    re.compile(rf"(?<!\w)(\w++) {_TERM} ?:? ?{_OVER}(?!\w)"),
    re.compile(r"(?:不可(?!用)以?|不能|无法|不得|禁止)([\u4e00-\u9fff]{2})"),
    re.compile(
        r"([\u30a0-\u30ff]{2,}|[\u4e00-\u9fff]{2})(?:は|が|を|することは)?(?:不可|禁止|でき(?:ません|ない)|不能)"
    ),
)
_CLAUSE = re.compile(r"[,;|\n。、,;]|(?<=[.!?]) ")
_KEY = re.compile(
    rf"(?:can|may|is|allows?|permits?|darf|kann|puede|pode|peut)_?(?P<act>\w{{4,}})|(?P<able>{_ABLE})"
    r"|(?P<noun>\w{4,}?)_?(?:allowed|possible|permitted|enabled|erlaubt|möglich|可)",
    re.IGNORECASE,
)
_NO = frozenset({"no", "false", "nein", "non", "não", "niet", "nie", "不可", "否"})
_DONE = re.compile(r"(?:is|was|has)_?\w+ed", re.IGNORECASE)
"""What was done so far, and not what may be."""
_LOCKED = re.compile(
    r"(?<!\w)(?<!not )(?<!nicht )(?<!pas )(?:locked|read[-_ ]only|write[-_ ]protected|gesperrt|schreibgeschützt"
    r"|verrouillée?)(?!\w)|ロック済|已锁定"
)
_VOID = re.compile(
    r"(?<!\w)(?<!not )(?<!nicht )(?<!pas )(?:expired|void|revoked|abgelaufen|verfallen|expirée?|périmée?|caducad[oa]"
    r"|vencid[oa]|expirad[oa]|scadut[oa]|verlopen)(?!\w)|期限切れ|已过期|已失效"
)
_RULED_OUT = (
    (_LOCKED, "edit update change modify overwrite delete patch rename remove bearbeiten ändern löschen modifier"),
    (_VOID, "redeem apply accept einlösen utiliser canjear resgatar riscattare inwisselen"),
)
"""States that rule out whole kinds of acts."""
_ANY = re.compile("|".join(each.pattern for each in (*_PATTERNS, _LOCKED, _VOID)))
_WORDS = 5
"""Of a clause that tells such a state of the thing itself."""


def clauses_in(text: str) -> list[str]:
    return [each.strip() for each in _CLAUSE.split(plain(text)) if each.strip()]


def acts_forbidden_in(clause: str) -> set[str]:
    """The stems of what a clause in small letters says cannot be done, whatever the day and whoever does it."""
    if not _ANY.search(clause):
        return set()
    words = [word for pattern in _PATTERNS for word in pattern.findall(clause)]
    if words and _CONDITION.search(clause):
        return set()
    words += (word[2:] for word in words if _PARTICIPLE.fullmatch(word))
    return stems_in(*words).union(_ruled_out_by(clause))


def _ruled_out_by(clause: str) -> set[str]:
    is_short = len(clause.split()) <= _WORDS
    return {stem for state, acts in _RULED_OUT if is_short and state.search(clause) for stem in stems_in(acts)}


_CONDITION = re.compile(
    r"(?<!\w)(?:after|before|unless|until|if|when|without|except|only|by|for|online|from|nach|vor|bis|außer|wenn|ohne|durch"
    r"|ab|sauf|après|avant|jusqu\w*|sans|excepto|salvo|sin|hasta|antes|después|desde|sem|até|após|senza|fino|dopo|prima"
    r"|po|przed|bez|zonder|na|tenzij)(?!\w)|以降|以前|まで|のみ|除く|之后|之前|除非|以后"
)
_PARTICIPLE = re.compile(r"ge\w{4,}(?:t|en)")


def acts_allowed_by(key: str | None, item: JsonValue) -> set[str]:
    """By a flag, such as `refundable: true`."""
    found = _KEY.fullmatch(key) if item is True and key and not _DONE.fullmatch(key) else None
    return stems_in(*(word for word in found.groups() if word)) if found else set()


def acts_forbidden_by(key: str | None, item: JsonValue) -> set[str]:
    """By a flag, such as `cancellable: false` or `can_delete: "no"`; what is `cancelled: false` may be done yet."""
    if item is True:
        return acts_forbidden_in(plain(key or "").removeprefix("is_"))
    is_no = item is False or (isinstance(item, str) and item.strip().lower() in _NO)
    found = _KEY.fullmatch(key) if is_no and key and not _DONE.fullmatch(key) else None
    return stems_in(*(word for word in found.groups() if word)) if found else set()


def is_one_act(one: str, other: str) -> bool:
    """Also where a word is shorter than a stem, as `edit` beside `edited`, or a name is spelled without accents."""
    first, second = _without_accents(one), _without_accents(other)
    return first.startswith(second) or second.startswith(first)


def _without_accents(stem: str) -> str:
    return stem if stem.isascii() else _ACCENTS.sub("", normalize("NFKD", stem))


_ACCENTS = re.compile(r"[\u0300-\u036f]")
