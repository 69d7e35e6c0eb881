"""What a training pass over mini-samples costs, against a pass over whole samples. One core.

    python -m benchmarks.passes              # a few minutes

Passes alternate between n' = 5.5 and whole samples on the same features; the label counts from 4 to
50 come from real tasks and from folding a task's labels (label id modulo L). Then the
seconds of training that it takes to reach the same held-out score, one run each.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from benchmarks.options import begin
from benchmarks.side_by_side import Run, Table, alternate, ratio, short
from studies.datasets import DataSet, load
from trellis import ChainCRF
from trellis.corpus import Labels
from trellis.decompose import partitioner, visits
from trellis.features import TemplateEncoder, as_templates
from trellis.problems import LabelProblem, LogLikelihood, Penalty, Weights
from trellis.solvers import StochasticGradient

SIZE = 5.5
# Task and label counts; the last of each is the task's own.
COUNTS = {"sxu": [4], "jnlpba": [4, 8, 11], "conll2000": [4, 11, 16, 22], "ud_ewt": [32, 49]}
# Templates of the timing: the tasks' own, but characters only for segmentation.
CHARACTERS = "char[-2..2]; char[-2..1] & char[-1..2]; char[-1] & char[1]; bos; eos"


def folded(labels: Labels, n: int) -> Labels:
    """Labels modulo n."""
    return Labels(labels.ids % n, (), tuple(f"{i:02d}" for i in range(n)))


def templates(data: DataSet) -> str:
    return CHARACTERS if data.name == "sxu" else str(data.features)


def time_passes(problem: LabelProblem, rounds: int) -> list[Run]:
    """Passes over whole samples and at n' = 5.5, by turns."""
    rng = np.random.default_rng(0)

    def passes(size: float | None) -> Callable[[], None]:
        learner = StochasticGradient(
            LogLikelihood(problem), Weights.zeros(problem.n_features, problem.n_labels),
            learning_rate=0.05, decay=0.9, penalty=Penalty(l2=1.0),
        )  # fmt: skip
        numbers = itertools.count()

        def run() -> None:
            number = next(numbers)
            pieces = partitioner(size).draw(problem.offsets, rng)
            order = visits(pieces, rng)
            learner.visit(problem.visits(pieces, order), number, 0, len(order))
            learner.end_pass(number)

        return run

    return alternate({"whole": passes(None), "pieces": passes(SIZE)}, rounds)


def curves(data: DataSet) -> list[str]:
    """Seconds of training until the lower of the two best held-out scores is reached."""
    cut = int(0.9 * len(data.train))
    train, dev = data.train[:cut], data.dev or data.train[cut:]
    options = {"max_passes": 15, "decay": 0.85, "l2": 1.0, "encoding": "given", "random_state": 0}
    histories = [
        ChainCRF(templates(data), piece_size=size, **options).fit(train, dev=dev).history_
        for size in (SIZE, None)
    ]
    best = [max(record.dev_score for record in history) for history in histories]
    reached = []
    for history in histories:
        n = next(i for i, record in enumerate(history, 1) if record.dev_score >= min(best))
        seconds = sum(record.seconds for record in history[:n])
        reached.append(f"{short(seconds)} s ({n} passes)")
    return [data.name, *(f"{100 * value:.2f}" for value in (min(best), *best)), *reached]


def main() -> None:
    args = begin(__doc__, rounds=(9, 1))
    header = ("task", "labels", "whole", "n' = 5.5", "n' = 5.5 / whole (range)")
    table = Table("a pass, µs a token on one core", *header)
    header = ("task", "score", "best at 5.5", "best whole", "n' = 5.5", "whole")
    goals = Table("time to the same held-out score", *header)
    for name, counts in COUNTS.items():
        data = load(name)
        encoder = TemplateEncoder(as_templates(templates(data), list(data.train.columns)))
        encoded = encoder.learn(data.train)
        for n in counts:
            problem = LabelProblem(encoded, folded(data.train.labels, n), encoder.n_features)
            time_passes(problem, 1)  # warm
            runs = [run.wall for run in time_passes(problem, args.rounds)]
            per_token = [1e6 * wall.median / data.train.n_positions for wall in runs]
            table.add(name, n, *per_token, ratio(runs[1], runs[0]))
        goals.add(*curves(data))
    table.show()
    goals.show()


if __name__ == "__main__":
    main()
