"""Tools without a framework: recorded, replayed from files, run once."""
