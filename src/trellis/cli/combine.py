"""``trellis combine``: patch the answers of several systems together."""

from __future__ import annotations

import argparse
import csv
import io
from typing import TYPE_CHECKING, Any

from trellis.cli.named_files import InputFile, OutputFile
from trellis.cli.output import write_stdout
from trellis.cli.parameters import add_parameters, new_model
from trellis.errors import DataError
from trellis.estimator import Seeded

if TYPE_CHECKING:
    from trellis.experts import Answers, AutoCombiner
    from trellis.experts.choice import Trial

# What the package of experts knows by these names; a test compares them. The package itself takes
# too long to load for a help text.
FORMATS = ("conll", "jsonl", "json", "csv", "tsv", "lines", "trn", "ctm")
KINDS = ("labels", "words", "single", "fields", "spans")
METRICS = ("hamming", "span-f1", "exact", "edit")
METHODS = (
    "vote", "guarded-vote", "span-vote", "consensus", "whole-answers", "best-expert", "plurality",
    "rover", "weighted-majority", "espboost", "stepwise", "annotators", "rerank", "log-linear",
    "stacking", "spans", "committee",
)  # fmt: skip

NAME = "combine"
HELP = "combine what several systems answer, with or without right answers"
DESCRIPTION = """\
Combine the answers of several systems (taggers, recognisers, annotators, language models).

  trellis combine sys1.txt sys2.txt sys3.txt -o merged.txt --confidence
  trellis combine answers.csv --id id --systems gpt,claude,rules --gold gold --save combo.trellis
  trellis combine --load combo.trellis new1.txt new2.txt new3.txt -o merged.txt --review review.csv

Answers are in a file for each system, or in one table with a column for each. They may be labels of
positions, single labels, objects, spans or word sequences of different lengths; a system need not
answer everything. Right answers (--gold) for some samples teach how to combine: all methods are
tried by cross-validation, and one is taken if it surely beats the plain vote. Without any, how the
systems agree decides.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument(
        "answers", type=InputFile, nargs="+", metavar="ANSWERS",
        help="a file for each system, or one table (CSV, TSV, JSONL) with a column for each",
    )  # fmt: skip
    parser.add_argument(
        "--gold", metavar="FILE|COLUMN",
        help="the right answers, of all samples or some: a file, or a column of the table",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", type=OutputFile, metavar="OUT",
        help="the file for the combined answers, in the shape of the first file; where the right "
        "answer was given, by a method that had not learned from it",
    )  # fmt: skip
    parser.add_argument(
        "--confidence", action="store_true", help="write how sure each answer is, too"
    )
    parser.add_argument(
        "--review", type=OutputFile, metavar="CSV",
        help="list the answers that are most likely wrong, for a person to look at first",
    )  # fmt: skip
    parser.add_argument(
        "--save", type=OutputFile, metavar="MODEL", help="keep what was learned, for --load"
    )
    parser.add_argument(
        "--load", type=InputFile, metavar="MODEL",
        help="combine as was learned before; the same systems in the same order",
    )  # fmt: skip
    parser.add_argument(
        "--apply", type=InputFile, nargs="+", metavar="NEW",
        help="what the same systems answer to new samples, which are combined into -o",
    )  # fmt: skip
    files = parser.add_argument_group("files")
    files.add_argument("--id", metavar="COLUMN", help="column that names the samples")
    files.add_argument(
        "--systems", metavar="A,B,...", help="columns of the table that are systems (default: all)"
    )
    files.add_argument(
        "--format", choices=("auto", *FORMATS), default="auto",
        help="of the files (default: told from their names and what is in them)",
    )  # fmt: skip
    files.add_argument(
        "--kind", choices=("auto", *KINDS), default="auto",
        help="what the answers are: labels of positions, words of sequences of any length, a "
        "single label, fields of an object, spans (default: told from them)",
    )  # fmt: skip
    files.add_argument(
        "--align", dest="kind", action="store_const", const="words", help="the same as --kind words"
    )
    files.add_argument(
        "--column", metavar="C",
        help="where the answers are in each file: number of a column, 1 the first, -1 the last "
        "(default), or name of a column or key",
    )  # fmt: skip
    files.add_argument(
        "--missing", choices=("skip", "error"), default="skip",
        help="what is no answer (a refusal, a broken line) counts as missing (default), or is an "
        "error",
    )  # fmt: skip
    choice = parser.add_argument_group("methods")
    choice.add_argument(
        "--method", choices=("auto", *METHODS), default="auto",
        help="combine by this one (default: auto, the one that surely beats the vote, or the vote)",
    )  # fmt: skip
    choice.add_argument(
        "--only", metavar="A,B,...", help="try these methods only: " + ", ".join(METHODS)
    )
    choice.add_argument(
        "--metric", choices=("auto", *METRICS), default="auto",
        help="how answers are scored (default: span-f1 if labels follow a tag scheme, edit if "
        "lengths differ, else hamming)",
    )  # fmt: skip
    choice.add_argument(
        "--scheme", choices=("auto", "BIO", "BILOU", "IOBES", "BMES", "none"), default="auto",
        help="tag scheme of the labels (default: told from the labels)",
    )  # fmt: skip
    choice.add_argument(
        "--folds", type=int, default=5, metavar="K", help="of the cross-validation (default: 5)"
    )
    add_parameters(parser, [Seeded], defaults={"random_state": "0"})


def run(args: argparse.Namespace) -> int:
    """Print how systems and methods do, and write the combined answers."""
    from trellis.experts import AutoCombiner
    from trellis.files.registry import load_model

    _check_together(args)
    seed = new_model(args, Seeded, random_state=0).random_state
    loaded = None if args.load is None else load_model(args.load)
    if loaded is not None and not isinstance(loaded, AutoCombiner):
        raise DataError(f"{args.load} holds a {type(loaded).__name__}, no combined systems")
    fields = None if loaded is None else loaded.fields_
    with args.reporter.stage("reading the answers"):
        answers = _read(args, args.answers, args.gold, fields=fields)
        new = None if args.apply is None else _read(args, args.apply, None, answers)
    if len(answers.names) < 2:
        raise DataError(
            f"there is only one system, {answers.names[0]}; name a file for each, or one table "
            "with a column for each"
        )
    for note in [*answers.notes, *(new.notes if new is not None else [])]:
        write_stdout(f"note: {note}\n")
    if loaded is not None:
        combiner, new = loaded, answers
        write_stdout(f"{args.load}: {len(combiner.expert_names_)} systems, by {combiner.method_}\n")
    else:
        combiner = AutoCombiner(
            "auto" if args.only is None else [name.strip() for name in args.only.split(",")],
            method=args.method, metric=args.metric,
            kind=answers.kind if answers.kind in ("words", "spans") else "labels",
            scheme=None if args.scheme == "none" else args.scheme, n_folds=args.folds,
            verbose=args.reporter.shown, random_state=seed,
        )  # fmt: skip
        rows = answers.answered
        gold = None if answers.gold is None else _known(answers, rows)
        combiner.fit(answers.sequences(rows), gold, answers.names, answers.fields)
        write_stdout(_report(combiner, answers, rows, gold))
        if args.save is not None:
            combiner.save(args.save)
            write_stdout(f"what was learned is in {args.save}\n")
    if args.output is not None or args.review is not None:
        _write(args, combiner, answers if new is None else new, fitted=new is None)
    return 0


def _check_together(args: argparse.Namespace) -> None:
    if args.load is not None:
        for option in ("gold", "save", "apply", "only"):
            if getattr(args, option) is not None:
                raise DataError(f"--load takes what was learned before; --{option} has no place")
        if args.output is None and args.review is None:
            raise DataError("--load needs -o or --review: say where the answers are to be written")
    if args.apply is not None:
        if args.output is None and args.review is None:
            raise DataError("--apply needs -o or --review: say where the answers are to be written")
        if len(args.apply) != len(args.answers):
            raise DataError(
                f"{len(args.answers)} files of answers but {len(args.apply)} after --apply; name "
                "one for each, in the same order"
            )
    for written in (args.output, args.review, args.save):
        if written is not None and str(written) == args.gold:
            raise DataError(f"{args.gold} holds the right answers; write to another file")
    if args.confidence and args.output is None:
        raise DataError("--confidence needs -o: the file that it is written to")


def _read(
    args: argparse.Namespace,
    files: list[Any],
    gold: Any,
    like: Answers | None = None,
    fields: tuple[str, ...] | None = None,
) -> Answers:
    """Answers of files, of the same kind and with the same fields as others."""
    from trellis.experts import read_answers

    column: int | str | None = args.column
    if args.column is not None and args.column.lstrip("-").isdigit():
        column = int(args.column)
    systems: list[int | str] | None = None
    if args.systems is not None:
        names = [name.strip() for name in args.systems.split(",")]
        systems = [int(name) if name.lstrip("-").isdigit() else name for name in names]
    return read_answers(
        files, format=args.format, kind=args.kind if like is None else like.kind, id=args.id,
        systems=systems, gold=gold, column=column, missing=args.missing,
        fields=(fields if like is None else like.fields) or None,
    )  # fmt: skip


def _known(answers: Answers, rows: list[int]) -> list[Any]:
    """The right answers to these samples, where they are known."""
    assert answers.gold is not None
    known = set(answers.labelled)
    return [answers.gold[i] if i in known else None for i in rows]


def _report(
    combiner: AutoCombiner, answers: Answers, rows: list[int], gold: list[Any] | None
) -> str:
    """What was found, as text."""
    from trellis.experts.quality import METRICS as MEASURED

    n_gold = 0 if gold is None else sum(right is not None for right in gold)
    lines = [
        f"{len(rows)} samples, {n_gold} with the right answer; {len(answers.names)} systems; "
        f"{answers.kind}"
    ]
    choice = combiner.choice_
    if choice is None:
        said = answers.sequences(rows)
        lines += [
            f"combined by {combiner.method_}",
            "",
            "how often each system says what the combination says:",
        ]
        width = max(map(len, answers.names))
        for name, column in zip(answers.names, said, strict=True):
            lines.append(f"  {name:{width}}  {_agreement(column, combiner.answers_):6.1%}")
        return "\n".join(lines) + "\n"
    lines += [
        f"{MEASURED[combiner.metric_]}; methods by {min(combiner.n_folds, n_gold)}-fold "
        "cross-validation; gain: "
        "over the plain vote, with 95 % interval",
        "",
    ]
    systems = combiner.expert_trials_
    width = max(len(trial.name) for trial in (*systems, *choice.trials))
    lines.append(f"{'':{width}}  {'score':>8}  {'gain':>8}   interval")
    lines += [_row(trial, width) for trial in systems]
    lines.append("")
    lines += [
        _row(trial, width) + ("   <- taken" if trial.name == combiner.method_ else "")
        for trial in choice.trials
    ]
    lines.append("")
    if combiner.method_ != choice.name:
        lines.append(
            f"combined by {combiner.method_}, as asked; the trials would take {choice.name}"
        )
    elif combiner.method_ == choice.trials[0].name or choice.gain == choice.error == 0:
        lines.append(f"combined by {combiner.method_}: nothing is surely better than the vote")
    else:
        low, high = choice.gain - 1.96 * choice.error, choice.gain + 1.96 * choice.error
        lines.append(
            f"combined by {combiner.method_}; to be expected on new answers: {choice.gain:+.2f} "
            f"({low:+.2f} to {high:+.2f}) over the vote,\nestimated with the choice repeated, so "
            "that the best of many is not flattered"
        )
    return "\n".join(lines) + "\n"


def _row(trial: Trial, width: int) -> str:
    low, high = trial.interval
    differs = trial.error > 0 or trial.gain != 0
    gain = f"{trial.gain:+8.2f}   {low:+.2f} to {high:+.2f}" if differs else ""
    return f"{trial.name:{width}}  {trial.score:8.2f}  {gain}".rstrip()


def _agreement(column: list[Any], combined: list[Any]) -> float:
    """Share of the positions (of other answers: of the samples) where a system says the same."""
    same = said = 0
    for answer, other in zip(column, combined, strict=True):
        if answer is None:
            continue
        if len(answer) == len(other) and all(isinstance(y, str | None) for y in answer):
            pairs = [(a, b) for a, b in zip(answer, other, strict=True) if a is not None]
            same, said = same + sum(a == b for a, b in pairs), said + len(pairs)
        else:
            same, said = same + (list(answer) == list(other)), said + 1
    return same / said if said else 0.0


def _write(
    args: argparse.Namespace, combiner: AutoCombiner, answers: Answers, fitted: bool
) -> None:
    """Write the combined answers, and what somebody should look at."""
    rows = answers.answered
    said = answers.sequences(rows)
    with args.reporter.stage(f"combining by {combiner.method_}"):
        if args.output is not None:
            combined = combiner.answers_ if fitted else combiner.predict(said)
            levels = None
            if args.confidence:
                levels = combiner.answer_levels_ if fitted else combiner.predict_confidence(said)
            answers.write(args.output, combined, levels, rows=rows)
        doubts = []
        if args.review is not None:
            # Nobody need look at what is known, unless everything is.
            known = set(answers.labelled) if fitted else set()
            rows = [i for i in rows if i not in known] or rows
            doubts = combiner.review(answers.sequences(rows))
    if args.output is not None:
        n = len(answers.answered)
        write_stdout(f"{n} samples combined by {combiner.method_}: {args.output}\n")
        if n < len(answers):
            write_stdout(f"samples without any answer, left empty: {len(answers) - n}\n")
    if args.review is not None:
        _write_review(args.review, answers, rows, doubts)
        write_stdout(f"{len(doubts)} answers to look at, the most doubtful first: {args.review}\n")


def _write_review(path: str, answers: Answers, rows: list[int], doubts: list[Any]) -> None:
    from trellis.files.text import write_text

    buffer = io.StringIO()
    table = csv.writer(buffer, lineterminator="\n")
    place = ["field"] if answers.fields else ["start", "end"]
    table.writerow(["id", *place, "answer", "confidence", *answers.names])
    for doubt in doubts:
        where: list[Any] = [doubt.start, doubt.end]
        if answers.fields:
            where = [" ".join(answers.fields[doubt.start : doubt.end])]
        sure = f"{doubt.confidence:.4f}"
        name = answers.ids[rows[doubt.sample]]
        table.writerow([name, *where, doubt.answer, sure, *doubt.said])
    write_text(path, buffer.getvalue())
