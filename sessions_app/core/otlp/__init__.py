"""OTLP: what exporters send, byte by byte. Source: opentelemetry.io, OTLP specification 1.9."""
