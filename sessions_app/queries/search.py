"""What a query means for rows: a run matches all its terms; a session matches when one of its runs does."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import reduce
from operator import or_

from django.contrib.postgres.search import SearchQuery
from django.db.models import Exists, F, Func, IntegerField, OuterRef, Q, QuerySet, TextField, Value
from django.db.models.functions import Coalesce
from django.db.models.lookups import Exact, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual, Regex

from sessions_app.core.search.query import NumberValue, Query, TextValue
from sessions_app.core.search.words import is_one_unspaced, spaced
from sessions_app.models import Replay, Run
from sessions_app.models.replays import IS_ATTEMPT

_SEPARATOR = "\x1f"
"""Between the names of tools when they are searched as one text; names hold no control characters."""


def matching_runs(runs: QuerySet[Run], query: Query) -> QuerySet[Run]:
    """The runs that match. Only recorded ones, unless the query asks for an origin."""
    if not query.has_key("origin"):
        runs = runs.filter(origin="recorded")
    for term in query.terms:
        condition = reduce(or_, (CONDITIONS[term.key](value) for value in term.values))
        runs = runs.filter(~condition if term.is_negated else condition)
    for phrase in query.phrases:
        runs = runs.filter(search=_search_for(phrase))
    return runs


def _search_for(phrase: str) -> SearchQuery:
    if is_one_unspaced(phrase):
        return SearchQuery(f"{phrase}:*", config="simple", search_type="raw")
    return SearchQuery(spaced(phrase), config="simple", search_type="phrase")


Condition = Callable[[TextValue | NumberValue], Q]


def _text(column: str) -> Condition:
    def condition(value: TextValue | NumberValue) -> Q:
        assert isinstance(value, TextValue)
        if not value.is_pattern:
            return Q(**{column: value.text})
        return Q(**{f"{column}__regex": pattern(value)})

    return condition


def pattern(value: TextValue) -> str:
    """The stars as a regular expression; everything else stands for itself."""
    return "^" + ".*".join(re.escape(piece) for piece in value.pieces) + "$"


def _commit(value: TextValue | NumberValue) -> Q:
    """A commit is named by its beginning."""
    assert isinstance(value, TextValue)
    return _text("commit")(value) if value.is_pattern else Q(commit__istartswith=value.text)


def _one_of_array(column: str) -> Condition:
    def condition(value: TextValue | NumberValue) -> Q:
        assert isinstance(value, TextValue)
        if not value.is_pattern:
            return Q(**{f"{column}__contains": [value.text]})
        joined = Func(F(column), Value(_SEPARATOR), function="array_to_string", output_field=TextField())
        inner = f"[^{_SEPARATOR}]*".join(re.escape(piece) for piece in value.pieces)
        return Q(Regex(joined, f"(^|{_SEPARATOR}){inner}({_SEPARATOR}|$)"))

    return condition


def _model(value: TextValue | NumberValue) -> Q:
    return _text("model")(value) | _one_of_array("model_names")(value)


COMPARISONS = {"=": Exact, ">": GreaterThan, ">=": GreaterThanOrEqual, "<": LessThan, "<=": LessThanOrEqual}
_LOOKUPS = {"=": "exact", ">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}


def _number(column: str) -> Condition:
    """Runs without the number match no comparison."""

    def condition(value: TextValue | NumberValue) -> Q:
        assert isinstance(value, NumberValue)
        return Q(**{f"{column}__{_LOOKUPS[value.comparison]}": value.number})

    return condition


def _tokens(value: TextValue | NumberValue) -> Q:
    assert isinstance(value, NumberValue)
    total = Coalesce(F("input_tokens"), 0) + Coalesce(F("output_tokens"), 0)
    is_known = Q(input_tokens__isnull=False) | Q(output_tokens__isnull=False)
    return is_known & Q(COMPARISONS[value.comparison](total, value.number))


def _anomaly_count(value: TextValue | NumberValue) -> Q:
    assert isinstance(value, NumberValue)
    count = Func(F("anomalies"), function="jsonb_array_length", output_field=IntegerField())
    return Q(COMPARISONS[value.comparison](count, value.number))


def _anomaly(value: TextValue | NumberValue) -> Q:
    assert isinstance(value, TextValue)
    if not value.is_pattern:
        return Q(anomalies__contains=[{"code": value.text}])
    return Q(_id_in_json("anomalies", value))


def _id_in_json(column: str, value: TextValue) -> Regex:
    codes = Func(F(column), Value("$[*].code"), function="jsonb_path_query_array", output_field=TextField())
    as_text = Func(codes, template="(%(expressions)s)::text", output_field=TextField())
    inner = '[^"]*'.join(re.escape(piece) for piece in value.pieces)
    return Regex(as_text, f'"{inner}"')


def _kind(value: TextValue | NumberValue) -> Q:
    assert isinstance(value, TextValue)
    return Q(step_kinds__contains=[value.text])


def _verdict(value: TextValue | NumberValue) -> Q:
    """The judge's verdict on the run, or the verdict of an attempt at reproducing it."""
    assert isinstance(value, TextValue)
    if value.text in ("cold", *_READINESS.values()):
        return Q(verdict=value.text)
    same = Replay.objects.filter(IS_ATTEMPT, run=OuterRef("pk"), content=OuterRef("content"), verdict=value.text)
    return Q(Exists(same))


IS_COLD = Q(cold_case__isnull=False) | Q(verdict="cold") & ~Q(status="running")
"""Marked by a person, or judged so when it arrived; a run that goes on may still get what it lacks."""
_READINESS = {"ready": "replayable", "partial": "replayable_to_step"}
REPLAY = {"cold": IS_COLD} | {
    name: Q(verdict=verdict, cold_case__isnull=True) & ~Q(status="running") for name, verdict in _READINESS.items()
}
"""As the list shows it: a run that goes on is nothing of the three yet."""


def _replay(value: TextValue | NumberValue) -> Q:
    assert isinstance(value, TextValue)
    return REPLAY[value.text]


def _cold(value: TextValue | NumberValue) -> Q:
    assert isinstance(value, TextValue)
    return IS_COLD if value.text == "yes" else ~IS_COLD


def _reason(value: TextValue | NumberValue) -> Q:
    """Why a person marked the run cold: words of the reason, in whatever case."""
    assert isinstance(value, TextValue)
    if value.is_pattern:
        return Q(cold_case__reason__iregex=pattern(value))
    return Q(cold_case__reason__icontains=value.text)


def _missing(value: TextValue | NumberValue) -> Q:
    """Any status of the kit line but `captured`."""
    assert isinstance(value, TextValue)
    return Q(kit_lacks__contains=[value.text])


_HAS: dict[str, Q] = {
    "error": Q(status__in=("error", "cut_off")) | Q(error_preview__isnull=False),
    "anomaly": Q(anomalies__contains=[{"level": "warning"}]),
    "replay": Q(Exists(Replay.objects.filter(run=OuterRef("pk")))),
    "commit": Q(commit__isnull=False),
    "user": Q(user_id__isnull=False),
    "tenant": Q(tenant_id__isnull=False),
    "cold": IS_COLD,
    "output": Q(output_preview__isnull=False),
    "tool": Q(tool_call_count__gt=0),
}


def _has(value: TextValue | NumberValue) -> Q:
    assert isinstance(value, TextValue)
    return _HAS[value.text]


CONDITIONS: dict[str, Condition] = {
    "status": _text("status"),
    "tool": _one_of_array("tool_names"),
    "kind": _kind,
    "model": _model,
    "provider": _text("provider"),
    "agent": _text("agent_name"),
    "user": _text("user_id"),
    "tenant": _text("tenant_id"),
    "session": _text("session__session_id"),
    "run": _text("run_id"),
    "version": _text("agent_version"),
    "commit": _commit,
    "verdict": _verdict,
    "replay": _replay,
    "cold": _cold,
    "reason": _reason,
    "missing": _missing,
    "group": _text("failure_group"),
    "tag": _one_of_array("session__tags"),
    "origin": _text("origin"),
    "steps": _number("step_count"),
    "took": _number("duration_ms"),
    "tokens": _tokens,
    "has": _has,
    "anomaly": _anomaly,
    "anomalies": _anomaly_count,
}
