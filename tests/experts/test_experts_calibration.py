"""Levels of confidence that mean what they say."""

import numpy as np
import pytest
from scipy.optimize import minimize

from trellis.errors import CorruptModelError
from trellis.experts import MajorityVote, SpanVote
from trellis.experts.calibration import AnswerCalibration, Calibration, RawLevels, spans_of


@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_optimum(seed):
    rng = np.random.default_rng(seed)
    raw = rng.uniform(0.05, 0.99, 200)
    right = rng.random(200) < raw**2
    x = np.log(raw / (1 - raw))

    def loss(w):
        score = w[0] + w[1] * x
        return np.logaddexp(0, np.where(right, -score, score)).sum() + w[0] ** 2 + (w[1] - 1) ** 2

    found = Calibration.of(raw, right)
    other = minimize(loss, [0.0, 1.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-9})
    assert np.allclose([found.offset, found.slope], other.x, atol=1e-4)


def test_levels_are_what_they_say():
    rng = np.random.default_rng(0)
    raw = rng.uniform(0.5, 1.0, 20_000)
    odds = np.exp(0.5 * np.log(raw / (1 - raw)) - 0.3)  # the answers are too sure of themselves
    right = rng.random(20_000) < odds / (1 + odds)
    levels = Calibration.of(raw[:10_000], right[:10_000]).levels(raw[10_000:])
    truth = right[10_000:]
    for low in (0.5, 0.6, 0.7):
        inside = (levels >= low) & (levels < low + 0.1)
        assert abs(levels[inside].mean() - truth[inside].mean()) < 0.03


def test_extremes():
    raw = np.array([0.0, 1.0, 1.0, 1.0])
    found = Calibration.of(raw, np.array([False, True, True, False]))
    assert np.isfinite([found.offset, found.slope]).all()
    assert 0 < found.levels(raw).min() <= found.levels(raw).max() < 1
    assert Calibration.of(np.zeros(0), np.zeros(0, bool)) == Calibration()
    assert Calibration().levels(np.array([0.3]))[0] == pytest.approx(0.3)


@pytest.mark.parametrize("seed", range(20))
def test_it_is_the_optimum_where_most_answers_are_nearly_sure(seed):
    """All experts agree on most words, and some of these are wrong: whole Newton steps diverge."""
    rng = np.random.default_rng(seed)
    raw = rng.choice([3 / 7, 4 / 7, 5 / 7, 6 / 7, 15 / 16, 1.0], 6000, p=[0.02] * 5 + [0.9])
    right = rng.random(6000) < np.where(raw == 1, 0.99, rng.uniform(0.4, 0.9))
    inside = np.clip(raw, 1e-4, 1 - 1e-4)
    x = np.log(inside / (1 - inside))

    def loss(w):
        score = w[0] + w[1] * x
        return np.logaddexp(0, np.where(right, -score, score)).sum() + w[0] ** 2 + (w[1] - 1) ** 2

    found = Calibration.of(raw, right)
    assert loss([found.offset, found.slope]) <= minimize(loss, [0.0, 1.0]).fun + 1e-6


# ------------------------------------------------------------------ answers


def test_positions_and_spans_are_calibrated_apart():
    answers = [["B-X", "I-X", "O"]] * 100
    gold = [["B-X", "I-X", "O"]] * 60 + [["B-X", "O", "O"]] * 40
    levels = [np.full(3, 0.9)] * 100
    raw = RawLevels(levels, spans_of(answers, levels, "BIO"))
    learned = AnswerCalibration.of(raw, answers, gold, "labels", "BIO")
    assert abs(learned.answer_levels(raw)[0][0] - 260 / 300) < 0.01
    assert abs(learned.span_levels(raw.spans)[0][0][3] - 0.6) < 0.02
    assert learned.span_levels(raw.spans)[0][0][:3] == (0, 2, "X")


def test_words_are_right_where_they_align():
    raw = RawLevels([np.full(2, 0.8)] * 50 + [np.zeros(0)], None)
    answers = [["a", "b"]] * 50 + [[]]
    learned = AnswerCalibration.of(raw, answers, [["b"]] * 50 + [["c"]], "words", None)
    assert abs(learned.answer_levels(raw)[0][0] - 0.5) < 0.02


def test_answers_that_are_spans():
    raw = RawLevels(None, [[(0, 1, "X", 0.9)]] * 100)
    learned = AnswerCalibration.of(raw, [], [[(0, 1, "X")]] * 50 + [[]] * 50, "spans", None)
    assert abs(learned.answer_levels(raw)[0][0] - 0.5) < 0.02
    assert AnswerCalibration.from_state(learned.state()) == learned


def test_a_method_that_has_spans_tells_how_sure_they_are():
    said = [[["B-X", "O"]], [["B-X", "O"]], [["O", "O"]]]
    for combiner in (SpanVote(scheme="BIO").fit(said), MajorityVote().fit(said)):
        answers = combiner.predict(said)
        raw = RawLevels.of(combiner, said, "labels", "BIO", answers)
        assert [s[:3] for s in raw.spans[0]] == [(0, 1, "X")]
        assert len(raw.positions[0]) == 2
    assert RawLevels.of(combiner, said, "labels", None, answers).spans is None


def test_damaged():
    state = AnswerCalibration().state() | {"span_calibration": [0.0, np.inf]}
    with pytest.raises(CorruptModelError, match="span_calibration must be two numbers"):
        AnswerCalibration.from_state(state)
