"""Path experts one by one: what the fast algorithms must agree with."""

from __future__ import annotations

import numpy as np

from trellis.experts import PathAutomaton


def path_probabilities(net: PathAutomaton, log_weights):
    """All paths (P, l) and their probabilities (P,)."""
    paths = net.paths()
    totals = log_weights[paths].sum(axis=1)
    shares = np.exp(totals - totals.max())
    return paths, shares / shares.sum()


def exponential_weights(net: PathAutomaton, edge_losses, eta, even_paths=False):
    """Explicit exponential weights over all paths; edge losses (T, E).

    Return the probabilities of the paths in each round (T, P), the expected losses (T,), the losses
    of all paths (T, P) and the paths.
    """
    paths = net.paths()
    degree = np.bincount(net.origin, minlength=net.n_states)
    weights = np.prod(1.0 / degree[net.origin[paths]], axis=1)
    if even_paths:
        weights = np.ones(len(paths))
    shares, expected = [], []
    path_losses = edge_losses[:, paths].sum(axis=2)
    for losses in path_losses:
        weights = weights / weights.sum()
        shares.append(weights)
        expected.append(weights @ losses)
        weights = weights * np.exp(-eta * losses)
    return np.array(shares), np.array(expected), path_losses, paths


def random_automaton(rng, n_experts, length):
    """A random layered automaton without dead ends."""
    edges, layer, n_states = [], [0], 1
    for _ in range(length):
        width = int(rng.integers(1, 4))
        ahead = list(range(n_states, n_states + width))
        n_states += width
        reached = set()
        for state in layer:
            for _ in range(int(rng.integers(1, 4))):
                to = int(rng.choice(ahead))
                reached.add(to)
                edges.append((state, to, int(rng.integers(n_experts))))
        for to in set(ahead) - reached:
            edges.append((int(rng.choice(layer)), to, int(rng.integers(n_experts))))
        layer = ahead
    edges = [edges[i] for i in rng.permutation(len(edges))]
    origin, destination, expert = np.array(edges).T
    return PathAutomaton(origin, destination, expert)
