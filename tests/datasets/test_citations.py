"""Papers that cite one another: what the parameters say is what comes out."""

from __future__ import annotations

import numpy as np
import pytest

from trellis import DataError
from trellis.datasets import citations


@pytest.mark.parametrize("homophily", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("subjects", [2, 7])
def test_citations_are_as_alike_as_asked(homophily, subjects):
    X, y, edges = citations(3000, homophily=homophily, subjects=subjects, degree=6, random_state=2)
    assert X.shape == (3000, 1000) and y.max() < subjects and edges.shape == (9000, 2)
    assert (edges[:, 0] < edges[:, 1]).all() and len(np.unique(edges, axis=0)) == len(edges)
    assert (y[edges[:, 0]] == y[edges[:, 1]]).mean() == pytest.approx(homophily, abs=0.03)


@pytest.mark.parametrize("topical", [0.0, 1.0])
def test_words_are_about_the_subject_as_much_as_asked(topical):
    X, y, _ = citations(2000, topical=topical, length=10, random_state=1)
    assert set(X.data) == {1.0} and 7 < X.sum() / 2000 < 11
    means = np.array([np.asarray(X[y == k].mean(axis=0)).ravel() for k in range(7)])
    spread = means.std(axis=0).max()
    assert spread < 0.05 if topical == 0 else spread > 0.1


def test_the_seed_decides_and_bad_values_are_refused():
    a, b, c = citations(50), citations(50), citations(50, random_state=1)
    assert (a.X != b.X).nnz == 0 and (a.edges == b.edges).all() and not (a.y == c.y).all()
    for bad in ({"subjects": 1}, {"degree": 0}, {"degree": 100}, {"homophily": 1.5},
                {"topical": -1}, {"words": 0}, {"length": 0}):  # fmt: skip
        with pytest.raises(DataError, match=f"{next(iter(bad))} must be"):
            citations(50, **bad)
    with pytest.raises(DataError, match="n_papers must be"):
        citations(1)
