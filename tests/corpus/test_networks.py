"""Graphs of NetworkX and adjacency matrices as samples; answers are by the names of nodes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from trellis import GraphCRF, TreeCRF
from trellis.corpus import as_graph_corpus
from trellis.corpus.networks import plain_edges
from trellis.errors import DataError

X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])


def links(matrix):
    return plain_edges([matrix], [None])[0]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=12), st.booleans())
def test_each_pair_of_a_matrix_is_one_edge(pairs, weighted):
    dense = np.zeros((5, 5))
    for k, (a, b) in enumerate(pairs):
        dense[a, b] = k + 1.0 if weighted else 1.0
    found = links(sparse.csr_array(dense))
    expected = {tuple(sorted(p)) for p in zip(*np.nonzero(dense), strict=True) if p[0] != p[1]}
    assert {tuple(sorted(e)) for e in found.edges.tolist()} == expected
    assert len(found.edges) == len(expected)
    assert all(dense[a, b] != 0 for a, b in found.edges)
    values = [dense[a, b] for a, b in found.edges]
    if all(value == 1 for value in values):
        assert found.features is None
    else:
        assert found.features == [{"weight": value} for value in values]


def test_a_matrix_must_be_square():
    with pytest.raises(
        DataError, match=r"an adjacency matrix must be square, got the shape \(1, 2\)"
    ):
        links(sparse.csr_array([[1, 0]]))


def test_one_graph_of_arrays():
    edges = sparse.csr_array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    crf = GraphCRF(random_state=0).fit(X, [1, 0, None], edges=edges)
    found = crf.predict(X, edges=edges)
    assert found[:2] == [1, 0]
    assert crf.predict_marginals(X, edges=edges).shape == (3, 2)
    again = crf.predict([X], edges=[[(0, 1), (1, 2)]])
    assert again == [found]
    assert crf.predict(sparse.csr_array(X), edges=edges) == found
    assert crf.predict(X, edges=edges, constraints=[0, None, None])[0] == 0


@pytest.mark.extras
class TestNetworkX:
    @pytest.fixture
    def graph(self):
        nx = pytest.importorskip("networkx")
        graph = nx.Graph()
        graph.add_node("a", x=1.0, kind="u", label="P")
        graph.add_node(("b", 1), x=-1.0, kind="v", label="Q")
        graph.add_node(3, x=0.5, kind="u")
        graph.add_edges_from([("a", ("b", 1)), (("b", 1), 3)])
        return graph

    def test_nodes_are_named(self, graph):
        crf = GraphCRF(random_state=0).fit(graph, "label")
        assert crf.classes_ == ("P", "Q")
        assert list(crf.encoder_.names(range(crf.n_features_))) == ["x", "kind=u", "kind=v"]
        found = crf.predict(graph)
        assert list(found) == ["a", ("b", 1), 3] and found["a"] == "P"
        chances = crf.predict_marginals(graph)
        assert set(chances[3]) == {"P", "Q"} and sum(chances[3].values()) == pytest.approx(1)
        assert crf.predict([graph]) == [found]
        assert crf.predict(graph, constraints={"a": "Q"})["a"] == "Q"
        assert crf.score(graph, "label") == 1.0

    def test_labels_by_node(self, graph):
        y = {"a": 1, ("b", 1): 0}
        crf = GraphCRF(random_state=0).fit([graph, graph], [y, [1, 0, None]])
        assert crf.predict(graph)["a"] == 1
        for labels, message in (
            ([{"z": 1}, y], "y of sample 0 names 'z', which is no node of it"),
            ([y], "y has labels of 1 graphs, not 2"),
            ("colour", "no node has the attribute 'colour'"),
        ):
            with pytest.raises(DataError, match=message):
                crf.fit([graph, graph], labels)

    def test_edges_may_be_a_graph(self, graph):
        corpus = as_graph_corpus([X], edges=[graph])
        assert corpus.edges.tolist() == [[0, 1], [1, 2]]

    def test_types_and_features_of_edges(self, graph):
        nx = pytest.importorskip("networkx")
        for (a, b), kind in zip(list(graph.edges), ("near", "far"), strict=True):
            graph.edges[a, b].update(type=kind, length=2.0, straight=True)
        corpus = as_graph_corpus(graph, "label")
        assert corpus.edge_types.strings() == ["near", "far"]
        assert corpus.edge_features.names == ["length", "straight"]
        crf = GraphCRF(random_state=0).fit(graph, "label")
        assert crf.edge_types_ == ("far", "near")
        tree = nx.DiGraph([(1, 0), (2, 0)])
        assert as_graph_corpus([X], edges=[tree]).edges.tolist() == [[0, 1], [2, 1]]
        assert TreeCRF(random_state=0).fit([X], [[0, 1, 0]], edges=[tree]).classes_ == (0, 1)

    def test_names_of_rows(self, graph):
        pd = pytest.importorskip("pandas")
        table = pd.DataFrame(X, columns=["u", "v"], index=["p", "q", "r"])
        crf = GraphCRF(random_state=0).fit(table, [1, 0, None], edges=[("q", "p"), ("q", "r")])
        found = crf.predict(table, edges=[("q", "p")])
        assert list(found.index) == ["p", "q", "r"] and found["p"] == 1
        corpus = as_graph_corpus([table], edges=[[("q", "p"), ("q", "r")]])
        assert corpus.edges.tolist() == [[1, 0], [1, 2]]
        for edges, message in (
            ([("p", "z")], "an edge names 'z', which is no node; nodes are 'p', 'q', 'r'"),
            ([("p",)], "expected the names of two nodes"),
            (graph, "an edge names 'a', which is no node"),
        ):
            with pytest.raises(DataError, match=message):
                crf.predict(table, edges=edges)
