"""Calibration: bins and scores against loops and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.errors import DataError
from trellis.evaluation import calibration

CLASSES = ["A", "B", "C"]


def random_case(seed: int) -> tuple[list[np.ndarray], list[list]]:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 6, size=5)
    lengths[0] = 3
    marginals = [rng.dirichlet(np.full(3, 0.5), size=n) for n in lengths]
    entries = [*CLASSES, None, {"A"}, {"A", "B"}]
    gold = [[entries[i] for i in rng.integers(0, len(entries), size=n)] for n in lengths]
    gold[0][0] = "A"
    return marginals, gold


@settings(deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 12))
def test_against_loops(seed: int, n_bins: int) -> None:
    from sklearn.metrics import log_loss

    marginals, gold = random_case(seed)
    result = calibration(marginals, gold, CLASSES, n_bins)
    rows, labels = [], []
    for m, g in zip(marginals, gold, strict=True):
        for row, entry in zip(m, g, strict=True):
            label = next(iter(entry)) if isinstance(entry, set) and len(entry) == 1 else entry
            if isinstance(label, str):
                rows.append(row)
                labels.append(label)
    bins: list[list[tuple[float, bool]]] = [[] for _ in range(n_bins)]
    brier = 0.0
    for row, label in zip(rows, labels, strict=True):
        best = int(np.argmax(row))
        inside = [k for k in range(n_bins) if k / n_bins <= row[best] < (k + 1) / n_bins]
        bins[inside[0] if inside else -1].append((row[best], CLASSES[best] == label))
        brier += sum((p - (c == label)) ** 2 for p, c in zip(row, CLASSES, strict=True))
    ece = 0.0
    for k, members in enumerate(bins):
        assert result.count[k] == len(members)
        if members:
            confidence = np.mean([c for c, _ in members])
            accuracy = np.mean([r for _, r in members])
            assert result.confidence[k] == pytest.approx(confidence)
            assert result.accuracy[k] == pytest.approx(accuracy)
            ece += len(members) / len(rows) * abs(confidence - accuracy)
        else:
            assert np.isnan(result.confidence[k])
            assert np.isnan(result.accuracy[k])
    assert result.ece == pytest.approx(ece)
    assert result.brier == pytest.approx(brier / len(rows))
    expected = log_loss(labels, np.array(rows), labels=CLASSES)
    assert result.log_loss == pytest.approx(expected)
    assert result.edges.tolist() == pytest.approx([k / n_bins for k in range(n_bins + 1)])


def test_perfect_and_perfectly_wrong() -> None:
    certain = [np.eye(2)]
    right = calibration(certain, [["A", "B"]], ["A", "B"])
    assert (right.ece, right.brier, right.log_loss) == (0.0, 0.0, 0.0)
    assert right.count[-1] == 2  # probability 1 belongs to the last bin
    wrong = calibration(certain, [["B", "A"]], ["A", "B"])
    assert (wrong.ece, wrong.brier) == (1.0, 2.0)
    assert wrong.log_loss == pytest.approx(-np.log(np.finfo(float).eps))


def test_calibrated_model_has_a_small_error() -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(size=20_000)
    gold = [["A" if u < q else "B" for u, q in zip(rng.uniform(size=len(p)), p, strict=True)]]
    result = calibration([np.column_stack([p, 1 - p])], gold, ["A", "B"])
    assert result.ece < 0.02
    overconfident = np.where(p > 0.5, 0.99, 0.01)
    marginals = [np.column_stack([overconfident, 1 - overconfident])]
    assert calibration(marginals, gold, ["A", "B"]).ece > 0.2


def test_label_never_seen_in_training_has_probability_zero() -> None:
    result = calibration([np.array([[0.5, 0.25, 0.25]])], [["new"]], CLASSES)
    assert result.accuracy[5] == 0.0
    assert result.brier == pytest.approx(0.25 + 2 * 0.0625 + 1.0)
    assert result.log_loss == pytest.approx(-np.log(np.finfo(float).eps))


def test_float32_marginals_that_do_not_quite_add_up() -> None:
    rows = np.array([[1.0 + 1e-6, -1e-9, 0.0]], dtype=np.float32)
    result = calibration([rows], [["A"]], CLASSES)
    assert result.confidence[-1] == 1.0
    assert result.log_loss == 0.0


def test_table_lists_the_bins_that_hold_something() -> None:
    text = str(calibration([np.array([[0.9, 0.1], [0.6, 0.4]])], [["A", "B"]], ["A", "B"], 5))
    assert text.splitlines()[0] == "2 positions; ECE: 0.3500; Brier: 0.3700; log loss: 0.5108"
    assert [line.split() for line in text.splitlines()[2:]] == [
        ["0.60-0.80", "0.6000", "0.0000", "1"],
        ["0.80-1.00", "0.9000", "1.0000", "1"],
    ]


GOOD = np.array([[0.5, 0.3, 0.2]])


@pytest.mark.parametrize(
    ("marginals", "gold", "options", "message"),
    [
        ([], [], {}, "there are no samples"),
        ([GOOD], [], {}, "0 samples in gold but 1 in marginals"),
        ([GOOD, GOOD], [["A"], ["A", "B"]], {}, r"sample 1 of marginals has shape \(1, 3\)"),
        ([GOOD[:, :2]], [["A"]], {}, r"shape \(1, 2\): expected \(1, 3\)"),
        ([GOOD * 2], [["A"]], {}, "sample 0 of marginals is not made of probabilities"),
        ([GOOD * np.nan], [["A"]], {}, "sample 0 of marginals is not made of probabilities"),
        ([np.array([[1.5, -0.5, 0]])], [["A"]], {}, "is not made of probabilities"),
        ([GOOD], [[None]], {}, "no position of gold has exactly one label"),
        ([np.zeros((0, 3))], [[]], {}, "no position of gold has exactly one label"),
        ([GOOD], [["A"]], {"n_bins": 0}, "n_bins must be an integer from 1"),
        ([GOOD], [["A"]], {"classes": ["A", "B", "B"]}, "classes names 'B' twice"),
    ],
)
def test_bad_input(marginals: list, gold: list, options: dict, message: str) -> None:
    with pytest.raises(DataError, match=message):
        calibration(marginals, gold, **{"classes": CLASSES, **options})
