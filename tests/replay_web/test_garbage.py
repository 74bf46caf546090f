"""What a long-lived process has loaded is not looked at by the garbage collector again."""

import json
import subprocess
import sys

import pytest

PRINTED = "import gc, json; print(json.dumps([gc.get_freeze_count(), gc.get_threshold()[0]]))"


def collector_after(code: str) -> tuple[int, int]:
    """Frozen objects, and how many new ones are waited for, in a process that ran this."""
    ran = subprocess.run([sys.executable, "-c", f"{code}\n{PRINTED}"], capture_output=True, text=True, check=True)
    frozen, threshold = json.loads(ran.stdout.splitlines()[-1])
    return frozen, threshold


def test_a_process_as_python_starts_it_has_frozen_nothing():
    assert collector_after("")[0] == 0


@pytest.mark.parametrize("code", ["from replay_web import garbage\ngarbage.settle()", "import replay_web.wsgi"])
def test_what_was_loaded_is_frozen(code):
    frozen, threshold = collector_after(code)

    assert frozen > 1_000
    assert threshold > 700
