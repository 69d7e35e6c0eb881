"""The dependency trees of ``ud_ewt``, as samples with edges (dependent, head)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from studies.datasets.folder import data_folder
from trellis.corpus import Column, Corpus, read_conll
from trellis.corpus.labels import Labels
from trellis.errors import DataError

__all__ = ["load_trees"]

_COLUMNS = ("form", "upos", "xpos", "head", "deprel")


def load_trees(label: str = "upos", part: str = "train") -> Corpus:
    """Sentences of Universal Dependencies English EWT with their trees.

    Parameters
    ----------
    label : "upos", "xpos" or "deprel"
        The column that becomes the labels. The edges' types are the relations, unless those are
        the labels.
    part : "train", "dev" or "test"

    Examples
    --------
    >>> from studies.datasets import load_trees
    >>> load_trees("lemma")
    Traceback (most recent call last):
    trellis.errors.DataError: label must be one of upos, xpos, deprel, got 'lemma'
    """
    if label not in ("upos", "xpos", "deprel"):
        raise DataError(f"label must be one of upos, xpos, deprel, got {label!r}")
    if part not in ("train", "dev", "test"):
        raise DataError(f"part must be one of train, dev, test, got {part!r}")
    corpus = read_conll(data_folder("ud_ewt") / f"{part}.tsv.xz", _COLUMNS, separator="\t")
    columns = dict(corpus.columns)
    heads = np.array([int(v) for v in columns["head"].values], np.int64)[columns["head"].codes]
    start = np.repeat(corpus.offsets[:-1], corpus.lengths)
    dependent = np.flatnonzero(heads > 0)
    edges = np.stack([dependent, start[dependent] + heads[dependent] - 1], axis=1)
    relation = columns["deprel"]
    target = columns.pop(label)
    del columns["head"]
    # What would give the answer away is not a feature.
    for name in {"upos": ("xpos", "deprel"), "xpos": ("upos", "deprel"), "deprel": ()}[label]:
        del columns[name]
    types = None if label == "deprel" else Column(relation.codes[dependent], relation.values)
    return replace(
        corpus,
        columns=columns,
        labels=Labels.from_codes(target.codes, target.values),
        edges=edges,
        edge_types=types,
        label_name=label,
    )
