"""Features of edges: every form of them at the door, in corpora and in files."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_matrix, csr_array

from trellis import Corpus, DataError, read_graphs, write_graphs
from trellis.corpus import Features, as_graph_corpus
from trellis.corpus.graphs import format_graphs

X = [["a", "b", "c"], ["d"], ["e", "f"]]
EDGES = [[(0, 1), (2, 1)], [], [(1, 0)]]


def dicts(corpus: Corpus) -> list[dict[str, float]]:
    """The features of each edge, by name."""
    own = corpus.edge_features
    values = np.ones(len(own.indices)) if own.values is None else own.values
    return [
        {own.names[own.indices[p]]: float(values[p]) for p in range(a, b)}
        for a, b in zip(own.indptr[:-1], own.indptr[1:], strict=True)
    ]


def made(edge_features, edges=EDGES) -> Corpus:
    return as_graph_corpus(X, edges=edges, edge_features=edge_features)


def test_all_forms_of_features():
    named = [[{"far": 2.5, "kind": "x"}, {"far": 1}], [], [{"near": True, "off": False}]]
    assert dicts(made(named)) == [{"far": 2.5, "kind=x": 1}, {"far": 1}, {"near": 1}]
    assert dicts(made([[["u", "v"], []], [], [["v"]]])) == [{"u": 1, "v": 1}, {}, {"v": 1}]
    numbers = [np.array([[0.5, 0], [0, -2]]), np.zeros((0, 2)), np.array([[1.0, 3.0]])]
    expected = [{"x0": 0.5}, {"x1": -2}, {"x0": 1, "x1": 3}]
    assert dicts(made(numbers)) == expected
    assert dicts(made([numbers[0], [], numbers[2]])) == expected  # no edges, no columns
    assert dicts(made([csr_array(numbers[0]), [], coo_matrix(numbers[2])])) == expected
    assert dicts(made([csr_array(numbers[0]), numbers[1], numbers[2]])) == expected
    assert made([[{}, {}], [], [{}]]).edge_features.names == []


def test_triples_as_networkx_has_them():
    class View:
        """Edges that can only be gone over."""

        def __init__(self, edges):
            self.edges = edges

        def __iter__(self):
            return iter(self.edges)

    edges = [[(0, 1, {"far": 2.0}), (2, 1, {})], [], [(1, 0, {"far": 3.0})]]
    expected = [{"far": 2}, {}, {"far": 3}]
    corpus = as_graph_corpus(X, edges=edges)
    assert dicts(corpus) == expected
    assert corpus.edges.tolist() == [[0, 1], [2, 1], [5, 4]]
    assert dicts(as_graph_corpus(X, edges=[View(e) for e in edges])) == expected
    assert dicts(as_graph_corpus(list(zip(X, edges, strict=True)))) == expected
    plain = as_graph_corpus(X, edges=[View(e) for e in EDGES])
    assert plain.edge_features is None and plain.edges.tolist() == corpus.edges.tolist()
    assert as_graph_corpus(corpus, edges=EDGES).edge_features is None  # other edges, no features


@given(st.data())
def test_samples_keep_the_features_of_their_edges(data):
    """take, slices and identity, on edges in any order."""
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    lengths = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    pairs = [
        (a + i, a + j) for a, n in zip(offsets, lengths, strict=False)
        for i in range(n) for j in range(i)
    ]  # fmt: skip
    pairs = np.array(pairs, np.int64).reshape(-1, 2)[rng.permutation(len(pairs))]
    counts = rng.integers(0, 3, len(pairs))
    indices = rng.integers(0, 3, counts.sum())
    values = rng.normal(size=len(indices)).astype(np.float32)
    own = Features(np.append(0, np.cumsum(counts)), indices, values, ["p", "q", "r"])
    corpus = Corpus(offsets, edges=pairs, edge_features=own)

    def of_edges(part):
        places = [tuple(edge) for edge in part.edges.tolist()]
        entries = [
            sorted(zip(part.edge_features.indices[a:b].tolist(),
                       part.edge_features.values[a:b].tolist(), strict=True))
            for a, b in zip(part.edge_features.indptr[:-1], part.edge_features.indptr[1:],
                            strict=True)
        ]  # fmt: skip
        return dict(zip(places, entries, strict=True))

    chosen = data.draw(st.lists(st.integers(0, len(lengths) - 1), max_size=5))
    part, whole = corpus.take(chosen), of_edges(corpus)
    expected = {}
    for k, s in enumerate(chosen):
        shift = part.offsets[k] - offsets[s]
        for (a, b), entry in whole.items():
            if offsets[s] <= a < offsets[s + 1]:
                expected[a + shift, b + shift] = entry
    assert of_edges(part) == expected
    assert of_edges(corpus[:]) == whole


def test_what_a_corpus_is_includes_the_features_of_edges():
    one, other = made([[["u"], ["v"]], [], [["v"]]]), made([[["u"], ["u"]], [], [["v"]]])
    plain = as_graph_corpus(X, edges=EDGES)
    assert len(one.identity()) == len(plain.identity()) + 1
    assert str(one.identity()) == str(made([[["u"], ["v"]], [], [["v"]]]).identity())
    assert str(one.identity()) != str(other.identity())
    assert one.nbytes > plain.nbytes
    assert repr(one).endswith("3 edges with 2 attributes>")
    assert repr(plain).endswith("3 edges>")


def test_a_corpus_checks_the_features_of_its_edges():
    own = Features([0, 1], [0], None, ["u"])
    with pytest.raises(DataError, match="edge features cover 1 edges, not 0"):
        Corpus(np.array([0, 2]), edge_features=own)
    with pytest.raises(DataError, match="edge_features must be"):
        Corpus(np.array([0, 2]), edges=[[0, 1]], edge_features=["u"])


@pytest.mark.parametrize(
    ("edge_features", "message"),
    [
        ([[{}]], "there are edge_features for 1 samples, not 3"),
        ([[{}], [], [{}]], "sample 0 has 2 edges, but edge_features for 1"),
        ([[{}, {}], [], np.zeros((2, 1))], "sample 2 has 1 edges, but edge_features for 2"),
        ([["u", "v"], [], ["v"]], "edge_features of sample 0 hold 'u'; expected a dict or a list"),
        ([[{}, 3], [], [{}]], "edge_features: sample 0, edge 1 is 3; expected a dict of features"),
        ([[{}, {"a": np.inf}], [], [{}]], "edge_features: sample 0, edge 1: feature 'a' is inf"),
        (["uv", [], [{}]], "edge_features of sample 0 are str; expected an (m, d) array"),
        ([{"a": 1}, [], [{}]], "edge_features of sample 0 are dict"),
        (3, "edge_features of the samples"),
        ([np.zeros((2, 2)), [], np.zeros((1, 3))], "edge_features: sample 2 has 3 columns"),
        ([np.full((2, 1), np.nan), [], np.zeros((1, 1))], "sample 0, edge 0, column 0 is nan"),
        ([csr_array(np.eye(2)), [], csr_array((1, 3))], "edge_features: sample 2 has 3 columns"),
        ([csr_array(np.eye(2)), [], [{}]], "edge_features: sample 2 is list; expected an"),
        ([csr_array(np.eye(2) * 1j), [], csr_array((1, 2))], "sample 0 has dtype complex128"),
        ([csr_array((2, 2)), [], csr_array([[0, 1e39]])], "sample 2, edge 0, column 1 is 1e+39"),
    ],
)
def test_bad_features_are_refused(edge_features, message):
    with pytest.raises(DataError, match=re.escape(message)):
        made(edge_features)


def test_features_without_edges_or_twice():
    with pytest.raises(DataError, match="edge_features need edges"):
        as_graph_corpus(X, edge_features=[[], [], []])
    with pytest.raises(DataError, match="the edges carry their features; leave out edge_features"):
        made([[{}, {}], [], [{}]], [[(0, 1, {}), (1, 2, {})], [], [(0, 1, {})]])
    with pytest.raises(DataError, match=re.escape("sample 2, edge 0 is (0, 1); expected (a, b, f")):
        as_graph_corpus(X, edges=[[(0, 1, {})], [], [(0, 1)]])
    mixed = Corpus(np.array([0, 2, 4]), edges=[[2, 3], [0, 1]])
    with pytest.raises(DataError, match="edge_features need the edges of the corpus sample by s"):
        as_graph_corpus(mixed, edge_features=[[{}], [{}]])


# ------------------------------------------------------------------------- files

TEXT = r"""a X
b Y
c Y
@edge 1 2 above
@edge 2 3 above | contrast:2.5 touching kind=x
@edge 1 3 | a\:b:-1e-3

d X
e X
@edge 2 1 |
"""


def test_reads_what_it_writes(tmp_path):
    corpus = read_graphs(io.BytesIO(TEXT.encode()), ["word", "label"], "label")
    read = [{}, {"contrast": 2.5, "touching": 1, "kind=x": 1}, {"a:b": np.float32(-1e-3)}, {}]
    assert dicts(corpus) == read
    assert corpus.edge_types.strings() == ["above", "above", "", "|"]  # a lone bar is a type
    with pytest.raises(DataError, match=re.escape("edge type '|' stands before features")):
        format_graphs(corpus)
    first = corpus[:1]
    write_graphs(tmp_path / "g", first)
    assert (tmp_path / "g").read_text().rstrip("\n") == TEXT.split("\n\n", maxsplit=1)[0].replace(
        "-1e-3", "-0.00100000005"
    )
    again = read_graphs(tmp_path / "g", ["word", "label"], "label")
    assert dicts(again) == read[:3]
    assert read_graphs(io.BytesIO(b"a X\nb Y\n@edge 1 2\n"), ["w", "l"], "l").edge_features is None


@given(
    st.lists(
        st.dictionaries(
            st.text("ab:|\\=", min_size=1, max_size=3),
            st.one_of(st.just(1.0), st.floats(-1e6, 1e6, width=32)),
        ),
        min_size=2,
        max_size=2,
    )
)
def test_any_name_is_written_and_read(entries):
    corpus = as_graph_corpus([["a", "b", "c"]], edges=[[(0, 1), (1, 2)]], edge_features=[entries])
    again = read_graphs(io.BytesIO(format_graphs(corpus).encode()), ["word"])
    if again.edge_features is None:
        assert not any(entries)
    else:
        assert dicts(again) == dicts(corpus)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("@edge 1 2 up | far:x", "line 3: feature 'far:x': 'x' after the colon is no number"),
        ("@edge 1 2 | :2", "line 3: feature ':2': the name is empty"),
        ("@edge 1 2 | a:1e99", "line 3: feature 'a:1e99': the value must be a finite float32"),
        ("@edge 1 2 | a a:2", "line 3: feature 'a:2': is there twice"),
        ("@edge 1 2 up down | a", "line 3: expected '@edge A B'"),
        ("@edge 1 | a", "line 3: expected '@edge A B'"),
    ],
)
def test_bad_lines_are_named(line, message):
    file = io.BytesIO(f"a X\nb Y\n{line}\n".encode())
    with pytest.raises(DataError, match=re.escape(message)):
        read_graphs(file, ["word", "label"], "label")


def test_names_that_a_line_cannot_hold():
    for name in ("a b", ""):
        corpus = as_graph_corpus([["a", "b"]], edges=[[(0, 1, {name: True})]])
        with pytest.raises(DataError, match="is empty or has a space, which this format cannot"):
            format_graphs(corpus)
