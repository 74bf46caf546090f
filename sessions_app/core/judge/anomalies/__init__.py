"""What is odd about a run, found from the record alone. Every detector is linear in the steps."""
