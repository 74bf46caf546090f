"""The files of an exported golden that are the same for each of them."""

from __future__ import annotations

TEST_FILE = '''"""Goldens: recorded scenes that the agent of today has to pass. This file is the same in every export.

    pip install pytest ./replay_recorder ./replay_goldens     # folders of the server's checkout
    pytest --golden-agent shop:agent

No server, no key and no network is needed: the model's answers come from the recordings beside this file.
"""

import pytest
from replay_goldens.playing import goldens_in
from replay_goldens.pytest_plugin import assert_holds


@pytest.mark.parametrize("golden", goldens_in(__file__), ids=str)
def test_golden(golden, golden_agent):
    assert_holds(golden, golden_agent)
'''

READ_ME = """# Goldens

Each is a recorded scene with checks (`goldens.json`, `recordings/`). In the environment of the agent:

    pip install pytest
    pip install ./replay_recorder ./replay_goldens     # folders of the server's checkout
    pytest --golden-agent shop:agent

`shop:agent` is a module and a name in it, as for `replay-recorder replay --agent`. Leave it out where the goldens name
theirs. Tools run only in goldens that say so (`"tools": "run"`); then their HTTP is answered from the recording.
"""
