"""Bytes a token of an encoded corpus, against python-crfsuite's dicts; small models; starts.

    python -m benchmarks.footprint            # two minutes

Strings of attributes carry the names of features along; Trellis has them once, in the encoder.

Small models are compressed to several sizes, or trained with an L1 penalty. They are scored on
development data, the last tenth of the training data; test data are not looked at. Files that
``trellis export`` writes are timed beside the models, by turns, in processor time.
"""

from __future__ import annotations

import runpy
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.crfsuite import attributes, read
from benchmarks.options import begin
from benchmarks.side_by_side import Table, alternate
from benchmarks.unlabelled import Task
from studies.datasets import data_folder
from trellis import ChainCRF, read_conll
from trellis.features import Encoded, TemplateEncoder, as_templates
from trellis.models import export_predictor

LAYOUT = {"format": "conll", "columns": ["word", "pos", "chunk"], "label": "chunk"}


def size(make: Callable[[], Any]) -> int:
    """Bytes of what is made."""
    tracemalloc.start()
    made = make()
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del made
    return taken


def small_models(name: str, rounds: int, folder: Path, table: Table) -> None:
    """Sizes, speeds and scores of a task's models; leaves files of the default behind."""
    task = Task.of(name)
    crf = ChainCRF(task.features, random_state=0).fit(task.train)
    models = {"as it is": crf}
    models |= {f"keep={k:g}": crf.compressed(keep=k) for k in (1, 0.5, 0.2, 0.1, 0.05, 0.02)}
    for l1 in (0.1, 0.3, 1.0):
        lasso = ChainCRF(task.features, l1=l1, l2=0.0, random_state=0).fit(task.train)
        models[f"trained with l1={l1:g}"] = lasso.compressed(keep=1)
    samples = [dict(sample.columns) for sample in task.dev]
    before: list[list[str]] = []
    for what, model in models.items():
        file, exported = folder / f"{name}.trellis", folder / f"{name}.py"
        model.save(file)
        export_predictor(model, exported)
        predict = runpy.run_path(str(exported))["predict"]
        runs = {"model": partial(model.predict, task.dev), "exported": partial(predict, samples)}
        fast, alone = alternate(runs, rounds, keep=lambda labels: labels)
        if fast.kept[0] != alone.kept[0]:
            raise AssertionError("the exported file predicts other labels")
        n, labels = task.dev.n_positions, fast.kept[0]
        gain = "" if what == "as it is" else task.gain(before, labels)
        before = labels if what == "as it is" else before
        table.add(
            name, what, model.n_features_, *(f.stat().st_size / 1e3 for f in (file, exported)),
            int(n / min(fast.cpu)), int(n / min(alone.cpu)), f"{task.score(labels):.2f}", gain,
        )  # fmt: skip
    small = models["keep=0.2"]
    small.input_format_ = LAYOUT | {"tabs": False, "skip": ""}  # as if trained by a command
    small.save(folder / f"{name}.trellis")
    export_predictor(small, folder / f"{name}.py")


def main() -> None:
    args = begin(
        __doc__,
        sentences=(2000, 50, "given to Python objects"),
        rounds=(5, 1),
        tasks=(["conll2000", "jnlpba"], ["conll2000"], "of small models"),
    )
    path = data_folder("conll2000") / "train.txt.xz"
    corpus = read_conll(path, ["word", "pos", "chunk"], "chunk")
    n = corpus.n_positions

    def learn() -> tuple[TemplateEncoder, Encoded]:
        encoder = TemplateEncoder(as_templates("chunking", list(corpus.columns)))
        return encoder, encoder.learn(corpus)

    _, encoded = learn()
    sentences = read(path)[: args.sentences]
    tokens = sum(len(s) for s in sentences)
    lists = size(lambda: [attributes(s) for s in sentences])
    dicts = size(lambda: [[dict.fromkeys(t, 1.0) for t in attributes(s)] for s in sentences])
    title = f"CoNLL-2000, {len(encoded.indices) / n:.1f} features a token"
    table = Table(title, "what", "bytes a token")
    table.add("Trellis, columns and labels as read", corpus.nbytes / n)
    table.add("Trellis, encoded features", encoded.nbytes / n)
    table.add("Trellis, encoded features and the encoder", size(learn) / n)
    table.add("attribute lists, as python-crfsuite takes them", lists / tokens)
    table.add("feature dicts, as python-crfsuite takes them", dicts / tokens)
    table.show()
    with tempfile.TemporaryDirectory() as folder:
        title = (
            "Small models: kB of files, tokens/s, F1 on development data, gains with 95 % intervals"
        )
        sizes = ("features", "file", "exported", "tokens/s", "tokens/s, exported", "F1", "gain")
        table = Table(title, "task", "model", *sizes)
        for name in args.tasks:
            small_models(name, args.rounds, Path(folder), table)
        table.show()
        starts(args.rounds, Path(folder, args.tasks[0]))


def starts(rounds: int, model: Path) -> None:
    """Seconds until commands are done that have little to do."""
    commands = {
        "python": ["-c", "pass"],
        "import numpy": ["-c", "import numpy"],
        "import trellis": ["-c", "import trellis"],
        "trellis --help": ["-m", "trellis", "--help"],
        "exported file, a sentence": [f"{model}.py"],
        "trellis tag, a sentence": ["-m", "trellis", "tag", f"{model}.trellis"],
    }

    def call(words: list[str]) -> None:
        command = [sys.executable, *words]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, input=b"The DT\ncat NN\n")

    runs = {name: partial(call, words) for name, words in commands.items()}
    table = Table(f"best of {rounds}, Python's own start included", "what", "seconds")
    for run in alternate(runs, rounds):
        table.add(run.name, min(run.wall))
    table.show()


if __name__ == "__main__":
    main()
