"""Options of a command from the declared parameters of estimators."""

from __future__ import annotations

import argparse

import pytest

from trellis.cli.parameters import (
    add_parameters,
    errors_of_options,
    given_parameters,
    new_model,
)
from trellis.domains import anything, flag, nothing, number, one_of, sequence_of, text, whole
from trellis.errors import DataError, ParameterError, ParametersError
from trellis.estimator import Estimator, changed, parameter


class Slow(Estimator):
    l2: float = parameter(
        number(at_least=0),
        "Factor of ‖w‖² (:mod:`x.y`), in 90 % of cases. More.",
        default=1.0,
    )
    max_passes: object = parameter(one_of("auto") | whole(1), "CRFs need many.", default="auto")
    names: object = parameter(
        nothing | sequence_of(text, "a list of names"), "Names; see ``X``.", default=None
    )
    solver: str = parameter(one_of("sgd", "lbfgs"), "Solver.", default="sgd")
    fast: bool | None = parameter(nothing | flag, "Whether to hurry.", default=None)
    n_jobs: int | None = parameter(
        nothing | whole(1) | one_of(-1), "Threads.", default=None, option="--jobs"
    )
    model: object = parameter(anything, "An object.", default=None)
    edges: object = parameter(flag | one_of("near", "both"), "Edges.", default=False)
    directed: object = parameter(one_of("auto") | flag, "Direction.", default="auto")

    def _check_together(self):
        if self.fast and self.l2 > 5:
            raise ParameterError("l2", self.l2, "at most 5 to be fast")
        if self.solver == "lbfgs" and self.max_passes == 13:
            raise ParameterError("unknown", 13, "lucky")
        if self.edges and self.directed is False:
            raise ParametersError(
                "{edges} and {directed} are for {solver}",
                edges=self.edges, directed=False, solver="lbfgs",
            )  # fmt: skip


class Quick(Slow):
    l2 = changed(default=0.5)
    solver = changed(domain=one_of("sgd", "planes"), help="Quick solver.")
    extra: int = parameter(whole(0), "Extra.", default=0)


def parsed(*arguments, classes=(Slow,), names=None):
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_parameters(parser, classes, names)
    return parser.parse_args(arguments)


def help_of(*classes, **more):
    parser = argparse.ArgumentParser(prog="p", formatter_class=argparse.HelpFormatter)
    add_parameters(parser, classes, **more)
    return " ".join(parser.format_help().split())


def test_values_are_read_as_the_domain_says():
    args = parsed("--l2", "2", "--max-passes", "7", "--jobs", "-1", "--no-fast", "--names", "a,b")
    given = given_parameters(args, Slow)
    assert given == {"l2": 2.0, "max_passes": 7, "n_jobs": -1, "fast": False, "names": ["a", "b"]}
    assert given_parameters(parsed(), Slow) == {}
    assert given_parameters(parsed("--max-passes", "auto"), Slow) == {"max_passes": "auto"}


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        (["--edges"], {"edges": True}),
        (["--edges", "both"], {"edges": "both"}),
        (["--directed"], {"directed": True}),
        (["--no-directed"], {"directed": False}),
    ],
)
def test_truth_values_beside_words(arguments, given):
    assert given_parameters(parsed(*arguments), Slow) == given


def test_several_classes_take_the_values_of_each():
    args = parsed("--solver", "planes", classes=(Slow, Quick))
    assert given_parameters(args, Quick) == {"solver": "planes"}
    with pytest.raises(DataError, match="--solver must be sgd or lbfgs, got planes"):
        given_parameters(args, Slow)


def test_only_what_a_command_line_can_say_has_an_option():
    assert "model" not in vars(parsed())
    assert set(vars(parsed(names=["l2", "solver"]))) == {"l2", "solver"}


def test_help_is_plain_and_names_the_default():
    shown = help_of(Slow)
    assert "--l2 X factor of |w|^2, in 90 % of cases (default: 1)" in shown
    assert "--max-passes auto|K CRFs need many (default: auto)" in shown
    assert "--names A,B,... names; see X --solver {sgd,lbfgs} solver (default: sgd)" in shown
    assert "--fast, --no-fast whether to hurry" in shown and "--jobs K|-1 threads" in shown
    assert "--edges [near|both] edges (default: no)" in shown
    assert "--directed, --no-directed direction (default: auto)" in shown
    assert shown.isascii()


def test_help_of_several_classes():
    shown = help_of(Slow, Quick, names=["l2", "solver", "extra"], defaults={"solver": "the best"})
    assert "(default: 1 for Slow, 0.5 for Quick)" in shown
    assert "--solver {sgd,lbfgs,planes} Slow: solver. Quick: quick solver (default: the be" in shown
    assert "--extra K extra (default: 0)" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--l2", "much"], "argument --l2: must be a number of at least 0, got 'much'"),
        (["--solver", "adam"], "argument --solver: must be sgd or lbfgs, got 'adam'"),
        (["--max-passes", "1.5"], "argument --max-passes: must be auto or a positive integer"),
    ],
)
def test_what_cannot_be_read(arguments, message):
    with pytest.raises(argparse.ArgumentError, match=message):
        parsed(*arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--l2", "-1"], "--l2 must be a number of at least 0, got -1"),
        (["--jobs", "0"], "--jobs must be a positive integer or -1, got 0"),
        (["--l2", "9", "--fast"], "--l2 must be at most 5 to be fast, got 9"),
        (["--edges", "--no-directed"], "--edges and --no-directed are for --solver lbfgs"),
        (["--edges", "both", "--no-directed"], "--edges both and --no-directed are for --solver l"),
    ],
)
def test_what_cannot_be(arguments, message):
    with pytest.raises(DataError) as caught:
        new_model(parsed(*arguments), Slow)
    assert str(caught.value).startswith(message)


def test_a_model_of_options():
    model = new_model(parsed("--l2", "2"), Slow, l2=7.0, solver="lbfgs")
    assert repr(model) == "Slow(l2=2.0, solver='lbfgs')"


def test_an_option_of_another_class():
    args = parsed("--extra", "3", classes=(Slow, Quick))
    assert given_parameters(args, Quick) == {"extra": 3}
    with pytest.raises(DataError, match="--extra is not for Slow"):
        given_parameters(args, Slow, [Slow, Quick])


def test_other_errors_pass():
    with pytest.raises(ParameterError, match="unknown must be lucky, got 13"):
        new_model(parsed("--max-passes", "13"), Slow, solver="lbfgs")
    with pytest.raises(DataError, match=r"^plain$"), errors_of_options(Slow):
        raise DataError("plain")
