"""The demo: one page that shows what Trellis does, made live on data that every machine has.

    demo/panels/NAME.py     one panel: TITLE, ``panel(seed) -> html`` and ``WARM``
    demo/page.py            runs the panels side by side and puts the page together
    demo/elements.py        tables, figures, and the code that a panel ran
    demo/charts.py          curves and intervals as SVG
    demo/manual.py          text of Python's manual, in which code is to be found
    demo/taggers.py         weak taggers that find it
    demo/trials.py          ways to combine them, with more and less gold
    demo/doubts.py          what a person should look at

To add or change a panel, see :mod:`trellis.demo.panels`.
"""

from trellis.demo.page import PANELS, make_page

__all__ = ["PANELS", "make_page"]
