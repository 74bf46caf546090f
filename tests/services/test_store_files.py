"""Large payloads lie in a folder; `verify` proves the store whole and names what is not."""

import json
import os
import random
import stat
import threading

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection

from sessions_app.mapping import payloads
from sessions_app.mapping.load import load_run
from sessions_app.mapping.pieces import read_pieces, write_pieces
from sessions_app.models import ContentBlock, HistoryNode, Run, RunContent, StoredPayload
from sessions_app.payloads.blobs import BlobFolder
from sessions_app.payloads.outlines import pack_outline
from sessions_app.services import run_store, span_store
from sessions_app.services.ingest import ingest_document
from sessions_app.services.spans import receive
from sessions_app.services.verification import find_orphans, problems
from tests.builders import (
    EXAMPLES,
    make_client,
    make_key,
    make_project,
    make_record,
    make_tool_step,
    post_run,
    row_counts,
)
from tests.losing import lose_payload
from tests.traces.captures import CHOICE, Capture

pytestmark = pytest.mark.django_db
ORDER = Capture(CHOICE / "pydantic-ai-v5" / "order_lookup")
LARGE = random.Random(1).randbytes(3000).hex()


@pytest.fixture(autouse=True)
def blobs(settings, tmp_path):
    settings.REPLAY_BLOBS = str(tmp_path / "blobs")
    settings.REPLAY_BLOB_THRESHOLD_BYTES = 1024
    return tmp_path / "blobs"


def ingest_large(project=None, run_id="r"):
    record = make_record(run_id, make_tool_step(result=LARGE), make_tool_step(result="small"))
    return ingest_document(project or make_project(), json.dumps(record).encode()).run


def files_in(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def verify(capsys, *arguments):
    """Exit code and words of `manage.py verify`, some hours after the last file was written."""
    for file in files_in(payloads.blob_store().root):
        os.utime(file, (0, 0))
    code = 0
    try:
        call_command("verify", *arguments)
    except CommandError as error:
        code = error.returncode
    return code, capsys.readouterr().out


def test_a_large_payload_lies_in_a_file_and_a_small_one_in_the_database(blobs):
    run = ingest_large()

    stored = {row.size: row for row in StoredPayload.objects.all()}
    assert stored[len(LARGE)].data is None
    assert b"small" in read_pieces(run.content, range(run.content.piece_count)).values()
    assert str(stored[len(LARGE)]) in [path.name for path in files_in(blobs)]
    assert load_run(run).steps[0].call.result.content == LARGE.encode()


def test_the_same_large_payload_is_one_file_a_project(blobs):
    project = make_project()
    ingest_large(project, "a")
    before = files_in(blobs)
    ingest_large(project, "b")

    assert StoredPayload.objects.filter(size=len(LARGE)).count() == 1
    assert len(files_in(blobs)) == len(before) + 1  # the second document
    ingest_large(make_project("other"), "a")
    assert StoredPayload.objects.filter(size=len(LARGE)).count() == 2


def test_a_crash_between_file_and_commit_leaves_a_file_that_verify_removes(blobs, monkeypatch, capsys):
    project = make_project()
    before = row_counts()
    with monkeypatch.context() as patched:
        patched.setattr(run_store, "write_content", fail)
        with pytest.raises(DatabaseError):
            ingest_large(project)

    assert row_counts() == before
    assert len(files_in(blobs)) == 2
    assert verify(capsys) == (0, "2 files that no row speaks of; --repair removes them.\nWhole: 0 runs, 0 payloads.\n")
    assert verify(capsys, "--repair")[1].startswith("Removed 2 files")
    assert files_in(blobs) == []
    ingest_large(project)
    assert verify(capsys, "--repair") == (0, f"Whole: 1 runs, {StoredPayload.objects.count()} payloads.\n")
    assert len(files_in(blobs)) == 2


def fail(*arguments, **more):
    raise DatabaseError("gone")


@pytest.mark.parametrize("name", ["fsync", "replace"])
def test_a_failing_disk_stores_nothing(blobs, monkeypatch, capsys, name):
    project = make_project()
    before = row_counts()
    with monkeypatch.context() as patched:
        patched.setattr(os, name, full)
        with pytest.raises(OSError, match="no space"):
            ingest_large(project)

    assert row_counts() == before
    assert verify(capsys, "--repair")[1].startswith("Removed 1 files")
    assert files_in(blobs) == []


def test_a_sender_is_told_to_come_back_where_the_folder_alone_is_full(monkeypatch):
    client = make_client(make_key(make_project()))
    monkeypatch.setattr(os, "fsync", full)

    answer = post_run(client, make_record("r", make_tool_step(result=LARGE)))

    assert answer.status_code == 503
    assert answer["Retry-After"]


def full(*arguments):
    raise OSError("no space left")


def test_verify_of_a_whole_store_says_so(capsys):
    project = make_project()
    ingest_large(project)
    for name in ("cancel_bug.json", "r_8821.json", "abc123.session.json"):
        ingest_document(project, (EXAMPLES / name).read_bytes())

    code, said = verify(capsys)

    assert code == 0
    assert said.startswith("Whole: 4 runs, ")


@pytest.mark.django_db(transaction=True)
def test_what_is_written_meanwhile_is_no_problem():
    project = make_project()
    ingest_document(project, json.dumps(make_record("before", make_tool_step(result="one"))).encode())
    StoredPayload.objects.filter(digest=Run.objects.get().source_digest).update(size=1)

    found = problems()
    first = next(found)
    written = threading.Thread(target=ingest_and_close, args=[project])
    written.start()
    written.join()

    assert "does not match its digest" in first
    assert list(found) == []
    assert Run.objects.count() == 2
    assert len(list(problems())) == 1


def ingest_and_close(project):
    ingest_document(project, json.dumps(make_record("meanwhile", make_tool_step(result="two"))).encode())
    connection.close()


def test_a_file_that_was_just_written_is_not_judged(blobs):
    (blobs / "1" / "ab").mkdir(parents=True)
    (blobs / "1" / "ab" / ("ab" * 32)).write_bytes(b"x")
    assert find_orphans().count == 0

    os.utime(blobs / "1" / "ab" / ("ab" * 32), (0, 0))
    assert find_orphans().count == 1


def test_blobs_are_for_their_owner_alone(blobs):
    root = blobs / "inner"
    BlobFolder(root).write(1, "ab" * 32, b"x")

    folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in folders] == [0o700] * 3


def delete_blob():
    row = StoredPayload.objects.get(size=len(LARGE))
    payloads.blob_store().delete(row.project_id, str(row))
    return f"payload {row} is missing from the blob folder"


def flipped(data):
    """With another byte in its middle."""
    changed = bytearray(data)
    changed[len(changed) // 2] ^= 1
    return bytes(changed)


def flip_byte_of_a_blob():
    row = StoredPayload.objects.get(size=len(LARGE))
    file = payloads.blob_store().path(row.project_id, str(row))
    file.write_bytes(flipped(file.read_bytes()))
    return f"payload {row} "


def change_row():
    row = StoredPayload.objects.get(size=len(LARGE))
    StoredPayload.objects.filter(pk=row.pk).update(data=b"smell", is_compressed=False)
    return f"payload {row} does not match its digest"


def delete_payload():
    row = StoredPayload.objects.get(size=len(LARGE))
    name = str(row)
    row.delete()
    return f"step 1 refers to payload {name}, which is not stored"


def delete_piece():
    lose_payload(b"small")
    return "r: cannot be loaded (PayloadMissing)"


def change_piece():
    content = RunContent.objects.get(run__run_id="r")
    pieces = read_pieces(content, range(content.piece_count))
    content.own_blocks.all().delete()
    write_pieces(content, [b"smell" if piece == b"small" else piece for piece in pieces.values()])
    return "does not match its digest"


def delete_document():
    StoredPayload.objects.filter(digest=Run.objects.get(run_id="r").source_digest).delete()
    return "the document as received is not stored"


def delete_node():
    followed = HistoryNode.objects.exclude(parent=None).values("parent")
    node = HistoryNode.objects.filter(parent=None, digest__in=followed)[0]
    name = str(node)
    node.delete()
    return f"follows {name}, which is not stored"


def change_node():
    node = HistoryNode.objects.filter(parent=None).first()
    HistoryNode.objects.filter(pk=node.pk).update(message=bytes(32))
    return f"history node {node} does not match its digest"


def flip_byte_of_a_history():
    history = RunContent.objects.get(run__run_id="abc123")
    RunContent.objects.filter(pk=history.pk).update(nodes=flipped(history.nodes))
    return "abc123: cannot be loaded (HistoryMissing)"


def delete_history():
    RunContent.objects.filter(run__run_id="abc123").update(nodes=None)
    return "abc123: cannot be loaded (HistoryMissing)"


def change_header():
    content = RunContent.objects.get(run__run_id="r")
    header = bytes(content.header).replace(b'"cut_off"', b'"running"')
    RunContent.objects.filter(pk=content.pk).update(header=header)
    return "does not match its digest"


def flip_byte_of_the_header():
    with connection.cursor() as cursor:
        cursor.execute("UPDATE sessions_app_runcontent SET header = set_byte(header, 0, 7)")
    return "r: cannot be loaded (HeaderMissing)"


def delete_step():
    content = RunContent.objects.get(run__run_id="r")
    first, _, *others = content.own_steps
    RunContent.objects.filter(pk=content.pk).update(outline=pack_outline([first, *others]))
    return "does not match its digest"


def flip_byte_of_the_outline():
    content = RunContent.objects.get(run__run_id="r")
    RunContent.objects.filter(pk=content.pk).update(outline=flipped(content.outline))
    return "its steps cannot be read, from step 1 on."


def break_detail():
    content = RunContent.objects.get(run__run_id="r")
    pieces = read_pieces(content, range(content.piece_count))
    content.own_blocks.all().delete()
    write_pieces(content, [*(pieces | {content.steps[1].text: b'{"kind":"guess"}'}).values()])
    return "cannot be loaded (RecordError)"


def flip_byte_of_pieces():
    block = ContentBlock.objects.get(content__run__run_id="r")
    ContentBlock.objects.filter(pk=block.pk).update(data=flipped(block.data))
    return "its steps cannot be read, from step 1 on."


def delete_pieces():
    ContentBlock.objects.filter(content__run__run_id="r").delete()
    return "its steps cannot be read, from step 1 on."


def lose_keys():
    content = RunContent.objects.get(run__run_id="r")
    RunContent.objects.filter(pk=content.pk).update(keys=content.keys[:-1])
    return "r: keys does not match its content."


def miscount_pieces():
    content = RunContent.objects.get(run__run_id="r")
    RunContent.objects.filter(pk=content.pk).update(piece_count=content.piece_count + 1)
    return "r: piece_count does not match its content."


HARM = [delete_blob, flip_byte_of_a_blob, change_row, delete_payload, delete_piece, change_piece,
        delete_document, delete_node, change_node, flip_byte_of_a_history, delete_history, change_header, delete_step,
        flip_byte_of_the_header, lose_keys, miscount_pieces,
        flip_byte_of_the_outline, break_detail, flip_byte_of_pieces, delete_pieces]  # fmt: skip


@pytest.mark.parametrize("harm", HARM)
def test_verify_names_what_is_wrong(capsys, monkeypatch, harm):
    project = make_project()
    ingest_large(project)
    ingest_document(project, (EXAMPLES / "abc123.session.json").read_bytes())
    monkeypatch.setattr(span_store, "FEW", 0)
    monkeypatch.setattr(span_store, "MANY", 0)
    receive(project, ORDER.spans)
    named = harm()

    code, said = verify(capsys)

    assert code == 1
    assert named in said


def test_verify_repairs_no_harm_away(capsys):
    ingest_large()
    delete_blob()

    assert verify(capsys, "--repair")[0] == 1
