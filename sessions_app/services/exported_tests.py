"""The files of an exported golden that are the same for each of them."""

from __future__ import annotations

TEST_FILE = '''"""Goldens: recorded scenes that the agent of today has to pass. This file is the same in every export.

    pytest --golden-agent shop:agent     # README.md says what to install

No server, no key and no network is needed: the model's answers come from the recordings beside this file.
"""

import pytest

from replay_goldens.playing import ExportedGolden, goldens_in
from replay_goldens.pytest_plugin import assert_holds


@pytest.mark.parametrize("golden", goldens_in(__file__), ids=str)
def test_golden(golden: ExportedGolden) -> None:
    assert_holds(golden)
'''

READ_ME = """# Goldens

Each is a recorded scene with checks (`goldens.json`, `recordings/`). In the environment of the agent:

    pip install pytest SERVER/packages/RECORDER SERVER/packages/GOLDENS
    pytest --golden-agent shop:agent

`SERVER` is the address of the server that this folder comes from; it is not needed any more once these are installed.

`shop:agent` is a module and a name in it, as for `replay-recorder replay --agent`. Leave it out where the goldens name
theirs. Tools run only in goldens that say so (`"tools": "run"`); then their HTTP is answered from the recording.

Tests of your own stand beside this file, and look at what the agent does in the scene step by step:

    from replay_goldens.events import events_beside

    load_events = events_beside(__file__)

    def test_empty_docs_no_loop():
        events = load_events("run_xyz789")
        assert sum(event.tool_name == "search_docs" for event in events) <= 3
        assert "don't have" in events[-1].output_state["answer"]

Each event has `tool_name`, `tool_args`, `tool_result`, `decision`, `input_state` and `output_state`.
`replay_recorder.ToolReplayer("run_xyz789")` answers your tools from `recordings/`; `replay_goldens.sessions` makes a
`FunctionModel` of a recording, `replay_goldens.cassettes` a cassette for vcrpy.
"""
