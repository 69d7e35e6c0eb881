"""Does what came out agree with the paper? One row for each of its tables, figures and claims.

A claim about tasks is answered «yes» if it holds on all of them, «no» if on none, else «in part»,
and the tasks are named. A difference of two scores holds if its 95 % interval says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from studies.markdown import markdown
from studies.structure_regularisation.companions import gaps
from studies.structure_regularisation.comparison import Verdict
from studies.structure_regularisation.methods import FAMILIES, Family, family
from studies.structure_regularisation.study import Outcome, TaskStudy
from studies.structure_regularisation.tables import best_runs
from studies.structure_regularisation.tasks import TASKS

__all__ = ["agreement_table"]

_FASTER = 0.95  # of the time of whole sequences; nearer ones are as fast


def agreement_table(outcome: Outcome, verdicts: Sequence[Verdict]) -> str:
    """What the paper says, and whether it was found here."""
    studies = outcome.studies
    rows = []
    published = [study for study in studies if TASKS[study.task].published is not None]
    if published:
        rows.append(["Table 1: scores", _share(published, _reaches, "as high as published")])
    for f in FAMILIES:
        edges = "" if f.edges == "rich" else " (not in the paper)"
        score = _share(studies, _cut(f), "pieces score higher on development data")
        rows.append([f"Figure 2: score against n′, {f}{edges}", score])
        rows.append([f"Figure 3: time against n′, {f}{edges}", _times(studies, f)])
        found = [v for v in verdicts if (v.method, v.baseline) == (f.pieces, f.whole)]
        rows.append([f"Gain of pieces on test data, {f}{edges}", _gain(found)])
    for model in ("crf", "perceptron"):
        pair = (family(model, "rich").pieces, family(model, "plain").whole)
        found = [v for v in verdicts if (v.method, v.baseline) == pair]
        name = model.replace("crf", "CRF")
        asked = f"Gain of rich edges on pieces over plain ones on whole sequences, {name}"
        rows.append([f"{asked} (not in the paper)", _gain(found)])
    smaller = _share(studies, _gap_falls, "the gap is smaller at the smallest n′")
    rows.append(["Theorem 4: overfitting falls with α", smaller])
    rows.append(["Proposition 5: fewer updates with α", _rate(outcome)])
    return markdown(["in the paper", "agrees?"], rows)


def _words(holds: dict[str, bool], what: str) -> str:
    """The answer for a claim that holds, or does not, on each of some tasks."""
    yes = [TASKS[task].title for task, it_does in holds.items() if it_does]
    no = [TASKS[task].title for task, it_does in holds.items() if not it_does]
    if not yes:
        return f"no: {what} on no task"
    if not no:
        return f"yes: {what} on {'every task' if len(yes) > 1 else yes[0]}"
    return f"in part: {what} on {', '.join(yes)}, not on {', '.join(no)}"


def _share(studies: Sequence[TaskStudy], holds: Callable[[TaskStudy], bool], what: str) -> str:
    return _words({study.task: holds(study) for study in studies}, what)


def _reaches(study: TaskStudy) -> bool:
    published = TASKS[study.task].published
    return published is not None and 100 * study.final("StructReg").mean("test") >= published


def _cut(f: Family) -> Callable[[TaskStudy], bool]:
    return lambda study: study.chosen(f.pieces).mean("dev") > study.chosen(f.whole).mean("dev")


def _gain(verdicts: Sequence[Verdict]) -> str:
    lower = [TASKS[v.task].title for v in verdicts if v.outcome == "lower"]
    words = _words({v.task: v.outcome == "higher" for v in verdicts}, "higher")
    return words + (f"; lower on {', '.join(lower)}" if lower else "")


def _times(studies: Sequence[TaskStudy], f: Family) -> str:
    curves = [[result.mean("seconds") for result in study.curve(f)] for study in studies]
    ratios = sorted(seconds[0] / max(seconds[-1], 1e-9) for seconds in curves)
    word = "yes" if ratios[-1] < _FASTER else "no" if ratios[0] >= _FASTER else "in part"
    low, high = f"{ratios[0]:.2f}", f"{ratios[-1]:.2f}"
    times = low if low == high else f"{low} to {high}"
    return f"{word}: the smallest n′ takes {times} times as long as whole sequences"


def _gap_falls(study: TaskStudy) -> bool:
    points = gaps(study)
    return points[-1].gap < points[0].gap


def _rate(outcome: Outcome) -> str:
    runs = best_runs(outcome.companions["rate"]["found"])
    first, last = runs[0], runs[-1]
    if not (first["updates"] and last["updates"]):
        return "not to be told: not every size arrived within the passes allowed"
    word = "yes" if last["updates"] < first["updates"] else "no"
    return f"{word}: {last['updates']:,} updates instead of {first['updates']:,}"
