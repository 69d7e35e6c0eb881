"""Learning which spans are right: the solver, the way from the vote, and what more gold brings."""

import numpy as np
import pytest

from toy_data import SAID_SPANS, SPANS
from trellis import load_model
from trellis.corpus.schemes import get_scheme
from trellis.evaluation import span_scores
from trellis.experts import MajorityVote, SpanCombiner, SpanVote, as_outputs
from trellis.experts.span_candidates import SpanCandidates
from trellis.experts.span_combiner import _names

BIO = get_scheme("BIO")


# ------------------------------------------------------------------------- the combiner


def weak_experts(n, seed=0, recall=(0.75, 0.5, 0.3, 0.3, 0.3, 0.3, 0.3), false=0.05):
    """Names of two words, which experts find, cut, take for another type, or see elsewhere."""
    rng = np.random.default_rng(seed)
    gold, said = [], [[] for _ in recall]
    for _ in range(n):
        spans = [(str(rng.choice(["X", "Y"])), a, a + 2) for a in (1, 5, 9) if rng.random() < 0.5]
        gold.append(BIO.labels_for(spans, 12))
        for column, share in zip(said, recall, strict=True):
            found = []
            for type_, a, b in spans:
                if rng.random() < share:
                    kind = type_ if rng.random() < 0.9 else "Y"
                    found.append((kind, a, b if rng.random() < 0.8 else b - 1))
            taken = {a for _, a, _ in found}
            found += [("X", a, a + 2) for a in (3, 7) if rng.random() < false and a not in taken]
            column.append(BIO.labels_for(found, 12))
    return said, gold


def f1(combiner, said, gold):
    return 100 * span_scores(gold, combiner.predict(said)).f1


@pytest.fixture(scope="module")
def data():
    said, gold = weak_experts(1500)
    test = [column[500:] for column in said], gold[500:]
    return said, gold, test


def test_without_gold_it_is_the_span_vote(data, tmp_path):
    said, _, test = data
    combiner, vote = SpanCombiner().fit(said), SpanVote().fit(said)
    assert not combiner.taught_
    assert combiner.l2_ == 0
    assert combiner.threshold_ == vote.threshold_
    assert combiner.predict(test[0]) == vote.predict(test[0])
    assert np.allclose(
        np.concatenate(combiner.predict_confidence(test[0])),
        np.concatenate(vote.predict_confidence(test[0])),
    )
    combiner.save(tmp_path / "vote.trellis")
    loaded = load_model(tmp_path / "vote.trellis")
    assert not loaded.taught_
    assert loaded.predict(test[0]) == vote.predict(test[0])


def test_little_gold_harms_little_and_much_helps(data):
    said, gold, test = data
    plain = f1(MajorityVote().fit(said), *test)
    found = {}
    for n in (10, 500):
        part = [column[:n] for column in said]
        found[n] = f1(SpanCombiner().fit(part, gold[:n]), *test)
    assert found[10] > plain
    assert found[500] > found[10]
    assert found[500] > plain + 5


def test_samples_without_gold_teach_nothing(data):
    said, gold, _ = data
    part = [column[:60] for column in said]
    some = SpanCombiner().fit([column[:30] for column in said], gold[:30])
    more = SpanCombiner().fit(part, [*gold[:30], *[None] * 30])
    assert more.taught_
    assert np.array_equal(some.weights_, more.weights_)
    assert some.threshold_ == more.threshold_


def test_an_expert_that_is_always_right_is_found(data):
    said, gold, test = data
    column = gold[:200]
    combiner = SpanCombiner().fit([column[:200], *[c[:200] for c in said[2:]]], column)
    experts = [test[1], *test[0][2:]]
    assert f1(combiner, experts, test[1]) > f1(SpanVote().fit(experts), experts, test[1]) + 3
    assert f1(combiner, experts, test[1]) > 98


def test_the_grid_is_of_one_value_if_l2_is_given(data):
    said, gold, _ = data
    part, right = [column[:50] for column in said], gold[:50]
    assert SpanCombiner(l2=2.5).fit(part, right).l2_ == 2.5
    tight, loose = (SpanCombiner(l2=l2).fit(part, right).weights_ for l2 in (1e6, 0.1))
    assert np.abs(tight[2:]).max() < 1e-3 < np.abs(loose[2:]).max()
    assert tight[1] != 1


def test_probabilities_are_about_right(data):
    said, gold, test = data
    combiner = SpanCombiner().fit([column[:500] for column in said], gold[:500])
    sure = np.array([s[3] for spans in combiner.predict_spans(test[0]) for s in spans])
    scores = span_scores(test[1], combiner.predict(test[0]))
    assert abs(sure.mean() - scores.precision) < 0.05


def test_large_samples_are_cut(data, monkeypatch):
    said, gold, test = data
    monkeypatch.setattr("trellis.experts.span_combiner._LEARNED", 300)
    monkeypatch.setattr("trellis.experts.span_combiner._COMPARED", 100)
    monkeypatch.setattr("trellis.experts.span_combiner._BLOCK", 10)
    cut = SpanCombiner().fit(said, gold)
    assert f1(cut, *test) > f1(MajorityVote().fit(said), *test)
    monkeypatch.undo()
    whole = SpanCombiner().fit(said, gold)
    assert not np.array_equal(cut.weights_, whole.weights_)


def test_blocks_change_nothing(data, monkeypatch):
    said, gold, test = data
    combiner = SpanCombiner().fit([column[:50] for column in said], gold[:50])
    whole = combiner.predict_spans(test[0])
    monkeypatch.setattr("trellis.experts.span_combiner._BLOCK", 10)
    for one, other in zip(whole, combiner.predict_spans(test[0]), strict=True):
        assert [s[:3] for s in one] == [s[:3] for s in other]
        assert np.allclose([s[3] for s in one], [s[3] for s in other])


def test_there_is_a_name_for_each_feature():
    combiner = SpanCombiner().fit(SAID_SPANS, SPANS)
    found = SpanCandidates.of_labels(as_outputs(SAID_SPANS), BIO)
    names = _names(found.names, found.types)
    assert combiner._features(found).shape == (len(found), len(names))
    assert len(combiner.weights_) == len(names) == len(set(names))


def test_types_that_training_lacks():
    combiner = SpanCombiner().fit(SAID_SPANS, SPANS)
    new = [[["B-Z", "I-Z"]], [["B-Z", "I-Z"]], [["B-Z", "O"]]]
    assert combiner.predict(new) == [["B-Z", "I-Z"]]


def test_one_sample_of_gold():
    one = [column[:1] for column in SAID_SPANS]
    assert SpanCombiner().fit(one, SPANS[:1]).predict(one) == SPANS[:1]
