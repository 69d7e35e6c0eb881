"""ESPBoost against its definition, its bounds, and what is refused."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from path_oracle import random_automaton

from trellis import load_model
from trellis.errors import DataError
from trellis.experts import ESPBoost, MajorityVote, PathAutomaton, as_gold, as_outputs
from trellis.theory import boosting_margin_bound

LABELS = "abc"


@st.composite
def problems(draw, equal=False, asleep=False):
    """Outputs of a few experts and gold, as lists; at least one expert speaks in each sample."""
    n_experts = draw(st.integers(1, 4))
    lengths = draw(st.lists(st.integers(1, 3), min_size=1, max_size=5))
    if equal:
        lengths = [lengths[0]] * len(lengths)
    label = st.sampled_from(LABELS)
    said = st.none() | label if asleep else label
    gold = [draw(st.lists(label, min_size=n, max_size=n)) for n in lengths]
    outputs = [
        [draw(st.lists(said, min_size=n, max_size=n)) for n in lengths] for _ in range(n_experts)
    ]
    return outputs, gold


def reference(outputs, gold, n_rounds, net=None):
    """The seed's Algorithm 1 by enumeration of all paths, for samples of one length.

    Return the alphas, the errors and the votes (l, p).
    """
    right, said = as_gold(gold, as_outputs(outputs))
    length, p = int(said.lengths[0]), said.n_experts
    m = len(said)
    wrong = (said.codes != right[:, None]).reshape(m, length, p)
    d = np.full((m, length), 1 / (m * length))
    alphas, errors = [], []
    votes = np.zeros((length, p))
    for _ in range(n_rounds):
        paths = list(itertools.product(range(p), repeat=length))
        if net is not None:
            paths = net.expert[net.paths()].tolist()
        losses = [sum((d[:, k] * wrong[:, k, j]).sum() for k, j in enumerate(h)) for h in paths]
        best = int(np.argmin(np.round(losses, 12)))
        eps, h = losses[best], paths[best]
        if eps >= 0.5 - 1e-12 or eps <= 1e-12:
            break
        alpha = 0.5 * np.log((1 - eps) / eps)
        rho = np.stack([1.0 - 2 * wrong[:, k, j] for k, j in enumerate(h)], axis=1)
        d = d * np.exp(-alpha * rho) / (2 * np.sqrt(eps * (1 - eps)))
        alphas.append(alpha)
        errors.append(eps)
        votes[np.arange(length), h] += alpha
    return np.array(alphas), np.array(errors), votes


@settings(max_examples=30)
@given(problems(equal=True))
def test_rounds_are_those_of_the_seed(problem):
    outputs, gold = problem
    boost = ESPBoost(n_rounds=3, tie="position").fit(outputs, gold)
    alphas, errors, _ = reference(outputs, gold, 3)
    if len(alphas):
        assert np.allclose(boost.errors_[: len(errors)], errors)
        assert np.allclose(boost.alphas_[: len(alphas)], alphas)
        z = 2 * np.sqrt(errors * (1 - errors))
        assert np.allclose(boost.normalisers_[: len(errors)], z)
    assert len(boost.alphas_) in (len(alphas), len(alphas) + 1)
    # Every context gives all its weight to experts.
    assert np.allclose(boost.weights_.sum(axis=1), boost.alphas_.sum())


@settings(max_examples=30)
@given(st.integers(0, 10**6))
def test_rounds_on_an_automaton_are_those_of_the_seed(seed):
    rng = np.random.default_rng(seed)
    net = random_automaton(rng, 3, 3)
    gold = rng.choice(list(LABELS), (6, 3)).tolist()
    outputs = [[[y if rng.random() < 0.7 else "a" for y in s] for s in gold] for _ in range(3)]
    boost = ESPBoost(n_rounds=3, automaton=net).fit(outputs, gold)
    alphas, errors, votes = reference(outputs, gold, 3, None if net.is_complete else net)
    assert np.allclose(boost.errors_[: len(errors)], errors)
    assert np.allclose(boost.alphas_[: len(alphas)], alphas)
    assert len(boost.alphas_) in (len(alphas), len(alphas) + 1)
    if len(alphas) == len(boost.alphas_) and len(alphas) == 1:
        # Paths of equal error are equally good: compare the error, not the path.
        assert boost.weights_.sum() == pytest.approx(votes.sum())
    assert boost.margin_loss(outputs, gold) <= boost.bound() + 1e-9
    used = {tuple(path) for path in net.expert[net.paths()].tolist()}
    if len(boost.alphas_) == 1 and not net.is_complete:
        assert tuple(boost.weights_.argmax(axis=1)) in used


def test_an_automaton_refuses_what_it_does_not_fit():
    net = PathAutomaton.ngram(2, 2, 2)
    with pytest.raises(DataError, match="has 1 positions, the automaton 2"):
        ESPBoost(automaton=net).fit([[["a"]], [["b"]]], [["a"]])
    with pytest.raises(DataError, match="speaks of 2 experts, there are 1"):
        ESPBoost(automaton=net).fit([[["a", "b"]]], [["a", "b"]])
    with pytest.raises(DataError, match="weights on edges or moves; leave tie at auto"):
        ESPBoost(automaton=net, tie="label").fit([[["a", "b"]]] * 2, [["a", "b"]])


@settings(max_examples=30)
@given(problems())
def test_boosting_may_start_from_the_vote(problem):
    outputs, gold = problem
    one = ESPBoost(tie="expert", n_rounds=1, start="vote").fit(outputs, gold)
    right, said = as_gold(gold, as_outputs(outputs))
    shares = np.stack([(said.codes == c).mean(axis=1) for c in range(len(said.labels))], axis=1)
    at = np.arange(len(right))
    own = shares[at, right]
    shares[at, right] = -1
    margins = own - np.maximum(shares.max(axis=1), 0)
    edge = margins.mean()
    assert one.errors_[0] == pytest.approx((1 - edge) / 2)
    if len(one.alphas_) == 1:  # no correction is clearly one
        assert one.predict(outputs) == MajorityVote().fit(outputs, gold).predict(outputs)
    if edge > 1e-9 and (margins < 0).any() and one.alphas_[0] < 0.5 * np.log(2 * len(at) - 1):
        slope = np.mean(margins * np.exp(-one.alphas_[0] * margins))
        assert slope == pytest.approx(0, abs=1e-9)
    weight = one.alphas_[0] / said.n_experts
    assert (one.weights_ >= weight - 1e-12).all()


@settings(max_examples=60)
@given(problems(asleep=True), st.sampled_from(["position", "expert", "label"]))
def test_training_error_is_bounded(problem, tie):
    outputs, gold = problem
    outputs = [*outputs, gold[::-1] if len({len(g) for g in gold}) == 1 else gold]
    boost = ESPBoost(tie=tie, n_rounds=8).fit(outputs, gold)
    predicted = boost.predict(outputs)
    pairs = [
        (y, z) for a, b in zip(predicted, gold, strict=True) for y, z in zip(a, b, strict=True)
    ]
    error = np.mean([y != z for y, z in pairs])
    assert error <= boost.bound() + 1e-9
    for rho in (0.0, 0.1, 0.5):
        assert boost.margin_loss(outputs, gold, rho) <= boost.bound(rho) + 1e-9
    assert (boost.alphas_ > 0).all()
    assert 1 <= len(boost.alphas_) <= 8


@given(problems(equal=True), st.floats(0, 0.9))
def test_bound_is_that_of_theorem_5(problem, rho):
    outputs, gold = problem
    boost = ESPBoost(n_rounds=5).fit(outputs, gold)
    if boost.stop_reason_ == "max_rounds" or len(boost.errors_) > 1:
        errors = boost.errors_[(boost.errors_ > 1e-9) & (boost.errors_ < 0.5 - 1e-9)]
        if len(errors) == len(boost.errors_):
            wanted = boosting_margin_bound(errors.tolist(), rho)
            assert boost.bound(rho) == pytest.approx(wanted)


def test_stop_when_weak_learning_fails():
    # Two experts that are wrong at different halves: after two rounds none is better than chance.
    gold = [["a"]] * 2
    boost = ESPBoost().fit([[["a"], ["b"]], [["b"], ["a"]]], gold)
    assert boost.stop_reason_ == "weak learning"
    assert len(boost.alphas_) == 1
    assert boost.alphas_[0] == 1.0  # the first path is the answer all the same
    assert boost.bound() > 1


def test_stop_when_nothing_is_wrong_caps_the_step():
    boost = ESPBoost().fit([[["a", "b"]] * 3], [["a", "b"]] * 3)
    assert boost.stop_reason_ == "no mistakes"
    assert boost.alphas_.tolist() == [0.5 * np.log(2 * 6 - 1)]
    assert ESPBoost().fit([[["a"]]], [["a"]]).alphas_.tolist() == [1.0]


@pytest.mark.parametrize(
    ("sentence", "code"),
    [
        ("n_rounds=7 rounds", "max_rounds"),
        ("weak learning fails: no path is right for half the weight", "weak learning"),
        ("no position is wrong", "no mistakes"),
        ("no mistakes", "no mistakes"),
    ],
)
def test_sentences_of_the_first_files_are_read_as_codes(sentence, code, tmp_path):
    boost = ESPBoost().fit([[["a"]]], [["a"]])
    boost.stop_reason_ = sentence
    boost.save(tmp_path / "m")
    assert load_model(tmp_path / "m").stop_reason_ == code


def test_number_of_rounds():
    rng = np.random.default_rng(0)
    gold = [list(rng.choice(list(LABELS), 4)) for _ in range(40)]
    noisy = [
        [[y if rng.random() < 0.7 else "a" for y in sample] for sample in gold] for _ in range(4)
    ]
    boost = ESPBoost(n_rounds=2).fit(noisy, gold)
    assert len(boost.alphas_) == 2
    assert boost.stop_reason_ == "max_rounds"
    assert boost.weights_.shape == (4, 4)
    ragged = [*gold, ["a"]]
    boost = ESPBoost(n_rounds=2).fit([[*column, ["a"]] for column in noisy], ragged)
    assert boost.weights_.shape == (1, 4)  # by expert


def test_specialists_are_found_by_label():
    # The first expert is right whenever it says x, the second whenever it says y.
    gold = [["x", "y", "z"], ["y", "x"]] * 5
    first = [["x", "z", "y"], ["z", "x"]] * 5
    second = [["z", "y", "x"], ["y", "z"]] * 5
    third = [["z", "z", "z"], ["z", "z"]] * 5
    boost = ESPBoost(tie="label", n_rounds=2, start="nothing").fit([first, second, third], gold)
    assert np.argwhere(boost.weights_ > 0).tolist() == [[0, 0], [1, 1]]
    assert boost.predict([first[:1], second[:1], third[:1]])[0][:2] == ["x", "y"]


def test_real_scores():
    outputs = as_outputs([[["a", "b"], ["a"]], [["b", "b"], ["b"]]])
    gold = [["a", "b"], ["b"]]
    scores = np.array(
        [
            [[0.9, 0.1], [0.4, 0.6]],
            [[0.2, 0.8], [0.1, 0.9]],
            [[0.6, 0.4], [0.05, 0.95]],
        ]
    )
    outputs = replace(outputs, scores=scores)
    boost = ESPBoost(base="real", tie="expert", n_rounds=20).fit(outputs, gold)
    assert boost.predict(outputs) == gold
    assert boost.margin_loss(outputs, gold) <= boost.bound() + 1e-9
    # The step is where the derivative of F vanishes.
    rho = scores[np.arange(3), :, [0, 1, 1]] - scores[np.arange(3), :, [1, 0, 0]]
    first = rho[:, int(np.argmax(rho.mean(axis=0)))]
    derivative = np.mean(first * np.exp(-boost.alphas_[0] * first))
    assert abs(derivative) < 1e-9 or boost.alphas_[0] == pytest.approx(0.5 * np.log(5))


def test_real_scores_of_sleeping_experts_do_not_count():
    outputs = as_outputs([[["a", None]], [["a", "b"]]])
    scores = np.full((2, 2, 2), 0.5)
    scores[1, 1] = [0.2, 0.8]
    boost = ESPBoost(base="real", tie="expert").fit(replace(outputs, scores=scores), [["a", "b"]])
    assert boost.predict(replace(outputs, scores=scores))[0][1] == "b"


def test_scheme_and_scoring():
    gold = [["B-X", "I-X"], ["O", "O"], ["O", "B-X"]] * 3
    outputs = [
        [["O", "I-X"], ["O", "O"], ["O", "I-X"]] * 3,
        [["B-X", "I-X"], ["O", "O"], ["O", "B-X"]] * 3,
        [["O", "I-X"], ["O", "I-X"], ["O", "I-X"]] * 3,
    ]
    for scoring in ("sum", "product"):
        boost = ESPBoost(scoring=scoring, scheme="BIO", tie="expert").fit(outputs, gold)
        assert boost.predict(outputs) == gold
        # All say I-X first: no valid answer has it there.
        odd = [[["I-X", "I-X"]]] * 3
        assert boost.predict(odd)[0][0] != "I-X"


def test_labels_and_contexts_unseen_in_training():
    boost = ESPBoost(tie="label").fit([[["a"]], [["b"]]], [["a"]])
    assert boost.predict([[["c"]], [["c"]]]) == [["c"]]
    by_place = ESPBoost(tie="position").fit([[["a"]], [["b"]]], [["a"]])
    assert by_place.predict([[["a", "a"]], [["b", "b"]]]) == [["a", "a"]]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"scoring": "max"}, "scoring must be 'sum' or 'product', got 'max'"),
        ({"start": "best"}, "start must be 'auto', 'nothing' or 'vote', got 'best'"),
        ({"automaton": 3}, "automaton must be None, a PathAutomaton or a PathFamily, got 3"),
        ({"base": "log"}, "base must be '0/1' or 'real', got 'log'"),
        ({"n_rounds": 0}, "n_rounds must be a positive integer, got 0"),
        ({"n_rounds": 1.5}, "n_rounds must be a positive integer, got 1.5"),
        ({"tie": "word"}, "tie must be 'auto', 'position', 'expert', 'label' or a function"),
        ({"short": 0}, "short must be"),
        ({"base": "real"}, "base='real' needs the experts' label probabilities"),
    ],
)
def test_bad_options(options, expected):
    with pytest.raises(DataError, match=expected):
        ESPBoost(**options).fit([[["a"]]], [["a"]])
