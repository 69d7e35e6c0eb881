"""The study of GLACER on tiny data: what it computes, and what it says of the numbers."""

from __future__ import annotations

import json

import numpy as np
import pytest

from studies.glacer import EXPERIMENTS, STUDY, cases
from studies.glacer.cases import SIZES, Case, Size, glacer_name, glacer_options
from studies.glacer.published import FRACTIONS, IMPROVEMENTS, TABLE_1, TABLE_3
from studies.glacer.sections import (
    cell,
    improvement_table,
    ordering_sentences,
    side_by_side,
)
from trellis.regression import Evaluation

pytestmark = pytest.mark.extras  # whole studies, if tiny

TINY = Size(60, 2, 1, 0, (2,), 60, 2)


def few(case, repetition):
    """Three baselines instead of all."""
    from trellis.regression.baselines import baselines

    train, test = case.pair(repetition)
    table = baselines(glacer=False)
    names = ("MLR", "S-MLR", "SVM", "S-LSB", "SUBBAG", "S-NN", "S-SVM", "S-SUBBAG", "S-RF", "(C)NL")
    found = {n: float(np.mean((table["MLR"](train, test, 0) - test.y) ** 2)) for n in names}
    return {"kind": "baselines", "mse": found, "seconds": dict.fromkeys(names, 0.0)}


def test_synthetic_part_from_end_to_end(tmp_path, monkeypatch):
    monkeypatch.setitem(SIZES, "quick", TINY)
    monkeypatch.setattr(cases, "run_baselines", few)
    tasks = ["table-1", "table-2", "parameters", "refits", "calibration"]
    # The fifteen models of the figure are not all there.
    records = STUDY.run(tmp_path, protocol="quick", tasks=tasks, n_jobs=1, figures=False)
    report = (tmp_path / "report.md").read_text("utf-8")
    for title in ("Table 1", "Table 2", "Parameters", "Refits", "Calibration"):
        assert f"## {title}" in report
    # Table 2 has the records of Table 1 for GLACER with dCorr.
    glacer = [k for k in records if records[k].get("kind") == "glacer"]
    assert len([k for k in glacer if "use_dcorr" not in k and "n_components" not in k]) == 6
    assert len([k for k in glacer if "use_dcorr=False" in k]) == 6
    case = Case("synthetic", 60)
    mine = [records[f"{case.key} GLACER max_swaps=0 {r}"]["mse"] for r in range(2)]
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
        "table-1", "table-2", "table-3", "improvements", "parameters", "refits", "calibration",
        "variants",
    ]  # fmt: skip


def test_the_paper_s_protocol_is_the_full_one():
    full = SIZES["full"]
    assert (full.n, full.repetitions, full.max_swaps, full.refit_nodes) == (3000, 10, None, 3000)
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


def test_real_cases(real_data, monkeypatch):
    monkeypatch.setenv("TRELLIS_DATA", str(real_data("sacramento").parent))
    train, test = Case("sacramento").pair(0)
    assert (len(train.y), len(test.y)) == (785, 200)
    assert train.graph.shape == (785, 785)
    full, half = Case("medicare", changes=(("graph", "full"),)).pair(0)
    assert (len(full.y), len(half.y)) == (500, 500)
    assert full.graph.nnz > 10_000


def test_options_of_glacer():
    assert glacer_name({"max_swaps": None, "trees": 3}) == "GLACER trees=3"
    assert glacer_options({"trees": 3, "loss": "r2_sum"})["base"].n_estimators == 3
    assert glacer_options({"stumps": True})["base"].max_leaf_nodes == 2
    assert type(glacer_options({"learner": "RF"})["base"]).__name__ == "RandomForestRegressor"


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
    assert "below its building blocks SUBBAG by 16.9 % and S-LSB by 33.5 %" in said
    assert "HGB (0.503) is lower than GLACER" in said
    worse = made_up(MLR=0.5, S_LSB=1.0, SUBBAG=1.2, GLACER=1.0)
    worse.mse["GLACER"] = [0.9, 1.0, 1.2]
    said = " ".join(ordering_sentences("X", worse))
    assert "NOT the lowest; lower are MLR (" in said
    assert "NOT the tightest (MLR, S-LSB, SUBBAG)" in said
    assert "overlaps with S-LSB" in said


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
