"""Drop-ins for other libraries: change the import line, and the program runs on Trellis.

    from trellis.compat import sklearn_crfsuite     # in place of  import sklearn_crfsuite
    from trellis.compat import pycrfsuite           # in place of  import pycrfsuite

Names, arguments, attributes and errors are those of sklearn-crfsuite 0.5 and python-crfsuite 0.9;
what learns is Trellis. Nothing of theirs is needed.
"""

from __future__ import annotations

from trellis.compat import pycrfsuite, sklearn_crfsuite

__all__ = ["pycrfsuite", "sklearn_crfsuite"]
