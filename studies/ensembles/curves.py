"""Tables 6 and 7 in our manner: what the number of experts and the length do.

- *n-best*: the experts are the p best answers of one pronunciation model, ranked, and the target is
  the true pronunciation, of at least 4 phones. As in the paper's speech data, expert 1 dominates.
- *systems*: the p systems that are best on the training part, of the real systems.
- *length*: loss by length of the sample, and the paper's scheme for short samples, which the best
  expert answers alone (section 5.5).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from studies.datasets import load_experts
from studies.ensembles.methods import BEST, PAPER
from studies.ensembles.pronunciation import nbest, sequence_losses
from studies.ensembles.systems import Combination, limited, score_of
from studies.ensembles.tables import Published, command, published
from studies.experiments import Experiment, Records
from studies.folder import Call
from studies.markdown import markdown
from studies.texts import mean_sd
from trellis.experts import BestExpert, WeightedMajority
from trellis.pictures.style import new_figure, save_figure

__all__ = ["CURVES"]

NUMBERS = (5, 10, 20, 50)
SHORTEST = 4
# Of the paper: the training set for each p is 1,500, 1,200, 900 and 700; β = 0.97.
PUBLISHED: dict[str, tuple[Published, ...]] = {
    "MVote": ((0.2465, 0.00248), (0.2606, 0.00320), (0.2773, 0.00139), (0.3217, 0.00375)),
    "FPL": ((0.2500, 0.00248), (0.2622, 0.00316), (0.2797, 0.00154), (0.3189, 0.00344)),
    "CV": ((0.2504, 0.00576), (0.2755, 0.00212), (0.2986, 0.00075), (0.3401, 0.00054)),
    "FPL-CV": ((0.2726, 0.00839), (0.3219, 0.01176), (0.3816, 0.01457), (0.4451, 0.01360)),
    "ESPBoost": ((0.2572, 0.00062), (0.2864, 0.00103), (0.3115, 0.00089), (0.3426, 0.00071)),
    "SLE": ((0.2572, 0.00061), (0.2864, 0.00102), (0.3114, 0.00087), (0.3425, 0.00076)),
    "Rand": ((0.2877, 0.00480), (0.3430, 0.00468), (0.3977, 0.00302), (0.4608, 0.00303)),
    BEST: ((0.2573, 0.00060), (0.2865, 0.00101), (0.3116, 0.00087), (0.3427, 0.00077)),
}

SYSTEM_NUMBERS = {"conll2003": (2, 3, 5, 7, 10, 14), "morphseg-ces": (2, 3, 5, 7, 10, 13)}
CURVE_METHODS = ("best expert", "vote", "MVote by expert", "SLE", "re-ranking")
BINS = {"conll2003": (1, 5, 10, 20, 30, 200), "morphseg-ces": (1, 5, 7, 9, 11, 200)}
"""Samples from one length to below the next."""

SHORT = (0, 4, 8, 12)

# Training words, words, runs of n-best; samples of systems at most, folds.
_SIZES: dict[str, tuple[int, int, int, int | None, int]] = {
    "quick": (150, 60, 2, 200, 2),
    "default": (4000, 1500, 5, None, 5),
    "full": (33_344, 8336, 10, None, 5),
}


def over_nbest(numbers: tuple[int, ...], n_train: int, n_words: int, n_runs: int) -> dict[str, Any]:
    """Hamming losses with the p best answers as experts, for all p on the same words."""
    lists, truth = nbest(n_train, n_words, max(numbers))
    kept = [(a, y) for a, y in zip(lists, truth, strict=True) if len(y) >= SHORTEST]
    gold = [y for _, y in kept]
    result: dict[str, Any] = {"n_words": len(gold), "size": len(gold) // 10}
    for how in ("aligned", "padded"):
        result[how] = {}
        for p in numbers:
            outputs = [[answers[j] for answers, _ in kept] for j in range(p)]
            result[how][str(p)] = sequence_losses(
                outputs, gold, PAPER, how=how, size=len(gold) // 10, n_runs=n_runs, beta=0.97
            )
    return result


def over_systems(name: str, p: int, limit: int | None, n_folds: int) -> dict[str, Any]:
    """Scores by cross-validation with the p systems that are best on the training part."""
    data = limited(load_experts(name), limit)
    whole = Combination(data, n_folds)
    scores: dict[str, Any] = {}
    answers: dict[str, list[list[str]]] = {m: [[]] * len(data) for m in CURVE_METHODS}
    for train, test in whole.folds:
        ranking = BestExpert().fit(whole.said.take(train), [data.gold[i] for i in train]).ranking_
        part = whole.subset(ranking[:p])
        for method in CURVE_METHODS:
            for i, answer in zip(test, part.answers(method, train, test), strict=True):
                answers[method][i] = answer
    for method in CURVE_METHODS:
        scores[method] = score_of(data, answers[method])
    return {"scores": scores}


def over_length(name: str, limit: int | None, n_folds: int) -> dict[str, Any]:
    """Hamming loss of each length, and of MVote with the scheme for short samples."""
    data = limited(load_experts(name), limit)
    combination = Combination(data, n_folds)
    lengths = np.array([len(y) for y in data.gold])
    bins = BINS[name]
    which = np.digitize(lengths, bins[1:-1])
    found: dict[str, Any] = {}
    for method in CURVE_METHODS:
        losses = _losses(data.gold, combination.cross_validated(method))
        found[method] = [
            float(losses[which == b].mean()) if (which == b).any() else None
            for b in range(len(bins) - 1)
        ]
    short = {}
    for n in SHORT:
        answers: list[list[str]] = [[]] * len(data)
        for train, test in combination.folds:
            mvote = WeightedMajority(beta=0.95, tie="expert", short=n or None)
            for i, answer in zip(test, combination.answers(mvote, train, test), strict=True):
                answers[i] = answer
        short[str(n)] = float(_losses(data.gold, answers).mean())
    counts = np.bincount(which, minlength=len(bins) - 1).tolist()
    return {"by length": found, "short": short, "counts": counts}


def _losses(gold: list[list[str]], answers: list[list[str]]) -> Any:
    pairs = zip(gold, answers, strict=True)
    return np.array([np.mean([x != y for x, y in zip(a, g, strict=True)]) for g, a in pairs])


def _numbers(protocol: str) -> tuple[int, ...]:
    return NUMBERS[:2] if protocol == "quick" else NUMBERS


def _system_numbers(protocol: str, name: str) -> tuple[int, ...]:
    numbers = SYSTEM_NUMBERS[name]
    return numbers[1:3] if protocol == "quick" else numbers


def calls(protocol: str) -> list[Call]:
    """All p of the n-best lists at once, then each p and each data set of systems."""
    n_train, n_words, n_runs, limit, n_folds = _SIZES[protocol]
    args = (_numbers(protocol), n_train, n_words, n_runs)
    found = [Call("curves n-best", "n-best", over_nbest, args)]
    for name in SYSTEM_NUMBERS:
        for p in _system_numbers(protocol, name):
            key = f"curves {name} {p}"
            found.append(Call(key, f"{name} p={p}", over_systems, (name, p, limit, n_folds)))
        key = f"curves {name} length"
        found.append(Call(key, f"{name} length", over_length, (name, limit, n_folds)))
    return found


def report(protocol: str, records: Records) -> str:
    """Tables 6 and 7, the curves of the systems, and lengths."""
    n_train, _, n_runs, _, n_folds = _SIZES[protocol]
    record = records["curves n-best"]
    numbers = _numbers(protocol)
    parts = [
        command("curves", protocol),
        "### Over p: the p best answers of one model (Tables 6 and 7)",
        f"Experts are the p best answers of a model trained on {n_train:,} words to "
        f"{record['n_words']:,} words of at least {SHORTEST} phones, the target is the true "
        f"pronunciation; β = 0.97, {n_runs} disjoint training sets of {record['size']}. The "
        "loss is the Hamming loss of padded answers with weights by position, as in the paper, and "
        "of aligned ones. The paper's figures are for speech recognition.",
    ]
    head = ["method"]
    for p in numbers:
        head += [f"p = {p}, published", "padded", "aligned"]
    rows = []
    for method in (*PAPER, BEST):
        row = [method]
        for k, p in enumerate(numbers):
            row.append(published(PUBLISHED[method][k]))
            row += [
                mean_sd([run[0] for run in record[how][str(p)][method]])
                for how in ("padded", "aligned")
            ]
        rows.append(row)
    parts += [markdown(head, rows), _nbest_sentence(numbers, record)]
    for name in SYSTEM_NUMBERS:
        rows = [
            [method]
            + [
                f"{100 * records[f'curves {name} {p}']['scores'][method]:.2f}"
                for p in _system_numbers(protocol, name)
            ]
            for method in CURVE_METHODS
        ]
        score = "F1" if name == "conll2003" else "words right"
        head = [score, *(f"p = {p}" for p in _system_numbers(protocol, name))]
        parts += [
            f"### Over p: the p best systems, {name}",
            f"Chosen and ordered on the training part, {n_folds} folds; equal votes go to the "
            "better one.",
            markdown(head, rows),
        ]
    for name in SYSTEM_NUMBERS:
        parts += [f"### Over length, {name}", *_length_tables(name, records)]
    return "\n\n".join(parts)


def _length_tables(name: str, records: Records) -> list[str]:
    record = records[f"curves {name} length"]
    head = ["Hamming loss"]
    for low, high, count in zip(BINS[name], BINS[name][1:], record["counts"], strict=False):
        span = f"{low}-{high - 1}" if high < 200 else f"{low} and more"
        head.append(f"length {span} ({count:,})")
    rows = [
        [method, *("" if loss is None else f"{loss:.4f}" for loss in record["by length"][method])]
        for method in CURVE_METHODS
    ]
    short = record["short"]
    texts = ", ".join(f"{short[str(n)]:.4f} up to {n}" for n in SHORT if n)
    sentence = (
        f"MVote with the best expert alone for short samples: {texts}; without, {short['0']:.4f}."
    )
    return [markdown(head, rows), sentence]


def _nbest_sentence(numbers: tuple[int, ...], record: dict[str, Any]) -> str:
    texts = []
    for how in ("padded", "aligned"):
        gains = []
        for p in numbers:
            runs = record[how][str(p)]
            ours, best = (float(np.mean([r[0] for r in runs[m]])) for m in ("MVote", BEST))
            gains.append(f"{best - ours:+.4f}")
        texts.append(f"{', '.join(gains)} with {how} answers")
    theirs = []
    for k in range(len(numbers)):
        ours_k, best_k = PUBLISHED["MVote"][k], PUBLISHED[BEST][k]
        assert ours_k is not None
        assert best_k is not None
        theirs.append(f"{best_k[0] - ours_k[0]:+.4f}")
    names = ", ".join(str(p) for p in numbers)
    return (
        f"MVote's gain over the best expert for p = {names}: {'; '.join(texts)}; in the paper "
        f"{', '.join(theirs)}."
    )


def draw(protocol: str, records: Records, path: Path) -> None:
    """Scores over p, gains over length."""
    figure, axes = new_figure(4, columns=2)
    for axis, name in zip(axes, SYSTEM_NUMBERS, strict=False):
        numbers = _system_numbers(protocol, name)
        for method in CURVE_METHODS:
            scores = [100 * records[f"curves {name} {p}"]["scores"][method] for p in numbers]
            axis.plot(numbers, scores, "o-", ms=4, label=method)
        axis.set_title(name)
        axis.set_xlabel("number of systems p, the best first")
        axis.set_ylabel("F1" if name == "conll2003" else "words right, %")
    axes[0].legend()
    for axis, name in zip(axes[2:], SYSTEM_NUMBERS, strict=True):
        found = records[f"curves {name} length"]["by length"]
        places = range(len(BINS[name]) - 1)
        losses = {m: np.array(found[m], np.float64) for m in CURVE_METHODS}  # NaN for None
        for method in CURVE_METHODS:
            gain = losses["best expert"] - losses[method]
            axis.plot(places, gain, "o-", ms=4, label=method)
        axis.set_xticks(places, [f"{low}+" for low in BINS[name][:-1]])
        axis.set_title(name)
        axis.set_xlabel("length of the sample")
        axis.set_ylabel("Hamming loss below the best expert's")
    save_figure(figure, path)


CURVES = Experiment(
    "curves", "Numbers of experts and lengths (Tables 6 and 7)", calls, report,
    ("cmudict", "conll2003_experts", "morphseg2022"), draw,
)  # fmt: skip
