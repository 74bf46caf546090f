"""Which setting of an instrumentation brings what its spans lack.

Sources: the documentation of each, and spans of the versions in docs/integrations.md.
"""

from __future__ import annotations

from sessions_app.core.judge.fixes import Fix

Fixes = dict[str, Fix]
"""By kit key, or by code of a verdict's reason."""

CONTENTS = (
    *("input", "instructions", "tool_schemas", "tool_io", "input_missing"),
    *("model_answers_missing", "first_model_answer_missing", "model_answer_missing"),
    *("tool_answers_missing", "tool_answer_missing"),
)
"""What is missing where contents were left out, or cut off."""


def _contents(sentence: str, code: str | None = None) -> Fixes:
    return dict.fromkeys(CONTENTS, Fix(sentence=sentence, code=code))


def _one(key: str, sentence: str, code: str | None = None) -> Fixes:
    return {key: Fix(sentence=sentence, code=code)}


_CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_LATEST = "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental"

CUT_OFF = Fix(
    sentence="Texts were cut off in the middle: take away the limit on the length of attributes.",
    code="unset OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT",
)

SPAN_FIXES: Fixes = {
    "ids": Fix(
        sentence="Set gen_ai.tool.call.id on tool spans, and the requested tool calls on model spans, so that each "
        "tool call can be matched to the answer that requested it."
    ),
    "identity": Fix(
        sentence="Set session.id, user.id and tenant.id on every span, tool spans included.",
        code='span.set_attributes({"session.id": "s_301", "user.id": "u_7710", "tenant.id": "t_12"})',
    ),
    "input": Fix(sentence="Set gen_ai.input.messages on model spans."),
    "instructions": Fix(sentence="Set gen_ai.system_instructions on model spans, with the text as sent."),
    "tool_schemas": Fix(sentence="Set gen_ai.tool.definitions on model spans, with name and schema."),
    "retrieval": Fix(
        sentence="Set gen_ai.retrieval.query.text and gen_ai.retrieval.documents on search spans, with id, score and "
        "content of each document."
    ),
    "model": Fix(
        sentence="Set gen_ai.request.model and gen_ai.provider.name on model spans, and the region on the resource.",
        code='OTEL_RESOURCE_ATTRIBUTES="cloud.region=eu-west-1"',
    ),
    "sampling": Fix(
        sentence="Set temperature, top_p and seed on purpose: most instrumentations record what was set, as "
        "gen_ai.request.temperature, gen_ai.request.top_p and gen_ai.request.seed."
    ),
    "tool_io": Fix(
        sentence="Set gen_ai.tool.call.arguments and gen_ai.tool.call.result on tool spans, or all messages on model "
        "spans."
    ),
    "timestamps": Fix(
        sentence="The first token of a streamed answer is gen_ai.response.time_to_first_chunk, in seconds; whole "
        "answers have none."
    ),
    "commit": Fix(
        sentence="Name the commit in the resource when the code is deployed.",
        code='OTEL_RESOURCE_ATTRIBUTES="vcs.ref.head.revision=$(git rev-parse HEAD)"',
    ),
    "flags": Fix(sentence="No span convention has feature flags; the recorder captures them."),
    "nothing_recorded": Fix(sentence="The trace has no model call: instrument the library that calls the model."),
}
"""For any run that came as spans."""

_OPENAI_AGENTS = (
    "The SDK's own trace of the Responses API holds no contents: use the recorder, or OpenInference's instrumentation. "
    "With chat completions contents are there unless trace_include_sensitive_data is off."
)
_TRACELOOP = _contents("Let Traceloop's instrumentation record message contents.", "TRACELOOP_TRACE_CONTENT=true")
_NOT_THERE = "Spans of {} do not hold {}: set {} on the span of the call yourself, or use the recorder."

BY_ORIGIN: tuple[tuple[str, Fixes], ...] = (
    (
        "pydantic-ai",
        {
            **_contents(
                "Let Pydantic AI record message contents; this is the default.",
                "InstrumentationSettings(include_content=True, include_model_request_parameters=True, version=5)",
            ),
            **_one(
                "identity",
                "Name the conversation, the user and the tenant with each run.",
                'agent.run(prompt, conversation_id="s_301", metadata={"user_id": "u_7710", "tenant_id": "t_12"})',
            ),
        },
    ),
    (
        "gcp.vertex.agent",
        {
            **_contents(
                "Google ADK leaves contents out unless told to record them.", f"{_LATEST}\n{_CAPTURE}=SPAN_AND_EVENT"
            ),
            **_one(
                "sampling",
                _NOT_THERE.format("Google ADK", "temperature and seed", "gen_ai.request.temperature"),
            ),
        },
    ),
    (
        "strands.telemetry.tracer",
        {
            **_one(
                "tool_schemas",
                "Strands records tool definitions only when told to.",
                f"{_LATEST},gen_ai_tool_definitions",
            ),
            **_one(
                "identity",
                "Pass the agent the attributes for its spans.",
                'Agent(trace_attributes={"session.id": "s_301", "user.id": "u_7710", "tenant.id": "t_12"})',
            ),
            **_one(
                "sampling", _NOT_THERE.format("Strands Agents", "temperature and seed", "gen_ai.request.temperature")
            ),
        },
    ),
    (
        "opentelemetry.instrumentation.langchain",
        {
            **_TRACELOOP,
            **_one(
                "identity",
                "Pass them as metadata of the call.",
                'graph.invoke(state, {"metadata": {"session_id": "s_301", "user_id": "u_7710", "tenant_id": "t_12"}})',
            ),
            **_one("sampling", _NOT_THERE.format("this instrumentation", "the seed", "gen_ai.request.seed")),
        },
    ),
    (
        "openai-agents",
        {
            **_contents(_OPENAI_AGENTS, "OPENAI_AGENTS_TRACE_INCLUDE_SENSITIVE_DATA=true"),
            **_one("tool_schemas", "The SDK's own traces name the tools without their schemas: use the recorder."),
            **_one(
                "identity",
                "Set them where the trace begins.",
                'with trace("Support", group_id="s_301", metadata={"user_id": "u_7710", "tenant_id": "t_12"}):',
            ),
            **_one("commit", "The SDK's own traces have no place for the commit: use the recorder."),
        },
    ),
    (
        "openinference",
        {
            **_contents(
                "A setting hides contents from OpenInference.",
                "OPENINFERENCE_HIDE_INPUTS=false\nOPENINFERENCE_HIDE_OUTPUTS=false\n"
                "OPENINFERENCE_HIDE_INPUT_MESSAGES=false\nOPENINFERENCE_HIDE_OUTPUT_MESSAGES=false",
            ),
            **_one(
                "tool_schemas",
                "OpenInference records tool definitions unless told to hide them.",
                "OPENINFERENCE_HIDE_INPUTS=false\nOPENINFERENCE_HIDE_LLM_TOOLS=false",
            ),
            **_one(
                "sampling",
                "Set temperature, top_p and seed on purpose: OpenInference records what was set unless told "
                "to hide it.",
                "OPENINFERENCE_HIDE_LLM_INVOCATION_PARAMETERS=false",
            ),
            **_one(
                "identity",
                "Set them around the run.",
                'with using_attributes(session_id="s_301", user_id="u_7710", metadata={"tenant_id": "t_12"}):',
            ),
            **_one(
                "retrieval",
                "Make the search a span of the kind RETRIEVER, with retrieval.documents.0.document.id, .score and "
                ".content.",
            ),
        },
    ),
    (
        "langfuse",
        {
            **_contents(
                "Let the decorator record inputs and outputs, and mask nothing that a replay needs.",
                "LANGFUSE_OBSERVE_DECORATOR_IO_CAPTURE_ENABLED=true",
            ),
            **_one(
                "identity",
                "Set them around the run.",
                'with propagate_attributes(session_id="s_301", user_id="u_7710", metadata={"tenant_id": "t_12"}):',
            ),
        },
    ),
    (
        "langsmith",
        {
            **_contents(
                "A setting hides contents from LangSmith.",
                "LANGSMITH_HIDE_INPUTS=false\nLANGSMITH_HIDE_OUTPUTS=false\nLANGSMITH_HIDE_METADATA=false",
            ),
            **_one(
                "identity",
                "Pass them as metadata of the run.",
                '{"metadata": {"session_id": "s_301", "user_id": "u_7710", "tenant_id": "t_12"}}',
            ),
        },
    ),
    (
        "mlflow",
        _one(
            "identity",
            "MLflow leaves session and user out of what it exports: set them in the span's metadata.",
            "mlflow.get_current_active_span().set_attributes(\n"
            '    {"metadata": {"session_id": "s_301", "user_id": "u_7710", "tenant_id": "t_12"}})',
        ),
    ),
    (
        "vercel-ai-sdk",
        {
            **_contents(
                "Contents are there unless recordInputs or recordOutputs is off.",
                "experimental_telemetry: { isEnabled: true, recordInputs: true, recordOutputs: true }",
            ),
            **_one(
                "identity",
                "Pass them as metadata of the call; in AI SDK 7 as runtimeContext, with includeRuntimeContext.",
                "experimental_telemetry: { isEnabled: true,\n"
                '  metadata: { sessionId: "s_301", userId: "u_7710", tenantId: "t_12" } }',
            ),
            **_one("retrieval", "The SDK makes no span for a search: make one with gen_ai.retrieval.documents."),
        },
    ),
    (
        "traceloop",
        {
            **_TRACELOOP,
            **_one(
                "identity",
                "Set them when the run begins.",
                "Traceloop.set_association_properties(\n"
                '    {"session_id": "s_301", "user_id": "u_7710", "tenant_id": "t_12"})',
            ),
            **_one("sampling", _NOT_THERE.format("Traceloop", "the seed", "gen_ai.request.seed")),
        },
    ),
    (
        "com.anthropic.sdk.python",
        _contents("The spans of the Anthropic SDK itself hold no contents: those of an instrumentation do."),
    ),
    (
        "otel-genai",
        _contents(
            "OpenTelemetry's instrumentations leave contents out unless told to record them.",
            f"{_LATEST}\n{_CAPTURE}=span_and_event",
        ),
    ),
)
"""By the beginning of the name of an instrumentation library, or by convention; the first that fits and says something
counts."""
