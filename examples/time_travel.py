"""Go back to a step of a recorded run, change one thing, go on, and see where the two runs part.

    python -m examples.time_travel                                      # the incident, resumed and forked
    python -m examples.time_travel --from 1 --set refuse_when_empty=true
    python -m examples.time_travel --from 5 --set query='"returns"'     # any change of the state, in JSON

The incident: an agent searches for the same words until it gives up, for it does not know what an empty result means.
Each step leaves a checkpoint in the store of `checkpoint_store.py`. Whoever goes on from one gets the recorded answers
of the tool; a call that was never recorded ends the run in words, and is not made up.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from examples import checkpoint_store
from examples.checkpoint_store import Checkpoint, CheckpointMissing, CheckpointStore, open_store, step_to
from replay_recorder import RecordingError, ToolRecorder, ToolReplayer

Search = Callable[[dict[str, Any]], Any]
LIMIT = 20

# --- the agent: from one checkpoint to the next

START = replace(
    checkpoint_store.START,
    run_id="run_xyz789",
    messages=[{"role": "user", "content": "What is your refund policy?"}],
    state={"query": "refund policy", "refuse_when_empty": False},
)


def next_step(now: Checkpoint, search: Search) -> Checkpoint:
    answer = answer_of(now)
    if answer is not None:
        return step_to(now, {"role": "assistant", "content": answer}, state={**now.state, "answer": answer})
    args = {"query": now.state["query"]}
    found = search(args)
    call = {"tool_name": "search_docs", "args": args, "result": found}
    state = {**now.state, "docs": found["docs"]}
    return step_to(now, {"role": "tool", "content": found}, state=state, tool_calls=[*now.tool_calls, call])


def answer_of(now: Checkpoint) -> str | None:
    """None while the agent goes on searching."""
    docs = now.state.get("docs")
    if docs:
        return str(docs[0])
    if docs is not None and now.state["refuse_when_empty"]:
        return f"I don't have any documents about the {now.state['query']}. Please ask our support team."
    return f"(gave up after {LIMIT} searches)" if len(now.tool_calls) == LIMIT else None


def run_on(store: CheckpointStore, now: Checkpoint, search: Search) -> None:
    """Go on to the answer; every step is saved."""
    while "answer" not in now.state:
        now = next_step(now, search)
        store.save_checkpoint(now)


def record_incident(store: CheckpointStore, folder: Path) -> None:
    recorder = ToolRecorder()

    def search_docs(args: dict[str, Any]) -> Any:
        found: dict[str, Any] = {"docs": [], "count": 0}
        recorder.record("search_docs", args, found)
        return found

    run_on(store, START, search_docs)
    recorder.save(START.run_id, folder)


# --- time travel


def go_on_from(store: CheckpointStore, step: int, changes: dict[str, Any], folder: Path) -> str:
    """Go on behind a step of the incident, as a run of its own whose id is returned; with changes it is a fork."""
    origin = store.load_checkpoint(START.run_id, f"step_{step}")
    run_id = f"{START.run_id}_{'fork' if changes else 'resumed'}_{step}"
    for passed in store.step_ids(START.run_id)[: step - 1]:
        store.save_checkpoint(replace(store.load_checkpoint(START.run_id, passed), run_id=run_id))
    now = replace(origin, run_id=run_id, state={**origin.state, **changes})
    store.save_checkpoint(now)
    replayer = ToolReplayer(START.run_id, folder)
    for call in origin.tool_calls:
        # Answered before the run goes on.
        replayer.replay(call["tool_name"], call["args"])
    run_on(store, now, lambda args: replayer.replay("search_docs", args))
    return run_id


def events(store: CheckpointStore, run_id: str) -> list[str]:
    """What the agent did in each step, in words."""
    return [did(store.load_checkpoint(run_id, step_id)) for step_id in store.step_ids(run_id)]


def did(now: Checkpoint) -> str:
    message = now.messages[-1]
    if message["role"] == "assistant":
        return f"answered {message['content']}"
    return f"search_docs({json.dumps(now.tool_calls[-1]['args'])}) -> {json.dumps(message['content'])}"


def first_difference(left: list[str], right: list[str]) -> int | None:
    """The first step, from 1, in which two runs did different things."""
    pairs = enumerate(zip_longest(left, right), start=1)
    return next((step for step, (one, other) in pairs if one != other), None)


# --- the command


def show(store: CheckpointStore, step: int, changes: dict[str, Any], folder: Path) -> None:
    print(f"Behind step {step}, {f'with {json.dumps(changes)}' if changes else 'with nothing changed'}:")
    try:
        run_id = go_on_from(store, step, changes, folder)
    except (CheckpointMissing, RecordingError) as error:
        print(f"  It cannot go on. {error}")
        return
    before, after = events(store, START.run_id), events(store, run_id)
    part = first_difference(before, after)
    print(f"  {run_id}, {len(after)} steps, {'the same run' if part is None else f'parts at step {part}'}")
    print(f"  {after[-1]}")


def main(store: CheckpointStore, step: int | None, changes: dict[str, Any], folder: Path) -> None:
    record_incident(store, folder)
    first, *_, last = events(store, START.run_id)
    print(f"{START.run_id}, {len(store.step_ids(START.run_id))} steps\n  {first}\n  ...\n  {last}")
    if step is not None:
        show(store, step, changes, folder)
    else:
        show(store, 18, {}, folder)
        show(store, 1, {"refuse_when_empty": True}, folder)


def assignment(text: str) -> tuple[str, Any]:
    key, _, value = text.partition("=")
    return key, json.loads(value)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Resume or fork a recorded run.")
    parser.add_argument("--from", type=int, dest="step", metavar="STEP", help="the step to go back to")
    parser.add_argument("--set", type=assignment, action="append", default=[], metavar="KEY=JSON", help="a change")
    given = parser.parse_args()
    if given.set and given.step is None:
        parser.error("--set needs --from")
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder)) as store:
        main(store, given.step, dict(given.set), Path(folder))
