"""CoNLL-U: words, heads as edges, ranges and empty nodes left out, and every complaint."""

from __future__ import annotations

import gzip
import io
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.corpus import Column, Corpus, Labels, read_conllu, write_conllu
from trellis.corpus.corpus import bounds
from trellis.errors import DataError

NAMES = ["form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc"]
PLAIN = st.characters(exclude_categories=["Cs"], exclude_characters="\t\r\n\0")
ODD = st.sampled_from("aé \u2028\ufeff_#-.=|")
FIELD = st.text(ODD, min_size=1, max_size=3) | st.text(PLAIN, min_size=1)


def row(id_, form="w", *, upos="_", head="_", lemma="_"):
    return "\t".join([str(id_), form, lemma, upos, "_", "_", str(head), "_", "_", "_"])


def read(*rows, label="upos", end="\n"):
    return read_conllu(io.StringIO(end.join(rows)), label)


EXAMPLE = [
    "# sent_id = 1",
    "# text = Let's sleep",
    row("1-2", "Let's"),
    row(1, "Let", upos="VERB", head=3),
    row(2, "'s", upos="PRON", head=1),
    row("2.1", "you", upos="PRON"),
    row(3, "sleep", upos="VERB", head=0),
    "",
    "# another",
    row(1, "# not a comment", upos="X", head=0),
    "",
]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_words_labels_and_edges(end):
    corpus = read(*EXAMPLE, end=end)
    assert [s.columns["form"] for s in corpus] == [["Let", "'s", "sleep"], ["# not a comment"]]
    assert corpus.label_lists() == [["VERB", "PRON", "VERB"], ["X"]]
    assert corpus.edges.tolist() == [[0, 2], [1, 0]]
    assert corpus.label_name == "upos"
    assert list(corpus.columns) == [name for name in NAMES if name != "upos"]
    assert corpus[1:].edges.tolist() == []


def test_other_labels():
    corpus = read(*EXAMPLE, label="form")
    assert corpus.label_lists()[0] == ["Let", "'s", "sleep"]
    assert read(*EXAMPLE, label=None).labels is None


def test_compressed_with_a_mark(tmp_path):
    (tmp_path / "f").write_bytes(gzip.compress(("\ufeff" + "\n".join(EXAMPLE)).encode()))
    assert len(read_conllu(tmp_path / "f")) == 2


def test_heads_may_be_missing():
    assert read(row(1), row(2)).edges is None
    assert read(row(1, head=2), row(2)).edges.tolist() == [[0, 1]]
    assert read(row(1, head=0)).edges.tolist() == []


def test_empty_file():
    for text in ("", "\n\n", "# only a comment\n"):
        assert len(read(text)) == 0


def test_a_sentence_of_an_empty_node_has_no_words():
    assert read(row("0.1"), "", row(1)).lengths.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [row(1), "2\tw"],
            "line 2: 2 fields, expected 10 (the CoNLL-U columns, separated by tabs)",
        ),
        ([row(1), row(2, form="")], "line 2: the field 'form' is empty"),
        ([row(1), row(3)], "line 2: ID 3, expected 2"),
        (["# c", row(0)], "line 2: ID 0, expected 1"),
        ([row(1), "", row(2)], "line 3: ID 2, expected 1"),
        ([row(1), row(1)], "line 2: ID 1, expected 2"),
        ([row("a")], "line 1: ID 'a' is neither a number, a range nor an empty node"),
        ([row(1), row("1-2.3")], "line 2: ID '1-2.3' is neither"),
        ([row("-1")], "line 1: ID '-1' is neither"),
        ([row("1-")], "line 1: ID '1-' is neither"),
        ([row("²")], "line 1: ID '²' is neither"),
        ([row("1" * 5000)], "is neither a number"),
        ([row("", "w")], "line 1: the field 'id' is empty"),
        ([row(1, head=2)], "line 1: HEAD '2' is neither another word of the sentence nor 0"),
        ([row(1), "", row(1, head=0), row(2, head=2)], "line 4: HEAD '2' is neither another word"),
        ([row("1-2"), row(1, head=0), row(2, head=-1)], "line 3: HEAD '-1' is neither"),
        ([row(1, head="x")], "line 1: HEAD 'x' is neither"),
        ([row(1, head="²")], "line 1: HEAD '²' is neither"),
        ([row(1, head="9" * 5000)], "is neither another word"),
        ([row(1, head="1.1")], "line 1: HEAD '1.1' is neither"),
    ],
)
def test_bad_files(rows, message):
    with pytest.raises(DataError, match=re.escape(message)):
        read(*rows)


def test_not_text():
    with pytest.raises(DataError, match="input, line 2: not UTF-8 text"):
        read_conllu(io.BytesIO(b"# ok\n" + row(1, "X").encode().replace(b"X", b"\xff") + b"\n"))
    with pytest.raises(DataError, match="input, line 1: a NUL byte"):
        read(row(1, "\0"))


@pytest.mark.parametrize("label", ["id", "word"])
def test_bad_label(label):
    with pytest.raises(DataError, match=f"label column '{label}' is not one of form, lemma, upos"):
        read(label=label)


@st.composite
def treebanks(draw):
    columns = {name: [] for name in NAMES if name != "upos"}
    lengths = draw(st.lists(st.integers(1, 4), max_size=3))
    for n in lengths:
        for name, strings in columns.items():
            if name == "head":
                strings += [
                    draw(st.sampled_from(["_", "0", *(str(h) for h in range(1, n + 1) if h != t)]))
                    for t in range(1, n + 1)
                ]
            else:
                strings += [draw(FIELD) for _ in range(n)]
    labels = [[draw(FIELD) for _ in range(n)] for n in lengths]
    coded = {name: Column.from_strings(strings) for name, strings in columns.items()}
    return Corpus(bounds(lengths), coded, labels=Labels.from_lists(labels), label_name="upos")


@given(treebanks())
def test_round_trip(tmp_path_factory, corpus):
    path = tmp_path_factory.mktemp("conllu") / "f.conllu"
    write_conllu(path, corpus)
    again = read_conllu(path)
    assert [s.columns for s in again] == [s.columns for s in corpus]
    assert again.label_lists() == corpus.label_lists()
    heads = [int(h) if h != "_" else 0 for h in again.columns["head"].strings()]
    base = np.repeat(again.offsets[:-1], again.lengths)
    expected = [[t, base[t] + h - 1] for t, h in enumerate(heads) if h]
    assert (again.edges is None and not expected) or again.edges.tolist() == expected


def test_columns_that_are_missing_are_written_as_underscores(tmp_path):
    corpus = Corpus.from_columns({"form": [["a", "b"]]})
    write_conllu(tmp_path / "f", corpus)
    assert (tmp_path / "f").read_text() == row(1, "a") + "\n" + row(2, "b") + "\n\n"
    partly = Corpus(corpus.offsets, labels=Labels.from_lists([["X", None]]), label_name="xpos")
    write_conllu(tmp_path / "f", partly)
    assert read_conllu(tmp_path / "f", "xpos").label_lists() == [["X", "_"]]


def corpus_of(label_name="upos", labels=None, **columns):
    plain = Corpus.from_columns({name: [values] for name, values in columns.items()})
    found = None if labels is None else Labels.from_lists([labels])
    return Corpus(plain.offsets, plain.columns, labels=found, label_name=label_name)


@pytest.mark.parametrize(
    ("corpus", "message"),
    [
        (corpus_of(word=["a"]), "column 'word' is not one of form, lemma"),
        (corpus_of(form=["a"], labels=["X"], label_name="label"), "column 'label' is not one of"),
        (corpus_of(form=["a"], labels=[{"X", "Y"}]), "a set of allowed labels cannot be written"),
        (corpus_of(form=["a"], labels=[""]), "column 'upos' holds '', which CoNLL-U cannot"),
        (corpus_of(form=["a\tb"]), r"column 'form' holds 'a\tb', which CoNLL-U cannot"),
        (corpus_of(form=["a\nb"]), r"column 'form' holds 'a\nb', which CoNLL-U cannot"),
        (corpus_of(form=["\udc80"]), r"column 'form' holds '\udc80', which CoNLL-U cannot"),
    ],
)
def test_what_cannot_be_written_leaves_nothing_behind(tmp_path, corpus, message):
    with pytest.raises(DataError, match=re.escape(message)):
        write_conllu(tmp_path / "f", corpus)
    assert list(tmp_path.iterdir()) == []


def test_edges_are_those_of_the_heads_one_by_one(tmp_path):
    rng = np.random.default_rng(0)
    lines, expected, first = [], [], 0
    for n in rng.integers(1, 12, 60):
        for t in range(n):
            head = rng.choice(["_", *(str(h) for h in range(n + 1) if h != t + 1)])
            lines.append(row(t + 1, head=head))
            if head not in ("_", "0"):
                expected.append([first + t, first + int(head) - 1])
        lines.append("")
        first += int(n)
    path = tmp_path / "random.conllu"
    path.write_text("\n".join(lines) + "\n")
    assert read_conllu(path).edges.tolist() == expected
