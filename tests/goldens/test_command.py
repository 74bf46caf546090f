"""`manage.py goldens`: list, run from here, exit codes, files for CI."""

import json
from io import StringIO
from xml.etree import ElementTree

import pytest
from django.core.management import CommandError, call_command

from sessions_app.models import Golden, GoldenRun
from sessions_app.services.goldens import create_golden, quarantine
from tests.builders import make_project
from tests.web.records import load_example

pytestmark = pytest.mark.django_db
REFUSES = [{"kind": "result", "tool": "cancel_order", "contains": "not eligible"}]


@pytest.fixture
def shop():
    return make_project()


def keep(project, **fields):
    wanted = {"name": "Refuses", "checks": REFUSES, "replay": {"mode": "code_and_tools", "on_difference": "play_on"}}
    return create_golden(run=load_example(project, "cancel_bug"), wanted={**wanted, **fields})


def call(*arguments):
    """What it printed, and the exit code."""
    out = StringIO()
    try:
        call_command("goldens", *arguments, stdout=out)
    except CommandError as error:
        return str(error), error.returncode
    except SystemExit as end:
        return out.getvalue(), end.code
    return out.getvalue(), 0


def test_goldens_are_listed(shop):
    golden = keep(shop)
    quarantine(golden, "known")

    assert call("list") == (f"{golden.golden_id}  Refuses  (cancel_5521)  in quarantine\n", 0)


def test_each_agent_has_its_result_and_the_worst_is_the_exit_code(shop, tmp_path):
    keep(shop)
    agents = ("--agent", "order_desk", "--agent", "order_desk_repaired")
    junit, markdown = tmp_path / "junit.xml", tmp_path / "goldens.md"

    out, code = call("run", "--here", *agents, "--junit", str(junit), "--markdown", str(markdown))

    assert code == 1
    assert "Failed  Refuses [order_desk]: Expected: an answer of cancel_order contains" in out
    assert "Passed  Refuses [order_desk_repaired]\n" in out
    assert "1 of 2 golden runs passed, 1 failed" in out
    suite = ElementTree.parse(junit).getroot()
    assert [case.find("failure") is not None for case in suite.iter("testcase")] == [True, False]
    assert markdown.read_text().startswith("## Goldens\n\n**1 of 2 golden runs passed, 1 failed**")

    assert call("run", "--here", "--agent", "order_desk_repaired")[1] == 0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("run", "--here"), 2, "Refuses: Mode code_and_tools needs the name of a registered agent."),
        (("run", "--here", "--agent", "nobody"), 2, "No agent 'nobody' is registered"),
        (("run", "--golden", "gd_nothing", "--project", "shop"), 2, "There is no golden gd_nothing."),
        (("run", "--project", "nowhere"), 3, "There is no project nowhere."),
    ],
)
def test_what_cannot_run_is_said(shop, arguments, code, words):
    keep(shop)

    said, returned = call(*arguments)

    assert words in said
    assert returned == code
    assert not GoldenRun.objects.exists()


def test_nothing_to_run_is_no_success(shop):
    assert call("run") == ("There is no golden to run.", 3)
    quarantine(keep(shop), "known")
    assert call("run", "--here", "--agent", "order_desk")[1] == 3


def test_with_goldens_of_two_projects_one_has_to_be_named(shop):
    keep(shop)
    keep(make_project("other"))

    assert call("run", "--here")[1] == 2
    assert call("run", "--here", "--project", "other", "--agent", "order_desk")[1] == 1
    assert Golden.objects.count() == 2


def test_what_a_live_model_will_be_asked_is_said_before_it_is(shop, monkeypatch, settings):
    settings.REPLAY_MODEL_ENDPOINT = "https://models.example.org/v1"
    monkeypatch.setattr("sessions_app.management.commands.goldens.PATIENCE", 0)
    keep(shop, replay={"mode": "live", "samples": 2})
    err = StringIO()

    with pytest.raises(CommandError, match="No worker took them up"):
        call_command("goldens", "run", stdout=StringIO(), stderr=err)

    assert err.getvalue().startswith("2 samples: about 6 requests, ")


def test_without_a_worker_it_says_so(shop, monkeypatch):
    keep(shop)
    monkeypatch.setattr("sessions_app.management.commands.goldens.PATIENCE", 0)

    said, code = call("run", "--agent", "order_desk")

    assert (said.startswith("No worker took them up"), code) == (True, 2)


def test_goldens_are_printed_as_a_dataset(shop):
    golden = keep(shop, expected_outcome="Refuses")

    out, code = call("dataset", "--format", "inspect")

    assert (json.loads(out)["id"], json.loads(out)["target"], code) == (golden.golden_id, ["Refuses"], 0)
