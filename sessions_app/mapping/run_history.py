"""Reading and writing the nodes of a run's histories.

They lie together beside the run. What stands in front of all that it was asked and answered itself may stand in front
of other runs too, as in the turns of a conversation: those nodes have rows, which runs share
(mapping/history_nodes.py). A fork has only the nodes that the runs whose steps it shares do not have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sessions_app import models
from sessions_app.core.history import Link
from sessions_app.core.packed_nodes import pack_nodes, unpack_nodes
from sessions_app.mapping.binary_rows import binary_cursor
from sessions_app.mapping.history_nodes import read_nodes

_PUT = """
INSERT INTO sessions_app_runhistory (run_id, count, nodes) VALUES (%(run)s, %(count)s, %(nodes)b)
ON CONFLICT (run_id) DO UPDATE SET count = EXCLUDED.count, nodes = EXCLUDED.nodes
"""


Digest = bytes | memoryview
"""What a binary column gives."""


def hex_of(digest: Digest | None) -> str | None:
    return None if digest is None else bytes(digest).hex()


def write_history(run: models.Run, nodes: Mapping[str, Link]) -> None:
    """In place of those that the run had."""
    lent = own_nodes(_lenders(run))
    own = {digest: link for digest, link in nodes.items() if digest not in lent}
    if own:
        _put(run, own)
    else:
        models.RunHistory.objects.filter(run=run).delete()


def take_over(run: models.Run, lender: int) -> None:
    """What the run's own ends lead to, before it does not share the steps of this one any more.

    What the run has already stays, even if another lender has it too: forks of this run may rely on it.
    """
    own, others = own_nodes([run.pk]), own_nodes(pk for pk in _lenders(run) if pk != lender)
    known = own | others
    needed, _ = _led_to(map(hex_of, _ends(run)), known | own_nodes([lender]))
    new = {digest: link for digest, link in needed.items() if digest not in known}
    if new:
        _put(run, own | new)


def _ends(run: models.Run) -> set[Digest | None]:
    steps = run.steps.values_list("input_node", "output_node")
    return {run.prior_node, run.final_node, *(node for step in steps for node in step)}


def _put(run: models.Run, nodes: Mapping[str, Link]) -> None:
    with binary_cursor() as cursor:
        cursor.execute(_PUT, {"run": run.pk, "count": len(nodes), "nodes": pack_nodes(nodes)})


def read_history(run: models.Run, heads: Iterable[str | None]) -> dict[str, Link]:
    """All nodes of a run that these lead to, by digest. Nodes that are gone are not among them."""
    return read_histories([run], heads)


def read_histories(runs: Sequence[models.Run], heads: Iterable[str | None]) -> dict[str, Link]:
    """The same of some runs of one project; two queries at most."""
    if not runs:
        return {}
    own, lacking = _led_to(heads, own_nodes(pk for run in runs for pk in (run.pk, *_lenders(run))))
    return own | read_nodes(runs[0].project_id, lacking)


def own_nodes(runs: Iterable[int]) -> dict[str, Link]:
    """Those that lie beside these runs; one query, none for no run."""
    rows = models.RunHistory.objects.filter(run__in=list(runs)).values_list("nodes", flat=True)
    return {digest: link for nodes in rows for digest, link in unpack_nodes(bytes(nodes)).items()}


def _lenders(run: models.Run) -> list[int]:
    return [part["run"] for part in run.kept]


def _led_to(heads: Iterable[str | None], nodes: Mapping[str, Link]) -> tuple[dict[str, Link], set[str]]:
    """The nodes from these back, and where they lead beyond what there is."""
    found: dict[str, Link] = {}
    lacking: set[str] = set()
    for head in heads:
        at = head
        while at is not None and at not in found:
            link = nodes.get(at)
            if link is None:
                lacking.add(at)
                break
            found[at] = link
            at = link[0]
    return found, lacking
