"""Real outputs of several systems for the same inputs, and pronunciations to train experts on.

The files are looked for as in :mod:`studies.datasets.folder`. Names:

* ``conll2003``: 14 named-entity recognisers on the CoNLL-2003 test sentences, BIO tags a token.
* ``morphseg-ces``: 13 systems' segmentations of Czech words into morphemes, as labels of the
  characters: B begins a morpheme, I goes on. An answer that does not spell the word is missing.
* ``morphseg-eng``: 13 systems' canonical segmentations of English words, as sequences of
  characters with ``|`` between morphemes. They need not spell the word and differ in length.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from studies.datasets.folder import data_folder
from trellis.errors import DataError
from trellis.files.text import read_text

__all__ = ["ExpertData", "load_experts", "load_pronunciations"]

Answer = list[str] | None


@dataclass(frozen=True)
class ExpertData:
    """Inputs, right answers and what each expert answers.

    Attributes
    ----------
    name : str
    inputs : list of lists of str
        Tokens or characters of each sample.
    gold : list of lists of str
        The right labels.
    outputs : list of lists of (list of str or None)
        ``outputs[j][i]`` is what expert j says about sample i.
    names : tuple of str
        Names of the experts.
    scheme : str or None
        Tag scheme of the labels, if there is one.
    aligned : bool
        Whether all answers to a sample have the same length.

    Examples
    --------
    >>> data = ExpertData("toy", [["a"], ["b"]], [["X"], ["Y"]], [[["X"], None]], ("rules",))
    >>> len(data), data.take([1]).outputs
    (2, [[None]])
    """

    name: str
    inputs: list[list[str]]
    gold: list[list[str]]
    outputs: list[list[Answer]]
    names: tuple[str, ...]
    scheme: str | None = None
    aligned: bool = True

    def __len__(self) -> int:
        return len(self.gold)

    def take(self, samples: Sequence[int] | NDArray[np.int64]) -> ExpertData:
        """Return the samples with these indices, in that order."""
        return ExpertData(
            self.name,
            [self.inputs[i] for i in samples],
            [self.gold[i] for i in samples],
            [[column[i] for i in samples] for column in self.outputs],
            self.names,
            self.scheme,
            self.aligned,
        )


def load_experts(name: str) -> ExpertData:
    """Load conll2003, morphseg-ces or morphseg-eng; see the module's documentation.

    Raises
    ------
    DataError
        If there is no such data set, or its files are missing or damaged.

    Examples
    --------
    >>> len(load_experts("conll2003"))  # doctest: +SKIP
    3453
    >>> load_experts("conll2004")
    Traceback (most recent call last):
    trellis.errors.DataError: unknown data set 'conll2004'; known: conll2003, morphseg-ces, ...
    """
    if name not in _LOADERS:
        raise DataError(f"unknown data set {name!r}; known: {', '.join(_LOADERS)}")
    return _LOADERS[name]()


def load_pronunciations(part: str) -> tuple[list[list[str]], list[list[str]]]:
    """Load words and their pronunciations: the SIGMORPHON 2021 split of American English.

    Parameters
    ----------
    part : "train", "dev" or "test"

    Returns
    -------
    letters : list of lists of str
        The characters of each word.
    phones : list of lists of str
        Its pronunciation in IPA symbols.

    Examples
    --------
    >>> letters, phones = load_pronunciations("test")  # doctest: +SKIP
    >>> load_pronunciations("all")
    Traceback (most recent call last):
    trellis.errors.DataError: part is 'all': expected 'train', 'dev' or 'test'
    """
    if part not in ("train", "dev", "test"):
        raise DataError(f"part is {part!r}: expected 'train', 'dev' or 'test'")
    path = data_folder("cmudict") / f"sigmorphon2021_eng_us_{part}.tsv.xz"
    rows = [fields for _, fields in _rows(path, 2)]
    return [list(word) for word, _ in rows], [phones.split() for _, phones in rows]


def _conll2003() -> ExpertData:
    path = data_folder("conll2003_experts") / "test_experts.tsv.xz"
    lines = _rows(path)
    if not lines:
        raise DataError(f"{path} is empty")
    names = tuple(lines[0][1][2:])
    sentences: list[list[list[str]]] = []
    before = 0
    for number, fields in lines[1:]:
        if len(fields) != len(lines[0][1]):
            raise DataError(
                f"{path}, line {number}: {len(fields)} fields, expected {len(lines[0][1])}"
            )
        if number > before + 1:  # a blank line lies between
            sentences.append([])
        sentences[-1].append(fields)
        before = number
    columns = [[list(c) for c in zip(*sentence, strict=True)] for sentence in sentences]
    return ExpertData(
        "conll2003",
        [c[0] for c in columns],
        [c[1] for c in columns],
        [[c[2 + j] for c in columns] for j in range(len(names))],
        names,
        "BIO",
    )


def _czech() -> ExpertData:
    def labels(word: str, answer: str) -> Answer:
        parts = answer.split()
        if "".join(parts) != word:
            return None
        return [y for part in parts for y in "B" + "I" * (len(part) - 1)]

    return _segmentations("ces", labels, True)


def _english() -> ExpertData:
    def labels(word: str, answer: str) -> Answer:
        return list("|".join(answer.split()))

    return _segmentations("eng", labels, False)


def _segmentations(
    language: str, labels: Callable[[str, str], Answer], aligned: bool
) -> ExpertData:
    path = data_folder("morphseg2022") / f"{language}_test_experts.tsv.xz"
    lines = _rows(path)
    if not lines:
        raise DataError(f"{path} is empty")
    names = tuple(lines[0][1][2:])
    inputs: list[list[str]] = []
    gold: list[list[str]] = []
    outputs: list[list[Answer]] = [[] for _ in names]
    for number, fields in lines[1:]:
        if len(fields) != 2 + len(names):
            raise DataError(
                f"{path}, line {number}: {len(fields)} fields, expected {2 + len(names)}"
            )
        word, *answers = fields
        right, *said = (labels(word, answer) for answer in answers)
        if right is None:
            raise DataError(f"{path}, line {number}: the right answer does not spell {word!r}")
        inputs.append(list(word))
        gold.append(right)
        for column, answer in zip(outputs, said, strict=True):
            column.append(answer)
    return ExpertData(f"morphseg-{language}", inputs, gold, outputs, names, None, aligned)


def _rows(path: Path, n_fields: int | None = None) -> list[tuple[int, list[str]]]:
    """Fields of all lines that are not blank, with their numbers."""
    rows = []
    for number, line in zip(itertools.count(1), read_text(path)[1].split("\n"), strict=False):
        if line:
            fields = line.split("\t")
            if n_fields is not None and len(fields) != n_fields:
                raise DataError(f"{path}, line {number}: {len(fields)} fields, expected {n_fields}")
            rows.append((number, fields))
    return rows


_LOADERS: dict[str, Callable[[], ExpertData]] = {
    "conll2003": _conll2003,
    "morphseg-ces": _czech,
    "morphseg-eng": _english,
}
