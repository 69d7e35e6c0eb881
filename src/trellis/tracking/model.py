r"""Cell tracking by assignment, with weights learned from annotations (Lou et al., section 1.2).

For each pair of consecutive frames the model chooses the events that explain every object once,

.. math::

    \hat y = \arg\max_y \sum_h y_h \langle w, F_h\rangle \quad \text{s.t. each object of both frames
    is covered by exactly one chosen event,}

and learns w by max-margin training (:mod:`trellis.solvers.partial_margin`), from annotations of all
objects, of some, of a few, or of none:

.. math:: \min_w \; \lambda \lVert w\rVert^2 \;(\text{or } \lambda \lVert w\rVert_1)
    + \sum_n \ell(x_n, y^*_n; w) .

What nobody annotated is guessed, and weighs the less the more is annotated
(:mod:`trellis.tracking.guesses`); with ``prior=None`` it says nothing, as published.

Given the weights frame pairs depend on each other only through objects that were missed for a frame
or more (:mod:`trellis.tracking.gap_model`): a movie is one assignment problem, solved in windows
that bound the memory (:mod:`trellis.tracking.movie_problem`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from trellis.arrays import Float64s
from trellis.domains import flag, instance, nothing, number, one_of, sequence_of, whole
from trellis.errors import DataError
from trellis.estimator import Seeded, changed, fitted, parameter, renamed
from trellis.files.container import loading, read_container
from trellis.files.stored import header_value
from trellis.problems.partial import PARTIAL_LOSSES, PartialObjective
from trellis.progress import Reporter, Task
from trellis.solvers.partial_margin import MAX_ITERATIONS, MAX_ROUNDS, minimise_partial
from trellis.solvers.perceptron_partial import partial_perceptron
from trellis.structures.assignment import kbest_assignments
from trellis.tracking.annotation import events_of, links_of
from trellis.tracking.annotation_extent import (
    annotated_kinds,
    bare,
    is_complete,
    n_annotated_events,
    usual_knots,
    warn_of_no_division,
)
from trellis.tracking.default_features import default_features
from trellis.tracking.event_kinds import SOME_EVENTS, EventKind, all_kinds, event_names
from trellis.tracking.features import EventFeature, check_events_of
from trellis.tracking.gap_model import GapModel
from trellis.tracking.gates import learned_gate
from trellis.tracking.guesses import MOST, Guesses, few_of, flow_guesses, share_of_regulariser
from trellis.tracking.hypotheses import check_gates
from trellis.tracking.hypothesis_space import (
    HypothesisSpace,
    common_columns,
    common_dimensions,
    common_relations,
)
from trellis.tracking.link_probabilities import MOST as ENOUGH
from trellis.tracking.link_probabilities import Witness
from trellis.tracking.model_file import StoredTrackingModel
from trellis.tracking.movie import movies_of
from trellis.tracking.movie_problem import (
    MovieProblem,
    MovieSolution,
    ScoredPair,
    pairwise_solution,
)
from trellis.tracking.objects import EVENTS, FramePair, Link
from trellis.tracking.problem import TrackingProblem
from trellis.tracking.result import (
    TrackEvent,
    TrackingResult,
    annotated_events,
    assemble_tracks,
)
from trellis.tracking.scores import event_set, score_links, task_loss

__all__ = ["TrackingModel"]


_PERCEPTRON_PASSES = 50
_STEP = 0.03  # most of a passive-aggressive step
_PLENTY = 4000  # annotated events that tell the gate without guesses
_WINDOW = 50  # frame pairs


class TrackingModel(Seeded, StoredTrackingModel):
    """Tracking of dividing cells by assignment, learned from annotated frame pairs.

    Attributes
    ----------
    weights_ : float64, shape (D,)
        The weights, event by event; :meth:`coefficients` names them.
    columns_ : tuple of str
        Columns of the objects that are used.
    events_, max_distance_
        Kinds of events, and the gate.
    temperature_ : float or None
        What scores are divided by to be logarithms of probabilities
        (:mod:`trellis.tracking.link_probabilities`); chosen when it is first asked for, by what the
        model was fitted to. None: that is not known any more, as of an old file.
    objective_, gap_ : float
        What training reached, and by how much the optimum may be lower (infinite where the
        objective is not convex, as with partial annotations).
    stop_reason_ : str
        Why training ended.
    history_ : list
        What each iteration brought.

    Examples
    --------
    >>> from trellis.datasets import simulate_cells
    >>> from trellis.tracking import TrackingModel
    >>> pairs = simulate_cells(30, 8, seed=0)
    >>> model = TrackingModel(l2=1.0).fit(pairs[:4])
    >>> result = model.predict(pairs[4:])
    >>> result.links[0].kind, model.score(pairs[4:]) > 0.9
    ('move', True)
    """

    events: str | Sequence[str | EventKind] = parameter(
        one_of("auto") | SOME_EVENTS,
        """Kinds of events: "move", "appear" and "disappear" always; "division"; "split" and
        "merge" where objects may be detected in two parts, or two objects as one. "auto": all but
        the last two, and these if they are annotated. Kinds of your own are objects of classes
        derived from :class:`EventKind`.""",
        default="auto",
        kw_only=False,
    )
    n_neighbors: int = parameter(
        whole(1),
        "Nearest objects that an object may be linked to.",
        default=6,
        option="--neighbours",
    )
    max_distance: float | str = parameter(
        one_of("auto") | number(above=0),
        """Farthest objects that it may link; "auto": one and a half times the longest link that is
        annotated or guessed (:mod:`trellis.tracking.gates`).""",
        default="auto",
    )
    features: Sequence[EventFeature] = parameter(
        sequence_of(instance(EventFeature), "a list of EventFeature"),
        "Features beside those that are made of the columns the objects have.",
        default=(),
    )
    knots: int | str = parameter(
        one_of("auto") | whole(0),
        """Steps that each feature is divided into, so that weights can say of each range of its
        values how likely it is (:mod:`trellis.tracking.preconditioning`); 0: one weight a feature,
        as published. "auto": 3, 5 from 1,000 annotated events on, 7 from 2,500 on.""",
        default="auto",
    )
    max_gap: int = parameter(
        whole(0),
        """Most frames in a row that an object may be missed for; 0: tracks end where an object is
        missed. How often that happens, and what such objects look like, is learned from the movie,
        and from links over gaps if they are annotated (:mod:`trellis.tracking.gap_model`).""",
        default=2,
    )
    prior: str | None = parameter(
        nothing | one_of("flow"),
        """What to make of objects that nobody annotated. "flow": what the flow tracker finds of
        them is weak annotation (:mod:`trellis.tracking.guesses`), so that few annotated links, or
        none, do not make a model worse than that tracker; give ``fit`` the whole movie. None:
        nothing, as published. The perceptron has no prior.""",
        default="flow",
    )
    bias: bool = parameter(flag, "Whether each kind of event has a constant feature.", default=True)
    loss: str = parameter(
        one_of(*PARTIAL_LOSSES),
        "Loss of annotations, complete or partial (:mod:`trellis.problems.partial`).",
        default="bridge",
    )
    l2: float = parameter(
        number(at_least=0),
        """Factor of ‖w‖² beside the sum of the losses. With guesses that count less than 4,000
        events together with the annotated ones: in proportion less.""",
        default=1.0,
    )
    l1: float = parameter(
        number(at_least=0),
        "Factor of ‖w‖₁ beside the sum of the losses, likewise; one of the two is positive.",
        default=0.0,
    )
    cost: str = parameter(
        one_of("hamming", "recall"),
        """Task loss in training: wrong events count as well as missing ones, or only the
        latter.""",
        default="hamming",
    )
    normalise: bool = parameter(
        flag,
        """Divide the loss of a pair by its number of events. Pairs (or patches) count alike then;
        otherwise every object does.""",
        default=False,
    )
    solver: str = parameter(
        one_of("bundle", "perceptron"),
        "Max-margin training, or the averaged perceptron of partial annotations.",
        default="bundle",
    )
    tol: float = parameter(number(above=0), "Relative precision of the training.", default=0.01)
    max_iter: int | None = parameter(
        nothing | whole(1),
        "Most iterations, rounds or passes; None: the solver's default.",
        default=None,
    )
    recycle: bool = parameter(
        flag, "Bounds recycling of the concave-convex procedure.", default=True
    )
    adaptive: bool = parameter(
        flag, "Adaptive precision of the concave-convex procedure.", default=True
    )
    verbose: bool = parameter(
        flag,
        """Show on standard error how far learning and tracking are: a bar on terminals and in
        notebooks, elsewhere a line for each iteration that found a lower objective.""",
        default=False,
    )
    random_state = changed(help="Seed of the perceptron.")
    neighbours = renamed("n_neighbors")
    max_iterations = renamed("max_iter")

    weights_: Float64s = fitted()
    hypothesis_space_: HypothesisSpace = fitted()
    columns_: tuple[str, ...] = fitted()
    objective_: float = fitted()
    gap_: float = fitted()
    stop_reason_ = ""
    history_: list[Any] = fitted()
    gap_model_: GapModel | None = None
    _temperature: float | None = None
    _by_guesses = True  # whether guesses told the temperature
    _witness: Witness | None = None  # what the temperature is chosen by, if it is not yet

    def _check_together(self) -> None:
        if (self.l2 > 0) == (self.l1 > 0):
            raise DataError(
                f"one of l2 and l1 must be positive and the other 0, got l2={self.l2!r} and "
                f"l1={self.l1!r}"
            )
        events = EVENTS if isinstance(self.events, str) else self.events
        check_gates(events, self.n_neighbors)
        check_events_of(self.features, [kind.name for kind in all_kinds(events)])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "weights_")

    # ---------------------------------------------------------------- training

    def fit(self, pairs: Iterable[FramePair], y: None = None) -> Self:
        """Learn from a movie that is annotated in full, in part or not at all.

        Parameters
        ----------
        pairs : sequence of FramePair
            As :func:`trellis.tracking.read_detections` gives them. Pairs without an annotation are
            guessed at (``prior``), some from all over the movie if there are many.
        y : None
            For scikit-learn; annotations are in the pairs.

        Raises
        ------
        DataError
            If an annotation cannot be, or nothing is annotated and there is no prior.
        """
        listed = _checked_pairs("", pairs)
        unknown = [pair for pair in listed if pair.annotation is None]
        few = {id(pair) for pair in (few_of(unknown) if self._guesses else [])}
        kept = [pair for pair in listed if pair.annotation is not None or id(pair) in few]
        if not kept:
            raise DataError("nothing is annotated: there is nothing to learn from")
        with Reporter(self.verbose).stage("finding what may be linked"):
            problem = self.learning_problems({"": kept})[""]
        if self._guesses and all(map(is_complete, kept)):
            warn_of_no_division(kept, event_names(problem.hypothesis_space.events))
        self._fit(problem)
        self._witness = Witness.of(problem, self.weights_)
        self.gap_model_ = self._gaps_of(listed)
        return self

    @property
    def _guesses(self) -> bool:
        """Whether what is not annotated is guessed."""
        self._check_parameters()
        return self.prior is not None and self.solver == "bundle"

    def _gaps_of(self, pairs: Sequence[FramePair]) -> GapModel | None:
        """What gaps look like in these movies; None if there is too little to see."""
        movies = movies_of(pairs, self.max_gap)
        if not self.max_gap or movies is None:
            return None
        with Reporter(self.verbose).stage("looking for objects that were missed"):
            seen = [
                pairwise_solution(part, self._scored, _WINDOW)
                for part in (movie.excerpt(MOST) for movie in movies)
            ]
            return GapModel.learned(seen, self.hypothesis_space_, self.max_gap)

    def _scored(self, pair: FramePair) -> ScoredPair:
        """Hypotheses of a pair, and their scores."""
        space = self.hypothesis_space_
        hypotheses = space.hypotheses(pair, annotated=False)
        return ScoredPair(pair, hypotheses, space.matrix(pair, hypotheses) @ self.weights_)

    def _fit(self, problem: TrackingProblem) -> Self:
        if self.solver == "perceptron":
            return self._fit_perceptron(problem)
        guesses = self.guesses(problem)
        if guesses is None:
            return self._learn(PartialObjective(problem, self.loss))
        share = share_of_regulariser(guesses.n_events)
        with Reporter(self.verbose).stage("guessing what is not annotated"):
            objective = guesses.by_flow(self.loss)
        self._learn(objective, share, lines=False)
        return self._learn(guesses.by_model(self.weights_, self.loss), share, self.weights_)

    def guesses(self, problem: TrackingProblem, elsewhere: int = 0) -> Guesses | None:
        """What the prior makes of a problem; None if there is none, or enough is annotated.

        ``elsewhere`` is the number of events that are annotated in related data.
        """
        return Guesses.of(problem, elsewhere) if self._guesses else None

    def _fit_perceptron(self, problem: TrackingProblem) -> Self:
        objective = PartialObjective(problem, self.loss)
        if not len(objective.samples):
            raise DataError("nothing is annotated: there is nothing to learn from")
        passes = _PERCEPTRON_PASSES if self.max_iter is None else self.max_iter
        with Reporter(self.verbose).stage("learning"):
            w = partial_perceptron(problem, passes=passes, seed=self.random_state)
        self._adopt(problem, w)
        self.objective_, self.gap_ = objective.value(w), np.inf
        self.stop_reason_, self.history_ = "perceptron", []
        return self

    def _learn(
        self,
        objective: PartialObjective,
        share: float = 1.0,
        start: Float64s | None = None,
        *,
        lines: bool = True,
    ) -> Self:
        """Minimise the losses beside a share of the regulariser."""
        reporter, last = Reporter(self.verbose), np.inf

        def after(record: Any) -> None:
            nonlocal last
            # The least objective so far stands for many a step in which nothing was found.
            steps.at(record.number)
            if lines:
                shown = record.objective < last and not reporter.draws
                reporter.line(_line(record, steps.text), shown=shown)
            last = min(last, record.objective)

        step, usual = ("iteration", MAX_ITERATIONS) if objective.convex else ("round", MAX_ROUNDS)
        steps = Task(step, self.max_iter or usual, limit=True)
        with reporter.under_way(steps):
            solution = minimise_partial(
                objective, l2=share * self.l2, l1=share * self.l1, tol=float(self.tol),
                limit=self.max_iter, start=start, recycle=self.recycle, adaptive=self.adaptive,
                seed=self.random_state, report=after,
            )  # fmt: skip
        assert isinstance(objective.problem, TrackingProblem)
        self._adopt(objective.problem, solution.weights)
        self.objective_, self.gap_ = solution.objective, solution.gap
        self.stop_reason_, self.history_ = solution.stop_reason, solution.records
        if solution.stop_reason == "interrupted":  # what was learned so far is kept, and usable
            raise KeyboardInterrupt
        return self

    def learning_problems(
        self,
        data: Mapping[str, Iterable[FramePair]],
        *,
        labels: Sequence[str] | None = None,
    ) -> dict[str, TrackingProblem]:
        """Make learning problems of data sets, for active learning and transfer.

        Parameters
        ----------
        data : dict of sequences of FramePair
            Frame pairs, annotated or not. Weights are shared, and what they weigh is, too: one
            scale of features for all data sets, each of which counts alike, and the widest of
            their gates. So places have one unit. Columns that not all of them have are left out.
        labels : None
            Not used.
        """
        self._check_parameters()
        sets = {name: _checked_pairs(name, pairs) for name, pairs in data.items()}
        if not sets:
            raise DataError("there is no data set")
        every = [pair for pairs in sets.values() for pair in pairs]
        common_dimensions(every)
        columns = common_columns(every)
        events = annotated_kinds(every) if isinstance(self.events, str) else tuple(self.events)
        features = (*default_features(columns, events, common_relations(every)), *self.features)
        far = self.max_distance
        gates = (
            [self._gate(pairs, events) for pairs in sets.values()]
            if isinstance(far, str)
            else [float(far)]
        )
        space = HypothesisSpace.common(
            list(sets.values()), events, self.n_neighbors, max(gates), features, columns,
            bias=self.bias,
            knots=usual_knots(every) if isinstance(self.knots, str) else int(self.knots),
        )  # fmt: skip
        return {
            name: TrackingProblem(pairs, space, cost=self.cost, normalise=self.normalise)
            for name, pairs in sets.items()
        }

    def _gate(self, pairs: Sequence[FramePair], events: Sequence[str | EventKind]) -> float:
        """The gate of annotated links and, unless these are plenty, of guessed ones."""
        if not self._guesses or n_annotated_events(pairs) >= _PLENTY:
            return learned_gate(pairs)
        some = few_of([pair for pair in pairs if not is_complete(pair)] or pairs)
        return learned_gate([*pairs, *flow_guesses([bare(pair) for pair in some], events)])

    def with_weights(self, problem: TrackingProblem, w: Float64s) -> Self:
        """Return a fitted copy for data such as that of ``problem``."""
        model = type(self)(**self.get_params(deep=False))
        model._adopt(problem, w)
        model.objective_, model.gap_, model.history_ = np.nan, np.inf, []
        return model

    def improve(self, problem: TrackingProblem, w: Float64s, samples: Sequence[int]) -> bool:
        """Make one pass over pairs in this order, in place; False if none was wrong.

        It is the perceptron's or, where there is a prior to keep, of small passive-aggressive
        steps.
        """
        most = _STEP if self._guesses else None
        return sum(problem.update(i, w, most=most) for i in samples) > 0

    def first_weights(self, problem: TrackingProblem) -> Float64s:
        """Weights to begin active learning with: what guesses say; zero without a prior."""
        return self.trained_on(problem).weights_ if self._guesses else np.zeros(problem.n_weights)

    def trained_on(self, problem: TrackingProblem) -> Self:
        """Return a copy fitted to what is known of a problem."""
        return type(self)(**self.get_params(deep=False))._fit(problem)

    def flat_weights(self, problem: TrackingProblem) -> Float64s:
        """Weights of the fitted model (D,)."""
        return self.weights_

    @property
    def training_loss(self) -> str:
        """The loss that is minimised."""
        return self.loss

    def _adopt(self, problem: TrackingProblem, w: Float64s) -> None:
        self.weights_ = np.array(w, np.float64)
        self.hypothesis_space_ = problem.hypothesis_space
        self.columns_ = problem.hypothesis_space.columns
        # What was learned of other weights says nothing of these.
        self._temperature = self._witness = self.gap_model_ = None

    # ---------------------------------------------------------------- prediction

    @property
    def events_(self) -> tuple[str, ...]:
        """Kinds of events that the model knows."""
        self._check_fitted()
        return event_names(self.hypothesis_space_.events)

    @property
    def temperature_(self) -> float | None:
        """What scores are divided by to be logarithms of probabilities, if that is known."""
        self._check_fitted()
        if self._temperature is None and self._witness is not None:
            # Who does not want to wait has a model all the same, which asks the movie.
            witness, self._witness = self._witness, None
            with Reporter(self.verbose).stage("choosing the scale of probabilities"):
                self._temperature = witness.temperature()
            self._by_guesses = witness.guessed
        return self._temperature

    @property
    def calibration_(self) -> str:
        """What tells the temperature: "annotated" links, or "guessed" ones."""
        return "guessed" if self.temperature_ is None or self._by_guesses else "annotated"

    def temperature_for(self, pairs: Sequence[FramePair]) -> float:
        """The temperature; if it is not known, that which the flow tracker's guesses say."""
        if self.temperature_ is not None:
            return self.temperature_
        some = [bare(pair) for pair in few_of(list(pairs), ENOUGH)]
        return Witness.of(
            TrackingProblem(some, self.hypothesis_space_), self.weights_
        ).temperature()

    @property
    def max_distance_(self) -> float:
        """Farthest objects that a hypothesis may link."""
        self._check_fitted()
        return self.hypothesis_space_.max_distance

    def _checked(self, pairs: Iterable[FramePair]) -> list[FramePair]:
        """Pairs that the model can track, without their annotations."""
        self._check_fitted()
        checked = _checked_pairs("", pairs)
        for pair in checked:
            self.hypothesis_space_.check_objects(pair)
        return [bare(pair) for pair in checked]

    def predict(
        self, pairs: Iterable[FramePair], *, window: int = _WINDOW, probabilities: bool = False
    ) -> TrackingResult:
        """Track objects.

        Parameters
        ----------
        pairs : sequence of FramePair
            Their annotations are not looked at. Whole movies: an object that was missed for a frame
            is found again in a later one. Patches are tracked one by one.
        window : int
            Number of frame pairs in memory at a time.
        probabilities : bool
            Whether to say how probable each link is, and what else may have been.

        Returns
        -------
        TrackingResult
            Links, events and tracks.
        """
        whole(1).check("window", window)
        flag.check("probabilities", probabilities)
        listed = self._checked(pairs)
        movies = movies_of(listed, self.max_gap)
        gaps = (self.gap_model_ or self._gaps_of(listed)) if self.max_gap else None
        if movies is None:
            gaps, movies = None, [movie for pair in listed for movie in movies_of([pair]) or ()]
        gaps = None if gaps is None else gaps.limited(self.max_gap)
        temperature = self.temperature_for(listed) if probabilities else None
        solved: list[MovieSolution] = []
        done, n = 0, sum(len(movie.pairs) for movie in movies)
        with Reporter(self.verbose).steps("tracking: pair of frames", n) as steps:
            for movie in movies:
                problem = MovieProblem(movie, self._scored, self.hypothesis_space_, gaps)
                for part in problem.solved(window, temperature):
                    solved.append(part)
                    done += part.n_pairs
                    steps.at(min(done, n - 1))
        result = assemble_tracks(
            [pair for movie in movies for pair in movie.pairs],
            [link for one in solved for link in one.links],
            [event for one in solved for event in one.events],
            kinds=self.hypothesis_space_.kinds,
            chances=[chance for one in solved for chance in one.chances],
        )
        score = sum(one.score for one in solved)
        return replace(result, score=score, bound=max(score, sum(one.bound for one in solved)))

    def predict_kbest(
        self,
        pairs: Iterable[FramePair],
        k: int,
        *,
        diversity: float = 0.0,
        window: int = 50,
    ) -> list[list[tuple[list[Link], float]]]:
        """Return the k best trackings of each frame pair with their scores, best first.

        Parameters
        ----------
        pairs : sequence of FramePair
            The pairs.
        k : int
            How many; there may be fewer.
        diversity : float
            If positive, what each event that was chosen before costs (diverse k best).
        window : int
            As for :meth:`predict`.
        """
        return [
            [(links, score) for links, _, score in ranked]
            for ranked in self._ranked(pairs, k, diversity, window)
        ]

    def _ranked(
        self, pairs: Iterable[FramePair], k: int, diversity: float, window: int
    ) -> Iterator[list[tuple[list[Link], list[TrackEvent], float]]]:
        """For each pair the k best: links, events, score."""
        whole(1).check("window", window)
        checked = self._checked(pairs)
        for first in range(0, len(checked), window):
            problem = TrackingProblem(checked[first : first + window], self.hypothesis_space_)
            space, scores = problem.scores(self.weights_)
            rankings = kbest_assignments(space, scores, k, diversity=diversity)
            for i, (pair, hypotheses) in enumerate(problem.hypotheses):
                rows = slice(*space.offsets[i : i + 2])
                ranked = []
                for one in rankings:
                    if one.values[i] == -np.inf:
                        break
                    chosen = one.chosen[rows]
                    came, went = events_of(pair, hypotheses, chosen)
                    events = [
                        TrackEvent(pair.sequence, pair.frame + 1, int(i), "appear") for i in came
                    ] + [TrackEvent(pair.sequence, pair.frame, int(i), "disappear") for i in went]
                    links = links_of(pair, hypotheses, chosen)
                    ranked.append((links, events, float(one.values[i])))
                yield ranked

    def score(self, pairs: Iterable[FramePair], y: None = None) -> float:
        """F1 of the links against the (complete) annotations of the pairs."""
        pairs = list(pairs)
        truth, _ = annotated_events(pairs)
        return score_links(truth, self.predict(pairs).links).links.f1

    def task_loss(self, pairs: Iterable[FramePair]) -> float:
        """Mean of Δ over the pairs: events other than annotated (in full), by their number."""
        pairs = list(pairs)
        if not pairs:
            raise DataError("there are no frame pairs")
        losses = []
        for pair, ranked in zip(pairs, self._ranked(pairs, 1, 0.0, 50), strict=True):
            truth = event_set(*annotated_events([pair]))
            if truth:
                losses.append(task_loss(truth, event_set(ranked[0][0], ranked[0][1])))
        if not losses:
            raise DataError("no frame pair is annotated")
        return float(np.mean(losses))

    def coefficients(self) -> dict[str, dict[str, float]]:
        """Weights by event and name of feature, for preconditioned features in (-1, 0)."""
        self._check_fitted()
        scale = self.hypothesis_space_.preconditioner
        named: dict[str, dict[str, float]] = {}
        first = 0
        for e, (event, size) in enumerate(zip(scale.names, scale.sizes, strict=True)):
            names = scale.column_names(
                e, [f.name for f in self.hypothesis_space_.features if f.event == event]
            )
            weights = self.weights_[first : first + size].tolist()
            if names:
                named[event] = dict(zip(names, weights, strict=True))
            first += size
        return named

    # ---------------------------------------------------------------- files

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[Any],
        *,
        features: Sequence[EventFeature] = (),
        events: Sequence[str | EventKind] = (),
    ) -> Self:
        """Read a model that was trained with features or events of your own.

        Others are read with ``load_model``.

        Parameters
        ----------
        path : path
            The file.
        features : sequence of EventFeature
            The features of your own that the model was trained with: functions are not in files.
        events : sequence of EventKind or str
            The kinds of events of your own that it was trained with.

        Raises
        ------
        CorruptModelError
            If the file is damaged or no tracking model.
        DataError
            If features or events of your own are missing.
        """
        header, arrays = read_container(path)
        with loading(path):
            header_value(header, "estimator", str, choices=(cls.__name__,))
            model = cls._restored(header, arrays)
        model._give_events(events)
        model._give_features(features)
        return model


def _checked_pairs(name: str, pairs: Iterable[FramePair]) -> list[FramePair]:
    where = f"data set {name!r}: " if name else ""
    if isinstance(pairs, FramePair) or not isinstance(pairs, Iterable):
        raise DataError(f"{where}expected a list of FramePair, got {type(pairs).__name__}")
    checked = list(pairs)
    if not checked:
        raise DataError(f"{where}there are no frame pairs")
    for i, pair in enumerate(checked):
        if not isinstance(pair, FramePair):
            raise DataError(
                f"{where}item {i} is of type {type(pair).__name__}, not FramePair; "
                "read_detections makes them"
            )
    return checked


def _line(record: Any, step: str) -> str:
    return f"{step} {record.number:4d}  objective {record.objective:14.4f}  {record.seconds:7.2f} s"
