"""Errors carry fields, from which each message is made, and survive the way between processes."""

from __future__ import annotations

import pickle

import pytest

from trellis import ChainCRF, MaxMargin, load_model
from trellis.corpus.schemes import get_scheme
from trellis.errors import (
    CheckpointError,
    ColumnError,
    CorruptModelError,
    InfeasibleError,
    ParameterError,
    ParametersError,
)
from trellis.features import Templates
from trellis.models import Checkpoint

X, Y = [["a", "b"], ["b", "a"]], [["B", "I"], ["B", "O"]]


@pytest.mark.parametrize(
    "error",
    [
        ParameterError("l2", -1, "a number of at least 0"),
        ParametersError("{states} is for {solver}", states="observed", solver="lbfgs"),
        CheckpointError("other run", "run.checkpoint"),
        InfeasibleError("has no allowed labelling", sample=3),
    ],
)
def test_errors_come_back_from_other_processes(error):
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_parameters_that_do_not_go_together_are_named():
    with pytest.raises(ParametersError) as caught:
        ChainCRF(states="observed").fit(X, Y)
    assert caught.value.values == {"states": "observed", "solver": "lbfgs"}


def test_a_column_that_is_missing():
    with pytest.raises(
        ColumnError, match=r"^template 'pos' needs the column 'pos'; the corpus has w"
    ):
        Templates.parse("pos").resolved(["word"])


def test_a_damaged_file_is_named_once(tmp_path):
    file = tmp_path / "m"
    file.write_bytes(b"no model")
    with pytest.raises(CorruptModelError) as caught:
        load_model(file)
    assert caught.value.path == str(file)
    assert str(caught.value).count(str(file)) == 1


def test_solvers_whose_runs_cannot_be_taken_up(tmp_path):
    svm, file = MaxMargin("word", solver="bundle", random_state=0), tmp_path / "run"
    with pytest.raises(CheckpointError, match="a run of this solver cannot be taken up") as caught:
        svm.fit(X, Y, checkpoint=file)
    assert (caught.value.code, caught.value.path) == ("solver", str(file))
    assert svm.fit(X, Y, checkpoint=Checkpoint(file, required=False)).predict(X) == Y
    assert not file.exists()
    with pytest.raises(CheckpointError, match="a run of this solver cannot be taken up"):
        svm.fit(X, Y, checkpoint=Checkpoint(file, required=False), resume=True)


@pytest.mark.parametrize("scheme", ["BIO", "bio", "iob2", get_scheme("BIO")])
def test_schemes_have_several_names(scheme):
    assert ChainCRF("word", scheme=scheme, random_state=0).fit(X, Y).predict(X) == Y
