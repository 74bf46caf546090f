"""What answers and tools say, in whatever words and languages; nothing here finds anything."""
