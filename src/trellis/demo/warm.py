"""What several panels compile: each part is compiled by one process, for all of them.

Data in plenty are learned from by steps in single precision, few by L-BFGS in double precision
(:mod:`trellis.models.automatic`); so there are machine codes for both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trellis.models import ChainCRF

__all__ = ["warm_few", "warm_marginals", "warm_plain", "warm_rich"]


def warm_plain() -> None:
    """Models of letters with plain edges, learned by steps."""
    _letters({})
    _letters({"piece_size": 1.5})


def warm_rich() -> None:
    """The same with rich edges."""
    _letters({"rich_edges": True})
    _letters({"rich_edges": True, "piece_size": 1.5})


def warm_few() -> None:
    """Models of words, learned from few sentences."""
    from trellis.models import ChainCRF

    X, y = [["read", "a", "line"]] * 3, [["A", "B", "A"]] * 3
    ChainCRF("word[-1..1]; suffix(word, 1..3)", solver="lbfgs", max_passes=1).fit(X, y).predict(X)


def warm_marginals() -> None:
    """Probabilities of labels, and the second best labelling: what active learning asks by."""
    import numpy as np

    from trellis.structures import ChainPotentials, kbest, marginals

    potentials = ChainPotentials(np.zeros((3, 2)), np.zeros((2, 2)), np.array([0, 3]))
    marginals(potentials)
    kbest(potentials, 2)


def _letters(options: dict[str, Any]) -> ChainCRF:
    from trellis.datasets import Sentences
    from trellis.models import ChainCRF

    corpus = Sentences(["read a line", "read the line", "a line is read"], ["a", "b", "c"]).corpus()
    crf = ChainCRF("wordseg", solver="sgd", max_passes=1, random_state=0, **options).fit(corpus)
    crf.predict(corpus)
    return crf
