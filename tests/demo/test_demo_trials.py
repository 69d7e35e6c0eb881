"""Trials of ways to combine: F1 and gains are those of the library's own functions."""

from __future__ import annotations

import numpy as np
import pytest

from trellis.demo.manual import code_words
from trellis.demo.taggers import weak_taggers
from trellis.demo.trials import Estimate, Study, signed, span_f1
from trellis.evaluation import paired_bootstrap, span_scores
from trellis.experts import AutoCombiner, BestExpert, MajorityVote, from_models

N_GOLD = 60


@pytest.fixture(scope="module")
def asked():
    """Answers to gold and test sentences, and their labels."""
    words, labels = code_words(0, n=400)
    taggers = weak_taggers(words[:120], labels[:120], 0)
    models, names = [*taggers.values()], [*taggers]
    said = from_models(models, words[120 : 120 + N_GOLD], names=names)
    new = from_models(models, words[120 + N_GOLD :], names=names)
    return said, labels[120 : 120 + N_GOLD], new, labels[120 + N_GOLD :]


@pytest.fixture(scope="module")
def alone(asked):
    return AutoCombiner().fit(asked[0])


@pytest.fixture
def study(asked, alone):
    return Study(asked[2], asked[3], alone, n_parts=2, n_resamples=400, seed=0)


def f1(truth, answers):
    return 100 * span_scores(truth, answers, "BIO").f1


def test_without_gold(asked, alone, study):
    said, _, new, truth = asked
    trial = study.without_gold(said)
    vote, answers = MajorityVote().fit(said).predict(new), alone.predict(new)
    assert trial.vote.value == pytest.approx(f1(truth, vote))
    assert trial.combined.value == pytest.approx(f1(truth, answers))
    compared = paired_bootstrap(truth, answers, vote, "f1")
    assert trial.gain.value == pytest.approx(100 * compared.difference)
    found = [trial.gain.low, trial.gain.high]
    assert found == pytest.approx([100 * x for x in compared.interval], abs=1.5)
    assert (trial.n_gold, trial.methods) == (0, (alone.method_,))
    assert trial.best is trial.gain_of_best is trial.more is None


def test_with_gold_done_already(asked, alone, study):
    said, gold, new, truth = asked
    combiner = AutoCombiner(method="stacking").fit(said, gold)
    trial = study.with_gold(said, gold, N_GOLD, combiner)
    mine, best = f1(truth, combiner.predict(new)), BestExpert().fit(said, gold).predict(new)
    vote = f1(truth, MajorityVote().fit(said, gold).predict(new))
    assert trial.methods == ("stacking",)
    assert trial.combined.value == pytest.approx(mine)
    assert trial.best.value == pytest.approx(f1(truth, best))
    assert trial.gain.value == pytest.approx(mine - vote)
    assert trial.gain_of_best.value == pytest.approx(f1(truth, best) - vote)
    assert trial.more.value == pytest.approx(mine - f1(truth, alone.predict(new)))


def test_parts_of_the_gold_are_averaged(asked, study):
    said, gold, new, truth = asked
    trial = study.with_gold(said, gold, 20)
    parts = [slice(0, 20), slice(20, 40)]
    fitted = [AutoCombiner().fit(said.take(part), gold[part]) for part in parts]
    assert trial.methods == tuple(one.method_ for one in fitted)
    scores = [f1(truth, one.predict(new)) for one in fitted]
    assert trial.combined.value == pytest.approx(np.mean(scores))
    best = [BestExpert().fit(said.take(part), gold[part]).predict(new) for part in parts]
    assert trial.best.value == pytest.approx(np.mean([f1(truth, one) for one in best]))
    assert trial.best.low < trial.best.value < trial.best.high


def test_signs_are_those_of_what_is_shown():
    signs = [Estimate(*e).sign for e in ((5.1, 3.1, 7.2), (0.6, -0.5, 2.3), (-2.5, -4.9, -0.1))]
    assert signs == [1, 0, -1]
    assert Estimate(2.0, 0.04, 4.0).sign == Estimate(-2.0, -4.0, 0.0).sign == 0
    assert Estimate.of(np.array([3.0, *np.arange(101)])) == Estimate(3.0, 2.5, 97.5)
    assert [signed(x) for x in (1.26, -0.5, 0.0)] == ["+1.3", "−0.5", "+0.0"]
    assert span_f1(np.zeros(3)) == 0
