"""Compile all kernels ahead, so that no later run pauses for it.

A tiny problem is sent through everything that ends in a kernel: readers, templates, training,
decoding and inference, in the array types that real work uses.
"""

from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np

__all__ = ["steps", "warmup"]

_FILE = b"The DT B-NP 1\ncat NN I-NP 2\nsat VB O 3\n\nIt PRP B-NP 1\nran VB O 2\n"


def steps() -> list[tuple[str, Callable[[], object]]]:
    """Parts of the warm-up: what is compiled, and the call that does it."""
    from trellis.corpus import read_conll
    from trellis.models import ChainCRF, ChainPerceptron
    from trellis.models.chain_model import ChainModel
    from trellis.objectives import ChainData, ChainWeights, LogLikelihood

    columns = ["word", "pos", "chunk", "n"]
    templates = "word[-1..1]; pos[-1] & word; ngrams(word, 2..3); number(n); pos == pos[1]"
    fitted: dict[str, ChainModel] = {}

    def corpus() -> object:
        return read_conll(io.BytesIO(_FILE), columns, "chunk")

    def train(model: ChainModel) -> None:
        fitted[type(model).__name__] = model.fit(corpus())

    def gradient() -> None:
        from trellis.corpus import as_corpus
        from trellis.decompose import WholeSamples

        samples = as_corpus(corpus())
        assert samples.labels is not None
        model = fitted["ChainCRF"]
        data = ChainData(model.encoder_.encode(samples), samples.labels, np.ones(len(samples)))
        pieces = WholeSamples().draw(samples.offsets, np.random.default_rng(0))
        weights = ChainWeights.zeros(model.n_features_, len(model.classes_))
        LogLikelihood(data).value_and_gradient(weights, data.visits(pieces))

    def infer() -> None:
        crf = fitted["ChainCRF"]
        assert isinstance(crf, ChainCRF)
        samples = corpus()
        crf.predict_marginals(samples)
        crf.sample(samples, random_state=0)
        crf.entropy(samples)

    return [
        ("readers and features", corpus),
        ("CRF training", lambda: train(ChainCRF(templates, piece_size=1.5, max_passes=1))),
        ("perceptron training", lambda: train(ChainPerceptron(templates, max_passes=1))),
        ("exact gradient", gradient),
        ("decoding", lambda: fitted["ChainCRF"].predict(corpus())),
        ("k-best", lambda: fitted["ChainCRF"].predict_kbest(corpus(), 2)),
        ("marginals and samples", infer),
    ]


def warmup(report: Callable[[str], None] | None = None) -> None:
    """Compile every kernel now (a minute the first time on a machine, then nothing to do)."""
    for name, run in steps():
        if report is not None:
            report(name)
        run()
