r"""The log-likelihood of marked mentions with a penalty on the expected share of entity positions.

.. math:: \ell(w) = \sum_n c_n \Bigl(\log \sum_y e^{s(x_n, y)}
    - \log \sum_{y \in A_n} e^{s(x_n, y)} \Bigr)
    + \lambda N \max\bigl(0, |\hat\rho(w) - \rho| - \gamma\bigr)^2, \qquad
    \hat\rho(w) = \frac1N \sum_v P_w(y_v \in E),

over N positions, E being the labels of entities. If only mentions are marked, nothing in the
likelihood says that anything is outside of them; the penalty says how much is. (The paper does not
square the excess; squared it has a gradient everywhere, which the search for the optimum needs.)

The gradient of the expected number of entity positions is a derivative of another gradient: with
ε added to the scores of the labels E at all positions,

.. math:: \nabla_w \sum_v P_w(y_v \in E)
    = \frac{\partial}{\partial \varepsilon} \nabla_w \log Z_\varepsilon \Big|_{\varepsilon = 0},

since the number itself is :math:`\partial \log Z_\varepsilon / \partial \varepsilon`. The
derivative is a central difference of gradients at ±ε, with an error of the order ε².
ε is the weight of a feature that every position has, and the labels of that likelihood are any,
since their own part of the gradient does not depend on ε.

T. Effland and M. Collins, *Partially supervised named entity recognition via the expected entity
ratio loss*, TACL 2021.
"""

from __future__ import annotations

import numpy as np

from trellis.arrays import Bools
from trellis.corpus import Labels
from trellis.domains import number
from trellis.features import Encoded
from trellis.problems.label_problem import LabelProblem
from trellis.problems.log_likelihood import LogLikelihood
from trellis.problems.visits import Visits
from trellis.problems.weights import Weights

__all__ = ["EntityRatio"]

# Shift of the scores for the difference: in float64 it loses half of the digits and leaves seven.
_SHIFT = 1e-4


class EntityRatio(LogLikelihood):
    """The likelihood of label sets of chains, with the penalty.

    Parameters
    ----------
    problem : LabelProblem
        Samples of chains.
    entity : bool, shape (L,)
        Which labels are those of entities.
    ratio : float
        Expected share ρ of positions in entities.
    margin : float
        The share may differ by γ without any penalty.
    strength : float
        Factor λ of the penalty.

    Examples
    --------
    >>> from trellis.corpus import as_corpus
    >>> from trellis.features import AttributeEncoder
    >>> from trellis.problems.log_objective import whole_samples
    >>> corpus = as_corpus([[["a"], ["b"]]], [["X", {"X", "O"}]])
    >>> problem = LabelProblem(AttributeEncoder().learn(corpus), corpus.labels, 2)
    >>> entity = np.array([label != "O" for label in problem.classes])
    >>> loss = EntityRatio(problem, entity, ratio=0.2, margin=0.1, strength=1.0)
    >>> zero, pieces = Weights.zeros(2, 2, float), whole_samples(problem)
    >>> round(loss.share(zero, pieces), 6)  # each label is as likely
    0.5
    >>> value, _ = loss.value_and_gradient(zero, pieces)
    >>> float(np.round(value - np.log(2), 6))  # of two positions, (0.3 - 0.1)²
    0.08
    """

    def __init__(
        self,
        problem: LabelProblem,
        entity: Bools,
        *,
        ratio: float,
        margin: float,
        strength: float = 100.0,
        n_jobs: int = 1,
    ) -> None:
        super().__init__(problem, n_jobs)
        number(above=0, below=1).check("ratio", ratio)
        number(at_least=0).check("margin", margin)
        number(at_least=0).check("strength", strength)
        self.entity, self.ratio, self.margin = entity, float(ratio), float(margin)
        self.strength = float(strength)

    def value_and_gradient(
        self, weights: Weights, visits: Visits, into: Weights | None = None
    ) -> tuple[float, Weights]:
        """Exact loss with the penalty, and its gradient, in float64."""
        value, gradient = super().value_and_gradient(weights, visits, into)
        n = visits.total(np.ones(len(self.problem.labels)))
        if not n:
            return value, gradient
        above, below = (self._shifted(weights, visits, sign * _SHIFT) for sign in (1, -1))
        share = self._count(above, below) / n
        excess = max(0.0, abs(share - self.ratio) - self.margin)
        value += self.strength * n * excess**2
        slope = self.strength * 2 * excess * (1.0 if share > self.ratio else -1.0) / (2 * _SHIFT)
        if excess:
            n_features = len(gradient.node)
            gradient.node += slope * (above.node - below.node)[:n_features]
            for own, up, down in zip(
                gradient.arrays()[1:], above.arrays()[1:], below.arrays()[1:], strict=True
            ):
                np.add(own, slope * (up - down), out=own)
        return value, gradient

    def share(self, weights: Weights, visits: Visits) -> float:
        """Expected share ρ̂ of positions in entities."""
        above, below = (self._shifted(weights, visits, sign * _SHIFT) for sign in (1, -1))
        return self._count(above, below) / visits.total(np.ones(len(self.problem.labels)))

    def _count(self, above: Weights, below: Weights) -> float:
        """Expected number of entity positions, from gradients of the weights of the shift."""
        return float((above.node[-1] + below.node[-1])[self.entity].sum() / 2)

    def _shifted(self, weights: Weights, visits: Visits, shift: float) -> Weights:
        """Gradient of the likelihood of no entities, with so much added to scores of entities."""
        wide = weights.map(lambda a: np.ascontiguousarray(a, np.float64)).grown(
            len(weights.node) + 1
        )
        wide.node[-1, self.entity] = shift
        if "shifted" not in self._known:
            self._known["shifted"] = self._outside(wide)
        gradient: Weights = self._known["shifted"].value_and_gradient(wide, visits)[1]
        return gradient

    def _outside(self, like: Weights) -> LogLikelihood:
        """The likelihood of one label that is none of an entity, with a feature for the shift."""
        problem, e = self.problem, self.problem.encoded
        n, n_features = len(problem.labels), problem.n_features
        ends = e.indptr[1:]
        indices = np.insert(e.indices, ends, n_features).astype(np.int32)
        values = np.insert(e.values, ends, 1.0) if e.values.size else e.values
        encoded = Encoded(e.offsets, e.indptr + np.arange(n + 1), indices, values)
        outside = int(np.flatnonzero(~self.entity)[0])
        labels = Labels(np.full(n, outside, np.int32), (), problem.classes)
        return LogLikelihood(
            LabelProblem(encoded, labels, n_features + 1, rich=like.edge), self.n_jobs
        )
