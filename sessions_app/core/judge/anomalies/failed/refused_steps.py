"""Calls that were refused or came to nothing, as their answers say in passing: a state, an exit code, a line of text.

They are counted as failed like those that ended in an error. Whether the answer had to tell of them is another
question: a search may well exit with 1.
"""

from __future__ import annotations

import re
from http import HTTPStatus

from sessions_app.core.judge.anomalies.reading.lookups import looks_up
from sessions_app.core.judge.anomalies.reading.told_states import says_not_done, says_refused
from sessions_app.core.judge.anomalies.reading.vocabulary import HAS_FAILED, IS_ERROR
from sessions_app.core.judge.reading import leaves, object_of, text_of, value_of
from sessions_app.core.run import Step, ToolCall


def came_to_nothing(step: Step, call: ToolCall) -> bool:
    if call.outcome == "denied" or says_error(call):
        return True
    return not looks_up(step, call) and (
        says_failed(call) or says_refused(call) or says_not_done(call) is not None or _exited(call)
    )


_LINE = 300
"""Characters; more than that is a document."""
_STATUS = re.compile(r"(?:HTTP(?:/[\d.]+)? )?([45]\d\d)[ :]+(\w[\w ]*)")
_PHRASES = {str(status.value): status.phrase.lower() for status in HTTPStatus}


def says_error(call: ToolCall) -> bool:
    """A line of text and nothing else: `Error: …`, or a status of HTTP with its phrase."""
    if call.result is None or len(call.result.content) > _LINE:
        return False
    text = (text_of(call.result) or "").strip()
    if "\n" in text:
        return False
    status = _STATUS.match(text)
    is_status = status is not None and status[2].lower().startswith(_PHRASES.get(status[1], "\n"))
    return is_status or IS_ERROR.match(text) is not None


def says_failed(call: ToolCall) -> bool:
    """A line of text whose first words say so: `Upload failed: …`."""
    if call.result is None or len(call.result.content) > _LINE:
        return False
    text = (text_of(call.result) or "").strip()
    return "\n" not in text and HAS_FAILED.match(text) is not None


_CODES = ("exit_code", "exitcode", "exit_status", "returncode", "return_code")
_EXITED = re.compile(
    r"^\W*(?:process )?exit(?:ed)?(?: with)?(?: code| status)?\s*[:= ]\s*[1-9]\d*\W*$", re.IGNORECASE | re.MULTILINE
)


def _exited(call: ToolCall) -> bool:
    """With another code than 0, in the first or in the last lines."""
    if _found_no_match(call):
        return False
    told = object_of(call.result)
    if told:
        return any(isinstance(code := told.get(key), int) and code != 0 for key in _CODES)
    text = text_of(call.result) or ""
    return any(_EXITED.search(part) for part in {text[:_LINE], text[-_LINE:]})


_COMPARES = re.compile(
    r"(?:^|[;&|(]\s*|\s)(?:(?:git\s+)?(?:e|f|z|rip)?grep|rg|ag|ack|pgrep|git\s+diff|diff|cmp|test|\[)\s"
)
_SILENT_EXIT = re.compile(
    r"\W*(?:\(?no output\)?)?\W*(?:process )?exit(?:ed)?(?: with)?(?: code| status)?\s*[:= ]\s*1\W*", re.IGNORECASE
)


def _found_no_match(call: ToolCall) -> bool:
    """`grep` and its like exit with 1 where nothing matches, and say nothing; a fault has words or another code."""
    commands = [item for _, item in leaves(value_of(call.arguments)) if isinstance(item, str)]
    if not any(_COMPARES.search(each[:_LINE]) for each in commands):
        return False
    told = object_of(call.result)
    if not told:
        return _SILENT_EXIT.fullmatch((text_of(call.result) or "")[:_LINE]) is not None
    codes = [told[key] for key in _CODES if key in told]
    return codes == [1] and not any(isinstance(item, str) and item.strip() for item in told.values())
