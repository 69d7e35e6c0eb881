"""Confusion networks: rows give back the inputs, two rows are an optimal alignment."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.errors import DataError
from trellis.evaluation import edit_distance
from trellis.experts import Aligned, MajorityVote, align, strip

EPS = "<eps>"
answers = st.lists(st.sampled_from("abc"), max_size=4)
experts = st.lists(st.none() | answers, min_size=1, max_size=4).filter(
    lambda column: any(answer is not None for answer in column)
)


def rows(outputs):
    """What each expert says in each sample, column by column; None where it says nothing."""
    names = np.array([*outputs.labels, None], dtype=object)
    ends = outputs.offsets
    return [
        [list(names[outputs.codes[a:b, j]]) for a, b in itertools.pairwise(ends)]
        for j in range(outputs.n_experts)
    ]


def cheapest(network, x):
    """Cost of adding x to a network (list of rows), by trying all alignments."""
    width, r = len(network[0]), len(network)

    def cost(c, j):
        if c == width and j == len(x):
            return 0
        found = []
        if c < width:
            said = [row[c] for row in network]
            found.append(r - said.count(EPS) + cost(c + 1, j))
            if j < len(x):
                found.append(r - said.count(x[j]) + cost(c + 1, j + 1))
        if j < len(x):
            found.append(r + cost(c, j + 1))
        return min(found)

    return cost(0, 0)


@given(
    st.lists(experts, min_size=1, max_size=4).flatmap(
        lambda columns: st.just([column for column in columns if len(column) == len(columns[0])])
    )
)
def test_rows_give_back_the_inputs(samples):
    said = [list(column) for column in zip(*samples, strict=True)]  # samples are the outer lists
    outputs, gold = align(said)
    assert gold is None
    assert len(outputs) == len(samples)
    for expert, network_rows in zip(said, rows(outputs), strict=True):
        for answer, row in zip(expert, network_rows, strict=True):
            if answer is None:
                assert set(row) == {None}
            else:
                assert strip([row]) == [answer]


@given(answers, answers)
def test_two_rows_are_an_optimal_alignment(a, b):
    outputs, _ = align([[a], [b]])
    x, y = (row[0] for row in rows(outputs))
    assert sum(u != v for u, v in zip(x, y, strict=True)) == edit_distance(a, b)
    if a or b:
        assert (EPS, EPS) not in set(zip(x, y, strict=True))
    else:
        assert (x, y) == ([EPS], [EPS])


@given(answers, answers, answers)
def test_the_third_row_is_added_at_least_cost(a, b, c):
    before = [row[0] for row in rows(align([[a], [b]])[0])]
    after = [row[0] for row in rows(align([[a], [b], [c]])[0])]
    found = sum(row[k] != after[2][k] for row in after[:2] for k in range(len(after[0])))
    if not (a or b):  # the column of a network of nothing
        before = [[], []]
    assert found == cheapest(before, c)
    # What was aligned stays aligned.
    kept = [k for k in range(len(after[0])) if {after[0][k], after[1][k]} != {EPS}]
    assert [[row[k] for k in kept] for row in after[:2]] == before


@given(st.lists(answers, min_size=2, max_size=4), answers)
def test_gold_is_aligned_onto_the_network(said, right):
    columns = [[answer] for answer in said]
    plain, _ = align(columns)
    outputs, gold = align(columns, [right])
    assert rows(outputs) == rows(plain)
    kept, full = align(columns, [right], keep_unsaid=True)
    assert strip(full) == [right]
    # What is left out is a part of the answer, and needs a column of its own.
    rest = iter(right)
    assert all(label in rest for label in strip(gold)[0])
    if any(said):
        assert kept.n_positions == plain.n_positions + len(right) - len(strip(gold)[0])


def test_order_of_experts():
    said = [[["a", "b"]], [["b", "c"]], [["a", "c"]]]
    for order in itertools.permutations(range(3)):
        outputs, _ = align(said, order=order)
        assert [strip([row[0]])[0] for row in rows(outputs)] == [column[0] for column in said]
        assert np.array_equal(outputs.codes, align(said, order=order)[0].codes)
    assert align(said, names=["x", "y", "z"])[0].names == ("x", "y", "z")


def test_samples_are_aligned_each_for_itself():
    said = [[["a"], ["a", "b"]], [["b", "a"], []]]
    outputs, gold = align(said, [["a"], ["b"]])
    assert outputs.lengths.tolist() == [2, 2]
    assert rows(outputs) == [[[EPS, "a"], ["a", "b"]], [["b", "a"], [EPS, EPS]]]
    assert gold == [[EPS, "a"], [EPS, "b"]]


def test_strip_with_another_epsilon():
    assert strip([["-", EPS], []], "-") == [[EPS], []]


def test_aligned_combiner_sorts_the_experts_and_strips():
    gold = [["a", "b", "c"], ["b", "c"]]
    poor = [["c"], ["a"]]
    good = [["a", "b", "c"], ["b", "c"]]
    fair = [["a", "b"], ["b", "c"]]
    combo = Aligned(MajorityVote()).fit([poor, good, fair], gold)
    assert combo.order_ == [1, 2, 0]
    assert combo.classes_ == ("a", "b", "c")
    assert combo.predict([poor, good, fair]) == gold
    assert combo.predict([[[]], [[]], [["a"]]]) == [[]]
    assert Aligned(MajorityVote(), order="given").fit([poor, good], gold).order_ == [0, 1]
    assert Aligned(MajorityVote(), epsilon="-").fit([poor, good], gold).epsilon == "-"


def test_an_expert_that_never_answers_comes_last():
    combo = Aligned(MajorityVote()).fit([[None], [["a"]]], [["a"]])
    assert combo.order_ == [1, 0]


def test_the_combiner_given_is_not_changed():
    vote = MajorityVote()
    Aligned(vote).fit([[["a"]]], [["a"]])
    assert not hasattr(vote, "classes_")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"outputs": []}, "no experts"),
        ({"outputs": [[]]}, "there are no samples to align"),
        ({"outputs": "ab"}, "outputs must hold, for each expert"),
        ({"outputs": ["ab"]}, "expert 0 .*: expected one label sequence a sample, got 'ab'"),
        ({"outputs": [[np.array("ab")]]}, "expert 0 .*: expected a sequence of labels, got array"),
        ({"outputs": [["ab"]]}, "expert 0 .*, sample 0: expected a sequence of labels, got 'ab'"),
        ({"outputs": [[[1]]]}, "sample 0: labels must be strings, got 1"),
        ({"outputs": [[["a"]], [["a"], ["b"]]]}, "expert 1 .* has 2 samples, expert 0 has 1"),
        ({"outputs": [[None]]}, "no expert says anything about sample 0"),
        ({"outputs": [[["-"]]], "epsilon": "-"}, "says the label '-'; name another epsilon"),
        ({"outputs": [[["a"]]], "gold": []}, "there are no samples to align"),
        ({"outputs": [[["a"]]], "gold": [["a"]] * 2}, "gold has 2 samples, the experts answer 1"),
        ({"outputs": [[["a"]]], "gold": [None]}, "gold has no answer for sample 0"),
        ({"outputs": [[["a"]]], "gold": [[EPS]]}, "gold says the label '<eps>'"),
        ({"outputs": [[["a"]]], "order": [1]}, "order is .1.: expected each of 0 to 0 once"),
        ({"outputs": [[["a"]]], "names": "a"}, "names must be a list of strings, got 'a'"),
        ({"outputs": align([[["a"]]])[0]}, "the outputs are aligned already"),
    ],
)
def test_bad_input(arguments, expected):
    with pytest.raises(DataError, match=expected):
        align(**arguments)


def test_bad_order_of_the_combiner():
    with pytest.raises(DataError, match="order must be 'accuracy' or 'given', got 'best'"):
        Aligned(MajorityVote(), order="best").fit([[["a"]]], [["a"]])
