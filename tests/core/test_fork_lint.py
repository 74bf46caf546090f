import copy
import json
from itertools import chain
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic_ai.messages import ModelMessagesTypeAdapter, repair_messages

from sessions_app.core.fork.lint import MAX_SENTENCES, lint_history
from sessions_app.core.formats.detect import parse_document
from sessions_app.core.history import messages
from tests.builders import RECORDS, SAMPLES

Message = dict[str, Any]
DUMPS = sorted(RECORDS.glob("*.messages.json"))


def request(*parts: Message, **fields: Any) -> Message:
    return {"kind": "request", "parts": list(parts), **fields}


def response(*parts: Message, **fields: Any) -> Message:
    return {"kind": "response", "parts": list(parts), **fields}


def call(call_id: str, name: str = "look") -> Message:
    return {"part_kind": "tool-call", "tool_name": name, "args": "{}", "tool_call_id": call_id}


def returned(call_id: str, name: str = "look") -> Message:
    return {"part_kind": "tool-return", "tool_name": name, "content": "ok", "tool_call_id": call_id}


PROMPT = {"part_kind": "user-prompt", "content": "Where is it?"}
SYSTEM = {"part_kind": "system-prompt", "content": "Be kind."}
TEXT = {"part_kind": "text", "content": "Here."}
CLEAN = [request(SYSTEM, PROMPT), response(TEXT, call("a"), call("b")), request(returned("b"), returned("a"))]


# --- recordings are clean ----------------------------------------------------------------------


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_histories_that_were_sent_are_clean(sample):
    run = parse_document(sample.read_bytes())

    sent = [[message.value for message in messages(call.history)] for _, call in run.model_calls if call.history]

    assert [lint_history(history) for history in sent] == [[]] * len(sent)
    assert sent


@pytest.mark.parametrize("dump", DUMPS, ids=lambda path: path.name.partition(".")[0])
def test_dumps_are_clean_up_to_each_message_where_a_run_can_go_on(dump):
    """What the loop left when its tool crashed is the one recorded history that is repaired."""
    history = json.loads(dump.read_bytes())
    ends = [end for end, message in enumerate(history, start=1) if message["kind"] == "request" or calls_in(message)]
    crashed = ["Message 1 calls crm_note, which is not answered; the model is told that the call was interrupted."]
    crashed += ["Message 2 is a request without parts; the model is asked nothing."]

    assert ends
    for end in ends:
        assert lint_history(history[:end]) == (crashed if history[end - 1].get("state") == "interrupted" else [])


def calls_in(message: Message) -> list[Message]:
    return [part for part in message["parts"] if part["part_kind"] == "tool-call"]


@pytest.mark.parametrize("dump", DUMPS, ids=lambda path: path.name.partition(".")[0])
def test_dump_without_one_of_its_messages_is_not_clean(dump):
    """The negative control: only the first prompt may be missing where no system prompt stands before it."""
    history = json.loads(dump.read_bytes())[:3]

    for left_out in range(1, len(history) - 1):
        assert lint_history(history[:left_out] + history[left_out + 1 :])


# --- each sentence -----------------------------------------------------------------------------

INTERRUPTED = "which is not answered; the model is told that the call was interrupted."
EMPTY = "is a request without parts; the model is asked nothing."


@pytest.mark.parametrize(
    ("history", "sentences"),
    [
        (CLEAN, []),
        ([], []),
        ([request(PROMPT), response(call("a"))], []),
        (
            [request(PROMPT), request(returned("a"))],
            [
                "Message 1 answers a call a that no message before it asks for; the answer is left out.",
                "Message 1 is a second request in a row; it is sent as one with message 0.",
            ],
        ),
        (
            [request(returned("a")), response(call("a")), request(returned("a"))],
            ["Message 0 answers a call a that no message before it asks for; the answer is left out."],
        ),
        ([*CLEAN[:2], request(returned("a"))], [f"Message 1 calls look, {INTERRUPTED}"]),
        (
            [*CLEAN[:2], request(PROMPT)],
            [
                f"Message 1 calls look, {INTERRUPTED}",
                f"Message 1 calls look, {INTERRUPTED}",
                "Message 2 asks anew while the calls of message 1 are open.",
            ],
        ),
        ([*CLEAN, response(call("c"))], []),
        ([*CLEAN, request(returned("a"), instructions="x")], None),
        (
            [*CLEAN, response(TEXT), request(returned("a"))],
            ["Message 4 answers the call a a second time."],
        ),
        ([*CLEAN, response(call("a")), request(returned("a"))], ["Message 3 uses the call id a of message 1 again."]),
        (
            [request(PROMPT), response(call("a"), call("a")), request(returned("a"), returned("a"))],
            ["Message 1 uses the call id a of message 1 again."],
        ),
        (
            [request(PROMPT), response(call("a")), request(PROMPT), response(call("a")), request(returned("a"))],
            [
                f"Message 1 calls look, {INTERRUPTED}",
                "Message 2 asks anew while the calls of message 1 are open.",
                "Message 3 uses the call id a of message 1 again.",
            ],
        ),
        (
            [request(PROMPT), response(TEXT)],
            ["Message 1 is a final answer; going on from it sends one more, empty request."],
        ),
        ([request(PROMPT), response(TEXT, state="suspended")], []),
        (
            [request(PROMPT), response(TEXT), response(call("a"))],
            ["Message 2 is a second answer in a row, after message 1."],
        ),
        ([request()], [f"Message 0 {EMPTY}"]),
        ([request(PROMPT), response(TEXT), request(instructions="x")], [f"Message 2 {EMPTY}"]),
        (
            [*CLEAN, response(TEXT), request(SYSTEM, PROMPT)],
            ["Message 4 holds a system prompt; its place is the first request, message 0."],
        ),
        (
            [request(PROMPT, instructions="old"), response(TEXT), request(PROMPT, instructions="new")],
            ["Message 0 has other instructions than message 2; only the newest are sent."],
        ),
        (
            [part for text in "abcd" for part in (request(PROMPT, instructions=text), response(TEXT))][:-1],
            ["Message 0 has other instructions than message 6, as have 2 more; only the newest are sent."],
        ),
        ([request(PROMPT, instructions="same"), response(call("a")), request(returned("a"), instructions=None)], []),
        ([request(PROMPT, instructions="one"), request(PROMPT, instructions="two")], None),
        ([{"kind": "note"}, request(PROMPT)], ["Message 0 is neither a request nor a response."]),
    ],
)
def test_sentences_name_the_message_and_what_becomes_of_it(history, sentences):
    untouched = copy.deepcopy(history)

    found = lint_history(history)

    assert history == untouched
    assert found == sentences if sentences is not None else found


def test_older_retry_answers_its_call():
    retry = {"part_kind": "retry-prompt", "content": "Again.", "tool_call_id": "a"}
    history = [request(PROMPT), response(call("a")), request({**retry, "tool_name": "look"})]

    assert lint_history(history) == []
    assert lint_history([*history[:2], request({**retry, "tool_name": None})]) == [
        f"Message 1 calls look, {INTERRUPTED}"
    ]


def test_requests_of_other_instructions_are_not_joined():
    history = [request(PROMPT, instructions="one"), request(PROMPT, instructions="two")]

    assert [sentence for sentence in lint_history(history) if "in a row" in sentence] == []
    assert len(as_the_framework_sends(history)) == 2


# --- against the framework ---------------------------------------------------------------------

REPAIRS = ("is left out", "was interrupted", "is sent as one", "second answer in a row")
PARTS = st.lists(st.sampled_from(["a", "b", "c"]), max_size=8)
"""So few that no sentence is left out of a long list of them."""
HISTORIES = st.lists(
    st.builds(lambda ids, prompts: request(*map(returned, ids), *[PROMPT] * prompts), PARTS, st.integers(0, 1))
    | st.builds(lambda ids, texts: response(*[TEXT] * texts, *map(call, ids)), PARTS, st.integers(0, 1)),
    min_size=1,
    max_size=6,
)


def as_the_framework_sends(history: list[Message]) -> list[Message]:
    """Calls of a last answer stay open: the loop goes on by making them."""
    read = ModelMessagesTypeAdapter.validate_python(history)
    repaired = repair_messages(read, repair_last_response=history[-1]["kind"] == "request")
    dumped: list[Message] = ModelMessagesTypeAdapter.dump_python(repaired, mode="json")
    return dumped


@given(HISTORIES)
@example(CLEAN)
def test_lint_says_that_a_history_is_repaired_when_the_framework_repairs_it(history):
    same = ModelMessagesTypeAdapter.dump_python(ModelMessagesTypeAdapter.validate_python(history), mode="json")

    is_repaired = shape(as_the_framework_sends(history)) != shape(same)

    assert is_repaired == any(words in sentence for sentence in lint_history(history) for words in REPAIRS)


def shape(history: list[Message]) -> list[Any]:
    return [
        (message["kind"], [(part["part_kind"], part.get("tool_call_id")) for part in message["parts"]])
        for message in history
    ]


# --- anything else -----------------------------------------------------------------------------

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=3)
    | st.sampled_from(["request", "response", "tool-call"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["kind", "parts", "part_kind", "tool_call_id", "instructions"]), inner)
    ),
    max_leaves=8,
)
ODD = st.fixed_dictionaries(
    {"kind": st.sampled_from(["request", "response"])}, optional={"parts": VALUES, "instructions": VALUES}
)


@given(st.lists(ODD | VALUES, max_size=5))
def test_anything_is_looked_at(history):
    found = lint_history(history)

    assert all(sentence.startswith("Message ") for sentence in found)


def test_sentences_are_counted_where_they_are_too_many():
    history = [request(PROMPT), response(*[call(str(n)) for n in range(1000)]), request(PROMPT)]

    found = lint_history(history)

    assert len(found) == MAX_SENTENCES + 1
    assert found[-1] == "951 more are not listed."


def test_long_histories_are_read_in_one_pass():
    """Reading all messages again for each one would take many minutes."""
    turns = [(response(call(str(n % 7))), request(returned(str(n % 7)))) for n in range(20_000)]
    same = [request(PROMPT), response(*[call("a")] * 20_000), request(*[returned("a")] * 20_000)]

    assert lint_history([request(PROMPT), *chain(*turns)])[-1] == f"{20_000 - 7 - MAX_SENTENCES:,} more are not listed."
    assert lint_history(same)[-1] == f"{20_000 - 1 - MAX_SENTENCES:,} more are not listed."
