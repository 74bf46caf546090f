"""docs/api.md: its examples run as they are printed, and its table has every code."""

import json
import os
import re
import subprocess
from pathlib import Path

from sessions_app.api import errors

PAGE = Path("docs/api.md").read_text()
BLOCKS = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
CODES = re.compile(r'(?:Refused|answer|refusal)\(\s*(?:request, )?(\d{3}), "([a-z_]+)"')


def codes_in_the_code():
    folder = Path(errors.__file__).parent
    # The addresses for spans are no part of this API.
    files = [path for path in folder.glob("*.py") if not path.name.startswith("otlp")]
    of_bodies_that_are_no_json = {(400, "bad_request")}  # the status is ninja's
    found = {(int(status), code) for path in files for status, code in CODES.findall(path.read_text())}
    return found | of_bodies_that_are_no_json


def codes_in_the_table():
    rows = re.findall(r"^\| (\d{3}) \| (.*?) \|", PAGE, re.MULTILINE)
    return {(int(status), code) for status, codes in rows for code in re.findall(r"`(\w+)`", codes)}


def test_the_table_has_every_code():
    assert len(codes_in_the_code()) > 15
    assert codes_in_the_table() == codes_in_the_code()


def printed_by(instance, folder):
    """What each block printed."""
    script = "set -euo pipefail\n" + "\necho =====\n".join(BLOCKS)
    environment = {**os.environ, "REPLAY_URL": instance.url, "REPLAY_KEY": instance.api_key}
    done = subprocess.run(["bash", "-c", script], env=environment, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split("=====\n")


def test_the_examples_run_as_they_are_printed(running_instance, tmp_path):
    _, who, sent, verdict, runs, changed, refused, again, head = printed_by(running_instance, tmp_path)

    assert '"scope":"full"' in who
    assert '"api":"1"' in who
    assert json.loads(sent)["verdict"]["verdict"] == "replayable"
    assert verdict == "reproduced\n"
    assert len(json.loads(runs)["items"]) == 1
    replays = {item["replay_id"]: item for item in json.loads(changed)["items"]}
    assert replays[again.strip()]["changed_at"] is not None
    assert json.loads(refused) == json.loads(re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)[0])
    assert "x-request-id: docs-1" in head.lower()
    assert "content-encoding: gzip" in head.lower()
