"""Static files under names that carry a hash of their contents."""

from whitenoise.storage import CompressedManifestStaticFilesStorage


class HashedStaticFilesStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # it has no types
    """Also rewrites the imports between our ES modules, which name each other's files."""

    support_js_module_import_aggregation = True
