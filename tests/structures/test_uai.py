"""Files of the UAI competitions: there and back, against products of their tables, and hostile."""

from __future__ import annotations

import io
import itertools
import math

import numpy as np
import pytest
from enumerate_graph import feasible, labellings, problems
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from trellis.errors import DataError, InfeasibleError
from trellis.structures import (
    GraphPotentials,
    best,
    labelling_score,
    marginals,
    read_uai,
    write_mpe,
    write_uai,
)


@given(problems(most_nodes=4))
@settings(max_examples=30)
def test_there_and_back(tmp_path_factory, p):
    assume(p.n_samples == 1 and np.abs(p.pair[np.isfinite(p.pair)]).max(initial=0) < 700)
    assume(np.abs(p.node[np.isfinite(p.node)]).max(initial=0) < 700)
    path = tmp_path_factory.mktemp("uai") / "graph.uai"
    write_uai(path, p)
    q = read_uai(path)
    assert len(q.node) == len(p.node) and q.edges.tolist() == p.edges.tolist()
    assert labellings(q) == pytest.approx(labellings(p), rel=1e-12, abs=1e-12)
    if len(p.node) and feasible(p):
        y = np.array(next(iter(labellings(p))))
        assert labelling_score(q, y) == pytest.approx(labelling_score(p, y), rel=1e-12)
    again = path.with_suffix(".again")
    write_uai(again, q)
    assert labellings(read_uai(again)) == pytest.approx(labellings(p), rel=1e-12, abs=1e-12)


@st.composite
def networks(draw):
    """Variables of several sizes, and factors of none to four of them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    factors = []
    for _ in range(draw(st.integers(0, 5))):
        k = int(rng.integers(0, len(sizes) + 1))
        scope = rng.choice(len(sizes), k, replace=False).tolist()
        table = rng.random([sizes[v] for v in scope])
        factors.append((scope, np.where(rng.random(table.shape) < 0.1, 0.0, table)))
    return sizes, factors


def text_of(sizes, factors) -> str:
    """The file, on lines of any length."""
    words = [len(sizes), *sizes, len(factors)]
    for scope, _ in factors:
        words += [len(scope), *scope]
    for _, table in factors:
        words += [table.size, *map(repr, table.ravel().tolist())]
    return "MARKOV\n" + "\n".join(map(str, words))


@given(networks())
@settings(max_examples=40)
def test_products_of_tables(network):
    sizes, factors = network
    p = read_uai(io.StringIO(text_of(sizes, factors)))
    weights = {
        y: math.prod(float(t[tuple(y[v] for v in scope)]) for scope, t in factors)
        for y in itertools.product(*map(range, sizes))
    }
    if not any(weights.values()):
        with pytest.raises(InfeasibleError):
            marginals(p, method="elimination")
        return
    sure = marginals(p, method="elimination")
    assert np.exp(sure.log_z[0]) == pytest.approx(sum(weights.values()), rel=1e-9)
    y = best(p, exact=True).labels[: len(sizes)]
    assert weights[tuple(y.tolist())] == pytest.approx(max(weights.values()), rel=1e-9)
    chances = np.zeros((len(sizes), max(sizes)))
    for y, weight in weights.items():
        chances[np.arange(len(y)), list(y)] += weight / sum(weights.values())
    np.testing.assert_allclose(sure.node[: len(sizes), : max(sizes)], chances, atol=1e-9)


def test_edges_alike_share_a_table():
    words = "MARKOV 3 2 2 2 3 2 0 1 2 2 1 2 0 2 4 1 2 3 4 4 1 3 2 4 4 1 2 3 4"
    p = read_uai(io.StringIO(words))
    assert p.edges.tolist() == [[0, 1], [2, 1], [0, 2]] and len(p.pair) == 2
    assert p.types.tolist() == [0, 1, 0]


@pytest.mark.parametrize("text", ["2 0 1 2 0", "1 2 0 1 2 0", "1\n2\n0 1 2 0\n"])
def test_evidence(text):
    p = read_uai(io.StringIO("MARKOV 3 2 3 2 0"), evidence=io.StringIO(text))
    assert np.isfinite(p.node).tolist() == [
        [False, True, False], [True, True, True], [True, False, False],
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["0", "1 0"])
def test_no_evidence(text):
    p = read_uai(io.StringIO("MARKOV 2 2 2 0"), evidence=io.StringIO(text))
    assert np.isfinite(p.node).all()


def test_solutions(tmp_path):
    path = tmp_path / "graph.uai.MPE"
    write_mpe(path, np.array([1, 0, 2]))
    assert path.read_text() == "MPE\n3 1 0 2\n"
    with pytest.raises(DataError, match="there are 3 labels, fewer than n_variables=4"):
        write_mpe(path, np.array([1, 0, 2]), n_variables=4)
    with pytest.raises(DataError, match="labels"):
        write_mpe(path, np.array([-1]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file ends too early: the kind of graph is missing"),
        ("\nGRAPH 1", "line 2: the file must begin with MARKOV or BAYES, got 'GRAPH'"),
        ("MARKOV\n-1", "line 2: the number of variables must be a whole number"),
        ("MARKOV\n9", "line 2: the number of variables must be .* from 0 to 0, got '9'"),
        ("MARKOV 2 2", "line 1: the number of variables must be"),
        ("MARKOV 1\n0\n0", "line 2: a number of labels must be a whole number from 1"),
        ("MARKOV 1\n2147483647\n0", "line 2: 1 variables of up to 2,147,483,647 labels take"),
        ("MARKOV 1 2 1\n1 1\n2 1 1", "line 2: a variable of factor 0 must be .* 0 to 0, got '1'"),
        ("MARKOV 2 2 2 1\n2 1 1\n4 1 1 1 1", "line 2: factor 0 has a variable twice"),
        ("MARKOV 1 2 1 1 0\n3 1 1 1", "line 2: factor 0 has 3 entries, but the labels .* 2 comb"),
        ("MARKOV 1 2 1 1 0\n2 1", "the file ends too early: factor 0 has 2 entries"),
        ("MARKOV 1 2 1 1 0\n2 1\n-1", "line 3: entries of factor 0 must be finite .* got '-1'"),
        ("MARKOV 1 2 1 1 0\n2 1\nnan", "line 3: entries of factor 0 must be finite .* got 'nan'"),
        ("MARKOV 1 2 1 1 0\n2\nx 1", "line 3: entries of factor 0 must be finite .* got 'x'"),
        ("MARKOV 1 2 1 1 0\n2 1 1\n7", "line 3: there is more after the last factor"),
        ("MARKOV 0 1 0 1 2.0", "line 1: a factor of no variable needs a variable beside it"),
        ("MARKOV 1 \u0662 0", "line 1: a number of labels must be a whole number"),
    ],
)  # fmt: skip
def test_hostile_files(text, message):
    with pytest.raises(DataError, match=message):
        read_uai(io.StringIO(text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the number of observed variables is missing"),
        ("1\n2 0", "line 2: an observed variable must be a whole number from 0 to 1, got '2'"),
        ("1\n1 2", "line 2: the label of variable 1 must be a whole number from 0 to 1, got '2'"),
        ("2 0 0", "the file ends too early: an observed variable is missing"),
        ("1 1 0 0\n5", "line 2: there is more after the last observed variable"),
    ],
)
def test_hostile_evidence(text, message):
    with pytest.raises(DataError, match=message):
        read_uai(io.StringIO("MARKOV 2 3 2 0"), evidence=io.StringIO(text))


def test_what_cannot_be_read_or_written(tmp_path):
    large = "MARKOV 3 90 90 90 1 3 0 1 2 729000 " + "1 " * 729000
    with pytest.raises(DataError, match="the tables take more than the 1,000 numbers of budget="):
        read_uai(io.StringIO(large), budget=1000)
    with pytest.raises(DataError, match="need 3 tables of 729,000 x 729,000"):
        read_uai(io.StringIO(large))
    path = tmp_path / "graph.uai"
    two = GraphPotentials(np.zeros((2, 2)), np.eye(2), np.zeros((0, 2), int), [0, 1, 2])
    with pytest.raises(DataError, match=r"a file is for one sample, not 2; write p.alone\(s\)"):
        write_uai(path, two)
    with pytest.raises(
        DataError, match="scores must be from -700 to 700, since their exponentials"
    ):
        write_uai(path, GraphPotentials([[0.0, -800.0]], np.eye(2), np.zeros((0, 2), int), [0, 1]))
    assert not path.exists()
