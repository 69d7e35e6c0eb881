"""Experts from anything: models, classifiers, files of predictions.

An expert is whatever answers the same inputs. Models and classifiers give
:class:`~trellis.experts.ExpertOutputs` (with label probabilities, if asked for); files give nested
lists of answers, which may differ in length, for :func:`~trellis.experts.as_outputs` or
:func:`~trellis.experts.align`.

Files have one sample after the other, in one of three formats:

* ``conll``: one label a line, in a column of fields; a blank line after each sample;
* ``jsonl``: an object a line, with a list of labels under a key, or null;
* ``lines``: a sample a line, labels separated by spaces.

``_`` in place of a label means that the expert says nothing there; a sample of nothing else is
missing as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import as_list
from trellis.corpus.columnfile import code_column, read_fields
from trellis.domains import flag, has, samples, sequence_of
from trellis.errors import DataError
from trellis.experts.outputs import ExpertOutputs, as_outputs
from trellis.files.stored import check_text
from trellis.files.text import Source, read_text

__all__ = ["AnswerFile", "from_classifiers", "from_models"]

Answer = list[str | None] | None
_FORMATS = ("conll", "jsonl", "lines")


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


@dataclass(frozen=True)
class AnswerFile:
    r"""The answers in one file.

    Attributes
    ----------
    name : str
        Of the file, for messages.
    answers : list of (list of (str or None) or None)
        Label sequences; None where the expert says nothing.
    lines : list of int
        The line at which each sample begins.

    Examples
    --------
    >>> import io
    >>> AnswerFile.read(io.BytesIO(b"The DT\ncat NN\n\nIt _\n")).answers
    [['DT', 'NN'], None]
    >>> AnswerFile.read(io.BytesIO(b"K AE T\n_\n"), "lines").answers
    [['K', 'AE', 'T'], None]
    """

    name: str
    answers: list[Answer]
    lines: list[int]

    @classmethod
    def read(
        cls,
        source: Source,
        format: str = "conll",
        *,
        column: int | str | None = None,
        missing: str = "_",
    ) -> AnswerFile:
        """Read a file of one expert's answers.

        Parameters
        ----------
        source : path, "-" or open file
        format : "conll", "jsonl" or "lines"
        column : int, str or None
            ``conll``: which column holds the labels, 1 the first, -1 the last (the default);
            ``jsonl``: under which key they are (default ``"labels"``).
        missing : str
            What stands where the expert says nothing.
        """
        if format not in _FORMATS:
            raise DataError(f"format is {format!r}: expected {', '.join(_FORMATS)}")
        if format == "conll":
            return cls._conll(source, -1 if column is None else column, missing)
        if format == "jsonl":
            return cls._jsonl(source, "labels" if column is None else column, missing)
        if column is not None:
            raise DataError("column is for conll and jsonl files, not for lines")
        name, text = read_text(source)
        rows = text.removesuffix("\n").split("\n") if text else []
        answers = [_answer(row.split(), missing) for row in rows]
        return cls(name, answers, list(range(1, len(rows) + 1)))

    @classmethod
    def _conll(cls, source: Source, column: int | str, missing: str) -> AnswerFile:
        rows = _Rows(source)
        table = rows.table
        starts = table.line_number[table.sample_ptr[:-1]].tolist()
        return cls(table.name, rows.answers(column, missing), starts)

    @classmethod
    def _jsonl(cls, source: Source, key: int | str, missing: str) -> AnswerFile:
        if not isinstance(key, str):
            raise DataError(f"column is {key!r}: expected the name of a key of jsonl files")
        name, text = read_text(source)
        answers: list[Answer] = []
        lines = []
        for number, line in enumerate(text.split("\n"), 1):
            if not line.strip():
                continue
            place = f"{name}, line {number}"
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise DataError(f"{place}: not JSON ({error})") from None
            if not isinstance(record, dict) or key not in record:
                raise DataError(f"{place}: expected an object with the key {key!r}")
            labels = record[key]
            if labels is not None and not (
                isinstance(labels, list) and all(y is None or isinstance(y, str) for y in labels)
            ):
                raise DataError(f"{place}: {key!r} must be a list of strings (or nulls), or null")
            for label in labels or ():
                check_text(label or "", place)
            answers.append(None if labels is None else _answer(labels, missing))
            lines.append(number)
        return cls(name, answers, lines)


def check_same_samples(first: AnswerFile, other: AnswerFile) -> None:
    """Refuse two files that do not have the same number of samples."""
    if len(first.answers) != len(other.answers):
        longer = max(first, other, key=lambda file: len(file.answers))
        extra = longer.lines[min(len(first.answers), len(other.answers))]
        raise DataError(
            f"{other.name} has {len(other.answers)} samples, {first.name} has "
            f"{len(first.answers)}: the first without a counterpart is at line {extra} of "
            f"{longer.name}"
        )


class _Rows:
    """The lines of a column file."""

    def __init__(self, source: Source) -> None:
        self.table = read_fields(source, tabs_only=False)

    def answers(self, number: int | str, missing: str) -> list[Answer]:
        """One column, sample by sample."""
        if not isinstance(number, int) or isinstance(number, bool) or number == 0:
            raise DataError(
                f"column is {number!r}: expected 1 (the first), 2, ... or -1 (the last)"
            )
        table = self.table
        counts = np.diff(table.line_ptr)
        short = np.flatnonzero(counts < abs(number))
        if short.size:
            raise table.fail(int(short[0]), f"{counts[short[0]]} fields, expected column {number}")
        fields = table.line_ptr[:-1] + number - 1 if number > 0 else table.line_ptr[1:] + number
        labels = code_column(table, fields).strings()
        return [_answer(labels[a:b], missing) for a, b in pairwise(table.sample_ptr.tolist())]


def _answer(labels: Sequence[Any], missing: str) -> Answer:
    answer = [None if label == missing else label for label in labels]
    return None if answer and all(label is None for label in answer) else answer
