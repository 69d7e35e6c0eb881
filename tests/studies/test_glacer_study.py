"""The study of GLACER on tiny data: what it computes, and what it says of the numbers."""

from __future__ import annotations

import json

import numpy as np
import pytest

from studies.glacer import EXPERIMENTS, STUDY, cases
from studies.glacer.cases import FORMER, SIZES, Case, Size, glacer_name
from studies.glacer.defaults import GIVEN, LASSOS, regions, run_given, run_lassos
from studies.glacer.determinants import BAND, run_determinants, wall, within_band, written_out
from studies.glacer.models import (
    Smoothed,
    glacer_base,
    learners,
    plain_models,
    published_gcrf,
    published_glacer,
)
from studies.glacer.published import FRACTIONS, IMPROVEMENTS, TABLE_1, TABLE_3
from studies.glacer.sections import (
    cell,
    change,
    decimals,
    distance_from_print,
    improvement_table,
    ordering_sentences,
    side_by_side,
    smoothing_table,
)
from trellis.regression import Evaluation
from trellis.regression.graph_matrix import laplacian, normalise
from trellis.regression.likelihood import dense_profile, search

pytestmark = pytest.mark.extras  # whole studies, if tiny

TINY = Size(60, 2, 2, 1, 60, 0, (2,), 0, 2, 5)


def few(case, repetition):
    """Linear regression instead of all baselines."""
    train, test = case.pair(repetition)
    plain = list(plain_models(False))
    smoothed = [f"S-{name}{how}" for name in learners() for how in ("", ", error")]
    names = [*plain, *smoothed]
    found = float(np.mean((plain_models(False)["MLR"](train, test, 0) - test.y) ** 2))
    return {
        "kind": "baselines",
        "mse": dict.fromkeys(names, found),
        "seconds": dict.fromkeys(names, 0.0),
        "gamma": dict.fromkeys(smoothed, 2.0),
    }


def test_synthetic_part_from_end_to_end(tmp_path, monkeypatch):
    monkeypatch.setitem(SIZES, "quick", TINY)
    monkeypatch.setattr(cases, "run_baselines", few)
    tasks = ["table-1", "table-2", "smoothing", "generators", "determinants", "parameters",
             "refits", "calibration"]  # fmt: skip
    records = STUDY.run(tmp_path, protocol="quick", tasks=tasks, n_jobs=1)
    assert (tmp_path / "table-1.png").stat().st_size > 10_000
    report = (tmp_path / "report.md").read_text("utf-8")
    for title in ("Table 1", "Table 2", "What the graph brings", "Generators",
                  "Likelihoods written out", "Parameters", "Refits", "Calibration"):  # fmt: skip
        assert f"## {title}" in report
    # What the real data would show is left out of the section on smoothing.
    assert "10 %: the graph lowers the mean error of 0 of 9" in report
    assert "Sacramento" not in report
    # Table 2 has the records of Table 1 for GLACER with dCorr.
    glacer = [k for k in records if records[k].get("kind") == "glacer"]
    ours = [k for k in glacer if k[:-1].endswith("GLACER max_swaps=0 trees=5 ")]
    assert len(ours) == 6
    assert len([k for k in glacer if "leaves=11 max_swaps=0 trees=10 " in k]) == 6
    assert len([k for k in glacer if "use_dcorr=False" in k]) == 6
    case = Case("synthetic", 60)
    mine = [records[f"{case.key} GLACER max_swaps=0 trees=5 {r}"]["mse"] for r in range(2)]
    assert cell(mine) in report
    timing = next(r for r in records.values() if r.get("kind") == "refits")
    assert timing["refits"][0] == 10
    assert all(r <= 90 for r in timing["refits"][1:2])
    assert all(r <= 34 for r in timing["refits"][2:])
    (tmp_path / "report.md").unlink()
    STUDY.render(tmp_path, figures=False)
    assert (tmp_path / "report.md").read_text("utf-8") == report
    assert json.loads((tmp_path / "results.json").read_text("utf-8")).keys() == records.keys()


def test_names_of_the_experiments():
    assert [e.name for e in EXPERIMENTS] == [
        "table-1", "table-2", "smoothing", "generators", "determinants", "table-3",
        "improvements", "parameters", "refits", "calibration", "variants", "given", "lassos",
    ]  # fmt: skip


def test_the_paper_s_protocol_is_the_full_one():
    full = SIZES["full"]
    assert (full.n, full.repetitions, full.splits, full.max_swaps) == (3000, 10, 10, None)
    assert full.components == (5, 10, 30)
    assert FRACTIONS == (0.1, 0.5, 1.0)


def test_cases():
    train, test = Case("synthetic", 50, 0.5).pair(1)
    assert (len(train.y), len(test.y)) == (25, 50)
    whole, again = Case("synthetic", 50).pair(1)
    assert (again.y == test.y).all()
    assert set(train.y) <= set(whole.y)
    other = Case("synthetic", 50, changes=(("degree", 1),))
    assert other.key == "synthetic n=50 fraction=1 degree=1"


def test_every_repetition_has_a_polynomial_of_its_own():
    """Powers of single variables alone: a linear regression on x and x² is the whole of it."""
    fits = []
    for repetition in range(2):
        train, _ = Case("synthetic", 400, changes=(("beta", 0.0),)).pair(repetition)
        columns = np.column_stack([train.X, train.X**2, np.ones(400)])
        found, (rest,), *_ = np.linalg.lstsq(columns, train.y)
        assert rest / 400 == pytest.approx(1.0, abs=0.2)  # the noise
        fits.append(found)
    assert np.abs(fits[0] - fits[1]).max() > 0.5
    shared = [Case("synthetic", 50, changes=tuple(FORMER.items())).pair(r)[0] for r in (0, 0)]
    assert (shared[0].y == shared[1].y).all()


def test_real_cases(real_data, monkeypatch):
    monkeypatch.setenv("TRELLIS_DATA", str(real_data("sacramento").parent))
    train, test = Case("sacramento").pair(0)
    assert (len(train.y), len(test.y)) == (785, 200)
    assert train.graph.shape == (785, 785)
    # Weights are e^(−d), as published: the nearest neighbours of a house are within a kilometre.
    distances = -np.log(train.graph.data)
    assert 0.05 < np.median(distances) < 2
    scaled, _ = Case("sacramento", changes=(("graph", "median"),)).pair(0)
    some = distances > 0.01
    assert np.ptp((-np.log(scaled.graph.data) / np.where(some, distances, 1))[some]) < 1e-6
    full, half = Case("medicare", changes=(("graph", "full"),)).pair(0)
    assert (len(full.y), len(half.y)) == (500, 500)
    assert full.graph.nnz > 10_000


def test_options_of_glacer():
    assert glacer_name({"max_swaps": None, "trees": 3}) == "GLACER trees=3"
    base = glacer_base({})
    assert (base.n_estimators, base.max_leaf_nodes, base.learning_rate) == (100, 2, 1.0)
    base = glacer_base({"trees": 3, "leaves": 11, "loss": "r2_sum"})
    assert (base.n_estimators, base.max_leaf_nodes) == (3, 11)
    assert type(glacer_base({"learner": "RF"})).__name__ == "RandomForestRegressor"
    model = published_glacer(base, 7, loss="r2_sum", max_swaps=None)
    told = model.get_params()
    assert (told["n_components"], told["subsample"], told["loss"]) == (10, 0.3, "r2_sum")
    assert (told["base"], told["random_state"]) == (base, 7)


# ------------------------------------------------------------------------------- Gaussian CRFs


def fitted():
    """y that are smooth beyond what the model can say, a graph and predictions."""
    train, _ = Case("synthetic", 200).pair(0)
    L = laplacian(normalise(train.graph))
    r = plain_models(False)["MLR"](train, train, 0)
    return train, L, r


def test_the_published_gaussian_crf_maximises_the_likelihood_of_in_sample_predictions():
    train, L, r = fitted()
    best = search(dense_profile(L, train.y, r))
    model = published_gcrf(learners()["MLR"]).fit(train.X, train.y, graph=train.graph)
    assert model.beta_ / model.alpha_ == pytest.approx(best.gamma, rel=1e-6)
    assert model.std_scale_ == 1.0


def test_a_gaussian_crf_learnt_by_error_smooths_less_and_predicts_better_here():
    train, test = Case("synthetic", 200).pair(0)
    both = [Smoothed(learners()["MLR"], how) for how in ("likelihood", "error")]
    errors = [np.mean((model(train, test, 0) - test.y) ** 2) for model in both]
    assert errors[1] < errors[0]
    assert both[1].gamma < both[0].gamma / 10


def test_other_readings_of_the_baselines():
    found = learners()
    assert list(found)[:6] == ["MLR", "NN", "SVM", "SUBBAG", "RF", "LSB"]
    assert found["SVM, γ = 1"].get_params()["regressor__svr__gamma"] == 1.0
    assert found["SVM"].get_params()["regressor__svr__gamma"] == "scale"
    table = plain_models(True)
    assert not any(name.startswith("S-") for name in table)
    assert {"Kriging", "LSB, 10 stumps", "LSB, 100 stumps"} < set(table)


# ------------------------------------------------------------------------------- determinants


def test_the_formula_as_it_stands():
    _, L, _ = fitted()
    Q = 0.7 * (np.eye(200) + 2.0 * L.toarray())
    assert written_out(Q) == pytest.approx(-np.linalg.slogdet(Q)[1], rel=1e-9)
    assert written_out(1e3 * Q) == -np.inf  # 1/|Q| is zero
    assert written_out(1e-3 * Q) == np.inf
    for scale in BAND:  # just inside on either side of the band it is finite
        for inside in (0.99, 1.01):
            of_size = np.exp(inside * scale / 200) * np.eye(200)
            assert np.isfinite(written_out(of_size)) == (inside < 1)


def test_the_wall():
    _, L, _ = fitted()
    gamma = wall(np.linalg.eigvalsh(L.toarray()))
    assert np.linalg.slogdet(np.eye(200) + gamma * L.toarray())[1] == pytest.approx(BAND[1])
    assert wall(np.array([0.0, 1.0])) == 1e15  # none


def test_the_best_likelihood_within_the_band():
    """Where the optimum is representable it is that; else no (α, γ) on a grid is better."""
    train, L, r = fitted()
    profile = dense_profile(L, train.y, r)
    best = search(profile)
    assert within_band(profile) == pytest.approx((best.alpha, best.gamma), rel=0.02)
    n, smooth = 200, train.y / 1e5  # as if measured in other units: α is 10^10 times as large
    profile = dense_profile(L, smooth, r / 1e5)
    alpha, gamma = within_band(profile)

    def cost(a, g):
        S, log_det = profile(np.array([g]))
        inside = BAND[0] <= n * np.log(a) + log_det[0] <= BAND[1] + 1e-9
        return a * S[0] - n / 2 * np.log(a) - log_det[0] / 2 if inside else np.inf

    assert search(profile).alpha > 1e3 * alpha
    mine = cost(alpha, gamma)
    for a in np.exp(np.linspace(-5, 5, 81)):
        assert mine <= min(cost(a, g) for g in np.exp(np.linspace(-10, 10, 81))) + 1e-6


def test_records_of_determinants():
    found = run_determinants(Case("synthetic", 80), 0)
    assert list(found["models"]) == ["MLR", "NN", "SVM", "SUBBAG", "RF", "LSB"]
    mlr = found["models"]["MLR"]
    assert float(mlr["written_out"]) == pytest.approx(-mlr["log_det"])
    assert mlr["mse"]["band"] == pytest.approx(mlr["mse"]["likelihood"], rel=0.01)
    json.dumps(found, allow_nan=False)


# ------------------------------------------------------------------------------- defaults


def test_regions_have_a_linear_model_each():
    train, test = regions(0, n=200)
    assert len(train.y) == len(test.y) == 200 and train.graph.shape == (200, 200)
    A = np.column_stack([train.X, np.ones(200)])
    rest = train.y - A @ np.linalg.lstsq(A, train.y)[0]
    nearest = ((train.coords[:, None] - train.coords) ** 2).sum(2).argsort(1)[:, :20]
    local = [
        np.mean((train.y[i] - A[i] @ np.linalg.lstsq(A[i], train.y[i])[0]) ** 2) for i in nearest
    ]
    assert np.median(local) < 0.4 < 0.5 * np.mean(rest**2)  # the noise has 0.25
    assert not (regions(1, n=200)[0].y == train.y).any()


def test_network_lassos_of_the_study():
    found = run_lassos(Case("synthetic", 60), 0)
    assert list(found["mse"]) == [f"{n}, {c}" for n in LASSOS for c in ("λ = 5", "λ chosen")]
    table = plain_models(False)
    train, test = Case("synthetic", 60).pair(0)
    for mine, name in (("convex, λ = 5", "(C)NL"), ("non-convex, λ chosen", "(NC)NL, tuned")):
        error = np.mean((table[name](train, test, 0) - test.y) ** 2)
        assert found["mse"][mine] == pytest.approx(error, rel=1e-12)
    assert found["objective"]["non-convex, search"] < found["objective"]["non-convex"]
    json.dumps(found, allow_nan=False)


def test_defaults_from_end_to_end(tmp_path, real_data, monkeypatch):
    real_data("medicare_readmissions")
    monkeypatch.setenv("TRELLIS_DATA", str(real_data("sacramento").parent))
    monkeypatch.setitem(SIZES, "quick", TINY)
    tasks = ["given", "lassos"]
    records = STUDY.run(tmp_path, protocol="quick", tasks=tasks, n_jobs=1)
    report = (tmp_path / "report.md").read_text("utf-8")
    record = records["given sacramento n=100 0"]
    assert list(record["mse"]) == list(GIVEN)
    again = run_given("sacramento", 100, 0)
    assert all(record[what] == again[what] for what in ("mse", "base", "coverage"))
    assert all(0.75 < share <= 1 for share in record["coverage"].values())
    bases = [records[f"given sacramento n=100 {split}"]["base"]["GCRF"] for split in range(2)]
    assert f"| GCRF | {np.mean(bases):.4f} | " in report
    ratios = [records[f"regions lassos {r}"]["objective"] for r in range(2)]
    mean = 100 * np.mean([o["non-convex, search"] / o["non-convex"] - 1 for o in ratios])
    assert f" | {mean:.0f} |" in report and mean < 0


def test_changes_in_words():
    assert change([1.1, 1.3], [1.0, 1.0]) == "+20.0 ± 63.1"
    assert change([0.5], [1.0]) == "-50.0"
    assert decimals([0.25, 0.25], 3) == "0.250 ± 0.000" and decimals([2.0], 1) == "2.0"


# ------------------------------------------------------------------------------- words


def made_up(**errors):
    mse = {n.replace("_", "-"): [v - 0.01, v, v + 0.02] for n, v in errors.items()}
    return Evaluation(mse, {})


def test_orderings_in_words():
    best = made_up(MLR=2.0, S_LSB=1.5, SUBBAG=1.2, GLACER=1.0, HGB=0.5)
    best.mse["GLACER"] = [0.999, 1.0, 1.002]
    said = " ".join(ordering_sentences("X", best))
    assert "GLACER's error is the lowest of the paper's models. It is lower than 3 of 3" in said
    assert "its interval is the tightest" in said
    assert "overlaps with no other" in said
    assert "and lower than all of them in 3 of 3 repetitions" in said
    assert "of its building blocks, it lies below SUBBAG by 16.9 %, below S-LSB by 33.5 %" in said
    assert "HGB (0.503) is lower than GLACER" in said
    worse = made_up(MLR=0.5, S_LSB=1.0, SUBBAG=1.2, GLACER=1.0)
    worse.mse["GLACER"] = [0.9, 1.0, 1.2]
    said = " ".join(ordering_sentences("X", worse))
    assert "NOT the lowest; lower are MLR (" in said
    assert "NOT the tightest (MLR, SUBBAG, S-LSB)" in said
    assert "overlaps with SUBBAG, S-LSB" in said
    assert "and lower than all of them in 0 of 3 repetitions" in said
    assert "it lies below SUBBAG by 14.1 %, ABOVE S-LSB by 3.0 %" in said
    worse.mse["GLACER, no swaps"] = [1.0, 1.2, 1.5]
    said = " ".join(ordering_sentences("X", worse))
    assert "X: GLACER with no swaps: 1.233 instead of 1.033 (p " in said


def test_what_the_graph_brings_in_a_table():
    result = made_up(MLR=2.0, S_MLR=1.0)
    result.mse["S-MLR, error"] = [0.5, 0.5, 0.5]
    gammas = {"S-MLR": [3.0, 5.0, 40.0], "S-MLR, error": [1.0, 1.5, 1.0]}
    text = smoothing_table(result, gammas, {"MLR": 2.0, "S-MLR": 1.5})
    row = text.splitlines()[2].strip("| ").split(" | ")
    assert row == ["MLR", "2.003", "1.003", "5", "0.500", "1", "0.50", "0.25", "0.75"]
    assert len(text.splitlines()) == 3


def test_distance_from_the_printed_table():
    printed = {n: [TABLE_1[n][1][0]] for n in ("MLR", "NN", "SVM", "SUBBAG", "RF", "LSB")}
    assert distance_from_print(Evaluation(printed, {}), 1) == 1.0
    twice = {n: [2 * v[0]] for n, v in printed.items()}
    assert distance_from_print(Evaluation(twice, {}), 1) == pytest.approx(2.0)


def test_percentages_of_the_paper():
    """Section 5.4: all but one follow from Table 3."""
    results = {
        d: Evaluation({n: [c[i][0]] for n, c in TABLE_3.items()}, {})
        for i, d in enumerate(("sacramento", "medicare"))
    }
    rows = [line.split(" | ") for line in improvement_table(results).splitlines()[2:]]
    assert len(rows) == len(IMPROVEMENTS)
    printed = {row[0].strip("| "): (row[1], row[2].split()[0]) for row in rows}
    for name in ("(C)NL", "(NC)NL", "smallest", "largest"):
        said, derived = printed[f"sacramento, {name}"]
        assert float(said) == pytest.approx(float(derived), abs=0.006)
    said, derived = printed["medicare, largest"]
    assert float(said) == pytest.approx(float(derived), abs=0.006)
    assert printed["medicare, smallest"] == ("49.32", "59.79")
    assert all(row[2].split()[0] == row[3].split()[0] for row in rows)  # «here» is the same


def test_table_beside_the_paper():
    text = side_by_side({"10 %": made_up(MLR=2.0, GLACER=1.0)}, TABLE_1)
    assert text.splitlines()[2].startswith("| MLR | 2.91 ± 0.25 | 2.003 ± ")
    assert text.splitlines()[-1].startswith("| GLACER | 0.72 ± 0.11 | 1.003 ± ")
    many = made_up(GLACER=1.0, HGB=3.0, S_MLR=2.5, MLR=2.0)
    many.mse.update({"S-MLR, error": [1.0], "GLACER, no swaps": many.mse["GLACER"]})
    rows = [line.split(" | ")[0] for line in side_by_side({"10 %": many}, TABLE_1).splitlines()]
    assert rows[2:] == ["| MLR", "| S-MLR", "| HGB", "| GLACER", "| GLACER, no swaps"]
