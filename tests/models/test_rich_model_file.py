"""Model files with rich edges: round trips, the golden file, and every complaint.

``golden/chain_crf_v1_edges.trellis`` was made once by::

    ChainCRF(
        "word; word[-1] @ edge; bias @ edge @ min_count=2", rich_edges=False,
        edge_pairs="observed", edge_negatives=1, l2=0.5, l1=0.01, learning_rate=0.2,
        batch_size=2, scheme="BIO", random_state=0,
    ).fit(*toy_language(12)).save("chain_crf_v1_edges.trellis")

(``toy_language`` is that of ``chain_problems.py`` as it was then.) It is never made again: every
later version of Trellis must read it and give the answers below.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from rich_models import rich_scores, same_model

from chain_problems import toy_language
from trellis import ChainCRF, ChainPerceptron, CorruptModelError, DataError, load_model
from trellis.files.container import read_container, write_container

FOLDER = Path(__file__).parents[1] / "golden"
X, Y = toy_language(20)
X_NEW = [["Ada", "met", "Bohr", "Curie", "of"], ["the", "Noether", "and"], ["new"], []]
KINDS = {
    "dense": {"rich_edges": True},
    "dense both": {"rich_edges": "both"},
    "sparse": {"rich_edges": True, "edge_pairs": "observed", "edge_negatives": 2},
    "sparse both": {"rich_edges": "both", "edge_pairs": "observed", "edge_negatives": 2},
    "some": {"features": "word; word[-1] @ edge"},
    "some sparse": {
        "features": "word; word[-1] @ edge", "edge_pairs": "observed", "rich_edges": False,
    },
    "no pairs": {
        "rich_edges": "both", "edge_pairs": "observed", "edge_negatives": 0, "edge_min_share": 1.0,
    },
}  # fmt: skip


def fitted(kind, name, **more):
    options = {"features": "word; word[-1]", "max_passes": 2, "random_state": 0, **KINDS[name]}
    return kind(**options | more).fit(X, Y)


# ------------------------------------------------------------------------- round trips


@pytest.mark.parametrize("kind", [ChainCRF, ChainPerceptron])
@pytest.mark.parametrize("name", KINDS)
def test_a_loaded_model_is_the_saved_one(kind, name, tmp_path):
    model = fitted(kind, name)
    assert model.weights_.edge is not None
    model.save(tmp_path / "a")
    loaded = load_model(tmp_path / "a")
    assert same_model(loaded.weights_, model.weights_)
    assert loaded.get_params() == model.get_params()
    assert loaded.predict(X_NEW) == model.predict(X_NEW)
    assert loaded.predict_kbest(X_NEW, 3) == model.predict_kbest(X_NEW, 3)
    assert loaded.explain(X_NEW[:1]) == model.explain(X_NEW[:1])
    loaded.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    for one in (model, loaded):  # the vocabulary and the edges grow as if there were no file
        one.set_params(warm_start=True).fit([["brand", "new", "Ada"]], [["O", "O", "B-PER"]])
    assert same_model(loaded.weights_, model.weights_)


def test_new_parameters_come_back(tmp_path):
    options = {
        "overlap": 1, "piece_size": 2.5, "rich_edges": "both", "edge_pairs": "observed",
        "edge_negatives": 3, "edge_min_share": 0.1, "l1": 0.01, "group_lasso": 0.02,
        "solver": "lbfgs", "states": "observed", "batch_size": 4, "n_jobs": 2, "lock_free": False,
        "max_passes": "auto",
    }  # fmt: skip
    model = ChainCRF("word", **options).fit(X, Y)
    model.save(tmp_path / "m")
    found = load_model(tmp_path / "m").get_params()
    assert {name: found[name] for name in options} == options
    ChainPerceptron("word", averaged=False, n_jobs=-1).fit(X, Y).save(tmp_path / "p")
    found = load_model(tmp_path / "p").get_params()
    assert (found["averaged"], found["n_jobs"], found["max_passes"]) == (False, -1, "auto")


# ------------------------------------------------------------------------- golden files


GOLDEN_LABELS = [["B-PER", "O", "B-PER", "I-PER", "O"], ["O", "B-PER", "O"], ["O"], []]
GOLDEN_MARGINALS = [
    [0.8152, 0.0, 0.1848],
    [0.0507, 0.0999, 0.8493],
    [0.8322, 0.0251, 0.1427],
    [0.1962, 0.6951, 0.1087],
    [0.044, 0.059, 0.897],
    [0.337, 0.0, 0.663],
    [0.4756, 0.1941, 0.3303],
    [0.1821, 0.1195, 0.6984],
    [0.264, 0.0, 0.736],
]


def test_the_golden_file_with_edges_is_read_for_ever():
    model = load_model(FOLDER / "chain_crf_v1_edges.trellis")
    assert (FOLDER / "chain_crf_v1_edges.trellis").stat().st_size < 20_000
    assert type(model) is ChainCRF and model.classes_ == ("B-PER", "I-PER", "O")
    assert (model.edge_pairs, model.edge_negatives, model.l1) == ("observed", 1, 0.01)
    edge = model.weights_.edge
    assert 0 < edge.n_crossed < model.n_features_ and edge.ptr.size and not edge.both
    assert model.predict(X_NEW) == GOLDEN_LABELS
    found = np.concatenate(model.predict_marginals(X_NEW))
    np.testing.assert_allclose(found, GOLDEN_MARGINALS, atol=2e-4)
    best = max(rich_scores(model, X_NEW[1]).items(), key=lambda item: item[1])
    assert list(best[0]) == GOLDEN_LABELS[1]


def test_the_first_golden_file_has_the_defaults_of_what_came_later():
    header, arrays = read_container(FOLDER / "chain_crf_v1.trellis")
    later = set(ChainCRF().get_params()) - set(header["parameters"])
    assert {"rich_edges", "edge_pairs", "solver", "l1", "batch_size", "n_jobs"} <= later
    assert "edges" not in header and not any(name.startswith("edge.") for name in arrays)
    model = load_model(FOLDER / "chain_crf_v1.trellis")
    defaults = ChainCRF().get_params()
    assert {name: model.get_params()[name] for name in later} == {n: defaults[n] for n in later}
    assert model.weights_.edge is None


# ------------------------------------------------------------------------- refusals


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rich")
    for name in KINDS:
        fitted(ChainCRF, name).save(folder / name)
    return folder


def changed(array, **values):
    array = array.copy()
    for place, value in values.items():
        array[int(place[1:].replace("m", "-"))] = value
    return array


ROWS = "rows of edge features are not numbered in order"
SIZE = "edge weights do not fit the number of features and labels"
POINTERS = "pointers to edge weights do not fit them"


@pytest.mark.parametrize(
    ("name", "array", "change", "message"),
    [
        ("dense", "row", lambda a: a[:-1], "array 'edge.row' has shape"),
        ("dense", "row", lambda a: a.astype(np.int64), "array 'edge.row' has dtype int64"),
        ("dense", "row", None, "array 'edge.row' is missing"),
        ("dense", "row", lambda a: changed(a, _0=-2), ROWS),
        ("dense", "row", lambda a: changed(a, _0=-1), ROWS),
        ("dense", "row", lambda a: changed(a, _0=1), ROWS),
        ("dense", "row", lambda a: changed(a, _m1=2**31 - 1), ROWS),
        ("dense", "row", lambda a: a[::-1], ROWS),
        ("some", "row", lambda a: changed(a, _m1=-2), ROWS),
        ("dense", "row", lambda a: changed(a, _m1=-1), SIZE),
        ("sparse", "row", lambda a: changed(a, _m1=-1), POINTERS),
        ("dense", "values", lambda a: a[:-1], SIZE),
        ("dense", "values", lambda a: np.append(a, a[:1]), SIZE),
        ("dense", "pair", lambda a: np.zeros(1, np.int32), SIZE),
        ("dense both", "values", lambda a: a[: a.size // 2], SIZE),
        ("dense", "values", None, "array 'edge.values' is missing"),
        ("dense", "values", lambda a: a.astype(float), "array 'edge.values' has dtype float64"),
        ("dense", "values", lambda a: a[:, None], "array 'edge.values' has shape"),
        ("sparse", "values", lambda a: changed(a, _0=np.nan), "'edge.values' holds a number that"),
        ("sparse", "values", lambda a: changed(a, _0=np.inf), "'edge.values' holds a number that"),
        ("sparse", "values", lambda a: a[:-1], POINTERS),
        ("sparse", "ptr", None, "array 'edge.ptr' is missing"),
        ("sparse", "ptr", lambda a: a.astype(np.int32), "array 'edge.ptr' has dtype int32"),
        ("sparse", "ptr", lambda a: a[:-1], POINTERS),
        ("sparse", "ptr", lambda a: a[:0], SIZE),
        ("sparse", "ptr", lambda a: changed(a, _0=1), POINTERS),
        ("sparse", "ptr", lambda a: changed(a, _0=-1), POINTERS),
        ("sparse", "ptr", lambda a: changed(a, _m1=a[-1] + 1), POINTERS),
        ("sparse", "ptr", lambda a: changed(a, _1=2**62), POINTERS),
        ("sparse", "ptr", lambda a: changed(a, _1=a[2] + 1), POINTERS),
        ("sparse both", "ptr", lambda a: a[: (a.size + 1) // 2], POINTERS),
        ("dense", "ptr", lambda a: np.zeros(3, np.int64), POINTERS),
        ("sparse", "pair", None, "array 'edge.pair' is missing"),
        ("sparse", "pair", lambda a: a[:-1], POINTERS),
        ("sparse", "pair", lambda a: changed(a, _0=-1), "pairs of edge features lie in -1"),
        ("sparse", "pair", lambda a: changed(a, _m1=9), ", outside 0 <= x < 9"),
    ],
)
def test_what_is_wrong_with_an_array_is_said(files, tmp_path, name, array, change, message):
    header, arrays = read_container(files / name)
    if change is None:
        del arrays[f"edge.{array}"]
    else:
        arrays[f"edge.{array}"] = np.ascontiguousarray(change(arrays[f"edge.{array}"]))
    write_container(tmp_path / "m", header, arrays)
    with pytest.raises(CorruptModelError) as caught:
        load_model(tmp_path / "m")
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "m"))


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([], "header entry 'edges' is a list, dict expected"),
        ({}, "header entry 'both' is missing"),
        ({"both": 1}, "header entry 'both' is a int, bool expected"),
        ({"both": True}, SIZE),
    ],
)
def test_what_is_wrong_with_the_header_is_said(files, tmp_path, edges, message):
    header, arrays = read_container(files / "dense")
    write_container(tmp_path / "m", header | {"edges": edges}, arrays)
    with pytest.raises(CorruptModelError) as caught:
        load_model(tmp_path / "m")
    assert message in str(caught.value)


def test_a_loaded_model_with_bad_parameters_is_refused(files, tmp_path):
    header, arrays = read_container(files / "dense")
    for name, value in (("rich_edges", "x"), ("n_jobs", 0), ("solver", "x"), ("l1", -1.0)):
        bad = header | {"parameters": header["parameters"] | {name: value}}
        write_container(tmp_path / "m", bad, arrays)
        with pytest.raises(CorruptModelError, match=f"{name} must be"):
            load_model(tmp_path / "m")


NUMBERS = [0, 1, -1, 2, 8, 9, 255, 2**31 - 1, -(2**31), 2**62, -(2**63)]
FLOATS = [0.0, -1.0, 1e30, -1e30, 3e38, np.inf, np.nan]


def test_any_change_of_edges_is_refused_or_harmless(files, tmp_path):
    """Numbers changed, arrays cut, doubled and exchanged: never more than a refusal."""
    rng = random.Random(0)
    seen = {"refused": 0, "predicted": 0, "too large": 0}
    originals = [read_container(files / name) for name in KINDS]
    for k in range(420):
        header, arrays = originals[k % len(originals)]
        arrays = dict(arrays)
        for _ in range(rng.randint(1, 2)):
            name = rng.choice(["edge.row", "edge.ptr", "edge.pair", "edge.values"])
            array = arrays[name].copy()
            what = rng.randrange(6)
            if what <= 2 and array.size:
                i = rng.randrange(array.size)
                if array.dtype.kind == "f":
                    array[i] = rng.choice(FLOATS)
                else:
                    info = np.iinfo(array.dtype)
                    value = rng.choice([*NUMBERS, int(array[i]) + 1, int(array[i]) - 1])
                    array[i] = min(max(value, info.min), info.max)
            elif what == 3:
                array = rng.choice([array[:-1], array[1:], array[::-1], array[:0]]).copy()
            elif what == 4:
                array = np.concatenate([array, array[: rng.randint(0, 5)]])
            else:
                rng.shuffle(flat := array.tolist())
                array = np.array(flat, array.dtype)
            arrays[name] = array
        write_container(tmp_path / "m", header, arrays)
        try:
            model = load_model(tmp_path / "m")
        except CorruptModelError:
            seen["refused"] += 1
            continue
        try:
            answers = model.predict(X_NEW)
        except DataError as error:
            assert "too large" in str(error) or "infinite" in str(error)
            seen["too large"] += 1
            continue
        assert [len(a) for a in answers] == [len(s) for s in X_NEW]
        seen["predicted"] += 1
    assert seen["refused"] > 150 and seen["predicted"] > 50
