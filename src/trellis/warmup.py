"""Compile kernels ahead, so that no later run pauses for it.

A tiny problem is sent through everything that ends in a kernel, in the array types that real work
uses. What there is to compile is divided into parts that share as little machine code as possible;
they compile side by side, in processes that take the next part when they are done with one.
"""

from __future__ import annotations

import importlib
import io
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from trellis.corpus import Corpus

__all__ = [
    "PARTS",
    "Part",
    "serve",
    "warm_assignments",
    "warm_experts",
    "warm_features",
    "warm_gradient",
    "warm_graphs",
    "warm_inference",
    "warm_many_labels",
    "warm_margin",
    "warm_perceptrons",
    "warm_rich_optimum",
    "warm_text",
    "warm_training",
    "warm_trees",
    "warmup",
]

Part: TypeAlias = Callable[[], None]
"""Work that compiles some kernels; a function of a module, so that other processes find it."""

_FILE = b"The DT B-NP 1\ncat NN I-NP 2\nsat VB O 3\n\nIt PRP B-NP 1\nran VB O 2\n"
_TEMPLATES = "word[-1..1]; pos[-1] & word; ngrams(word, 2..3); number(n); pos == pos[1]"
_FROM_TEXT = 'cluster(word); variety(word, 1..2); dictionary(word, "a")'
_TEXT = [["The", "cat", "sat"]] * 3  # less often, and words would have no cluster


def warm_text() -> None:
    """Readers of files, and features that are found in texts."""
    from trellis.features.encoder import encoder_for, unlabelled_text

    corpus = _read()
    encoder_for(_FROM_TEXT, corpus, unlabelled_text(_TEXT), {"a": ["The cat"]}).learn(corpus)


def warm_features() -> None:
    """Features by templates."""
    from trellis.corpus import as_corpus
    from trellis.features.encoder import encoder_for
    from trellis.features.keytable import KeyTable

    KeyTable(1 << 60).code(np.zeros(1, np.int64), grow=True)  # what only large corpora need
    rows = [[line.split() for line in _FILE.decode().split("\n\n")[0].splitlines()]]
    corpus = as_corpus(rows, columns=["word", "pos", "chunk", "n"])
    encoder_for(_TEMPLATES, corpus, None, None).learn(corpus)


def _read() -> Corpus:
    from trellis.corpus import read_conll

    return read_conll(io.BytesIO(_FILE), ["word", "pos", "chunk", "n"], "chunk")


def warm_inference() -> None:
    """Exact inference on chains."""
    from trellis.structures import ChainPotentials, best, entropy, kbest, marginals, sample

    for trans in (np.zeros((2, 2)), np.zeros((3, 2, 2))):
        p = ChainPotentials(np.zeros((3, 2)), trans, np.array([0, 3]))
        for infer in (best, marginals, entropy):
            infer(p)
        kbest(p, 2)
        sample(p, 1, np.random.default_rng(0))


def warm_gradient() -> None:
    """The exact gradient of CRFs of chains, and steps in twice the precision."""
    from trellis.corpus import as_corpus
    from trellis.decompose import WholeSamples
    from trellis.features import AttributeEncoder
    from trellis.problems import LabelProblem, LogLikelihood, Weights

    corpus = as_corpus(_X, _Y)
    assert corpus.labels is not None
    problem = LabelProblem(AttributeEncoder().learn(corpus), corpus.labels, 2)
    pieces = WholeSamples().draw(corpus.offsets, np.random.default_rng(0))
    LogLikelihood(problem).value_and_gradient(Weights.zeros(2, 2), problem.visits(pieces))
    problem.compatible(np.zeros(problem.n_weights), problem.batch(np.arange(1)))


# The parts below take features as they are: encoding by templates is a part of its own.
_X, _Y, _EDGES = [[["a"], ["b"]]], [["X", "Y"]], [[(0, 1)]]
_LOOP = np.array([[0, 1], [1, 2], [2, 0]])


def warm_training() -> None:
    """CRFs of chains, on pieces: plain and rich edges, which have most of their code in common."""
    from trellis.models import ChainCRF

    for rich in (False, True):
        ChainCRF(rich_edges=rich, edge_pairs="all", piece_size=1.5, max_passes=1).fit(_X, _Y)


def warm_rich_optimum() -> None:
    """Rich edges by batches, in twice the precision, and the penalties that are not smooth."""
    from trellis.models import ChainCRF

    for pairs in ("all", "observed"):
        ChainCRF(
            rich_edges=True, edge_pairs=pairs, l1=1e-3, group_lasso=1e-3, max_passes=1,
            solver="lbfgs",
        ).fit(_X, _Y)  # fmt: skip


def warm_perceptrons() -> None:
    """Perceptrons of chains, and labelling."""
    from trellis.models import ChainPerceptron

    for rich in (False, True):
        ChainPerceptron(rich_edges=rich, edge_pairs="all", max_passes=1).fit(_X, _Y).predict(_X)


def warm_many_labels() -> None:
    """What many labels need: rich edges of some pairs, labels left out, and spans."""
    from trellis.models import ChainCRF, ChainPerceptron
    from trellis.structures import ChainPotentials
    from trellis.structures.windows import window_probabilities

    some: dict[str, Any] = {"rich_edges": True, "edge_pairs": "observed", "max_passes": 1}
    for model in (ChainCRF(l1=1e-3, group_lasso=1e-3, **some), ChainPerceptron(**some)):
        model.fit(_X, _Y).predict(_X, constraints=_Y)
    ChainPerceptron(max_passes=1).fit(_X, _Y).predict(_X, prune=1)
    one, two = np.zeros(1, np.int64), np.arange(2)
    for trans in (np.zeros((2, 2)), np.zeros((3, 2, 2))):
        p = ChainPotentials(np.zeros((3, 2)), trans, np.array([0, 3]))
        window_probabilities(p, one, two, one, np.ones((1, 2), np.bool_))


def warm_trees() -> None:
    """Training on trees, with and without rich edges."""
    from trellis.models import TreeCRF, TreePerceptron

    for rich in (False, True):
        for solver in ("sgd", "lbfgs"):
            TreeCRF(rich_edges=rich, solver=solver, max_passes=1).fit(_X, _Y, edges=_EDGES)
        TreePerceptron(rich_edges=rich, max_passes=1).fit(_X, _Y, edges=_EDGES)
    TreePerceptron("any(children, word)", max_passes=1).fit([["a", "b"]], _Y, edges=_EDGES)


def warm_graphs() -> None:
    """Inference on trees and graphs, and training on pieces with loops."""
    from trellis.models import GraphCRF
    from trellis.structures import GraphPotentials, best, kbest, marginals

    node, pair, offsets = np.zeros((3, 2)), np.zeros((2, 2)), np.array([0, 3])
    path = GraphPotentials(node, pair, _LOOP[:2], offsets)
    marginals(path)
    best(path)
    kbest(path, 2)
    p = GraphPotentials(node, pair, _LOOP, offsets)
    for method in ("dual", "elimination", "max-flow"):
        best(p, method=method)
    best(GraphPotentials(node, 1 - np.eye(2), _LOOP, offsets), method="lp")  # is fractional
    for how in ("bp", "elimination"):
        marginals(p, method=how)
    X, y = [[["a"], ["b"], ["c"]]], [["X", "Y", "X"]]
    for rich in (False, True):
        for solver in ("sgd", "lbfgs"):
            crf = GraphCRF(pieces="graph", rich_edges=rich, solver=solver, max_passes=1)
            crf.fit(X, y, edges=[_LOOP])


def warm_margin() -> None:
    """Max-margin learning."""
    from trellis.models import MaxMargin

    X, y = [[["a"], ["b"], ["c"]]], [["X", "Y", "X"]]
    MaxMargin(solver="bundle", max_passes=1).fit(X, y)
    MaxMargin(solver="sgd", max_passes=1).fit(X, y)
    for structure, edges in (("tree", _LOOP[:2]), ("graph", _LOOP)):
        MaxMargin(structure=structure, max_passes=1).fit(X, y, edges=[edges])


def warm_assignments() -> None:
    """Assignments, which cells are tracked by."""
    from trellis.structures import AssignmentSpace, best_assignment, mean_assignment
    from trellis.tracking.regions import Regions

    space = AssignmentSpace(np.array([[0, -1, -1]], np.int32), np.arange(2), np.arange(2))
    best_assignment(space, [0.0])
    mean_assignment(space)
    mean_assignment(space, None, [0.0])
    for image in (None, np.ones((2, 2))):
        Regions.of(np.eye(2, dtype=np.int64), image).hulls(np.zeros((1, 2), np.int64))


def warm_experts() -> None:
    """Ensembles of experts, and distances in regression."""
    from trellis.evaluation import paired_bootstrap
    from trellis.experts import (
        Aligned,
        AnnotatorModel,
        Consensus,
        FollowPerturbedLeader,
        ForwardStepwise,
        GuardedVote,
        LogLinearVote,
        PathFamily,
        Rerank,
        Rover,
        SpanCombiner,
        WeightedMajority,
        as_outputs,
    )
    from trellis.kernels.votes import stacked_features
    from trellis.regression import GCRF, CentredDistances, distance_correlation

    outputs, gold = [[["A", "B"]], [["B"]]], [["A", "B"]]
    for conversion in ("majority-vote", "cross-validation"):
        for kind in (WeightedMajority, FollowPerturbedLeader):
            Aligned(kind(conversion)).fit(outputs, gold).predict(outputs)
            Aligned(kind(conversion, tie="expert")).fit(outputs, gold).predict(outputs)
    FollowPerturbedLeader(automaton=PathFamily.complete(1)).fit([gold], gold)
    for other in (
        ForwardStepwise(), Rover(), AnnotatorModel(chain=True), GuardedVote(), LogLinearVote(),
        Rerank(),
    ):  # fmt: skip
        Aligned(other).fit([2 * column for column in outputs], 2 * gold).predict(outputs)
    said = as_outputs([[["A", "B"]], [["B", "A"]]])
    LogLinearVote().fit(said, [["A", "B"]]).predict_proba(said)
    for model in ("mace", "dawid-skene"):
        annotators = AnnotatorModel(model).fit(said)
        annotators.answers_without(said)
        annotators.predict(said)
    ids, indptr = np.empty(12, np.int32), np.empty(3, np.int64)
    stacked_features(np.array([0, 2]), np.array(said.codes), 1, 3, indptr, ids)
    paired_bootstrap(2 * gold, 2 * gold, 2 * gold, "accuracy", n_resamples=1)
    tags = [["B-X", "O"]]
    SpanCombiner().fit([tags, [[None, "O"]]], tags).predict([tags, [[None, "O"]]])
    Consensus().fit(outputs).predict(outputs)
    distance_correlation(np.arange(2.0), np.arange(2.0))
    CentredDistances(np.eye(3)).correlation_squared(np.zeros((1, 3)))
    line = np.diag(np.ones(2), 1) + np.diag(np.ones(2), -1)
    GCRF("precomputed").fit(np.zeros(3), [1.0, np.nan, 2.0], graph=line)


PARTS: tuple[Part, ...] = (
    warm_trees, warm_graphs, warm_training, warm_rich_optimum, warm_inference, warm_margin,
    warm_gradient, warm_perceptrons, warm_assignments, warm_experts, warm_features,
    warm_many_labels, warm_text,
)  # fmt: skip
"""All parts: those that take the longest first, and at the end those that build on others."""


def warmup(parts: Sequence[Part] = PARTS) -> None:
    """Compile kernels now, on all cores (a minute or two the first time, then seconds).

    Parameters
    ----------
    parts : sequence of functions
        Those of this module whose kernels are wanted.

    Examples
    --------
    >>> from trellis.warmup import warm_experts, warmup
    >>> warmup([warm_experts])
    """
    # Those that take long first: then the processes come to their ends at about the same time.
    left = deque(sorted(parts, key=lambda part: PARTS.index(part) if part in PARTS else -1))
    failed: list[Part] = []
    others = [_start() for _ in range(min(len(left), _cores()) - 1)]
    started = [process for process in others if process is not None]
    threads = [
        threading.Thread(target=_hand_out, args=(left, process, failed), daemon=True)
        for process in started
    ]
    part = _next(left)
    try:
        for thread in threads:
            thread.start()
        while part is not None:
            part()
            part = _next(left)
        for thread in threads:
            thread.join()
        for part in failed:  # say, no second process is allowed to do that here
            part()
    finally:
        for process in started:
            process.kill()
            process.wait()


def _next(left: deque[Part]) -> Part | None:
    """Take the next part that no process has taken; None if there is none any more."""
    try:
        return left.popleft()
    except IndexError:
        return None


def _cores() -> int:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _start() -> subprocess.Popen[str] | None:
    """Start a Python that does the parts it is told, silently; None if that is not possible.

    A new program, not a process of :mod:`multiprocessing`: that would run the caller's script once
    more if it has no ``if __name__ == "__main__"``.
    """
    code = f"import sys; sys.path[:] = {sys.path!r}; import {__name__} as w; w.serve()"
    if not sys.executable:  # Python inside another program
        return None
    pipe, quiet = subprocess.PIPE, subprocess.DEVNULL
    try:
        return subprocess.Popen(
            [sys.executable, "-c", code], stdin=pipe, stdout=pipe, stderr=quiet, text=True
        )
    except OSError:
        return None


def serve() -> None:
    """Do the parts named on the standard input, a line each, and answer each by a line."""
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        module, name = line.split()
        getattr(importlib.import_module(module), name)()
        print("done", file=answers, flush=True)


def _hand_out(left: deque[Part], process: subprocess.Popen[str], failed: list[Part]) -> None:
    """Tell a process one part after the other, until none is left or the process has ended."""
    assert process.stdin is not None and process.stdout is not None
    while (part := _next(left)) is not None:
        try:
            process.stdin.write(f"{part.__module__} {part.__name__}\n")
            process.stdin.flush()
            done = process.stdout.readline()
        except OSError:
            done = ""
        if not done:
            failed.append(part)
            return
    with suppress(OSError):
        process.stdin.close()
    process.wait()
