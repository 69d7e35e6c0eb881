"""Arrays from users: one type and layout for kernels, nothing converted with loss, each message."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from trellis.arrays import (
    as_array,
    as_offsets,
    check_in_place,
    for_kernels,
    held,
    known,
    memory_for,
)
from trellis.errors import DataError

# ------------------------------------------------------------------------------- as_array


class Listed(list):
    """A sequence that NumPy knows as such."""


class Broken:
    def __repr__(self):
        return "Broken()"

    """Something that cannot become an array."""

    def __array__(self, dtype=None, copy=None):
        raise AttributeError("no numbers here")


@pytest.mark.parametrize(
    "values",
    [
        [[1, 2], [3, 4]],
        Listed([[1, 2], [3, 4]]),
        np.array([[1, 2], [3, 4]], np.uint8),
        np.array([[1, 2], [3, 4]], ">i8"),
        np.array([[1, 3], [2, 4]]).T,
        np.array([[1, 0, 2], [3, 0, 4]])[:, ::2],
        np.ma.MaskedArray([[1, 2], [3, 4]], mask=False),
        np.array([[1, 2], [3, 4]]).view(np.matrix),
        np.frombuffer(np.array([[1, 2], [3, 4]]).tobytes(), np.int64).reshape(2, 2),
        np.frombuffer(b"x" + np.array([1, 2, 3, 4]).tobytes(), np.uint8)[1:].view("<i8"),
    ],
    ids=range(10),
)
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
def test_one_type_and_layout(values, dtype):
    array = as_array(values, dtype, "numbers")
    assert type(array) is np.ndarray and array.dtype == dtype and array.dtype.isnative
    assert array.flags.carray
    assert array.ravel().tolist() == [1, 2, 3, 4]


def test_what_fits_is_not_copied():
    numbers = np.arange(4)
    assert as_array(numbers, np.int64, "numbers") is numbers
    kept = held(numbers)
    assert np.shares_memory(as_array(kept, np.int64, "numbers"), numbers)
    assert not kept.flags.writeable and numbers.flags.writeable


def test_truth_values():
    assert as_array([True, False], bool, "marks").tolist() == [True, False]
    assert as_array([True, False], np.float64, "numbers").tolist() == [1.0, 0.0]


@pytest.mark.parametrize("shape", [None, (None,), (0,), (None, 2), (0, 3)])
def test_no_values_are_values_of_any_type(shape):
    array = as_array([], np.int32, "edges", shape)
    assert array.dtype == np.int32 and array.size == 0
    assert array.shape == ((0,) if shape is None else tuple(n or 0 for n in shape))
    assert as_array(np.zeros((0, 2), object), np.int32, "edges", (None, 2)).shape == (0, 2)


@pytest.mark.parametrize(
    ("values", "dtype", "options", "message"),
    [
        ([0.5], np.int32, {}, "x have dtype float64; expected integers"),
        ([1.0], np.int64, {}, "x have dtype float64; expected integers"),
        ([True], np.int64, {}, "x have dtype bool; expected integers"),
        (["1"], np.int64, {}, "x have dtype <U1; expected integers"),
        ([None], np.float64, {}, "x have dtype object; expected numbers"),
        ([1j], np.float64, {}, "x have dtype complex128; expected numbers"),
        ([2**70], np.int64, {}, "x have dtype object; expected integers"),
        ([0, 1], bool, {}, "x have dtype int64; expected truth values"),
        ([[1, 2]], np.int64, {"shape": (None,)}, "x have shape (1, 2); expected (any,)"),
        ([1, 2], np.int64, {"shape": (3,)}, "x have shape (2,); expected (3,)"),
        ([[1, 2]], np.int64, {"shape": (None, 3)}, "x have shape (1, 2); expected (any, 3)"),
        (5, np.int64, {"shape": (None,)}, "x have shape (); expected (any,)"),
        ([], np.int64, {"shape": (2,)}, "x have shape (0,); expected (2,)"),
        ([], np.int64, {"shape": (2, 2)}, "x have shape (0,); expected (2, 2)"),
        ([0, 7], np.int64, {"low": 0, "high": 5}, "x hold 7 at index 1; expected 0 to 4"),
        ([0, -7], np.int64, {"low": 0}, "x hold -7 at index 1; expected at least 0"),
        (
            [[0, 1], [5, 0]], np.int64, {"high": 5},
            "x hold 5 at index (1, 0); expected -9223372036854775808 to 4",
        ),
        (
            [2**32], np.int32, {},
            "x hold 4294967296 at index 0; expected -2147483648 to 2147483647",
        ),
        (
            [-(2**40)], np.int32, {},
            "x hold -1099511627776 at index 0; expected -2147483648 to 2147483647",
        ),
        ([2**31], np.int32, {"low": 0}, "x hold 2147483648 at index 0; expected 0 to 2147483647"),
        (
            np.array([2**63], np.uint64), np.int64, {},
            "x hold 9223372036854775808 at index 0; "
            "expected -9223372036854775808 to 9223372036854775807",
        ),
        (
            [0.0, np.nan], np.float64, {"finite": True},
            "x hold nan at index 1; expected finite numbers",
        ),
        (
            [[np.inf]], np.float64, {"finite": True},
            "x hold inf at index (0, 0); expected finite numbers",
        ),
        (
            np.ma.MaskedArray([1, 2], mask=[False, True]), np.int64, {},
            "x have masked entries; expected a value for each",
        ),
        (Broken(), np.int64, {}, "x cannot be read as an array: no numbers here"),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_refused(values, dtype, options, message):
    with pytest.raises(DataError) as caught:
        as_array(values, dtype, "x", **options)
    assert str(caught.value) == message


def test_rows_of_unequal_length():
    with pytest.raises(DataError, match=r"^x cannot be read as an array: .*inhomogeneous"):
        as_array([[1], [2, 3]], np.int64, "x")


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_numbers_that_are_infinite_only_as_what_they_become():
    with pytest.raises(DataError, match=r"^x hold inf at index 0; expected finite numbers$"):
        as_array([1e300], np.float32, "x", finite=True)


# ------------------------------------------------------------------------------- as_offsets


def test_offsets():
    assert as_offsets([0, 0, 2], end=2).tolist() == [0, 0, 2]
    assert as_offsets(np.array([0], np.uint8)).dtype == np.int64


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ([], {}, "offsets must be a one-dimensional array that starts with 0"),
        ([1, 2], {}, "offsets must be a one-dimensional array that starts with 0"),
        ([[0, 1]], {}, "offsets must be a one-dimensional array that starts with 0"),
        (0, {}, "offsets must be a one-dimensional array that starts with 0"),
        ([0, 4, 3, 5], {}, "offsets fall at sample 1, from 4 to 3"),
        ([0, 1, -(2**63)], {}, "offsets fall at sample 1, from 1 to -9223372036854775808"),
        ([0, 2**62, -(2**62)], {},
         "offsets fall at sample 1, from 4611686018427387904 to -4611686018427387904"),
        ([0, 4], {"end": 5}, "offsets end at 4; expected 5"),
        ([0, 4], {"end": 5, "what": "bounds"}, "bounds end at 4; expected 5"),
        ([0.0, 4.0], {}, "offsets have dtype float64; expected integers"),
    ],
)  # fmt: skip
def test_wrong_offsets(values, options, message):
    with pytest.raises(DataError) as caught:
        as_offsets(values, **options)
    assert str(caught.value) == message


# ------------------------------------------------------------------------------- check_in_place


def test_an_array_to_write_into():
    check_in_place(np.zeros((2, 3)), (2, 3), np.float64, "state")


@pytest.mark.parametrize(
    "array",
    [
        [0.0, 0.0],
        np.zeros(3),
        np.zeros((1, 2)),
        np.zeros(2, np.float32),
        np.zeros(2, np.int64),
        np.zeros(2, ">f8"),
        np.zeros(4)[::2],
        held(np.zeros(2)),
        np.ma.MaskedArray(np.zeros(2)),
        np.zeros(17, np.uint8)[1:].view(np.float64),
        None,
    ],
    ids=range(11),
)
def test_arrays_that_cannot_be_written_into(array):
    with pytest.raises(DataError) as caught:
        check_in_place(array, (2,), np.float64, "state")
    assert str(caught.value) == "state must be a writable array of float64 and shape (2,)"


# ------------------------------------------------------------------------------- held, for_kernels


def test_what_is_held_is_read_only_and_the_array_given_is_not():
    numbers = np.arange(3)
    kept = held(as_array(numbers, np.int64, "numbers"), numbers)
    assert numbers.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        kept[0] = 1
    numbers[0] = 9
    assert kept.tolist() == [0, 1, 2]


@pytest.mark.parametrize("part", [np.s_[:], np.s_[1:], np.s_[::1]])
def test_a_view_of_what_is_given_counts_as_it(part):
    numbers = np.arange(3)
    view = numbers[part]
    kept = held(as_array(view, np.int64, "numbers"), view)
    expected = view.tolist()
    numbers[:] = 9
    assert kept.tolist() == expected


def test_what_was_converted_or_is_read_only_is_not_copied():
    numbers = np.arange(3, dtype=np.int32)
    converted = as_array(numbers, np.int64, "numbers")
    assert np.shares_memory(held(converted, numbers), converted)
    shared = held(np.arange(3))
    assert np.shares_memory(held(as_array(shared, np.int64, "numbers"), shared), shared)
    assert held(np.arange(3), [0, 1, 2]).tolist() == [0, 1, 2]


def test_kernels_get_the_memory_that_is_held():
    numbers = np.arange(3)
    kept = held(numbers)
    ready = for_kernels(kept)
    assert ready.flags.writeable and np.shares_memory(ready, numbers)
    assert not kept.flags.writeable
    assert for_kernels(numbers) is numbers
    assert type(for_kernels(numbers.view(np.matrix))) is np.ndarray


def test_memory_that_cannot_be_written_to_is_copied_for_kernels():
    given = np.frombuffer(np.arange(3).tobytes(), np.int64)
    ready = for_kernels(given)
    assert ready.flags.writeable and not np.shares_memory(ready, given)
    assert ready.tolist() == [0, 1, 2]


# ------------------------------------------------------------------------------- known, memory_for


@dataclasses.dataclass(frozen=True)
class Strict:
    """Something whose constructor refuses everything."""

    numbers: np.ndarray
    name: str

    def __post_init__(self):
        raise DataError("no")


def test_what_is_known_is_not_checked_but_held():
    numbers = np.arange(3)
    new = known(Strict, numbers=numbers, name="x")
    assert type(new) is Strict and new.name == "x"
    assert np.shares_memory(new.numbers, numbers)
    assert not new.numbers.flags.writeable and numbers.flags.writeable


@pytest.mark.parametrize("error", [MemoryError(), OverflowError("too large"), ValueError("dim")])
def test_what_does_not_fit_into_memory(error):
    with (
        pytest.raises(DataError, match=r"^7 nodes do not fit into memory$") as caught,
        memory_for(7, "nodes"),
    ):
        raise error
    assert caught.value.__cause__ is error


def test_other_errors_are_passed_on():
    with pytest.raises(DataError, match=r"^no$"), memory_for(7, "nodes"):
        raise DataError("no")
    with pytest.raises(KeyError), memory_for(7, "nodes"):
        raise KeyError
    with memory_for(7, "nodes"):
        pass
