"""Rounds of weighted majority over experts that may sleep, votes one by one, and best paths.

**Weighted majority.** The table ``log_w`` (C, p) holds one weight for each context and expert. At
position t the weight of expert j is in the row ``row_of_code[codes[t, j]]`` if the context is what
the expert itself says, else in the row ``context[t]``. One round is one sample:

1. its expected loss under the weights of the round's beginning, normalised over those awake;
2. position by position, w <- w exp(-eta loss) for those awake, rescaled so that their total stays
   what it was (Freund, Schapire, Singer and Warmuth 1997). If all are awake and share the row, the
   rescaling cancels in the normalised weights, which are then those of exponential weights.

``log_sum`` gathers the log of the sum over rounds of each weight; ``last`` is the round up to which
a cell is summed: a cell that slept has not changed, so it is summed when it wakes.

**Votes one by one.** At each position the labels that experts say are numbered in the order of the
experts, so that positions with the same pattern of agreement are alike whatever their labels.
``slots[t, j]`` is the number of what expert j says, -1: nothing; ``right[t]`` that of the right
label, -2: nobody says it. One vote more changes the outcome only where a label is a vote behind the
winner; elsewhere no expert needs to be looked at.

**Best paths of a family.** With V_0(q) = 0 in final states, else -inf, the best path of r moves
from state q has V_r(q) = max over the moves m that leave q of score(m) + V_{r-1}(d(m)).

**ROVER's vote.** The precision of expert j for label c, without the sample that it is used in.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import kernel, subkernel

__all__ = [
    "add_vote",
    "best_moves",
    "count_visits",
    "expected_losses",
    "left_out_precisions",
    "mean_loss_majority",
    "rover_votes",
    "same_rows",
    "vote_slots",
    "weighted_majority",
]

_ODD, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)


@subkernel
def _charge(cost: Any, right: int, vote: int) -> float:
    """Loss of one answer; ``cost`` (L, L) is empty for 0/1."""
    if cost.size > 0:
        return float(cost[right, vote])
    return 0.0 if vote == right else 1.0


@subkernel
def _look(
    t: int, codes: Any, gold: Any, context: Any, row_of_code: Any, by_label: bool, cost: Any,
    log_w: Any, where: Any, charged: Any,
) -> float:  # fmt: skip
    """Row of each expert at a position (-1: asleep) and its loss; return the largest log weight."""
    best = -np.inf
    for j in range(codes.shape[1]):
        vote = codes[t, j]
        where[j] = -1
        if vote >= 0:
            row = row_of_code[vote] if by_label else context[t]
            where[j] = row
            best = max(best, log_w[row, j])
            charged[j] = _charge(cost, gold[t], vote)
    return float(best)


@subkernel
def _sum_up(row: int, j: int, upto: int, log_w: Any, log_sum: Any, last: Any) -> bool:
    """Add a weight for the rounds since it was last added; whether there are any."""
    rounds = upto - last[row, j]
    if rounds <= 0:
        return False
    new = log_w[row, j] + np.log(rounds)
    old = log_sum[row, j]
    top = max(new, old)
    if old == -np.inf:
        log_sum[row, j] = new
    else:
        log_sum[row, j] = top + np.log1p(np.exp(-abs(new - old)))
    last[row, j] = upto
    return True


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
                best = _look(
                    t, codes, gold, context, row_of_code, by_label, cost, log_w, where, charged
                )
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
                        _sum_up(row, j, first + s + 1, log_w, log_sum, last)
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
            best = _look(
                t, codes, gold, context, row_of_code, by_label, cost, log_w, where, charged
            )
            if best == -np.inf:  # all asleep
                total += 1.0
                voted += 1.0
                continue
            awake = 0
            mean = 0.0
            for j in range(p):
                if where[j] >= 0:
                    awake += 1
                    mean += charged[j]
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
                    if _sum_up(row, j, first + s + 1, log_w, log_sum, last):
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
                charged = _charge(cost, gold[t], vote)
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
def best_moves(origin: Any, destination: Any, final: Any, scores: Any, moves: Any) -> None:
    """Fill ``moves`` (K, l) with the best path of l moves from state 0, first on ties.

    Parameters
    ----------
    origin, destination : int64 (M,)
    final : bool (n_states,)
        Where a path may end; there must be a path.
    scores : float64 (K, M)
    moves : int64 (K, l)
    """
    n_paths, length = moves.shape
    ahead = np.empty(len(final))
    here = np.empty(len(final))
    choice = np.empty((length, len(final)), np.int64)
    for k in range(n_paths):
        for q in range(len(final)):
            ahead[q] = 0.0 if final[q] else -np.inf
        for r in range(length):
            here[:] = -np.inf
            choice[r, :] = 0  # also where sums of scores overflow, there must be a move
            for m in range(len(origin)):
                value = scores[k, m] + ahead[destination[m]]
                if value > here[origin[m]]:
                    here[origin[m]] = value
                    choice[r, origin[m]] = m
            ahead[:] = here
        state = 0
        for t in range(length):
            moves[k, t] = choice[length - 1 - t, state]
            state = destination[moves[k, t]]


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


@kernel
def vote_slots(codes: Any, gold: Any, slots: Any, right: Any, hashes: Any) -> Any:
    """Number the labels of each position where experts differ or sleep.

    Fills the first rows of ``slots`` (N, p), ``right`` (N,) and ``hashes`` (N,) of these rows.

    Returns
    -------
    (int, int, int)
        Number of rows, the most labels in one, and how many other positions are wrong.
    """
    p = codes.shape[1]
    labels = np.empty(p, codes.dtype)
    n = most = wrong = 0
    for t in range(codes.shape[0]):
        k = 0
        asleep = False
        for j in range(p):
            code = codes[t, j]
            slot = -1
            if code >= 0:
                slot = 0
                while slot < k and labels[slot] != code:
                    slot += 1
                if slot == k:
                    labels[k] = code
                    k += 1
            else:
                asleep = True
            slots[n, j] = slot
        mark = -2
        for slot in range(k):
            if labels[slot] == gold[t]:
                mark = slot
        if k == 1 and not asleep:
            wrong += mark < 0
            continue
        mixed = np.uint64(mark + 2)
        for j in range(p):
            mixed = (mixed ^ np.uint64(slots[n, j] + 1)) * _ODD
            mixed ^= mixed >> _SHIFT
        right[n], hashes[n] = mark, mixed
        most = max(most, k)
        n += 1
    return n, most, wrong


@kernel
def same_rows(slots: Any, right: Any, like: Any) -> bool:
    """Whether each row t is row ``like[t]`` again."""
    for t in range(len(like)):
        if right[t] != right[like[t]]:
            return False
        for j in range(slots.shape[1]):
            if slots[t, j] != slots[like[t], j]:
                return False
    return True


@subkernel
def _wins(votes: Any, first: Any, t: int, slot: int, winner: int, more: int) -> bool:
    """Whether a label wins with so many votes more: at a tie the one that was said first does."""
    if winner < 0:
        return True
    count, held = votes[t, slot] + more, votes[t, winner]
    return bool(count > held or (count == held and first[t, slot] < first[t, winner]))


@kernel
def add_vote(
    slots: Any, right: Any, times: Any, expert: int, now: int, votes: Any, first: Any, winner: Any,
    gained: Any, lost: Any,
) -> int:  # fmt: skip
    """Give an expert one vote more (-1: nobody), and look one vote ahead.

    Parameters
    ----------
    slots : int (n, p)
    right : int (n,)
    times : int64 (n,)
        How many positions are like this one.
    expert, now : int
        Who gets a vote, and the number of this vote.
    votes, first : int32 (n, K)
        Votes of each label, and the number of its first one (what is larger than all if none).
    winner : int (n,)
        The label that wins, -1: none.
    gained, lost : int64 (p,)
        Get the number of positions that would become right, and wrong, if expert j had one vote
        more.

    Returns
    -------
    int
        Wrong positions now.
    """
    p, n_slots = slots.shape[1], votes.shape[1]
    gained[:] = 0
    lost[:] = 0
    wrong = 0
    for t in range(slots.shape[0]):
        if expert >= 0 and slots[t, expert] >= 0:
            slot = slots[t, expert]
            if votes[t, slot] == 0:
                first[t, slot] = now
            votes[t, slot] += 1
            if slot != winner[t] and _wins(votes, first, t, slot, winner[t], 0):
                winner[t] = slot
        best, answer = winner[t], right[t]
        if best != answer:
            wrong += times[t]
            if answer >= 0 and _wins(votes, first, t, answer, best, 1):
                for j in range(p):
                    if slots[t, j] == answer:
                        gained[j] += times[t]
            continue
        for slot in range(n_slots):
            if slot != best and _wins(votes, first, t, slot, best, 1):
                for j in range(p):
                    if slots[t, j] == slot:
                        lost[j] += times[t]
    return wrong


@kernel
def left_out_precisions(
    offsets: Any, codes: Any, gold: Any, n_right: Any, n_said: Any, prior: float, trust: Any
) -> None:
    """Precision of expert j for what it says at t, counted on all other samples.

    Parameters
    ----------
    offsets : int64 (S + 1,)
    codes : int32 (N, p)
    gold : int32 (N,)
    n_right, n_said : int64 (p, L)
        How often each expert says each label, and is right, in all samples.
    prior : float
        As many answers of the expert's mean precision are added.
    trust : float64 (N, p)
        Is filled; 0 where an expert sleeps.
    """
    p, n_labels = n_said.shape
    all_right, all_said = n_right.sum(axis=1), n_said.sum(axis=1)
    own_right = np.zeros(n_labels, np.int64)
    own_said = np.zeros(n_labels, np.int64)
    for s in range(len(offsets) - 1):
        for j in range(p):
            right = said = 0
            for t in range(offsets[s], offsets[s + 1]):
                code = codes[t, j]
                if code >= 0:
                    said += 1
                    own_said[code] += 1
                    if code == gold[t]:
                        right += 1
                        own_right[code] += 1
            mean = (all_right[j] - right + 1.0) / (all_said[j] - said + 2.0)
            for t in range(offsets[s], offsets[s + 1]):
                code = codes[t, j]
                trust[t, j] = 0.0
                if code >= 0:
                    others = n_right[j, code] - own_right[code] + prior * mean
                    trust[t, j] = others / (n_said[j, code] - own_said[code] + prior)
            for t in range(offsets[s], offsets[s + 1]):
                if codes[t, j] >= 0:
                    own_right[codes[t, j]] = 0
                    own_said[codes[t, j]] = 0


@kernel
def rover_votes(
    codes: Any, trust: Any, n_labels: int, alphas: Any, by_max: bool, near: float, answers: Any
) -> None:
    """ROVER's vote at each position for each weight of the frequency.

    Parameters
    ----------
    codes : int32 (N, p)
    trust : float64 (N, p)
        How far an expert is to be believed there.
    n_labels : int
    alphas : float64 (A,)
    by_max : bool
        The largest confidence of the experts that say a label, or their mean.
    near : float
        Scores closer than this are equal: the label that the first expert says wins.
    answers : int32 (N, A)
        Is filled; -1 where all sleep.
    """
    p = codes.shape[1]
    count = np.zeros(n_labels, np.int64)
    confidence = np.zeros(n_labels)
    labels = np.empty(p, codes.dtype)
    for t in range(codes.shape[0]):
        k = 0
        for j in range(p):
            code = codes[t, j]
            if code >= 0:
                if count[code] == 0:
                    labels[k] = code
                    k += 1
                count[code] += 1
                if by_max:
                    confidence[code] = max(confidence[code], trust[t, j])
                else:
                    confidence[code] += trust[t, j]
        for a in range(len(alphas)):
            best, top = -1, -1.0
            for i in range(k):
                code = labels[i]
                mean = confidence[code] if by_max else confidence[code] / count[code]
                score = alphas[a] * count[code] / p + (1.0 - alphas[a]) * mean
                if score > top + near:
                    best, top = code, score
            answers[t, a] = best
        for i in range(k):
            count[labels[i]] = 0
            confidence[labels[i]] = 0.0
