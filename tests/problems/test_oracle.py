"""Answers of an oracle of single samples, checked."""

from __future__ import annotations

import numpy as np
import pytest

from trellis.errors import DataError
from trellis.problems import summed_risk
from trellis.problems.oracle import as_answer

W = np.zeros(3)


def test_dense_and_sparse_answers_are_the_same():
    dense, sparse = (as_answer((psi, 2), W, 0) for psi in ([0, 0.5, 0], ([1], [0.5])))
    for index, psi, loss, bound in (dense, sparse):
        assert (index.tolist(), psi.tolist(), loss, bound) == ([1], [0.5], 2.0, None)
    assert as_answer((W, 1, 3), W, 0)[2:] == (1.0, 3.0)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "answer is not psi and loss of a labelling, and maybe a bound"),
        (W, "answer is not psi and loss of a labelling, and maybe a bound"),
        ((W,), "answer is not psi and loss of a labelling, and maybe a bound"),
        ((W, 1, 2, 3), "answer is not psi and loss of a labelling, and maybe a bound"),
        ((W, None), "features or loss are not finite"),
        ((W, np.nan), "features or loss are not finite"),
        ((W, 1, np.inf), "features or loss are not finite"),
        ((W, 10**400), "features or loss are not finite"),
        (([0, np.nan, 0], 1), "features or loss are not finite"),
        ((([1], [np.inf]), 1), "features or loss are not finite"),
        (([0, 1], 1), r"features have shape \(2,\); expected \(3,\)"),
        ((([3], [1.0]), 1), "indices hold 3 at index 0; expected 0 to 2"),
        ((([1, 1], [1.0, 2.0]), 1), "indices must be distinct, with a value each"),
        ((([1], [1.0, 2.0]), 1), r"features have shape \(2,\); expected \(1,\)"),
    ],
)
def test_bad_input(answer, message):
    risk = summed_risk(lambda i, w: (W, 0.0) if i == 0 else answer, 2, 3)
    with pytest.raises(DataError, match=f"sample 1: the oracle's {message}"):
        risk(W)
