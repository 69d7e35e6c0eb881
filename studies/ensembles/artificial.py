"""Tables 1 and 2: artificial experts on sequences of ten letters.

Every method learns from 200 sequences and is judged on all others, ten times with disjoint training
sets. The probabilities printed in the paper cannot give its tables (see
:mod:`trellis.datasets.ads`), so both variants of the data are run. Two hypotheses about cells that
do not agree even so: that the paper learned from about 130 sequences, and, for ADS2, that its
experts each erred in one direction.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from studies.ensembles.methods import BEST, PAPER, hamming_losses
from studies.ensembles.tables import Published, command, published
from studies.experiments import Experiment, Records
from studies.folder import Call
from studies.markdown import markdown
from studies.texts import mean_sd
from trellis.datasets import artificial_experts
from trellis.experts import as_outputs
from trellis.pictures.style import new_figure, save_figure

__all__ = ["ARTIFICIAL"]

SETS = ("ADS1", "ADS2", "ADS3")
VARIANTS = ("as_printed", "as_tabulated")
OTHER_SCALE = ("MVote 1/l", "CV 1/l")
TOLERANCE = 0.005
CLOSE = ("MVote", "CV", "ESPBoost", "Rand")

PUBLISHED: dict[str, dict[str, Published]] = {
    "ADS1": {
        "MVote": (0.0197, 0.00002), "FPL": (0.0228, 0.00947), "CV": (0.0197, 0.00002),
        "FPL-CV": (0.0741, 0.04087), "ESPBoost": (0.0197, 0.00002), "SLE": (0.5641, 0.00044),
        "Rand": (0.1112, 0.0054), BEST: (0.5635, 0.00004),
    },
    "ADS2": {
        "MVote": (0.2172, 0.00983), "FPL": (0.2517, 0.05322), "CV": (0.2385, 0.00002),
        "FPL-CV": (0.4001, 0.00028), "ESPBoost": (0.2267, 0.00834), "SLE": (0.25, 0.05003),
        "Rand": (0.4, 0.00018), BEST: (0.4, None),
    },
    "ADS3": {
        "MVote": (0.1788, 0.00004), "FPL": (0.2189, 0.04097), "CV": (0.1788, 0.00004),
        "FPL-CV": (0.3148, 0.00387), "ESPBoost": (0.1831, 0.0024), "SLE": (0.1954, 0.00185),
        "Rand": (0.3196, 0.00018), BEST: (0.2957, 0.00005),
    },
}  # fmt: skip

# Number of sequences, training set, smaller training set, runs.
_SIZES = {
    "quick": (2000, 200, 130, 2), "default": (40_000, 200, 130, 10), "full": (40_000, 200, 130, 10),
}  # fmt: skip

# Beside the two variants: the hypotheses, (heading, variant, whether the alphabet is a circle,
# whether the training set is the smaller one).
Column = tuple[str, str, bool, bool]
_BOTH: tuple[Column, ...] = (
    ("as printed", "as_printed", False, False),
    ("as tabulated", "as_tabulated", False, False),
)
_SMALLER: Column = ("as tabulated, {} sequences", "as_tabulated", False, True)
COLUMNS: dict[str, tuple[Column, ...]] = {
    "ADS1": (*_BOTH, _SMALLER),
    "ADS2": (
        *_BOTH,
        _SMALLER,
        ("fixed direction", "fixed_direction", False, False),
        ("fixed direction, a circle", "fixed_direction", True, False),
    ),
    "ADS3": (*_BOTH, _SMALLER),
}


def losses(
    name: str, variant: str, n_samples: int, size: int, n_runs: int, cyclic: bool = False
) -> dict[str, Any]:
    """Losses of all methods on one data set, a list over runs for each."""
    outputs, gold = artificial_experts(
        name, n_samples, variant=variant, cyclic=cyclic, random_state=1
    )
    names = (*PAPER, *OTHER_SCALE)
    said = as_outputs(outputs)
    found = hamming_losses(said, gold, names, size=size, n_runs=n_runs, beta=0.95, tie="position")
    return {"losses": found}


def _key(name: str, variant: str, cyclic: bool = False, smaller: bool = False) -> str:
    extra = " circle" * cyclic + " smaller" * smaller
    return f"artificial {name} {variant}{extra}"


def calls(protocol: str) -> list[Call]:
    """One computation for each data set and column."""
    n_samples, size, small, n_runs = _SIZES[protocol]
    return [
        Call(
            _key(name, variant, cyclic, smaller),
            f"{name} {heading.format(small)}",
            losses,
            (name, variant, n_samples, small if smaller else size, n_runs, cyclic),
        )
        for name in SETS
        for heading, variant, cyclic, smaller in COLUMNS[name]
    ]


def report(protocol: str, records: Records) -> str:
    """A table for each data set, and what the paper's claims come to."""
    n_samples, size, small, n_runs = _SIZES[protocol]
    parts = [
        f"Normalised Hamming loss, mean ± standard deviation over {n_runs} disjoint training sets "
        f"of {size} of {n_samples:,} sequences; β = 0.95, δ = 0.05, 100 rounds of SLE. «1/l» are "
        "the same methods with the normalised loss in the exponent of β.",
        command("artificial", protocol),
    ]
    for name in SETS:
        ours = [records[_key(name, *column[1:])]["losses"] for column in COLUMNS[name]]
        rows = [
            [method, published(PUBLISHED[name].get(method)), *(mean_sd(o[method]) for o in ours)]
            for method in (*PAPER, BEST, *OTHER_SCALE)
        ]
        head = [name, "published", *(column[0].format(small) for column in COLUMNS[name])]
        parts.append(markdown(head, rows))
    parts += _claims(records)
    return "\n\n".join(parts)


def _claims(records: Records) -> list[str]:
    sentences = []
    for variant in VARIANTS:
        means = {
            name: {m: float(np.mean(v)) for m, v in records[_key(name, variant)]["losses"].items()}
            for name in SETS
        }
        beaten = [name for name in SETS if means[name]["MVote"] < means[name][BEST]]
        missed = [name for name in SETS if name not in beaten]
        sentences.append(
            f"With the data {variant.replace('_', ' ')}, MVote beats the best expert on "
            + (", ".join(beaten) or "none")
            + (f", but not on {', '.join(missed)}." if missed else ".")
        )
    parts = []
    for method in CLOSE:
        value = PUBLISHED["ADS3"][method]
        assert value is not None
        distance = means["ADS3"][method] - value[0]
        within = "within" if abs(distance) <= TOLERANCE else "NOT within"
        parts.append(f"{method} {distance:+.4f} ({within} ±{TOLERANCE})")
    sentences.append("ADS3 as tabulated, ours minus the published loss: " + ", ".join(parts) + ".")
    return sentences


def draw(protocol: str, records: Records, path: Path) -> None:
    """Our losses beside the published ones."""
    figure, axes = new_figure(len(SETS))
    methods = (*PAPER, BEST)
    places = np.arange(len(methods))
    for axis, name in zip(axes, SETS, strict=True):
        theirs = [(PUBLISHED[name][m] or (0.0, None))[0] for m in methods]
        axis.bar(places - 0.27, theirs, 0.27, label="published", color="0.6")
        for shift, variant, colour in ((0.0, VARIANTS[0], "C1"), (0.27, VARIANTS[1], "C0")):
            found = records[_key(name, variant)]["losses"]
            ours = [np.mean(found[m]) for m in methods]
            spread = [np.std(found[m]) for m in methods]
            label = variant.replace("_", " ")
            axis.bar(places + shift, ours, 0.27, yerr=spread, label=label, color=colour)
        axis.set_xticks(places, methods, rotation=45, ha="right")
        axis.set_title(name)
    axes[0].set_ylabel("normalised Hamming loss")
    axes[1].legend(loc="upper left")
    save_figure(figure, path)


ARTIFICIAL = Experiment(
    "artificial", "Artificial experts (Tables 1 and 2)", calls, report, draw=draw
)
