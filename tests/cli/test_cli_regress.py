"""``trellis regress``: messy tables, neighbours of all kinds, what is said and what is written."""

from __future__ import annotations

import csv
import io
import json
import sys

import numpy as np
import pytest

from trellis import load_model
from trellis.regression import TableRegressor

FAST = ("--base", "linear", "--compare", "mean", "--folds", 2, "--knn", 3)
WHAT = ("--target", "price")
HEAD = ("name", "size", "price", "lat", "lon")


def rows(n=40, seed=0):
    rng = np.random.default_rng(seed)
    lat, lon = 38 + rng.random(n), -121 + rng.random(n)
    size = rng.uniform(50, 150, n)
    price = 2 * size + 100 * np.sin(6 * lat) + rng.standard_normal(n)
    return [
        [f"house {i}", f"{size[i]:.2f}", f"{price[i]:.3f}", f"{lat[i]:.5f}", f"{lon[i]:.5f}"]
        for i in range(n)
    ]


def write(path, table, head=HEAD, separator=","):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=separator).writerows([head, *table])
    return path


def read(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def cells(line):
    return [cell.strip() for cell in line.split("|")[1:-1]]


@pytest.fixture
def houses(tmp_path):
    table = rows()
    table[3][1] = "NA"
    table[5][2] = ""
    return write(tmp_path / "houses.csv", table)


# ------------------------------------------------------------------------- the report


def test_report(run, houses, tmp_path):
    out = tmp_path / "new" / "out"
    result = run("regress", houses, *WHAT, *FAST, "--cells", 6, "--report", out)
    assert result.code == 0, result.err
    assert result.err == [
        "39 rows to learn from, 1 to predict",
        "numbers: size, lat, lon",
        "left out: name (identifier: hardly a value repeats)",
        "1 rows have gaps in numbers or dates",
        "GCRF beside its base, mean: random, 2 folds and blocked, 6 cells of the map in 2 folds",
        "report.md, predictions.csv, map.png, calibration.png, variogram.png are in " + str(out),
    ]
    head, _, *lines = result.out.splitlines()
    assert cells(head)[:6] == ["model", "RMSE, random", "MAE", "R²", "in 90 %", "RMSE, blocked"]
    assert [cells(line)[0] for line in lines] == ["GCRF", "its base alone (GCRF)", "mean"]
    report = (out / "report.md").read_text("utf-8")
    assert result.out.strip() in report
    assert "joined to its 3 nearest by lat,lon (haversine distance)" in report
    assert "## Random, 2 folds" in report and "## Blocked, 6 cells of the map" in report
    for name in ("map.png", "calibration.png", "variogram.png"):
        assert f"]({name})" in report
        assert (out / name).read_bytes().startswith(b"\x89PNG")
    found = read(out / "predictions.csv")
    assert [r["line"] for r in found] == [str(i) for i in range(2, 42)]
    assert found[5]["price"] == found[5]["fold"] == ""
    assert float(found[5]["low"]) < float(found[5]["predicted"]) < float(found[5]["high"])
    assert {r["fold"] for r in found} == {"1", "2", ""}
    known = [r for r in found if r["fold"]]
    errors = np.array([float(r["price"]) - float(r["predicted"]) for r in known])
    assert float(cells(lines[0])[1]) == pytest.approx(np.sqrt(np.mean(errors**2)), rel=1e-3)
    half = np.array([float(r["high"]) - float(r["predicted"]) for r in known])
    assert float(cells(lines[0])[4]) == pytest.approx(100 * np.mean(abs(errors) <= half), abs=0.06)
    assert half == pytest.approx([1.644854 * float(r["std"]) for r in known], rel=1e-4)


def test_the_same_bytes_again(run, houses, tmp_path):
    out = tmp_path / "out"
    options = (*FAST, "--features", "size", "--metric", "manhattan", "--quiet", "--report", out)
    first = run("regress", houses, *WHAT, *options, "--no-figures")
    assert (first.code, first.err) == (0, [])
    assert sorted(p.name for p in out.iterdir()) == ["predictions.csv", "report.md"]
    text = (out / "report.md").read_text("utf-8")
    assert "- numbers: size\n" in text and "manhattan distance" in text and "Swaps" not in text
    kept = {p.name: p.read_bytes() for p in out.iterdir() if p.name != "report.md"}
    run("regress", houses, *WHAT, *options, "--no-figures")
    assert {p.name: p.read_bytes() for p in out.iterdir() if p.name != "report.md"} == kept


def test_glacer(run, houses, tmp_path):
    out = tmp_path / "out"
    glacer = ("--model", "glacer", "--components", 2, "--subsample", 0.5, "--jobs", 1)
    result = run("regress", houses, *WHAT, *FAST[2:], *glacer, "--blocks", "none", "--report", out)
    assert result.code == 0, result.err
    assert "GLACER beside its base, mean: random, 2 folds" in result.err
    report = (out / "report.md").read_text("utf-8")
    assert "R_obj fell from" in report
    assert (out / "objective.png").read_bytes().startswith(b"\x89PNG")
    assert len(read(out / "predictions.csv")) == 40
    assert cells(result.out.splitlines()[0])[-1] == "seconds"
    assert "blocked" not in result.out


def test_standard_input_one_coordinate_and_no_rivals(run, tmp_path):
    text = "size,price,x\n" + "".join(f"{r[1]},{r[2]},{r[3]}\n" for r in rows())
    result = run(
        "regress", "-", *WHAT, "--coords", "x", "--base", "linear", "--compare", "none",
        "--folds", 2, "--blocks", "grid", "--cells", 6, "--report", tmp_path, stdin=text,
    )  # fmt: skip
    assert result.code == 0, result.err
    assert not (tmp_path / "map.png").exists()  # one coordinate makes no map
    assert (tmp_path / "variogram.png").exists()
    assert len(result.out.splitlines()) == 4


def test_all_models_take_part(run, houses, tmp_path):
    result = run(
        "regress", houses, *WHAT, "--base", "ridge", "--folds", 2, "--compare", "mlr,KRIGING",
        "--blocks", "none", "--no-figures", "--report", tmp_path / "out",
    )  # fmt: skip
    assert result.code == 0, result.err
    names = [cells(line)[0] for line in result.out.splitlines()[2:]]
    assert names == ["GCRF", "its base alone (GCRF)", "MLR", "kriging"]


def test_all_published_models_may_take_part(run, houses, tmp_path):
    result = run(
        "regress", houses, *WHAT, *FAST[:2], "--compare", "all", "--folds", 2, "--blocks", "none",
        "--no-figures", "--report", tmp_path / "out",
    )  # fmt: skip
    assert result.code == 0, result.err
    names = [cells(line)[0] for line in result.out.splitlines()[2:]]
    assert len(names) == 23 and {"S-RF", "(C)NL, tuned", "kriging"} < set(names)


def test_an_interrupt_leaves_nothing(run, houses, tmp_path, monkeypatch):
    import trellis.regression.rivals as rivals_module

    def stop(fold):
        raise KeyboardInterrupt

    monkeypatch.setattr(rivals_module, "_mean", stop)
    out = tmp_path / "out"
    saved = tmp_path / "m.trellis"
    result = run("regress", houses, *WHAT, *FAST, "--report", out, "--save", saved)
    assert result.code == 130
    assert result.err[-1] == "trellis: interrupted"
    assert not out.exists() and not saved.exists()


# ------------------------------------------------------------------------- messy tables


def messy(n=90, seed=0):
    """Words, dates, gaps, ids, a constant, a city with many values, '?' and decimal commas."""
    rng = np.random.default_rng(seed)
    head = ["id", "sold", "kind", "city", "size", "rooms", "country", "Lon", "Lat", "price"]
    table = []
    for i in range(n):
        kind = ("flat", "house", "farm")[rng.integers(3)]
        city = int(rng.integers(15))
        size, lat, lon = rng.uniform(50, 150), 50 + rng.random(), 8 + rng.random()
        price = 2 * size + 40 * (kind == "farm") + 5 * city + 50 * np.sin(5 * lat)
        row = [
            1000 + i, f"{1 + i % 28}.{1 + i % 12}.2023", kind, f"city {city}", f"{size:.1f}",
            int(rng.integers(1, 6)), "X", f"{lon:.4f}", f"{lat:.4f}",
            f"{price + rng.standard_normal():.2f}",
        ]  # fmt: skip
        row = [str(cell) for cell in row]
        if i % 8 == 0:
            row[4] = "?"
        if i % 11 == 0:
            row[2] = ""
        if i % 13 == 0:
            row[-1] = "n/a"
        table.append(row)
    return head, table


def test_a_messy_table(run, tmp_path):
    head, table = messy()
    commas = [[cell.replace(".", ",") if k >= 4 else cell for k, cell in enumerate(row)]
              for row in table]  # fmt: skip
    path = write(tmp_path / "messy.csv", commas, head, ";")
    out = tmp_path / "out"
    result = run("regress", path, *WHAT, "--coords", "Lon,Lat", *FAST, "--report", out)
    assert result.code == 0, result.err
    assert result.err[:6] == [
        "83 rows to learn from, 7 to predict",
        "numbers: size, rooms, Lon, Lat",
        "dates: sold (day.month.year: day, weekday)",
        "a column for each value: kind (4)",
        "mean target of each value: city (15)",
        "left out: id (identifier: it numbers the rows), country (constant: always X)",
    ]
    assert "nearest by Lat,Lon (haversine distance)" in (out / "report.md").read_text("utf-8")
    model, _, mean = (cells(line) for line in result.out.splitlines()[2:])
    assert float(model[1]) < 0.8 * float(mean[1])
    points = write(tmp_path / "points.csv", table, head)
    plain = run("regress", points, *WHAT, *FAST, "--report", tmp_path / "again", "--no-figures")
    assert plain.out.split("|")[:20] == result.out.split("|")[:20]  # seconds differ
    given = run(
        "regress", path, *WHAT, *FAST, "--sep", ";", "--decimal", ",", "--categories", "rooms",
        "--drop", "sold", "--max-levels", 4, "--no-figures", "--report", tmp_path / "third",
    )  # fmt: skip
    assert given.code == 0, given.err
    assert "a column for each value: kind (4)" in given.err
    assert "mean target of each value: city (15), rooms (5)" in given.err


def test_tabs(run, tmp_path):
    path = write(tmp_path / "tabs.tsv", rows(), separator="\t")
    for more in ((), ("--sep", "tab")):
        result = run("regress", path, *WHAT, *FAST, *more, "--no-figures", "--report", tmp_path)
        assert result.code == 0, result.err


def test_logarithms(run, tmp_path):
    table = [[*row[:2], f"{np.exp(float(row[2]) / 60):.4f}", *row[3:]] for row in rows(60)]
    table[4][2] = ""
    path, out, saved = write(tmp_path / "t.csv", table), tmp_path / "out", tmp_path / "m.trellis"
    options = (*WHAT, *FAST, "--cells", 6, "--report", out)
    hint = "trellis: price is skewed, with few large values: --log learns its logarithm"
    plain = run("regress", path, *options, "--no-figures")
    assert hint in plain.err
    result = run("regress", path, *options, "--log", "--save", saved, "--apply", path)
    assert result.code == 0, result.err
    assert hint not in result.err
    assert "what is learnt and measured is log price: errors of 0.1 are about 10 %" in result.err
    report = (out / "report.md").read_text("utf-8")
    assert report.startswith("# log price: GCRF beside other models")
    assert "measured on the natural logarithm of price" in report
    found = read(out / "predictions.csv")
    assert float(found[0]["price"]) == pytest.approx(float(table[0][2]), rel=1e-11)
    for row in (*found, *read(out / "applied.csv")):
        low, mean, high = (float(row[name]) for name in ("low", "predicted", "high"))
        assert 0 < low < mean < high and high - mean > mean - low
    model = load_model(saved)
    mean, std = model.predict(path, return_std=True)
    again = read(out / "applied.csv")
    assert [float(r["predicted"]) for r in again] == pytest.approx(mean, rel=1e-6)
    assert [float(r["std"]) for r in again] == pytest.approx(std, rel=1e-6)
    assert [float(r["high"]) for r in again] == pytest.approx(
        model.predict_interval(path)[1], rel=1e-6
    )
    # Rows without a target are predicted by what is trained on all.
    assert float(found[4]["predicted"]) == pytest.approx(mean[4], rel=1e-6)
    rmse = float(cells(result.out.splitlines()[2])[1])
    logs = [np.log(float(r["price"])) for r in found if r["price"]]
    middles = [np.log(float(r["low"]) * float(r["high"])) / 2 for r in found if r["price"]]
    assert rmse == pytest.approx(np.sqrt(np.mean(np.subtract(logs, middles) ** 2)), rel=1e-3)
    assert "--log has no place" in run("regress", "--load", saved, path, "--log").err[-1]


def test_other_encodings(run, fails, tmp_path):
    path = tmp_path / "t.csv"
    table = [[*row, "café" if i % 2 else "bar"] for i, row in enumerate(rows())]
    text = "\n".join(",".join(row) for row in [[*HEAD, "kind"], *table])
    options = (*WHAT, *FAST, "--no-figures", "--blocks", "none", "--report", tmp_path / "out")
    for encoding in ("cp1252", "utf-16"):
        path.write_bytes(text.encode(encoding))
        result = run("regress", path, *options, "--encoding", encoding)
        assert result.code == 0, result.err
        assert "a column for each value: kind (2)" in result.err
    assert "no encoding is called 'klingon'" in fails(
        "regress", path, *options, "--encoding", "klingon"
    )
    assert "t.csv is no text in utf-8" in fails("regress", path, *options, "--encoding", "utf-8")


def test_what_is_written_and_what_is_missing(run, tmp_path):
    """Currencies, thousands, empty coordinates, words among numbers, and zeros on the map."""
    table = rows(60)
    for i, row in enumerate(table):
        row[2] = f"${1000 * float(row[2]):,.0f}"
        row.append("unknown" if i % 5 == 0 else f"{i % 7}.5")
        if i % 20 == 3:
            row[3] = ""
        if i == 17:
            row[3] = row[4] = "0"
    path = write(tmp_path / "t.csv", table, (*HEAD, "rooms"))
    out = tmp_path / "out"
    result = run("regress", path, *WHAT, *FAST, "--cells", 6, "--report", out)
    assert result.code == 0, result.err
    assert result.err[:6] == [
        "57 rows to learn from, 3 to predict",
        f"rows without a place: 3 (the first is {path}, line 5); they are not learnt from, and get "
        "what the base says",
        "target: price (without $ and ,)",
        "numbers: size, lat, lon",
        "a column for each value: rooms (8; mostly numbers, but 12 cells such as 'unknown')",
        "left out: name (identifier: hardly a value repeats)",
    ]
    zero = (
        "trellis: 1 rows are at latitude 0 and longitude 0; if nobody knows where they are, empty "
        "these cells"
    )
    assert zero in result.err
    found = read(out / "predictions.csv")[3]
    assert (found["fold"], found["base"]) == ("", found["predicted"])
    assert float(found["price"]) > 1000 and float(found["std"]) > 0
    assert {"map.png", "variogram.png"} <= {path.name for path in out.iterdir()}


def test_degrees_that_are_called_x_and_y(run, tmp_path):
    table = [[*row[:3], row[4], row[3]] for row in rows()]
    path = write(tmp_path / "t.csv", table, ("name", "size", "price", "x", "y"))
    options = ("--coords", "x,y", *FAST, "--no-figures", "--report", tmp_path / "out")
    hint = "trellis: if x,y are degrees, --metric haversine measures in kilometres"
    assert hint in run("regress", path, *WHAT, *options).err
    given = run("regress", path, *WHAT, *options, "--metric", "haversine")
    assert given.code == 0 and hint not in given.err
    report = (tmp_path / "out" / "report.md").read_text("utf-8")
    assert "nearest by y,x (haversine distance)" in report


def test_north_is_up(run, tmp_path, monkeypatch):
    """Metres called latitude and longitude, or northing first, are drawn as maps are."""
    import trellis.pictures

    drawn = []
    monkeypatch.setattr(
        trellis.pictures, "draw_residuals", lambda *a, **how: drawn.append((a[0], how["names"]))
    )
    table = [[*row[:3], str(1000 * float(row[3])), str(1000 * float(row[4]))] for row in rows()]
    path = write(tmp_path / "t.csv", table)
    result = run("regress", path, *WHAT, *FAST, "--metric", "euclidean", "--blocks", "none",
                 "--report", tmp_path / "out")  # fmt: skip
    assert result.code == 0, result.err
    ((points, names),) = drawn
    assert names == ("lon", "lat") and points[:, 1].min() > 37_000


def test_a_target_in_disguise(run, tmp_path):
    table = [[*row, str(float(row[2]) / 7)] for row in rows()]
    path = write(tmp_path / "t.csv", table, (*HEAD, "cost"))
    result = run("regress", path, *WHAT, *FAST, "--no-figures", "--report", tmp_path)
    said = (
        "trellis: cost is nearly the same as price in other units; if it is not known for new "
        "rows, --drop cost"
    )
    assert said in result.err
    assert "**cost nearly equals the target" in (tmp_path / "report.md").read_text("utf-8")


# ------------------------------------------------------------------------- keep and apply


def test_save_and_apply(run, houses, tmp_path):
    new = write(tmp_path / "new.csv", [[r[4], r[1], r[2], r[3]] for r in rows(12, 1)],
                ("lon", "size", "price", "lat"))  # fmt: skip
    saved, out, merged = tmp_path / "p.trellis", tmp_path / "out", tmp_path / "merged.csv"
    result = run(
        "regress", houses, *WHAT, *FAST, "--no-figures", "--report", out, "--save", saved,
        "--apply", new,
    )  # fmt: skip
    assert result.code == 0, result.err
    assert result.err[-2] == f"what was learned is in {saved}"
    said = f"12 rows are predicted in {out / 'applied.csv'}; of the 12 with a target"
    assert result.err[-1].startswith(said)
    first = (out / "applied.csv").read_text("utf-8")
    loaded = run("regress", "--load", saved, new)
    assert (loaded.code, loaded.out) == (0, first)
    assert run("regress", "--load", saved, new, "-o", merged).code == 0
    assert merged.read_text("utf-8") == first
    mean, std = load_model(saved).predict(new, return_std=True)
    found = list(csv.DictReader(io.StringIO(first)))
    assert [float(r["predicted"]) for r in found] == pytest.approx(mean, rel=1e-6)
    assert [float(r["std"]) for r in found] == pytest.approx(std, rel=1e-6)
    without = run(
        "regress", houses, *WHAT, *FAST, "--no-test", "--apply", new, "-o", merged, "--quiet"
    )
    assert (without.code, without.out, without.err) == (0, "", [])
    assert merged.read_text("utf-8") == first


def test_new_rows_with_what_was_never_seen(run, tmp_path):
    head = (*HEAD, "kind")
    table = [[*row, "flat" if i % 2 else "house"] for i, row in enumerate(rows())]
    path, saved = write(tmp_path / "t.csv", table, head), tmp_path / "m.trellis"
    new = [[*row[:2], f"{float(row[2]):,.2f}", *row[3:], "boat"] for row in rows(5, 1)]
    assert run("regress", path, *WHAT, *FAST, "--no-test", "--save", saved).code == 0
    result = run("regress", "--load", saved, write(tmp_path / "new.csv", new, head),
                 "-o", tmp_path / "o.csv")  # fmt: skip
    assert "trellis: 5 cells of kind hold what training never saw, such as 'boat'" in result.err
    assert "of the 5 with a target" in result.err[-1]
    assert "no column 'nr'" in run("regress", "--load", saved, path, "--id", "nr").err[-1]
    empty = write(tmp_path / "empty.csv", [], head)
    assert "empty.csv has a header, but no rows" in run("regress", "--load", saved, empty).err[-1]


def test_new_rows_without_targets(run, houses, tmp_path):
    new = write(tmp_path / "new.csv", [[r[4], r[1], r[3]] for r in rows(3, 1)],
                ("lon", "size", "lat"))  # fmt: skip
    out = tmp_path / "new" / "applied.csv"
    result = run("regress", houses, *WHAT, *FAST, "--no-test", "--apply", new,
                 "--report", tmp_path / "new")  # fmt: skip
    assert result.err[-1] == f"3 rows are predicted in {out}"
    assert list(read(out)[0]) == ["line", "predicted", "std", "low", "high"]


# ------------------------------------------------------------------------- graphs


def counties(n=5):
    """Squares of a board: id, features, target, and what they look like."""
    rng = np.random.default_rng(0)
    table, features = [], []
    for i in range(n):
        for j in range(n):
            name = f"0{i}{j}"
            x = rng.standard_normal()
            table.append([name, f"{x:.3f}", f"{x + i + j + 0.1 * rng.standard_normal():.3f}"])
            ring = [[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1], [i, j]]
            features.append(
                {"type": "Feature", "properties": {"fips": name},
                 "geometry": {"type": "Polygon", "coordinates": [ring]}}
            )  # fmt: skip
    table[7][2] = ""
    return table, {"type": "FeatureCollection", "features": features}


@pytest.fixture
def board(tmp_path):
    table, areas = counties()
    (tmp_path / "areas.geojson").write_text(json.dumps(areas), "utf-8")
    edges = [(f"0{i}{j}", f"0{i + 1}{j}", 2) for i in range(4) for j in range(5)]
    write(tmp_path / "edges.csv", edges, ("from", "to", "weight"))
    return write(tmp_path / "counties.csv", table, ("fips", "x", "income"))


def test_areas(run, board, tmp_path):
    out, saved = tmp_path / "out", tmp_path / "m.trellis"
    options = ("--target", "income", "--id", "fips", "--areas", tmp_path / "areas.geojson")
    result = run(
        "regress", board, *options, *FAST[:3], "neighbours,kriging", *FAST[4:6], "--cells", 6,
        "--report", out, "--save", saved,
    )  # fmt: skip
    assert result.code == 0, result.err
    assert "numbers: x" in result.err
    assert "blocked, 6 cells of the map in 2 folds" in " ".join(result.err)
    report = (out / "report.md").read_text("utf-8")
    assert "Rows have 5.8 neighbours on average" in report and "map.png" in report
    found = read(out / "predictions.csv")
    assert found[7]["fips"] == "012" and found[7]["fold"] == ""
    model, base = (float(cells(line)[1]) for line in result.out.splitlines()[2:4])
    assert model < base  # neighbours say what the base cannot know
    applied = run("regress", "--load", saved, board, *options[2:])
    assert applied.code == 0, applied.err
    again = list(csv.DictReader(io.StringIO(applied.out)))[7]
    assert again["fips"] == "012"
    assert float(again["predicted"]) == pytest.approx(float(found[7]["predicted"]), rel=1e-5)
    refused = run("regress", "--load", saved, board)
    assert "trained with a graph of its rows: give --edges or --areas, and --id" in refused.err[0]
    refused = run("regress", "--load", saved, board, "--areas", tmp_path / "areas.geojson")
    assert "--edges and --areas need --id" in refused.err[0]
    rook = run("regress", board, *options, *FAST[:6], "--rule", "rook", "--no-figures",
               "--blocks", "none", "--report", out)  # fmt: skip
    assert rook.code == 0, rook.err
    assert "Rows have 3.2 neighbours" in (out / "report.md").read_text("utf-8")


def test_areas_of_another_name_and_rows_without_one(run, board, tmp_path):
    """The table says fips, the map GEOID; one row has no area, one area no row."""
    text = (tmp_path / "areas.geojson").read_text("utf-8").replace('"fips"', '"GEOID"')
    (tmp_path / "areas.geojson").write_text(text, "utf-8")
    table = [row if row[0] != "022" else ["999", *row[1:]] for row in counties()[0]]
    path = write(tmp_path / "counties.csv", table, ("fips", "x", "income"))
    options = ("--id", "fips", "--areas", tmp_path / "areas.geojson")
    out, saved = tmp_path / "out", tmp_path / "m.trellis"
    result = run("regress", path, "--target", "income", *options, *FAST[:6], "--cells", 6,
                 "--report", out, "--save", saved)  # fmt: skip
    assert result.code == 0, result.err
    assert f"rows without a place: 1 (the first is {path}, line 14)" in " ".join(result.err)
    found = read(out / "predictions.csv")[12]
    assert (found["fips"], found["fold"], found["base"]) == ("999", "", found["predicted"])
    assert float(found["std"]) > 0  # its own target is not known to the model
    applied = run("regress", "--load", saved, path, *options)
    assert "trellis: 1 rows have no area and get what the base says" in applied.err
    others = write(tmp_path / "o.csv", [[f"9{r[0]}", *r[1:]] for r in table], ("fips", "x", "y"))
    refused = run("regress", "--load", saved, others, *options)
    assert "feature 0 has no property 'fips', and no id; it has GEOID" in refused.err[-1]


def test_areas_in_metres_and_islands(run, board, tmp_path):
    """Coordinates beyond degrees are in the plane; an area apart is said to be."""
    areas = json.loads((tmp_path / "areas.geojson").read_text("utf-8"))
    for feature in areas["features"]:
        far = 5e6 if feature["properties"]["fips"] == "044" else 0
        geometry = feature["geometry"]
        rings = geometry["coordinates"]
        geometry["coordinates"] = [[[1e4 * x + far, 1e4 * y] for x, y in ring] for ring in rings]
    polygon = areas["features"][0]
    polygon["geometry"] = {"type": "GeometryCollection", "geometries": [polygon["geometry"]]}
    (tmp_path / "metres.geojson").write_text(json.dumps(areas), "utf-8")
    out = tmp_path / "out"
    result = run(
        "regress", board, "--target", "income", "--id", "fips", "--areas",
        tmp_path / "metres.geojson", *FAST[:6], "--cells", 6, "--report", out,
    )  # fmt: skip
    assert result.code == 0, result.err
    assert "trellis: 1 of 25 areas have no neighbour and are isolated (044)" in result.err
    assert "1 rows have none and keep what the base says" in (out / "report.md").read_text("utf-8")
    assert (out / "map.png").exists()


def test_edges(run, board, tmp_path):
    out = tmp_path / "out"
    options = ("--target", "income", "--id", "fips", "--edges", tmp_path / "edges.csv")
    result = run("regress", board, *options, *FAST[:6], "--report", out)
    assert result.code == 0, result.err
    assert sorted(p.name for p in out.iterdir()) == [
        "calibration.png", "predictions.csv", "report.md",
    ]  # fmt: skip
    assert "blocked" not in result.out  # nobody knows where rows are
    assert "Rows have 1.6 neighbours on average, by " in (out / "report.md").read_text("utf-8")
    assert "--compare kriging needs --coords" in run(
        "regress", board, *options, *FAST[:2], "--compare", "kriging", *FAST[4:6]
    ).err[-1]  # fmt: skip


# ------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--knn", 0), "--knn must be a positive integer, got 0"),
        (("--folds", 1), "--folds must be at least 2, got 1"),
        (("--cells", 1), "--cells must be at least 2, got 1"),
        (("--cells", 2, "--folds", 5), "--cells must be at least 5, the number of folds, got 2"),
        (("--components", 1), "--components must be an integer of at least 2, got 1"),
        (("--seed", -1), "--seed must be an integer of at least 0, got -1"),
        (("--jobs", 0), "--jobs must be a positive integer or -1, got 0"),
        (("--subsample", 1), "--subsample must be a number between 0 and 1, both excluded, got 1"),
        (("--max-levels", 0), "--max-levels must be a positive integer, got 0"),
        (("--coords", ","), "--coords names no column"),
        (("--coords", "lat,lat"), "coordinates are columns, each of them once"),
        (
            ("--coords", "lat,long"),
            "houses.csv has no column 'long', only name, size, price, lat",
        ),
        (("--coords", "lat,price"), "the target 'price' is also a feature or a coordinate"),
        (("--target", "cost"), "houses.csv has no column 'cost'"),
        (("--features", "price"), "the target 'price' is also a feature or a coordinate"),
        (("--features", "sise"), "houses.csv has no column 'sise'"),
        (("--drop", "sise"), "houses.csv has no column 'sise'"),
        (("--categories", "sise"), "houses.csv has no column 'sise'"),
        (("--drop", "size", "--features", "size"), "column 'size' is dropped, and a feature or a"),
        (("--drop", "size,lat,lon"), "no column is left to predict from (name: identifier"),
        (("--id", "nr"), "houses.csv has no column 'nr'"),
        (("--id", "price"), "the target 'price' cannot be the id of the rows, too"),
        (("--base", "rigde"), "no base model is called 'rigde'; near to it: ridge"),
        (
            ("--base", "svm", "--save", "m.trellis"),
            "--save: a model file cannot hold a SVR, so not",
        ),
        (("--compare", "SVM,XGB"), "--compare: no model is called 'XGB'; known: HGB; forest; kri"),
        (("--folds", 30), "has 39 rows with a target; at least 60 are needed for 30 folds"),
        (("--metric", "haversine", "--coords", "lat"), "haversine distances are for two coord"),
        (("--sep", ";;"), "cells cannot stand between ';;'; give one sign"),
        (("--sep", "|"), "has no column 'price', only name,size,price,lat,lon; expected a header "),
        (("--edges", "e.csv"), "--edges needs --id: the column whose names it uses"),
        (("--areas", "a.json"), "--areas needs --id: the column whose names it uses"),
        (("--areas", "a.json", "--edges", "e.csv"), "are two ways to say who neighbours are"),
        (("-o", "x.csv"), "-o is where predictions of new rows go: name them with --apply"),
        (("--no-test",), "--no-test leaves nothing to do: give --save or --apply, too"),
        (("--load", "m.trellis"), "--load takes what was learned before; --target has no place"),
    ],
)
def test_wrong_options(fails, houses, tmp_path, options, message, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("e.csv", "a.json", "m.trellis"):
        (tmp_path / name).write_text("x")
    out = tmp_path / "out"
    assert message in fails("regress", houses, *WHAT, *FAST, "--report", out, *options)
    assert not out.exists()


def test_target_is_needed(fails, houses):
    assert fails("regress", houses).endswith("--target is missing: name the column to predict")


def test_where_rows_may_be(fails, tmp_path):
    path = write(tmp_path / "t.csv", rows(), ("name", "size", "price", "Y", "X"))
    message = fails("regress", path, *WHAT, *FAST)
    assert "name those that say where rows are with --coords (X,Y?), or" in message
    table = [[*row[1:], row[3], row[4]] for row in rows()]
    head = ("size", "price", "from_lat", "from_lon", "to_lat", "to_lon")
    message = fails("regress", write(tmp_path / "t.csv", table, head), *WHAT, *FAST)
    assert "one latitude and one longitude, but from_lat, from_lon, to_lat, to_lon: name two" in (
        message
    )


def test_very_many_columns_are_not_all_named(run, tmp_path):
    table = [[*row, *np.random.default_rng(i).normal(size=70)] for i, row in enumerate(rows())]
    path = write(tmp_path / "t.csv", table, (*HEAD, *(f"c{i}" for i in range(70))))
    result = run("regress", path, *WHAT, *FAST, "--blocks", "none", "--no-figures", "--report",
                 tmp_path / "out")  # fmt: skip
    assert result.code == 0, result.err
    assert result.err[1].endswith("c45, c46, and 23 more")


def test_where_rows_are_is_needed(fails, tmp_path):
    path = write(tmp_path / "t.csv", rows(), ("name", "size", "price", "a", "b"))
    message = fails("regress", path, *WHAT, *FAST)
    assert "t.csv has no columns called latitude and longitude: name those that say" in message


def test_another_kind_of_model(fails, houses, tmp_path):
    from sklearn.linear_model import LinearRegression

    from trellis.regression import GCRF, knn_graph

    X = np.arange(12.0)[:, None]
    GCRF(LinearRegression()).fit(X, X[:, 0] ** 2, graph=knn_graph(X)).save(tmp_path / "m")
    message = fails("regress", "--load", tmp_path / "m", houses)
    assert "m holds a GCRF, no regression of a table, as 'trellis regress --save'" in message


def nowhere(table):
    for i, row in enumerate(table):
        row[3 + i % 2] = ""


def written(table):
    table[2][4] = "120W"


def beyond(table):
    table[7][3] = "380000"


def infinite(table):
    table[0][1] = "inf"


def same_price(table):
    for row in table:
        row[2] = "1"


def no_number(table):
    table[2][2] = "much"


def ragged(table):
    table[4].append("more")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (nowhere, "bad.csv: no row has all of lat, lon"),
        (written, "bad.csv, line 4, column 'lon': '120W' is not a number: coordinates are to be"),
        (beyond, "bad.csv, line 9, column 'lat': 380000 is no latitude in degrees (at most 90)"),
        (infinite, "bad.csv, line 2, column 'size': 'inf' is not finite"),
        (same_price, "column 'price' is the same in every row"),
        (no_number, "bad.csv, line 4, column 'price': 'much' is not a number"),
        (ragged, "bad.csv, line 6: 6 cells, but the header has 5"),
    ],
)
def test_wrong_tables(fails, tmp_path, change, message):
    table = rows()
    change(table)
    path = write(tmp_path / "bad.csv", table)
    assert message in fails("regress", path, *WHAT, *FAST, "--report", tmp_path / "out")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "bad.csv is empty; expected a header and rows of cells between commas"),
        (b"a,b\n", "bad.csv has a header, but no rows"),
        (b"a,,b\n1,2,3\n", "bad.csv, line 1: column 2 of the header has no name"),
        (b"a,b,a\n1,2,3\n", "bad.csv, line 1: the header names column 'a' twice"),
        (b"a,b\n1,\xff\n", "bad.csv, line 2: not UTF-8 text; convert the file to UTF-8, or name"),
        (b'a,b\n1,"x"y\n', "bad.csv, line 2: ',' expected after '\"'"),
    ],
)
def test_wrong_files(fails, tmp_path, text, message):
    path = tmp_path / "bad.csv"
    path.write_bytes(text)
    assert message in fails("regress", path, *WHAT, *FAST)


def test_report_must_be_a_folder(fails, houses):
    message = fails("regress", houses, *WHAT, *FAST, "--report", houses)
    assert message.endswith("houses.csv is a file; name a folder to write to")


def test_missing_matplotlib(run, houses, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    out = tmp_path / "out"
    result = run("regress", houses, *WHAT, *FAST, "--report", out)
    assert result.code == 0, result.err
    said = "trellis: no figures, which need matplotlib: install it, or trellis-structured[plot]"
    assert result.err.count(said) == 1
    assert result.err[-1] == f"report.md, predictions.csv are in {out}"
    assert sorted(path.name for path in out.iterdir()) == ["predictions.csv", "report.md"]
    assert ".png" not in (out / "report.md").read_text("utf-8")
    quiet = run("regress", houses, *WHAT, *FAST, "--report", out, "--no-figures", "--quiet")
    assert (quiet.code, quiet.err) == (0, [])


def test_the_model_in_python_is_that_of_the_command(run, houses, tmp_path):
    out = tmp_path / "out"
    assert run("regress", houses, *WHAT, *FAST, "--no-figures", "--report", out).code == 0
    model = TableRegressor("price", base="linear", n_neighbors=3, random_state=0).fit(houses)
    line = read(out / "predictions.csv")[5]
    assert float(line["predicted"]) == pytest.approx(model.predict(houses)[5], rel=1e-6)


def test_all_rows_at_one_place(run, tmp_path):
    table = [[*row[:3], "38.5", "-120.5"] for row in rows()]
    path = write(tmp_path / "t.csv", table)
    out = tmp_path / "out"
    result = run("regress", path, *WHAT, *FAST, "--report", out)
    assert result.code == 0, result.err
    assert "trellis: no cells of the map are left out: all rows are at 1 places" in result.err
    assert "left out: name (identifier: hardly a value repeats), lat (constant: " in result.err[2]
    assert not (out / "variogram.png").exists() and "blocked" not in result.out


def test_glacer_of_areas(run, board, tmp_path):
    out = tmp_path / "out"
    result = run(
        "regress", board, "--target", "income", "--id", "fips", "--areas",
        tmp_path / "areas.geojson", "--model", "glacer", "--base", "linear", "--components", 2,
        "--subsample", 0.6, "--jobs", 1, "--compare", "none", "--folds", 2, "--blocks", "none",
        "--no-figures", "--report", out,
    )  # fmt: skip
    assert result.code == 0, result.err
    found = read(out / "predictions.csv")
    assert found[7]["fold"] == "" and np.isfinite(float(found[7]["predicted"]))
    model, base = (float(cells(line)[1]) for line in result.out.splitlines()[2:4])
    assert model < base
