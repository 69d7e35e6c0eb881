"""``import trellis`` and help load nothing heavy: the command line must answer at once."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("numba", "llvmlite", "sklearn", "scipy", "matplotlib", "tqdm")


def modules_after(code):
    """Names of all modules loaded by a fresh Python that runs the code."""
    report = f"{code}\nimport sys; print('\\n'.join(sys.modules), file=sys.stderr)"
    result = subprocess.run(
        [sys.executable, "-c", report], capture_output=True, text=True, check=True
    )
    return set(result.stderr.split())


@pytest.mark.parametrize(
    "code",
    [
        "import trellis",
        "import trellis; trellis.DataError; trellis.__version__; dir(trellis)",
        "import trellis.cli",
        "from trellis.cli.main import parser\n"
        "top = parser()\n"
        "top.print_help()\n"
        "for p in next(a for a in top._actions if a.choices).choices.values(): p.print_help()",
    ],
    ids=["import", "names", "cli", "help"],
)
def test_nothing_heavy(code):
    loaded = modules_after(code)
    assert "trellis" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_the_test_can_fail():
    assert "numba" in modules_after("import trellis.kernels._jit")


@pytest.mark.parametrize(
    ("code", "other"),
    [
        (
            "import pkgutil, importlib, trellis\n"
            "for m in pkgutil.walk_packages(trellis.__path__, 'trellis.'):\n"
            "    if m.name != 'trellis.__main__': importlib.import_module(m.name)",
            "studies",
        ),
        ("import trellis.evaluation", "trellis.tracking"),
        ("import trellis.regression", "trellis.datasets"),
    ],
)
def test_what_is_not_needed(code, other):
    """The library does without studies, evaluation without tracking, regression without data."""
    assert other not in modules_after(code)
