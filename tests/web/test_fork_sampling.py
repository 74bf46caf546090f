"""Asking a live model from the form of a fork: off without an endpoint, and then only where it is ticked."""

import html
import re

import pytest
from django.urls import reverse

from sessions_app.core.fork.sampling import Budget
from sessions_app.models import Replay
from sessions_app.services.live_budget import budget_words
from tests.web.making import HOSTILE, client_of, make_user, match
from tests.web.records import load_example, load_record, model_step, tool_step
from tests.web.test_fork_form import errors_in, order_of, page_of, post, typed_in

pytestmark = pytest.mark.django_db
KEY = "sk-live-0123456789abcdef"
TICKED = {"sampling": "on", "samples": "3"}
RESULT = {"use_result": "on", "result_as": "text", "result": "Order ORD-5521: open"}


@pytest.fixture
def run(shop):
    """Steps: 1 model, 2 tool, 3 model, 4 tool, 5 model."""
    return load_example(shop, "cancel_bug")


@pytest.fixture
def endpoint(settings):
    settings.REPLAY_MODEL_ENDPOINT, settings.REPLAY_MODEL_KEY = "https://models.example.org:8443/v1", KEY


def counted_run(project, *tokens, **fields):
    """Model calls with these tokens (in, out), a tool between them."""
    steps = [model_step(1, input_tokens=tokens[0][0], output_tokens=tokens[0][1])]
    for number, (sent, answered) in enumerate(tokens[1:], start=1):
        steps.append(tool_step("search", parent=2 * number - 1))
        later = {"after": 2 * number - 1, "input_tokens": sent, "output_tokens": answered}
        steps.append(model_step(number + 1, **later))
    return load_record(project, steps=steps, **fields)


def words_in(page, name):
    """The text of the element with this id that holds no other of its kind."""
    return " ".join(
        html.unescape(re.sub(r"<[^>]+>", "", match(rf'id="{name}"[^>]*>(.*?)</(?:p|tbody)>', page))).split()
    )


def world_in(page):
    """Word and colour of what is called."""
    [(colour, words)] = re.findall(r'badge badge-(\w+)"\s+title="[^"]+"><svg.*?</svg> ([\w ]+)</span>', page, re.DOTALL)
    return colour, words


def live_source(page):
    """The class of its row, and what it says."""
    found = re.search(r'<tr ([^>]*)>\s*<th scope="row">(?:(?!<th).)*? live</th>\s*<td>(.*?)</td>', page, re.DOTALL)
    return found.groups()


def button_in(page):
    return match(r"<span data-queue>(.*?)</span>", page)


def is_sampling_ticked(page):
    return re.search(r'name="sampling"[^>]*\schecked', page) is not None


def checked(client, run, step, **typed):
    return post(client, run, step, do="check", **typed).content.decode()


# --- without an endpoint


def test_without_an_endpoint_nothing_can_be_ticked_and_the_page_says_how_to_switch_it_on(bob, run):
    page = page_of(bob, run, 2)

    assert "No live model is connected to this project." in page
    assert "/p/shop/settings/models" in page
    assert 'name="sampling"' not in page
    assert 'name="samples"' not in page


def test_a_forged_tick_without_an_endpoint_is_refused_and_loses_nothing(bob, run):
    response = post(bob, run, 2, **RESULT, **TICKED)

    page = response.content.decode()
    assert response.status_code == 422
    assert errors_in(page)["samples"].startswith("No live model is connected to this project")
    assert (typed_in(page, "result"), typed_in(page, "hypothesis")) == (RESULT["result"], "The answer decides.")
    assert (world_in(page), button_in(page)) == (("world", "recorded answers only"), "Queue fork")
    assert not Replay.objects.exists()


def test_an_endpoint_that_cannot_be_asked_counts_as_none(bob, run, settings):
    settings.REPLAY_MODEL_ENDPOINT = "models.example.org"

    page = page_of(bob, run, 2)

    assert "Its address must look like https://host/v1. REPLAY_MODEL_ENDPOINT" in page
    assert 'name="sampling"' not in page


# --- with an endpoint


def test_with_an_endpoint_it_is_off_until_it_is_ticked(bob, run, endpoint):
    page = page_of(bob, run, 2)

    assert 'name="sampling"' in page
    assert not is_sampling_ticked(page)
    assert (world_in(page), button_in(page)) == (("world", "recorded answers only"), "Queue fork")
    assert live_source(page) == ('class="is-off"', "off unless you tick it for this fork")
    assert post(bob, run, 2, **RESULT, samples="7").status_code == 302
    replay = Replay.objects.get()
    assert (replay.mode, "samples" in replay.order) == ("fork", False)


def test_the_page_names_the_model_and_the_host_and_never_the_key(bob, run, endpoint, settings):
    asked = words_in(page_of(bob, run, 2), "live-where")
    assert asked.startswith("Asks gpt-4o at models.example.org.")

    changed = checked(bob, run, 2, use_model="on", model="gpt-5", **TICKED)
    assert words_in(changed, "live-where").startswith("Asks gpt-5 at")

    settings.REPLAY_MODEL_NAME = "qwen3"
    named = checked(bob, run, 2, use_model="on", model="gpt-5", **TICKED)
    assert words_in(named, "live-where").startswith("Asks qwen3 at")
    assert not [page for page in (asked, changed, named) if KEY in page or "8443" in page]


def test_a_ticked_fork_becomes_a_sampling_with_the_same_changes(bob, run, endpoint):
    order = order_of(bob, run, 2, **RESULT, **TICKED)

    assert order == {
        "at_step": 2,
        "changes": [{"kind": "tool_result", "step": 2, "value": RESULT["result"]}],
        "hypothesis": "The answer decides.",
        "expect": "It asks first.",
        "samples": 3,
    }
    assert Replay.objects.get().mode == "sampling"


def test_a_sampling_may_change_nothing_and_a_fork_may_not(bob, run, endpoint):
    assert "changes" in errors_in(post(bob, run, 2, samples="3").content.decode())

    assert order_of(bob, run, 2, **TICKED)["changes"] == []


def test_the_form_that_comes_back_with_the_tick_says_what_is_live(bob, run, endpoint):
    page = checked(bob, run, 2, **TICKED)

    assert is_sampling_ticked(page)
    assert (world_in(page), button_in(page)) == (("amber", "live model"), "Queue sampling")
    assert live_source(page) == ('class="is-live"', "called for all other model answers")
    assert "A live model is called 3 times." in page
    assert "nothing changed" in page
    assert not Replay.objects.exists()


@pytest.mark.parametrize("number", ["0", "101", "", "many", "2.5", "-1", "1e1", HOSTILE])
def test_a_number_that_cannot_be_is_refused_where_it_stands(bob, run, endpoint, number):
    response = post(bob, run, 2, **RESULT, sampling="on", samples=number)

    page = response.content.decode()
    assert response.status_code == 422
    assert errors_in(page) == {"samples": "This must be a number from 1 to 100."}
    assert html.unescape(match(r'name="samples"\s+value="(.*?)"\s+auto', page)) == number
    assert is_sampling_ticked(page)
    assert typed_in(page, "result") == RESULT["result"]
    assert not Replay.objects.exists()


@pytest.mark.parametrize("number", [" 1 ", "100"])
def test_the_first_and_the_last_number_are_taken(bob, run, endpoint, number):
    assert order_of(bob, run, 2, sampling="on", samples=number)["samples"] == int(number)


def test_several_presets_cannot_be_sampled_at_once(bob, run, endpoint):
    typed = {"use_result": "on", "preset": ["timeout", "rate_limit"]}

    response = post(bob, run, 2, **typed, **TICKED)

    assert response.status_code == 422
    assert errors_in(response.content.decode())["sampling"].startswith("One sampling at a time")
    assert not Replay.objects.exists()
    assert post(bob, run, 2, **typed | {"preset": ["timeout"]}, **TICKED).status_code == 302
    assert Replay.objects.get().order["changes"][0]["error"]["type"] == "TimeoutError"


def test_a_sampling_does_not_pause(bob, run, endpoint):
    paused = {"break_kind_2": "step", "break_value_2": "3"}

    response = post(bob, run, 2, **paused, **TICKED)

    assert errors_in(response.content.decode()) == {"break_value_2": "A sampling does not pause; leave this empty."}
    assert not Replay.objects.exists()
    assert post(bob, run, 2, **paused, **RESULT).status_code == 302


def test_the_own_code_of_the_team_is_not_sampled(bob, run, endpoint, settings):
    settings.REPLAY_AGENTS = {"support": "shop:agent"}
    own = {"use_agent": "on", "agent": "support"}

    page = post(bob, run, 2, **own, **TICKED).content.decode()

    words = "A sampling runs the agent rebuilt from the recording; do not use this change."
    assert errors_in(page) == {"agent": words}
    assert "off: a sampling runs the rebuilt agent" in page
    assert not Replay.objects.exists()
    assert post(bob, run, 2, **own).status_code == 302


def test_the_tick_and_the_number_are_kept_in_a_draft(bob, run, endpoint):
    checked(bob, run, 2, **TICKED)

    page = page_of(bob, run, 2)

    assert is_sampling_ticked(page)
    assert 'value="3"' in page
    assert not is_sampling_ticked(page_of(bob, run, 3))


def test_a_viewer_samples_nothing(shop, run, endpoint):
    vera = client_of(make_user("vera", shop, role="viewer"))

    assert post(vera, run, 2, **TICKED).status_code == 403
    assert not Replay.objects.exists()


def test_the_same_form_sent_twice_is_one_sampling(bob, run, endpoint):
    first, second = (post(bob, run, 2, token="once", **TICKED) for _ in range(2))
    assert first["Location"] == second["Location"] == reverse("replay", args=["shop", Replay.objects.get().replay_id])

    post(bob, run, 2, token="once", **TICKED | {"samples": "4"})
    assert sorted(replay.order["samples"] for replay in Replay.objects.all()) == [3, 4]


# --- the budget


def test_the_budget_counts_what_the_recording_took_from_the_step_on(bob, shop, endpoint):
    run = counted_run(shop, (1000, 7), (400, 30), (800, 60))

    assert (
        words_in(page_of(bob, run, 2), "live-budget")
        == "10 samples: about 20 requests, 12,000 tokens in, 900 out; at most 200 requests."
    )
    assert words_in(page_of(bob, run, 1), "live-budget").startswith("10 samples: about 30 requests, 22,000 tokens in")


def test_checking_works_the_budget_out_for_the_number_that_was_typed(bob, shop, endpoint):
    run = counted_run(shop, (1000, 7), (400, 30))

    asked = words_in(checked(bob, run, 1, sampling="on", samples="2"), "live-budget")
    assert asked == "2 samples: about 4 requests, 2,800 tokens in, 74 out; at most 200 requests."
    assert words_in(checked(bob, run, 1, samples="x"), "live-budget").startswith("10 samples:")


def test_the_budget_leaves_out_what_ran_inside_a_tool(bob, shop, endpoint):
    inner = model_step(9, parent=2, input_tokens=5000, output_tokens=5000)
    steps = [model_step(1, input_tokens=10, output_tokens=1), tool_step(parent=1), inner]
    run = load_record(shop, steps=steps)

    assert "about 10 requests, 100 tokens in, 10 out" in words_in(page_of(bob, run, 1), "live-budget")


def test_the_budget_makes_no_tokens_up(bob, shop, endpoint):
    run = counted_run(shop, (1000, 7), (None, None))

    assert "about 20 requests, tokens unknown" in words_in(page_of(bob, run, 1), "live-budget")


@pytest.mark.parametrize(
    ("requests", "words"),
    [
        (0, "1 sample: the recording has no model request from this step on; at most 2 requests."),
        (1, "1 sample: about 1 request, 1 token in, 0 out; at most 2 requests."),
        (9, "1 sample: about 9 requests, 1 token in, 0 out; at most 2 requests, so not every sample will finish."),
    ],
)
def test_the_budget_in_words(requests, words):
    assert budget_words(Budget(requests=requests, input_tokens=1, output_tokens=0), 1, 2) == words
