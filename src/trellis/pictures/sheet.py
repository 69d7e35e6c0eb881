"""Where a picture is drawn: on a figure of its own or in the user's axes, and then into a file.

All pictures have these manners. ``path`` names a file to write; ``ax`` is one matplotlib Axes, or a
list of as many as the picture has panels. In one Axes the main panel alone is drawn. What comes
back is the new figure, or what was given as ``ax``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from trellis.domains import nothing, text
from trellis.errors import DataError
from trellis.pictures.style import (
    check_matplotlib,
    check_picture_name,
    new_figure,
    picture_style,
    save_figure,
)

__all__ = ["Sheet"]


class Sheet:
    """What one picture is drawn on; a context in which the style holds, and that writes the file.

    Parameters
    ----------
    path : path or None
        File to write.
    ax : matplotlib Axes, list of them, or None
        Where to draw instead of on a new figure.
    title : str or None
        Checked here; the picture sets it.

    Attributes
    ----------
    result
        The figure, or what was given as ``ax``.

    Raises
    ------
    DataError
        If matplotlib is missing, or one of the arguments is not what it should be.
    """

    def __init__(self, path: Any, ax: Any, title: Any) -> None:
        if path is not None:
            check_picture_name(path)
        (text | nothing).check("title", title)
        check_matplotlib()
        self.path: str | os.PathLike[Any] | None = path
        self.result = ax
        self._given = None if ax is None else _checked_axes(ax)
        self._figure: Any = None
        self._style: Any = None

    def __enter__(self) -> Sheet:
        self._style = picture_style()
        self._style.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._style.__exit__(kind, error, trace)
        if error is None and self.path is not None:
            save_figure(self._figure, self.path)

    @property
    def is_new(self) -> bool:
        """Whether the figure is of the picture's own making."""
        return self._given is None

    def panels(
        self, n: int, size: tuple[float, float], columns: int = 3, *, alike: str = "", **how: Any
    ) -> tuple[Any, ...]:
        """The panels, the main one first; None for those that the user has no axes for.

        Where no panel is the main one, `alike` says how to have one only.
        """
        if self._given is None:
            self._figure, axes = new_figure(n, columns, size=size, **how)
            self.result = self._figure
            return tuple(axes)
        self._figure = _root(self._given[0])
        if len(self._given) == 1 and (n == 1 or not alike):
            return (self._given[0], *[None] * (n - 1))
        if len(self._given) != n:
            raise DataError(
                f"ax has {len(self._given)} axes, but this picture has {n} "
                f"panel{'s' if n > 1 else ''}; give as many, or "
                f"{alike or 'one for the main panel'}"
            )
        return tuple(self._given)


def _checked_axes(ax: Any) -> list[Any]:
    from matplotlib.axes import Axes

    several = isinstance(ax, Sequence) or (hasattr(ax, "ravel") and not isinstance(ax, Axes))
    axes = list(ax.ravel() if hasattr(ax, "ravel") else ax) if several else [ax]
    if not axes or not all(isinstance(one, Axes) for one in axes):
        raise DataError(f"ax must be a matplotlib Axes or a list of them, got {ax!r:.80}")
    return axes


def _root(ax: Any) -> Any:
    """The figure that axes are in, also if they are in a part of it."""
    figure = ax.figure
    while figure.figure is not None and figure.figure is not figure:
        figure = figure.figure
    return figure
