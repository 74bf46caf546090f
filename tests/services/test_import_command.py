"""`manage.py import`: one line for each run, the error with file and field."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from sessions_app.models import Run
from tests.builders import EXAMPLES, make_project, make_record, make_tool_step

pytestmark = pytest.mark.django_db


@pytest.fixture
def shop():
    return make_project()


def write(folder, name, content):
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return str(file)


def run_import(*arguments):
    out, err = StringIO(), StringIO()
    failed = None
    try:
        call_command("import", *arguments, stdout=out, stderr=err)
    except CommandError as error:
        failed = str(error)
    return out.getvalue().splitlines(), err.getvalue().splitlines(), failed


def test_each_stored_run_is_a_line_with_its_verdict(shop, tmp_path):
    batch = write(tmp_path, "two.json", {"runs": [make_record("r1", make_tool_step(result=1)), make_record("r2")]})

    out, err, failed = run_import(batch, str(EXAMPLES / "r_8821.json"))

    assert (err, failed) == ([], None)
    assert out == [f"{run_id}  {Run.objects.get(run_id=run_id).verdict}" for run_id in ("r1", "r2", "r_8821")]
    assert run_import(batch)[0][0].endswith("(already stored)")


def test_a_refused_file_is_named_with_its_field_and_the_others_are_stored(shop, tmp_path):
    bad = write(tmp_path, "bad.json", make_record("r", {"kind": "guess"}))
    good = write(tmp_path, "good.json", make_record("r1"))

    out, err, failed = run_import(bad, good, str(tmp_path / "none.json"))

    assert len(out) == 1
    assert err[0].startswith(f"{bad}: ")
    assert "steps[0].kind" in err[0]
    assert err[1].endswith("none.json: No such file or directory")
    assert failed == "2 of 3 files were not stored."


def test_recorded_text_does_not_steer_the_terminal(shop, tmp_path):
    out, _, _ = run_import(write(tmp_path, "a.json", make_record("r\u202e1")))

    assert out[0].startswith("r\ufffd1  ")


def test_the_project_has_to_be_said_where_there_are_several(shop, tmp_path):
    make_project("other")
    file = write(tmp_path, "a.json", make_record("r1"))

    assert run_import(file)[2] == "Say which project with --project; there are: other, shop."
    assert run_import(file, "--project", "nope")[2] == "Say which project with --project; there are: other, shop."
    assert run_import(file, "--project", "other")[2] is None
    assert Run.objects.get().project.slug == "other"
