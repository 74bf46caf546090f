"""What is said of a fork before it is queued."""

import dataclasses

import pytest
from msgspec.structs import replace

from sessions_app.core.fork.foretell import foretell
from sessions_app.core.fork.order import read_order
from sessions_app.core.payload import Payload
from sessions_app.core.run import ModelCall, Step, ToolCall
from sessions_app.core.step_summary import StepSummary
from sessions_app.mapping.rows import value_key


def step(index, kind, name="", arguments=None, result=None):
    arguments_key, result_key = value_key(Payload.of(arguments)), value_key(Payload.of(result))
    return StepSummary(
        index=index, kind=kind, name=name or kind, text=index, arguments_key=arguments_key, result_key=result_key
    )


RESULTS = {2: {"open": True, "by": "u_1"}, 3: "nothing", 5: "done"}
STEPS = [
    step(1, "model", result="asks"),
    step(2, "tool", "lookup", {"id": 1}, RESULTS[2]),
    step(3, "tool", "lookup", {"id": 2}, RESULTS[3]),
    step(4, "model", result="asks"),
    step(5, "tool", "cancel", {"id": 1}, RESULTS[5]),
]
ANSWER = {"kind": "tool_result", "step": 2, "value": []}
SAID = {"kind": "model_answer", "step": 4, "value": {"text": "Sorry."}}
CANCELS = {"tool_calls": [{"name": "cancel", "arguments": {"id": 1}}]}


class Recorded:
    """Two requests with other instructions, made to one model."""

    model: str | None = "gpt-4o"
    is_text_final = False

    def __init__(self, status="cut_off", parameters=None, kinds=(), calls=None, replayable_to=None):
        self.status, self.replayable_to = status, replayable_to
        self._calls = calls or {}
        self._parameters = None if parameters is None else Payload.of_json(parameters)
        self._tools = tuple(Payload.of_json({"name": name, "kind": kind}) for name, kind in kinds)

    def step(self, index):
        call: ToolCall | ModelCall
        if index in RESULTS:
            call = ToolCall(
                tool_name=STEPS[index - 1].name,
                call_id=None,
                arguments=None,
                result=Payload.of(RESULTS[index]),
                outcome="failed" if index == 3 else "success",
            )
            return make_step(index, dataclasses.replace(call, **self._calls.get(index, {})))
        parts = [{"part_kind": "tool-call", "tool_name": "cancel", "args": {"id": 1}, "tool_call_id": "c"}]
        call = ModelCall(
            history=None,
            response=Payload.of_json({"kind": "response", "parts": parts}),
            settings=Payload.of_json({"seed": 7}),
            parameters=self._parameters,
            tools=self._tools,
        )
        return make_step(index, call)

    def instructions(self, index):
        return {1: "Be kind.", 4: "Be brief."}[index]

    def message(self, index, position):
        return {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Where?"}]}


def make_step(index, call):
    return Step(index=index, name="step", call=call)


def told(*changes, at_step=2, is_edited=True, recorded=None, steps=STEPS, **order):
    read = read_order({"at_step": at_step, "changes": list(changes), **order})
    main = {each.index for each in steps if each.parent is None}
    found = foretell(read, steps, main, recorded or Recorded(), is_edited=is_edited)
    return found and found.words


def asking(name, arguments, step=4):
    return {"kind": "model_answer", "step": step, "value": {"tool_calls": [{"name": name, "arguments": arguments}]}}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([ANSWER], "Stops at step 4: the model's answer is unknown."),
        ([ANSWER | {"step": 5}], "Stops at step 6: the model's answer is unknown."),
        ([ANSWER | {"value": RESULTS[2]}], "This is what was recorded: nothing would change."),
        (
            [ANSWER | {"value": {"by": "u_1", "open": True}}],
            "Stops at step 4: the model's answer is unknown.",
        ),
        ([ANSWER | {"step": 3, "value": "nothing"}], "Stops at step 4: the model's answer is unknown."),
        (
            [{"kind": "tool_result", "step": 3, "error": "nothing"}],
            "This is what was recorded: nothing would change.",
        ),
        ([{"kind": "instructions", "value": "x"}], "Stops at step 4: the model's answer is unknown."),
        ([{"kind": "instructions", "value": "Be brief."}], "This is what was recorded: nothing would change."),
        ([{"kind": "model", "value": {"settings": {"seed": 7}}}], "This is what was recorded: nothing would change."),
        ([{"kind": "model", "value": {"model": "gpt-4o"}}], "This is what was recorded: nothing would change."),
        ([{"kind": "model", "value": {"model": "gpt-5"}}], "Stops at step 4: the model's answer is unknown."),
        ([SAID | {"value": CANCELS}], "This is what was recorded: nothing would change."),
        ([ANSWER, SAID], "The run ends at step 4: an answer without tool calls is its outcome."),
        ([asking("cancel", {"id": 9})], "Stops at step 5: no call of cancel with these arguments was recorded."),
        ([asking("lookup", {"id": 1})], "Stops at step 5: no call of lookup with these arguments was recorded."),
        (
            [SAID | {"value": {"text": "One moment.", **CANCELS}}],
            "Stops once these tools have answered: the model's next answer is unknown.",
        ),
        (
            [asking("no_such_tool", {"id": 1})],
            "Stops once these tools have answered: the model's next answer is unknown.",
        ),
    ],
)
def test_where_a_fork_stops_is_said_beforehand(changes, words):
    assert told(*changes) == words


def test_an_error_that_ends_the_run_asks_nobody():
    crash = {"kind": "tool_result", "step": 2, "error": {"message": "late", "crashes": True}}

    assert told(crash) == "The run ends at step 2 with this error."


def test_where_the_order_says_who_answers_it_does_not_stop():
    words = "From step 4 on, the model gives its recorded answers, marked as recorded for another request."
    assert told(ANSWER, on_difference="play_on") == words
    assert told(ANSWER, on_difference="live") == "From step 4 on, a live model answers."
    assert told(ANSWER | {"step": 5}, on_difference="play_on").startswith("Stops at step 6")


def test_before_anybody_has_typed_it_says_what_an_edit_would_lead_to():
    assert told(ANSWER | {"value": RESULTS[2]}, is_edited=False).startswith("Stops at step 4")


@pytest.mark.parametrize(
    "order",
    [
        {"changes": [ANSWER, {"kind": "agent", "value": "orders"}]},
        {"changes": [{"kind": "clock", "value": 60}]},
        {"changes": [ANSWER, {"kind": "rule", "when": "docs is empty", "answer": {"text": "x"}}]},
        {"changes": [ANSWER], "samples": 3},
    ],
)
def test_what_depends_on_code_or_on_a_live_model_is_not_foretold(order):
    assert foretell(read_order({"at_step": 2} | order), STEPS, {1, 2, 3, 4, 5}, Recorded()) is None


def test_instructions_that_differ_at_a_later_request_stop_the_fork_there():
    change = {"kind": "instructions", "value": "Be kind."}

    assert told(change, at_step=1) == "Stops at step 4: the model's answer is unknown."


def test_a_message_in_the_recorded_words_changes_nothing():
    change = {"kind": "message", "step": 4, "index": 0, "value": "Where?"}

    assert told(change, at_step=4) == "This is what was recorded: nothing would change."
    assert told(change | {"value": "Who?"}, at_step=4).startswith("Stops at step 4")


def test_a_fork_that_begins_at_a_request_that_failed_stops_there():
    steps = [*STEPS[:3], replace(step(4, "model"), result_key=None)]

    assert told({"kind": "model", "value": {"model": "gpt-4o"}}, at_step=4, steps=steps).startswith("Stops at step 4")
    assert told(SAID, at_step=4, steps=steps).startswith("The run ends at step 4")


def test_behind_the_last_answer_of_a_run_that_is_over_no_request_follows():
    """Control: a run that a tool ended, which a rebuilt loop does not know."""
    over = Recorded(status="ok", calls={5: {"is_output": True}})
    change = ANSWER | {"step": 5}

    assert told(change, recorded=over) == "The run ends as it did: no request to the model follows."
    assert told(change, recorded=Recorded(status="ok")) == "Stops at step 6: the model's answer is unknown."


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ("success", "Stops at step 4: the model's answer is unknown."),
        ("crashed", "The run ends with its error again."),
        ("interrupted", "Stops at step 3: no answer of lookup was recorded."),
    ],
)
def test_a_call_beside_the_changed_one_that_crashed_or_was_interrupted_is_so_again(outcome, words):
    assert told(ANSWER, recorded=Recorded(calls={3: {"outcome": outcome}})) == words


@pytest.mark.parametrize(("limit", "is_behind"), [(None, False), (5, False), (4, True)])
def test_what_comes_behind_the_end_of_a_replay_is_not_known(limit, is_behind):
    words = told(ANSWER | {"step": 5}, recorded=Recorded(replayable_to=limit))

    assert words.startswith("The recording can be replayed to step 4 only") is is_behind


@pytest.mark.parametrize(
    ("is_output", "words"), [(False, "The run ends at step 4: an answer"), (True, "The run ends at step 4 if")]
)
def test_a_text_is_no_outcome_where_the_run_had_one_of_its_own_kind(is_output, words):
    """In a record that does not tell what the model was asked for."""
    assert told(SAID, at_step=4, recorded=Recorded(calls={5: {"is_output": is_output}})).startswith(words)


def test_a_run_that_ended_with_an_error_may_end_so_again():
    """Control: the call that failed is answered now."""
    failed = Recorded(status="error")
    steps = [*STEPS[:4], replace(STEPS[4], has_error=True)]
    again = "The run ends with its error again, or stops at step 6: the model's answer is unknown."

    assert told(ANSWER | {"step": 5}, recorded=failed) == again
    assert told(ANSWER | {"step": 5}, recorded=failed, steps=steps).startswith("Stops at step 6")


def test_the_text_beside_the_calls_of_a_streamed_run_is_its_outcome():
    streamed = Recorded()
    streamed.is_text_final = True

    words = "The run ends once these tools have answered: the text beside them is its outcome."
    assert told(SAID | {"value": {"text": "One moment.", **CANCELS}}, recorded=streamed) == words


def test_an_output_may_be_refused():
    structured = Recorded(parameters={"output_mode": "tool", "output_tools": [{"name": "final_result"}]})

    assert told(SAID, recorded=structured).endswith(
        "if this text is accepted as output; otherwise the model is asked again."
    )
    assert told(asking("final_result", {}), recorded=structured).startswith("The run ends if the output is accepted")


def test_a_call_that_needs_a_decision_ends_the_run():
    recorded = Recorded(kinds=[("cancel", "unapproved")])

    words = "The run waits for a decision or a result from outside: cancel needs one."
    assert told(asking("cancel", {"id": 9}), recorded=recorded) == words


def test_steps_that_the_fork_does_not_have_are_not_counted():
    """What ran inside of the changed tool, and a snapshot behind it; not what ran inside of another one."""
    inside, beside = step(3, "model"), step(5, "model")
    steps = [
        *STEPS[:2],
        replace(inside, parent=2),
        replace(STEPS[2], index=4),
        replace(beside, parent=4),
        step(6, "other"),
        step(7, "model", result="asks"),
    ]

    assert told(ANSWER, steps=steps) == "Stops at step 7 (step 5 of the fork): the model's answer is unknown."
