"""The study of cheap data on tiny data: what it writes, and what it says about it."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from studies import render, reproduce
from studies.cheap_data import EXPERIMENTS, active, data, methods, partial, recycling, transfer
from studies.cheap_data.tables import compared, difference
from studies.cheap_data.transfer import DOMAINS
from trellis import DataError
from trellis.datasets import simulate_cells
from trellis.tracking import NearestNeighbour, TrackingModel, annotated_events, event_set

pytestmark = pytest.mark.extras  # whole studies, if tiny

TASKS = ["methods", "partial", "recycling", "active", "transfer"]


@pytest.fixture
def tiny(monkeypatch):
    """Make the quick protocol even quicker."""
    monkeypatch.setitem(data.SIZES, "quick", data.Simulation(15, 4))
    monkeypatch.setitem(methods._TREES, "quick", 3)
    monkeypatch.setitem(partial._SHARES, "quick", (25,))
    monkeypatch.setitem(recycling._RUNS, "quick", 1)
    monkeypatch.setitem(partial._SEEDS, "quick", 1)
    small = active.Pools(("a",), 7, 1, (17, 30, 40, 50), (4, 7), 6.0)
    monkeypatch.setitem(active.POOLS, "quick", small)
    domains = replace(DOMAINS["quick"], n_patches=6, shares=(50,), n_draws=1, objects=4.0)
    monkeypatch.setitem(DOMAINS, "quick", domains)
    for module in (methods, partial):
        monkeypatch.setattr(module, "sources", lambda protocol: ("a",))
    for cached in _caches():
        cached.cache_clear()
    yield
    for cached in _caches():
        cached.cache_clear()


def _caches():
    return (data.cells, active._every, transfer._patches, transfer._reach, transfer._problems)


def test_a_tiny_run(tiny, tmp_path):
    out = tmp_path / "out"
    records = reproduce("cheap-data", out, protocol="quick", tasks=TASKS, n_jobs=1)
    report = (out / "report.md").read_text("utf-8")
    for name in TASKS:
        assert f"]({name}.png)" in report
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")

    # Table 1.1: as many losses as test pairs.
    nearest = records["methods/quick/a/nearest"]
    assert len(nearest["losses"]) == 3 and nearest["divisions"] == 0
    assert records["methods/quick/a/l2"]["factor"] == 1.0
    assert "structured learning, L2 before random forests, local: " in report

    # All variants of CCCP start at the same point and never rise.
    run = records["recycling/quick/a/0"]
    for variant in run["variants"].values():
        values = [run["start"], *(value for _, _, value in variant["path"])]
        assert all(b <= a + 1e-9 for a, b in pairwise(values))
        assert variant["bounds"] == variant["path"][-1][1]

    # 50 % of seven patches are four answers, and an average uncertainty after each.
    found = records["active/quick/a/best-vs-second/0"]
    assert len(found["history"]) == len(found["eta"]) == 4 and found["n"] == 7
    assert set(found["combined"]) == {"17", "30", "40"}
    assert f"| all of the pool | {100 * records['active-all/quick/a/0']['loss']:.2f} " in report

    once = records["transfer-all/quick/a/b"]
    assert once["a"] == once["b"] == 6
    chosen = records["transfer/quick/a/b/50/0"]["transfer"]
    assert chosen["from"] in ("transfer", "all-source") and float(chosen["rho"]) >= 0
    assert "Within noise of all target: partial target" in report

    written = (out / "results.json").read_text("utf-8")
    assert set(json.loads(written)) == set(records)
    (out / "report.md").unlink()
    render("cheap-data", out, figures=False)
    assert (out / "report.md").read_text("utf-8") == report


def test_experiments_know_their_keys():
    for experiment in EXPERIMENTS:
        for protocol in ("quick", "default", "full"):
            keys = [call.key for call in experiment.calls(protocol)]
            assert len(set(keys)) == len(keys) > 0
            assert all(key.startswith(experiment.name) and f"/{protocol}/" in key for key in keys)


def test_real_data_that_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("TRELLIS_DATA", str(tmp_path))
    data.cells.cache_clear()
    with pytest.raises(DataError, match="celltracking"):
        data.cells("epidermis", "default")


def test_annotations_of_a_part():
    pairs = simulate_cells(25, 4, seed=3)
    few = data.annotated_in_part(pairs, 0.3, np.random.default_rng(0))
    for whole, part in zip(pairs, few, strict=True):
        events, known = (event_set(*annotated_events([pair])) for pair in (whole, part))
        assert known <= events
        assert len(known) == round(0.3 * len(events))
        assert data.is_annotated(part)
    assert not data.is_annotated(replace(pairs[0], annotation=None))
    problem = TrackingModel().learning_problems({"": few})[""]
    assert problem.annotated.all() and not problem.complete.any()


def test_losses_by_frame_pair_are_those_of_the_model():
    pairs = simulate_cells(25, 6, seed=3)
    model = TrackingModel().fit(pairs[:2])
    found = data.measured(model.predict(pairs[2:]), pairs[2:])
    assert np.mean(found["losses"]) == pytest.approx(model.task_loss(pairs[2:]))
    assert found["links"] == pytest.approx(model.score(pairs[2:]))
    nearest = data.measured(NearestNeighbour().fit(pairs[:2]).predict(pairs[2:]), pairs[2:])
    assert nearest["divisions"] == 0.0


def test_draws_of_patches():
    known = transfer._known(10, 40, 1)
    assert len(set(known)) == 4 and set(known) <= set(range(10))
    assert set(known) != set(transfer._known(10, 40, 2))
    assert len(transfer._known(10, 1, 1)) == 1


def test_problems_are_made_once_and_a_draw_leaves_them_as_they_are(tiny):
    once = transfer._problems("a", "b", "quick")
    model = transfer._encoded("a", "b", [1, 3], "quick")
    problems = model.learning_problems({"source": [], "target": []})
    assert problems["source"] is once["source"]
    assert np.flatnonzero(problems["target"].annotated).tolist() == [1, 3]
    assert not once["target"].annotated.any()
    patches = transfer._patches("b", "quick")
    told = [p if i in (1, 3) else replace(p, annotation=None) for i, p in enumerate(patches)]
    data = {"source": transfer._patches("a", "quick"), "target": told}
    anew = transfer._model(TrackingModel, "a", "b", "quick").learning_problems(data)
    w = np.random.default_rng(0).normal(size=anew["target"].n_weights)
    for space in ("all", "compatible"):
        ours, theirs = (p["target"].maxima(w, space, loss=True) for p in (problems, anew))
        np.testing.assert_allclose(ours.values, theirs.values)


def test_factors_of_least_loss():
    trials = [
        {"partial-target": [0.5], "union": [0.2], "transfer": [0.4]},
        {"partial-target": [0.4], "union": [0.3], "transfer": [0.1]},
    ]
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(DOMAINS, "quick", replace(DOMAINS["quick"], l2s=(1.0, 2.0), rhos=(3.0,)))
        found = transfer._factors(trials, "quick")
    assert found == {"partial-target": (2.0, 0.0), "union": (1.0, np.inf), "transfer": (2.0, 3.0)}


def test_comparisons():
    # Errors over pairs (1) and over runs (3) add up as squares.
    runs = [[0.0, 2.0], [6.0, 8.0]]
    assert difference(runs, [0.0, 0.0]) == (4.0, pytest.approx(np.sqrt(10)))
    assert compared("A", [0.5, 0.6], "B", [0.2, 0.3]).startswith("A before B: NO (loss higher by")


def test_times_to_the_same_objective():
    variants = {
        "both": {"path": [(1.0, 5, 3.0), (2.0, 9, 1.0)], "objective": 1.0},
        "plain": {"path": [(5.0, 50, 2.0)], "objective": 2.0},
    }
    goal = recycling._goal(variants)
    assert recycling._reached(variants, "both", goal) == (2.0, 9)
    assert recycling._reached(variants, "plain", goal) == (5.0, 50)
