"""Recordings of one session that cannot all be right, and what is no contradiction."""

import copy
import json
from typing import Any

import pytest

from sessions_app.core.formats.native import parse_native
from sessions_app.core.run import Run
from sessions_app.core.sessions.contradictions import Contradiction, find_contradictions

Message = dict[str, Any]
LONG = "The order was sent on Monday and is expected by Friday. " * 8


def asks(words: Any) -> Message:
    return {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": words}]}


def says(words: str) -> Message:
    return {"kind": "response", "parts": [{"part_kind": "text", "content": words}]}


def calls(call_id: str = "c1", **args: Any) -> Message:
    part = {"part_kind": "tool-call", "tool_name": "find", "tool_call_id": call_id, "args": args}
    return {"kind": "response", "parts": [part]}


def gives(content: Any, call_id: str = "c1") -> Message:
    part = {"part_kind": "tool-return", "tool_name": "find", "tool_call_id": call_id, "content": content}
    return {"kind": "request", "parts": [part]}


def turn(number: int, prior: list[Message], *added: Message, **fields: Any) -> dict[str, Any]:
    """A run that goes on from `prior`; each answer among `added` is a step."""
    steps: list[dict[str, Any]] = []
    new: list[Message] = []
    for message in added:
        if message["kind"] == "request":
            new.append(message)
        else:
            after = {"after": len(steps)} if steps or prior else {}
            steps.append({"kind": "model", "request": {**after, "messages": new}, "response": message})
            new = []
    base = {"format": "agent-replay.run", "version": 1, "run_id": f"run_{number}", "session_id": "chat", "status": "ok"}
    begun = {"prior": prior} if prior else {}
    return {**base, "agent": {"name": "shop", "framework": "pydantic-ai"}, **begun, "steps": steps, **fields}


FIRST = [asks("Where is ORD-1?"), calls(id=1), gives({"state": "sent", "by": "post"}), says("It was sent.")]
SECOND = [asks("And ORD-2?"), says("It waits.")]
THIRD = [asks("Thanks"), says("You are welcome.")]


def session() -> list[dict[str, Any]]:
    turns = turn(1, [], *FIRST), turn(2, FIRST, *SECOND), turn(3, [*FIRST, *SECOND], *THIRD)
    return [copy.deepcopy(each) for each in turns]


def read(record: dict[str, Any]) -> Run:
    return parse_native(json.dumps(record).encode())


def found_in(*records: dict[str, Any]) -> list[tuple[Any, ...]]:
    found = find_contradictions([read(record) for record in records])
    return [(each.run_id, each.step, each.path, each.other_run_id, each.other_step) for each in found]


def test_a_session_that_was_not_touched_has_none():
    assert found_in(*session()) == []
    assert found_in(turn(1, [], *FIRST)) == []


@pytest.mark.parametrize(
    ("message", "part", "path", "step"),
    [
        (0, {"content": "Where is ORD-7?"}, "messages[0].parts[0].content", 1),
        (1, {"args": {"id": 7}}, "messages[1].parts[0].args.id", 1),
        (1, {"tool_name": "drop"}, "messages[1].parts[0].tool_name", 1),
        (2, {"content": {"state": "lost", "by": "post"}}, "messages[2].parts[0].content.state", 2),
        (3, {"content": "It was lost."}, "messages[3].parts[0].content", 2),
    ],
)
def test_a_turn_that_begins_with_something_else_than_the_turn_before_ended_with(message, part, path, step):
    records = session()
    for record in records[1:]:
        record["prior"][message]["parts"][0] |= part

    # told once: what the third turn was handed is the same change
    assert found_in(*records) == [("run_2", 1, path, "run_1", step)]


def test_an_answer_that_was_changed_in_its_own_run():
    records = session()
    records[1]["steps"][0]["response"] = says("It is gone.")

    assert found_in(*records) == [("run_3", 1, "messages[5].parts[0].content", "run_2", 1)]


def test_a_call_that_was_approved_with_other_arguments():
    asked = [asks("Remove a and b"), calls("k1", path="a")]
    waiting, approved = turn(1, [], *asked), turn(2, [asked[0], calls("k1", path="b")], gives("removed", "k1"), *THIRD)

    assert found_in(waiting, approved) == [("run_2", 1, "messages[1].parts[0].args.path", "run_1", 1)]


def test_a_turn_that_no_run_holds():
    first, _, third = session()
    fourth = turn(4, [*FIRST, *SECOND, *THIRD], asks("Bye"), says("Bye."))

    assert found_in(first, third, fourth) == [("run_3", 1, "messages[4]", None, None)]


def beside(message: Message, kind: str, *, first: bool = False) -> Message:
    """The message with one part more."""
    more = [{"part_kind": kind, "content": "More"}]
    return {**message, "parts": [*more, *message["parts"]] if first else [*message["parts"], *more]}


@pytest.mark.parametrize(
    ("changed", "place"),
    [
        ([*FIRST[:3], says("More"), FIRST[3]], "messages[3]"),
        ([*FIRST, says("More")], "messages[4]"),
        ([*FIRST, FIRST[3]], "messages[4]"),
        ([*FIRST[:3], beside(FIRST[3], "text", first=True)], "messages[3].parts[0]"),
        ([*FIRST[:3], beside(FIRST[3], "text")], "messages[3].parts[1]"),
        ([beside(FIRST[0], "user-prompt"), *FIRST[1:]], "messages[0].parts[1]"),
        ([beside(FIRST[0], "user-prompt", first=True), *FIRST[1:]], "messages[0].parts[0]"),
        ([*FIRST[:3], calls("c2", id=2), gives("none", "c2"), FIRST[3]], "messages[3]"),
        ([asks("Hello"), says("Hi."), *FIRST], "messages[0]"),
        ([says("Hi."), *FIRST], "messages[0]"),
        ([*FIRST, asks("Really?"), says("Yes.")], "messages[4]"),
        ([FIRST[0], says("More")], "messages[1]"),
    ],
)
def test_a_turn_that_was_handed_more_than_the_turn_before_ended_with(changed: list[Message], place: str):
    before = FIRST[: 2 if len(changed) == 2 else 4]
    found = found_in(turn(1, [], *before), turn(2, changed, *SECOND))

    assert [each[:3] for each in found] == [("run_2", 1, place)]


def test_turns_that_were_swapped_or_told_twice():
    first, second, _ = session()
    swapped, twice = ([*SECOND, *FIRST], [*FIRST, *FIRST, *SECOND])

    assert found_in(first, second, turn(3, swapped, *THIRD)) == [("run_3", 1, "messages[0]", "run_2", 1)]
    assert [each[:1] for each in found_in(first, second, turn(3, twice, *THIRD))] == [("run_3",)]


def test_a_call_without_arguments_that_was_given_some():
    begun = [asks("Go on"), calls(), gives("gone on"), says("Done.")]
    forged = [begun[0], calls(a=1), *begun[2:]]

    assert found_in(turn(1, [], *begun), turn(2, forged, *SECOND)) == [
        ("run_2", 1, "messages[1].parts[0].args.a", "run_1", 1)
    ]


@pytest.mark.parametrize(("output", "is_forged"), [("It was [removed].", False), ("It was sent.", True)])
def test_an_answer_may_be_redacted_as_the_output_of_its_run_is(output: str, is_forged: bool):
    redacted = [*FIRST[:3], says("It was [removed].")]

    found = found_in(turn(1, [], *FIRST, output=output), turn(2, redacted, *SECOND))

    assert bool(found) is is_forged


def test_code_may_answer_behind_the_model_in_each_turn():
    closing = says("Anything else?")
    first = turn(1, [], *FIRST, output="Anything else?")
    second = turn(2, [*FIRST, closing], *SECOND, output="Anything else?")
    history = [*FIRST, closing, *SECOND, closing]

    assert found_in(first, second, turn(3, history, *THIRD)) == []
    assert [each[:3] for each in found_in(first, second, turn(3, [*history, closing], *THIRD))] == [
        ("run_3", 1, "messages[8]")
    ]


@pytest.mark.parametrize(
    ("behind", "place"),
    [
        ([says("Anything else?")], None),
        ([says("Anything else?"), asks("Hello?")], None),
        ([says("It was lost."), says("Anything else?")], "messages[4]"),
        ([asks("Lose it."), says("Anything else?")], "messages[4]"),
        ([calls("c9", id=9), gives("lost", "c9"), says("Anything else?")], "messages[4]"),
        ([beside(says("Anything else?"), "text", first=True)], "messages[4].parts[0]"),
        ([says("Anything else?"), says("It was lost.")], "messages[5]"),
    ],
)
def test_what_stands_in_front_of_an_answer_that_code_made_was_said_by_no_run(behind, place):
    found = found_in(turn(1, [], *FIRST, output="Anything else?"), turn(2, [*FIRST, *behind], *SECOND))

    assert [each[:3] for each in found] == ([] if place is None else [("run_2", 1, place)])


def test_what_an_agent_was_not_handed_over_is_handed_to_the_next_turn():
    agent = {"name": "shop", "framework": "openai-agents"}
    first = turn(1, [], *FIRST[:2], *FIRST[2:], agent=agent, last_agent="clerk")
    filtered = {"messages": [FIRST[0], asks("You go on."), says("Noted.")]}
    first["steps"][1]["request"] = filtered
    clerk = {"name": "clerk", "framework": "openai-agents"}

    assert found_in(first, turn(2, FIRST, *SECOND, agent=clerk)) == []
    forged = [*FIRST[:3], says("It was lost.")]
    assert len(found_in(first, turn(2, forged, *SECOND, agent=clerk))) == 1


def test_an_application_may_say_something_else_for_a_taken_output():
    def ended(words: str) -> list[Message]:
        return [asks("Is it open?"), calls(open=True), gives(words)]

    first = turn(1, [], *ended("Final result processed.")[:2])
    first["final"] = {"messages": ended("Final result processed.")}

    assert found_in(first, turn(2, ended("Noted, thanks."), *SECOND)) == []


def test_examples_that_each_run_begins_with_and_prompts_that_code_repeats_are_no_turns():
    examples = [asks("Like this:"), says("An example.")]
    others = [asks("Or this:"), says("Another one."), *examples]
    memo = asks("Likes tea.")

    assert found_in(turn(1, examples, *FIRST), turn(2, others, *SECOND)) == []
    assert found_in(turn(1, [], memo, *FIRST[1:]), turn(2, [memo, memo, *FIRST[1:]], *SECOND)) == []


STRANGE = [asks("Where is it?"), calls("c9", q="zz"), gives("Nowhere.", "c9"), says("It is gone.")]


def test_a_history_with_calls_that_has_nothing_in_common_with_the_turns_before_is_of_no_run():
    first, _, third = session()
    assert found_in(first, turn(2, STRANGE, *SECOND)) == [("run_2", 1, "messages[0].parts[0]", None, None)]
    assert found_in(first, turn(2, STRANGE, *SECOND), third)[0] == ("run_2", 1, "messages[0].parts[0]", None, None)


def test_a_history_that_may_have_come_from_elsewhere_is_held_against_nothing():
    """Of another agent, from before the first recorded run, as examples of each run, or of texts alone."""
    first, _, _ = session()
    clerk = {"name": "clerk", "framework": "pydantic-ai"}
    texts = [STRANGE[0], STRANGE[3]]

    assert found_in(first, turn(2, STRANGE, *SECOND, agent=clerk)) == []
    assert found_in(turn(1, STRANGE, *FIRST), turn(2, [*STRANGE, *FIRST], *SECOND)) == []
    assert found_in(first, turn(2, STRANGE, *SECOND), turn(3, STRANGE, *THIRD)) == []
    assert found_in(first, turn(2, texts, *SECOND)) == []


def test_a_summary_may_be_of_turns_that_the_turn_before_was_not_handed():
    first, _, _ = session()
    second = turn(2, FIRST[3:], *SECOND)
    summary = asks("So far: ORD-1 was tracked.")

    assert found_in(first, second, turn(3, [summary, *FIRST[3:], *SECOND], *THIRD)) == []


def test_nothing_is_said_of_a_turn_beside_runs_of_which_not_all_was_recorded():
    first, _, third = session()
    unseen = turn(2, FIRST, *SECOND)
    unseen["steps"][0] |= {"request": None, "response": None}

    assert found_in(first, unseen, third) == []


def through_a_database(prior: list[Message]) -> list[Message]:
    kept: list[Message] = json.loads(json.dumps(prior, sort_keys=True))
    return kept


def questions_and_answers(prior: list[Message]) -> list[Message]:
    return [message for message in prior if message["parts"][0]["part_kind"] in ("user-prompt", "text")]


def with_instructions(prior: list[Message]) -> list[Message]:
    said = {"part_kind": "system-prompt", "content": "It is Tuesday."}
    return [{**prior[0], "parts": [said, *prior[0]["parts"]]}, *prior[1:]]


@pytest.mark.parametrize(
    "kept",
    [
        lambda prior: prior[4:],
        lambda prior: prior[-1:],
        lambda prior: prior[:-2],
        lambda prior: [prior[0], *prior[-2:]],
        lambda prior: [asks("So far: ORD-1 was sent."), *prior[-2:]],
        lambda prior: [asks("So far: ORD-1 was sent."), says("Noted."), *prior[-1:]],
        lambda prior: [prior[0], asks("So far: ORD-1 was sent."), *prior[-2:]],
        lambda prior: [*prior, asks("Note: it is late.")],
        lambda prior: [asks("Something else"), says("altogether")],
        through_a_database,
        questions_and_answers,
        with_instructions,
    ],
)
def test_a_history_that_was_trimmed_summarised_or_kept_elsewhere_is_no_contradiction(kept):
    first, second, third = session()
    third = turn(3, kept(third["prior"]), *THIRD)

    assert found_in(first, second, third) == []


def test_a_long_text_may_be_kept_in_a_shorter_form_and_in_no_other():
    said = [asks("Where is it?"), calls(id=1), gives(LONG), says("On its way.")]

    def kept(content: str) -> list[Message]:
        return [*said[:2], gives(content), said[3]]

    assert found_in(turn(1, [], *said), turn(2, kept(LONG[:200] + " …"), *SECOND)) == []
    assert found_in(turn(1, [], *said), turn(2, kept("[removed]"), *SECOND)) == []
    for other in (LONG, LONG[:300], LONG[57:]):
        forged = other.replace("Friday", "Sunday")
        assert found_in(turn(1, [], *said), turn(2, kept(forged), *SECOND)) == [
            ("run_2", 1, "messages[2].parts[0].content", "run_1", 2)
        ]


ROWS = [{"id": number, "state": "sent", "by": "post", "to": "Rome"} for number in range(9)]


@pytest.mark.parametrize(
    ("kept", "is_forged"),
    [
        (LONG[:150], False),
        (LONG[:103] + "...[200 characters truncated]..." + LONG[-80:], False),
        (LONG[:90].replace("Friday by", "Friday"), False),
        ("The parcel left at the start of this week and will likely come before the weekend.", False),
        ("The order was not sent on Monday and is expected by Friday. " + LONG[:200], True),
        ("The order was sent and is expected by Friday. " + LONG[:200], True),
        (ROWS[:4], False),
        ([{"id": row["id"], "state": row["state"]} for row in ROWS], False),
        ([*ROWS[:4], {**ROWS[4], "to": "Oslo"}], True),
    ],
)
def test_what_is_kept_shorter_are_pieces_or_a_summary(kept: Any, is_forged: bool):
    whole = LONG if isinstance(kept, str) else ROWS
    said = [asks("Where is it?"), calls(id=1), gives(whole), says("On its way.")]

    found = found_in(turn(1, [], *said), turn(2, [*said[:2], gives(kept), said[3]], *SECOND))

    assert bool(found) is is_forged


@pytest.mark.parametrize(
    ("forged", "path"),
    [
        ([asks("Where is ORD-7?"), calls(id=7)], "messages[0].parts[0].content"),
        (
            [asks("Where is ORD-1?"), calls(id=7), gives({"state": "lost", "by": "post"})],
            "messages[1].parts[0].args.id",
        ),
    ],
)
def test_several_parts_that_were_changed_at_the_head(forged: list[Message], path: str):
    changed = [*forged, *FIRST[len(forged) :]]

    assert found_in(turn(1, [], *FIRST), turn(2, changed, *SECOND)) == [("run_2", 1, path, "run_1", 1)]


@pytest.mark.parametrize(
    ("beside", "framework", "is_forged"),
    [({}, "pydantic-ai", True), ({"dynamic_ref": "shop.today"}, "pydantic-ai", False), ({}, "langgraph", False)],
    ids=["made once", "made anew", "of a graph"],
)
def test_another_system_prompt_than_the_turn_before_had(beside: Message, framework: str, is_forged: bool):
    def prompted(words: str) -> list[Message]:
        part = {"part_kind": "system-prompt", "content": words, **beside}
        return [{**FIRST[0], "parts": [part, *FIRST[0]["parts"]]}, *FIRST[1:]]

    agent = {"name": "shop", "framework": framework}
    first = turn(1, [], *prompted("Be kind."), agent=agent)

    assert found_in(first, turn(2, prompted("Be kind."), *SECOND, agent=agent)) == []
    place = ("run_2", 1, "messages[0].parts[0].content", "run_1", 1)
    assert found_in(first, turn(2, prompted("Be rude."), *SECOND, agent=agent)) == ([place] if is_forged else [])


@pytest.mark.parametrize(("framework", "is_told"), [("openai-agents", False), ("pydantic-ai", True)])
def test_items_do_not_tell_that_a_call_was_denied(framework: str, is_told: bool):
    denied = gives("not allowed")
    denied["parts"][0]["outcome"] = "denied"
    agent = {"name": "shop", "framework": framework}
    first = turn(1, [], *FIRST[:2], denied, FIRST[3], agent=agent)

    found = found_in(first, turn(2, [*FIRST[:2], gives("not allowed"), FIRST[3]], *SECOND, agent=agent))

    assert found == ([("run_2", 1, "messages[2].parts[0].outcome", "run_1", 2)] if is_told else [])


def test_texts_at_the_head_may_be_a_summary_and_no_retelling_in_other_words():
    begun = [asks("Where is the order that I made on Monday?"), says("It was sent on Tuesday, by post."), *FIRST]
    summary = [asks("So far: an order was tracked."), says("Noted."), *FIRST]
    forged = [asks("Where is the order that I made on Sunday?"), says("It was lost on Tuesday, by post."), *FIRST]

    assert found_in(turn(1, [], *begun), turn(2, summary, *SECOND)) == []
    assert found_in(turn(1, [], *begun), turn(2, forged, *SECOND)) == [
        ("run_2", 1, "messages[0].parts[0].content", "run_1", 1)
    ]


def test_turns_that_begin_anew_branch_or_belong_to_another_agent_are_held_against_nothing():
    first, second, _ = session()
    alike = turn(4, [], FIRST[0], says("Nobody knows."))
    branch = turn(5, FIRST, asks("And ORD-3?"), says("It is here."))
    merged = turn(6, [*FIRST, *SECOND, asks("And ORD-3?"), says("It is here.")], *THIRD)
    retold = [*FIRST[:3], says("[shop] It was sent.")]
    other = turn(7, retold, *THIRD, agent={"name": "clerk", "framework": "pydantic-ai"})

    assert found_in(first, second, alike, branch, merged, other) == []


GRAPH = [{"name": name, "framework": "langgraph"} for name in ("shop", "clerk")]


@pytest.mark.parametrize(
    ("handed", "path"),
    [
        (FIRST, None),
        ([*FIRST[:3], says("[shop] It was sent.")], None),
        ([asks("You are the clerk."), *FIRST], None),
        (FIRST[3:], None),
        ([FIRST[0], FIRST[3]], None),
        ([*FIRST[:3], says("It was lost.")], "messages[3].parts[0].content"),
        ([FIRST[0], calls(id=7), *FIRST[2:]], "messages[1].parts[0].args.id"),
        ([asks("Where is ORD-7?"), *FIRST[1:]], "messages[0].parts[0].content"),
        ([*FIRST, says("More")], "messages[4]"),
        ([asks("You are the clerk."), *FIRST[:3], says("It was lost.")], "messages[4].parts[0].content"),
    ],
)
def test_agents_that_speak_in_turn_in_a_thread_of_a_graph_go_on_from_each_other(handed, path):
    """Code may tell a turn in more words for another agent, put a prompt in front of it, or leave some of it out."""
    found = found_in(turn(1, [], *FIRST, agent=GRAPH[0]), turn(2, handed, *SECOND, agent=GRAPH[1]))

    assert [each[:3] for each in found] == ([] if path is None else [("run_2", 1, path)])


def test_agents_of_one_thread_that_keep_histories_of_their_own_are_held_against_themselves():
    shop, clerk = turn(1, [], *FIRST, agent=GRAPH[0]), turn(2, [], FIRST[0], says("Ask the shop."), agent=GRAPH[1])
    again = turn(3, [FIRST[0], says("Ask the shop.")], *SECOND, agent=GRAPH[1])
    forged = turn(3, [FIRST[0], says("Ask nobody.")], *SECOND, agent=GRAPH[1])

    assert found_in(shop, clerk, again) == []
    assert found_in(shop, clerk, forged) == [("run_3", 1, "messages[1].parts[0].content", "run_2", 1)]


def test_messages_that_were_changed_after_they_were_recorded_are_held_against_nothing():
    first, second, _ = session()
    second["prior"][3] = says("It was lost.")
    first["recorder.rewritten_in_place"] = True

    assert found_in(first, second) == []


def called(**fields: Any) -> list[dict[str, Any]]:
    """A run with a tool that asks another agent."""
    step = {"kind": "agent", "name": "expert", "run_id": "inner", "arguments": "ORD-1?", "result": {"state": "sent"}}
    outer = turn(1, [], *FIRST) | {"run_id": "outer"}
    outer["steps"].append(step)
    inner = turn(2, [], asks("ORD-1?"), says("sent"), run_id="inner", input="ORD-1?", output={"state": "sent"})
    return [outer, inner | {"parent": {"run_id": "outer", "step": 3}} | fields]


@pytest.mark.parametrize(
    ("change", "path"),
    [({"output": {"state": "lost"}}, "output"), ({"input": "ORD-2?"}, "input"), ({"output": {"state": 1}}, "output")],
)
def test_a_run_that_another_one_called_is_held_against_what_that_one_holds_of_it(change, path):
    assert found_in(*called()) == []
    assert found_in(*called(**change)) == [("inner", 1, path, "outer", 3)]


def called_in_a_tool(step: int | None, run_id: str = "outer", names: str = "inner") -> list[dict[str, Any]]:
    """The call of the agent is inside of the tool at step 2; the run that was called says that it was at `step`."""
    outer, inner = called(parent={"run_id": run_id, "step": step})
    tool = {"kind": "tool", "tool_name": "find", "call_id": "c1", "arguments": {"id": 1}, "result": {}, "parent": 1}
    outer["steps"] = [outer["steps"][0], tool, outer["steps"][2] | {"run_id": names, "parent": 2}, outer["steps"][1]]
    return [outer, inner]


def test_a_called_run_says_where_its_caller_called_it():
    other_run, other_step = ("inner", 1, "parent.run_id", "outer", 3), ("inner", 1, "parent.step", "outer", 3)
    alone, beside = called(parent={"run_id": "outer"}), called_in_a_tool(2, names="lost")
    beside[1]["parent"]["step"] = 4

    assert [found_in(*called_in_a_tool(step)) for step in (2, 3, None)] == [[]] * 3
    assert found_in(*alone) == found_in(*beside) == []
    assert found_in(*called_in_a_tool(4)) == found_in(*called_in_a_tool(1)) == [other_step]
    assert found_in(*called_in_a_tool(2, run_id="zz")) == [other_run]
    assert found_in(*called_in_a_tool(2, names="zz")) == [other_run]
    alone[0]["steps"][2]["run_id"] = "zz"
    assert found_in(*alone) == [other_run]


def test_a_fork_of_a_run_was_not_called_by_it():
    outer, fork = called_in_a_tool(2, names="not_sent")

    assert found_in(outer, fork | {"origin": "fork"}) == []


def test_the_error_of_a_called_run_is_that_which_its_caller_got():
    error = {"type": "ValueError", "message": "no such order"}
    outer, inner = called(error=error, status="error")
    del inner["output"], outer["steps"][2]["result"]
    outer["steps"][2]["error"] = error

    assert found_in(outer, inner) == []
    inner["error"] = error | {"message": "lost"}
    assert found_in(outer, inner) == [("inner", 1, "error", "outer", 3)]


def test_what_was_not_recorded_of_a_called_run_is_held_against_nothing():
    outer, inner = called(output={"state": "lost"})
    del outer["steps"][2]["result"]
    graph = called(input={"messages": ["ORD-1?"]}, agent={"name": "expert", "framework": "langgraph"})

    assert found_in(outer, inner) == []
    assert found_in(*graph) == []
    assert found_in(inner) == []


def test_a_contradiction_in_words_names_runs_and_steps():
    place: dict[str, Any] = {"run_id": "b", "step": 4, "path": "messages[1].parts[0].args.p"}
    numbers = {"a": 1, "b": 2}

    told = Contradiction(**place, other_run_id="a", other_step=1)
    unknown = Contradiction(**place | {"path": "messages[4]"}, other_run_id=None, other_step=None)

    assert told.in_words(numbers) == (
        "run 2 (b), step 4: messages[1].parts[0].args.p is not what run 1 (a) says at step 1"
    )
    assert unknown.in_words(numbers) == ("run 2 (b), step 4: messages[4] is in no run of this session")
