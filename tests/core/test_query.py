"""The query language: what is understood, and that nothing else gets through."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.errors import QueryError
from sessions_app.core.search.query import EXAMPLES, KEYS, NumberValue, Query, Term, TextValue, parse_query, quoted


def term(text: str) -> Term:
    query = parse_query(text)
    assert len(query.terms) == 1
    return query.terms[0]


def test_parse_query_reads_a_key_and_a_value():
    assert parse_query("user:u_7710") == Query(
        terms=(Term(key="user", values=(TextValue(text="u_7710"),), is_negated=False, part="user:u_7710"),),
        parts=("user:u_7710",),
    )


def test_parse_query_reads_any_of():
    assert term("status:(error OR cut_off)").values == (TextValue(text="error"), TextValue(text="cut_off"))


def test_parse_query_reads_a_negation():
    assert term("-user:x").is_negated


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("steps:>20", NumberValue(comparison=">", number=20)),
        ("steps:<=3", NumberValue(comparison="<=", number=3)),
        ("steps:3", NumberValue(comparison="=", number=3)),
        ("took:>30s", NumberValue(comparison=">", number=30_000)),
        ("took:<1.5m", NumberValue(comparison="<", number=90_000)),
        ("took:>=250ms", NumberValue(comparison=">=", number=250)),
        ("tool:lookup_*", TextValue(text="lookup_*", is_pattern=True)),
        ('tool:"lookup_*"', TextValue(text="lookup_*")),
        ('user:"a b:c"', TextValue(text="a b:c")),
        (r'user:"a \" b"', TextValue(text='a " b')),
        ("session:http://x/y?z=1", TextValue(text="http://x/y?z=1")),
        ("status:cut-off", TextValue(text="cut_off")),
        ("STATUS:OK", TextValue(text="ok")),
    ],
)
def test_parse_query_reads_values(text, value):
    assert term(text).values == (value,)


def test_parse_query_reads_words_and_phrases():
    query = parse_query('refund status:ok "our policy" now')

    assert query.phrases == ("refund", "our policy", "now")
    assert [found.key for found in query.terms] == ["status"]


def test_parse_query_reads_and_between_parts():
    assert parse_query("status:ok AND user:x").parts == ("status:ok", "user:x")


@pytest.mark.parametrize(
    ("text", "part", "words"),
    [
        ("stauts:error", "stauts:error", "did you mean status:?"),
        ("zzz:error", "zzz:error", "There is no key zzz"),
        ("a status:errr b", "status:errr", "status is one of ok, error"),
        ("user:", "user:", "A value is missing: try user:"),
        ("took:>30", "took:>30", "needs a unit"),
        ("steps:>20s", "steps:>20s", "has no unit"),
        ("steps:many", "steps:many", "compared with a number"),
        ("user:>3", "user:>3", "user is text"),
        ("status:(error ok)", "status:(error ok)", "joined by OR"),
        ("status:(error OR )", "status:(error OR )", "joined by OR"),
        ("status:(error)x", "status:(error)x", "Nothing may follow"),
        ("status:ok OR user:x", "OR", "must be in parentheses"),
        ("(status:ok)", "(status:ok)", "A parenthesis follows a key"),
        ("-refund", "-refund", "words cannot be excluded"),
        ('user:"open', 'user:"open', "The quote is not closed"),
        ("status:(ok", "status:(ok", "parenthesis is not closed"),
        ("status:ok) x", "status:ok) x", "not closed, or is in the wrong place"),
        ("has:everything", "has:everything", "has is one of"),
        ("???", "???", "no letter or digit"),
        ("a\x00b", "\x00", "NUL"),
    ],
)
def test_parse_query_refuses_what_it_cannot_understand_and_names_the_part(text, part, words):
    with pytest.raises(QueryError) as caught:
        parse_query(text)

    assert caught.value.part == part
    assert words in caught.value.message


def test_parse_query_refuses_what_is_too_long():
    with pytest.raises(QueryError, match="at most 2,000"):
        parse_query("x" * 2001)
    with pytest.raises(QueryError, match="at most 40 parts"):
        parse_query("x " * 41)


def understood_or_refused(text: str) -> Query | QueryError:
    try:
        return parse_query(text)
    except QueryError as error:
        return error


@given(st.text(max_size=80))
def test_parse_query_either_understands_or_refuses_with_a_part_of_the_text(text):
    found = understood_or_refused(text)

    if isinstance(found, QueryError):
        assert found.part in text
        assert found.message
    else:
        assert parse_query(" ".join(found.parts)) == found


@given(st.text(min_size=1, max_size=40).filter(lambda text: "\x00" not in text))
def test_quoted_values_come_back_as_they_were(text):
    assert term(f"user:{quoted(text)}").values == (TextValue(text=text),)


def test_without_leaves_one_part_out():
    assert parse_query("status:ok user:x refund").without("user:x") == "status:ok refund"


def test_every_key_has_an_example_that_works():
    assert sorted(EXAMPLES) == sorted(KEYS)
    for key, example in EXAMPLES.items():
        assert term(example).key == key
