"""Samples with edges: the door and the text format."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis import read_conllu, read_graphs, write_graphs
from trellis.corpus import Column, Corpus, as_graph_corpus
from trellis.corpus.graphs import format_graphs
from trellis.errors import DataError

X = [["a", "b", "c"], ["d"], ["e", "f"]]


def test_edges_are_stacked():
    corpus = as_graph_corpus(X, edges=[[(0, 1), (2, 1)], [], np.array([[1, 0]])])
    assert corpus.edges.tolist() == [[0, 1], [2, 1], [5, 4]]
    assert repr(corpus) == "<Corpus: 3 samples; 6 positions; columns word; 3 edges>"


def test_samples_may_be_pairs_with_edges():
    pairs = [(X[0], [(0, 1)]), (X[1], np.zeros((0, 2), int)), (X[2], np.array([[1, 0]]))]
    corpus = as_graph_corpus(pairs)
    assert corpus.edges.tolist() == [[0, 1], [5, 4]]
    # A sample of two words is no pair.
    with pytest.raises(DataError, match="there are no edges"):
        as_graph_corpus([("a", "b")])


def test_types_go_with_their_edges():
    corpus = as_graph_corpus(
        X, edges=[[(0, 1), (1, 2)], [], [(0, 1)]], edge_types=[["x", "y"], [], ["x"]]
    )
    assert corpus.edge_types.strings() == ["x", "y", "x"]
    assert corpus.edge_types.used() == {"x", "y"}
    later = corpus.take([2, 0])
    assert later.edges.tolist() == [[0, 1], [2, 3], [3, 4]]
    assert later.edge_types.strings() == ["x", "x", "y"]
    assert later.nbytes > 0


@given(st.data())
def test_take_keeps_edges_with_their_samples(data):
    lengths = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    edges = [
        data.draw(st.lists(st.sampled_from([(a, b) for a in range(n) for b in range(a)]),
                           unique=True)) if n > 1 else []
        for n in lengths
    ]  # fmt: skip
    names = [[f"{s}.{a}.{b}" for a, b in pairs] for s, pairs in enumerate(edges)]
    samples = [[f"{s}.{t}" for t in range(n)] for s, n in enumerate(lengths)]
    corpus = as_graph_corpus(samples, edges=edges, edge_types=names)
    order = data.draw(st.permutations(range(len(lengths))))
    taken = corpus.take(order)
    words = taken.columns["word"].strings()
    for (a, b), kind in zip(taken.edges, taken.edge_types.strings(), strict=True):
        s, x, y = kind.split(".")
        assert (words[a], words[b]) == (f"{s}.{x}", f"{s}.{y}")


BAD = {
    "there are no edges: pass edges=": {},
    "edges of the samples are of type str; expected a list": {"edges": "ab"},
    "there are edges for 1 samples, but 3 samples": {"edges": [[]]},
    "edges of sample 0 have dtype float64; expected integers": {"edges": [[(0.5, 1)], [], []]},
    "edges of sample 0 cannot be read as an array": {"edges": [[(0, 1), (0,)], [], []]},
    "sample 0, edge 1 joins nodes 1 and 3; it has nodes 0 to 2": {
        "edges": [[(0, 1), (1, 3)], [], []]
    },
    "sample 2: the edge between nodes 1 and 1 joins a node to itself": {
        "edges": [[], [], [(1, 1)]]
    },
    "sample 2: the edge between nodes 1 and 0 is there twice": {
        "edges": [[], [], [(0, 1), (1, 0)]]
    },
    "edge_types need edges": {"edge_types": [[], [], []]},
    "there are edge types for 1 samples, not 3": {"edges": [[], [], []], "edge_types": [[]]},
    "sample 0 has 1 edges, but edge_types of another number": {
        "edges": [[(0, 1)], [], []],
        "edge_types": [[], [], []],
    },
    "edges of sample 0 have shape (1, 3); expected (any, 2)": {"edges": [[(0, 1, 2)], [], []]},
    "edge types of the samples are of type int; expected a list": {
        "edges": [[(0, 1)], [], []],
        "edge_types": 3,
    },
    "edge types of sample 0 are of type str; expected a list": {
        "edges": [[(0, 1)], [], []],
        "edge_types": ["x", [], []],
    },
    "edge_types of sample 0 hold 3; expected strings": {
        "edges": [[(0, 1)], [], []],
        "edge_types": [[3], [], []],
    },
}


@pytest.mark.parametrize("message", BAD)
def test_bad_edges_are_refused(message):
    with pytest.raises(DataError, match=re.escape(message)):
        as_graph_corpus(X, **BAD[message])


def test_types_of_a_corpus_with_mixed_edges_need_the_edges():
    corpus = Corpus(
        np.array([0, 2, 4]), {"w": Column.from_strings("abcd")}, edges=np.array([[2, 3], [0, 1]])
    )
    with pytest.raises(DataError, match="sample by sample; pass edges="):
        as_graph_corpus(corpus, edge_types=[["x"], ["y"]])


def test_a_corpus_checks_its_types():
    with pytest.raises(DataError, match="there are 1 edge types for 0 edges"):
        Corpus(np.array([0]), edge_types=Column.from_strings(["x"]))


# ---------------------------------------------------------------------------- files

TEXT = """\
# a scene
sky blue A
roof red B
wall white B
@edge 1 2 above
@edge 3 2

lonely grey A
"""


def test_reads_what_it_writes(tmp_path):
    corpus = read_graphs(io.BytesIO(TEXT.encode()), ["thing", "colour", "label"], "label", skip="#")
    assert corpus.edges.tolist() == [[0, 1], [2, 1]]
    assert corpus.edge_types.strings() == ["above", ""]
    assert corpus.label_lists() == [["A", "B", "B"], ["A"]]
    write_graphs(tmp_path / "g.txt", corpus)
    again = read_graphs(tmp_path / "g.txt", ["thing", "colour", "label"], "label")
    assert again.edges.tolist() == corpus.edges.tolist()
    assert again.edge_types.strings() == corpus.edge_types.strings()
    assert again.label_lists() == corpus.label_lists()
    predicted = format_graphs(corpus, labels=[["A", "A", "B"], ["B"]])
    assert predicted.splitlines()[:4] == [
        "sky blue A A", "roof red B A", "wall white B B", "@edge 1 2 above",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("@edge 1", "line 3: expected '@edge A B' or '@edge A B TYPE'"),
        ("@edge 1 2 x y", "line 3: expected '@edge A B'"),
        ("@edge 1 -2", "line 3: expected '@edge A B'"),
        ("@edge 1 3", "line 3: an edge to node 3, but its sample has 2 nodes so far"),
        ("@edge 0 1", "line 3: an edge to node 0"),
        ("c", "line 3: 1 fields, expected 2 (word label)"),
    ],
)
def test_bad_lines_are_named(line, message):
    file = io.BytesIO(f"a X\nb Y\n{line}\n".encode())
    with pytest.raises(DataError, match=re.escape(message)):
        read_graphs(file, ["word", "label"], "label")


def test_what_cannot_be_written_is_refused():
    corpus = as_graph_corpus([["a", "b"]], edges=[[(0, 1)]], edge_types=[["up there"]])
    with pytest.raises(DataError, match="edge type 'up there' has a space"):
        format_graphs(corpus)
    with pytest.raises(DataError, match="this corpus has no edges"):
        format_graphs(Corpus(np.array([0])))


def test_relations_are_the_types_of_dependency_edges():
    row = "{}\t{}\t_\t{}\t_\t_\t{}\t{}\t_\t_\n"
    text = row.format(1, "Cats", "NOUN", 2, "nsubj") + row.format(2, "sleep", "VERB", 0, "root")
    corpus = read_conllu(io.StringIO(text + "\n"))
    assert corpus.edges.tolist() == [[0, 1]]
    assert corpus.edge_types.strings() == ["nsubj"]
    assert read_conllu(io.StringIO(text + "\n"), "deprel").edge_types is None


@pytest.mark.parametrize("word", ["\ufeff", "\ufeffa", "\ufeff\ufeffa"])
def test_words_that_begin_as_a_file_may(word, tmp_path):
    corpus = as_graph_corpus([[word, "b"]], [["X", "Y"]], edges=[[(0, 1)]])
    write_graphs(tmp_path / "g", corpus)
    again = read_graphs(tmp_path / "g", ["word", "label"], "label")
    assert again.columns["word"].strings() == [word, "b"]
