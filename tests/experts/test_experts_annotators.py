"""Models of annotators: posteriors by enumeration, EM written out, what the objective does."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis import load_model
from trellis.errors import CorruptModelError, DataError
from trellis.experts import Aligned, AnnotatorModel, ExpertOutputs, MajorityVote, as_outputs
from trellis.experts.annotators import Annotators, drawn
from trellis.kernels.annotators import agreements, likelihoods, said_posteriors

MODELS = [
    AnnotatorModel(name, chain=chain)
    for name in ("one-coin", "mace", "dawid-skene")
    for chain in (False, True)
]


def ids(model):
    return model.model + ("-chain" if model.chain else "")


def panel(seed, n_samples=12, n_experts=4, n_labels=3, gold_share=0.3, sleep=0.2):
    """Experts of different quality, some of which sleep, and right answers of some samples."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 5, n_samples)
    n = int(lengths.sum())
    truth = rng.integers(0, n_labels, n)
    right = rng.random((n, n_experts)) < rng.uniform(0.3, 0.95, n_experts)
    codes = np.where(right, truth[:, None], rng.integers(0, n_labels, (n, n_experts)))
    codes[rng.random(codes.shape) < sleep] = -1
    outputs = ExpertOutputs(
        np.concatenate([[0], np.cumsum(lengths)]),
        codes.astype(np.int32),
        tuple("abcdefgh"[:n_labels]),
        tuple(f"e{j}" for j in range(n_experts)),
    )
    known = rng.random(n_samples) < gold_share
    lists = outputs.lists(truth)
    return outputs, [y if k else None for y, k in zip(lists, known, strict=True)], lists


def enumerated(annotators, codes, offsets):
    """Label posteriors and log-likelihood by all label sequences of each sample."""
    table, first = annotators.matrices, annotators.first
    n_labels = table.shape[1]
    first = np.full(n_labels, 1 / n_labels) if first is None else first
    node, total = np.zeros((len(codes), n_labels)), 0.0
    for a, b in itertools.pairwise(offsets):
        mass = 0.0
        part = np.zeros((b - a, n_labels))
        for labels in itertools.product(range(n_labels), repeat=b - a):
            weight = 1.0
            for k, y in enumerate(labels):
                if annotators.follow is None or k == 0:
                    weight *= first[y]
                else:
                    weight *= annotators.follow[labels[k - 1], y]
                for j, said in enumerate(codes[a + k]):
                    if said >= 0:
                        weight *= table[j, said, y]
            mass += weight
            part[np.arange(b - a), labels] += weight
        node[a:b] = part / mass
        total += np.log(mass)
    return node, total


# ------------------------------------------------------------------ inference


@pytest.mark.parametrize("model", MODELS, ids=ids)
@settings(max_examples=15)
@given(seed=st.integers(0, 10**6))
def test_posteriors_are_those_of_all_label_sequences(model, seed):
    outputs, gold, _ = panel(seed, n_samples=5)
    model.fit(outputs, gold)
    node, _ = enumerated(model._annotators, outputs.codes, outputs.offsets)
    found = np.concatenate(model.predict_proba(outputs))
    assert np.allclose(found, node, atol=1e-9)
    answers = [y for sample in model.predict(outputs) for y in sample]
    awake = (outputs.codes >= 0).any(axis=1)
    for answer, row, heard in zip(answers, node, awake, strict=True):
        if heard or model.chain:
            assert row["abc".index(answer)] >= row.max() - 1e-9
        else:
            assert answer == model.default_label_
    sure = np.concatenate(model.predict_confidence(outputs))
    assert np.allclose(sure, [row["abc".index(y)] for y, row in zip(answers, node, strict=True)])


@given(st.integers(0, 10**6))
def test_sums_of_em_with_two_chances_a_label(seed):
    outputs, _, _ = panel(seed, n_samples=6)
    rng = np.random.default_rng(seed)
    p, n_labels = outputs.n_experts, 3
    model = Annotators(
        rng.uniform(0.1, 0.9, p), rng.dirichlet(np.ones(3), p), first=rng.dirichlet(np.ones(3))
    )
    gold = np.where(rng.random(outputs.n_positions) < 0.3, 1, -1).astype(np.int32)
    node, _ = enumerated(model, outputs.codes, np.arange(outputs.n_positions + 1))
    expected = 0.0
    for t, y in enumerate(gold):
        weights = model.first.copy()
        for j, said in enumerate(outputs.codes[t]):
            if said >= 0:
                weights *= model.matrices[j, said]
        expected += np.log(weights[y] if y >= 0 else weights.sum())
    node[gold >= 0] = np.eye(3)[1]
    right, labels = np.zeros((p, n_labels)), np.zeros(n_labels)
    total = agreements(
        outputs.codes, gold, model.first, model.gain(), np.log(model.miss), right, labels
    )
    assert np.isclose(total, expected)
    assert np.allclose(labels, node.sum(axis=0))
    for j, label in itertools.product(range(p), range(n_labels)):
        assert np.isclose(right[j, label], node[outputs.codes[:, j] == label, label].sum())


def test_many_labels_and_far_chances_do_not_overflow():
    codes = np.array([[0, 1, 2], [3, 3, 3], [-1, -1, -1]], np.int32)
    prior = np.full(4, 0.25)
    gain = np.full((3, 4), -2000.0)
    posterior, rest = np.empty((3, 3)), np.empty(3)
    said_posteriors(codes, prior, prior, gain, posterior, rest)
    assert np.isfinite(posterior).all()
    assert np.allclose(rest * 0.25, [1, 1 / 3, 1 / 4])
    said_posteriors(codes[:, :1], prior, prior, -gain[:1], posterior[:, :1], rest)
    assert np.allclose(posterior[:2, 0], 1)
    all_said = np.array([[0, 1, 2, 3]], np.int32)
    posterior = np.empty((1, 4))
    said_posteriors(all_said, prior, prior, np.full((4, 4), -2000.0), posterior, rest)
    assert np.allclose(posterior, 0.25)


# ------------------------------------------------------------------ learning


@pytest.mark.parametrize("model", MODELS, ids=ids)
@settings(max_examples=15)
@given(seed=st.integers(0, 10**6))
def test_the_objective_never_decreases(model, seed):
    outputs, gold, _ = panel(seed)
    for known in (None, gold):
        model.fit(outputs, known)
        steps = np.diff(model.objectives_)
        assert (steps >= -1e-9 * np.abs(model.objectives_).max()).all()
        assert model.n_iter_ == len(model.objectives_)


def test_the_objective_of_a_scheme_never_decreases():
    rng = np.random.default_rng(0)
    labels = ["O", "B-X", "I-X"]
    said = [[[labels[k] for k in rng.integers(0, 3, 4)] for _ in range(9)] for _ in range(3)]
    gold = [["I-X", "O", "O", "B-X"], *[None] * 8]  # what the scheme forbids, right answers may do
    model = AnnotatorModel("dawid-skene", chain=True, scheme="BIO").fit(said, gold)
    assert (np.diff(model.objectives_) >= -1e-9 * np.abs(model.objectives_).max()).all()
    for sample in model.predict(said):
        before = ["O", *sample[:-1]]
        assert all(y != "I-X" or x != "O" for x, y in zip(before, sample, strict=True))


def test_mace_agrees_with_em_written_out():
    outputs, gold, _ = panel(3, n_samples=40, n_labels=3)
    model = AnnotatorModel(max_iter=4, tol=1e-15).fit(outputs, gold)
    codes, p, n_labels = outputs.codes, outputs.n_experts, 3
    known = np.repeat([y is not None for y in gold], outputs.lengths)
    truth = np.array(["abc".index(y) for s in gold if s for y in s])
    said = np.array([[(codes[:, j] == k).sum() for k in range(3)] for j in range(p)], float)
    pooled = said.sum(axis=0) + 1 / 3
    pooled *= 10 / pooled.sum()
    share = np.array([[(row == k).sum() for k in range(3)] for row in codes], float)
    share /= np.maximum(share.sum(axis=1, keepdims=True), 1)
    posterior = share.copy()
    posterior[known] = np.eye(3)[truth]
    knows = np.full(p, 0.7)
    guess = (said + pooled) / (said + pooled).sum(axis=1, keepdims=True)
    for step in range(5):
        right = np.zeros((p, n_labels))
        for t, j in itertools.product(range(len(codes)), range(p)):
            if codes[t, j] >= 0:
                right[j, codes[t, j]] += posterior[t, codes[t, j]]
        for _ in range(5):
            know = right * knows[:, None] / (knows[:, None] + (1 - knows)[:, None] * guess)
            knows = (know.sum(axis=1) + 1) / (said.sum(axis=1) + 2)
            guess = said - know + pooled
            guess /= guess.sum(axis=1, keepdims=True)
        counts = (share if step == 0 else posterior).sum(axis=0) + pooled
        first = counts / counts.sum()
        scores = np.tile(first, (len(codes), 1))
        for t, j in itertools.product(range(len(codes)), range(p)):
            if codes[t, j] >= 0:
                chance = np.full(3, (1 - knows[j]) * guess[j, codes[t, j]])
                chance[codes[t, j]] += knows[j]
                scores[t] *= chance
        posterior = scores / scores.sum(axis=1, keepdims=True)
        posterior[known] = np.eye(3)[truth]
    assert np.allclose(model._annotators.knows, knows)
    assert np.allclose(model._annotators.guess, guess)
    assert np.allclose(model._annotators.first, first)


def test_dawid_skene_finds_the_matrices_that_made_the_answers():
    rng = np.random.default_rng(0)
    n, p = 20_000, 5
    truth = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    matrices = 0.6 * np.eye(3) + 0.4 * rng.dirichlet(np.ones(3), (p, 3)).transpose(0, 2, 1)
    lots = rng.random((n, p))
    codes = np.array(
        [(lots[:, [j]] > np.cumsum(matrices[j][:, truth].T, 1)).sum(1) for j in range(p)]
    )
    outputs = ExpertOutputs(
        np.arange(0, n + 1, 10), codes.T.astype(np.int32), ("a", "b", "c"), tuple("12345")
    )
    model = AnnotatorModel("dawid-skene", max_positions=n, tol=1e-9).fit(outputs)
    assert np.abs(model.confusions_ - matrices).max() < 0.04
    assert (
        np.abs(model.reliabilities_ - [(codes[j] == truth).mean() for j in range(p)]).max() < 0.02
    )
    # With all right answers it is the counts and what is counted beforehand.
    taught = AnnotatorModel("dawid-skene", max_positions=n).fit(outputs, outputs.lists(truth))
    assert np.abs(taught.confusions_ - matrices).max() < 0.03


def test_few_steps_stay_near_the_vote():
    """Of experts that are equally poor, EM makes some that are good, by and by."""
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 5, 1000)
    guesses = rng.integers(0, 5, (1000, 20))
    codes = np.where(rng.random(guesses.shape) < 0.15, gold[:, None], guesses).astype(np.int32)
    names = tuple(f"e{j}" for j in range(20))
    outputs = ExpertOutputs(np.arange(1001), codes, tuple("abcde"), names)
    vote = MajorityVote().fit(outputs).predict(outputs)
    models = [AnnotatorModel("dawid-skene", max_iter=n, tol=1e-9) for n in (2, 1000)]
    few, many = (model.fit(outputs) for model in models)
    assert many.converged_
    assert not few.converged_
    moved = [
        np.mean([a != b for a, b in zip(model.predict(outputs), vote, strict=True)])
        for model in (few, many)
    ]
    assert 0 < moved[0] < 0.7 * moved[1]
    right = outputs.lists(gold)
    assert few.score(outputs, right) > many.score(outputs, right) + 0.02


def test_unequal_experts_are_told_apart_without_right_answers():
    rng = np.random.default_rng(1)
    gold = rng.integers(0, 10, (200, 10))
    shares = (0.92, 0.88, 0.5, 0.5, 0.45, 0.45, 0.4)
    said = [
        np.where(rng.random(gold.shape) < s, gold, (gold + rng.integers(1, 10, gold.shape)) % 10)
        for s in shares
    ]
    said, gold = [s.astype(str).tolist() for s in said], gold.astype(str).tolist()
    vote = MajorityVote().fit(said).score(said, gold)
    for model in MODELS[:4]:
        model.fit(said)
        assert model.score(said, gold) > vote
        assert np.abs(model.reliabilities_ - shares).max() < 0.05


def test_a_chain_knows_what_follows():
    """Where an expert is wrong at random, its neighbours tell what must have been meant."""
    rng = np.random.default_rng(0)
    gold = [["a", "b", "c"] * 4 for _ in range(150)]
    said = [
        [[y if rng.random() < 0.6 else "abc"[rng.integers(3)] for y in s] for s in gold]
        for _ in range(3)
    ]
    alone = AnnotatorModel().fit(said).score(said, gold)
    assert AnnotatorModel(chain=True).fit(said).score(said, gold) > max(0.98, alone + 0.05)


def test_right_answers_are_clamped():
    """A word of right answers tells which of two experts that never agree is the good one."""
    rng = np.random.default_rng(0)
    gold = [["ab"[k] for k in rng.integers(0, 2, 10)] for _ in range(40)]
    wrong = [["b" if y == "a" else "a" for y in s] for s in gold]
    some = [*gold[:20], *[None] * 20]
    for model in (AnnotatorModel("one-coin"), AnnotatorModel("dawid-skene")):
        assert model.fit([wrong, gold, wrong], some).predict([wrong, gold, wrong]) == gold


# ------------------------------------------------------------------ many labels, many positions


def test_confusion_matrices_of_many_labels_are_refused():
    words = [[[f"w{k}" for k in range(101)]]] * 2
    for model in (AnnotatorModel("dawid-skene"), AnnotatorModel(chain=True)):
        with pytest.raises(DataError, match="101 labels are too many for confusion matrices"):
            model.fit(words)
    for model in (AnnotatorModel(), AnnotatorModel("one-coin")):
        assert model.fit(words).predict(words) == words[0]


def test_learning_from_a_part_keeps_right_answers():
    outputs, _, lists = panel(0, n_samples=50)
    gold = np.full(outputs.n_positions, -1, np.int32)
    last = slice(outputs.offsets[-2], outputs.offsets[-1])
    gold[last] = 0
    part, known = drawn(outputs, gold, 30)
    assert part.n_positions <= 30
    assert (known >= 0).sum() == outputs.lengths[-1]
    assert drawn(outputs, gold, outputs.n_positions)[0] is outputs
    assert len(drawn(outputs, gold, 1)[0]) == 1
    small = AnnotatorModel(max_positions=30).fit(outputs)
    assert small.predict(outputs) == AnnotatorModel(max_positions=30).fit(outputs).predict(outputs)
    assert len(small.predict(outputs)) == len(lists)


@pytest.mark.parametrize("model", MODELS, ids=ids)
def test_labels_that_training_did_not_have(model):
    said = [[["a", "b"]] * 3, [["a", "b"]] * 3, [["b", "b"]] * 3]
    model.fit(said)
    new = [[["z", "a"]], [["z", "a"]], [["b", "z"]]]
    answer = model.predict(new)[0]
    assert answer[1] == "a"
    assert answer[0] in ("z", "b")
    alone = model.predict([[["z"]], [["y"]], [["z"]]])
    assert alone == [["z"]]
    assert np.allclose(
        model.predict_confidence(new)[0].clip(0, 1), model.predict_confidence(new)[0]
    )


@pytest.mark.parametrize("model", MODELS, ids=ids)
def test_one_label_and_silent_experts(model):
    said = [[["a", "a"], ["a"]], [None, [None]], [["a", None], None]]
    assert model.fit(said).predict(said) == [["a", "a"], ["a"]]
    assert np.allclose(np.concatenate(model.predict_confidence(said)), 1)


def test_answers_without_an_expert():
    outputs, gold, _ = panel(5)
    for model in MODELS:
        model.fit(outputs, gold)
        for j, answer in enumerate(model.answers_without(outputs)):
            codes = outputs.codes.copy()
            codes[:, j] = -1
            rest = ExpertOutputs(outputs.offsets, codes, outputs.labels, outputs.names)
            heard = (codes >= 0).any(axis=1)
            assert (answer == model.codes_of(rest))[heard].all()


def test_aligned_answers():
    said = [[["K", "AE", "T", "S"]], [["K", "T", "S"]], [["K", "AE", "T"]]]
    gold = [["K", "AE", "T", "S"]]
    assert Aligned(AnnotatorModel()).fit(said, gold).predict(said) == gold


# ------------------------------------------------------------------ model files


@pytest.mark.parametrize("model", MODELS, ids=ids)
def test_saved_and_loaded(model, tmp_path):
    outputs, gold, _ = panel(7)
    model.fit(outputs, gold).save(tmp_path / "m.trellis")
    loaded = load_model(tmp_path / "m.trellis")
    for a, b in zip(model.predict_proba(outputs), loaded.predict_proba(outputs), strict=True):
        assert np.array_equal(a, b)
    assert loaded.converged_ == model.converged_
    assert np.array_equal(loaded.objectives_, model.objectives_)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": ["a", "z"]}, "labels that were not counted"),
        ({"knows": np.array([2.0, 0.5])}, "knowledge of experts"),
        ({"guess": np.array([[0.5, 0.4], [0.5, 0.5]])}, "guess must be probabilities"),
        ({"guess": np.array([[1.0, 0.0], [0.5, 0.5]])}, "positive probabilities"),
        ({"confusions": np.array([[[1.0, 0.5], [0.0, 0.5]]] * 2)}, "matrices must be positive"),
        ({"reliabilities": np.array([0.5, 1.5])}, "reliabilities"),
        ({"follow": np.ones((2, 2))}, "follow must be probabilities"),
    ],
)
def test_spoilt_files(change, message):
    model = AnnotatorModel("dawid-skene", chain=True).fit([[["a", "b"]], [["a", "a"]]])
    with pytest.raises(CorruptModelError, match=message):
        AnnotatorModel("dawid-skene", chain=True)._restore(model._state() | change)


def test_likelihoods_of_the_silent():
    scores = np.zeros((1, 2))
    likelihoods(np.array([[-1]], np.int32), np.zeros((1, 2, 2)) - 5, scores)
    assert scores.tolist() == [[0, 0]]
    assert as_outputs([[[None, "a"]]]).codes.tolist() == [[-1], [0]]
