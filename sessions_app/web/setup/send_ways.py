"""The ways to send recordings, each as code to paste with this server's address and the key in it."""

from __future__ import annotations

from dataclasses import dataclass

from django.template.loader import render_to_string

from sessions_app.web.setup.package_views import recorder_address

PLACEHOLDER = "$REPLAY_KEY"
"""Shells put the key in its place; code in Python reads the same variable."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Snippet:
    """A few lines of code; `name` is that of its template and of its element in the page."""

    name: str
    about: str
    code: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """One tab."""

    slug: str
    title: str
    snippets: tuple[Snippet, ...]


_WAYS: tuple[tuple[str, str, dict[str, str]], ...] = (
    (
        "opentelemetry",
        "OpenTelemetry",
        {
            "opentelemetry": "For anything that is already instrumented, in any language; exporters append /v1/traces "
            "to the URL. Without the last line, most leave out prompts and answers."
        },
    ),
    (
        "pydantic-ai",
        "Pydantic AI",
        {
            "pydantic_ai": "Recommended: the recorder. It captures every run completely, with all that a replay needs.",
            "pydantic_otel": "Or OpenTelemetry, with none of our code in your process: "
            "pip install opentelemetry-exporter-otlp-proto-http.",
        },
    ),
    ("openai-agents", "OpenAI Agents SDK", {"openai_agents": "Records every run completely."}),
    ("langgraph", "LangGraph", {"langgraph": "Every run of LangChain and LangGraph, recorded whole."}),
    ("recorder", "Your own loop", {"recorder": "A loop around the openai or anthropic client, or any other function."}),
    (
        "curl",
        "curl",
        {"curl": "A session file.", "dump": "The messages of a Pydantic AI run, with the user who asked."},
    ),
)


def ways_to_send(address: str, new_key: str | None) -> tuple[Way, ...]:
    """`address` is this server's, without a slash at its end; `new_key` a key that was made just now."""
    facts = {
        "address": address,
        "recorder": address + recorder_address(),
        "key": new_key or PLACEHOLDER,
        "made": new_key is not None,
    }
    return tuple(
        Way(slug=slug, title=title, snippets=tuple(_snippet(*each, facts) for each in snippets.items()))
        for slug, title, snippets in _WAYS
    )


def way_asked_for(slug: str, ways: tuple[Way, ...]) -> Way:
    return next((way for way in ways if way.slug == slug), ways[0])


def _snippet(name: str, about: str, facts: dict[str, object]) -> Snippet:
    return Snippet(name=name, about=about, code=render_to_string(f"setup/ways/{name}.txt", facts).rstrip("\n"))
