"""What was done twice, left out, skipped or only claimed, and in which order."""
