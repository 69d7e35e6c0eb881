"""The command line on trees and graphs: train, tag, evaluate, inspect."""

from __future__ import annotations

import pytest

from trellis import load_model

ROW = "{}\t{}\t_\t{}\t_\t_\t{}\t{}\t_\t_\n"
CONLLU = "".join(
    "# a comment\n"
    + ROW.format(1, a, "NOUN", 2, "nsubj")
    + ROW.format(2, b, "VERB", 0, "root")
    + ROW.format(3, c, "NOUN", 2, "obj")
    + "\n"
    for a, b, c in [("cats", "chase", "mice"), ("dogs", "chase", "cats"), ("we", "see", "dogs")]
)
GRAPHS = """\
sky blue A
roof red B
wall white B
@edge 1 2 above
@edge 2 3 above

sky grey A
sea blue A
@edge 1 2 beside

"""


@pytest.fixture
def trees(tmp_path):
    file = tmp_path / "trees.conllu"
    file.write_text(CONLLU)
    return file


@pytest.fixture
def graphs(tmp_path):
    file = tmp_path / "graphs.txt"
    file.write_text(GRAPHS * 3)
    return file


@pytest.mark.parametrize("loss", ["log", "perceptron"])
def test_trees_from_heads(run, trees, tmp_path, loss):
    model = tmp_path / "tree.trellis"
    result = run(
        "train", trees, "--format", "conllu", "--structure", "tree", "--loss", loss,
        "--features", "form", "--piece-size", 2, "-o", model,
    )  # fmt: skip
    assert result.code == 0, result.err
    assert result.err[-1].startswith(f"{model}: 2 labels, 6 features")
    tagged = run("tag", model, trees)
    assert tagged.code == 0
    assert tagged.out == CONLLU
    scores = run("eval", "--model", model, trees)
    assert "100.00 % of positions" in scores.out
    shown = run("inspect", model, "--top", 2)
    name = {"log": "TreeCRF", "perceptron": "TreePerceptron"}[loss]
    assert shown.out.startswith(name)
    assert "edge types  2: nsubj, obj" in shown.out
    assert "(nsubj)" in shown.out or "(obj)" in shown.out
    if loss == "log":
        assert run("tag", model, trees, "--marginals").code == 0
    best = run("tag", model, trees, "--kbest", 2)
    assert best.out.count("# 1 ") == 2


@pytest.mark.parametrize("model_option", [("--loss", "log"), ("--model", "perceptron")])
def test_graphs_from_edges(run, graphs, tmp_path, model_option):
    model = tmp_path / "graph.trellis"
    result = run(
        "train", graphs, "--format", "graphs", "--columns", "thing,colour,kind", "--structure",
        "graph", *model_option, "--directed", "--max-passes", 5, "-o", model,
    )  # fmt: skip
    assert result.code == 0, result.err
    tagged = run("tag", model, graphs)
    expected = "".join(
        f"{line} {line[-1]}\n" if line and line[0] != "@" else f"{line}\n"
        for line in (GRAPHS * 3).splitlines()
    )
    assert tagged.out == expected
    # Without the label's column, too.
    bare = "sky blue\nroof red\n@edge 1 2 above\n"
    assert run("tag", model, "-", stdin=bare).out.splitlines() == [
        "sky blue A", "roof red B", "@edge 1 2 above", "",
    ]  # fmt: skip


def test_pieces_with_loops_and_inference(run, graphs, tmp_path):
    model = tmp_path / "graph.trellis"
    result = run(
        "train", graphs, "--format", "graphs", "--structure", "graph", "--pieces", "graph",
        "--inference", "exact", "--no-directed", "--max-passes", 2, "-o", model,
    )  # fmt: skip
    assert result.code == 0, result.err
    assert "pieces='graph'" in run("inspect", model).out


def test_warm_start_keeps_the_structure(run, fails, trees, tmp_path):
    model, more = tmp_path / "tree.trellis", tmp_path / "more.trellis"
    run("train", trees, "--format", "conllu", "--structure", "tree", "-o", model)
    assert run("train", trees, "--warm-start", model, "-o", more).code == 0
    assert f"{model} is for structure tree, not graph" in fails(
        "train", trees, "--warm-start", model, "--structure", "graph", "-o", more
    )
    assert f"{model} holds a crf model, not a perceptron model" in fails(
        "train", trees, "--warm-start", model, "--loss", "perceptron", "-o", more
    )


def test_mistakes_are_named(run, fails, trees, graphs, tmp_path):
    out = tmp_path / "model.trellis"
    plain = tmp_path / "plain.txt"
    plain.write_text("a X\nb Y\n")
    assert fails("train", plain, "--structure", "tree", "-o", out) == (
        f"{plain} has no edges, which --structure tree needs; they are in files of --format "
        "conllu (heads) or graphs (lines '@edge A B')"
    )
    assert "--overlap is not for TreeCRF" in fails(
        "train", trees, "--format", "conllu", "--structure", "tree", "--overlap", 1, "-o", out
    )
    assert "--pieces is not for ChainCRF" in fails("train", plain, "--pieces", "graph", "-o", out)
    assert "--loss perceptron is for --model perceptron, not for crf" in fails(
        "train", plain, "--model", "crf", "--loss", "perceptron", "-o", out
    )
    loop = tmp_path / "loop.txt"
    loop.write_text("a X\nb Y\nc X\n@edge 1 2\n@edge 2 3\n@edge 3 1\n")
    assert "sample 0: the edges close a cycle" in fails(
        "train", loop, "--format", "graphs", "--structure", "tree", "-o", out
    )
    loop.write_text("a X\nb Y\n@edge 1 9\n")
    assert f"{loop}, line 3: an edge to node 9, but its sample has 2 nodes so far" in fails(
        "train", loop, "--format", "graphs", "--structure", "graph", "-o", out
    )
    run("train", trees, "--format", "conllu", "--structure", "tree", "--loss", "perceptron",
        "-o", out)  # fmt: skip
    assert "TreePerceptron has no probabilities" in fails("tag", out, trees, "--marginals")


@pytest.mark.parametrize("structure", ["chain", "tree", "graph"])
@pytest.mark.parametrize("kind", ["crf", "perceptron", "max-margin"])
def test_the_same_model_from_a_prepared_file(run, trees, graphs, tmp_path, structure, kind):
    file, form = (graphs, "graphs") if structure == "graph" else (trees, "conllu")
    prepared, ours, theirs = (tmp_path / name for name in "pab")
    result = run("prepare", file, "--format", form, "-o", prepared)
    assert result.code == 0, result.err
    assert {"conllu": " 9 positions, 6 edges, ", "graphs": " 15 positions, 9 edges, "}[form] in (
        result.err[0]
    )
    options = ["--structure", structure, "--model", kind, "--piece-size", "2.5"]
    options += ["--max-passes", "3", "--dev", file]
    assert run("train", prepared, *options, "-o", ours).code == 0
    assert run("train", file, "--format", form, *options, "-o", theirs).code == 0
    assert ours.read_bytes() == theirs.read_bytes()
    assert run("tag", ours, file).code == 0


def test_a_file_prepared_without_edges(run, fails, tmp_path):
    plain, prepared = tmp_path / "plain.txt", tmp_path / "plain.prepared"
    plain.write_text("a X\nb Y\n")
    assert run("prepare", plain, "-o", prepared).code == 0
    assert fails("train", prepared, "--structure", "graph", "-o", tmp_path / "m.trellis") == (
        f"{prepared} has no edges, which --structure graph needs; they are in files of --format "
        "conllu (heads) or graphs (lines '@edge A B')"
    )


def test_a_prepared_graph_is_no_tree(run, fails, graphs, tmp_path):
    graphs.write_text(GRAPHS.replace("@edge 2 3 above", "@edge 2 3 above\n@edge 3 1 below"))
    prepared = tmp_path / "p"
    assert run("prepare", graphs, "--format", "graphs", "-o", prepared).code == 0
    assert "sample 0: the edges close a cycle" in fails(
        "train", prepared, "--structure", "tree", "-o", tmp_path / "m.trellis"
    )


@pytest.mark.parametrize("solver", ["frank-wolfe", "bundle"])
def test_max_margin(run, fails, trees, graphs, tmp_path, solver):
    model = tmp_path / "margin.trellis"
    result = run(
        "train", trees, "--format", "conllu", "--structure", "tree", "--loss", "hinge",
        "--features", "form", "--l2", 0.1, "--solver", solver, "-o", model,
    )  # fmt: skip
    assert result.code == 0, result.err
    assert "% of the optimum" in result.err[-1]
    assert run("tag", model, trees).out == CONLLU
    assert "100.00 % of positions" in run("eval", "--model", model, trees).out
    assert "MaxMargin" in run("inspect", model).out
    assert "MaxMargin has no probabilities" in fails("tag", model, trees, "--marginals")
    for option in ("--scheme", "BIO"), ("--overlap", "1"):
        assert fails(
            "train", trees, "--format", "conllu", "--structure", "tree", "--loss", "hinge",
            "--piece-size", 2, *option, "-o", model,
        ) == f"{' '.join(option)} is for --structure chain"  # fmt: skip
    assert "--warm-start needs --solver sgd: others start from where" in fails(
        "train", trees, "--warm-start", model, "-o", model
    )
    graph = tmp_path / "graph.trellis"
    done = run("train", graphs, "--format", "graphs", "--structure", "graph", "--model",
               "max-margin", "--max-passes", 3, "-o", graph)  # fmt: skip
    assert done.code == 0, done.err
    assert run("tag", graph, graphs).code == 0


def test_max_margin_learns_from_a_prepared_file(run, toys, tmp_path):
    prepared = tmp_path / "train.prepared"
    assert run("prepare", toys / "train.txt", "-o", prepared).code == 0
    for file, name in ((prepared, "a"), (toys / "train.txt", "b")):
        assert run("train", file, "--loss", "hinge", "-o", tmp_path / name).code == 0
    shown = [run("inspect", tmp_path / name).out.splitlines()[1:] for name in "ab"]
    assert shown[0] == shown[1]


@pytest.mark.parametrize("structure", ["tree", "graph"])
@pytest.mark.parametrize("kind", ["crf", "perceptron", "max-margin"])
def test_tuning_of_trees_and_graphs(run, trees, graphs, tmp_path, structure, kind):
    file, form = (trees, "conllu") if structure == "tree" else (graphs, "graphs")
    small = ["--piece-size", "2.5,whole", "--folds", "2", "--max-passes", "3"]
    small += [] if kind == "perceptron" else ["--l2", "0.1,1"]
    options = ["--format", form, "--structure", structure, "--model", kind, *small]
    result = run("tune", file, *options, "-o", tmp_path / "m")
    assert result.code == 0, result.err
    assert result.out.splitlines()[-1].startswith("best: ")
    model = load_model(tmp_path / "m")
    assert (model.structure, model.kind, model.max_passes) == (structure, kind, 3)
    assert run("tag", tmp_path / "m", file).code == 0


def test_tuning_needs_edges(fails, toys):
    message = fails("tune", toys / "train.txt", "--structure", "tree")
    assert "has no edges, which --structure tree needs" in message


def test_features_of_edges(run, tmp_path):
    text = GRAPHS.replace("1 2 above", "1 2 above | far:2.5 steep").replace("beside", "| far:-1")
    (tmp_path / "graphs.txt").write_text(text * 3)
    model, graphs = tmp_path / "graph.trellis", tmp_path / "graphs.txt"
    trained = run(
        "train", graphs, "--format", "graphs", "--columns", "thing,colour,label", "--structure",
        "graph", "--features", "thing", "--group-lasso", 0.1, "-o", model,
    )  # fmt: skip
    assert trained.code == 0, trained.err
    assert load_model(model).edge_encoder_.names([0, 1]) == ["far", "steep"]
    tagged = run("tag", model, graphs)
    assert tagged.code == 0, tagged.err
    assert "@edge 1 2 above | far:2.5 steep" in tagged.out
    shown = run("inspect", model, "--top", 3)
    assert "of edges    2" in shown.out
    assert "→" in shown.out.split("strongest edge features")[1]
    bare = tmp_path / "bare.txt"
    bare.write_text(GRAPHS)
    refused = run("tag", model, bare)
    assert refused.code != 0
    assert "the model has features of edges, but these edges have none" in refused.err[-1]


def test_templates_along_edges(run, trees, tmp_path):
    model, file, prepared = tmp_path / "tree.trellis", tmp_path / "features", tmp_path / "prepared"
    file.write_text("form\nform[parent]\nany(children, form & type)\n")
    how = ("--format", "conllu", "--features", f"@{file}")
    result = run("train", trees, *how, "--structure", "tree", "-o", model)
    assert result.code == 0, result.err
    assert run("tag", model, trees).out == CONLLU
    shown = run("inspect", model, "--top", 20).out
    assert "form[parent]=chase" in shown
    assert "any(children, form=cats & type=nsubj)" in shown
    assert run("prepare", trees, *how, "-o", prepared).code == 0
    again = tmp_path / "again.trellis"
    assert run("train", prepared, "--structure", "tree", "-o", again).code == 0
    assert again.read_bytes() == model.read_bytes()
    chain = run("train", trees, "--format", "conllu", "--features", "form[parent]", "-o", again)
    assert chain.code == 0, chain.err  # the file has heads


def test_default_of_prepared_trees(run, trees, tmp_path):
    models = [tmp_path / "a.trellis", tmp_path / "b.trellis"]
    prepared = tmp_path / "prepared"
    how = ("--format", "conllu", "--label", "deprel")
    assert run("train", trees, *how, "--structure", "tree", "-o", models[0]).code == 0
    made = run("prepare", trees, *how, "--structure", "tree", "-o", prepared)
    assert made.code == 0, made.err
    assert run("train", prepared, "--structure", "tree", "-o", models[1]).code == 0
    assert models[0].read_bytes() == models[1].read_bytes()
    assert "any(parents, lower(form))" in load_model(models[0]).encoder_.templates.text()
