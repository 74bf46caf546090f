"""Whom a tool was called for: nobody, somebody else, or with what belongs to somebody else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from replay_goldens.owner_checks import UseOfOther, uses_of_others
from sessions_app.core.goldens.traces import tool_uses
from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.anomalies.reading.answer_words import is_named
from sessions_app.core.judge.reading import (
    join_words,
    leaves,
    object_of,
    own_tools,
    seen_messages,
    text_of,
    value_of,
)
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import Run, Step, ToolCall

USER_KEYS = frozenset({"user_id", "user", "customer_id"})


TENANT_KEYS = frozenset({"tenant_id", "tenant"})


_OWNER_KEYS = USER_KEYS | TENANT_KEYS


def unscoped_calls(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """Tools that were called without saying for whom, in a run that knew it."""
    field, owner = ("user_id", run.user_id) if run.user_id else ("tenant_id", run.tenant_id)
    if not owner:
        return
    found: dict[str, list[int]] = {}
    of_owners = _tools_of_owners(run)
    for step, call in own_tools(run):
        if call.tool_name in of_owners and not _step_owner(step, field) and not _names_owner(run, call):
            found.setdefault(call.tool_name, []).append(step.index)
    for name, steps in found.items():
        message = f"{name} was called without {field}"
        yield Anomaly(code="unscoped_call", message=message, steps=tuple(steps))


def _tools_of_owners(run: Run) -> set[str]:
    """Tools that the record shows to act for a user or a tenant: their schema or another call names one, they returned
    what belongs to one, they were asked for what is "my ...", or other calls reached their tools with one and no schema
    rules it out. Those that were asked who somebody is, for a later call, are not among them."""
    schemas = _takes_owners(run)
    reached = any(step.user_id or step.tenant_id for step, _ in own_tools(run))
    return {
        call.tool_name
        for _, call in own_tools(run)
        if schemas.get(call.tool_name, reached)
        or _names_owner(run, call)
        or _gives_of_owners(call)
        or _asks_for_own(call)
    } - _directories(run)


def _takes_owners(run: Run) -> dict[str, bool]:
    """Each tool of a recorded schema: whether that has a place for a user or a tenant."""
    offered = {id(tool): object_of(tool) for _, call in run.model_calls for tool in call.tools or ()}
    schemas = ((str(tool.get("name")), tool.get("parameters_json_schema")) for tool in offered.values())
    named = ((name, schema.get("properties")) for name, schema in schemas if isinstance(schema, dict))
    return {name: not _OWNER_KEYS.isdisjoint(keys) for name, keys in named if isinstance(keys, dict)}


_OWN_THING = re.compile(r"my (\w+ )?\w+", re.IGNORECASE)


def _asks_for_own(call: ToolCall) -> bool:
    """As in `my order`, which means nothing to a tool that does not know whose."""
    return any(isinstance(item, str) and _OWN_THING.fullmatch(item) for _, item in leaves(value_of(call.arguments)))


def _directories(run: Run) -> set[str]:
    """Tools that gave a user or a tenant whom a later call names."""
    given: dict[str, str] = {}
    found: set[str] = set()
    for _, call in own_tools(run):
        found |= {given[str(item)] for _, item in leaves(value_of(call.arguments)) if str(item) in given}
        given |= {str(item): call.tool_name for key, item in leaves(value_of(call.result)) if key in _OWNER_KEYS}
    return found


def _gives_of_owners(call: ToolCall) -> bool:
    return any(key in _OWNER_KEYS for key, _ in leaves(value_of(call.result)))


def _step_owner(step: Step, field: str) -> str | None:
    return step.user_id if field == "user_id" else step.tenant_id


def _names_owner(run: Run, call: ToolCall) -> bool:
    owners = {owner for owner in (run.user_id, run.tenant_id) if owner}
    return any(
        item not in (None, "") and (key in _OWNER_KEYS or str(item) in owners)
        for key, item in leaves(value_of(call.arguments))
    )


def other_identity(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """A tool was called for somebody else than the run's user or tenant, whom no question names, and no record that
    was read before ties to them, as that of a manager's report does."""
    owners = {"user_id": run.user_id, "tenant_id": run.tenant_id}
    asked = questions(run) if any(owners.values()) else ""
    tied = _tied(run, owners)
    for step, call in own_tools(run) if any(owners.values()) else ():
        for key, item in leaves(value_of(call.arguments)):
            owner = owners.get(key or "")
            is_other = owner and item not in (None, "") and str(item) != owner and not is_named(str(item), asked)
            if is_other and tied.get((key, str(item)), step.index) >= step.index:
                message = f"{call.tool_name} was called with {key} {item}; the run is for {owner}"
                yield Anomaly(code="other_identity", message=message, steps=(step.index,))


Owners = Mapping[str, str | None]


def _tied(run: Run, owners: Owners) -> dict[tuple[str | None, str], int]:
    """The first step whose answer has a record of each other user, or tenant, that names the run's own as well."""
    found: dict[tuple[str | None, str], int] = {}
    for step, call in own_tools(run) if any(owners.values()) else ():
        for record in _records(value_of(call.result)):
            for key, owner in owners.items():
                if owner and record.get(key) != owner and owner in record.values():
                    found.setdefault((key, str(record.get(key))), step.index)
    return found


def _records(value: JsonValue) -> Iterator[JsonObject]:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            yield item
        waiting.extend(item.values() if isinstance(item, dict) else item if isinstance(item, list) else ())


def questions(run: Run) -> str:
    """All that users said, in this turn and before."""
    said = [part.get("content") for seen in seen_messages(run) for part in seen.parts_of("user-prompt")]
    return "\n".join([text_of(run.input) or "", *(item for item in said if isinstance(item, str))])


def used_of_other(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """A tool gave what belongs to somebody else, and another tool was called with it. Who asked for that person, or is
    given what belongs to several, may well serve them."""
    owners = {"user_id": run.user_id, "tenant_id": run.tenant_id}
    if not any(owners.values()) or _serves_several(run):
        return
    tied = {other for _, other in _tied(run, owners)}
    found: dict[tuple[int, int], UseOfOther] = {}
    for use in uses_of_others(tool_uses(run), [((key,), owner) for key, owner in owners.items()][::-1]):
        is_own = use.owner in tied or use.value in (use.owner, *owners.values())
        if not is_own and not _asked_for_somebody(use.given.arguments):
            found.setdefault((use.given.step, use.call.step), use)
    for steps, use in found.items():
        message = (
            f"{use.given.tool} returned a record of {use.owner}, and {use.call.tool} was called with its {use.value}; "
            f"the run is for {join_words([owner for owner in owners.values() if owner])}"
        )
        yield Anomaly(code="used_of_other", message=message, steps=steps)


def _serves_several(run: Run) -> bool:
    given = [leaf for _, call in own_tools(run) for leaf in leaves(value_of(call.result))]
    return any(
        len({str(item) for key, item in given if key == field and item} - {owner}) > 1
        for field, owner in (("user_id", run.user_id), ("tenant_id", run.tenant_id))
        if owner
    )


def _asked_for_somebody(arguments: JsonValue) -> bool:
    return any(key in _OWNER_KEYS for key, _ in leaves(arguments))
