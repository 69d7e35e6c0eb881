r"""Tracks as the layer «Tracks» of napari takes them.

napari, a viewer of images, wants an array with a row (track, t, y, x) or (track, t, z, y, x) for
each object, sorted by track and time; a graph that maps a track to the list of its parents; and a
property of each row. None of this needs napari.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.arrays import Float64s
from trellis.tracking.result import TrackingResult
from trellis.tracking.trackmate import one_movie

__all__ = ["to_napari"]


def to_napari(
    result: TrackingResult,
) -> tuple[Float64s, dict[int, list[int]], dict[str, np.ndarray[Any, np.dtype[Any]]]]:
    """Return data, graph and properties of the layer.

    Show it by ``viewer.add_tracks(data, graph=graph, properties=properties)``.

    Parameters
    ----------
    result : TrackingResult
        Of one movie; of several, ``result.of(sequence)``.

    Returns
    -------
    data : float64, shape (n, 4) or (n, 5)
        Track, t, y, x, or track, t, z, y, x in three dimensions.
    graph : dict of int to list of int
        Parents of the tracks that have one.
    properties : dict of str to array
        ``id`` of each object.

    Examples
    --------
    >>> from trellis.tracking import FlowTracker, read_detections
    >>> cells = {"frame": [0, 1], "id": [4, 7], "x": [5, 6], "y": [1, 2]}
    >>> data, graph, properties = to_napari(FlowTracker(9.0).predict(read_detections(cells)))
    >>> data.tolist(), graph, properties["id"].tolist()
    ([[1.0, 0.0, 1.0, 5.0], [1.0, 1.0, 2.0, 6.0]], {}, [4, 7])
    """
    one_movie(result, "a layer of napari")
    objects = sorted(result.objects, key=lambda o: (o.track, o.frame))
    deep = any(o.z is not None for o in objects)
    rows = [(o.track, o.frame, *((o.z or 0.0,) if deep else ()), o.y, o.x) for o in objects]
    data = np.array(rows, np.float64).reshape(-1, 5 if deep else 4)
    graph = {track.track: [track.parent] for track in result.tracks if track.parent != -1}
    return data, graph, {"id": np.array([o.id for o in objects], np.int64)}
