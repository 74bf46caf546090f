"""From the spans of a trace to a run."""
