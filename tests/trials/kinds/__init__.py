"""All kinds of mutants: importing a module puts its kinds into the list."""

from tests.trials.kinds import (  # noqa: F401  # for what they put there
    answers,
    calls,
    model_answers,
    outcomes,
    registered,
    requests,
    saved,
    steps,
    surroundings,
)
from tests.trials.mutants import KINDS, SAVED_KINDS

__all__ = ["KINDS", "SAVED_KINDS"]
