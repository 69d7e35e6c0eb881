"""The drop-in for python-crfsuite: trainers, their logs and files, taggers, and every refusal."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from trellis import ChainCRF, ChainPerceptron, GraphCRF, load_model
from trellis.compat import pycrfsuite
from trellis.compat.pycrfsuite import BaseTrainer, ItemSequence, Tagger, Trainer
from trellis.compat.training import ALGORITHMS
from trellis.errors import DataError, ParameterError

NAMES = ["lbfgs", "l2sgd", "ap", "averaged-perceptron", "pa", "passive-aggressive", "arow"]

X = [
    {"walk": 1, "shop": 0.5}, {"walk": 1}, {"walk": 1, "clean": 0.5}, {"shop": 0.5, "clean": 0.5},
    {"walk": 0.5, "clean": 1}, {"clean": 1, "shop": 0.1}, {}, {"clean": 1, "wind": b"n\xc3\xb6"},
    {"sea": 2},
]  # fmt: skip
Y = ["sun", "sun", "sun", "rain", "rain", "rain", "sun", "rain", "好"]


def trained(algorithm="lbfgs", n=1, **params) -> Trainer:
    trainer = Trainer(algorithm, params, verbose=False)
    for _ in range(n):
        trainer.append(X, Y)
    trainer.train("")
    return trainer


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("models") / "model"
    trainer = Trainer(params={"c2": 0.01}, verbose=False)
    trainer.append(X, Y)
    trainer.train(path)
    return path


@pytest.fixture
def tagger(file) -> Tagger:
    tagger = Tagger()
    tagger.open(str(file))
    return tagger


# ------------------------------------------------------------------------- training


@pytest.mark.parametrize("algorithm", NAMES)
def test_every_algorithm_learns(algorithm):
    model = trained(algorithm, 5).model
    assert type(model) is ChainCRF
    right = np.mean([a == b for a, b in zip(Tagger.of(model).tag(X), Y, strict=True)])
    assert right >= 0.85


@pytest.mark.parametrize("algorithm", NAMES)
def test_the_same_seed_gives_the_same_bits(algorithm):
    a, b = (trained(algorithm, 3, random_state=7).model.weights_ for _ in range(2))
    assert a.node.tobytes() == b.node.tobytes()
    assert a.transitions.tobytes() == b.transitions.tobytes()


@pytest.mark.parametrize("algorithm", NAMES)
def test_parameters(algorithm):
    trainer = Trainer(algorithm)
    params = trainer.get_params()
    assert list(params) == trainer.params()
    assert all(trainer.help(name) for name in params)
    trainer.set_params(params)
    assert trainer.get_params() == params
    for value in (True, False, 1, "0"):
        trainer.set("feature.possible_states", value)
        assert trainer.get("feature.possible_states") is bool(int(value))
    for call in (trainer.get, trainer.help, lambda name: trainer.set(name, 1)):
        with pytest.raises(
            ValueError, match=r"Parameter not found: foo; there are feature.minfreq"
        ):
            call("foo")


def test_parameters_are_those_of_the_algorithm():
    trainer = Trainer("lbfgs", {"c1": 0.5, "max_iterations": "7"})
    assert (trainer.get("c1"), trainer.get("c2"), trainer.get("max_iterations")) == (0.5, 1.0, 7)
    assert "L1" in trainer.help("c1") and "L2" in trainer.help("c2")
    trainer.select("l2sgd")
    assert "c1" not in trainer.params() and trainer.get("c2") == 1.0
    with pytest.raises(ValueError, match="Parameter not found: c1"):
        trainer.set("c1", 0.1)
    with pytest.raises(ValueError, match="the parameter c2 cannot be 'much'"):
        trainer.set("c2", "much")


@pytest.mark.parametrize(("algorithm", "kind"), [("foo", "crf1d"), ("lbfgs", "crf2d")])
def test_unknown_algorithms(algorithm, kind):
    with pytest.raises(ValueError, match=f"Bad arguments: algorithm='{algorithm}', type='{kind}'"):
        Trainer().select(algorithm, kind)


def test_lengths_and_groups():
    trainer = Trainer(verbose=False)
    with pytest.raises(ValueError, match=r"items and labels differ: \|x\| = 2, \|y\| = 1"):
        trainer.append([["a"], ["b"]], ["A"])
    with pytest.raises(ValueError, match="nothing to learn from: append sequences first"):
        trainer.train("")
    trainer.append(X, Y)
    trainer.append([["only here"]], ["sun"], group=3)
    trainer.train("", holdout=3)
    assert "only here" not in Tagger.of(trainer.model).info().attributes
    last = trainer.logparser.last_iteration
    assert last["item_accuracy_float"] in (0.0, 1.0) and last["scores"]["sun"].ref == 1
    trainer.clear()
    with pytest.raises(ValueError, match="nothing to learn from"):
        trainer.train("")


def test_c1_makes_zeros_and_c2_small_weights():
    plain, sparse, strong = (
        trained(n=5, **params).model.weights_.node for params in ({}, {"c1": 5}, {"c2": 100})
    )
    assert (sparse == 0).sum() > (plain == 0).sum()
    assert np.abs(strong).max() < np.abs(plain).max() / 2


def words(n: int, seed: int = 0):
    """Sequences of many words, half of which say nothing."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        labels = rng.choice(list("ABC"), 12).tolist()
        X.append([[f"{label}{rng.integers(40)}", f"noise{rng.integers(500)}"] for label in labels])
        y.append(labels)
    return X, y


@pytest.fixture(scope="module")
def large():
    """Enough data for stochastic steps."""
    return words(3000)


def long_run(data, **params) -> Trainer:
    trainer = Trainer("lbfgs", params, verbose=False)
    for xseq, yseq in zip(*data, strict=True):
        trainer.append(xseq, yseq)
    trainer.train("")
    return trainer


def test_c1_of_much_data(large):
    """Steps and OWL-QN: zeros, few passes, and an objective near that of exact training."""
    both = {"c1": 1.0, "c2": 0.1}
    fast, exact = long_run(large, **both), long_run(large, **both, exact=True)
    dense = long_run(large, c2=0.1)
    shares = [float((t.model.weights_.node != 0).mean()) for t in (fast, exact, dense)]
    assert shares[0] < 0.8 < 0.99 < shares[2]
    assert abs(shares[0] - shares[1]) < 0.3
    n = [len(t.logparser.iterations) for t in (fast, exact, dense)]
    assert n[0] <= 30 and n[2] <= 50
    assert [i["num"] for i in fast.logparser.iterations] == list(range(1, n[0] + 1))
    ends = [t.logparser.last_iteration["loss"] for t in (fast, exact)]
    assert ends[0] == pytest.approx(ends[1], rel=0.1)  # of more weights: all states are learned
    X, y = words(20, seed=1)
    assert Tagger.of(fast.model).tag(X[0]) == y[0]


def test_max_iterations(large):
    for params, most in (({}, 3), ({"c1": 0.1}, 6), ({"exact": True}, 3)):
        log = long_run(large, max_iterations=3, **params).logparser
        assert len(log.iterations) <= most
    for algorithm in ("l2sgd", "ap", "arow"):
        assert len(trained(algorithm, 3, max_iterations=3).logparser.iterations) <= 3


def test_states_and_transitions(large):
    """Exact training leaves pairs never seen at zero, unless told to learn them, too."""
    few, every = (
        Tagger.of(trained(**{"feature.possible_states": told}).model).info().state_features
        for told in (False, True)
    )
    assert ("sea", "sun") not in few and ("sea", "sun") in every
    X = [[["a"], ["b"], ["c"]]] * 60
    y = [["A", "B", "C"]] * 60
    found = []
    for told in (False, True):
        trainer = Trainer(params={"feature.possible_transitions": told}, verbose=False)
        for xseq, yseq in zip(X, y, strict=True):
            trainer.append(xseq, yseq)
        trainer.train("")
        found.append(Tagger.of(trainer.model).info().transitions)
    assert len(found[0]) <= len(found[1]) == 9
    assert {("A", "B"), ("B", "C")} <= set(found[0])


def test_minimum_frequency():
    model = trained(n=1, **{"feature.minfreq": 2}).model
    # The sums of values: walk 3.5, clean 4, shop 1.6, sea 2, wind 1.
    assert set(Tagger.of(model).info().attributes) == {"walk", "clean", "sea"}
    plain = Trainer(params={"feature.minfreq": 2}, verbose=False)
    for _ in range(2):
        plain.append([["a", "b"], ["b"]], ["A", "B"])
    plain.append([["c"]], ["A"])
    plain.train("")
    assert set(Tagger.of(plain.model).info().attributes) == {"a", "b"}


@pytest.mark.parametrize(
    ("algorithm", "params", "message"),
    [
        ("pa", {"c": 0}, "c must be above 0, got 0.0"),
        ("arow", {"variance": -1}, "variance must be above 0, got -1.0"),
    ],
)
def test_parameters_that_cannot_be(algorithm, params, message):
    with pytest.raises(DataError, match=message):
        trained(algorithm, **params)
    with pytest.raises(ParameterError, match="l1 must be a number of at least 0"):
        trained("lbfgs", c1=-1)


def test_aggressiveness_is_the_weight_of_losses():
    loose, tight = (trained("pa", 5, c=c).model.weights_.node for c in (1e-3, 10))
    assert np.abs(loose).max() < np.abs(tight).max()
    assert np.isfinite(trained("pa", 2, type=0, averaging=False).model.weights_.node).all()


def test_partial_labels():
    trainer = Trainer(verbose=False)
    for _ in range(10):
        trainer.append([["a"], ["b"], ["a"]], ["A", {"A", "B"}, None])
        trainer.append([["b"]], ["B"])
    trainer.train("")
    assert Tagger.of(trainer.model).tag([["a"], ["b"]]) == ["A", "B"]


# ------------------------------------------------------------------------- messages


def test_messages(capsys):
    class Listener(Trainer):
        def __init__(self):  # does not call ours, as programs may
            self.messages = []

        def message(self, message):
            self.messages.append(message)

    listener = Listener()
    listener.select("lbfgs")
    listener.append(X, Y)
    listener.train("")
    text = "".join(listener.messages)
    assert "type: CRF1d\n" in listener.messages
    for part in ("Feature generation", "c2: 1.0", "***** Iteration #1 *****", "Storing the model"):
        assert part in text
    assert capsys.readouterr().out == ""


def test_an_error_in_a_message_ends_training():
    class Bad(Trainer):
        def message(self, message):
            raise KeyError(message)

    bad = Bad()
    bad.append(X, Y)
    with pytest.raises(KeyError, match="Feature generation"):
        bad.train("")


@pytest.mark.parametrize("kind", [BaseTrainer, Trainer])
def test_verbose(kind, capsys):
    loud, quiet = kind(verbose=True), kind(verbose=False)
    for trainer in (loud, quiet):
        trainer.append(X, Y)
        trainer.append(X, Y, 1)
    quiet.train("", holdout=1)
    assert capsys.readouterr().out == ""
    loud.train("", holdout=1)
    out = capsys.readouterr().out
    for part in ("Holdout group: 1", "Loss:", "Item accuracy:", "Total seconds", "    sun: ("):
        assert part in out
    if kind is Trainer:
        assert out == "".join(loud.logparser.log)
        log = loud.logparser
        assert log.featgen_num_features == 5
        for seconds in (log.featgen_seconds, log.training_seconds, log.storing_seconds):
            assert seconds >= 0


def test_hooks():
    seen = []

    class Hooked(Trainer):
        def on_start(self, log):
            seen.append("start")

        def on_iteration(self, log, info):
            seen.append(info["num"])
            assert info["loss"] >= 0 and f"#{info['num']}" in log

        def on_end(self, log):
            seen.append("end")

    hooked = Hooked()
    hooked.append(X, Y)
    hooked.train(None)
    assert seen == ["start", *range(1, len(seen) - 1), "end"] and len(seen) > 3


def test_held_out_labels_that_nobody_has(capsys):
    trainer = Trainer()
    trainer.append(X, Y)
    trainer.append([{"walk": 1}], ["sun"], 1)
    trainer.train("", holdout=1)
    assert "    好: (0, 0, 0) (******, ******, ******)" in capsys.readouterr().out


# ------------------------------------------------------------------------- tagging


def test_open_and_close(file):
    tagger = Tagger()
    with pytest.raises(ValueError, match="The tagger is not opened"):
        tagger.labels()
    with tagger.open(file) as opened:
        assert opened is tagger
        assert set(tagger.labels()) == set(Y)
        assert tagger.tag(X) == Y
    questions = [
        tagger.labels, tagger.tag, lambda: tagger.tag(X), lambda: tagger.set(X),
        lambda: tagger.probability(Y), lambda: tagger.marginal("sun", 0),
    ]  # fmt: skip
    for question in questions:
        with pytest.raises(ValueError, match="The tagger is not opened"):
            question()
    for question in (tagger.info, tagger.dump):
        with pytest.raises(RuntimeError, match="Tagger is closed"):
            question()
    tagger.close()


def test_open_in_memory(file):
    with Tagger().open_inmemory(file.read_bytes()) as tagger:
        assert tagger.tag(X) == Y and tagger.size() == file.stat().st_size


def test_files_that_cannot_be_opened(tmp_path):
    with pytest.raises(FileNotFoundError):
        Tagger().open(tmp_path / "none")
    with pytest.raises(ValueError, match="Invalid model file"):
        Tagger().open(__file__)
    for content in (b"", b"foo"):
        with pytest.raises(ValueError, match="Invalid model file"):
            Tagger().open_inmemory(content)
    theirs = tmp_path / "theirs"
    theirs.write_bytes(b"lCRF" + 100 * b"x")
    for call in (lambda: Tagger().open(theirs), lambda: Tagger().open_inmemory(b"lCRFabc")):
        with pytest.raises(ValueError, match="is in CRFsuite's own format, which Trellis does not"):
            call()
    with pytest.raises(OSError):
        trainer = Trainer(verbose=False)
        trainer.append(X, Y)
        trainer.train(tmp_path / "no folder" / "model")


def test_files_are_those_of_trellis(file, tmp_path):
    crf = load_model(file)
    assert type(crf) is ChainCRF and crf.predict([ItemSequence(X).items()]) == [Y]
    # Other models of chains can be opened, too; what has no sequences cannot.
    other = tmp_path / "perceptron"
    ChainPerceptron(random_state=0).fit([[["a"], ["b"]]] * 5, [["A", "B"]] * 5).save(other)
    with Tagger().open(other) as tagger:
        assert tagger.tag([["a"], ["b"]]) == ["A", "B"]
        assert 0 < tagger.marginal("A", 0) < 1
    graph = tmp_path / "graph"
    GraphCRF(random_state=0).fit([[["a"], ["b"]]], [["A", "B"]], edges=[[(0, 1)]]).save(graph)
    with pytest.raises(ValueError, match="a GraphCRF is no model of sequences"):
        Tagger().open(graph)


def test_forms_of_items(tagger):
    assert tagger.tag(ItemSequence(X)) == Y
    assert tagger.tag([{k: v if v != 1 else True for k, v in x.items()} for x in X]) == Y
    assert tagger.tag([x.keys() for x in X]) != Y  # the values count
    assert tagger.tag([]) == []
    assert tagger.tag([["unseen"]]) == tagger.tag([{}])


@pytest.mark.parametrize("algorithm", NAMES)
def test_probabilities(algorithm):
    tagger = Tagger.of(trained(algorithm, 3).model)
    items = X[:3]
    tagger.set(items)
    labels = tagger.labels()
    p = {y: tagger.probability(y) for y in itertools.product(labels, repeat=3)}
    assert sum(p.values()) == pytest.approx(1, abs=1e-6)
    assert list(max(p, key=p.__getitem__)) == tagger.tag()
    for t, label in itertools.product(range(3), labels):
        expected = sum(q for y, q in p.items() if y[t] == label)
        assert tagger.marginal(label, t) == pytest.approx(expected, abs=1e-6)
    assert tagger.probability([None, {labels[0]}, None]) == pytest.approx(
        tagger.marginal(labels[0], 1), abs=1e-6
    )


def test_questions_are_about_the_last_sequence(tagger):
    assert tagger.tag() == [] and tagger.probability([]) == 1.0
    tagger.set([{"walk": 1}])
    one = tagger.marginal("sun", 0)
    assert tagger.tag([{"clean": 1}]) == ["rain"]
    assert tagger.marginal("sun", 0) < one


def test_wrong_questions(tagger):
    tagger.set(X[:2])
    with pytest.raises(ValueError, match=r"items and labels differ: \|x\| = 2, \|y\| = 1"):
        tagger.probability(["sun"])
    for question in (lambda: tagger.probability(["sun", "fog"]), lambda: tagger.marginal("fog", 0)):
        with pytest.raises(RuntimeError, match="Failed to convert into label identifier: fog; the"):
            question()
    for position in (-1, 2):
        with pytest.raises(ValueError, match=f"The position {position} is out of range of 2 items"):
            tagger.marginal("sun", position)


# ------------------------------------------------------------------------- what is in a model


def test_info(tagger, file):
    info = tagger.info()
    assert set(info.labels) == set(Y)
    assert set(info.attributes) == {"walk", "shop", "clean", "sea", "wind:nö"}
    assert sorted(map(int, info.attributes.values())) == list(range(5))
    assert info.header["num_labels"] == "3" and info.header["num_attrs"] == "5"
    assert info.header["size"] == str(file.stat().st_size)
    assert info.state_features["walk", "sun"] > 0 > info.state_features.get(("walk", "rain"), -1)
    assert set(info.transitions) >= {("sun", "sun"), ("sun", "rain"), ("rain", "好")}


def test_weights_are_for_values_as_given():
    """Scores of the named weights are those of the model, though values are scaled inside."""
    trainer = Trainer(params={"c2": 0.01}, verbose=False)
    rng = np.random.default_rng(0)
    for _ in range(20):
        items = [{"size": float(10 * rng.normal()), "bias": 1.0} for _ in range(4)]
        trainer.append(items, ["A" if item["size"] > 5 else "B" for item in items])
    trainer.train("")
    tagger, item = Tagger.of(trainer.model), {"size": 7.0, "bias": 1.0}
    weights = tagger.info().state_features
    a, b = (sum(v * weights.get((k, y), 0) for k, v in item.items()) for y in "AB")
    tagger.set([item])
    assert tagger.marginal("A", 0) == pytest.approx(1 / (1 + np.exp(b - a)), rel=1e-4)


def test_dump(tagger, tmp_path, capsys):
    file = tmp_path / "dump.txt"
    tagger.dump(file)
    text = file.read_text(encoding="utf-8")
    for part in ("FILEHEADER = {", "LABELS = {", "(0) wind:nö --> rain: ", "(1) sun --> sun: "):
        assert part in text
    tagger.dump()
    assert capsys.readouterr().out == text


def test_a_model_with_refined_labels(tmp_path):
    """A file of a plain ChainCRF whose spans are refined inside: weights are of its states."""
    X = [[["a"], ["b"], ["b"], ["c"]]] * 20
    y = [["B", "I", "I", "O"]] * 20
    path = tmp_path / "model"
    ChainCRF(encoding="iobes", random_state=0).fit(X, y).save(path)
    with Tagger().open(path) as tagger:
        assert tagger.tag(X[0]) == y[0] and tagger.labels() == ["B", "I", "O"]
        assert tagger.probability(y[0]) > 0.5
        assert {label for _, label in tagger.info().state_features} <= {"B", "I", "E", "O", "S"}


def test_names_of_the_module():
    assert set(pycrfsuite.__all__) <= set(dir(pycrfsuite))
    assert pycrfsuite.CRFSUITE_VERSION
    assert issubclass(pycrfsuite.CRFSuiteError, Exception)
    assert set(ALGORITHMS) == set(NAMES) - {"ap", "pa"}
