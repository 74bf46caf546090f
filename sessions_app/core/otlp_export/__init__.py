"""A run as OTLP JSON in the GenAI conventions of OpenTelemetry, and such an export as a run again.

Source of the names: OpenTelemetry semantic conventions, GenAI, 1.37. What they have no words for stands under names of
our own, `agent_replay.…`, so that the run that is read back replays as the exported one does.
"""
