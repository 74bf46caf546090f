"""Which version of the product this is; pyproject.toml says the same, and is not installed with the code."""

VERSION = "0.1.0"
API_VERSION = "1"
