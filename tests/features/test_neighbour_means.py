"""Means of attributes around nodes against plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis import Corpus, GraphCRF, load_model
from trellis.corpus import as_graph_corpus
from trellis.errors import DataError
from trellis.features import neighbour_means


@st.composite
def graphs(draw):
    found = []
    for _ in range(draw(st.integers(1, 3))):
        n = draw(st.integers(1, 5))
        pairs = st.sampled_from([(a, b) for a in range(n) for b in range(a)] or [(0, 0)])
        edges = sorted(draw(st.sets(pairs, max_size=6))) if n > 1 else []
        turned = [draw(st.permutations(edge)) for edge in edges]
        names = st.dictionaries(st.sampled_from("abc"), st.sampled_from([1.0, -2.0, 0.5]))
        found.append((draw(st.lists(names, min_size=n, max_size=n)), turned))
    return found


@given(graphs(), st.sampled_from(["neighbours", "parents", "children"]))
def test_means(found, along):
    corpus = as_graph_corpus([x for x, _ in found], edges=[e for _, e in found])
    made = neighbour_means(corpus, along)
    assert made.edges is corpus.edges or np.array_equal(made.edges, corpus.edges)
    expected = []
    for nodes, edges in found:
        for t, node in enumerate(nodes):
            up, down = [b for a, b in edges if a == t], [a for a, b in edges if b == t]
            around = {"parents": up, "children": down, "neighbours": up + down}[along]
            row = dict(node)
            for name in "abc":
                total = sum(nodes[u].get(name, 0.0) for u in around)
                if total:
                    row[f"mean({along}, {name})"] = total / len(around)
            expected.append(row)
    features = made.features
    for t, row in enumerate(expected):
        part = slice(features.indptr[t], features.indptr[t + 1])
        values = dict(zip([features.names[i] for i in features.indices[part]],
                          features.values[part].tolist(), strict=True))  # fmt: skip
        assert {k: v for k, v in values.items() if v} == pytest.approx(row)


def test_a_model_learns_from_them(tmp_path):
    """The labels follow the neighbours' numbers alone."""
    rng = np.random.default_rng(0)
    X, y, edges = [], [], []
    for _ in range(20):
        x = rng.normal(size=(12, 2))
        pairs = [(t, t // 2) for t in range(1, 12)]
        around = [[b for a, b in pairs if a == t] + [a for a, b in pairs if b == t]
                  for t in range(12)]  # fmt: skip
        y.append(["+" if x[u, 0].mean() > 0 else "-" for u in around])
        X.append(x)
        edges.append(pairs)
    train = neighbour_means(as_graph_corpus(X[:15], y[:15], edges[:15]))
    test = neighbour_means(as_graph_corpus(X[15:], edges=edges[15:]))
    model = GraphCRF(random_state=0).fit(train)
    right = np.mean([a == b for p, q in zip(model.predict(test), y[15:], strict=True)
                     for a, b in zip(p, q, strict=True)])  # fmt: skip
    assert right > 0.9
    model.save(tmp_path / "model")
    assert load_model(tmp_path / "model").predict(test) == model.predict(test)


def test_done_twice_and_refused():
    corpus = as_graph_corpus([np.eye(2)], edges=[[(0, 1)]])
    names = neighbour_means(neighbour_means(corpus)).features.names
    assert names[-1] == "mean(neighbours, mean(neighbours, x1))"
    with pytest.raises(DataError, match="means are of ready-made attributes; of a column say"):
        neighbour_means(Corpus.from_columns({"word": [["a"]]}))
    chain = Corpus([0, 2], features=corpus.features)
    with pytest.raises(DataError, match="need trees or graphs: there are no edges"):
        neighbour_means(chain)
    with pytest.raises(DataError, match="along"):
        neighbour_means(corpus, "uncles")
    with pytest.raises(DataError, match="corpus"):
        neighbour_means([["a"]])
