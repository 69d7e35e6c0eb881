"""Features in CSR form: what fits, what does not, and that it stays as it was given."""

from __future__ import annotations

import numpy as np
import pytest

from trellis.errors import DataError
from trellis.features import Encoded


def arrays() -> dict[str, np.ndarray]:
    """Two positions of one sample and one of another."""
    return {
        "offsets": np.array([0, 2, 3]),
        "indptr": np.array([0, 1, 3, 4]),
        "indices": np.array([0, 4, 1, 2], np.int32),
        "values": np.array([1, 2, 3, 4], np.float32),
    }


def test_kinds_of_arrays():
    given = {name: array.tolist() for name, array in arrays().items()}
    for encoded in (Encoded(**arrays()), Encoded(**given)):
        assert encoded.n_features == 5
        for name, array in arrays().items():
            kept = getattr(encoded, name)
            assert kept.dtype == array.dtype and kept.tolist() == array.tolist()
    assert Encoded([0], [0], [], []).n_features == 0


@pytest.mark.parametrize("name", arrays())
def test_what_is_held_stays_as_it_was_given(name):
    given = arrays()
    encoded = Encoded(**given)
    given[name][:] = 99
    assert getattr(encoded, name).tolist() == arrays()[name].tolist()
    with pytest.raises(ValueError, match="read-only"):
        getattr(encoded, name)[0] = 99


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"indices": [0, 4, -1, 2]}, "feature indices hold -1 at index 2; expected at least 0"),
        (
            {"indices": [0, 2**32, 1, 2]},
            "feature indices hold 4294967296 at index 1; expected 0 to 2147483647",
        ),
        (
            {"indices": [0.0, 4.0, 1.0, 2.0]},
            "feature indices have dtype float64; expected integers",
        ),
        ({"indices": [[0, 4, 1, 2]]}, "feature indices have shape (1, 4); expected (any,)"),
        (
            {"values": [1, 2, np.nan, 4]},
            "feature values hold nan at index 2; expected finite numbers",
        ),
        ({"values": [1, 2, 3]}, "there are 3 feature values for 4 indices"),
        ({"indptr": [0, 3, 1, 4]}, "feature indptr fall at sample 1, from 3 to 1"),
        ({"indptr": [0, 1, 3, 10**8]}, "feature indptr end at 100000000; expected 4"),
        (
            {"indptr": [1, 1, 3, 4]},
            "feature indptr must be a one-dimensional array that starts with 0",
        ),
        ({"offsets": [0, 2, 10**8]}, "offsets end at 100000000; expected 3"),
        ({"offsets": [0, 4, 3]}, "offsets fall at sample 1, from 4 to 3"),
    ],
)
def test_what_does_not_fit(change, message):
    with pytest.raises(DataError) as caught:
        Encoded(**(arrays() | change))
    assert str(caught.value) == message
