"""Use cases: transactions and the order of work."""
