"""The words that several rules know, in every language they read."""

from __future__ import annotations

import re

# --- of answers that tell of a failure -----------------------------------------------------------

ERRORS = re.compile(
    r"error|erreur|fehler|erro|errore|fout|fel|fejl|virhe|hata|błąd|blad|chyba|hiba|eroare|ошибка|エラー|错误|錯誤|오류"
)

SUCCESS = re.compile(
    r"ok|success|succès|succes|erfolg|erfolgreich|éxito|exito|sucesso|successo|sukces|成功", re.IGNORECASE
)

STATES = re.compile(r"status|state|statut|estado|stato|stan|zustand|ステータス|状态|状態", re.IGNORECASE)

FAILED = re.compile(
    rf"{ERRORS.pattern}|failed|failure|échec|echec|fehlgeschlagen|gescheitert|fallid[oa]|falló|falhou|falha"
    r"|fallit[oa]|mislukt|misslyckades|失敗|失败",
    re.IGNORECASE,
)

# --- of sub-agents that came to nothing or stopped -----------------------------------------------

HAD_TO_STOP = re.compile(
    r"(?<!\w)(?:(?:i|we) (?:(?:have |'ve )?had to stop|stopped (?:here|early|there|at|after|before)|ran out of"
    r"|did(?: not|n't) get to)|(?:ich|wir) mussten?(?: \w+){0,4} (?:abbrechen|aufhören)"
    r"|(?:ai|avons) dû (?:m'|nous )?arrêter"
    r"|tuve que (?:parar|detenerme|interrumpir)|tive (?:que|de) parar|ho dovuto (?:fermarmi|interrompere)"
    r"|musiał[ae]m przerwać|moest(?:en)? (?:\w+ ){0,3}stoppen)(?!\w)|途中で(?:停止|中断|終了)|不得不停止|中途停止"
)

WENT_ON = re.compile(
    r"(?<!\w)(?:later|then (?:i|we)|resumed|continued|afterwards|in the end"
    r"|danach|später|ensuite|después|depois|poi)(?!\w)"
)

AGENT = re.compile(r"agent|assistant|assistent|delegate|エージェント|代理|助手", re.IGNORECASE)

TASK = re.compile(
    r"task|prompt|instructions?|request|aufgabe|auftrag|tarea|encargo|t[âa]che|tarefa|compito|zadanie|taak|タスク|依頼"
    r"|任务|任務",
    re.IGNORECASE,
)

NO_ACCESS = re.compile(
    r"(?<!\w)(?:unable to|(?:no|not have|\w*n't have|have no|without) access|access (?:was |is )?denied"
    r"|not authori[sz]ed|kein\w* zug(?:riff|ang)|pas accès|sin acceso|no teng\w* acceso|sem acesso|não tenho acesso"
    r"|non ho (?:accesso|potuto)|geen toegang|kon niet"
    r"|nie (?:mam|miał\w*) dostępu|nie (?:mog\w+|udało))(?!\w)|アクセス(?:でき|権)"
)

IN_THE_END = re.compile(
    r"(?<!\w)(?:(?:but|aber|pero|mais|mas|ma|ale|maar) .*(?:after|then|again|retr\w+|dann|später|nochmal|después|luego"
    r"|ensuite|après|depois|poi|potem|daarna)|at first|zunächst|al principio|d'abord|no início)(?!\w)|最初|起初|一开始"
)

# --- names of tools that ask for leave or tell somebody ------------------------------------------

LEAVE = re.compile(
    r"approv|permi|consent|authori[sz]|review|genehm|freigab|autori|aprob|aprov|approb|承認|批准|审批|审核",
    re.IGNORECASE,
)

TO_OTHERS = re.compile(
    r"mail|notif|messag|sms|repl(?:y|ies)|comment|note|log|ticket|escalat|remind|schedul|request|queue", re.IGNORECASE
)
"""Tools that tell somebody, as of a refusal."""

ASKS_LEAVE = re.compile(
    r"approv|permi|consent|authori[sz]|confirm|check|valid|verif|review|policy|genehm|freigab|prüf|pruef|autori|aprob|aprov"
    r"|approb|verific|承認|批准|审批|审核",
    re.IGNORECASE,
)

# --- of what was done in spite of something, and tools that ask people ---------------------------

DESPITE = re.compile(
    r"(?<!\w)(?:although|though|despite|exception\w*|override\w*|anyway|obwohl|trotz\w*|bien que|malgré|aunque|a pesar"
    r"|embora|apesar|nonostante|benché|sebbene|ondanks|hoewel|mimo|chociaż)(?!\w)|にもかかわらず|ですが|でしたが|虽然|尽管"
)

ASKS_PEOPLE = re.compile(r"(?<![a-z])ask|confirm|human|frag|pregunt|demander|確認|询问", re.IGNORECASE)

# --- lines that begin with a failure -------------------------------------------------------------

IS_ERROR = re.compile(
    r"(?:(?:fatal )?error|fatal|exception|erreur|fehler|erro|errore|fout|fel|fejl|błąd|ошибка|エラー|错误|錯誤|오류)"
    r"(?: ?[45]\d\d)?\s*[::]\s*\S",
    re.IGNORECASE,
)

HAS_FAILED = re.compile(
    r"(?:(?!no\b|not\b|none\b|how\b|why\b|if\b)[^\W\d_]+ ){0,3}?(?:has |was |is |ist |wurde |a |est |fue |foi )?"
    r"(?:failed|denied|refused|rejected|fehlgeschlagen|gescheitert|abgelehnt|verweigert|échouée?|refusée?|rejetée?"
    r"|fall(?:ó|id[oa])|denegad[oa]|rechazad[oa]|falhou|recusad[oa]|negad[oa]|fallit[oa]|rifiutat[oa]|mislukt|geweigerd)"
    r"\s*(?:[::]\s*\S|[.!]?$)"
    r"|[^\s\d::]{0,12}(?:失敗|失败|拒否|拒绝)[^\s::]{0,4}[::]\s*\S",
    re.IGNORECASE,
)

# --- states that tell of a refusal or a leave ----------------------------------------------------

REFUSED = re.compile(
    r"reject(?:ed)?|declined?|den(?:y|ied)|refused?|disapproved|not[ _]approved|abgelehnt|verweigert|refusée?|rejetée?"
    r"|rechazad[oa]|denegad[oa]|recusad[oa]|negad[oa]|rejeitad[oa]|respint[oa]|rifiutat[oa]|odrzucon[oy]|geweigerd"
    r"|afgewezen|拒否|却下|拒绝|驳回"
)

GRANTED = re.compile(
    r"(?:is|was|ist|est|es)?_?(?:approved|accepted|authori[sz]ed|granted|allowed|permitted|valid|eligible|compliant"
    r"|genehmigt|freigegeben|erlaubt|zulässig|akzeptiert|gültig|approuvée?|autorisée?|acceptée?|permise?|valide"
    r"|aprobad[oa]|autorizad[oa]|aceptad[oa]|permitid[oa]|válid[oa]|valid[oa]|aprovad[oa]|aceit[oa]|approvat[oa]|autorizzat[oa]"
    r"|accettat[oa]|consentit[oa]|zatwierdzon[oey]|dozwolon[oey]|goedgekeurd|toegestaan|承認(?:済み?)?|許可|批准|允许|通过)",
    re.IGNORECASE,
)

# --- numbers that are spelled out ----------------------------------------------------------------

NUMBER_WORDS = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen",
    "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn",
    "deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize",
    "dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis",
    "dois três quatro cinco seis sete oito nove dez onze doze treze catorze quinze dezesseis",
)
