"""A step: the panel beside the list, a page of its own, and the bytes behind both."""

import base64
import hashlib
import html
import re

import pytest
from django.urls import reverse

from sessions_app.mapping.pieces import step_texts
from sessions_app.models import Replay, Run
from tests.losing import lose_payload
from tests.web.making import match
from tests.web.records import load_example, load_record, model_step, tool_step

pytestmark = pytest.mark.django_db
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def step_page(client, run, n, **query):
    response = client.get(reverse("step", args=["shop", run.session.session_id, n]), query)
    assert response.status_code == 200
    return response.content.decode()


def test_a_request_that_is_missing_is_asked_for_and_not_the_answer_that_is_there(shop, bob):
    run = load_record(shop, steps=[{**model_step(), "request": None}])

    page = step_page(bob, run, 1)

    assert "Record the messages of every model call as its <code>request</code>" in page
    assert "Record the answer of every model call" not in page


def test_a_step_says_why_it_matters_and_what_followed(shop, bob):
    failed = tool_step("charge", error={"type": "E", "message": "no"}, started_at="2026-01-01T10:01:02.500Z")
    steps = [model_step(1), failed, tool_step("log"), model_step(2, text="All paid.")]
    run = load_record(shop, steps=steps, output="All paid.", started_at="2026-01-01T10:00:00Z")

    page = step_page(bob, run, 2)

    assert "Error swallowed: charge failed" in match(r'<p class="step-why">(.*?)</p>', page)
    assert 'data-step="4">step 4</a>' in page
    assert "<dd>+1:02.50</dd>" in page
    assert "step-why" not in step_page(bob, run, 1)


def test_the_answer_says_what_makes_it_doubtful_and_leads_to_the_step_that_shows_it(shop, bob):
    steps = [model_step(1), tool_step("search", arguments={"q": "pets"}, result=[]), model_step(2, text="Yes.")]
    run = load_record(shop, steps=steps, output="Yes.")
    run.anomalies = [{"code": "nothing_found", "message": "search found nothing", "steps": [2]}]
    run.failure_group = "f" * 10
    run.save()

    page = step_page(bob, run, 3)

    why = match(r'<p class="step-why">(.*?)</p>', page)
    assert "search found nothing" in why
    assert 'data-step="2">step 2</a>' in why
    assert page.index('class="head-next"') < page.index("What if …")


def test_a_fork_that_replaced_the_answer_did_not_use_it(shop, bob):
    run = load_record(shop, steps=[tool_step()])
    for number, changed in ((1, 1), (2, 9)):
        order = {"at_step": 1, "changes": [{"kind": "tool_result", "step": changed, "value": 0}]}
        Replay.objects.create(
            project=shop, run=run, content=run.content, number=number, mode="fork", state="done", order=order
        )

    assert "1 replay <" in step_page(bob, run, 1)


def panel(client, run, n, **headers):
    address = reverse("step", args=["shop", run.session.session_id, n])
    return client.get(address, headers={"HX-Request": "true", **headers})


def payload_address(content: bytes) -> str:
    return reverse("payload", args=["shop", hashlib.sha256(content).hexdigest()])


def test_all_eight_fields_of_an_event_are_on_the_page(shop, bob):
    page = step_page(bob, load_example(shop, "cancel_bug"), 2)

    for title in (
        "step id",
        "input state",
        "decision",
        "tool name",
        "arguments",
        "result",
        "output state",
        "timestamp",
    ):
        assert f'<th scope="row">{title}</th>' in page
    assert "iteration_count" in page


def test_the_decision_of_a_tool_step_is_the_answer_that_asked_for_it(shop, bob):
    page = step_page(bob, load_example(shop, "r_8821"), 3)

    assert "decided by" in page
    assert "→ lookup_order" in page


def test_the_state_is_put_together_from_the_changes(shop, bob):
    run = load_record(
        shop,
        initial_state={"docs": 0},
        steps=[
            tool_step(state={"after": [{"op": "replace", "path": "/docs", "value": 3}]}),
            tool_step(state={"after": [{"op": "add", "path": "/plan", "value": "go"}]}),
        ],
    )

    page = step_page(bob, run, 2)

    assert "{docs: 3}" in page
    assert "{docs: 3, plan: &quot;go&quot;}" in page


def test_changes_that_do_not_fit_the_state_are_said(shop, bob):
    run = load_record(
        shop, steps=[tool_step(state={"after": [{"op": "remove", "path": "/a/b"}]}, name="t", tool_name="t")]
    )

    assert "The state cannot be put together" in step_page(bob, run, 1)


def test_an_http_exchange_is_shown_whole(shop, bob):
    page = step_page(bob, load_example(shop, "price_429"), 2)

    assert "<strong>429</strong>" in page
    assert "retry-after" in page
    assert "https://pricing.example.com/v1/prices/WP-100" in page


def test_unknown_fields_are_kept_at_hand(shop, bob):
    page = step_page(bob, load_record(shop, steps=[tool_step(brand_new={"x": "kept"})]), 1)

    assert "Unknown fields" in page
    assert "kept" in page


def test_missing_settings_are_said(shop, bob):
    page = step_page(bob, load_record(shop, steps=[model_step(settings={"temperature": 0.70})]), 1)

    assert "0.7" in page
    assert '<dt>seed</dt><dd class="recorded"><em class="missing">not captured</em>' in page


def test_the_same_call_in_other_runs_is_counted(shop, bob):
    run = load_record(shop, run_id="one", steps=[tool_step()])
    load_record(shop, run_id="two", steps=[tool_step(), tool_step(arguments={"q": "other"})])

    assert "<td>succeeded in 1 other recorded run<" in step_page(bob, run, 1)


def test_a_fixture_says_when_it_was_recorded_and_who_used_it(shop, bob):
    run = load_record(shop, steps=[tool_step(result="kept", started_at="2026-11-17T15:14:01Z"), tool_step(result=None)])
    for number, state in enumerate(("done", "done", "queued"), start=1):
        Replay.objects.create(project=shop, run=run, content=run.content, number=number, state=state)

    page = step_page(bob, run, 1).partition('id="fixture"')[2]

    assert "2026-11-17 15:14:01" in page
    digest = hashlib.sha256(b"kept").hexdigest()
    assert f"<code>{digest}</code>" in page
    assert "<td>2 replays <span" in page


@pytest.mark.parametrize(
    ("fields", "used"),
    [
        ({"verdict": "unknown_from_step", "divergence": {"step": 2}}, [True, False]),
        ({"verdict": "unknown_from_step", "stopped_at": {"step": 2}}, [True, False]),
        ({"verdict": "diverged", "divergence": {"step": 1}}, [True, True]),
        ({"verdict": "reproduced"}, [True, True]),
    ],
)
def test_a_replay_that_stopped_before_a_step_did_not_use_its_answer(shop, bob, fields, used):
    run = load_record(shop, steps=[tool_step(arguments={"n": n}) for n in range(2)])
    Replay.objects.create(project=shop, run=run, content=run.content, number=1, state="done", **fields)

    pages = [step_page(bob, run, step).partition('id="fixture"')[2] for step in (1, 2)]

    assert [f"<td>{int(each)} replay" in page for each, page in zip(used, pages, strict=True)] == [True, True]


def test_a_fixture_does_not_promise_the_error_where_a_replay_never_gets_to_it(shop, bob):
    failed = {"kind": "tool", "name": "ask", "error": {"message": "the disk is full"}}
    run = load_record(shop, steps=[tool_step(), failed])
    promised = "a replay returns the error"
    assert promised in step_page(bob, run, 2)

    Run.objects.update(verdict="replayable_to_step", verdict_step=1)

    page = step_page(bob, run, 2)
    assert promised not in page
    assert "a replay of this run does not get past step 1" in page


def test_of_a_call_that_failed_the_error_is_what_came_out(shop, bob):
    error = {"type": "IOError", "message": "the disk is full"}
    run = load_record(shop, steps=[{"kind": "tool", "name": "ask", "tool_name": "ask", "error": error}])

    page = step_page(bob, run, 1)

    section = page.partition('id="error"')[2].partition("</details>")[0]
    assert "<h2>What came out</h2>" in section
    assert "the disk is full" in section
    assert 'id="out"' not in page


def test_a_step_without_an_answer_has_no_fixture_to_give(shop, bob):
    steps = [{"kind": "tool", "name": "ask", "tool_name": "ask"}]

    assert "no answer to return" in step_page(bob, load_record(shop, steps=steps), 1)


def test_bytes_that_are_gone_are_said_and_the_rest_stands(shop, bob):
    run = load_record(shop, steps=[tool_step(result="precious answer")])
    lose_payload(b"precious answer")

    page = step_page(bob, run, 1)

    assert "no longer stored" in page
    assert "<code>piece 1</code>" in page


@pytest.mark.parametrize("form", ["pretty", "json", "bytes", "nonsense"])
def test_each_form_of_values(shop, bob, form):
    page = step_page(bob, load_record(shop, steps=[tool_step(result={"found": "a value"})]), 1, **{"as": form})

    assert "a value" in page


def test_a_step_that_is_not_there_is_not_found(shop, bob):
    run = load_record(shop, steps=[tool_step()])

    assert panel(bob, run, 2).status_code == 404
    assert panel(bob, run, 0).status_code == 404


# --- the panel -----------------------------------------------------------------------------------


def test_the_panel_is_a_part_and_kept_by_the_browser(shop, bob):
    run = load_record(shop, steps=[tool_step(), tool_step()])

    first = panel(bob, run, 1)
    again = panel(bob, run, 1, **{"If-None-Match": first["ETag"]})

    assert "<html" not in first.content.decode()
    assert (again.status_code, again.content) == (304, b"")
    assert "HX-Request" in first["Vary"]
    assert panel(bob, run, 2)["ETag"] != first["ETag"]


def test_the_panel_leads_to_neighbours_errors_and_odd_steps(shop, bob):
    steps = [tool_step(arguments={"i": i}) for i in range(4)]
    steps[2]["error"] = {"type": "E", "message": "late"}
    run = load_record(shop, steps=steps)

    text = panel(bob, run, 2).content.decode()

    assert re.search(r'data-step="1"\s+data-key="K"', text)
    assert re.search(r'data-step="3"\s+data-key="J"', text)
    assert re.search(r'data-step="3"\s+data-key="e"', text)


def test_a_long_history_is_not_drawn_in_the_panel(shop, bob):
    steps = [model_step(i, after=None if i == 1 else i - 1) for i in range(1, 31)]
    run = load_record(shop, steps=steps)

    text = panel(bob, run, 30).content.decode()

    assert "2 new messages" in text
    assert "question 30" in text
    assert "question 28" not in text
    assert "with earlier messages" in text


# --- payloads ------------------------------------------------------------------------------------


def test_a_download_is_never_shown_by_a_browser(shop, bob):
    content = b"<script>alert(1)</script>"
    load_record(shop, steps=[tool_step(result=content.decode())])

    response = bob.get(payload_address(content), {"download": "1"})

    assert response.content == content
    assert response["Content-Type"] == "application/octet-stream"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Disposition"].startswith("attachment;")
    assert "immutable" in response["Cache-Control"]


def test_a_long_payload_is_shown_in_parts(shop, bob):
    content = "line of text " * 20_000
    load_record(shop, steps=[tool_step(result=content)])
    address = payload_address(content.encode())

    first = bob.get(address).content.decode()
    second = bob.get(address, {"from": "65536"}).content.decode()

    assert "bytes 0–65536 of 260000" in first
    assert len(first) < 120 * 1024
    assert "bytes 65536–131072" in second


def test_a_large_object_opens_part_by_part(shop, bob):
    run = load_record(shop, steps=[tool_step(result=[f"item {i}" for i in range(500)])])
    (text,) = step_texts(run.content, run.steps)
    digest = text.decode().split('"result":{"sha256": "')[1][:64]
    address = reverse("payload", args=["shop", digest])

    whole = bob.get(address).content.decode()
    part = bob.get(address, {"at": "", "start": "200"}, headers={"HX-Request": "true"}).content.decode()
    page = bob.get(address, {"start": "200"}).content.decode()

    assert "300 more" in whole
    assert "item 200" in part
    assert "<html" not in part
    assert "item 399" in page
    assert "<html" in page


def test_a_place_inside_a_document_can_be_opened(shop, bob):
    content = b'{"a/b": {"deep": [1, 2, {"x": "found it"}]}}'
    load_record(shop, steps=[tool_step(result=content.decode())])

    page = bob.get(payload_address(content), {"at": "/a~1b/deep/2"}).content.decode()

    assert "found it" in page
    assert bob.get(payload_address(content), {"at": "/nothing"}).status_code == 404


@pytest.mark.parametrize("digest", ["0" * 64, "x" * 64, "abc", "A" * 64])
def test_what_is_not_stored_is_not_found(shop, bob, digest):
    assert bob.get(reverse("payload", args=["shop", digest])).status_code == 404


# --- images


def picture_of(client, shop, text, run_id="run_1"):
    run = load_record(shop, run_id=run_id, session_id=run_id, steps=[tool_step("draw", result={"image": text})])
    page = step_page(client, run, 1)
    found = re.search(r'<img src="([^"]+)"', page)
    return html.unescape(found[1]) if found else None


def test_a_recorded_image_is_drawn_on_a_click_from_this_server_alone(shop, bob):
    content = PIXEL + bytes(range(256)) * 12

    address = picture_of(bob, shop, base64.b64encode(content).decode())
    answer = bob.get(address)

    assert address.startswith("/p/shop/payloads/")
    assert (answer.content, answer["Content-Type"]) == (content, "image/png")
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Content-Security-Policy"] == "sandbox; default-src 'none'"


def test_what_only_says_that_it_is_an_image_is_not_drawn(shop, bob):
    svg = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>" + bytes(range(256)) * 12
    said = base64.b64encode(svg).decode()

    assert picture_of(bob, shop, f"data:image/svg+xml;base64,{said}") is None
    assert bob.get(picture_of(bob, shop, f"data:image/png;base64,{said}", "run_2")).status_code == 404


@pytest.mark.parametrize(("message", "times"), [("deadlock detected", 1), ("something else", 2)])
def test_the_message_of_an_error_stands_once_where_it_is_what_came_out(shop, bob, message, times):
    error = {"type": "Deadlock", "message": message}
    run = load_record(shop, steps=[tool_step(result="deadlock detected", error=error)])

    page = bob.get(reverse("step", args=["shop", run.session.session_id, 1])).content.decode()

    assert page.count('class="recorded said"') == times
    assert (">Error</h2>" in page) == (times == 2)
    assert re.search(rf"step-error.*?Deadlock: {message}.*?</p>", page, re.DOTALL)


def test_the_page_of_a_step_is_headed_by_its_place_and_knows_the_provider_of_the_run(shop, bob):
    steps = [model_step(model="gpt-4o", answered_model="gpt-4o-2024-08-06"), tool_step("search_policy")]
    run = load_record(shop, steps=steps, provider="openai")

    heading = re.sub(r"<[^>]*>", " ", match(r'<h1 class="step-title">(.*?)</h1>', step_page(bob, run, 2)))
    settings = match(r'id="settings"(.*?)</details>', step_page(bob, run, 1))

    assert " ".join(heading.split()) == "Step 2 of 2 · search_policy"
    assert re.search(r'<dt>provider</dt>\s*<dd class="recorded">openai', settings)
    assert "not the model asked for" not in settings


def test_another_model_than_was_asked_for_is_said(shop, bob):
    run = load_record(shop, steps=[model_step(model="gpt-4o", answered_model="gpt-4o-mini")])

    assert "not the model asked for" in step_page(bob, run, 1)


def test_a_long_text_is_folded_with_how_much_there_is(shop, bob):
    def answered(text):
        return {"kind": "response", "parts": [{"part_kind": "text", "content": text}]}

    steps = [model_step(response=answered("word " * 1000)), model_step(response=answered("line\n" * 25))]
    run = load_record(shop, steps=[*steps, model_step()])

    folds = [re.findall(r"show all ([\d,]+) characters", step_page(bob, run, n)) for n in (1, 2, 3)]

    assert folds == [["5,000"], ["125"], []]
