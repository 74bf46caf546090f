"""The anomaly rules of a project."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from sessions_app.core.judge.anomalies.anomaly import Rules
from sessions_app.core.judge.anomalies.detectors import RULES, name_of
from sessions_app.models import Project
from sessions_app.queries.fired_rules import FiredRules, fired_rules
from sessions_app.services.judgement import rules, save_rules, usual_rules
from sessions_app.web.access import project_page
from sessions_app.web.projects.anomaly_groups import GROUPS

MOST_WORDS = 50
LOOKED_BACK = timedelta(days=30)


class OddForm(forms.Form):
    max_tool_calls = forms.IntegerField(min_value=1, max_value=1_000_000)
    slow_step_s = forms.FloatField(min_value=0.001, max_value=1_000_000)
    error_words = forms.CharField(required=False, max_length=4_000, widget=forms.Textarea)
    on = forms.MultipleChoiceField(required=False, choices=[(code, code) for code in RULES])

    def clean_error_words(self) -> tuple[str, ...]:
        words = tuple(
            dict.fromkeys(word.strip() for word in self.cleaned_data["error_words"].splitlines() if word.strip())
        )
        if len(words) > MOST_WORDS or any(len(word) > 60 for word in words):
            raise forms.ValidationError(f"At most {MOST_WORDS} words, each of at most 60 characters.")
        return words

    def rules(self) -> Rules:
        said = self.cleaned_data
        return replace(
            usual_rules(),
            max_tool_calls=said["max_tool_calls"],
            slow_step_ms=said["slow_step_s"] * 1000,
            error_words=said["error_words"],
            off=tuple(code for code in RULES if code not in said["on"]),
        )


@never_cache
@require_http_methods(["GET", "POST"])
@project_page("admin")
def anomalies(request: HttpRequest, project: Project) -> HttpResponse:
    form = OddForm(request.POST if request.method == "POST" else _typed(rules(project)))
    if request.method == "POST" and ("usual" in request.POST or form.is_valid()):
        save_rules(project, usual_rules() if "usual" in request.POST else form.rules())
        messages.info(request, "Saved. The rules apply to what arrives from now on.")
        return redirect("anomaly_rules", project.slug)
    fired = fired_rules(project, timezone.now() - LOOKED_BACK)
    groups = _groups(form, fired)
    facts = {
        "project": project,
        "section": "settings",
        "settings_page": "anomalies",
        "form": form,
        "groups": groups,
        "rule_count": len(RULES),
        "fired_count": sum(len(group.fired) for group in groups),
        "fired": fired,
        "has_own": bool(project.anomaly_rules),
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "projects/anomalies.html", facts, status=status)


def _typed(odd: Rules) -> dict[str, object]:
    words = "\n".join(odd.error_words)
    return {
        "max_tool_calls": odd.max_tool_calls,
        "slow_step_s": f"{odd.slow_step_ms / 1000:g}",
        "error_words": words,
        "on": [code for code in RULES if code not in odd.off],
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class _Rule:
    code: str
    name: str
    words: str
    is_on: bool
    runs: int
    """In how many it found something."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Group:
    title: str
    fired: list[_Rule]
    """The most first."""
    unfired: list[_Rule]

    @property
    def unfired_off(self) -> int:
        return sum(not rule.is_on for rule in self.unfired)


def _groups(form: OddForm, fired: FiredRules) -> list[_Group]:
    on = form["on"].value() or []
    return [_group(title, [_rule(code, on, fired) for code in codes]) for title, codes in GROUPS.items()]


def _rule(code: str, on: list[str], fired: FiredRules) -> _Rule:
    runs = fired.by_code.get(code, 0)
    return _Rule(code=code, name=name_of(code), words=RULES[code], is_on=code in on, runs=runs)


def _group(title: str, rules: list[_Rule]) -> _Group:
    fired = sorted((rule for rule in rules if rule.runs), key=lambda rule: -rule.runs)
    return _Group(title=title, fired=fired, unfired=[rule for rule in rules if not rule.runs])
