"""sklearn-crfsuite's estimator, trained by Trellis."""

from __future__ import annotations

import os
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from trellis.compat.dump import ParsedDump
from trellis.compat.items import as_labels, corpus_of
from trellis.compat.pycrfsuite import Tagger
from trellis.compat.sklearn_crfsuite.metrics import flat_accuracy_score
from trellis.compat.sklearn_crfsuite.trainer import LinePerIterationTrainer
from trellis.compat.training_log import TrainingLog
from trellis.corpus.corpus import check_lengths
from trellis.domains import anything, flag, nothing, number, one_of, whole
from trellis.estimator import Estimator, parameter

__all__ = ["CRF"]

_UNUSED = "Taken, but of no effect: Trellis's solvers need no such choice."
_WHOLE, _SHARE, _FLAG = nothing | whole(1), nothing | number(at_least=0), nothing | flag
_TRAINER_NAMES = {
    "min_freq": "feature.minfreq",
    "all_possible_states": "feature.possible_states",
    "all_possible_transitions": "feature.possible_transitions",
    "pa_type": "type",
    **{
        f"calibration_{name}": f"calibration.{name}"
        for name in ("eta", "rate", "samples", "candidates", "max_trials")
    },
}


class CRF(Estimator):
    """Linear-chain CRF with the constructor, methods and attributes of sklearn-crfsuite's.

    Parameters left at None have the defaults of the algorithm. Which learner of Trellis stands for
    which algorithm, and what differs from CRFsuite: :mod:`trellis.compat.training`. The same
    ``random_state`` gives the same bits.

    Attributes
    ----------
    classes_ : list of str
        The labels, in order of appearance; those of a model that was read from a file are sorted.
    state_features_ : dict
        Weights by (attribute, label), without zeros.
    transition_features_ : dict
        Weights by (label before, label), without zeros.
    attributes_ : list of str
        Attributes with a weight; ``num_attributes_`` counts them.
    size_ : int
        Bytes of the model as a file.
    tagger_ : trellis.compat.pycrfsuite.Tagger
        The model; ``tagger_.model`` is the :class:`trellis.ChainCRF` inside.
    training_log_ : TrainingLog
        What each iteration of the last training brought.

    Examples
    --------
    >>> from trellis.compat import sklearn_crfsuite
    >>> X = [[{"w": "the"}, {"w": "cat", "long": False}], [{"w": "a"}, {"w": "dog"}]] * 5
    >>> crf = sklearn_crfsuite.CRF(algorithm="lbfgs", c1=0.01, c2=0.01).fit(X, [["D", "N"]] * 10)
    >>> crf.predict_single([{"w": "the"}, {"w": "dog"}])
    ['D', 'N']
    >>> crf.classes_, crf.state_features_["w:cat", "N"] > 0, crf.transition_features_["D", "N"] > 0
    (['D', 'N'], True, True)
    """

    algorithm: str | None = parameter(
        nothing | one_of("lbfgs", "l2sgd", "ap", "pa", "arow", "averaged-perceptron",
                         "passive-aggressive"),
        """Training algorithm: penalised log-likelihood ("lbfgs", the default, and "l2sgd"),
        averaged perceptron ("ap"), max-margin for passive-aggressive ("pa"), rates by frequency for
        "arow".""",
        default=None, kw_only=False,
    )  # fmt: skip
    min_freq: float | None = parameter(
        _SHARE,
        "Leave out attributes whose values sum to less over the training data.",
        default=None, kw_only=False,
    )  # fmt: skip
    all_possible_states: bool | None = parameter(
        _FLAG,
        """With ``exact``, learn weights also of attributes and labels never seen together; without
        it they always are.""",
        default=None, kw_only=False,
    )  # fmt: skip
    all_possible_transitions: bool | None = parameter(
        _FLAG,
        """Learn weights of all transitions; else of those seen or to be expected by chance.
        Perceptrons and max-margin models always do.""",
        default=None, kw_only=False,
    )  # fmt: skip
    c1: float | None = parameter(
        _SHARE,
        'Coefficient of ‖w‖₁ with "lbfgs" (default 0), which makes weights exactly zero.',
        default=None, kw_only=False,
    )  # fmt: skip
    c2: float | None = parameter(
        _SHARE,
        'Coefficient of ‖w‖² with "lbfgs" and "l2sgd" (default 1).',
        default=None, kw_only=False,
    )  # fmt: skip
    max_iterations: int | None = parameter(
        _WHOLE,
        "Most passes over the data, or, with ``exact``, iterations of L-BFGS.",
        default=None, kw_only=False,
    )  # fmt: skip
    num_memories: int | None = parameter(_WHOLE, _UNUSED, default=None, kw_only=False)
    epsilon: float | None = parameter(_SHARE, _UNUSED, default=None, kw_only=False)
    period: int | None = parameter(
        _WHOLE, "With ``exact``, the iterations that ``delta`` is about.",
        default=None, kw_only=False,
    )  # fmt: skip
    delta: float | None = parameter(
        _SHARE,
        "With ``exact``, stop when the objective falls by less than this share in a period.",
        default=None, kw_only=False,
    )  # fmt: skip
    linesearch: str | None = parameter(
        nothing | one_of("MoreThuente", "Backtracking", "StrongBacktracking"), _UNUSED,
        default=None, kw_only=False,
    )  # fmt: skip
    max_linesearch: int | None = parameter(_WHOLE, _UNUSED, default=None, kw_only=False)
    calibration_eta: float | None = parameter(_SHARE, _UNUSED, default=None, kw_only=False)
    calibration_rate: float | None = parameter(_SHARE, _UNUSED, default=None, kw_only=False)
    calibration_samples: int | None = parameter(_SHARE, _UNUSED, default=None, kw_only=False)
    calibration_candidates: int | None = parameter(_WHOLE, _UNUSED, default=None, kw_only=False)
    calibration_max_trials: int | None = parameter(_WHOLE, _UNUSED, default=None, kw_only=False)
    pa_type: int | None = parameter(
        nothing | whole(0, 2), 'With "pa": 0 leaves no slack, 1 and 2 a linear one.',
        default=None, kw_only=False,
    )  # fmt: skip
    c: float | None = parameter(
        nothing | number(above=0), 'With "pa", how much a loss weighs against ‖w‖²/2 (default 1).',
        default=None, kw_only=False,
    )  # fmt: skip
    error_sensitive: bool | None = parameter(
        _FLAG, "Taken, but of no effect: wrong labels are always counted.",
        default=None, kw_only=False,
    )  # fmt: skip
    averaging: bool | None = parameter(
        _FLAG, 'With "pa", average the weights, where stochastic steps are made.',
        default=None, kw_only=False,
    )  # fmt: skip
    variance: float | None = parameter(
        nothing | number(above=0), 'With "arow", the prior variance of every weight (default 1).',
        default=None, kw_only=False,
    )  # fmt: skip
    gamma: float | None = parameter(
        _SHARE, 'With "arow", how much that prior weighs against the losses (default 1).',
        default=None, kw_only=False,
    )  # fmt: skip
    verbose: bool = parameter(
        anything, "Print a line for each iteration, when training has ended.",
        default=False, kw_only=False,
    )  # fmt: skip
    model_filename: Any = parameter(
        anything,
        "File that ``fit`` writes the model to, and that it is read from before any ``fit``.",
        default=None, kw_only=False,
    )  # fmt: skip
    keep_tempfiles: bool = parameter(
        anything, "Taken, but of no effect: there are no temporary files.",
        default=False, kw_only=False,
    )  # fmt: skip
    trainer_cls: Any = parameter(
        anything, "Class of the trainer, one of :mod:`trellis.compat.pycrfsuite`.",
        default=None, kw_only=False,
    )  # fmt: skip
    exact: bool = parameter(
        flag,
        """With "lbfgs", train by L-BFGS (OWL-QN with ``c1``) from zero until it comes to rest: many
        times slower, seldom better.""",
        default=False,
    )
    random_state: int = parameter(whole(0), "Seed.", default=0)

    training_log_: ClassVar[TrainingLog | None] = None

    def __post_init__(self) -> None:
        """Begin without a model."""
        self._tagger: Tagger | None = None
        self._info: ParsedDump | None = None

    # ---------------------------------------------------------------- training

    def fit(self, X: Any, y: Any, X_dev: Any = None, y_dev: Any = None) -> Self:
        """Learn from sequences.

        Parameters
        ----------
        X : list of lists of dicts
            Items of each sequence; see :class:`trellis.compat.pycrfsuite.ItemSequence`.
        y : list of lists of str
            Their labels; also None (not annotated) and sets of labels.
        X_dev, y_dev : lists, optional
            Sequences to score, for the log; nothing is learned from them.

        Returns
        -------
        self
        """
        if (X_dev is None) != (y_dev is None):
            raise ValueError("Pass both X_dev and y_dev to use the holdout data")
        self._check_parameters()
        self.__post_init__()
        X, y = list(X), list(y)
        check_lengths([0] * len(X), [[]] * len(y), "X", "y")
        kind: Any = self.trainer_cls or LinePerIterationTrainer
        trainer = kind(
            algorithm=self.algorithm, params=self._trainer_parameters(), verbose=self.verbose
        )
        for items, labels in zip(X, y, strict=True):
            trainer.append(items, labels)
        if X_dev is not None:
            X_dev, y_dev = list(X_dev), list(y_dev)
            check_lengths([0] * len(X_dev), [[]] * len(y_dev), "X_dev", "y_dev")
            for items, labels in zip(X_dev, y_dev, strict=True):
                trainer.append(items, labels, 1)
        trainer.train(self.model_filename, holdout=-1 if X_dev is None else 1)
        self._tagger = Tagger.of(trainer.model, _in_order(y, trainer.model.classes_))
        vars(self)["training_log_"] = trainer.logparser
        return self

    def _trainer_parameters(self) -> dict[str, Any]:
        """Parameters under the names of a trainer, without those left to the algorithm."""
        ours = ("algorithm", "verbose", "model_filename", "keep_tempfiles", "trainer_cls")
        given = {n: v for n, v in self.get_params(deep=False).items() if n not in ours}
        if self.algorithm not in (None, "lbfgs"):
            del given["exact"]
        return {_TRAINER_NAMES.get(n, n): v for n, v in given.items() if v is not None}

    # ---------------------------------------------------------------- predictions

    def predict(self, X: Any) -> NDArray[np.object_]:
        """Best labels of each sequence."""
        model = self._fitted().model
        return np.array(model.predict(corpus_of(X)), dtype=object)

    def predict_single(self, xseq: Any) -> list[str]:
        """Best labels of one sequence."""
        return self._fitted().tag(xseq)

    def predict_marginals(self, X: Any) -> NDArray[np.object_]:
        """Probability of every label at each position of each sequence, as dicts."""
        tagger = self._fitted()
        names = tagger.model.classes_
        order = [names.index(label) for label in tagger.labels()]
        found = [
            [dict(zip(tagger.labels(), row, strict=True)) for row in chances[:, order].tolist()]
            for chances in tagger.model.predict_marginals(corpus_of(X))
        ]
        return np.array(found, dtype=object)

    def predict_marginals_single(self, xseq: Any) -> list[dict[str, float]]:
        """Probability of every label at each position of one sequence, as dicts."""
        return list(self.predict_marginals([xseq])[0])

    def score(self, X: Any, y: Any) -> float:
        """Share of the positions that are labelled right."""
        return flat_accuracy_score(y, self.predict(X))

    # ---------------------------------------------------------------- what was learned

    def __sklearn_is_fitted__(self) -> bool:
        return self.tagger_ is not None

    def _fitted(self) -> Tagger:
        self._check_fitted()
        assert self.tagger_ is not None
        return self.tagger_

    @property
    def tagger_(self) -> Tagger | None:
        """The model as a tagger."""
        if self._tagger is None and self.model_filename is not None:
            tagger = Tagger()
            tagger.open(os.fspath(self.model_filename))
            self._tagger = tagger
        return self._tagger

    @property
    def _dump(self) -> ParsedDump | None:
        if self._info is None and self.tagger_ is not None:
            self._info = self.tagger_.info()
        return self._info

    @property
    def classes_(self) -> list[str] | None:
        """The labels."""
        return None if self.tagger_ is None else self.tagger_.labels()

    @property
    def size_(self) -> int | None:
        """Bytes of the model as a file."""
        return None if self.tagger_ is None else self.tagger_.size()

    @property
    def num_attributes_(self) -> int | None:
        """Number of attributes with a weight."""
        return None if self._dump is None else len(self._dump.attributes)

    @property
    def attributes_(self) -> list[str] | None:
        """Attributes with a weight."""
        return None if self._dump is None else list(self._dump.attributes)

    @property
    def state_features_(self) -> dict[tuple[str, str], float] | None:
        """Weights by (attribute, label)."""
        return None if self._dump is None else self._dump.state_features

    @property
    def transition_features_(self) -> dict[tuple[str, str], float] | None:
        """Weights by (label before, label)."""
        return None if self._dump is None else self._dump.transitions


def _in_order(y: Any, classes: Any) -> list[str]:
    """The labels in order of appearance; those that only sets name come last."""
    seen: dict[Any, None] = {}
    for labels in y:
        seen.update(dict.fromkeys(label for label in as_labels(labels) if isinstance(label, str)))
    return [*seen, *(label for label in classes if label not in seen)]
