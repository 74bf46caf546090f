"""Conversations that the provider keeps: what no request carried is named, and never called proven."""

from typing import Any

import pytest

from sessions_app.core.formats.native import parse_native
from sessions_app.core.judge.kit import audit_kit
from sessions_app.core.replay.proof import read_proof
from tests.recorder.openai_playing import WAYS, bytes_of, one_record
from tests.recorder.openai_provider import calls, provider, says
from tests.recorder.openai_scenarios import LOOKUP, agent, lookup
from tests.recorder.replaying import replayed

RESPONSE = "what was said up to the answer resp_0 stayed with the provider, and no request carried it"
CONVERSATION = "what was said before in the conversation conv_1 stayed with the provider, and no request carried it"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"previous_response_id": "resp_0"}, RESPONSE),
        ({"previous_response_id": "resp_0", "auto_previous_response_id": True}, RESPONSE),
        ({"conversation_id": "conv_1"}, CONVERSATION),
        ({"auto_previous_response_id": True}, None),
        ({}, None),
    ],
)
def test_what_the_provider_kept_is_named(way: str, options: dict[str, Any], words: str | None):
    with provider() as found:
        found.will_answer(calls(LOOKUP), says("Shipped."))
        made = agent(found, tools=[lookup], model=found.responses)
        record = bytes_of(one_record(lambda: WAYS[way](made, **options)))
    result, _ = replayed(record)
    proof = read_proof(result.facts["proof"])

    assert proof is not None
    assert result.verdict == "reproduced"
    requests = proof.parts["requests"]
    assert requests.reason == (None if words is None else f"the requests agree; {words}")
    assert requests.state == ("proven" if words is None else "not_comparable")
    line = next(each for each in audit_kit(parse_native(record)).rows if each.key == "history_turns")
    assert line.captured == ("yes" if words is None else "partial")
    assert (words or "from the first message on") in line.detail
