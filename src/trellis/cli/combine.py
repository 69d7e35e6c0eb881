"""``trellis combine``: patch the answers of several systems together."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from operator import eq
from typing import TYPE_CHECKING, Any

from trellis.cli.named_files import InputFile, OutputFile
from trellis.cli.output import write_stdout
from trellis.cli.parameters import add_parameters, new_model
from trellis.errors import DataError
from trellis.estimator import Seeded

if TYPE_CHECKING:
    from trellis.evaluation import Comparison
    from trellis.experts import AnswerFile
    from trellis.progress import Task

NAME = "combine"
HELP = "combine what several systems answer, learned from a labelled sample"
DESCRIPTION = """\
Learn from a labelled sample how to combine the answers of several systems (experts), and combine
their answers to new inputs.

  trellis combine --gold dev.txt sys1.txt sys2.txt sys3.txt
  trellis combine --gold dev.txt s1.txt s2.txt --apply new1.txt new2.txt -o combined.txt
  trellis combine --gold gold.txt a.txt b.txt --format lines --align --metric edit

Prints a table: the score of each expert and of each method, and its gain over the expert that was
best on the training part, with a 95 % interval (paired bootstrap over samples). Methods are scored
by cross-validation on the labelled sample, so that none is judged on what it has learned from.
'_' in place of a label means that a system says nothing there.
"""

METRICS = {
    "hamming": "positions that are right, %",
    "span-f1": "F1 of spans, %",
    "edit": "mean edit distance (less is better)",
    "exact": "samples that are all right, %",
}
# The methods, made from the package of experts for a study; those that look at neighbouring labels
# need more time.
METHODS: dict[str, Callable[[Any, Any], Any]] = {
    "best-expert": lambda e, study: e.BestExpert(criterion=study.criterion),
    "majority-vote": lambda e, _: e.MajorityVote(),
    "plurality": lambda e, _: e.Rerank(weights="uniform"),
    "rerank": lambda e, _: e.Rerank(),
    "rover": lambda e, _: e.Rover(),
    "weighted-majority": lambda e, _: e.WeightedMajority(),
    "espboost": lambda e, study: e.ESPBoost(scheme=study.scheme),
    "stepwise": lambda e, study: e.ForwardStepwise(random_state=study.args.random_state),
    "log-linear": lambda e, _: e.LogLinearVote(),
    "stacking": lambda e, study: e.Stacking(scheme=study.scheme),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument(
        "experts",
        type=InputFile,
        nargs="+",
        metavar="ANSWERS",
        help="what each system answers to the samples of --gold, a file each",
    )
    parser.add_argument(
        "--gold", type=InputFile, required=True, metavar="FILE", help="the right answers"
    )
    parser.add_argument(
        "--apply",
        type=InputFile,
        nargs="+",
        metavar="NEW",
        help="what the same systems, in the same order, answer to new samples",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=OutputFile,
        metavar="OUT",
        help="the file for the combined answers",
    )
    parser.add_argument(
        "--method",
        choices=("auto", *METHODS),
        default="auto",
        help="the method that writes the output (default: auto, the best in cross-validation)",
    )
    parser.add_argument(
        "--only",
        metavar="A,B,...",
        help="try these methods only (default: all, with --align all but stacking, which is slow "
        "with many labels): " + ", ".join(METHODS),
    )
    parser.add_argument(
        "--metric",
        choices=tuple(METRICS),
        help="how answers are scored (default: span-f1 if the labels follow a tag scheme, edit "
        "with --align, else hamming)",
    )
    parser.add_argument(
        "--scheme",
        choices=("BIO", "BILOU", "IOBES", "BMES", "none"),
        help="tag scheme of the labels (default: told from the labels)",
    )
    parser.add_argument(
        "--align",
        action="store_true",
        help="answers differ in length: align them first (ROVER)",
    )
    parser.add_argument(
        "--format",
        choices=("conll", "jsonl", "lines"),
        default="conll",
        help="conll: a label a line, blank line after each sample (default); jsonl: an object a "
        "line with a list of labels; lines: a sample a line, labels separated by spaces",
    )
    parser.add_argument(
        "--column",
        metavar="C",
        help="where the labels are: conll the number of the column, 1 the first, -1 the last "
        "(default); jsonl the key (default: labels)",
    )
    parser.add_argument(
        "--folds", type=int, default=5, metavar="K", help="of the cross-validation (default: 5)"
    )
    add_parameters(parser, [Seeded], defaults={"random_state": "0"})


def run(args: argparse.Namespace) -> int:
    """Print the table, and write the combined answers."""
    args.random_state = new_model(args, Seeded, random_state=0).random_state
    if (args.apply is None) != (args.output is None):
        raise DataError("--apply and -o belong together: new answers, and where to combine them")
    if args.apply is not None and len(args.apply) != len(args.experts):
        raise DataError(
            f"{len(args.experts)} systems but {len(args.apply)} files after --apply; name one for "
            "each system, in the same order"
        )
    methods = _chosen_methods(args)
    with args.reporter.stage("reading the answers"):
        gold, experts = _read(args, args.gold), [_read(args, name) for name in args.experts]
        study = _Study(args, gold, experts)
        new = None if args.apply is None else [_read(args, name) for name in args.apply]
    if new is not None:
        _check_lengths(new, aligned=not args.align)
    rows = study.rows(methods)
    write_stdout(study.table(rows) + "\n")
    if new is not None:
        tried = [row for row in rows if row.learned]
        best = max(tried, key=lambda row: study.sign * row.comparison.score_a)
        name = best.name if args.method == "auto" else args.method
        with args.reporter.stage(f"combining by {name}"):
            combiner = study.combiner(name).fit([e.answers for e in experts], study.gold)
            answers = combiner.predict([file.answers for file in new])
        _write(args, new[0].name, answers)
        write_stdout(f"\n{len(answers)} samples combined by {name}: {args.output}\n")
    return 0


def _chosen_methods(args: argparse.Namespace) -> list[str]:
    names = [name for name in METHODS if not (args.align and name == "stacking")]
    if args.only is not None:
        names = [name.strip() for name in args.only.split(",")]
    for name in names:
        if name not in METHODS:
            raise DataError(f"--only: unknown method {name!r}; known: {', '.join(METHODS)}")
    if args.method != "auto" and args.method not in names:
        names.append(args.method)
    return names


def _read(args: argparse.Namespace, name: str) -> AnswerFile:
    from trellis.experts import AnswerFile

    column: int | str | None = args.column
    if args.format == "conll" and args.column is not None:
        try:
            column = int(args.column)
        except ValueError:
            raise DataError(f"--column: expected a number, got {args.column!r}") from None
    file = AnswerFile.read(name, args.format, column=column)
    if not file.answers:
        raise DataError(f"{file.name} is empty: there is no sample in it")
    return file


def _check_lengths(files: list[AnswerFile], aligned: bool) -> None:
    """Refuse files of different numbers of samples or, if aligned, of different lengths."""
    from trellis.experts.adapters import check_same_samples

    first = files[0]
    for file in files[1:]:
        check_same_samples(first, file)
    if not aligned:
        return
    for i, line in enumerate(first.lines):
        known = [(f, len(a)) for f in files if (a := f.answers[i]) is not None]
        for file, length in known[1:]:
            if length != known[0][1]:
                raise DataError(
                    f"{file.name}, line {file.lines[i]}: {length} labels, but {known[0][0].name}, "
                    f"line {known[0][0].lines[i]} has {known[0][1]}; use --align if answers "
                    "differ in length"
                )
        if not known:
            raise DataError(f"{first.name}, line {line}: no system answers this sample")


@dataclass(frozen=True)
class _Row:
    """An expert or a method, and how it compares with the best expert."""

    name: str
    learned: bool
    comparison: Comparison


class _Study:
    """Scores of experts and methods on the labelled sample."""

    def __init__(
        self, args: argparse.Namespace, gold: AnswerFile, experts: list[AnswerFile]
    ) -> None:
        import numpy as np

        from trellis.corpus.schemes import detect_scheme

        _check_lengths([gold, *experts], aligned=not args.align)
        self.args = args
        self.experts = experts
        self.gold: list[list[str]] = []
        for answer, line in zip(gold.answers, gold.lines, strict=True):
            if answer is None or None in answer:
                raise DataError(f"{gold.name}, line {line}: a right answer with labels missing")
            self.gold.append([y for y in answer if y is not None])
            if all(file.answers[len(self.gold) - 1] is None for file in experts):
                raise DataError(f"{gold.name}, line {line}: no system answers this sample")
        n = len(self.gold)
        if not 2 <= args.folds <= n:
            raise DataError(f"--folds must be between 2 and the {n} samples, got {args.folds}")
        self.fold = np.random.default_rng(args.random_state).permutation(n) % args.folds
        scheme = args.scheme
        if scheme is None and not args.align:
            scheme = detect_scheme(sorted({y for sample in self.gold for y in sample}))
        self.scheme = None if scheme == "none" else scheme
        usual = "edit" if args.align else "hamming" if self.scheme is None else "span-f1"
        self.metric = args.metric or usual
        self.sign = -1 if self.metric == "edit" else 1
        self.criterion = "exact" if self.metric in ("exact", "edit") else "hamming"
        if self.metric == "span-f1" and self.scheme is None:
            raise DataError("--metric span-f1 needs labels of a tag scheme; name it with --scheme")
        if self.metric in ("hamming", "span-f1") and args.align:
            raise DataError(f"--metric {self.metric} cannot score answers of different lengths")

    def combiner(self, name: str) -> Any:
        """The estimator of a method."""
        from trellis import experts

        combiner = METHODS[name](experts, self)
        return experts.Aligned(combiner) if self.args.align else combiner

    def rows(self, methods: list[str]) -> list[_Row]:
        """Scores of all experts, and of the methods in cross-validation."""
        rows = []
        reporter = self.args.reporter
        with reporter.stage("choosing the best expert") as stage:
            best = self.cross_validated("best-expert")
            stage.now("scoring the experts")
            for file in self.experts:
                whole = [
                    [y or "" for y in answer] if answer is not None else self._silent(right)
                    for answer, right in zip(file.answers, self.gold, strict=True)
                ]
                rows.append(_Row(file.name, False, self.compare(whole, best)))
        with reporter.steps("method", len(methods)) as tried:
            for number, name in enumerate(methods):
                tried.at(number, name)
                answers = best if name == "best-expert" else self.cross_validated(name, tried)
                rows.append(_Row(name, True, self.compare(answers, best)))
        return rows

    def _silent(self, right: list[str]) -> list[str]:
        """An answer that is wrong everywhere, for a sample that an expert does not answer."""
        outside = "O" if self.scheme in ("BIO", "BILOU", "IOBES") else ""
        return [] if self.args.align else [outside] * len(right)

    def cross_validated(self, name: str, tried: Task | None = None) -> list[list[str]]:
        """Answers to each sample by a method that has not learned from it."""
        answers: list[list[str]] = [[] for _ in self.gold]
        for k in range(self.args.folds):
            if tried is not None:
                share = k / self.args.folds
                tried.at(int(tried.done) + share, f"{name}, fold {k + 1} of {self.args.folds}")
            rest = [i for i, fold in enumerate(self.fold) if fold != k]
            held = [i for i, fold in enumerate(self.fold) if fold == k]
            combiner = self.combiner(name).fit(
                [[file.answers[i] for i in rest] for file in self.experts],
                [self.gold[i] for i in rest],
            )
            predicted = combiner.predict([[file.answers[i] for i in held] for file in self.experts])
            for i, answer in zip(held, predicted, strict=True):
                answers[i] = answer
        return answers

    def compare(self, answers: list[list[str]], best: list[list[str]]) -> Comparison:
        """Scores of answers and of the best expert, and the interval of their difference."""
        from trellis.evaluation import paired_bootstrap
        from trellis.evaluation.edit_distance import edit_distance

        seed = self.args.random_state
        if self.metric in ("hamming", "span-f1"):
            metric = "accuracy" if self.metric == "hamming" else "f1"
            scheme = self.scheme or ""
            return paired_bootstrap(
                self.gold, answers, best, metric, scheme=scheme, random_state=seed
            )
        score: Callable[[Any, Any], float] = edit_distance if self.metric == "edit" else eq
        a, b = (
            [score(y, z) for y, z in zip(system, self.gold, strict=True)]
            for system in (answers, best)
        )
        return _compare_means(a, b, seed)

    def table(self, rows: list[_Row]) -> str:
        """The scores as text."""
        scale = 1 if self.metric == "edit" else 100
        width = max(len(row.name) for row in rows)
        lines = [
            f"{len(self.gold)} samples, {len(self.experts)} experts; {METRICS[self.metric]}; "
            f"methods by {self.args.folds}-fold cross-validation",
            "gain: over the expert that is best on the training part, with 95 % interval",
            "",
            f"{'':{width}}  {'score':>8}  {'gain':>8}   interval",
        ]
        for i, row in enumerate(rows):
            if row.learned and not rows[i - 1].learned:
                lines.append("")
            c = row.comparison
            gain = scale * self.sign * c.difference
            low, high = sorted(scale * self.sign * x for x in c.interval or (0.0, 0.0))
            lines.append(
                f"{row.name:{width}}  {scale * c.score_a:8.3f}  {gain:+8.3f}   "
                f"{low:+.3f} to {high:+.3f}"
            )
        return "\n".join(lines)


def _compare_means(a: list[float], b: list[float], seed: int) -> Comparison:
    """Paired bootstrap of the means of numbers, one for each sample."""
    import numpy as np

    from trellis.evaluation import Comparison

    x, y = np.array(a, np.float64), np.array(b, np.float64)
    rng = np.random.default_rng(seed)
    n = len(x)
    draws = (rng.integers(0, n, n) for _ in range(10_000))
    low, high = np.quantile([(x - y)[draw].mean() for draw in draws], [0.025, 0.975])
    interval = (float(low), float(high))
    return Comparison("bootstrap", float(x.mean()), float(y.mean()), np.nan, interval, 0.95, n)


def _write(args: argparse.Namespace, first: str, answers: list[list[str]]) -> None:
    """Write answers in the format of the input; conll and jsonl keep what else is in the first."""
    from trellis.files.text import read_text, write_text

    if args.format == "lines":
        lines = [" ".join(answer) for answer in answers]
    elif args.format == "jsonl":
        key = args.column or "labels"
        records = [json.loads(x) for x in read_text(args.apply[0])[1].split("\n") if x.strip()]
        lines = [
            json.dumps(record | {key: answer}, ensure_ascii=False)
            for record, answer in zip(records, answers, strict=True)
        ]
    elif args.align:
        lines = [line for answer in answers for line in (*answer, "")]
    else:
        lines = _replaced_column(read_text(args.apply[0])[1], int(args.column or -1), answers)
    write_text(args.output, "".join(f"{line}\n" for line in lines))


def _replaced_column(text: str, column: int, answers: list[list[str]]) -> list[str]:
    """Lines of a column file with other labels."""
    labels = iter([y for answer in answers for y in answer])
    lines = []
    for line in text.removesuffix("\n").split("\n"):
        fields = line.replace("\t", " ").split()
        if fields:
            fields[column - 1 if column > 0 else column] = next(labels)
        lines.append(("\t" if "\t" in line else " ").join(fields))
    return lines
