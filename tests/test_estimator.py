"""Estimators: what a declaration of parameters makes, and scikit-learn's manners."""

from __future__ import annotations

import copy
import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

from trellis.domains import flag, has, nothing, number, one_of, text, whole
from trellis.errors import DataError, ParameterError
from trellis.estimator import (
    Estimator,
    changed,
    current_names,
    fitted,
    fixed,
    moved,
    old_arguments,
    parameter,
    parameters_of,
    renamed,
)


class Seeded(Estimator):
    random_state: int | None = parameter(nothing | whole(0), "Seed.", default=None, option="--seed")


class Penalised(Estimator):
    l2: float = parameter(number(at_least=0), "Factor of the squared norm.", default=1.0)
    l1: float = parameter(number(at_least=0), "Factor of the norm.", default=0.0)

    def _check_together(self) -> None:
        super()._check_together()
        if self.l1 and self.l2:
            raise ParameterError("l1", self.l1, "0 if l2 is positive")


class Shrunk(Penalised, Seeded):
    """A regressor.

    It shrinks what another one predicts.

    Attributes
    ----------
    model_ : the fitted regressor

    Examples
    --------
    >>> Shrunk().l2
    1.0
    """

    base: object = parameter(nothing | has("fit", "predict"), "A regressor; None: ridge "
                             "regression, which is good enough for a start and for most ends.",
                             default=None, kw_only=False)  # fmt: skip
    shape: str = parameter(one_of("flat", "steep"), "Shape.", default="flat", kw_only=False)
    l1 = changed(help="Seldom needed.", default=0)
    random_state = changed(default=3)
    model_: object = fitted()
    lam = renamed("l2")
    inverse = renamed("l2", lambda value: 1 / value)

    def fit(self, X, y):
        self._check_parameters()
        self.model_ = clone(Ridge() if self.base is None else self.base).fit(X, y)
        return self

    def predict(self, X):
        self._check_fitted()
        return self.model_.predict(X) / (1 + self.l2)

    def score(self, X, y):
        return -float(np.mean((self.predict(X) - y) ** 2))

    def __sklearn_is_fitted__(self):
        return hasattr(self, "model_")


class Plain(Shrunk):
    """No more seeds."""

    random_state: int | None = fixed(7)


class Wrapper(Estimator):
    model: object = parameter(has("fit"), "Required.", kw_only=False)


X, Y = np.arange(12.0)[:, None], np.arange(12.0)


# ------------------------------------------------------------------------- the constructor


def test_the_signature_is_true():
    assert str(inspect.signature(Shrunk)) == (
        "(base=None, shape='flat', *, l2=1.0, l1=0, random_state=3)"
    )
    assert str(inspect.signature(Plain)) == "(base=None, shape='flat', *, l2=1.0, l1=0)"
    assert str(inspect.signature(Wrapper)) == "(model)"
    assert Shrunk.__init__.__qualname__ == "Shrunk.__init__"


def test_values_are_stored_unchanged_and_unchecked():
    base, l2 = Ridge(), np.float32(-1)
    model = Shrunk(base, l2=l2)
    assert model.base is base and model.l2 is l2 and model.shape == "flat"
    assert not hasattr(Shrunk, "l2") and not hasattr(model, "model_")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Shrunk(nope=1), r"Shrunk\(\): got an unexpected keyword argument 'nope'"),
        (lambda: Shrunk(None, "flat", 1.0), r"Shrunk\(\): too many positional arguments"),
        (lambda: Plain(random_state=1), r"Plain\(\): got an unexpected keyword"),
        (lambda: Wrapper(), r"Wrapper\(\): missing a required argument: 'model'"),
    ],
)
def test_wrong_calls(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_a_constructor_written_by_hand_is_left_alone():
    class Own(Penalised):
        def __init__(self, name, *, l2=2.0):
            self.name, self.l2 = name, l2

    assert list(parameters_of(Own)) == ["name", "l2"]
    assert parameters_of(Own)["l2"] is parameters_of(Penalised)["l2"]
    assert Own("a").get_params() == {"name": "a", "l2": 2.0}
    assert repr(Own("a")) == "Own(name='a', l2=2.0)"


# ------------------------------------------------------------------------- inheritance


def test_declarations_are_inherited_changed_and_dropped():
    known = parameters_of(Shrunk)
    assert list(known) == ["base", "shape", "l2", "l1", "random_state"]
    assert known["l2"] is parameters_of(Penalised)["l2"]
    assert (known["l1"].default, known["l1"].help) == (0, "Seldom needed.")
    assert parameters_of(Penalised)["l1"].help == "Factor of the norm."
    assert Shrunk().random_state == 3 and Seeded().random_state is None
    assert known["random_state"].option == "--seed" and known["l1"].option == "--l1"
    assert "random_state" not in parameters_of(Plain)
    assert Plain().random_state == 7 and "random_state" not in Plain().get_params()


def test_a_narrower_domain():
    class Narrow(Shrunk):
        shape = changed(domain=one_of("flat"))

    Narrow()._check_parameters()
    with pytest.raises(ParameterError, match="shape must be 'flat', got 'steep'"):
        Narrow(shape="steep")._check_parameters()


# ------------------------------------------------------------------------- checks


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"l2": -1}, "l2 must be a number of at least 0, got -1"),
        ({"shape": "round"}, "shape must be 'flat' or 'steep', got 'round'"),
        ({"base": "ridge"}, "base must be None or an object with fit and predict, got 'ridge'"),
        ({"random_state": 0.5}, "random_state must be None or an integer of at least 0, got 0.5"),
        ({"l1": 2}, "l1 must be 0 if l2 is positive, got 2"),
    ],
)
def test_fit_checks_each_parameter_and_then_all_together(params, message):
    with pytest.raises(ParameterError) as caught:
        Shrunk(**params).fit(X, Y)
    assert str(caught.value) == message
    assert isinstance(caught.value, DataError)
    again = pickle.loads(pickle.dumps(caught.value))  # errors travel between processes
    assert str(again) == message and again.parameter == caught.value.parameter


def test_numbers_of_numpy_are_numbers():
    Shrunk(l2=np.float32(2), random_state=np.int64(3)).fit(X, Y)


# ------------------------------------------------------------------------- parameters by name


def test_nested_parameters():
    model = Shrunk(Ridge(alpha=3.0), l2=0.0)
    assert model.get_params(deep=False) == {
        "base": model.base, "shape": "flat", "random_state": 3, "l2": 0.0, "l1": 0
    }  # fmt: skip
    assert model.get_params()["base__alpha"] == 3.0
    assert model.set_params(base__alpha=2.0, l2=5) is model
    assert model.base.alpha == 2.0 and model.l2 == 5
    model.set_params(base__alpha=9.0, base=Ridge(tol=0.5))  # the new base, whatever the order
    assert (model.base.alpha, model.base.tol) == (9.0, 0.5)
    deep = Wrapper(model).set_params(model__base__alpha=4.0)
    assert deep.get_params()["model__base__alpha"] == 4.0
    assert "model__random_state" in deep.get_params()
    assert Wrapper(Ridge).get_params() == {"model": Ridge}  # a class has no values


def test_unknown_parameters():
    with pytest.raises(
        DataError, match=r"Shrunk has no parameter 'nope'; it has base, shape, l2, "
    ):
        Shrunk().set_params(nope=1)
    with pytest.raises(DataError, match=r"base=None has no parameters to set \(base__alpha\)"):
        Shrunk().set_params(base__alpha=1)


def test_clone_pickle_and_search():
    model = Shrunk(Ridge(alpha=3.0), l2=0.0)
    twin = clone(model)
    assert twin.base is not model.base and twin.get_params()["base__alpha"] == 3.0
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert repr(other) == repr(model)
    grid = {"base__alpha": [1e-6, 1e6], "l2": [0.0, 5.0]}
    search = GridSearchCV(model, grid, cv=3, error_score="raise").fit(X, Y)
    assert search.best_params_ == {"base__alpha": 1e-6, "l2": 0.0}
    assert model.base.alpha == 3.0


def test_not_fitted():
    with pytest.raises(NotFittedError, match="this Shrunk is not fitted yet; call fit before"):
        Shrunk().predict(X)


# ------------------------------------------------------------------------- old names


def test_old_names_work_and_warn():
    with pytest.warns(FutureWarning, match="Shrunk: lam is now called l2; the old way goes") as w:
        assert Shrunk(lam=2.0).l2 == 2.0
    assert w[0].filename == __file__
    with pytest.warns(FutureWarning, match="inverse is now called l2") as w:
        assert Shrunk().set_params(inverse=4.0).l2 == 0.25
    assert w[0].filename == __file__
    with pytest.raises(TypeError, match="Shrunk: lam is the old name of l2; give one"):
        Shrunk(lam=1.0, l2=1.0)


@pytest.mark.filterwarnings("error")
def test_old_names_in_files():
    assert current_names(Shrunk, {"lam": 3, "shape": "flat"}) == {"l2": 3, "shape": "flat"}
    assert current_names(Shrunk, {"inverse": 4, "nope": 1}) == {"l2": 0.25, "nope": 1}


def test_a_parameter_that_fit_takes_now():
    class Kept(Estimator):
        seed: int = parameter(whole(0), "Seed.", default=0)
        checkpoint = moved()

    assert Kept().checkpoint is None and list(Kept().get_params()) == ["seed"]
    with pytest.warns(FutureWarning, match="Kept: checkpoint is now an argument of fit") as w:
        assert Kept(checkpoint="file").checkpoint == "file"
    assert w[0].filename == __file__


def test_old_arguments():
    @old_arguments("graph", "coords", k="n_neighbors")
    def fit(X, *, graph=None, coords=None, n_neighbors=5):
        return X, graph, coords, n_neighbors

    assert fit(1, graph=2, n_neighbors=3) == (1, 2, None, 3)
    assert list(inspect.signature(fit).parameters) == ["X", "graph", "coords", "n_neighbors"]
    with pytest.warns(FutureWarning, match="fit: give graph= by name; the old way goes") as w:
        assert fit(1, 2) == (1, 2, None, 5)
    assert w[0].filename == __file__
    with pytest.warns(FutureWarning, match="fit: k is now called n_neighbors"):
        assert fit(1, k=7) == (1, None, None, 7)
    with pytest.warns(FutureWarning), pytest.raises(TypeError):
        old_arguments(k="n")(lambda *, n: n)(1, k=2)


def test_what_is_made_after_the_parameters():
    class Ready(Seeded):
        def __post_init__(self):
            self._check_parameters()
            self.double = 2 * (self.random_state or 0)

    assert Ready(random_state=2).double == 4
    with pytest.raises(ParameterError, match="random_state must be None or an integer"):
        Ready(random_state=-1)


# ------------------------------------------------------------------------- what is shown


def test_repr_shows_what_differs():
    assert repr(Shrunk()) == "Shrunk()"
    assert repr(Shrunk(Ridge(), l2=1.0, l1=0.5)) == "Shrunk(base=Ridge(), l1=0.5)"


def test_html_is_escaped_and_shows_what_was_learned():
    class Shown(Estimator):
        name: str = parameter(text, 'A <name> "quoted".', default="x")
        fast: bool = parameter(flag, "Fast.", default=True)

    model = Shown(name="<script>alert('&')</script>")
    model.weights_ = np.zeros((2, 3))
    model.note_ = "<b>"
    model.long_ = ["x" * 100]
    model._hidden_ = "secret"
    shown = model._repr_html_()
    assert "<script" not in shown and "&lt;script&gt;alert(&#x27;&amp;&#x27;)" in shown
    assert 'title="A &lt;name&gt; &quot;quoted&quot;."' in shown
    first, rest = shown.split("<details>")  # what differs from its default comes first
    assert "<td>name</td>" in first and "<td>fast</td>" not in first
    assert "<td>name</td>" in rest and "<td>fast</td><td>True</td>" in rest
    assert "<td>weights_</td><td>ndarray float64 (2, 3)</td>" in shown
    assert "&#x27;&lt;b&gt;&#x27;" in shown and "<td>list</td>" in shown
    assert "secret" not in shown
    assert "learned" not in Shown()._repr_html_()


def test_the_docstring_has_the_parameters():
    text = Shrunk.__doc__
    assert text.startswith("A regressor.\n\nIt shrinks what another one predicts.\n\nParameters\n-")
    assert (
        "base : None or an object with fit and predict; default None\n"
        "    A regressor; None: ridge regression, which is good enough for a start and for most "
        "ends.\n"
    ) in text
    assert "l1 : a number of at least 0; default 0\n    Seldom needed.\nrandom_state : None" in text
    assert "; default 3\n    Seed.\n\nAttributes\n---" in text
    assert max(map(len, text.splitlines())) <= 100
    assert Plain.__doc__.startswith("No more seeds.\n\nParameters\n")
    assert "random_state" not in Plain.__doc__
    assert Penalised.__doc__ is None or "Parameters" not in Penalised.__doc__
    assert inspect.getdoc(Wrapper) == inspect.getdoc(Estimator)
