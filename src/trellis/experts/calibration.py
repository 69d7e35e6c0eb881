r"""Levels of confidence that mean what they say (Platt 1999).

An answer with the raw confidence r is right with the probability

.. math:: p = \sigma(a + b\,\mathrm{logit}(r)),

in which a and b maximise the likelihood of answers that are known to be right or wrong, with a
normal prior around a = 0 and b = 1 (nothing is changed) worth a few answers.

Answers that are label sequences have a level for each position, and another one for each span that
they hold; the two are calibrated apart (:class:`AnswerCalibration`). Of sequences of different
lengths a position is right if it is in the best alignment with the right answer.

References
----------
J. Platt, *Probabilistic outputs for support vector machines*, 1999.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s
from trellis.corpus.schemes import get_scheme
from trellis.errors import CorruptModelError
from trellis.experts.alignment import align
from trellis.files.stored import header_value

__all__ = ["AnswerCalibration", "Calibration", "RawLevels", "Spans", "spans_of"]

Spans = list[tuple[int, int, str, float]]
"""Of a sample: start, end, type and level of each."""
_EMPTY = "\0"  # no word has this letter

_EDGE = 1e-4  # no answer is surer than this
_PRIOR = np.array([1.0, 1.0])


@dataclass(frozen=True)
class Calibration:
    """The two numbers; the default changes nothing.

    Examples
    --------
    >>> import numpy as np
    >>> raw = np.full(1000, 0.9)
    >>> right = np.arange(1000) < 700  # not nine of ten, but seven
    >>> round(float(Calibration.of(raw, right).levels(raw)[0]), 2)
    0.7
    """

    offset: float = 0.0
    slope: float = 1.0

    @classmethod
    def of(cls, raw: NDArray[np.float64], right: NDArray[np.bool_]) -> Calibration:
        """Learn from answers that are known to be right or wrong."""
        if not len(raw):
            return cls()
        inputs = np.stack([np.ones(len(raw)), _logit(raw)], axis=1)
        mean = np.array([0.0, 1.0])
        w = mean.copy()
        target = right.astype(np.float64)

        def loss(w: Float64s) -> float:
            scores = np.where(right, 1.0, -1.0) * (inputs @ w)
            return float(np.logaddexp(0, -scores).sum() + _PRIOR @ (w - mean) ** 2)

        for _ in range(50):  # Newton's method on a convex function of two numbers
            p = 1 / (1 + np.exp(-np.clip(inputs @ w, -30, 30)))
            slope = inputs.T @ (p - target) + 2 * _PRIOR * (w - mean)
            curve = (inputs * (p * (1 - p))[:, None]).T @ inputs + 2 * np.diag(_PRIOR)
            step = np.linalg.solve(curve, slope)
            size = 1.0  # whole steps may go too far where most answers are nearly sure
            while size > 1e-6 and loss(w - size * step) > loss(w) - 1e-4 * size * (slope @ step):
                size /= 2
            w = w - size * step
            if np.abs(step).max() < 1e-10:
                break
        return cls(float(w[0]), float(w[1]))

    def levels(self, raw: NDArray[np.float64]) -> Float64s:
        """Probability that answers with these raw confidences are right."""
        scores = self.offset + self.slope * _logit(raw)
        p: Float64s = 1 / (1 + np.exp(-np.clip(scores, -30, 30)))
        return p

    def levels_of_each(self, raw: Sequence[NDArray[np.float64]]) -> list[Float64s]:
        """The same for the answers of each sample, all at once."""
        if not raw:
            return []
        cuts = np.cumsum([len(one) for one in raw[:-1]])
        return np.split(self.levels(np.concatenate(raw)), cuts)


@dataclass(frozen=True)
class RawLevels:
    """How sure a method says that it is of its answers.

    Attributes
    ----------
    positions : list of float64 arrays, or None
        A level for each position of each answer; None if answers are spans.
    spans : list of lists of (start, end, type, level), or None
        None if answers have no spans.
    """

    positions: list[Float64s] | None
    spans: list[Spans] | None

    @classmethod
    def of(
        cls, combiner: Any, outputs: Any, kind: str, scheme: str | None, answers: Sequence[Any]
    ) -> RawLevels:
        """Ask a fitted combiner, whose answers to these outputs are known already."""
        if kind == "spans":
            return cls(None, combiner.predict_spans(outputs))
        levels = combiner.predict_confidence(outputs)
        if hasattr(combiner, "predict_spans"):
            return cls(levels, combiner.predict_spans(outputs))
        return cls(levels, None if scheme is None else spans_of(answers, levels, scheme))


@dataclass(frozen=True)
class AnswerCalibration:
    """Calibrations of positions and of spans; the default changes nothing.

    Examples
    --------
    >>> import numpy as np
    >>> raw = RawLevels([np.full(2, 0.9)] * 100, None)
    >>> answers, gold = [["a", "b"]] * 100, [["a", "b"]] * 50 + [["a", "c"]] * 50
    >>> learned = AnswerCalibration.of(raw, answers, gold, "labels", None)
    >>> learned.answer_levels(raw)[0].round(2).tolist()
    [0.75, 0.75]
    """

    positions: Calibration = field(default_factory=Calibration)
    spans: Calibration = field(default_factory=Calibration)

    @classmethod
    def of(
        cls,
        raw: RawLevels,
        answers: Sequence[Any],
        gold: Sequence[Any],
        kind: str,
        scheme: str | None,
    ) -> AnswerCalibration:
        """Learn from answers of a kind that had not been learned from."""
        positions = spans = Calibration()
        if raw.positions is not None:
            right = [_right(answer, g, kind) for answer, g in zip(answers, gold, strict=True)]
            positions = Calibration.of(np.concatenate(raw.positions), np.concatenate(right))
        if raw.spans is not None:
            truth = gold
            if kind != "spans":
                assert scheme is not None
                tags = get_scheme(scheme)
                truth = [[(a, b, y) for y, a, b in tags.spans(g)] for g in gold]
            spans = _of_spans(raw.spans, truth)
        return cls(positions, spans)

    def answer_levels(self, raw: RawLevels) -> list[Float64s]:
        """Probability that answers are right, an array a sample: of positions, or of spans."""
        if raw.positions is not None:
            return self.positions.levels_of_each(raw.positions)
        assert raw.spans is not None
        return self.spans.levels_of_each([_levels(found) for found in raw.spans])

    def span_levels(self, spans: Sequence[Spans]) -> list[Spans]:
        """The same spans, with the probability that they are right."""
        sure = self.spans.levels_of_each([_levels(found) for found in spans])
        return [
            [(a, b, y, p) for (a, b, y, _), p in zip(found, levels.tolist(), strict=True)]
            for found, levels in zip(spans, sure, strict=True)
        ]

    def state(self) -> dict[str, list[float]]:
        """For a model file."""
        return {
            "calibration": [self.positions.offset, self.positions.slope],
            "span_calibration": [self.spans.offset, self.spans.slope],
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> AnswerCalibration:
        """Of a model file."""
        return cls(*(_restored(state, name) for name in ("calibration", "span_calibration")))


def spans_of(
    answers: Sequence[Sequence[str]], levels: Sequence[Float64s], scheme: str
) -> list[Spans]:
    """Spans of label sequences; a span is as sure as its least sure position.

    Examples
    --------
    >>> import numpy as np
    >>> spans_of([["B-X", "I-X"]], [np.array([0.9, 0.8])], "BIO")
    [[(0, 2, 'X', 0.8)]]
    """
    tags = get_scheme(scheme)
    return [
        [(a, b, y, float(level[a:b].min())) for y, a, b in tags.spans(answer)]
        for answer, level in zip(answers, levels, strict=True)
    ]


def _levels(spans: Spans) -> Float64s:
    return np.array([level for *_, level in spans], np.float64)


def _of_spans(spans: Sequence[Spans], gold: Sequence[Any]) -> Calibration:
    raw, right = [], []
    for found, truth in zip(spans, gold, strict=True):
        known = {tuple(span[:3]) for span in truth}
        raw += [span[3] for span in found]
        right += [tuple(span[:3]) in known for span in found]
    return Calibration.of(np.array(raw, np.float64), np.array(right, bool))


def _right(answer: Sequence[str], gold: Sequence[str], kind: str) -> NDArray[np.bool_]:
    """Which positions of an answer are right; where lengths differ, in the best alignment."""
    if kind == "labels":
        return np.array([a == g for a, g in zip(answer, gold, strict=True)], bool)
    if not answer:
        return np.zeros(0, bool)
    network, truth = align([[answer]], [gold], epsilon=_EMPTY)
    assert truth is not None
    said = network.lists(network.codes[:, 0])[0]
    return np.array([a == g for a, g in zip(said, truth[0], strict=True) if a != _EMPTY], bool)


def _restored(state: dict[str, Any], name: str) -> Calibration:
    numbers = header_value(state, name, list, items=float)
    if len(numbers) != 2 or not np.isfinite(numbers).all():
        raise CorruptModelError(f"{name} must be two numbers")
    return Calibration(*numbers)


def _logit(raw: NDArray[np.float64]) -> Float64s:
    inside = np.clip(raw, _EDGE, 1 - _EDGE)
    scores: Float64s = np.log(inside) - np.log1p(-inside)
    return scores
