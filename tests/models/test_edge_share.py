"""How much edges count at prediction: the share of spanning trees, and what held-out parts show."""

from __future__ import annotations

import numpy as np
import pytest

import trellis.models.edge_share as edge_share
from trellis import GraphCRF, load_model
from trellis.corpus import Labels, as_graph_corpus
from trellis.datasets import citations, grid_edges, textures
from trellis.features import AttributeEncoder
from trellis.models.edge_share import held_out_share, share_of_trees
from trellis.problems import LabelProblem, Weights

SQUARE = [(0, 1), (1, 2), (2, 3), (3, 0)]


def graphs(edges, n=4):
    return as_graph_corpus([([["a"]] * n, e) for e in edges])


@pytest.mark.parametrize(
    ("edges", "share"),
    [
        ([SQUARE], 3 / 4), ([SQUARE, SQUARE], 3 / 4), ([SQUARE, [(0, 1)]], 4 / 5),
        ([[(0, 1), (1, 2)]], 1.0), ([[]], 1.0), ([[(0, 1), (1, 2), (0, 2)]], 2 / 3),
    ],
)  # fmt: skip
def test_share_of_trees(edges, share):
    assert share_of_trees([graphs(edges)]) == pytest.approx(share)
    assert share_of_trees([graphs([e]) for e in edges]) == pytest.approx(share)


def blocks(n: int, side: int, noise: float, seed: int):
    """Grids of blocks of four by four equal labels, seen through noise."""
    rng = np.random.default_rng(seed)
    tile = np.ones((4, 4), int)
    gold = [np.kron(rng.integers(0, 3, (side // 4, side // 4)), tile).ravel() for _ in range(n)]
    X = [np.eye(3)[labels] + rng.normal(0, noise, (len(labels), 3)) for labels in gold]
    return X, gold, [grid_edges(side, side)] * n


def problem_of(n=8, side=12, noise=1.0, seed=0, unknown=0.0):
    X, gold, edges = blocks(n, side, noise, seed)
    rng = np.random.default_rng(seed)
    y = [[None if rng.random() < unknown else int(k) for k in labels] for labels in gold]
    corpus = as_graph_corpus(list(zip(X, edges, strict=True)), y)
    encoded = AttributeEncoder().learn(corpus)
    labels = corpus.labels.recoded((0, 1, 2))
    return LabelProblem(
        encoded, labels, 3, structure="graph", edges=np.asarray(corpus.edges), directed=False
    )


def given_weights(strength: float):
    """A way to learn that finds node weights and tables of a strength, whatever the data."""
    seen = []

    def fitted(problem):
        seen.append(problem)
        return Weights(2 * np.eye(3), strength / 2 * np.eye(3)[None])

    return fitted, seen


@pytest.mark.parametrize("n", [1, 8])
@pytest.mark.parametrize("unknown", [0.0, 0.5])
def test_what_is_held_out_is_not_learned_from(n, unknown):
    problem, rng = problem_of(n, side=24, unknown=unknown), np.random.default_rng(0)
    asked_for, folds = 0, list(edge_share._folds(problem, rng))
    known = problem.labels.ids < 3
    for train, held, asked, gold, unit in folds:
        asked_for += len(asked)
        assert len(asked) == len(gold) == len(unit) and len(np.unique(asked)) == len(asked)
        assert (held.labels.ids[asked] == 3).all()  # nothing is known where it is asked
        assert (train.labels.ids < 3).sum() + len(asked) == known.sum()
        assert (gold < 3).all()
        if not unknown:
            assert (held.labels.ids == 3).all()
    assert len(folds) == 3 and asked_for == known.sum()


def test_too_strong_edges_count_less():
    share = {}
    for strength in (1.0, 8.0):
        fitted, seen = given_weights(strength)
        problem = problem_of(20, noise=0.7)
        share[strength] = held_out_share(problem, 0.5, [fitted], np.random.default_rng(0))[1]
        assert len(seen) == 3
    assert share[8.0] < share[1.0]


def test_the_way_is_taken_that_makes_labels_more_probable():
    ways = [given_weights(strength)[0] for strength in (-6.0, 2.0, 0.0)]
    problem = problem_of(4, noise=2.0, unknown=0.8)
    assert held_out_share(problem, 0.5, ways, np.random.default_rng(0))[0] == 1
    assert held_out_share(problem, 0.5, ways[::2], np.random.default_rng(0))[0] == 1


@pytest.mark.parametrize("homophily", [0.03, 0.9])
def test_few_labels_of_neighbours_that_are_alike_or_not(homophily):
    X, y, edges = citations(800, subjects=4, homophily=homophily, topical=0.2, random_state=4)
    known = np.random.default_rng(0).random(len(y)) < 0.05
    partly = [int(k) if there else None for k, there in zip(y, known, strict=True)]
    crf = GraphCRF(random_state=0).fit(X, partly, edges=edges)
    assert crf.alike_ == (homophily > 0.5)
    full = GraphCRF(random_state=0).fit(X, y.tolist(), edges=edges)
    assert not full.alike_  # nothing is left open


def test_without_evidence_it_stays():
    fitted, _ = given_weights(0.0)
    assert held_out_share(problem_of(), 0.53, [fitted], np.random.default_rng(0)) == (0, 0.53)
    few = problem_of(1, side=4, unknown=0.9)
    assert held_out_share(few, 0.6, [given_weights(4.0)[0]] * 2, np.random.default_rng(0)) == (
        0,
        0.6,
    )
    none = few.with_labels(few.labels.without(np.arange(16)[few.labels.ids < 3][1:]))
    assert held_out_share(none, 0.6, [given_weights(4.0)[0]], np.random.default_rng(0)) == (0, 0.6)


def test_large_graphs_are_looked_at_in_part(monkeypatch):
    monkeypatch.setattr(edge_share, "_NODES", 100)
    fitted, seen = given_weights(1.0)
    held_out_share(problem_of(2, side=24), 0.5, [fitted], np.random.default_rng(0))
    assert seen and all(len(problem.labels) <= 110 for problem in seen)
    monkeypatch.setattr(edge_share, "_NODES", 10_000)
    monkeypatch.setattr(edge_share, "_ENTRIES", 600)
    fitted, seen = given_weights(1.0)
    held_out_share(problem_of(8, side=12), 0.5, [fitted], np.random.default_rng(0))
    assert seen and all(len(problem.labels) <= 200 for problem in seen)


def test_a_model_finds_it_saves_it_and_finds_it_again(tmp_path):
    X, gold, edges = blocks(20, 12, 1.0, 3)
    data = {"y": [labels.tolist() for labels in gold], "edges": edges}
    crf = GraphCRF(random_state=0).fit(X, **data)
    assert 0 <= crf.edge_share_ <= 1
    assert GraphCRF(random_state=0).fit(X, **data).edge_share_ == crf.edge_share_
    crf.edge_share_ = 0.0
    crf.save(tmp_path / "m")
    assert load_model(tmp_path / "m").edge_share_ == 0.0
    assert load_model(tmp_path / "m").predict(X, edges=edges) == crf.predict(X, edges=edges)
    whole = GraphCRF(random_state=0, pieces="graph", max_passes=1).fit(X[:2], data["y"][:2],
                                                                       edges=edges[:2])  # fmt: skip
    assert whole.edge_share_ == 1.0


def test_texts_of_labels_make_no_difference():
    corpus = textures(8, size=8, random_state=1)
    crf = GraphCRF("pixel", random_state=0).fit(corpus)
    named = [[f"the {label}" for label in labels] for labels in corpus.label_lists()]
    samples = [[[p] for p in s.columns["pixel"]] for s in corpus]
    edges = [grid_edges(8, 8)] * 8
    other = GraphCRF(random_state=0).fit(samples, named, edges=edges)
    assert other.edge_share_ == crf.edge_share_
    assert Labels.from_lists(named).classes == tuple(f"the {label}" for label in crf.classes_)
