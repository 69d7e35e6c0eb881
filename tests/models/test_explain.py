"""Explanations: the numbers add up to differences of scores, and the table can be read."""

from __future__ import annotations

import numpy as np
import pytest

from chain_problems import labelling_scores, toy_language
from trellis import ChainCRF, ChainPerceptron, Corpus, DataError

X, Y = toy_language(60)
ALL = 10**6


@pytest.fixture(scope="module")
def crf() -> ChainCRF:
    return ChainCRF("word[-1..1]; suffix(word, 2)", max_passes=3, random_state=0).fit(X, Y)


def check_sums(model, sample) -> None:
    """Swapping one label for its rival changes the score by what is listed, and no other more."""
    explained = model.explain([sample], n_features=ALL)
    predicted = model.predict([sample])[0]
    scores = labelling_scores(model, sample)
    best = scores[tuple(predicted)]
    assert [p.label for p in explained.positions] == predicted
    for t, position in enumerate(explained.positions):
        swapped = {
            other: scores[(*predicted[:t], other, *predicted[t + 1 :])]
            for other in model.classes_
            if other != predicted[t]
        }
        assert swapped[position.rival] == pytest.approx(max(swapped.values()), abs=1e-5)
        listed = position.transitions + sum(value for _, value in position.features)
        assert listed == pytest.approx(best - swapped[position.rival], abs=1e-5)
        assert listed > -1e-5  # it was the best


@pytest.mark.parametrize("sample", [["Ada", "met", "Bohr", "Curie"], ["Zuse"], ["qq", "the"]])
def test_contributions_add_up_to_score_differences(crf, sample):
    check_sums(crf, sample)


def test_contributions_of_real_values_add_up_too():
    rng = np.random.default_rng(0)
    samples = [[{"x": rng.normal(), "y": rng.normal(), "c": "k"} for _ in range(4)] for _ in X]
    labels = [["A" if p["x"] > p["y"] else "B" for p in s] for s in samples]
    model = ChainCRF(random_state=0).fit(samples, labels)
    check_sums(model, samples[0])
    names = {name for p in model.explain(samples[:1]).positions for name, _ in p.features}
    assert names == {"x", "y", "c=k"}


def test_contributions_of_a_perceptron_add_up_too():
    model = ChainPerceptron("word[-1..1]", max_passes=2, random_state=0).fit(X, Y)
    check_sums(model, ["Ada", "met", "Bohr", "Curie"])
    assert all(p.probability is None for p in model.explain([["Ada"]]).positions)


def test_probabilities_are_the_marginals(crf):
    sample = ["Ada", "met"]
    (marginals,) = crf.predict_marginals([sample])
    for t, position in enumerate(crf.explain([sample]).positions):
        j = crf.classes_.index(position.label)
        assert position.probability == marginals[t, j]


def test_the_strongest_features_come_first_and_are_named(crf):
    (_, second, *_) = crf.explain([["the", "Ada", "met"]], n_features=ALL).positions
    size = [abs(value) for _, value in second.features]
    assert size == sorted(size, reverse=True) and len(size) == 4
    assert {name for name, _ in second.features} == {
        "word=Ada",
        "word[-1]=the",
        "word[1]=met",
        "suffix(word, 2)=da",
    }
    few = crf.explain([["the", "Ada", "met"]], n_features=2).positions[1]
    assert few.features == second.features[:2]
    assert few.transitions == second.transitions


def test_it_prints_as_a_table(crf):
    text = str(crf.explain([["Ada", "qq"]], n_features=1))
    lines = text.splitlines()
    assert lines[0].startswith("Ada  B-PER  p=0.") and "  rather than " in lines[0]
    assert lines[1].endswith("  transitions")
    assert any(line.startswith("qq  ") for line in lines)
    model = ChainCRF("word", random_state=0).fit(X, Y)
    assert "(no known feature)" in str(model.explain([["qq"]]))


def test_one_label_has_no_rival():
    model = ChainCRF(random_state=0).fit([["a"]], [["A"]])
    (position,) = model.explain([["a"]]).positions
    assert position.rival is None and position.probability == 1.0
    assert "rather than" not in str(model.explain([["a"]]))


def test_it_takes_one_sequence_in_any_form(crf):
    corpus = Corpus.from_columns({"word": X}, Y)
    forms = [crf.explain(corpus[3]), crf.explain(corpus[3:4]), crf.explain([X[3]])]
    assert str(forms[0]) == str(forms[1]) == str(forms[2])
    with pytest.raises(DataError, match=r"explain takes one sample, got 60; pass corpus\[i\]"):
        crf.explain(corpus)
    assert crf.explain([[]]).positions == []


def test_attributes_have_no_symbol_but_a_number():
    model = ChainCRF(random_state=0).fit([[["a"], ["b"]]], [["A", "B"]])
    assert [p.symbol for p in model.explain([[["a"], ["b"]]]).positions] == ["0", "1"]
