"""What is chosen, compared and said, on made-up results."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from tiny import TINY

from studies.markdown import markdown
from studies.packing import pack
from studies.structure_regularisation.companions import companion_task, gaps
from studies.structure_regularisation.comparison import Verdict, compare
from studies.structure_regularisation.fits import Fit, _mean_loss, perform
from studies.structure_regularisation.sentences import (
    choice_sentence,
    companion_sentences,
    gap_sentence,
    time_sentence,
    verdict_sentence,
)
from studies.structure_regularisation.study import TaskStudy
from studies.structure_regularisation.tables import best_runs, p_text, rate_table
from studies.structure_regularisation.tasks import TASKS, available_tasks, task_data
from trellis import ChainCRF, DataError
from trellis.corpus import as_corpus
from trellis.evaluation import paired_bootstrap, paired_t_test, span_scores
from trellis.theory import point_losses

PROTOCOL = replace(TINY, retrain=False, resamples=500)
FACTS = {
    "curves": "c", "comparison": "c", "features": "word", "scheme": None, "n_train": 50,
    "mean_length": 11.0, "largest_value": 1.0,
}  # fmt: skip


def made_up(score, gold=None, predict=None, scheme=None):
    """A study whose development scores are ``score(fit)`` and predictions ``predict(fit)``."""
    facts = dict(FACTS, scheme=scheme)
    if gold is not None:
        facts |= {"gold": pack(gold), "lengths": [len(g) for g in gold]}
    records = {}
    study = TaskStudy("roles", PROTOCOL, facts, records)
    for stage in study.stages():
        for fit in stage():
            size = fit.params["piece_size"]
            record = {
                "dev": score(fit), "test": score(fit) / 2, "seconds": size or 10.0,
                "train_loss": 0.1, "test_loss": 0.5 if size is None else 0.1 * size,
                "n_features": 99, "largest_loss": 2.0, "stopped": "5 passes made",
            }  # fmt: skip
            if predict is not None:
                record["predictions"] = pack(predict(fit))
            records[fit.key(facts)] = record
    return study


# ------------------------------------------------------------------------------- choices


def test_the_penalty_of_pieces_is_that_of_whole_sequences():
    study = made_up(lambda fit: fit.params.get("l2", 0.0))
    assert study.chosen("WeightReg").fit.params["l2"] == 2.0
    assert {r.fit.params["l2"] for r in study.tried("StructReg")} == {2.0}


def test_of_equal_scores_larger_pieces_win():
    study = made_up(lambda fit: 0.5)
    assert study.chosen("StructReg").fit.params["piece_size"] == 5.5
    assert study.chosen("StructReg + WeightAvg").fit.params["piece_size"] == 5.5
    assert study.chosen("WeightReg").fit.params["l2"] == 0.5


def test_perceptrons_are_chosen_by_the_mean_of_their_runs():
    # Run 0 alone would prefer 5.5.
    scores = {(1.5, 0): 0.6, (1.5, 1): 0.9, (5.5, 0): 0.7, (5.5, 1): 0.7}
    study = made_up(lambda fit: scores.get((fit.params["piece_size"], fit.run), 0.1))
    chosen = study.chosen("StructReg + WeightAvg")
    assert chosen.fit.params["piece_size"] == 1.5
    assert chosen.mean("dev") == pytest.approx(0.75)
    assert chosen.sd("dev") == pytest.approx(np.std([0.6, 0.9], ddof=1))


def test_a_curve_ends_in_whole_sequences():
    study = made_up(lambda fit: 0.5)
    for model in ("crf", "perceptron"):
        assert [r.fit.params["piece_size"] for r in study.curve(model)] == [1.5, 5.5, None]


def test_the_comparison_on_all_data_has_fits_of_its_own():
    study = made_up(lambda fit: 0.5)
    study.protocol = replace(PROTOCOL, retrain=True)
    finals = study.finals()
    assert {fit.part for fit in finals} == {"comparison"}
    assert len(finals) == 4 + 3 * PROTOCOL.runs
    # The same data under another name need no second training.
    assert {f.key(study.facts) for f in finals} <= set(study._records)
    study.facts["comparison"] = "other data"
    assert not {f.key(study.facts) for f in finals} & set(study._records)


# ------------------------------------------------------------------------------- comparison

GOLD = [["B-X", "I-X", "O"], ["O", "B-X", "I-X"], ["O", "O", "B-X"], ["B-X", "O", "B-X"]] * 5


def flawed(seed, share):
    rng = np.random.default_rng(seed)
    return [[y if rng.random() > share else "O" for y in sample] for sample in GOLD]


def predictions(fit):
    cut = fit.params["piece_size"] is not None
    return flawed(fit.run, 0.1 if cut else 0.5)


def test_one_run_is_tested_as_by_hand():
    study = made_up(lambda fit: 0.5, GOLD, predictions, "BIO")
    v = compare(study, "StructReg", "WeightReg")
    by_hand = paired_bootstrap(GOLD, flawed(0, 0.1), flawed(0, 0.5), n_resamples=500)
    assert (v.interval, v.p_value, v.test) == (by_hand.interval, by_hand.p_value, by_hand.test)
    assert v.n == 20


def test_runs_are_tested_as_one_system():
    study = made_up(lambda fit: 0.5, GOLD, predictions, "BIO")
    v = compare(study, "StructReg + WeightAvg", "WeightAvg")
    scores = []
    for share in (0.1, 0.5):
        counts = [span_scores(GOLD, flawed(run, share)) for run in (0, 1)]
        correct = sum(c.correct for c in counts)
        scores.append(2 * correct / sum(c.predicted + c.support for c in counts))
    low, high = v.interval
    assert low < scores[0] - scores[1] < high
    assert v.p_value < 0.01


def test_accuracies_are_tested_by_a_t_test():
    study = made_up(lambda fit: 0.5, GOLD, predictions, None)
    v = compare(study, "StructReg + WeightAvg", "WeightAvg")

    def accuracies(share):
        runs = [flawed(run, share) for run in (0, 1)]
        hits = [
            [
                np.mean([a == b for a, b in zip(g, p, strict=True)])
                for g, p in zip(GOLD, r, strict=True)
            ]
            for r in runs
        ]
        return np.mean(hits, axis=0)

    by_hand = paired_t_test(accuracies(0.1), accuracies(0.5))
    assert v.test == "paired t-test"
    assert v.p_value == pytest.approx(by_hand.p_value)


def test_where_t_is_not_defined_the_bootstrap_speaks():
    def predict(fit):
        return GOLD if fit.params["piece_size"] else [["X"] * len(g) for g in GOLD]

    v = compare(made_up(lambda fit: 0.5, GOLD, predict), "StructReg", "WeightReg")
    assert v.test == "paired bootstrap"


# ------------------------------------------------------------------------------- companions


def test_the_bound_is_scaled_to_whole_sequences():
    points = gaps(made_up(lambda fit: 0.5))
    assert [g.piece_size for g in points] == [None, 5.5, 1.5]
    assert [g.alpha for g in points] == pytest.approx([1, 2, 11 / 1.5])
    assert points[0].predicted == pytest.approx(points[0].gap)
    # The term with γ is small here, so that the bound falls like 1/α.
    assert points[1].predicted == pytest.approx(points[0].gap / 2, rel=1e-3)


@pytest.mark.parametrize(
    ("tasks", "want"), [(["pos", "chunking"], "chunking"), (["act-recog", "bio-ner"], "act-recog")]
)
def test_companions_prefer_text(tasks, want):
    assert companion_task(tasks) == want


RUNS = [
    {"piece_size": None, "alpha": 1.0, "learning_rate": 0.1, "updates": 30, "passes": 3},
    {"piece_size": None, "alpha": 1.0, "learning_rate": 0.2, "updates": 20, "passes": 2},
    {"piece_size": 2.5, "alpha": 4.0, "learning_rate": 0.1, "updates": 40, "passes": 1},
    {"piece_size": 1.5, "alpha": 8.0, "learning_rate": 0.1, "updates": None, "passes": None},
]


def test_the_best_rate_of_each_size():
    assert [r["updates"] for r in best_runs(RUNS)] == [20, 40, None]
    assert "| 1.5 | 8.00 | none | never | never |" in rate_table(RUNS)


def test_companions_in_words():
    change = {"function": 1.0, "loss": 1.0, "sample_loss": 1.0}
    found = [
        {"alpha": a, "typical": t, "largest": change, "bound": dict(change, function=b)}
        for a, t, b in ((1.0, 0.2, 2.0), (4.0, 0.1, 0.5))
    ]
    stability, rate = companion_sentences(
        {"stability": {"found": found}, "rate": {"found": RUNS[:3]}}
    )
    assert "falls from 0.2" in stability
    assert "DOES NOT HOLD" in stability
    assert "2.0 times more updates, and 1 passes instead of 2" in rate
    _, never = companion_sentences({"stability": {"found": found}, "rate": {"found": RUNS}})
    assert never == "Not every size arrived within the passes allowed."


# ------------------------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("scores", "p", "words"),
    [
        ((0.9, 0.8), 0.01, "higher by 10.00 points; the difference is significant"),
        ((0.8, 0.9), 0.00001, "lower by 10.00 points; the difference is significant"),
        ((0.8, 0.8), 0.9, "the same; the difference is not significant"),
    ],
)
def test_verdicts_in_words(scores, p, words):
    v = Verdict("roles", "StructReg", "WeightReg", *scores, (0.0, 0.1), p, "paired t-test", 5)
    assert words in verdict_sentence(v, "accuracy")
    assert ("p < 0.0001" in verdict_sentence(v, "F1")) == (p < 0.0001)


def test_choices_in_words():
    better = made_up(lambda fit: 0.5 if fit.params["piece_size"] else 0.4)
    assert "n′ = 5.5 is chosen for StructReg, over whole" in choice_sentence(
        better, "StructReg", "WeightReg"
    )
    worse = made_up(lambda fit: 0.4 if fit.params["piece_size"] else 0.5)
    assert "a user would not have cut here" in choice_sentence(worse, "StructReg", "WeightReg")


def test_times_and_gaps_in_words():
    study = made_up(lambda fit: 0.5)
    text = time_sentence(study.curve("crf"), "CRF")
    assert "6.7 times as fast as on whole sequences (10.00 s); it falls with n′ at every" in text
    text = time_sentence(study.curve("crf")[::-1], "CRF")
    assert "6.7 times as long as" in text
    assert "it falls with n′ at 0 of 2 steps" in text
    assert re.search(
        r"smaller than on whole sequences .* rises at 1 of 2 steps", gap_sentence(study)
    )


def test_tables():
    assert markdown(["a", "b", "c"], [["x", "1", "y"]]).splitlines()[1] == "|---|---:|---|"
    assert [p_text(p) for p in (0.00009, 0.0123, 1.0)] == ["< 0.0001", "0.012", "1"]


# ------------------------------------------------------------------------------- data and fits


def test_parts_of_the_data(real_data, monkeypatch):
    monkeypatch.setenv("TRELLIS_DATA", str(real_data("har").parent))
    data = task_data(
        "act-recog", replace(PROTOCOL, train_limit=None, test_limit=None, retrain=True)
    )
    assert (len(data.train), len(data.dev), len(data.test), len(data.whole)) == (32, 10, 19, 42)
    assert data.held_out
    few = task_data("act-recog", replace(PROTOCOL, train_limit=4, test_limit=2))
    lengths = data.train.lengths[[0, 10, 20, 31]]
    assert few.train.lengths.tolist() == lengths.tolist()
    assert (len(few.dev), len(few.test)) == (2, 2)
    assert few.whole is few.train
    assert data.facts()["largest_value"] > 1


def test_parts_of_the_embedded_data():
    data = task_data("roles", PROTOCOL)
    facts = data.facts()
    assert len(data.train) <= PROTOCOL.train_limit
    assert facts["lengths"] == data.test.lengths.tolist()
    assert facts["largest_value"] == 1
    assert not facts["held_out"]


def test_tasks_by_what_is_there(tmp_path, monkeypatch):
    monkeypatch.setenv("TRELLIS_DATA", str(tmp_path))
    quick = replace(PROTOCOL, name="quick")
    assert available_tasks(quick) == ["roles"]
    (tmp_path / "sxu").mkdir()
    assert available_tasks(quick) == ["word-seg"]
    assert available_tasks(PROTOCOL) == [name for name in TASKS if name != "roles"]


def test_the_loss_is_that_of_whole_sequences():
    X, y = [["a", "b"], ["b", "a"], ["a", "a", "b"]], [["A", "B"], ["B", "A"], ["A", "B", "B"]]
    model = ChainCRF("word", random_state=0, rich_edges=True).fit(X, y)
    total = 0.0
    for x, labels in zip(X, y, strict=True):
        paths = model.predict_kbest([x], 2 ** len(x))[0]
        scores = [path[1] for path in paths]
        right = next(score for path, score in paths if list(path) == labels)
        total += np.logaddexp.reduce(scores) - right
    loss, largest = _mean_loss(model, as_corpus(X, y))
    assert loss == pytest.approx(total / 7, rel=1e-5)
    assert largest == pytest.approx(point_losses(model, (X, y)).max(), rel=1e-6)
    # A sequence with an unknown label has an infinite loss, and is left out.
    more = as_corpus([*X, ["a"]], [*y, ["C"]])
    assert _mean_loss(model, more)[0] == loss
    with pytest.raises(DataError, match=r"no test sequence has only labels of the training part"):
        _mean_loss(model, as_corpus([["a"]], [["C"]]))


def test_a_fit_that_fails_is_named():
    data = task_data("roles", PROTOCOL)
    fit = Fit("roles", "curves", "crf", {"l2": -1.0, "piece_size": 2.5})
    with pytest.raises(DataError, match=r"at roles, CRF, n' = 2.5, l2 -1: l2 must be a number"):
        perform(fit, data)


def test_names_of_fits():
    fit = Fit("pos", "comparison", "perceptron", {"piece_size": None, "averaged": False}, 2)
    assert str(fit) == "pos, perceptron, whole, not averaged, run 3, all data"


def test_l1_makes_zeros_and_group_lasso_drops_templates():
    data = task_data("roles", PROTOCOL)
    strong = {"max_passes": 2, "l2": 0.0, "piece_size": None}
    l1 = perform(Fit("roles", "curves", "crf", strong | {"l1": 5.0}), data)
    assert 0.5 < l1["zeros"] < 1
    group = perform(Fit("roles", "curves", "crf", strong | {"group_lasso": 50.0}), data)
    assert group["templates_dropped"] == group["templates"] == 18
    l2 = perform(Fit("roles", "curves", "crf", strong | {"l2": 1.0}), data)
    assert l2["templates_dropped"] == 0
    assert "train_loss" in l2
    assert "train_loss" not in l1
