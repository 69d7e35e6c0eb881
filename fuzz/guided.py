"""The attack on readers, guided by coverage: ``python -m fuzz.guided conll --runs 1000000``.

libFuzzer (by way of atheris) keeps every input that reaches new lines of the readers and changes
those further, which finds what blind mutation of the seeds hardly ever meets. The function from
bytes to outcome is that of :mod:`fuzz.readers`. Each family runs in processes of its own; a crash
or a hang ends one, and another goes on. Inputs that failed are kept under ``failures`` in the
folder of the family, beside the inputs found (``corpus``), from which a later run goes on.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import random
import re
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

__all__ = ["main", "run_family", "unwatched_modules"]

_ROOT = Path(__file__).parent.parent
_TIMEOUT = 20  # seconds for one input
_MEMORY = 6000  # MiB
# Kernels cannot be instrumented, and the rest of Trellis is no reader.
_WATCHED = (
    "trellis.cheap.annotation_log",
    "trellis.corpus",
    "trellis.domains",
    "trellis.experts.adapters",
    "trellis.experts.outputs",
    "trellis.features",
    "trellis.files",
    "trellis.tracking.ctc",
    "trellis.tracking.objects",
    "trellis.tracking.reading",
)


# ------------------------------------------------------------------------- inside


def unwatched_modules() -> list[str]:
    """Modules of Trellis that are no readers, found without importing any."""
    spec = importlib.util.find_spec("trellis")
    assert spec is not None and spec.submodule_search_locations
    home = Path(spec.submodule_search_locations[0])
    parts = [file.relative_to(home.parent).with_suffix("").parts for file in home.rglob("*.py")]
    names = {".".join(part).removesuffix(".__init__") for part in parts}
    return sorted(n for n in names if not f"{n}.".startswith(tuple(f"{w}." for w in _WATCHED)))


def _run_inside(name: str, folder: Path, options: list[str]) -> None:
    """Be the process that libFuzzer runs in; it ends without coming back."""
    import atheris

    with atheris.instrument_imports(include=["trellis"], exclude=unwatched_modules()):
        from fuzz import readers
    import logging

    import numpy as np

    from fuzz.text_damage import damaged_text

    logging.getLogger("trellis").setLevel(logging.CRITICAL)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    family, scratch = readers.FAMILIES[name], readers.Scratch()
    seeds = family.starts()
    counts: Counter[str] = Counter()
    failures: dict[str, dict[str, Any]] = {}

    def tell() -> None:
        status = {"counts": counts, "failures": failures}
        (folder / "status.json").write_text(json.dumps(status))

    def one_input(data: bytes) -> None:
        try:
            word = readers.outcome_of(family, data, scratch)
        except Exception as error:
            word = "failed"
            frames = traceback.extract_tb(error.__traceback__)
            inside = [f for f in frames if "/trellis/" in f.filename] or frames
            kind = f"{type(error).__name__} at {Path(inside[-1].filename).name}:{inside[-1].lineno}"
            if kind not in failures:
                file = folder / "failures" / hashlib.sha256(data).hexdigest()[:16]
                file.write_bytes(data)
                text = " ".join(str(error).split())[:200]
                failures[kind] = {"input": str(file), "text": text, "times": 0}
            failures[kind]["times"] += 1
        counts[word] += 1
        if word == "failed" or counts.total() % 500 == 0:
            tell()

    def mutate(data: bytes, max_size: int, seed: int) -> bytes:
        """Lines and fields changed in half of the cases, else what libFuzzer thinks best."""
        rng = random.Random(seed)
        if rng.random() < 0.5:
            return bytes(atheris.Mutate(data, max_size))
        return damaged_text(data or b"a", seeds, rng)[:max_size]

    # Long inputs take long, and say what short ones say; blind mutation makes long ones, too.
    longest = max(512, 2 * max(map(len, seeds)))
    arguments = [sys.argv[0], *options, f"-max_len={longest}", str(folder / "corpus")]
    atheris.Setup(arguments, one_input, custom_mutator=mutate)
    tell()
    atheris.Fuzz()


# ------------------------------------------------------------------------- outside


def run_family(
    name: str, folder: Path, *, runs: int = -1, seconds: int = 0, seed: int = 1
) -> tuple[str, bool]:
    """Run a family in processes of its own; returns a text about it and whether it held.

    Parameters
    ----------
    name : str
        A family of :data:`fuzz.readers.FAMILIES`.
    folder : path
        Where its inputs are, old and new.
    runs, seconds : int
        When to stop; -1 and 0: never.
    seed : int
        Seed of libFuzzer.
    """
    from fuzz.readers import FAMILIES

    for part in ("corpus", "failures"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    for i, start in enumerate(FAMILIES[name].starts()):
        (folder / "corpus" / f"seed-{i}").write_bytes(start)
    counts: Counter[str] = Counter()
    failures: dict[str, dict[str, Any]] = {}
    coverage, began = "", time.monotonic()
    while True:
        left = max(1, round(seconds - (time.monotonic() - began))) if seconds else 0
        options = [f"-runs={runs if runs < 0 else runs - counts.total()}", f"-seed={seed}"]
        options += [f"-max_total_time={left}", f"-timeout={_TIMEOUT}", f"-rss_limit_mb={_MEMORY}"]
        options += [f"-artifact_prefix={folder / 'failures'}/", "-print_final_stats=1"]
        (folder / "status.json").unlink(missing_ok=True)
        with (folder / "log").open("w+", errors="replace") as log:
            command = [sys.executable, "-m", "fuzz.guided", name, "--inside", str(folder)]
            process = subprocess.run(
                [*command, *options], cwd=_ROOT, stdout=log, stderr=log, check=False
            )
            log.seek(0)
            output = log.read()
        if not (folder / "status.json").exists():
            raise RuntimeError(f"the attack does not run:\n{output[-2000:]}")
        status = json.loads((folder / "status.json").read_text())
        told = sum(status["counts"].values())
        executed = re.findall(r"stat::number_of_executed_units: (\d+)", output)
        counts.update(status["counts"])
        counts["not told apart"] += max(0, int(executed[-1]) - told) if executed else 0
        for kind, failure in status["failures"].items():
            known = failures.setdefault(kind, failure | {"times": 0})
            known["times"] += failure["times"]
        found = re.findall(r"cov: (\d+) ft: (\d+)", output)
        coverage = f"{found[-1][0]} places covered" if found else coverage
        if process.returncode == 0:
            break
        # libFuzzer has kept the input, and says what happened.
        said = re.findall(r"ERROR: libFuzzer: (.+)|SUMMARY: libFuzzer: (.+)", output)
        kind = " ".join(filter(None, said[-1])) if said else f"ended with {process.returncode}"
        failure = failures.setdefault(kind, {"input": str(folder / "failures"), "times": 0})
        failure["times"] += 1
        counts["crashed or hung"] += 1
        seed += 1
        if 0 <= runs <= counts.total() or (seconds and time.monotonic() - began >= seconds):
            break
    took = time.monotonic() - began
    words = ", ".join(f"{n:,} {word}" for word, n in sorted(counts.items()) if n)
    lines = [
        f"guided {name}: {counts.total():,} runs in {took:.0f} s "
        f"({counts.total() / took:,.0f} a second): {words}; {coverage}"
    ]
    for kind, failure in failures.items():
        text = failure.get("text", "")
        lines.append(f"  {failure['times']} × {kind}, first input {failure['input']}: {text}")
    return "\n".join(lines), not failures


def main() -> int:
    """Run families and print what came of them; 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.guided", description=__doc__)
    parser.add_argument("families", nargs="*", metavar="FAMILY", help="(default: all)")
    parser.add_argument("--runs", type=int, help="inputs of each family")
    parser.add_argument("--minutes", type=float, help="for all of them together (default: 10)")
    parser.add_argument("--folder", type=Path, help="where inputs are kept (default: nowhere)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    args, rest = parser.parse_known_args()
    if args.inside is not None:
        _run_inside(args.families[0], args.inside, rest)
        return 0
    if rest:
        parser.error(f"unknown: {' '.join(rest)}")
    if importlib.util.find_spec("atheris") is None:
        print("guided: atheris is not installed here, so that no attack is guided by coverage")
        return 0
    from fuzz.readers import FAMILIES

    names = args.families or list(FAMILIES)
    if unknown := sorted(set(names) - set(FAMILIES)):
        parser.error(f"no family {unknown[0]}; there are {', '.join(FAMILIES)}")
    minutes = args.minutes if args.minutes or args.runs else 10.0
    held = True
    with tempfile.TemporaryDirectory() as nowhere:
        for name in names:
            seconds = 0 if minutes is None else max(1, round(60 * minutes / len(names)))
            folder = (args.folder or Path(nowhere)).resolve() / name
            runs = -1 if args.runs is None else args.runs
            text, good = run_family(name, folder, runs=runs, seconds=seconds, seed=args.seed)
            print(text, flush=True)
            held = held and good
    return int(not held)


if __name__ == "__main__":
    sys.exit(main())
