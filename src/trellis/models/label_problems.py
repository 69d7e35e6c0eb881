"""The learning problems that models of chains, trees and graphs make of data.

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
from trellis.estimator import Estimator
from trellis.features import Encoded, Encoder
from trellis.features.encoder import encoder_for
from trellis.problems import Weights
from trellis.problems.label_problem import LabelProblem

__all__ = [
    "EncodedProblem",
    "LearnsFromLabelSets",
    "learning_encoder",
    "numbered_types",
]

Float64s = NDArray[np.float64]


class EncodedProblem(LabelProblem):
    """A label problem that knows the encoder of its features and the names of its edge types."""

    encoder: Encoder
    edge_types: tuple[str, ...]


# -------------------------------------------------------------------- learning problems of data


@contextlib.contextmanager
def _naming(name: str) -> Iterator[None]:
    """Say of which data set an error speaks."""
    try:
        yield
    except DataError as error:
        raise type(error)(f"data set {name!r}: {error}") from None


def _learning_corpus(corpus: Corpus) -> Corpus:
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


def learning_encoder(features: Any, corpora: Sequence[Corpus]) -> tuple[Encoder, list[Encoded]]:
    """Learn one encoder from several corpora; thresholds of counts hold in each of them."""
    encoder = encoder_for(features, corpora[0])
    encoded = [encoder.learn(corpus) for corpus in corpora]
    if len(corpora) > 1:  # features that came later count in those before
        encoded = [encoder.encode(corpus) for corpus in corpora]
    if encoder.crossed().any():
        raise DataError(
            "the templates cross features with edges (@ edge), which max-margin models do not "
            "have; use a CRF or leave it out"
        )
    return encoder, encoded


def numbered_types(corpora: Sequence[Corpus]) -> tuple[tuple[str, ...], list[NDArray[np.int64]]]:
    """Types of edges, sorted, and the number of that of each edge; 0 if they have none."""
    typed = [corpus.edge_types is not None for corpus in corpora]
    if any(typed) and not all(typed):
        raise DataError("some data sets have types of edges and others have none; give all types")
    columns = [corpus.edge_types for corpus in corpora if corpus.edge_types is not None]
    used = sorted({types.values[k] for types in columns for k in np.unique(types.codes)})
    number = {name: i for i, name in enumerate(used)}
    tables = []
    for corpus in corpora:
        types = corpus.edge_types
        if types is None:
            n = 0 if corpus.edges is None else len(corpus.edges)
            tables.append(np.zeros(n, np.int64))
        else:
            table = np.array([number.get(v, -1) for v in types.values], np.int64)
            tables.append(table[types.codes])
    return tuple(used), tables


def _encoded_problems(
    corpora: Sequence[Corpus],
    classes: tuple[str, ...],
    *,
    features: Any,
    structure: str,
    directed: bool,
    inference: str,
    loss: Any,
) -> list[EncodedProblem]:
    """Make problems that share their weights of corpora; the parameters are those of the model."""
    encoder, encoded = learning_encoder(features, corpora)
    edge_types, tables = numbered_types(corpora)
    problems = []
    for corpus, own, types in zip(corpora, encoded, tables, strict=True):
        problem = EncodedProblem(
            own, _with_classes(corpus, classes), encoder.n_features, structure=structure,
            edges=corpus.edges, types=types, n_tables=max(1, len(edge_types)), directed=directed,
            inference=inference, loss=loss,
        )  # fmt: skip
        problem.encoder, problem.edge_types = encoder, edge_types
        problems.append(problem)
    return problems


# -------------------------------------------------------------------- the estimator


class LearnsFromLabelSets(Estimator):
    """Base of estimators that make learning problems of data; not used by itself."""

    features: Any
    structure: str
    directed: bool
    inference: str
    loss: Any

    classes_: tuple[str, ...]
    encoder_: Encoder
    weights_: Weights
    edge_types_: tuple[str, ...]
    history_: Any
    objective_: float
    gap_: float
    exact_: bool

    def _check_parameters(self) -> None:
        raise NotImplementedError  # abstract

    def _check_classes(self, classes: Sequence[str]) -> None:
        raise NotImplementedError  # abstract

    def _corpus(self, X: Any, y: Any, edges: Any, edge_types: Any) -> Corpus:
        raise NotImplementedError  # abstract

    def learning_problems(
        self, data: Mapping[str, Any], *, labels: Sequence[str] | None = None
    ) -> dict[str, EncodedProblem]:
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
        >>> from trellis import MaxMargin
        >>> svm = MaxMargin("word")
        >>> data = {"a": ([["the", "cat"]], [["D", None]]), "b": [["the", "dog"]]}
        >>> problems = svm.learning_problems(data, labels=["N"])
        >>> problems["b"].classes, problems["b"].annotated.tolist()
        (('D', 'N'), [False])
        >>> svm.with_weights(problems["a"], np.zeros(problems["a"].n_weights)).predict([["cat"]])
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
                corpus = _learning_corpus(self._corpus(X, y, None, None))
            corpora.append(corpus)
            names |= set(() if corpus.labels is None else corpus.labels.classes)
        classes = tuple(sorted(names))
        if not classes:
            raise DataError("no position is annotated; say which labels there are: labels=[...]")
        self._check_classes(classes)
        return dict(zip(data, self._problems(corpora, classes), strict=True))

    def with_weights(self, problem: EncodedProblem, w: NDArray[np.float64]) -> Self:
        """Return a fitted copy with the weights (D,) that were learned for a learning problem."""
        if not isinstance(problem, EncodedProblem):
            raise DataError("the problem must be one of those that learning_problems made")
        if np.shape(w) != (problem.n_weights,):
            raise DataError(
                f"the problem has {problem.n_weights} weights, but w has the shape {np.shape(w)}"
            )
        model = type(self)(**self.get_params())
        model.classes_, model.encoder_ = problem.classes, problem.encoder
        model.edge_types_ = problem.edge_types
        model.weights_ = self._weights(*problem.split(np.asarray(w, np.float64)))
        model.history_, model.exact_ = [], True
        model.objective_, model.gap_ = np.nan, np.inf
        return model

    def _problems(
        self, corpora: Sequence[Corpus], classes: tuple[str, ...]
    ) -> list[EncodedProblem]:
        return _encoded_problems(
            corpora, classes, features=self.features, structure=self.structure,
            directed=bool(self.directed), inference=self.inference, loss=self.loss,
        )  # fmt: skip

    def _weights(self, node: NDArray[np.float64], tables: NDArray[np.float64]) -> Weights:
        T = tables[0] if self.structure == "chain" else tables
        return Weights(node.astype(np.float32), T.astype(np.float32))
