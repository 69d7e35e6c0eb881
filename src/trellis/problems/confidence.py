r"""How sure a CRF is of samples, by the probabilities of labellings, positions and spans.

With :math:`p(y \mid x) \propto e^{s(x, y)}` over the labellings that what is known allows, and n
positions, the measures are (larger is surer)

- ``"entropy"``: :math:`-H(y \mid x) / n`, of whole labellings;
- ``"token-entropy"``: :math:`-\tfrac1n \sum_t H(y_t \mid x)`, of the marginals;
- ``"confidence"``: :math:`\tfrac1n \log p(\hat y \mid x)` of the best labelling, so that long
  samples are not asked for just because they are long;
- ``"span"``: the least :math:`\log p` of a span of the best labelling, where the labels follow a
  tag scheme (its labels, and that it goes no further); of a position, where there is no span.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s
from trellis.corpus.schemes import Scheme, detect_scheme, get_scheme
from trellis.errors import DataError
from trellis.problems.label_inference import Batch, LabelInference
from trellis.structures import (
    ChainPotentials,
    entropy,
    event_probability,
    marginals,
)

__all__ = ["PROBABILITIES", "confidence", "span_probabilities"]


PROBABILITIES = ("entropy", "token-entropy", "confidence", "span")
"""Measures that need the probabilities of a CRF."""


def confidence(problem: LabelInference, w: Float64s, measure: str, batch: Batch) -> Float64s:
    """Measure of each sample of a batch: larger is surer.

    Parameters
    ----------
    problem : LabelProblem
        The samples.
    w : float64, shape (D,)
        Weights of a CRF.
    measure : str
        One of ``PROBABILITIES``.
    batch : Batch
        The samples asked for.
    """
    node, pair = problem.scores(w, batch)
    node[~problem.allowed(batch)] = -np.inf
    p = problem.potentials(node, pair, batch)
    lengths = np.maximum(np.diff(batch.offsets), 1)
    if measure == "entropy":
        return -entropy(p) / lengths
    log_z, chances = marginals(p)
    if measure == "token-entropy":
        logs = np.log(chances, out=np.zeros_like(chances), where=chances > 0)
        each = (chances * logs).sum(axis=1)
        return np.bincount(batch.owner, each, len(lengths)) / lengths
    labels, scores, _ = problem.best(node, pair, batch)
    if measure == "confidence":
        sure: Float64s = np.minimum(scores - log_z, 0.0) / lengths
        return sure
    name = detect_scheme(problem.classes)
    if problem.structure != "chain" or name is None:
        raise DataError("the measure 'span' is for chains whose labels follow a tag scheme")
    assert isinstance(p, ChainPotentials)
    rules, result = get_scheme(name), np.zeros(len(lengths))
    for s in range(len(lengths)):
        a, b = int(batch.offsets[s]), int(batch.offsets[s + 1])
        names = [problem.classes[j] for j in labels[a:b]]
        spans = span_probabilities(p.alone(s), problem.classes, rules, names)
        each = chances[np.arange(a, b), labels[a:b]]
        least = min(x for *_, x in spans) if spans else float(each.min(initial=1))
        result[s] = np.log(max(least, 1e-300))
    return result


def span_probabilities(
    alone: ChainPotentials, classes: tuple[str, ...], rules: Scheme, labels: list[str]
) -> list[tuple[str, int, int, float]]:
    """Spans of the labels of a sequence, each with the probability that it is as it is."""
    return [
        (*span, float(event_probability(alone, _span_event(classes, rules, labels, *span))[0]))
        for span in rules.spans(labels)
    ]


def _span_event(
    classes: tuple[str, ...], rules: Scheme, labels: list[str], kind: str, start: int, end: int
) -> NDArray[np.bool_]:
    """Label sets (n, L) of the labellings that have a predicted span as it was predicted."""
    within, n = labels[start:end], end - start
    allowed = np.ones((len(labels), len(classes)), np.bool_)
    allowed[start:end] = [[name == label for name in classes] for label in within]
    if start > 0:
        allowed[start - 1] = [(kind, 1, n + 1) in rules.spans([m, *within]) for m in classes]
    if end < len(labels):
        allowed[end] = [(kind, 0, n) in rules.spans([*within, m]) for m in classes]
    return allowed
