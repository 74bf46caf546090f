"""Which folders the wheel holds; pyproject.toml says the rest."""

from setuptools import find_packages, setup

CODE = ("replay_web", "sessions_app", "replay_recorder", "replay_goldens")
INSIDE = {"replay_web.templates": "templates", "replay_web.static": "static"}
"""Pages and their files lie beside the packages in a checkout, and inside of one in the wheel."""

setup(
    packages=[*find_packages(include=[f"{name}{below}" for name in CODE for below in ("", ".*")]), *INSIDE],
    package_dir=INSIDE,
    package_data={
        **{name: ["**/*"] for name in INSIDE},
        # The parts that are distributions of their own bring what their wheels are made of.
        "": ["*.json", "*.zstd", "*.md", "py.typed", "pyproject.toml"],
    },
)
