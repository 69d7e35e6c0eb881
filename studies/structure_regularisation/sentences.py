"""Sentences of the report, made from the numbers: they say what came out, whatever it is."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from studies.structure_regularisation.companions import gaps
from studies.structure_regularisation.comparison import Verdict
from studies.structure_regularisation.methods import COMPARED, FAMILIES
from studies.structure_regularisation.study import Result, TaskStudy
from studies.structure_regularisation.tables import best_runs
from studies.structure_regularisation.tasks import TASKS
from studies.texts import p_text, percent, size_text

__all__ = [
    "choice_sentence",
    "companion_sentences",
    "convergence_sentence",
    "gap_sentence",
    "question_sentence",
    "sparsity_sentence",
    "time_sentence",
    "verdict_sentence",
]

_ALPHA = 0.05
_OUTCOMES = {"higher": "higher", "lower": "lower", "open": "no clear difference"}


def verdict_sentence(v: Verdict, metric: str) -> str:
    """What a comparison says."""
    better = "higher" if v.gain > 0 else "lower" if v.gain < 0 else "the same"
    amount = "" if v.gain == 0 else f" by {100 * abs(v.gain):.2f} points"
    sure = "significant" if v.p_value < _ALPHA else "not significant"
    return (
        f"{v.method} against {v.baseline}: {metric} {percent(v.score)} against "
        f"{percent(v.baseline_score)}, {better}{amount}; the difference is {sure} at 5 % "
        f"({v.test}, {v.n:,} sequences, p {_relation(v.p_value)})."
    )


def _relation(p_value: float) -> str:
    text = p_text(p_value)
    return text if text.startswith("<") else f"= {text}"


def question_sentence(pair: tuple[str, str], verdicts: Sequence[Verdict]) -> str:
    """On which tasks a method is better than a baseline, by the intervals."""
    words = [
        f"{word} on {', '.join(TASKS[v.task].title for v in those)}"
        for outcome, word in (
            ("higher", "higher"),
            ("lower", "lower"),
            ("open", "no clear difference"),
        )
        if (those := [v for v in verdicts if v.outcome == outcome])
    ]
    return f"{pair[0]} against {pair[1]}: {'; '.join(words)}."


def choice_sentence(study: TaskStudy, method: str, baseline: str) -> str:
    """What the development data said about cutting at all."""
    cut, whole = study.chosen(method), study.chosen(baseline)
    size = size_text(cut.fit.params["piece_size"])
    a, b = cut.mean("dev"), whole.mean("dev")
    if a >= b:
        end = f"over whole sequences ({percent(a)} against {percent(b)})"
        return f"On development data n′ = {size} is chosen for {method}, {end}."
    return (
        f"On development data whole sequences score higher ({percent(b)}) than the best "
        f"mini-samples (n′ = {size}, {percent(a)}): a user would not have cut here."
    )


def time_sentence(curve: Sequence[Result], name: str) -> str:
    """Whether training gets faster with smaller pieces."""
    seconds = [result.mean("seconds") for result in curve]
    sizes = [size_text(result.fit.params["piece_size"]) for result in curve]
    steps = sum(a <= b for a, b in pairwise(seconds))
    ratio = seconds[-1] / max(seconds[0], 1e-9)
    speed = (
        f"{ratio:.1f} times as fast as"
        if ratio >= 1
        else f"{1 / max(ratio, 1e-9):.1f} times as long as"
    )
    falls = (
        "it falls with n′ at every step"
        if steps == len(seconds) - 1
        else f"it falls with n′ at {steps} of {len(seconds) - 1} steps"
    )
    return (
        f"{name}: training at n′ = {sizes[0]} takes {seconds[0]:.2f} s, {speed} on whole sequences "
        f"({seconds[-1]:.2f} s); {falls}."
    )


def gap_sentence(study: TaskStudy) -> str:
    """Whether the gap falls with α."""
    points = gaps(study)
    first, last = points[0], points[-1]
    rises = sum(b.gap > a.gap for a, b in pairwise(points))
    word = "smaller" if last.gap < first.gap else "larger"
    low = min(points, key=lambda g: g.test_loss)
    return (
        f"The gap at α = {last.alpha:.1f} ({last.gap:.4f}) is {word} than on whole sequences "
        f"({first.gap:.4f}); it rises at {rises} of {len(points) - 1} steps of growing α. The test "
        f"loss itself is lowest at n′ = {size_text(low.piece_size)} ({low.test_loss:.4f})."
    )


def companion_sentences(companions: dict[str, dict[str, Any]]) -> tuple[str, str]:
    """What stability and rate came to."""
    found = companions["stability"]["found"]
    first, last = found[0], found[-1]
    word = "falls" if last["typical"] < first["typical"] else "rises"
    held = all(s["largest"]["function"] <= s["bound"]["function"] for s in found)
    stability = (
        f"The typical change {word} from {first['typical']:.3g} at α = {first['alpha']:.1f} to "
        f"{last['typical']:.3g} at α = {last['alpha']:.1f}. The bound "
        f"{'holds in every case' if held else 'DOES NOT HOLD'}."
    )
    runs = best_runs(companions["rate"]["found"])
    a, b = runs[0], runs[-1]
    if not (a["updates"] and b["updates"]):
        return stability, "Not every size arrived within the passes allowed."
    factor = a["updates"] / b["updates"]
    change = "fewer" if factor > 1 else "more"
    rate = (
        f"From whole sequences to α = {b['alpha']:.1f} SGD needs {max(factor, 1 / factor):.1f} "
        f"times {change} updates, and {b['passes']} passes instead of {a['passes']}. Proposition 5 "
        f"bounds the number of updates by a term that falls with α² (here a factor of "
        f"{(b['alpha'] / a['alpha']) ** 2:.0f}) if all else is equal."
    )
    return stability, rate


def sparsity_sentence(study: TaskStudy) -> str:
    """What L1 and group lasso cost and bring."""
    l2 = study.final("WeightReg").mean("test")
    words = []
    for method in ("L1", "Group lasso"):
        result = study.final(method)
        run, score = result.runs[0], result.mean("test")
        word = "below" if score < l2 else "above" if score > l2 else "equal to"
        words.append(
            f"{method} leaves {100 * run['zeros']:.1f} % of the weights at exactly zero, drops "
            f"{run['templates_dropped']} of {run['templates']} templates, and scores "
            f"{percent(score)}, {word} WeightReg ({percent(l2)})"
        )
    return "; ".join(words) + "."


def convergence_sentence(studies: Sequence[TaskStudy]) -> str:
    """How many CRFs met the rule of convergence."""
    of_curves = [
        run
        for study in studies
        for family in FAMILIES
        if family.model == "crf"
        for result in study.curve(family)
        for run in result.runs
    ]
    compared = [
        run
        for study in studies
        for method in sorted(COMPARED)
        if (result := study.final(method)).fit.model in ("crf", "two models")
        for run in result.runs
    ]
    n_curves, n_compared = _converged(of_curves), _converged(compared)
    text = (
        f"Of the {len(of_curves)} CRFs of the curves {n_curves} met the rule of 10⁻⁴, of the "
        f"{len(compared)} of the comparison {n_compared}; of two models the complex one counts."
    )
    if n_curves + n_compared == len(of_curves) + len(compared):
        return text
    return (
        f"{text} The others were stopped by the number of passes. Pieces make more steps in a pass "
        "than whole sequences do, so that a part of their gain may be that they are nearer to "
        "convergence, most of all where there are few sequences."
    )


def _converged(runs: Sequence[dict[str, Any]]) -> int:
    """Runs whose objective fell by less than the tolerance, or no longer fell."""
    return sum(run["stopped"] in ("tol", "rising") for run in runs)
