"""One module for each convention of writing an agent's work into spans.

Each has `read(span) -> Reading | None`, None when the span holds nothing of its convention. Which ones speak is decided
by what the span holds and never by the name of a product.
"""
