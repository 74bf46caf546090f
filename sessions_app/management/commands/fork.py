"""`manage.py fork RUN_ID --at STEP …`: go on from a step with something changed."""

from argparse import ArgumentParser
from typing import Any

from sessions_app.core.payload import JsonObject
from sessions_app.management.replaying import ReplayingCommand, refusals_in_words
from sessions_app.management.typed_orders import (
    breakpoints,
    denial,
    live_tools,
    rules,
    run_called,
    tool_result,
    typed_expectation,
    typed_json,
)
from sessions_app.services.forks import request_fork


class Command(ReplayingCommand):
    help = (
        "Fork a run: as recorded before a step, changed from there on. Says where each answer came from. "
        "Exit code 1 when nothing could answer a step, 2 when it could not run."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--at", required=True, metavar="STEP", help="The first step that may be another one.")
        for name, metavar, words in _CHANGES:
            parser.add_argument(name, action="append", default=[], metavar=metavar, help=words)
        parser.add_argument(
            "--tools", choices=["frozen", "run"], default="frozen",
            help="With --agent: give the recorded answers of its tools, or run their functions in isolation.",
        )  # fmt: skip
        parser.add_argument("--instructions", metavar="TEXT", help="Another system prompt.")
        parser.add_argument("--hypothesis", metavar="TEXT", help="Why it should matter.")
        parser.add_argument("--expect", metavar="TEXT", help="Words, or a check as JSON.")

    def handle(self, *, run_id: str, project: str | None, **options: Any) -> None:
        run = run_called(run_id, project)
        with refusals_in_words():
            fork = request_fork(run=run, order=order_of(options))
        self.see_through(fork, **options)


_CHANGES = (
    ("--change", "JSON", 'Any change, as {"kind": "clock", "value": 86400}; may be given again.'),
    ("--tool-result", "STEP=JSON", "Another answer of a tool."),
    ("--approve", "STEP", "Let a call run that somebody denied when the run was continued."),
    ("--deny", "STEP[=WORDS]", "Deny one that somebody approved; the words are what the model is told."),
    ("--rule", "CONDITION", "When it holds, the model gives the --answer; as in: docs is empty."),
    ("--answer", "TEXT", "Of the rule at the same place; a text or JSON."),
)


def order_of(options: dict[str, Any]) -> JsonObject:
    """The options as an order (core/fork/order.py)."""
    changes = [typed_json(text, "--change") for text in options["change"]]
    if options["instructions"] is not None:
        changes.append({"kind": "instructions", "value": options["instructions"]})
    changes += [tool_result(text) for text in options["tool_result"]]
    changes += [{"kind": "approval", "step": step.strip(), "value": "approved"} for step in options["approve"]]
    changes += [denial(text) for text in options["deny"]]
    changes += rules(options["rule"], options["answer"])
    if options["agent"] is not None:
        changes.append({"kind": "agent", "value": options["agent"]})
    order = {
        "at_step": options["at"],
        "changes": changes,
        "hypothesis": options["hypothesis"],
        "expect": options["expect"] and typed_expectation(options["expect"]),
        "breakpoints": breakpoints(options["breakpoints"]),
        "tools": {**(live_tools(options["live"]) or {}), **({"run": True} if options["tools"] == "run" else {})},
        "on_difference": options["on_difference"],
    }
    return {name: value for name, value in order.items() if value}
