"""Spans as OpenTelemetry means them, and what they say of an agent's work."""
