"""Case files: what is put in comes out, and nothing else is let in."""

import io
import json
import zipfile

import pytest

from sessions_app.core.case_file.archive import MAX_ENTRIES, is_archive, read_archive, write_archive
from sessions_app.core.case_file.case import README, make_case, open_case
from sessions_app.core.errors import RecordError, RecordTooLarge
from sessions_app.core.json_text import Limits

RECORDS = {"r1": b'{"run_id": "r1", "to": "[email:1a2b3c4d]"}', "r1_replay_1": b'{"run_id": "r1_replay_1"}'}
REPORT = {"title": "Report", "run_id": "r1"}
NAMES = ["README.txt", "manifest.json", "records/0001.json", "records/0002.json", "redaction.json", "report.json"]


@pytest.fixture
def content() -> bytes:
    return make_case(RECORDS, REPORT)


def entries_of(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(entries: list[tuple[str | zipfile.ZipInfo, bytes]], method: int = zipfile.ZIP_STORED) -> bytes:
    into = io.BytesIO()
    with zipfile.ZipFile(into, "w", method) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return into.getvalue()


def refusal(content: bytes) -> RecordError:
    with pytest.raises(RecordError) as refused:
        open_case(content)
    return refused.value


def test_what_is_put_in_comes_out(content):
    case = open_case(content)

    assert case.runs == ("r1", "r1_replay_1")
    assert case.records == tuple(RECORDS.values())
    assert json.loads(case.report) == REPORT
    assert make_case(dict(zip(case.runs, case.records, strict=True)), json.loads(case.report)) == content


def test_any_tool_that_reads_zip_archives_shows_the_entries(content):
    entries = entries_of(content)

    assert list(entries) == NAMES
    assert entries["records/0001.json"] == RECORDS["r1"]
    assert json.loads(entries["redaction.json"])["placeholders"] == {"email": 1}
    manifest = json.loads(entries["manifest.json"])
    assert (manifest["format"], manifest["version"], manifest["runs"]) == ("agent-replay.case", 1, list(RECORDS))
    assert manifest["seal"] == manifest["entries"][-1]["link"] == open_case(content).seal


@pytest.mark.parametrize("name", NAMES)
def test_a_changed_byte_is_named_with_its_entry(content, name):
    entries = entries_of(content)
    entries[name] = entries[name].replace(b"r", b"s", 1)
    resealed_container = write_archive(entries)

    assert refusal(resealed_container).field == name
    if name != "manifest.json":
        assert "expected SHA-256" in refusal(resealed_container).message


def test_no_byte_of_the_file_can_be_changed_unseen(content):
    for at in range(len(content)):
        for bit in (1, 0x20, 0x80):
            broken = bytearray(content)
            broken[at] ^= bit
            assert refusal(bytes(broken)).message


def test_a_byte_changed_inside_an_entry_is_named_wherever_it_stands(content):
    start = content.index(RECORDS["r1_replay_1"])

    for at in range(start, start + len(RECORDS["r1_replay_1"])):
        broken = bytearray(content)
        broken[at] ^= 1
        assert refusal(bytes(broken)).field == "records/0002.json"


def test_a_file_that_was_cut_off_or_added_to_is_refused(content):
    for length in range(len(content)):
        assert refusal(content[:length]).message
    assert refusal(content + b"\0").message
    assert refusal(b"\0" + content).message


def test_an_entry_that_the_manifest_does_not_know_or_misses_is_named(content):
    entries = entries_of(content)
    less = {name: text for name, text in entries.items() if name != "report.json"}

    assert refusal(write_archive({**entries, "records/0003.json": b"{}"})).field == "records/0003.json"
    assert refusal(write_archive(less)).field == "report.json"
    assert refusal(write_archive({"report.json": b"{}"})).field == "manifest.json"


def test_a_forged_seal_is_found(content):
    entries = entries_of(content)
    manifest = json.loads(entries["manifest.json"])
    for forged in (
        {**manifest, "seal": "0" * 64},
        {**manifest, "runs": ["r2"]},
        {**manifest, "entries": manifest["entries"][:-1]},
        {**manifest, "entries": [{**entry, "size": True} for entry in manifest["entries"]]},
        {**manifest, "entries": [{**entry, "sha256": "x" * 100_000} for entry in manifest["entries"]]},
        {**manifest, "seal": "x" * 100_000},
        {**manifest, "version": 2},
        {**manifest, "version": "x" * 100_000},
        {**manifest, "more": 1},
        {},
        [],
    ):
        text = json.dumps(forged, separators=(",", ":")).encode()
        refused = refusal(write_archive({**entries, "manifest.json": text}))
        assert refused.field == "manifest.json"
        assert len(refused.message) < 400


def test_a_size_that_is_not_that_of_the_entry_is_found(content):
    entries = entries_of(content)
    said = b'"size":%d' % len(README.encode())
    assert said in entries["manifest.json"]
    entries["manifest.json"] = entries["manifest.json"].replace(said, b'"size":1', 1)

    assert refusal(write_archive(entries)).field == "README.txt"


def test_names_that_lead_elsewhere_are_refused():
    link = zipfile.ZipInfo("records/0001.json")
    link.external_attr = 0o120777 << 16

    for name in ("../evil.json", "/etc/passwd", "records/../../x.json", "C:\\x", "records/1.json\0.txt", "x" * 5000):
        assert "no name of an entry" in refusal(zipped([(name, b"{}")])).message
    assert refusal(zipped([(link, b"/etc/passwd")])).field == "manifest.json"


def test_compressed_encrypted_and_doubled_entries_are_refused(content):
    bomb = zipped([("records/0001.json", b"\0" * 5_000_000)], zipfile.ZIP_DEFLATED)
    encrypted = bytearray(content)
    encrypted[6] |= 1
    with pytest.warns(UserWarning, match="Duplicate name"):
        doubled = zipped([("report.json", b"{}"), ("report.json", b"[]")])

    assert "compressed" in refusal(bomb).message
    assert "encrypted" in refusal(bytes(encrypted)).message
    assert "twice" in refusal(doubled).message


def test_sizes_that_are_not_there_and_too_many_entries_are_refused(content):
    declared = bytearray(content)
    declared[22:26] = b"\xff\xff\xff\xff"
    many = zipped([(f"records/{n:04}.json", b"") for n in range(MAX_ENTRIES + 1)])

    assert "ends before them" in refusal(bytes(declared)).message
    with pytest.raises(RecordTooLarge):
        read_archive(many, max_bytes=len(many))
    with pytest.raises(RecordTooLarge):
        open_case(content, Limits(max_bytes=len(content) - 1))


def test_json_is_no_archive_and_an_archive_is(content):
    assert is_archive(content)
    assert not is_archive(b'{"PK": 1}')
    assert "no archive" in refusal(b'{"run_id": 1}').message
    assert refusal(b"").message
    assert refusal(b"PK\x05\x06" + b"\0" * 18).message
