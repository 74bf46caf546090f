"""Exports of other products in, spans out that carry that product's own attributes."""
