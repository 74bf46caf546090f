"""Golden traces: a recorded scene, what a run of it must hold, and what came of playing it again."""
