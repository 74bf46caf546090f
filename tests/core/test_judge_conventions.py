"""What a run lacks is to be had by a setting of what recorded it: each origin, and none of another."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from sessions_app.core.assembly.run import assemble
from sessions_app.core.judge.convention_fixes import BY_ORIGIN, CUT_OFF, SPAN_FIXES
from sessions_app.core.judge.conventions import fix_for, is_cut_off
from sessions_app.core.judge.fixes import FIXES, WITHOUT_OWN_CODE, Fix
from sessions_app.core.judge.kit import KIT_LINES, audit_kit
from sessions_app.core.judge.verdict import judge
from sessions_app.core.run import EXCHANGES, SPANS, AgentInfo, Run
from sessions_app.core.spans.span import Scope, Span
from tests.core.test_judge_runs import make_run, make_whole_run, model, tool
from tests.traces.captures import Capture, captures


def spans_run(*scopes: str, conventions: tuple[str, ...] = (), **fields: Any) -> Run:
    """A run that came as spans, without contents."""
    trace = {"scopes": list(scopes), "conventions": dict.fromkeys(conventions, 1)}
    bare = make_run(model(None), tool(result=None), model(None), source_format=SPANS, extra={"trace": trace})
    return replace(bare, **{"input": None, "output": None, **fields})


def with_attributes(run: Run, **attributes: Any) -> Run:
    """The first step's span with attributes that nobody understood."""
    first = replace(run.steps[0], extra={"span": {"attributes": attributes}})
    return replace(run, steps=(first, *run.steps[1:]))


ORIGINS: dict[str, tuple[tuple[str, ...], tuple[str, ...], str]] = {
    "OpenTelemetry": (
        ("opentelemetry.instrumentation.openai_v2 2.4b0",),
        ("otel-genai",),
        "OTEL_INSTRUMENTATION_GENAI",
    ),
    "Pydantic AI": (("pydantic-ai 2.68.0",), ("otel-genai",), "include_content=True"),
    "Google ADK": (("gcp.vertex.agent 2.13.0",), ("otel-genai",), "SPAN_AND_EVENT"),
    "LangChain by Traceloop": (
        ("opentelemetry.instrumentation.langchain 0.62.4",),
        ("otel-genai", "traceloop"),
        "TRACELOOP_TRACE_CONTENT=true",
    ),
    "Traceloop": (("traceloop.tracer",), ("traceloop",), "TRACELOOP_TRACE_CONTENT=true"),
    "OpenInference": (
        ("openinference.instrumentation.openai 0.1.66",),
        ("openinference",),
        "OPENINFERENCE_HIDE_INPUTS",
    ),
    "own spans after OpenInference": (("shop.agent",), ("openinference",), "OPENINFERENCE_HIDE_INPUTS=false"),
    "Vercel": (("ai",), ("vercel-ai-sdk",), "recordInputs: true, recordOutputs: true"),
    "Langfuse": (("langfuse-sdk 5.0.4",), ("langfuse",), "LANGFUSE_OBSERVE_DECORATOR_IO_CAPTURE_ENABLED=true"),
    "LangSmith": (("langsmith",), ("langsmith",), "LANGSMITH_HIDE_INPUTS=false"),
    "OpenAI Agents": (("openai-agents",), ("openai-agents",), "OPENAI_AGENTS_TRACE_INCLUDE_SENSITIVE_DATA=true"),
}


@pytest.mark.parametrize("origin", ORIGINS)
def test_missing_contents_name_the_setting_of_their_origin(origin: str):
    scopes, conventions, setting = ORIGINS[origin]

    line = audit_kit(spans_run(*scopes, conventions=conventions)).line("input")

    assert line.status == "missing"
    assert setting in (line.code or "")


def test_settings_for_contents_differ_by_origin():
    said = {
        origin: fix_for(spans_run(*scopes, conventions=names), "input")
        for origin, (scopes, names, _) in ORIGINS.items()
    }

    assert said["Google ADK"] != said["OpenTelemetry"]
    assert said["own spans after OpenInference"] == said["OpenInference"]
    assert said["LangChain by Traceloop"] == said["Traceloop"]
    assert len(set(said.values())) == len(said) - 2


def test_span_without_contents_beside_an_instrumentation_names_the_instrumentation():
    both = spans_run(
        "com.anthropic.sdk.python 2.11.0", "openinference.instrumentation.x 1", conventions=("openinference",)
    )
    alone = spans_run("com.anthropic.sdk.python 2.11.0", conventions=("otel-genai",))

    assert "OPENINFERENCE" in (fix_for(both, "input").code or "")
    assert "those of an instrumentation do" in fix_for(alone, "input").sentence


@pytest.mark.parametrize("key", [key for key, *_ in KIT_LINES])
def test_run_from_unknown_spans_is_told_an_attribute_and_no_field_of_a_record(key: str):
    run = spans_run("shop.agent 1.0", conventions=("none",))

    assert fix_for(run, key) == SPAN_FIXES[key]
    assert fix_for(run, key) != FIXES[key]


@pytest.mark.parametrize("key", FIXES)
def test_run_that_came_as_a_record_is_told_fields_of_a_record(key: str):
    run = replace(spans_run("pydantic-ai 2.68.0", conventions=("otel-genai",)), source_format="native")

    assert fix_for(run, key) == FIXES[key]


@pytest.mark.parametrize("key", FIXES)
def test_every_shortfall_has_a_fix_for_spans(key: str):
    assert fix_for(spans_run("shop.agent 1.0"), key).sentence


def test_what_is_captured_needs_no_setting():
    extra = {"trace": {"scopes": ["pydantic-ai 2.68.0"], "conventions": {"otel-genai": 3}}}

    kit = audit_kit(make_whole_run(source_format=SPANS, extra=extra))

    assert [line.key for line in kit.lines if line.fix is not None or line.code is not None] == []


def test_openai_agents_name_the_recorder_for_what_their_traces_never_hold():
    run = spans_run("openai-agents", conventions=("openai-agents",))

    assert "Responses API holds no contents: use the recorder" in fix_for(run, "input").sentence
    assert "without their schemas: use the recorder" in fix_for(run, "tool_schemas").sentence


# --- no other framework's words ----------------------------------------------------------------

WORDS = {
    "Pydantic AI": r"Pydantic AI|ctx\.enqueue|history processor|InstrumentationSettings|agent\.run\(",
    "OpenAI Agents": r"OpenAI Agents|OPENAI_AGENTS|[Tt]he SDK's own|with trace\(",
    "LangChain": r"graph\.invoke|LangGraph|LangChain",
    "Vercel": r"AI SDK|experimental_telemetry|recordInputs",
    "Google ADK": r"Google ADK",
    "Strands": r"Strands|trace_attributes=",
    "OpenInference": r"(?i)openinference",
    "Traceloop": r"(?i)traceloop",
    "Langfuse": r"(?i)langfuse|propagate_attributes",
    "LangSmith": r"(?i)langsmith",
    "MLflow": r"(?i)mlflow",
    "Anthropic": r"Anthropic SDK",
}
SEEN: dict[str, tuple[tuple[str, ...], str, tuple[str, ...]]] = {
    # scopes of the spans, convention, whose words may be said
    "Pydantic AI": (("pydantic-ai 2.68.0",), "otel-genai", ("Pydantic AI",)),
    "OpenAI Agents": (("openai-agents",), "openai-agents", ("OpenAI Agents", "OpenInference")),
    "OpenAI Agents by OpenInference": (
        ("openinference.instrumentation.openai_agents 1",),
        "openinference",
        ("OpenInference",),
    ),
    "LangGraph by Traceloop": (
        ("opentelemetry.instrumentation.langchain 0.62",),
        "traceloop",
        ("LangChain", "Traceloop"),
    ),
    "LangGraph by OpenInference": (("openinference.instrumentation.langchain 1",), "openinference", ("OpenInference",)),
    "LangGraph by LangSmith": (("langsmith",), "langsmith", ("LangSmith",)),
    "openai by OpenTelemetry": (("opentelemetry.instrumentation.openai_v2 2.4b0",), "otel-genai", ()),
    "openai by OpenInference": (("openinference.instrumentation.openai 1",), "openinference", ("OpenInference",)),
    "openai by Langfuse": (("langfuse-sdk 5.0.4",), "langfuse", ("Langfuse",)),
    "anthropic by Traceloop": (
        ("opentelemetry.instrumentation.anthropic 0.62", "traceloop.tracer"),
        "traceloop",
        ("Traceloop",),
    ),
    "anthropic alone": (("com.anthropic.sdk.python 2.11.0",), "otel-genai", ("Anthropic",)),
    "MLflow": (("mlflow.tracing.provider",), "mlflow", ("MLflow",)),
    "Vercel": (("ai",), "vercel-ai-sdk", ("Vercel",)),
    "Google ADK": (("gcp.vertex.agent 2.13.0",), "otel-genai", ("Google ADK",)),
    "Strands": (("strands.telemetry.tracer",), "otel-genai", ("Strands",)),
    "own spans": (("shop.agent",), "none", ()),
}
OF_ONE_FRAMEWORK = {"last_message_taken", "sent_otherwise"}
"""Reasons that runs of one framework alone can have, as its own recorder writes them."""


def named_in(fix: Fix) -> set[str]:
    return {name for name, words in WORDS.items() if re.search(words, f"{fix.sentence} {fix.code or ''}")}


@pytest.mark.parametrize("is_whole", [False, True])
@pytest.mark.parametrize("seen", SEEN)
def test_no_other_framework_is_named_than_was_seen(seen: str, is_whole: bool):
    scopes, convention, may_be_named = SEEN[seen]
    run = spans_run(*scopes, conventions=(convention,))
    if is_whole:
        run = make_whole_run(source_format=SPANS, extra=run.extra)

    said = {key: named_in(fix_for(run, key)) for key in {*FIXES, *SPAN_FIXES} - OF_ONE_FRAMEWORK}

    assert {key: names for key, names in said.items() if not names <= set(may_be_named)} == {}
    assert is_whole or set().union(*said.values()) == set(may_be_named)  # each is named where contents are missing


@pytest.mark.parametrize("framework", ["pydantic-ai", "openai-agents", "langchain", "langgraph", None])
def test_no_framework_is_named_for_a_record(framework: str | None):
    run = replace(spans_run(), source_format="native", agent=AgentInfo(framework=framework))

    assert {key for key in FIXES.keys() - OF_ONE_FRAMEWORK if named_in(fix_for(run, key))} == set()


@pytest.mark.parametrize("seen", SEEN)
def test_a_replay_with_own_code_is_advised_where_there_can_be_one(seen: str):
    scopes, convention, _ = SEEN[seen]
    run = spans_run(*scopes, conventions=(convention,))

    said = {key: fix_for(run, key) for key in WITHOUT_OWN_CODE}

    assert said == ({key: FIXES[key] for key in said} if "Pydantic" in seen or "Agents" in seen else WITHOUT_OWN_CODE)


@pytest.mark.parametrize(
    ("framework", "source", "can_be"),
    [
        ("pydantic-ai", "native", True),
        ("openai-agents", "native", True),
        (None, "native", True),
        ("langgraph", "native", False),
        ("langchain", "native", False),
        (None, EXCHANGES, False),
    ],
)
def test_own_code_of_graphs_and_plain_loops_is_not_replayed(framework: str | None, source: str, can_be: bool):
    run = replace(spans_run(), source_format=source, agent=AgentInfo(framework=framework))

    assert (fix_for(run, "error_outside_loop") == FIXES["error_outside_loop"]) == can_be


@pytest.mark.parametrize("capture", captures(), ids=str)
def test_what_was_captured_is_advised_of_what_captured_it(capture: Capture):
    """The sentences of a real trace, each with the words that its own scopes and frameworks let it say."""
    for run in capture.runs:
        trace = run.extra["trace"]
        origin = " ".join([*trace["scopes"], *trace["conventions"], run.agent.framework or ""])
        fixes = [Fix(sentence=each.fix or "") for each in judge(run).reasons]
        fixes += [Fix(sentence=line.fix or "", code=line.code) for line in audit_kit(run).lines]

        strangers = {name for fix in fixes for name in named_in(fix) if not re.search(MARKS[name], origin)}

        assert strangers == set()


MARKS = {
    **{name: name.lower().replace(" ", "-") for name in WORDS},
    "OpenInference": "openinference|^openai-agents",
    "Google ADK": "gcp.vertex.agent",
    "Traceloop": "traceloop|instrumentation.langchain",
    "Strands": "strands",
    "Anthropic": "anthropic",
    "Vercel": "vercel",
}
"""What the names of scopes, conventions or frameworks hold where a framework was seen."""


# --- settings ----------------------------------------------------------------------------------


def test_commit_is_an_attribute_of_the_resource():
    fix = fix_for(spans_run("pydantic-ai 2.68.0", conventions=("otel-genai",)), "commit")

    assert "vcs.ref.head.revision" in (fix.code or "")


# --- texts that were cut off -------------------------------------------------------------------


@pytest.mark.parametrize("text", ['[{"role":"user","parts":[{"type":"te', '{"a": 1', '["text", "te'])
def test_json_that_ends_in_the_middle_names_the_length_limit(text: str):
    run = with_attributes(spans_run("pydantic-ai 2.68.0"), **{"gen_ai.input.messages": text})

    assert is_cut_off(run)
    assert fix_for(run, "input") == fix_for(run, "tool_answers_missing") == CUT_OFF
    assert fix_for(run, "identity") != CUT_OFF


@pytest.mark.parametrize("value", ['{"a": 1}', "[kettle", "{kettle", "A text", 7, None, ["["], '["a"]'])
def test_other_values_do_not(value: Any):
    run = with_attributes(spans_run("pydantic-ai 2.68.0"), other=value)

    assert not is_cut_off(run)
    assert fix_for(run, "input") != CUT_OFF


@pytest.mark.parametrize("extra", [{}, {"trace": None}, {"trace": []}, {"trace": {"scopes": 7, "conventions": "x"}}])
def test_run_that_says_nothing_of_its_spans_gets_the_general_fix(extra: dict[str, Any]):
    assert fix_for(spans_run(extra=extra), "input") == SPAN_FIXES["input"]


# --- the settings do what they say -------------------------------------------------------------

WHO = {"session_id": "s_301", "user_id": "u_7710", "tenant_id": "t_12"}
IDENTITIES: dict[str, dict[str, Any]] = {
    "none": {"gen_ai.operation.name": "invoke_agent"}
    | {"session.id": "s_301", "user.id": "u_7710", "tenant.id": "t_12"},
    "pydantic-ai": {"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": "s_301"}
    | {"metadata": '{"user_id": "u_7710", "tenant_id": "t_12"}'},
    "openinference": {"openinference.span.kind": "AGENT", "session.id": "s_301", "user.id": "u_7710"}
    | {"metadata": '{"tenant_id": "t_12"}'},
    "langfuse": {"langfuse.observation.type": "agent", "session.id": "s_301", "user.id": "u_7710"}
    | {"langfuse.trace.metadata.tenant_id": "t_12"},
    "langsmith": {"langsmith.span.kind": "chain"} | {f"langsmith.metadata.{name}": who for name, who in WHO.items()},
    "mlflow": {"mlflow.spanType": '"AGENT"'}
    | {"metadata": '{"session_id": "s_301", "user_id": "u_7710", "tenant_id": "t_12"}'},
    "vercel-ai-sdk": {"ai.operationId": "ai.generateText", "ai.telemetry.metadata.sessionId": "s_301"}
    | {"ai.telemetry.metadata.userId": "u_7710", "ai.telemetry.metadata.tenantId": "t_12"},
    "traceloop": {"traceloop.span.kind": "agent"}
    | {f"traceloop.association.properties.{name}": who for name, who in WHO.items()},
    "openai-agents": {"openai_agents.type": "trace", "openai_agents.group_id": "s_301"}
    | {"openai_agents.metadata.user_id": "u_7710", "openai_agents.metadata.tenant_id": "t_12"},
}
"""What each convention writes when it is told as its fix says."""


@pytest.mark.parametrize("origin", IDENTITIES)
def test_identity_is_read_where_the_fix_puts_it(origin: str):
    span = Span(trace_id="a" * 32, span_id="b" * 16, name="run", start_ns=1, end_ns=2, attributes=IDENTITIES[origin])

    run = assemble([span], is_closed=True)

    assert (run.session_id, run.user_id, run.tenant_id) == ("s_301", "u_7710", "t_12")
    said = dict(BY_ORIGIN).get(origin, SPAN_FIXES)["identity"].code or ""
    assert all(who in said for who in WHO.values())


@pytest.mark.parametrize(
    ("attribute", "told"),
    [("vcs.ref.head.revision", "commit"), ("cloud.region", "region"), ("vcs.ref.head.name", None)],
)
def test_resource_attributes_are_read_as_the_fixes_say(attribute: str, told: str | None):
    span = Span(trace_id="a" * 32, span_id="b" * 16, name="run", resource={attribute: "x"}, scope=Scope(name="s"))

    run = assemble([span], is_closed=True)

    assert (run.code.commit == "x", run.region == "x") == (told == "commit", told == "region")


@pytest.mark.parametrize("origin", ["OpenTelemetry", "OpenInference", "LangSmith"])
def test_where_contents_are_there_nobody_left_them_out(origin):
    scopes, conventions, _ = ORIGINS[origin]
    trace = {"scopes": list(scopes), "conventions": dict.fromkeys(conventions, 1)}
    whole = replace(make_whole_run(), source_format=SPANS, extra={"trace": trace}, instructions=None)
    bare = spans_run(*scopes, conventions=conventions)

    assert fix_for(whole, "instructions") == SPAN_FIXES["instructions"]
    assert fix_for(bare, "instructions") != SPAN_FIXES["instructions"]
