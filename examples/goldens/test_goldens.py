"""Goldens: recorded scenes that the agent of today has to pass. This file is the same in every export.

    pytest --golden-agent shop:agent     # README.md says what to install

No server, no key and no network is needed: the model's answers come from the recordings beside this file.
"""

import pytest

from replay_goldens.playing import ExportedGolden, goldens_in
from replay_goldens.pytest_plugin import assert_holds


@pytest.mark.parametrize("golden", goldens_in(__file__), ids=str)
def test_golden(golden: ExportedGolden) -> None:
    assert_holds(golden)
