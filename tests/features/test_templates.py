"""The template language: what lines mean, that they survive writing, and every complaint."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.errors import TemplateError
from trellis.features import Template, Templates, as_templates, named_sets
from trellis.features.templates import Call, Term


def lines(text):
    return [template.line() for template in Templates.parse(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("word", ["word"]),
        ("word[0]", ["word"]),
        ("word[-1..1]", ["word[-1]", "word", "word[1]"]),
        ("word[-1..0] & word[0..1]", ["word[-1] & word", "word & word[1]"]),
        ("word[-1..0] & pos", ["word[-1] & pos", "word & pos"]),
        ("pos & word[-1..0] & pos[1..2]", ["pos & word[-1] & pos[1]", "pos & word & pos[2]"]),
        ("suffix(word, 1..2)", ["suffix(word, 1)", "suffix(word, 2)"]),
        (
            "suffix(word, 1..2)[-1..0]",
            ["suffix(word, 1)[-1]", "suffix(word, 1)", "suffix(word, 2)[-1]", "suffix(word, 2)"],
        ),
        ("lower(word)[-1] & pos", ["lower(word)[-1] & pos"]),
        ("char[0] == char[1]", ["char == char[1]"]),
        ("char[-1..0] == char[1..2]", ["char[-1] == char[1]", "char == char[2]"]),
        ("lower(w) == lower(w)[-2]", ["lower(w) == lower(w)[-2]"]),
        ("ngrams(word, 2..4)", ["ngrams(word, 2..4)"]),
        ("ngrams(word, 3)", ["ngrams(word, 3..3)"]),
        ("number(h)", ["number(h)"]),
        ("number(h)[-1..0]", ["number(h)[-1]", "number(h)"]),
        ("wordlist(char, 2..6)", ["wordlist(char, 2..6)"]),
        ("variety(char, 2..4)", ["variety(char, 2..4)"]),
        ("variety(char, 3)", ["variety(char, 3..3)"]),
        ("cluster(word, 4..5)[-1]", ["cluster(word, 4)[-1]", "cluster(word, 5)[-1]"]),
        ('cluster(word) & dictionary(word, "a b")', ['cluster(word) & dictionary(word, "a b")']),
        ("variety[-1] & word", ['"variety"[-1] & word']),  # a column of that name
        ("variety == variety[1]", ['"variety" == "variety"[1]']),
        ("bias; bos; eos", ["bias", "bos", "eos"]),
        ("word & pos @ min_count=3", ["word & pos @ min_count=3"]),
        ("min_count = 3; word; bos; pos @ min_count=1; x @ min_count=2",
         ["word @ min_count=3", "bos @ min_count=3", "pos", "x @ min_count=2"]),
        ("word; min_count=2", ["word @ min_count=2"]),
        ("word @ min_count = 1", ["word"]),
        ("word @ edge", ["word @ edge"]),
        ("word @ edge @ min_count=2", ["word @ min_count=2 @ edge"]),
        ("word @ min_count=2 @ edge @ edge", ["word @ min_count=2 @ edge"]),
        ("min_count = 2; word @ edge; pos", ["word @ min_count=2 @ edge", "pos @ min_count=2"]),
        ("word[-1..0] & pos @ edge", ["word[-1] & pos @ edge", "word & pos @ edge"]),
        ("bias @ edge; number(h) @ edge", ["bias @ edge", "number(h) @ edge"]),
        ("ngrams(word, 2..3)@edge; char == char[1] @edge",
         ["ngrams(word, 2..3) @ edge", "char == char[1] @ edge"]),
        ("edge @ edge", ["edge @ edge"]),
        ("edges = mark; word @ edge", ["word @ edge"]),
        ("word;word\nword", ["word"]),
        ("# only\n\nword # the word; pos\n  pos  ;; ", ["word", "pos"]),
        ("word\r\npos\rx", ["word", "pos", "x"]),
        ('test(word, "a;#b")', ['test(word, "a;#b")']),
        (r'match(word, "\d+\"\\\\")[1]', [r'match(word, "\\d+\"\\\\")[1]']),
        ('"pos-tag"[-1] & lower("a b")', ['"pos-tag"[-1] & lower("a b")']),
        ('"word"', ["word"]),
        ('"bias" & "number"', ['"bias" & "number"']),
        ("bias[1]", ['"bias"[1]']),
        ("number @ min_count=2", ['"number" @ min_count=2']),
        ("größe[1] & _x1", ["größe[1] & _x1"]),
    ],
)  # fmt: skip
def test_meaning(text, expected):
    assert lines(text) == expected
    assert lines("\n".join(expected)) == expected


def test_parsed_parts():
    (template,) = Templates.parse(r'match(word, "\d\n")[-2]')
    assert template == Template(
        "conjunction", (Term("word", Call("match", ("\\d\n",)), offset=-2),), min_count=1
    )
    assert Templates.parse(["word", "pos"]).columns() == ["word", "pos"]
    assert len(Templates.parse("word[-2..2]; bos")) == 6
    assert Templates.parse("edges = mark; word").mark_edges
    assert not Templates.parse("edges = mark; edges = skip; word").mark_edges


COLUMNS = st.sampled_from(
    ["word", "bias", "min_count", "a b", 'q"\\', "x;#", "1", "é", "l\r\nf", ""]
)
CALLS = st.one_of(
    st.none(),
    st.sampled_from([Call("lower"), Call("prefix", (2,)), Call("suffix", (12,)), Call("cluster")]),
    st.text(st.sampled_from('ab;#"\\n\n\r\u2028\x85')).map(lambda s: Call("test", (re.escape(s),))),
    st.text(st.sampled_from('ab;#"n\n\r\u2028\x85')).map(lambda s: Call("match", (s,))),
)
OFFSETS = st.integers(-3, 3) | st.sampled_from([-1000, 1000])
TERMS = st.builds(Term, COLUMNS, CALLS, OFFSETS)
COUNTS = st.sampled_from([1, 1, 2, 30])


@st.composite
def templates(draw):
    kind = draw(
        st.sampled_from(["conjunction", "equal", "ngrams", "wordlist", "variety", "number", "bos"])
    )
    count = draw(COUNTS)
    if kind == "conjunction":
        return Template(kind, tuple(draw(st.lists(TERMS, min_size=1, max_size=4))), min_count=count)
    if kind == "equal":
        term = draw(TERMS)
        other = draw(OFFSETS.filter(lambda k: k != term.offset))
        return Template(kind, (term, Term(term.column, term.call, other)), min_count=count)
    if kind == "bos":
        return Template(draw(st.sampled_from(["bias", "bos", "eos"])), min_count=count)
    column = draw(COLUMNS)
    if kind == "number":
        return Template(kind, (Term(column, offset=draw(OFFSETS)),), min_count=count)
    low = draw(st.integers(1, 9))
    return Template(kind, (Term(column),), low, low + draw(st.integers(0, 9)), count)


@given(
    st.lists(st.tuples(templates(), st.booleans()), min_size=1, max_size=4),
    st.booleans(),
    st.sampled_from([256, 1, 4096]),
)
def test_any_set_survives_writing(found, mark_edges, n_clusters):
    templates = tuple(replace(t, edge=edge) for t, edge in found)
    whole = Templates(templates, mark_edges, n_clusters)
    assert Templates.parse(whole.text()) == whole
    assert Templates.parse([t.line() for t in whole]).templates == whole.templates


def test_a_template_is_kept_once():
    word = Template("conjunction", (Term("word"),))
    assert Templates((word, Template("bos"), word)).templates == (word, Template("bos"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no templates: expected lines such as word[-2..2]"),
        ("# nothing\nmin_count = 2", "no templates"),
        ("word\n\n\nword %", "template line 4, 'word %': cannot read '%'"),
        ("a; b\nword pos", "template line 2, 'word pos': did not expect pos"),
        ("word; pos[", "template line 1, 'pos[': expected number, found the end"),
        ("word[1", "expected ], found the end"),
        ("word[x]", "expected number, found x"),
        ("word[2..1]", "range 2..1 runs backwards"),
        ("word[-1001..0]", "-1001..0 is too large: at most 1000"),
        ("word[0..1001]", "0..1001 is too large: at most 1000"),
        ("word[1234567890]", "the number 123456789… is too large"),
        ("suffix(word, 1..100000)", "1..100000 is too large"),
        ("word[-1..1] & pos[0..1]", "ranges of different lengths in one template: [2, 3]"),
        ("word & ", "expected name, found the end"),
        ("& word", "expected name, found &"),
        ("3", "expected name, found 3"),
        ("lower(word", "expected ), found the end"),
        ("lower(3)", "expected name, found 3"),
        ("lower(word, 2)", "lower takes no argument but the column"),
        ("prefix(word)", "prefix takes a length"),
        ("prefix(word, 0..2)", "prefix takes a length"),
        ("prefix(word, 1, 2)", "prefix takes one argument after the column"),
        ("prefix(word, x)", "expected number, found x"),
        ('test(word, "(")', "regular expression '('"),
        ("nope(word)", "unknown function 'nope'; known: all_upper"),
        ('"word"(pos)', "did not expect ("),
        ('word "', "cannot read '\"'"),
        ('word; pos "#', "template line 1, 'pos \"#': cannot read '\"#'"),
        ("word == pos", "both sides of == must use the same column"),
        ("word == lower(word)", "both sides of == must use the same column"),
        ("word == word[0]", "both sides of == are the same term"),
        ("word == word[1] & pos", "did not expect &"),
        ("ngrams(word)", "expected ,, found )"),
        ("ngrams[1]", "expected (, found ["),
        ("ngrams(word, 0..2)", "ngrams takes lengths from 1, e.g. ngrams(word, 2..4)"),
        ("ngrams(word, 2)[1]", "did not expect ["),
        ("wordlist(char, -1..2)", "wordlist takes lengths from 1"),
        ("wordlist(char, 2..21)", "wordlist takes lengths up to 20"),
        ("variety(char, 2..21)", "variety takes lengths up to 20"),
        ("variety(char, 0..2)", "variety takes lengths from 1"),
        ("cluster(word, 0)", "cluster takes a number of bits"),
        ("dictionary(word)", "dictionary takes a name in quotes"),
        ("clusters = 0", "there may be 1 to 4096 clusters"),
        ("clusters = 5000", "there may be 1 to 4096 clusters"),
        ("clusters = many", "expected «edges = mark»"),
        ("word @ 3", "expected min_count or edge, found 3"),
        ("word @ edges", "expected min_count or edge, found edges"),
        ("word @", "expected min_count or edge, found the end"),
        ("word @ edge=1", "did not expect ="),
        ("word @ edge edge", "did not expect edge"),
        ("word @ edge & pos", "did not expect &"),
        ("word @ min_count 3", "expected =, found 3"),
        ("word @ min_count=0", "min_count must be at least 1"),
        ("word @ min_count=-1", "min_count must be at least 1"),
        ("word @ min_count=9999999999", "the number 999999999… is too large"),
        ("min_count = 0", "min_count must be at least 1"),
        (
            "min_count = ²",
            "expected «edges = mark», «edges = skip», «min_count = n» or «clusters = n»",
        ),
        ("min_count = x", "expected «edges = mark»"),
        ("edges = maybe", "expected «edges = mark»"),
    ],
)
def test_bad_text(text, message):
    with pytest.raises(TemplateError, match=re.escape(message)):
        Templates.parse(text)


def test_bad_lists():
    with pytest.raises(TemplateError, match="template line 2 is 3; expected a string"):
        Templates.parse(["word", 3])
    with pytest.raises(
        TemplateError, match=re.escape("template line 2, 'a; b': cannot read '; b'")
    ):
        Templates.parse(["word", "a; b"])
    for other in (3, None, b"word", {"word": 1}, np.array("word"), Templates):
        with pytest.raises(TemplateError, match="templates are text or a list of lines, not "):
            Templates.parse(other)


@pytest.mark.parametrize(
    ("kind", "n_terms", "message"),
    [
        ("conjunction", 0, "conjunction has 0 term(s); expected at least 1"),
        ("equal", 1, "equal has 1 term(s); expected 2"),
        ("ngrams", 2, "ngrams has 2 term(s); expected 1"),
        ("bias", 1, "bias has 1 term(s); expected 0"),
    ],
)
def test_wrong_numbers_of_terms(kind, n_terms, message):
    with pytest.raises(TemplateError, match=re.escape(message)):
        Template(kind, (Term("word"),) * n_terms)


@pytest.mark.parametrize("name", named_sets())
def test_named_sets(name):
    found = Templates.named(name)
    assert Templates.parse(found.text()) == found
    plain = {"chunking": ["word", "pos"], "wordseg": ["char"]}.get(name, ["word"])
    assert found.resolved(plain) == found
    synonym = {"word": "form", "pos": "upos", "char": "character"}
    other = found.resolved([*(synonym[c] for c in plain), "misc"])
    assert other.columns() == [synonym[c] for c in plain]
    assert as_templates(name, plain) == found


def test_there_are_named_sets():
    assert named_sets() == ["chunking", "ner", "pos", "wordseg"]
    with pytest.raises(TemplateError, match="no template set 'nope'; there are chunking, ner, pos"):
        Templates.named("nope")


def test_resolution():
    found = Templates.parse("word & pos; lower(word)")
    assert found.resolved(["pos", "token"]).text() == "token & pos\nlower(token)"
    assert found.resolved(["word", "form", "xpos", "upos"]).text() == "word & xpos\nlower(word)"
    assert Templates.parse("char; bos").resolved(["word"]).text() == "word\nbos"
    # Two names of one column: each template once.
    assert Templates.parse("word; form; char").resolved(["form"]).text() == "form"
    message = "template 'word & pos' needs the column 'pos'; the corpus has word, tag"
    with pytest.raises(TemplateError, match=message):
        found.resolved(["word", "tag"])
    with pytest.raises(TemplateError, match="needs the column 'word'; the corpus has none"):
        found.resolved([])


def test_what_a_user_may_pass():
    columns = ["form", "pos", "my-column"]
    assert as_templates("chunking", columns).columns() == ["form", "pos"]
    assert as_templates("pos", columns) == Templates.named("pos").resolved(columns)
    assert as_templates("word", columns).text() == "form"
    assert as_templates("form", columns).text() == "form"
    assert as_templates("bias", columns).text() == "bias"
    assert as_templates("word[-1]; pos", columns).text() == "form[-1]\npos"
    assert as_templates(["word", "pos"], columns).text() == "form\npos"
    assert as_templates(np.array(["word"]), columns).text() == "form"
    assert as_templates(Templates.parse("word"), columns).text() == "form"
    for automatic in ("auto", None):
        assert as_templates(automatic, columns) == Templates.default_for(columns)
    with pytest.raises(TemplateError, match="no template set 'unknown-set'"):
        as_templates("unknown-set", columns)
    for wrong in (3, {"word": 1}):
        kind = type(wrong).__name__
        with pytest.raises(TemplateError, match=f"features must be a set's name, .* got {kind}"):
            as_templates(wrong, columns)


@pytest.mark.parametrize("columns", [["word"], ["my-tag", "number"], ["bias", "2", 'a"b']])
def test_default(columns):
    found = Templates.default_for(columns)
    assert found.columns() == columns
    assert Templates.parse(found.text()) == found
    assert len(found) == 7 * len(columns) + 1 + 3 + 6 + 2


def test_no_default_without_columns():
    with pytest.raises(TemplateError, match="neither columns nor features to learn from"):
        Templates.default_for([])


def test_a_long_line_is_read_once():
    with pytest.raises(TemplateError, match="cannot read"):
        Templates.parse('"' + '\\"' * 200_000)
    assert len(Templates.parse(["word[0]"] * 20_000 + [f"w{i}" for i in range(20_000)])) == 20_001
