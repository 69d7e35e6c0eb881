"""What is wrong with a model file is said: one change of a good file at a time."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuzz.every_model import AWAKE, EVERY, FILM, GOLD
from trellis import CorruptModelError, DataError, load_model
from trellis.cheap import TransferLearner
from trellis.experts import WeightedMajority
from trellis.files.container import read_container, write_container
from trellis.tracking import EventFeature, HandSet, TrackingModel

GOLDEN = Path(__file__).parents[1] / "golden"
Change = Callable[[dict[str, Any], dict[str, Any]], Any]


@cache
def stored(name: str, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    EVERY[name]()[0].save(folder / "good")
    return read_container(folder / "good")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("good")


def refusal(name: str, change: Change, folder: Path, path: Path) -> str:
    header, arrays = stored(name, folder)
    header, arrays = copy.deepcopy(header), {n: np.array(a) for n, a in arrays.items()}
    change(header, arrays)
    write_container(path / "m", header, arrays)
    with pytest.raises(CorruptModelError) as caught:
        load_model(path / "m")
    message = str(caught.value)
    assert message.startswith(f"{path / 'm'}: ")
    return message


def state(**entries: Any) -> Change:
    return lambda header, arrays: header["state"].update(entries)


def without(entry: str) -> Change:
    return lambda header, arrays: header["state"].pop(entry)


def parameter(**entries: Any) -> Change:
    return lambda header, arrays: header["parameters"].update(entries)


def array(name: str, change: Callable[[Any], Any]) -> Change:
    return lambda header, arrays: arrays.update({name: change(arrays[name])})


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        # the registry and what all estimators share
        ("Rover", lambda h, a: h.update(estimator="Nothing"), "it holds a 'Nothing', which this"),
        ("Rover", lambda h, a: h.update(estimator=3), "'estimator' is a int, str expected"),
        ("Rover", lambda h, a: h.update(estimator="BestExpert"), "parameters are not those of"),
        ("Rover", parameter(evil=1), "parameters are not those of Rover"),
        ("Rover", lambda h, a: h.pop("state"), "header entry 'state' is missing"),
        ("Rover", lambda h, a: h.pop("parameters"), "header entry 'parameters' is missing"),
        # values
        ("Rover", state(alpha={}), "a value of the header is of no known kind"),
        ("Rover", state(alpha={"tuple": [], "dict": []}), "is of no known kind"),
        ("Rover", state(alpha={"array": "no"}), "array 'no' is missing"),
        ("Rover", state(alpha={"dict": [[1]]}), "the entries of a dict are not pairs"),
        ("Rover", state(alpha={"dict": [[1, 2], [1, 3]]}), "are not pairs with distinct keys"),
        ("Rover", state(alpha={"float": "1"}), "'float' is '1', one of"),
        ("Rover", state(alpha={"float": "nan"}), "'alpha' is nan, not a finite number"),
        ("Rover", state(alpha={"number": ["object", 1]}), "a number is of the unknown type"),
        ("Rover", state(alpha={"number": ["float64", "1"]}), "a number is of the unknown type"),
        ("Rover", state(alpha={"array": "precisions_", "order": "C"}), "'order' is 'C', one of"),
        ("Rover", state(alpha={"objects": [1], "shape": [-1]}), "a shape has a negative length"),
        ("Rover", state(alpha={"value": "Scheme", "fields": {}}), "'value' is 'Scheme', one of"),
        ("Rover", state(alpha={"value": "KNN", "fields": {"a": 1}}), "the fields are not those of"),
        ("Rover", state(alpha={"value": "KNN", "fields": {"n_neighbors": 0}}), "n_neighbors must"),
        ("Rover", state(alpha={"random_state": "errors_", "rest": [1, 0, 0.0]}), "has dtype"),
        (
            "GLACER, classes",
            lambda h, a: h["state"]["classes"].update(width=10**9),
            "an array of text is wider than its text",
        ),
        (
            "GLACER, classes",
            lambda h, a: h["state"]["classes"].update(width=1),
            "'width' is 1, outside",
        ),
        # ensembles
        ("Rover", state(experts=["a", "a", "b"]), "experts must be distinct names, at least one"),
        ("Rover", state(experts=[]), "experts must be distinct names, at least one"),
        ("Rover", state(labels=["a", "a"]), "labels must be distinct names, at least one"),
        ("Rover", state(label_counts={"dict": []}), "labels must be distinct names"),
        ("Rover", state(label_counts={"dict": [["a", -1]]}), "the counts of labels and samples"),
        ("Rover", array("n_samples_", np.zeros_like), "the counts of labels and samples"),
        ("Rover", array("errors_", np.negative), "errors of experts lie in"),
        ("Rover", array("n_samples_", lambda n: n * [-1, 1] - [1, 0]), "numbers of samples lie in"),
        ("Rover", state(alpha=1.5), "'alpha' is 1.5, outside"),
        ("BestExpert", array("order_", lambda o: o + 1), "order must hold each of 0 to 2 once"),
        ("MajorityVote", array("order_", np.zeros_like), "order must hold each of 0 to 2 once"),
        ("ForwardStepwise", state(path=["nobody"]), "the path names an expert that there is not"),
        ("ForwardStepwise", array("weights_", np.negative), "votes of experts lie in"),
        ("ForwardStepwise", array("order_", np.zeros_like), "order must hold each of 0 to"),
        ("Rover", array("precisions_", np.negative), "precisions lie in"),
        ("Rover", array("means_", lambda means: means + 1), "mean precisions lie in"),
        ("ESPBoost", array("weights_", lambda w: -w - 1), "votes of experts lie in"),
        ("ESPBoost", array("visits_", np.negative), "visits of contexts lie in"),
        ("ESPBoost", state(tie="auto"), "'tie' is 'auto', one of"),
        ("WeightedMajority", state(contexts=[0, 2, 1]), "the contexts are not those of tie="),
        ("WeightedMajority", state(contexts=[]), "the contexts are not those of tie="),
        ("WeightedMajority", state(tie="expert"), "the contexts are not those of tie='expert'"),
        ("WeightedMajority, by label", state(contexts=["a", "a"]), "the contexts are not those"),
        ("WeightedMajority", array("log_table_", lambda t: t * np.nan), "not the logarithms of"),
        ("WeightedMajority", array("log_table_", lambda t: t + np.inf), "not the logarithms of"),
        ("WeightedMajority", array("log_table_", lambda t: t - np.inf), "not the logarithms of"),
        ("WeightedMajority", array("rounds_", lambda r: r + 100), "rounds lie in"),
        ("WeightedMajority", array("rounds_", lambda r: r[:0]), "no round was chosen"),
        ("WeightedMajority", state(lengths=[3]), "the lengths of samples are not a least and a"),
        ("WeightedMajority", state(lengths=[3, 2]), "the lengths of samples are not a least"),
        (
            "WeightedMajority, automaton",
            array("automaton.expert", lambda e: e + 5),
            "the automaton speaks of",
        ),
        ("ESPBoost, automaton", array("automaton.expert", lambda e: e + 5), "the automaton speaks"),
        ("WeightedMajority, family", array("automaton.expert", lambda e: e + 5), "speaks of"),
        ("WeightedMajority", state(scale="l"), "'scale' is 'l', one of"),
        ("WeightedMajority, by label", state(rates=[0.1]), "the rates of learning are not"),
        ("WeightedMajority, by label", state(rates=[0.0, -1.0]), "the rates of learning are not"),
        ("WeightedMajority, by label", state(strand=9), "'strand' is 9, outside"),
        (
            "WeightedMajority, by label",
            lambda h, a: h["state"]["strands"].pop(),
            "the strands are not those of the rates",
        ),
        (
            "WeightedMajority, by label",
            array("strands_[0][0][2]", lambda n: n - 100),
            "positions where an expert spoke lie in",
        ),
        (
            "WeightedMajority, family",
            array("strands_[0][0][2]", lambda n: n - 100),
            "positions where an expert spoke lie in",
        ),
        (
            "WeightedMajority, by label",
            array("round_losses_", lambda losses: losses / 2 + 0.1),
            "the rounds are not those of the losses",
        ),
        (
            "WeightedMajority, by label",
            lambda h, a: a.update({f"strands_[1][{k}]": np.zeros(99) for k in (2, 3)}),
            "the rounds are not those of the losses",
        ),
        (
            "WeightedMajority, some rounds",
            array("members_[0]", lambda t: t + np.inf),
            "the weights of rounds are not logarithms, one a round",
        ),
        (
            "FollowPerturbedLeader",
            array("learner_[3]", lambda n: n - 100),
            "positions of contexts lie in",
        ),
        (
            "FollowPerturbedLeader",
            array("learner_[4]", lambda n: n - 100),
            "rounds that follow an expert lie in",
        ),
        ("Stacking", parameter(window=10**12), "window must be an integer from 0 to 100"),
        ("Stacking", state(model=3), "the model inside is none, or not fitted"),
        ("Stacking", without("model"), "the model inside is none, or not fitted"),
        (
            "Stacking",
            state(label_counts={"dict": [["B", 1], ["I", 1]]}),
            "the model inside has labels that the experts do not know",
        ),
        ("Consensus", array("reliabilities_", lambda r: r[:0]), "there are no reliabilities"),
        ("Consensus", array("reliabilities_", lambda r: r + 1), "reliabilities lie in"),
        ("Consensus", state(candidates="all"), "'candidates' is 'all', one of"),
        ("Aligned", state(combiner=None), "the combiner inside is none, or not fitted"),
        (
            "Aligned",
            lambda h, a: h["state"]["combiner"].update(fitted=False),
            "the combiner inside is none, or not fitted",
        ),
        # regression
        ("GCRF", state(alpha=0.0), "alpha is 0, or nothing beside beta"),
        ("GCRF", state(beta=1e300), "alpha is 0, or nothing beside beta"),
        ("GCRF", state(alpha=-1.0), "alpha lie in"),
        ("GCRF", state(alpha="x"), "'alpha' is a str, float expected"),
        ("GCRF", state(bases=[]), "there is not one alpha for each base model"),
        ("GCRF", state(bases=[3]), "a model inside is none of scikit-learn"),
        ("GCRF, cv, two graphs", array("alpha_", lambda a: a[:0]), "there is no alpha"),
        ("GCRF, precomputed", parameter(base=None), "there is not one alpha for each base model"),
        ("GCRF, cv, two graphs", array("rho_", lambda r: r - 9), "rho lie in"),
        ("GCRF, cv, two graphs", array("rho_", lambda a: a[:1]), "'rho' has shape"),
        ("GCRF, cv, two graphs", array("alone_", np.negative), "base weights lie in"),
        ("GCRF", state(errors=[1.0]), "there are not two errors"),
        ("GCRF", array("graphs_[1]", np.negative), "factors of graphs lie in"),
        ("GCRF", array("targets_", lambda y: y * np.nan), "no training row has a target"),
        ("GCRF", array("targets_", lambda y: y[1:]), "'out_of_fold' has shape"),
        ("GCRF", array("fitted_", lambda r: r * 1e301), "fitted lie in"),
        ("GCRF", parameter(observed=False), "its graphs are not scaled as the model says"),
        ("GLACER", state(models=[]), "there is not one model for each component"),
        ("GLACER", array("gammas_", lambda g: g + 1e30), "gammas lie in"),
        ("GLACER", array("alphas_", np.zeros_like), "alphas lie in"),
        ("GLACER", array("subsets_", np.negative), "examples of components lie in"),
        ("GLACER, classes", state(classes=["a", "b"]), "a classifier needs two classes"),
        ("TableRegressor", state(rows=3), "the columns of a table are not as they should be"),
        ("TableRegressor", state(model=3), "the model of a table is none of graphs, or not fitted"),
        ("TableRegressor", state(places=[["lat", "lon"], "taxi"]), "metric must be"),
        ("TableRegressor", state(places=[["lat", 3], "haversine"]), "'columns' holds a int"),
        ("TableRegressor", state(places=[]), "the coordinates of a table are not"),
        ("TableRegressor", state(places=[3, "haversine"]), "the coordinates of a table are not"),
        ("TableRegressor", state(fill=3), "the means of a table are not as they should be"),
        ("TableRegressor", array("fill_", lambda f: f[:1]), "has shape"),
        ("TableRegressor", state(seed=-1), "'seed' is -1, outside"),
        ("NetworkLasso", array("coef_", lambda c: c[:0]), "'coords' has shape"),
        ("NetworkLasso", array("coords_", lambda c: c[:, :0]), "no nodes, parameters or coordin"),
        ("NetworkLasso", array("coords_", lambda c: c * np.inf), "a number that is not finite"),
        (
            "NetworkLasso, columns",
            array("coef_", lambda c: c[:, :1]),
            "the parameters of nodes are not those of the features",
        ),
        (
            "NetworkLasso",
            lambda h, a: (
                h["parameters"].update(metric="haversine"),
                a.update({"coords_": a["coords_"][:, :1]}),
            ),
            "haversine distances need two coordinates",
        ),
        # transfer and tracking
        ("TransferLearner", state(domains=["a", "a"]), "there is not one model for each domain"),
        ("TransferLearner", state(models=[1, 2]), "what stands for the model of a domain is none"),
        ("NearestNeighbour", state(gate=0.0), "'gate' is 0.0, outside"),
        ("NearestNeighbour", state(gate={"float": "inf"}), "'gate' is inf, not a finite number"),
        ("HandSet", state(features=[["move", "magic"]]), "it has features that this version"),
        ("HandSet", state(features=[]), "the scale is not that of the features"),
        ("HandSet", state(events=["move"]), "events must be a list with move"),
        ("LocalClassifiers", state(forests=[]), "there is not one classifier for each kind of"),
        ("LocalClassifiers", state(forests=[2.0] * 6), "'share' is 2.0, outside"),
        (
            "TrackingModel",
            lambda h, a: h["parameters"].update(features=[]),
            "parameters are not those of TrackingModel",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(
    name: str, change: Change, message: str, folder: Path, tmp_path: Path
) -> None:
    assert message in refusal(name, change, folder, tmp_path)


@pytest.mark.parametrize("name", ["weighted_majority_v1", "follow_perturbed_leader_v1"])
def test_the_rounds_of_an_ensemble_are_not_in_the_first_files(name: str) -> None:
    loaded = load_model(GOLDEN / f"{name}.trellis")
    with pytest.raises(DataError, match="has not kept the rounds that partial_fit goes on from"):
        loaded.partial_fit(AWAKE, GOLD)
    assert loaded.fit(AWAKE, GOLD).partial_fit(AWAKE, GOLD).predict(AWAKE)


@pytest.mark.parametrize(
    ("part", "entry", "value", "message"),
    [
        ("blocks", "size", 3, "the blocks are not those of the rounds"),
        ("blocks", "size", 2, "the blocks are not those of the rounds"),
        ("blocks", "n_rounds", 13, "the blocks are not those of the rounds"),
        ("learner", "n_rounds", 3, "the rounds are not those of the losses"),
    ],
)
def test_rounds_that_cannot_be(
    part: str, entry: str, value: int, message: str, folder: Path, tmp_path: Path
) -> None:
    def change(header: Any, arrays: Any) -> None:
        for item in header["state"][part]["dict"]:
            if item[0] == entry:
                item[1] = value

    assert message in refusal("WeightedMajority", change, folder, tmp_path)


def test_tables_of_rounds_that_cannot_be(folder: Path, tmp_path: Path) -> None:
    def longer(header: Any, arrays: Any) -> None:
        arrays["blocks_[2][0]"] = np.zeros((99, 3))

    def endless(header: Any, arrays: Any) -> None:
        arrays["blocks_[2][0]"][0, 0] = np.inf

    wanted = "the tables of blocks do not grow to the size of the weights"
    assert wanted in refusal("WeightedMajority", longer, folder, tmp_path)
    wanted = "the tables of blocks are not the logarithms of numbers"
    assert wanted in refusal("WeightedMajority", endless, folder, tmp_path)


def test_functions_are_refused_when_saving(tmp_path: Path) -> None:
    def by_place(outputs: Any) -> list[int]:
        return [0] * outputs.n_positions

    model = WeightedMajority(tie=by_place).fit(AWAKE, GOLD)
    with pytest.raises(DataError, match="tie is a function, which a model file cannot hold"):
        model.save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


def right(a: Any, b: Any) -> Any:
    return b.position[:, 0] - a.position[:, 0]


def test_features_of_your_own_are_given_again(tmp_path: Path) -> None:
    own = EventFeature("move", "right", right)
    TrackingModel(features=[own], knots=0).fit(FILM[:3]).save(tmp_path / "m")
    with pytest.raises(DataError, match=r"features of its user.*: move right; read it with"):
        load_model(tmp_path / "m")
    learner = TransferLearner(TrackingModel(features=[own], knots=0), target="a")
    learner.fit({"a": FILM[:2], "b": FILM[2:4]})
    with pytest.raises(DataError, match="model has features of your own, which files do not hold"):
        learner.save(tmp_path / "t")
    tracker = HandSet(features=[own]).fit(FILM[:3])
    with pytest.raises(
        DataError, match=r"features\[0\] is a EventFeature, which a model file cannot"
    ):
        tracker.save(tmp_path / "h")
