"""The form of a fork: what is typed becomes an order, and nothing that was typed is lost."""

import html
import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from sessions_app.core.replay.parts import NOT_WITH_SDK
from sessions_app.models import Replay, SignIn
from sessions_app.web.forks import values as fork_values
from tests.losing import lose_payloads
from tests.web.making import HOSTILE, client_of, make_project, make_user, match
from tests.web.records import load_example, load_record, long_run, loop_of, model_step, tool_step

pytestmark = pytest.mark.django_db
GOOD = {"hypothesis": "The answer decides.", "expect_kind": "words", "expect_text": "It asks first."}
SETTINGS = '{"temperature": 0}'


@pytest.fixture
def run(shop):
    """Steps: 1 model, 2 tool, 3 model, 4 tool, 5 model; with a state."""
    return load_example(shop, "cancel_bug")


def address(run, step):
    return f"{reverse('fork', args=[run.project.slug, run.session.session_id])}?step={step}"


def page_of(client, run, step):
    return client.get(address(run, step)).content.decode()


def post(client, run, step, **typed):
    return client.post(address(run, step), GOOD | typed)


def order_of(client, run, step, **typed):
    """The order that a form becomes; it has to be queued."""
    response = post(client, run, step, **typed)
    assert response.status_code == 302, errors_in(response.content.decode())
    return Replay.objects.get().order


def errors_in(page):
    """What stands at the inputs, by their names."""
    found = re.findall(r'data-error="(\w+)"\s*>(.*?)</p>', page, re.DOTALL)
    return {name: html.unescape(words) for name, words in found if words}


def typed_in(page, name):
    """What a text area holds, as a browser reads it: without the first line end."""
    text = match(rf'<textarea id="in-{name}".*?>(.*?)</textarea>', page)
    return html.unescape(text).removeprefix("\n")


def is_ticked(page, name):
    return re.search(rf'name="{name}"\s+value="on"\s+checked', page) is not None


# --- from the form to the order


ANSWERS = {
    "answer_text": "Shall I?",
    "answer_calls": '[{"name": "lookup_order", "arguments": {"order_id": "ORD-1"}}]',
}


@pytest.mark.parametrize(
    ("step", "typed", "changes"),
    [
        (
            3,
            {"use_instructions": "on", "instructions": "Ask first.\r\nThen act."},
            [{"kind": "instructions", "value": "Ask first.\nThen act."}],
        ),
        (
            3,
            {"use_message": "on", "message_index": "0", "message_of": "0", "message_as": "text", "message": "Hello"},
            [{"kind": "message", "step": 3, "index": 0, "value": "Hello"}],
        ),
        (
            3,
            {"use_message": "on", "message_index": "2", "message_of": "2", "message_as": "json", "message": '{"a": 1}'},
            [{"kind": "message", "step": 3, "index": 2, "value": {"a": 1}}],
        ),
        (
            1,
            {"use_model": "on", "model": "gpt-5", "settings": SETTINGS},
            [{"kind": "model", "value": {"model": "gpt-5", "settings": {"temperature": 0}}}],
        ),
        (1, {"use_model": "on", "model": "gpt-5"}, [{"kind": "model", "value": {"model": "gpt-5"}}]),
        (
            1,
            {"use_model": "on", "model": "gpt-4o", "settings": SETTINGS},
            [{"kind": "model", "value": {"settings": {"temperature": 0}}}],
        ),
        (
            2,
            {"use_result": "on", "result_as": "json", "result": "[1.0, null]"},
            [{"kind": "tool_result", "step": 2, "value": [1.0, None]}],
        ),
        (2, {"use_result": "on", "result_as": "text", "result": ""}, [{"kind": "tool_result", "step": 2, "value": ""}]),
        (
            2,
            {"use_result": "on", "result_as": "error", "result": "Too slow."},
            [{"kind": "tool_result", "step": 2, "error": {"message": "Too slow."}}],
        ),
        (
            2,
            {
                **{"use_result": "on", "result_as": "error", "result": "Too slow."},
                **{"result_type": "TimeoutError", "result_crashes": "on"},
            },
            [
                {
                    "kind": "tool_result",
                    "step": 2,
                    "error": {"message": "Too slow.", "type": "TimeoutError", "crashes": True},
                }
            ],
        ),
        (
            1,
            {"use_result": "on", "result_step": "4", "result_of": "4", "result_as": "text", "result": "No."},
            [{"kind": "tool_result", "step": 4, "value": "No."}],
        ),
        (
            3,
            {"use_answer": "on", **ANSWERS},
            [
                {
                    "kind": "model_answer",
                    "step": 3,
                    "value": {
                        "text": "Shall I?",
                        "tool_calls": [{"name": "lookup_order", "arguments": {"order_id": "ORD-1"}}],
                    },
                }
            ],
        ),
        (
            2,
            {"use_answer": "on", "answer_text": "Shall I?"},
            [{"kind": "model_answer", "step": 3, "value": {"text": "Shall I?"}}],
        ),
        (
            3,
            {
                **{"use_state": "on", "patch": '[{"op": "remove", "path": "/memory"}]'},
                **{"use_rule": "on", "rule_when_1": "state.memory is missing", "rule_text_1": "None."},
            },
            [
                {"kind": "state", "step": 3, "patch": [{"op": "remove", "path": "/memory"}]},
                {"kind": "rule", "when": "state.memory is missing", "answer": {"text": "None."}},
            ],
        ),
        (1, {"use_clock": "on", "clock": "-3600"}, [{"kind": "clock", "value": -3600}]),
        (1, {"use_clock": "on", "clock": "0.5"}, [{"kind": "clock", "value": 0.5}]),
        (
            1,
            {"use_clock": "on", "clock": " 2026-11-17T15:14:00+01:00 "},
            [{"kind": "clock", "value": "2026-11-17T15:14:00+01:00"}],
        ),
        (
            1,
            {
                **{"use_rule": "on", "rule_when_1": "docs is empty", "rule_text_1": "None."},
                **{"rule_when_2": "step >= 3", "rule_text_2": "Stop."},
            },
            [
                {"kind": "rule", "when": "docs is empty", "answer": {"text": "None."}},
                {"kind": "rule", "when": "step >= 3", "answer": {"text": "Stop."}},
            ],
        ),
    ],
)
def test_a_ticked_card_becomes_a_change(bob, run, step, typed, changes):
    assert order_of(bob, run, step, **typed) == {
        "at_step": step,
        "changes": changes,
        "hypothesis": "The answer decides.",
        "expect": "It asks first.",
    }


def test_the_own_code_is_chosen_among_the_registered_agents(bob, run, settings):
    settings.REPLAY_AGENTS = {"support": {}}

    order = order_of(bob, run, 1, use_agent="on", agent="support")

    assert order["changes"] == [{"kind": "agent", "value": "support"}]
    assert Replay.objects.get().queue == "code"


def test_what_is_not_ticked_does_not_count(bob, run):
    order = order_of(bob, run, 2, use_result="on", result="x", instructions="other", patch="[", clock="soon")

    assert order["changes"] == [{"kind": "tool_result", "step": 2, "value": "x"}]


def test_several_changes_are_one_fork(bob, run):
    order = order_of(bob, run, 2, use_result="on", result="x", use_clock="on", clock="60")

    assert [change["kind"] for change in order["changes"]] == ["tool_result", "clock"]


@pytest.mark.parametrize(
    ("typed", "expect"),
    [
        ({"expect_kind": "words", "expect_text": " It asks first. "}, "It asks first."),
        ({"expect_kind": "contains", "expect_text": "refund"}, {"contains": "refund"}),
        ({"expect_kind": "equals", "expect_text": "42"}, {"equals": "42"}),
        ({"expect_kind": "equals", "expect_text": '{"id": 1}'}, {"equals": {"id": 1}}),
        (
            {"expect_kind": "at_most_calls", "expect_tool": "cancel_order", "expect_n": "0"},
            {"at_most_calls": {"tool": "cancel_order", "n": 0}},
        ),
        ({"expect_kind": "ends_within", "expect_n": " 2 "}, {"ends_within": 2}),
    ],
)
def test_the_expected_outcome_is_words_or_a_check(bob, run, typed, expect):
    assert order_of(bob, run, 2, use_result="on", result="x", **typed)["expect"] == expect


def test_an_output_that_is_json_is_compared_with_json(shop, bob):
    run = load_record(shop, output={"price": 3}, steps=[model_step(1), tool_step(parent=1), model_step(2, after=1)])
    typed = {"use_result": "on", "result": "x", "expect_kind": "equals"}

    assert errors_in(post(bob, run, 2, **typed, expect_text="3 euros").content.decode()).keys() == {"expect_text"}
    assert order_of(bob, run, 2, **typed, expect_text="3")["expect"] == {"equals": 3}


def test_breakpoints_are_rows_that_may_stay_empty(bob, run):
    typed = {
        **{"break_kind_1": "step", "break_value_1": "4", "break_kind_2": "tool", "break_value_2": " "},
        **{"break_kind_3": "when", "break_value_3": "calls.lookup_order > 1"},
    }

    order = order_of(bob, run, 2, use_result="on", result="x", **typed)

    assert order["breakpoints"] == [{"step": 4}, {"when": "calls.lookup_order > 1"}]


def test_a_fork_leads_to_its_replay_and_knows_who_asked(bob, run):
    response = post(bob, run, 2, use_result="on", result="x")

    replay = Replay.objects.get()
    assert response["Location"] == reverse("replay", args=["shop", replay.replay_id])
    assert (replay.run, replay.mode, replay.state) == (run, "fork", "queued")
    assert replay.requested_by is not None
    assert replay.requested_by.get_username() == "bob"


# --- presets


def test_presets_are_offered_for_the_tools_answer(bob, shop):
    run = load_example(shop, "run_xyz789")

    page = page_of(bob, run, 2)

    assert set(re.findall(r'name="preset"\s+value="(\w*)"', page)) == {"rate_limit", "timeout"}


def test_a_chosen_preset_wins_over_what_is_typed(bob, shop):
    run = load_example(shop, "r_8821")
    tool = next(step.index for step in run.steps if step.kind == "tool")

    order = order_of(bob, run, tool, use_result="on", preset="empty", result_as="text", result="typed")

    assert order["changes"] == [{"kind": "tool_result", "step": tool, "value": []}]


@pytest.mark.parametrize(
    ("outcome", "key", "value"), [("success", "denied", "denied"), ("denied", "approved", "approved")]
)
def test_the_other_decision_on_an_approval_is_a_preset(bob, shop, settings, outcome, key, value):
    """Control: a call that nobody decided on has none."""
    settings.REPLAY_AGENTS = {"support": {}}
    decided = tool_step("pay_back", call_id="c1", outcome=outcome, result="said")
    run = load_record(shop, steps=[decided, model_step(2)], deferred={"c1": outcome})
    nobody = tool_step("pay_back", call_id="c1", outcome="success", result="said")
    other = load_record(shop, run_id="other", session_id="other", steps=[nobody, model_step(2)])

    pages = [page_of(bob, each, 1) for each in (run, other)]
    offered = [set(re.findall(r'name="preset"\s+value="(\w*)"', page)) & {"approved", "denied"} for page in pages]
    order = order_of(bob, run, 1, use_result="on", preset=key, use_agent="on", agent="support", agent_tools="on")

    assert offered == [{key}, set()]
    assert order["changes"][0] == {"kind": "approval", "step": 1, "value": value}
    assert order["tools"] == {"run": True}


def test_a_preset_that_is_not_offered_is_refused(bob, run):
    page = post(bob, run, 2, use_result="on", preset="nonsense", result="x").content.decode()

    assert errors_in(page) == {"preset": "This answer has no preset 'nonsense'."}
    assert not Replay.objects.exists()


# --- errors


def test_json_errors_name_line_and_column(bob, run):
    response = post(bob, run, 2, use_state="on", patch='[{"op": "remove",\r\n "path": }]')

    assert response.status_code == 422
    words = "This is not JSON: Expecting value (line 2, column 10)."
    assert errors_in(response.content.decode()) == {"patch": words}
    assert f'<a href="#in-patch">{words}</a>' in response.content.decode()


@pytest.mark.parametrize(
    ("typed", "name", "words"),
    [
        ({"use_instructions": "on", "instructions": " "}, "instructions", "This must be text."),
        ({"use_model": "on", "model": "gpt-4o"}, "model", "Neither the model nor its settings differ"),
        ({"use_model": "on", "settings": "[1]"}, "settings", "settings must be an object."),
        ({"use_result": "on", "result_as": "json", "result": '{"a": 1, "a": 2}'}, "result", "stands twice"),
        ({"use_result": "on", "result_as": "json", "result": "NaN"}, "result", "NaN is not JSON"),
        ({"use_result": "on", "result_as": "json", "result": r'"\u0000"'}, "result", "NUL"),
        ({"use_result": "on", "result_as": "text", "result": "a\x00b"}, "result", "NUL"),
        ({"use_answer": "on"}, "answer_text", "This needs a text, tool_calls or both."),
        ({"use_answer": "on", "answer_calls": '[{"name": ""}]'}, "answer_calls", "tool_calls[0].name must be"),
        ({"use_state": "on", "patch": ""}, "patch", "Write JSON here."),
        ({"use_state": "on", "patch": "{}"}, "patch", "This must be a list of JSON Patch operations."),
        ({"use_state": "on", "patch": '[{"op": "remove", "path": "/no"}]'}, "patch", "there is no 'no'"),
        ({"use_clock": "on", "clock": "soon"}, "clock", "This must be an ISO 8601 time with offset"),
        ({"use_rule": "on"}, "rule_when_1", "Write when the rule holds"),
        ({"use_rule": "on", "rule_when_2": "?!", "rule_text_2": "x"}, "rule_when_2", "is not a comparison"),
        ({"use_rule": "on", "rule_when_1": "docs is empty"}, "rule_text_1", "needs a text, tool_calls or both"),
        ({"use_agent": "on"}, "agent", "Choose one of the registered agents."),
        ({"use_agent": "on", "agent": "ghost"}, "agent", "No agent 'ghost' is registered"),
        ({}, "changes", "Tick at least one change"),
        ({"use_clock": "on", "clock": "1", "hypothesis": "x" * 2001}, "hypothesis", "at most 2000 characters"),
        (
            {"use_clock": "on", "clock": "1", "expect_kind": "contains", "expect_text": ""},
            "expect_text",
            "Say which outcome",
        ),
        ({"use_clock": "on", "clock": "1", "expect_kind": "magic"}, "expect_kind", "Choose how"),
        ({"use_clock": "on", "clock": "1", "expect_kind": "ends_within", "expect_n": "few"}, "expect_n", "a number"),
        ({"use_clock": "on", "clock": "1", "expect_kind": "at_most_calls", "expect_n": "1"}, "expect_tool", "a tool"),
        ({"use_clock": "on", "clock": "1", "break_kind_2": "step", "break_value_2": "x"}, "break_value_2", "a step"),
        ({"use_clock": "on", "clock": "1", "break_kind_2": "magic", "break_value_2": "x"}, "break_value_2", "one of"),
    ],
)
def test_errors_stand_at_their_input(bob, run, typed, name, words):
    response = post(bob, run, 3, **typed)

    errors = errors_in(response.content.decode())
    assert (response.status_code, list(errors)) == (422, [name])
    assert words in errors[name]
    assert not Replay.objects.exists()


def test_all_errors_are_told_at_once_and_nothing_is_lost(bob, run):
    typed = {
        **{"use_state": "on", "patch": "[<", "use_clock": "on", "clock": "later & later", "use_result": "on"},
        **{"result_as": "json", "result": '\r\n{"x": ', "hypothesis": "", "expect_text": "kept words"},
        **{"instructions": "typed and not ticked", "break_value_1": "two", "rule_when_2": 'a = "b"'},
    }

    page = post(bob, run, 3, **typed).content.decode()

    assert set(errors_in(page)) == {"patch", "clock", "result", "break_value_1"}
    assert (typed_in(page, "patch"), typed_in(page, "instructions")) == ("[<", "typed and not ticked")
    assert typed_in(page, "result") == '\r\n{"x": '
    assert all(html.escape(typed[name]) in page for name in ("clock", "expect_text", "rule_when_2"))
    assert is_ticked(page, "use_state")
    assert not is_ticked(page, "use_instructions")
    assert 'aria-describedby="err-patch"' in page


def test_a_card_with_an_error_is_unfolded(bob, run):
    page = post(bob, run, 3, use_clock="on", clock="soon").content.decode()

    assert re.search(r'data-card="clock"\s+open', page)
    assert not re.search(r'data-card="state"\s+open', page)


def test_an_error_of_no_input_stands_above(shop, bob):
    run = load_record(shop, steps=[tool_step()])

    page = post(bob, run, 1, use_result="on", result="x").content.decode()

    assert "The run holds no model answer" in match(r'id="fork-errors"(.*?)</section>', page)


# --- checking and drafts


def test_checking_says_the_fork_in_a_sentence_and_queues_nothing(bob, run):
    response = post(bob, run, 2, use_result="on", result="x", do="check")

    said = re.sub(r"<[^>]+>|\s+", " ", match(r'id="fork-check"(.*?)</div>', response.content.decode()))
    assert response.status_code == 200
    assert "tool answer at step 2: → &quot;x&quot;" in said
    assert "It asks first." in said
    assert not Replay.objects.exists()


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (2, ["With another answer, stops at step 3, as the model's answer is unknown."]),
        (
            3,
            [
                "With other instructions, stops at step 3, as the model's answer is unknown.",
                "With another answer, stops once these tools have answered, as the model's next answer is unknown.",
            ],
        ),
    ],
)
def test_the_form_says_where_an_edit_stops_before_it_is_checked(bob, run, step, words):
    """Beside what is edited, and on a phone above the button."""
    page = page_of(bob, run, step)

    ahead = html.unescape(match(r'(?s)id="fork-check" aria-live="polite">(.*?)</div>', page))
    assert re.findall(r"<strong>(.*?)</strong>", ahead) == words
    assert words[0] in html.unescape(match(r'(?s)id="fork-stop"(.*?)</p>', page))


def test_a_change_is_ticked_by_editing_it(bob, run):
    """What nobody edited shows no tick where scripts run; a form that comes back shows all."""
    fresh = page_of(bob, run, 2)
    checked = post(bob, run, 2, use_result="on", result="x", do="check").content.decode()

    assert "data-when-edited" in match(r'(?s)<details[^>]*data-card="result"(.*?)</details>', fresh)
    assert "data-when-edited" not in checked
    assert "run your code" in match(r'(?s)data-card="agent"(.*?)</details>', fresh)


def test_a_draft_is_there_again_until_it_is_queued(bob, run):
    post(bob, run, 2, use_result="on", result="drafted", expect_kind="magic")

    assert typed_in(page_of(bob, run, 2), "result") == "drafted"
    assert is_ticked(page_of(bob, run, 2), "use_result")
    assert "drafted" not in page_of(bob, run, 4)

    post(bob, run, 2, use_result="on", result="drafted")
    assert "drafted" not in page_of(bob, run, 2)


def test_a_draft_is_thrown_away_when_asked(bob, run):
    post(bob, run, 2, use_result="on", result="drafted", expect_kind="magic")

    response = post(bob, run, 2, result="drafted", do="discard")

    assert response["Location"] == address(run, 2)
    assert "drafted" not in page_of(bob, run, 2)


def test_a_draft_is_its_writers_alone(shop, bob, run):
    post(bob, run, 2, use_result="on", result="drafted", expect_kind="magic")

    assert "drafted" not in page_of(client_of(make_user("ann", shop)), run, 2)


def test_the_last_few_drafts_are_kept(bob, shop):
    run = load_record(shop, steps=loop_of(4))
    for step in range(1, 8):
        post(bob, run, step, hypothesis=f"draft {step}", do="check")

    kept = [step for step in range(1, 8) if f"draft {step}" in page_of(bob, run, step)]

    assert kept == [3, 4, 5, 6, 7]


def test_secrets_are_not_kept_in_a_draft(bob, run):
    secret = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"

    page = post(bob, run, 2, use_result="on", result=f"key {secret}", expect_kind="magic").content.decode()

    assert secret in page
    kept = str([session.get_decoded() for session in SignIn.objects.all()])
    assert "key [" in kept
    assert secret not in kept


def test_what_cannot_be_kept_is_said(bob, run):
    page = post(bob, run, 2, use_result="on", result="x" * 200_001, do="check").content.decode()

    assert "Not saved as a draft" in page
    assert "xxx" not in page_of(bob, run, 2)


# --- what is recorded


def test_the_form_begins_with_what_was_recorded(bob, run):
    page = page_of(bob, run, 2)

    assert typed_in(page, "result") == "Order ORD-5521: Widget Pro, status: delivered, non-cancellable"
    assert typed_in(page, "instructions") == "You help customers with order management."
    assert '"name": "cancel_order"' in typed_in(page, "answer_calls")
    assert '"seed": 20171' in typed_in(page, "settings")
    assert 'value="gpt-4o"' in page
    assert re.search(r'data-card="result"\s+open', page)


def test_the_page_says_which_state_it_starts_from(shop, bob, run):
    stateless = load_example(shop, "run_xyz789")

    assert re.search(r'title="[0-9a-f]{64}">[0-9a-f]{8}…</span>\s+of step 2', page_of(bob, run, 3))
    assert "at the beginning" in page_of(bob, run, 1)
    assert "no state captured" in page_of(bob, stateless, 3)


def test_a_value_that_is_too_long_is_cut_and_never_edited_in_part(shop, bob):
    long = "é" * 32_769
    whole = "é" * 32_768
    steps = [model_step(1), tool_step(parent=1, result=long), model_step(2, after=1), tool_step(parent=3, result=whole)]
    run = load_record(shop, steps=steps)

    cut, kept = page_of(bob, run, 2), page_of(bob, run, 4)

    assert typed_in(cut, "result") == ""
    assert "64 KiB, only the first part is shown: too long to be edited here" in cut
    assert long not in cut
    assert typed_in(kept, "result") == whole
    assert "too long" not in kept


@pytest.mark.parametrize(
    ("result", "form", "text"),
    [
        ("plain", "text", "plain"),
        ("\nfirst line empty", "text", "\nfirst line empty"),
        ("a\r\nb", "json", '"a\\r\\nb"'),
        ("a\x00b", "json", '"a\\u0000b"'),
        ({"a": [1.0]}, "json", '{\n  "a": [\n    1.0\n  ]\n}'),
        (None, "json", "null"),
    ],
)
def test_what_a_form_cannot_carry_is_offered_as_json(shop, bob, result, form, text):
    run = load_record(shop, steps=[model_step(1), tool_step(parent=1, result=result)])

    page = page_of(bob, run, 2)

    chosen = match(r'name="result_as">(.*?)</select>', page)
    assert re.search(r'value="(\w+)"\s+selected', chosen)[1] == form
    assert typed_in(page, "result") == text


def test_half_a_surrogate_pair_keeps_its_escape():
    assert fork_values.of_json(["\ud800", "é"]).text == '[\n  "\\ud800",\n  "\\u00e9"\n]'
    assert fork_values.of_text("\ud800").editable == ""
    assert fork_values.of_text("é").editable == "é"


def test_another_message_brings_its_text_unless_the_old_one_was_edited(bob, run):
    newest = typed_in(page_of(bob, run, 3), "message")
    chosen = {"message_index": "0", "message_of": "2", "message_as": "text", "do": "show"}

    shown = post(bob, run, 3, message=newest, **chosen).content.decode()
    kept = post(bob, run, 3, message="mine", **chosen).content.decode()

    assert typed_in(shown, "message") == "Cancel order ORD-5521, changed my mind"
    assert typed_in(kept, "message") == "mine"
    assert errors_in(shown) == errors_in(kept) == {}


def test_another_message_is_not_queued_before_it_was_seen(bob, run):
    typed = {"use_message": "on", "message_index": "0", "message_of": "2", "message_as": "text"}
    newest = typed_in(page_of(bob, run, 3), "message")

    page = post(bob, run, 3, message=newest, **typed).content.decode()

    assert errors_in(page) == {"message": "This is what was recorded there; edit it."}
    assert not Replay.objects.exists()


def test_a_message_is_changed_where_the_fork_asks_the_model(bob, run):
    page = post(bob, run, 2, use_message="on", message="x").content.decode()

    assert set(errors_in(page)) == {"message"}
    assert f'<a href="{address(run, 3)}">Fork from step 3</a>' in page


def test_bytes_that_are_gone_are_said(shop, bob, run):
    lose_payloads(shop)

    response = bob.get(address(run, 2))

    assert response.status_code == 410
    assert "no longer stored" in response.content.decode()


def test_recorded_text_is_never_markup(shop, bob):
    steps = [
        model_step(1, response={"kind": "response", "parts": [{"part_kind": "text", "content": HOSTILE}]}),
        tool_step(f"t{HOSTILE}", parent=1, arguments={"q": HOSTILE}, result=HOSTILE, call_id=HOSTILE),
        model_step(2, after=1),
    ]
    run = load_record(shop, steps=steps, instructions=HOSTILE, agent={"name": HOSTILE}, model=HOSTILE)

    pages = [page_of(bob, run, step) for step in (1, 2, 3)]
    pages.append(post(bob, run, 2, use_result="on", result=HOSTILE, hypothesis=HOSTILE, do="check").content.decode())

    assert all("<script>alert" not in page and "{{ 7|add:7 }}" in page for page in pages)
    assert not any(re.search(r"<style|\sstyle=|\son\w+=", page) for page in pages)


# --- what comes after


def test_later_calls_without_a_recording_are_named(shop, bob):
    steps = loop_of(3)
    del steps[3]["result"]
    run = load_record(shop, steps=steps)

    assert later_in(page_of(bob, run, 1)) == "2 of 3 later tool calls have recordings; the fork will pause at step 4."
    assert later_in(page_of(bob, run, 4)) == "1 of 1 later tool call has a recording."


def test_calls_that_no_fork_asks_for_are_not_counted(shop, bob):
    inner = tool_step("inner", parent=2)
    final = tool_step("final_result", parent=4, is_output=True)
    del inner["result"], final["result"]
    run = load_record(shop, steps=[model_step(1), tool_step(parent=1), inner, model_step(2, after=1), final])

    assert later_in(page_of(bob, run, 1)) == "1 of 1 later tool call has a recording."


def later_in(page):
    return " ".join(re.sub(r"<[^>]+>", "", match(r'class="fork-later soft">(.*?)</p>', page)).split())


def test_tools_are_named_with_their_kind(shop, bob):
    steps = [model_step(1), tool_step("find", parent=1, tool_kind="read"), tool_step("send", parent=1)]
    run = load_record(shop, steps=steps)

    rows = re.findall(r'scope="row" class="recorded">(\w+)</th>\s*<td>(.*?)</td>', page_of(bob, run, 1))

    assert rows == [
        ("find", "Recorded answers only · read · 1 call"),
        ("send", "Recorded answers only · 1 call"),
    ]


def test_sources_say_what_is_off(bob, run, settings):
    settings.REPLAY_MODEL_ENDPOINT, settings.REPLAY_AGENTS = "", {}
    assert "off: no live model can be asked" in page_of(bob, run, 1)
    assert "off: no agent registered on this server can replay the run" in page_of(bob, run, 1)

    settings.REPLAY_MODEL_ENDPOINT, settings.REPLAY_AGENTS = "https://models.example/v1", {"support": {}}

    assert "no live model can be asked" not in page_of(bob, run, 1)
    assert "no agent is registered" not in page_of(bob, run, 1)


def test_a_long_run_costs_no_more_queries(shop, bob):
    short = load_record(shop, run_id="short", session_id="short", steps=[model_step(1), *long_run(3)])
    long = load_record(shop, run_id="long", session_id="long", steps=[model_step(1), *long_run(400)])
    counts = []
    for run in (short, long):
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert bob.get(address(run, 2)).status_code == 200
        counts.append(len(queries))

    assert counts[0] == counts[1]


# --- who


def test_the_page_is_for_members(shop, run):
    vera = client_of(make_user("vera", shop, role="viewer"))

    assert "You need the Member role" in vera.get(address(run, 2)).content.decode()
    assert post(vera, run, 2, use_result="on", result="x").status_code == 403
    assert not Replay.objects.exists()


def test_others_are_told_nothing(shop, run):
    charlie = client_of(make_user("charlie", make_project("other")))

    assert charlie.get(address(run, 2)).status_code == 404
    assert post(charlie, run, 2, use_result="on", result="x").status_code == 404
    assert charlie.get(address(run, 2).replace("/shop/", "/other/")).status_code == 404
    assert Client().get(address(run, 2)).status_code == 302
    assert not Replay.objects.exists()


@pytest.mark.parametrize("step", ["99", "999999999999"])
def test_a_step_that_is_not_there_is_no_page(bob, run, step):
    response = bob.get(address(run, step))

    assert response.status_code == (404 if step == "99" else 200)  # what is no number of a step names none


def test_a_run_of_several_is_named_in_the_form(shop, bob):
    first = load_record(shop, run_id="one", steps=[model_step(1)])
    second = load_record(shop, run_id="two", steps=[model_step(2)])

    page = bob.get(f"{address(first, 1)}&run=2").content.decode()
    bob.post(
        html.unescape(match(r'method="post"\s+action="([^"]*)"\s+id="fork"', page)),
        GOOD
        | {
            "use_answer": "on",
            "answer_text": "x",
        },
    )

    assert Replay.objects.get().run == second


# --- where it is found


def test_session_and_step_lead_to_the_fork_of_the_step(shop, bob, run):
    session = bob.get(reverse("session", args=["shop", run.session.session_id]), {"step": 4}).content.decode()
    step = bob.get(reverse("step", args=["shop", run.session.session_id, 4])).content.decode()
    messages = bob.get(reverse("session", args=["shop", run.session.session_id]), {"view": "messages"}).content.decode()

    assert session.count(f'href="{address(run, 4)}"') == 2
    assert len(re.findall(r'data-key="f"', session)) == len(re.findall(r'data-key="f"', step)) == 1
    assert f'href="{address(run, 4)}"' in step
    assert f'href="{address(run, 1)}"' in messages
    assert 'data-key="f"' in messages


# --- replay options


def options(run):
    return reverse("replay_options", args=["shop", run.session.session_id])


def test_a_replay_with_options_queues_what_was_chosen(shop, bob, settings):
    settings.REPLAY_AGENTS = {"support": {}}
    run = load_record(shop, steps=[model_step(1), tool_step("find", parent=1, tool_kind="read")])
    typed = {"mode": "code", "agent": "support", "live": ["find"], "break_kind_1": "tool", "break_value_1": "find"}

    response = bob.post(options(run), typed)

    replay = Replay.objects.get()
    assert response["Location"] == reverse("replay", args=["shop", replay.replay_id])
    assert (replay.mode, replay.queue) == ("code", "code")
    assert replay.order == {
        "agent": "support",
        "tools": {"live": ["find"]},
        "on_difference": "stop",
        "breakpoints": [{"tool": "find"}],
    }


def test_the_tools_run_and_the_replay_plays_on_where_both_are_chosen(bob, run, settings):
    settings.REPLAY_AGENTS = {"support": {}}

    bob.post(options(run), {"mode": "code_and_tools", "agent": "support", "on_difference": "play_on"})

    replay = Replay.objects.get()
    assert (replay.mode, replay.queue) == ("code_and_tools", "code")
    assert replay.order == {"agent": "support", "tools": {"live": [], "run": True}, "on_difference": "play_on"}


@pytest.mark.parametrize(("agents", "status"), [(["support"], 302), (["support", "billing"], 422)])
def test_the_only_registered_agent_needs_no_choice(bob, run, settings, agents, status):
    settings.REPLAY_AGENTS = {name: {} for name in agents}

    response = bob.post(options(run), {"mode": "code_and_tools", "agent": ""})

    assert response.status_code == status
    assert [replay.order["agent"] for replay in Replay.objects.all()] == (agents if status == 302 else [])


def test_a_live_model_is_asked_as_often_as_was_typed(bob, run, settings):
    settings.REPLAY_MODEL_ENDPOINT = "https://models.example.org/v1"
    settings.REPLAY_MODEL_ALLOW_PRIVATE = True

    bob.post(options(run), {"mode": "live", "samples": "3"})

    replay = Replay.objects.get()
    assert (replay.mode, replay.queue, replay.order["samples"]) == ("live", "replays", 3)
    assert replay.order["changes"] == [{"kind": "model", "value": {"settings": {"temperature": 0}}}]


def test_without_a_live_model_none_can_be_chosen(bob, run, settings):
    without = bob.get(options(run)).content.decode()
    settings.REPLAY_MODEL_ENDPOINT = "https://models.example.org/v1"
    settings.REPLAY_MODEL_ALLOW_PRIVATE = True
    with_one = bob.get(options(run)).content.decode()

    assert "No live model is connected to this project." in without
    assert re.search(r'value="live"[^>]*disabled', without)
    assert not re.search(r'value="live"[^>]*disabled', with_one)
    assert "models.example.org" in with_one


def test_a_recording_replay_takes_no_agent_and_no_live_tools(shop, bob, run):
    bob.post(options(run), {"mode": "recording", "agent": "support", "live": ["lookup_order"], "break_value_1": ""})

    assert Replay.objects.get().order == {}


def test_tools_that_change_something_cannot_be_ticked_live(shop, bob, settings):
    settings.REPLAY_AGENTS = {"support": {}}
    kinds = {"find": "read", "send": "write", "look": "none"}
    steps = [model_step(1), *(tool_step(name, parent=1, tool_kind=kind) for name, kind in kinds.items())]
    run = load_record(shop, steps=steps)

    with_agents = bob.get(options(run)).content.decode()
    settings.REPLAY_AGENTS = {}
    without = bob.get(options(run)).content.decode()

    assert re.findall(r'name="live"\s+value="(\w+)"', with_agents) == ["find", "look"]
    assert 'name="live"' not in without


@pytest.mark.parametrize(
    ("typed", "name", "words"),
    [
        ({"mode": "code", "agent": "ghost"}, "agent", "No agent 'ghost' is registered"),
        ({"mode": "code"}, "agent", "agent"),
        ({"mode": "live", "samples": "many"}, "samples", "a number from 1 to 100"),
        ({"mode": "recording", "break_kind_1": "when", "break_value_1": "?!"}, "break_value_1", "is not a comparison"),
    ],
)
def test_options_that_cannot_be_are_refused_at_their_input(bob, run, typed, name, words):
    response = bob.post(options(run), typed)

    errors = errors_in(response.content.decode())
    assert (response.status_code, list(errors)) == (422, [name])
    assert words in errors[name]
    assert not Replay.objects.exists()


def test_a_run_of_the_openai_sdk_offers_code_with_recorded_answers_alone(shop, bob, settings):
    """Control: the same recording of Pydantic AI offers tools and a model that go live."""
    settings.REPLAY_AGENTS = {"support": {}}
    settings.REPLAY_MODEL_ENDPOINT, settings.REPLAY_MODEL_ALLOW_PRIVATE = "http://127.0.0.1:9/v1", True
    steps = [model_step(1), tool_step("look")]
    sdk = load_record(shop, run_id="sdk 1", steps=steps, agent={"name": "desk", "framework": "openai-agents"})
    own = load_record(shop, run_id="own_1", steps=steps, agent={"name": "desk", "framework": "pydantic-ai"})

    of_sdk, of_own = (bob.get(f"{options(run)}?run={run.run_id}").content.decode() for run in (sdk, own))

    assert re.findall(r'value="code\w*"[^>]*disabled', of_sdk + of_own) == []
    assert [page.count('<option value="support"') for page in (of_sdk, of_own)] == [1, 1]
    assert [page.count('name="live"') for page in (of_sdk, of_own)] == [0, 1]
    assert [page.count('<option value="live:environment"') for page in (of_sdk, of_own)] == [0, 1]
    assert "recorded by the OpenAI Agents SDK" in of_sdk
    command = "replay-recorder replay &#x27;sdk 1&#x27; --url http://testserver --agent module:agent --tools run"
    assert f'data-copy="{command}"' in of_sdk
    assert "OpenAI Agents SDK" not in of_own


@pytest.mark.parametrize(
    ("typed", "name"),
    [({"mode": "live"}, "agent"), ({"mode": "code", "live": "look"}, "live")],
)
def test_what_code_of_the_openai_sdk_cannot_do_is_refused_at_its_input(shop, bob, settings, typed, name):
    settings.REPLAY_AGENTS = {"support": {}}
    settings.REPLAY_MODEL_ENDPOINT, settings.REPLAY_MODEL_ALLOW_PRIVATE = "http://127.0.0.1:9/v1", True
    run = load_record(shop, steps=[model_step(1)], agent={"name": "desk", "framework": "openai-agents"})

    response = bob.post(options(run), {**typed, "agent": "support"})

    assert response.status_code == 422
    assert NOT_WITH_SDK in errors_in(response.content.decode())[name]
    assert not Replay.objects.exists()


def test_code_of_the_openai_sdk_is_queued(shop, bob, settings):
    settings.REPLAY_AGENTS = {"support": {}}
    run = load_record(shop, steps=[model_step(1)], agent={"name": "desk", "framework": "openai-agents"})

    response = bob.post(options(run), {"mode": "code_and_tools"})

    replay = Replay.objects.get()
    assert (response.status_code, replay.order["agent"], replay.order["tools"]["run"]) == (302, "support", True)


def test_options_are_for_members(shop, run):
    vera = client_of(make_user("vera", shop, role="viewer"))

    assert vera.get(options(run)).status_code == 403
    assert vera.post(options(run), {"mode": "recording"}).status_code == 403
    assert client_of(make_user("charlie")).get(options(run)).status_code == 404
    assert not Replay.objects.exists()
