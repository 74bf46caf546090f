"""Histories are found by the digests of their ends."""

import pytest
from django.db import connection

from sessions_app.core.history import extend, nodes
from sessions_app.core.payload import Payload
from sessions_app.mapping import history_nodes
from sessions_app.mapping.history_nodes import read_nodes, write_nodes
from tests.builders import make_project

pytestmark = pytest.mark.django_db


def chain(name: str, length: int) -> dict[str, tuple[str | None, str]]:
    """A history as it is stored, newest node first."""
    head = extend(None, [Payload.of_json(f"{name} {number}") for number in range(length)])
    return {node.digest: (node.parent.digest if node.parent else None, node.message.digest) for node in nodes(head)}


def test_each_node_comes_once_however_many_lead_to_it():
    project = make_project()
    wanted, other = chain("wanted", 12), chain("other", 5)
    write_nodes(project.pk, {**wanted, **other})

    assert read_nodes(project.pk, [*wanted][:8]) == wanted
    assert read_nodes(project.pk, [None, [*wanted][-1]]) == dict([[*wanted.items()][-1]])


def test_many_heads_are_looked_up_and_the_table_is_not_read():
    project = make_project()
    write_nodes(project.pk, {digest: link for name in range(150) for digest, link in chain(f"{name}", 20).items()})
    heads = [bytes.fromhex(digest) for digest in [*chain("7", 20), *chain("8", 8)]]
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE sessions_app_historynode")

        cursor.execute(f"EXPLAIN {history_nodes._CHAIN}", {"project": project.pk, "heads": heads})

        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "Seq Scan" not in plan
    assert plan.count("Index Scan using sessions_app_historynode_pkey") == 2
