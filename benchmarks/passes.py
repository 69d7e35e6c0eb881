"""What a training pass over mini-samples costs, against a pass over whole samples. One core.

    python -m benchmarks.passes              # a few minutes
    python -m benchmarks.passes --curves     # also the time to the same held-out score

Passes alternate between n' = 5.5 and whole samples on the same features; the label counts from 4 to
50 come from real tasks and from folding a task's labels (label id modulo L).
"""

from __future__ import annotations

import argparse
import statistics

import numpy as np

from benchmarks.side_by_side import Times, one_core, ratio, table
from studies.datasets import load
from trellis import ChainCRF
from trellis.corpus import Labels
from trellis.corpus.labels import basic_table
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
    return Labels(labels.ids % n, basic_table(n), tuple(f"{i:02d}" for i in range(n)))


def time_passes(problem: LabelProblem, rounds: int) -> tuple[Times, Times]:
    """Seconds a pass at n' = 5.5 and on whole samples, alternating."""
    import time

    seconds: dict[float | None, list[float]] = {SIZE: [], None: []}
    learners = {
        size: StochasticGradient(
            LogLikelihood(problem),
            Weights.zeros(problem.n_features, problem.n_labels),
            learning_rate=0.05,
            decay=0.9,
            penalty=Penalty(l2=1.0),
        )
        for size in seconds
    }
    rng = np.random.default_rng(0)
    for number in range(rounds):
        for size, learner in learners.items():
            started = time.perf_counter()
            pieces = partitioner(size).draw(problem.offsets, rng)
            order = visits(pieces, rng)
            learner.visit(problem.visits(pieces, order), number, 0, len(order))
            learner.end_pass(number)
            seconds[size].append(time.perf_counter() - started)
    return Times("n' = 5.5", seconds[SIZE]), Times("whole", seconds[None])


def curves(name: str) -> list[str]:
    """Seconds of training until the lower of the two best held-out scores is reached."""
    data = load(name)
    features = CHARACTERS if name == "sxu" else data.features
    cut = int(0.9 * len(data.train))
    train, dev = data.train[:cut], data.dev or data.train[cut:]
    histories = {}
    for size in (SIZE, None):
        model = ChainCRF(features, piece_size=size, max_passes=15, decay=0.85, random_state=0)
        histories[size] = model.fit(train, dev=dev).history_
    goal = min(max(r.dev_score for r in history) for history in histories.values())
    reached = {}
    for size, history in histories.items():
        first = next(i for i, r in enumerate(history) if r.dev_score >= goal)
        reached[size] = sum(r.seconds for r in history[: first + 1]), first + 1
    best = {size: max(r.dev_score for r in history) for size, history in histories.items()}
    return [
        name,
        f"{100 * goal:.2f}",
        *(f"{reached[s][0]:.2f} s ({reached[s][1]} passes)" for s in (SIZE, None)),
        *(f"{100 * best[s]:.2f}" for s in (SIZE, None)),
    ]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--curves", action="store_true", help="also the time to a score")
    arguments.add_argument("--rounds", type=int, default=9)
    args = arguments.parse_args()
    one_core()
    rows = []
    for name, counts in COUNTS.items():
        task = load(name)
        templates = CHARACTERS if name == "sxu" else task.features
        encoder = TemplateEncoder(as_templates(templates, list(task.train.columns)))
        encoded = encoder.learn(task.train)
        for n in counts:
            problem = LabelProblem(encoded, folded(task.train.labels, n), encoder.n_features)
            time_passes(problem, 1)  # warm
            pieces, whole = time_passes(problem, args.rounds)
            per_token = 1e6 / task.train.n_positions
            rows.append(
                [name, str(n), f"{statistics.median(whole.seconds) * per_token:.3f}",
                 f"{statistics.median(pieces.seconds) * per_token:.3f}", ratio(pieces, whole)]
            )  # fmt: skip
            print(*rows[-1], flush=True)
    print("\na pass, µs a token on one core\n")
    print(table(["task", "labels", "whole", "n' = 5.5", "n' = 5.5 / whole (range)"], rows))
    if args.curves:
        rows = [curves(name) for name in COUNTS]
        print("\ntime to the same held-out score\n")
        header = ["task", "score", "n' = 5.5", "whole", "best at 5.5", "best whole"]
        print(table(header, rows))


if __name__ == "__main__":
    main()
