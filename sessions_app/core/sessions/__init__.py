"""What is known of all runs of a session together."""
