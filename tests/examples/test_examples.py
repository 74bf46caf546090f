"""Every example does what its first lines say, by its one command."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from replay_recorder.writing.assembly import assemble
from sessions_app.core.formats.detect import parse_document
from sessions_app.core.formats.native import parse_native
from sessions_app.core.run import Run
from sessions_app.core.state import state_after
from sessions_app.services.exported_tests import TEST_FILE
from tests.examples.running import EXAMPLES, Ran, files_beside, import_example, run_example, run_python
from tests.recorder.local_server import Answer, local_server


def recorded(recordings: list[Path]) -> Run:
    (path,) = recordings
    return parse_native(assemble(path.read_bytes()))


@pytest.fixture(scope="module")
def run_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Ran]:
    """`run_example`, where several tests look at what one run has left."""
    return cache(lambda command: run_example(tmp_path_factory.mktemp("example"), command))


@pytest.fixture(autouse=True)
def nothing_is_left_beside_the_examples() -> Iterator[None]:
    before = files_beside()
    yield
    assert files_beside() == before


def test_the_network_is_really_off(tmp_path: Path):
    done = run_python(tmp_path, "-c", "import urllib.request as r; r.urlopen('http://192.0.2.1', timeout=1)")

    assert "PermissionError: The example wants to reach 192.0.2.1." in done.stderr


def test_every_example_is_in_the_table():
    table = (EXAMPLES / "README.md").read_text()

    for example in EXAMPLES.glob("[a-z]*.py"):
        is_test = example.name.startswith("test_")
        command = f"pytest examples/{example.name}" if is_test else f"python -m examples.{example.stem}"
        assert command in table
        assert command in example.read_text().split('"""')[1]


# --- the graph


def test_the_graph_emits_an_event_for_each_step_and_repeats_its_states(run_once: Callable[[str], Ran]):
    ran = run_once("minimal_agent_graph.py")

    assert ran.status == 0, ran.errors
    assert [line.split("->")[0].strip() for line in ran.lines[1:5]] == ["plan", "search", "plan", "answer"]
    assert ran.lines[6:10] == ran.lines[1:5]
    assert ran.lines[10].startswith("The same states, and the same answer: Unused goods")


def test_the_graph_is_recorded_with_the_state_behind_each_step(run_once: Callable[[str], Ran]):
    run = recorded(run_once("minimal_agent_graph.py").recordings)

    assert (run.agent.name, run.agent.version, run.status) == ("docs_graph", "v1", "ok")
    assert [step.name for step in run.steps] == ["plan", "search_docs", "search", "plan", "answer"]
    states = [state_after(run, step.index) for step in run.steps]
    assert [state.get("decision") for state in states] == ["search", "search", "plan", "answer", "end"]
    assert states[-1]["answer"] == run.output.value


def test_a_changed_event_does_not_give_the_same_states(monkeypatch: pytest.MonkeyPatch):
    graph = import_example(monkeypatch, "minimal_agent_graph")
    events: list[Any] = []
    graph.DocsAgent({"search_docs": graph.search_docs}, events.append).run("May I return it?")
    lines = graph.dump(events)
    assert graph.replay(graph.load(lines)) == events

    changed = graph.replay(graph.load(lines.replace('"result": {"docs": ["Unused', '"result": {"docs": ["All')))

    assert [again == event for again, event in zip(changed, events, strict=True)] == [True, False, False, False]


# --- checkpoints


@pytest.fixture
def store_module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return import_example(monkeypatch, "checkpoint_store")


def make_checkpoint(store_module: ModuleType, number: int = 1, **fields):
    known = {
        "timestamp": datetime(2026, 2, 17, 14, 23, 1, 5, tzinfo=UTC),
        "messages": [{"role": "user", "content": "Wo ist ORD-1? 🙂"}],
        "tool_calls": [{"tool_name": "lookup", "args": {"id": "1"}, "result": None}],
        "model_config": {"model": "m", "settings": {"temperature": 0.2}},
        "state": {"a": [1, 1.5, True, None]},
        "agent_version": "v1",
    }
    return store_module.Checkpoint(run_id="run/1", step_id=f"step_{number}", step_number=number, **(known | fields))


def test_the_agent_goes_on_from_every_checkpoint(tmp_path: Path):
    ran = run_example(tmp_path, "checkpoint_store.py")

    assert ran.lines == [
        "The process ended in the middle of the run; the store holds step_1, step_2, step_3.",
        "Resumed behind step_1: check_stock -> quote_shipping -> book_courier",
        "Resumed behind step_2: quote_shipping -> book_courier",
        "Resumed behind step_3: book_courier",
        "4 checkpoints of 32 values are kept as 14 blobs.",
    ]


def test_the_server_reads_checkpoints_of_the_sample(store_module: ModuleType, tmp_path: Path):
    with store_module.open_store(tmp_path) as store:
        end = store_module.go_on(store, store_module.START)
    document = json.dumps(dataclasses.asdict(end), default=str).encode()

    run = parse_document(document)

    calls = [(call.tool_name, call.result.value) for _, call in run.tool_calls]
    assert (run.run_id, calls) == ("run_abc123", [(tool, "went well") for tool in store_module.TOOLS])
    assert state_after(run, len(run.steps)) == end.state


def test_a_checkpoint_that_was_saved_is_loaded_equal(store_module: ModuleType, tmp_path: Path):
    saved = [
        make_checkpoint(store_module),
        make_checkpoint(store_module, 2, messages=[], tool_calls=[], state=None),
    ]
    for checkpoint in saved:
        with store_module.open_store(tmp_path) as store:
            store.save_checkpoint(checkpoint)

    with store_module.open_store(tmp_path) as store:
        assert [store.load_checkpoint("run/1", step_id) for step_id in store.step_ids("run/1")] == saved
        with pytest.raises(store_module.CheckpointMissing, match="no checkpoint 'step_3'"):
            store.load_checkpoint("run/1", "step_3")


def test_a_longer_history_costs_its_new_messages_alone(store_module: ModuleType, tmp_path: Path):
    messages = [{"content": str(n)} for n in range(100)]
    with store_module.open_store(tmp_path) as store:
        store.save_checkpoint(make_checkpoint(store_module, 1, messages=messages))
        before = len(list(store.blob_store.folder.iterdir()))

        store.save_checkpoint(make_checkpoint(store_module, 2, messages=[*messages, {"content": "new"}]))
        added = len(list(store.blob_store.folder.iterdir())) - before
        store.save_checkpoint(make_checkpoint(store_module, 3, messages=[{"content": "rewritten"}, *messages[1:]]))

        assert added == 1
        assert store.load_checkpoint("run/1", "step_2").messages == [*messages, {"content": "new"}]
        assert store.load_checkpoint("run/1", "step_3").messages == [{"content": "rewritten"}, *messages[1:]]


def test_a_blob_that_was_changed_is_not_taken_for_the_real_one(store_module: ModuleType, tmp_path: Path):
    blobs = store_module.BlobStore(tmp_path)
    name, other = blobs.put({"status": "paid"}), blobs.put({"status": "open"})

    shutil.copy(tmp_path / other, tmp_path / name)

    with pytest.raises(ValueError, match="was changed"):
        blobs.get(name)


# --- tools, time travel, regression


def test_tools_are_replayed_with_the_network_off(tmp_path: Path):
    ran = run_example(tmp_path, "record_replay_tools.py")

    assert ran.lines == [
        "Recorded: Order ORD-5521 is cancelled.",
        "Replayed: Order ORD-5521 is cancelled.",
        "Recorded calls that nobody asked for: 0",
        "The real tools: the network is off",
        'Another order: Call 1 was recorded as lookup_order({"order_id": "ORD-5521"}), '
        'and lookup_order({"order_id": "ORD-9999"}) was asked for.',
    ]


def test_time_travel_resumes_and_forks(tmp_path: Path):
    ran = run_example(tmp_path, "time_travel.py")

    assert ran.lines == [
        "run_xyz789, 21 steps",
        '  search_docs({"query": "refund policy"}) -> {"docs": [], "count": 0}',
        "  ...",
        "  answered (gave up after 20 searches)",
        "Behind step 18, with nothing changed:",
        "  run_xyz789_resumed_18, 21 steps, the same run",
        "  answered (gave up after 20 searches)",
        'Behind step 1, with {"refuse_when_empty": true}:',
        "  run_xyz789_fork_1, 2 steps, parts at step 2",
        "  answered I don't have any documents about the refund policy. Please ask our support team.",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--from 3 --set refuse_when_empty=true", "  run_xyz789_fork_3, 4 steps, parts at step 4"),
        ("--from 20", "  run_xyz789_resumed_20, 21 steps, the same run"),
        ("--from 22", "  It cannot go on. Run 'run_xyz789' has no checkpoint 'step_22'."),
        ('--from 5 --set query="returns"', '  It cannot go on. Call 6 was recorded as search_docs({"query": "refund'),
    ],
)
def test_time_travel_goes_where_it_is_told(tmp_path: Path, arguments: str, said: str):
    ran = run_example(tmp_path, f"time_travel.py {arguments}")

    assert ran.lines[5].startswith(said)


def run_regression(folder: Path, examples: Path = EXAMPLES) -> tuple[int, str]:
    done = run_python(folder, "-m", "pytest", "-q", str(examples / "test_regression.py"))
    return done.returncode, done.stdout


def test_the_regression_tests_pass(tmp_path: Path):
    status, said = run_regression(tmp_path)

    assert (status, "5 passed" in said) == (0, True), said


def test_the_regression_tests_fail_when_an_agent_gets_worse(tmp_path: Path):
    examples = shutil.copytree(EXAMPLES, tmp_path / "examples", symlinks=False)
    agent = examples / "minimal_agent_graph.py"
    agent.write_text(agent.read_text().replace('"answer" if "docs" in state', '"answer" if state.get("docs")'))

    status, said = run_regression(tmp_path, examples)

    assert status == 1
    assert "test_regression.py::test_the_docs_agent_refuses_when_nothing_is_found" in said
    assert "1 failed, 4 passed" in said


@pytest.mark.parametrize(("agent", "outcome"), [("fixed", "3 passed"), ("as_it_was", "2 failed, 1 passed")])
def test_the_exported_goldens_pass_on_the_repaired_bot_alone(tmp_path: Path, agent: str, outcome: str):
    done = run_python(tmp_path, "-m", "pytest", "-q", "examples/goldens", GOLDEN_AGENT=f"examples.order_bot:{agent}")

    assert outcome in done.stdout, done.stdout + done.stderr
    assert "pytest examples/goldens" in (EXAMPLES / "README.md").read_text()


def test_the_goldens_beside_the_examples_have_the_test_file_of_every_export():
    assert (EXAMPLES / "goldens" / "test_goldens.py").read_text() == TEST_FILE


# --- OpenTelemetry


def test_spans_need_packages_and_say_which(tmp_path: Path):
    ran = run_example(tmp_path, "opentelemetry_spans.py", HIDE="opentelemetry.sdk")

    assert (ran.status, ran.lines) == (1, [])
    assert ran.errors == ("This example needs: pip install opentelemetry-sdk opentelemetry-exporter-otlp-json-http\n")


needs_opentelemetry = pytest.mark.skipif(
    find_spec("opentelemetry.sdk") is None or find_spec("opentelemetry.exporter") is None,
    reason="opentelemetry-sdk and opentelemetry-exporter-otlp-json-http are not installed",
)


@needs_opentelemetry
def test_spans_are_printed(tmp_path: Path):
    ran = run_example(tmp_path, "opentelemetry_spans.py")

    names = [line for line in ran.lines if not line.startswith(" ")]
    tries = ["execute_tool search_docs  (ERROR)", "execute_tool search_docs"]
    steps = ["retrieve_docs", "rerank", "chat scripted-1", "generate", "agent_run"]
    assert names == [*tries, *steps, "Answer: Unused goods can be returned within 30 days."]


@needs_opentelemetry
def test_spans_arrive_as_otlp_json_with_the_retry_linked_to_the_failed_attempt(tmp_path: Path):
    with local_server() as server:
        server.answer("/v1/traces", Answer(b"{}", headers={"Content-Type": "application/json"}))
        ran = run_example(tmp_path, "opentelemetry_spans.py", REPLAY_URL=server.url, REPLAY_KEY="rpk_1")

    (request,) = server.received
    headers = {name.lower(): value for name, value in request.headers.items()}
    assert (request.path, headers["authorization"]) == ("/v1/traces", "Bearer rpk_1")
    (resource,) = json.loads(request.body)["resourceSpans"]
    spans = resource["scopeSpans"][0]["spans"]
    failed, again = (span for span in spans if span["name"] == "execute_tool search_docs")
    assert [link["spanId"] for link in again["links"]] == [failed["spanId"]]
    assert [event["name"] for event in failed["events"]] == ["exception"]
    assert {"success", "error", "duration_ms"} <= {each["key"] for each in failed["attributes"]}
    assert {"success", "result_size", "duration_ms"} <= {each["key"] for each in again["attributes"]}
    assert "arrived" not in "".join(ran.lines)


@needs_opentelemetry
def test_spans_that_nobody_takes_are_said_to_be_lost(tmp_path: Path):
    with local_server() as server:
        ran = run_example(tmp_path, "opentelemetry_spans.py", REPLAY_URL=server.url)

    assert ran.status == 0
    assert "404" in ran.errors


# --- the bots


def test_the_order_bot_cancels_what_cannot_be_cancelled(run_once: Callable[[str], Ran]):
    ran = run_once("order_bot.py")

    assert ran.lines[:4] == [
        "Asked:     Cancel order ORD-5521, changed my mind",
        "Called:    lookup_order, cancel_order",
        "Answered:  Order ORD-5521 is cancelled. Reason: changed my mind.",
        "The order: delivered before, cancelled after",
    ]


def test_the_recording_of_the_order_bot_holds_the_bug(run_once: Callable[[str], Ran]):
    run = recorded(run_once("order_bot.py").recordings)

    results = {call.tool_name: call.result.value for _, call in run.tool_calls}
    assert results["lookup_order"] == "Order ORD-5521: Widget Pro, delivered, non-cancellable"
    assert results["cancel_order"] == "Order ORD-5521 is cancelled. Reason: changed my mind."
    states = [state_after(run, step.index)["orders"]["ORD-5521"]["status"] for step in run.steps[2:]]
    assert states == ["delivered", "delivered", "delivered", "cancelled", "cancelled"]


def test_the_fixed_order_bot_leaves_the_order_alone(tmp_path: Path):
    ran = run_example(tmp_path, "order_bot.py --fixed")

    assert ran.lines[2:4] == [
        "Answered:  Order ORD-5521 cannot be cancelled: it is delivered.",
        "The order: delivered before, delivered after",
    ]
    assert recorded(ran.recordings).agent.version == "v2"


def test_the_docs_bot_searches_twenty_times_and_gives_up(run_once: Callable[[str], Ran]):
    ran = run_once("docs_bot.py")

    run = recorded(ran.recordings)
    assert ran.lines[1] == "Gave up:  The next request would exceed the request_limit of 20"
    assert [(call.tool_name, call.result.value) for _, call in run.tool_calls] == [
        ("search_docs", {"docs": [], "count": 0})
    ] * 20
    assert (run.status, run.error.type) == ("error", "UsageLimitExceeded")


def test_the_fixed_docs_bot_searches_once_and_refuses(tmp_path: Path):
    ran = run_example(tmp_path, "docs_bot.py --fixed")

    answer = "I don't have any documents about refund policy. Please ask our support team."
    assert ran.lines[1] == f"Answered: {answer} (tool calls: 1)"
    assert len(recorded(ran.recordings).tool_calls) == 1


@pytest.mark.parametrize("command", ["order_bot.py", "docs_bot.py", "minimal_agent_graph.py"])
def test_the_printed_command_shows_the_recording(run_once: Callable[[str], Ran], tmp_path: Path, command: str):
    printed = run_once(command).lines[-1]

    words = printed.partition("replay-recorder ")[2].split()
    done = run_python(tmp_path, "-m", "replay_recorder", *words)

    assert (done.returncode, "steps" in done.stdout) == (0, True), done.stderr


def test_a_bot_keeps_its_recording_where_it_is_told(tmp_path: Path):
    run_example(tmp_path, f"order_bot.py --folder {tmp_path / 'here'}")

    assert len(list((tmp_path / "here" / "ready").iterdir())) == 1
