"""What load_model would refuse, save does not write: an older file stays."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuzz.every_model import EVERY
from trellis import ChainCRF, load_model
from trellis.errors import DataError


@cache
def model_named(name: str) -> Any:
    return EVERY[name]()[0]


def float_arrays(value: Any, where: str = "", seen: set[int] | None = None) -> Iterator[Any]:
    """The arrays of floats that an estimator holds, however deep, with their places.

    Not those of scikit-learn's models, where some are rightly infinite or NaN.
    """
    seen = set() if seen is None else seen
    if id(value) in seen:
        return
    seen.add(id(value))
    items: Any = ()
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "f" and value.size and value.base is None:
            yield where, value
    elif isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list | tuple):
        items = enumerate(value[:2])
    elif hasattr(value, "__dict__") and type(value).__module__.startswith("trellis"):
        items = vars(value).items()
    for key, item in items:
        yield from float_arrays(item, f"{where}.{key}", seen)


@pytest.mark.parametrize("bad", [np.nan, np.inf], ids=str)
@pytest.mark.parametrize("name", EVERY)
def test_weights_that_are_not_finite(name: str, bad: float, tmp_path: Path) -> None:
    file, model = tmp_path / "m", model_named(name)
    model.save(file)
    before = file.read_bytes()
    for i in range(len(list(float_arrays(model)))):
        poisoned = copy.deepcopy(model)
        where, array = list(float_arrays(poisoned))[i]
        if np.isnan(bad) and where.endswith("._nodes.y"):
            continue  # the target of a node may be unknown
        array.flags.writeable = True
        array.reshape(-1)[0] = bad
        try:
            poisoned.save(file)
        except DataError as error:
            assert str(error).startswith(f"cannot save this {type(model).__name__}, since "), where
        else:  # an array that is not written
            load_model(file)
        assert file.read_bytes() == before, where


def test_the_message(tmp_path: Path) -> None:
    file, crf = tmp_path / "m", ChainCRF("word", random_state=0).fit([["a", "b"]], [["X", "Y"]])
    crf.weights_.node[0, 0] = np.nan
    with pytest.raises(DataError) as caught:
        crf.save(file)
    assert str(caught.value) == (
        f"cannot save this ChainCRF, since nobody could load it: {file}: array 'node' holds a "
        "number that is not finite"
    )
    assert not file.exists()


def test_parameters_that_cannot_be(tmp_path: Path) -> None:
    """Not only weights: whatever load_model checks."""
    crf = ChainCRF("word", random_state=0).fit([["a", "b"]], [["X", "Y"]])
    crf.l2 = -1.0
    with pytest.raises(DataError, match=r"cannot save this ChainCRF, .* l2 must be"):
        crf.save(tmp_path / "m")
    crf.l2 = 1.0
    crf.classes_ = ("X", "X")
    with pytest.raises(DataError, match="classes must be distinct"):
        crf.save(tmp_path / "m")
    assert not list(tmp_path.iterdir())
