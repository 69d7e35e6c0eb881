"""The methods of the study, and which is compared with which.

A family is a kind of model with a kind of edges; it has a method on whole sequences and one on
mini-samples, and a curve between them. Rich edges cross every feature with pairs of labels, plain
ones are one weight for each pair. The paper gives rich edges to all of its methods, so that its
names stand for these here, and plain edges are named.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "COMPARED",
    "DEFAULT",
    "FAMILIES",
    "METHODS",
    "QUESTIONS",
    "Family",
    "Question",
    "family",
]

DEFAULT = "Trellis default"
"""A CRF of which nothing is set but features and seed."""

METHODS = (
    "WeightReg",
    "L1",
    "Group lasso",
    "StructReg",
    "StructReg, overlap",
    "Two models",
    "WeightReg, plain",
    "StructReg, plain",
    "Perceptron, last weights",
    "WeightAvg",
    "StructReg + WeightAvg",
    "WeightAvg, plain",
    "StructReg + WeightAvg, plain",
    DEFAULT,
)
"""All methods: CRFs, then perceptrons, then the library's default."""


@dataclass(frozen=True)
class Family:
    """A kind of model with a kind of edges, and its two methods."""

    model: str  # "crf" or "perceptron"
    edges: str  # "rich" or "plain"
    whole: str  # the method on whole sequences
    pieces: str  # and that on mini-samples

    def __str__(self) -> str:
        return f"{self.model.replace('crf', 'CRF')}, {self.edges} edges"


FAMILIES = (
    Family("crf", "rich", "WeightReg", "StructReg"),
    Family("crf", "plain", "WeightReg, plain", "StructReg, plain"),
    Family("perceptron", "rich", "WeightAvg", "StructReg + WeightAvg"),
    Family("perceptron", "plain", "WeightAvg, plain", "StructReg + WeightAvg, plain"),
)
"""All families."""


def family(model: str, edges: str) -> Family:
    """The family of a model and its edges."""
    return next(f for f in FAMILIES if (f.model, f.edges) == (model, edges))


@dataclass(frozen=True)
class Question:
    """Something asked of the test data, and the pairs (method, baseline) that answer it."""

    name: str
    words: str
    pairs: tuple[tuple[str, str], ...]


QUESTIONS = (
    Question(
        "paper",
        "Pieces against whole sequences, rich edges (the paper's comparison)",
        tuple((f.pieces, f.whole) for f in FAMILIES if f.edges == "rich"),
    ),
    Question(
        "plain",
        "Pieces against whole sequences, plain edges",
        tuple((f.pieces, f.whole) for f in FAMILIES if f.edges == "plain"),
    ),
    Question(
        "edges",
        "Rich edges on pieces against plain edges on whole sequences",
        tuple(
            (family(model, "rich").pieces, family(model, "plain").whole)
            for model in ("crf", "perceptron")
        ),
    ),
    Question(
        "extensions",
        "Pieces that overlap, and decoding with two models",
        tuple(
            (method, baseline)
            for method in ("StructReg, overlap", "Two models")
            for baseline in ("StructReg", "WeightReg")
        ),
    ),
    Question(
        "default",
        "The paper's methods against the default of Trellis",
        tuple((method, DEFAULT) for method in ("WeightReg", "StructReg", "StructReg + WeightAvg")),
    ),
)
"""All comparisons, by what they ask."""

COMPARED = frozenset(method for question in QUESTIONS for pair in question.pairs for method in pair)
"""The methods that take part in a comparison."""
