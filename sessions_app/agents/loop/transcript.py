"""What the loop did, written down while it runs, each request checked as it is made."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai.messages import ModelMessage

from replay_recorder.hooks.pydantic_ai_held import held
from sessions_app.agents.loop.library import dump_message, load_messages
from sessions_app.core.history import History, messages, nodes
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.replay.asked_model import AskedModel, first_other
from sessions_app.core.replay.call_places import MESSAGE, answer_at, is_how_it_ended, of_call
from sessions_app.core.replay.matching import Mismatch, Tally, first_mismatch, note_untold_parameters
from sessions_app.core.replay.new_tools import at_tools
from sessions_app.core.replay.observed import Divergence, ObservedCall, ObservedRequest
from sessions_app.core.replay.plan import PlannedAnswer
from sessions_app.core.replay.rewriting import Rewriting
from sessions_app.core.run import REPEATED, ModelCall, Run, StateChange, StepSource


@dataclass
class Transcript:
    """Requests and tool calls in the order in which the loop made them."""

    recorded: Run | None = None
    """The run that is replayed, in whose steps calls have their places; None for a fork."""
    tally: Tally = field(default_factory=Tally)
    requests: list[ObservedRequest] = field(default_factory=list)
    calls: list[ObservedCall] = field(default_factory=list)
    divergence: Divergence | None = None
    asked: AskedModel | None = None
    """The model and the settings of the newest request, where the team's code says them."""
    has_taken_feedback: bool = False
    """What a check of the output told the model was taken from the recording, for the check does not run."""
    rewritten: dict[int, Rewriting] = field(default_factory=dict)
    """Requests whose past was taken from the recording, by their step."""
    taken: Callable[[], JsonObject] = dict
    """What is known of the agent's own state whenever a request or a call has ended."""
    heard: Callable[[], JsonObject | None] = lambda: None
    """What is to be said of the arguments with which the call under way came to its tool."""
    watches_changes: bool = False
    """Code of the team's may change a message that was written down; a rebuilt agent has none, and a recording of such
    code does not hold the change."""
    is_of_code: bool = False
    """Whether the team's own code runs: what a call came to otherwise, it came to by that. A rebuilt agent can only be
    told otherwise by a message."""
    _seen: list[ModelMessage] = field(default_factory=list)
    _marks: list[list[Any]] = field(default_factory=list)
    """What each of these held when it was written down."""
    _chain: list[History] = field(default_factory=list)
    _checked: History | None = None
    """How far the recorded history is known to agree."""
    _has_unseen: bool = False
    """Whether the messages of the newest request were not recorded; those of a later one hold them too."""
    _written: tuple[JsonObject, Payload] | None = None
    """The parameters of the request before, and as they are kept: most requests of a run have the same."""
    _has_parted: bool = False
    """Whether a request was not the recorded one: what is asked for behind it belongs to another run. A difference in
    a state alone is none of a request."""
    _looked_at: PlannedAnswer | None = None
    """Whose request was checked last."""
    _agreed: tuple[JsonObject, JsonObject, Tally] | None = None
    """Recorded and rebuilt parameters that were checked last, and what was counted then."""

    def request(
        self,
        planned: PlannedAnswer | None,
        rebuilt: list[ModelMessage],
        parameters: JsonObject,
        response: ModelMessage | None,
        *,
        source: StepSource = "recorded",
        **given: Any,
    ) -> None:
        """One request to the model, as the loop built it; `given` is what else is known of its answer. Only an answer
        to the recorded request is a recorded one, whatever gave it."""
        history = self.extend(rebuilt)
        self._check(planned, rebuilt, parameters)
        self.requests.append(
            ObservedRequest(
                step=planned.step if planned else None,
                history=history,
                parameters=self._payload(parameters),
                response=None if response is None else Payload.of_json(dump_message(response)),
                source=self.repeated if source in REPEATED else source,
                asked=self.asked,
                **self._with_state(given),
            )
        )

    def _with_state(self, given: JsonObject) -> JsonObject:
        """Where the agent's own state is taken, it says what a step did; what a fork changed before the step stays."""
        taken, changed = self.taken(), given.get("state")
        if not taken or changed is None or not changed.before:
            return given | taken
        did = taken["state"].after if taken["state"] else ()
        return {**given, **taken, "state": StateChange(before=changed.before, after=did)}

    def asks(self, planned: PlannedAnswer | None, asked: AskedModel) -> None:
        """The request that is about to be made goes to this model."""
        self.asked = asked
        if planned is not None and not self._has_parted:
            self.parts(planned, first_other(planned, asked, self._counting))

    @property
    def repeated(self) -> StepSource:
        """What an answer of the recording is to the request that was made last."""
        return "recorded_for_another_request" if self._has_parted else "recorded"

    def repeated_call(self, *, is_asked_again: bool) -> StepSource:
        """What a tool's answer of the recording is to this call: recorded for another request where the tool is given
        other arguments than then, or the model asked for the call in an answer to another request."""
        asker = self.requests[-1].source if self.requests else "recorded"
        is_of_another = asker == "recorded_for_another_request" or not is_asked_again
        return "recorded_for_another_request" if is_of_another else "recorded"

    def _payload(self, parameters: JsonObject) -> Payload:
        if self._written is None or self._written[0] is not parameters:
            self._written = (parameters, Payload.of_json(parameters))
        return self._written[1]

    def is_recorded(self, planned: PlannedAnswer | None, rebuilt: list[ModelMessage], parameters: JsonObject) -> bool:
        """Whether everything up to this request, which is about to be made, is as it was recorded."""
        self.extend(rebuilt)
        self._check(planned, rebuilt, parameters)
        return planned is not None and self.divergence is None

    def _check(self, planned: PlannedAnswer | None, rebuilt: list[ModelMessage], parameters: JsonObject) -> None:
        if planned is None or planned is self._looked_at or self._has_parted:
            return
        self._looked_at, tally = planned, self._counting
        self._check_request(planned, tally)
        self._check_parameters(planned, parameters, tally)

    @property
    def _counting(self) -> Tally:
        """Behind the first difference nothing counts as compared."""
        return self.tally if self.divergence is None else Tally(counts_anew=self.tally.counts_anew)

    def parts(self, planned: PlannedAnswer, found: Mismatch | None) -> None:
        """The request in this one's place is another one, if there is a mismatch."""
        if found is not None:
            self._has_parted = True
            self.diverged(planned.step, found)

    def _check_request(self, planned: PlannedAnswer, tally: Tally) -> None:
        if planned.history is None:
            # The step is all that is left of the request, as when its process was killed.
            self._has_unseen = True
        else:
            had_differed = self.divergence is not None
            found = self._first_other(planned.history, tally)
            self.parts(planned, found if self.recorded is None else at_tools(self.recorded, found))
            if not had_differed:
                self._put_at_call(planned.history, before=planned.step)

    def call(self, call_id: str | None, name: str, arguments: JsonValue, step: int, **given: Any) -> None:
        """One tool call; `step` is the recorded one whose answer it got."""
        self.calls.append(
            ObservedCall(
                step=step,
                call_id=call_id,
                tool_name=name,
                arguments=Payload.of_json(arguments),
                given=self.heard(),
                **self._with_state(given),
            )
        )

    def begin(self, loaded: list[ModelMessage], history: History, *, checked: History | None) -> None:
        """The loop goes on from these messages; `checked` is how much of them is as recorded."""
        self._seen, self._chain = list(loaded), list(nodes(history))[::-1]
        self._marks = list(map(_mark, loaded)) if self.watches_changes else []
        self._checked = checked

    def end(self, recorded: History | None, rebuilt: list[ModelMessage], *, step: int) -> History | None:
        """The whole history when the loop stopped, checked against the recorded end.

        Behind the last answer, which is that of `step`, the loop writes what calls came to: a difference there is one
        of the call's own step, and any other one of the last step.
        """
        history = self.extend(rebuilt)
        self._take_late_answer()
        if recorded is not None and self.divergence is None:
            found = self._first_other(recorded, self.tally)
            if found is not None:
                self.diverged(step, found)
            self._put_behind_answer()
            self._put_at_call(recorded)
        if self._has_unseen:
            self.tally.note_missing("messages")
        return history

    def _put_behind_answer(self) -> None:
        """What the messages at the end hold behind the last answer came after all steps."""
        answered = (request for request in reversed(self.requests) if request.response is not None)
        last = next((request.history for request in answered), None)
        found = self.divergence and MESSAGE.match(self.divergence.path)
        if self.divergence and self.recorded and last and found and int(found[1]) > last.length:
            self.divergence = replace(self.divergence, step=len(self.recorded.steps))

    def _put_at_call(self, history: History, *, before: int | None = None) -> None:
        """A difference in how a call ended is one of the call's own step, not of the request that tells it. Where the
        loop tells of another call at that place, nothing is known of how this one ended."""
        if self.divergence is None or self.recorded is None or self._was_told_before(history):
            return
        path = self.divergence.path
        found = answer_at(self.recorded, history, path, before=before)
        made = answer_at(self.recorded, self.history, path, before=before) if self.history is not None else None
        if found is None or (made is not None and before is not None and made.step is not found.step):
            return
        if before is None or is_how_it_ended(found, self.divergence.replayed):
            of_step = replace(self.divergence, step=found.step.index)
            self.divergence = of_call(found, of_step) if self.is_of_code else of_step

    def _was_told_before(self, history: History) -> bool:
        """Whether the request before this one told the message that differs, and agreed: somebody has changed it since,
        and not the call."""
        last = self.requests[-1].step if self.requests else None
        found = self.divergence and MESSAGE.match(self.divergence.path)
        call = self.recorded.steps[last - 1].call if self.recorded and last else None
        if not found or not isinstance(call, ModelCall):
            return False
        differs = (node for node in nodes(history) if node.length == int(found[1]) + 1)
        return next(differs, None) in set(nodes(call.history))

    def _take_late_answer(self) -> None:
        """A streamed answer whose reader left reaches the history after the request was given up."""
        last = self.requests[-1] if self.requests else None
        position = last.history.length if last is not None and last.history is not None else 0
        if last is None or last.response is not None or position >= len(self._chain):
            return
        message = self._chain[position].message
        if message.value.get("kind") == "response":
            self.requests[-1] = replace(last, response=message)

    def dumped(self) -> list[JsonObject]:
        """The messages that there are now."""
        return [node.message.value for node in self._chain]

    @property
    def history(self) -> History | None:
        return self._chain[-1] if self._chain else None

    @property
    def count(self) -> int:
        """How many requests and calls were made."""
        return len(self.requests) + len(self.calls)

    def rewrite(self, planned: PlannedAnswer, own: list[ModelMessage], *, is_past_known: bool) -> bool:
        """Whether the recorded past may be put in the place of the loop's own: what of it the loop has as well agrees,
        and where the recorder tells what was made anew, nothing else may differ. Where the request before was not
        captured, nobody knows whether it was made anew."""
        self.extend(own)
        recorded, there = messages(planned.history)[:-1], [node.message.value for node in self._chain[:-1]]
        told = planned.rewriting
        places = _places(recorded, there, told.made if told else ())
        made = [at for at in range(len(recorded)) if at not in places]
        missing = sorted(set(range(len(there))) - set(places.values()))
        rewriting = Rewriting(made=tuple(made), cut=len(missing))
        self.check_anew()
        if rewriting != Rewriting() and (told or is_past_known):
            self.rewritten[planned.step] = rewriting
        other = None if told is None else next((at for at in made if at not in told.made), None)
        if other is not None:
            path, beside = f"messages[{other}]", _beside(places, other, len(recorded), len(there))
            found = _compare([recorded[other]], there[beside : beside + 1], 0, path, self.tally)
            self.diverged(planned.step, found or Mismatch(path=path, recorded=None, rebuilt=None))
            return False
        if told is not None and len(missing) > told.cut:
            at = missing[told.cut]
            self.diverged(planned.step, Mismatch(path=f"messages[{at}]", recorded=None, rebuilt=there[at]))
            return False
        return True

    def check_anew(self) -> None:
        """What agreed before says nothing of the messages that are there now."""
        self._checked = None

    def diverged(self, step: int | None, mismatch: Mismatch) -> None:
        if self.divergence is None:
            self.divergence = Divergence(
                step=step, path=mismatch.path, recorded=mismatch.recorded, replayed=mismatch.rebuilt
            )

    # --- histories

    def extend(self, rebuilt: list[ModelMessage]) -> History | None:
        """Dumps only what is new: comparing object identities is cheap, writing histories is not."""
        same = self._same(rebuilt)
        if self.watches_changes and self._checked is not None and same < min(len(self._seen), self._checked.length):
            self.check_anew()
        del self._seen[same:], self._chain[same:], self._marks[same:]
        if self.watches_changes:
            self._marks.extend(map(_mark, rebuilt[same:]))
        for message in rebuilt[same:]:
            payload = Payload.of_json(dump_message(message))
            self._chain.append(History(self._chain[-1] if self._chain else None, payload))
            self._seen.append(message)
        return self._chain[-1] if self._chain else None

    def _same(self, rebuilt: list[ModelMessage]) -> int:
        """How many of the messages are those that were written down."""
        pairs = enumerate(zip(self._seen, rebuilt, strict=False))
        changed = (at for at, (old, new) in pairs if old is not new or self._is_changed(at, new))
        return next(changed, min(len(self._seen), len(rebuilt)))

    def _is_changed(self, at: int, message: ModelMessage) -> bool:
        return at < len(self._marks) and self._marks[at] != _mark(message)

    def _first_other(self, recorded: History, tally: Tally) -> Mismatch | None:
        """Where the messages that there are now differ from the recorded ones."""
        expected = _after(recorded, self._checked)
        start = recorded.length - len(expected)
        actual = [node.message.value for node in self._chain[start:]]
        for offset in range(max(len(expected), len(actual))):
            mismatch = _compare(expected, actual, offset, f"messages[{start + offset}]", tally)
            if mismatch is not None:
                return mismatch
        self._checked, self._has_unseen = recorded, False
        return None

    def _check_parameters(self, planned: PlannedAnswer, rebuilt: JsonObject, tally: Tally) -> None:
        recorded = planned.parameters.value if planned.parameters else None
        if not isinstance(recorded, dict):
            tally.note_missing("parameters")
            return
        if self._agreed is None or self._agreed[0] is not recorded or self._agreed[1] is not rebuilt:
            shared = {key: value for key, value in rebuilt.items() if key in recorded}
            own = Tally()
            note_untold_parameters(recorded, rebuilt, own)
            mismatch = first_mismatch(recorded, shared, raw=recorded, path="parameters", tally=own)
            self._agreed = (recorded, rebuilt, own)
            self.parts(planned, mismatch)
        tally.add(self._agreed[2])


def _mark(message: ModelMessage) -> list[Any]:
    """What the message and its parts hold. Use is none of what the model is told."""
    fields = (field for part in (message, *message.parts) for field in vars(part).items())
    return [held(value) for name, value in fields if name not in _UNTOLD]


_UNTOLD = ("parts", "usage")


def _compare(expected: list[Payload], actual: list[JsonValue], offset: int, path: str, tally: Tally) -> Mismatch | None:
    if offset >= len(expected):
        return Mismatch(path=path, recorded=None, rebuilt=actual[offset])
    raw = expected[offset].value
    if offset >= len(actual):
        return Mismatch(path=path, recorded=raw, rebuilt=None)
    if _is_same(raw, actual[offset], path, tally):
        return None
    recorded = dump_message(load_messages([expected[offset]])[0])
    return first_mismatch(recorded, actual[offset], raw=raw, path=path, tally=tally)


def _is_same(raw: JsonValue, actual: JsonValue, path: str, tally: Tally) -> bool:
    """Whether the recording agrees as it was written, without being put into today's shape: most do."""
    own = Tally(counts_anew=tally.counts_anew)
    mismatch = first_mismatch(raw, actual, raw=raw, path=path, tally=own)
    if mismatch is not None or own.not_captured:
        return False
    tally.add(own)
    return True


def _places(recorded: list[Payload], there: list[JsonValue], made: Collection[int]) -> dict[int, int]:
    """Which of the recorded messages are there, and where, in their order. Those that are said to be `made` anew look
    for their place last, between the others: they may be equal to one that was there."""
    places: dict[int, int] = {}
    _put(places, recorded, there, [at for at in range(len(recorded)) if at not in made])
    kept = sorted(places)
    for position in sorted(at for at in made if 0 <= at < len(recorded)):
        behind = bisect(kept, position)
        last = places[kept[behind]] if behind < len(kept) else len(there)
        first = max(
            (places[at] + 1 for at in (*kept[max(0, behind - 1) : behind], position - 1) if at in places), default=0
        )
        _put(places, recorded, there[:last], [position], first)
    return places


def _beside(places: dict[int, int], position: int, recorded: int, there: int) -> int:
    """Where a recorded message that is not there would be: as far before the next one that is, or before the end."""
    following = min((at for at in places if at > position), default=recorded)
    return max(0, places.get(following, there) - (following - position))


def _put(
    places: dict[int, int], recorded: list[Payload], there: list[JsonValue], positions: list[int], first: int = 0
) -> None:
    for position in positions:
        found = next((at for at in range(first, len(there)) if _says(recorded[position], there[at])), None)
        if found is not None:
            places[position], first = found, found + 1


def _says(recorded: Payload, rebuilt: JsonValue) -> bool:
    """Whether a message of the loop is the recorded one, as it was written or in today's shape."""
    if first_mismatch(recorded.value, rebuilt, raw=recorded.value, path="messages[0]", tally=Tally()) is None:
        return True
    today = dump_message(load_messages([recorded])[0])
    return first_mismatch(today, rebuilt, raw=recorded.value, path="messages[0]", tally=Tally()) is None


def _after(history: History | None, checked: History | None) -> list[Payload]:
    """The messages behind the point up to which everything is known to agree."""
    added: list[Payload] = []
    node = history
    while node is not None and node != checked:
        added.append(node.message)
        node = node.parent
    return added[::-1]
