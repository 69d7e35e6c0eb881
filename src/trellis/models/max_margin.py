"""Max-margin learning (structured SVMs) on chains, trees and graphs.

    minimise  l2 ‖w‖² (or l1 ‖w‖₁) + Σ_i c_i (max_y [Δ(y_i, y) + s(x_i, y)] − s(x_i, y_i))

The scores s are those of the CRFs, and so are predictions. The solvers, and what their gap says,
are described in :mod:`trellis.solvers.bundle` and :mod:`trellis.solvers.frank_wolfe`. With label
sets the losses are those of :mod:`trellis.objectives.partial`, and the solver is
:mod:`trellis.solvers.cccp`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Corpus, Label, as_corpus, as_graph_corpus
from trellis.corpus.schemes import get_scheme
from trellis.errors import DataError
from trellis.features import Encoder
from trellis.models.chain_predictor import ChainPredictor
from trellis.models.explain import Explanation
from trellis.models.graph_model import TreeModel
from trellis.models.graph_predictor import Decoded, GraphPredictor
from trellis.models.label_problems import (
    LearnsFromLabelSets,
    learning_encoder,
    numbered_types,
)
from trellis.models.model_file import StoredLinearModel
from trellis.models.params import is_number, sample_weights
from trellis.models.trained_model import training_corpus
from trellis.objectives import Weights
from trellis.objectives.graph_hinge import GraphHingeLoss
from trellis.objectives.hinge import HingeData, HingeLoss, NodeOrder
from trellis.objectives.hinge_dual import HingeDual
from trellis.objectives.losses import additive_costs, check_loss, gold_labels
from trellis.objectives.partial import PARTIAL_LOSSES, PartialObjective
from trellis.progress import Reporter
from trellis.solvers.bundle import BundleRecord, BundleResult, minimise_bundle
from trellis.solvers.cccp import CCCPRecord
from trellis.solvers.frank_wolfe import (
    FrankWolfeRecord,
    FrankWolfeResult,
    minimise_frank_wolfe,
    run_frank_wolfe,
)
from trellis.solvers.partial_margin import PartialResult, minimise_partial
from trellis.structures import Forest, is_forest

__all__ = ["MaxMargin"]

_STRUCTURES = ("chain", "tree", "graph")
_SOLVERS = ("frank-wolfe", "bundle")
_INFERENCE = ("auto", "exact", "elimination", "max-flow", "dual", "lp", "ilp")
# What "auto" stands for: passes of Frank–Wolfe, iterations of the bundle method.
_MAX_PASSES = {"frank-wolfe": 200, "bundle": 1000}


class _Chain(ChainPredictor):
    """A chain model that only predicts."""


class _Graph(GraphPredictor):
    """A graph model that only predicts."""


class _Tree(GraphPredictor):
    """A tree model that only predicts."""

    _best = TreeModel._best
    _kbest = TreeModel._kbest


class MaxMargin(LearnsFromLabelSets, StoredLinearModel):
    """Structured support vector machine on chains, trees or graphs.

    Parameters
    ----------
    features : str, list of str, Templates or "auto"
        As for :class:`trellis.ChainCRF`.
    structure : "chain", "tree" or "graph"
        How the positions of a sample hang together; trees and graphs need ``edges``.
    l2 : float
        Factor of ‖w‖² beside the sum of the losses; C of other programs is 1 / (2 l2).
    l1 : float
        Factor of ‖w‖₁, beside ``l2=0``; for ``solver="bundle"`` and up to some hundreds of weights.
    solver : "frank-wolfe" or "bundle"
        Block-coordinate Frank–Wolfe: fast, also with many features. Bundle method: fewer
        iterations to a small gap, and L1.
    loss : "hamming", array (L, L) or function
        Cost of predicting a label in place of another: 1; ``loss[gold, predicted]`` in the order of
        ``classes_``; or a function of the gold labels of a sample and of ``classes_`` that returns
        the costs (n, L), if all labels are known. What is right costs 0.
    partial : "bridge", "latent-hinge", "ramp" or "max"
        Loss where a position has a set of labels or none (see
        :mod:`trellis.objectives.partial`); all but "max" make the objective non-convex. With one
        label at each position all but "ramp" are the usual loss. Whatever ``solver`` is, it is
        minimised by planes.
    tol : float
        Stop when the objective is known to be within this part of itself of the optimum, that of a
        round if it is not convex.
    max_passes : int or "auto"
        Most passes of Frank–Wolfe ("auto": 200), iterations of the bundle method (1000), or rounds
        if the objective is not convex (50).
    memory : int or None
        Most planes that are kept; None: all (with label sets, as many as 64 MB hold).
    inference : str
        Graphs: method of :func:`trellis.structures.graph_best`, or "exact". Where it is not exact,
        ``exact_`` is False after training and the gap includes what inference left open.
    directed : bool
        Trees and graphs: whether the two ends of an edge play different parts.
    scheme : "BIO", "BILOU", "IOBES", "BMES" or None
        Chains: predict only label sequences that are valid in this tag scheme.
    verbose : bool
        One line for each pass, if standard error is a terminal.
    random_state : int or None
        Seed; the same seed gives the same bits.

    Attributes
    ----------
    classes_ : tuple of str
        The labels, sorted.
    edge_types_ : tuple of str
        The types of edges, sorted; empty if they have none.
    weights_ : Weights
        Node weights (F, L) and transitions: (L, L) for chains, else (K, L, L).
    history_ : list of BundleRecord, FrankWolfeRecord or CCCPRecord
        What each pass, iteration or round brought.
    objective_, gap_ : float
        The objective that was reached, and by how much the optimum may be lower; infinite if the
        objective is not convex, since then nothing is known of its optimum.
    exact_ : bool
        Whether all inference in training was exact.
    stop_reason_ : str
        "gap", "max_passes", "max_iterations", "no progress" or "interrupted"; with label sets also
        "eta" (a round of full precision brought next to nothing) and "max_rounds".

    Examples
    --------
    >>> from trellis import MaxMargin
    >>> X = [["the", "cat", "sat"], ["the", "dog", "ran"]] * 5
    >>> y = [["D", "N", "V"], ["D", "N", "V"]] * 5
    >>> svm = MaxMargin(l2=0.1, random_state=0).fit(X, y)
    >>> svm.predict([["the", "cat", "ran"]]), svm.stop_reason_
    ([['D', 'N', 'V']], 'gap')
    """

    classes_: tuple[str, ...]
    encoder_: Encoder
    weights_: Weights
    edge_types_: tuple[str, ...]
    history_: list[BundleRecord] | list[FrankWolfeRecord] | list[CCCPRecord]
    objective_: float
    gap_: float
    exact_: bool
    stop_reason_ = ""
    input_format_: dict[str, Any] | None = None  # how the command line read the training file

    def __init__(
        self,
        features: Any = "auto",
        *,
        structure: str = "chain",
        l2: float = 1.0,
        l1: float = 0.0,
        solver: str = "frank-wolfe",
        loss: Any = "hamming",
        partial: str = "bridge",
        tol: float = 0.01,
        max_passes: int | str = "auto",
        memory: int | None = None,
        inference: str = "auto",
        directed: bool = True,
        scheme: str | None = None,
        verbose: bool = False,
        random_state: int | None = None,
    ) -> None:
        self.features = features
        self.structure = structure
        self.l2 = l2
        self.l1 = l1
        self.solver = solver
        self.loss = loss
        self.partial = partial
        self.tol = tol
        self.max_passes = max_passes
        self.memory = memory
        self.inference = inference
        self.directed = directed
        self.scheme = scheme
        self.verbose = verbose
        self.random_state = random_state

    # ---------------------------------------------------------------- training

    def _check_parameters(self) -> None:
        for name, known in (
            ("structure", _STRUCTURES),
            ("solver", _SOLVERS),
            ("inference", _INFERENCE),
            ("partial", tuple(PARTIAL_LOSSES)),
        ):
            if getattr(self, name) not in known:
                raise DataError(
                    f"{name} must be one of {', '.join(known)}, got {getattr(self, name)!r}"
                )
        for name in ("l2", "l1"):
            value = getattr(self, name)
            if not (is_number(value) and 0 <= value < np.inf):
                raise DataError(f"{name} must be a number of at least 0, got {value!r}")
        if (self.l2 > 0) == (self.l1 > 0):
            raise DataError(
                f"one of l2 and l1 must be positive and the other 0, got l2={self.l2!r} and "
                f"l1={self.l1!r}"
            )
        if self.l1 and self.solver != "bundle":
            raise DataError('l1 needs solver="bundle"')
        check_loss(self.loss)
        if not (is_number(self.tol) and 0 <= self.tol < np.inf):
            raise DataError(f"tol must be a number of at least 0, got {self.tol!r}")
        passes = self.max_passes
        if passes != "auto" and not (isinstance(passes, int | np.integer) and passes >= 1):
            raise DataError(f"max_passes must be 'auto' or a positive integer, got {passes!r}")
        memory = self.memory
        if memory is not None and not (isinstance(memory, int | np.integer) and memory >= 2):
            raise DataError(f"memory must be None or an integer of at least 2, got {memory!r}")
        if not isinstance(self.directed, bool | np.bool_):
            raise DataError(f"directed must be True or False, got {self.directed!r}")
        seed = self.random_state
        if seed is not None and not (isinstance(seed, int | np.integer) and seed >= 0):
            raise DataError(f"random_state must be None or an integer of at least 0, got {seed!r}")
        if self.scheme is not None:
            get_scheme(self.scheme)
            if self.structure != "chain":
                raise DataError("scheme is for chains; leave it out for trees and graphs")

    def fit(
        self,
        X: Any,
        y: Sequence[Sequence[Label]] | None = None,
        *,
        edges: Sequence[Any] | None = None,
        edge_types: Sequence[Sequence[str]] | None = None,
        sample_weight: Sequence[float] | NDArray[Any] | None = None,
    ) -> Self:
        """Learn from labelled samples, all of them or a part of their positions.

        Parameters
        ----------
        X : Corpus or list of samples
            See :func:`trellis.corpus.as_corpus` for what a sample may be.
        y : list of label lists, optional
            Needed unless the corpus carries its labels; for each position a label, a set of labels
            or None (not annotated).
        edges : list of integer arrays (m, 2), optional
            Trees and graphs: edges of each sample, unless ``X`` has them.
        edge_types : list of lists of str, optional
            Trees and graphs: type of each edge; each type has a table of its own.
        sample_weight : array (S,), optional
            Weight of each sample's loss.

        Returns
        -------
        self
        """
        self._check_parameters()
        corpus = training_corpus(self._corpus(X, y, edges, edge_types))
        weight = sample_weights(sample_weight, len(corpus))
        assert corpus.labels is not None
        classes = corpus.labels.classes
        if not classes:
            raise DataError("no position is annotated: there is nothing to learn from")
        self._check_classes(classes)
        if self.partial == "ramp" or (corpus.labels.ids >= len(classes)).any():
            return self._fit_partial(corpus, weight)
        gold = gold_labels(corpus.labels, corpus.offsets)
        costs = additive_costs(self.loss, gold, corpus.offsets, classes)
        encoder, (encoded,) = learning_encoder(self.features, [corpus])
        data = HingeData(encoded, gold, costs, weight, encoder.n_features)
        edge_types_, (types,) = numbered_types([corpus])
        loss = self._hinge(data, corpus, types, max(1, len(edge_types_)))
        found = self._solve(loss)
        self.classes_, self.encoder_, self.edge_types_ = classes, encoder, edge_types_
        return self._take(found, *loss.split(found.weights))

    def _check_classes(self, classes: Sequence[str]) -> None:
        if self.scheme is not None:
            get_scheme(self.scheme).validity(classes)  # raises if a label does not fit

    def _take(
        self,
        found: BundleResult | FrankWolfeResult | PartialResult,
        node: NDArray[np.float64],
        tables: NDArray[np.float64],
    ) -> Self:
        """Keep what a solver found."""
        self.weights_ = self._weights(node, tables)
        self.history_, self.stop_reason_ = found.records, found.stop_reason
        self.objective_, self.gap_, self.exact_ = found.objective, found.gap, found.exact
        if found.stop_reason == "interrupted":  # what was learned so far is kept, and usable
            raise KeyboardInterrupt
        return self

    # ---------------------------------------------------------------- partial labels

    def _fit_partial(self, corpus: Corpus, weight: NDArray[np.float64]) -> Self:
        assert corpus.labels is not None
        (problem,) = self._problems([corpus], corpus.labels.classes)
        reporter = Reporter(enabled=self.verbose)
        found = minimise_partial(
            PartialObjective(problem, self.partial, sample_weight=weight),
            l2=float(self.l2), l1=float(self.l1), tol=float(self.tol), memory=self.memory,
            limit=None if isinstance(self.max_passes, str) else int(self.max_passes),
            seed=self.random_state, report=lambda record: reporter.line(_line(record)),
        )  # fmt: skip
        self.classes_, self.encoder_ = problem.classes, problem.encoder
        self.edge_types_ = problem.edge_types
        return self._take(found, *problem.split(found.weights))

    def _corpus(self, X: Any, y: Any, edges: Any, edge_types: Any) -> Corpus:
        if self.structure != "chain":
            return as_graph_corpus(X, y, edges, edge_types)
        if edges is not None or edge_types is not None:
            raise DataError('edges are for structure="tree" and "graph"; chains have none')
        return as_corpus(X, y)

    def _hinge(
        self, data: HingeData, corpus: Corpus, types: NDArray[np.int64], n_tables: int
    ) -> HingeLoss | GraphHingeLoss:
        if self.structure == "chain":
            return HingeLoss(data)
        assert corpus.edges is not None
        directed = bool(self.directed)
        if self.structure == "graph" and not is_forest(corpus.offsets, corpus.edges):
            return GraphHingeLoss(
                data, corpus.edges, types, n_tables=n_tables, directed=directed,
                inference=self.inference,
            )  # fmt: skip
        nodes = NodeOrder.forest(Forest.of(corpus.offsets, corpus.edges), types)
        return HingeLoss(data, nodes, n_tables=n_tables, directed=directed)

    def _solve(self, loss: HingeLoss | GraphHingeLoss) -> BundleResult | FrankWolfeResult:
        limit = self.max_passes
        most = _MAX_PASSES[self.solver] if isinstance(limit, str) else int(limit)
        reporter = Reporter(enabled=self.verbose)

        def report(record: BundleRecord | FrankWolfeRecord) -> None:
            reporter.line(_line(record))

        if self.solver == "bundle":
            return minimise_bundle(
                loss.risk, loss.n_weights, l2=float(self.l2), l1=float(self.l1), floor=0.0,
                memory=self.memory, tol=float(self.tol), max_iterations=most, report=report,
            )  # fmt: skip
        tol, l2 = float(self.tol), float(self.l2)
        if isinstance(loss, HingeLoss):
            return run_frank_wolfe(
                HingeDual(loss, l2), np.random.default_rng(self.random_state),
                max_passes=most, tol=tol, report=report,
            )  # fmt: skip
        return minimise_frank_wolfe(
            loss.best, loss.n_samples, loss.n_weights, l2=l2,
            sample_weight=loss.data.sample_weight, max_passes=most, tol=tol,
            seed=self.random_state, report=report,
        )  # fmt: skip

    # ---------------------------------------------------------------- prediction

    def _predictor(self, edges: Any, edge_types: Any) -> tuple[Any, dict[str, Any]]:
        """A model of the structure with these weights, and what its methods take besides."""
        self._check_fitted()
        model: Any = {"chain": _Chain, "tree": _Tree, "graph": _Graph}[self.structure]()
        model.classes_, model.encoder_, model.weights_ = self.classes_, self.encoder_, self.weights_
        if self.structure == "chain":
            if edges is not None or edge_types is not None:
                raise DataError('edges are for structure="tree" and "graph"; chains have none')
            model.scheme = self.scheme
            return model, {}
        model.directed, model.inference = bool(self.directed), self.inference
        model.edge_types_ = self.edge_types_
        return model, {"edges": edges, "edge_types": edge_types}

    def predict(
        self,
        X: Any,
        *,
        edges: Sequence[Any] | None = None,
        edge_types: Sequence[Sequence[str]] | None = None,
        constraints: Sequence[Sequence[Label]] | None = None,
    ) -> list[list[str]]:
        """Best labels of each sample.

        Parameters
        ----------
        X : Corpus or list of samples
        edges, edge_types
            Trees and graphs: as for :meth:`fit`.
        constraints : list of lists, optional
            For each position the label it must have, a set of allowed labels, or None.

        Returns
        -------
        list of lists of str
        """
        model, more = self._predictor(edges, edge_types)
        found: list[list[str]] = model.predict(X, constraints=constraints, **more)
        return found

    def decode(
        self,
        X: Any,
        *,
        edges: Sequence[Any] | None = None,
        edge_types: Sequence[Sequence[str]] | None = None,
        constraints: Sequence[Sequence[Label]] | None = None,
    ) -> list[Decoded]:
        """Trees and graphs: labelling of each sample with score, bound and exactness."""
        model, more = self._predictor(edges, edge_types)
        if self.structure == "chain":
            raise DataError("decode is for trees and graphs; predict is exact for chains")
        found: list[Decoded] = model.decode(X, constraints=constraints, **more)
        return found

    def predict_kbest(
        self,
        X: Any,
        k: int,
        *,
        edges: Sequence[Any] | None = None,
        edge_types: Sequence[Sequence[str]] | None = None,
        constraints: Sequence[Sequence[Label]] | None = None,
    ) -> list[list[tuple[list[str], float]]]:
        """Return the k best labellings of each sample, best first, each with its score."""
        model, more = self._predictor(edges, edge_types)
        found: list[list[tuple[list[str], float]]] = model.predict_kbest(
            X, k, constraints=constraints, **more
        )
        return found

    def score(
        self,
        X: Any,
        y: Sequence[Sequence[Label]] | None = None,
        sample_weight: Sequence[float] | NDArray[Any] | None = None,
        *,
        edges: Sequence[Any] | None = None,
        edge_types: Sequence[Sequence[str]] | None = None,
    ) -> float:
        """Accuracy: the share of annotated positions labelled right (a set: by any member)."""
        model, more = self._predictor(edges, edge_types)
        return float(model.score(X, y, sample_weight, **more))

    def explain(
        self,
        X: Any,
        *,
        edges: Sequence[Any] | None = None,
        edge_types: Sequence[Sequence[str]] | None = None,
        n_features: int = 5,
    ) -> Explanation:
        """Say why a sample got its labels: the features that spoke for each label."""
        model, more = self._predictor(edges, edge_types)
        found: Explanation = model.explain(X, n_features=n_features, **more)
        return found

    @property
    def n_features_(self) -> int:
        """Number of features the model knows."""
        return self.encoder_.n_features

    @property
    def n_passes_(self) -> int:
        """Number of passes or iterations of the last training."""
        return len(self.history_)


def _line(record: BundleRecord | FrankWolfeRecord | CCCPRecord) -> str:
    """One honest line about a pass, an iteration or a round."""
    if isinstance(record, CCCPRecord):
        return (
            f"round {record.number:3d}  objective {record.objective:14.2f}  "
            f"planes {record.n_planes:5d}  {record.seconds:7.2f} s"
        )
    objective = "" if record.objective is None else f"  objective {record.objective:14.2f}"
    gap = "" if record.gap is None else f"  gap {record.gap:10.2f}"
    return (
        f"pass {record.number:4d}{objective:>27s}  bound {record.lower_bound:14.2f}{gap:>16s}"
        f"  {record.seconds:7.2f} s"
    )
