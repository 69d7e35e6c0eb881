"""Features of pixels: by hand, and that models have them where pairs do."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.stats import wasserstein_distance

from trellis import load_model
from trellis.datasets import render_cells, simulate_cells
from trellis.errors import DataError
from trellis.tracking import (
    EVENTS,
    EventFeature,
    FramePair,
    HandSet,
    LocalClassifiers,
    Objects,
    PairAnnotation,
    TrackingModel,
    default_features,
    make_hypotheses,
    patchify,
    read_label_images,
)
from trellis.tracking.features import event_features
from trellis.tracking.local_classifiers import PUBLISHED_WEIGHTS
from trellis.tracking.pixel_features import PIXEL_RELATIONS, distributions, mixture

DRAWN = render_cells(simulate_cells(25, 6, lab="b", seed=2))
PLAIN = read_label_images(DRAWN.masks, DRAWN.images, DRAWN.links, pixels="overlap")
FULL = read_label_images(DRAWN.masks, DRAWN.images, DRAWN.links, pixels="published")


def values(pair, event, name):
    """A feature of all hypotheses of an event, by the rows of its objects."""
    h = make_hypotheses(pair, events=EVENTS, max_distance=99.0, annotated=False)
    columns = list(pair.source.columns)
    features = [
        f for f in default_features(columns, EVENTS, tuple(pair.relations))
        if (f.event, f.name) == (event, name)
    ]  # fmt: skip
    assert len(features) == 1
    kind = EVENTS.index(event)
    mine = h.take(h.kind == kind)
    table = event_features(pair, h, features)[kind][:, 0]
    rows = zip(mine.source.tolist(), mine.target.tolist(), strict=True)
    return {
        (tuple(i for i in a if i >= 0), tuple(j for j in b if j >= 0)): value
        for (a, b), value in zip(rows, table.tolist(), strict=True)
    }


def squares(*frames):
    masks = np.zeros((2, 12, 20), int)
    for t, parts in enumerate(frames):
        for label, y, x, height, width in parts:
            masks[t, y : y + height, x : x + width] = label
    return masks


def test_overlap():
    masks = squares([(1, 2, 2, 4, 8), (2, 0, 14, 2, 2)], [(1, 2, 2, 4, 3), (2, 2, 6, 6, 4)])
    (pair,) = read_label_images(masks, pixels="overlap")
    a, b, both = 12, 24, 32
    for name, wanted in (
        ("overlap", {(0, 0): a / both, (0, 1): 16 / (both + b - 16), (1, 0): 0, (1, 1): 0}),
        ("source covered", {(0, 0): a / both, (0, 1): 16 / both, (1, 0): 0, (1, 1): 0}),
        ("target covered", {(0, 0): 1, (0, 1): 16 / b, (1, 0): 0, (1, 1): 0}),
    ):
        found = values(pair, "move", name)
        assert found == {((i,), (j,)): pytest.approx(v) for (i, j), v in wanted.items()}
    assert values(pair, "split", "covered by both")[(0,), (0, 1)] == 28 / both
    assert values(pair, "split", "cover of the lesser")[(0,), (0, 1)] == 16 / b
    assert values(pair, "appear", "covered") == {((), (0,)): 1.0, ((), (1,)): 16 / b}
    assert values(pair, "disappear", "covered") == {((0,), ()): 28 / both, ((1,), ()): 0.0}
    (back,) = read_label_images(masks[::-1].copy(), pixels="overlap")
    assert values(back, "merge", "covered by both")[(0, 1), (0,)] == 28 / both
    assert values(back, "merge", "cover of the lesser")[(0, 1), (0,)] == 16 / b


def test_what_fills_the_hull():
    masks = squares([(1, 2, 2, 4, 8)], [(1, 2, 2, 4, 3), (2, 2, 7, 4, 3)])
    images = np.where(masks == 1, 60.0, np.where(masks == 2, 20.0, 10.0))
    (pair,) = read_label_images(masks, images, pixels="published")
    for event in ("division", "split"):
        assert values(pair, event, "compactness") == {((0,), (0, 1)): pytest.approx(1 - 8 / 24)}
        assert values(pair, event, "mass evenness") == {((0,), (0, 1)): pytest.approx(10 / 40)}
    (back,) = read_label_images(masks[::-1].copy(), images[::-1].copy(), pixels="published")
    assert values(back, "merge", "compactness") == {((0, 1), (0,)): pytest.approx(1 - 8 / 24)}


def test_border_of_the_image():
    masks = squares([(1, 0, 2, 2, 2), (2, 5, 5, 2, 2)], [(1, 0, 0, 2, 2), (2, 5, 5, 2, 2)])
    (pair,) = read_label_images(masks, pixels="published")
    name = "outline on the border"
    assert values(pair, "disappear", name) == {((0,), ()): 0.25, ((1,), ()): 0.0}
    assert values(pair, "appear", name) == {((), (0,)): 0.5, ((), (1,)): 0.0}


@given(st.integers(0, 10**6), st.floats(0.05, 0.95))
@settings(max_examples=30, deadline=None)
def test_distances_of_distributions(seed, weight):
    rng = np.random.default_rng(seed)
    k = 8
    a, b, c = np.sort(rng.gamma(2, size=(3, 4, k)), axis=2)
    names = [f"red_quantile_{i + 1}" for i in range(k)]

    def objects(q, areas):
        columns = {"area": areas, **dict(zip(names, q.T, strict=True))}
        return Objects(np.arange(4), np.zeros((4, 2)), columns)

    one, two, three = (
        objects(q, np.full(4, w)) for q, w in ((a, 1.0), (b, weight), (c, 1 - weight))
    )
    features = {(f.event, f.name): f for f in default_features(list(one.columns), EVENTS)}
    moved = features["move", "red distribution change"].values(one, two)
    for i in range(4):
        scale = max(a[i].mean(), b[i].mean())
        assert moved[i] == pytest.approx(wasserstein_distance(a[i], b[i]) / scale)
    together = mixture(b, c, np.full(4, weight))
    for i in range(4):
        values = np.concatenate([b[i], c[i]])
        order = np.argsort(values)
        reached = np.cumsum(np.repeat([weight, 1 - weight], k)[order]) / k
        wanted = [values[order][np.argmax(reached >= q - 1e-12)] for q in (np.arange(k) + 0.5) / k]
        np.testing.assert_array_equal(together[i], wanted)
    parted = features["division", "red distribution change"].values(one, two, three)
    merged = features["merge", "red distribution change"].values(two, three, one)
    np.testing.assert_allclose(parted, merged)
    scale = np.maximum(a.mean(axis=1), together.mean(axis=1))
    np.testing.assert_allclose(parted, np.abs(a - together).mean(axis=1) / scale)


def test_names_of_distributions():
    names = ["red_quantile_10", "area", "red_quantile_2", "quantile_1", "red_quantile_1"]
    assert distributions(names) == {"red": ["red_quantile_1", "red_quantile_2", "red_quantile_10"]}
    changes = [f.name for f in default_features(names, ("move",)) if "change" in f.name]
    assert changes == ["area change", "quantile_1 change", "red distribution change"]


def test_models_know_the_relations_they_learned_with(tmp_path):
    for kind in (TrackingModel(), HandSet(), LocalClassifiers(n_trees=3, random_state=0)):
        model = kind.fit(PLAIN)
        assert model.hypothesis_space_.relations == ("overlap",)
        links = model.predict(PLAIN).links
        model.save(tmp_path / "m.trellis")
        for one in (load_model(tmp_path / "m.trellis"), pickle.loads(pickle.dumps(model))):
            assert one.predict(PLAIN).links == links
            with pytest.raises(
                DataError, match="the pair has no relation 'overlap' of its objects"
            ):
                one.predict([replace(pair, relations={}) for pair in PLAIN])
    # Learned from tables as well, a model does without.
    both = TrackingModel().fit([*PLAIN[:2], *(replace(p, relations={}) for p in PLAIN[2:])])
    assert both.hypothesis_space_.relations == ()
    assert both.predict(PLAIN).links


def test_the_published_features_are_all_there():
    names = {
        (f.event, f.name)
        for f in default_features(list(FULL[0].source.columns), EVENTS, PIXEL_RELATIONS)
    }
    wanted = {(event, name) for event, named in PUBLISHED_WEIGHTS.items() for name in named}
    assert wanted - names == set()
    assert sum(map(len, PUBLISHED_WEIGHTS.values())) >= 30
    tracker = HandSet(weights=PUBLISHED_WEIGHTS, events=EVENTS).fit(FULL)
    assert tracker.predict(FULL).links


def test_patches_keep_their_relations():
    for pair in FULL[:2]:
        n = len(pair.source)
        whole = {name: matrix.toarray() for name, matrix in pair.relations.items()}
        for patch in patchify([pair], objects=6):
            rows = np.concatenate(
                [
                    np.searchsorted(pair.source.ids, patch.source.ids),
                    np.searchsorted(pair.target.ids, patch.target.ids) + n,
                ]
            )
            for name, matrix in patch.relations.items():
                np.testing.assert_array_equal(matrix.toarray(), whole[name][np.ix_(rows, rows)])


def test_features_of_ones_own():
    cells = Objects([0], [[1.0, 1.0]])
    pair = FramePair("", 0, cells, cells, relations={"likeness": csr_array([[0, 0.5], [0.5, 0]])})
    own = EventFeature(
        "move", "likeness", lambda a, b, known: known.between("likeness", 0, 1),
        relations=("likeness",),
    )  # fmt: skip
    h = make_hypotheses(pair, max_distance=5.0)
    assert event_features(pair, h, [own])[0].tolist() == [[0.5]]
    with pytest.raises(
        DataError, match=r"wants the relation 'likeness', which the pair does not h"
    ):
        event_features(replace(pair, relations={}), h, [own])
    annotated = replace(pair, annotation=PairAnnotation(((0, 0, "move"),)))
    model = TrackingModel(features=[own], max_distance=5.0).fit([annotated] * 3)
    assert model.hypothesis_space_.relations == ("likeness",)
    with pytest.raises(DataError, match="relations must be"):
        EventFeature("move", "a", len, relations=7)


@pytest.mark.parametrize("bad", [np.zeros((2, 2)), csr_array((3, 3)), csr_array((2, 2)).tocoo()])
def test_relations_that_are_none(bad):
    cells = Objects([0], [[1.0, 1.0]])
    with pytest.raises(DataError, match=r"frame 4: the relation 'a' is not a scipy.sparse.csr_arr"):
        FramePair("", 4, cells, cells, relations={"a": bad})
    with pytest.raises(DataError, match="relations must be"):
        FramePair("", 4, cells, cells, relations=3)
