"""Label sets: from what a user says to ids and a table, and back."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.corpus import Column, Features
from trellis.corpus.labels import Labels, check_label_count
from trellis.errors import DataError


def basic_table(n):
    """The single labels, then the full set."""
    return np.vstack([np.eye(n), np.ones((1, n))]).astype(bool)


NAMES = st.sampled_from(["A", "B", "C", "", "é", "B-NP"])
ENTRIES = st.none() | NAMES | st.frozensets(NAMES, min_size=1)
SAMPLES = st.lists(st.lists(ENTRIES, max_size=4), max_size=4)


def flat(y):
    """The entries of all samples as ``tolist`` should give them: a set of one is a label."""
    return [
        next(iter(entry)) if isinstance(entry, frozenset) and len(entry) == 1 else entry
        for sample in y
        for entry in sample
    ]


def mentioned(y):
    found = set()
    for entry in flat(y):
        found |= entry if isinstance(entry, frozenset) else {entry} - {None}
    return found


def allowed_by(entry, classes):
    if entry is None:
        return set(classes)
    return set(entry) if isinstance(entry, frozenset) else {entry}


@given(SAMPLES)
def test_lists_to_labels_and_back(y):
    labels = Labels.from_lists(y)
    assert labels.tolist() == flat(y)
    assert len(labels) == len(flat(y))
    assert labels.classes == tuple(sorted(mentioned(y)))


@given(SAMPLES)
def test_table_and_ids(y):
    labels = Labels.from_lists(y)
    n = len(labels.classes)
    assert labels.ids.dtype == np.int32
    assert np.array_equal(labels.table[: n + 1], basic_table(n))
    extra = [row.tobytes() for row in labels.table[n + 1 :]]
    assert len(set(extra)) == len(extra)
    assert all(row.sum() > 1 for row in labels.table[n + 1 :])
    for entry, id_, row in zip(flat(y), labels.ids, labels.allowed(), strict=True):
        assert (id_ < n) == isinstance(entry, str)
        assert (id_ == n) == (entry is None)
        found = {name for name, ok in zip(labels.classes, row, strict=True) if ok}
        assert found == allowed_by(entry, labels.classes)


@given(SAMPLES, st.permutations(["A", "B", "C", "", "é", "B-NP", "more"]))
def test_closed_classes_keep_their_order(y, classes):
    labels = Labels.from_lists(y, classes)
    assert labels.classes == tuple(classes)
    assert labels.tolist() == flat(y)


@given(SAMPLES, st.permutations(["A", "B", "C", "", "é", "B-NP", "more"]))
def test_recoding_says_the_same(y, classes):
    labels = Labels.from_lists(y).recoded(classes)
    assert labels.classes == tuple(classes)
    assert labels.tolist() == flat(y)
    for entry, row in zip(flat(y), labels.allowed(), strict=True):
        found = {name for name, ok in zip(classes, row, strict=True) if ok}
        assert found == allowed_by(entry, classes)
    unchanged = labels.recoded(classes)
    assert unchanged is labels


def test_recoding_drops_classes_that_are_not_used():
    labels = Labels.from_lists([["A", {"A", "B"}], ["C", None]]).take(np.array([0, 1, 3]))
    fewer = labels.recoded(["B", "A"])
    assert fewer.tolist() == ["A", {"A", "B"}, None]
    assert fewer.table.shape == (4, 2)


def test_a_set_of_all_classes_is_not_the_same_as_no_annotation():
    labels = Labels.from_lists([[{"A", "B"}, None]])
    assert labels.tolist() == [{"A", "B"}, None]
    assert labels.recoded(["A", "B", "C"]).allowed().tolist() == [
        [True, True, False],
        [True, True, True],
    ]


def test_equal_sets_share_a_row():
    labels = Labels.from_lists([[{"A", "B"}, {"B", "C"}], [{"B", "A"}]])
    assert labels.ids.tolist() == [4, 5, 4]
    assert labels.table.shape == (6, 3)


def test_numpy_strings_become_plain_classes():
    labels = Labels.from_lists([np.array(["b", "a"])])
    assert labels.classes == ("a", "b")
    assert all(type(name) is str for name in labels.classes)


def test_codes_come_out_sorted():
    labels = Labels.from_codes(np.array([0, 2, 1, 0], np.int32), ["X", "B", "M"])
    assert labels.classes == ("B", "M", "X")
    assert labels.tolist() == ["X", "M", "B", "X"]


def test_no_labels_at_all():
    assert Labels.from_lists([]).tolist() == []
    assert Labels.from_codes(np.zeros(0, np.int32), []).classes == ()
    assert Labels.from_lists([[None, None]]).tolist() == [None, None]
    assert Labels.from_lists([[None]]).recoded(["A", "B"]).allowed().tolist() == [[True, True]]


def test_labels_are_compared_by_identity():
    labels = Labels.from_lists([["A"]])
    assert labels == labels
    assert labels != Labels.from_lists([["A"]])
    assert {labels: 1}[labels] == 1


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["BI"], "labels of sample 0 are of type str; expected a list"),
        ([["B"], {"B", "I"}], "labels of sample 1 are of type set; expected a list"),
        ([{"B": 1}], "labels of sample 0 are of type dict; expected a list"),
        ([["B"], 3], "labels of sample 1 are of type int; expected a list"),
        ([np.array("B")], "labels of sample 0 are of type ndarray; expected a list"),
        (3, "labels of the samples are of type int; expected a list"),
        ([["B", {}]], "label at sample 0, position 1 is {} of type dict; expected a label"),
        ([["B", ["I"]]], "label at sample 0, position 1 is ['I'] of type list"),
        ([[], ["B", set()]], "label set at sample 1, position 1 is empty"),
        ([["B", {"I", None}]], "label set at sample 0, position 1 holds None; expected labels"),
    ],
)
def test_bad_lists(y, message):
    with pytest.raises(DataError, match=re.escape(message)):
        Labels.from_lists(y)


def test_bad_classes():
    with pytest.raises(DataError, match="label 'O' at sample 1, position 0 is unknown; known"):
        Labels.from_lists([["B"], ["O"]], ["B", "I"])
    with pytest.raises(DataError, match="label 'O' at sample 0, position 0 is unknown; known"):
        Labels.from_lists([[{"B", "O"}]], ["B", "I"])
    with pytest.raises(DataError, match="a class is named twice: B, I, B"):
        Labels.from_lists([], ["B", "I", "B"])
    many = [f"c{i:02}" for i in range(20)]
    with pytest.raises(DataError, match=r"c10, c11, … \(20 in all\)"):
        Labels.from_lists([["O"]], many)


def test_bad_recoding():
    with pytest.raises(DataError, match="label 'O' is unknown; known labels: B, I"):
        Labels.from_lists([["B", "O"]]).recoded(["I", "B"])
    with pytest.raises(DataError, match="label 'O' is unknown"):
        Labels.from_lists([["B", {"B", "O"}]]).recoded(["I", "B"])


IDS = np.zeros(1, np.int32)


@pytest.mark.parametrize(
    ("ids", "table", "message"),
    [
        (IDS, np.ones((3, 2)), "entries of the label table have dtype float64; expected truth"),
        (IDS, [[True], []], "entries of the label table cannot be read as an array"),
        (IDS, np.ones(2, bool), r"label table must be \(more than 2, 2\), got \(2,\)"),
        (IDS, np.eye(2, dtype=bool), r"label table must be \(more than 2, 2\), got \(2, 2\)"),
        (IDS, basic_table(3), r"label table must be \(more than 2, 2\), got \(4, 3\)"),
        (IDS, basic_table(2)[::-1], "must start with the single labels and the full set"),
        (IDS, np.vstack([np.eye(2), [[1, 0]]]) > 0, "must start with the single labels"),
        (IDS, np.vstack([basic_table(2), [[False, False]]]), "a label set is empty"),
        (IDS + 3, basic_table(2), "label ids must lie in 0..2"),
        (IDS - 1, basic_table(2), "label ids must lie in 0..2"),
    ],
)
def test_bad_arrays(ids, table, message):
    with pytest.raises(DataError, match=message):
        Labels.from_table(ids, table, ("A", "B"))


# ------------------------------------------------------------------------------ arrays


@pytest.mark.parametrize(
    "ids",
    [
        np.array([0, 2, 3]),
        np.array([0, 2, 3], ">i4"),
        np.array([0, 2, 3], np.uint8),
        [0, 2, 3],
        np.array([0, 9, 2, 9, 3, 9], np.int32)[::2],
    ],
)
def test_whole_numbers_of_any_kind_are_ids(ids):
    labels = Labels(ids, ({0, 1},), ("A", "B"))
    assert labels.tolist() == ["A", None, {"A", "B"}]
    assert labels.ids.dtype == np.dtype("=i4") and labels.ids.flags.c_contiguous


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([0.5], "label ids have dtype float64; expected integers"),
        ([np.nan], "label ids have dtype float64; expected integers"),
        ([2**32], "label ids hold 4294967296 at index 0"),
        ([2**70], "label ids have dtype object; expected integers"),
        (["0"], "label ids have dtype <U1; expected integers"),
        ([True], "label ids have dtype bool; expected integers"),
        (np.array([True], object), "label ids have dtype object; expected integers"),
        ([None], "label ids have dtype object; expected integers"),
        ([[0], [1, 2]], "label ids cannot be read as an array"),
        ([[0]], "label ids must be one-dimensional, got the shape (1, 1)"),
        (0, "label ids must be one-dimensional, got the shape ()"),
        ([3], "label ids must lie in 0..2"),
        ([-1], "label ids must lie in 0..2"),
    ],
)
def test_bad_ids(ids, message):
    with pytest.raises(DataError, match=re.escape(message)):
        Labels(ids, (), ("A", "B"))


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (3, "label sets are of type int; expected a list"),
        ([3], "label sets are of type int; expected a list"),
        ([set()], "a label set is empty: allow at least one label or use None"),
        ([{0, 2}], "a label set holds classes beyond 0..1"),
        ([{-1}], "a label set holds classes beyond 0..1"),
        ([{"A"}], "label sets have dtype <U1; expected integers"),
    ],
)
def test_bad_sets(sets, message):
    with pytest.raises(DataError, match=re.escape(message)):
        Labels([0], sets, ("A", "B"))


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ({"A", "B"}, "classes are of type set; expected a list"),
        (3, "classes are of type int; expected a list"),
        ([1, None], "classes hold None; expected labels"),
        ([["A"]], r"label at classes is \['A'\] of type list"),
    ],
)
def test_bad_class_names(classes, message):
    with pytest.raises(DataError, match="classes are of type str; expected a list"):
        Labels([0], (), "AB")
    labels = Labels.from_lists([["A"]])
    for make in (
        lambda: Labels([0], (), classes),
        lambda: Labels.from_table([0], basic_table(2), classes),
        lambda: Labels.from_codes([0], classes),
        lambda: Labels.from_lists([["A"]], classes),
        lambda: labels.recoded(classes),
    ):
        with pytest.raises(DataError, match=message):
            make()


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ([2], "label codes hold 2 at index 0; expected 0 to 1"),
        ([-1], "label codes hold -1 at index 0; expected 0 to 1"),
        ([0.5], "label codes have dtype float64; expected integers"),
        ([[0]], r"label codes have shape \(1, 1\); expected \(any,\)"),
    ],
)
def test_bad_codes(codes, message):
    with pytest.raises(DataError, match=message):
        Labels.from_codes(codes, ["A", "B"])


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        ([2], "positions hold 2 at index 0; expected 0 to 1"),
        ([-1], "positions hold -1 at index 0; expected 0 to 1"),
        ([True, False], "positions have dtype bool; expected integers"),
        (1, r"positions have shape \(\); expected \(any,\)"),
        ([[0]], r"positions have shape \(1, 1\); expected \(any,\)"),
    ],
)
def test_positions_that_are_none(positions, message):
    column = Column.from_strings(["a", "b"])
    features = Features([0, 1, 2], [0, 0], None, ["x"])
    for part in (Labels.from_lists([["A", "B"]]), column, features):
        with pytest.raises(DataError, match=message):
            part.take(positions)


def test_what_is_held_is_read_only_and_the_given_array_is_not():
    ids = np.array([0, 1], np.int32)
    labels = Labels(ids, (), ("A", "B"))
    for array in (labels.ids, labels.table):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    ids[0] = 1
    for array in labels.for_kernels():
        assert array.flags.writeable and array.flags.c_contiguous


# ------------------------------------------------------------------------------ many labels


def test_many_labels_make_no_square_table():
    names = [f"{i:05}" for i in range(60_000)]
    read = Labels.from_lists([[*names, None, {"00000", "00001"}]])
    codes = Labels.from_codes(np.arange(60_000, dtype=np.int32), names)
    for labels in (read, codes, read.take(slice(5)), read.recoded([*names, "more"])):
        assert len(labels.classes) >= 60_000
        assert "table" not in vars(labels)
    assert read.tolist()[-2:] == [None, {"00000", "00001"}]
    assert read.used() == list(range(60_000))


def test_parts_share_the_table():
    labels = Labels.from_lists([["A", {"A", "B"}, None]])
    assert "table" not in vars(labels.take(slice(1)))
    assert labels.take(slice(1)).table is not labels.table
    assert labels.take(slice(1)).table is labels.table


@given(SAMPLES)
def test_what_is_allowed_by_class(y):
    labels = Labels.from_lists(y)
    for chosen in range(-1, len(labels.classes)):
        found = labels.allow(np.full(len(labels), chosen))
        expected = labels.allowed()[:, chosen] if chosen >= 0 else np.zeros(len(labels), bool)
        assert np.array_equal(found, expected)


def test_too_many_labels(caplog):
    check_label_count(500)
    assert not caplog.records
    check_label_count(501)
    assert caplog.messages == [
        "501 distinct labels: is this the label column? If it is, max_labels=501 (--max-labels) "
        "says so"
    ]
    check_label_count(6000, 6000)
    assert len(caplog.messages) == 1
    for most, n in ((None, 5001), (10, 11)):
        with pytest.raises(DataError, match=rf"{n} distinct .* say so with max_labels={n} \(--max"):
            check_label_count(n, most)
