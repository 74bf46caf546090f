"""What is odd about a run, found from the record alone. Every detector is linear in the steps."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Literal

from replay_goldens.owner_checks import UseOfOther, uses_of_others
from sessions_app.core.finish_reasons import is_cut
from sessions_app.core.goldens.traces import tool_uses
from sessions_app.core.judge.reading import (
    argument_key,
    calls_made,
    count,
    ended_in_error,
    first_requests,
    has_answer,
    join_words,
    leaves,
    main_models,
    object_of,
    own_tools,
    status_code,
    text_of,
    value_of,
)
from sessions_app.core.judge.unnamed_ids import unnamed_ids
from sessions_app.core.judge.went_past import (
    affirms,
    is_search,
    named_though_not_found,
    other_sums,
    refusals_unsaid,
    told_failure,
    total_beside_lines,
)
from sessions_app.core.model_names import is_same_model
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.run import ModelCall, Run, Step, ToolCall
from sessions_app.core.shared_values import once_each, shared_values
from sessions_app.core.unplayed import lost_spans

USER_KEYS = frozenset({"user_id", "user", "customer_id"})
TENANT_KEYS = frozenset({"tenant_id", "tenant"})
COUNT_KEYS = frozenset({"count", "total", "total_count", "hits", "matches"})


Level = Literal["warning", "info"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Anomaly:
    """Something odd, and the steps that show it."""

    code: str
    message: str
    steps: tuple[int, ...] = ()
    level: Level = "warning"

    @property
    def odd_step(self) -> int | None:
        """Where a reader should look first: the repeat, and not what it repeats."""
        if not self.steps:
            return None
        return self.steps[-1] if self.code in _SHOWN_AT_LAST else self.steps[0]

    @property
    def weight(self) -> int:
        """What went wrong weighs 0; 1 is what may well be as it was meant, such as a call that was made again."""
        return 1 if self.code in _MAY_BE_MEANT else 0

    @classmethod
    def from_json(cls, item: JsonObject) -> Anomaly:
        """As `to_json` wrote it."""
        steps = tuple(item.get("steps") or ())
        return cls(code=item["code"], message=item["message"], steps=steps, level=item.get("level", "warning"))

    def to_json(self) -> JsonObject:
        steps = list(self.steps)
        return {"code": self.code, "message": self.message, "steps": steps, "level": self.level}


_MAY_BE_MEANT = frozenset(
    {
        "many_tool_calls",
        "duplicate_call",
        "unnamed_id",
        "unscoped_call",
        "used_of_other",
        "model_changed",
        "other_model_answered",
        "spans_lost",
    }
)
_SHOWN_AT_LAST = frozenset({"duplicate_call", "model_changed", "state_chain_broken"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """What a team may set."""

    max_tool_calls: int = 10
    error_words: tuple[str, ...] = ("error", "sorry", "unable", "failed", "can't")
    slow_step_ms: float = 30_000


@shared_values()
def find_anomalies(run: Run, rules: Rules = Rules()) -> list[Anomaly]:
    """What went wrong stands before what may be as it was meant, and that before mere notes."""
    found = [each for detect in DETECTORS for each in detect(run, rules)]
    return sorted(found, key=lambda each: (each.level != "warning", each.weight))


def first_odd_step(anomalies: Iterable[Anomaly]) -> int | None:
    """Of what went wrong, where anything did; a repeat before it leads astray."""
    odd = [(a.weight, a.odd_step) for a in anomalies if a.level == "warning" and a.odd_step is not None]
    return min(odd, default=(0, None))[1]


# --- how often, and again ----------------------------------------------------------------------


def many_tool_calls(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """Of the run as a whole, so at no step. A mere note where each call was another one and none failed: there was much
    to do."""
    calls = calls_made(run)
    if len(calls) > rules.max_tool_calls:
        others = {(call.tool_name, argument_key(call)) for _, call in calls}
        is_plain = len(others) == len(calls) and not any(step in failed_steps(run) for step, _ in calls)
        message = f"High tool call count: {len(calls)}"
        yield Anomaly(code="many_tool_calls", message=message, level="info" if is_plain else "warning")


def duplicate_calls(run: Run, rules: Rules) -> Iterator[Anomaly]:
    same: dict[tuple[str, bytes], list[tuple[int | None, ToolCall]]] = defaultdict(list)
    for step, call in calls_made(run):
        same[call.tool_name, argument_key(call)].append((step, call))
    again = [repeat for calls in same.values() if len(calls) > 1 for repeat in _repeats(run, calls)]
    yield from sorted(again, key=lambda repeat: repeat.steps[-1:])


def _repeats(run: Run, calls: list[tuple[int | None, ToolCall]]) -> Iterator[Anomaly]:
    """One for each call that was made before; a note where it had a reason: the first had failed, or what it reads has
    changed, as whoever asks how far something is asks until it is done."""
    at, others = calls[0][0], calls[1:]
    reads = _answers_changed(run, calls)
    for step, call in others:
        is_retry = at is not None and ended_in_error(run.steps[at - 1])
        steps = tuple(s for s in (at, step) if s is not None)
        level: Level = "info" if reads or is_retry else "warning"
        said = "Called again after it failed" if is_retry else "Duplicate call"
        yield Anomaly(code="duplicate_call", message=f"{said}: {call.tool_name}", steps=steps, level=level)


def _answers_changed(run: Run, calls: list[tuple[int | None, ToolCall]]) -> bool:
    """Of a call that changes nothing. One that gives a new id each time has made something each time."""
    results = [call.result for _, call in calls]
    if None in results or len({result.content for result in results if result}) == 1:
        return False
    steps = [run.steps[at - 1] for at, _ in calls if at is not None]
    if any(step.extra.get("tool_kind") == "write" for step in steps) or _makes_ids(calls):
        return False
    return not any(
        is_cut_json(text) for step, (_, call) in zip(steps, calls, strict=False) for text in _answer_texts(step, call)
    )


_ID = re.compile(r"[A-Za-z]{1,12}[_-](?=\w*\d)\w+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def _makes_ids(calls: list[tuple[int | None, ToolCall]]) -> bool:
    """Each answer has an id that the others do not have, under the same key; who asks for nothing in particular may be
    given the next of a queue."""
    asks = object_of(calls[0][1].arguments)
    ids = [set(_ids_in(object_of(call.result))) for _, call in calls]
    return bool(asks) and all(ids) and len(set().union(*ids)) == sum(map(len, ids))


def _ids_in(answer: JsonObject) -> Iterator[tuple[str, str]]:
    yield from ((key, item) for key, item in answer.items() if isinstance(item, str) and _ID.fullmatch(item))


def empty_result_retried(run: Run, rules: Rules) -> Iterator[Anomaly]:
    same: dict[tuple[str, bytes], list[tuple[Step, ToolCall]]] = defaultdict(list)
    for step, call in own_tools(run):
        same[call.tool_name, argument_key(call)].append((step, call))
    for (name, _), calls in same.items():
        retried = [pair for pair in pairwise(calls) if _is_empty_answer(pair[0][1])]
        if retried:
            steps = dict.fromkeys(step.index for pair in retried for step, _ in pair)
            message = f"Empty result retried: {name}"
            yield Anomaly(code="empty_result_retried", message=message, steps=tuple(steps))


def _is_empty_answer(call: ToolCall) -> bool:
    return call.result is not None and is_empty(value_of(call.result))


def is_empty(value: JsonValue) -> bool:
    """Nothing was found: null, no text, no items, or empty lists and counts of 0."""
    if isinstance(value, str):
        return value.strip() in ("", "null")
    if not isinstance(value, dict):
        return value is None or value == []
    lists = [item for item in value.values() if isinstance(item, list | dict)]
    numbers = [item for item in value.values() if isinstance(item, int | float)]
    has_place = bool(lists) or not value or not COUNT_KEYS.isdisjoint(value)
    return has_place and not any(lists) and not any(n for n in numbers if n is not True)


# --- the answer --------------------------------------------------------------------------------


def error_words(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """A hint where the answer speaks of the run's own work; one that speaks of a failure that happened is honest."""
    words = [word for word in _error_words_in(run.output, rules) if _is_of_own_work(word, run.output)]
    if not words or failed_steps(run):
        return
    last = tuple(step.index for step, _ in run.model_calls[-1:])
    for word in words:
        message = f"Possible error in output: contains '{word}'"
        yield Anomaly(code="error_words", message=message, steps=last, level="info")


def _error_words_in(output: Payload | None, rules: Rules) -> list[str]:
    text = _plain(_words_of(output))
    return [word for word in rules.error_words if _begins_word(_plain(word), text)]


_OF_OTHERS = frozenset(Rules().error_words)
"""These are said of what an answer is about too, as in "error rate 2 %"; a team's own words count as they stand."""
_SUBJECT = (
    r"(?<!\w)(?:i|we)(?:'m|'re|'ve| am| are| was| were| have| had)?"
    r"(?: (?:so|very|really|also|still|got|hit|met|made|an|some|the|internal|unexpected))* "
)
_SYMPATHY = r"(?! to hear| for your| about your| that you\b)"
"""Said of what happened to the person who asks."""
_ALONE = r"(?=\s*(?:$|[,;!.\n]|:(?!\s*(?:\d|no\b|none\b)))|\s+(?:to|that|about|for|but|i|we)\b)"


def _is_of_own_work(word: str, output: Payload | None) -> bool:
    """ "I failed", or at the start of a sentence "Unable to …" and "Error: …"."""
    if word not in _OF_OTHERS:
        return True
    spelled = re.escape(_plain(word))
    own = rf"(?:{_SUBJECT}{spelled}(?!\w)|(?:^|[.!?:]\s+|\n\s*){spelled}{_ALONE}){_SYMPATHY}"
    return re.search(own, _plain(_words_of(output))) is not None


def _plain(text: str) -> str:
    return text.lower().replace("\u2019", "'").replace("\u02bc", "'")


def _begins_word(word: str, text: str) -> bool:
    """`errors` holds `error`, `terror` and `no errors` do not."""
    return bool(word) and re.search(rf"(?<!\w)(?<!no )(?<!0 )(?<!without ){re.escape(word)}", text) is not None


def _words_of(output: Payload | None) -> str:
    """The text; of structured output its texts, and the names of fields that say something."""
    text = text_of(output)
    if text is not None:
        return text
    said = [(key, item) for key, item in leaves(value_of(output)) if item not in (None, "", False)]
    texts = [item for _, item in said if isinstance(item, str)]
    return "\n".join([*texts, *(key for key, _ in said if key)])


def no_answer(run: Run, rules: Rules) -> Iterator[Anomaly]:
    if run.status == "running" or has_answer(run):
        return
    last = tuple(step.index for step in run.steps[-1:])
    yield Anomaly(code="no_answer", message=f"Ended without an answer: {_ending(run)}", steps=last)


def _ending(run: Run) -> str:
    open_calls = [step.name for step in _open_at_end(run)]
    if run.status == "cut_off" and open_calls:
        return f"{join_words(list(dict.fromkeys(open_calls)))} never returned"
    if run.status == "ok":
        # What failed on the way did not end it.
        return "no output was recorded" if run.output is None else "the output is empty"
    said = run.error or next((s.error for s in reversed(run.steps) if s.error), None)
    words = ": ".join(w for w in (said.type, said.message) if w) if said else ""
    return words or _STATUS_WORDS[run.status]


_STATUS_WORDS = {
    "error": "an error ended the run",
    "cut_off": "the recording stops",
    "running": "still running",
}


def _open_at_end(run: Run) -> list[Step]:
    last = max((step.index for step, _ in run.model_calls), default=0)
    return [s for s, call in own_tools(run) if s.index > last and call.result is None and not s.error]


def failed_calls(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """A call failed, and nobody made it again with success; swallowed where the answer does not speak of a failure."""
    if not has_answer(run):
        return  # which is said already
    owns_up = bool(_error_words_in(run.output, rules)) or _owns_up(run.output)
    failed: dict[str, list[tuple[Step, ToolCall]]] = {}
    for step, call in unhealed(run):
        failed.setdefault(call.tool_name, []).append((step, call))
    for name, pairs in failed.items():
        steps, said = tuple(step.index for step, _ in pairs), f"{name} {_failure_in_words(*pairs[0])}"
        if owns_up or any(_is_named(step, call, run.output) for step, call in pairs):
            yield Anomaly(code="call_failed", message=said, steps=steps)
        else:
            message = f"Error swallowed: {said} and the answer does not say so"
            yield Anomaly(code="error_swallowed", message=message, steps=steps)


def _failure_in_words(step: Step, call: ToolCall) -> str:
    if ended_in_error(step):
        return f"failed{_http(step)}"
    words = told_failure(call)
    return f"returned an error ({words})" if words else "returned an error"


def has_failed(step: Step) -> bool:
    """With an error, or with an answer that tells of one."""
    return ended_in_error(step) or (isinstance(step.call, ToolCall) and told_failure(step.call) is not None)


@once_each
def failed_steps(run: Run) -> dict[int, Step]:
    """By number, in their order."""
    return {step.index: step for step in run.steps if has_failed(step)}


@once_each
def unhealed(run: Run) -> list[tuple[Step, ToolCall]]:
    """Calls that failed, and that nobody made again with success: with the same arguments, or with any where the tool
    had said that these would not do."""
    failed: dict[tuple[str, bytes | None], list[tuple[Step, ToolCall]]] = defaultdict(list)
    every = failed_steps(run)
    for step, call in own_tools(run) if every else ():
        if step.index in every:
            failed[call.tool_name, None if _is_asked_again(step, call) else argument_key(call)].append((step, call))
        elif call.outcome != "retried":
            for arguments in (None, argument_key(call)):
                failed.pop((call.tool_name, arguments), None)
    return sorted((pair for pairs in failed.values() for pair in pairs), key=lambda pair: pair[0].index)


def _is_asked_again(step: Step, call: ToolCall) -> bool:
    """A loop of one's own may tell of any error in the words of a retry."""
    return call.outcome == "retried" and (step.error is None or step.error.type in _RETRY_ERRORS)


_RETRY_ERRORS = (None, "ToolRetryError", "ModelRetry")

_OWNING_UP = re.compile(
    r"(?<!\w)(could not|couldn't|cannot|was not able|were not able|not possible|unsuccessful|unavailable|went wrong"
    r"|did not work|didn't work|no luck|timed out|try again|unfortunately|apologi[sz]e|regret"
    r"|leider|konnte nicht|désolé|malheureusement|lo siento|no pude|não consegui|申し訳|できませんでした"
    r"|失敗|抱歉|无法)"
)
"""How people are told that something failed."""


def _owns_up(output: Payload | None) -> bool:
    return _OWNING_UP.search(_plain(_words_of(output))) is not None


def _is_named(step: Step, call: ToolCall, output: Payload | None) -> bool:
    """Whether the answer gives the status, or says what the error says, or how many failed."""
    words = _plain(_words_of(output))
    status, message = status_code(step), (step.error.message if step.error else told_failure(call)) or ""
    number = re.match(r"\d+ ", message)
    if number and re.search(rf"(?<![\d.,]){number[0].strip()}(?![\d.,]*\d)", words):
        return True
    return (status is not None and str(status) in words) or bool(message.strip() and _plain(message).strip() in words)


def _http(step: Step) -> str:
    status = status_code(step)
    return f" (HTTP {status})" if status is not None and status >= 400 else ""


# --- what tools were asked and answered --------------------------------------------------------


def cut_off_json(run: Run, rules: Rules) -> Iterator[Anomaly]:
    for step, call in own_tools(run):
        if any(is_cut_json(text) for text in _answer_texts(step, call)):
            message = f"Cut-off JSON in the answer of {call.tool_name}{_http(step)}"
            yield Anomaly(code="cut_off_json", message=message, steps=(step.index,))


def _answer_texts(step: Step, call: ToolCall) -> Iterator[str]:
    payloads = (call.result, step.http.response_body if step.http else None)
    yield from (text for text in map(text_of, payloads) if text)
    value = value_of(call.result)
    if isinstance(value, dict):
        yield from (item for item in value.values() if isinstance(item, str))


_JSON_START = re.compile(r'\s*(\{\s*("|\Z)|\[\s*(["\[{\d-]|\Z|true|false|null))')
_TOLERANT = json.JSONDecoder(strict=False)
_BEGUN_VALUE = re.compile(r"-?\d*\.?\d*([eE][+-]?)?|t(ru?)?|f(a(ls?)?)?|n(ul?)?|\\?u?[0-9a-fA-F]{0,4}")


def is_cut_json(text: str) -> bool:
    """Whether a text begins as JSON and stops before it is whole; other faults do not count."""
    if not _JSON_START.match(text):
        return False
    try:
        _TOLERANT.decode(text)
    except json.JSONDecodeError as error:
        return _stops_at(error, text.rstrip())
    except (ValueError, RecursionError):
        return False
    return False


def _stops_at(error: json.JSONDecodeError, text: str) -> bool:
    if error.msg.startswith("Unterminated string"):
        return True
    rest = text[error.pos :]
    return len(rest) < 16 and _BEGUN_VALUE.fullmatch(rest) is not None


def answer_cut(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """The last answer, where the run ended well: nobody saw that there was more to say."""
    for step, call in main_models(run)[-1:] if has_answer(run) else ():
        reason = call.finish_reason or object_of(call.response).get("finish_reason")
        if is_cut(reason):
            message = f"The answer was cut off: finish reason {reason}"
            yield Anomaly(code="answer_cut", message=message, steps=(step.index,))


def refusals_gone_past(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """A tool refused, and the answer speaks of success."""
    if not has_answer(run) or _owns_up(run.output):
        return
    for step, state in refusals_unsaid(run):
        message = f"{step.name} answered {state}, and the answer does not say so"
        yield Anomaly(code="refusal_unsaid", message=message, steps=(step.index,))


def answers_without_a_source(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """A note: what the answer says may stand in the instructions, or be common knowledge."""
    if not has_answer(run) or _owns_up(run.output) or _has_other_source(run):
        return
    searches = [step for step, call in own_tools(run) if is_search(call) and _is_empty_answer(call)]
    if searches and affirms(run):
        names = join_words(list(dict.fromkeys(step.name for step in searches)))
        message = f"{names} found nothing, and the answer has no other source"
        steps = tuple(step.index for step in searches)
        yield Anomaly(code="no_source", message=message, steps=steps, level="info")


def _has_other_source(run: Run) -> bool:
    """An earlier turn, another step that may have brought something, or an answer of a tool that is not empty or was
    not recorded."""
    others = any(not isinstance(step.call, ModelCall | ToolCall) for step in run.steps)
    earlier = run.prior is not None or any(seen.message.get("kind") == "response" for seen in first_requests(run))
    return others or earlier or not all(_is_empty_answer(call) for _, call in own_tools(run))


def empty_results_gone_past(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """Nothing was found, and the answer speaks of it as if something had been."""
    if not has_answer(run):
        return
    empty = {step.index for step, call in own_tools(run) if _is_empty_answer(call)}
    for step, name in named_though_not_found(run, empty):
        message = f"{step.name} found nothing, and the answer speaks of {name} without saying so"
        yield Anomaly(code="empty_result_unsaid", message=message, steps=(step.index,))


def sums_contradicted(run: Run, rules: Rules) -> Iterator[Anomaly]:
    for step, key, number, told in other_sums(run):
        message = f"{step.name} was called with {key} {number:g}, {told:g} was told before"
        yield Anomaly(code="other_sum", message=message, steps=(step.index,))


def total_contradicted(run: Run, rules: Rules) -> Iterator[Anomaly]:
    found = total_beside_lines(run) if has_answer(run) else None
    if found is not None:
        step, said, total = found
        message = f"The answer gives a total of {said:.12g}, and the lines of {step.name} come to {total:.12g}"
        yield Anomaly(code="other_total", message=message, steps=(step.index,), level="info")


def acted_on_unnamed(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """Another id than the one that the question names, and no tool and no message had told of it."""
    for step, used, asked in unnamed_ids(run):
        message = f"{step.name} acted on {used}, which nobody named; the question names {asked}"
        yield Anomaly(code="unnamed_id", message=message, steps=(step.index,))


def unscoped_calls(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """Tools that were called without saying for whom, in a run that knew it."""
    field, owner = ("user_id", run.user_id) if run.user_id else ("tenant_id", run.tenant_id)
    if not owner:
        return
    found: dict[str, list[int]] = {}
    of_owners = _tools_of_owners(run)
    for step, call in own_tools(run):
        if call.tool_name in of_owners and not _step_owner(step, field) and not _names_owner(run, call):
            found.setdefault(call.tool_name, []).append(step.index)
    for name, steps in found.items():
        message = f"{name} was called without {field}"
        yield Anomaly(code="unscoped_call", message=message, steps=tuple(steps))


def _tools_of_owners(run: Run) -> set[str]:
    """Tools that the record shows to act for a user or a tenant: their schema or another call names one, they returned
    what belongs to one, they were asked for what is "my ...", or other calls reached their tools with one and no schema
    rules it out. Those that were asked who somebody is, for a later call, are not among them."""
    schemas = _takes_owners(run)
    reached = any(step.user_id or step.tenant_id for step, _ in own_tools(run))
    return {
        call.tool_name
        for _, call in own_tools(run)
        if schemas.get(call.tool_name, reached)
        or _names_owner(run, call)
        or _gives_of_owners(call)
        or _asks_for_own(call)
    } - _directories(run)


def _takes_owners(run: Run) -> dict[str, bool]:
    """Each tool of a recorded schema: whether that has a place for a user or a tenant."""
    offered = {id(tool): object_of(tool) for _, call in run.model_calls for tool in call.tools or ()}
    schemas = ((str(tool.get("name")), tool.get("parameters_json_schema")) for tool in offered.values())
    named = ((name, schema.get("properties")) for name, schema in schemas if isinstance(schema, dict))
    return {name: not _OWNER_KEYS.isdisjoint(keys) for name, keys in named if isinstance(keys, dict)}


_OWN_THING = re.compile(r"my (\w+ )?\w+", re.IGNORECASE)


def _asks_for_own(call: ToolCall) -> bool:
    """As in `my order`, which means nothing to a tool that does not know whose."""
    return any(isinstance(item, str) and _OWN_THING.fullmatch(item) for _, item in leaves(value_of(call.arguments)))


def _directories(run: Run) -> set[str]:
    """Tools that gave a user or a tenant whom a later call names."""
    given: dict[str, str] = {}
    found: set[str] = set()
    for _, call in own_tools(run):
        found |= {given[str(item)] for _, item in leaves(value_of(call.arguments)) if str(item) in given}
        given |= {str(item): call.tool_name for key, item in leaves(value_of(call.result)) if key in _OWNER_KEYS}
    return found


_OWNER_KEYS = USER_KEYS | TENANT_KEYS


def _gives_of_owners(call: ToolCall) -> bool:
    return any(key in _OWNER_KEYS for key, _ in leaves(value_of(call.result)))


def _step_owner(step: Step, field: str) -> str | None:
    return step.user_id if field == "user_id" else step.tenant_id


def _names_owner(run: Run, call: ToolCall) -> bool:
    owners = {owner for owner in (run.user_id, run.tenant_id) if owner}
    return any(
        item not in (None, "") and (key in _OWNER_KEYS or str(item) in owners)
        for key, item in leaves(value_of(call.arguments))
    )


def other_identity(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """A tool was called for somebody else than the run's user or tenant."""
    owners = {"user_id": run.user_id, "tenant_id": run.tenant_id}
    for step, call in own_tools(run) if any(owners.values()) else ():
        for key, item in leaves(value_of(call.arguments)):
            owner = owners.get(key or "")
            if owner and item not in (None, "") and str(item) != owner:
                message = f"{call.tool_name} was called with {key} {item}, the run has {owner}"
                yield Anomaly(code="other_identity", message=message, steps=(step.index,))


def used_of_other(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """A tool gave what belongs to somebody else, and another tool was called with it. Who asked for that person, or is
    given what belongs to several, may well serve them."""
    owners = {"user_id": run.user_id, "tenant_id": run.tenant_id}
    if not any(owners.values()) or _serves_several(run):
        return
    found: dict[tuple[int, int], UseOfOther] = {}
    for use in uses_of_others(tool_uses(run), [((key,), owner) for key, owner in owners.items()][::-1]):
        if use.value != use.owner and not _asked_for_somebody(use.given.arguments):
            found.setdefault((use.given.step, use.call.step), use)
    for steps, use in found.items():
        message = (
            f"{use.given.tool} returned a record of {use.owner}, and {use.call.tool} was called with its {use.value}; "
            f"the run is for {join_words([owner for owner in owners.values() if owner])}"
        )
        yield Anomaly(code="used_of_other", message=message, steps=steps)


def _serves_several(run: Run) -> bool:
    given = [leaf for _, call in own_tools(run) for leaf in leaves(value_of(call.result))]
    return any(
        len({str(item) for key, item in given if key == field and item} - {owner}) > 1
        for field, owner in (("user_id", run.user_id), ("tenant_id", run.tenant_id))
        if owner
    )


def _asked_for_somebody(arguments: JsonValue) -> bool:
    return any(key in _OWNER_KEYS for key, _ in leaves(arguments))


# --- models, state, time -----------------------------------------------------------------------


def model_changed(run: Run, rules: Rules) -> Iterator[Anomaly]:
    named = [(step, name) for step, call in main_models(run) if (name := call.model or call.answered_model)]
    for (before, old), (step, new) in pairwise(named):
        if old != new:
            message = f"Model changed: {old}, then {new}"
            yield Anomaly(code="model_changed", message=message, steps=(before.index, step.index))


def other_model_answered(run: Run, rules: Rules) -> Iterator[Anomaly]:
    found: dict[tuple[str, str], list[int]] = {}
    for step, call in run.model_calls:
        asked, answered = call.model, call.answered_model
        if asked and answered and not is_same_model(asked, answered):
            found.setdefault((asked, answered), []).append(step.index)
    for (asked, answered), steps in found.items():
        message = f"Asked for {asked}, {answered} answered"
        yield Anomaly(code="other_model_answered", message=message, steps=tuple(steps))


def state_chain_broken(run: Run, rules: Rules) -> Iterator[Anomaly]:
    before: int | None = None
    for step in run.steps:
        if step.state is None:
            continue
        if step.state.before:
            paths = ", ".join(str(change.get("path")) for change in step.state.before[:3])
            message = f"State changed between steps, not by one: {paths}"
            steps = (step.index,) if before is None else (before, step.index)
            yield Anomaly(code="state_chain_broken", message=message, steps=steps)
        before = step.index


def spans_under_one_id(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """Two spans with one id that say different things: the run is made of the one that ended last."""
    trace = run.extra.get("trace")
    ids = trace.get("contradicted_spans") if isinstance(trace, dict) else None
    for span_id in ids if isinstance(ids, list) else ():
        steps = tuple(step.index for step in run.steps if _span_id(step) == span_id)
        message = f"Two spans came with the id {span_id} and different contents; the one that ended last counts"
        yield Anomaly(code="spans_under_one_id", message=message, steps=steps)


def spans_lost(run: Run, rules: Rules) -> Iterator[Anomaly]:
    lost = lost_spans(run)
    if lost:
        steps = tuple(step.index for step in run.steps if _has_lost_parent(step))
        message = (
            f"{count(len(lost), 'span')} around steps never came; these count as part of what was open around them"
        )
        yield Anomaly(code="spans_lost", message=message, steps=steps)


def _has_lost_parent(step: Step) -> bool:
    span = step.extra.get("span")
    return isinstance(span, dict) and span.get("is_orphan") is True


def _span_id(step: Step) -> JsonValue:
    span = step.extra.get("span")
    return span.get("span_id") if isinstance(span, dict) else None


def finish_order(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """Parallel calls that finished in another order than they were called in."""
    groups: dict[int | None, list[tuple[Step, datetime, datetime]]] = defaultdict(list)
    for step, _ in own_tools(run):
        if step.started_at is not None and step.ended_at is not None:
            groups[step.parent].append((step, step.started_at, step.ended_at))
    for group in groups.values():
        yield from _overtakings(group)


def _overtakings(group: list[tuple[Step, datetime, datetime]]) -> Iterator[Anomaly]:
    overtaken: list[Step] = []
    for (first, _, first_end), (second, second_start, second_end) in pairwise(group):
        if second_start < first_end and second_end < first_end:
            overtaken += [first, second]
    if overtaken:
        names = join_words(list(dict.fromkeys(f"{s.name} (step {s.index})" for s in overtaken)))
        message = f"Parallel calls finished in another order than they were made: {names}"
        steps = tuple(dict.fromkeys(step.index for step in overtaken))
        yield Anomaly(code="finish_order", message=message, steps=steps, level="info")


def slow_steps(run: Run, rules: Rules) -> Iterator[Anomaly]:
    slow = [s for s in run.steps if s.duration_ms is not None and s.duration_ms > rules.slow_step_ms]
    if slow:
        seconds = max(s.duration_ms or 0 for s in slow) / 1000
        message = f"{count(len(slow), 'slow step')}, the longest took {seconds:.1f} s"
        steps = tuple(step.index for step in slow)
        yield Anomaly(code="slow_step", message=message, steps=steps, level="info")


Detector = Callable[[Run, Rules], Iterator[Anomaly]]
DETECTORS: tuple[Detector, ...] = (
    many_tool_calls,
    duplicate_calls,
    error_words,
    no_answer,
    empty_result_retried,
    answer_cut,
    refusals_gone_past,
    empty_results_gone_past,
    answers_without_a_source,
    sums_contradicted,
    total_contradicted,
    cut_off_json,
    acted_on_unnamed,
    unscoped_calls,
    other_identity,
    used_of_other,
    failed_calls,
    model_changed,
    other_model_answered,
    state_chain_broken,
    spans_under_one_id,
    spans_lost,
    finish_order,
    slow_steps,
)


RULES: dict[str, str] = {
    "many_tool_calls": "The run made more tool calls than the limit above; "
    "a note where no two were alike and none failed.",
    "duplicate_call": "A tool was called again with the same arguments; "
    "a note where the first call failed, or where what it reads has changed.",
    "error_words": "The answer holds one of the words above; a note.",
    "no_answer": "The run ended without an answer.",
    "empty_result_retried": "A call that found nothing was made again with the same arguments.",
    "empty_result_unsaid": "A call found nothing, and the answer speaks of what was asked for without saying so.",
    "answer_cut": "The last answer was cut off, at its limit of tokens, and the run went on as if it were whole.",
    "refusal_unsaid": "A tool answered that it refused, and the answer speaks of success.",
    "no_source": "Searches found nothing, no other tool gave anything, and the answer affirms all the same; a note.",
    "other_sum": "A call went on with another sum than a tool had told.",
    "other_total": "The total in the answer is not the sum of the lines that a tool gave; a note.",
    "unnamed_id": "A tool was called with an id that nobody had named, where the question names another one.",
    "cut_off_json": "A tool's answer begins as JSON and stops before its end.",
    "unscoped_call": "A tool that acts for a user or a tenant was called without one, in a run that knows them.",
    "other_identity": "A tool was called for another user or tenant than the run's.",
    "used_of_other": "A tool returned a record of another user or tenant, and a later call used it.",
    "call_failed": "A call failed and was not made again with success; the answer says so.",
    "error_swallowed": "A call failed and was not made again with success; the answer does not say so.",
    "model_changed": "The agent's loop changed to another model.",
    "other_model_answered": "Another model answered than the one that was asked.",
    "state_chain_broken": "The state changed between two steps, and not by one of them.",
    "spans_under_one_id": "Two spans came with one id and different contents.",
    "spans_lost": "Spans around steps never came.",
    "finish_order": "Parallel calls finished in another order than they were made; a note.",
    "slow_step": "A step took longer than the limit above; a note.",
}
"""What each code of an anomaly means."""
