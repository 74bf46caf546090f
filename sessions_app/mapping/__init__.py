"""Rows to domain objects and back."""
