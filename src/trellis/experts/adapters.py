"""Experts from models and classifiers: whatever answers the same inputs is one.

They give :class:`~trellis.experts.ExpertOutputs`, with label probabilities if asked for. Answers
that are in files are read by :func:`~trellis.experts.read_answers`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import as_list
from trellis.domains import flag, has, samples, sequence_of
from trellis.errors import DataError
from trellis.experts.outputs import ExpertOutputs, as_outputs

__all__ = ["from_classifiers", "from_models"]


def from_models(
    models: Sequence[Any], X: Any, *, names: Sequence[str] | None = None, scores: bool = False
) -> ExpertOutputs:
    """Let sequence models answer.

    Parameters
    ----------
    models : sequence of objects with ``predict``
        Trellis models, or anything whose ``predict(X)`` gives one label sequence a sample.
    X : samples, as the models take them
    names : sequence of str or None
        Names of the experts.
    scores : bool
        Also ask for label probabilities: ``predict_marginals(X)`` in the order of ``classes_``.

    Examples
    --------
    >>> from trellis import ChainPerceptron
    >>> from trellis.experts import from_models
    >>> X, y = [["a", "b"], ["b"]], [["X", "Y"], ["Y"]]
    >>> models = [ChainPerceptron(random_state=seed).fit(X, y) for seed in range(2)]
    >>> from_models(models, [["a", "b", "a"]]).codes.tolist()
    [[0, 0], [1, 1], [0, 0]]
    """
    sequence_of(has("predict"), "a list of models").check("models", models)
    samples.check("X", X)
    flag.check("scores", scores)
    answers = [_call(model, "predict", j)(X) for j, model in enumerate(models)]
    outputs = as_outputs(answers, names=names)
    if not scores:
        return outputs
    tables = [np.concatenate(_call(m, "predict_marginals", j)(X)) for j, m in enumerate(models)]
    return _with_scores(outputs, models, tables)


def from_classifiers(
    classifiers: Sequence[Any],
    X: Sequence[Any],
    *,
    names: Sequence[str] | None = None,
    scores: bool = False,
) -> ExpertOutputs:
    """Let classifiers of single positions answer (scikit-learn's, for example).

    Parameters
    ----------
    classifiers : sequence of objects with ``predict``
        Each gives one label for each row of features.
    X : sequence of samples
        A sample is an (n, d) array or a list of n rows, of whatever kind the classifiers take.
    names : sequence of str or None
        Names of the experts.
    scores : bool
        Also ask for label probabilities: ``predict_proba`` in the order of ``classes_``.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from trellis.experts import from_classifiers
    >>> tree = DecisionTreeClassifier().fit([[0.0], [1.0]], ["X", "Y"])
    >>> from_classifiers([tree], [[[0.1], [0.9]], [[0.2]]]).codes[:, 0].tolist()
    [0, 1, 0]
    """
    sequence_of(has("predict"), "a list of classifiers").check("classifiers", classifiers)
    sequence_of(samples, "a list of samples, each of rows of features").check("X", X)
    flag.check("scores", scores)
    tables = list(X)
    if not tables:
        raise DataError("there are no samples to classify")
    ends = np.cumsum([len(table) for table in tables]).tolist()
    if all(isinstance(table, np.ndarray) for table in tables):
        try:
            rows: Any = np.concatenate(tables)
        except ValueError as error:
            raise DataError(f"the samples differ in their features: {error}") from error
    else:
        rows = [row for table in tables for row in table]
    answers = []
    for j, classifier in enumerate(classifiers):
        said = as_list(_asked(classifier, "predict", j, rows), f"labels of classifier {j}")
        flat = [str(label) for label in said]
        if len(flat) != ends[-1]:
            raise DataError(f"classifier {j} gave {len(flat)} label(s) for {ends[-1]} row(s)")
        answers.append([flat[a:b] for a, b in zip([0, *ends[:-1]], ends, strict=True)])
    outputs = as_outputs(answers, names=names)
    if not scores:
        return outputs
    tables = [np.asarray(_asked(c, "predict_proba", j, rows)) for j, c in enumerate(classifiers)]
    return _with_scores(outputs, classifiers, tables)


def _asked(classifier: Any, method: str, j: int, rows: Any) -> Any:
    """What a classifier says of rows of features."""
    function = _call(classifier, method, j)
    try:
        return function(rows)
    except (TypeError, ValueError) as error:
        raise DataError(f"classifier {j} cannot take these samples: {error}") from error


def _call(model: Any, method: str, j: int) -> Any:
    function = getattr(model, method, None)
    if function is None:
        raise DataError(f"expert {j} is a {type(model).__name__}, which has no {method}")
    return function


def _with_scores(
    outputs: ExpertOutputs, models: Sequence[Any], tables: list[NDArray[Any]]
) -> ExpertOutputs:
    classes = [[str(label) for label in model.classes_] for model in models]
    outputs = outputs.recoded(sorted({*outputs.labels, *(y for known in classes for y in known)}))
    code_of = {label: code for code, label in enumerate(outputs.labels)}
    scores = np.zeros((*outputs.codes.shape, len(outputs.labels)), np.float32)
    for j, (known, table) in enumerate(zip(classes, tables, strict=True)):
        if table.shape != (outputs.n_positions, len(known)):
            raise DataError(
                f"expert {j} gives probabilities of shape {table.shape}: expected "
                f"{(outputs.n_positions, len(known))}"
            )
        scores[:, j, [code_of[label] for label in known]] = table
    return replace(outputs, scores=scores)
