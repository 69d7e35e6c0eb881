"""Accuracy and Hamming loss, also with positions that are not or partly annotated."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.errors import DataError
from trellis.evaluation import hamming_loss, sequence_accuracy, token_accuracy
from trellis.evaluation.accuracy import sample_counts, verdicts

LABELS = ["A", "B", "C"]
ENTRY = st.one_of(
    st.sampled_from(LABELS), st.none(), st.sets(st.sampled_from([*LABELS, "unseen"]), min_size=1)
)
SAMPLES = st.lists(st.lists(st.tuples(ENTRY, st.sampled_from(LABELS)), max_size=6), max_size=6)


@settings(deadline=None)
@given(SAMPLES)
def test_against_counting_by_hand(samples: list) -> None:
    gold = [[entry for entry, _ in sample] for sample in samples]
    predicted = [[label for _, label in sample] for sample in samples]
    right = []
    for sample in samples:
        known = [(g, p) for g, p in sample if g is not None]
        if known:
            right.append([g == p if isinstance(g, str) else p in g for g, p in known])
    if not right:
        with pytest.raises(DataError, match="nothing to evaluate"):
            token_accuracy(gold, predicted)
        return
    flat = [r for sample in right for r in sample]
    assert token_accuracy(gold, predicted) == sum(flat) / len(flat)
    assert sequence_accuracy(gold, predicted) == sum(map(all, right)) / len(right)
    assert hamming_loss(gold, predicted) == pytest.approx(1 - sum(flat) / len(flat))
    by_sample = [1 - sum(sample) / len(sample) for sample in right]
    expected = sum(by_sample) / len(by_sample)
    assert hamming_loss(gold, predicted, average="sample") == pytest.approx(expected)


def test_label_never_seen_in_training_is_wrong() -> None:
    assert token_accuracy([["new", "A"]], [["A", "A"]]) == 0.5


def test_empty_samples_are_allowed_beside_others() -> None:
    assert token_accuracy([[], ["A"]], [[], ["A"]]) == 1.0
    assert sequence_accuracy([[], ["A"]], [[], ["B"]]) == 0.0


@pytest.mark.parametrize("function", [token_accuracy, sequence_accuracy, hamming_loss])
@pytest.mark.parametrize(
    ("gold", "predicted", "message"),
    [
        ([["A"]], [["A"], ["A"]], "1 samples in gold but 2 in predicted"),
        ([["A"], ["A", "B"]], [["A"], ["A"]], "sample 1 has 2 positions in gold but 1 in pred"),
        ([], [], "there are no samples"),
        ([[], []], [[], []], "all samples are empty"),
        ([[None]], [["A"]], "no position of gold is annotated"),
        (["A", "B"], ["A", "B"], "sample 0 of gold is 'A': expected a list of labels"),
        (
            [["A"], [[0]]],
            [["A"], ["A"]],
            r"sample 1, position 0 of gold is \[0\]: expected a label",
        ),
        ([["A", set()]], [["A", "A"]], r"sample 0, position 1 of gold is set\(\)"),
        ([["A"]], [3], "sample 0 of predicted is 3: expected a list of labels"),
    ],
)
def test_bad_input(function, gold, predicted, message) -> None:
    with pytest.raises(DataError, match=message):
        function(gold, predicted)


def test_bad_average() -> None:
    with pytest.raises(DataError, match="average must be 'token' or 'sample', got 'macro'"):
        hamming_loss([["A"]], [["A"]], average="macro")  # type: ignore[arg-type]


@settings(max_examples=40)
@given(st.data())
def test_counts_of_samples_are_those_of_verdicts(data: st.DataObject) -> None:
    label = st.sampled_from(["A", "B", 1, True, 2])
    entries = label | st.none()
    if data.draw(st.booleans()):
        entries |= st.sampled_from([{"A", "B"}, float("nan")])
    lengths = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    gold, predicted = (
        [data.draw(st.lists(kind, min_size=n, max_size=n)) for n in lengths]
        for kind in (entries, label | st.none())
    )
    try:
        wanted = verdicts(gold, predicted)
    except DataError as error:
        with pytest.raises(DataError, match=str(error)):
            sample_counts(gold, predicted)
        return
    assert sample_counts(gold, predicted).tolist() == [
        [sum(v is True for v in sample), sum(v is not None for v in sample)] for sample in wanted
    ]
