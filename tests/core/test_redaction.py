"""How redaction works on documents: bytes kept, placeholders, failure, speed."""

import base64
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.redaction import (
    BUILT_IN_RULES,
    FieldRule,
    RedactionFailed,
    Redactor,
    TextRule,
)
from tests.growth import LINEAR, growth

REDACTOR = Redactor(b"project one")
PEM = "-----BEGIN PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq0\n-----END PRIVATE KEY-----"


def redact(document: str, redactor: Redactor = REDACTOR) -> str:
    return redactor.redact(document.encode()).content.decode()


def placeholder(label: str, redacted: str) -> str:
    found = re.search(rf"\[{label}:[0-9a-f]{{8}}\]", redacted)
    assert found is not None
    return found[0]


# What stays as it was


def test_redact_returns_the_same_object_without_hits():
    document = b' { "a" : [1.0, 1e5, "\\u00e9\\/", true , null ] }\r\n'

    assert REDACTOR.redact(document).content is document


def test_redact_changes_only_the_tokens_that_hit():
    document = '{ "b" :1.50,\t"a\\u00e9\\/" : "x\\/y\\u00e9",\n "password":  "opensesame" , "z":[ 1E5 ] }'

    redacted = redact(document)

    assert redacted == document.replace("opensesame", placeholder("secret", redacted))


def test_redact_keeps_escapes_around_a_hit_in_the_same_string():
    document = r'{"a": "\u00e9\ud83d\ude00\/ bob@example.com \"\u003c\n\ud800"}'

    redacted = redact(document)

    assert redacted == document.replace("bob@example.com", placeholder("email", redacted))


def test_redact_keeps_escapes_around_a_hit_in_json_in_a_string():
    document = r'{"a": "{ \"q\\u00e9\" : \"\\/\\n bob@example.com\",\t\"n\": 1.0 }"}'

    redacted = redact(document)

    assert redacted == document.replace("bob@example.com", placeholder("email", redacted))


def test_redact_keeps_prose_around_a_hit():
    redacted = redact('{"a": "Mail bob@example.com, or <ann@example.com>. Thanks!"}')

    assert re.sub(r"\[email:\w{8}\]", "[]", redacted) == '{"a": "Mail [], or <[]>. Thanks!"}'


def test_redact_keeps_booleans_and_null_below_a_secret_field():
    redacted = redact('{"secret": {"a": true, "b": null, "c": [false, "x", 5, ""]}}')

    assert re.sub(r"\[secret:\w{8}\]", "[]", redacted) == (
        '{"secret": {"a": true, "b": null, "c": [false, "[]", "[]", ""]}}'
    )


def test_redact_does_not_change_what_it_was_given():
    document = bytearray(b'{"password": "opensesame"}')

    REDACTOR.redact(document)  # type: ignore[arg-type]  # bytes that can be changed

    assert document == b'{"password": "opensesame"}'


# What is replaced, and by what


def test_redact_counts_hits_by_rule():
    document = b'{"password": "x1", "a": "bob@example.com ann@example.com", "n": 4111111111111111}'

    assert REDACTOR.redact(document).counts == {"secret": 1, "email": 2, "card": 1}


def test_redact_counts_hits_inside_base64():
    inside = base64.b64encode(b"bob@example.com ann@example.com").decode()

    assert REDACTOR.redact(f'{{"base64": "{inside}"}}'.encode()).counts == {"email": 2}


def test_redact_makes_a_number_a_string():
    redacted = json.loads(redact('{"cvv": 731, "n": 4111111111111111}'))

    assert redacted == {
        "cvv": placeholder("secret", redacted["cvv"]),
        "n": placeholder("card", redacted["n"]),
    }


def test_redact_makes_a_number_a_string_in_json_in_a_string():
    redacted = json.loads(redact(json.dumps({"a": json.dumps({"cvv": 731})})))

    assert json.loads(redacted["a"]) == {"cvv": placeholder("secret", redacted["a"])}


def test_redact_decodes_escaped_letters_first():
    document = r'{"\u0070assword": "opensesame", "a": "bob\u0040example.com"}'

    redacted = redact(document)

    assert redacted == (
        document.replace("opensesame", placeholder("secret", redacted)).replace(
            r"bob\u0040example.com", placeholder("email", redacted)
        )
    )


def test_redact_reads_base64_of_text_only():
    text = base64.b64encode(b'{"password": "opensesame"}').decode()
    picture = base64.b64encode(b"\xff\xd8 bob@example.com").decode()

    redacted = json.loads(redact(json.dumps([{"base64": text}, {"base64": picture}])))

    inside = json.loads(base64.b64decode(redacted[0]["base64"]))
    assert inside == {"password": placeholder("secret", inside["password"])}
    assert redacted[1] == {"base64": picture}


def test_redact_takes_the_value_of_a_name_that_comes_later():
    redacted = json.loads(redact('[{"value": {"x": ["s1", 5]}, "name": "Authorization"}, "s1"]'))

    assert "s1" not in json.dumps(redacted[0])
    assert redacted[0]["value"]["x"][1].startswith("[secret:")
    assert redacted[1] == "s1"


def test_redact_gives_the_same_placeholder_to_the_same_value():
    first = json.loads(redact('[{"password": "opensesame"}, {"api_key": "opensesame"}]'))
    second = json.loads(redact('{"other": {"secret": "opensesame", "token": "another-one"}}'))

    assert first[0]["password"] == first[1]["api_key"] == second["other"]["secret"]
    assert second["other"]["token"] != second["other"]["secret"]


def test_redact_gives_another_placeholder_in_another_project():
    document = '{"password": "opensesame"}'

    assert redact(document) != redact(document, Redactor(b"project two"))


def test_redact_withholds_a_text_that_never_comes_to_rest():
    # Every look uncovers the next hit, as each match takes only the last sign.
    greedy = TextRule(name="last", patterns=(re.compile(r"q(?=(?:\[last:\w{8}\])*\Z)"),))

    redacted = redact('{"a": "qqqqqqqqqqqqqqqqqqqq"}', Redactor(b"k", [greedy]))

    assert json.loads(redacted) == {"a": placeholder("secret", redacted)}


# Rules of one's own


def test_redact_applies_given_rules_alone():
    phone = TextRule(name="phone", patterns=(re.compile(r"\+[0-9]{6,15}"),))
    badge = FieldRule(name="badge", fields=frozenset({"badge_id"}))
    document = '{"a": "call +491511234567", "badgeId": 7, "password": "x"}'

    redacted = redact(document, Redactor(b"k", [phone, badge]))

    assert redacted == (
        f'{{"a": "call {placeholder("phone", redacted)}", '
        f'"badgeId": "{placeholder("badge", redacted)}", "password": "x"}}'
    )


def test_redactor_refuses_rule_names_that_make_no_placeholder():
    with pytest.raises(ValueError, match="Rule name"):
        Redactor(b"k", [FieldRule(name="My Rule", fields=frozenset())])


# Text that is no document


def test_redact_text_takes_secrets_out_of_a_log_line():
    line = "GET https://bob:hunter2@example.com/?api_key=abcdef failed for ann@example.com"

    redacted = REDACTOR.redact_text(line)

    assert re.sub(r"\w{8}\]", "]", redacted) == (
        "GET https://bob:[password:]@example.com/?api_key=[secret:] failed for [email:]"
    )


def test_redact_text_gives_the_placeholder_of_the_document():
    assert placeholder("email", REDACTOR.redact_text("bob@example.com!")) in redact('["bob@example.com"]')


# Failing closed


def fail(_: object) -> bool:
    raise KeyError("opensesame")


@pytest.mark.parametrize("broken", [{"accepts": fail}, {"may_hit": fail}])
def test_redact_fails_closed_without_naming_the_payload(broken):
    rule = TextRule(name="broken", patterns=(re.compile("open"),), **broken)
    redactor = Redactor(b"k", [*BUILT_IN_RULES, rule])

    with pytest.raises(RedactionFailed) as caught:
        redactor.redact(b'{"a": "opensesame"}')

    assert "opensesame" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_redact_text_fails_closed():
    rule = TextRule(name="broken", patterns=(re.compile("open"),), accepts=fail)

    with pytest.raises(RedactionFailed):
        Redactor(b"k", [rule]).redact_text("opensesame")


@pytest.mark.parametrize("document", [b'{"a": "\xff"}', b'{"a": "b"]]]'])
def test_redact_fails_closed_on_what_is_no_json(document):
    with pytest.raises(RedactionFailed):
        REDACTOR.redact(document)


# Properties

FRAGMENTS = st.sampled_from(
    [
        "bob@example.com",
        "sk-abcdefghijklmnopqrst",
        "4111111111111111",
        "4111 ",
        "1111",
        "ghp_aB3daB3daB3daB3daB3d",
        "eyJhbGciOi.eyJzdWIiOi.dozjgNryP4",
        "password=",
        "token: ",
        "api_key",
        '"secret":',
        "Bearer ",
        "Authorization: ",
        "Basic ",
        "dXNlcjpwYXNz",
        "https://",
        "user:hunter2@host.example",
        "AKIAIOSFODNN7EXAMPLE",
        "[email:1a2b3c4d]",
        "[secret:",
        "-----BEGIN PRIVATE KEY-----",
        "\nMIIEpAIBAAKCAQEA7bq0",
        "-----END PRIVATE KEY-----",
        "cookie: a=b; ",
        "cvv: 731",
        "\\",
        '"',
        "'",
        "[",
        "]",
        "{",
        "}",
        ":",
        "=",
        "@",
        ".",
        "-",
        "_",
        "/",
        "é",
        "😀",
    ]
)
TEXT = st.lists(FRAGMENTS | st.text(max_size=3) | st.sampled_from(" \n"), max_size=8).map("".join)
KEYS = TEXT | st.sampled_from(
    [
        "password",
        "apiKey",
        "token",
        "name",
        "value",
        "key",
        "base64",
        "type",
        "properties",
        "logprob",
    ]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.just(4111111111111111) | TEXT
LOADED = st.recursive(
    SCALARS | st.just(PEM),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(KEYS, inner, max_size=3)
        | inner.map(json.dumps)
        | TEXT.map(lambda text: {"base64": base64.b64encode(text.encode()).decode()})
        | st.tuples(st.sampled_from(["password", "token", "Cookie"]), inner).map(lambda pair: [[*pair]])
    ),
    max_leaves=12,
)
# Nothing that looks like a secret can be spelled with these.
PLAIN_TEXT = st.text(alphabet='abcdef ,\n\t"\\é\U0001f600', max_size=30)
HARMLESS = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats() | PLAIN_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(PLAIN_TEXT, inner, max_size=4),
)


def shape(value: Any) -> Any:
    """The value with every string and number forgotten."""
    if isinstance(value, dict):
        return [shape(inside) for inside in value.values()]
    if isinstance(value, list):
        return [shape(inside) for inside in value]
    return value if value is None or isinstance(value, bool) else "scalar"


@given(LOADED, st.booleans())
def test_redacting_twice_is_redacting_once(value, ascii_only):
    document = json.dumps(value, ensure_ascii=ascii_only).encode()

    once = REDACTOR.redact(document)

    assert REDACTOR.redact(once.content).content == once.content
    assert REDACTOR.redact(once.content).counts == {}


@given(LOADED)
def test_redact_keeps_the_shape_of_the_document(value):
    redacted = REDACTOR.redact(json.dumps(value).encode())

    assert shape(json.loads(redacted.content)) == shape(value)


@given(HARMLESS, st.sampled_from([None, 2]), st.booleans())
def test_redact_leaves_documents_without_secrets(value, indent, ascii_only):
    document = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()

    assert REDACTOR.redact(document).content is document


@given(TEXT)
def test_redact_text_twice_is_once(text):
    once = REDACTOR.redact_text(text)

    assert REDACTOR.redact_text(once) == once


@given(LOADED)
def test_redact_takes_out_a_secret_wherever_it_is_put(value):
    document = json.dumps({"run": value, "steps": [{"note": f"say opensesame-{7} and"}]})
    planted = document.replace("say opensesame-7", "password=opensesame-7")
    assert "opensesame-7" in planted

    assert "opensesame-7" not in redact(planted)


# Speed

HOSTILE = [
    "a",
    "a.a-a@",
    "@a.b",
    "eyJaaaaaa.",
    "-----BEGIN RSA PRIVATE KEY-----\n",
    "-----BEGIN PRIVATE KEY-----AAAA-",
    "sk-",
    "://a:",
    "4111-",
    "41111111111111111111 ",
    'password="',
    "password\\\\\\",
    "authorization: bearer ",
    "cookie: a=b; ",
    "SG.aaaaaaaaaaaaaaaaaaaa",
    "password is ",
    "curl -u a:",
    "mysql -p",
    "mysql ",
    "<password>a",
    "<a.a",
    "DE00 AAAA ",
    "DE00AAAAAAAAAAAAAAA ",
    "123-45-6789-",
    "12345678:AA",
    "[secret:1234abcd]",
    '{"a":',
    "\\u0041",
]


def redact_anew(document: bytes) -> bytes:
    """By a redactor that remembers no string."""
    return Redactor(b"project one").redact(document).content


@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize("ending", ["", "@!"])
def test_redact_stays_linear_on_hostile_strings(piece, ending):
    def document(size: int) -> bytes:
        return json.dumps({"a": piece * (size // len(piece)) + ending}).encode()

    assert growth(redact_anew, document(25_000), document(100_000)) < LINEAR


def test_redact_stays_linear_on_many_named_values():
    def document(count: int) -> bytes:
        return b"[" + b'{"value": 1, "name": "password"},' * count + b"1]"

    assert REDACTOR.redact(document(4_000)).counts == {"secret": 4_000}
    assert growth(redact_anew, document(1_000), document(4_000)) < LINEAR


@pytest.mark.parametrize(
    "document",
    [
        {"pwd": "correct horse"},
        {"api_keys": ["first-of-them", "second-of-them"]},
        {"credentials": {"key": "first-of-them"}},
        {"note": "rpk_" + "Zq81LmTx04VbNc77RwPd5KfHsJ2gAAAA1234"},
    ],
)
def test_secrets_under_less_common_names_are_taken(document):
    text = json.dumps(document).encode()

    redacted = REDACTOR.redact(text).content

    assert redacted != text
    for secret in (b"correct horse", b"of-them", b"Zq81LmTx04"):
        assert secret not in redacted
