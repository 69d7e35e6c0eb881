"""Which pairs features are crossed with, against counting by hand."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chain_problems import chain_problem, problems, random_data
from rich_problems import partial_data
from trellis.corpus import Labels
from trellis.errors import DataError
from trellis.problems import EdgeWeights, LabelProblem
from trellis.problems.edge_weights import cross


def pairs_of(edge: EdgeWeights, feature: int, back: int = 0) -> list[int]:
    row = edge.row[feature] + back * edge.n_crossed
    return edge.pair[edge.ptr[row] : edge.ptr[row + 1]].tolist()


def counted(data: LabelProblem, feature: int, back: int) -> Counter:
    """How often each pair of single labels occurs with the feature, by looking everywhere."""
    e, ids, found = data.encoded, data.labels.ids, Counter()
    for start, end in zip(e.offsets[:-1], e.offsets[1:], strict=True):
        for t in range(start + 1, end):
            if max(ids[t - 1], ids[t]) < data.n_labels:
                here = e.indices[e.indptr[t - back] : e.indptr[t - back + 1]].tolist()
                found[int(ids[t - 1]) * data.n_labels + int(ids[t])] += here.count(feature)
    return +found


def crossing(data: LabelProblem, crossed=None, **options) -> EdgeWeights:
    n_features = int(data.encoded.indices.max(initial=0)) + 1
    options = {
        "both": True, "dense": False, "negatives": 0, "rng": np.random.default_rng(0), **options,
    }  # fmt: skip
    crossed = np.ones(n_features, bool) if crossed is None else crossed
    return cross(data.encoded, data.labels, crossed, **options)


@given(problems(), st.booleans(), st.sampled_from([0.0, 0.2, 0.5, 1.0]), st.data())
def test_observed_pairs_are_those_counted(problem, both, least, drawn):
    n = len(problem.weights.node)
    crossed = np.array(drawn.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    edge = crossing(problem.data, crossed, both=both, least=least)
    assert (edge.row >= 0).tolist() == crossed.tolist()
    assert edge.row[crossed].tolist() == list(range(crossed.sum()))
    assert edge.both == both and edge.n_crossed == crossed.sum()
    assert edge.n_rows == len(edge.ptr) - 1 == (1 + both) * crossed.sum()
    assert len(edge.values) == len(edge.pair) == edge.ptr[-1] and not edge.values.any()
    for f in np.flatnonzero(crossed):
        for back in range(1 + both):
            times = counted(problem.data, f, back)
            total = sum(times.values())
            expected = sorted(pair for pair, k in times.items() if k >= least * total)
            assert pairs_of(edge, f, back) == expected


@given(problems(), st.integers(0, 5), st.sampled_from([0.0, 0.5]), st.integers(0, 2**32))
@settings(max_examples=30)
def test_negatives_come_from_the_pairs_of_the_corpus(problem, negatives, least, seed):
    rng = np.random.default_rng(seed)
    data = problem.data
    plain = crossing(data, np.ones(len(problem.weights.node), bool), least=least)
    more = crossing(
        data, np.ones(len(problem.weights.node), bool), least=least, negatives=negatives, rng=rng
    )
    anywhere = {
        int(a) * data.n_labels + int(b)
        for s, e in zip(data.encoded.offsets[:-1], data.encoded.offsets[1:], strict=True)
        for a, b in zip(data.labels.ids[s : e - 1], data.labels.ids[s + 1 : e], strict=True)
        if max(a, b) < data.n_labels
    } or set(range(data.n_labels**2))
    for f in range(len(problem.weights.node)):
        for back in range(2):
            before, after = set(pairs_of(plain, f, back)), pairs_of(more, f, back)
            assert after == sorted(set(after))
            assert before <= set(after) <= before | anywhere
            assert len(after) <= len(before) + negatives


def test_negatives_are_drawn_as_often_as_pairs_occur():
    data = random_data(np.random.default_rng(0), n_samples=60, n_labels=4, n_features=12)
    # Features that never occur have nothing but negatives.
    edge = crossing(data, np.append(np.zeros(12, bool), np.ones(4000, bool)), negatives=1)
    drawn = np.bincount(edge.pair, minlength=16)
    seen = np.zeros(16)
    for f in range(12):
        for pair, k in counted(data, f, 0).items():
            seen[pair] += k
    expected = 8000 * seen / seen.sum()
    assert drawn.sum() == 8000
    assert (abs(drawn - expected) < 6 * np.sqrt(expected) + 1).all()


def test_the_seed_decides_the_negatives():
    data = random_data(np.random.default_rng(0), n_labels=4)
    a, b, c = (
        crossing(data, negatives=2, rng=np.random.default_rng(seed)).pair.tolist()
        for seed in (0, 0, 1)
    )
    assert a == b != c


@pytest.mark.parametrize("both", [False, True])
def test_dense_rows_have_every_pair(both):
    data = random_data(np.random.default_rng(0))
    crossed = np.arange(12) % 3 == 0
    edge = crossing(data, crossed, dense=True, both=both, dtype=np.float64)
    assert edge.ptr.size == edge.pair.size == 0
    assert edge.values.dtype == np.float64 and edge.values.shape == ((1 + both) * 4 * 9,)
    assert edge.rows().tolist() == [9 * i for i in range((1 + both) * 4 + 1)]
    assert edge.rows_of_features() is edge.row
    everything = crossing(data, dense=True)
    assert everything.rows_of_features().size == 0  # row f is feature f


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("both", [False, True])
def test_growth_keeps_old_rows_and_values(dense, both):
    """Weights of seven features first; five more come with more data, some of them crossed."""
    data = partial_data(np.random.default_rng(0), n_samples=40)
    old_crossed = np.array([1, 0, 1, 1, 0, 0, 1], bool)
    known = crossing(data, np.append(old_crossed, np.zeros(5, bool)), dense=dense, both=both)
    known.row = known.row[:7]
    known.values[:] = np.arange(1, len(known.values) + 1)
    crossed = np.ones(12, bool)
    crossed[9] = False
    rng = np.random.default_rng(5)
    grown = crossing(data, crossed, dense=dense, both=both, known=known, negatives=1, rng=rng)
    assert grown.row[:7].tolist() == known.row.tolist()  # also those that were not crossed
    assert grown.row[7:].tolist() == [4, 5, -1, 6, 7]
    assert grown.row.dtype == np.int32 and grown.n_crossed == 8
    old, new = known.rows(), grown.rows()
    assert new[-1] == len(grown.values) and len(new) == grown.n_rows + 1
    for back in range(1 + both):
        for i in range(4):
            a, b = i + 4 * back, i + 8 * back
            theirs, mine = slice(old[a], old[a + 1]), slice(new[b], new[b + 1])
            assert grown.values[mine].tolist() == known.values[theirs].tolist()
            if not dense:
                assert grown.pair[mine].tolist() == known.pair[theirs].tolist()
        fresh = slice(new[4 + 8 * back], new[8 + 8 * back])
        assert not grown.values[fresh].any()
        if dense:
            assert fresh.stop - fresh.start == 4 * 9
        for f in (7, 8, 10, 11) if not dense else ():
            assert set(pairs_of(grown, f, back)) >= counted(data, f, back).keys()


def test_growth_from_no_row_at_all():
    data = random_data(np.random.default_rng(0))
    for dense in (False, True):
        known = crossing(data, np.zeros(12, bool), dense=dense)
        assert known.n_rows == 0 and known.rows().tolist() == [0]
        known.row = known.row[:0]
        grown = crossing(data, dense=dense, known=known)
        afresh = crossing(data, dense=dense)
        assert grown.row.tolist() == afresh.row.tolist()
        assert grown.pair.tolist() == afresh.pair.tolist()
        assert grown.rows().tolist() == afresh.rows().tolist()


def test_positions_with_several_labels_show_no_pair():
    data = random_data(np.random.default_rng(0), n_samples=5)
    blank = chain_problem(
        data.encoded, Labels.from_lists([[None] * len(data.labels)], "ABC"), data.sample_weight
    )
    assert crossing(blank).pair.size == 0
    # Then negatives are any pairs.
    assert set(crossing(blank, negatives=9).pair.tolist()) == set(range(9))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 2], [], [], []), "the rows of crossed features must be 0, 1, 2, …, each once"),
        (([0, 0], [], [], []), "the rows of crossed features must be 0, 1, 2, …, each once"),
        (([0, 1], [0, 1], [0], [1.0]), "there are pairs of 1 rows, but 2 rows"),
        (([0, 1], [], [0], [1.0]), "ptr is empty, as if every row had all pairs, but pair is not"),
        (([0, 1], [0, 1, 2], [0, 1], [1.0]), r"weights have shape \(1,\); expected \(2,\)"),
        (([0], [0, 2], [0, 1], [[1.0, 2.0]]), r"weights have shape \(1, 2\); expected \(2,\)"),
        (([0, 1], [], [], [1.0] * 3), r"shape \(3,\); expected as many for each of 2 rows"),
        (([0, 1], [0, 1, 3], [0, 1], [1.0] * 2), "ptr end at 3; expected 2"),
        (([0, -2], [], [], []), "row hold -2 at index 1; expected at least -1"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(DataError, match=message):
        EdgeWeights(*arguments, both=False)


def test_other_weights_of_the_same_pairs_are_as_many():
    edge = EdgeWeights([0], [0, 2], [0, 3], [1.0, 2.0], both=False)
    assert edge.like([3.0, 4.0]).values.tolist() == [3.0, 4.0]
    with pytest.raises(DataError, match=r"weights have shape \(3,\); expected \(2,\)"):
        edge.like([3.0, 4.0, 5.0])
