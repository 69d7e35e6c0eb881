"""Files of tree, graph and max-margin models: golden ones load for ever, damaged ones do not.

The golden files were made once by the code in ``RECIPES``; they are never made again.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_graph_models import SQUARE, toy_squares, toy_trees

from trellis import CorruptModelError, GraphCRF, MaxMargin, TreeCRF, load_model
from trellis.files.container import read_container, write_container

FOLDER = Path(__file__).parents[1] / "golden"
X, Y, EDGES, TYPES = toy_trees(12)
SQUARES = toy_squares(8)
OWN = [[{"pull": 2.0 if k == "same" else -1.5, k: True} for k in kinds] for kinds in TYPES]

RECIPES = {
    "tree_crf_v1": lambda: TreeCRF(random_state=0, rich_edges="both").fit(
        X, Y, edges=EDGES, edge_types=TYPES
    ),
    "graph_crf_v1": lambda: GraphCRF(random_state=0).fit(*SQUARES[:2], edges=SQUARES[2]),
    "max_margin_v1": lambda: MaxMargin(structure="tree", random_state=0).fit(X, Y, edges=EDGES),
    "tree_crf_v3_edge_features": lambda: TreeCRF(random_state=0, edge_pairs="observed").fit(
        X, Y, edges=EDGES, edge_features=OWN
    ),
}
ASKED = {
    "tree_crf_v1": ([X[0]], {"edges": EDGES[:1], "edge_types": TYPES[:1]}),
    "graph_crf_v1": ([[["A"], ["?"], ["?"], ["A"]]], {"edges": [SQUARE]}),
    "max_margin_v1": ([X[0]], {"edges": EDGES[:1]}),
    "tree_crf_v3_edge_features": ([X[0]], {"edges": EDGES[:1], "edge_features": OWN[:1]}),
}
ANSWERS = {
    "tree_crf_v1": [["A", "A", "A", "B", "B", "B", "B"]],
    "graph_crf_v1": [["A", "A", "A", "A"]],
    "max_margin_v1": [["B", "B", "B", "B", "B", "B", "B"]],
    "tree_crf_v3_edge_features": [["A", "A", "A", "B", "B", "B", "B"]],
}


@pytest.mark.parametrize("name", RECIPES)
def test_golden_files_load_for_ever(name):
    model = load_model(FOLDER / f"{name}.trellis")
    samples, edges = ASKED[name]
    assert model.predict(samples, **edges) == ANSWERS[name]
    assert type(model) is type(RECIPES[name]())


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("tree_crf_v1", {"transitions": np.zeros((3, 2, 2), np.float32)}, "transitions"),
        ("tree_crf_v1", {"edge_types.offsets": np.zeros(1, np.int64)}, "string table"),
        ("graph_crf_v1", {"edge_share": 2.0}, "share of edges must lie between 0 and 1"),
        ("graph_crf_v1", {"edge_share": "much"}, "edge_share"),
        ("max_margin_v1", {"transitions": np.zeros((2, 2), np.float32)}, "transitions"),
    ],
)
def test_what_does_not_fit_is_refused(name, change, message, tmp_path):
    header, arrays = read_container(FOLDER / f"{name}.trellis")
    for key, value in change.items():
        (arrays if isinstance(value, np.ndarray) else header)[key] = value
    write_container(tmp_path / "m.trellis", header, arrays)
    with pytest.raises(CorruptModelError, match=message):
        load_model(tmp_path / "m.trellis")


def test_types_of_edges_must_be_sorted(tmp_path):
    header, arrays = read_container(FOLDER / "tree_crf_v1.trellis")
    arrays["edge_types.blob"] = arrays["edge_types.blob"][::-1].copy()
    write_container(tmp_path / "m.trellis", header, arrays)
    with pytest.raises(CorruptModelError):
        load_model(tmp_path / "m.trellis")
