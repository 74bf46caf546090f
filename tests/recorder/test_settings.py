"""Settings from arguments and the environment, and what is said of wrong ones."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import replay_recorder
from replay_recorder import settings as settings_module
from replay_recorder.settings import Settings, settings_from, state_folder
from replay_web.supervisor.home import PROJECT_ROOT


def test_arguments_come_before_variables_and_variables_before_defaults():
    environment = {"REPLAY_URL": "http://from.environment", "REPLAY_KEY": " rpk_1\n", "REPLAY_SAMPLE": "0.25",
                   "REPLAY_HTTP": "on", "REPLAY_SPOOL": "/srv/spool", "REPLAY_AGENT_VERSION": "v7"}  # fmt: skip

    found = settings_from(environment, url="https://given:8443", sample=None)

    assert found == Settings(
        url="https://given:8443", key="rpk_1", sample=0.25, http=True, spool=Path("/srv/spool"), agent_version="v7"
    )


def test_a_key_from_a_file_loses_its_line_end():
    assert settings_from({}, key="rpk_1\n").key == "rpk_1"


def test_an_empty_variable_is_as_good_as_none():
    assert settings_from({"REPLAY_URL": "", "REPLAY_KEY": " ", "REPLAY_SAMPLE": ""}) == Settings()


@pytest.mark.parametrize(
    ("environment", "given", "words"),
    [
        ({"REPLAY_SAMPLE": "half"}, {}, "REPLAY_SAMPLE must be a number between 0 and 1 and is 'half'"),
        ({"REPLAY_SAMPLE": "1.5"}, {}, "sample must be between 0 and 1 and is 1.5"),
        ({"REPLAY_SAMPLE": "nan"}, {}, "sample must be between 0 and 1 and is nan"),
        ({"REPLAY_RECORD": "maybe"}, {}, "REPLAY_RECORD must be on or off and is 'maybe'"),
        ({}, {"url": "replay.example.com"}, "url must be like https://replay.example.com"),
        ({}, {"url": "file:///etc/passwd"}, "url must be like"),
        ({}, {"url": "http://"}, "url must be like"),
        ({}, {"url": "http://host:port"}, "url must be like"),
        ({}, {"snapshot_every": -1}, "snapshot_every must not be negative and is -1"),
    ],
)
def test_a_wrong_setting_is_named(environment, given, words):
    with pytest.raises(ValueError, match=words):
        settings_from(environment, **given)


@pytest.mark.parametrize("key", ["rpk_1\nHost: evil", "rpk_“quoted”", "rpk_\x00"])
def test_a_key_that_cannot_be_sent_is_refused_and_not_shown(key):
    with pytest.raises(ValueError, match="key must be one line") as refused:
        settings_from({}, key=key)

    assert "rpk_" not in str(refused.value)


def test_the_key_is_not_in_what_settings_show():
    settings = Settings(url="http://localhost", key="rpk_secret")

    assert "http://localhost" in repr(settings)
    assert "rpk_secret" not in repr(settings)


def test_install_refuses_a_wrong_setting_at_once_and_a_wrong_name(tmp_path):
    with pytest.raises(ValueError, match="sample"):
        replay_recorder.install(spool=tmp_path, sample=2)
    with pytest.raises(TypeError, match="smaple"):
        replay_recorder.install(spool=tmp_path, smaple=1)  # type: ignore[call-arg]

    assert replay_recorder.active() is None


def test_a_recorder_that_is_switched_off_does_nothing(tmp_path):
    assert replay_recorder.install(spool=tmp_path, enabled=False) is None
    assert (replay_recorder.active(), replay_recorder.stats(), replay_recorder.flush()) == (None, {}, True)
    assert list(tmp_path.iterdir()) == []


# --- folders


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(settings_module.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(settings_module.tempfile, "tempdir", str(tmp_path))
    return tmp_path / "home"


def test_each_destination_has_a_folder_of_its_own_that_does_not_name_the_key(home):
    folders = [
        Settings(url=url, key=key).folder for url in ("http://a", "http://b", None) for key in ("rpk_1", "rpk_2", None)
    ]

    assert len(set(folders)) == 9
    assert {folder.parent for folder in folders} == {home / ".local/state/replay-recorder"}
    assert Settings(url="http://a", key="rpk_1").folder == folders[0]
    assert "rpk" not in str(folders)


def test_the_folder_of_the_user_is_private(home):
    assert state_folder().stat().st_mode & 0o777 == 0o700


def test_the_state_home_of_the_system_counts(home, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    assert state_folder() == tmp_path / "state" / "replay-recorder"


def test_without_a_home_that_can_be_written_recordings_go_among_the_temporary_files(home):
    home.write_text("a file, where a folder should be")

    assert state_folder() == home.parent / f"replay-recorder-{os.getuid()}"
    assert state_folder().stat().st_mode & 0o777 == 0o700


def test_without_a_home_at_all_nothing_is_made_in_the_current_folder(home, monkeypatch, tmp_path):
    monkeypatch.setattr(settings_module.os.path, "expanduser", lambda path: path)
    monkeypatch.chdir(tmp_path)

    assert state_folder() == tmp_path / f"replay-recorder-{os.getuid()}"
    assert not (tmp_path / "~").exists()


def test_a_folder_that_somebody_else_has_put_there_is_not_used(home, tmp_path):
    home.write_text("a file, where a folder should be")
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (tmp_path / f"replay-recorder-{os.getuid()}").symlink_to(theirs)
    os.chown(tmp_path / f"replay-recorder-{os.getuid()}", 12345, 12345, follow_symlinks=False)

    folder = state_folder()

    assert folder.parent == tmp_path
    assert folder.name not in (f"replay-recorder-{os.getuid()}", "theirs")


# --- which code runs


def make_commit(folder):
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", "-C", folder]
    (folder / "agent.py").write_text("1")
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *command], check=True)
    return subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()


def facts(folder, **environment):
    source = (
        "import json; from replay_recorder.writing.code_facts import commit_facts; print(json.dumps(commit_facts()))"
    )
    clean = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT_ROOT), "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    done = subprocess.run(
        [sys.executable, "-c", source], cwd=folder, env=clean | environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_the_commit_is_that_of_the_repository_and_changes_are_told(tmp_path):
    commit = make_commit(tmp_path)

    assert facts(tmp_path) == {"commit": commit, "dirty": False}
    (tmp_path / "agent.py").write_text("2")
    assert facts(tmp_path) == {"commit": commit, "dirty": True}


def test_the_commit_of_the_environment_comes_first(tmp_path):
    make_commit(tmp_path)

    assert facts(tmp_path, GIT_COMMIT=" 0123abc\n", REPLAY_COMMIT="  ") == {"commit": "0123abc"}


def test_where_nobody_knows_the_commit_nothing_is_said(tmp_path):
    assert facts(tmp_path) == {}
    make_commit(tmp_path)
    assert facts(tmp_path, PATH="/nowhere") == {}
