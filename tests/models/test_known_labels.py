"""What training knew of some nodes is kept when the same graph is labelled."""

from __future__ import annotations

import numpy as np
import pytest

from trellis import (
    ChainCRF,
    GraphCRF,
    GraphPerceptron,
    MaxMargin,
    TreeCRF,
    TreePerceptron,
    load_model,
)
from trellis.datasets import citations

EVERY = [
    GraphCRF(random_state=0), GraphPerceptron(random_state=0), TreeCRF(random_state=0),
    TreePerceptron(random_state=0), MaxMargin(structure="graph", random_state=0, max_passes=3),
]  # fmt: skip
IDS = [type(model).__name__ for model in EVERY]


def partly_known(n=60, share=0.3, seed=0, tree=False):
    """One graph of which some labels are known, some of them against all features."""
    rng = np.random.default_rng(seed)
    edges = np.array([(i, rng.integers(0, i)) for i in range(1, n)])
    if not tree:
        more = rng.integers(0, n, (n, 2))
        edges = np.unique(np.sort(np.concatenate([edges, more[more[:, 0] != more[:, 1]]])), axis=0)
        edges = np.unique(np.sort(edges, axis=1), axis=0)
    gold = rng.integers(0, 3, n)
    X = np.eye(3)[gold]
    y = [int(k) if rng.random() < share else None for k in gold]
    for i in np.flatnonzero([k is not None for k in y])[:3]:
        y[i] = (y[i] + 1) % 3
    return X, y, edges


def kept(found, y) -> bool:
    return all(a == b for a, b in zip(found, y, strict=True) if b is not None)


@pytest.mark.parametrize("model", EVERY, ids=IDS)
def test_predictions_keep_what_was_known(model, tmp_path):
    X, y, edges = partly_known(tree="Tree" in type(model).__name__)
    model.set_params(keep_known=True).fit(X, y, edges=edges)
    found = model.predict(X, edges=edges)
    assert kept(found, y)
    assert found == model.predict(X, edges=edges, constraints=y)
    assert kept(model.decode(X, edges=edges)[0].labels, y)
    assert kept([p.label for p in model.explain(X, edges=edges).positions], y)
    model.save(tmp_path / "m")
    assert load_model(tmp_path / "m").predict(X, edges=edges) == found
    assert not kept(model.set_params(keep_known=False).predict(X, edges=edges), y)
    model.set_params(keep_known=True)
    assert not kept(model.predict(X + 0.001, edges=edges), y)  # another graph
    assert not kept(model.predict(X, edges=edges[:-1]), y)
    assert not kept(model.predict(X[:-1], edges=edges[edges.max(axis=1) < len(X) - 1]), y[:-1])


def test_probabilities_are_those_given_what_is_known():
    X, y, edges = partly_known(n=16, share=0.6)
    crf = GraphCRF(random_state=0).fit(X, y, edges=edges)
    asked = {"edges": edges, "constraints": y}
    chances = crf.predict_proba(X, edges=edges)
    assert chances.tolist() == crf.predict_proba(X, **asked).tolist()
    for i, label in enumerate(y):
        if label is not None:
            assert chances[i, crf.classes_.index(label)] == pytest.approx(1)
    drawn = crf.sample(X, 20, edges=edges, random_state=0)
    assert all(kept(labels, y) for labels in drawn[0])
    free = GraphCRF(random_state=0, keep_known=False).fit(X, y, edges=edges)
    assert crf.entropy(X, edges=edges)[0] < free.entropy(X, edges=edges)[0]
    # The probability of a labelling is not conditional.
    labels = free.predict(X, edges=edges)
    assert crf.log_prob(X, labels, edges=edges) == free.log_prob(X, labels, edges=edges)


def test_what_is_said_now_holds():
    X, y, edges = partly_known()
    crf = GraphCRF(random_state=0).fit(X, y, edges=edges)
    place = next(i for i, label in enumerate(y) if label is not None)
    other = (y[place] + 1) % 3
    said = [None] * len(y)
    said[place] = other
    found = crf.predict(X, edges=edges, constraints=said)
    assert found[place] == other
    assert kept(found[:place] + found[place + 1 :], y[:place] + y[place + 1 :])


def test_sets_of_labels_are_kept():
    X, y, edges = partly_known()
    y[0], y[1], y[2] = {0, 1}, {2}, None
    X[0], X[1] = np.eye(3)[2], np.eye(3)[0]
    crf = GraphCRF(random_state=0).fit(X, y, edges=edges)
    found = crf.predict(X, edges=edges)
    assert found[0] in (0, 1) and found[1] == 2


def test_complete_and_unlabelled_samples_are_not_remembered():
    X, y, edges = partly_known(share=1.0)
    crf = GraphCRF(random_state=0).fit([X, X], [y, [None] * len(y)], edges=[edges, edges])
    assert crf.known_ is None
    assert not kept(crf.predict(X, edges=edges), y)


def test_several_graphs_and_a_later_fit():
    one, two = partly_known(seed=1), partly_known(seed=2)
    crf = GraphCRF(random_state=0, warm_start=True)
    crf.fit([one[0], two[0]], [one[1], [None] * 60], edges=[one[2], two[2]])
    assert kept(crf.predict(one[0], edges=one[2]), one[1])
    assert not kept(crf.predict(two[0], edges=two[2]), two[1])
    crf.fit([two[0]], [two[1]], edges=[two[2]])
    found = crf.predict([two[0], one[0]], edges=[two[2], one[2]])
    assert kept(found[0], two[1]) and kept(found[1], one[1])
    crf.set_params(warm_start=False).fit([two[0]], [two[1]], edges=[two[2]])
    assert not kept(crf.predict(one[0], edges=one[2]), one[1])


def test_chains_remember_nothing():
    crf = ChainCRF(random_state=0).fit([["a", "b", "a"]], [["X", None, "Y"]])
    assert crf.known_ is None and crf.predict([["a", "b", "a"]])[0] is not None


def test_a_compressed_model_forgets():
    X, y, edges = partly_known()
    assert GraphCRF(random_state=0).fit(X, y, edges=edges).compressed().known_ is None


def test_few_labels_of_a_large_graph_go_a_long_way():
    X, y, edges = citations(1500, random_state=5)
    rng = np.random.default_rng(0)
    known = rng.random(len(y)) < 0.1
    partly = [int(k) if there else None for k, there in zip(y, known, strict=True)]
    crf = GraphCRF(random_state=0).fit(X, partly, edges=edges)
    alone = GraphCRF(random_state=0, piece_size=1).fit(X, partly, edges=edges)
    right, before = (
        (np.array(model.predict(X, edges=edges)) == y)[~known].mean() for model in (crf, alone)
    )
    assert crf.solver_ == "lbfgs" and right > before + 0.2
