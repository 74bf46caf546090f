"""What must not stand in a log: a share link's address is its secret."""

import logging
import re

_TOKEN = re.compile(r"(/shared/)[\w-]+")


class MaskShareTokens(logging.Filter):
    """Django names the path of every request that failed; of a shared page only its beginning is kept."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = _TOKEN.sub(r"\1…", record.getMessage()), None
        return True
