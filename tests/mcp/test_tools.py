"""The tools by themselves: one project each, keys that end, values that are cut, a world that is off."""

import pytest
from mcp.server.mcpserver.exceptions import ToolError

from sessions_app.mcp.server import server_for
from sessions_app.mcp.shapes import cut
from sessions_app.mcp.tools import Tools
from sessions_app.models import ApiKey, Note
from sessions_app.models.projects import KeyScope
from sessions_app.services.keys import revoke_key
from tests.builders import make_client, make_key, make_project, make_record, make_tool_step, post_run

pytestmark = pytest.mark.django_db
ANSWER = {"text": "x" * 5000}


@pytest.fixture
def key():
    return make_key(make_project())


@pytest.fixture
def tools(key):
    steps = [make_tool_step(result=ANSWER), make_tool_step(result="second")]
    post_run(make_client(key), make_record("r", *steps))
    return Tools(key)


def test_runs_of_other_projects_do_not_exist(tools):
    stranger = Tools(make_key(make_project("other")))

    assert stranger.find_runs()["runs"] == []
    for call in (stranger.read_run, stranger.read_steps, stranger.replay_run, stranger.report):
        with pytest.raises(ToolError, match="There is no such run in this project"):
            call("r")
    with pytest.raises(ToolError, match="There is no such run"):
        stranger.compare_runs("r", "r")
    with pytest.raises(ToolError, match="There is no such run"):
        stranger.write_note("r", "x")


def test_a_key_that_is_revoked_opens_nothing_any_more(tools):
    revoke_key(ApiKey.objects.get())

    with pytest.raises(ToolError, match="was revoked on 20"):
        tools.find_runs()


def test_a_key_that_may_only_send_is_refused():
    with pytest.raises(ToolError, match="may only send"):
        Tools(make_key(make_project(), KeyScope.INGEST)).find_runs()


def test_long_values_are_cut_in_lists_and_say_so_and_one_step_is_whole(tools):
    listed, whole = tools.read_steps("r")["steps"][0], tools.read_step("r", 1)

    assert listed["result"].endswith("… [cut: 600 of 5,011 characters]")
    assert whole["result"] == ANSWER


def test_steps_are_read_a_part_at_a_time(tools):
    first = tools.read_steps("r", limit=1)
    second = tools.read_steps("r", after=first["next_after"], limit=1)

    assert (first["total"], first["next_after"], second["next_after"]) == (2, 1, None)
    assert [step["index"] for step in second["steps"]] == [2]


def test_a_note_is_signed_with_the_key(tools):
    tools.write_note("r", "cold cache", step=2)

    note = Note.objects.get()
    assert (note.key, note.step, note.author) == (ApiKey.objects.get(), 2, None)


def test_no_tool_offers_a_live_model_or_a_live_tool(key):
    offered = {tool.name: str(tool.parameters) for tool in server_for(key)._tool_manager.list_tools()}

    assert len(offered) == 10
    assert [name for name, parameters in offered.items() if "live" in parameters or "samples" in parameters] == []


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("abc", "abc"),
        ("abcdef", "abcd … [cut: 4 of 6 characters]"),
        ({"a": 1}, '{"a" … [cut: 4 of 7 characters]'),
        (7, 7),
    ],
)
def test_cut_says_how_much_is_shown(value, shown):
    assert cut(value, 4) == shown
