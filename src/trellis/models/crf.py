r"""Conditional random fields on chains, trees and graphs, with structure regularisation (Sun 2014).

.. math:: p(y \mid x) = e^{s(x, y)} / \textstyle\sum_{y'} e^{s(x, y')},

trained by the penalised log-likelihood of label sets on randomly drawn connected pieces
(:mod:`trellis.problems.log_likelihood`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Corpus
from trellis.corpus.label_values import as_objects
from trellis.decompose import Partitioner
from trellis.domains import flag, number, one_of
from trellis.errors import DataError, ParametersError
from trellis.estimator import changed, fixed, parameter
from trellis.models.automatic import is_dense
from trellis.models.edge_share import held_out_share, share_of_trees
from trellis.models.linear_parameters import GraphModel, TreeModel
from trellis.models.prediction import numbered
from trellis.models.scored_model import Block
from trellis.models.stochastic_model import StochasticModel
from trellis.problems import LabelProblem, LogLikelihood, Penalty, Weights
from trellis.problems.log_steps import log_pass
from trellis.problems.visits import Visits
from trellis.solvers import AdaptiveFrequency, LimitedMemoryBFGS
from trellis.solvers.passes import Learner, Passes
from trellis.structures import (
    GraphPotentials,
    log_event_probability,
    marginals,
    most_probable,
    sample,
)
from trellis.structures.belief_propagation import tell_unsettled
from trellis.structures.probability import LABEL_DAMPING, entropy_and_convergence

__all__ = ["CRF", "GraphCRF", "TreeCRF"]

_PASSES = {"sgd": 12, "adf": 12, "lbfgs": 500}
"""Solvers, and how many passes or iterations they make at most; of averaged steps see automatic."""

# «auto» takes L-BFGS up to so many additions for the scores of the data.
_LITTLE_DATA = 20_000_000

# «auto» takes it for graphs, whatever their size, if there are fewer.
_FEW_GRAPHS = 300

# L-BFGS on graphs sees so many spanning trees, if it may see so many nodes in all; iterations
# without edges, where labels are not all known; most iterations where a share of edges is tried.
_TREES, _TREE_NODES, _START, _TRIED = 4, 100_000, 100, 100

_TURNS = 500  # most turns of belief propagation that is slowed down

# ``tol`` is about passes of a stochastic method; one L-BFGS iteration gains far less than a pass.
_LBFGS_TOL = 1e-2


class CRF(StochasticModel):
    """What all CRFs have in common; not used by itself."""

    kind: ClassVar[str] = "crf"

    l2: float | str = parameter(
        one_of("auto") | number(at_least=0),
        """Factor of ‖w‖² beside the sum of the losses (CRFsuite's c2; the paper's λ/2); "auto":
        0.1, or 1 where features are dense (see :mod:`trellis.models.automatic`).""",
        default="auto",
    )
    l1: float = parameter(
        number(at_least=0), "Factor of ‖w‖₁, which makes weights exactly zero.", default=0.0
    )
    group_lasso: float = parameter(
        number(at_least=0),
        "Strength of the group lasso, which drops whole templates.",
        default=0.0,
    )
    solver: str = parameter(
        one_of("sgd", "adf", "lbfgs", "auto"),
        """Stochastic gradient descent; the same with rates that adapt to the frequency of features;
        L-BFGS on the exact objective (pieces are then cut once); "auto": L-BFGS for whole chains
        and trees of little data with dense features and for fewer than 300 whole graphs, else
        SGD.""",
        default="auto",
    )
    states: str = parameter(
        one_of("all", "observed"),
        """With L-BFGS, "observed" leaves weights at zero whose feature and label were never seen
        together (CRFsuite's default).""",
        default="all",
    )
    transitions: str = parameter(
        one_of("auto", "all", "observed"),
        """Pairs of labels whose transitions have weights. "observed": those seen, or to be
        expected at least once by chance, which makes training with many labels several times as
        fast; the others stay at zero. "auto": so from 400 labels on, unless most are not
        annotated.""",
        default="auto",
    )
    partial: str = parameter(
        one_of("unknown", "mentions", "entity-ratio"),
        """Chains: what positions without a label are. "unknown": they may have any. "mentions":
        only mentions are marked, and maybe not all; positions that are None or "O" are outside or
        missed, and first models that have not seen them say where they are surely outside, which
        takes about four times as long (:mod:`trellis.models.mentions`). "entity-ratio": the same,
        but of such positions only the share is known that is expected to be in mentions.""",
        default="unknown",
    )
    entity_ratio: float | str = parameter(
        one_of("auto") | number(above=0, below=1),
        """With ``partial="entity-ratio"``, the share of the positions that are in mentions, up to
        a tenth of it; "auto": what first models expect.""",
        default="auto",
    )
    lock_free: bool = parameter(
        flag,
        """With SGD on chains, let every thread take its own steps without waiting for the others:
        the result is not reproducible.""",
        default=False,
    )
    l2_once: bool = parameter(
        flag,
        "Apply the L2 penalty once a pass (as the paper's program does), not at every step.",
        default=False,
    )
    max_passes = changed(
        help="""Most passes over the data, or iterations of L-BFGS. "auto": 8 to 50 averaged passes,
        by the size of the data; 12 of others; 500 iterations."""
    )

    _steps_of: ClassVar = LogLikelihood

    # ---------------------------------------------------------------- training

    @property
    def _transitions(self) -> str:
        return self.transitions

    def _check_together(self) -> None:
        super()._check_together()
        if self.states == "observed" and self.solver != "lbfgs":
            raise ParametersError("{states} is for {solver}", states="observed", solver="lbfgs")
        if self.lock_free and self.solver not in ("sgd", "auto"):
            raise ParametersError("{lock_free} is for {solver}", lock_free=True, solver="sgd")
        if self.partial != "unknown" and self.structure != "chain":
            raise ParametersError(
                "{partial} is for {structure}", partial=self.partial, structure="chain"
            )
        if self._wants_average and (self.l1 or self.group_lasso):
            raise ParametersError(
                "{averaged} needs {l1} and {group_lasso}: a mean of weights has hardly a zero",
                averaged=True, l1=0, group_lasso=0,
            )  # fmt: skip

    @property
    def _tol(self) -> float:
        return super()._tol * (_LBFGS_TOL if self.solver_ == "lbfgs" else 1.0)

    def _penalty(self, share: float = 1.0) -> Penalty:
        groups, own = self.encoder_.groups() if self.group_lasso else None, None
        if self.group_lasso and self.edge_encoder_ is not None:
            own = self.edge_encoder_.groups()
        return Penalty(share * self.l2_, share * self.l1, share * self.group_lasso, groups, own)

    def _learner(self, problem: LabelProblem, start: Weights, rng: np.random.Generator) -> Learner:
        self.solver_, self.l2_ = self._solver_for(problem), self.penalty_strength(problem)
        loss, penalty = LogLikelihood(problem, self._threads), self._penalty()
        self._plan_passes(problem, _PASSES[self.solver_])
        if self.solver_ == "lbfgs":
            return self._newton(loss, penalty, start, rng)
        rate = self._find_rate(problem, start, rng)
        if self.solver_ == "adf":
            adf = AdaptiveFrequency(
                loss, start, learning_rate=rate, penalty=penalty, batch_size=self.batch_size
            )
            return self._passes(adf, rng)
        sgd = self._descent(problem, start, l2_once=self.l2_once, lock_free=self.lock_free)
        return self._passes(sgd, rng)

    def _newton(
        self, loss: LogLikelihood, penalty: Penalty, start: Weights, rng: np.random.Generator
    ) -> LimitedMemoryBFGS:
        """L-BFGS on pieces that are drawn once."""
        problem, observed = loss.problem, self.states == "observed"

        def drawn(partitioner: Partitioner) -> Visits:
            return problem.visits(partitioner.draw(problem.offsets, rng))

        if not (problem.complete.all() or start.any()):
            # What is not annotated is summed out, and the sums have poor optima near zero.
            alone = drawn(self._partitioner(problem, 1))
            first = LimitedMemoryBFGS(loss, start, alone, penalty=penalty, observed=observed)
            first.run(max_passes=_START, tol=self._tol)
            start = first.weights()
        n_trees = 1
        if not problem.is_forest and self.pieces == "tree":
            n_trees = min(_TREES, _TREE_NODES // len(problem.labels))
        whole = self._partitioner(problem)
        trees = [drawn(whole) for _ in range(max(1, n_trees))]
        centre = self._centre(start)
        how: dict[str, Any] = {"penalty": penalty, "observed": observed, "centre": centre}
        learner = LimitedMemoryBFGS(loss, start, trees, **how)
        if centre is not None and not start.transitions.any():
            there = Weights(start.node, centre.transitions, start.edge)
            if learner.objective_at(there) < learner.objective_at(start):
                return LimitedMemoryBFGS(loss, there, trees, **how)
        return learner

    def _centre(self, like: Weights) -> Weights | None:
        """Weights that the penalty draws to; None: zero."""
        return None

    def _solver_for(self, problem: LabelProblem) -> str:
        """The solver given, or what suits a problem."""
        if self.solver != "auto":
            return self.solver
        told = [self.averaged, self.learning_rate, self.decay]
        steps = any(value not in ("auto", False) for value in told) or self.batch_size > 1
        steps = steps or self.lock_free or self.l2_once or self.group_lasso > 0
        if steps or self.piece_size is not None:
            return "sgd"
        if self.structure == "graph" and problem.n_samples < _FEW_GRAPHS:
            return "lbfgs"  # passes over few graphs are few steps, and large ones
        # Spanning trees of graphs are drawn anew in each pass; L-BFGS would see only some.
        little = len(problem.encoded.indices) * problem.n_labels <= _LITTLE_DATA
        return "lbfgs" if little and is_dense(problem) and self.structure != "graph" else "sgd"

    def _run(self, learner: Learner, *arguments: Any, **named: Any) -> None:
        super()._run(learner, *arguments, **named)
        teacher: Any = learner.visitor if isinstance(learner, Passes) else learner
        n, total = teacher.objective.unsettled
        tell_unsettled(
            n, total, "objective and gradient are rough there; pieces='tree' needs exact sums only",
            stacklevel=5,
        )  # fmt: skip

    training_loss = "log"

    def improve(
        self, problem: LabelProblem, w: NDArray[np.float64], samples: Sequence[int]
    ) -> bool:
        """Make one pass of gradient steps over samples in this order, in place."""
        order = np.asarray(samples, np.int64)
        return log_pass(problem, w, order, self.penalty_strength(problem))

    # ---------------------------------------------------------------- probabilities

    def predict_marginals(
        self,
        X: Any,
        *,
        edges: Sequence[Any] | None = None,
        edge_types: Sequence[Sequence[str]] | None = None,
        edge_features: Sequence[Any] | None = None,
        constraints: Any = None,
    ) -> Any:
        """Probability of every label at every position.

        Exact on chains and trees, and on graphs that allow it, else by loopy belief propagation;
        :meth:`marginals` says which. A ConvergenceWarning says on how many graphs it did not
        converge.

        Returns
        -------
        list of arrays (n, L)
            Columns in the order of ``classes_``; rows sum to one. Of tables and graphs of other
            libraries in their form: a table with the index of the one given, dicts of nodes.
        """
        self._check_fitted()
        given = self._given(X, None, edges, edge_types, edge_features)
        limits = self._limits(given, constraints)
        found = [array for array, _ in self._marginals(given.corpus, limits)]
        return given.form.chances(found, self.classes_)

    predict_proba = predict_marginals
    """As scikit-learn calls them."""

    def marginals(
        self,
        X: Any,
        *,
        edges: Sequence[Any] | None = None,
        edge_types: Sequence[Sequence[str]] | None = None,
        edge_features: Sequence[Any] | None = None,
        constraints: Any = None,
    ) -> list[tuple[NDArray[np.float64], bool]]:
        """Marginals (n, L) of each sample, and whether they are exact."""
        self._check_fitted()
        given = self._given(X, None, edges, edge_types, edge_features)
        return self._marginals(given.corpus, self._limits(given, constraints))

    def _marginals(
        self, corpus: Corpus, constraints: Any = None
    ) -> list[tuple[NDArray[np.float64], bool]]:
        result: list[tuple[NDArray[np.float64], bool]] = []
        unsettled = 0
        # As predictions are: of several ends of messages, that which is nearest to knowing nothing.
        how: dict[str, Any] = {}
        if self.structure == "graph":
            how = {"damping": LABEL_DAMPING, "max_iterations": _TURNS, "tolerance": 1e-6}
        for p, first in self.potentials(corpus, constraints, compact=True):
            with numbered(first):
                chances = marginals(p, **how)
            unsettled += int((~chances.converged).sum())
            node = chances.node
            if self.refinement_ is not None:
                node = self.refinement_.merged(node)
            each = np.split(node, p.offsets[1:-1])
            result += zip(each, chances.exact.tolist(), strict=True)
        tell_unsettled(unsettled, len(result), "their marginals are rough", stacklevel=4)
        return result

    def log_prob(
        self,
        X: Any,
        y: Any = None,
        *,
        edges: Sequence[Any] | None = None,
        edge_types: Sequence[Sequence[str]] | None = None,
        edge_features: Sequence[Any] | None = None,
    ) -> NDArray[np.float64]:
        """Log-probability log p(y | x) of the labels of each sample.

        Exact. On graphs with loops it needs exact inference, and says so if a graph is too dense
        for it.

        Parameters
        ----------
        X : Corpus, list of samples, or (trees and graphs) list of pairs (sample, edges)
        y : list of label lists, optional
            Needed unless the corpus carries its labels. Where a label is None or a set, the
            probabilities of all labellings that agree are summed.
        edges, edge_types, edge_features
            As for :meth:`predict`.

        Returns
        -------
        array (S,)
            At most 0; -inf for a labelling that the tag scheme forbids.

        Examples
        --------
        >>> from trellis import ChainCRF
        >>> X, y = [["the", "cat"], ["a", "dog"]] * 5, [["D", "N"]] * 10
        >>> crf = ChainCRF("word", random_state=0).fit(X, y)
        >>> every = [[a, b] for a in "DN" for b in "DN"]
        >>> float(np.exp(crf.log_prob([["the", "dog"]] * 4, every)).sum().round(6))
        1.0
        >>> crf.log_prob([["the", "dog"]], [[None, {"D", "N"}]])
        array([0.])
        """
        self._check_fitted()
        corpus = self._corpus(X, y, edges, edge_types, edge_features)
        if corpus.labels is None:
            raise DataError("log_prob needs labels: pass y or a corpus that carries them")
        labels = corpus.labels.recoded(self.classes_)
        parts = [np.zeros(0)]
        for p, first in self.potentials(corpus, compact=True, keep=False):
            begin = int(corpus.offsets[first])
            allowed = labels.take(slice(begin, begin + len(p.node))).allowed()
            with numbered(first):
                parts.append(log_event_probability(p, allowed[:, self._label_of_state]))
        return np.concatenate(parts)

    def sample(
        self,
        X: Any,
        n_samples: int = 1,
        *,
        edges: Sequence[Any] | None = None,
        edge_types: Sequence[Sequence[str]] | None = None,
        edge_features: Sequence[Any] | None = None,
        random_state: int | None = None,
    ) -> list[list[list[Any]]]:
        """Labellings drawn from p(y | x): for each sample, ``n_samples`` of them.

        Exact on chains, trees, and graphs whose :meth:`marginals` are exact. On graphs too dense
        for that the draws are approximate: those of Gibbs sampling by blocks that are forests,
        after 100 sweeps (:mod:`trellis.structures.gibbs`).
        """
        self._check_fitted()
        corpus = self._corpus(X, None, edges, edge_types, edge_features)
        rng = np.random.default_rng(random_state)
        names = as_objects(self.state_labels)
        result: list[list[list[Any]]] = []
        for p, first in self.potentials(corpus, compact=True):
            with numbered(first):
                drawn = sample(p, n_samples, rng, method="auto")
            for a, b in zip(p.offsets[:-1], p.offsets[1:], strict=True):
                result.append(names[drawn[:, a:b]].tolist())
        return result

    def entropy(
        self,
        X: Any,
        *,
        edges: Sequence[Any] | None = None,
        edge_types: Sequence[Sequence[str]] | None = None,
        edge_features: Sequence[Any] | None = None,
    ) -> NDArray[np.float64]:
        """Entropy of p(y | x) of each sample, in nats: how unsure the model is.

        On graphs whose marginals are not exact it is that of belief propagation; a
        ConvergenceWarning says on how many this did not converge.
        """
        self._check_fitted()
        corpus = self._corpus(X, None, edges, edge_types, edge_features)
        parts, unsettled = [np.zeros(0)], 0
        for p, first in self.potentials(corpus, compact=True):
            with numbered(first):
                found, converged = entropy_and_convergence(p)
            parts.append(found)
            unsettled += int((~converged).sum())
        tell_unsettled(unsettled, len(corpus), "their entropies are rough")
        return np.concatenate(parts)

    def _marginals_or_none(self, corpus: Corpus) -> NDArray[np.float64] | None:
        each = self._marginals(corpus)
        return each[0][0] if each else None


class TreeCRF(CRF, TreeModel):
    """CRF on trees (or forests): p(y | x) ∝ e^{s(x, y)}; training and inference are exact.

    Attributes
    ----------
    edge_types_ : tuple of str
        The types of edges, sorted; empty if they have none.
    edge_encoder_ : AttributeEncoder or None
        The features of edges, if they have any.
    weights_ : Weights
        Node weights (F, L), tables of transitions (K, L, L), one for each type of edges, and
        weights of rich edges and features of edges if there are any.
    classes_, history_, learning_rate_, solver_, stop_reason_
        As for :class:`trellis.ChainCRF`.

    Examples
    --------
    >>> from trellis import TreeCRF
    >>> X = [["cats", "sleep"], ["dogs", "that", "bark", "sleep"]] * 5
    >>> y = [["N", "V"], ["N", "P", "V", "V"]] * 5
    >>> heads = [[(0, 1)], [(0, 3), (1, 2), (2, 0)]] * 5  # (dependent, head)
    >>> crf = TreeCRF("word", random_state=0).fit(X, y, edges=heads)
    >>> crf.predict([["dogs", "sleep"]], edges=[[(0, 1)]])
    [['N', 'V']]
    >>> crf.predict_marginals([["dogs", "sleep"]], edges=[[(0, 1)]])[0].shape
    (2, 3)
    """

    transitions: str = fixed("all")
    partial: str = fixed("unknown")
    entity_ratio: float | str = fixed("auto")
    lock_free: bool = fixed(False)


class GraphCRF(CRF, GraphModel):
    """CRF on any graph: p(y | x) ∝ e^{s(x, y)}, trained on randomly drawn connected pieces.

    What it predicts is the most probable label of each node, unless ``inference`` asks for the best
    labelling of all: the best of many nodes can be far from what is probable.

    Attributes
    ----------
    edge_share_ : float
        With ``pieces="tree"``, the scores of edges count so many times at prediction, where all
        edges speak: the share ρ of the edges that a spanning tree has, or what held-out parts of
        the training data show to be better (see :mod:`trellis.models.edge_share`). 1 on forests.
    alike_ : bool
        Where labels are known in part: whether the penalty draws edges to neighbours that agree as
        often as not, since that made labels held out more probable, and not to no tie at all.
    classes_, edge_types_, history_, learning_rate_, solver_, stop_reason_, weights_
        As for :class:`trellis.TreeCRF`.

    Examples
    --------
    Four corners of a square, each like its neighbours:

    >>> from trellis import GraphCRF
    >>> square = [(0, 1), (1, 2), (2, 3), (3, 0)]
    >>> X = [[["dark"], ["dark"], ["grey"], ["dark"]], [["light"], ["grey"], ["light"], ["light"]]]
    >>> y = [["A"] * 4, ["B"] * 4]
    >>> crf = GraphCRF(random_state=0, max_passes=30).fit(X * 5, y * 5, edges=[square] * 10)
    >>> crf.predict([[["grey"], ["dark"], ["grey"], ["dark"]]], edges=[square])
    [['A', 'A', 'A', 'A']]
    >>> crf.decode([[["grey"], ["dark"], ["grey"], ["dark"]]], edges=[square])[0].exact
    True
    """

    transitions: str = fixed("all")
    partial: str = fixed("unknown")
    entity_ratio: float | str = fixed("auto")
    lock_free: bool = fixed(False)

    edge_share_: float = fixed(1.0)
    alike_: bool = fixed(False)

    def _learn_edge_types(self, corpora: Sequence[Corpus]) -> None:
        super()._learn_edge_types(corpora)
        self.edge_share_ = share_of_trees(corpora) if self.pieces == "tree" else 1.0
        self.alike_ = False

    def _learner(self, problem: LabelProblem, start: Weights, rng: np.random.Generator) -> Learner:
        if self.pieces == "tree" and not problem.is_forest:

            def fitted(alike: bool, part: LabelProblem) -> Weights:
                self.alike_ = alike
                zero = start.zeros_like(start.node.dtype)
                learner = super(GraphCRF, self)._learner(part, zero, rng)
                most = min(self._pass_limit(), _TRIED)
                learner.run(max_passes=most, tol=self._tol)
                return learner.weights()

            ways = [False, True] if self._may_be_alike(problem) else [False]
            way, self.edge_share_ = held_out_share(
                problem, self.edge_share_, [partial(fitted, alike) for alike in ways], rng
            )
            self.alike_ = ways[way]
        return super()._learner(problem, start, rng)

    def _may_be_alike(self, problem: LabelProblem) -> bool:
        """Whether few labels may leave open what neighbours have in common."""
        by_optimum = self._solver_for(problem) == "lbfgs" and not self.l1
        whole = self.piece_size is None and not self._is_directed
        return by_optimum and whole and not problem.complete.all()

    def _centre(self, like: Weights) -> Weights | None:
        if not self.alike_:
            return None
        # Without direction a table and its mirror image are added up.
        n = like.node.shape[1]
        centre = like.zeros_like(like.node.dtype)
        centre.transitions[:] = 0.5 * np.log(max(1, n - 1)) * np.eye(n)
        return centre

    def _labels(self, block: Block, prune: int | None) -> NDArray[np.int32]:
        if self.inference not in ("auto", "marginals"):
            return super()._labels(block, prune)
        with numbered(block.first):
            p = block.potentials()
            assert isinstance(p, GraphPotentials)
            return most_probable(p)
