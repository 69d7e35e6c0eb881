"""``trellis demo``: structure regularisation on the roles of Python's identifiers."""

from __future__ import annotations

import argparse
import logging
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trellis.cli.named_files import OutputFolder
from trellis.cli.output import say, write_stdout
from trellis.cli.parameters import add_number
from trellis.errors import DataError
from trellis.pictures.style import has_matplotlib, new_figure, save_figure

if TYPE_CHECKING:
    from trellis.solvers import PassRecord

NAME = "demo"
HELP = "train on Python's own source: scores, times and curves, no data needed"
DESCRIPTION = """\
Every Python has its standard library. The task: given only the identifiers of its source code, in
order (no punctuation, no keywords), tell the role of each: parameter, method call, attribute, local
variable, ... The demo trains CRFs on whole functions and on mini-samples of mean size n' (structure
regularisation), prints a table of scores and times, and writes it to OUT/table.txt, with the curves
in OUT/curves.png (if matplotlib is installed).

  trellis demo
  trellis demo --tokens 500000 --passes 20 --out /tmp/roles
"""

# Sizes n' of the pieces; 1 cuts every edge, None keeps whole sequences.
_SIZES: tuple[float | None, ...] = (1.0, 1.5, 2.5, 5.5, 10.5, 20.5, None)


@dataclass(frozen=True)
class Run:
    """One training: piece size, its history and the score on the test part."""

    size: float | None
    history: list[PassRecord]
    score: float

    @property
    def name(self) -> str:
        """How the run is called in table and figure."""
        return "whole" if self.size is None else f"{self.size:g}"

    @property
    def seconds(self) -> float:
        """Training time."""
        return sum(record.seconds for record in self.history)


class _Results(OutputFolder):
    names = ("table.txt", "curves.png")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument(
        "--out",
        type=_Results,
        default="demo",
        metavar="OUT",
        help="folder for the results (default: demo)",
    )
    add_number(parser, "--tokens", 1, "identifiers to use", 100_000, "N")
    add_number(parser, "--passes", 1, "passes of training", 10)
    add_number(parser, "--seed", 0, "of the random numbers", 0)


def run(args: argparse.Namespace) -> int:
    """Train, print the table, draw the curves."""
    from trellis.datasets import stdlib_roles
    from trellis.files import atomic_write

    folder = Path(args.out)
    say("reading the standard library ...")
    with args.reporter.stage("reading the standard library"):
        roles = stdlib_roles(max_tokens=args.tokens)
    try:
        rest, test = roles.split(0.25)
        train, dev = rest.split(0.2)
    except DataError:
        raise DataError(
            f"--tokens {args.tokens} is too little: all come from {len(set(roles.modules))} "
            "module(s), too few to train, choose and test on"
        ) from None
    folder.mkdir(parents=True, exist_ok=True)
    say(
        f"{roles.n_tokens} identifiers of {len(set(roles.modules))} modules: "
        f"{train.n_tokens} to train, {dev.n_tokens} for the curves, {test.n_tokens} to test"
    )
    with args.reporter.stage("preparing kernels"):
        _compile()
    runs = []
    with args.reporter.steps("training", len(_SIZES)) as trainings:
        for number, size in enumerate(_SIZES):
            trainings.at(number, "whole sequences" if size is None else f"pieces of {size:g}")
            runs.append(_train(size, train, dev, test, args))
    table = format_table(runs, baseline(train, test)) + "\n"
    write_stdout(table)
    with atomic_write(folder / "table.txt", binary=False) as file:
        file.write(table)
    if draw(runs, folder / "curves.png"):
        say(f"table.txt and curves.png are in {folder}")
    else:
        say(f"table.txt is in {folder} (install matplotlib for the curves)")
    return 0


def _compile() -> None:
    """Compile what the demo needs before anything is timed, and say so."""
    from trellis.datasets.roles import TEMPLATES
    from trellis.models import ChainCRF

    logging.getLogger("trellis").setLevel(logging.ERROR)  # the line below says it already
    say("preparing kernels (half a minute, unless it is done) ...")
    started = time.perf_counter()
    X, y = [["a", "b", "c"]] * 2, [["x", "y", "x"]] * 2
    ChainCRF(TEMPLATES, piece_size=1.5, max_passes=1).fit(X, y, dev=(X, y)).score(X, y)
    say(f"... ready after {time.perf_counter() - started:.1f} s")


def _train(size: float | None, train: Any, dev: Any, test: Any, args: argparse.Namespace) -> Run:
    from trellis.datasets.roles import TEMPLATES
    from trellis.models import ChainCRF

    crf = ChainCRF(TEMPLATES, piece_size=size, max_passes=args.passes, random_state=args.seed)
    crf.fit(train.tokens, train.labels, dev=(dev.tokens, dev.labels))
    result = Run(size, crf.history_, crf.score(test.tokens, test.labels))
    say(f"n' = {result.name:>5}: {100 * result.score:.2f} %, {result.seconds:.2f} s")
    return result


def baseline(train: Any, test: Any) -> float:
    """Accuracy of giving each identifier its most frequent role."""
    from collections import Counter

    overall: Counter[str] = Counter(y for sample in train.labels for y in sample)
    by_word: dict[str, Counter[str]] = {}
    for words, labels in zip(train.tokens, train.labels, strict=True):
        for word, label in zip(words, labels, strict=True):
            by_word.setdefault(word, Counter())[label] += 1
    usual = overall.most_common(1)[0][0]
    right = total = 0
    for words, labels in zip(test.tokens, test.labels, strict=True):
        for word, label in zip(words, labels, strict=True):
            guess = by_word[word].most_common(1)[0][0] if word in by_word else usual
            right += guess == label
            total += 1
    return right / total


def format_table(runs: list[Run], most_frequent: float) -> str:
    """The table of scores and times."""
    lines = [
        "roles of Python's identifiers: CRFs trained on pieces of mean size n'",
        "",
        "  n'     accuracy   seconds a pass   training",
    ]
    for r in runs:
        note = {"1": "  no edges in training", "whole": "  no decomposition"}.get(r.name, "")
        each = r.seconds / len(r.history)
        lines.append(
            f"  {r.name:>5}  {100 * r.score:6.2f} %  {each:10.3f}     {r.seconds:9.2f} s{note}"
        )
    lines += ["", f"  most frequent role of each identifier: {100 * most_frequent:.2f} %"]
    return "\n".join(lines)


def draw(runs: list[Run], path: Path) -> bool:
    """Draw score against training time, and score and time against n'; False without matplotlib."""
    if not has_matplotlib():
        return False
    figure, (left, right) = new_figure(2)
    for r in runs:
        seconds, scores, total = [], [], 0.0
        for record in r.history:
            total += record.seconds
            seconds.append(total)
            scores.append(100 * (record.dev_score or 0.0))
        left.plot(seconds, scores, marker=".", label=f"n' = {r.name}")
    left.set(xlabel="training time [s]", ylabel="accuracy on held-out modules [%]")
    left.set_title("Score during training")
    left.legend()
    left.grid(alpha=0.3)
    x = range(len(runs))
    right.plot(x, [100 * r.score for r in runs], "o-", color="C0")
    right.set_xticks(list(x), [r.name for r in runs])
    right.set(xlabel="mean piece size n'", ylabel="test accuracy [%]")
    right.yaxis.label.set_color("C0")
    right.set_title("Score and time against piece size")
    right.grid(alpha=0.3)
    times = right.twinx()
    times.plot(x, [r.seconds / len(r.history) for r in runs], "s--", color="C1")
    times.set_ylabel("seconds a pass")
    times.yaxis.label.set_color("C1")
    times.set_ylim(bottom=0)
    save_figure(figure, path)
    return True
