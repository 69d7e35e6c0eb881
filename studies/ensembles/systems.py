"""Real systems: what can be gained by combining them, and by which method.

Only answers to test samples are there, so weights are learned by cross-validation: the samples are
dealt out to folds, and the answers to a fold are combined by what was learned on the others. Every
method is compared with the system that was best on the training part and with the plain vote, by a
paired bootstrap over samples.

- ``conll2003``: 14 named-entity recognisers; F1 of spans.
- ``morphseg-ces``: 13 segmentations of Czech words, as labels of letters; share of words all right.
- ``morphseg-eng``: 13 canonical segmentations of English words, of different lengths; the same.
"""

from __future__ import annotations

import copy
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from studies.datasets import ExpertData, load_experts
from studies.ensembles.methods import new_method
from studies.ensembles.tables import command, gain_text
from studies.experiments import Experiment, Records
from studies.folder import Call
from studies.markdown import markdown
from trellis.evaluation import (
    normalised_edit_distance,
    paired_bootstrap,
    span_scores,
)
from trellis.experts import ExpertOutputs, align, as_outputs, strip
from trellis.pictures.style import new_figure, save_figure

__all__ = ["SYSTEMS", "Combination", "limited", "score_of"]

Answers = list[list[str]]

SYSTEM_DATA = {
    "conll2003": "named entities, CoNLL-2003 (14 systems)",
    "morphseg-ces": "Czech morphemes (13 systems)",
    "morphseg-eng": "English morphemes, answers of different lengths (13 systems)",
}
BASELINES = ("best expert", "vote")
# Answers of different lengths have too many labels for stacking's CRF.
SLOW = "stacking"
COMMITTEE = ("re-ranking", "SLE", "stacking", "log-linear vote", "MVote by expert")
JOINT = "plurality of methods"
METHODS = (
    *BASELINES, "plurality", "ROVER", "MVote by label", "MVote by expert", "CV", "FPL", "FPL-CV",
    "ESPBoost", "SLE", "log-linear vote", "re-ranking", "re-ranking runs", "stacking", JOINT,
)  # fmt: skip
_QUICK = (*BASELINES, "MVote by expert", "SLE", "re-ranking")

# Samples at most, folds, resamples.
_SIZES: dict[str, tuple[int | None, int, int]] = {
    "quick": (300, 2, 200),
    "default": (4000, 5, 10_000),
    "full": (None, 5, 10_000),
}


class Combination:
    """Systems' answers, ready to be combined: aligned if they differ in length.

    Parameters
    ----------
    data : ExpertData
    n_folds : int
        Samples are dealt out at random, the same for all methods.
    """

    def __init__(self, data: ExpertData, n_folds: int) -> None:
        self.data = data
        self.said: ExpertOutputs
        self._right: Sequence[Sequence[str]]
        if data.aligned:
            self.said, self._right = as_outputs(data.outputs, names=data.names), data.gold
        else:
            # The order of the alignment is that of the file, which knows nothing of the folds.
            said, right = align(data.outputs, data.gold, names=data.names)
            assert right is not None
            self.said, self._right = said, right
        order = np.random.default_rng(0).permutation(len(data))
        folds = np.array_split(order, n_folds)
        self.folds = [
            (np.concatenate([f for i, f in enumerate(folds) if i != k]), test)
            for k, test in enumerate(folds)
        ]
        self._known: dict[str, Answers] = {}

    def subset(self, names: Sequence[str]) -> Combination:
        """Return the same with some systems only."""
        new = copy.copy(self)
        new.said = self.said.subset(names)
        new._known = {}
        return new

    def answers(self, method: Any, train: NDArray[Any], test: NDArray[Any]) -> Answers:
        """Return the answers to some samples of a method that learned from others."""
        if isinstance(method, str):
            method = new_method(method, scheme=self.data.scheme)
        method.fit(self.said.take(train), [self._right[i] for i in train])
        found: Answers = method.predict(self.said.take(test))
        return found if self.data.aligned else strip(found)

    def cross_validated(self, name: str) -> Answers:
        """Return the answers to all samples, each fold's learned from the others."""
        if name in self._known:
            return self._known[name]
        result: Answers = [[] for _ in range(len(self.data))]
        if name == JOINT:
            names = [m for m in COMMITTEE if self.data.aligned or m != SLOW]
            members = [self.cross_validated(member) for member in names]
            result = [_plurality(answers) for answers in zip(*members, strict=True)]
        else:
            for train, test in self.folds:
                for i, answer in zip(test, self.answers(name, train, test), strict=True):
                    result[i] = answer
        self._known[name] = result
        return result


def _plurality(answers: Sequence[list[str]]) -> list[str]:
    """Return the most frequent answer, the first of equals."""
    counts = Counter(map(tuple, answers))
    return max(answers, key=lambda answer: counts[tuple(answer)])


def score_of(data: ExpertData, answers: Answers) -> float:
    """F1 of spans if there is a tag scheme, else the share of samples that are all right."""
    if data.scheme is not None:
        return span_scores(data.gold, answers, data.scheme).f1
    return float(np.mean([a == g for a, g in zip(answers, data.gold, strict=True)]))


def combined(
    name: str, methods: tuple[str, ...], limit: int | None, n_folds: int, n: int
) -> dict[str, Any]:
    """Scores of some methods by cross-validation, and their gains over the two baselines."""
    data = limited(load_experts(name), limit)
    combination = Combination(data, n_folds)
    against = {baseline: combination.cross_validated(baseline) for baseline in BASELINES}
    found: dict[str, Any] = {}
    for method in methods:
        started = time.perf_counter()
        answers = combination.cross_validated(method)
        found[method] = {
            "score": score_of(data, answers),
            "exact": _exact(data.gold, answers),
            "hamming": _hamming(data, answers),
            "seconds": time.perf_counter() - started,
        }
        for baseline in BASELINES:
            found[method][f"over {baseline}"] = _gain(data, answers, against[baseline], n)
    return {"methods": found, "n_samples": len(data)}


def limited(data: ExpertData, limit: int | None) -> ExpertData:
    """Return at most so many samples, evenly spread."""
    if limit is None or limit >= len(data):
        return data
    return data.take(np.linspace(0, len(data) - 1, limit).astype(np.int64))


def _exact(gold: Answers, answers: Answers) -> float:
    return float(np.mean([a == g for a, g in zip(answers, gold, strict=True)]))


def _hamming(data: ExpertData, answers: Answers) -> float:
    """Return the normalised Hamming loss, after alignment where lengths differ."""
    pairs = list(zip(answers, data.gold, strict=True))
    if data.aligned:
        return float(np.mean([np.mean([x != y for x, y in zip(a, g, strict=True)])
                              for a, g in pairs]))  # fmt: skip
    return float(np.mean([0.0 if a == g else normalised_edit_distance(a, g) for a, g in pairs]))


def _gain(data: ExpertData, answers: Answers, against: Answers, n: int) -> dict[str, float]:
    """Difference of the scores with its 95 % interval."""
    if data.scheme is not None:
        found = paired_bootstrap(
            data.gold, answers, against, "f1", scheme=data.scheme, n_resamples=n
        )
    else:  # whole answers: one position that is right or wrong
        mine, theirs = (
            [["right" if a == g else "wrong"] for a, g in zip(said, data.gold, strict=True)]
            for said in (answers, against)
        )
        right = [["right"]] * len(mine)
        found = paired_bootstrap(right, mine, theirs, "accuracy", n_resamples=n)
    assert found.interval is not None
    low, high = found.interval
    return {"gain": found.difference, "low": low, "high": high, "p": found.p_value}


def _key(name: str, methods: tuple[str, ...]) -> str:
    return f"systems {name} {' + '.join(methods)}"


def _data(protocol: str) -> list[str]:
    return list(SYSTEM_DATA)[: 2 if protocol == "quick" else 3]


def _methods(protocol: str, name: str) -> tuple[str, ...]:
    methods = _QUICK if protocol == "quick" else METHODS
    return tuple(m for m in methods if m != SLOW or name != "morphseg-eng")


def _groups(protocol: str, name: str) -> list[tuple[str, ...]]:
    """Methods that are run together, since loading and aligning takes longer than most of them."""
    methods = _methods(protocol, name)
    return [methods[k : k + 4] for k in range(0, len(methods), 4)]


def calls(protocol: str) -> list[Call]:
    """One computation for each data set and group of methods."""
    return [
        Call(_key(name, group), f"{name} {', '.join(group)}", combined,
             (name, group, *_SIZES[protocol]))
        for name in _data(protocol)
        for group in _groups(protocol, name)
    ]  # fmt: skip


def _found(protocol: str, records: Records, name: str) -> dict[str, dict[str, Any]]:
    """What was computed for a data set, by method."""
    parts = [records[_key(name, group)]["methods"] for group in _groups(protocol, name)]
    return {method: record for part in parts for method, record in part.items()}


def report(protocol: str, records: Records) -> str:
    """A table for each data set and what won."""
    _, n_folds, n = _SIZES[protocol]
    parts = [
        f"Weights learned by {n_folds}-fold cross-validation over the samples. Gains are in "
        f"points, with 95 % intervals of a paired bootstrap over samples ({n:,} resamples). The "
        "best system is the one with the lowest Hamming loss on the training part.",
        command("systems", protocol),
    ]
    for name in _data(protocol):
        title = SYSTEM_DATA[name]
        found = _found(protocol, records, name)
        spans = name == "conll2003"
        score = "F1" if spans else "words right"
        rows = []
        for method, r in found.items():
            row = [method, f"{r['hamming']:.4f}"]
            if spans:
                row.append(f"{100 * r['score']:.2f}")
            row.append(f"{100 * r['exact']:.2f}")
            for baseline in BASELINES:
                same = method == baseline
                row.append("" if same else gain_text(r[f"over {baseline}"]))
            rows.append(row)
        loss = "Hamming" if name != "morphseg-eng" else "Hamming, aligned"
        head = ["method", loss, *(["F1"] if spans else [])]
        head += ["sentences right" if spans else "words right"]
        head += [f"{score} over the best system", f"{score} over the vote"]
        n_samples = records[_key(name, _groups(protocol, name)[0])]["n_samples"]
        parts += [f"### {title[0].upper()}{title[1:]}: {n_samples:,} samples"]
        parts += [markdown(head, rows), _winners(found)]
    return "\n\n".join(parts)


def _winners(found: dict[str, dict[str, Any]]) -> str:
    learned = {m: r for m, r in found.items() if m not in BASELINES}
    best = max(learned, key=lambda m: learned[m]["score"])
    sure = [m for m, r in learned.items() if r["over vote"]["low"] > 0]
    over_best = [m for m, r in learned.items() if r["over best expert"]["low"] > 0]
    vote = found["vote"]["over best expert"]
    text = (
        f"The highest score is that of {best} ({100 * learned[best]['score']:.2f}; "
        f"{gain_text(learned[best]['over vote'])} over the vote). "
    )
    text += (
        f"Better than the plain vote with an interval above 0: {', '.join(sure)}. "
        if sure
        else "No interval of a gain over the plain vote lies above 0. "
    )
    text += (
        f"Better than the best system with an interval above 0: {', '.join(over_best)}; "
        if over_best
        else "No interval of a gain over the best system lies above 0; "
    )
    return text + f"the plain vote gains {gain_text(vote)}."


def draw(protocol: str, records: Records, path: Path) -> None:
    """Gains over the plain vote with their intervals."""
    figure, axes = new_figure(len(_data(protocol)))
    methods = [m for m in _methods(protocol, "conll2003") if m != "vote"]
    places = np.arange(len(methods))[::-1]
    for axis, name in zip(axes, _data(protocol), strict=True):
        found = _found(protocol, records, name)
        there = [k for k, m in enumerate(methods) if m in found]
        gains = [found[methods[k]]["over vote"] for k in there]
        middle = np.array([100 * g["gain"] for g in gains])
        low = middle - [100 * g["low"] for g in gains]
        high = [100 * g["high"] for g in gains] - middle
        axis.errorbar(
            middle, places[there], xerr=np.maximum([low, high], 0), fmt="o", ms=4, capsize=2
        )
        axis.axvline(0, color="0.6", lw=1)
        axis.set_yticks(places, methods if axis is axes[0] else [""] * len(methods))
        axis.set_title(name)
        axis.set_xlabel("F1 over the vote" if name == "conll2003" else "words right over the vote")
    save_figure(figure, path)


SYSTEMS = Experiment(
    "systems", "Real systems", calls, report, ("conll2003_experts", "morphseg2022"), draw
)
