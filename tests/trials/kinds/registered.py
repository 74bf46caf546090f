"""Tools, settings and limits that held."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.trials.kinds.shared import Made, lengthen, of_run, outcome_place, with_fields
from tests.trials.mutants import KINDS, Expected, Kind, Maker, Place, at, changed, kind
from tests.trials.reading_records import Json, RecordReader

Edit = Callable[[Json], None]
"""Of one tool definition."""


def _users(reader: RecordReader, table: int) -> list[int]:
    """Model steps at which this tool was there."""
    return [i for i in reader.models if table in (reader.step(i).get("tools") or [])]


def _is_in_parameters(reader: RecordReader, index: int, name: str) -> bool:
    number = reader.step(index).get("parameters")
    rows = reader.record.get("parameters") or []
    if not isinstance(number, int) or number >= len(rows):
        return False
    return any(tool.get("name") == name for tool in rows[number].get("function_tools") or [])


def _tool_definition(record: Json, key: str, edit: Edit, *, tools: bool, parameters: bool) -> Made:
    reader = RecordReader(record)
    for table, tool in enumerate(record.get("tools") or []):
        users = _users(reader, table)
        if not users or not tool.get(key) or not _is_in_parameters(reader, users[0], tool["name"]):
            continue

        def change(copy: RecordReader, table: int = table, name: str = tool["name"]) -> None:
            if tools:
                edit(copy.record["tools"][table])
            for row in copy.record["parameters"] if parameters else []:
                for each in row.get("function_tools") or []:
                    if each.get("name") == name:
                        edit(each)

        both = tools and parameters
        first = users[0] if tools else next(i for i in reader.models if _is_in_parameters(reader, i, tool["name"]))
        compared = at(first, paths=("parameters", "tools"))
        expected = Expected(by="replay", place=at(first, paths="parameters.function_tools"), compared=compared)
        yield (
            f"tool {table}",
            changed(record, change),
            Expected(by="comparison", compared=compared) if both else expected,
        )


def _describe(tool: Json) -> None:
    lengthen(tool, "description")


def _loosen(tool: Json) -> None:
    tool["parameters_json_schema"] = {**tool["parameters_json_schema"], "minProperties": 1}


def _defined_in(where: str, key: str, edit: Edit) -> Maker:
    def make(record: Json) -> Made:
        tools, parameters = where != "the parameters", where != "the list of tools"
        return _tool_definition(record, key, edit, tools=tools, parameters=parameters)

    return make


for _where in ("the list of tools", "the parameters", "both"):
    KINDS.append(Kind(f"tool description, in {_where}", _defined_in(_where, "description", _describe)))
    KINDS.append(Kind(f"tool schema, in {_where}", _defined_in(_where, "parameters_json_schema", _loosen)))


@kind("tool no longer registered at a step")
def _tool_removed(record: Json) -> Made:
    reader = RecordReader(record)
    for index in reader.models:
        tools = reader.step(index).get("tools") or []
        name = (record.get("tools") or [{}])[tools[-1]]["name"] if tools else None
        if name and _is_in_parameters(reader, index, name):
            place = at(index, *_resumed_calls(reader, index, name))
            expected = Expected(by="replay", place=place, compared=at(index, paths=("tools", "parameters")))
            yield f"step {index}", changed(record, with_fields(index, tools=tools[:-1])), expected


def _resumed_calls(reader: RecordReader, index: int, name: str) -> list[int]:
    """Calls of this tool with which the run was resumed: whoever finds no such tool answers them otherwise."""
    is_first = index == reader.models[0]
    return [each for each in reader.tools if each < index and reader.step(each).get("tool_name") == name and is_first]


@kind("tool that was not registered at a step")
def _tool_added(record: Json) -> Made:
    reader = RecordReader(record)
    for index in reader.models:
        if not reader.step(index).get("tools") or not isinstance(reader.step(index).get("parameters"), int):
            continue
        if not (record.get("parameters") or [{}])[reader.step(index)["parameters"]].get("function_tools"):
            continue

        def change(copy: RecordReader, index: int = index) -> None:
            copy.record["tools"].append({**copy.record["tools"][0], "name": "one_more"})
            copy.step(index)["tools"].append(len(copy.record["tools"]) - 1)

        expected = Expected(by="replay", place=at(index), compared=at(index, paths=("tools", "parameters")))
        yield f"step {index}", changed(record, change), expected


@kind("temperature")
def _temperature(record: Json) -> Made:
    yield from _setting(record, "temperature", 0.25)


@kind("seed")
def _seed(record: Json) -> Made:
    yield from _setting(record, "seed", 4711)


@kind("seed, spelling of the number")
def _seed_spelling(record: Json) -> Made:
    reader = RecordReader(record)
    for index in reader.models:
        seed = (reader.step(index).get("settings") or {}).get("seed")
        if isinstance(seed, int):
            expected = Expected(by="comparison", compared=at(index, paths="settings"))
            change = with_fields(index, settings={**reader.step(index)["settings"], "seed": float(seed)})
            yield f"step {index}", changed(record, change), expected


def _setting(record: Json, key: str, new: Any) -> Made:
    reader = RecordReader(record)
    for index in reader.models:
        if isinstance(reader.step(index).get("settings"), dict):
            expected = Expected(by="comparison", compared=at(index, paths="settings"))
            yield (
                f"step {index}",
                changed(record, with_fields(index, settings={**reader.step(index)["settings"], key: new})),
                expected,
            )


@kind("model that was asked for, at a step")
def _model_name(record: Json) -> Made:
    reader = RecordReader(record)
    for index in reader.models:
        if reader.step(index).get("model"):
            is_told_twice = bool(record.get("model")) and index == reader.models[0]
            by: Any = "judge" if is_told_twice else "comparison"
            expected = Expected(by=by, place=at(reader.last + 1), compared=at(index, paths=("model", "request")))
            yield (
                f"step {index}",
                changed(record, with_fields(index, model=f"{reader.step(index)['model']}X")),
                expected,
            )


@kind("model that answered")
def _answered_model(record: Json) -> Made:
    reader = RecordReader(record)
    for index in reader.models:
        if reader.step(index).get("answered_model"):
            expected = Expected(by="comparison", compared=at(index, paths=("answered_model", "response")))
            yield (
                f"step {index}",
                changed(record, with_fields(index, answered_model=f"{reader.step(index)['answered_model']}X")),
                expected,
            )


@kind("retries that a tool is allowed")
def _tool_retries(record: Json) -> Made:
    reader = RecordReader(record)
    for name in record.get("agent", {}).get("tool_retries") or {}:
        retried = [i for i in reader.tools if reader.step(i).get("tool_name") == name and reader.step(i).get("retry")]
        told = reader.told(retried[0]) if retried else None
        place = at(*retried[:1], told.step, paths=(f"{told.path}.retry", "retry")) if told and told.step else Place()

        def change(copy: RecordReader, name: str = name) -> None:
            copy.record["agent"]["tool_retries"][name] += 1

        expected = Expected(by="replay" if retried else "undecided", place=place, is_comparable=False)
        yield name, changed(record, change), expected


@kind("usage limit that ended the run")
def _limit(record: Json) -> Made:
    error = record.get("error") or {}
    limits = record.get("agent", {}).get("usage_limits") or {}
    for key in ("request_limit", "tool_calls_limit"):
        if error.get("type") == "UsageLimitExceeded" and limits.get(key) and limits[key] < 50:

            def change(copy: RecordReader, key: str = key) -> None:
                copy.record["agent"]["usage_limits"][key] += 1

            expected = Expected(by="replay", place=outcome_place(RecordReader(record)), is_comparable=False)
            yield key, changed(record, change), expected


@kind("what a person decided")
def _deferred(record: Json) -> Made:
    """Or what came from outside; the step of the call says otherwise then."""
    reader = RecordReader(record)
    deferred: Json = record.get("deferred") or {}
    for call_id, outcome in deferred.items():
        new = {**deferred, call_id: "denied" if outcome == "success" else "success"}
        steps = [i for i in reader.tools if reader.step(i).get("call_id") == call_id]
        told = reader.told(steps[0]) if steps else None
        place = Place(frozenset({*steps, told.step})) if told and told.step else Place()
        expected = Expected(by="replay", place=place, compared=Place(paths=("deferred",)))
        yield f"{call_id}: {new[call_id]}", changed(record, of_run(deferred=new)), expected


@kind("what a person decided, in a word that nobody writes")
def _deferred_word(record: Json) -> Made:
    deferred: Json = record.get("deferred") or {}
    for call_id, outcome in deferred.items():
        new = {**deferred, call_id: f"{outcome}Z"}
        expected = Expected(by="judge", compared=Place(paths=("deferred",)), verdicts=frozenset({"cold"}))
        yield call_id, changed(record, of_run(deferred=new)), expected
