"""The page of all parameters, from their declarations: ``python tests/parameters_page.py``."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

from trellis.estimator import REQUIRED, Estimator, Parameter, parameters_of

PAGE = Path(__file__).parent.parent / "docs" / "parameters.md"
PACKAGES = ("models", "experts", "regression", "tracking", "cheap")
HEAD = """\
# Parameters

Every parameter of every estimator: what it may be, its default and what it means. The tables are
made from the declarations in the code (`python tests/parameters_page.py`); `help(GCRF)` and
`trellis COMMAND --help` say the same.

One name has one meaning everywhere: `loss` is what training lowers, `cost` the task loss in it;
`l2` and `l1` are factors of ‖w‖² and ‖w‖₁ beside the *sum* of the losses; `max_passes` counts
passes over the data, `max_iter` iterations of a solver, `n_rounds` members that an ensemble is
built of and `max_swaps` exchanges of examples; `tol` is a relative precision; `n_neighbors` counts
the nearest; `random_state` is a seed, by default none.
"""


def estimators() -> dict[str, type[Estimator]]:
    """All public estimators by name, package by package."""
    found = {}
    for package in PACKAGES:
        module = importlib.import_module(f"trellis.{package}")
        for name in module.__all__:
            kind = getattr(module, name)
            if isinstance(kind, type) and issubclass(kind, Estimator):
                found[f"{package}.{name}"] = kind
    return found


def page() -> str:
    """The page as Markdown; estimators whose parameters are not declared are left out."""
    parts = [HEAD]
    for package in PACKAGES:
        sections = [
            section(name.partition(".")[2], kind)
            for name, kind in estimators().items()
            if name.startswith(f"{package}.") and any(p.help for p in parameters_of(kind).values())
        ]
        if sections:
            parts += [f"\n## `trellis.{package}`\n", *sections]
    return "".join(parts)


def section(name: str, kind: type[Estimator]) -> str:
    rows = "".join(row(p) for p in parameters_of(kind).values())
    return (
        f"\n### `{name}`\n\n| parameter | values | default | meaning |\n|---|---|---|---|\n{rows}"
    )


def row(p: Parameter) -> str:
    default = "(required)" if p.default is REQUIRED else f"`{p.default!r}`"
    meaning = re.sub(r":\w+:`~?(?:[\w.]*\.)?([\w.]+)`", r"`\1`", p.help).replace("``", "`")
    cells = (f"`{p.name}`", p.domain.words, default, meaning)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
