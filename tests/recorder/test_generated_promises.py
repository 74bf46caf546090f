"""What the judge says of runs that nobody thought of, their replays keep.

`TRIAL_SIZE=full` tries twenty times as many.
"""

from __future__ import annotations

import json
import os
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from sessions_app.core.errors import RecordError
from sessions_app.core.formats.native import parse_native
from sessions_app.core.judge.verdict import Verdict, judge
from tests.recorder import replaying
from tests.recorder.generated_runs import Script, cut, scripts, without_a_field
from tests.recorder.replaying import assert_promise_kept, replayed

TIMES = 20 if os.environ.get("TRIAL_SIZE") == "full" else 1
ALONE = [HealthCheck.too_slow, HealthCheck.data_too_large]


def trying(examples: int) -> settings:
    """The same ones each time, so that a failure is one of the change that is tested."""
    return settings(
        max_examples=examples * TIMES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate, Phase.shrink] if TIMES > 1 else [Phase.explicit, Phase.generate],
        suppress_health_check=ALONE,
    )


@trying(40)
@given(scripts())
def test_a_whole_run_ends_as_it_was_judged(script: Script):
    assert_promise_kept(script.record())


@trying(15)
@given(scripts(), st.randoms(use_true_random=False))
def test_a_run_that_was_cut_ends_as_it_was_judged(script: Script, random: Random):
    assert_promise_kept(json.dumps(cut(json.loads(script.record()), random)).encode())


@trying(15)
@given(scripts(), st.randoms(use_true_random=False))
def test_a_run_without_one_of_its_fields_is_never_more_than_it_was_judged(script: Script, random: Random):
    record = json.dumps(without_a_field(json.loads(script.record()), random)).encode()
    try:
        judged = judge(parse_native(record))
    except RecordError:
        assume(False)  # refused when it comes in

    result, _ = replayed(record)

    assert (result.verdict == "could_not_run") == (judged.verdict == "cold")
    assert result.verdict != "reproduced" or judged.verdict == "replayable"


# --- the check is checked ----------------------------------------------------------------------

ONE_CALL = Script(answers=((("call", "echo", {"value": 1}, "c0"),), (("text", "Done."),)))
FORGED = {
    "cold": Verdict(verdict="cold"),
    "to an earlier step": Verdict(verdict="replayable_to_step", step=1),
    "to its end": Verdict(verdict="replayable_to_step", step=3),
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_a_forged_verdict_is_caught(monkeypatch: pytest.MonkeyPatch, forged: Verdict):
    record = ONE_CALL.record()
    assert assert_promise_kept(record).verdict == "replayable"

    monkeypatch.setattr(replaying, "judge", lambda run: forged)

    with pytest.raises(AssertionError):
        assert_promise_kept(record)


def test_a_forged_promise_of_the_whole_run_is_caught(monkeypatch: pytest.MonkeyPatch):
    record = json.dumps({**json.loads(ONE_CALL.record()), "output": None}).encode()
    assert assert_promise_kept(record).verdict == "replayable_to_step"

    monkeypatch.setattr(replaying, "judge", lambda run: Verdict(verdict="replayable"))

    with pytest.raises(AssertionError):
        assert_promise_kept(record)
