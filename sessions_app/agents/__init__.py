"""Running rebuilt agents. The only place that imports Pydantic AI, and only inside the child process.

`sandbox` is the parent's side and imports nothing of it.
"""
