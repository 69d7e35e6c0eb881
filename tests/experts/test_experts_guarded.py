"""The guarded vote: when it leaves the vote, when it stays, what right answers decide."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis import load_model
from trellis.errors import CorruptModelError
from trellis.experts import AnnotatorModel, ExpertOutputs, GuardedVote, MajorityVote
from trellis.experts.guarded import _speaks_for_it, told


def panel(seed, shares, n_labels=5, n_samples=200, clique=()):
    """Experts that are right with these probabilities; those of a clique copy from each other."""
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, n_labels, n_samples * 10)

    def answers(share):
        other = (gold + rng.integers(1, n_labels, len(gold))) % n_labels
        return np.where(rng.random(len(gold)) < share, gold, other)

    codes = np.stack([answers(share) for share in shares], axis=1)
    source = answers(shares[clique[0]]) if clique else gold
    for j in clique:
        codes[:, j] = np.where(rng.random(len(gold)) < 0.8, source, codes[:, j])
    outputs = ExpertOutputs(
        np.arange(0, len(gold) + 1, 10),
        codes.astype(np.int32),
        tuple("abcdefghij"[:n_labels]),
        tuple(f"e{j}" for j in range(len(shares))),
    )
    return outputs, outputs.lists(gold)


def test_equal_experts_vote():
    outputs, _ = panel(0, [0.7] * 7)
    guarded = GuardedVote().fit(outputs)
    assert guarded.chosen_ == "vote"
    assert guarded.model_ is None
    plain = MajorityVote().fit(outputs)
    assert guarded.predict(outputs) == plain.predict(outputs)
    assert np.allclose(guarded.predict_proba(outputs)[0], plain.predict_proba(outputs)[0])
    assert np.allclose(guarded.predict_confidence(outputs)[0], plain.predict_confidence(outputs)[0])


def test_unequal_experts_do_not():
    outputs, gold = panel(0, [0.92, 0.88, 0.5, 0.5, 0.45, 0.45, 0.4])
    guarded = GuardedVote().fit(outputs)
    assert guarded.chosen_ == "dawid-skene"
    assert guarded.evidence_["all"] > guarded.evidence_["half"] > 2
    vote = MajorityVote().fit(outputs).score(outputs, gold)
    assert guarded.score(outputs, gold) > vote + 0.02
    same = AnnotatorModel(guarded.chosen_).fit(outputs)
    assert guarded.predict(outputs) == same.predict(outputs)
    told = np.sqrt(same.predict_proba(outputs)[3])  # the model is too sure
    wanted = told / told.sum(axis=1, keepdims=True)
    assert np.allclose(guarded.predict_proba(outputs)[3], wanted)


CLIQUES = [
    ([0.7] * 7, (0, 1, 2)),
    ([0.6] * 5, (0, 1)),
    ([0.9, 0.85, 0.8, 0.8], (2, 3)),
    ([0.8, 0.8, 0.8, 0.6, 0.6, 0.6, 0.6], (3, 4, 5, 6)),
]


@pytest.mark.parametrize(("shares", "clique"), CLIQUES)
def test_who_copies_from_each_other_does_not_win(shares, clique):
    outputs, gold = panel(0, shares, clique=clique)
    vote, guarded = MajorityVote().fit(outputs), GuardedVote().fit(outputs)
    model = AnnotatorModel("dawid-skene").fit(outputs)
    assert model.score(outputs, gold) < vote.score(outputs, gold) - 0.04
    assert guarded.evidence_["half"] < 2
    assert guarded.chosen_ == "vote"
    assert guarded.predict(outputs) == vote.predict(outputs)
    guarded.fit(outputs, [*gold[:30], *[None] * 170])
    assert guarded.evidence_["gold"] < -2
    assert guarded.chosen_ == "vote"


def test_those_who_know_nothing_are_not_asked():
    outputs, gold = panel(0, [0.9, 0.8, 0.2, 0.2, 0.2])  # of five labels, by chance
    guarded = GuardedVote().fit(outputs)
    assert list(guarded.evidence_) == ["all"]
    assert guarded.chosen_ == "dawid-skene"
    assert guarded.score(outputs, gold) > MajorityVote().fit(outputs).score(outputs, gold) + 0.02


@pytest.mark.parametrize(
    ("evidence", "model"),
    [
        ({"all": 4.1, "half": 2.1}, True),
        ({"all": 3.9, "half": 9.0}, False),
        ({"all": 9.0, "half": 1.9}, False),
        ({"all": 4.1}, True),
        ({"all": 9.0, "half": -3.0, "gold": 2.1}, True),
        ({"all": 9.0, "half": 9.0, "gold": -2.1}, False),
        ({"all": 9.0, "half": 9.0, "gold": -1.9}, True),
    ],
)
def test_right_answers_have_the_last_word_where_they_are_clear(evidence, model):
    assert _speaks_for_it(evidence) == model


def test_few_right_answers_are_not_asked():
    outputs, gold = panel(0, [0.9, 0.8, 0.5, 0.5])
    guarded = GuardedVote().fit(outputs, [*gold[:9], *[None] * 191])
    assert "gold" not in guarded.evidence_


def test_one_long_sample_is_judged_by_positions():
    outputs, _ = panel(0, [0.92, 0.88, 0.5, 0.5, 0.45, 0.45, 0.4])
    whole = ExpertOutputs([0, outputs.n_positions], outputs.codes, outputs.labels, outputs.names)
    assert GuardedVote().fit(whole).chosen_ != "vote"


def test_many_labels():
    rng = np.random.default_rng(0)
    gold = rng.zipf(1.5, 4000) % 500
    said = [
        np.where(rng.random(4000) < share, gold, rng.permutation(gold))
        for share in (0.9, 0.8, 0.4, 0.4, 0.4)
    ]
    texts = [[[f"w{k}" for k in row] for row in column.reshape(-1, 10)] for column in said]
    guarded = GuardedVote().fit(texts)
    assert guarded.chosen_ == "mace"
    truth = [[f"w{k}" for k in row] for row in gold.reshape(-1, 10)]
    assert guarded.score(texts, truth) > MajorityVote().fit(texts).score(texts, truth)


@pytest.mark.parametrize("shares", [[0.7] * 5, [0.95, 0.9, 0.4, 0.4, 0.4]])
def test_answers_are_valid_in_a_scheme(shares):
    outputs, _ = panel(2, shares, n_labels=3)
    tags = ExpertOutputs(outputs.offsets, outputs.codes, ("B-X", "I-X", "O"), outputs.names)
    for sample in GuardedVote(scheme="BIO").fit(tags).predict(tags):
        for before, after in itertools.pairwise(["O", *sample]):
            assert (before, after) != ("O", "I-X")


# ------------------------------------------------------------------ the measures


@given(st.integers(0, 10**6))
def test_what_is_told_is_the_best_mixture(seed):
    rng = np.random.default_rng(seed)
    said = rng.integers(-1, 3, 60).astype(np.int32)
    said[0] = 1
    consensus = np.where(rng.random(60) < 0.6, said, rng.integers(0, 3, 60)).astype(np.int32)
    awake = said >= 0
    share = np.bincount(said[awake], minlength=3) / awake.sum()

    def value(alpha):
        chance = share[said[awake]]
        return np.log((alpha * (said == consensus)[awake] + (1 - alpha) * chance) / chance).sum()

    found = told(said, consensus, 3)
    assert (found[~awake] == 0).all()
    best = max(value(alpha) for alpha in np.linspace(0, 0.999, 1000))
    assert best - 0.5 < found.sum() < best + 0.01


def test_nothing_is_told_about_the_silent_or_by_the_renamed():
    assert told(np.full(3, -1, np.int32), np.zeros(3, np.int32), 2).tolist() == [0, 0, 0]
    said = np.array([0, 1] * 20, np.int32)
    assert told(said, 1 - said, 2).sum() == pytest.approx(0, abs=1e-6)
    assert told(said, said, 2).sum() == pytest.approx(40 * np.log(2), rel=1e-3)


# ------------------------------------------------------------------ model files


@pytest.mark.parametrize("shares", [[0.7] * 5, [0.95, 0.9, 0.4, 0.4, 0.4]])
def test_saved_and_loaded(shares, tmp_path):
    outputs, _ = panel(0, shares)
    guarded = GuardedVote().fit(outputs)
    guarded.save(tmp_path / "g.trellis")
    loaded = load_model(tmp_path / "g.trellis")
    assert loaded.predict(outputs) == guarded.predict(outputs)
    assert loaded.chosen_ == guarded.chosen_
    assert loaded.evidence_ == guarded.evidence_


def test_spoilt_files():
    outputs, _ = panel(0, [0.95, 0.9, 0.4, 0.4, 0.4])
    guarded = GuardedVote().fit(outputs)
    state = guarded._state()
    other = AnnotatorModel().fit([[["a"]], [["b"]]])
    for model in ("mace", other):
        with pytest.raises(CorruptModelError, match="not one of these experts"):
            GuardedVote()._restore(state | {"model": model})
    strange = AnnotatorModel().fit(outputs.recoded([*outputs.labels, "z"]))
    with pytest.raises(CorruptModelError, match="labels that the vote does not know"):
        GuardedVote()._restore(state | {"model": strange})
