"""Parameters that models of all losses share, and those that each structure does without."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trellis.corpus.schemes import SCHEME
from trellis.decompose import VISITS
from trellis.domains import anything, flag, has, instance, nothing, number, one_of, whole
from trellis.errors import ParametersError
from trellis.estimator import Estimator, fixed, parameter
from trellis.problems.threads import n_cores

__all__ = ["INFERENCE", "ChainModel", "GraphModel", "LinearParameters", "TreeModel"]

INFERENCE = ("auto", "marginals", "exact", "elimination", "max-flow", "dual", "lp", "ilp")
"""Methods of :func:`trellis.structures.best`, "exact" and "marginals"."""


class LinearParameters(Estimator):
    """What all linear models are told; not used by itself."""

    features: Any = parameter(
        anything,
        """A template set by name ("chunking", "pos", "ner", "wordseg"), templates, or "auto": the
        features that the samples hold, or windows and affixes of their columns (along the order of
        the nodes, in trees and graphs).""",
        default="auto",
        kw_only=False,
    )
    columns: Sequence[str] | None = parameter(
        nothing | has("__len__", "__iter__", words="a list of names"),
        """Names of the columns where positions are tuples, one symbol a column, or the columns of a
        table that are taken; None: all of a table but the group and the labels.""",
        default=None,
    )
    group: str | None = parameter(
        nothing | instance(str),
        "Tables: the column that says which rows are one sample.",
        default=None,
    )
    structure: str = parameter(
        one_of("chain", "tree", "graph"),
        "What joins the positions of a sample: their order, or the edges that it has.",
        default="chain",
    )
    piece_size: float | None = parameter(
        nothing | number(at_least=1),
        """Structure regularisation: mean size n′ of the connected pieces that samples are cut into
        for training, anew in each pass (once, for solvers that do not go in passes), e.g. 5.5;
        None: whole samples. Prediction is always on whole samples.""",
        default=None,
    )
    overlap: int = parameter(
        whole(0), "Positions that a piece of a chain goes on into the next one.", default=0
    )
    pieces: str = parameter(
        one_of("tree", "graph"),
        """Graphs: train on random spanning trees of the pieces, which keeps training exact and
        fast however loopy the graphs are; or on all edges between the nodes of a piece.""",
        default="tree",
    )
    directed: bool | str = parameter(
        one_of("auto") | flag,
        """Whether the two ends of an edge play different parts, as a word and its head do; if not,
        transition weights are symmetric. "auto": in trees, not in graphs.""",
        default="auto",
    )
    inference: str = parameter(
        one_of(*INFERENCE),
        """Graphs: how labels are found. "marginals": the most probable label of each node, which
        only CRFs know; the others: the best labelling of all (see
        :func:`trellis.structures.best`), "exact" with an integer program where nothing cheaper is.
        "auto": "marginals" if the model is a CRF. :meth:`decode` gives the best labelling, and says
        how good it is.""",
        default="auto",
    )
    keep_known: bool = parameter(
        flag,
        """Trees and graphs: where training knew the labels of some nodes of a sample and not of
        others, keep to them when the same sample is labelled. False: all nodes are predicted.""",
        default=True,
    )
    rich_edges: bool | str = parameter(
        flag | one_of("current", "both", "typed"),
        """Cross features with pairs of labels, too: those of the position where an edge ends
        ("current", True), or also those where it begins ("both"), for each type of edges apart
        ("typed"); without direction those of both ends are crossed. False: only templates that say
        ``@ edge``.""",
        default=False,
    )
    edge_pairs: str = parameter(
        one_of("auto", "all", "observed"),
        """Pairs that a crossed feature has: all, or those it was seen with and some random others;
        "auto": all up to 8 labels.""",
        default="auto",
    )
    edge_negatives: int = parameter(
        whole(0), "Random pairs for each crossed feature that does not have all.", default=10
    )
    edge_min_share: float = parameter(
        number(at_least=0, at_most=1),
        "Leave out pairs in less than this share of a feature's occurrences.",
        default=0.02,
    )
    batch_size: int = parameter(
        whole(1),
        """Pieces whose updates are found with the same weights, of solvers that go from piece to
        piece; part of the algorithm.""",
        default=1,
    )
    n_jobs: int | None = parameter(
        nothing | whole(1) | one_of(-1),
        """Threads (-1: one a core) that share the work of a batch, or of a gradient of L-BFGS; the
        result is the same, bit by bit, for any number. Other solvers use one.""",
        default=None,
        option="--jobs",
    )
    max_passes: int | str = parameter(
        one_of("auto") | whole(1), "Most passes over the data.", default="auto"
    )
    tol: float = parameter(
        number(),
        """Stop earlier, when the mean relative improvement of the objective over the last passes
        falls below this; -1 never stops early.""",
        default=1e-4,
    )
    visit: str = parameter(
        one_of(*VISITS),
        """Of solvers that go from piece to piece: visit each once a pass, in a random order that
        is kind to the processor's cache or in a uniformly random one, or draw pieces uniformly
        with replacement (see :func:`trellis.decompose.visits`).""",
        default="pooled",
    )
    scheme: Any = parameter(
        SCHEME,
        "Chains: predict only what is valid in this tag scheme.",
        default=None,
    )
    encoding: str = parameter(
        one_of("auto", "iobes", "given"),
        """Chains: what labels are inside. "iobes": of labels in BIO those of a span's last position
        get weights of their own (see :mod:`trellis.corpus.refinement`), which costs time and
        mostly gains; predictions are in BIO as before. "given": as they are given. "auto": "iobes"
        where it applies and there are enough spans to learn their ends from.""",
        default="auto",
    )
    max_labels: int | None = parameter(
        nothing | whole(1),
        """Refuse data with more distinct labels; None: refuse more than 5,000, and warn of more
        than 500, as if the wrong column was taken for the labels.""",
        default=None,
    )
    patience: int | None = parameter(
        nothing | whole(1),
        "With ``dev`` data: stop after so many passes without a better score.",
        default=None,
    )
    warm_start: bool = parameter(
        flag,
        "Go on from the present weights when ``fit`` is called again; new features are added.",
        default=False,
    )
    verbose: bool = parameter(
        flag,
        """Show on standard error how far training is: a bar with the time left on terminals and in
        notebooks, and a line for each pass.""",
        default=False,
    )
    random_state: int | None = parameter(
        nothing | whole(0),
        "Seed; the same seed gives the same bits.",
        default=None,
        option="--seed",
    )

    def _check_together(self) -> None:
        if self.structure == "chain":
            if self.rich_edges == "typed":
                raise ParametersError(
                    "{rich_edges} is for trees and graphs, whose edges have types",
                    rich_edges=self.rich_edges,
                )
            return
        if self.scheme is not None:
            raise ParametersError(
                "{scheme} is for {structure}", scheme=self.scheme, structure="chain"
            )
        if self.overlap:
            raise ParametersError(
                "{overlap} is for {structure}", overlap=self.overlap, structure="chain"
            )
        if self.encoding == "iobes":
            raise ParametersError(
                "{encoding} is for {structure}", encoding=self.encoding, structure="chain"
            )

    @property
    def _threads(self) -> int:
        if self.n_jobs is None:
            return 1
        return n_cores() if self.n_jobs == -1 else int(self.n_jobs)


class ChainModel(LinearParameters):
    """A model of chains: the parameters that are about edges are not there."""

    structure: str = fixed("chain")
    pieces: str = fixed("tree")
    directed: bool | str = fixed(True)
    inference: str = fixed("auto")
    keep_known: bool = fixed(False)


class TreeModel(LinearParameters):
    """A model of trees or forests."""

    structure: str = fixed("tree")
    overlap: int = fixed(0)
    pieces: str = fixed("tree")
    inference: str = fixed("auto")
    scheme: Any = fixed(None)
    encoding: str = fixed("given")


class GraphModel(LinearParameters):
    """A model of graphs."""

    structure: str = fixed("graph")
    overlap: int = fixed(0)
    scheme: Any = fixed(None)
    encoding: str = fixed("given")
