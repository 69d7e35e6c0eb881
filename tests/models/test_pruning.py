"""Few of many labels at prediction: those that promise most, or those that constraints allow."""

from __future__ import annotations

import numpy as np
import pytest

from trellis import ChainCRF, ChainPerceptron, TreeCRF
from trellis.errors import DataError

N_LABELS = 24


def many(rng, n=30):
    """Samples whose words tell the label most of the time."""
    X, y = [], []
    for _ in range(n):
        labels = rng.integers(0, N_LABELS, size=rng.integers(1, 9))
        noise = rng.integers(0, N_LABELS, size=len(labels))
        X.append(
            [
                [f"w{a if rng.random() < 0.7 else b}", f"v{a % 5}"]
                for a, b in zip(labels, noise, strict=True)
            ]
        )
        y.append([f"L{a:02d}" for a in labels])
    return X, y


@pytest.fixture(scope="module")
def data():
    return many(np.random.default_rng(0))


@pytest.fixture(scope="module")
def model(data):
    return ChainCRF(max_passes=5, random_state=0).fit(*data)


@pytest.fixture(scope="module")
def unseen():
    return many(np.random.default_rng(1))[0]


def test_pruned_predictions_have_bounds(model, unseen):
    exact = model.decode(unseen)
    for k in (1, 3, 8, N_LABELS, 1000):
        pruned = model.decode(unseen, prune=k)
        assert model.predict(unseen, prune=k) == [d.labels for d in pruned]
        for a, b in zip(pruned, exact, strict=True):
            assert a.score <= b.score <= a.bound
            assert a.exact == (a.method == "chain") == (a.gap == 0)
            if a.exact:
                assert a.labels == b.labels
    assert all(d.exact for d in pruned)


def test_few_labels_are_enough_where_words_tell(model, unseen):
    best, pruned = model.predict(unseen), model.predict(unseen, prune=8)
    same = np.mean(
        [a == b for x, y in zip(best, pruned, strict=True) for a, b in zip(x, y, strict=True)]
    )
    assert same > 0.97


def test_where_no_pruned_labelling_is_allowed_all_are_looked_at():
    X = [[["a"], ["b"], ["c"]]] * 5
    y = [["B-x", "I-x", "O"]] * 5
    crf = ChainCRF(max_passes=3, random_state=0, scheme="BIO").fit(X, y)
    odd = [[["b"], ["b"]]]  # no I at the start
    assert crf.predict(odd, prune=1) == crf.predict(odd)


def test_what_cannot_be_pruned_says_so(model, data, unseen):
    with pytest.raises(DataError, match="prune must be a positive integer, got 0"):
        model.predict(unseen, prune=0)
    rich = ChainCRF(rich_edges=True, max_passes=1).fit(*data)
    with pytest.raises(DataError, match="plain edges; this model has rich edges"):
        rich.predict(unseen, prune=3)
    tree = TreeCRF(max_passes=1).fit([[["a"], ["b"]]], [["X", "Y"]], edges=[[(0, 1)]])
    with pytest.raises(DataError, match="plain edges; this model has a tree"):
        tree.predict([[["a"], ["b"]]], edges=[[(0, 1)]], prune=3)


@pytest.mark.parametrize("n_allowed", [1, 2, 5, 20])
@pytest.mark.parametrize("kind", [ChainCRF, ChainPerceptron])
def test_constraints_score_what_they_allow(kind, n_allowed, data, unseen):
    """However few labels are allowed, the result is that of scores with all others forbidden."""
    model = kind(max_passes=3, random_state=0).fit(*data)
    rng = np.random.default_rng(n_allowed)
    sets = [
        [set(rng.choice(model.classes_, n_allowed, replace=False).tolist()) for _ in x]
        for x in unseen
    ]
    for s, (labels, allowed) in enumerate(
        zip(model.predict(unseen, constraints=sets), sets, strict=True)
    ):
        p, _ = next(model.potentials(model._corpus([unseen[s]], None)))
        node = np.array(p.node)
        for t, names in enumerate(allowed):
            node[t, [i for i, name in enumerate(model.classes_) if name not in names]] = -np.inf
        from trellis.structures import ChainPotentials, best

        found, _ = best(ChainPotentials(node, p.trans, p.offsets))
        assert labels == [model.classes_[i] for i in found]
