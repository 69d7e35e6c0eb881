"""Transfer between movies: what nobody annotated is guessed there, too."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from trellis.cheap import TransferLearner
from trellis.cheap.related_models import RelatedModels
from trellis.datasets import Lab, simulate_cells
from trellis.tracking import EVENTS, PairAnnotation, TrackingModel
from trellis.tracking.guesses import Guesses

KINDS = EVENTS[:4]
LAB = Lab(over_segmentation=0.0, under_segmentation=0.0, cycle=16.0)  # no splits and merges


def bare(pairs):
    return [replace(pair, annotation=None) for pair in pairs]


def with_links(pairs, n):
    note = PairAnnotation(pairs[0].annotation.links[:n], (), ())
    return [replace(pairs[0], annotation=note), *bare(pairs[1:])]


def crowded(pairs):
    """The same cells, three times as near to each other: what was far is near now."""
    return [
        replace(
            pair,
            source=replace(pair.source, position=pair.source.position / 3),
            target=replace(pair.target, position=pair.target.position / 3),
        )
        for pair in pairs
    ]


MOVIE = simulate_cells(60, 6, lab=LAB, seed=1)
TEST = simulate_cells(60, 6, lab=LAB, seed=2)
OTHER = crowded(simulate_cells(60, 6, lab=LAB, seed=3))


def learned(data, model=None, **options):
    return TransferLearner(model or TrackingModel(KINDS), target="new", **options).fit(data)


@pytest.mark.parametrize("n", [0, 5])
def test_a_target_alone_is_learned_as_by_fit(n):
    known = with_links(MOVIE, n) if n else bare(MOVIE)
    model = TrackingModel(KINDS).fit(known)
    alone = learned({"new": known}, strategy="all-target")
    assert alone.objective_ == pytest.approx(model.objective_, rel=0.05)
    assert alone.models_["new"].task_loss(TEST) == pytest.approx(model.task_loss(TEST), abs=0.03)


@pytest.mark.parametrize("n", [0, 5])
def test_a_source_that_is_unlike_does_no_harm(n):
    known = with_links(MOVIE, n) if n else bare(MOVIE)
    data = {"old": OTHER, "new": known}
    found = learned(data)
    assert (found.strategy_, found.rho_) == ("transfer", 2.5)
    loss = found.models_["new"].task_loss(TEST)
    source = learned(data, strategy="all-source").models_["new"].task_loss(TEST)
    alone = TrackingModel(KINDS).fit(known).task_loss(TEST)
    assert loss < min(source, alone) + 0.02


def test_movies_of_which_nothing_is_annotated_have_models():
    found = TransferLearner(TrackingModel(KINDS)).fit({"a": bare(MOVIE), "b": bare(TEST)})
    assert found.rho_ == 2.5
    assert found.models_["a"].score(TEST) > 0.9
    union = TransferLearner(TrackingModel(KINDS), strategy="union")
    assert union.fit({"a": bare(MOVIE), "b": bare(TEST)}).rho_ == np.inf


def test_without_a_prior_nothing_is_guessed():
    data = {"old": TEST, "new": bare(MOVIE)}
    model = TrackingModel(KINDS, prior=None)
    assert learned(data, model).strategy_ == "all-source"
    assert model.guesses(model.learning_problems(data)["new"]) is None


def test_a_factor_that_is_given_is_kept():
    assert learned({"old": TEST, "new": bare(MOVIE)}, rho=7.0).rho_ == 7.0


def test_the_regulariser_is_lighter_for_few_events():
    model = TrackingModel(KINDS)
    problems = model.learning_problems({"old": MOVIE[:1], "new": bare(TEST[:1])})
    models = RelatedModels(problems, "bridge", 1.0).guessing(model, ["old", "new"], "new", 0.01)
    seen = []

    class Noting(RelatedModels):
        def learn(self, objectives, rho, tol, start=None):
            seen.append((self.l2, start is None))
            return super().learn(objectives, rho, tol, start)

    noting = Noting(**{name: getattr(models, name) for name in models.__dataclass_fields__})
    noting.learn_all(["old", "new"], 2.5, 0.01)
    n = problems["old"].n_known + models.guesses["new"].n_events
    assert seen == [(n / 4000, True), (n / 4000, False)]


def test_guesses_that_are_outdone_are_left_out(monkeypatch):
    monkeypatch.setattr(Guesses, "outdone_by", lambda *_: True)
    data = {"old": TEST, "new": bare(MOVIE)}
    assert learned(data).strategy_ == "all-source"
    few = learned({"old": TEST, "new": with_links(MOVIE, 5)})
    assert few.rho_ > 0
