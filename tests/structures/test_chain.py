"""Chains: spans, kernels, transitions of each position, both regimes of the sums, all errors.

Transitions are shared by all positions in some examples and differ between them in others. What
chains share with forests is in ``test_chains_and_forests.py``.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from enumerate_passes import array, chain_arrays, chains, enumerated, feasible
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from trellis.errors import DataError, InfeasibleError
from trellis.kernels import chain as kernels
from trellis.structures import (
    ChainPotentials,
    best,
    entropy,
    event_probability,
    kbest,
    labelling_score,
    marginals,
    sample,
    span_probability,
)

CASES = settings(deadline=None, max_examples=30)
POTENTIALS = feasible(chains())


def pair_marginals(p):
    both = marginals(p, pairs=True)
    return both.log_z, both.pair


def left_to_right(n, gain):
    """Label 0 falls behind label 1 for half the chain and wins it all back in the other half.

    No single step is extreme, but half-way the lead is far beyond the range of float64.
    """
    node = np.zeros((n, 2))
    node[1 : n // 2, 0] = -gain
    node[n // 2 :, 1] = -gain
    return ChainPotentials(node, [[0.0, -np.inf], [-np.inf, 0.0]], [0, n])


@CASES
@given(POTENTIALS, st.data())
def test_span_probability(p, data):
    spans = [(s, start, n) for s, n in enumerate(np.diff(p.offsets).tolist()) for start in range(n)]
    assume(spans)
    s, start, n = data.draw(st.sampled_from(spans))
    label_ids = st.integers(0, p.node.shape[1] - 1)
    labels = tuple(data.draw(st.lists(label_ids, min_size=1, max_size=n - start)))
    excluded = data.draw(st.none() | st.lists(label_ids, max_size=2))
    end = start + len(labels)

    def is_span(y):
        goes_on = excluded is not None and end < n and y[end] in excluded
        return y[start:end] == labels and not goes_on

    found = span_probability(p, s, start, labels, excluded)
    assert found == pytest.approx(enumerated(p)[s].probability(is_span), rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("per_position", [False, True])
@pytest.mark.parametrize("far", [-3.0, -900.0], ids=["scaled", "logarithms"])
def test_sample_frequencies(far, per_position):
    rng = np.random.default_rng(1)
    trans = np.array([[0.5, -1.0, far], [1.0, 0.0, -np.inf], [0.0, 0.3, 0.0]])
    if per_position:
        trans = trans + rng.normal(size=(7, 3, 3))
    p = ChainPotentials(rng.normal(size=(7, 3)), trans, [0, 4, 4, 7])
    n_draws = 20_000
    y = sample(p, n_draws, rng)
    for e in enumerated(p):
        draws = [tuple(draw) for draw in y[:, e.rows].tolist()]
        for labelling, probability in zip(e.labellings, e.probabilities, strict=True):
            # Five standard deviations, and a little for the rarest.
            slack = 5 * math.sqrt(probability * (1 - probability) / n_draws) + 1e-4
            assert abs(draws.count(labelling) / n_draws - probability) < slack


# --- kernels as an estimator calls them ----------------------------------------------------------


def posterior(node, trans, offsets, marginals=None, uniforms=None):
    """Log Z, and labels that the numbers draw; -1 where they draw none."""
    labels = np.full((0, 0) if uniforms is None else uniforms.shape, -1, np.int32)
    marginals = np.zeros((0, 0)) if marginals is None else marginals
    uniforms = np.zeros((0, 0)) if uniforms is None else uniforms
    nothing = np.zeros((0, 0, 0)), np.zeros(0)
    return kernels.posterior(node, trans, offsets, marginals, *nothing, uniforms, labels), labels


def node_marginals_of(node, trans, offsets):
    marginals = np.zeros(node.shape)
    return posterior(node, trans, offsets, marginals)[0], marginals


@CASES
@given(chain_arrays(np.float32))
def test_float32_gives_the_results_of_float64(a):
    node, trans, offsets = a
    wide = (node.astype(np.float64), trans.astype(np.float64), offsets)
    for kernel in (kernels.viterbi, node_marginals_of):
        for narrow_result, wide_result in zip(kernel(*a), kernel(*wide), strict=True):
            np.testing.assert_allclose(narrow_result, wide_result, rtol=1e-13)


@CASES
@given(chain_arrays(np.float32))
def test_float32_viterbi(a):
    labels, scores = kernels.viterbi(*a)
    for s, e in enumerate(enumerated(ChainPotentials(*a))):
        if len(e.scores):
            assert tuple(labels[a[2][s] : a[2][s + 1]]) == e.labellings[0]
            assert scores[s] == e.scores[0]


@CASES
@given(chain_arrays())
def test_kernels_signal_infeasible_samples(a):
    node, _, offsets = a
    labels, scores = kernels.viterbi(*a)
    k_labels, k_scores = kernels.kbest(*a, 2)
    log_z, node_marginals = node_marginals_of(*a)
    sample_log_z, draws = posterior(*a, uniforms=np.full((1, len(node)), 0.5))
    assert (log_z == posterior(*a)[0]).all() and (log_z == sample_log_z).all()
    for s, e in enumerate(enumerated(ChainPotentials(*a))):
        sample = slice(offsets[s], offsets[s + 1])
        feasible = bool(e.labellings)
        assert (log_z[s] > -np.inf) == (scores[s] > -np.inf) == feasible
        assert (k_scores[s, 0] > -np.inf) == feasible
        if not feasible:
            for y in (labels[sample], draws[:, sample], k_labels[:, sample]):
                assert (y == -1).all()
            assert (node_marginals[sample] == 0).all()


@pytest.mark.parametrize("per_position", [False, True])
@pytest.mark.parametrize("n_labels", [6, 22, 45])
def test_many_labels_against_plain_recursions(n_labels, per_position):
    rng = np.random.default_rng(n_labels)
    node = rng.normal(size=(60, n_labels), scale=3)
    trans = rng.normal(size=(60, n_labels, n_labels) if per_position else (n_labels, n_labels))
    trans[rng.random(trans.shape) < 0.2] = -np.inf
    top, total = node[0], node[0]
    for row, into in zip(
        node[1:], np.broadcast_to(trans, (60, *trans.shape[-2:]))[1:], strict=True
    ):
        top = row + (top[:, None] + into).max(axis=0)
        total = row + np.logaddexp.reduce(total[:, None] + into, axis=0)
    p = ChainPotentials(node, trans, [0, 60])
    labels, scores = best(p)
    assert scores[0] == pytest.approx(top.max(), rel=1e-13)
    assert labelling_score(p, labels)[0] == pytest.approx(top.max(), rel=1e-13)
    log_z, node_marginals = marginals(p)
    assert log_z[0] == pytest.approx(np.logaddexp.reduce(total), rel=1e-13)
    np.testing.assert_allclose(node_marginals[-1], np.exp(total - log_z[0]), rtol=1e-11)
    k_labels, k_scores = kbest(p, 3)
    assert (k_labels[0] == labels).all() and k_scores[0, 0] == scores[0]
    np.testing.assert_allclose(
        [labelling_score(p, y)[0] for y in k_labels], k_scores[0], rtol=1e-13
    )


# --- transitions of each position -----------------------------------------------------------------


def repeated(p):
    """The same scores, with the shared transitions and their changes written out."""
    trans = np.broadcast_to(p.tables(), (len(p.node), *p.trans.shape)).copy()
    trans[p.offsets[:-1][np.diff(p.offsets) > 0]] = np.nan
    return ChainPotentials(p.node, trans, p.offsets)


@CASES
@given(POTENTIALS, st.data())
def test_equal_matrices_are_a_shared_matrix(p, data):
    assume(p.trans.ndim == 2)
    q = repeated(p)
    allowed = array(data.draw, p.node.shape, st.sampled_from([True, True, False]), np.bool_)
    labels = array(data.draw, (len(p.node),), st.integers(0, p.node.shape[1] - 1), np.int32)
    for infer in (best, lambda p: kbest(p, 4)):
        for ours, theirs in zip(infer(p), infer(q), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    for infer in (marginals, pair_marginals):
        for ours, theirs in zip(infer(p), infer(q), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(entropy(p), entropy(q), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(
        event_probability(p, allowed), event_probability(q, allowed), rtol=1e-9
    )
    np.testing.assert_array_equal(labelling_score(p, labels), labelling_score(q, labels))
    draws = [sample(r, 5, np.random.default_rng(0)) for r in (p, q)]
    assert (draws[0] == draws[1]).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
@pytest.mark.parametrize("lengths", [[1], [0, 1, 0], [1, 1], [1, 0, 3, 1]])
def test_the_matrix_of_a_first_position_is_never_looked_at(lengths, value):
    rng = np.random.default_rng(0)
    offsets = np.cumsum([0, *lengths])
    node, trans = rng.normal(size=(offsets[-1], 3)), rng.normal(size=(offsets[-1], 3, 3))
    plain = ChainPotentials(node, trans, offsets)
    marked = trans.copy()
    marked[offsets[:-1][np.diff(offsets) > 0]] = value
    p = ChainPotentials(node, marked, offsets)

    def answers(p):
        yield from best(p)
        yield from kbest(p, 3)
        yield from marginals(p)
        yield from pair_marginals(p)
        yield entropy(p)
        yield sample(p, 4, np.random.default_rng(0))
        yield event_probability(p, node < 1)
        yield labelling_score(p, np.zeros(len(node), int))

    for ours, theirs in zip(answers(p), answers(plain), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_one_wide_matrix_sends_only_its_own_sample_to_logarithms():
    """The two samples share no scale: a score far below in one changes no bit of the other."""
    rng = np.random.default_rng(0)
    node, trans = rng.normal(size=(8, 3)), rng.normal(size=(8, 3, 3))
    wide = trans.copy()
    wide[6, 0, 1] = -900.0
    before = marginals(ChainPotentials(node, trans, [0, 4, 8]))[1]
    p = ChainPotentials(node, wide, [0, 4, 8])
    after = marginals(p)[1]
    assert after[:4].tolist() == before[:4].tolist()
    e = enumerated(p)[1]
    for t, j in np.ndindex(4, 3):
        expected = e.probability(lambda y, t=t, j=j: y[t] == j)
        assert after[4 + t, j] == pytest.approx(expected, rel=1e-11)


# --- scaling and logarithms ----------------------------------------------------------------------


@pytest.mark.parametrize("per_position", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_both_regimes_agree(seed, per_position):
    """A label that is all but impossible sends a sample to logarithms and changes nothing else."""
    rng = np.random.default_rng(seed)
    node = rng.normal(size=(40, 4), scale=4)
    trans = rng.normal(size=(40, 4, 4) if per_position else (4, 4), scale=2)
    offsets = [0, 25, 26, 40]
    plain = ChainPotentials(node, trans, offsets)
    wide = ChainPotentials(
        np.hstack([node, np.full((40, 1), -900.0)]),
        np.pad(trans, [(0, 0)] * (trans.ndim - 2) + [(0, 1), (0, 1)]),
        offsets,
    )
    for ours, theirs in zip(marginals(plain), marginals(wide), strict=True):
        np.testing.assert_allclose(ours, theirs[..., :4], rtol=1e-11)
    np.testing.assert_allclose(
        pair_marginals(plain)[1], pair_marginals(wide)[1][:, :4, :4], rtol=1e-10
    )
    np.testing.assert_allclose(entropy(plain), entropy(wide), rtol=1e-10)
    assert (
        sample(plain, 20, np.random.default_rng(seed))
        == sample(wide, 20, np.random.default_rng(seed))
    ).all()


@pytest.mark.parametrize("per_position", [False, True])
def test_a_path_that_falls_behind_and_catches_up_is_not_lost(per_position):
    p = left_to_right(n=401, gain=5.0)
    if per_position:
        p = repeated(p)
    log_z, node_marginals = marginals(p)
    # Label 0 pays 199 times, label 1 pays 201 times.
    lead = 1 / (1 + math.exp(-10.0))
    assert log_z[0] == pytest.approx(-995.0 + math.log1p(math.exp(-10.0)), rel=1e-13)
    np.testing.assert_allclose(node_marginals[:, 0], lead, rtol=1e-10)
    np.testing.assert_allclose(pair_marginals(p)[1][1:, 0, 0], lead, rtol=1e-10)


def test_labels_with_a_future_but_no_past_do_not_drown_the_others():
    # Label 1 would be far better all along but cannot be reached: only the forward pass knows.
    n = 400
    node = np.zeros((n, 2))
    node[:, 0] = -5.0
    node[0, 1] = -np.inf
    p = ChainPotentials(node, [[0.0, -np.inf], [-np.inf, 0.0]], [0, n])
    log_z, node_marginals = marginals(p)
    assert log_z[0] == pytest.approx(-5.0 * n, rel=1e-13)
    assert node_marginals.tolist() == [[1.0, 0.0]] * n
    assert entropy(p).tolist() == [0.0]


@pytest.mark.parametrize("magnitude", [1e3, 1e6, 1e30])
def test_a_common_shift_changes_only_log_z(magnitude):
    shift = np.float64(magnitude)
    node = np.array([[0.0, -np.inf], [1.0, 0.0], [0.0, 0.0]])
    trans = np.array([[0.0, 0.0], [0.0, -np.inf]])
    reference = marginals(ChainPotentials(node, trans, [0, 3]))[1]
    shifted_trans = ChainPotentials(node, trans - shift, [0, 3])
    log_z, node_marginals = marginals(shifted_trans)
    assert log_z[0] == pytest.approx(-2 * shift, rel=0.01)
    if magnitude < 1e9:  # beyond, the scores themselves are rounded away
        np.testing.assert_allclose(node_marginals, reference, rtol=1e-9)
    else:
        assert np.isfinite(node_marginals).all()


@pytest.mark.parametrize("trans", [np.zeros((2, 2)), np.zeros((0, 2, 2))])
def test_empty_inputs(trans):
    nothing = ChainPotentials(np.empty((0, 2)), trans, [0])
    empty = ChainPotentials(np.empty((0, 2)), trans, [0, 0, 0])
    for p, n_samples in ((nothing, 0), (empty, 2)):
        assert best(p)[0].shape == (0,)
        assert best(p)[1].tolist() == [0.0] * n_samples
        assert kbest(p, 2)[1].tolist() == [[0.0]] * n_samples
        assert marginals(p)[0].tolist() == [0.0] * n_samples
        assert pair_marginals(p)[1].shape == (0, 2, 2)
        assert entropy(p).tolist() == [0.0] * n_samples
        assert sample(p, 3, np.random.default_rng(0)).shape == (3, 0)
        assert event_probability(p, np.ones((0, 2), bool)).tolist() == [1.0] * n_samples
        assert labelling_score(p, []).tolist() == [0.0] * n_samples


def test_input_arrays_of_any_kind_are_taken_and_left_alone():
    node = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(3, 2))
    trans = np.eye(2, dtype=np.int64)
    offsets = np.array([0, 3], dtype=np.int32)
    before = [a.copy() for a in (node, trans, offsets)]
    for a in (node, trans, offsets):
        a.flags.writeable = False
    p = ChainPotentials(node, trans, offsets)
    assert p.node.dtype == p.trans.dtype == np.float64 and p.offsets.dtype == np.int64
    assert best(p)[1].tolist() == [11.0]
    p.constrained(np.zeros((3, 2), bool))
    p.with_costs(np.ones((3, 2)))
    for a, b in zip((node, trans, offsets), before, strict=True):
        assert (a == b).all()


# --- errors --------------------------------------------------------------------------------------

NODE = [[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
TRANS = [[0.0, 0.0], [0.0, 0.0]]


def changed(values, index, value):
    result = np.array(values)
    result[index] = value
    return result


@pytest.mark.parametrize(
    ("node", "trans", "offsets", "message"),
    [
        ([0.0, 1.0], TRANS, [0, 2], r"node scores have shape \(2,\)"),
        (np.empty((3, 0)), np.empty((0, 0)), [0, 3], r"at least one label"),
        (
            NODE,
            np.zeros((2, 3)),
            [0, 3],
            r"transition scores have shape \(2, 3\); expected \(2, 2\) or, .*, \(3, 2, 2\)",
        ),
        (NODE, np.zeros((2, 2, 2)), [0, 3], r"scores have shape \(2, 2, 2\); expected \(2, 2\)"),
        (
            NODE,
            changed([TRANS] * 3, (2, 1, 0), np.nan),
            [0, 1, 3],
            "from label 1 to label 0 into position 1 of sample 1 is nan",
        ),
        (
            NODE,
            changed([TRANS] * 3, (1, 0, 1), np.inf),
            [0, 3],
            "from label 0 to label 1 into position 1 of sample 0 is inf",
        ),
        (NODE, TRANS, [], "starts with 0"),
        (NODE, TRANS, [[0, 3]], "starts with 0"),
        (NODE, TRANS, [1, 3], "starts with 0"),
        (NODE, TRANS, [0, 3, 2, 3], "offsets fall at sample 1, from 3 to 2"),
        (NODE, TRANS, [0, 2], "offsets end at 2, but there are 3 rows"),
        (NODE, TRANS, [0.0, 3.0], "offsets have dtype float64"),
        ([["a", "b"]], TRANS, [0, 1], "node scores have dtype <U1"),
        ([[0.0], [1.0, 2.0]], TRANS, [0, 2], "node scores cannot be read as an array"),
        (
            changed(NODE, (2, 1), np.nan),
            TRANS,
            [0, 0, 1, 3],
            "node score of label 1 at position 1 of sample 2 is nan",
        ),
        (changed(NODE, (0, 0), np.inf), TRANS, [0, 3], "label 0 at position 0 of sample 0 is inf"),
        (NODE, changed(TRANS, (1, 0), np.nan), [0, 3], "from label 1 to label 0 is nan"),
        (NODE, changed(TRANS, (0, 1), np.inf), [0, 3], "from label 0 to label 1 is inf"),
    ],
)
def test_bad_potentials(node, trans, offsets, message):
    with pytest.raises(DataError, match=message):
        ChainPotentials(node, trans, offsets)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda p: p.constrained(np.ones((3, 2))),
            "label sets have dtype float64; expected truth values",
        ),
        (
            lambda p: p.constrained(np.ones((2, 2), bool)),
            r"label sets have shape \(2, 2\); expected \(3, 2\)",
        ),
        (lambda p: p.with_costs(np.ones(3)), r"costs have shape \(3,\)"),
        (
            lambda p: p.with_costs(changed(NODE, (1, 0), np.nan)),
            "cost of label 0 at position 0 of sample 1 is nan",
        ),
        (lambda p: best(p, method="lp"), "method must be 'auto', got 'lp'"),
        (lambda p: marginals(p, method="bp"), "method must be 'auto', got 'bp'"),
        (lambda p: kbest(p, 0), "k must be a positive integer, got 0"),
        (
            lambda p: sample(p, -1, np.random.default_rng(0)),
            "n_samples must be an integer of at least 0, got -1",
        ),
        (lambda p: span_probability(p, 2, 0, [0]), "no sample 2; .* 0 to 1"),
        (
            lambda p: span_probability(p, -1, 0, [0]),
            "sample must be an integer of at least 0, got -1",
        ),
        (lambda p: p.alone(2), "no sample 2; samples are numbered 0 to 1"),
        (lambda p: span_probability(p, 0, 0, [0, 0]), "2 labels from position 0 does not"),
        (lambda p: span_probability(p, 1, -1, [0]), "from position -1 does not fit"),
        (lambda p: span_probability(p, 1, 0, []), "0 labels .* at least one"),
        (lambda p: span_probability(p, 1, 0, [2]), "labels hold 2 at index 0"),
        (lambda p: span_probability(p, 1, 0, [0], [-1]), "not_followed_by hold -1"),
        (lambda p: marginals(p).pair, r"not asked for; use marginals\(p, pairs=True\)"),
        (lambda p: labelling_score(p, [0, 0]), "2 labels for 3 positions"),
        (lambda p: labelling_score(p, [0, 0, 5]), "labels hold 5 at index 2"),
        (lambda p: labelling_score(p, [[0, 0, 0]]), r"labels have shape \(1, 3\)"),
        (lambda p: labelling_score(p, [0.0, 0.0, 0.0]), "labels have dtype float64"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(DataError, match=message):
        call(ChainPotentials(NODE, TRANS, [0, 1, 3]))


@pytest.mark.parametrize(
    "call",
    [
        best,
        lambda p: kbest(p, 2),
        marginals,
        pair_marginals,
        lambda p: sample(p, 1, np.random.default_rng(0)),
        entropy,
        lambda p: event_probability(p, np.ones((5, 2), bool)),
        lambda p: span_probability(p, 1, 0, [0]),
        lambda p: labelling_score(p, [0, 0, 0, 0, 0]),
    ],
)
@pytest.mark.parametrize("by", ["labels", "transitions", "transitions of positions"])
def test_infeasible_samples_are_named(call, by):
    # Samples 1 and 2, of two positions each, have no way through.
    node, trans = np.zeros((5, 2)), np.zeros((2, 2))
    if by == "labels":
        node[[2, 4]] = -np.inf
    elif by == "transitions":
        trans[0, 0] = -np.inf
        node[1:, 1] = -np.inf
    else:
        trans = np.zeros((5, 2, 2))
        trans[[2, 4]] = -np.inf
    with pytest.raises(InfeasibleError, match=r"sample 1 \(of 2 positions\) has no labelling"):
        call(ChainPotentials(node, trans, [0, 1, 3, 5]))
