"""The quick look at a document is certain only where reading it in full finds nothing."""

import json
import re
from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.redaction import BUILT_IN_RULES, FieldRule, Redactor, Rule, TextRule
from sessions_app.core.redaction.document import DocumentPass
from sessions_app.core.redaction.edits import Edit
from sessions_app.core.redaction.quick_look import QuickLook, quick_look
from sessions_app.core.redaction.rare_signs import finder
from tests.core.test_redaction import HOSTILE, LOADED
from tests.core.test_redaction_shapes import HARMLESS, IN_TEXT, PLANTED
from tests.growth import LINEAR, growth

LOOK = quick_look(BUILT_IN_RULES)
ALONE = [(rule,) for rule in BUILT_IN_RULES]
IN_EVERY_WAY = [BUILT_IN_RULES, *ALONE]


def full_edits(document: str, rules: tuple[Rule, ...] = BUILT_IN_RULES) -> list[Edit]:
    """What reading it token by token finds."""
    return DocumentPass(b"k", rules).document_edits(document, depth=0)


def spell(text: str, escaped: Collection[int] = (), ascii_only: bool = True) -> str:
    """A JSON string with the signs at some places spelled as `\\uXXXX`."""
    return '"' + "".join(_sign(sign, n in escaped, ascii_only) for n, sign in enumerate(text)) + '"'


def _sign(sign: str, is_escaped: bool, ascii_only: bool) -> str:
    if is_escaped and sign.isascii():
        return f"\\u{ord(sign):04X}"
    return "\\/" if is_escaped and sign == "/" else json.dumps(sign, ensure_ascii=ascii_only)[1:-1]


# Where it is certain

PLAIN = [
    '{"role":"user","parts":[{"type":"text","content":"Check the order.\\n\\"Late\\" again\\u2019s \\ud83d\\ude00"}]}',
    '{"id":"call_0f9a","name":"lookup","arguments":"{\\"order\\": \\"A\\\\n1\\", \\"why\\": null}"}',
    '{"usage":{"input_tokens":512,"tokens":{"cached":5}},"temperature":0.2,"ended":1760000000000000000}',
    '[{"type":"function","name":"find","parameters":{"type":"object","properties":{"key":{"type":"string"}}}}]',
    '{"html":"\\u003cb\\u003eit\\u0027s \\u0026 is\\u003c/b\\u003e","id":"550e8400-e29b-41d4-a716-446655440000"}',
    '{"note": "tokens, secrets and keys: passwords are kept by the secretary -- café, naïve", "value": [["a", "b"]]}',
]


@pytest.mark.parametrize("document", PLAIN)
def test_quick_look_is_certain_of_plain_documents(document):
    assert LOOK.finds_none(document)
    assert LOOK.finds_none_in_json(document, document.encode())
    assert full_edits(document) == []


@pytest.mark.parametrize("document", ['{"a": "b"]]]', '{"a": "\\x"}', '{"a": "b', "[1] [2]", '["\n"]'])
def test_quick_look_is_certain_of_no_document_that_is_no_json(document):
    assert LOOK.finds_none(document)
    assert not LOOK.finds_none_in_json(document, document.encode())


@pytest.mark.parametrize("value", HARMLESS)
def test_reading_in_full_leaves_harmless_values(value):
    assert full_edits(json.dumps(value)) == []


# Where it must not be

ODD = [
    *(rf'{{"pass{between}word": "opensesame"}}' for between in ("_", "-", ".", " ", r"\u005f", r"\u002D")),
    r'{"\u0070assword": "opensesame"}',
    r'{"a": "{\"\\u0070assword\": \"opensesame\"}"}',
    r'{"a": "{\u0022password\u0022: \u0022opensesame\u0022}"}',
    r'{"a": "{\"pass\u005cu0077ord\": \"opensesame\"}"}',
    '{"to\u212aen": "opensesame"}',
    r'{"to\u212Aen": "opensesame"}',
    '{"a": "pa\u017f\u017fword=hunter2"}',
    r'{"a": "pa\u017F\u017fword=hunter2"}',
    '{"a": "token\u00a0: abcdef123"}',
    r'{"a": "token\u00A0: abcdef123"}',
    r'{"a": "token\n\t:\u2003abcdef123"}',
    r'{"a": "[\"token\\u2028= abcdef123\"]"}',
    r'{"a": "client_secret\u0027: abcdef123"}',
    """{"a": "{'password': 'opensesame'}"}""",
    r'{"a": "bob\u0040example.com"}',
    r'{"a": "https:\/\/hooks.slack.com\/services\/T00\/B00\/abcdefghij"}',
    r'{"a": "\n4111111111111111"}',
    r'{"a": "\u00e94111 1111 1111 1111"}',
    r'{"a": "\u00e5-4111111111111111"}',
    r'{"a": "[\"\\n4111111111111111\\n\"]"}',
    '{"b": [["Set-Cookie", "opensesame"]]}',
    '{"header": "X-Api-Key", "value": "opensesame"}',
    r'{"a": "{\"base64\": \"Ym9iQGV4YW1wbGUuY29t\"}"}',
    r'{"a": "cvv2\n= 731"}',
    r'{"a": "run --api-key=hunter8secret"}',
    r'{"a": "authorization\n:\ttoken abcdef"}',
]


@pytest.mark.parametrize("document", ODD)
def test_a_secret_in_an_odd_spelling_is_taken(document):
    json.loads(document)

    assert full_edits(document) != []
    assert not LOOK.finds_none(document)
    assert Redactor(b"k").redact(document.encode()).counts != {}


def test_quick_look_sees_what_lies_deep():
    documents = [json.dumps(value) for value, _, _ in PLANTED]

    for _ in range(5):
        assert list(filter(LOOK.finds_none, documents)) == []
        documents = [json.dumps({"a\n": document}) for document in documents]


@pytest.mark.parametrize("rules", ALONE)
def test_each_rule_names_its_own_marks(rules):
    hit = [document for document in (json.dumps([text]) for text, _, _ in IN_TEXT) if full_edits(document, rules)]

    assert list(filter(quick_look(rules).finds_none, hit)) == []


@pytest.mark.parametrize(
    ("left_out", "text"),
    [
        ({"email", "password"}, "bob@example.com"),
        ({"jwt"}, "eyJhbGciOi.eyJzdWIiOi.dozjgNryP4"),
        ({"api_key"}, "sk-abcdefghijklmnopqrst"),
        ({"password"}, "run --password hunter8secret"),
        ({"bearer"}, "Bearer aB3daB3daB3daB3daB3d"),
        ({"card"}, "4111 1111 1111 1111"),
        ({"private_key"}, "-----BEGIN RSA PRIVATE KEY-----"),
        ({"secret"}, "password=hunter2"),
    ],
)
def test_quick_look_without_a_rule_misses_what_it_hits(left_out, text):
    assert not LOOK.finds_none(text)
    assert QuickLook([rule for rule in BUILT_IN_RULES if rule.name not in left_out]).finds_none(text)


def test_a_rule_that_names_no_marks_is_always_read_for():
    phone = TextRule(name="phone", patterns=(re.compile(r"\+[0-9]{6,15}"),))

    assert not QuickLook([*BUILT_IN_RULES, phone]).finds_none("nothing in it")


@pytest.mark.parametrize("field", ["contraseña", "пароль", "_", ""])
def test_a_field_whose_name_may_be_spelled_otherwise_is_always_read_for(field):
    assert not QuickLook([FieldRule(name="own", fields=frozenset({field}))]).finds_none("nothing in it")


def test_the_longest_name_is_known_in_its_longest_spelling():
    name = "\U0001f600" * 91 + "_password"
    assert len(name) == 100

    assert full_edits(f"{{{spell(name, range(100))}: 1}}") != []
    assert full_edits(f"{{{spell('x' + name, range(101))}: 1}}") == []


# Properties

FRAGMENTS = st.sampled_from(
    [
        *(
            "password",
            "Api-Key",
            "access.token",
            "token",
            "se cret",
            "cookie",
            "cvv2",
            "base64",
            "to\u212aen",
            "pa\u017fsword",
        ),
        *("name", "value", "secrets", "author", "ization", "properties"),
        *(
            "bob@example.com",
            "ghp_aB3daB3daB3daB3daB3d",
            "eyJhbGciOi.eyJzdWIiOi.dozjgNryP4",
            "Bearer aB3daB3daB3daB3daB3d",
        ),
        *("4111111111111111", "4111 1111 1111 1111", "3782-822463-10005", "41111111", "-1111"),
        *("--token=abc123def", "Basic dXNlcjpwYXNz", "PRIVATE KEY", "https://discord.com/api/webhooks/1/abcdefghij"),
        *("=", ":", ": ", " = ", "'", '"', "hunter2", "x", "n", "u00e9", "_", "-", ".", "/", "\\", "\\u0041"),
        *("\n", "\t", "\x0b", "\x1c", "\u00a0", "\u2003", "é", "😀", "<", "&"),
    ]
)
TEXTS = st.lists(FRAGMENTS, min_size=1, max_size=5).map("".join)
STRINGS = st.builds(spell, TEXTS, st.sets(st.integers(0, 40), max_size=2) | st.just(set()), st.booleans())
"""As they are spelled in a document."""
DOCUMENTS = st.recursive(
    STRINGS | st.sampled_from(["1", "null", "4111111111111111", "-4111111111111111", "1760000000000000000"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.lists(st.tuples(STRINGS, inner), max_size=3).map(
            lambda members: "{" + ",".join(f"{key}: {value}" for key, value in members) + "}"
        )
        | st.builds(spell, inner)
    ),
    max_leaves=6,
)


@given(DOCUMENTS | LOADED.map(json.dumps) | TEXTS)
def test_quick_look_is_certain_only_where_nothing_is_found(text):
    for rules in IN_EVERY_WAY:
        look = quick_look(rules)
        if look.finds_none(text):
            assert DocumentPass(b"k", rules).text_edits(text, depth=0) == []
        if look.finds_none_in_json(text, text.encode()):
            assert full_edits(text, rules) == []


@given(st.lists(st.sampled_from(["ab", "b_c", "ca.", "c", "xa"]), min_size=1), st.text(alphabet="abc_.x"))
def test_finder_finds_any_of_the_words(words, text):
    assert finder(words)(text) == any(word in text for word in words)


@pytest.mark.parametrize("piece", [*HOSTILE, "password\\n", "u00e9", "tokenn", "411111111111111 "])
def test_quick_look_stays_linear_on_hostile_strings(piece):
    text = piece * (50_000 // len(piece))

    assert growth(LOOK.finds_none, text, text * 4) < LINEAR
