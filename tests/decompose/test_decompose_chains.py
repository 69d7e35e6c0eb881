"""Structure regularisation: what pieces may look like, and that they are drawn at random."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chain_problems import chain_problem
from trellis import DataError
from trellis.corpus import Labels
from trellis.decompose import VISITS, ChainPieces, Pieces, WholeSamples, cut, partitioner, visits
from trellis.features import Encoded
from trellis.problems import LabelProblem


def offsets_of(lengths) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def sizes_by_sample(pieces, n_samples: int) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(n_samples)]
    for s, size in zip(pieces.sample, np.diff(pieces.offsets), strict=True):
        found[s].append(int(size))
    return found


LENGTHS = st.lists(st.integers(0, 30), max_size=6)
SIZES = st.one_of(st.floats(1, 12), st.integers(1, 12))


@given(LENGTHS, SIZES, st.integers(0, 2**32))
def test_pieces_cover_every_position_once_and_in_order(lengths, size, seed):
    offsets = offsets_of(lengths)
    pieces = ChainPieces(size).draw(offsets, np.random.default_rng(seed))
    assert pieces.nodes is None and pieces.edges is None
    assert len(pieces) == len(pieces.sample) == len(pieces.offsets) - 1
    assert pieces.offsets[0] == 0 and pieces.offsets[-1] == offsets[-1]
    assert (np.diff(pieces.offsets) > 0).all()
    for (a, b), s in zip(itertools.pairwise(pieces.offsets), pieces.sample, strict=True):
        assert offsets[s] <= a < b <= offsets[s + 1]  # never across samples


@given(LENGTHS, SIZES, st.integers(0, 2**32))
def test_sizes_are_floor_or_ceil_with_one_remainder_at_an_end(lengths, size, seed):
    pieces = ChainPieces(size).draw(offsets_of(lengths), np.random.default_rng(seed))
    full = {math.floor(size)} | ({math.floor(size) + 1} if size != math.floor(size) else set())
    for n, sizes in zip(lengths, sizes_by_sample(pieces, len(lengths)), strict=True):
        assert sum(sizes) == n
        odd = [i for i, k in enumerate(sizes) if k not in full]
        assert len(odd) <= 1
        assert all(sizes[i] < max(full) and i in (0, len(sizes) - 1) for i in odd)


def test_the_remainder_is_at_either_end_equally_often():
    rng = np.random.default_rng(3)
    pieces = ChainPieces(3).draw(offsets_of([10] * 4000), rng)
    layouts = [tuple(sizes) for sizes in sizes_by_sample(pieces, 4000)]
    assert set(layouts) == {(3, 3, 3, 1), (1, 3, 3, 3)}
    # 4000 fair coins: six standard deviations are 190
    assert abs(layouts.count((1, 3, 3, 3)) - 2000) < 190


@pytest.mark.parametrize("size", [1.5, 2.25, 3.9, 5.5])
def test_full_blocks_have_the_mean_size(size):
    rng = np.random.default_rng(5)
    pieces = ChainPieces(size).draw(offsets_of([1000] * 50), rng)
    full = [k for sizes in sizes_by_sample(pieces, 50) for k in sizes[1:-1]]
    error = 6 * 0.5 / math.sqrt(len(full))
    assert abs(np.mean(full) - size) < error


@pytest.mark.parametrize("size", [2, 2.0, np.float32(2), np.int64(2)])
def test_an_integer_size_is_met_exactly(size):
    pieces = ChainPieces(size).draw(offsets_of([6, 2]), np.random.default_rng(0))
    assert pieces.offsets.tolist() == [0, 2, 4, 6, 8]
    assert pieces.sample.tolist() == [0, 0, 0, 1]


def test_size_one_leaves_single_positions():
    pieces = ChainPieces(1).draw(offsets_of([3, 0, 2]), np.random.default_rng(0))
    assert pieces.offsets.tolist() == [0, 1, 2, 3, 4, 5]
    assert pieces.sample.tolist() == [0, 0, 0, 2, 2]


@pytest.mark.parametrize("size", [9.0, 8.5, 1e6, 2.0**63, 1e300])
def test_a_size_beyond_the_samples_leaves_them_whole(size):
    pieces = ChainPieces(size).draw(offsets_of([8, 3]), np.random.default_rng(0))
    assert pieces.offsets.tolist() == [0, 8, 11]


def test_each_draw_is_fresh_and_a_seed_repeats_it():
    offsets = offsets_of([40] * 5)
    rng = np.random.default_rng(1)
    first, second = (ChainPieces(2.5).draw(offsets, rng).offsets.tolist() for _ in range(2))
    assert first != second
    again = np.random.default_rng(1)
    assert first == ChainPieces(2.5).draw(offsets, again).offsets.tolist()
    assert second == ChainPieces(2.5).draw(offsets, again).offsets.tolist()


@pytest.mark.parametrize(
    "size", [0, 0.99, -1, math.nan, math.inf, -math.inf, "2", None, [2.0], 1 + 0j]
)
def test_impossible_sizes_are_refused(size):
    with pytest.raises(DataError, match="piece_size must be a number of at least 1, got"):
        ChainPieces(size)


@given(LENGTHS, SIZES, st.integers(0, 4), st.integers(0, 2**32))
def test_pieces_with_overlap_go_on_into_the_next_of_their_sample(lengths, size, overlap, seed):
    offsets = offsets_of(lengths)
    plain = ChainPieces(size).draw(offsets, np.random.default_rng(seed))
    pieces = ChainPieces(size, overlap).draw(offsets, np.random.default_rng(seed))
    assert pieces.overlap == overlap
    assert pieces.offsets.tolist() == plain.offsets.tolist()  # the same draw, which covers all once
    order = np.random.default_rng(seed).permutation(len(pieces))
    visited = chains(offsets).visits(pieces, order)
    for k, start, end in zip(order, visited.starts, visited.ends, strict=True):
        last = offsets[pieces.sample[k] + 1]
        assert start == pieces.offsets[k]
        assert end == min(pieces.offsets[k + 1] + overlap, last)  # never out of the sample
    times = np.zeros(offsets[-1], int)
    for start, end in zip(visited.starts, visited.ends, strict=True):
        times[start:end] += 1
    assert (times >= 1).all() and (times <= 1 + overlap).all()
    # With an overlap every edge of a sample is in some piece, so nothing is cut any more.
    if overlap:
        kept = {
            t for a, b in zip(visited.starts, visited.ends, strict=True) for t in range(a + 1, b)
        }
        inside = {t for a, b in itertools.pairwise(offsets) for t in range(a + 1, b)}
        assert kept == inside


def chains(offsets: np.ndarray) -> LabelProblem:
    """Data without features."""
    n = int(offsets[-1])
    encoded = Encoded(
        offsets, np.zeros(n + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32)
    )
    return chain_problem(encoded, Labels.from_lists([["A"] * n], "A"), np.ones(len(offsets) - 1))


@pytest.mark.parametrize("overlap", [-1, 0.5, 1.0, "1", None])
def test_impossible_overlaps_are_refused(overlap):
    message = "overlap must be an integer of at least 0, got"
    with pytest.raises(DataError, match=message):
        ChainPieces(2.5, overlap)
    with pytest.raises(DataError, match=message):
        partitioner(None, overlap)
    with pytest.raises(DataError, match=message):
        partitioner(2.5, overlap)


def test_whole_samples_are_one_piece_each_and_empty_ones_none():
    pieces = WholeSamples().draw(offsets_of([2, 0, 3]), np.random.default_rng(0))
    assert pieces.offsets.tolist() == [0, 2, 5]
    assert pieces.sample.tolist() == [0, 2]


def test_partitioner_chooses_by_piece_size():
    assert partitioner(None) == WholeSamples()
    assert partitioner(2.5) == ChainPieces(2.5)
    assert partitioner(2.5, 1) == ChainPieces(2.5, overlap=1) != ChainPieces(2.5)
    assert partitioner(None, 1) == WholeSamples()


# ------------------------------------------------------------------------- general structures


@st.composite
def graphs(draw):
    lengths = draw(st.lists(st.integers(0, 5), min_size=1, max_size=4))
    n = sum(lengths)
    node = st.integers(0, max(0, n - 1))
    edges = draw(st.lists(st.tuples(node, node), max_size=12)) if n else []
    piece = draw(st.lists(st.integers(-2, 3), min_size=n, max_size=n))
    return offsets_of(lengths), np.array(edges, np.int64).reshape(-1, 2), np.array(piece, np.int64)


@given(graphs())
def test_cut_agrees_with_brute_force(graph):
    offsets, edges, piece = graph
    owner = [s for s, (a, b) in enumerate(itertools.pairwise(offsets)) for _ in range(a, b)]
    key = list(zip(owner, piece.tolist(), strict=True))
    pieces = cut(offsets, edges, piece)
    members = [
        tuple(pieces.nodes[a:b].tolist()) for a, b in itertools.pairwise(pieces.offsets.tolist())
    ]
    expected = [tuple(t for t in range(len(key)) if key[t] == k) for k in sorted(set(key))]
    assert members == expected
    assert pieces.sample.tolist() == [owner[m[0]] for m in expected]
    assert pieces.edges.tolist() == [[a, b] for a, b in edges.tolist() if key[a] == key[b]]
    assert pieces.offsets.dtype == pieces.nodes.dtype == pieces.edges.dtype == np.int64


@given(LENGTHS, SIZES, st.integers(0, 2**32))
def test_cutting_a_chain_by_its_edges_is_cutting_it_into_blocks(lengths, size, seed):
    offsets = offsets_of(lengths)
    blocks = ChainPieces(size).draw(offsets, np.random.default_rng(seed))
    chain = [[t, t + 1] for a, b in itertools.pairwise(offsets) for t in range(a, b - 1)]
    edges = np.array(chain, np.int64).reshape(-1, 2)
    piece = np.repeat(np.arange(len(blocks)), np.diff(blocks.offsets))
    pieces = cut(offsets, edges, piece)
    implied = [
        [t, t + 1] for a, b in itertools.pairwise(blocks.offsets.tolist()) for t in range(a, b - 1)
    ]
    assert pieces.edges.tolist() == implied
    assert pieces.offsets.tolist() == blocks.offsets.tolist()
    assert pieces.sample.tolist() == blocks.sample.tolist()
    assert pieces.nodes.tolist() == list(range(offsets[-1]))


# ------------------------------------------------------------------------- order of visiting


def some_pieces(n_samples: int, length: int = 6) -> Pieces:
    offsets = np.arange(n_samples + 1) * length
    return ChainPieces(2).draw(offsets, np.random.default_rng(0))


@pytest.mark.parametrize("visit", ["pooled", "permutation"])
def test_visits_without_replacement_are_a_permutation(visit):
    rng = np.random.default_rng(0)
    pieces = some_pieces(20)
    first, second = (visits(pieces, rng, visit).tolist() for _ in range(2))
    assert sorted(first) == sorted(second) == list(range(len(pieces)))
    assert first != second


def test_visits_with_replacement_are_uniform_draws():
    rng = np.random.default_rng(0)
    pieces = some_pieces(5, 4)  # ten pieces
    drawn = np.concatenate([visits(pieces, rng, "replacement") for _ in range(1000)])
    counts = np.bincount(drawn, minlength=10)
    assert len(counts) == 10
    assert (abs(counts - 1000) < 200).all()  # six standard deviations
    assert any(len(set(drawn[i : i + 10])) < 10 for i in range(0, 10000, 10))


def test_pools_mix_the_pieces_of_nearby_samples_only(monkeypatch):
    monkeypatch.setattr("trellis.decompose.pieces._POOL", 60)  # ten samples of six positions
    pieces = some_pieces(100)
    order = visits(pieces, np.random.default_rng(1), "pooled")
    pools = pieces.sample[order].reshape(10, -1)
    seen = [set(pool.tolist()) for pool in pools]
    assert all(len(samples) == 10 for samples in seen)  # every pool holds ten whole samples
    assert set().union(*seen) == set(range(100))
    assert any(max(samples) - min(samples) > 50 for samples in seen)  # samples in random order
    # Within a pool the pieces of one sample are spread, not in a row.
    apart = [np.ptp(np.flatnonzero(pool == s)) for pool in pools for s in set(pool.tolist())]
    assert np.mean(apart) > 8


def test_every_place_in_a_pool_is_equally_likely():
    pieces = some_pieces(2, 4)
    rng = np.random.default_rng(2)
    orders = np.array([visits(pieces, rng, "pooled") for _ in range(4000)])
    for place in range(4):
        counts = np.bincount(orders[:, place], minlength=4)
        assert (abs(counts - 1000) < 170).all()  # six standard deviations


@pytest.mark.parametrize("visit", VISITS)
def test_visits_repeat_with_the_seed_and_may_be_none(visit):
    pieces = some_pieces(7)
    a, b = (visits(pieces, np.random.default_rng(7), visit) for _ in range(2))
    assert a.tolist() == b.tolist()
    nothing = Pieces(np.zeros(1, np.int64), np.zeros(0, np.int64))
    assert visits(nothing, np.random.default_rng(7), visit).size == 0
