"""Names of the last release: they warn, and do what they did."""

from __future__ import annotations

import numpy as np
import pytest

from trellis import structures
from trellis.structures import ChainPotentials, GraphPotentials, best, marginals

PATH = GraphPotentials(np.eye(3, 2), np.eye(2), [[0, 1], [1, 2]], [0, 3])
CHAIN = ChainPotentials(PATH.node, PATH.pair[0], [0, 3])
OLD = [
    *["GraphBest", "GraphMarginals", "pair_marginals"],
    *[f"graph_{name}" for name in ("best", "kbest", "marginals", "sample", "entropy")],
    *[f"tree_{name}" for name in ("best", "kbest", "marginals", "pair_marginals", "sample")],
    *["tree_entropy", "tree_event_probability", "tree_score"],
]


def old(name):
    with pytest.warns(FutureWarning, match=rf"trellis\.structures\.{name} is now called \w+"):
        return getattr(structures, name)


@pytest.mark.parametrize("name", OLD)
def test_old_names_are_taken_for_one_release(name):
    assert callable(old(name))
    assert name not in structures.__all__


def test_they_do_what_they_did():
    labels, scores = old("tree_best")(PATH)
    assert (labels == best(PATH).labels).all() and scores.tolist() == best(PATH).scores.tolist()
    both = marginals(PATH, pairs=True)
    assert old("graph_marginals")(PATH).pair.tolist() == both.pair.tolist()
    assert old("tree_pair_marginals")(PATH)[1].tolist() == both.pair.tolist()
    np.testing.assert_allclose(old("pair_marginals")(CHAIN)[1][1:], both.pair, rtol=1e-12)
    with pytest.warns(FutureWarning, match="marginals is now called known"):
        old("graph_entropy")(PATH, marginals=both)


def test_other_names_are_unknown():
    with pytest.raises(AttributeError, match="no attribute 'graph_worst'"):
        _ = structures.graph_worst
