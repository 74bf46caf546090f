"""Rules of redaction applied to what is stored, over the API and by the command."""

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from sessions_app.core.redaction import OwnRules
from sessions_app.models import RedactionJob
from sessions_app.models.projects import KeyScope
from sessions_app.services import redaction_jobs
from sessions_app.services.keys import create_key
from sessions_app.services.redaction import save_rules
from tests.builders import make_client, make_project, make_record, make_tool_step, post_run

pytestmark = pytest.mark.django_db
JOB = "/api/v1/redaction-job"
RULES = OwnRules(patterns=(("customer", "CUST-[0-9]{6}"),))
COUNTS = {"customer": {"values": 2, "runs": 1}}


@pytest.fixture
def shop():
    return make_project()


@pytest.fixture
def api(shop):
    """A stored run, and rules that came after it."""
    ann = User.objects.create_user("ann")
    client = make_client(create_key(project=shop, name="operations", scope=KeyScope.ADMIN, user=ann)[1])
    post_run(client, make_record("r", make_tool_step(result="CUST-123456"), input="I am CUST-123456"))
    save_rules(shop, RULES)
    return client


def work():
    """As the workers do."""
    while redaction_jobs.go_on():
        pass


def test_it_is_counted_looked_at_and_started(api):
    assert api.get(JOB).status_code == 404

    asked = api.post(JOB).json()
    work()
    counted = api.get(JOB).json()
    assert api.get("/api/v1/runs/r").json()["input"] == "I am CUST-123456"
    started = api.post(f"{JOB}/start")
    work()

    assert (asked["state"], asked["total"], asked["requested_by"]) == ("counting", 1, "ann")
    assert (counted["state"], counted["done"], counted["counts"]) == ("counted", 1, COUNTS)
    assert (started.status_code, started.json()["state"], started.json()["started_by"]) == (202, "applying", "ann")
    assert api.get(JOB).json()["changed"]["runs"] == 1
    assert api.get("/api/v1/runs/r").json()["input"].startswith("I am [customer:")


def test_nothing_is_started_that_nobody_counted(api, shop):
    never = api.post(f"{JOB}/start")
    api.post(JOB)
    work()
    save_rules(shop, OwnRules())
    of_other_rules = api.post(f"{JOB}/start")

    for answer, words in ((never, "Nothing was counted yet"), (of_other_rules, "The rules were changed")):
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "not_counted")
        assert answer.json()["error"]["message"].startswith(words)


def test_a_count_is_dropped(api):
    api.post(JOB)

    assert api.delete(JOB).status_code == 204

    assert api.get(JOB).json()["state"] == "cancelled"
    assert not redaction_jobs.go_on()


def test_the_command_does_the_same(api, capsys):
    def said(*words):
        call_command("redaction", "shop", *words)
        return capsys.readouterr().out

    assert said() == "Nothing was counted yet.\n"
    with pytest.raises(CommandError, match="Nothing was counted yet"):
        said("start")
    assert said("count") == "counting\t0 of 1\n"
    work()
    assert said("state") == "counted\t1 of 1\ncustomer\t2 values\t1 runs\n"
    assert said("start").startswith("applying\t0 of ")
    work()
    assert api.get("/api/v1/runs/r").json()["input"].startswith("I am [customer:")
    RedactionJob.objects.update(state="done")
    assert said("count").startswith("counting")
    assert said("cancel").startswith("cancelled")


def test_the_command_waits_for_the_workers(api, shop, capsys, monkeypatch):
    monkeypatch.setattr("sessions_app.management.commands.redaction.time.sleep", lambda seconds: work())

    call_command("redaction", "shop", "--wait", "count")

    assert capsys.readouterr().out.startswith("counted\t1 of 1\n")
