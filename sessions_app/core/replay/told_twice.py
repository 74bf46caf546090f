"""What spans, or messages that others wrote, tell twice and otherwise: no replay says which of the two was so."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain, islice

from sessions_app.core.compare.strict import same_json
from sessions_app.core.embedded_json import parsed
from sessions_app.core.history import History
from sessions_app.core.judge.model_http_requests import messages_given_otherwise
from sessions_app.core.judge.reading import (
    is_of_recorder,
    main_models,
    object_of,
    objects_in,
    step_name,
)
from sessions_app.core.judge.saved_input import texts_of_prompt
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.ran_with import is_told
from sessions_app.core.replay.hand_overs import is_openai_agents
from sessions_app.core.replay.proof import TAKEN
from sessions_app.core.run import EXCHANGES, SPANS, AgentCall, ModelCall, Run, Step
from sessions_app.core.told_otherwise import contradicted_spans


def other_instructions(run: Run) -> int:
    """Requests with other instructions than the first, of which nothing tells what made them."""
    said = [_instructions(call.history) for _, call in main_models(run) if call.history is not None]
    is_judged = run.source_format == "native" and (is_of_recorder(run) or is_openai_agents(run))
    return 0 if is_judged else sum(each != said[0] for each in said)


def _instructions(history: History) -> JsonValue:
    message = history.message.value
    return (message.get("instructions") or None) if isinstance(message, dict) else None


def results_told_otherwise(run: Run) -> str | None:
    """The first request that told of the results of tools otherwise than the calls before it, and the first tool whose
    span did so otherwise than the request."""
    requests = ((step, step.extra.get("tool_results")) for step, _ in main_models(run))
    of_request = (f"the results of tools in the request of {step_name(step)} {said}" for step, said in requests if said)
    spans = ((step, step.extra.get("result_told")) for step, _ in run.tool_calls)
    of_span = (f"the span of {step_name(step)} gives the result {said}" for step, said in spans if said)
    return "; ".join([*islice(of_request, 1), *islice(of_span, 1)]) or None


def messages_told_otherwise(run: Run) -> str | None:
    """The first call whose request or answer is told twice: by one span, or by two."""
    step = next((step for step, _ in main_models(run) if "messages_told" in step.extra), None)
    return f"the messages of {step_name(step)} are given in two ways" if step is not None else None


def settings_told_otherwise(run: Run) -> str | None:
    """The first call whose span tells one of its settings twice, or agent whose span tells one otherwise."""
    step = next((step for step, _ in main_models(run) if "settings_told" in step.extra), None)
    if step is not None:
        return f"the span of {step_name(step)} gives its settings in two ways"
    place = _first_place(run, "settings_told")
    return None if place is None else f"{place} gives the model or a setting differently from the model call in it"


def instructions_told_otherwise(run: Run) -> str | None:
    """The first agent whose span tells other instructions than its first request."""
    place = _first_place(run, "instructions_told")
    return None if place is None else f"{place} gives different instructions from the first request in it"


def conversation_told_otherwise(run: Run) -> str | None:
    """The first span around calls of models that has its own copy of the conversation, and another one."""
    place = _first_place(run, "conversation_told")
    return None if place is None else f"{place} gives the conversation differently from the requests and answers in it"


def prompt_made_of_input(run: Run) -> str | None:
    """Of spans and HTTP, whether the prompt is what the run was asked. Templates make more of it, and so does whoever
    changes a prompt. One in which most words of both are the same, in other letters or beside others, tells it
    otherwise; what code made of others nobody knows."""
    if run.source_format not in (SPANS, EXCHANGES) or run.input is None:
        return None
    prompt = "\n".join(texts_of_prompt(run))
    if not run.input.is_text or prompt in ("", run.input.value):
        return messages_given_otherwise(run)
    asked = str(run.input.value)
    if asked.strip() in prompt:
        return "the prompt holds more than the run's input, and the code that made it did not run"
    words, known = (set(re.findall(r"\w+", text.casefold())) for text in (asked, prompt))
    is_about_it = 2 * len(words & known) >= len(words | known) > 0
    return f"the input of the run {'gives the prompt differently' if is_about_it else 'is not in its first request'}"


def state_told_otherwise(run: Run) -> str | None:
    """The first node of a graph whose state has a message that no call has."""
    place = _first_place(run, "state_told")
    unplayed = "" if place == OWN_SPAN else ", which was not played,"
    return None if place is None else f"{place}{unplayed} has a message that no call has"


def outcome_told_otherwise(run: Run) -> str | None:
    """The first span inside of the run's that was asked, or answered, something else than the run, or failed where the
    run did not."""
    for fact, words in _OF_OUTCOMES.items():
        place = _first_place(run, fact)
        if place is not None:
            return f"{place}, which was not played, {words}"
    return None


def span_told_otherwise(run: Run) -> str | None:
    """The first span that came with two contents, or gives something two values."""
    found = contradicted_spans(run)
    step = next(chain.from_iterable(found.values()), None)
    place = "a span that is no step" if step is None else f"the span of {step_name(step)}"
    return f"{place} has two different contents" if found else None


def error_told_otherwise(run: Run) -> str | None:
    """The first span of a run that failed which tells its error twice."""
    place = _first_place(run, "error_told")
    return None if place is None else f"{place} gives its error in two ways"


_OF_OUTCOMES = {
    "failed_around": "ended with an error, and the run did not",
    "output_told": "gives a different output",
    "input_told": "gives a different input",
}


OWN_SPAN = "the run's own span"


def _first_place(run: Run, fact: str) -> str | None:
    """What `assembly/copies.py` found, as words."""
    trace = run.extra.get("trace")
    places = trace.get(fact) if isinstance(trace, dict) else None
    if not isinstance(places, list) or not places:
        return None
    step = next((step for step in run.steps if step.index == places[0]), None)
    return OWN_SPAN if step is None else f"the span of {step_name(step)}"


def unknown_roles(run: Run) -> str | None:
    """The first message of which nobody knows who says it, which was read as one of the side on which it stands, or
    answer that somebody else than a model says."""
    for step, _ in main_models(run):
        if "unknown_role" in step.extra:
            role = json.dumps(step.extra["unknown_role"])
            return f"{step_name(step)} has a message of the role {role}, which is unknown"
        if "other_speaker" in step.extra:
            role = json.dumps(step.extra["other_speaker"])
            return f"{step_name(step)} has an answer of the role {role}, which is not that of a model"
    return None


def past_told_otherwise(run: Run) -> str | None:
    """The first request that spells a message otherwise than the request that it goes on from."""
    step = next((step for step, _ in main_models(run) if "past_told" in step.extra), None)
    if step is None:
        return None
    return f"the request of {step_name(step)} gives {step.extra['past_told']} differently from the one before it"


def tools_told_otherwise(run: Run) -> str | None:
    """The first request whose span defines one tool twice, or that defines one otherwise than those before it."""
    step = next((step for step, _ in main_models(run) if "tools_told" in step.extra), None)
    if step is not None:
        return f"the span of {step_name(step)} defines a tool in two ways"
    tool = next((step for step, _ in run.tool_calls if "defined" in step.extra), None)
    if tool is not None:
        return f"the span of {step_name(tool)} defines its tool differently from the request before it"
    respelled = next((step for step, _ in main_models(run) if "respelled_tool" in step.extra), None)
    if respelled is not None:
        name = respelled.extra["respelled_tool"]
        return f"{step_name(respelled)} defines {name} with different fields from the requests before it"
    doubled = _doubled(run)
    if doubled is not None:
        name, step = doubled
        return f"{step_name(step)} has {name} twice among its tools"
    if not run.is_told_by_others:
        return _told_in_two_places(run)
    changed = _redefined(run)
    if changed is not None:
        name, step = changed
        return f"{step_name(step)} defines {name} differently from the requests before it, and was {TAKEN}"
    step = _offering_others(run)
    if step is None:
        return None
    return f"{step_name(step)} offers different tools from the request before it, and was {TAKEN}"


def _told_in_two_places(run: Run) -> str | None:
    """What the parameters leave out counts as not recorded. The recorder writes both."""
    contradicted = tools_contradicted(run)
    if contradicted is not None:
        return contradicted[1]
    for step, call in main_models(run) if "recorder" in run.extra else ():
        if _offered(call) and not call.tools:
            return f"the tools of {step_name(step)} lack {_offered(call)[0].get('name')}, which its parameters have"
    for step, tool, whole in _told_twice(run):
        lack = next((each for each in _DEFINITION if whole.get(each) is not None and each not in tool), None)
        if lack is not None:
            return f"the parameters of {step_name(step)} lack the {lack} of {tool.get('name')}, which its tools have"
    return None


def tools_contradicted(run: Run) -> tuple[Step, str] | None:
    """The first request whose parameters and table of tools define a tool in two ways. One that the library adds is in
    both and rebuilt from neither."""
    for step, tool, whole in _told_twice(run):
        name = tool.get("name")
        if not whole:
            return step, f"the tools of {step_name(step)} lack {name}, which its parameters have"
        if any(each in whole and not same_json(whole[each], tool[each]) for each in tool):
            return step, f"the tools and the parameters of {step_name(step)} define {name} in two ways"
    return None


def _told_twice(run: Run) -> Iterator[tuple[Step, JsonObject, JsonObject]]:
    """Each tool that the parameters of a request define, and what its table of tools has of it."""
    for step, call in main_models(run):
        told = {each.get("name"): each for each in map(object_of, call.tools or ())}
        for tool in _offered(call) if told else ():
            yield step, tool, told.get(tool.get("name"), {})


def _offered(call: ModelCall) -> list[JsonObject]:
    return objects_in(object_of(call.parameters).get("function_tools"))


_DEFINITION = ("description", "parameters_json_schema")


def _doubled(run: Run) -> tuple[JsonValue, Step] | None:
    """A rebuilt agent has one tool of a name."""
    for step, call in main_models(run) if run.source_format == "native" else ():
        names = [each.get("name") for each in map(object_of, call.tools or ())]
        if len(set(names)) < len(names):
            return next(name for name in names if names.count(name) > 1), step
    return None


def _redefined(run: Run) -> tuple[str, Step] | None:
    """Spans and HTTP tell what was sent, and nothing of the agent that it was made of: a replay offers the same."""
    first: dict[tuple[str | None, str], Payload] = {}
    agents = _agents_around(run)
    for step, call in main_models(run):
        for tool in call.tools or ():
            name = str(tool.value.get("name"))
            before = first.setdefault((agents.get(step.index), name), tool)
            if before is not tool and not same_json(before.value, tool.value):
                return name, step
    return None


def _offering_others(run: Run) -> Step | None:
    """Nobody knows whether the agent offers tools by a rule, or somebody changed a name. Another agent has its own."""
    known: dict[str | None, set[str]] = {}
    agents = _agents_around(run)
    for step, call in main_models(run):
        names = {str(tool.value.get("name")) for tool in call.tools or ()}
        if names and known.setdefault(agents.get(step.index), names) != names:
            return step
    return None


def _agents_around(run: Run) -> dict[int, str]:
    """By step: the name of the agent around it, whose span or whose task it is inside of; none for the run's own."""
    names = {step.name for step in run.steps if isinstance(step.call, AgentCall)}
    found: dict[int, str] = {}
    for step in run.steps if names else ():
        outer = None if step.parent is None else run.steps[step.parent - 1]
        agent = None if outer is None else outer.name if outer.name in names else found.get(outer.index)
        if agent is not None:
            found[step.index] = agent
    return found


def arguments_told_otherwise(run: Run) -> str | None:
    """The first call whose tool, by its own span, was given something that the model did not give, or answered another
    call. Where the recorder hears what tools are given, it stands in the proof by itself."""
    for step, call in () if is_told(run) else run.tool_calls:
        given = call.arguments.parsed if call.arguments is not None else None
        if "ran_with" in step.extra and not _are_told(given, parsed(step.extra["ran_with"])):
            return f"the span of {step_name(step)} gives different arguments from the model's"
        if "arguments_told" in step.extra:
            return f"the span of {step_name(step)} gives its arguments in two ways"
        if "named_tool" in step.extra:
            return f"the span of {step_name(step)} names the tool {step.extra['named_tool']}"
        if "named_call" in step.extra:
            return f"the span of {step_name(step)} names a different call from the model's"
    return None


def _are_told(given: JsonValue, said: JsonValue) -> bool:
    """Frameworks print what they were given, and cut it."""
    if not isinstance(given, dict) or isinstance(said, dict):
        return same_json(given, said)
    return bool(given) and all(str(value) in str(said) for value in given.values())
