"""Rich edges for each type of edges: learned, saved, grown, shown, refused."""

from __future__ import annotations

import numpy as np
import pytest

from trellis import ChainCRF, DataError, GraphCRF, GraphPerceptron, MaxMargin, TreeCRF, load_model
from trellis.datasets import snakes

CELLS = "nw; n; ne; w; here; e; sw; s; se"
RICH = {"directed": True, "rich_edges": "typed", "random_state": 0}


def turned(n: int, seed: int):
    """Pairs of nodes: a feature at the first says whether the second is the same, by type."""
    rng = np.random.default_rng(seed)
    X, y, types = [], [], []
    for _ in range(n):
        same, kind, first = rng.integers(0, 2, 3)
        second = first if same == kind else 1 - first
        X.append([[f"m{same}", f"is{first}"], []])
        y.append(["AB"[first], "AB"[second]])
        types.append(["even" if kind else "odd"])
    return X, y, {"edges": [[(0, 1)]] * n, "edge_types": types}


MODELS = {
    "TreeCRF": lambda **more: TreeCRF(**RICH | more),
    "GraphCRF": lambda **more: GraphCRF(**RICH | more),
    "GraphPerceptron": lambda **more: GraphPerceptron(max_passes=30, **RICH | more),
    "MaxMargin": lambda **more: MaxMargin(structure="graph", l2=0.1, **RICH | more),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("pairs", ["all", "observed"])
def test_types_tell_what_a_feature_means(name, pairs, tmp_path):
    X, y, more = turned(60, 0)
    asked = turned(60, 1)
    typed = MODELS[name](edge_pairs=pairs).fit(X, y, **more)
    assert typed.score(asked[0], asked[1], **asked[2]) == 1.0
    plain = MODELS[name](rich_edges="both", edge_pairs=pairs).fit(X, y, **more)
    assert plain.score(asked[0], asked[1], **asked[2]) < 0.9
    edge = typed.weights_.edge
    assert edge.n_types == 2 and edge.families == 4 and edge.n_rows == 4 * typed.n_features_
    typed.save(tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert loaded.weights_.edge.n_types == 2
    assert loaded.predict(asked[0], **asked[2]) == typed.predict(asked[0], **asked[2])
    small = typed.compressed(keep=1.0, precision="float32")
    assert small.predict(asked[0], **asked[2]) == typed.predict(asked[0], **asked[2])


def test_without_types_they_are_rich_edges_of_both_ends():
    X, y, more = turned(30, 0)
    edges = {"edges": more["edges"]}
    typed = GraphCRF(**RICH).fit(X, y, **edges)
    both = GraphCRF(**RICH | {"rich_edges": "both"}).fit(X, y, **edges)
    assert typed.weights_.edge.n_types == 1
    assert typed.weights_.edge.values.tolist() == both.weights_.edge.values.tolist()


@pytest.mark.parametrize("model", [GraphCRF(warm_start=True, **RICH), GraphPerceptron(**RICH)])
def test_features_that_come_later_get_rows_of_all_types(model):
    X, y, more = turned(40, 0)
    model.partial_fit(X, y, **more)
    before = model.weights_.edge.n_rows
    later = [[[*node, "new"] for node in sample] for sample in X]
    model.partial_fit(later, y, **more)
    assert model.weights_.edge.n_rows == before + 4
    assert model.score(X, y, **more) > 0.9


def test_what_is_strongest_is_shown_with_its_type(tmp_path, capsys):
    from trellis.cli import main

    X, y, more = turned(40, 0)
    GraphCRF(**RICH).fit(X, y, **more).save(tmp_path / "m.trellis")
    assert main(["inspect", str(tmp_path / "m.trellis"), "--top", "20"]) in (0, None)
    shown = capsys.readouterr().out
    assert "(even)" in shown and "(odd)" in shown


def test_a_chain_has_no_types():
    with pytest.raises(DataError, match="rich_edges='typed' is for trees and graphs"):
        ChainCRF(rich_edges="typed").fit([["a"]], [["X"]])


def test_snakes_are_counted():
    train, test = snakes(150, random_state=0), snakes(50, random_state=1)
    model = GraphPerceptron(CELLS, **RICH).fit(train)
    alone = GraphPerceptron(CELLS, piece_size=1, random_state=0).fit(train)
    assert model.score(test) > max(0.95, alone.score(test) + 0.05)
