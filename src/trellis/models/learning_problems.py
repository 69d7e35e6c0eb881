"""The learning problems that models make of data: its features, labels, types and rich edges.

For active learning and transfer several data sets share one encoder, one list of labels and one of
edge types, hence their weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import as_list, for_kernels
from trellis.corpus import Corpus, Labels
from trellis.corpus.edge_features import edges_as_positions
from trellis.corpus.label_values import in_order
from trellis.corpus.labels import check_label_count
from trellis.corpus.refinement import Refinement
from trellis.corpus.schemes import get_scheme
from trellis.errors import DataError
from trellis.features import AttributeEncoder, Encoded, Prepared
from trellis.features.encoder import TemplateEncoder, encoder_for
from trellis.models.automatic import show_ends
from trellis.models.edge_features import encoded_edges, have_features
from trellis.models.known_labels import KnownLabels
from trellis.models.prediction import Predictor
from trellis.models.scored_model import coded_edges, unknown_labels
from trellis.problems import EdgeWeights, LabelProblem, Weights
from trellis.problems.edge_weights import cross, cross_own

__all__ = ["LearningProblems"]


# Up to so many labels rich edges have all pairs: L² weights a feature fit a few cache lines.
_FEW_LABELS = 8


class LearningProblems(Predictor):
    """How models make problems of samples; not used by itself."""

    history_: list[Any]
    stop_reason_: str

    def learning_problems(
        self, data: Mapping[str, Any], *, labels: Sequence[Any] | None = None
    ) -> dict[str, LabelProblem]:
        """Make learning problems of data sets, for active learning and transfer.

        Parameters
        ----------
        data : dict of Corpus, X or (X, y)
            Samples, with labels as for :meth:`fit` or without any. Trees and graphs: corpora with
            edges, or samples (features, edges).
        labels : list, optional
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
        self._check_takes_labels("learning_problems")
        if not isinstance(data, Mapping) or not data:
            raise DataError("learning problems are made of a dict of data sets, at least one")
        corpora: list[Corpus] = []
        fields: tuple[str, ...] = ()
        listed = [] if labels is None else list(labels) if isinstance(labels, Set) else labels
        names = set(Labels.from_lists([as_list(listed, "labels")]).classes)
        for name, given in data.items():
            X, y = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
            try:
                taken = self._given(X, y, fresh=True, columns=fields)
                corpus, fields = taken.corpus, fields or taken.fields
                corpus.check_samples("learning")
            except DataError as error:
                raise DataError(f"data set {name!r}: {error}") from None
            corpora.append(corpus)
            names |= set(() if corpus.labels is None else corpus.labels.classes)
        classes = in_order(names)
        if not classes:
            raise DataError("no position is annotated; say which labels there are: labels=[...]")
        check_label_count(len(classes), self.max_labels)
        self._check_classes(classes)
        model = type(self)(**self.get_params(deep=False))
        model.classes_ = classes
        model.encoder_ = encoder_for(self.features, corpora[0], structure=self.structure)
        model.columns_ = fields
        if isinstance(model.encoder_, TemplateEncoder):  # all data are text, labelled or not
            model.encoder_.unlabelled = tuple(corpora[1:])
        encoded = [model.encoder_.learn(corpus) for corpus in corpora]
        if len(corpora) > 1:  # features that came later count in those before
            encoded = [model.encoder_.encode(corpus) for corpus in corpora]
        known = [
            unknown_labels(c, classes) if c.labels is None else c.labels.recoded(classes)
            for c in corpora
        ]
        model._start(corpora, encoded, known)
        problems = {}
        for name, corpus, features, sets in zip(data, corpora, encoded, known, strict=True):
            problems[name] = model._problem(corpus, features, sets)
            problems[name].owner = model
        return problems

    def _check_takes_labels(self, what: str) -> None:
        """Refuse what takes labels as they are, if the model presumes more; mostly it does not."""

    def with_weights(self, problem: LabelProblem, w: NDArray[np.float64]) -> Self:
        """Return a fitted copy with the weights (D,) that were learned for a learning problem."""
        if not isinstance(problem, LabelProblem) or not isinstance(problem.owner, Predictor):
            raise DataError("the problem must be one of those that learning_problems made")
        if np.shape(w) != (problem.n_weights,):
            raise DataError(
                f"the problem has {problem.n_weights} weights, but w has the shape {np.shape(w)}"
            )
        model = self._of_problem(problem)
        model.weights_ = problem.weights(np.asarray(w, np.float64)).map(
            lambda a: a.astype(np.float32)
        )
        return model

    def _of_problem(self, problem: LabelProblem) -> Self:
        """A copy that knows what the maker of a problem knows, whose weights are to come."""
        model = type(self)(**self.get_params(deep=False))
        for name, value in vars(problem.owner).items():
            if name.endswith("_"):
                setattr(model, name, value)
        return model

    # ---------------------------------------------------------------- features and edges

    def _learn_fresh(
        self,
        corpus: Corpus,
        weight: NDArray[np.float64],
        rng: np.random.Generator,
        prepared: Prepared | None = None,
        unlabelled: Sequence[Corpus] | None = None,
        dictionaries: Any = None,
    ) -> LabelProblem:
        """Forget everything learned; take the classes and the kind of features from the corpus.

        The features are those that were prepared, if they were; else they may use unlabelled text
        and dictionaries.
        """
        assert corpus.labels is not None
        classes = corpus.labels.classes
        if not classes:
            raise DataError("no position is annotated: there is nothing to learn from")
        check_label_count(len(classes), self.max_labels)
        self._check_classes(classes)
        if prepared is None:
            encoder = encoder_for(
                self.features, corpus, unlabelled, dictionaries, structure=self.structure
            )
            encoded = encoder.learn(corpus)
        else:
            encoder, encoded = prepared.encoder_for(self.features), prepared.encoded
        self.classes_, self.encoder_, self.history_ = classes, encoder, []
        self.refinement_ = Refinement(classes) if self._is_refined(corpus) else None
        labels = self._state_sets(corpus)
        self._learn_edge_types([corpus])
        self._learn_edge_features([corpus])
        self.weights_ = self._zeros()
        self.weights_.edge = self._cross(corpus, encoded, labels, rng, None)
        self._cross_edges(corpus, labels, rng)
        problem = self._problem(corpus, encoded, labels, weight)
        self.known_ = KnownLabels.of(problem) if self._remembers else None
        return problem

    @property
    def _remembers(self) -> bool:
        """Whether labels of samples that are known in part are kept."""
        return self.structure != "chain" and self.keep_known

    def _is_refined(self, corpus: Corpus) -> bool:
        """Whether labels are refined; by default where they show how spans end."""
        if self.encoding != "auto" or self.structure != "chain":
            return self.encoding == "iobes"
        labels = corpus.labels
        assert labels is not None
        return Refinement.applies(labels.classes) and show_ends(labels, corpus.offsets)

    def _state_sets(self, corpus: Corpus) -> Labels:
        """What is known of the states of a corpus with labels."""
        assert corpus.labels is not None
        if self.refinement_ is None:
            return corpus.labels.recoded(self.classes_)
        return self.refinement_.refined(corpus.labels, corpus.offsets)

    def _learn_more(
        self,
        corpus: Corpus,
        weight: NDArray[np.float64],
        rng: np.random.Generator,
        prepared: Prepared | None = None,
    ) -> LabelProblem:
        """Add the features of more data to those known; the classes stay."""
        assert corpus.labels is not None
        known = self.weights_.edge
        if self.rich_edges and (known is None or (known.n_own and not known.n_crossed)):
            raise DataError(
                "rich_edges is set, but the model was fitted without rich edges; fit it afresh "
                "(warm_start=False)"
            )
        if self.edge_types_ and corpus.edge_types is not None:
            new = sorted(corpus.edge_types.used() - set(self.edge_types_))
            if new:
                raise DataError(
                    f"edge type {new[0]!r} is unknown; the model has {', '.join(self.edge_types_)}"
                )
        encoded_edges(self.edge_encoder_, corpus)  # raises before anything is learned
        labels = self._state_sets(corpus)
        if prepared is not None:
            prepared.check_made_by(self.encoder_)
            encoded = prepared.encoded
        else:
            try:
                encoded = self.encoder_.learn(corpus)
            finally:  # a feature without weights would be read from beyond their end
                self.weights_ = self.weights_.grown(self.encoder_.n_features)
            if known is not None:
                self.weights_.edge = self._cross(corpus, encoded, labels, rng, known)
        self._cross_edges(corpus, labels, rng)
        problem = self._problem(corpus, encoded, labels, weight)
        if self._remembers:
            later = KnownLabels.of(problem)
            self.known_ = later if self.known_ is None else self.known_.and_later(later)
        return problem

    def _learn_edge_types(self, corpora: Sequence[Corpus]) -> None:
        """Take the types of edges from corpora."""
        self.edge_types_ = ()
        if self.structure == "chain":
            return
        columns = [corpus.edge_types for corpus in corpora]
        if any(c is None for c in columns) and any(c is not None for c in columns):
            raise DataError(
                "some data sets have types of edges and others have none; give all types"
            )
        used = set[str]().union(*(column.used() for column in columns if column is not None))
        self.edge_types_ = tuple(sorted(used))

    def _learn_edge_features(self, corpora: Sequence[Corpus]) -> None:
        """Take the features of edges from corpora."""
        self.edge_encoder_ = None
        if self.structure == "chain" or not any(map(have_features, corpora)):
            return
        for corpus in corpora:
            if corpus.edge_features is None and corpus.edges is not None and len(corpus.edges):
                raise DataError(
                    "some data sets have features of edges and others have none; give all features"
                )
        self.edge_encoder_ = AttributeEncoder()
        for corpus in corpora:
            self.edge_encoder_.learn(edges_as_positions(corpus))

    def _cross_edges(self, corpus: Corpus, labels: Labels, rng: np.random.Generator) -> None:
        """Add rows for the features of edges that are new."""
        if self.edge_encoder_ is None:
            return
        assert corpus.edges is not None and self.weights_.edge is not None
        everything = np.ones(self.edge_encoder_.n_features, bool)
        encoder, _ = self.edge_encoder_.only(everything)  # a copy, until it has weights
        own = encoder.learn(edges_as_positions(corpus))
        self.weights_.edge = cross_own(
            self.weights_.edge, own, encoder.n_features, labels, for_kernels(corpus.edges),
            negatives=int(self.edge_negatives), least=float(self.edge_min_share), rng=rng,
            directed=self._is_directed,
        )  # fmt: skip
        self.edge_encoder_ = encoder

    def _zeros(self) -> Weights:
        """Weights to start from, without rich edges."""
        n_types = None if self.structure == "chain" else max(1, len(self.edge_types_))
        return Weights.zeros(self.encoder_.n_features, len(self.states_), n_types=n_types)

    def _cross(
        self,
        corpus: Corpus,
        encoded: Encoded,
        labels: Labels,
        rng: np.random.Generator,
        known: EdgeWeights | None,
    ) -> EdgeWeights | None:
        """Rich edge weights for the features of the encoder, zero where they are new."""
        crossed = self.encoder_.crossed()
        if self.rich_edges:
            crossed[:] = True
        if not crossed.any() and known is None and self.edge_encoder_ is None:
            return None
        edges = None
        if self.structure != "chain":
            assert corpus.edges is not None
            edges = for_kernels(corpus.edges)
        n_labels, types, n_types = len(labels.classes), None, 1
        typed = self.rich_edges == "typed" if known is None else known.n_types > 1
        if typed and self.edge_types_:
            types, n_types = coded_edges(corpus, self.edge_types_)[1], len(self.edge_types_)
        dense = self.edge_pairs == "all" or (self.edge_pairs == "auto" and n_labels <= _FEW_LABELS)
        return cross(
            encoded, labels, crossed,
            both=self.rich_edges in ("both", "typed") if known is None else known.both,
            dense=dense if known is None else not known.ptr.size,
            negatives=int(self.edge_negatives), least=float(self.edge_min_share),
            rng=rng, known=known, directed=self._is_directed,
            edges=edges, types=types, n_types=n_types,
        )  # fmt: skip

    def _start(
        self, corpora: Sequence[Corpus], encoded: Sequence[Encoded], known: Sequence[Labels]
    ) -> None:
        """Zero weights for all data sets."""
        self._learn_edge_types(corpora)
        self._learn_edge_features(corpora)
        self.weights_, self.history_ = self._zeros(), []
        self.stop_reason_ = ""
        rng = np.random.default_rng(self.random_state)
        for corpus, features, labels in zip(corpora, encoded, known, strict=True):
            self.weights_.edge = self._cross(corpus, features, labels, rng, self.weights_.edge)
            self._cross_edges(corpus, labels, rng)
            edge = self.weights_.edge
            if edge is not None and edge.ptr.size:
                what = "rich edges" if edge.n_crossed else "features of edges"
                raise DataError(
                    f"{what} of more than 8 labels know the pairs that they were seen with, "
                    "which is not known before all is annotated; give edge_pairs='all'"
                )

    def _check_classes(self, classes: Sequence[Any]) -> None:
        if self.scheme is not None:
            get_scheme(self.scheme).validity(classes)  # raises if a label does not fit
