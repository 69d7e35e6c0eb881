"""Active learning: what is asked, what is learned, and that no answer is lost."""

from __future__ import annotations

import copy
import os
import pickle
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from toy_problem import ToyModel, ToyProblem, toy_data

from trellis.cheap.active import ActiveLearner, Part
from trellis.cheap.annotation_log import AnnotationLog
from trellis.errors import DataError, InfeasibleError

POOL, GOLD, TRUE = toy_data(14, seed=1)
MEASURES = ["scoring", "best-vs-worst", "best-vs-second"]


def brute_force(pool, gold, measure, rounds):
    """Algorithm 1.2, spelled out."""
    problem = ToyProblem(pool)
    w = np.zeros(problem.n_weights)
    asked, averages, weights = [], [], []
    for _ in range(rounds):
        left = [i for i in range(len(pool)) if i not in asked]
        margin = {i: problem.margins(w, measure, [i])[0] for i in left}
        asked.append(min(left, key=lambda i: (margin[i], i)))
        problem.annotate(asked[-1], gold[asked[-1]])
        for i in asked:
            right = problem.maxima(w, "compatible", samples=[i]).phi[0]
            best = problem.maxima(w, "all", samples=[i]).phi[0]
            w = w + right - best
        left = [i for i in range(len(pool)) if i not in asked]
        if left:
            averages.append(np.exp(-problem.margins(w, measure, left)).mean())
        weights.append(w)
    return asked, averages, weights


@pytest.mark.parametrize("measure", MEASURES)
def test_rounds_follow_the_algorithm(measure):
    asked, averages, weights = brute_force(POOL, GOLD, measure, 10)
    learner = ActiveLearner(ToyModel(), measure)
    for t in range(10):
        i = learner.query(POOL)
        assert i == asked[t]
        learner.tell(i, GOLD[i])
        np.testing.assert_allclose(learner.weights_, weights[t], atol=1e-12)
    np.testing.assert_allclose(learner.average_uncertainty_, averages, rtol=1e-12)
    assert learner.annotated_.tolist() == sorted(asked)


def test_one_evaluation_a_round():
    """At round t there are t samples to learn from and N - t to evaluate; queries cost nothing."""
    learner = ActiveLearner(ToyModel(), start=np.random.default_rng(0).normal(size=10))
    learner.query(POOL)
    problem = learner._session.problem
    for t in range(1, 6):
        i = learner.query(POOL)
        before = problem.n_calls
        assert learner.query(POOL) == i
        assert problem.n_calls == before
        changed = learner.weights_
        learner.tell(i, GOLD[i])
        steps = problem.n_calls - before
        assert steps <= 2 * t + (len(POOL) - t)  # a step that changes w looks twice
        if np.array_equal(changed, learner.weights_):
            assert steps == t


def test_the_pool_is_prepared_once():
    made = []
    learner = ActiveLearner(ToyModel(n_problems=made))
    for _ in range(3):
        i = learner.query(POOL)
        learner.tell(i, GOLD[i])
    learner.query([x.copy() for x in POOL])  # equal samples are the same pool
    assert made == [["pool"]]
    with pytest.raises(DataError, match=r"another pool than before; .* or call reset\(\)"):
        learner.query(POOL[:-1])
    assert learner.reset().query(POOL[:-1]) == 0


def test_random_is_a_permutation_by_seed():
    def order(seed):
        learner = ActiveLearner(ToyModel(), "random", random_state=seed, window=1, threshold=1e9)
        found = []
        while not learner.should_stop:  # the rule does not apply
            found.append(learner.query(POOL))
            learner.tell(found[-1], GOLD[found[-1]])
        assert len(learner.average_uncertainty_) == len(POOL) - 1
        return found

    assert order(3) == order(3) != order(4)
    assert sorted(order(3)) == list(range(len(POOL)))


def test_nothing_left():
    learner = ActiveLearner(ToyModel())
    learner.run(POOL, lambda i, x: GOLD[i])
    assert learner.should_stop and learner.annotated_.size == len(POOL)
    with pytest.raises(DataError, match="every sample of the pool is annotated; nothing is left"):
        learner.query(POOL)
    with pytest.raises(DataError, match="every sample of the pool is complete; nothing is left"):
        learner.query_part(POOL)


def test_stopping_rule_ends_a_run():
    learner = ActiveLearner(ToyModel(), window=3, threshold=0.2)
    learner.run(POOL, lambda i, x: GOLD[i])
    assert learner.should_stop and 4 <= len(learner.average_uncertainty_) < len(POOL) - 1
    assert learner.convergence_ <= 0.2
    assert ActiveLearner(ToyModel(), window=3).run(POOL, lambda i, x: None).convergence_ is None


def test_pool_with_annotated_samples_learns_from_them_first():
    pool = [(x, y) if n < 4 else x for n, (x, y) in enumerate(zip(POOL, GOLD, strict=True))]
    learner = ActiveLearner(ToyModel())
    assert learner.query(pool) >= 4
    assert learner.weights_.any()
    assert learner.annotated_.tolist() == [0, 1, 2, 3]


# ---------------------------------------------------------------------- parts


def test_parts_are_asked_until_samples_are_complete():
    learner = ActiveLearner(ToyModel())
    n_nodes = 0

    def annotator(part, x):
        nonlocal n_nodes
        assert isinstance(part, Part) and 1 <= len(part.nodes) <= 2
        n_nodes += len(part.nodes)
        return {node: GOLD[part.sample][node] for node in part.nodes}

    learner.run(POOL, annotator, parts=2)
    assert learner.should_stop
    assert n_nodes == sum(map(len, POOL))  # no node twice
    assert learner._session.problem.complete.all()


def test_a_partial_answer_leaves_the_sample_in_the_pool_of_parts_only():
    learner = ActiveLearner(ToyModel())
    i = learner.query(POOL)
    learner.tell(i, {0: GOLD[i][0]})
    assert learner.query(POOL) != i
    asked = set()
    for _ in range(200):
        part = learner.query_part(POOL, size=1)
        asked.add(part.sample)
        learner.tell(part.sample, {n: GOLD[part.sample][n] for n in part.nodes})
        if learner.should_stop:
            break
    assert asked == set(range(len(POOL))) - ({i} if len(POOL[i]) == 1 else set())


def test_empty_answers_do_not_go_on_for_ever():
    learner = ActiveLearner(ToyModel()).run(POOL, lambda part, x: {}, parts=2)
    assert not learner.annotated_.size


def test_size_of_parts_is_checked():
    with pytest.raises(DataError, match="size must be a positive integer, got 0"):
        ActiveLearner(ToyModel()).query_part(POOL, size=0)


# ---------------------------------------------------------------------- skips and interrupts


def test_skipped_samples_are_asked_again_in_the_next_run_only():
    learner = ActiveLearner(ToyModel())
    asked = []
    learner.run(POOL, lambda i, x: asked.append(i))
    assert sorted(asked) == list(range(len(POOL))) and not learner.annotated_.size
    with pytest.raises(DataError, match=r"every sample that is left \(14\) was skipped"):
        learner.query(POOL)
    learner.run(POOL, lambda i, x: GOLD[i], max_queries=3)
    assert learner.annotated_.size == 3


def test_an_annotator_may_stop_or_be_interrupted():
    learner = ActiveLearner(ToyModel())

    def annotator(i, x):
        if learner.annotated_.size == 2:
            raise StopIteration
        if learner.annotated_.size == 5:
            raise KeyboardInterrupt
        return GOLD[i]

    learner.run(POOL, annotator)
    assert learner.annotated_.size == 2
    learner.tell(learner.query(POOL), GOLD[learner.query(POOL)])
    with pytest.raises(KeyboardInterrupt, match=r"the 5 annotation\(s\) so far are kept"):
        learner.run(POOL, annotator)
    assert learner.annotated_.size == 5


@pytest.mark.parametrize("with_log", [False, True])
def test_interrupted_learning_goes_on_from_the_answers(monkeypatch, tmp_path, with_log):
    log = tmp_path / "log" if with_log else None
    learner, other = ActiveLearner(ToyModel(), log=log), ActiveLearner(ToyModel())
    for _ in range(3):
        i = learner.query(POOL)
        other.query(POOL)
        learner.tell(i, GOLD[i])
        other.tell(i, GOLD[i])
    i = learner.query(POOL)
    update, calls = ToyProblem.update, []

    def interrupted(self, *arguments):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return update(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(ToyProblem, "update", interrupted)
        with pytest.raises(KeyboardInterrupt):
            learner.tell(i, GOLD[i])
    other.tell(i, GOLD[i])
    np.testing.assert_array_equal(learner.weights_, other.weights_)
    assert learner.average_uncertainty_ == other.average_uncertainty_
    assert learner.query(POOL) == other.query(POOL)


def test_an_interrupted_check_of_an_answer_forgets_it(monkeypatch):
    learner = ActiveLearner(ToyModel())
    i = learner.query(POOL)
    annotate = ToyProblem.annotate

    def interrupted(self, *arguments):
        annotate(self, *arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ToyProblem, "annotate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            learner.tell(i, GOLD[i])
    assert learner.query(POOL) == i  # as if it had not been answered
    assert not learner.annotated_.size


# ---------------------------------------------------------------------- answers that are wrong


def state(learner):
    problem = learner._session.problem
    return (
        learner.weights_.tolist(),
        learner.average_uncertainty_,
        [a.tolist() for a in problem.allowed],
        len(learner._entries),
    )


@pytest.mark.parametrize(
    ("i", "annotation", "error", "message"),
    [
        (0, ["A"], DataError, "sample 0 has"),
        (0, {0: "unheard"}, DataError, "unknown label"),
        (99, ["A"], DataError, "there is no sample 99; they are numbered 0 to 13"),
        (-1, ["A"], DataError, "there is no sample -1"),
        (True, ["A"], DataError, "there is no sample True"),
        (0, object(), DataError, "cannot be written to a log"),
    ],
)
def test_invalid_answers_change_nothing(tmp_path, i, annotation, error, message):
    with ActiveLearner(ToyModel(), log=tmp_path / "log") as learner:
        learner.query(POOL)
        learner.tell(3, GOLD[3])
        before = state(learner)
        with pytest.raises(error, match=message) as caught:
            learner.tell(i, annotation)
        assert repr(annotation) in caught.value.__notes__[0]
        assert state(learner) == before and len(learner._file.entries()) == 1
        learner.tell(0, GOLD[0])


def test_a_correction_replaces_what_was_said():
    wrong = ["B" if label == "A" else "A" for label in GOLD[2]]
    learner = ActiveLearner(ToyModel())
    learner.query(POOL)
    learner.tell(2, wrong)
    learner.tell(5, {0: GOLD[5][0]})
    with pytest.raises(InfeasibleError, match="contradicts what is known"):
        learner.tell(2, GOLD[2])
    learner.tell(2, GOLD[2], replace=True)
    learner.tell(5, GOLD[5], replace=True)
    problem = learner._session.problem
    right = ToyProblem(POOL)
    right.annotate(2, GOLD[2])
    right.annotate(5, GOLD[5])
    for found, expected in zip(problem.allowed, right.allowed, strict=True):
        np.testing.assert_array_equal(found, expected)
    learner.tell(2, wrong, replace=True)  # and back: the first row does not count any more
    right = ToyProblem(POOL)
    right.annotate(2, wrong)
    np.testing.assert_array_equal(learner._session.problem.allowed[2], right.allowed[2])


def test_a_log_that_cannot_be_written_leaves_the_learner_as_it_was(tmp_path, monkeypatch):
    with ActiveLearner(ToyModel(), log=tmp_path / "log") as learner:
        i = learner.query(POOL)
        learner.tell(i, GOLD[i])
        before = state(learner)

        def full(*_, **__):
            raise DataError("the disk is full")

        with monkeypatch.context() as patch:
            patch.setattr(AnnotationLog, "add", full)
            with pytest.raises(DataError, match="disk is full"):
                learner.tell(learner.query(POOL), GOLD[learner.query(POOL)])
        i = learner.query(POOL)  # from what is written
        assert state(learner) == before
        learner.tell(i, GOLD[i])


# ---------------------------------------------------------------------- logs


@pytest.mark.parametrize("strategy", ["best-vs-second", "random", "parts", "retrain"])
def test_a_resumed_learner_has_the_same_bits(tmp_path, strategy):
    parts = 2 if strategy == "parts" else None
    settings = {
        "strategy": "random" if strategy == "random" else "best-vs-second",
        "retrain_every": 3 if strategy == "retrain" else None,
    }

    def annotator(question, x):
        if parts is None:
            return GOLD[question]
        return {n: GOLD[question.sample][n] for n in question.nodes}

    with ActiveLearner(ToyModel(), log=tmp_path / "a", **settings) as whole:
        whole.run(POOL, annotator, max_queries=7, parts=parts)
        seed = whole._seed
    for n in (3, 4):
        with ActiveLearner(
            ToyModel(), log=tmp_path / "b", random_state=None if n == 4 else seed, **settings
        ) as resumed:
            resumed.run(POOL, annotator, max_queries=n, parts=parts)
    np.testing.assert_array_equal(whole.weights_, resumed.weights_)
    assert whole.average_uncertainty_ == resumed.average_uncertainty_
    assert [e.sample for e in whole._entries] == [e.sample for e in resumed._entries]
    assert whole.should_stop == resumed.should_stop


def test_log_holds_corrections_and_tuples(tmp_path):
    log = tmp_path / "log"
    with ActiveLearner(ToyModel(), log=log) as learner:
        learner.query(POOL)
        learner.tell(0, tuple(GOLD[0]))
        learner.tell(1, [{"A", "B"}] * len(POOL[1]))
        learner.tell(0, ["A"] * len(POOL[0]), replace=True)
        before = state(learner)
    with ActiveLearner(ToyModel(), log=log) as learner:
        learner.query(POOL)
        assert state(learner) == before
    with sqlite3.connect(log) as file:
        keys = [key for (key,) in file.execute("SELECT key FROM annotations")]
    file.close()
    assert keys[0] == keys[2] != keys[1]


def test_nothing_is_told_to_a_closed_log(tmp_path):
    log = tmp_path / "log"
    learner = ActiveLearner(ToyModel(), log=log)
    learner.query(POOL)
    learner.tell(np.int64(0), GOLD[0])
    learner.close()
    with pytest.raises(DataError, match=r"the log is closed; call query\(pool\), which opens it"):
        learner.tell(1, GOLD[1])
    with ActiveLearner(ToyModel(), log=log) as other:
        other.query(POOL)
        other.tell(5, GOLD[5])
    assert learner.query(POOL) not in (0, 5)  # what the other wrote is there
    learner.tell(1, GOLD[1])
    assert [entry.sample for entry in learner._file.entries()] == [0, 5, 1]
    learner.close()


def test_a_log_belongs_to_its_pool_and_to_one_learner(tmp_path, monkeypatch):
    log = tmp_path / "log"
    with ActiveLearner(ToyModel(), log=log) as learner:
        learner.query(POOL)
        learner.tell(0, GOLD[0])
        monkeypatch.setattr(AnnotationLog.__init__, "__kwdefaults__", {"timeout": 0.05})
        with pytest.raises(DataError, match="in use by another process or learner"):
            ActiveLearner(ToyModel(), log=log).query(POOL)
    other = ActiveLearner(ToyModel(), log=log)
    with pytest.raises(DataError, match="belongs to another pool"):
        other.query(POOL[1:])
    assert other.query(POOL) != 0  # it was not left locked
    other.close()


# ---------------------------------------------------------------------- combined learning


def test_finish_minimises_the_regularised_hinge_loss():
    from scipy.optimize import minimize

    learner = ActiveLearner(ToyModel(l2=0.3)).run(POOL, lambda i, x: GOLD[i], max_queries=6)
    perceptron = learner.weights_
    model = learner.finish(tol=1e-6)
    problem, told = learner._session.problem, learner.annotated_

    def objective(w):
        above = problem.maxima(w, "all", loss=True, samples=told).values
        return 0.3 * w @ w + (above - problem.maxima(w, "compatible", samples=told).values).sum()

    best = minimize(objective, model.weights_, method="Powell", options={"maxiter": 20}).fun
    assert objective(model.weights_) <= best + 1e-4 * best
    assert objective(np.zeros(problem.n_weights)) > best
    np.testing.assert_array_equal(learner.weights_, perceptron)
    np.testing.assert_array_equal(learner.model_.weights_, perceptron)
    smaller = learner.finish(l2=30.0)
    assert np.linalg.norm(smaller.weights_) < np.linalg.norm(model.weights_)


@pytest.mark.parametrize("loss", ["bridge", "ramp", "max"])
def test_finish_learns_from_partial_answers(loss):
    pool, gold, true = toy_data(40, seed=2)
    test, right, _ = toy_data(60, seed=3, true=true)
    learner = ActiveLearner(ToyModel(l2=0.1))
    learner.run(pool, lambda p, x: {n: gold[p.sample][n] for n in p.nodes}, parts=1, max_queries=30)
    assert not learner._session.problem.complete[learner.annotated_].all()
    said = learner.finish(loss).predict(test)
    assert np.mean(np.concatenate(said) == np.concatenate(right)) > 0.85


def test_retraining_takes_the_place_of_the_pass():
    plain, trained = ActiveLearner(ToyModel()), ActiveLearner(ToyModel(), retrain_every=2)
    for learner in (plain, trained):
        learner.query(POOL)
        for i in (4, 7):
            learner.tell(i, GOLD[i])
    assert not np.array_equal(plain.weights_, trained.weights_)
    np.testing.assert_allclose(trained.weights_, plain.finish().weights_)


def test_nothing_annotated_is_nothing_to_learn_from():
    learner = ActiveLearner(ToyModel())
    learner.query(POOL)
    with pytest.raises(DataError, match="nothing is annotated yet"):
        learner.finish()


def test_uncertain_samples_teach_more_than_random_ones():
    """Mean test loss after a quarter of a noise-free pool, over two pools."""
    loss = {"best-vs-second": 0, "random": 0}
    for seed in range(2):
        pool, gold, true = toy_data(60, seed=seed, longest=3)
        test, right, _ = toy_data(100, seed=100 + seed, true=true, longest=3)
        for strategy in loss:
            learner = ActiveLearner(ToyModel(l2=0.01), strategy, random_state=seed)
            learner.run(pool, lambda i, x, gold=gold: gold[i], max_queries=15)
            said = learner.finish().predict(test)
            pairs = zip(said, right, strict=True)
            loss[strategy] += sum(a != b for s, g in pairs for a, b in zip(s, g, strict=True))
    assert loss["best-vs-second"] < loss["random"]


# ---------------------------------------------------------------------- disagreement


def votes(*answers):
    return [lambda pool, said=said: said for said in answers]


def test_disagreement_asks_for_what_the_experts_dispute():
    pool = [np.ones((3, 3)), np.ones((4, 3)), np.ones((2, 3))]
    first = [list("AAA"), list("ABAB"), list("BB")]
    second = [list("AAB"), list("ABAB"), list("AA")]
    learner = ActiveLearner(ToyModel(), "disagreement", experts=votes(first, second))
    assert learner.query(pool) == 2
    assert learner.query_part(pool, size=1) == Part(2, (0,))
    learner.tell(2, {0: "A"})
    assert learner.average_uncertainty_ == [pytest.approx((1 / 3 + 0 + 1 / 2) / 3)]
    assert learner.query_part(pool, size=1) == Part(2, (1,))
    learner.tell(2, {1: "A"})
    assert learner.query_part(pool) == Part(0, (2,))
    learner.tell(0, {2: "A"})
    part = learner.query_part(pool, size=2)  # all agree on the rest: by the model
    assert part.sample == 0 and len(part.nodes) == 2


def test_experts_may_be_models():
    problem = ToyProblem(POOL)
    rng = np.random.default_rng(0)
    experts = [ToyModel().with_weights(problem, rng.normal(size=10)) for _ in range(3)]
    learner = ActiveLearner(ToyModel(), "disagreement", experts=experts)
    learner.run(POOL, lambda i, x: GOLD[i], max_queries=4)
    assert learner.annotated_.size == 4


def test_experts_must_answer_the_pool():
    learner = ActiveLearner(ToyModel(), "disagreement", experts=votes([["A"]], [["B"]]))
    with pytest.raises(DataError, match="the experts answer 1 samples, but the pool has 14"):
        learner.query(POOL)


# ---------------------------------------------------------------------- chains of words

TAGS = {"the": "D", "a": "D", "cat": "N", "dog": "N", "sat": "V", "ran": "V"}
WORDS = [[d, n, v] for d in ("the", "a") for n in ("cat", "dog") for v in ("sat", "ran")]


def tags(words):
    return [TAGS[word] for word in words]


def test_words_whole_and_in_parts(tmp_path):
    from trellis import Corpus, MaxMargin

    model = MaxMargin("word", l2=0.1)
    labelled = (WORDS, [tags(WORDS[0])] + [[None] * 3] * 7)
    for pool in (WORDS, Corpus.from_columns({"word": WORDS}), labelled):
        learner = ActiveLearner(model, labels=["D", "N", "V"])
        learner.run(pool, lambda i, sample: tags(WORDS[i]), max_queries=4)
        assert learner.annotated_.size == (5 if pool is labelled else 4)
        assert learner.finish().predict(WORDS) == [tags(words) for words in WORDS]
    log = tmp_path / "log"
    for n in (4, 6):
        with ActiveLearner(model, labels=["D", "N", "V"], log=log) as learner:
            learner.run(
                WORDS,
                lambda part, words: {n: TAGS[words[n]] for n in part.nodes},
                parts=1,
                max_queries=n,
            )
            assert learner.finish().predict(WORDS) == [tags(w) for w in WORDS] or n == 4
    assert len(learner._entries) == 10


# ---------------------------------------------------------------------- parameters


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"strategy": "least"}, "strategy must be 'auto', 'random', 'scoring'"),
        ({"strategy": "disagreement"}, "belong together"),
        ({"experts": votes([], [])}, "belong together"),
        ({"strategy": "disagreement", "experts": votes([])}, "two experts to disagree, got 1"),
        ({"candidates": 1}, "candidates must be None or an integer of at least 2, got 1"),
        ({"retrain_every": 0}, "retrain_every must be None or a positive integer, got 0"),
        ({"random_state": -1}, "random_state must be None or an integer of at least 0"),
        ({"window": 0}, "window must be a positive integer"),
        ({"threshold": -1}, "threshold must be a number"),
    ],
)
def test_parameters_are_checked(parameters, message):
    with pytest.raises(DataError, match=message):
        ActiveLearner(ToyModel(), **parameters)


def test_model_and_start_are_checked():
    with pytest.raises(DataError, match="model must be a model that can learn from cheap data"):
        ActiveLearner(object())
    learner = ActiveLearner(ToyModel(), start=np.zeros(3))
    with pytest.raises(DataError, match=r"start must be 10 finite numbers, .* shape \(3,\)"):
        learner.query(POOL)
    with pytest.raises(DataError, match="l2 must be a positive number, got 0"):
        ActiveLearner(ToyModel(l2=0)).run(POOL, lambda i, x: GOLD[i], max_queries=1).finish()


def test_a_model_must_see_as_many_samples_as_the_pool_has():
    class Strange(ToyModel):
        def learning_problems(self, data, *, labels=None):
            return super().learning_problems({k: v[1:] for k, v in data.items()}, labels=labels)

    with pytest.raises(DataError, match="the pool has 14 samples, but the model sees 13"):
        ActiveLearner(Strange()).query(POOL)


def test_before_the_first_query():
    learner = ActiveLearner(ToyModel())
    assert not learner.should_stop
    for action in (
        lambda: learner.tell(0, ["A"]),
        lambda: learner.weights_,
        lambda: learner.model_,
        learner.finish,
    ):
        with pytest.raises(DataError, match=r"there is no pool yet: call query\(pool\) first"):
            action()
    with pytest.raises(DataError, match="the pool is empty"):
        learner.query([])


def test_averages_are_those_of_the_cut_off_uncertainties():
    pool = [10000 * x for x in POOL]
    learner = ActiveLearner(ToyModel(), "scoring", start=-np.ones(10))
    learner.query(pool)
    learner.tell(0, GOLD[0])
    assert np.isfinite(learner.average_uncertainty_).all()


# ---------------------------------------------------------------------- threads and processes


def test_threads_share_a_learner(tmp_path):
    path = tmp_path / "log"
    with ActiveLearner(ToyModel(), log=path) as learner:
        learner.query(POOL)

        def answer(i):
            learner.tell(i, GOLD[i])
            return learner.query(POOL) if len(learner.annotated_) < len(POOL) else i

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(answer, range(len(POOL) - 1)))
        weights, history = learner.weights_, learner.average_uncertainty_
    with ActiveLearner(ToyModel(), log=path) as again:  # one answer after the other
        again.query(POOL)
        assert again.annotated_.tolist() == list(range(len(POOL) - 1))
        assert np.array_equal(again.weights_, weights)
        assert again.average_uncertainty_ == history


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_learner_in_a_forked_process_is_refused_by_its_log(tmp_path):
    learner = ActiveLearner(ToyModel(), log=tmp_path / "log")
    learner.query(POOL)
    learner.tell(0, GOLD[0])
    taken, done = threading.Event(), threading.Event()

    def hold():  # as if in the middle of an answer
        with learner._lock:
            taken.set()
            done.wait()

    with ThreadPoolExecutor(1) as thread:
        thread.submit(hold)
        taken.wait()
        child = os.fork()
        if child == 0:
            try:
                refused = 0
                with learner:
                    for use in (lambda: learner.tell(1, GOLD[1]), lambda: learner.query(POOL)):
                        try:
                            use()
                        except DataError as error:
                            refused += "which was forked off; open logs after" in str(error)
                os._exit(refused != 2)
            finally:
                os._exit(3)
        done.set()
        assert os.waitpid(child, 0)[1] == 0
    learner.tell(2, GOLD[2])
    learner.close()
    with AnnotationLog(tmp_path / "log") as log:
        assert [entry.sample for entry in log.entries()] == [0, 2]


def test_copies_of_a_learner_do_not_wait_for_it():
    learner = ActiveLearner(ToyModel())
    learner.query(POOL)
    learner.tell(0, GOLD[0])
    with ThreadPoolExecutor(1) as thread, learner._lock:
        for twin in (copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))):
            thread.submit(twin.tell, 1, GOLD[1]).result()
            assert twin.annotated_.tolist() == [0, 1]
    assert learner.annotated_.tolist() == [0]
