"""The form of a fork with scripts: typing ticks, the server checks beside it, keys queue."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from sessions_app.models import Replay
from tests.web.browsing import arrive, press
from tests.web.making import HOSTILE, make_user
from tests.web.records import load_example, load_record, model_step, tool_step

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def signed_in(page: Page, live_server, shop) -> Page:
    make_user("bob", shop)
    arrive(page, f"{live_server.url}/p/shop/sessions")
    return page


def opened(page, live_server, run, step):
    page.goto(f"{live_server.url}/p/shop/s/{run.session.session_id}/fork?step={step}")
    return page


def test_a_fork_is_put_together_by_keys_alone(signed_in, live_server, shop):
    run = load_example(shop, "cancel_bug")
    signed_in.goto(f"{live_server.url}/p/shop/s/{run.session.session_id}?step=2")
    press(signed_in, "f")
    signed_in.wait_for_url("**/fork?step=2")

    signed_in.focus("#in-result")
    press(signed_in, "Control+a")
    signed_in.keyboard.type("Order ORD-5521: open")
    expect(signed_in.locator("[name=use_result]")).to_be_checked()
    signed_in.focus("#in-expect_text")
    signed_in.keyboard.type("It is cancelled.")
    signed_in.focus("#in-hypothesis")
    signed_in.keyboard.type("The status decides.")
    press(signed_in, "Control+Enter")

    signed_in.wait_for_url("**/replays/rp_*")
    assert Replay.objects.get().order == {
        "at_step": 2,
        "changes": [{"kind": "tool_result", "step": 2, "value": "Order ORD-5521: open"}],
        "hypothesis": "The status decides.",
        "expect": "It is cancelled.",
    }


def test_what_will_happen_is_seen_at_once(signed_in, live_server, shop):
    signed_in.set_viewport_size({"width": 1280, "height": 800})
    opened(signed_in, live_server, load_example(shop, "cancel_bug"), 3)

    beside, bar = signed_in.locator(".fork-aside").bounding_box(), signed_in.locator(".fork-bar").bounding_box()

    assert beside["y"] + beside["height"] <= bar["y"]


def test_an_untouched_form_ticks_nothing(signed_in, live_server, shop):
    opened(signed_in, live_server, load_example(shop, "cancel_bug"), 2)

    signed_in.fill("#in-hypothesis", "x")

    assert signed_in.locator("[name^=use_]:checked").count() == 0


def test_the_server_checks_what_was_touched_while_one_types(signed_in, live_server, shop):
    opened(signed_in, live_server, load_example(shop, "cancel_bug"), 3)
    signed_in.locator("#card-state > summary").click()

    signed_in.fill("#in-patch", '[{"op": "remove",\n "path": }]')
    signed_in.locator("#in-patch").blur()
    expect(signed_in.locator("#err-patch")).to_have_text("This is not JSON: Expecting value (line 2, column 10).")
    expect(signed_in.locator("#err-hypothesis")).to_be_hidden()
    expect(signed_in.locator("#in-patch")).to_have_attribute("aria-invalid", "true")

    signed_in.fill("#in-patch", '[{"op": "remove", "path": "/memory"}]')
    signed_in.locator("#in-patch").blur()
    expect(signed_in.locator("#err-patch")).to_be_hidden()
    assert not Replay.objects.exists()


def test_without_a_field_in_error_the_list_of_errors_has_the_focus(signed_in, live_server, shop):
    opened(signed_in, live_server, load_example(shop, "cancel_bug"), 3)

    signed_in.click("button[value=queue]")

    unchanged = signed_in.locator("#in-changes")
    expect(unchanged).to_contain_text("Tick at least one change")
    expect(unchanged).to_be_focused()


def test_an_error_in_json_leads_to_its_place(signed_in, live_server, shop):
    opened(signed_in, live_server, load_example(shop, "cancel_bug"), 3)
    signed_in.locator("#card-state > summary").click()
    signed_in.fill("#in-patch", '[{"op": "remove",\n "path": }]')
    signed_in.click("text=Queue fork")

    signed_in.click("#fork-errors a >> text=line 2, column 10")

    assert signed_in.evaluate("document.activeElement.id") == "in-patch"
    assert signed_in.evaluate("document.activeElement.value.slice(document.activeElement.selectionStart)") == "}]"


def test_what_was_typed_is_kept_when_one_leaves_and_comes_back(signed_in, live_server, shop):
    run = load_example(shop, "cancel_bug")
    opened(signed_in, live_server, run, 2)
    signed_in.fill("#in-hypothesis", "half a thought")
    signed_in.locator("#in-hypothesis").blur()
    expect(signed_in.locator("#fork-check")).to_contain_text("Saved as a draft")

    opened(signed_in, live_server, run, 4)
    assert signed_in.input_value("#in-hypothesis") == ""
    opened(signed_in, live_server, run, 2)
    assert signed_in.input_value("#in-hypothesis") == "half a thought"


def test_a_preset_fills_the_answer_and_typing_takes_its_place(signed_in, live_server, shop):
    opened(signed_in, live_server, load_example(shop, "cancel_bug"), 2)

    signed_in.check("[name=preset][value=timeout]")
    assert signed_in.input_value("#in-result") == "lookup_order did not answer in time."
    assert signed_in.input_value("#in-result_as") == "error"

    signed_in.fill("#in-result", "mine")
    expect(signed_in.locator("[name=preset]:checked")).to_have_count(0)


def test_what_was_typed_comes_back_when_no_preset_is_ticked(signed_in, live_server, shop):
    opened(signed_in, live_server, load_example(shop, "cancel_bug"), 2)
    signed_in.fill("#in-result", "mine")

    for key in ("timeout", "rate_limit"):
        signed_in.check(f"[name=preset][value={key}]")
    for key in ("timeout", "rate_limit"):
        signed_in.uncheck(f"[name=preset][value={key}]")

    assert (signed_in.input_value("#in-result"), signed_in.input_value("#in-result_as")) == ("mine", "text")


def test_several_ticked_presets_are_queued_by_keys_as_several_forks(signed_in, live_server, shop):
    run = load_example(shop, "cancel_bug")
    opened(signed_in, live_server, run, 2)
    queue = signed_in.locator("button[value=queue]")

    for key, words in (("timeout", "Queue fork"), ("rate_limit", "Queue 2 forks")):
        signed_in.focus(f"[name=preset][value={key}]")
        press(signed_in, "Space")
        expect(queue).to_contain_text(words)
    expect(signed_in.locator("#in-result")).to_be_hidden()
    signed_in.fill("#in-expect_text", "It says so.")
    signed_in.fill("#in-hypothesis", "Tools that fail.")
    press(signed_in, "Control+Enter")

    signed_in.wait_for_url("**/forks?run=*")
    expect(signed_in.locator(".notice")).to_have_text("2 forks queued.")
    assert [replay.order["changes"][0]["step"] for replay in Replay.objects.all()] == [2, 2]


SENT_TWICE = """() => Promise.all([1, 2].map(() => {
    const form = document.getElementById("fork");
    return fetch(form.action, { method: "POST", body: new FormData(form) }).then((answer) => answer.url);
}))"""


def test_a_form_that_is_sent_twice_at_once_queues_one_fork(signed_in, live_server, shop):
    opened(signed_in, live_server, load_example(shop, "cancel_bug"), 2)
    signed_in.fill("#in-result", "mine")
    signed_in.fill("#in-expect_text", "It says so.")
    signed_in.fill("#in-hypothesis", "Sent twice.")

    first, second = signed_in.evaluate(SENT_TWICE)

    assert first == second == f"{live_server.url}/p/shop/replays/{Replay.objects.get().replay_id}"


def test_choosing_another_message_shows_it_in_place(signed_in, live_server, shop):
    opened(signed_in, live_server, load_example(shop, "cancel_bug"), 3)
    signed_in.locator("#card-message > summary").click()
    signed_in.fill("#in-hypothesis", "stays")

    signed_in.select_option("#in-message_index", "0")

    expect(signed_in.locator("#in-message")).to_have_value("Cancel order ORD-5521, changed my mind")
    expect(signed_in.locator("[name=use_message]")).not_to_be_checked()
    assert signed_in.input_value("#in-hypothesis") == "stays"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_form_is_accessible_and_fits_a_small_screen(signed_in, live_server, shop, scheme):
    steps = [model_step(1), tool_step(f"t{HOSTILE}", parent=1, result={"rows": [HOSTILE * 3] * 900})]
    run = load_record(shop, steps=[*steps, model_step(2, after=1)])
    signed_in.emulate_media(color_scheme=scheme)
    signed_in.set_viewport_size({"width": 320, "height": 800})
    said = []
    signed_in.on("console", lambda message: said.append(message.text))

    for step in (1, 2):
        opened(signed_in, live_server, run, step)
        signed_in.evaluate("document.querySelectorAll('.change').forEach((card) => (card.open = true))")
        assert signed_in.evaluate("document.documentElement.scrollWidth") == 320
        assert Axe().run(signed_in).response["violations"] == []

    for preset in signed_in.locator("[name=preset]").all():
        preset.check()
    assert signed_in.evaluate("document.documentElement.scrollWidth") == 320
    signed_in.select_option("#in-expect_kind", "contains")
    signed_in.click("button[value=queue]")
    expect(signed_in.locator("#in-expect_text")).to_be_focused()
    assert Axe().run(signed_in).response["violations"] == []
    assert not [words for words in said if "Content Security Policy" in words]


@pytest.fixture
def endpoint(settings):
    settings.REPLAY_MODEL_ENDPOINT, settings.REPLAY_MODEL_KEY = "https://models.example.org/v1", "k"


def test_a_live_model_is_ticked_counted_and_queued_by_keys(signed_in, live_server, shop, endpoint):
    opened(signed_in, live_server, load_example(shop, "cancel_bug"), 2)
    world, budget = signed_in.locator("#fork-world"), signed_in.locator("#live-budget")

    signed_in.fill("#in-samples", "3")
    signed_in.locator("#in-samples").blur()
    expect(budget).to_contain_text("3 samples: about 6 requests")
    expect(world).to_contain_text("recorded answers only")
    expect(signed_in.locator("#in-sampling")).not_to_be_checked()
    signed_in.focus("#in-sampling")
    press(signed_in, "Space")
    expect(signed_in.locator("button[value=queue]")).to_contain_text("Queue sampling")
    expect(world).to_contain_text("live model")
    expect(signed_in.locator("#fork-sources .is-live")).to_have_count(1)
    signed_in.fill("#in-expect_text", "It is cancelled.")
    signed_in.fill("#in-hypothesis", "How often?")
    press(signed_in, "Control+Enter")

    signed_in.wait_for_url("**/replays/rp_*")
    replay = Replay.objects.get()
    assert (replay.mode, replay.order["samples"], replay.order["changes"]) == ("sampling", 3, [])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_live_is_accessible_and_fits_a_small_screen(signed_in, live_server, shop, endpoint, scheme):
    signed_in.emulate_media(color_scheme=scheme)
    signed_in.set_viewport_size({"width": 320, "height": 800})
    run = load_record(shop, steps=[model_step(1, model=HOSTILE * 3), tool_step(parent=1), model_step(2, after=1)])
    opened(signed_in, live_server, run, 1)

    signed_in.check("#in-sampling")
    expect(signed_in.locator("#fork-sources .is-live")).to_have_count(1)
    signed_in.fill("#in-samples", "0")
    signed_in.click("button[value=queue]")

    expect(signed_in.locator("#err-samples")).to_have_text("This must be a number from 1 to 100.")
    expect(signed_in.locator("#in-sampling")).to_be_checked()
    assert signed_in.evaluate("document.documentElement.scrollWidth") == 320
    assert Axe().run(signed_in).response["violations"] == []


def test_the_form_works_without_scripts(browser, live_server, shop):
    run = load_example(shop, "cancel_bug")
    make_user("bob", shop)
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    arrive(page, f"{live_server.url}/p/shop/s/{run.session.session_id}/fork?step=2")

    page.check("[name=use_result]")
    page.check("[name=preset][value=timeout]")
    page.select_option("#in-expect_kind", "contains")
    page.press("#in-expect_text", "Enter")
    expect(page.locator("#err-expect_text")).to_have_text("Say which outcome is expected.")
    page.fill("#in-expect_text", "late")
    page.check("[name=preset][value=rate_limit]")
    page.click("text=Queue fork")

    page.wait_for_url("**/forks?run=*")
    expect(page.locator(".notice")).to_have_text("2 forks queued.")
    [late, cut] = [replay.order["changes"][0] for replay in Replay.objects.order_by("number")]
    assert (cut["step"], late["step"], cut["error"]["type"]) == (2, 2, "TimeoutError")
    assert late["value"]
    context.close()


def test_what_happens_to_a_tool_follows_from_what_is_chosen(signed_in, live_server, shop, settings):
    settings.REPLAY_AGENTS = {"support": {}}
    steps = [
        model_step(1),
        tool_step("find", parent=1, tool_kind="read"),
        tool_step("pay", parent=1, tool_kind="write"),
    ]
    run = load_record(shop, steps=steps)
    signed_in.goto(f"{live_server.url}/p/shop/s/{run.session.session_id}/replay-options")
    rows = signed_in.locator(".live-tools > li")
    never = "it writes, so it never runs live"

    def said() -> list[str]:
        return [" ".join(row.inner_text().split()) for row in rows.all()]

    assert said() == ["find recorded answer", f"pay recorded answer {never}"]
    signed_in.check("[name=live][value=find]")
    assert said() == ["find recorded answer", f"pay recorded answer {never}"]  # an agent rebuilt from the recording
    signed_in.check("[name=mode][value=code]")
    assert said() == ["find live, if its code marks it as read-only", f"pay recorded answer {never}"]
    signed_in.check("[name=mode][value=code_and_tools]")
    assert said() == ["find live, if its code marks it as read-only", f"pay runs in isolation {never}"]
    signed_in.uncheck("[name=live][value=find]")
    assert said() == ["find runs in isolation", f"pay runs in isolation {never}"]
