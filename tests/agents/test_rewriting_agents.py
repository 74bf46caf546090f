"""Agents whose own code rewrites what the model is told: history processors, hooks, functions that refuse an output."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from pydantic_ai.capabilities import Hooks, ProcessHistory
from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.output import TextOutput
from pydantic_ai.tools import RunContext

from sessions_app.core.judge.verdict import judge
from sessions_app.core.replay.observed import Result
from sessions_app.core.replay.observed_pairs import Tools
from sessions_app.core.run import Run
from tests.agents.forking import forked
from tests.agents.own_agents import observed_by, own, place, recorded_run, replayed_by
from tests.recorder.rare_agents import LOOKUP
from tests.recorder.scenarios import Play, call, says, support_agent

Messages = list[ModelMessage]
Rewrite = Callable[[Messages], Messages]
REPRODUCED = ("reproduced", None, None)
SECOND = call("lookup_order", {"order_id": "ORD-2"}, "b")


def unchanged(messages: Messages) -> Messages:
    return messages


def newest(more_than: int) -> Rewrite:
    return lambda messages: messages[-1:] if len(messages) > more_than else messages


def first(more_than: int) -> Rewrite:
    return lambda messages: messages[:1] if len(messages) > more_than else messages


def without_second(messages: Messages) -> Messages:
    return [*messages[:1], *messages[3:]] if len(messages) > 4 else messages


def without_first_answer(messages: Messages) -> Messages:
    return [*messages[:2], *messages[3:]] if len(messages) > 4 else messages


def in_front(words: str) -> Rewrite:
    return lambda messages: [ModelRequest(parts=[SystemPromptPart(words)]), *messages]


def example(messages: Messages) -> Messages:
    return [ModelRequest(parts=[UserPromptPart("Hello.")]), ModelResponse(parts=[TextPart("Hi.")]), *messages]


def masked(words: str, *, keeps: int) -> Rewrite:
    """Answers of tools in other words, but for the last messages."""

    def rewrite(messages: Messages) -> Messages:
        end = len(messages) - keeps
        return [*(_masked(message, words) for message in messages[:end]), *messages[end:]]

    return rewrite


def _masked(message: Any, words: str) -> Any:
    if message.kind == "response":
        return message
    parts = [replace(part, content=words) if isinstance(part, ToolReturnPart) else part for part in message.parts]
    return replace(message, parts=parts)


def with_processor(rewrite: Rewrite) -> Play:
    return _play(ProcessHistory(rewrite))


def with_hook(rewrite: Rewrite) -> Play:
    async def before(ctx: RunContext[None], asked: Any) -> Any:
        asked.messages = rewrite(asked.messages)
        return asked

    return _play(Hooks(before_model_request=before))


def _play(capability: Any) -> Play:
    return Play(support_agent(says(LOOKUP), says(SECOND), says("Fine."), capabilities=[capability]), "Where?")


def results(run: Run, make: Callable[[], Play], tools: Tools = "frozen") -> Iterator[Result]:
    """In the server's process, and as seen on a person's own machine."""
    yield replayed_by(run, own(make()), runs_tools=tools == "run")
    yield observed_by(run, make(), tools=tools)


PROCESSED: dict[str, tuple[Rewrite, Rewrite, tuple[int, str]]] = {
    "the newest alone": (newest(2), newest(3), (3, "messages[0].parts[0].tool_name")),
    "the first alone": (first(2), first(3), (3, "messages[1]")),
    "words in front": (in_front("Be kind."), in_front("Be brief."), (1, "messages[0].parts[0].content")),
    "a call without its answer": (without_first_answer, unchanged, (5, "messages[2]")),
    "answers masked": (masked("…", keeps=0), masked("?", keeps=0), (3, "messages[2].parts[0].content")),
    "older answers masked": (masked("…", keeps=1), masked("?", keeps=1), (5, "messages[2].parts[0].content")),
}


@pytest.mark.parametrize("tools", ["frozen", "run"])
@pytest.mark.parametrize("name", PROCESSED)
def test_code_that_rewrites_its_history_reproduces_it_and_a_change_of_it_is_found(name: str, tools: Tools):
    rewrite, changed, found = PROCESSED[name]
    run = recorded_run(lambda: with_processor(rewrite))

    for result in results(run, lambda: with_processor(rewrite), tools):
        assert place(result) == REPRODUCED
        assert result.facts["proof"]["requests"]["state"] == "proven"
    for result in results(run, lambda: with_processor(changed), tools):
        verdict, step, path = place(result)
        assert (verdict, step) == ("diverged", found[0])
        assert path is not None
        assert path.startswith(found[1])


@pytest.mark.parametrize("name", ["the newest alone", "a call without its answer", "older answers masked"])
def test_a_fork_that_changes_nothing_puts_the_recorded_pasts_in_place(name: str):
    run = recorded_run(lambda: with_processor(PROCESSED[name][0]))

    for step in range(1, len(run.steps) + 1):
        assert place(forked(run, step, {"kind": "clock", "value": 0})[0]) == REPRODUCED, step


def behind(words: str, *, more_than: int = 0) -> Rewrite:
    note = ModelRequest(parts=[UserPromptPart(words)])
    return lambda messages: [*messages, note] if len(messages) > more_than else messages


def beside(words: str) -> Rewrite:
    def rewrite(messages: Messages) -> Messages:
        newest: Any = messages[-1]
        return [*messages[:-1], replace(newest, parts=[*newest.parts, UserPromptPart(words)])]

    return rewrite


APPENDED: dict[str, tuple[Rewrite, Rewrite, tuple[int, str]]] = {
    "behind each request": (behind("Be kind."), behind("Be brief."), (1, "messages[1].parts[0].content")),
    "behind later requests": (
        behind("Be kind.", more_than=2), behind("Be brief.", more_than=2), (3, "messages[3].parts[0].content"),
    ),
    "behind the last request": (
        behind("Be kind.", more_than=4), behind("Be brief.", more_than=4), (5, "messages[5].parts[0].content"),
    ),
    "in each request": (beside("Be kind."), beside("Be brief."), (1, "messages[0].parts[1].content")),
}  # fmt: skip


@pytest.mark.parametrize("tools", ["frozen", "run"])
@pytest.mark.parametrize("name", APPENDED)
def test_code_that_appends_messages_reproduces_them_whether_tools_run_or_not(name: str, tools: Tools):
    """Where tools do not run, a request without the message may lack what a tool put there: nothing is known then."""
    appends, changed, found = APPENDED[name]
    run = recorded_run(lambda: with_processor(appends))

    for result in results(run, lambda: with_processor(appends), tools):
        assert place(result) == REPRODUCED
        assert result.facts["proof"]["requests"]["state"] == "proven"
        assert result.facts["proof"]["outcome"]["state"] == "proven"
    for result in results(run, lambda: with_processor(changed), tools):
        verdict, step, path = place(result)
        is_of_tools = tools == "frozen" and found[0] > 1
        expected = ("unknown_from_step", found[0], f"steps[{found[0]}]") if is_of_tools else ("diverged", *found)
        assert (verdict, step, path) == expected


SHORTENING: dict[str, Rewrite] = {
    "the newest alone": newest(2),
    "without the second": without_second,
    "answers masked": masked("…", keeps=1),
}


@pytest.mark.parametrize("name", SHORTENING)
def test_of_requests_that_a_hook_sent_without_words_of_the_loop_nothing_is_claimed(name: str):
    run = recorded_run(lambda: with_hook(SHORTENING[name]))

    assert judge(run).verdict == "replayable"
    for result in results(run, lambda: with_hook(SHORTENING[name])):
        assert place(result) == REPRODUCED
        requests = result.facts["proof"]["requests"]
        assert requests["state"] == "not_comparable"
        assert "is not what the loop holds" in requests["reason"]


ADDED = {**SHORTENING, "an example in front": example}


@pytest.mark.parametrize("name", ADDED)
def test_a_hook_that_is_new_is_a_difference(name: str):
    run = recorded_run(lambda: with_hook(unchanged))
    path = "words_added" if ADDED[name] is example else "words_left_out"

    for result in results(run, lambda: with_hook(ADDED[name])):
        found = result.divergence
        assert (result.verdict, found.path if found else None) == ("diverged", path)
        assert result.facts["proof"]["requests"]["state"] == "not_proven"


def test_words_that_a_hook_adds_are_not_recorded_and_so_no_replay_goes_beyond_them():
    run = recorded_run(lambda: with_hook(example))

    assert [reason.code for reason in judge(run).reasons] == ["sent_otherwise"]
    for tools in ("frozen", "run"):
        assert {result.verdict for result in results(run, lambda: with_hook(example), tools)} == {"could_not_run"}


def test_messages_that_a_hook_changed_after_they_were_recorded_are_not_claimed():
    def change(messages: Messages) -> Messages:
        if len(messages) > 4:
            prompt: Any = messages[0].parts[0]
            prompt.content = "Whence?"
        return messages

    run = recorded_run(lambda: with_hook(change))

    for result in results(run, lambda: with_hook(change)):
        assert result.facts["proof"]["requests"]["state"] == "not_comparable"


@pytest.mark.parametrize("place_of", ["hook", "instructions"])
def test_code_that_is_new_and_changes_an_older_message_in_its_place_is_a_difference(place_of: str):
    """Control: the same code, which leaves the message as it is."""

    def making(words: str) -> Callable[[], Play]:
        def change(messages: Messages) -> Messages:
            if len(messages) > 4:
                prompt: Any = messages[0].parts[0]
                prompt.content = words
            return messages

        def with_instructions() -> Play:
            agent = support_agent(says(LOOKUP), says(SECOND), says("Fine."))

            @agent.instructions
            def told(ctx: RunContext[Any]) -> str:
                change(ctx.messages)
                return "Help."

            return Play(agent, "Where?")

        return with_instructions if place_of == "instructions" else lambda: with_hook(change)

    run = recorded_run(making("Where?"))

    for result in results(run, making("Where?")):
        assert place(result) == REPRODUCED
    here, observed = results(run, making("Whence?"))
    assert place(here) == ("diverged", 5, "messages[0].parts[0].content")
    assert place(observed)[::2] == ("diverged", "messages")


def _in_arguments(messages: Any) -> None:
    messages[1].parts[0].args["order_id"] = "ORD-9"


def _in_answer(messages: Any) -> None:
    messages[2].parts[0].content["status"] = "lost"


def _number_in_answer(messages: Any) -> None:
    messages[2].parts[0].content["paid"] = True


def _order_in_answer(messages: Any) -> None:
    content = messages[2].parts[0].content
    content["id"] = content.pop("id")


def _in_list(messages: Any) -> None:
    messages[2].parts[0].content["lines"][0]["n"] = 3


def _in_parts(messages: Any) -> None:
    messages[0].parts.append(UserPromptPart("Now."))


IN_PLACE: dict[str, tuple[Callable[[Any], None], str]] = {
    "arguments of a call": (_in_arguments, "messages[1].parts[0].args.order_id"),
    "an answer": (_in_answer, "messages[2].parts[0].content.status"),
    "an answer, to an equal value": (_number_in_answer, "messages[2].parts[0].content.paid"),
    "an answer, in its order": (_order_in_answer, "messages[2].parts[0].content"),
    "a list in an answer": (_in_list, "messages[2].parts[0].content.lines[0].n"),
    "the list of parts": (_in_parts, "messages[0].parts[1]"),
}


def _with_answers_of_dicts(change: Callable[[Any], None]) -> Play:
    script = says(call("order", {"order_id": "1"}, "a")), says(call("order", {"order_id": "2"}, "b")), says("Fine.")

    def rewrite(messages: Messages) -> Messages:
        if len(messages) > 4:
            change(messages)
        return messages

    agent = support_agent(*script, capabilities=[ProcessHistory(rewrite)])

    @agent.tool_plain
    def order(order_id: str) -> dict[str, Any]:
        return {"id": order_id, "status": "shipped", "paid": 1, "lines": [{"n": 1}]}

    return Play(agent, "Where?")


@pytest.mark.parametrize("tools", ["frozen", "run"])
@pytest.mark.parametrize("name", IN_PLACE)
def test_a_change_inside_of_what_a_message_holds_is_seen(name: str, tools: Tools):
    change, path = IN_PLACE[name]
    before, after = (lambda: _with_answers_of_dicts(lambda messages: None)), lambda: _with_answers_of_dicts(change)
    run, changed = recorded_run(before), recorded_run(after)

    for result in results(run, before, tools):
        assert place(result) == REPRODUCED
    for result in results(changed, after, tools):
        assert place(result) == REPRODUCED
        assert result.facts["proof"]["requests"]["state"] == "not_comparable"
    here, observed = results(run, after, tools)
    assert place(here) == ("diverged", 5, path)
    assert place(observed)[::2] == ("diverged", "messages")


def _with_a_cart(*, is_kept: bool) -> Play:
    """A tool that gives its own list, to which it adds later."""
    script = says(call("put", {"item": "pen"}, "a")), says(call("put", {"item": "ink"}, "b")), says("Fine.")
    agent, cart = support_agent(*script), list[str]()

    @agent.tool_plain
    def put(item: str) -> list[str]:
        cart.append(item)
        return cart if is_kept else list(cart)

    return Play(agent, "Both.")


def test_a_tool_that_gives_its_own_list_changes_what_the_model_was_told():
    run, changed = (recorded_run(partial(_with_a_cart, is_kept=is_kept)) for is_kept in (False, True))

    for result in results(run, lambda: _with_a_cart(is_kept=False), "run"):
        assert place(result) == REPRODUCED
    for result in results(changed, lambda: _with_a_cart(is_kept=True), "run"):
        assert place(result) == REPRODUCED
    here, observed = results(run, lambda: _with_a_cart(is_kept=True), "run")
    assert place(here) == ("diverged", 5, "messages[2].parts[0].content[1]")
    assert place(observed)[::2] == ("diverged", "messages")


def ending_with(words: str) -> Play:
    async def after(ctx: RunContext[None], *, result: Any) -> Any:
        return replace(result, output=words)

    return Play(support_agent(says("Fine."), capabilities=[Hooks(after_run=after)]), "Where?")


@pytest.mark.parametrize("way", ["run", "run_stream", "run_stream_events"])
def test_an_output_that_a_hook_behind_the_run_makes_is_that_of_the_run(way: str):
    run = recorded_run(lambda: ending_with("Well."), way)

    for result in results(run, lambda: ending_with("Well.")):
        assert place(result) == REPRODUCED
    for result in results(run, lambda: ending_with("Bad.")):
        assert place(result) == ("diverged", 1, "output")


def asked_again(words: str) -> Play:
    def upper(said: str) -> str:
        if said == "No.":
            raise ModelRetry(words)
        return said.upper()

    return Play(support_agent(says("No."), says("Fine."), output_type=TextOutput(upper)), "Where?")


def test_a_function_that_refused_a_text_is_not_run_and_its_words_are_given_again():
    run = recorded_run(lambda: asked_again("Be kind."))

    for result in results(run, lambda: asked_again("Be kind.")):
        assert place(result) == ("unknown_from_step", 3, "steps[3]")
        assert result.facts["proof"]["requests"]["state"] == "not_comparable"
    for result in results(run, lambda: asked_again("Be brief."), "run"):
        assert place(result) == ("diverged", 2, "messages[2].parts[0].content")
