"""The commit of registered code: as git or the environment says it, and not made up."""

import subprocess
import sys

import pytest

from sessions_app.agents.own_code.commit import commit_of


def git(folder, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false", "-c", "gc.auto=0"]
    # No upkeep in the background, which would outlive the test.
    identity += ["-c", "maintenance.auto=false"]
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A repository with a package of the team's, on the path."""
    package = tmp_path / "commit_shop"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "agents.py").write_text("raise RuntimeError('imported')\n")
    (tmp_path / "commit_alone.py").write_text("")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "commit_shop", "commit_alone.py")
    git(tmp_path, "commit", "-q", "-m", "first")
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("target", ["commit_shop.agents:shop", "commit_shop:shop", "commit_alone:shop"])
def test_the_commit_is_that_of_the_repository_and_nothing_is_imported(shop, target):
    assert commit_of(target, {}) == git(shop, "rev-parse", "HEAD")
    assert "commit_shop" not in sys.modules


def test_code_in_a_folder_that_only_the_replay_is_told_of_has_its_commit(shop, monkeypatch):
    """Control: without the folder it is not known."""
    monkeypatch.undo()

    assert commit_of("commit_alone:shop", {"PYTHONPATH": str(shop)}) == git(shop, "rev-parse", "HEAD")
    assert commit_of("commit_alone:shop", {}) is None


def test_changes_that_are_not_committed_are_said(shop):
    (shop / "commit_alone.py").write_text("x = 1\n")

    assert commit_of("commit_shop.agents:shop", {}) == f"{git(shop, 'rev-parse', 'HEAD')}, with uncommitted changes"


def test_what_the_team_declares_comes_first(shop):
    assert commit_of("commit_shop.agents:shop", {"REPLAY_COMMIT": "1f2e3d"}) == "1f2e3d"


def test_a_file_that_git_does_not_track_is_of_no_commit(shop):
    (shop / "commit_shop" / "new.py").write_text("")

    assert commit_of("commit_shop.new:shop", {}) is None


@pytest.mark.parametrize("target", ["nowhere_at_all:x", "nowhere_at_all.agents:x", "json:x"])
def test_code_outside_of_any_repository_has_no_known_commit(target):
    assert commit_of(target, {}) is None
