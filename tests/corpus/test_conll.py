"""Column files: agreement with a plain reader, round trips, and errors that name the line."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trellis.corpus import Corpus, read_conll, write_conll
from trellis.corpus.conll import format_conll
from trellis.errors import DataError

# Characters that some notion of white space or line takes for a break, and Trellis does not.
ODD = 'aé\u00a0\u2028\u3000\x0b\x0c\x1c\x85\ufeff\U0001f600#"\\_'
PLAIN = st.characters(exclude_categories=["Cs"], exclude_characters=" \t\r\n\0")
FIELD = st.text(st.sampled_from(ODD), min_size=1, max_size=3) | st.text(PLAIN, min_size=1)
SPACED_FIELD = FIELD | st.tuples(FIELD, FIELD).map(" ".join) | FIELD.map(lambda f: f" {f} ")


def plain_reader(text, *, tabs=False, skip=""):
    """Samples as lists of rows of fields."""
    samples, current = [], []
    for raw in text.removeprefix("\ufeff").split("\n"):
        line = raw.removesuffix("\r")
        if not line.strip(" \t"):
            samples.append(current)
            current = []
        elif not (skip and line.startswith(skip)):
            current.append(line.split("\t") if tabs else re.findall(r"[^ \t]+", line))
    return [sample for sample in [*samples, current] if sample]


def rows_of(corpus):
    """The same from a corpus: columns, then the label."""
    rows = []
    for sample in corpus:
        columns = [*sample.columns.values()]
        if sample.labels is not None:
            columns.append(sample.labels)
        rows.append([list(row) for row in zip(*columns, strict=True)])
    return rows


@st.composite
def files(draw, n_columns, *, tabs):
    """Text with blank lines anywhere, either line end, comments, a mark, maybe no last newline."""
    field = SPACED_FIELD if tabs else FIELD
    gap = st.just("\t") if tabs else st.sampled_from([" ", "\t", "  ", " \t "])
    margin = st.just("") if tabs else st.sampled_from(["", " ", "\t"])
    parts = ["\ufeff"] if draw(st.booleans()) else []
    for kind in draw(st.lists(st.sampled_from(["row", "row", "row", "blank", "comment"]))):
        if kind == "row":
            fields = [draw(field) for _ in range(n_columns)]
            line = fields[0] + "".join(draw(gap) + f for f in fields[1:])
            line = draw(margin) + line + draw(margin)
            if line.startswith("##"):
                line = "x" + line
        else:
            line = draw(st.sampled_from(["", " ", "\t "])) if kind == "blank" else "## no"
        parts += [line, draw(st.sampled_from(["\n", "\r\n"]))]
    if len(parts) > 1 and draw(st.booleans()):
        parts.pop()
    return "".join(parts)


@pytest.mark.parametrize("tabs", [False, True])
@given(data=st.data())
def test_agrees_with_a_plain_reader(tabs, data):
    names = ["word", "pos", "label"][: data.draw(st.integers(1, 3))]
    text = data.draw(files(len(names), tabs=tabs))
    separator = "\t" if tabs else None
    expected = plain_reader(text, tabs=tabs, skip="##")
    source = io.BytesIO(text.encode())
    corpus = read_conll(source, names, separator=separator, skip="##")
    assert rows_of(corpus) == expected
    labelled = read_conll(io.StringIO(text), names, names[-1], separator=separator, skip="##")
    assert rows_of(labelled) == expected
    assert list(labelled.columns) == names[:-1]
    assert labelled.label_name == names[-1]


@st.composite
def corpora(draw, field):
    """Columns and labels that a column file can hold."""
    columns, labels = {"word": [], "pos": []}, []
    for n in draw(st.lists(st.integers(1, 3), max_size=4)):
        for samples in columns.values():
            samples.append([draw(field) for _ in range(n)])
        labels.append([draw(field) for _ in range(n)])
    return Corpus.from_columns(columns, labels)


@pytest.mark.parametrize("separator", [" ", "\t"])
@given(data=st.data())
def test_round_trip(separator, data, tmp_path_factory):
    corpus = data.draw(corpora(FIELD if separator == " " else SPACED_FIELD))
    path = tmp_path_factory.mktemp("conll") / "file.txt"
    write_conll(path, corpus, separator=separator)
    again = read_conll(
        path, ["word", "pos", "y"], "y", separator="\t" if separator == "\t" else None
    )
    assert rows_of(again) == rows_of(corpus)


def test_a_mark_at_the_start_is_not_lost(tmp_path):
    corpus = Corpus.from_columns({"word": [["\ufeffa"]]})
    write_conll(tmp_path / "f", corpus)
    assert read_conll(tmp_path / "f", ["word"])[0].columns == {"word": ["\ufeffa"]}


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed(tmp_path, compress):
    path = tmp_path / "no-suffix"
    path.write_bytes(compress("\ufeffthé DT\r\n".encode()))
    assert read_conll(path, ["word", "pos"])[0].columns == {"word": ["thé"], "pos": ["DT"]}


def test_written_text():
    corpus = Corpus.from_columns({"word": [["a", "b"], ["c"]]}, [["X", None], ["Y"]])
    assert format_conll(corpus, labels=[["P", "Q"], ["R"]]) == "a X P\nb _ Q\n\nc Y R\n\n"
    assert format_conll(Corpus.from_columns({"word": []})) == ""
    bare = Corpus(corpus.offsets, labels=corpus.labels)
    assert format_conll(bare, separator="\t") == "X\n_\n\nY\n\n"


def test_predictions_may_be_several_columns():
    corpus = Corpus.from_columns({"word": [["a"]]})
    assert format_conll(corpus, labels=[["X 0.9"]]) == "a X 0.9\n\n"


def test_empty_files():
    for data in (b"", b"\n\n", b"\xef\xbb\xbf", b" \t\r\n"):
        corpus = read_conll(io.BytesIO(data), ["word", "label"], "label")
        assert len(corpus) == 0
        assert corpus.label_lists() == []


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (b"a b\n\nc d e\n", {}, "line 3: 3 fields, expected 2 (word label)"),
        (b"# x\n\na b\nc\n", {"skip": "#"}, "line 4: 1 fields, expected 2 (word label)"),
        (b"a\tb\nc d\te\tf", {"separator": "\t"}, "line 2: 3 fields, expected 2"),
        (b"a\tb\n\n\tc\n", {"separator": "\t"}, "line 3: the field 'word' is empty"),
        (b"a\tb\r\nc\t\r\n", {"separator": "\t"}, "line 2: the field 'label' is empty"),
        (b"a b\nc d\n\xff e\n", {}, "line 3: not UTF-8 text; convert the file to UTF-8"),
        (b"a b\n\nc \xc3\n", {}, "line 3: not UTF-8 text"),
        (b"\xef\xbb\xbfa b\nc\0d e\n", {}, "line 2: a NUL byte; this is not a text file"),
        ("a b\n".encode("utf-16"), {}, "line 1: a NUL byte"),
    ],
)
def test_bad_files(tmp_path, data, options, message):
    path = tmp_path / "bad.txt"
    path.write_bytes(data)
    with pytest.raises(DataError, match=re.escape(f"{path}, {message}")):
        read_conll(path, ["word", "label"], "label", **options)
    with pytest.raises(DataError, match=re.escape(f"input, {message}")):
        read_conll(io.BytesIO(data), ["word", "label"], "label", **options)


def test_standard_input_is_named(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("a b c\n"))
    with pytest.raises(DataError, match="standard input, line 1: 3 fields"):
        read_conll("-", ["word", "label"])


@pytest.mark.parametrize(
    ("columns", "label", "options", "message"),
    [
        ("word", None, {}, "columns must be a list of names, got the string 'word'"),
        ([], None, {}, "columns must name at least one column"),
        (["word", ""], None, {}, "column name '' is not a non-empty string"),
        (["word", 3], None, {}, "column name 3 is not a non-empty string"),
        (["word", "pos", "word"], None, {}, "column 'word' is named twice"),
        (["word", "pos"], "ner", {}, "label column 'ner' is not among the columns word, pos"),
        (["word"], None, {"separator": ","}, "separator must be None (spaces or tabs) or a tab"),
    ],
)
def test_bad_arguments(columns, label, options, message):
    with pytest.raises(DataError, match=re.escape(message)):
        read_conll(io.BytesIO(b"a\n"), columns, label, **options)


def corpus_of(*words, labels=None):
    return Corpus.from_columns({"word": [list(words)]}, None if labels is None else [labels])


@pytest.mark.parametrize(
    ("corpus", "options", "message"),
    [
        (corpus_of("a"), {"separator": ","}, "separator must be a space or a tab, got ','"),
        (Corpus(corpus_of("a").offsets), {}, "no columns and no labels to write"),
        (corpus_of("a", ""), {}, "column 'word' holds '', which a column file cannot"),
        (corpus_of("a b"), {}, "column 'word' holds 'a b'"),
        (corpus_of("a\tb"), {"separator": "\t"}, r"column 'word' holds 'a\tb'"),
        (corpus_of("a\nb"), {}, r"column 'word' holds 'a\nb'"),
        (corpus_of("a\r"), {}, r"column 'word' holds 'a\r'"),
        (corpus_of("a\0"), {}, r"column 'word' holds 'a\x00'"),
        (corpus_of("\ud800"), {}, r"column 'word' holds '\ud800'"),
        (corpus_of("a", labels=["X Y"]), {}, "the label column holds 'X Y'"),
        (corpus_of("a", labels=[""]), {}, "the label column holds ''"),
        (corpus_of("a", labels=[{"X", "Y"}]), {}, "a set of allowed labels cannot be written"),
        (corpus_of("a"), {"labels": [["X\n"]]}, r"labels holds 'X\n'"),
        (
            corpus_of("a"),
            {"labels": [["X", "Y"]]},
            "sample 0: corpus has 1 positions, labels has 2",
        ),
        (corpus_of("a"), {"labels": []}, "corpus and labels differ in number: 1 and 0 samples"),
        (corpus_of("a"), {"labels": [3]}, "labels of sample 0: expected a list of positions"),
        (corpus_of("  "), {"separator": "\t"}, "a line of nothing but spaces would end a sample"),
    ],
)
def test_what_cannot_be_written_leaves_nothing_behind(tmp_path, corpus, options, message):
    path = tmp_path / "out.txt"
    with pytest.raises(DataError, match=re.escape(message)):
        write_conll(path, corpus, **options)
    assert list(tmp_path.iterdir()) == []
    path.write_text("old")
    with pytest.raises(DataError):
        write_conll(path, corpus, **options)
    assert [p.name for p in tmp_path.iterdir()] == ["out.txt"]
    assert path.read_text() == "old"


def test_only_symbols_that_occur_matter_to_a_writer():
    whole = Corpus.from_columns({"word": [["a"], ["b c"]]})
    assert format_conll(whole[:1]) == "a\n\n"


@example(b"\xef\xbb\xbf")
@given(st.binary(max_size=40))
def test_arbitrary_bytes_give_a_corpus_or_a_data_error(data):
    try:
        corpus = read_conll(io.BytesIO(data), ["word"], skip="#")
    except DataError:
        return
    # Bytes that are no text are allowed in lines that are skipped.
    assert rows_of(corpus) == plain_reader(data.decode(errors="replace"), skip="#")
