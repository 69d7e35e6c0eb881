"""The form in which samples came, so that answers about them go back in the same one.

A form knows two things: how labels that are given beside the samples are put in the order of the
corpus (:meth:`Form.label_lists`), and how labels and probabilities that a model found go back
(:meth:`Form.labels`, :meth:`Form.chances`): lists for lists, a series with the index of the table
for a table, a dict of nodes for a graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from trellis.arrays import as_list
from trellis.corpus.corpus import Corpus, check_lengths
from trellis.corpus.labels import Labels

__all__ = ["LISTS", "Form", "Given", "One"]


class Form:
    """Lists of samples, the form of all that is nothing else."""

    def label_lists(self, y: Any, what: str = "y") -> list[Any]:
        """Labels that a user passed, one list for each sample."""
        return as_list(y, f"samples of {what}")

    def labels(self, each: list[list[Any]]) -> Any:
        """Labels of each sample, as they go back."""
        return each

    def chances(self, each: list[Any], classes: Sequence[Any]) -> Any:
        """Probabilities (n, L) of each sample, as they go back."""
        return each


LISTS = Form()


class One(Form):
    """One sample that was given by itself, not in a list; ``inner`` is its form in a list."""

    def __init__(self, inner: Form = LISTS) -> None:
        self.inner = inner

    def label_lists(self, y: Any, what: str = "y") -> list[Any]:
        """Labels of the one sample."""
        return self.inner.label_lists(y if isinstance(y, str) else [y], what)

    def labels(self, each: list[list[Any]]) -> Any:
        """Labels of the one sample."""
        return self.inner.labels(each)[0]

    def chances(self, each: list[Any], classes: Sequence[Any]) -> Any:
        """Probabilities of the one sample."""
        return self.inner.chances(each, classes)[0]


@dataclass(frozen=True, eq=False)
class Given:
    """Samples that a user passed.

    Parameters
    ----------
    corpus : Corpus
        The samples.
    form : Form
        How answers go back.
    fields : tuple of str
        Names of the columns that positions were given in, in order; empty if they had none.
    """

    corpus: Corpus
    form: Form = field(default=LISTS)
    fields: tuple[str, ...] = ()

    def labelled(self, y: Any, what: str = "y") -> Labels:
        """Labels that a user passed beside the samples."""
        lists = self.form.label_lists(y, what)
        check_lengths(self.corpus.lengths.tolist(), lists, "X", what)
        return Labels.from_lists(lists)
