"""Answers that are missing, cut off or about an error."""
