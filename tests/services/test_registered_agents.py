"""What is said of registered agents that cannot be loaded."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest
from pydantic_ai.exceptions import UserError

from sessions_app.services.registered_agents import agent_lines, problems_of_agents

PROBLEMS = {
    "nowhere:agent": "could not be loaded: there is no module 'nowhere'. "
    "PYTHONPATH has to name the folder in which it is.",
    "shop.nowhere:agent": "could not be loaded: there is no module 'shop.nowhere'. "
    "PYTHONPATH has to name the folder in which it is.",
    "shop.needy:agent": f"could not be loaded: it imports 'absent_package', which is not installed in {sys.prefix}.",
    "shop.sdk:agent": "could not be loaded: it imports 'agents', "
    f"which is not installed in {sys.prefix}. It comes with the package openai-agents.",
    "shop.desk:other": "could not be loaded: the module has no 'other'.",
    "shop.desk:number": "could not be loaded: 'number' is no agent of Pydantic AI or the OpenAI Agents SDK but int.",
    "shop.keyless:agent": "crashed: KeyError: 'SHOP_KEY'",
    "shop.leaving:agent": "crashed: os._exit(3)",
    "shop.calling:agent": "crashed: tried to leave the isolated replay (socket.getaddrinfo)",
    "shop.desk:agent": None,
    "shop.named:agent": None,
    "shop.of_sdk:agent": None,
}
MODULES = {
    "__init__": "",
    "needy": "import absent_package",
    "sdk": "raise ModuleNotFoundError('as where the SDK is not installed', name='agents')",
    "desk": "from pydantic_ai import Agent\nagent = Agent('test')\nnumber = 7",
    "named": "from pydantic_ai import Agent\nagent = Agent('openai:gpt-4o')",
    "of_sdk": "from agents import Agent\nagent = Agent(name='desk')",
    "keyless": "import os\nos.environ['SHOP_KEY']",
    "leaving": "import os\nos._exit(3)",
    "calling": "import socket\nsocket.create_connection(('example.com', 80))",
}


@pytest.fixture
def shop(tmp_path, settings):
    """A team's package of modules, each broken in another way but `desk`."""
    (tmp_path / "shop").mkdir()
    for name, source in MODULES.items():
        (tmp_path / "shop" / f"{name}.py").write_text(source)
    settings.REPLAY_AGENTS = {f"a{number}": target for number, target in enumerate(PROBLEMS)}
    settings.REPLAY_AGENT_ENV = {"PYTHONPATH": str(tmp_path)}
    return tmp_path


def test_each_agent_that_cannot_be_loaded_is_named_with_the_reason(shop):
    """Also those behind one that ends its process."""
    assert dict(zip(PROBLEMS, dict(problems_of_agents()).values(), strict=True)) == PROBLEMS


def test_a_model_that_is_named_wants_neither_package_nor_key(shop, monkeypatch):
    """Control: outside of a replay the same module cannot be imported without a key."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.syspath_prepend(str(shop))

    with pytest.raises(UserError, match="OPENAI_API_KEY"):
        import_module("shop.named")
    assert dict(zip(PROBLEMS, dict(problems_of_agents()).values(), strict=True))["shop.named:agent"] is None


def test_a_terminal_is_told_name_place_and_reason(shop, settings):
    settings.REPLAY_AGENTS = {"desk": "shop.desk:agent", "other": "shop.desk:other"}

    assert list(agent_lines()) == [
        "  ok      desk=shop.desk:agent",
        "  PROBLEM other=shop.desk:other: could not be loaded: the module has no 'other'.",
    ]


def test_secrets_in_the_reason_are_redacted(shop, settings):
    words = "no postgresql://app:geheim-7Q@db/x with sk-proj-" + "Ab3dEf6hIj9kLm2nOp5q" * 3
    (shop / "shop/leaky.py").write_text(f"raise ValueError({words!r})")
    (shop / "shop/ends.py").write_text(f"raise SystemExit({words!r})")
    settings.REPLAY_AGENTS = {"leaky": "shop.leaky:agent", "ends": "shop.ends:agent"}

    said = "\n".join(agent_lines())

    assert said.count("no postgresql://app:[password:") == 2
    assert "geheim" not in said
    assert "sk-proj" not in said


def test_the_folder_of_the_modules_is_needed(shop, settings):
    """Control: without it the agent that could be loaded cannot."""
    settings.REPLAY_AGENTS = {"desk": "shop.desk:agent"}
    settings.REPLAY_AGENT_ENV = {}

    [(_, problem)] = problems_of_agents()

    assert "there is no module 'shop'" in str(problem)
