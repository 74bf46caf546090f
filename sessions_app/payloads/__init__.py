"""Stored bytes: in the database up to a size, in the blob folder above it."""
