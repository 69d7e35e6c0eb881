"""The report in Markdown, with sentences made from the numbers, and the same numbers as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from studies.structure_regularisation.agreement import agreement_table
from studies.structure_regularisation.companions import gaps
from studies.structure_regularisation.comparison import Verdict, compare
from studies.structure_regularisation.figures import FIGURES
from studies.structure_regularisation.methods import FAMILIES, METHODS, QUESTIONS
from studies.structure_regularisation.protocol import FIXED, Protocol
from studies.structure_regularisation.sentences import (
    choice_sentence,
    companion_sentences,
    convergence_sentence,
    gap_sentence,
    question_sentence,
    sparsity_sentence,
    time_sentence,
    verdict_sentence,
)
from studies.structure_regularisation.study import Outcome, Result, TaskStudy
from studies.structure_regularisation.tables import (
    comparison_table,
    curve_table,
    data_table,
    extensions_table,
    gap_table,
    methods_table,
    published_table,
    rate_table,
    sparsity_table,
    stability_table,
    tuning_table,
)
from studies.structure_regularisation.tasks import TASKS
from studies.texts import bullets
from trellis.files import atomic_write

__all__ = ["write_report"]

Compared = dict[tuple[str, str], list[tuple[TaskStudy, Verdict]]]
"""What was found about each pair of methods, task by task."""


def write_report(outcome: Outcome, folder: Path) -> None:
    """Write ``report.md`` and ``results.json``."""
    verdicts = {
        pair: [(study, compare(study, *pair)) for study in outcome.studies]
        for question in QUESTIONS
        for pair in question.pairs
    }
    with atomic_write(folder / "report.md", binary=False) as file:
        file.write(_report(outcome, verdicts, folder))
    with atomic_write(folder / "results.json", binary=False) as file:
        json.dump(_results(outcome, verdicts), file, indent=1)
        file.write("\n")


# ------------------------------------------------------------------------------- the page


def _report(outcome: Outcome, verdicts: Compared, folder: Path) -> str:
    studies, run = outcome.studies, outcome.run
    protocol = studies[0].protocol
    parts = ["# Structure regularisation: the paper's experiments again", _how(run)]
    parts += ["## Data", data_table(studies), _data_notes(studies)]
    all_verdicts = [v for found in verdicts.values() for _, v in found]
    parts += ["## Does it agree with the paper?", agreement_table(outcome, all_verdicts)]
    parts += ["## Methods against their baselines", _COMPARISON.format(n=len(all_verdicts))]
    for question in QUESTIONS:
        found = [entry for pair in question.pairs for entry in verdicts[pair]]
        found.sort(key=lambda entry: studies.index(entry[0]))  # by task, then as in the question
        parts += [f"### {question.words}", comparison_table(found)]
        parts.append(
            bullets(
                question_sentence(pair, [v for _, v in verdicts[pair]]) for pair in question.pairs
            )
        )
    parts += ["### Pieces against whole sequences, in words"]
    parts.append(
        bullets(
            f"{TASKS[study.task].title}. {verdict_sentence(v, study.metric)} "
            f"{choice_sentence(study, v.method, v.baseline)}"
            for family in FAMILIES
            for study, v in verdicts[family.pieces, family.whole]
        )
    )
    if any(TASKS[study.task].published for study in studies):
        parts += ["## Table 1 of the paper", _TABLE_1, published_table(studies)]
    parts += ["## Curves", _CURVES]
    parts += _pictures(folder, "scores-crf.png", "scores-perceptron.png")
    parts += _pictures(folder, "times-crf.png", "times-perceptron.png")
    for study in studies:
        title = f"{TASKS[study.task].title} ({study.metric})"
        parts += [f"### CRFs on {title}", curve_table(study, "crf")]
        parts += [f"### Perceptrons on {title}", curve_table(study, "perceptron")]
        parts.append(bullets(time_sentence(study.curve(f), str(f)) for f in FAMILIES))
    parts += ["## Baselines and sparsity", _BASELINE]
    for study in studies:
        parts += [f"### Methods on {TASKS[study.task].title}", methods_table(study)]
        parts.append(sparsity_sentence(study))
    parts += ["## Overlap and two models", _EXTENSIONS]
    for study in studies:
        parts += [f"### Settings on {TASKS[study.task].title}", extensions_table(study)]
    parts += ["## Penalties", "### Sparsity against strength", _SPARSITY, sparsity_table(studies)]
    parts += ["### Tuning of WeightReg", _TUNING, tuning_table(studies)]
    parts += ["## Overfitting", _OVERFITTING, *_pictures(folder, "overfitting.png")]
    for study in studies:
        parts += [f"### Losses on {TASKS[study.task].title}", gap_table(study)]
        parts.append(gap_sentence(study))
    stability, rate = (outcome.companions[what] for what in ("stability", "rate"))
    sentences = list(companion_sentences(outcome.companions))
    where = f"{stability['n_sequences']} sequences of {TASKS[stability['task']].title}"
    parts += ["## Stability and rate", *_pictures(folder, "theory.png")]
    parts += [_STABILITY.format(where=where), stability_table(stability["found"]), sentences[0]]
    share = f"{100 * rate['epsilon']:g} %"
    parts += [_RATE.format(where=where, share=share), rate_table(rate["found"]), sentences[1]]
    parts += ["## Protocol", _protocol_notes(protocol), convergence_sentence(studies)]
    return "\n\n".join(parts) + "\n"


def _how(run: dict[str, Any]) -> str:
    name = run["protocol"]["name"]
    flag = {"default": "", "quick": " --quick", "full": " --full"}.get(name, "")
    jobs = run["n_jobs"] or run["n_cores"]
    versions = ", ".join(f"{k} {v}" for k, v in run["versions"].items())
    took = (
        "" if run["seconds"] is None else f"; the last run took {run['seconds'] / 60:.1f} minutes"
    )
    command = f"python -m studies structure-regularisation{flag} --tasks {','.join(run['tasks'])}"
    quick = (
        "\n\n**A quick run on small parts of the data: it shows that everything works. Its scores "
        "mean nothing.**"
        if name == "quick"
        else ""
    )
    return (
        f"```sh\n{command}\n```\n\nMade with {versions} on {run['machine']}, {run['n_cores']} "
        f"cores, {jobs} fits at a time{took}.{quick}"
    )


def _data_notes(studies: Sequence[TaskStudy]) -> str:
    lines = []
    for study in studies:
        task, f = TASKS[study.task], study.facts
        held = "the end of the training data is held out for development" if f["held_out"] else ""
        notes = "; ".join(note for note in (task.difference, held) if note)
        lines.append(f"- {task.title}: {notes}.")
    return "\n".join(lines)


def _pictures(folder: Path, *names: str) -> list[str]:
    return [f"![{FIGURES[name]}]({name})" for name in names if (folder / name).exists()]


def _protocol_notes(protocol: Protocol) -> str:
    crf, perceptron = (FIXED[name] | getattr(protocol, name) for name in ("crf", "perceptron"))
    limits = (
        "all training data"
        if protocol.train_limit is None
        else f"at most {protocol.train_limit:,} training sequences, spread evenly over the data"
    )
    final = (
        "The comparison trains the chosen settings again on all training data, the part held out "
        "for development included."
        if protocol.retrain
        else "The comparison uses the models of the curves."
    )
    return bullets(
        [
            "Rich edges (`rich_edges=True`): every feature is crossed with label pairs. Plain "
            "ones: one weight for each pair.",
            f"CRFs: SGD whose rate falls by a factor of {crf['decay']:g} a pass, until the "
            f"objective improves by less than {crf['tol']:g} a pass (the paper's rule) or "
            f"{crf['max_passes']} passes are made; {protocol.crf_runs} run(s) with different seeds "
            "of those that are compared, one of all others.",
            f"Perceptrons: {perceptron['max_passes']} passes, mean of {protocol.runs} run(s) with "
            "different seeds.",
            f"Curves and choices: {limits}. {final}",
            f"WeightReg: `l2` (the paper's λ/2) among {_list(protocol.l2)}; L1 among "
            f"{_list(protocol.l1)}; group lasso among {_list(protocol.group_lasso)}; all on whole "
            "sequences.",
            "StructReg: `l2` as chosen for WeightReg with the same edges, n′ among "
            f"{_list(protocol.piece_sizes)}.",
            f"Overlap: {_list(protocol.overlaps)}, each with every larger n′, rich edges, `l2` as "
            "chosen for WeightReg.",
            "Two models: WeightReg or StructReg as chosen, with rich edges, beside a CRF without "
            f"edges (n′ = 1, `l2` as chosen for plain edges), strength among "
            f"{_list(protocol.strengths)}.",
            "Trellis default: a CRF of which nothing is set but features and seed.",
            "Times are processor times of the training passes alone, on one core; reading, "
            "feature extraction and the search for a learning rate are not in them.",
        ]
    )


def _list(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


_COMPARISON = (
    "Everything was chosen on development data; only the settings chosen are compared here, and "
    "test data took no part in the choice. A gain is in points of the score; its interval is that "
    "of a paired bootstrap over sequences, with all runs of both methods: it is about other test "
    "sequences, while the spread over seeds is in the tables of methods. The p-value is that of a "
    "paired t-test on the accuracies of sequences, as in the paper, or for F1 that of the "
    "bootstrap; the t-test weighs short sequences as much as long ones, so that the two can "
    "disagree. These are {n} comparisons, and none is corrected for the others. In words, a score "
    "is higher or lower where the interval excludes zero."
)
_TABLE_1 = (
    "The published scores are for the paper's data; only where ours are the same can the numbers "
    "be compared."
)
_CURVES = (
    "As in the paper's Figures 2 and 3, test scores are shown for every n′. They are for looking "
    "at: no choice was made by them, and only the n′ chosen on development data takes part in the "
    "comparison above."
)
_BASELINE = (
    "Each method at the setting chosen on development data. «Development» scores come from the "
    "models of the curves, test scores and times from the models of the comparison."
)
_EXTENSIONS = (
    "All settings tried, models of the curves; «test» is shown as in the curves, no choice was "
    "made by it. The time of two models is that of both."
)
_SPARSITY = (
    "All strengths of the penalties that make weights zero, on whole sequences, models of the "
    "curves; «test» is shown as in the curves, no choice was made by it."
)
_TUNING = "Development scores on whole sequences for each `l2`; the chosen one is bold."
_OVERFITTING = (
    "Losses are mean negative log-likelihoods per position of whole sequences, in nats, of the "
    "CRFs of the curves. The bound of Theorem 4 is many orders of magnitude larger than the gap. "
    "It is scaled to agree with the gap on whole sequences (α = 1): only its shape is compared."
)
_STABILITY = (
    "Stability, on {where}: the change of log p(label | x) when one training sequence is removed, "
    "CRFs trained exactly (without rich edges)."
)
_RATE = (
    "Rate, on {where}: SGD with a fixed learning rate until the gap to the optimum is {share} of "
    "that at the start; for each size the rate with the fewest updates."
)


# ------------------------------------------------------------------------------- as JSON


def _results(outcome: Outcome, verdicts: Compared) -> dict[str, Any]:
    return {
        "run": {k: v for k, v in outcome.run.items() if k not in ("key", "kind")},
        "tasks": {study.task: _task_results(study) for study in outcome.studies},
        "comparison": [
            {"question": question.name} | asdict(v) | {"gain": v.gain}
            for question in QUESTIONS
            for pair in question.pairs
            for _, v in verdicts[pair]
        ],
        "companions": {
            what: {k: v for k, v in record.items() if k not in ("key", "kind")}
            for what, record in outcome.companions.items()
        },
    }


def _task_results(study: TaskStudy) -> dict[str, Any]:
    left_out = ("key", "kind", "lengths", "gold", "curves", "comparison")
    return {
        "data": {k: v for k, v in study.facts.items() if k not in left_out},
        "metric": study.metric,
        "curves": {str(f): [_shortened(result) for result in study.curve(f)] for f in FAMILIES},
        "tried": {m: [_shortened(result) for result in study.tried(m)] for m in METHODS},
        "chosen": {m: study.chosen(m).fit.params for m in METHODS},
        # Without development scores: these models may have been trained on the data held out.
        "final": {
            m: {k: v for k, v in _shortened(study.final(m)).items() if k != "dev"} for m in METHODS
        },
        "gaps": [asdict(g) | {"gap": g.gap} for g in gaps(study)],
    }


def _shortened(result: Result) -> dict[str, Any]:
    numbers = [k for k, v in result.runs[0].items() if isinstance(v, int | float) and k != "run"]
    return {
        "params": result.fit.params,
        "runs": len(result.runs),
        **{name: result.mean(name) for name in numbers},
        "test_sd": result.sd("test"),
    }
