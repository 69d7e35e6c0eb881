"""Files of tracking models: round trips, the golden file, and damaged ones.

``golden/tracking_v1.trellis`` was made once by ``TrackingModel(random_state=0).fit(FILM)`` and is
never made again.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from trellis.errors import CorruptModelError, DataError
from trellis.files.container import read_container, write_container
from trellis.tracking import EventFeature, FramePair, Objects, PairAnnotation, TrackingModel

GOLDEN = Path(__file__).parents[1] / "golden" / "tracking_v1.trellis"


def film(n_frames, seed):
    """Six cells that drift; one of them divides in each pair, and one leaves."""
    rng = np.random.default_rng(seed)
    pairs = []
    for t in range(n_frames):
        at = np.stack([20.0 * np.arange(6), 5.0 * rng.integers(0, 4, 6)], axis=1)
        area = np.array([60.0, 30, 31, 32, 33, 34])
        moved = at[:5] + rng.integers(-2, 4, (5, 2))
        apart = np.array([3.0, 0.0])
        target = np.concatenate([moved[:1] - apart, moved[:1] + apart, moved[1:]])
        size = np.concatenate([[30.0, 30.0], area[1:5]])
        links = [(0, 0, "division"), (0, 1, "division")]
        links += [(i, i + 1, "move") for i in range(1, 5)]
        source = Objects(np.arange(6), at, {"area": area})
        later = Objects(np.arange(6), target, {"area": size})
        extent = (0.0, 0.0, 110.0, 20.0)
        pairs.append(FramePair("film", t, source, later, PairAnnotation(tuple(links)), extent))
    return pairs


FILM, NEW = film(4, 0), film(2, 1)


def swims(source, target):
    return target.position[:, 0] - source.position[:, 0]


@pytest.fixture(scope="module")
def model():
    return TrackingModel(random_state=0).fit(FILM)


def rewritten(path, change):
    """Write the golden file anew after a change of its header and arrays; checksums are right."""
    header, arrays = read_container(GOLDEN)
    header = json.loads(json.dumps(header))
    change(header, arrays)
    write_container(path, header, arrays)
    return path


# ------------------------------------------------------------------------------------ round trips


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"events": ["move", "division", "appear", "disappear", "split", "merge"]},
        {"l2": 0.0, "l1": np.float64(0.1), "max_distance": np.int64(40), "bias": False, "knots": 0},
        {"solver": "perceptron", "loss": "max", "max_iter": 3, "random_state": 0},
    ],
)
def test_round_trip(options, tmp_path):
    model = TrackingModel(**options).fit(FILM)
    model.save(tmp_path / "m.trellis")
    again = TrackingModel.load(tmp_path / "m.trellis")
    np.testing.assert_array_equal(again.weights_, model.weights_)
    assert again.predict(NEW) == model.predict(NEW)
    assert again.coefficients() == model.coefficients()
    assert again.events_ == model.events_
    assert again.columns_ == model.columns_
    assert again.max_distance_ == model.max_distance_
    assert again.stop_reason_ == model.stop_reason_
    for name, value in model.get_params().items():
        found = again.get_params()[name]
        assert found == (tuple(value) if isinstance(value, list) else value)
    again.save(tmp_path / "n.trellis")
    assert (tmp_path / "n.trellis").read_bytes() == (tmp_path / "m.trellis").read_bytes()


def test_a_model_read_can_learn_again(model, tmp_path):
    model.save(tmp_path / "m.trellis")
    again = TrackingModel.load(tmp_path / "m.trellis").fit(FILM)
    np.testing.assert_array_equal(again.weights_, model.weights_)


def test_features_of_ones_own_are_given_again(tmp_path):
    mine = EventFeature("move", "swims", swims)
    model = TrackingModel(features=[mine]).fit(FILM)
    model.save(tmp_path / "m.trellis")
    again = TrackingModel.load(tmp_path / "m.trellis", features=[mine])
    assert again.predict(NEW) == model.predict(NEW)
    assert again.coefficients() == model.coefficients()
    for wrong in ([], [EventFeature("move", "flies", swims)], [mine, mine]):
        with pytest.raises(DataError, match=r"features of its user, \[\['move', 'swims'\]\]; give"):
            TrackingModel.load(tmp_path / "m.trellis", features=wrong)
    with pytest.raises(DataError, match=r"features of its user, \[\]; give the same"):
        TrackingModel.load(GOLDEN, features=[mine])


# ------------------------------------------------------------------------------------ golden file


def test_the_golden_file_is_read_for_ever():
    model = TrackingModel.load(GOLDEN)
    assert model.get_params()["random_state"] == 0
    assert model.events_ == ("move", "division", "appear", "disappear")
    assert model.columns_ == ("area",)
    result = model.predict(NEW)
    assert [link[1:5] for link in result.links] == GOLDEN_LINKS
    assert [event[1:] for event in result.events] == [(0, 5, "disappear"), (1, 5, "disappear")]
    scores = [ranked[0][1] for ranked in model.predict_kbest(NEW, 1)]
    np.testing.assert_allclose(scores, GOLDEN_SCORES, rtol=1e-9)


GOLDEN_LINKS = [
    (0, 1, 2, "move"),
    (0, 2, 3, "move"),
    (0, 3, 4, "move"),
    (0, 4, 5, "move"),
    (0, 0, 0, "division"),
    (0, 0, 1, "division"),
    (1, 1, 2, "move"),
    (1, 2, 3, "move"),
    (1, 3, 4, "move"),
    (1, 4, 5, "move"),
    (1, 0, 0, "division"),
    (1, 0, 1, "division"),
]
GOLDEN_SCORES = [3.345725978166444, 3.39730558014455]


# ---------------------------------------------------------------------------------- damaged files


def test_every_part_of_the_file_is_guarded(tmp_path):
    whole = GOLDEN.read_bytes()
    rng = np.random.default_rng(0)
    file = tmp_path / "m.trellis"
    for at in [*range(0, 40), *rng.integers(40, len(whole), 60).tolist()]:
        damaged = bytearray(whole)
        damaged[at] ^= 1 << int(rng.integers(8))
        file.write_bytes(damaged)
        with pytest.raises(CorruptModelError, match=r"m\.trellis"):
            TrackingModel.load(file)
    for length in [0, 1, 20, len(whole) // 2, len(whole) - 1]:
        file.write_bytes(whole[:length])
        with pytest.raises(CorruptModelError, match=r"m\.trellis"):
            TrackingModel.load(file)
    with pytest.raises(FileNotFoundError):
        TrackingModel.load(tmp_path / "none.trellis")


def set_header(*path, value):
    def change(header, arrays):
        for key in path[:-1]:
            header = header[key]
        header[path[-1]] = value

    return change


def drop(key):
    return lambda header, arrays: header.pop(key)


def set_weights(make):
    def change(header, arrays):
        arrays["weights"] = make(arrays["weights"])

    return change


def with_nan(weights):
    weights = weights.copy()
    weights[3] = np.nan
    return weights


def rename_feature(header, arrays):
    header["features"][0][1] = "colour"


def move_a_feature(header, arrays):
    """As many weights, but not as many of each event."""
    for table in ("quantiles", "knots"):
        scale = header["preconditioner"][table]
        scale["move"] = [row[1:] for row in scale["move"]]
        scale["division"] = [[*row, row[-1]] for row in scale["division"]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_header("estimator", value="ChainCRF"), "'estimator' is 'ChainCRF', one of"),
        (drop("estimator"), "'estimator' is missing"),
        (drop("columns"), "'columns' is missing"),
        (drop("training"), "'training' is missing"),
        (set_header("parameters", "colour", value=1), "parameters are not those of TrackingModel"),
        (set_header("parameters", "features", value=[]), "parameters are not those of"),
        (set_header("parameters", "loss", value="hinge"), "loss must be 'bridge'"),
        (set_header("parameters", "neighbours", value="4"), "n_neighbors must be a positive int"),
        (
            set_header("parameters", "events", value=["move"]),
            "events must be a list with move",
        ),
        (set_header("parameters", "events", value=None), "events must be .*a list of move"),
        (set_header("events", value=["move"]), "events must be a list with move"),
        (set_header("events", value=["jump"]), "events must be .*a list of move"),
        (set_header("events", value=[1]), "'events' holds a int"),
        (set_header("columns", value=[1]), "'columns' holds a int"),
        (set_header("columns", value=[]), "features that this version of Trellis does not know"),
        (set_header("max_distance", value=-1.0), "max_distance must be a positive number"),
        (set_header("max_distance", value="far"), "'max_distance' is a str"),
        (set_header("features", value=["x"]), "'features' holds a str"),
        (set_header("features", value=[]), "the scale is not that of the features"),
        (rename_feature, "features that this version of Trellis does not know"),
        (
            set_header("own_features", value=[["move", "x"]]),
            "features of its user are not the last",
        ),
        (move_a_feature, "the scale is not that of the features"),
        (set_header("preconditioner", value={}), "the scale of features cannot be read"),
        (set_header("preconditioner", "bias", value=["jump"]), "the events with a bias"),
        (set_header("preconditioner", "knots", "move", value=[[0.0]]), "the knots of the features"),
        (set_header("training", "stop_reason", value=3), "'stop_reason' is a int"),
        (set_weights(lambda w: w[1:]), "'weights' has shape"),
        (set_weights(lambda w: w[:, None]), "'weights' has shape"),
        (set_weights(lambda w: w.astype(np.float32)), "'weights' has dtype float32"),
        (set_weights(with_nan), "'weights' holds a number that is not finite"),
        (lambda header, arrays: arrays.pop("weights"), "'weights' is missing"),
    ],
)
def test_what_does_not_fit_is_refused(change, message, tmp_path):
    file = rewritten(tmp_path / "m.trellis", change)
    with pytest.raises(CorruptModelError, match=rf"m\.trellis: .*{message}"):
        TrackingModel.load(file)


def test_other_models_are_no_tracking_models():
    with pytest.raises(CorruptModelError, match="'estimator' is 'ChainCRF'"):
        TrackingModel.load(GOLDEN.with_name("chain_crf_v1.trellis"))


def test_parameters_that_came_later_have_their_defaults(tmp_path):
    def earlier(header, arrays):
        del header["parameters"]["adaptive"], header["parameters"]["events"]

    model = TrackingModel.load(rewritten(tmp_path / "m.trellis", earlier))
    assert model.adaptive
    assert model.events == "auto"


def test_the_temperature_is_in_the_file_and_old_files_have_none(model, tmp_path):
    assert TrackingModel.load(GOLDEN).temperature_ is None
    assert TrackingModel.load(GOLDEN).predict(NEW, probabilities=True).probabilities
    model.save(tmp_path / "model")
    again = TrackingModel.load(tmp_path / "model")
    assert again.temperature_ == model.temperature_ > 0
    found, same = (m.predict(NEW, probabilities=True).chances for m in (model, again))
    assert found == same


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_a_temperature_that_is_none_is_refused(tmp_path, value):
    path = rewritten(tmp_path / "m", lambda header, _: header.update(temperature=value))
    with pytest.raises(CorruptModelError, match="its temperature is"):
        TrackingModel.load(path)
