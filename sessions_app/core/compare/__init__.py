"""Two runs side by side: what agrees, what differs, and where they part."""
