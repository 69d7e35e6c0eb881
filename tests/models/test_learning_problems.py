"""Learning problems of all models: what they share, and the models that weights make of them."""

from __future__ import annotations

import numpy as np
import pytest

from trellis import (
    ChainCRF,
    ChainPerceptron,
    DataError,
    GraphCRF,
    GraphPerceptron,
    MaxMargin,
    TreeCRF,
    TreePerceptron,
    load_model,
)
from trellis.problems import LabelProblem

MODELS = [
    (ChainCRF, {}),
    (ChainPerceptron, {}),
    (TreeCRF, {}),
    (TreePerceptron, {}),
    (GraphCRF, {"pieces": "graph"}),
    (GraphPerceptron, {}),
    (MaxMargin, {}),
    (MaxMargin, {"structure": "tree"}),
    (MaxMargin, {"structure": "graph"}),
]
PLAIN = [["a", "b", "c", "a"], ["c", "a"]]
EDGES = {"tree": [[(0, 1), (2, 1), (1, 3)], [(0, 1)]],
         "graph": [[(0, 1), (1, 2), (2, 0), (2, 3)], [(0, 1)]]}  # fmt: skip
LABELS = [["P", None, {"P", "Q"}, "Q"], [None, None]]


def samples(model):
    edges = EDGES.get(model.structure)
    return PLAIN if edges is None else list(zip(PLAIN, edges, strict=True))


@pytest.mark.parametrize("rich", [False, True, "both"])
@pytest.mark.parametrize(("kind", "options"), MODELS)
def test_a_problem_scores_as_the_model_of_its_weights(kind, options, rich, tmp_path):
    model = kind("word", rich_edges=rich, **options)
    X = samples(model)
    with pytest.raises(DataError, match="labels are of type int; expected a list"):
        model.learning_problems({"some": (X, LABELS)}, labels=3)
    problems = model.learning_problems({"some": (X, LABELS), "more": X}, labels=["R"])
    problem = problems["some"]
    assert all(isinstance(p, LabelProblem) for p in problems.values())
    assert {p.classes for p in problems.values()} == {("P", "Q", "R")}
    assert {p.n_weights for p in problems.values()} == {problem.n_weights}
    assert problem.is_rich == bool(rich)
    assert problem.annotated.tolist() == [True, False]
    assert not problems["more"].annotated.any()
    assert not hasattr(model, "classes_")  # the model itself has learned nothing
    w = np.random.default_rng(0).normal(size=problem.n_weights)
    fitted = model.with_weights(problem, w)
    assert type(fitted) is kind and fitted.get_params() == model.get_params()
    found = problem.maxima(w, "all")
    names = [problem.classes[j] for j in found.labels]
    assert names == [label for labels in fitted.predict(X) for label in labels]
    decoded = fitted.decode(X)
    assert [d.score for d in decoded] == pytest.approx(found.values.tolist(), rel=1e-4)
    sure = problem.maxima(w, "compatible")
    assert [d.score for d in fitted.decode(X, constraints=LABELS)] == pytest.approx(
        sure.values.tolist(), rel=1e-4
    )
    fitted.save(tmp_path / "m")
    assert load_model(tmp_path / "m").predict(X) == fitted.predict(X)


@pytest.mark.parametrize(("kind", "options"), MODELS)
def test_weights_of_another_problem_are_refused(kind, options):
    model = kind("word", **options)
    problem = model.learning_problems({"": (samples(model), LABELS)})[""]
    with pytest.raises(DataError, match=r"has \d+ weights, but w has the shape \(1,\)"):
        model.with_weights(problem, np.zeros(1))
    made = LabelProblem(problem.encoded, problem.labels, problem.n_features)
    with pytest.raises(DataError, match="one of those that learning_problems made"):
        model.with_weights(made, np.zeros(made.n_weights))


def test_pairs_of_many_labels_are_not_known_beforehand():
    many = [f"L{i}" for i in range(9)]
    with pytest.raises(DataError, match="rich edges of more than 8 labels know the pairs"):
        ChainCRF("word", rich_edges=True).learning_problems({"": (PLAIN, LABELS)}, labels=many)
    model = ChainCRF("word", rich_edges=True, edge_pairs="all")
    problem = model.learning_problems({"": (PLAIN, LABELS)}, labels=many)[""]
    assert problem.rich.values.size == 3 * 11**2
