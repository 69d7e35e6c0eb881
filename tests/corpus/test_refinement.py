"""Every labelling is that of exactly one allowed sequence of states; enumerated."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.corpus import Labels, get_scheme
from trellis.corpus.refinement import Refinement
from trellis.errors import DataError

CLASSES = [
    ("B", "I", "O"),
    ("B-X", "B-Y", "I-X", "O"),
    ("B-X", "I-X", "I-Y", "O"),
    ("B-X", "I-X"),
]


def sequences(refinement: Refinement, n: int) -> list[tuple[int, ...]]:
    """All sequences of states that the rules allow."""
    start, follow, end = refinement.rules
    return [
        states
        for states in itertools.product(range(len(refinement.states)), repeat=n)
        if start[states[0]]
        and end[states[-1]]
        and all(follow[a, b] for a, b in itertools.pairwise(states))
    ]


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_labellings_and_states_are_the_same(classes: tuple[str, ...], n: int) -> None:
    refinement = Refinement(classes)
    labellings = list(itertools.product(range(len(classes)), repeat=n))
    assert sorted(tuple(refinement.label[list(z)]) for z in sequences(refinement, n)) == labellings
    for y in labellings:
        labels = Labels(np.array(y), (), classes)
        states = refinement.refined(labels, [0, n])
        assert states.classes == refinement.states
        assert tuple(states.ids.tolist()) in sequences(refinement, n)
        assert tuple(refinement.label[states.ids]) == y


def test_states_are_those_of_iobes() -> None:
    bio = ["O", "B-X", "I-X", "I-X", "B-X", "B-Y", "I-Y", "O"]
    refinement = Refinement(("B-X", "B-Y", "I-X", "I-Y", "O"))
    states = refinement.refined(Labels.from_lists([bio]), [0, len(bio)]).tolist()
    assert states == get_scheme("IOBES").labels_for(get_scheme("BIO").spans(bio), len(bio))


@given(st.data())
def test_label_sets_allow_the_states_of_their_labellings(data: st.DataObject) -> None:
    classes = data.draw(st.sampled_from(CLASSES))
    label = st.none() | st.sampled_from(classes) | st.sets(st.sampled_from(classes), min_size=1)
    y = data.draw(st.lists(st.lists(label, max_size=3), min_size=1, max_size=3))
    refinement = Refinement(classes)
    labels = Labels.from_lists(y, classes)
    offsets = np.concatenate([[0], np.cumsum([len(sample) for sample in y])])
    allowed = refinement.refined(labels, offsets).allowed()
    wanted = labels.allowed()
    for a, b in itertools.pairwise(offsets.tolist()):
        if a == b:
            continue
        rows = np.arange(b - a)
        inside = [z for z in sequences(refinement, b - a) if allowed[a:b][rows, list(z)].all()]
        outside = [
            y
            for y in itertools.product(range(len(classes)), repeat=b - a)
            if wanted[a:b][rows, list(y)].all()
        ]
        assert sorted(tuple(refinement.label[list(z)]) for z in inside) == outside
        # Each state that is allowed is one of a labelling that is.
        assert all(any(z[t] == k for z in inside) for t, k in np.argwhere(allowed[a:b]).tolist())


def test_rules_of_a_scheme_hold_too() -> None:
    classes = ("B-X", "I-X", "O")
    refinement = Refinement(classes)
    start, follow, end = refinement.with_rules(get_scheme("BIO").validity(classes))
    names = refinement.states
    assert [name for name, may in zip(names, start, strict=True) if may] == ["B-X", "O", "S-X"]
    assert [name for name, may in zip(names, end, strict=True) if may] == ["E-X", "O", "S-X"]
    iobes = get_scheme("IOBES").validity(names)
    np.testing.assert_array_equal(follow, iobes[1])


def test_chances_are_summed() -> None:
    refinement = Refinement(("B", "I", "O"))  # states B, E, I, O, S
    chances = np.array([[0.1, 0.2, 0.3, 0.15, 0.25]])
    np.testing.assert_allclose(refinement.merged(chances), [[0.35, 0.5, 0.15]])


@pytest.mark.parametrize("classes", [("A", "B"), ("B", "E", "M", "S"), ("B-X", "O"), ("O",)])
def test_other_labels_are_refused(classes: tuple[str, ...]) -> None:
    assert not Refinement.applies(classes)
    with pytest.raises(
        DataError, match="only labels in BIO with spans of more than one position can be ref"
    ):
        Refinement(classes)
