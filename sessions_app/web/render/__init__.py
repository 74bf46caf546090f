"""How recorded things are shown. Tolerant on purpose: whatever was recorded can be looked at.

Nothing here knows the library that wrote a record, and nothing here makes HTML: templates escape.
"""
