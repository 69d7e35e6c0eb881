"""Linear-chain CRFs: p(y | x) ∝ e^{s(x, y)} on sequences, of which spans may be marked."""

from __future__ import annotations

from typing import Any

from trellis.models.linear_parameters import ChainModel
from trellis.models.marked_mentions import MarkedMentions
from trellis.models.prediction import numbered
from trellis.problems.confidence import spans
from trellis.structures import ChainPotentials

__all__ = ["ChainCRF"]


class ChainCRF(MarkedMentions, ChainModel):
    """Linear-chain CRF: p(y | x) ∝ e^{s(x, y)}, trained on randomly drawn mini-samples.

    Attributes
    ----------
    classes_ : tuple
        The labels, sorted; the order of the columns of marginals.
    history_ : list of PassRecord
        What each pass brought.
    learning_rate_ : float
        The initial rate used.
    weights_ : Weights
        Node weights (F, L), transitions (L, L), and rich edge weights if there are any.
    share_marked_, entity_ratio_ : float or None
        With ``partial="mentions"``, what first models say of the training data: the share of the
        positions in mentions that is marked, and the share of all positions that are in mentions
        (not kept in model files).
    solver_ : str
        The solver used.
    stop_reason_ : str
        Why training ended: "max_passes", "tol" (the objective came to rest), "rising" (it no
        longer fell), "patience" or "interrupted"; of L-BFGS also "gradient" and "line search".

    Examples
    --------
    >>> from trellis import ChainCRF
    >>> X = [["the", "cat", "sat"], ["the", "dog", "ran"]] * 5
    >>> y = [["D", "N", "V"], ["D", "N", "V"]] * 5
    >>> crf = ChainCRF(features="word; suffix(word, 1)", random_state=0).fit(X, y)
    >>> crf.predict([["the", "cat", "ran"]])
    [['D', 'N', 'V']]
    >>> crf.predict_marginals([["the", "cat", "ran"]])[0].shape
    (3, 3)
    """

    def predict_spans(
        self, X: Any, *, scheme: str | None = None
    ) -> list[list[tuple[str, int, int, float]]]:
        """Predicted spans of each sequence as (type, start, end, probability).

        The probability is that of the labels predicted for the span, with the span beginning and
        ending right there: a labelling in which it goes on does not count. If the model has a
        ``scheme``, a span can be written in one way only, and this is the span's probability.
        """
        self._check_fitted()
        corpus = self._corpus(X)
        rules = self._span_scheme(scheme)
        types = [rules.parse(label)[1] for label in self.state_labels]
        result: list[list[tuple[str, int, int, float]]] = [[] for _ in range(len(corpus))]
        encoded = self._encode(corpus)
        for block in self._blocks(corpus, encoded, self.weights_, None, compact=True):
            labels, p = self._best(block).labels, block.potentials()
            assert isinstance(p, ChainPotentials)
            with numbered(block.first):
                found = spans(p, self.state_labels, rules, labels)
            begin = p.offsets[found.samples]
            for s, label, start, end, chance in zip(
                (found.samples + block.first).tolist(), labels[found.starts].tolist(),
                (found.starts - begin).tolist(), (found.ends - begin).tolist(),
                found.chances.tolist(), strict=True,
            ):  # fmt: skip
                result[s].append((types[label], start, end, chance))
        return result
