"""`make audit`: what it says and how it ends; that nothing was found is said only of what was looked up."""

import json
import subprocess
import sys

import pytest

CLEAN = {"name": "celery", "version": "5.6", "vulns": []}
KNOWN = {"name": "redis", "version": "6.2", "vulns": [{"id": "PYSEC-2026-1", "fix_versions": ["6.3"]}]}
UNKNOWN = {"name": "vine", "skip_reason": "Dependency not found on PyPI and could not be audited: vine (5.1.0)"}


@pytest.fixture
def audit(tmp_path):
    """Runs it with a pip-audit that prints this of each lock file."""
    program = tmp_path / "pip-audit"

    def run(*printed, locks=("a.lock",)):
        program.write_text(f"#!{sys.executable}\nimport sys\nprint({_text(printed)!r})\n")
        program.chmod(0o755)
        done = subprocess.run([sys.executable, ".ci/audit", program, *locks], capture_output=True, text=True)
        return done.returncode, done.stdout

    return run


def _text(printed):
    return json.dumps({"dependencies": printed}) if printed else "no connection"


@pytest.mark.parametrize(
    ("packages", "code", "words"),
    [
        ([CLEAN], 0, "a.lock: 1 packages audited, 0 with known vulnerabilities"),
        ([CLEAN, KNOWN], 1, "a.lock: redis 6.2: PYSEC-2026-1, fixed in 6.3"),
        ([CLEAN, UNKNOWN], 2, "a.lock: 1 of 2 packages NOT AUDITED, no advisory data could be had: vine"),
        ([KNOWN, UNKNOWN], 2, "a.lock: redis 6.2: PYSEC-2026-1, fixed in 6.3"),
        ([], 2, "a.lock: NOT AUDITED. The advisory data could not be had."),
    ],
)
def test_an_audit_says_what_was_looked_up_and_what_was_not(audit, packages, code, words):
    ended, said = audit(*packages)

    assert ended == code
    assert words in said


def test_the_worst_of_several_files_counts(audit):
    ended, said = audit(CLEAN, KNOWN, locks=("a.lock", "b.lock"))

    assert ended == 1
    assert "a.lock: redis" in said
    assert "b.lock: redis" in said
