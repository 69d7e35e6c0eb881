"""Rounds of weighted majority over experts that may sleep.

The table ``log_w`` (C, p) holds one weight for each context and expert. At position t the weight
of expert j is in the row ``row_of_code[codes[t, j]]`` if the context is what the expert itself
says, else in the row ``context[t]``. One round is one sample:

1. its expected loss under the weights of the round's beginning, normalised over those awake;
2. position by position, w <- w exp(-eta loss) for those awake, rescaled so that their total stays
   what it was (Freund, Schapire, Singer and Warmuth 1997). If all are awake and share the row, the
   rescaling cancels in the normalised weights, which are then those of exponential weights.

``log_sum`` gathers the log of the sum over rounds of each weight; ``last`` is the round up to which
a cell is summed: a cell that slept has not changed, so it is summed when it wakes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import kernel

__all__ = ["count_visits", "expected_losses", "mean_loss_majority", "weighted_majority"]


@kernel
def weighted_majority(
    offsets: Any, codes: Any, gold: Any, context: Any, row_of_code: Any, by_label: bool, cost: Any,
    eta: float, by_length: bool, first: int, log_w: Any, log_sum: Any, last: Any, losses: Any,
) -> None:  # fmt: skip
    """Run the rounds ``first``, ``first + 1``, ... on these samples; ``losses`` gets one each."""
    p = codes.shape[1]
    charged = np.empty(p)
    share = np.empty(p)
    where = np.empty(p, np.int64)
    for s in range(len(offsets) - 1):
        begin, end = offsets[s], offsets[s + 1]
        rate = eta / (end - begin) if by_length else eta
        drop = np.exp(-rate)
        total = 0.0
        for step in range(2):  # 0: the loss under the round's weights; 1: the update
            for t in range(begin, end):
                best = -np.inf
                for j in range(p):
                    vote = codes[t, j]
                    where[j] = -1
                    if vote >= 0:
                        row = row_of_code[vote] if by_label else context[t]
                        where[j] = row
                        best = max(best, log_w[row, j])
                        if cost.size > 0:
                            charged[j] = cost[gold[t], vote]
                        else:
                            charged[j] = 0.0 if vote == gold[t] else 1.0
                if best == -np.inf:  # all asleep
                    if step == 0:
                        total += 1.0
                    continue
                before = 0.0
                for j in range(p):
                    if where[j] >= 0:
                        share[j] = np.exp(log_w[where[j], j] - best)
                        before += share[j]
                if step == 0:
                    expected = 0.0
                    for j in range(p):
                        if where[j] >= 0:
                            expected += share[j] * charged[j]
                    total += expected / before
                    continue
                after = 0.0
                for j in range(p):
                    if where[j] >= 0:
                        if charged[j] == 1.0:
                            after += share[j] * drop
                        elif charged[j] > 0.0:
                            after += share[j] * np.exp(-rate * charged[j])
                        else:
                            after += share[j]
                mix = np.log(after / before)
                for j in range(p):
                    row = where[j]
                    if row >= 0:
                        rounds = first + s + 1 - last[row, j]
                        if rounds > 0:
                            new = log_w[row, j] + np.log(rounds)
                            old = log_sum[row, j]
                            top = max(new, old)
                            if old == -np.inf:
                                log_sum[row, j] = new
                            else:
                                log_sum[row, j] = top + np.log1p(np.exp(-abs(new - old)))
                            last[row, j] = first + s + 1
                        log_w[row, j] -= rate * charged[j] + mix
        losses[s] = total / (end - begin)


@kernel
def mean_loss_majority(
    offsets: Any, codes: Any, gold: Any, context: Any, row_of_code: Any, by_label: bool, cost: Any,
    rate: float, prior: float, first: int, gain: Any, spoken: Any, log_w: Any, log_sum: Any,
    last: Any, losses: Any, tally: Any, vote_losses: Any,
) -> None:  # fmt: skip
    """Run rounds in which weights follow *mean* losses: w = exp(rate · gain / (spoken + prior)).

    ``gain`` (C, p) sums, over the ``spoken`` (C, p) positions where an expert spoke in a context,
    the mean loss of those awake less its own; the weights of a round are those of its beginning.
    ``vote_losses``, unless it is empty, gets the losses of the votes with them: the most voted
    label wins, among equals what the first expert in order says. ``tally`` (L,) is room for them,
    of zeros.
    """
    p = codes.shape[1]
    charged = np.empty(p)
    share = np.empty(p)
    where = np.empty(p, np.int64)
    for s in range(len(offsets) - 1):
        begin, end = offsets[s], offsets[s + 1]
        total = 0.0
        voted = 0.0
        for t in range(begin, end):
            best = -np.inf
            awake = 0
            mean = 0.0
            for j in range(p):
                vote = codes[t, j]
                where[j] = -1
                if vote >= 0:
                    row = row_of_code[vote] if by_label else context[t]
                    where[j] = row
                    best = max(best, log_w[row, j])
                    if cost.size > 0:
                        charged[j] = cost[gold[t], vote]
                    else:
                        charged[j] = 0.0 if vote == gold[t] else 1.0
                    awake += 1
                    mean += charged[j]
            if awake == 0:
                total += 1.0
                voted += 1.0
                continue
            mean /= awake
            mass = 0.0
            expected = 0.0
            for j in range(p):
                row = where[j]
                if row >= 0:
                    share[j] = np.exp(log_w[row, j] - best)
                    mass += share[j]
                    expected += share[j] * charged[j]
                    gain[row, j] += mean - charged[j]
                    spoken[row, j] += 1.0
            total += expected / mass
            if vote_losses.size > 0:
                for j in range(p):
                    if where[j] >= 0:
                        tally[codes[t, j]] += share[j]
                top = 0.0
                for j in range(p):
                    if where[j] >= 0:
                        top = max(top, tally[codes[t, j]])
                winner = -1
                for j in range(p):
                    spoke = where[j] >= 0 and winner < 0
                    if spoke and tally[codes[t, j]] >= top * (1 - 1e-12):
                        winner = j
                voted += charged[winner]
                for j in range(p):
                    if where[j] >= 0:
                        tally[codes[t, j]] = 0.0
        losses[s] = total / (end - begin)
        if vote_losses.size > 0:
            vote_losses[s] = voted / (end - begin)
        for t in range(begin, end):
            for j in range(p):
                vote = codes[t, j]
                if vote >= 0:
                    row = row_of_code[vote] if by_label else context[t]
                    rounds = first + s + 1 - last[row, j]
                    if rounds > 0:
                        new = log_w[row, j] + np.log(rounds)
                        old = log_sum[row, j]
                        top = max(new, old)
                        if old == -np.inf:
                            log_sum[row, j] = new
                        else:
                            log_sum[row, j] = top + np.log1p(np.exp(-abs(new - old)))
                        last[row, j] = first + s + 1
                        log_w[row, j] = rate * gain[row, j] / (spoken[row, j] + prior)


@kernel
def expected_losses(
    offsets: Any, codes: Any, gold: Any, context: Any, row_of_code: Any, by_label: bool, cost: Any,
    weights: Any, losses: Any,
) -> None:  # fmt: skip
    """Add to ``losses`` (K, S) each sample's expected loss under ``weights`` (C, p, K)."""
    p, n_tables = weights.shape[1], weights.shape[2]
    hit = np.empty(n_tables)
    mass = np.empty(n_tables)
    for s in range(len(offsets) - 1):
        begin, end = offsets[s], offsets[s + 1]
        scale = 1.0 / (end - begin)
        for t in range(begin, end):
            hit[:] = 0.0
            mass[:] = 0.0
            awake = 0
            plain = 0.0
            for j in range(p):
                vote = codes[t, j]
                if vote < 0:
                    continue
                awake += 1
                row = row_of_code[vote] if by_label else context[t]
                charged = 0.0 if vote == gold[t] else 1.0
                if cost.size > 0:
                    charged = cost[gold[t], vote]
                plain += charged
                for k in range(n_tables):
                    mass[k] += weights[row, j, k]
                    hit[k] += weights[row, j, k] * charged
            for k in range(n_tables):
                if awake == 0:
                    losses[k, s] += scale
                elif mass[k] > 0.0:
                    losses[k, s] += scale * hit[k] / mass[k]
                else:  # nobody awake has any weight: an unweighted choice
                    losses[k, s] += scale * plain / awake


@kernel
def count_visits(
    codes: Any, context: Any, row_of_code: Any, by_label: bool, visits: Any
) -> None:  # fmt: skip
    """Add to ``visits`` (C, p) how often each expert speaks in each context."""
    for t in range(codes.shape[0]):
        for j in range(codes.shape[1]):
            vote = codes[t, j]
            if vote >= 0:
                visits[row_of_code[vote] if by_label else context[t], j] += 1
