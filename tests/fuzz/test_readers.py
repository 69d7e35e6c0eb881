"""The attack on readers: seeds that are good, a fixed number of cases, and no reader left out."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import trellis
from fuzz import BrokenPromiseError, readers
from fuzz.readers import FAMILIES, Family, Scratch, outcome_of
from fuzz.watch import run_attack
from trellis import DataError

# Readers of containers are attacked by fuzz.model_files, those of whole files by all families.
ELSEWHERE = {
    "read_boosting",
    "read_bytes",
    "read_checkpoint",
    "read_container",
    "read_fields",
    "read_labelled",
}
ELSEWHERE |= {"read_samples", "read_sklearn", "read_text", "read_tree"}
# Objects and truth of a command; images and graphs that other libraries read.
ELSEWHERE |= {"read_objects", "read_truth"}
ELSEWHERE |= {"read_challenge", "read_geff", "read_label_image", "read_label_images"}
ELSEWHERE |= {"read_segmentation"}


@pytest.mark.parametrize("name", FAMILIES)
def test_seeds_are_read_and_used(name: str) -> None:
    scratch = Scratch()
    family = FAMILIES[name]
    assert all(outcome_of(family, seed, scratch) == "used" for seed in family.starts())


def test_no_mutant_does_harm() -> None:
    report = run_attack("readers", n_cases=2500)
    assert report.failures == []
    for name in FAMILIES:
        assert report.counts[f"{name} refused"], name
        assert report.counts[f"{name} used"], name


def test_every_reader_is_attacked() -> None:
    names = set()
    for module in pkgutil.walk_packages(trellis.__path__, "trellis."):
        if ".kernels" in module.name or module.name == "trellis.__main__":
            continue
        home = importlib.import_module(module.name)
        for name in getattr(home, "__all__", ()):
            if re.match("read_|from_(files|columns|json)$", name) and inspect.isfunction(
                getattr(home, name)
            ):
                names.add(name)
    covered = {name for family in FAMILIES.values() for name in family.covers}
    assert names - covered - ELSEWHERE == set()


def test_what_is_not_read_back_is_seen(tmp_path: Path) -> None:
    def forgetful(path: Path, corpus: trellis.Corpus) -> None:
        trellis.write_conll(path, corpus.take([0]))

    use = readers.corpora(lambda f: trellis.read_conll(f, ("word", "label")), forgetful, "word")
    family = Family(("a X\n\nb Y\n",), use, ())
    with pytest.raises(BrokenPromiseError, match="it is another"):
        outcome_of(family, family.starts()[0], Scratch())


def test_what_is_refused_counts_as_refused() -> None:
    def refuse(data: bytes, scratch: Scratch) -> None:
        raise DataError("no")

    assert outcome_of(Family((), refuse, ()), b"", Scratch()) == "refused"
