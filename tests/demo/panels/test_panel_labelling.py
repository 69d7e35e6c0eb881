"""The panel of labelling: what is asked for, what is measured, and what it may say of it."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from scipy import stats

from trellis.cheap import ActiveLearner
from trellis.demo.elements import source_of, summary_of
from trellis.demo.manual import code_words
from trellis.demo.panels import labelling
from trellis.demo.panels.labelling import CHOSEN, DEFAULT, PARTS, RANDOM, Estimate, saving, verdict
from trellis.evaluation import span_scores
from trellis.models import ChainCRF

BUDGETS = (250, 500, 1000)
FLAT = np.array([[30.0, 40.0, 50.0], [32.0, 41.0, 51.0], [31.0, 42.0, 50.0]])
NOISE = np.array([[9.0, -9.0, 9.0], [-9.0, 9.0, -9.0], [1.0, 1.0, -1.0]])


@pytest.fixture(scope="module")
def small():
    """The panel from few sentences, twice, and the runs of the first."""
    runs, make = [], labelling._Run.make

    def kept(*arguments):
        runs.append(make(*arguments))
        return runs[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(labelling, "_BUDGETS", (60, 120, 180))
        patch.setattr(labelling, "_IN_PARTS", 2)
        patch.setattr(labelling, "_RUNS", 2)
        patch.setattr(labelling, "_POOL", 40)
        patch.setattr(labelling, "_TEST", 60)
        patch.setattr(labelling._Run, "make", kept)
        yield labelling.panel(1), labelling.panel(1), runs[:2]


def test_structure_and_determinism(small):
    first, second, _ = small
    assert first == second
    assert len(re.findall('<p class="summary">', first)) == 1
    assert first.count('<svg class="chart"') == 1
    assert first.count("<figure>") == first.count("</figure>") == 3
    assert "<pre><code>from trellis import ChainCRF" in first
    assert "words, labels = code_words(2, 40)" in first
    assert "for budget in (60, 120):" in first
    assert repr(labelling._FEATURES)[1:-1] in source_of(labelling.example)
    assert len(first.encode()) < 60_000
    assert not re.search(r"https?:|nan", first)


def test_the_page_has_the_figures_of_the_runs(small):
    first, _, runs = small
    scores = {name: np.array([run.scores[name] for run in runs]) for name in runs[0].scores}
    assert summary_of(first) == labelling.summarise((60, 120, 180), scores)
    assert {name: values.shape for name, values in scores.items()} == {
        RANDOM: (2, 3), DEFAULT: (2, 3), PARTS: (2, 2), CHOSEN: (2, 2),
    }  # fmt: skip
    for name in (CHOSEN, DEFAULT, PARTS):
        for k in range(scores[name].shape[1]):
            gain = Estimate.of(scores[name][:, k] - scores[RANDOM][:, k])
            assert f"{labelling._signed(gain.value)}<small>{gain.interval}</small>" in first
    assert first.count("<td>–</td>") == 2


def test_a_run_by_hand(small):
    """Chosen words, asked for and measured once more with other code."""
    _, _, (run, _) = small
    words, labels = code_words(2, 100)
    learner = ActiveLearner(
        ChainCRF(labelling._FEATURES, random_state=2),
        "token-entropy",
        labels=["B-code", "I-code", "O"],
    )
    told = 0
    for question in itertools.count():
        part = learner.query_part(words[:40], 5)
        assert run.asked[question] == (part.sample, part.nodes)
        learner.tell(part.sample, {k: labels[part.sample][k] for k in part.nodes})
        told += len(part.nodes)
        if told >= 60:
            break
    f1 = span_scores(labels[40:], learner.finish().predict(words[40:]), "BIO").f1
    assert run.scores[CHOSEN][0] == pytest.approx(100 * f1)


def test_drawn_sentences_are_learned_from_as_the_learner_would():
    words, labels = code_words(0, 90)
    parts = labelling._drawn(labels[:30], 99, np.random.default_rng(0))
    (model,) = labelling._fitted(words[:30], labels[:30], [100], 0, parts)
    learner = ActiveLearner(ChainCRF(labelling._FEATURES, random_state=0), labels=labelling._LABELS)
    learner.query(words[:30])
    told = 0
    for i, _ in labelling._drawn(labels[:30], 99, np.random.default_rng(0)):
        if told < 100:
            learner.tell(i, labels[i])
            told += len(labels[i])
    same = np.mean([a == b for a, b in zip(
        itertools.chain(*model.predict(words[30:])),
        itertools.chain(*learner.finish().predict(words[30:])), strict=True)])  # fmt: skip
    assert same > 0.97


def test_parts_are_drawn_once_each():
    labels = [["O"] * 12, ["O"] * 5, ["O"]]
    parts = list(labelling._drawn(labels, 5, np.random.default_rng(0)))
    assert sorted(parts) == [
        (0, (0, 1, 2, 3, 4)), (0, (5, 6, 7, 8, 9)), (0, (10, 11)), (1, (0, 1, 2, 3, 4)), (2, (0,)),
    ]  # fmt: skip
    assert parts != sorted(parts)


def test_questions_are_shown_with_their_answers():
    run = labelling._Run(
        [["use", "a<b", "now"]], [["O", "B-code", "O"]], [(0, (0, 1))], {RANDOM: [1.0]}
    )
    shown = labelling._questions(run)
    assert '<mark>use</mark> <mark class="code">a&lt;b</mark> now' in shown
    assert shown.count("<tr>") == 2


# ------------------------------------------------------------------------------- words


def test_intervals_are_student_s():
    values = [3.0, 5.0, 4.0, 9.0]
    low, high = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    found = Estimate.of(values)
    assert [found.value, found.low, found.high] == pytest.approx([5.25, low, high])
    assert [Estimate(1, *ends).sign for ends in ((0.5, 2), (-1, 2), (-2, -1), (0, 2))] == [
        1,
        0,
        -1,
        0,
    ]


def test_a_saving_is_the_largest_that_is_sure():
    assert saving(BUDGETS, FLAT, FLAT) is None
    found = saving(BUDGETS, FLAT + 15, FLAT)
    assert (found.n_chosen, found.n_random) == (500, 1000)
    assert [found.chosen, found.random] == pytest.approx([56.0, 151 / 3])
    found = saving(BUDGETS, (FLAT + 15)[:, :1], FLAT)
    assert (found.n_chosen, found.n_random) == (250, 500)
    assert saving(BUDGETS, FLAT + 8 + NOISE, FLAT) is None


def test_verdicts():
    assert verdict("Ask", BUDGETS, FLAT + 15, FLAT) == (
        "Ask and you label 500 words instead of 1,000 in random sentences: F1 56.0 against 50.3, "
        "surely more (+2.8 to +8.5). 1,000 reach 65.3."
    )
    assert "reach" not in verdict("Ask", BUDGETS, (FLAT + 25)[:, :1], FLAT)
    gain = np.array([5.0, 5.5, 4.5])[:, None]
    assert verdict("Ask", BUDGETS, FLAT + gain, FLAT) == (
        "Ask and 1,000 words reach F1 55.3 against 50.3 at random: surely more (+3.8 to +6.2)."
    )
    assert verdict("Ask", BUDGETS, FLAT - gain, FLAT) == (
        "Ask and 1,000 words reach F1 45.3 against 50.3 at random: surely less (−6.2 to −3.8)."
    )
    unsure = verdict("Ask", BUDGETS, FLAT + NOISE, FLAT)
    assert "no sure difference (−" in unsure
    assert "surely" not in unsure


def test_the_summary_tells_both_ways_apart():
    scores = {RANDOM: FLAT, DEFAULT: FLAT + NOISE, PARTS: FLAT, CHOSEN: (FLAT + 15)[:, :2]}
    text = labelling.summarise(BUDGETS, scores)
    words, sentences = text.split("Let it ask for sentences, the default,")
    assert "you label 500 words instead of 1,000" in words
    assert "no sure difference" in sentences
