"""What is chosen, compared and said, on made-up results."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from tiny import TINY

from studies.markdown import markdown
from studies.packing import pack
from studies.structure_regularisation.agreement import agreement_table
from studies.structure_regularisation.companions import companion_task, gaps
from studies.structure_regularisation.comparison import Verdict, compare
from studies.structure_regularisation.fits import Fit, _mean_loss, perform
from studies.structure_regularisation.methods import COMPARED, FAMILIES, METHODS, family
from studies.structure_regularisation.protocol import FIXED
from studies.structure_regularisation.sentences import (
    choice_sentence,
    companion_sentences,
    convergence_sentence,
    gap_sentence,
    question_sentence,
    time_sentence,
    verdict_sentence,
)
from studies.structure_regularisation.study import Outcome, TaskStudy
from studies.structure_regularisation.tables import best_runs, p_text, rate_table
from studies.structure_regularisation.tasks import TASKS, available_tasks, task_data
from trellis import ChainCRF, DataError
from trellis.corpus import as_corpus
from trellis.evaluation import paired_bootstrap, paired_t_test, span_scores
from trellis.models import RegularisedDecoder
from trellis.theory import point_losses

PROTOCOL = replace(TINY, retrain=False, crf_runs=1, resamples=500)
CRFS, PERCEPTRONS = family("crf", "rich"), family("perceptron", "rich")
FACTS = {
    "curves": "c", "comparison": "c", "features": "word", "scheme": None, "n_train": 50,
    "mean_length": 11.0, "largest_value": 1.0,
}  # fmt: skip


def made_up(score, gold=None, predict=None, scheme=None, protocol=PROTOCOL):
    """A study whose development scores are ``score(fit)`` and predictions ``predict(fit)``.

    The development score of two models is ``score`` times one minus the strength.
    """
    facts = dict(FACTS, scheme=scheme)
    if gold is not None:
        facts |= {"gold": pack(gold), "lengths": [len(g) for g in gold]}
    records = {}
    study = TaskStudy("roles", protocol, facts, records)
    for stage in study.stages():
        for fit in stage():
            size = fit.params.get("piece_size")
            record = {
                "dev": score(fit), "test": score(fit) / 2, "seconds": size or 10.0,
                "train_loss": 0.1, "test_loss": 0.5 if size is None else 0.1 * size,
                "n_features": 99, "largest_loss": 2.0, "stopped": "tol", "passes": 3,
            }  # fmt: skip
            if predict is not None:
                record["predictions"] = pack(predict(fit))
            record["decoded"] = [
                {"strength": s, "dev": score(fit) * (1 - s)}
                for s in fit.params.get("strengths", [])
            ]
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
    study = made_up(lambda fit: scores.get((fit.params.get("piece_size"), fit.run), 0.1))
    chosen = study.chosen("StructReg + WeightAvg")
    assert chosen.fit.params["piece_size"] == 1.5
    assert chosen.mean("dev") == pytest.approx(0.75)
    assert chosen.sd("dev") == pytest.approx(np.std([0.6, 0.9], ddof=1))


def test_a_curve_ends_in_whole_sequences():
    study = made_up(lambda fit: 0.5)
    for f in FAMILIES:
        curve = study.curve(f)
        assert [r.fit.params["piece_size"] for r in curve] == [1.5, 5.5, None]
        assert {r.fit.model for r in curve} == {f.model}
        assert {r.fit.params["rich_edges"] for r in curve} == {f.edges == "rich"}


def test_the_comparison_on_all_data_has_fits_of_its_own():
    study = made_up(lambda fit: 0.5)
    study.protocol = replace(PROTOCOL, retrain=True)
    finals = study.finals()
    assert {fit.part for fit in finals} == {"comparison"}
    assert len(finals) == 9 + 5 * PROTOCOL.runs
    assert len({f.key(study.facts) for f in finals}) == len(finals)
    # The same data under another name need no second training.
    assert {f.key(study.facts) for f in finals} <= set(study._records)
    study.facts["comparison"] = "other data"
    assert not {f.key(study.facts) for f in finals} & set(study._records)


def test_each_kind_of_edges_has_its_own_penalty():
    study = made_up(lambda fit: fit.params.get("l2", 0) * (fit.params.get("rich_edges") or -1))
    for f in FAMILIES[:2]:
        l2 = 2.0 if f.edges == "rich" else 0.5
        assert study.chosen(f.whole).fit.params["l2"] == l2
        assert {r.fit.params["l2"] for r in study.tried(f.pieces)} == {l2}
    two = study.chosen("Two models").fit.params
    assert two["simple"]["l2"] == 0.5
    assert two["simple"]["piece_size"] == 1
    assert not two["simple"]["rich_edges"]
    assert two["complex"]["l2"] == 2.0
    assert two["complex"]["rich_edges"]


def test_pieces_overlap_by_less_than_their_size():
    study = made_up(lambda fit: 0.5, protocol=replace(PROTOCOL, overlaps=(1, 2)))
    tried = [r.fit.params for r in study.tried("StructReg, overlap")]
    assert [(p["piece_size"], p["overlap"]) for p in tried] == [(5.5, 1), (1.5, 1), (5.5, 2)]
    assert all(p["rich_edges"] for p in tried)


def test_the_strength_of_two_models_is_chosen_on_development_data():
    study = made_up(lambda fit: 0.5)
    tried = study.tried("Two models")
    assert [r.fit.params["strengths"] for r in tried] == [[0.3], [1.0]] * 2
    assert [r.mean("dev") for r in tried] == pytest.approx([0.35, 0.0] * 2)
    assert study.chosen("Two models").fit.params["strengths"] == [0.3]
    assert study.final("Two models").fit.params["complex"]["piece_size"] is None


def test_crfs_that_are_compared_have_several_runs():
    study = made_up(lambda fit: 0.5, protocol=replace(PROTOCOL, crf_runs=3))
    found = {method: len(study.final(method).runs) for method in METHODS}
    once = {"L1", "Group lasso"}
    perceptrons = {m for m in METHODS if "Avg" in m or "Perceptron" in m}
    assert set(METHODS) - COMPARED == once | {"Perceptron, last weights"}
    for method, n in found.items():
        assert n == (1 if method in once else PROTOCOL.runs if method in perceptrons else 3)
    assert all(len(r.runs) == 1 for r in study.tried("StructReg"))


# ------------------------------------------------------------------------------- comparison

GOLD = [["B-X", "I-X", "O"], ["O", "B-X", "I-X"], ["O", "O", "B-X"], ["B-X", "O", "B-X"]] * 5


def flawed(seed, share):
    rng = np.random.default_rng(seed)
    return [[y if rng.random() > share else "O" for y in sample] for sample in GOLD]


def predictions(fit):
    cut = fit.params.get("piece_size") is not None
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


def test_different_numbers_of_runs():
    study = made_up(
        lambda fit: 0.5, GOLD, predictions, "BIO", replace(PROTOCOL, runs=2, crf_runs=3)
    )
    v = compare(study, "StructReg + WeightAvg", "WeightReg, plain")
    runs = [[flawed(i % n, share) for i in range(6)] for n, share in ((2, 0.1), (3, 0.5))]
    joined = [
        [[y for labels in rows for y in (*labels, "O")] for rows in zip(*system, strict=True)]
        for system in ([GOLD] * 6, *runs)
    ]
    by_hand = paired_bootstrap(*joined, n_resamples=500)
    assert (v.interval, v.p_value) == (by_hand.interval, by_hand.p_value)


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
        return GOLD if fit.params.get("piece_size") else [["X"] * len(g) for g in GOLD]

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


def verdict(task, method, baseline, low, high):
    return Verdict(task, method, baseline, 0.5, 0.5, (low, high), 0.5, "paired bootstrap", 5)


def test_questions_in_words():
    pair = ("StructReg", "WeightReg")
    verdicts = [
        verdict("pos", *pair, 0.01, 0.02), verdict("bio-ner", *pair, -0.02, -0.01),
        verdict("chunking", *pair, 0.03, 0.04), verdict("word-seg", *pair, -0.01, 0.01),
    ]  # fmt: skip
    assert question_sentence(pair, verdicts) == (
        "StructReg against WeightReg: higher on POS-Tagging, Chunking; lower on Bio-NER; no clear "
        "difference on Word-Seg (SXU)."
    )


def test_agreement_in_words():
    study = made_up(lambda fit: 0.5 if fit.params.get("piece_size") else 0.4)
    pos = TaskStudy("pos", PROTOCOL, study.facts, study._records)
    outcome = Outcome({}, [study, pos], {"rate": {"found": RUNS[:3]}})
    # The same data under another name have the same records.
    verdicts = [
        verdict("roles", "StructReg", "WeightReg", 0.01, 0.02),
        verdict("pos", "StructReg", "WeightReg", -0.01, 0.02),
        verdict("roles", "StructReg, plain", "WeightReg, plain", -0.02, -0.01),
        verdict("pos", "StructReg, plain", "WeightReg, plain", -0.01, 0.02),
    ]
    table = agreement_table(outcome, verdicts)
    assert "| Table 1: scores | no: as high as published on no task |" in table
    assert (
        "| Figure 2: score against n′, CRF, rich edges | yes: pieces score higher on development "
        "data on every task |" in table
    )
    assert (
        "| Figure 3: time against n′, CRF, plain edges (not in the paper) | yes: the smallest n′ "
        "takes 0.15 times as long as whole sequences |" in table
    )
    assert (
        "| Gain of pieces on test data, CRF, rich edges | in part: higher on Roles of identifiers, "
        "not on POS-Tagging |" in table
    )
    assert (
        "CRF, plain edges (not in the paper) | no: higher on no task; lower on Roles of "
        "identifiers |" in table
    )
    assert "| Proposition 5: fewer updates with α | no: 40 updates instead of 20 |" in table


def test_convergence_in_words():
    study = made_up(lambda fit: 0.5)
    text = convergence_sentence([study])
    assert "Of the 6 CRFs of the curves 6 met the rule of 10⁻⁴, of the 6 of the" in text
    assert "The others" not in text
    for record in study._records.values():
        record["stopped"] = "max_passes"
    text = convergence_sentence([study])
    assert "Of the 6 CRFs of the curves 0 met" in text
    assert "a part of their gain may be that they are nearer to convergence" in text


def test_choices_in_words():
    better = made_up(lambda fit: 0.5 if fit.params.get("piece_size") else 0.4)
    assert "n′ = 5.5 is chosen for StructReg, over whole" in choice_sentence(
        better, "StructReg", "WeightReg"
    )
    worse = made_up(lambda fit: 0.4 if fit.params.get("piece_size") else 0.5)
    assert "a user would not have cut here" in choice_sentence(worse, "StructReg", "WeightReg")


def test_times_and_gaps_in_words():
    study = made_up(lambda fit: 0.5)
    text = time_sentence(study.curve(CRFS), "CRF")
    assert "6.7 times as fast as on whole sequences (10.00 s); it falls with n′ at every" in text
    text = time_sentence(study.curve(CRFS)[::-1], "CRF")
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
    with pytest.raises(DataError, match=r"at roles, CRF, l2 -1, n' 2.5: l2 must be 'auto' or a"):
        perform(fit, data)


def test_names_of_fits():
    fit = Fit("pos", "comparison", "perceptron", {"piece_size": None, "averaged": False}, 2)
    assert str(fit) == "pos, perceptron, whole, not averaged, run 3, all data"
    cut = {"l2": 0.1, "piece_size": 2.5, "overlap": 1, "rich_edges": False}
    assert str(Fit("pos", "curves", "crf", cut)) == "pos, CRF, plain, l2 0.1, n' 2.5, overlap 1"
    pair = {"complex": cut, "simple": {}, "strengths": [0.1, 1.0]}
    fit = Fit("pos", "curves", "two models", pair)
    assert str(fit) == "pos, two models, l2 0.1, n' 2.5, overlap 1, strength 0.1, 1"
    assert str(Fit("pos", "comparison", "default", {})) == "pos, default, all data"


def test_l1_makes_zeros_and_group_lasso_drops_templates():
    data = task_data("roles", PROTOCOL)
    strong = {"max_passes": 2, "l2": 0.0, "piece_size": None, "rich_edges": True}
    l1 = perform(Fit("roles", "curves", "crf", strong | {"l1": 5.0}), data)
    assert 0.5 < l1["zeros"] < 1
    group = perform(Fit("roles", "curves", "crf", strong | {"group_lasso": 50.0}), data)
    assert group["templates_dropped"] == group["templates"] == 18
    l2 = perform(Fit("roles", "curves", "crf", strong | {"l2": 1.0}), data)
    assert l2["templates_dropped"] == 0
    assert "train_loss" in l2
    assert "train_loss" not in l1


def test_two_models_are_those_of_the_library():
    data = task_data("roles", PROTOCOL)
    params = FIXED["crf"] | {"l2": 0.5, "max_passes": 2}
    pair = {
        "complex": params | {"rich_edges": True}, "simple": params | {"piece_size": 1},
        "strengths": [0.0, 0.5],
    }  # fmt: skip
    record = perform(Fit("roles", "curves", "two models", pair, run=1), data)
    made = [
        ChainCRF(data.features, random_state=1, **pair[name]).fit(data.train)
        for name in ("complex", "simple")
    ]
    predicted = RegularisedDecoder(*made, strength=0.5).predict(data.test)
    assert record["decoded"][1]["predictions"] == pack(predicted)
    assert record["decoded"][0]["predictions"] == pack(made[0].predict(data.test))
    assert record["dev"] == max(decoded["dev"] for decoded in record["decoded"])


def test_the_default_is_told_nothing():
    data = task_data("roles", PROTOCOL)
    record = perform(Fit("roles", "curves", "default", {}, run=3), data)
    model = ChainCRF(data.features, random_state=3).fit(data.train)
    assert record["predictions"] == pack(model.predict(data.test))
