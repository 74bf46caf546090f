"""From a run that is being recorded to a server that has it: files, locks, limits, sending."""
