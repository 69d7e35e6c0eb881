r"""From votes to label sequences that are valid in a tag scheme.

With votes :math:`S_t(c) \ge 0` for label c at position t, the answer is the valid sequence y of
largest :math:`\sum_t S_t(y_t)` or :math:`\prod_t S_t(y_t)`, found by Viterbi. Without a scheme all
sequences are valid, and both are the winner of each position's vote.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trellis.experts.outputs import ExpertOutputs

__all__ = ["best_valid", "vote_table"]

# A product forbids what nobody votes for; if nothing valid is left, the fewest such labels win.
_NO_VOTE = 1e-30


def vote_table(
    codes: NDArray[np.int32], weights: NDArray[np.float64], n_labels: int
) -> NDArray[np.float64]:
    """Votes (N, L) of experts that say ``codes`` (N, p) with ``weights``, (p,) or (N, p).

    Examples
    --------
    >>> import numpy as np
    >>> codes = np.array([[0, 1, 1], [0, -1, -1]], np.int32)
    >>> vote_table(codes, np.array([0.5, 0.25, 0.25]), 2).tolist()
    [[0.5, 0.5], [0.5, 0.0]]
    """
    n = len(codes)
    awake = codes >= 0
    index = np.arange(n)[:, None] * n_labels + np.where(awake, codes, 0)
    heard = np.where(awake, weights, 0.0)
    votes = np.bincount(index.ravel(), heard.ravel(), n * n_labels).astype(np.float64)
    return votes.reshape(n, n_labels)


def best_valid(
    votes: NDArray[np.float64], outputs: ExpertOutputs, scheme: str, scoring: str = "sum"
) -> NDArray[np.int32]:
    """Best label sequence that is valid in a tag scheme, as codes (N,).

    Parameters
    ----------
    votes : float (N, L)
        Columns in the order of ``outputs.labels``.
    outputs : ExpertOutputs
        Gives the samples and the labels.
    scheme : str
        "BIO", "BILOU", "IOBES" or "BMES".
    scoring : "sum" or "product"

    Examples
    --------
    >>> import numpy as np
    >>> from trellis.experts import as_outputs
    >>> said = as_outputs([[["O", "I-X"]], [["B-X", "I-X"]]])
    >>> best_valid(np.array([[0.4, 0.0, 0.6], [0.0, 0.9, 0.1]]), said, "BIO").tolist()
    [0, 1]
    """
    from trellis.corpus.schemes import get_scheme
    from trellis.structures import ChainPotentials, best

    start, follow, end = get_scheme(scheme).validity(outputs.labels)
    node = np.log(np.maximum(votes, _NO_VOTE)) if scoring == "product" else votes.copy()
    first, last = outputs.offsets[:-1], outputs.offsets[1:] - 1
    node[first] = np.where(start, node[first], -np.inf)
    node[last] = np.where(end, node[last], -np.inf)
    trans = np.where(follow, 0.0, -np.inf)
    return best(ChainPotentials(node, trans, outputs.offsets))[0]
