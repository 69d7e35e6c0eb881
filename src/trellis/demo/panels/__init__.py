"""Panels of the demo, one file each.

A panel is a module with three names:

``TITLE : str``
    Its heading.
``panel(seed: int) -> str``
    The panel as HTML, computed now, in seconds, on data that need no file and no network. It holds
    one :func:`~trellis.demo.elements.summary`, which the terminal shows too, and the code that ran
    (:func:`~trellis.demo.elements.code_of` of a function ``example``, which it calls). Figures come
    with intervals and beside the dumbest reasonable alternative.
``WARM : tuple of functions``
    The same paths on a few made-up samples, so that all kernels are compiled before anything is
    timed. Functions run side by side; what several panels need is in :mod:`trellis.demo.warm`,
    what one alone needs is its function ``warm``.

A new one is listed in ``PANELS`` of :mod:`trellis.demo.page`; ``tests/demo`` then tries it like
the others, in a browser too.
"""
