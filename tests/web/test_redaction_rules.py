"""A project's own rules of redaction: tried on the last runs, and applied to what arrives."""

from __future__ import annotations

import json

import pytest
from django.urls import reverse
from django.utils import timezone

from sessions_app.core.redaction.own_rules import KINDS, ON_AT_FIRST
from sessions_app.models import RedactionJob, Run
from sessions_app.services import redaction_jobs
from tests.builders import make_client, make_key, make_record, make_tool_step, post_run, row_counts
from tests.otlp_requests import PROTOBUF, as_protobuf, make_span, make_traces
from tests.web.making import client_of, make_user

pytestmark = pytest.mark.django_db
RULES = "/p/shop/settings/redaction"
SAID = {
    "kinds": [*ON_AT_FIRST, "ip_address", "phone"],
    "fields_taken": "date_of_birth\n",
    "patterns": "customer: CUST-[0-9]{6}\n",
}
ANSWER = {"dateOfBirth": "1980-02-03", "note": "CUST-123456 from 10.20.30.40, +49 30 1234567, ann@example.com"}


@pytest.fixture
def ann(shop):
    return client_of(make_user("ann", shop, "admin"))


@pytest.fixture
def sender(shop):
    return make_client(make_key(shop))


def result_of(sender, run_id):
    return sender.get(f"/api/v1/runs/{run_id}/steps").json()["items"][0]["result"]


def test_rules_apply_to_what_arrives_from_now_on(ann, sender):
    post_run(sender, make_record("before", make_tool_step(result=ANSWER)))
    assert ann.post(RULES, SAID)["Location"] == RULES

    post_run(sender, make_record("after", make_tool_step(result=ANSWER)))

    before, after = result_of(sender, "before"), result_of(sender, "after")
    assert before["note"].startswith("CUST-123456 from 10.20.30.40, +49 30 1234567, [email:")
    assert after["dateOfBirth"].startswith("[own_field:")
    assert not [secret for secret in ("CUST-", "10.20", "1234567", "ann@", "1980") if secret in json.dumps(after)]


def test_a_kind_that_is_switched_off_stays(ann, sender):
    ann.post(RULES, {"kinds": []})

    post_run(sender, make_record("r", make_tool_step(result={"note": "ann@example.com", "password": "hunter22"})))

    result = result_of(sender, "r")
    assert result["note"] == "ann@example.com"
    assert result["password"].startswith("[secret:")


def test_rules_apply_to_spans_that_were_seen_before(shop, ann, sender):
    spans = make_traces(
        make_span({"gen_ai.operation.name": "execute_tool", "x": "CUST-123456", "date_of_birth": "1980"})
    )
    sender.post("/v1/traces", as_protobuf(spans), content_type=PROTOBUF)
    run = Run.objects.get()
    assert b"CUST-123456" in sender.get(f"/api/v1/runs/{run.run_id}/record").content
    ann.post(RULES, SAID)
    again = as_protobuf(spans).replace(b"\1\2\3\4", b"\1\2\3\5")

    make_client(make_key(shop)).post("/v1/traces", again, content_type=PROTOBUF)

    (new,) = Run.objects.exclude(pk=run.pk)
    record = sender.get(f"/api/v1/runs/{new.run_id}/record").content
    assert b"CUST-123456" not in record
    assert b'"1980"' not in record


def test_rules_are_tried_on_the_last_runs_and_nothing_is_kept(shop, ann, sender):
    for name in "abc":
        post_run(sender, make_record(name, make_tool_step(result=ANSWER)))
    stored = row_counts()

    page = ann.post(f"{RULES}/try", SAID, headers={"HX-Request": "true"}).content.decode()

    words = " ".join(page.replace("<", " <").split())
    assert "In the last 3 runs these rules would also redact" in words
    assert "<code>customer </code> </td> <td>3 </td> <td>3 </td>" in words
    assert "<code>ip_address </code>" in words
    shop.refresh_from_db()
    assert (shop.redaction, row_counts()) == ("", stored)


def test_a_path_is_taken_out_where_it_leads_alone(ann, sender):
    ann.post(RULES, {"fields_taken": "customer.street"})

    post_run(sender, make_record("r", make_tool_step(result={"customer": [{"street": "Elm"}], "street": "Oak"})))

    result = result_of(sender, "r")
    assert result["customer"][0]["street"].startswith("[own_field:")
    assert result["street"] == "Oak"


def test_rules_are_applied_to_what_is_stored_once_somebody_has_seen_the_counts(shop, ann, sender):
    post_run(sender, make_record("before", make_tool_step(result=ANSWER)))
    ann.post(RULES, SAID)
    change = f"{RULES}/stored/change"

    ann.post(change, {"do": "count"})
    while redaction_jobs.go_on():
        pass
    counted = " ".join(ann.get(f"{RULES}/stored").content.decode().split())
    assert "<code>customer</code></td> <td>1</td> <td>1</td>" in counted
    assert result_of(sender, "before")["note"].startswith("CUST-123456")

    ann.post(change, {"do": "start"})
    while redaction_jobs.go_on():
        pass

    assert result_of(sender, "before")["note"].startswith("[customer:")
    RedactionJob.objects.update(state="done", finished_at=timezone.now())
    assert "started by ann; changed 1 recording," in " ".join(ann.get(RULES).content.decode().split())


def test_a_count_of_other_rules_is_not_applied(shop, ann):
    ann.post(f"{RULES}/stored/change", {"do": "count"})
    redaction_jobs.go_on()
    ann.post(RULES, SAID)

    page = ann.post(f"{RULES}/stored/change", {"do": "start"}, follow=True).content.decode()

    assert "The rules were changed after the count; count again." in page
    ann.post(f"{RULES}/stored/change", {"do": "cancel"})
    assert RedactionJob.objects.get().state == "cancelled"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"patterns": "customer CUST"}, "write a name in lower-case letters"),
        ({"patterns": "customer: ("}, "is not a regular expression (RE2): missing )"),
        ({"patterns": "email: x"}, "is the name of a built-in rule"),
        ({"fields_taken": "---"}, "is not a valid field name"),
    ],
)
def test_a_bad_rule_is_refused_in_words_and_what_was_typed_stays(shop, ann, said, words):
    answers = [ann.post(RULES, said), ann.post(f"{RULES}/try", said)]

    for answer in answers:
        page = answer.content.decode()
        assert answer.status_code == 422
        assert words in page.replace("&#x27;", "'")
        assert "".join(said.values()) in page
    shop.refresh_from_db()
    assert shop.redaction == ""


def test_only_administrators_see_and_change_the_rules(shop):
    member = client_of(make_user("mia", shop, "member"))

    asked = [member.get(RULES), member.post(RULES, SAID), member.post(f"{RULES}/stored/change", {"do": "count"})]

    assert [answer.status_code for answer in asked] == [403, 403, 403]


def test_all_kinds_are_on_the_page_and_those_of_persons_are_off_at_first(ann):
    page = ann.get(reverse("redaction", args=["shop"])).content.decode()

    assert {kind for kind in KINDS if f'value="{kind}" checked' in " ".join(page.split())} == set(ON_AT_FIRST)
