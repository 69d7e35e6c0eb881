"""Compile all kernels ahead, so that no later run pauses for it.

A tiny problem is sent through everything that ends in a kernel, in the array types that real work
uses. The parts share little machine code, so they compile side by side in processes of their own.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable, Sequence

import numpy as np

__all__ = [
    "PARTS",
    "warm_graphs",
    "warm_inference",
    "warm_margin",
    "warm_rich_edges",
    "warm_sparse_edges",
    "warm_training",
    "warm_trees",
    "warmup",
]

_FILE = b"The DT B-NP 1\ncat NN I-NP 2\nsat VB O 3\n\nIt PRP B-NP 1\nran VB O 2\n"
_TEMPLATES = "word[-1..1]; pos[-1] & word; ngrams(word, 2..3); number(n); pos == pos[1]"
_FROM_TEXT = 'cluster(word); variety(word, 1..2); dictionary(word, "a")'
_TEXT = [["The", "cat", "sat"]] * 3  # less often, and words would have no cluster


def warm_training() -> None:
    """Readers, features, both trainers and decoding."""
    from trellis.corpus import read_conll
    from trellis.features.keytable import KeyTable
    from trellis.models import ChainCRF, ChainPerceptron

    KeyTable(1 << 60).code(np.zeros(1, np.int64), grow=True)  # what only large corpora need
    corpus = read_conll(io.BytesIO(_FILE), ["word", "pos", "chunk", "n"], "chunk")
    crf = ChainCRF(_TEMPLATES, piece_size=1.5, max_passes=1).fit(corpus)
    crf.predict(corpus)
    crf.predict(corpus, prune=1)  # what many labels need
    ChainPerceptron(_TEMPLATES, max_passes=1).fit(corpus)
    lists = {"a": ["The cat"]}
    ChainPerceptron(_FROM_TEXT, max_passes=1).fit(corpus, unlabelled=_TEXT, dictionaries=lists)


def warm_inference() -> None:
    """Exact inference on chains, and the exact gradient."""
    from trellis.corpus import as_corpus
    from trellis.decompose import WholeSamples
    from trellis.features import AttributeEncoder
    from trellis.problems import LabelProblem, LogLikelihood, Weights
    from trellis.structures import ChainPotentials, best, entropy, kbest, marginals, sample
    from trellis.structures.windows import window_probabilities

    one, two = np.zeros(1, np.int64), np.arange(2)
    for trans in (np.zeros((2, 2)), np.zeros((3, 2, 2))):
        p = ChainPotentials(np.zeros((3, 2)), trans, np.array([0, 3]))
        for infer in (best, marginals, entropy):
            infer(p)
        kbest(p, 2)
        sample(p, 1, np.random.default_rng(0))
        window_probabilities(p, one, two, one, np.ones((1, 2), np.bool_))
    corpus = as_corpus([[["a"], ["b"]]], [["X", "Y"]])
    assert corpus.labels is not None
    problem = LabelProblem(AttributeEncoder().learn(corpus), corpus.labels, 2)
    pieces = WholeSamples().draw(corpus.offsets, np.random.default_rng(0))
    LogLikelihood(problem).value_and_gradient(Weights.zeros(2, 2), problem.visits(pieces))


# The parts below take features as they are: encoding by templates is compiled by the first.
_X, _Y, _EDGES = [[["a"], ["b"]]], [["X", "Y"]], [[(0, 1)]]
_LOOP = np.array([[0, 1], [1, 2], [2, 0]])


def warm_rich_edges() -> None:
    """Rich edges with all pairs, and the penalties that are not smooth."""
    _rich_edges("all")


def warm_sparse_edges() -> None:
    """Rich edges with few pairs."""
    _rich_edges("observed")


def _rich_edges(pairs: str) -> None:
    from trellis.models import ChainCRF, ChainPerceptron

    for solver in ("sgd", "lbfgs"):
        crf = ChainCRF(
            rich_edges=True, edge_pairs=pairs, l1=1e-3, group_lasso=1e-3, max_passes=1,
            solver=solver,
        )  # fmt: skip
        crf.fit(_X, _Y).predict(_X, constraints=_Y)
    ChainPerceptron(rich_edges=True, edge_pairs=pairs, max_passes=1).fit(_X, _Y)


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
    """Max-margin learning, assignments, ensembles of experts, and distances in regression."""
    from trellis.experts import Aligned, FollowPerturbedLeader, WeightedMajority
    from trellis.models import MaxMargin
    from trellis.regression import CentredDistances, distance_correlation
    from trellis.structures import AssignmentSpace, best_assignment

    space = AssignmentSpace(np.array([[0, -1, -1]], np.int32), np.arange(2), np.arange(2))
    best_assignment(space, [0.0])
    X, y = [[["a"], ["b"], ["c"]]], [["X", "Y", "X"]]
    MaxMargin(solver="bundle", max_passes=1).fit(X, y)
    MaxMargin(solver="sgd", max_passes=1).fit(X, y)
    for structure, edges in (("tree", _LOOP[:2]), ("graph", _LOOP)):
        MaxMargin(structure=structure, max_passes=1).fit(X, y, edges=[edges])
    outputs, gold = [[["A", "B"]], [["B"]]], [["A", "B"]]
    for conversion in ("majority-vote", "cross-validation"):
        for kind in (WeightedMajority, FollowPerturbedLeader):
            Aligned(kind(conversion)).fit(outputs, gold).predict(outputs)
    distance_correlation(np.arange(2.0), np.arange(2.0))
    CentredDistances(np.eye(3)).correlation_squared(np.zeros((1, 3)))


PARTS: tuple[Callable[[], None], ...] = (
    warm_training, warm_rich_edges, warm_sparse_edges, warm_trees, warm_inference, warm_graphs,
    warm_margin,
)  # fmt: skip


def warmup() -> None:
    """Compile every kernel now (minutes the first time on a machine, then seconds).

    Examples
    --------
    >>> from trellis.warmup import warmup
    >>> warmup()
    """
    # Parts in one process share what they have in common, so there is one for each core.
    n = max(1, min(len(PARTS), _cores()))
    shares = [PARTS[k::n] for k in range(n)]
    others = [_start(share) for share in shares[1:]]
    try:
        for part in shares[0]:
            part()
        for process, share in zip(others, shares[1:], strict=True):
            if process is None or process.wait() != 0:  # say, no second process is allowed here
                for part in share:
                    part()
    finally:
        for process in others:
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()


def _cores() -> int:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _start(parts: Sequence[Callable[[], None]]) -> subprocess.Popen[bytes] | None:
    """Run parts in a Python of their own, silently; None if that cannot be started.

    A new program, not a process of :mod:`multiprocessing`: that would run the caller's script once
    more if it has no ``if __name__ == "__main__"``.
    """
    calls = "; ".join(f"w.{part.__name__}()" for part in parts)
    code = f"import sys; sys.path[:] = {sys.path!r}; import {__name__} as w; {calls}"
    quiet = subprocess.DEVNULL
    if not sys.executable:  # Python inside another program
        return None
    try:
        return subprocess.Popen(
            [sys.executable, "-c", code], stdin=quiet, stdout=quiet, stderr=quiet
        )
    except OSError:
        return None
