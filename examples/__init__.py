"""Runnable samples; README.md lists them."""
