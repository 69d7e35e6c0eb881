"""Labelled sequences: chunks, parts of speech, entities, words, activities and letters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from studies.datasets.folder import data_folder
from studies.datasets.ocr import read_words
from trellis.corpus import Corpus, as_corpus, read_conll, read_segmented
from trellis.errors import DataError

__all__ = ["DataSet", "load"]


@dataclass(frozen=True)
class DataSet:
    """A task: corpora, the template set that suits it, and the tag scheme of its labels.

    ``dev`` is None where the data have no development part; ``features`` is None where samples
    come with features; ``scheme`` is None where accuracy is the measure.
    """

    name: str
    train: Corpus
    dev: Corpus | None
    test: Corpus
    features: str | None
    scheme: str | None


def load(name: str) -> DataSet:
    """Load a real data set: conll2000, ud_ewt, jnlpba, sxu, msr, har or ocr.

    Raises
    ------
    DataError
        If there is no such data set, or its files are missing or damaged.

    Examples
    --------
    >>> load("conll2000").train.n_positions  # doctest: +SKIP
    211727
    >>> load("conll1999")
    Traceback (most recent call last):
    trellis.errors.DataError: unknown data set 'conll1999'; known: conll2000, ud_ewt, jnlpba, ...
    """
    if name not in _LOADERS:
        raise DataError(f"unknown data set {name!r}; known: {', '.join(_LOADERS)}")
    return _LOADERS[name](data_folder(name))


def _conll2000(folder: Path) -> DataSet:
    columns = ["word", "pos", "chunk"]
    train, test = (
        read_conll(folder / f"{part}.txt.xz", columns, "chunk") for part in ("train", "test")
    )
    return DataSet("conll2000", train, None, test, "chunking", "BIO")


def _ud_ewt(folder: Path) -> DataSet:
    columns = ["word", "upos", "xpos", "head", "deprel"]
    train, dev, test = (
        read_conll(folder / f"{part}.tsv.xz", columns, "xpos", separator="\t")
        for part in ("train", "dev", "test")
    )
    return DataSet("ud_ewt", train, dev, test, "pos", None)


def _jnlpba(folder: Path) -> DataSet:
    train, test = (
        read_conll(folder / f"{part}.iob2.xz", ["word", "tag"], "tag", skip="###MEDLINE:")
        for part in ("train", "test")
    )
    return DataSet("jnlpba", train, None, test, "ner", "BIO")


def _sxu(folder: Path) -> DataSet:
    train, test = (read_segmented(folder / f"{part}.txt.xz") for part in ("train", "test"))
    return DataSet("sxu", train, None, test, "wordseg", "BMES")


def _msr(folder: Path) -> DataSet:
    train = read_segmented(folder / "train_tenth_preprocessed.txt.xz")
    test = read_segmented(folder / "test_gold_preprocessed.txt.xz")
    return DataSet("msr", train, None, test, "wordseg", "BMES")


def _har(folder: Path) -> DataSet:
    """Windows of one recording are a sequence; features standardised on the training part."""
    path = folder / "windows.npz"
    try:
        with np.load(path) as stored:
            X, y = stored["X"].astype(np.float64), stored["y"]
            experiment, is_test = stored["experiment"], stored["is_test"]
            names = [str(n) for n in stored["label_names"]]
    except (OSError, EOFError, ValueError, KeyError, TypeError, BadZipFile) as error:
        raise DataError(f"cannot read {path}: {error}") from None
    mean, spread = X[~is_test].mean(0), X[~is_test].std(0)
    X = (X - mean) / np.where(spread > 0, spread, 1)
    X = np.hstack([X, np.ones((len(X), 1))])

    def part(chosen: Any) -> Corpus:
        runs = [chosen & (experiment == e) for e in np.unique(experiment[chosen])]
        return as_corpus([X[r] for r in runs], [[names[i] for i in y[r]] for r in runs])

    return DataSet("har", part(~is_test), None, part(is_test), None, None)


def _ocr(folder: Path) -> DataSet:
    """The «small» setting: train on fold 0, test on the other nine."""
    corpus, folds = read_words(folder)
    train, test = (corpus.take(np.flatnonzero(part)) for part in (folds == 0, folds != 0))
    return DataSet("ocr", train, None, test, None, None)


_LOADERS: dict[str, Callable[[Path], DataSet]] = {
    "conll2000": _conll2000,
    "ud_ewt": _ud_ewt,
    "jnlpba": _jnlpba,
    "sxu": _sxu,
    "msr": _msr,
    "har": _har,
    "ocr": _ocr,
}
