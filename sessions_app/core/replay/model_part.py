"""What a replay shows of the model that was asked and of the settings of its requests."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sessions_app.core.replay.observed import ObservedRequest
from sessions_app.core.replay.proof import PROVEN, TAKEN, Part, not_comparable


def model_part(requests: Sequence[ObservedRequest], not_captured: Collection[str]) -> Part:
    """A rebuilt agent has both from the recording; the team's code says them itself. A difference has a place of its
    own."""
    if all(request.asked is None for request in requests):
        return not_comparable(TAKEN)
    if "model" in not_captured:
        return not_comparable("which model was called is not known on both sides")
    if "settings" in not_captured:
        return not_comparable("the settings of the model were not recorded")
    untold = untold_fields(not_captured, "settings.")
    return not_comparable(f"settings that the recording does not show: {untold}") if untold else PROVEN


def untold_fields(not_captured: Collection[str], prefix: str) -> str:
    """Names of fields that the recording lacks; what is missing inside of them is told elsewhere."""
    names = (path.removeprefix(prefix) for path in not_captured if path.startswith(prefix))
    return ", ".join(sorted(name for name in names if not {".", "["} & {*name}))
