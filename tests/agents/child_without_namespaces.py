"""The process of a code replay where the kernel refuses namespaces, as it does in most containers."""

from __future__ import annotations

from sessions_app.agents.process import code_child
from sessions_app.agents.process.code_sandbox import CodeChild
from tests.agents.reaching import refuse_namespaces


class ChildWithoutNamespaces(CodeChild):
    module = "tests.agents.child_without_namespaces"


def main() -> None:
    refuse_namespaces()
    code_child.main()
