import numpy as np
import pytest

from trellis.errors import DataError
from trellis.experts import ExpertOutputs, as_gold, as_outputs

TWO = [[["a", "b"], ["c"]], [["a", None], None]]


def test_layout():
    said = as_outputs(TWO, names=["x", "y"])
    assert said.labels == ("a", "b", "c")
    assert said.offsets.tolist() == [0, 2, 3]
    assert said.codes.tolist() == [[0, 0], [1, -1], [2, -1]]
    assert (len(said), said.n_experts, said.n_positions) == (2, 2, 3)
    assert said.lists(said.codes[:, 0]) == TWO[0]


def test_take_subset_and_recode():
    said = as_outputs(TWO, names=["x", "y"])
    back = said.take([1, 0])
    assert back.lists(back.codes[:, 0]) == [["c"], ["a", "b"]]
    assert said.take(np.array([False, True])).codes.tolist() == [[2, -1]]
    assert said.subset(["y"]).codes.tolist() == [[0], [-1], [-1]]
    assert said.subset([-1, 0]).names == ("y", "x")
    more = said.recoded(["c", "z", "b", "a"])
    assert more.codes.tolist() == [[3, 3], [2, -1], [0, -1]]
    assert as_outputs(said, names=["p", "q"]).names == ("p", "q")
    assert as_outputs(said, labels=["c", "b", "a"]).labels == ("c", "b", "a")
    with pytest.raises(DataError, match="not among the given labels"):
        said.recoded(["a", "b"])
    with pytest.raises(DataError, match="no expert is called 'z'"):
        said.subset(["z"])
    with pytest.raises(DataError, match="expert 5 of 2"):
        said.subset([5])


def test_scores_follow():
    scores = np.zeros((1, 1, 2))
    scores[0, 0] = [0.25, 0.75]
    said = ExpertOutputs(np.array([0, 1]), np.array([[1]]), ("a", "b"), ("x",), scores)
    more = said.recoded(["b", "c", "a"])
    assert more.scores[0, 0].tolist() == [0.75, 0.0, 0.25]
    assert more.take([0]).subset([0]).scores.shape == (1, 1, 3)
    for bad, message in ((scores[:, :, :1], "scores have shape"), (scores * np.nan, "NaN")):
        with pytest.raises(DataError, match=message):
            ExpertOutputs(np.array([0, 1]), np.array([[1]]), ("a", "b"), ("x",), bad)


def test_gold_adds_labels():
    said = as_outputs([[["b"], ["d"]]])
    codes, more = as_gold([["a"], ["d"]], said)
    assert more.labels == ("a", "b", "d")
    assert codes.tolist() == [0, 2]
    assert more.codes.ravel().tolist() == [1, 2]


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ([], "no experts"),
        ("ab", "one label sequence a sample"),
        ([[["a"]], [["a"], ["b"]]], "expert 1 .* has 2 samples"),
        ([[["a"]], [["a", "b"]]], r"expert 2 gives 2 labels for sample 0 .*align"),
        ([[None], [None]], "no expert says anything about sample 0"),
        ([[[]]], "sample 0 .* is empty"),
        ([["ab"]], "split a string"),
        ([[3]], "expected a sequence of labels"),
        ([[[1.0]]], "must be strings"),
        ([[[float("nan")]]], "must be strings"),
        ([[[["a"]]]], "not lists"),
    ],
)
def test_bad_outputs_are_refused(outputs, message):
    with pytest.raises(DataError, match=message):
        as_outputs(outputs)


def test_bad_names_gold_and_arrays_are_refused():
    with pytest.raises(DataError, match="as many different names"):
        as_outputs(TWO, names=["x", "x"])
    said = as_outputs(TWO)
    for gold, message in (
        ("ab", "one label sequence a sample"),
        ([["a", "b"]], "gold has 1 samples"),
        ([["a"], ["c"]], "gold has 1 labels for sample 0"),
        ([["a", None], ["c"]], "without a label"),
    ):
        with pytest.raises(DataError, match=message):
            as_gold(gold, said)
    for offsets, codes, names, message in (
        ([0, 1], [[0]], (), "one expert at least"),
        ([0, 2], [[0]], ("x",), "offsets must start"),
        ([0, 0, 1], [[0]], ("x",), "has no positions"),
        ([0, 1], [[7]], ("x",), "between -1 and 0"),
    ):
        with pytest.raises(DataError, match=message):
            ExpertOutputs(np.array(offsets), np.array(codes), ("a",), names)
