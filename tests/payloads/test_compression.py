"""What is packed comes back, and what was packed once comes back for good."""

import threading

import pytest
import zstandard

from sessions_app.core.formats.detect import parse_document
from sessions_app.core.judge.kit import audit_kit
from sessions_app.core.payload import compact_json, sha256_hex
from sessions_app.payloads import compression
from sessions_app.payloads.compression import KITS, dictionary_file, pack, pack_object, unpack, unpack_object
from tests.builders import SAMPLES

DETAIL = (
    b'{"kind":"tool","name":"search","tool_name":"search","arguments":{"sha256":"'
    + b"5e" * 32
    + b'"},"outcome":"success"}'
)
FRAME = bytes.fromhex(
    "28b52ffd2101a23d0100d380029b8e97e892f16d0e0a1508fc8e9a4400b0fceab3d057ed1017580d8cf76593c2f4b6f8e1"
)
"""`DETAIL` as dictionary 1 packed it when it was new."""


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 64, DETAIL, DETAIL * 5_000, bytes(range(256))])
def test_what_is_packed_comes_back(content):
    packed = pack(content)

    assert unpack(packed.data, is_compressed=packed.is_compressed) == content
    assert len(packed.data) <= len(content)


DICTIONARIES = {
    1: "6e85afcd7c89a502b577034ecb5ffe5c191e93e8d5b68a471f7421aa06b5b0b4",
    2: "e50833a1d270429202236fa2794a586488d5e2b9a3909eb44aace1799b256759",
}


@pytest.mark.parametrize(("number", "digest"), DICTIONARIES.items())
def test_a_dictionary_stays_as_it_is(number, digest):
    """Whoever changes one must give it the next number: rows that were written with it are read with it."""
    assert sha256_hex(dictionary_file(number).read_bytes()) == digest


def test_what_was_packed_long_ago_is_read():
    assert unpack_object(FRAME) == DETAIL


def test_a_kit_is_packed_with_the_sentences_of_kits():
    kit = compact_json(audit_kit(parse_document(SAMPLES[0].read_bytes())).to_json())
    packed = pack_object(kit, KITS)

    assert unpack_object(packed) == kit
    assert len(packed) < len(pack_object(kit)) / 2


def test_frames_of_two_dictionaries_are_read_side_by_side(tmp_path, monkeypatch):
    old = pack_object(DETAIL)
    texts: list[bytes | bytearray | memoryview] = [
        b'{"kind":"retrieval","name":"docs","query":"%d of many"}' % n for n in range(2_000)
    ]
    second = zstandard.train_dictionary(2_000, texts, dict_id=4)
    file = {1: dictionary_file(1), 4: tmp_path / "second"}
    file[4].write_bytes(second.as_bytes())
    monkeypatch.setattr(compression, "dictionary_file", file.__getitem__)
    new = zstandard.ZstdCompressor(dict_data=second).compress(texts[7])

    assert (unpack_object(new), unpack_object(old)) == (texts[7], DETAIL)


def test_frames_from_before_there_was_a_dictionary_are_read():
    frame = zstandard.ZstdCompressor(level=3).compress(DETAIL)

    assert unpack(frame, is_compressed=True) == DETAIL


def test_texts_from_before_they_were_compressed_are_read():
    assert unpack_object(DETAIL) == DETAIL
    assert unpack_object(pack_object(DETAIL)) == DETAIL
    assert len(pack_object(DETAIL)) < len(DETAIL) * 0.6


def test_a_frame_of_an_unknown_dictionary_says_so():
    words = zstandard.train_dictionary(2_000, [b"%d of many words" % n * 9 for n in range(2_000)], dict_id=77)

    with pytest.raises(zstandard.ZstdError, match="no dictionary 77"):
        unpack(zstandard.ZstdCompressor(dict_data=words).compress(DETAIL), is_compressed=True)


def test_threads_do_not_disturb_one_another():
    texts = [DETAIL.replace(b"search", b"search %d" % n) for n in range(300)]
    wrong = []

    def work():
        wrong.extend(text for text in texts * 5 if unpack_object(pack_object(text)) != text)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
