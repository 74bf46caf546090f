"""The recorder comes from the server that it sends to."""

import email
import re
import subprocess
import sys
import venv
import zipfile
from io import BytesIO
from urllib.parse import urlsplit

import pytest
from django.test import Client

from sessions_app.services.client_wheels import wheel, wheel_names
from tests.recorder import test_install_package

pytestmark = pytest.mark.django_db
built = test_install_package.wheel


@pytest.mark.parametrize("way", ["pydantic-ai", "openai-agents", "langgraph", "recorder"])
def test_setup_names_an_address_that_is_served_to_anybody(bob, way):
    page = bob.get(f"/p/shop/setup?tab={way}").content.decode()

    [address] = set(re.findall(r"pip install (http://testserver/packages/\S+\.whl)", page))
    answer = Client().get(urlsplit(address).path)

    assert answer.status_code == 200
    assert answer["Content-Disposition"].endswith('.whl"') or ".whl" in answer["Content-Disposition"]
    assert zipfile.ZipFile(BytesIO(answer.content)).testzip() is None


def test_other_names_are_not_found(client):
    assert client.get("/packages/replay_recorder-9.9.9-py3-none-any.whl").status_code == 404
    assert client.get("/packages/..%2Fmanage.py").status_code == 404


def test_it_is_what_setuptools_makes_of_the_same_folder(built):
    theirs, ours = zipfile.ZipFile(built), zipfile.ZipFile(BytesIO(wheel("replay_recorder")))
    metadata = next(name for name in ours.namelist() if name.endswith("METADATA"))
    said, expected = (email.message_from_bytes(each.read(metadata)) for each in (ours, theirs))

    assert {name: ours.read(name) for name in ours.namelist() if ".dist-info/" not in name} == {
        name: theirs.read(name) for name in theirs.namelist() if ".dist-info/" not in name
    }
    for field in ("Name", "Version", "Summary", "License-Expression", "Requires-Python", "Description-Content-Type"):
        assert said[field] == expected[field]
    points = metadata.replace("METADATA", "entry_points.txt")
    assert ours.read(points).decode().split() == theirs.read(points).decode().split()


def test_pip_installs_both(tmp_path):
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    files = []
    for name, package in wheel_names().items():
        files.append(tmp_path / name)
        files[-1].write_bytes(wheel(package))
    install = ["pip", "--python", tmp_path / "env/bin/python", "install", "--quiet", "--no-deps", "--no-index", *files]
    subprocess.run([sys.executable, "-m", *install], check=True)

    subprocess.run([tmp_path / "env/bin/replay-recorder", "--version"], check=True)
    code = f"import {', '.join(wheel_names().values())}"
    subprocess.run([tmp_path / "env/bin/python", "-I", "-c", code], check=True)
