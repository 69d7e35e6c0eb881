"""sklearn-crfsuite on Trellis: ``from trellis.compat import sklearn_crfsuite``.

from trellis.compat import sklearn_crfsuite
from trellis.compat.sklearn_crfsuite import metrics, scorers

crf = sklearn_crfsuite.CRF(algorithm="lbfgs", c1=0.1, c2=0.1, max_iterations=100)
crf.fit(X_train, y_train)
metrics.flat_f1_score(y_test, crf.predict(X_test), average="weighted")
"""

from __future__ import annotations

from trellis.compat.sklearn_crfsuite import metrics
from trellis.compat.sklearn_crfsuite.estimator import CRF

__all__ = ["CRF", "metrics"]
