"""The process of a code replay as it is on a machine whose kernel grants nothing: the audit hook alone is there."""

from __future__ import annotations

from sessions_app.agents.process import code_child, world_off
from sessions_app.agents.process.code_sandbox import CodeChild
from sessions_app.agents.process.seal import Seal


class UnsealedChild(CodeChild):
    module = "tests.agents.unsealed_child"


def main() -> None:
    world_off.seal = lambda *arguments, **named: Seal()
    code_child.main()
