"""The consensus: best of all candidates by trying them, no step left, gold, doors."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trellis
from trellis.errors import DataError
from trellis.evaluation import normalised_edit_distance, sentence_gleu, word_error_rate
from trellis.experts import Consensus, align, strip
from trellis.experts.voting import vote

ANSWER = st.lists(st.sampled_from("abcd"), max_size=5)
SAMPLE = st.lists(ANSWER, min_size=1, max_size=5)
SIMILARITY = st.sampled_from(["both", "overlap", "edit"])


def sure(model, said):
    """One level a sample; an empty answer has none."""
    levels = model.predict_confidence(said)
    assert all(len(set(level.tolist())) <= 1 for level in levels)
    assert [len(level) for level in levels] == [len(answer) for answer in model.predict(said)]
    return [level[0] if len(level) else None for level in levels]


def similar(a, b, model):
    values = {
        "overlap": sentence_gleu(a, b, model.longest),
        "edit": 1 - normalised_edit_distance(a, b),
    }
    chosen = values.values() if model.similarity == "both" else [values[model.similarity]]
    return sum(chosen) / len(chosen)


def mean(candidate, sample, model):
    """Weighted mean similarity of a candidate to the answers, by definition."""
    weights = model.reliabilities_ if model.reliabilities_.any() else np.ones(len(sample))
    values = [similar(candidate, answer, model) for answer in sample]
    return float(weights @ values / weights.sum())


def voted(sample, model):
    order = np.argsort(-model.reliabilities_, kind="stable")
    network, _ = align([[sample[j]] for j in order], order="sample")
    winner = vote(network.codes, model.reliabilities_[order], len(network.labels))
    return strip(network.lists(winner))[0]


@given(SAMPLE, SIMILARITY, st.integers(1, 4))
def test_best_of_all_candidates(sample, similarity, longest):
    said = [[answer] for answer in sample]
    model = Consensus(similarity=similarity, longest=longest, candidates="answers").fit(said)
    (answer,) = model.predict(said)
    assert answer in sample
    best = max(mean(candidate, sample, model) for candidate in sample)
    assert mean(answer, sample, model) == pytest.approx(best)
    assert not answer or sure(model, said) == pytest.approx([best])
    model = Consensus(similarity=similarity, longest=longest, candidates="vote").fit(said)
    (answer,) = model.predict(said)
    best = max(best, mean(voted(sample, model), sample, model))
    assert mean(answer, sample, model) == pytest.approx(best)


@given(SAMPLE, SIMILARITY)
def test_search_gains_and_ends_where_no_change_gains(sample, similarity):
    said = [[answer] for answer in sample]
    before = sure(Consensus(similarity=similarity, candidates="vote").fit(said), said)
    model = Consensus(similarity=similarity).fit(said)
    (answer,) = model.predict(said)
    found = mean(answer, sample, model)
    assert not answer or sure(model, said) == pytest.approx([found])
    assert before[0] is None or found >= before[0] - 1e-9
    # One label more, less or other, as another expert has it in an alignment: a part of the steps.
    for other in sample:
        if len(other) == len(answer) and sum(map(str.__ne__, answer, other)) == 1:
            assert mean(other, sample, model) <= found + 1e-9


@given(SAMPLE, SIMILARITY)
def test_more_starts_end_at_least_as_high(sample, similarity):
    said = [[answer] for answer in sample]
    reached = []
    for starts in (1, 2, 3, 99):
        model = Consensus(similarity=similarity, starts=starts).fit(said)
        reached.append(mean(model.predict(said)[0], sample, model))
    assert all(before <= after + 1e-9 for before, after in itertools.pairwise(reached))


def test_another_start_ends_higher():
    said, gold = zip(*(transcripts(seed) for seed in range(4)), strict=True)
    rates = []
    for starts in (1, 3):
        found = [Consensus(starts=starts).fit(outputs).predict(outputs) for outputs in said]
        rates.append(np.mean([word_error_rate(*pair) for pair in zip(gold, found, strict=True)]))
    assert rates[1] < rates[0]


@given(st.lists(ANSWER, min_size=3, max_size=3))
def test_no_sequence_is_much_better(sample):
    """Beside the best of all sequences of the labels, which may be none that anybody says."""
    said = [[answer] for answer in sample]
    model = Consensus(similarity="edit").fit(said)
    labels = sorted({label for answer in sample for label in answer})
    longest = max(map(len, sample))
    every = (
        list(y) for n in range(min(longest, 4) + 1) for y in itertools.product(labels, repeat=n)
    )
    best = max(mean(candidate, sample, model) for candidate in every)
    assert mean(model.predict(said)[0], sample, model) >= best - 0.2


def transcripts(seed, n=40):
    """Sentences, and copies of them with mistakes at these rates."""
    rng = random.Random(seed)
    words = [f"w{k}" for k in range(200)]
    gold = [[rng.choice(words) for _ in range(12)] for _ in range(n)]
    said = []
    for rate in (0.1, 0.2, 0.25, 0.3, 0.4):
        column = []
        for sentence in gold:
            heard = []
            for word in sentence:
                if rng.random() >= rate:
                    heard.append(word)
                elif (kind := rng.random()) < 0.6:
                    heard.append(rng.choice(words))
                elif kind < 0.8:
                    heard += [word, rng.choice(words)]
            column.append(heard)
        said.append(column)
    return said, gold


def test_transcripts_become_better_with_each_kind_of_candidates():
    rates = []
    for kind in ("answers", "vote", "search"):
        found = []
        for seed in range(3):
            said, gold = transcripts(seed)
            found.append(word_error_rate(gold, Consensus(candidates=kind).fit(said).predict(said)))
        rates.append(np.mean(found))
    assert rates[0] > 2 * rates[1]
    assert rates[1] > rates[2]


def test_reliabilities_follow_the_mistakes():
    said, gold = transcripts(0)
    for right in (None, gold, [*gold[:5], *[None] * 35]):
        found = Consensus().fit(said, right).reliabilities_
        assert np.argsort(-found).tolist() == [0, 1, 2, 3, 4]


def test_the_order_of_experts_does_not_matter():
    said, _ = transcripts(1)
    model = Consensus()
    answers = model.fit(said).predict(said)
    assert model.fit(said[::-1]).predict(said[::-1]) == answers


def test_gold_chooses_the_candidates():
    """All of them where they are best, the ones that are named in any case."""
    gold = [["a", "b", "c", "d"]] * 6
    said = [
        [["a", "b", "c", "d"]] * 6,
        [["a", "x", "c", "y"]] * 6,
        [["z", "x", "c", "d"]] * 6,
        [["z", "b", "q", "y"]] * 6,
        [["z", "x", "q", "y"]] * 6,
    ]
    assert Consensus().fit(said).candidates_ == "search"
    assert Consensus().fit(*transcripts(0)).candidates_ == "search"
    model = Consensus(shrinkage=0.0).fit(said, gold)
    assert model.predict(said) == gold
    for kind in ("answers", "vote", "search"):
        assert Consensus(candidates=kind).fit(said, gold).candidates_ == kind


def test_fewer_candidates_if_gold_says_so():
    """Where whole answers are better on gold by more than a standard error, only they are used."""
    said, _ = transcripts(2, n=10)
    model = Consensus().fit(said, [None] * 10)
    assert model.candidates_ == "search"
    # Gold is what the experts' medoid says: nothing is better than the medoids.
    medoids = Consensus(candidates="answers").fit(said).predict(said)
    assert Consensus().fit(said, medoids).candidates_ == "answers"
    # One right answer is not enough to choose.
    assert Consensus().fit(said, [medoids[0], *[None] * 9]).candidates_ == "search"


def test_empty_answers_and_lone_ones():
    said = [[[], ["a"], None], [[], None, ["b", "c"]]]
    model = Consensus().fit(said)
    assert model.predict(said) == [[], ["a"], ["b", "c"]]
    assert sure(model, said) == [None, 1, 1]
    assert Consensus().fit([[["a"], ["b"]]]).predict([[["c"]]]) == [["c"]]  # one expert, new labels


def test_experts_that_share_nothing():
    """Weights of 0 are equal weights."""
    said = [[["a"]], [["b"]], [["c"]]]
    model = Consensus(shrinkage=0.0).fit(said)
    assert model.reliabilities_.tolist() == [0, 0, 0]
    assert model.predict(said) in ([["a"]], [["b"]], [["c"]])
    assert sure(model, said) == pytest.approx([1 / 3])


def test_a_crowd_with_most_answers_missing():
    rng = random.Random(0)
    gold = [[rng.choice("abcdefgh") for _ in range(9)] for _ in range(60)]
    said = [[None] * 60 for _ in range(80)]
    for i, right in enumerate(gold):
        for j in rng.sample(range(80), 6):
            heard = list(right)
            if j % 3 == 0:
                heard[rng.randrange(9)] = rng.choice("stuvwxyz")
            said[j][i] = heard
    assert Consensus().fit(said).predict(said) == gold


def test_saved_and_loaded(tmp_path):
    said, gold = transcripts(3, n=8)
    model = Consensus().fit(said, [*gold[:4], *[None] * 4])
    model.save(tmp_path / "m")
    loaded = trellis.load_model(tmp_path / "m")
    assert loaded.predict(said) == model.predict(said)
    assert loaded.candidates_ == model.candidates_
    assert np.array_equal(loaded.reliabilities_, model.reliabilities_)


@pytest.mark.parametrize(
    ("outputs", "gold", "message"),
    [
        ([], None, "no experts"),
        ([[]], None, "there are no samples"),
        ([["ab"]], None, "expected a sequence of labels, got 'ab'"),
        ([[None]], None, "no expert says anything about sample 0"),
        ([[["<eps>"]]], None, "says the label '<eps>'; name another epsilon"),
        ([[["a"]]], [["a"], ["b"]], "gold has 2 samples, the experts answer 1"),
        ([[["a"]]], [[3]], "gold, sample 0: labels must be strings, got 3"),
    ],
)
def test_bad_input(outputs, gold, message):
    with pytest.raises(DataError, match=message):
        Consensus().fit(outputs, gold)


def test_another_number_of_experts():
    with pytest.raises(DataError, match="trained on 2 experts, here are 1; give None"):
        Consensus().fit([[["a"]], [["a"]]]).predict([[["a"]]])


@given(SAMPLE)
def test_prefers_whole_answers(sample):
    said = [[answer] for answer in sample]
    model = Consensus(prefer_whole=True).fit(said)
    (answer,) = model.predict(said)
    weights = model.reliabilities_ if model.reliabilities_.any() else np.ones(len(sample))

    def support(candidate):
        return sum(w for w, a in zip(weights, sample, strict=True) if a == candidate)

    repeated = [a for a in sample if sample.count(a) > 1]
    if not repeated:
        assert answer == Consensus().fit(said).predict(said)[0]
    else:
        assert answer in repeated
        most = max(map(support, repeated))
        assert support(answer) == pytest.approx(most)
        ties = [a for a in repeated if support(a) == pytest.approx(most)]
        best = max(mean(a, sample, model) for a in ties)
        assert mean(answer, sample, model) == pytest.approx(best)


def test_a_whole_answer_of_two_against_a_mixture_of_all():
    said = [
        [["a", "b", "c"]],
        [["a", "b", "c"]],
        [["a", "x", "d"]],
        [["y", "x", "c"]],
        [["z", "x"]],
    ]
    assert Consensus(prefer_whole=True).fit(said).predict(said) == [["a", "b", "c"]]
    assert Consensus(similarity="edit").fit(said).predict(said) != [["a", "b", "c"]]
