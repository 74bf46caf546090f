"""Going on from a step with one thing changed: what may be changed, what is expected, where answers came from."""
