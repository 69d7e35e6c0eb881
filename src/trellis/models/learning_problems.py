"""The learning problems that models make of data, for active learning and transfer.

Several data sets share one encoder, one list of labels and one of edge types, hence their weights.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Corpus, Labels
from trellis.corpus.labels import basic_table
from trellis.errors import DataError
from trellis.features.encoder import encoder_for
from trellis.models.prediction import Predictor
from trellis.problems import LabelProblem

__all__ = ["LearningProblems"]


class LearningProblems(Predictor):
    """What models offer to those who learn from cheap data; not used by itself."""

    features: Any

    def learning_problems(
        self, data: Mapping[str, Any], *, labels: Sequence[str] | None = None
    ) -> dict[str, LabelProblem]:
        """Make learning problems of data sets, for active learning and transfer.

        Parameters
        ----------
        data : dict of Corpus, X or (X, y)
            Samples, with labels as for :meth:`fit` or without any. Trees and graphs: corpora with
            edges, or samples (features, edges).
        labels : list of str, optional
            Labels there may be beyond those that the data shows.

        Returns
        -------
        dict of LabelProblem
            One for each data set; their features, classes and types of edges are the same, and so
            are the places of their weights.

        Examples
        --------
        >>> from trellis import ChainCRF
        >>> crf = ChainCRF("word")
        >>> data = {"a": ([["the", "cat"]], [["D", None]]), "b": [["the", "dog"]]}
        >>> problems = crf.learning_problems(data, labels=["N"])
        >>> problems["b"].classes, problems["b"].annotated.tolist()
        (('D', 'N'), [False])
        >>> crf.with_weights(problems["a"], np.zeros(problems["a"].n_weights)).predict([["cat"]])
        [['D']]
        """
        self._check_parameters()
        if not isinstance(data, Mapping) or not data:
            raise DataError("learning problems are made of a dict of data sets, at least one")
        corpora = []
        names = set(labels or ())
        for name, given in data.items():
            X, y = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
            with _naming(name):
                corpus = _with_samples(self._corpus(X, y))
            corpora.append(corpus)
            names |= set(() if corpus.labels is None else corpus.labels.classes)
        classes = tuple(sorted(names))
        if not classes:
            raise DataError("no position is annotated; say which labels there are: labels=[...]")
        self._check_classes(classes)
        model = type(self)(**self.get_params(deep=False))
        model.classes_, model.encoder_ = classes, encoder_for(self.features, corpora[0])
        encoded = [model.encoder_.learn(corpus) for corpus in corpora]
        if len(corpora) > 1:  # features that came later count in those before
            encoded = [model.encoder_.encode(corpus) for corpus in corpora]
        model._start(corpora, encoded)
        problems = {}
        for name, corpus, features in zip(data, corpora, encoded, strict=True):
            problems[name] = model._problem(corpus, features, _with_classes(corpus, classes))
            problems[name].owner = model
        return problems

    def _check_classes(self, classes: Sequence[str]) -> None:
        raise NotImplementedError  # abstract

    def _start(self, corpora: Sequence[Corpus], encoded: Sequence[Any]) -> None:
        """Make weights, all zero, for corpora whose features and classes are known."""
        raise NotImplementedError  # abstract

    def with_weights(self, problem: LabelProblem, w: NDArray[np.float64]) -> Self:
        """Return a fitted copy with the weights (D,) that were learned for a learning problem."""
        if not isinstance(problem, LabelProblem) or not isinstance(problem.owner, Predictor):
            raise DataError("the problem must be one of those that learning_problems made")
        if np.shape(w) != (problem.n_weights,):
            raise DataError(
                f"the problem has {problem.n_weights} weights, but w has the shape {np.shape(w)}"
            )
        model = type(self)(**self.get_params(deep=False))
        for name, value in vars(problem.owner).items():
            if name.endswith("_"):
                setattr(model, name, value)
        model.weights_ = problem.weights(np.asarray(w, np.float64)).map(
            lambda a: a.astype(np.float32)
        )
        return model


@contextlib.contextmanager
def _naming(name: str) -> Iterator[None]:
    """Say of which data set an error speaks."""
    try:
        yield
    except DataError as error:
        raise DataError(f"data set {name!r}: {error}") from None


def _with_samples(corpus: Corpus) -> Corpus:
    """A corpus that a learning problem can be made of, with or without labels."""
    if len(corpus) == 0:
        raise DataError("there are no samples")
    empty = np.flatnonzero(corpus.lengths == 0)
    if empty.size:
        raise DataError(f"sample {empty[0]} is empty; remove empty samples")
    return corpus


def _with_classes(corpus: Corpus, classes: tuple[str, ...]) -> Labels:
    """Label sets of a corpus among these classes; of all of them where it has no labels."""
    if corpus.labels is None:
        n = len(classes)
        return Labels(np.full(corpus.n_positions, n, np.int32), basic_table(n), classes)
    return corpus.labels.recoded(classes)
