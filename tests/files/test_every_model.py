"""Every estimator: saved, loaded by load_model, and the same to the bit."""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

import trellis
from fuzz.every_model import EVERY, Made
from trellis.experts import MajorityVote
from trellis.files.container import read_container
from trellis.files.registry import ESTIMATORS
from trellis.files.storable import Storable

NAMES = pytest.mark.parametrize("name", EVERY)


@cache
def made(name: str) -> Made:
    return EVERY[name]()


def same(a: Any, b: Any) -> bool:
    """Whether two predictions are the same, to the bit."""
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b or (a != a and b != b))  # NaN is NaN


def parameters(model: Any) -> dict[str, str]:
    values = model.get_params(deep=False) if hasattr(model, "get_params") else vars(model)
    return {name: repr(value) for name, value in values.items() if not name.endswith("_")}


@NAMES
def test_a_loaded_model_is_the_saved_one(name: str, tmp_path: Path) -> None:
    model, predict = made(name)
    model.save(tmp_path / "m")
    loaded = trellis.load_model(tmp_path / "m")
    assert type(loaded) is type(model)
    assert same(predict(loaded), predict(model))
    if name != "HandSet, default":  # whose weights are shown as a read-only mapping
        assert repr(loaded) == repr(model)
        assert parameters(loaded) == parameters(model)


@NAMES
def test_equal_models_give_equal_bytes(name: str, tmp_path: Path) -> None:
    model, _ = made(name)
    model.save(tmp_path / "a")
    trellis.load_model(tmp_path / "a").save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@NAMES
def test_a_pickle_mapped_into_memory_serves(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As joblib hands models to processes: arrays are parts of a file and cannot be written."""
    model, predict = made(name)
    expected = predict(model)
    joblib.dump(model, tmp_path / "m")
    mapped = joblib.load(tmp_path / "m", mmap_mode="r")
    monkeypatch.setattr("trellis.kernels._jit._announce", pytest.fail)  # no kernel is new
    assert same(predict(mapped), expected)


@NAMES
def test_learned_attributes_come_back(name: str, tmp_path: Path) -> None:
    model, _ = made(name)
    model.save(tmp_path / "m")
    loaded = trellis.load_model(tmp_path / "m")
    public = [n for n in vars(model) if n.endswith("_") and not n.startswith("_")]
    left_out = set()
    if hasattr(model, "encoder_") or name == "TrackingModel":  # how training went is not kept
        left_out = {"history_", "n_seen_", "n_batches_", "solver_", "objective_", "gap_"}
        left_out |= {"learning_rate_", "averaged_", "exact_", "lower_bound_"}
    for attribute in set(public) - left_out:
        assert hasattr(loaded, attribute), attribute
        a, b = getattr(loaded, attribute), getattr(model, attribute)
        if isinstance(b, int | float | str | bool | np.ndarray):
            assert same(a, b), attribute


def test_every_estimator_is_here() -> None:
    assert {name.partition(",")[0] for name in EVERY} == set(ESTIMATORS)


def test_every_public_class_that_can_be_fitted_can_be_saved() -> None:
    homes = sorted({*ESTIMATORS.values(), "trellis"})
    public = {n: getattr(importlib.import_module(h), n) for h in homes for n in _all(h)}
    fitted = {name for name, thing in public.items() if isinstance(thing, type) and _fits(thing)}
    assert fitted == set(ESTIMATORS)
    assert all(issubclass(public[name], Storable) for name in fitted)


def _all(home: str) -> list[str]:
    return list(importlib.import_module(home).__all__)


def _fits(kind: type) -> bool:
    return hasattr(kind, "fit") and hasattr(kind, "predict")


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_what_is_not_fitted_is_not_saved(name: str, tmp_path: Path) -> None:
    kind = getattr(importlib.import_module(ESTIMATORS[name]), name)
    arguments: dict[str, list[Any]] = {
        "Aligned": [trellis.ChainCRF()],
        "Committee": [[MajorityVote()]],
        "TableRegressor": ["price"],
        "TransferLearner": [trellis.ChainCRF()],
    }
    with pytest.raises(Exception, match="fit") as caught:
        kind(*arguments.get(name, [])).save(tmp_path / "m")
    assert type(caught.value).__name__ in ("NotFittedError", "DataError")
    assert not (tmp_path / "m").exists()


def test_a_class_of_your_own_is_not_saved(tmp_path: Path) -> None:
    class Mine(trellis.ChainCRF):
        pass

    model = Mine(max_passes=1, random_state=0).fit([["a", "b"]], [["X", "Y"]])
    with pytest.raises(trellis.DataError, match="Mine is not an estimator of Trellis"):
        model.save(tmp_path / "m")


def test_no_file_names_a_module(tmp_path: Path) -> None:
    """What is imported is decided by the registry alone."""
    made("GCRF")[0].save(tmp_path / "m")
    header, _ = read_container(tmp_path / "m")
    assert header["estimator"] == "GCRF" and "trellis" not in str(header)
