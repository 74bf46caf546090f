"""How much of the replay kit the newest runs of a project hold, and what to capture next."""

from __future__ import annotations

from typing import Any

from sessions_app.models import Project, Run

SAMPLE = 200
"""Newest runs that are looked at."""

FIXES = 2
_EFFORT = (
    "commit",
    "flags",
    "identity",
    "sampling",
    "model",
    "input",
    "instructions",
    "ids",
    "timestamps",
    "tool_schemas",
    "tool_io",
    "retrieval",
)
"""Lines of the kit, the cheapest to capture first: an environment variable before every search's chunks."""


def capture_scores(project: Project) -> dict[str, Any]:
    """`runs`, the `lines` of the kit with the `percent` captured and `partly`, with what the newest of these holds, and
    the cheapest `fixes`. One query."""
    newest = Run.objects.filter(project=project, origin="recorded").order_by("-pk")
    kits: list[Any] = list(newest.values_list("run_id", "kit")[:SAMPLE])
    lines: dict[str, dict[str, Any]] = {}
    for run_id, kit in kits:
        for line in kit.get("lines", []):
            _count(lines, line, run_id)
    for entry in lines.values():
        entry["percent"] = 100 * entry["captured"] // len(kits)
        entry["partly"] = 100 * entry["partial"] // len(kits)
    return {"runs": len(kits), "lines": list(lines.values()), "fixes": _cheapest(lines)}


def _count(lines: dict[str, dict[str, Any]], line: dict[str, Any], run_id: str) -> None:
    fresh = {"title": line["title"], "captured": 0, "partial": 0, "partly_why": "", "partly_in": "", "line": line}
    entry = lines.setdefault(line["key"], fresh)
    entry["captured"] += line["status"] == "captured"
    entry["partial"] += line["status"] == "partial"
    if line["status"] == "partial" and not entry["partly_why"]:
        entry |= {"partly_why": line["detail"], "partly_in": run_id}
    if line["status"] != "captured":
        entry["line"] = line


def _cheapest(lines: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Of what most runs lack, and after that of what some lack."""
    lacking = [key for key in lines if lines[key]["percent"] < 100]
    lacking.sort(key=lambda key: (lines[key]["percent"] > 50, _EFFORT.index(key) if key in _EFFORT else len(_EFFORT)))
    return [lines[key] for key in lacking[:FIXES]]
