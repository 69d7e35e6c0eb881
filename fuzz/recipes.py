"""Right arguments for every public call, small and fast, and what is done with what comes of it.

A recipe names the public names that it calls. Names that no recipe calls stand in
:data:`EXCEPTIONS`, with the reason; a test compares both with what the packages export.
"""

from __future__ import annotations

import copy
import functools
import importlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trellis.errors import DataError

__all__ = ["EXCEPTIONS", "IN_PLACE", "PACKAGES", "PATHS", "RECIPES", "WORK", "Recipe"]

PACKAGES = (
    "arrays", "cheap", "corpus", "corpus.schemes", "decompose", "evaluation", "experts", "features",
    "problems", "regression", "solvers", "structures", "theory", "tracking",
)  # fmt: skip
"""The packages whose names are attacked."""

IN_PLACE = frozenset({"state", "gamma", "fired"})
"""Arguments that are written into, so that no other array can stand for them."""

PATHS = frozenset({"path", "source", "sources", "folder"})
"""Arguments that name files."""

WORK = frozenset({
    "bounds", "cv", "folds", "gap_every", "knots", "length", "max_iter", "max_iterations",
    "max_leaf_nodes", "max_passes", "max_rounds", "max_steps", "max_swaps", "memory",
    "n_components", "n_domains", "n_estimators", "n_exchanges", "n_features", "n_jobs",
    "n_labels", "n_probes", "n_projections", "n_resamples", "n_rounds", "n_samples", "n_trees",
    "n_types", "n_weights", "passes", "repetitions", "rounds", "window",
})  # fmt: skip
"""Arguments that say how much is to be done or held: a large number is a wish, no attack."""

_RECORD = "a record of results: what it is given is not looked at"
_PROTOCOL = "a protocol: there is nothing to call"
_VALUE = "a constant"
_TYPE = "a type for annotations"
_FILES = "reads and writes files, which have attacks of their own"

EXCEPTIONS = {
    **{f"arrays.{n}": _TYPE for n in ("Array", "Bools", "Float64s", "Int8s", "Int32s", "Int64s")},
    **{
        f"arrays.{n}": "the checks themselves: all else goes through them"
        for n in (
            "as_array",
            "as_list",
            "as_offsets",
            "check_in_place",
            "for_kernels",
            "held",
            "known",
            "memory_for",
        )
    },
    "arrays.OwnMemory": "a way to be unpickled, not called",
    "cheap.STRATEGIES": _VALUE,
    "cheap.TRANSFER_STRATEGIES": _VALUE,
    "cheap.TransferChoice": _RECORD,
    "cheap.TransferTrial": _RECORD,
    "cheap.Entry": _RECORD,
    "cheap.Part": _RECORD,
    "corpus.Label": _TYPE,
    "corpus.schemes.SCHEME": _VALUE,
    "corpus.schemes.Span": _TYPE,
    **{
        f"corpus.{kind}_{name}": _FILES
        for kind in ("read", "write")
        for name in ("conll", "conllu", "crfsuite", "csv", "graphs", "jsonl", "segmented")
        if (kind, name) not in (("write", "segmented"), ("write", "csv"))
    },
    "decompose.VISITS": _VALUE,
    "decompose.Partitioner": _PROTOCOL,
    **{
        f"evaluation.{n}": _RECORD
        for n in (
            "Calibration",
            "Comparison",
            "Confusion",
            "PrecisionRecallCurve",
            "Scorer",
            "SegmentationScores",
            "SpanScores",
        )
    },
    "experts.Answers": _FILES,
    "experts.Doubt": _RECORD,
    "experts.Guarantee": _RECORD,
    "experts.SpanOutputs": "made and checked by as_span_outputs, which is attacked",
    "experts.read_answers": _FILES,
    "features.Encoder": "a base class: its two kinds are attacked",
    "features.named_sets": "takes nothing",
    "features.read_crfpp": _FILES,
    "problems.Learnable": _PROTOCOL,
    "problems.Maxima": _PROTOCOL,
    "problems.PARTIAL_LOSSES": _VALUE,
    "problems.Problem": _PROTOCOL,
    "regression.Evaluation": _RECORD,
    "regression.Swap": _RECORD,
    "regression.Variogram": _RECORD,
    **{
        f"solvers.{n}": _RECORD
        for n in (
            "BundleResult",
            "CCCPRecord",
            "PassRecord",
            "Progress",
            "SimplexSolution",
            "Solution",
            "Tangent",
            "Watch",
        )
    },
    "solvers.Surrogate": _PROTOCOL,
    "structures.Assignment": _RECORD,
    "structures.Factored": _RECORD,
    **{f"structures.{n}": _FILES for n in ("read_uai", "write_mpe", "write_uai")},
    "structures.Best": _RECORD,
    "theory.MutualStability": _RECORD,
    "theory.Stability": _RECORD,
    "theory.VARIANTS": _VALUE,
    "tracking.EVENTS": _VALUE,
    **{
        f"tracking.{n}": _RECORD
        for n in (
            "CTCScores",
            "EventKey",
            "Link",
            "LinkChance",
            "LinkScores",
            "Relations",
            "Track",
            "TrackEvent",
            "TrackedObject",
        )
    },
    **{
        f"tracking.{n}": _FILES
        for n in (
            "read_ctc",
            "read_detections",
            "read_label_images",
            "write_geff",
            "write_trackmate",
        )
    },
}
"""Public names that are not attacked here, and why."""

Touch = Callable[[Any], None]


@dataclass(frozen=True)
class Recipe:
    """A public call with arguments that are right.

    Parameters
    ----------
    names : tuple of str
        The public names that it calls, without «trellis.».
    arguments : function
        Makes the arguments, anew each time.
    run : function
        Takes a function to be told of every object that was made, and the arguments; returns what
        came of it, in a form that can be compared.
    call : function or None
        What takes just these arguments, if it is one call.
    often : float
        How often it is chosen, beside others; less if it is slow.
    """

    names: tuple[str, ...]
    arguments: Callable[[], dict[str, Any]]
    run: Callable[..., Any]
    call: Callable[..., Any] | None = None
    often: float = 1.0

    @property
    def name(self) -> str:
        """The first of the names."""
        return self.names[0]


RECIPES: list[Recipe] = []


def _public(name: str) -> Any:
    package, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(f"trellis.{package}"), attribute)


def _fresh(values: dict[str, Any]) -> dict[str, Any]:
    # Functions make what cannot be copied (streams, generators), or depends on what is slow.
    return {k: v() if isinstance(v, _Lazy) else copy.deepcopy(v) for k, v in values.items()}


class _Lazy:
    """An argument that is made when it is needed."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make

    def __call__(self) -> Any:
        return self.make()


def _call(
    name: str, /, use: Callable[[Any], Any] | None = None, often: float = 1.0, **values: Any
) -> None:
    """Add a recipe of one call; ``use`` makes of its result what is compared."""

    def call(**arguments: Any) -> Any:
        return _public(name)(**arguments)

    def run(touch: Touch, **arguments: Any) -> Any:
        result = call(**arguments)
        touch(result)
        return result if use is None else use(result)

    RECIPES.append(Recipe((name,), lambda: _fresh(values), run, call, often))


def _steps(*names: str, often: float = 1.0, **values: Any) -> Callable[[Any], Any]:
    """Add a recipe of several calls: the function below it."""

    def add(run: Callable[..., Any]) -> Callable[..., Any]:
        RECIPES.append(Recipe(names, lambda: _fresh(values), run, None, often))
        return run

    return add


def _rng() -> np.random.Generator:
    return np.random.default_rng(7)


_RNG = _Lazy(_rng)

# ------------------------------------------------------------------------- structures

_OFFSETS = np.array([0, 3, 5, 6])
_NODE = np.array([[0.5, -1.0], [0.25, 0.0], [2.0, 1.0], [0.0, 0.125], [1.0, -0.5], [0.0, 0.75]])
_PAIR = np.array([[0.5, -0.25], [0.0, 1.0]])
_PATHS = np.array([[0, 1], [2, 1], [3, 4]])
_LOOPS = np.array([[0, 1], [1, 2], [2, 0], [3, 4]])
_ALLOWED = np.array([[1, 1], [1, 0], [1, 1], [0, 1], [1, 1], [1, 1]], bool)


def _inference(touch: Touch, p: Any, **o: Any) -> Any:
    from trellis import structures as st

    touch(p)
    known = st.marginals(p, pairs=True)
    touch(known)
    return [
        st.best(p, budget=o["budget"], exact=o["exact"]),
        st.kbest(p, o["k"]),
        known,
        st.most_probable(p, budget=o["budget"]),
        st.labelling_score(p, o["labels"]),
        st.sample(p, o["n_samples"], o["rng"]),
        st.sample(p, 2, np.random.default_rng(0), method="auto", budget=1, sweeps=2),
        st.entropy(p, known),
        st.event_probability(p, o["allowed"]),
        st.log_event_probability(p, o["allowed"]),
        st.best(p.constrained(o["allowed"])),
        st.best(p.with_costs(o["costs"])),
        p.alone(0),
    ]


_QUESTIONS = ("best", "kbest", "marginals", "most_probable", "labelling_score", "sample", "entropy",
              "event_probability", "log_event_probability", "Marginals")  # fmt: skip
_ASKED: dict[str, Any] = {
    "offsets": _OFFSETS, "budget": 1000, "exact": False, "k": 3,
    "labels": np.array([0, 1, 1, 0, 0, 1]),
    "n_samples": 2, "rng": _RNG, "allowed": _ALLOWED, "costs": np.ones((6, 2)), "node": _NODE,
}  # fmt: skip


@_steps(
    "structures.ChainPotentials", *(f"structures.{q}" for q in _QUESTIONS),
    trans=_PAIR, **_ASKED, often=3,
)  # fmt: skip
def _chains(touch: Touch, node: Any, trans: Any, offsets: Any, **o: Any) -> Any:
    from trellis.structures import ChainPotentials

    return _inference(touch, ChainPotentials(node, trans, offsets), **o)


@_steps(
    "structures.StepChanges", ptr=np.array([0, 0, 2, 3, 3, 4, 4]), source=np.array([0, 1, 1, 0]),
    target=np.array([1, 0, 1, 1]), score=np.array([1.5, -np.inf, -3.0, 0.25]), often=3, **_ASKED,
)  # fmt: skip
def _changed_chains(
    touch: Touch, ptr: Any, source: Any, target: Any, score: Any, node: Any, offsets: Any, **o: Any
) -> Any:
    from trellis.structures import ChainPotentials, StepChanges

    changes = StepChanges(ptr, source, target, score)
    return _inference(touch, ChainPotentials(node, _PAIR, offsets, changes), **o)


@_steps(
    "structures.GraphPotentials", *(f"structures.{q}" for q in _QUESTIONS),
    "structures.elimination_cost", pair=_PAIR, edges=_LOOPS, types=None, directed=True, **_ASKED,
    often=3,
)  # fmt: skip
def _graphs(
    touch: Touch,
    node: Any,
    pair: Any,
    edges: Any,
    offsets: Any,
    types: Any,
    directed: Any,
    **o: Any,
) -> Any:
    from trellis.structures import GraphPotentials, elimination_cost

    p = GraphPotentials(node, pair, edges, offsets, types, directed)
    return [_inference(touch, p, **o), elimination_cost(p)]


@_steps(
    "structures.GraphPotentials", *(f"structures.{q}" for q in _QUESTIONS),
    pair=np.stack([_PAIR, -_PAIR]), edges=_PATHS, types=np.array([0, 1, 1]), directed=True,
    **_ASKED, often=2,
)  # fmt: skip
def _trees(
    touch: Touch,
    node: Any,
    pair: Any,
    edges: Any,
    offsets: Any,
    types: Any,
    directed: Any,
    **o: Any,
) -> Any:
    from trellis.structures import GraphPotentials

    return _inference(touch, GraphPotentials(node, pair, edges, offsets, types, directed), **o)


@_steps(
    "structures.with_factors", nodes=np.array([0, 1, 2]), table=np.zeros((2, 2, 2)), more=[3],
    scores=np.array([0.5, -np.inf]), budget=1000, labels=np.zeros(5, int), often=0.7,
)  # fmt: skip
def _factors(
    touch: Touch, nodes: Any, table: Any, more: Any, scores: Any, budget: Any, labels: Any
) -> Any:
    from trellis import structures as st

    edges, offsets = np.array([[0, 1], [3, 4]]), np.array([0, 3, 5])
    p = st.GraphPotentials(np.zeros((5, 2)), np.eye(2), edges, offsets)
    q = st.with_factors(p, [(nodes, table), (more, scores)], budget=budget)
    found = st.best(q.potentials)
    return [q.labels(found.labels), q.completed(labels), st.labelling_score(q.potentials, found[0])]


@_steps(
    "structures.best", "structures.marginals", method="dual", other="bp", budget=1000,
    max_iterations=20, rounds=20, time_limit=5.0, mip_gap=0.0, damping=0.2, tolerance=1e-6,
    pairs=True, exact=False, node=_NODE, often=0.7,
)  # fmt: skip
def _methods(
    touch: Touch, node: Any, method: Any, other: Any, budget: Any, max_iterations: Any,
    rounds: Any, time_limit: Any, mip_gap: Any, damping: Any, tolerance: Any, pairs: Any,
    exact: Any,
) -> Any:  # fmt: skip
    from trellis import structures as st

    p = st.GraphPotentials(node, _PAIR, _LOOPS, _OFFSETS)
    return [
        st.best(p, method=method, exact=exact, budget=budget, max_iterations=max_iterations,
                rounds=rounds, time_limit=time_limit, mip_gap=mip_gap),
        st.marginals(p, pairs=pairs, method=other, budget=budget, max_iterations=max_iterations,
                     damping=damping, tolerance=tolerance),
        st.best(p, method="lp"), st.best(p, method="max-flow") if method == "max-flow" else None,
    ]  # fmt: skip


@_steps("structures.span_probability", sample=0, start=1, labels=np.array([0, 1]),
        not_followed_by=np.array([0]), node=_NODE)  # fmt: skip
def _span(touch: Touch, node: Any, **arguments: Any) -> Any:
    from trellis.structures import ChainPotentials, span_probability

    return span_probability(ChainPotentials(node, _PAIR, _OFFSETS), **arguments)


@_steps("structures.Forest", "structures.is_forest", bounds=_OFFSETS, edges=_PATHS)
def _forest(touch: Touch, bounds: Any, edges: Any) -> Any:
    from trellis.structures import Forest, is_forest

    return [is_forest(bounds, edges), Forest.of(bounds, edges)]


_FOREST: dict[str, Any] = {
    "order": np.array([0, 1, 2, 3, 4, 5]), "parent": np.array([-1, 0, 1, -1, 3, -1]),
    "edge": np.array([-1, 0, 1, -1, 2, -1]), "down": np.array([0, 1, 0, 0, 1, 0], bool),
    "tree": np.array([0, 3, 5, 6]),
}  # fmt: skip
_SPACE: dict[str, Any] = {
    "covers": np.array([[0, 1, -1], [0, -1, -1], [1, -1, -1], [2, 3, 4], [2, -1, -1], [3, -1, -1],
                        [4, -1, -1]]),
    "offsets": np.array([0, 3, 7]), "row_offsets": np.array([0, 2, 5]),
}  # fmt: skip


@_steps(
    *(f"structures.{n}" for n in (
        "AssignmentSpace", "best_assignment", "second_best_assignment", "kbest_assignments",
        "best_incompatible_assignment", "mean_assignment", "MeanAssignment")),
    **_SPACE, scores=np.array([1.0, 0.0, 0.5, 2.0, 0.0, -1.0, 0.25]),
    fixed=np.array([-1, -1, -1, 1, 0, 0, -1]), k=3, diversity=None, exact=True, method="auto",
    often=3,
)  # fmt: skip
def _assignments(
    touch: Touch, covers: Any, offsets: Any, row_offsets: Any, scores: Any, fixed: Any, k: Any,
    diversity: Any, exact: Any, method: Any,
) -> Any:  # fmt: skip
    from trellis import structures as st

    space = st.AssignmentSpace(covers, offsets, row_offsets)
    touch(space)
    return [
        st.best_assignment(space, scores, fixed=fixed, exact=exact, method=method),
        st.second_best_assignment(space, scores),
        # Diverse ones are as many as are asked for.
        st.kbest_assignments(space, scores, k if diversity is None else 2, fixed=fixed,
                             diversity=0.0 if diversity is None else diversity, exact=exact),
        st.best_incompatible_assignment(space, scores, fixed),
        st.mean_assignment(space, fixed),
    ]  # fmt: skip


# ------------------------------------------------------------------------- decompose


def _drawn(touch: Touch, made: Any, bounds: Any, rng: Any, visit: Any) -> Any:
    from trellis.decompose import visits

    touch(made)
    pieces = made.draw(bounds, rng)
    touch(pieces)
    return [pieces, visits(pieces, rng, visit)]


@_steps("decompose.ChainPieces", "decompose.visits", "decompose.Pieces", piece_size=1.5, overlap=0,
        bounds=_OFFSETS, rng=_RNG, visit="pooled")  # fmt: skip
def _chain_pieces(touch: Touch, piece_size: Any, overlap: Any, **o: Any) -> Any:
    from trellis.decompose import ChainPieces

    return _drawn(touch, ChainPieces(piece_size, overlap), **o)


@_steps("decompose.partitioner", piece_size=None, overlap=0, bounds=_OFFSETS, rng=_RNG,
        visit="permutation")  # fmt: skip
def _partitioner(touch: Touch, piece_size: Any, overlap: Any, **o: Any) -> Any:
    from trellis.decompose import partitioner

    return _drawn(touch, partitioner(piece_size, overlap), **o)


@_steps("decompose.WholeSamples", bounds=_OFFSETS, rng=_RNG, visit="replacement")
def _whole_samples(touch: Touch, **o: Any) -> Any:
    from trellis.decompose import WholeSamples

    return _drawn(touch, WholeSamples(), **o)


@_steps("decompose.GraphPieces", "decompose.Pieces", edges=_LOOPS, piece_size=2.0, pieces="tree",
        bounds=_OFFSETS, rng=_RNG, visit="pooled", often=2)  # fmt: skip
def _graph_pieces(touch: Touch, edges: Any, piece_size: Any, pieces: Any, **o: Any) -> Any:
    from trellis.decompose import GraphPieces

    made = GraphPieces(edges, piece_size, pieces)
    first = _drawn(touch, made, **o)
    return [first, _drawn(touch, made, **o)]


_call("decompose.cut", offsets=_OFFSETS, edges=_LOOPS, piece=np.array([1, 1, 0, 2, 2, 3]))

# ------------------------------------------------------------------------- features and problems

_ENCODED: dict[str, Any] = {
    "indptr": np.array([0, 2, 3, 5, 6, 8, 9]),
    "indices": np.array([0, 1, 2, 0, 3, 1, 2, 3, 0], np.int32),
    "values": np.array([1.0, 0.5, 2.0, 1.0, 1.0, -1.0, 0.25, 1.0, 1.0], np.float32),
}
_LABELS: dict[str, Any] = {
    "ids": np.array([0, 1, 1, 0, 0, 1], np.int32),
    "table": np.array([[1, 0], [0, 1], [1, 1]], bool), "classes": ("A", "B"),
}  # fmt: skip
_GIVEN: dict[str, Any] = {**_ENCODED, **_LABELS, "offsets": _OFFSETS, "n_features": 4}


@_steps("features.Encoded", offsets=_OFFSETS, **_ENCODED)
def _encoded(touch: Touch, **arrays: Any) -> Any:
    from trellis.features import Encoded

    encoded = Encoded(**arrays)
    touch(encoded)
    return [encoded, encoded.nbytes]


def _problem(
    touch: Touch, offsets: Any, indptr: Any, indices: Any, values: Any, ids: Any, table: Any,
    classes: Any, n_features: Any, **more: Any,
) -> Any:  # fmt: skip
    from trellis.corpus import Labels
    from trellis.features import Encoded
    from trellis.problems import LabelProblem

    encoded = Encoded(offsets, indptr, indices, values)
    touch(encoded)
    labels = Labels.from_table(ids, table, classes)
    touch(labels)
    problem = LabelProblem(encoded, labels, n_features, **more)
    touch(problem)
    return problem


def _visits(touch: Touch, problem: Any, piece_size: Any = 2.0) -> Any:
    from trellis.decompose import ChainPieces, GraphPieces

    made: Any = ChainPieces(piece_size)
    if problem.structure != "chain":
        made = GraphPieces(problem.edges, piece_size)
    pieces = made.draw(problem.offsets, _rng())
    touch(pieces)
    return problem.visits(pieces)


@_steps(
    *(f"problems.{n}" for n in (
        "LabelProblem", "LogLikelihood", "PerceptronLoss", "HingeLoss", "HingeSteps", "Weights",
        "PartialObjective", "LogObjective", "HingeDual")),
    **_GIVEN, sample_weight=np.array([1.0, 2.0, 0.5]), w=np.linspace(-1, 1, 12), cost="hamming",
    state=np.array([1.0, 0.0]), samples=np.array([0, 2]), batch_size=1, rate=0.5, n_jobs=1,
    often=4,
)  # fmt: skip
def _chain_losses(
    touch: Touch, w: Any, state: Any, samples: Any, batch_size: Any, rate: Any, n_jobs: Any,
    **given: Any,
) -> Any:  # fmt: skip
    from trellis import problems as pr

    problem = _problem(touch, **given)
    visits = _visits(touch, problem)
    weights = problem.weights(w)
    touch(weights)
    loss = pr.LogLikelihood(problem, n_jobs)
    value, slope = loss.value_and_gradient(weights, visits)
    stepped = weights.copy()
    met = loss.descend(stepped, visits, state, rate=rate, batch_size=batch_size)
    sums = stepped.zeros_like(np.float64)
    wrong = pr.PerceptronLoss(problem, n_jobs).descend(
        stepped, sums, visits, np.zeros(1), batch_size=batch_size
    )
    hinge = pr.HingeSteps(problem).descend(stepped, visits, np.array([1.0, 0.0]), rate=rate)
    return [
        value, slope, met, wrong, hinge, stepped, problem.maxima(w, "all", loss=True).values,
        problem.maxima(w, "compatible", samples=samples).values, pr.HingeLoss(problem).risk(w),
        pr.PartialObjective(problem, samples=samples).value(w),
        pr.LogObjective(problem, samples=samples).value_and_gradient(w),
    ]  # fmt: skip


@_steps(
    *(f"problems.{n}" for n in ("LabelProblem", "LogLikelihood", "PerceptronLoss", "HingeLoss")),
    **_GIVEN, structure="graph", edges=_LOOPS, types=np.array([0, 1, 0, 1]), n_types=2,
    directed=True, w=np.linspace(-1, 1, 16), inference="auto", piece_size=2.0, often=3,
)  # fmt: skip
def _graph_losses(touch: Touch, w: Any, piece_size: Any, **given: Any) -> Any:
    from trellis import problems as pr

    problem = _problem(touch, **given)
    visits = _visits(touch, problem, piece_size)
    weights = problem.weights(w)
    value, slope = pr.LogLikelihood(problem).value_and_gradient(weights, visits)
    sums = weights.zeros_like(np.float64)
    wrong = pr.PerceptronLoss(problem).descend(weights.copy(), sums, visits, np.zeros(1))
    return [value, slope, wrong, problem.maxima(w, "all").values, pr.HingeLoss(problem).risk(w)]


@_steps(
    "problems.LabelProblem", "problems.LogLikelihood", **_GIVEN, structure="tree", edges=_PATHS,
    types=np.array([0, 0, 0]), n_types=1, directed=False, w=np.linspace(-1, 1, 12),
)  # fmt: skip
def _tree_losses(touch: Touch, w: Any, **given: Any) -> Any:
    from trellis import problems as pr

    problem = _problem(touch, **given)
    visits = _visits(touch, problem)
    return [
        pr.LogLikelihood(problem).value_and_gradient(problem.weights(w), visits),
        problem.maxima(w, "compatible").values,
    ]


@_steps(
    "problems.EdgeWeights", "problems.Weights", "problems.LogLikelihood", **_GIVEN,
    row=np.array([0, -1, 1, -1], np.int32), ptr=np.array([0, 2, 3, 3, 7]),
    pair=np.array([0, 3, 1, 0, 1, 2, 3], np.int32), edge_values=np.linspace(-1, 1, 7), both=True,
    node_weights=np.linspace(-1, 1, 8).reshape(4, 2), transitions=_PAIR, often=2,
)  # fmt: skip
def _rich_losses(
    touch: Touch, row: Any, ptr: Any, pair: Any, edge_values: Any, both: Any, node_weights: Any,
    transitions: Any, **given: Any,
) -> Any:  # fmt: skip
    from trellis import problems as pr

    rich = pr.EdgeWeights(row, ptr, pair, edge_values, both)
    touch(rich)
    problem = _problem(touch, **given, rich=rich)
    weights = pr.Weights(node_weights, transitions, rich)
    touch(weights)
    visits = _visits(touch, problem)
    loss = pr.LogLikelihood(problem)
    value, slope = loss.value_and_gradient(weights, visits)
    stepped = weights.map(lambda a: np.array(a, np.float64))
    met = loss.descend(stepped, visits, np.array([1.0, 0.0]), rate=0.1)
    return [value, slope, met, problem.maxima(problem.flat(weights), "all").values]


@_steps("decompose.Pieces", "structures.Forest",
        piece_offsets=np.array([0, 3, 5, 6]), sample=np.array([0, 1, 2]), overlap=0, **_FOREST,
        often=2)  # fmt: skip
def _hand_made_pieces(
    touch: Touch, piece_offsets: Any, sample: Any, overlap: Any, **forest: Any
) -> Any:
    from trellis import problems as pr
    from trellis.decompose import Pieces
    from trellis.structures import Forest

    values = []
    for more in ({}, {"structure": "tree", "edges": _PATHS}):
        problem = _problem(touch, **_fresh(_GIVEN), **more)
        if more:
            made = Forest(**forest)
            touch(made)
            pieces = Pieces(piece_offsets, sample, nodes=made.order, forest=made)
        else:
            pieces = Pieces(piece_offsets, sample, overlap=overlap)
        touch(pieces)
        weights = problem.weights(np.linspace(-1, 1, 12))
        visits = problem.visits(pieces)
        values.append(pr.LogLikelihood(problem).value_and_gradient(weights, visits)[0])
        values.append(len(problem.cut(pieces).offsets) if not more and not overlap else 0)
    return values


def _chain_problem(labels: Any = None) -> Any:
    given = _fresh(_GIVEN)
    if labels is not None:
        given["ids"] = np.array(labels, np.int32)
    return _problem(lambda _: None, **given)


_PROBLEM = _Lazy(_chain_problem)
_PARTIAL = _Lazy(lambda: _chain_problem([0, 2, 1, 2, 0, 1]))

_call("problems.LogLikelihood", problem=_PROBLEM, n_jobs=1, use=lambda loss: loss.n_jobs)
_call("problems.PerceptronLoss", problem=_PROBLEM, n_jobs=1, use=lambda loss: loss.n_jobs)
_call("problems.HingeSteps", problem=_PROBLEM, n_jobs=1, use=lambda loss: loss.n_jobs)
_call("problems.LogObjective", problem=_PARTIAL, samples=np.array([0, 1]),
      use=lambda o: o.value_and_gradient(np.zeros(12)))  # fmt: skip
_call("problems.HingeLoss", problem=_PROBLEM, gold=np.array([0, 1, 1, 0, 0, 1]),
      sample_weight=np.array([1.0, 2.0, 0.5]), use=lambda o: o.risk(np.ones(12)))  # fmt: skip
_call("problems.PartialObjective", problem=_PARTIAL, loss="bridge", samples=np.array([0, 1]),
      sample_weight=np.array([1.0, 2.0, 0.5]), use=lambda o: o.value(np.ones(12)))  # fmt: skip
_call("problems.PartialLoss", penalty="all", reward="mean")
_call("problems.Cut", upper=2.0, lower=1.0, slope=np.ones(2), use=lambda cut: cut.exact)


@_steps("problems.HingeDual", l2=0.5, problem=_PROBLEM, order=np.array([2, 0, 1]))
def _hinge_dual(touch: Touch, l2: Any, problem: Any, order: Any) -> Any:
    from trellis.problems import HingeDual, HingeLoss

    dual = HingeDual(HingeLoss(problem), l2)
    touch(dual)
    dual.sweep(order)
    return [dual.dual(), dual.weights()]


@_steps("problems.LabelProblem", i=1, annotation=["A", None], w=np.ones(12),
        space="all", samples=np.array([1, 2]), measure="best-vs-second", size=2)  # fmt: skip
def _annotation(
    touch: Touch, i: Any, annotation: Any, w: Any, space: Any, samples: Any,
    measure: Any, size: Any,
) -> Any:  # fmt: skip
    problem = _PARTIAL()
    problem.annotate(i, annotation)
    touch(problem)
    return [
        problem.maxima(w, space, samples=samples).values, problem.margins(w, measure, samples),
        problem.weakest_part(i, w, size), problem.update(i, np.zeros(12)), problem.complete,
    ]  # fmt: skip


@_steps("problems.Penalty", l2=0.5, l1=0.25, group_lasso=0.5,
        groups=np.array([0, 1, 0, 2], np.int32), rates=0.5,
        node_weights=np.linspace(-1, 1, 8).reshape(4, 2), transitions=_PAIR)  # fmt: skip
def _penalty(
    touch: Touch, l2: Any, l1: Any, group_lasso: Any, groups: Any, rates: Any, node_weights: Any,
    transitions: Any,
) -> Any:  # fmt: skip
    from trellis.problems import Penalty, Weights

    penalty = Penalty(l2, l1, group_lasso, groups)
    touch(penalty)
    weights = Weights(node_weights, transitions).map(lambda a: np.array(a, np.float64))
    value = penalty.value(weights)
    penalty.proximal(weights, rates)
    return [value, weights]


@_steps("problems.FeatureRates", "problems.LogLikelihood", gamma=np.full(5, 0.5),
        fired=np.zeros((2, 5), np.int64), state=np.array([1.0, 0.0]))  # fmt: skip
def _feature_rates(touch: Touch, gamma: Any, fired: Any, state: Any) -> Any:
    from trellis.problems import FeatureRates, LogLikelihood

    problem = _chain_problem()

    rates = FeatureRates(gamma, fired)
    touch(rates)
    weights = problem.weights(np.linspace(-1, 1, 12))
    met = LogLikelihood(problem).descend(weights, _visits(touch, problem), state, rates=rates)
    return [met, weights]


_X4 = np.array([[2.0, 0, 1], [1, 0, 1], [0, 2, 1], [0, 1, 1]])
_GOLD4 = np.array([0, 0, 1, 1])


def _oracle(i: int, w: Any) -> tuple[Any, float]:
    if w.shape != (6,):
        raise DataError("these are not the weights of this oracle")
    y = int((w.reshape(2, 3) @ _X4[i] + (np.arange(2) != _GOLD4[i])).argmax())
    psi = np.zeros((2, 3))
    psi[_GOLD4[i]] += _X4[i]
    psi[y] -= _X4[i]
    return psi.ravel(), float(y != _GOLD4[i])


_call("problems.summed_risk", best=_Lazy(lambda: _oracle), n_samples=4, n_weights=6,
      sample_weight=np.ones(4), use=lambda risk: risk(np.zeros(6)))  # fmt: skip


@_steps("features.Prepared", **_GIVEN, features="auto", often=2)
def _prepared(
    touch: Touch, offsets: Any, indptr: Any, indices: Any, values: Any, ids: Any, table: Any,
    classes: Any, n_features: Any, features: Any,
) -> Any:  # fmt: skip
    from trellis import ChainCRF, Corpus
    from trellis.corpus import Labels
    from trellis.features import AttributeEncoder, Encoded, Prepared

    encoded = Encoded(offsets, indptr, indices, values)
    corpus = Corpus(offsets, labels=Labels.from_table(ids, table, classes))
    touch(corpus)
    prepared = Prepared(AttributeEncoder(["a", "b", "c", "d"]), encoded, corpus, features)
    touch(prepared)
    model = ChainCRF(max_passes=1, random_state=0).fit(prepared)
    return model.predict([[["a"], ["b"]]])


def _toy_corpus() -> Any:
    from trellis import Corpus

    return Corpus.from_columns({"word": [["a", "b"], ["b"]]}, [["X", "Y"], ["Y"]])


@_steps("features.prepare", corpus=_Lazy(_toy_corpus), features="word[-1..1]", y=None, edges=None,
        edge_types=None, edge_features=None, unlabelled=None, dictionaries=None,
        input_format=None, structure="chain",
        often=0.3)  # fmt: skip
def _prepare(touch: Touch, corpus: Any, **arguments: Any) -> Any:
    from trellis.features import prepare

    with tempfile.TemporaryDirectory() as folder:
        prepared = prepare(corpus, Path(folder) / "prepared", **arguments)
        touch(prepared)
        return np.array(prepared.encoded.indices)


def _toy_graph() -> Any:
    from trellis.corpus import as_graph_corpus

    return as_graph_corpus([np.eye(2), np.ones((1, 2))], edges=[[(0, 1)], []])


_call("features.neighbour_means", corpus=_Lazy(_toy_graph), along="neighbours",
      use=lambda c: c.features.values)  # fmt: skip
_call("features.as_templates", features="word; pos[-1]", columns=["word", "pos"])
_call("features.Template", kind="bias", terms=(), low=0, high=0, min_count=1, edge=False,
      use=lambda t: t.line())  # fmt: skip
_call("features.brown_clusters", sentences=[["a", "b"], ["b", "a"]], n_clusters=2, min_count=1)
_call("features.Templates", templates=(), mark_edges=False, n_clusters=256, use=lambda t: t.text())


@_steps("features.Templates", text="word[-1..1]\npos & word", columns=["word", "pos"], name="word")
def _templates(touch: Touch, text: Any, columns: Any, name: Any) -> Any:
    from trellis.features import Templates

    templates = Templates.parse(text)
    return [templates.resolved(columns).text(), templates.columns(), templates.text(),
            Templates.default_for(columns).text()]  # fmt: skip


@_steps("features.TemplateEncoder", text="word[-1..1]", corpus=_Lazy(_toy_corpus))
def _template_encoder(touch: Touch, text: Any, corpus: Any) -> Any:
    from trellis.features import TemplateEncoder, Templates

    encoder = TemplateEncoder(Templates.parse(text))
    encoded = encoder.learn(corpus)
    touch(encoded)
    return [encoded, encoder.encode(corpus), encoder.names([0, 1])]


@_steps("features.AttributeEncoder", names=["a", "b"], scale=np.array([1.0, 2.0], np.float32),
        X=[[["a"], ["b", "c"]], [{"a": 0.5}]], features=[0, 1])  # fmt: skip
def _attribute_encoder(touch: Touch, names: Any, scale: Any, X: Any, features: Any) -> Any:
    from trellis.corpus import as_corpus
    from trellis.features import AttributeEncoder

    encoder = AttributeEncoder(names, scale)
    corpus = as_corpus(X)
    return [encoder.encode(corpus), encoder.names(features), AttributeEncoder().learn(corpus)]


# ------------------------------------------------------------------------- corpus

_COLUMN: dict[str, Any] = {
    "codes": np.array([0, 1, 2, 0, 1, 1], np.int32),
    "values": ["a", "b", "c"],
}


@_steps("corpus.Corpus", "corpus.Column", "corpus.Features", "corpus.Labels", "corpus.Sample",
        **_LABELS, **_COLUMN, offsets=_OFFSETS, indptr=_ENCODED["indptr"],
        indices=_ENCODED["indices"], weights=_ENCODED["values"], names=["p", "q", "r", "s"],
        edges=_LOOPS, edge_codes=np.array([0, 1, 0, 0], np.int32), samples=np.array([1, 0]),
        often=3)  # fmt: skip
def _corpus(
    touch: Touch, ids: Any, table: Any, classes: Any, codes: Any, values: Any, offsets: Any,
    indptr: Any, indices: Any, weights: Any, names: Any, edges: Any, edge_codes: Any, samples: Any,
) -> Any:  # fmt: skip
    from trellis import corpus as co
    from trellis.features import AttributeEncoder, TemplateEncoder, Templates

    corpus = co.Corpus(
        offsets, {"word": co.Column(codes, values)}, co.Features(indptr, indices, weights, names),
        co.Labels.from_table(ids, table, classes), edges, "label",
        co.Column(edge_codes, ["x", "y"]),
    )  # fmt: skip
    touch(corpus)
    part = corpus.take(samples)
    return [
        part.label_lists(), [s.labels for s in corpus], corpus[0].columns, corpus.lengths,
        corpus.only_used_labels().label_lists(), part.edges,
        AttributeEncoder().learn(corpus),
        TemplateEncoder(Templates.parse("word[-1..1]")).learn(part),
    ]  # fmt: skip


_X = [["the", "cat", "sat"], ["a", "dog"], ["sit"]]
_Y = [["D", "N", "V"], ["D", "N"], ["V"]]
_EDGES = [[(0, 1), (1, 2)], [(0, 1)], []]
_TYPES = [["x", "y"], ["x"], []]

_call("corpus.as_corpus", X=_X, y=_Y, use=lambda c: c.label_lists())
_OWN = [[{"far": 2.5, "near": True}, {}], [{"far": 1}], []]
_call("corpus.as_graph_corpus", X=_X, y=_Y, edges=_EDGES, edge_types=_TYPES, edge_features=_OWN,
      use=lambda c: [c.label_lists(), c.edges, c.edge_features])  # fmt: skip


@_steps("corpus.Corpus", columns={"word": _X}, labels=_Y, y=_Y)
def _from_columns(touch: Touch, columns: Any, labels: Any, y: Any) -> Any:
    from trellis import Corpus

    return Corpus.from_columns(columns, labels).with_labels(y).label_lists()


@_steps("corpus.Labels", y=[["A", None], [{"A", "B"}]], classes=["A", "B"],
        codes=np.array([0, 1, 0], np.int32), names=["b", "a"], positions=np.array([2, 0]),
        more=["B", "A", "C"])  # fmt: skip
def _labels(
    touch: Touch, y: Any, classes: Any, codes: Any, names: Any, positions: Any, more: Any
) -> Any:
    from trellis.corpus import Labels

    labels = Labels.from_lists(y, classes)
    touch(labels)
    return [labels.tolist(), labels.allowed(), labels.take(positions).tolist(),
            labels.recoded(more).tolist(), Labels.from_codes(codes, names).tolist()]  # fmt: skip


@_steps("corpus.get_scheme", "corpus.Scheme", "corpus.schemes.get_scheme", "corpus.schemes.Scheme",
        name="BIO", labels=["B-X", "I-X", "O"], spans=[("X", 0, 2)], length=3,
        classes=["B-X", "I-X", "O"])  # fmt: skip
def _scheme(touch: Touch, name: Any, labels: Any, spans: Any, length: Any, classes: Any) -> Any:
    from trellis.corpus import get_scheme

    scheme = get_scheme(name)
    return [scheme.spans(labels), scheme.labels_for(spans, length), scheme.validity(classes)]


_call("corpus.Scheme", name="mine", reads="BIO", writes="BIIB",
      use=lambda s: s.spans(["B-X", "I-X"]))  # fmt: skip
_call("corpus.schemes.detect_scheme", classes=["B-X", "I-X", "O"])
_call("corpus.schemes.words_to_tags", words=["ab", "c"])
_call("corpus.schemes.tags_to_words", chars=["a", "b", "c"], tags=["B", "E", "S"])

# ------------------------------------------------------------------------- solvers

_START = np.linspace(-0.5, 0.5, 12)


def _weights(w: Any = _START) -> Any:
    return _chain_problem().weights(np.array(w))


def _learned(touch: Touch, learner: Any, partitioner: Any, rng: Any, visit: Any, **o: Any) -> Any:
    from trellis.solvers import Passes

    touch(learner)
    progress = Passes(learner, partitioner, rng, visit).run(**o)
    return [progress.records[-1].objective if progress.records else None, learner.weights()]


def _whole() -> Any:
    from trellis.decompose import WholeSamples

    return WholeSamples()


def _penalty_of(**strengths: Any) -> Any:
    from trellis.problems import Penalty

    return Penalty(**strengths)


_RUN: dict[str, Any] = {
    "problem": _PROBLEM, "start": _Lazy(_weights), "partitioner": _Lazy(_whole), "rng": _RNG,
    "visit": "pooled", "max_passes": 2, "tol": 1e-3, "batch_size": 1}  # fmt: skip
_L2 = _Lazy(lambda: _penalty_of(l2=0.1))


@_steps("solvers.StochasticGradient", "solvers.Passes", **_RUN, learning_rate=0.1, decay=0.9,
        penalty=_L2, l2_once=False, lock_free=False)  # fmt: skip
def _sgd(
    touch: Touch, problem: Any, start: Any, learning_rate: Any, decay: Any, penalty: Any,
    l2_once: Any, batch_size: Any, lock_free: Any, **o: Any,
) -> Any:  # fmt: skip
    from trellis.problems import LogLikelihood
    from trellis.solvers import StochasticGradient

    learner = StochasticGradient(
        LogLikelihood(problem), start, learning_rate=learning_rate, decay=decay, penalty=penalty,
        l2_once=l2_once, batch_size=batch_size, lock_free=lock_free,
    )  # fmt: skip
    return _learned(touch, learner, **o)


@_steps("solvers.AdaptiveFrequency", **_RUN, learning_rate=0.1, penalty=_L2)
def _adf(
    touch: Touch, problem: Any, start: Any, learning_rate: Any, penalty: Any, batch_size: Any,
    **o: Any,
) -> Any:  # fmt: skip
    from trellis.problems import LogLikelihood
    from trellis.solvers import AdaptiveFrequency

    learner = AdaptiveFrequency(
        LogLikelihood(problem), start, learning_rate=learning_rate, penalty=penalty,
        batch_size=batch_size,
    )  # fmt: skip
    return _learned(touch, learner, **o)


@_steps("solvers.AveragedPerceptron", **_RUN, averaged=True)
def _perceptron(
    touch: Touch, problem: Any, start: Any, batch_size: Any, averaged: Any, **o: Any
) -> Any:
    from trellis.problems import PerceptronLoss
    from trellis.solvers import AveragedPerceptron

    learner = AveragedPerceptron(
        PerceptronLoss(problem), start, batch_size=batch_size, averaged=averaged
    )
    return _learned(touch, learner, **o)


@_steps("solvers.LimitedMemoryBFGS", problem=_PROBLEM, start=_Lazy(_weights), penalty=_L2,
        observed=False, memory=4, max_passes=3, tol=1e-6, often=0.5)  # fmt: skip
def _lbfgs(
    touch: Touch, problem: Any, start: Any, penalty: Any, observed: Any, memory: Any,
    max_passes: Any, tol: Any,
) -> Any:  # fmt: skip
    from trellis.problems import LogLikelihood
    from trellis.solvers import LimitedMemoryBFGS

    learner = LimitedMemoryBFGS(
        LogLikelihood(problem), start, _visits(touch, _chain_problem()), penalty=penalty,
        observed=observed, memory=memory,
    )  # fmt: skip
    touch(learner)
    learner.run(max_passes=max_passes, tol=tol)
    return learner.weights()


_call("solvers.calibrate", problem=_PROBLEM, partitioner=_Lazy(_whole), rng=_RNG, l2=0.1,
      like=_Lazy(_weights), batch_size=1, n_samples=3, first=0.1, often=0.5)  # fmt: skip


@_steps("solvers.CompletedFrankWolfe", problem=_PARTIAL, l2=0.1, rng=_RNG, max_passes=3, tol=0.01,
        often=0.5)  # fmt: skip
def _completed(touch: Touch, problem: Any, l2: Any, rng: Any, max_passes: Any, tol: Any) -> Any:
    from trellis.problems import PartialObjective
    from trellis.solvers import CompletedFrankWolfe

    learner = CompletedFrankWolfe(PartialObjective(problem), l2=l2, rng=rng)
    learner.run(max_passes=max_passes, tol=tol)
    return learner.weights()


def _risk(w: Any) -> tuple[float, Any]:
    if w.shape != (1,):
        raise DataError("these are not the weights of this risk")
    x = np.array([1.0, 2.0, 9.0])
    return float(abs(w - x).sum()), np.array([np.sign(w - x).sum()])


def _solved(result: Any) -> Any:
    return [result.weights, result.objective, result.stop_reason]


_call("solvers.minimise_bundle", risk=_Lazy(lambda: _risk), n_weights=1, l2=0.1, l1=0.0,
      rho=np.inf, linear=np.zeros(1), floor=0.0, box=None, start=np.ones(1), memory=None, tol=1e-3,
      max_iterations=20, step=0.2, use=_solved, often=0.5)  # fmt: skip
_call("solvers.minimise_bundle", risk=_Lazy(lambda: _risk), n_weights=1, l1=0.5, box=5.0,
      max_iterations=20, use=_solved, often=0.3)  # fmt: skip
_call("solvers.minimise_frank_wolfe", oracle=_Lazy(lambda: _oracle), n_samples=4, n_weights=6,
      l2=0.1, sample_weight=np.ones(4), max_passes=5, tol=1e-3, gap_every=2, averaged=True, seed=0,
      use=_solved)  # fmt: skip
_call("solvers.minimise_partial", often=0.3, l2=0.1, l1=0.0, tol=0.1, memory=None, limit=3,
      start=np.zeros(12), recycle=True, adaptive=True, seed=0, use=_solved,
      objective=_Lazy(lambda: _public("problems.PartialObjective")(_PARTIAL())))  # fmt: skip
_call("solvers.partial_perceptron", problem=_PARTIAL, passes=2, average=True, start=np.zeros(12),
      seed=0)  # fmt: skip
_call("solvers.solve_simplices_qp", G=np.array([[2.0, 0, 3], [0, 2, 3], [3, 3, 9]]), b=np.zeros(3),
      blocks=np.array([0, 0, 1]), start=np.array([0.5, 0.5, 1.0]), at_most=False, tol=1e-9,
      max_steps=50)  # fmt: skip
_call("solvers.convergence_value", objectives=[100.0, 80.0, 75.0])


@_steps("solvers.minimise_cccp", "solvers.PlaneSurrogate", penalty=_Lazy(lambda: _risk),
        reward=_Lazy(lambda: lambda w: (0.0, np.zeros(1))), l2=0.1, l1=0.0, start=np.zeros(1),
        first_tol=0.3, tol=0.01, factor=0.3, eta=0.01, max_rounds=3, box=None, memory=None,
        step=0.2, max_iterations=20, often=0.4)  # fmt: skip
def _cccp(
    touch: Touch, penalty: Any, reward: Any, l2: Any, l1: Any, box: Any, memory: Any, step: Any,
    max_iterations: Any, start: Any, **o: Any,
) -> Any:  # fmt: skip
    from trellis.solvers import PlaneSurrogate, minimise_cccp

    surrogate = PlaneSurrogate(
        penalty, reward, l2=l2, l1=l1, box=box, memory=memory, step=step,
        max_iterations=max_iterations,
    )  # fmt: skip
    return _solved(minimise_cccp(surrogate, start, **o))


@_steps("solvers.Bundle", n_weights=2, n_domains=1, slope=np.array([1.0, -1.0]), offset=0.5,
        domain=0, w=np.array([1.0, 2.0]), origin=np.zeros(2))  # fmt: skip
def _bundle(
    touch: Touch, n_weights: Any, n_domains: Any, slope: Any, offset: Any, domain: Any, w: Any,
    origin: Any,
) -> Any:  # fmt: skip
    from trellis.solvers import Bundle, minimise_bundle

    bundle = Bundle(n_weights, n_domains)
    bundle.add(slope, offset, domain)
    touch(bundle)
    heights = [bundle.height(w), np.array(bundle.gram)]
    risk = lambda w: (float(abs(w).sum()), np.sign(w))  # noqa: E731  # short-lived
    return [heights, _solved(minimise_bundle(risk, 2, l2=0.5, bundle=bundle, max_iterations=5))]


# ------------------------------------------------------------------------- experts

_GOLD = [["a", "b", "a"], ["b", "a"], ["b", "b", "a"], ["a", "c", "b"]]
_SAID = [
    [["a", "b", "b"], ["b", "b"], ["b", "b", "a"], ["a", "a", "b"]],
    [["b", "b", "a"], ["b", "a"], ["a", "b", "a"], ["a", "c", "c"]],
    [["a", "a", "a"], ["a", "a"], ["b", "b", "b"], ["b", "c", "b"]],
]
_OUTPUTS: dict[str, Any] = {
    "offsets": np.array([0, 2, 5]), "labels": ("a", "b"), "names": ("x", "y"),
    "codes": np.array([[0, 1], [1, 1], [0, -1], [1, 0], [0, 0]], np.int32),
    "scores": np.full((5, 2, 2), 0.5, np.float32),
}  # fmt: skip

_call("experts.as_outputs", outputs=_SAID, names=["x", "y", "z"], labels=["a", "b", "c"])
_call("experts.strip", labels=[["a", "<eps>"], ["<eps>"]], epsilon="<eps>")
_call("experts.align", outputs=_SAID, gold=_GOLD, names=["x", "y", "z"], epsilon="<eps>",
      order=[0, 1, 2], keep_unsaid=False)  # fmt: skip


@_steps("experts.ExpertOutputs", "experts.as_gold", **_OUTPUTS, gold=[["a", "b"], ["b", "a", "c"]],
        often=2)  # fmt: skip
def _outputs(touch: Touch, gold: Any, **arguments: Any) -> Any:
    from trellis.experts import ExpertOutputs, MajorityVote, WeightedMajority, as_gold

    outputs = ExpertOutputs(**arguments)
    touch(outputs)
    coded = as_gold(gold, outputs)
    vote = MajorityVote().fit(outputs, gold).predict(outputs)
    return [coded, vote, WeightedMajority().fit(outputs, gold).predict(outputs)]


_COMBINERS: dict[str, dict[str, Any]] = {
    "WeightedMajority": {"conversion": "majority-vote", "beta": 0.9, "tie": "auto", "short": None},
    "FollowPerturbedLeader": {"epsilon": "auto", "delta": 0.05, "random_state": 0},
    "ESPBoost": {"scoring": "sum", "n_rounds": 3, "scheme": None},
    "ForwardStepwise": {"start": "empty", "n_rounds": 3, "pairs": False, "random_state": 0},
    "BestExpert": {"criterion": "hamming"},
    "MajorityVote": {"order": "given", "scheme": None, "short": None},
    "Rover": {"confidence": "auto", "pool": "mean", "alpha": "auto"},
    "Rerank": {"unit": "run", "weights": "learned", "l2": 1.0},
    "LogLinearVote": {"by_label": True, "l2": 1.0},
    "AnnotatorModel": {"model": "mace", "chain": False, "scheme": None},
    "GuardedVote": {"scheme": None, "max_positions": 1000},
    "Consensus": {"similarity": "both", "longest": 2, "shrinkage": 10.0},
}


def _combine(kind: str, params: dict[str, Any], often: float) -> None:
    def run(touch: Touch, outputs: Any, gold: Any, new: Any, **given: Any) -> Any:
        model = _public(kind)(**given).fit(outputs, gold)
        touch(model)
        return model.predict(new)

    values = {"outputs": _SAID, "gold": _GOLD, "new": _SAID, **params}
    RECIPES.append(Recipe((kind,), lambda: _fresh(values), run, None, often))


for _name, _params in _COMBINERS.items():
    _combine(f"experts.{_name}", _params, 0.4)
_combine("experts.Stacking", {"window": 1, "scheme": None}, 0.05)
_combine("experts.AutoCombiner", {"methods": ["rerank"], "metric": "auto", "n_folds": 2}, 0.1)
_MAJORITY = _Lazy(lambda: _public("experts.MajorityVote").__call__())
_combine("experts.Aligned", {"combiner": _MAJORITY, "epsilon": "<eps>"}, 0.3)
_MEMBERS = _Lazy(lambda: [_public("experts.MajorityVote")(), _public("experts.BestExpert")()])
_combine("experts.Committee", {"members": _MEMBERS}, 0.1)

_SPANS_SAID = [[[(0, 2, "X")], [(1, 3, "Y")]], [[(0, 2, "X")], None], [[], [(1, 3, "Y")]]]
_call("experts.as_span_outputs", outputs=_SPANS_SAID, names=["x", "y", "z"])


def _combine_spans(kind: str, params: dict[str, Any]) -> None:
    def run(touch: Touch, outputs: Any, gold: Any, new: Any, **given: Any) -> Any:
        model = _public(kind)(**given).fit(outputs, gold)
        touch(model)
        return model.predict(new)

    values = {"outputs": _SPANS_SAID, "gold": _SPANS_SAID[0], "new": _SPANS_SAID, **params}
    RECIPES.append(Recipe((kind,), lambda: _fresh(values), run, None, 0.3))


_combine_spans("experts.SpanVote", {"k": "auto", "scheme": "auto"})
_combine_spans("experts.SpanCombiner", {"l2": "auto", "scheme": "auto"})


@_steps("experts.PathFamily", origin=np.array([0, 0, 1]), destination=np.array([0, 1, 1]),
        expert=np.array([0, 1, 1]), final=None, length=3)  # fmt: skip
def _family(
    touch: Touch, origin: Any, destination: Any, expert: Any, final: Any, length: Any
) -> Any:
    from trellis.experts import PathFamily

    family = PathFamily(origin, destination, expert, final)
    touch(family)
    automaton, moves = family.unrolled(length)
    return automaton.n_paths, moves


@_steps("experts.PathAutomaton", origin=np.array([0, 0, 1, 1]), destination=np.array([1, 1, 2, 2]),
        expert=np.array([0, 1, 0, 1]), positions=None, log_weights=np.zeros(4),
        often=2)  # fmt: skip
def _automaton(
    touch: Touch, origin: Any, destination: Any, expert: Any, positions: Any, log_weights: Any
) -> Any:
    from trellis.experts import PathAutomaton

    automaton = PathAutomaton(origin, destination, expert, positions)
    touch(automaton)
    return [automaton.n_paths, automaton.edge_marginals(log_weights)]


class _Fixed:
    """A model that says the same of every position."""

    classes_ = ("a", "b")

    def predict(self, X: Any) -> Any:
        return [
            ["a"] * len(x) if getattr(x, "shape", (1,)) and hasattr(x, "__len__") else ["a"]
            for x in X
        ]


_call("experts.from_models", models=_Lazy(lambda: [_Fixed(), _Fixed()]), X=[["p", "q"], ["q"]],
      names=["x", "y"], scores=False)  # fmt: skip


@functools.cache
def _classifier() -> Any:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(random_state=0).fit([[0.0], [1.0]], ["X", "Y"])


_call("experts.from_classifiers", classifiers=_Lazy(lambda: [_classifier()]),
      X=[[[0.1], [0.9]], [[0.2]]], names=["x"], scores=False, often=0.5)  # fmt: skip

# ------------------------------------------------------------------------- tracking

_IDS = np.array([3, 5, 6])
_HERE = np.array([[0.0, 0.0], [5.0, 5.0], [9.0, 0.0]])
_THERE = np.array([[1.0, 0.5], [5.0, 6.0], [8.0, 1.0]])
_AREA = np.array([30.0, 40.0, 35.0])


def _pair(
    touch: Touch, ids: Any, here: Any, there: Any, area: Any, links: Any, known: Any = None,
    extent: Any = (0.0, 0.0, 10.0, 10.0), frame: Any = 0, sequence: Any = "film",
) -> Any:  # fmt: skip
    from trellis.tracking import FramePair, Objects, PairAnnotation

    source = Objects(ids, here, {"area": area})
    target = Objects(ids, there, {"area": area})
    touch(source)
    return FramePair(sequence, frame, source, target, PairAnnotation(links, known, known), extent)


_FRAMES: dict[str, Any] = {
    "ids": _IDS, "here": _HERE, "there": _THERE, "area": _AREA,
    "links": ((3, 3, "move"), (5, 5, "move")), "known": None, "extent": (0.0, 0.0, 10.0, 10.0),
    "frame": 0, "sequence": "film",
}  # fmt: skip


@_steps("tracking.make_hypotheses", "tracking.Objects", "tracking.FramePair", "tracking.Hypotheses",
        "tracking.PairAnnotation", "tracking.patchify", "tracking.annotated_events",
        **_FRAMES, max_distance=6.0, n_neighbors=2, events=("move", "appear", "disappear"),
        annotated=True, size=4.0, objects=20, often=2)  # fmt: skip
def _hypotheses(
    touch: Touch, max_distance: Any, n_neighbors: Any, events: Any, annotated: Any, size: Any,
    objects: Any, **frames: Any,
) -> Any:  # fmt: skip
    from trellis import tracking as tr

    pair = _pair(touch, **frames)
    h = tr.make_hypotheses(
        pair, events=events, n_neighbors=n_neighbors, max_distance=max_distance,
        annotated=annotated,
    )  # fmt: skip
    touch(h)
    cut = tr.patchify([pair], size, objects=objects)
    return [h, h.covers(3), [p.source for p in cut], tr.annotated_events([pair])]


@_steps("tracking.EventKind", "tracking.Neighbours", **_FRAMES, name="fusion", n_sources=2,
        n_targets=1, daughters=True, onward=np.array([[0, 1], [1, -1], [2, -1]]),
        back=np.array([[0, -1], [1, 0], [2, 1]]))  # fmt: skip
def _own_event(
    touch: Touch, name: Any, n_sources: Any, n_targets: Any, daughters: Any, onward: Any, back: Any,
    **frames: Any,
) -> Any:  # fmt: skip
    from trellis import tracking as tr

    parts = {"name": name, "n_sources": n_sources, "n_targets": n_targets, "daughters": daughters}
    kind = type("Odd", (tr.EventKind,), parts)()
    pair = _pair(touch, **frames)
    events = ["move", "appear", "disappear", kind]
    h = tr.make_hypotheses(pair, events=events, max_distance=6.0)
    touch(h)
    near = tr.Neighbours(pair, onward, back)
    return [h.kind, [rows.tolist() for rows in near.groups(2, 1)], repr(kind)]


@_steps("tracking.Hypotheses", kind=np.array([0, 2, 3], np.int8),
        source=np.array([[0, -1], [-1, -1], [1, -1]]),
        target=np.array([[0, -1], [1, -1], [-1, -1]]), n=2)  # fmt: skip
def _hand_made_hypotheses(touch: Touch, kind: Any, source: Any, target: Any, n: Any) -> Any:
    from trellis.tracking import Hypotheses

    h = Hypotheses(kind, source, target)
    touch(h)
    return [h.covers(n), len(h)]


def _film(touch: Touch, **frames: Any) -> Any:
    first = _pair(touch, **frames)
    return [first, _pair(touch, **{**_fresh(_FRAMES), "frame": 1})]


_TRACKERS: dict[str, dict[str, Any]] = {
    "NearestNeighbour": {"max_distance": 6.0},
    "GraphMatching": {"max_distance": 6.0, "tolerance": 0.5, "n_neighbors": 3},
    "FlowTracker": {"max_distance": 6.0, "division": 0.5, "n_neighbors": 3},
    "HandSet": {"max_distance": 6.0, "n_neighbors": 3, "weights": None},
    "LocalClassifiers": {"max_distance": 6.0, "n_trees": 2, "random_state": 0},
    "TrackingModel": {"max_distance": 6.0, "n_neighbors": 2, "l2": 1.0, "knots": 3,
                      "max_iter": 3},
}  # fmt: skip


def _track(kind: str, params: dict[str, Any], often: float) -> None:
    def run(touch: Touch, **given: Any) -> Any:
        film = _film(touch, **{name: given.pop(name) for name in _FRAMES})
        model = _public(kind)(**given).fit(film)
        result = model.predict(film)
        return [result.links, result.events, result.tracks]

    values = {**_FRAMES, **params}
    RECIPES.append(Recipe((kind,), lambda: _fresh(values), run, None, often))


for _name, _params in _TRACKERS.items():
    _slow = {"LocalClassifiers": 0.03, "TrackingModel": 0.1}
    _track(f"tracking.{_name}", _params, _slow.get(_name, 0.3))


def _link(*parts: Any) -> Any:
    return _public("tracking.Link")(*parts)


_LINKS = _Lazy(lambda: [_link("film", 0, 3, 3, "move"), _link("film", 1, 3, 5, "move")])
_EVENTS = _Lazy(lambda: [_public("tracking.TrackEvent")("film", 0, 6, "disappear")])

_call("tracking.score_links", truth=_LINKS, predicted=_LINKS)
_call("tracking.event_set", links=_LINKS, events=_EVENTS)
_call("tracking.task_loss", truth=_Lazy(lambda: _public("tracking.event_set")(_LINKS())),
      predicted=_Lazy(lambda: _public("tracking.event_set")(_LINKS())))  # fmt: skip


@_steps("tracking.assemble_tracks", "tracking.TrackingResult", "tracking.write_ctc",
        "tracking.close_gaps", "tracking.to_napari", "tracking.score_ctc", **_FRAMES,
        made=_LINKS, events=_EVENTS, max_gap=1, n_neighbors=3, max_distance=9.0,
        offset=0)  # fmt: skip
def _tracks(
    touch: Touch, made: Any, events: Any, max_gap: Any, n_neighbors: Any, max_distance: Any,
    offset: Any, **frames: Any,
) -> Any:  # fmt: skip
    from trellis.tracking import assemble_tracks, close_gaps, score_ctc, to_napari, write_ctc

    film = _film(touch, **frames)
    result = assemble_tracks(film, made, events)
    with tempfile.TemporaryDirectory() as folder:
        write_ctc(result, folder)
    closed = close_gaps(
        result, film, max_gap=max_gap, n_neighbors=n_neighbors, max_distance=max_distance
    )
    scores = score_ctc(result, closed, offset=offset)
    return [result.tracks, result.objects, closed.links, scores.tra, to_napari(result)[0]]


@_steps("tracking.default_features", "tracking.Frame", "tracking.EventFeature", columns=["area"],
        events=["move", "division"], ids=_IDS, here=_HERE, area=_AREA,
        extent=(0.0, 0.0, 10.0, 10.0))  # fmt: skip
def _event_features(
    touch: Touch, columns: Any, events: Any, ids: Any, here: Any, area: Any, extent: Any
) -> Any:
    from trellis.tracking import Frame, Objects, default_features

    features = default_features(columns, events)
    objects = Objects(ids, here, {"area": area})
    frame = Frame(objects, extent)
    touch(frame)
    return [(f.event, f.name) for f in features]


_call("tracking.EventFeature", event="move", name="far",
      values=_Lazy(lambda: lambda a, b: b["area"]), needs_frame=False,
      use=lambda f: f.name)  # fmt: skip

# ------------------------------------------------------------------------- regression

_R = np.random.default_rng(3)
_POINTS = _R.uniform(size=(12, 2))
_XR = _R.uniform(size=(12, 3))
_YR = _XR[:, 0] + 0.1 * _R.normal(size=12)
_S = np.abs(_POINTS[:, None] - _POINTS[None]).sum(-1)

_call("regression.knn_graph", coords=_POINTS, n_neighbors=2, weight="exp", metric="euclidean",
      scale=None, symmetrise="max", columns=None)  # fmt: skip
_call("regression.radius_graph", coords=_POINTS, radius=0.5, weight="exp", metric="euclidean",
      scale=1.0, columns=[0, 1])  # fmt: skip
_call("regression.full_graph", coords=_POINTS, threshold=0.1, weight="inverse", scale=None)
_call("regression.check_graph", graph=_S, n=12)
_call("regression.laplacian", S=_S, use=lambda L: L.toarray())
_call("regression.normalise", S=_S)
_call("regression.distance_correlation", x=_XR[:, 0], z=_XR, method="auto", n_projections=3,
      random_state=0)  # fmt: skip
_call("regression.distance_covariance", x=_YR, z=_XR[:, 1], method="exact", n_projections=3,
      random_state=0)  # fmt: skip
_call("regression.geometric_median", points=_POINTS.reshape(3, 4, 2), weights=np.ones((3, 4)),
      max_iter=20, tol=1e-6)  # fmt: skip
_call("regression.mean_interval", values=_YR, confidence=0.9)
_call("regression.least_squares_boosting", n_estimators=2, random_state=0, max_leaf_nodes=3,
      use=lambda model: type(model).__name__)  # fmt: skip
_call("regression.baselines", n_components=2, subsample=0.5, coordinates=False, modern=True,
      glacer=True, use=sorted)  # fmt: skip


@_steps("regression.CentredDistances", Z=_XR, n_projections=None, random_state=0, x=_YR)
def _centred(touch: Touch, Z: Any, n_projections: Any, random_state: Any, x: Any) -> Any:
    from trellis.regression import CentredDistances

    fixed = CentredDistances(Z, n_projections=n_projections, random_state=random_state)
    touch(fixed)
    return [fixed.variance, fixed.covariance_squared(x), fixed.correlation_squared(x)]


@_steps("regression.Objective", X=_XR, y=_YR, loss="paper", use_dcorr=True, standardise=False,
        predictions=np.stack([_YR, _YR + 0.1]))  # fmt: skip
def _objective(touch: Touch, X: Any, y: Any, predictions: Any, **o: Any) -> Any:
    from trellis.regression import Objective

    objective = Objective(X, y, **o)
    touch(objective)
    return objective(predictions)


@_steps("regression.KNN", "regression.Radius", "regression.Full", coords=_POINTS, n_neighbors=2,
        radius=0.5, threshold=0.1)  # fmt: skip
def _graph_makers(touch: Touch, coords: Any, n_neighbors: Any, radius: Any, threshold: Any) -> Any:
    from trellis.regression import KNN, Full, Radius

    makers: list[Any] = [KNN(n_neighbors), Radius(radius), Full(threshold)]
    return [maker(coords) for maker in makers]


def _ridge() -> Any:
    from sklearn.linear_model import Ridge

    return Ridge()


def _regress(kind: str, params: dict[str, Any], often: float) -> None:
    def run(touch: Touch, X: Any, y: Any, new: Any, **given: Any) -> Any:
        model = _public(kind)(**given).fit(X, y)
        touch(model)
        return model.predict(new)

    values = {"X": _XR, "y": _YR, "new": _XR[:5], **params}
    RECIPES.append(Recipe((kind,), lambda: _fresh(values), run, None, often))


_MAKER = _Lazy(lambda: _public("regression.KNN")(2))
_regress(
    "regression.GCRF", {"base": _Lazy(_ridge), "graph": _MAKER, "cv": 2, "random_state": 0}, 0.2
)
_regress("regression.GLACER", {
    "n_components": 2, "subsample": 0.5, "base": _Lazy(_ridge), "graph": _MAKER, "max_swaps": 1,
    "random_state": 0,
}, 0.05)  # fmt: skip
_regress("regression.NetworkLasso", {"lam": 1.0, "l2": 0.5, "graph": _MAKER, "max_iter": 3}, 0.1)

_call("regression.default_bases", n=30, random_state=0, use=len)
_call("regression.variogram", coordinates=_POINTS, values=_YR, metric="euclidean", n_bins=4,
      max_distance=0.9, random_state=0)  # fmt: skip
_call("regression.areas_graph", areas={"a": ["b"], "b": {"c": 2.0}, "c": []}, ids=["c", "b", "a"],
      id=None, rule="rook", tolerance=0.5)  # fmt: skip
_call("regression.areas_graph", areas={"type": "FeatureCollection", "features": [
    {"type": "Feature", "id": k, "geometry": {"type": "Polygon", "coordinates": [
        [[k, 0.0], [k + 1.0, 0.0], [k + 1.0, 1.0], [k, 1.0], [k, 0.0]],
    ]}} for k in range(3)
]}, ids=[2, 0, 1], id=None, rule="queen", tolerance=None)  # fmt: skip
_call("regression.edges_graph", edges={"from": ["a", "b"], "to": ["b", "c"], "weight": [1.0, 0.5]},
      ids=["a", "b", "c"])  # fmt: skip


def _town(n: int = 12) -> dict[str, Any]:
    return {
        "x": _POINTS[:n, 0], "y": _POINTS[:n, 1], "size": _XR[:n, 0],
        "kind": ["abc"[i % 3] for i in range(n)], "price": _YR[:n],
    }  # fmt: skip


@_steps("regression.TableRegressor", target="price", features=["size", "kind"], drop=None,
        categories=["kind"], max_levels=2, coords=["x", "y"], metric="euclidean", n_neighbors=2,
        base="linear", model="gcrf", random_state=0, table=_Lazy(_town),
        new=_Lazy(lambda: _town(5)), often=0.2)  # fmt: skip
def _table_regressor(touch: Touch, target: Any, table: Any, new: Any, **given: Any) -> Any:
    model = _public("regression.TableRegressor")(target, **given).fit(table)
    touch(model)
    return model.predict(new)


_call("regression.RegressionData", name="toy", X=_XR, y=_YR, coords=_POINTS, graph=_S,
      feature_names=("a", "b", "c"), metric="euclidean", regressors=(0, 1))  # fmt: skip


@_steps("regression.evaluate", "regression.RegressionData", repetitions=2, confidence=0.9,
        random_state=0, X=_XR, y=_YR, models={"mean": _Lazy(lambda: None)}, often=0.1)  # fmt: skip
def _evaluate(touch: Touch, X: Any, y: Any, models: Any, **o: Any) -> Any:
    from trellis.regression import RegressionData, evaluate

    data = RegressionData("toy", X, y, None, _S, ("a", "b", "c"))
    if isinstance(models, dict):
        models = {name: lambda a, b, seed: np.zeros(len(b.y)) for name in models}
    return evaluate(models, [(data, data)], **o).mse


# ------------------------------------------------------------------------- evaluation

_PREDICTED = [["D", "N", "N"], ["D", "N"], ["V"]]
_SPANS = [["B-X", "I-X", "O"], ["O", "B-Y"]]

for _name in ("token_accuracy", "sequence_accuracy", "hamming_loss", "confusion"):
    _call(f"evaluation.{_name}", gold=_Y, predicted=_PREDICTED)
_call("evaluation.hamming_loss", gold=_Y, predicted=_PREDICTED, average="sample")
_call("evaluation.confusion", gold=_Y, predicted=_PREDICTED, classes=["D", "N", "V"])
_call("evaluation.scorer", metric="accuracy")
_call("evaluation.span_scores", gold=_SPANS, predicted=_SPANS, scheme="BIO", strict=False)
_call("evaluation.word_segmentation_scores", gold_words=[["ab", "c"]],
      predicted_words=[["a", "bc"]], known_words=["ab"])  # fmt: skip
_call("evaluation.PrecisionRecall", correct=3, predicted=4, support=5, use=lambda s: s.f1)
_call("evaluation.calibration", marginals=[np.full((3, 2), 0.5), np.array([[0.25, 0.75]])],
      gold=[["A", "B", "A"], ["B"]], classes=["A", "B"], n_bins=5)  # fmt: skip
_call("evaluation.precision_recall_curve", gold=_SPANS, found=[[("X", 0, 1, 0.5)], []],
      scheme="BIO", label=None, use=lambda curve: curve.average_precision)  # fmt: skip
_call("evaluation.edit_distance", a=["K", "AE", "T"], b=["K", "T", "S"])
_call("evaluation.sentence_gleu", gold=["a", "b", "c"], answer=["a", "c"], longest=2)
_call("evaluation.gleu", gold=[["a", "b"], ["c"]], answers=[["a"], ["c", "d"]], longest=4)
_call("evaluation.word_error_rate", gold=[["a", "b"], ["c"]], answers=[["a"], ["c", "d"]])
_call("evaluation.normalised_edit_distance", a=["K", "AE", "T"], b=["K", "T", "S"])
_call("evaluation.paired_bootstrap", gold=_SPANS, pred_a=_SPANS,
      pred_b=[["O", "O", "O"], ["O", "O"]], metric="f1", scheme="BIO", n_resamples=20,
      confidence=0.9, random_state=0)  # fmt: skip
_call("evaluation.paired_permutation", gold=_Y, pred_a=_PREDICTED, pred_b=_Y, metric="accuracy",
      n_resamples=20, random_state=0)  # fmt: skip
_call("evaluation.mcnemar", gold=_Y, pred_a=_PREDICTED, pred_b=_Y)
_call("evaluation.paired_t_test", scores_a=np.array([0.5, 0.6, 0.7]),
      scores_b=np.array([0.4, 0.65, 0.6]), confidence=0.95)  # fmt: skip


@_steps("evaluation.precision_recall_curve", gold=[["A", "B", "A"], ["B"]], classes=["A", "B"],
        found=[np.full((3, 2), 0.5), np.array([[0.25, 0.75]])], label="A")  # fmt: skip
def _ranked(touch: Touch, **arguments: Any) -> Any:
    """No call: without `classes`, which need not be given, marginals are refused."""
    curve = _public("evaluation.precision_recall_curve")(**arguments)
    touch(curve)
    return curve.average_precision


# ------------------------------------------------------------------------- theory

_BOUND: dict[str, Any] = {"m": 100, "n": 20, "d": 1000, "alpha": 4.0, "lam": 0.5}
_MORE: dict[str, Any] = {"v": 1.0, "rho": 1.0, "tau": 1.0}
_SGD: dict[str, Any] = {
    "n": 20,
    "alpha": 4.0,
    "epsilon": 0.1,
    "c": 0.5,
    "q": 2.0,
    "kappa": 1.0,
    "beta": 0.5,
}
_CHEAP: dict[str, Any] = {"n": 10**4, "mu": 1.0, "feature_bound": 1.0, "loss_max": 1.0}
_SPACES: dict[str, Any] = {"n_outputs": 2.0, "n_partial": 3.0}

_call("theory.overfit_bound", **_BOUND, **_MORE, gamma=1.0, delta=0.05, variant="arxiv")
_call("theory.overfit_order", **_BOUND, delta=0.05, variant="arxiv")
_call("theory.risk_bound", empirical_risk=0.1, **_BOUND, **_MORE, gamma=1.0, delta=0.05,
      variant="nips2014")  # fmt: skip
_call("theory.risk_bound_from_stability", empirical_risk=0.1, stability=0.01, m=100, gamma=1.0,
      tau=1.0, delta=0.05)  # fmt: skip
_call("theory.mini_sample_stability_bound", **_BOUND, **_MORE)
_call("theory.sample_stability_bound", **_BOUND, **_MORE)
_call("theory.stability_from_function", function=0.1, n=20, tau=1.0)
_call("theory.sgd_iterations", **_SGD, a0=100.0)
_call("theory.sgd_learning_rate", **_SGD)
_call("theory.Quantities", **_BOUND, **_MORE, gamma=1.0, c=0.5, q=2.0, kappa=1.0, a0=100.0,
      empirical_risk=0.1,
      use=lambda q: [q.overfit_bound(), q.sgd_iterations(0.1),
                     q.sample_stability_bound()])  # fmt: skip
_call("theory.randomised_excess", n_experts=5, length=10, n_samples=200, delta=0.05, bound=1.0)
_call("theory.regret_bound", log_experts=16.0, n_rounds=200, eta=0.8, bound=1.0)
_call("theory.hoeffding_deviation", n=200, delta=0.05, bound=1.0)
_call("theory.majority_vote_bound", randomised_loss=0.1)
_call("theory.boosting_margin_bound", errors=[0.2, 0.25, 0.3], rho=0.1)
_call("theory.boosting_risk_bound", margin_loss=0.1, rho=0.5, n_labels=[2, 2],
      complexities=[0.1, 0.1], n_samples=10**6, delta=0.05)  # fmt: skip
_call("theory.massart_complexity", n_functions=130, n_samples=200)
_call("theory.bias_variance_objective", losses=np.linspace(0, 1, 4), examples=_POINTS[:4])
_call("theory.mutual_stability", losses=np.linspace(0, 1, 8),
      examples=np.linspace(0, 1, 16).reshape(8, 2), cells=(2, 2), n_exchanges=3,
      random_state=0)  # fmt: skip
_call("theory.true_risk_bound", empirical_risk=0.1, stability=0.9)
_call("theory.partial_annotation_bound", **_CHEAP, **_SPACES, delta=0.05, variant="printed")
_call("theory.log_partial_annotation_bound", **_CHEAP, log_outputs=1.0, log_partial=2.0, delta=0.05,
      variant="printed")  # fmt: skip
_call("theory.rademacher_kernel_class", n=100, mu=1.0, feature_bound=1.0)
_call("theory.rademacher_structured", **_CHEAP, **_SPACES)
_call("theory.rademacher_bridge", **_CHEAP, **_SPACES)
_call("theory.samples_needed", excess=0.1, mu=1.0, feature_bound=1.0, loss_max=1.0, **_SPACES,
      delta=0.05, variant="printed")  # fmt: skip
_call("theory.radius_of", l2=0.25, loss_at_zero=1.0)


@functools.cache
def _model() -> Any:
    from trellis import ChainCRF

    return ChainCRF("word[-1..1]", max_passes=2, random_state=0).fit(_toy_corpus())


@_steps("theory.point_losses", "theory.Quantities", model=_Lazy(_model), corpus=_Lazy(_toy_corpus))
def _quantities(touch: Touch, model: Any, corpus: Any) -> Any:
    from trellis.theory import Quantities, point_losses

    return [point_losses(model, corpus), Quantities.from_model(model, corpus)]


# ------------------------------------------------------------------------- cheap

_call("cheap.convergence", history=[0.75, 0.5, 0.25, 0.25], window=3)
_call("cheap.StoppingRule", window=3, threshold=0.01, use=lambda rule: rule([0.5, 0.3, 0.2, 0.2]))


def _perceptron_model() -> Any:
    from trellis import ChainPerceptron

    return ChainPerceptron("word", max_passes=1, random_state=0)


@_steps("cheap.ActiveLearner", model=_Lazy(_perceptron_model), strategy="best-vs-second",
        labels=["D", "N", "V"], random_state=0, pool=_X, annotation=_Y[0], index=0, size=2,
        often=0.2)  # fmt: skip
def _active(touch: Touch, pool: Any, annotation: Any, index: Any, size: Any, **params: Any) -> Any:
    from trellis.cheap import ActiveLearner

    learner = ActiveLearner(**params)
    first = learner.query(pool)
    learner.tell(index, annotation)
    return [first, learner.query_part(pool, size), learner.finish().predict(_X)]


def _max_margin() -> Any:
    from trellis import MaxMargin

    return MaxMargin("word", l2=0.1, max_passes=2, random_state=0)


@_steps("cheap.TransferLearner", model=_Lazy(_max_margin), rho=0.5, strategy="transfer", tol=0.1,
        data=_Lazy(lambda: {"a": _toy_corpus(), "b": _toy_corpus()}), domain="b", X=[["a", "b"]],
        often=0.1)  # fmt: skip
def _transfer(touch: Touch, data: Any, domain: Any, X: Any, **params: Any) -> Any:
    from trellis.cheap import TransferLearner

    return TransferLearner(**params).fit(data).predict(X, domain=domain)


_call("cheap.cross_validate_transfer", model=_Lazy(_max_margin),
      data=_Lazy(lambda: {"a": _toy_corpus(), "b": _toy_corpus()}), target="b", l2s=[0.1],
      rhos=[1.0], folds=2, seed=0, tol=0.5, use=lambda c: c.best.l2, often=0.05)  # fmt: skip


@_steps("cheap.AnnotationLog", timeout=1.0, sample=0, annotation=["A", None], nodes=None, key="",
        often=0.1)  # fmt: skip
def _annotation_log(
    touch: Touch, timeout: Any, sample: Any, annotation: Any, nodes: Any, key: Any
) -> Any:
    from trellis.cheap import AnnotationLog

    with (
        tempfile.TemporaryDirectory() as folder,
        AnnotationLog(Path(folder) / "log", timeout=timeout) as log,
    ):
        log.add(sample, annotation, nodes=nodes, key=key)
        return [(e.sample, e.annotation) for e in log.entries()]
