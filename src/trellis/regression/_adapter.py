import numpy as np
import scipy.sparse as sp

from trellis.regression.bases import default_bases, predictions
from trellis.regression.gcrf import GCRF as _G
from trellis.regression.joining import Joining


class GCRF(_G):
    __doc__ = _G.__doc__

    def fit(self, X, y, *, graph=None, coords=None):
        X = np.asarray(X, float)
        y = np.asarray(y, float)
        known = ~np.isnan(y)
        if self.base is None:
            self.base = default_bases(len(y), self.random_state)
        self._j = None
        if coords is not None:
            self._j = Joining.of(self.graph, coords)
            graph = self._j.graph()
            self._train = (X, y)
        else:
            rows = np.flatnonzero(known)
            graph = sp.csr_array(graph)[rows][:, rows]
        return super().fit(X[known], y[known], graph=graph)

    def predict(self, X, *, graph=None, coords=None, return_std=False, observed=None):
        X = np.asarray(X, float)
        if coords is not None:
            links = self._j.links(self._j.places(coords))
            S = sp.block_array([[self._j.graph(), links.T], [links, None]]).tocsr()
            Xa = np.vstack([self._train[0], X])
            o = np.append(self._train[1], np.full(len(X), np.nan))
            m, s = super().predict(Xa, graph=S, observed=o, return_std=True)
            m, s = m[len(self._train[0]) :], s[len(self._train[0]) :]
        else:
            m, s = super().predict(X, graph=graph, return_std=True, observed=observed)
        return (m, s) if return_std else m

    def predict_base(self, X):
        a = np.atleast_1d(self.alpha_)
        return predictions(self.bases_, X) @ (a / a.sum())
