"""Trellis: structured prediction in Python.

Public names are imported on first use, so that ``import trellis`` takes a fraction of a second:
Numba, SciPy and scikit-learn are loaded only when something needs them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trellis.corpus import (
        Corpus,
        read_conll,
        read_conllu,
        read_crfsuite,
        read_csv,
        read_graphs,
        read_jsonl,
        read_segmented,
        write_conll,
        write_conllu,
        write_crfsuite,
        write_graphs,
        write_jsonl,
    )
    from trellis.errors import (
        CorruptModelError,
        DataError,
        InfeasibleError,
        TemplateError,
        TrellisError,
    )
    from trellis.features import Templates
    from trellis.files import load_model
    from trellis.models import (
        ChainCRF,
        ChainPerceptron,
        GraphCRF,
        GraphPerceptron,
        MaxMargin,
        TreeCRF,
        TreePerceptron,
    )

__version__ = "0.1.0"

_HOME = {
    "ChainCRF": "models",
    "ChainPerceptron": "models",
    "Corpus": "corpus",
    "CorruptModelError": "errors",
    "DataError": "errors",
    "GraphCRF": "models",
    "GraphPerceptron": "models",
    "InfeasibleError": "errors",
    "MaxMargin": "models",
    "TemplateError": "errors",
    "Templates": "features",
    "TreeCRF": "models",
    "TreePerceptron": "models",
    "TrellisError": "errors",
    "load_model": "files",
    "read_conll": "corpus",
    "read_conllu": "corpus",
    "read_crfsuite": "corpus",
    "read_csv": "corpus",
    "read_graphs": "corpus",
    "read_jsonl": "corpus",
    "read_segmented": "corpus",
    "write_conll": "corpus",
    "write_conllu": "corpus",
    "write_crfsuite": "corpus",
    "write_graphs": "corpus",
    "write_jsonl": "corpus",
}

__all__ = [
    "ChainCRF",
    "ChainPerceptron",
    "Corpus",
    "CorruptModelError",
    "DataError",
    "GraphCRF",
    "GraphPerceptron",
    "InfeasibleError",
    "MaxMargin",
    "TemplateError",
    "Templates",
    "TreeCRF",
    "TreePerceptron",
    "TrellisError",
    "__version__",
    "load_model",
    "read_conll",
    "read_conllu",
    "read_crfsuite",
    "read_csv",
    "read_graphs",
    "read_jsonl",
    "read_segmented",
    "write_conll",
    "write_conllu",
    "write_crfsuite",
    "write_graphs",
    "write_jsonl",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'trellis' has no attribute {name!r}")
    return getattr(importlib.import_module(f"trellis.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
