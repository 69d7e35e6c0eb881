"""The artificial data sets ADS1, ADS2 and ADS3 of Cortes, Kuznetsov and Mohri (2014).

Sequences of 10 letters from a Markov chain over the English alphabet, and 5 experts that make
mistakes in a known way; a mistake is a letter next to the right one.

- ADS1: expert j (of 1..5) is good at positions 2j - 1 and 2j and poor at the others;
- ADS2: each expert is wrong at 4 of the 10 positions of a sequence, drawn anew for each;
- ADS3: expert j is always right about the letters of its fifth of the alphabet A_j and often wrong
  about the others.

With the probabilities the paper prints its tables cannot come out: the best expert of ADS1 would
err at 0.2 · 0.03 + 0.8 · 0.5 = 0.406 of the positions, not at 0.5635. ``as_tabulated`` has
probabilities that fit the tables, which were found from them and so are a hypothesis.

=====  ======================================  =================================================
set    as_printed                              as_tabulated
=====  ======================================  =================================================
ADS1   right with 0.97 / 0.5                   right with 0.98 / 0.3, wrong experts agree
ADS2   4 of 10 positions wrong                 the same
ADS3   right with 0.7 outside A_j              right with 0.6 outside A_j, wrong experts agree
=====  ======================================  =================================================

«Wrong experts agree» means that all who are wrong at a position say the same neighbouring letter.

In ADS2 all experts are alike, so that no learned vote can be better than the plain one but by
chance, and in the paper one is. ``fixed_direction`` is a hypothesis about that: each expert of ADS2
always errs in its own direction, the first, third and fifth to the letter after, the second and
fourth to the letter before. Then wrong experts of a kind agree, and two against three are not
alike. ADS1 and ADS3 are ``as_tabulated``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trellis.domains import one_of, whole

__all__ = ["artificial_experts"]

LETTERS = "abcdefghijklmnopqrstuvwxyz"
LENGTH = 10
N_EXPERTS = 5

# Chance of being right in and out of an expert's own field, and whether wrong experts agree.
_SETTINGS = {
    ("ADS1", "as_printed"): (0.97, 0.5, False),
    ("ADS1", "as_tabulated"): (0.98, 0.3, True),
    ("ADS3", "as_printed"): (1.0, 0.7, False),
    ("ADS3", "as_tabulated"): (1.0, 0.6, True),
}


def artificial_experts(
    name: str = "ADS1",
    n_samples: int = 40_000,
    *,
    variant: str = "as_tabulated",
    cyclic: bool = False,
    random_state: int = 0,
) -> tuple[list[list[list[str]]], list[list[str]]]:
    """Draw an artificial data set for ensembles of experts.

    Parameters
    ----------
    name : "ADS1", "ADS2" or "ADS3"
    n_samples : int
        Number of sequences; the paper has 40,000.
    variant : "as_tabulated", "as_printed" or "fixed_direction"
        Probabilities that fit the paper's tables, or those of its text, or ADS2 with experts that
        each err in one direction (see the module).
    cyclic : bool
        Whether the letter after z is a. If not, a mistake at an end of the alphabet is its only
        neighbour there.
    random_state : int
        Seed; the same seed, the same data.

    Returns
    -------
    outputs : list of lists of label sequences
        ``outputs[j][i]`` is what expert j says for sequence i.
    gold : list of label sequences

    Examples
    --------
    >>> from trellis.datasets import artificial_experts
    >>> outputs, gold = artificial_experts("ADS2", 100)
    >>> len(outputs), len(gold), len(gold[0])
    (5, 100, 10)
    >>> sum(a != b for a, b in zip(outputs[3][7], gold[7]))
    4
    """
    one_of("ADS1", "ADS2", "ADS3").check("name", name)
    one_of("as_printed", "as_tabulated", "fixed_direction").check("variant", variant)
    whole(1).check("n_samples", n_samples)
    rng = np.random.default_rng(random_state)
    truth = _markov_chain(n_samples, rng)
    shape = (N_EXPERTS, n_samples, LENGTH)
    if name == "ADS2":
        wrong = np.argsort(rng.random(shape), axis=2) < 4
        agree = False
    else:
        printed = "as_printed" if variant == "as_printed" else "as_tabulated"
        inside, outside, agree = _SETTINGS[name, printed]
        experts = np.arange(N_EXPERTS)[:, None, None]
        field = np.broadcast_to(np.arange(LENGTH) // 2, truth.shape)
        if name == "ADS3":
            field = truth * N_EXPERTS // len(LETTERS)
        wrong = rng.random(shape) >= np.where(field == experts, inside, outside)
    steps = rng.integers(0, 2, (1, n_samples, LENGTH) if agree else shape) * 2 - 1
    if name == "ADS2" and variant == "fixed_direction":
        steps = np.array([1, -1, 1, -1, 1])[:, None, None]
    neighbour = truth + steps
    if cyclic:
        neighbour = neighbour % len(LETTERS)
    # The first and the last letter have one neighbour only.
    neighbour = np.where((neighbour < 0) | (neighbour >= len(LETTERS)), truth - steps, neighbour)
    answers = np.where(wrong, neighbour, truth)
    letters = np.array(list(LETTERS), dtype=object)
    outputs: list[list[list[str]]] = letters[answers].tolist()
    gold: list[list[str]] = letters[truth].tolist()
    return outputs, gold


def _markov_chain(n_samples: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw from an arbitrary chain: uniform start, transition rows uniform on the simplex."""
    n = len(LETTERS)
    upto = rng.dirichlet(np.ones(n), n).cumsum(axis=1)
    truth = np.empty((n_samples, LENGTH), np.int64)
    truth[:, 0] = rng.integers(0, n, n_samples)
    for k in range(1, LENGTH):
        rows = upto[truth[:, k - 1]]
        truth[:, k] = np.minimum((rows <= rng.random((n_samples, 1))).sum(axis=1), n - 1)
    return truth
