"""Spans and their probabilities: against one sum over the whole sequence for each span."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.corpus.schemes import get_scheme
from trellis.problems.confidence import spans
from trellis.structures import ChainPotentials, event_probability

ALPHABETS = {"BIO": "BI", "BILOU": "BILU", "IOBES": "BIES", "BMES": "BMES"}


def one_by_one(p, classes, rules, labels):
    """(type, start, end, probability) of the spans of one sequence, each by masks of its own."""
    found = []
    written = [classes[j] for j in labels]
    for kind, start, end in rules.spans(written):
        within, n = written[start:end], end - start
        allowed = np.ones(p.node.shape, bool)
        allowed[start:end] = [[name == label for name in classes] for label in within]
        if start > 0:
            allowed[start - 1] = [(kind, 1, n + 1) in rules.spans([m, *within]) for m in classes]
        if end < len(written):
            allowed[end] = [(kind, 0, n) in rules.spans([*within, m]) for m in classes]
        found.append((kind, start, end, float(event_probability(p, allowed)[0])))
    return found


@st.composite
def cases(draw):
    """Scores, labels that may be written alike, and any labelling."""
    name = draw(st.sampled_from(sorted(ALPHABETS)))
    every = ["O", *(x + t for x in ALPHABETS[name] for t in ("", "-X", "-Y"))]
    classes = tuple(draw(st.lists(st.sampled_from(every), min_size=1, max_size=6)))
    lengths = draw(st.lists(st.integers(0, 6), max_size=3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, n_labels = sum(lengths), len(classes)
    node = rng.normal(0, 2, (n, n_labels))
    node[rng.random(node.shape) < draw(st.sampled_from([0, 0.2]))] = -np.inf
    node[~np.isfinite(node).any(axis=1)] = 0.0
    trans = rng.normal(0, 2, (*draw(st.sampled_from([(), (n,)])), n_labels, n_labels))
    p = ChainPotentials(node, trans, np.cumsum([0, *lengths]))
    return p, classes, get_scheme(name), rng.integers(0, n_labels, n)


@given(case=cases())
def test_spans_as_one_by_one(case):
    p, classes, rules, labels = case
    found = spans(p, classes, rules, labels)
    for s, (a, b) in enumerate(itertools.pairwise(p.offsets.tolist())):
        expected = one_by_one(p.alone(s), classes, rules, labels[a:b])
        mine = np.flatnonzero(found.samples == s)
        assert [(classes[labels[found.starts[m]]], found.ends[m] - a) for m in mine] == [
            (classes[labels[a + start]], end) for _, start, end, _ in expected
        ]
        assert (found.starts[mine] - a).tolist() == [start for _, start, _, _ in expected]
        np.testing.assert_allclose(found.chances[mine], [c for *_, c in expected], atol=1e-10)


@given(case=cases())
def test_spans_as_all_labellings_have_them(case):
    p, classes, rules, labels = case
    if not 0 < p.offsets[-1] <= 6 or p.n_samples != 1 or len(classes) > 4:
        return
    written = [classes[j] for j in labels]
    chances, total = dict.fromkeys(rules.spans(written), 0.0), 0.0
    for y in itertools.product(range(len(classes)), repeat=len(labels)):
        score = p.node[np.arange(len(y)), y].sum()
        for t in range(1, len(y)):
            score += (p.trans if p.trans.ndim == 2 else p.trans[t])[y[t - 1], y[t]]
        total += np.exp(score)
        said = [classes[j] for j in y]
        for kind, start, end in set(rules.spans(said)) & chances.keys():
            if said[start:end] == written[start:end]:
                chances[kind, start, end] += np.exp(score)
    found = spans(p, classes, rules, labels)
    expected = [chance / total for _, chance in sorted(chances.items(), key=lambda c: c[0][1])]
    assert found.chances.tolist() == pytest.approx(expected, abs=1e-10)
