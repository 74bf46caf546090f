"""What a replay needs to know, what it saw, and what follows from it. The loop itself is in `agents`."""
