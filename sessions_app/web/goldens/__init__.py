"""The pages of goldens."""
