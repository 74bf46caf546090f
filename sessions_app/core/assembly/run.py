"""A run from all spans of a trace that are there. The order in which they came does not matter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from sessions_app.core.assembly.contradictions import is_another_text, leaves
from sessions_app.core.assembly.conversation import Converted
from sessions_app.core.assembly.copies import (
    agents_instructed_otherwise,
    agents_set_otherwise,
    answered_otherwise,
    asked_in,
    asked_otherwise,
    begun_otherwise,
    conversations_told_otherwise,
    copies_of_other_calls,
    failed_around,
    is_prompt_of_code,
    models_told_otherwise,
    states_told_otherwise,
    summaries_told_otherwise,
)
from sessions_app.core.assembly.names import identifier, name
from sessions_app.core.assembly.outputs import is_answer
from sessions_app.core.assembly.resumed import last_answer
from sessions_app.core.assembly.steps import Draft, StepWriter, numbered, payload_of, put_output_tools, span_facts
from sessions_app.core.assembly.surroundings import fill_from_around
from sessions_app.core.assembly.tree import Node, forest, in_order_of_time, join_twins
from sessions_app.core.conventions import plain_steps
from sessions_app.core.embedded_json import key_given_twice, parsed
from sessions_app.core.history import History
from sessions_app.core.otlp_export.restore import run_of_trace
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.run import SPANS, WAITING, AgentInfo, CodeInfo, ErrorInfo, ModelCall, Run, RunStatus, ToolCall
from sessions_app.core.spans.attributes import as_text
from sessions_app.core.spans.reading import CallPart, Reading
from sessions_app.core.spans.span import Span, moment

_COMMIT = ("vcs.ref.head.revision", "vcs.repository.ref.revision", "git.commit.sha", "git.commit", "commit")
_REGION = ("cloud.region", "gen_ai.request.region")
_SHORTEST_INPUT = 3
_Fact = TypeVar("_Fact")


def assemble(spans: Sequence[Span], *, is_closed: bool) -> Run:
    """`spans` are those of one trace, each once, at least one. `is_closed`: nobody waits for more of them; a run
    whose topmost span never came counts as cut off then, and as running before."""
    exported = run_of_trace(spans)
    if exported is not None:
        return exported
    roots = forest(spans)
    join_twins(roots)
    nodes = in_order_of_time(roots)
    fill_from_around(nodes)
    outermost = _own_span(roots)
    resumed = last_answer(nodes)
    writer = StepWriter(resumed=resumed)
    for node in nodes:
        if node is not outermost:
            writer.take(node)
    for node in nodes:
        writer.agent_ended(node)
    drafts = writer.finished()
    _mark_waiting(drafts, nodes)
    _mark_output(drafts, outermost)
    put_output_tools(drafts)
    return _Assembled(spans, roots, nodes, outermost, drafts, _decided(drafts, resumed.left_open)).run(
        is_closed=is_closed
    )


def _own_span(roots: list[Node]) -> Node | None:
    """The span that stands for the run itself; None where the topmost span is one of its steps."""
    if len(roots) == 1 and roots[0].kind not in ("model", "tool", "retrieval", "embedding", "handoff"):
        return roots[0]
    return None


def _mark_waiting(drafts: list[Draft], nodes: Sequence[Node]) -> None:
    """The calls that an agent's run says it ended with, for somebody to decide."""
    outcomes = {call_id: outcome for node in nodes for call_id, outcome in (node.reading.waiting or {}).items()}
    for draft in drafts if outcomes else ():
        call = draft.call
        if isinstance(call, ToolCall) and call.result is None and call.call_id in outcomes:
            draft.call = replace(call, outcome=outcomes[call.call_id])


def _mark_output(drafts: list[Draft], outermost: Node | None) -> None:
    """A run with an output whose last answer asks for a tool that nobody ran: that call carries the output."""
    models = [draft for draft in drafts if isinstance(draft.call, ModelCall) and not _is_beside(draft)]
    if not models or outermost is None or outermost.reading.output is None or outermost.reading.error is not None:
        return
    output = parsed(outermost.reading.output)
    for draft in drafts:
        call = draft.call
        if isinstance(call, ToolCall) and draft.node is None and draft.parent is models[-1] and call.outcome is None:
            draft.call = replace(call, is_output=_can_carry(call, output))


def _can_carry(call: ToolCall, output: JsonValue) -> bool:
    """A text that stands nowhere in the arguments came from an answer that is not here."""
    return not isinstance(output, str) or output in leaves(call.arguments.value if call.arguments else None)


def _is_beside(draft: Draft) -> bool:
    """Whether a function asked that makes the output of the answer before, or code that prepared a request of the run:
    what it is told is no answer of the run."""
    return draft.node is not None and any(
        outer.kind == "model" or outer.reading.is_output_function for outer in draft.node.above()
    )


def _decided(drafts: Sequence[Draft], left_open: Sequence[CallPart]) -> JsonObject:
    """How the calls ended that an earlier run left open, by their ids."""
    ids = {part.call_id for part in left_open}
    calls = (draft.call for draft in drafts if draft.parent is None and isinstance(draft.call, ToolCall))
    return {str(call.call_id): call.outcome for call in calls if call.call_id in ids and call.outcome is not None}


class _Assembled:
    """Puts the facts of the run together."""

    def __init__(
        self,
        spans: Sequence[Span],
        roots: list[Node],
        nodes: list[Node],
        outermost: Node | None,
        drafts: list[Draft],
        decided: JsonObject,
    ) -> None:
        self._spans = spans
        self._roots = roots
        self._nodes = nodes
        self._outermost = outermost
        self._drafts = drafts
        self._decided = decided
        self._models = [draft for draft in drafts if isinstance(draft.call, ModelCall) and not _is_beside(draft)]

    def run(self, *, is_closed: bool) -> Run:
        run_id = self._run_id()
        status, error = self._end(is_closed)
        first = self._first_converted()
        steps = numbered(self._drafts)
        asked, output = self._input(first), self._output()
        return Run(
            run_id=run_id,
            session_id=identifier(self._fact(lambda reading: reading.session_id)) or run_id,
            status=status,
            source_format=SPANS,
            input=asked,
            output=output if status != "running" else None,
            error=error,
            agent=self._agent(),
            code=CodeInfo(commit=self._resource(*_COMMIT)),
            region=self._resource(*_REGION),
            model=name(self._fact(_model)),
            provider=name(self._fact(lambda reading: reading.provider)),
            instructions=self._instructions(first),
            user_id=name(self._fact(lambda reading: reading.user_id)),
            tenant_id=name(self._fact(lambda reading: reading.tenant_id)),
            flags=self._fact(lambda reading: reading.flags),
            started_at=moment(min((span.start_ns for span in self._spans if span.start_ns), default=None)),
            duration_ms=self._duration(),
            prior=first.start if first is not None and first is self._models[0].converted else None,
            deferred=Payload.of_json(self._decided) if self._decided else None,
            steps=steps,
            final=self._final(status),
            extra=self._extra(self._copies(first, asked, output, has_failed=error is not None)),
        )

    # --- facts

    def _run_id(self) -> str:
        """The id that the spans give to the run, the topmost one before others; that of the trace where they name
        several, as those of many runs in one trace do."""
        topmost = {root.reading.run_id for root in self._roots if root.span.parent_id is None} - {None}
        said = topmost or {node.reading.run_id for node in self._nodes} - {None}
        return (identifier(said.pop()) if len(said) == 1 else None) or self._spans[0].trace_id

    def _fact(self, read: Callable[[Reading], _Fact | None]) -> _Fact | None:
        return next((fact for node in self._nodes if (fact := read(node.reading)) is not None), None)

    def _resource(self, *names: str) -> str | None:
        holders = (span.resource for span in self._spans)
        found = (text for said in holders for key in names if (text := as_text(said.get(key))))
        return name(next(found, None))

    def _agent(self) -> AgentInfo:
        named = self._fact(lambda reading: reading.agent_name if reading.kind == "agent" else None)
        return AgentInfo(
            name=name(named or self._fact(lambda reading: reading.agent_name)) or self._resource("service.name"),
            version=name(self._fact(lambda reading: reading.agent_version)) or self._resource("service.version"),
            framework=name(self._fact(lambda reading: reading.framework)),
            framework_version=name(self._fact(lambda reading: reading.framework_version)),
            output_function=self._output_function(),
        )

    def _output_function(self) -> str | None:
        """The tool by which the last answer gave its output, where a function made that of it."""
        last = self._models[-1] if self._models else None
        made = (draft for draft in self._drafts if draft.parent is last and draft.told is not None)
        return next((draft.name for draft in made if draft.told and _made_output(draft.told.reading)), None)

    @property
    def _first_span(self) -> Span:
        return self._nodes[0].span

    def _duration(self) -> float | None:
        own = self._outermost.span.duration_ms if self._outermost else None
        starts = [span.start_ns for span in self._spans if span.start_ns]
        ends = [span.end_ns for span in self._spans if span.end_ns]
        if own is not None or not starts or not ends:
            return own
        return (max(ends) - min(starts)) / 1_000_000 if max(ends) >= min(starts) else None

    def _first_converted(self) -> Converted | None:
        return next((draft.converted for draft in self._models if draft.converted and draft.converted.history), None)

    # --- beginning and end

    def _input(self, first: Converted | None) -> Payload | None:
        said = self._fact(lambda reading: reading.input)
        if first is None or first.prompt is None:
            return payload_of(said)
        prompt = first.prompt.words("\n")
        own = self._outermost.reading.input if self._outermost else None
        return Payload.of_text(_input_within(prompt, said) or self._other_input(prompt, own) or prompt)

    def _other_input(self, prompt: str, said: JsonValue) -> str | None:
        """What the run's own span says that it was asked, where that is not what the model was."""
        others = (text for text in asked_in(said) if is_another_text(prompt, text))
        return next((text for text in others if not is_prompt_of_code(self._nodes, prompt, text)), None)

    def _instructions(self, first: Converted | None) -> str | None:
        """Those of the first request; those of the run's own span, where it is what asked and had others. Where they
        differed by request, that span tells those of any."""
        sent = first.instructions if first else None
        asking = next((draft.node for draft in self._models if draft.converted is first), None)
        agent = next((outer for outer in asking.above() if outer.kind == "agent"), None) if asking else None
        around = agent.reading if agent is not None and agent is self._outermost else None
        own = around.instructions if around is not None else None
        if not sent or around is None or not own:
            return sent
        later = [draft.converted for draft in self._models if around.has_varying_instructions and draft.converted]
        if any(_holds(text, own) for text in (sent, *(each.instructions for each in later)) if text):
            return sent
        return own if is_another_text(sent, own) else sent

    def _end(self, is_closed: bool) -> tuple[RunStatus, ErrorInfo | None]:
        if not any(node.span.parent_id is None and _has_ended(node) for node in self._roots):
            return ("cut_off" if is_closed else "running"), None
        error = self._error() or self._last_failure()
        if error is not None:
            return "error", error
        return ("cut_off" if self._waits_for_tools() else "ok"), None

    def _last_failure(self) -> ErrorInfo | None:
        """Of the step that the trace ends with, where its failure was given to no model. Spans that people write by
        hand end as their code does: a failure that did not reach the topmost one was handled."""
        if self._outermost is not None and self._outermost.reading.convention == plain_steps.CONVENTION:
            return None
        work = [draft for draft in self._drafts if isinstance(draft.call, ModelCall | ToolCall)]
        last = max(work, key=lambda draft: draft.node.start if draft.node else -1, default=None)
        if last is None or last.error is None:
            return None
        was_told = isinstance(last.call, ToolCall) and last.call.result is not None
        return None if was_told else last.error

    def _waits_for_tools(self) -> bool:
        """The trace ends with an answer that asks for tools, and nothing tells of them."""
        last = self._models[-1] if self._models else None
        calls = [draft.call for draft in self._drafts if draft.parent is last and isinstance(draft.call, ToolCall)]
        return any(call.outcome is None or call.outcome in WAITING for call in calls if not call.is_output)

    def _error(self) -> ErrorInfo | None:
        """The topmost span's own; its words may stand further inside."""
        failed = [node for node in self._roots if node.reading.error and not node.reading.is_error_harmless]
        if not failed or not self._is_topmost(failed[0]):
            return None
        error = failed[0].reading.error
        assert error is not None
        inside = [draft.error for draft in self._drafts if draft.error is not None]
        return inside[-1] if error.type is None and error.message is None and inside else error

    def _is_topmost(self, node: Node) -> bool:
        return node.span.parent_id is None and len(self._roots) == 1

    def _output(self) -> Payload | None:
        last = self._models[-1] if self._models else None
        answer = last.node.reading.answer if last and last.node else None
        root = self._outermost.reading if self._outermost else None
        said = root.output if root else None
        is_told = answer is not None and (root is None or said is None or is_answer(answer, root))
        if answer is not None and last is not None and answer.words() and not last.children_asked and is_told:
            return Payload.of_text(answer.words())
        given = [draft.call for draft in self._drafts if draft.parent is last and isinstance(draft.call, ToolCall)]
        return payload_of(_typed(said, given))

    def _final(self, status: RunStatus) -> History | None:
        last = self._models[-1] if self._models else None
        calls = [draft.call for draft in self._drafts if draft.parent is last and isinstance(draft.call, ToolCall)]
        is_waiting = any(call.outcome in WAITING for call in calls)
        if last is None or not isinstance(last.call, ModelCall) or last.call.history is None:
            return None
        if is_waiting or (status == "ok" and not last.children_asked):
            return _with_answers(last.call.output_history, calls)
        return None

    def _extra(self, copies: Iterator[tuple[str, Iterable[Node]]]) -> JsonObject:
        conventions = Counter(node.reading.convention for node in self._nodes)
        unknown = sum(len(node.span.attributes.keys() - node.reading.used) for node in self._nodes)
        facts: JsonObject = {
            "trace_id": self._spans[0].trace_id,
            "spans": len(self._spans),
            "conventions": dict(sorted(conventions.items())),
            "attributes_not_understood": unknown,
            "resource": self._first_span.resource,
            "scopes": sorted({f"{span.scope.name} {span.scope.version}".strip() for span in self._spans}),
        }
        unclear = [node.span for node in self._nodes if _gives_key_twice(node)]
        contradicted = sorted({span.span_id for span in (*unclear, *(each for each in self._spans if each.namesakes))})
        if contradicted:
            facts["contradicted_spans"] = contradicted
        lost = sorted({str(node.span.parent_id) for node in self._nodes if node.is_adopted})
        if lost:
            facts["lost_spans"] = lost
        facts |= {name: places for name, nodes in copies if (places := self._places_of(nodes))}
        if self._outermost is not None:
            facts["root"] = span_facts(self._outermost.span, self._outermost.reading)
        return {"trace": facts}

    def _copies(
        self, first: Converted | None, asked: Payload | None, output: Payload | None, *, has_failed: bool
    ) -> Iterator[tuple[str, Iterable[Node]]]:
        """What spans around calls of models tell otherwise."""
        yield (
            "conversation_told",
            [
                *conversations_told_otherwise(self._nodes),
                *begun_otherwise(self._nodes),
                *summaries_told_otherwise(self._nodes),
                *copies_of_other_calls(self._nodes),
            ],
        )
        yield "state_told", states_told_otherwise(self._nodes)
        yield "settings_told", [*agents_set_otherwise(self._nodes), *models_told_otherwise(self._nodes)]
        yield "instructions_told", agents_instructed_otherwise(self._nodes)
        yield "error_told", [node for node in self._nodes if has_failed and node.reading.is_error_told_otherwise]
        yield "failed_around", () if has_failed else failed_around(self._nodes)
        prompt = first.prompt.words("\n") if first is not None and first.prompt is not None else ""
        if asked is not None and prompt:
            yield "input_told", asked_otherwise(self._nodes, asked.value, prompt)
        if output is not None:
            yield "output_told", answered_otherwise(self._nodes, output.value)

    def _places_of(self, nodes: Iterable[Node]) -> list[JsonValue]:
        """The numbers of their steps, 0 for the run's own span."""
        indexes = {id(draft.node): index for index, draft in enumerate(self._drafts, start=1)}
        return [indexes.get(id(node), 0) for node in nodes]


def _gives_key_twice(node: Node) -> bool:
    """Of what a tool gave, the text counts."""
    said = [node.span.attributes.get(name) for name in node.reading.used]
    return any(key_given_twice(value) is not None and parsed(value) != node.reading.result for value in said)


def _model(reading: Reading) -> str | None:
    """What turns texts into vectors is another model than the one that answers."""
    return None if reading.kind in ("embedding", "retrieval") else reading.model or reading.answered_model


def _typed(said: JsonValue, calls: Iterable[ToolCall]) -> JsonValue:
    """A number is told as the text of one is; where the call that carried it gave a number, it is that."""
    value = parsed(said)
    given = (call.arguments.parsed for call in calls if call.is_output and call.arguments is not None)
    inside = [each for arguments in given if isinstance(arguments, dict) for each in arguments.values()]
    is_given = any(each == value and isinstance(each, bool) == isinstance(value, bool) for each in inside)
    return value if isinstance(value, int | float) and is_given else said


def _with_answers(history: History | None, calls: Sequence[ToolCall]) -> History | None:
    """With what was made beside calls that wait: a run that ends with these tells it as well."""
    parts: list[JsonValue] = [
        {
            "part_kind": "tool-return",
            "tool_name": call.tool_name,
            "content": call.result.value,
            "tool_call_id": call.call_id,
        }
        for call in calls
        if call.result is not None
    ]
    return History(history, Payload.of_json({"parts": parts, "kind": "request"})) if parts else history


def _made_output(reading: Reading) -> bool:
    return reading.is_output_function and reading.error is None


def _has_ended(root: Node) -> bool:
    """Some topmost spans only hold the others together, and have no times of their own."""
    if root.span.start_ns is None and root.span.status == "unset" and root.children:
        return all(child.span.end_ns or child.span.status == "ok" for child in root.children)
    return root.span.end_ns is not None or root.span.status == "ok"


def _holds(sent: str, own: str) -> bool:
    """A request may keep its instructions apart from a system prompt among its messages: either may stand first, and
    the run's own span may tell one of them."""
    is_within = f"\n\n{own.strip()}\n\n" in f"\n\n{sent}\n\n"
    return is_within or Counter(sent.split("\n\n")) == Counter(own.split("\n\n"))


def _input_within(prompt: str, said: JsonValue) -> str | None:
    """What the run's own span was given, where the prompt is a template around it: the text under a name for what is
    asked, else the longest text that is in both."""
    found = next((text for text in asked_in(said) if text.strip() in prompt), None)
    texts = [text for text in leaves(parsed(said)) if len(text) >= _SHORTEST_INPUT and text.strip() in prompt]
    return found or max(texts, key=len, default=None)
