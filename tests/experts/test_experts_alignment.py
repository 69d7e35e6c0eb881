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
from trellis.experts.agreement import agreement_order, closest_first
from trellis.experts.voting import vote

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


class Vote:
    """A combiner that needs no gold, and keeps what it was given."""

    def fit(self, outputs, gold=None):
        self.names, self.gold = outputs.names, gold
        return self

    def predict(self, outputs):
        winner = vote(outputs.codes, np.ones(outputs.n_experts), len(outputs.labels))
        return outputs.lists(winner)


# One who is wrong everywhere, and three who are wrong in different places.
TRUTH = [list("abcdef"), list("cabfed"), list("fedcba")]
CROWD = [
    [list("zzzz"), list("zz"), list("zzz")],
    [list("abcef"), list("cabfed"), list("edcba")],
    [list("abcdef"), list("cabfe"), list("fedxcba")],
    [list("abcdef"), list("xabfed"), list("fedcba")],
]


@pytest.mark.parametrize("order", ["sample", "accuracy", "agreement"])
@pytest.mark.parametrize("gold", [None, [None] * 3])
def test_without_gold_those_who_agree_come_first(order, gold):
    combo = Aligned(Vote(), order=order).fit(CROWD, gold)
    assert combo.order_[0] in (2, 3)
    assert combo.order_[-1] == 0
    assert combo.combiner_.gold is None
    assert combo.combiner_.names == tuple(f"expert {j + 1}" for j in combo.order_)
    assert combo.predict(CROWD) == TRUTH
    assert Aligned(Vote(), order="given").fit(CROWD).order_ == [0, 1, 2, 3]


def test_gold_for_some_samples():
    combo = Aligned(Vote()).fit(CROWD, [None, list("cabfed"), None])
    assert combo.order_ == [1, 2, 3, 0]  # the edit distances there: 6, 0, 1, 1
    assert combo.combiner_.gold[0] is combo.combiner_.gold[2] is None
    assert strip([combo.combiner_.gold[1]]) == [list("cabfed")]
    plain, _ = align(CROWD)
    outputs, right = align(CROWD, [None, list("cabfed"), None])
    assert np.array_equal(outputs.codes, plain.codes)
    assert [labels is None for labels in right] == [True, False, True]
    assert align(CROWD, [None] * 3)[1] == [None] * 3


def test_who_stands_first_does_not_matter():
    turned = CROWD[::-1]
    for order in ("sample", "agreement", "accuracy"):
        for gold in (None, TRUTH):
            combo = Aligned(Vote(), order=order)
            assert combo.fit(CROWD, gold).predict(CROWD) == combo.fit(turned, gold).predict(turned)


def test_orders_by_name():
    first = align(CROWD, order="agreement")[0]
    assert np.array_equal(first.codes, align(CROWD, order=agreement_order(CROWD))[0].codes)
    each = align(CROWD, order="sample")[0]
    for i in range(3):
        one = [[column[i]] for column in CROWD]
        alone = align(one, order=closest_first(one)[0])[0]
        assert rows(each.take([i])) == rows(alone)


def test_many_workers_who_answer_little():
    """Ninety workers, each of whom answers three of ninety samples, some of them badly."""
    rng = np.random.default_rng(0)
    truth = [list(rng.choice(list("abcdefgh"), 8)) for _ in range(90)]
    said = [[None] * 90 for _ in range(90)]
    for i in range(90):
        for j in (i, (i + 30) % 90, (i + 60) % 90):
            said[j][i] = truth[i][:-1] if j % 3 == 0 else list(truth[i])
    combo = Aligned(Vote()).fit(said)
    assert sorted(combo.order_) == list(range(90))
    assert combo.predict(said) == [y[:-1] if i % 3 == 0 else y for i, y in enumerate(truth)]


def test_another_number_of_experts():
    combo = Aligned(MajorityVote()).fit([[["a"]], [["a"]]], [["a"]])
    with pytest.raises(DataError, match="trained on 2 experts, here are 1; give None"):
        combo.predict([[["a"]]])


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
        ({"outputs": [[["a"]]], "gold": [[EPS]]}, "gold says the label '<eps>'"),
        ({"outputs": [[["a"]]], "order": [1]}, "order is .1.: expected each of 0 to 0 once"),
        (
            {"outputs": [[["a"]]], "order": "best"},
            "order must be 'agreement' or 'sample', got 'best'",
        ),
        ({"outputs": [[["a"]]], "names": "a"}, "names must be a list of strings, got 'a'"),
        ({"outputs": align([[["a"]]])[0]}, "the outputs are aligned already"),
    ],
)
def test_bad_input(arguments, expected):
    with pytest.raises(DataError, match=expected):
        align(**arguments)


def test_bad_order_of_the_combiner():
    with pytest.raises(DataError, match=r"order must be 'sample', .*got 'best'"):
        Aligned(MajorityVote(), order="best").fit([[["a"]]], [["a"]])
