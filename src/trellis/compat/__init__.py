"""Drop-ins for other libraries, and their models.

    from trellis.compat import sklearn_crfsuite     # in place of  import sklearn_crfsuite
    from trellis.compat import pycrfsuite           # in place of  import pycrfsuite

Names, arguments, attributes and errors are those of sklearn-crfsuite 0.5 and python-crfsuite 0.9;
what learns is Trellis, and nothing of theirs is needed. Text models of CRF++ and Wapiti are read as
CRFs of Trellis.
"""

from __future__ import annotations

from trellis.compat import pycrfsuite, sklearn_crfsuite
from trellis.compat.text_models import read_crfpp_model, read_wapiti_model

__all__ = ["pycrfsuite", "read_crfpp_model", "read_wapiti_model", "sklearn_crfsuite"]
