"""Graphs of areas: counties, districts, fields, wherever rows are polygons instead of points.

Two areas are neighbours if their borders share a point («queen») or a stretch between two points
(«rook»). Points are compared after rounding, since maps repeat a border up to their last digits.
A border counts as shared where both areas have the same points on it, as maps drawn without gaps
have. An area without neighbours, an island, is isolated: it takes no part in smoothing.

Areas come as GeoJSON, or as whatever has a ``__geo_interface__`` (GeoPandas, shapely); neighbours
as weights of libpysal, a mapping from ids to ids, or a list of edges. Ids are compared as text;
those that are whole numbers as numbers, so that 01001 and 1001 are one.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s, Int64s, as_list
from trellis.domains import is_finite, nothing, number, one_of, text
from trellis.errors import DataError
from trellis.files.table import Table, read_table
from trellis.files.text import read_text
from trellis.regression.graph_matrix import check_graph, without_zeros
from trellis.regression.similarity import FARTHEST

__all__ = ["Areas", "Rule", "areas_graph", "edges_graph", "read_areas"]

Rule = Literal["queen", "rook"]
_DIGITS = 1e-7  # of the map's extent; borders that are nearer than that are one
_OTHER_MAPS = (".shp", ".gpkg", ".kml", ".kmz", ".gml", ".zip", ".topojson")
_WHOLE = re.compile(r"[+-]?\d+(\.0*)?")


@dataclass(frozen=True)
class Areas:
    """Polygons by id.

    Attributes
    ----------
    ids : list of str
    rings : list of (k, 2) arrays
        Borders, outer and inner, without their repeated last point.
    owner : (rings,) array
        Which area each is of.
    """

    ids: list[str]
    rings: list[Float64s]
    owner: Int64s

    def graph(self, rule: Rule = "queen", tolerance: float | None = None) -> Any:
        """The similarities of the areas, (n, n): 1 for neighbours."""
        from scipy.sparse import csr_array

        one_of("queen", "rook").check("rule", rule)
        (nothing | number(above=0)).check("tolerance", tolerance)
        points = np.vstack(self.rings)
        extent = float(np.ptp(points, axis=0).max()) or 1.0
        step = _DIGITS * extent if tolerance is None else tolerance
        cells = np.round((points - points.min(axis=0)) / step).astype(np.int64)
        _, vertex = np.unique(cells, axis=0, return_inverse=True)
        vertex = vertex.ravel()
        sizes = np.array([len(ring) for ring in self.rings])
        owner = np.repeat(self.owner, sizes)
        if rule == "rook":
            ends = np.cumsum(sizes)
            after = np.arange(len(vertex)) + 1
            after[ends - 1] = ends - sizes
            sides = np.sort(np.column_stack([vertex, vertex[after]]), axis=1)
            apart = sides[:, 0] != sides[:, 1]
            _, place = np.unique(sides[apart], axis=0, return_inverse=True)
            shared, owner = place.ravel(), owner[apart]
        else:
            shared = vertex
        ones = np.ones(len(shared))
        touches = csr_array((ones, (owner, shared)), shape=(len(self.ids), int(shared.max()) + 1))
        touches.sum_duplicates()
        touches.data[:] = 1.0
        together = (touches @ touches.T).tocsr()
        together.setdiag(0.0)
        together.data[:] = (together.data > 0).astype(np.float64)
        return check_graph(without_zeros(together))

    def subset(self, ids: Iterable[Any]) -> Areas:
        """The areas of these ids, in their order; refuses one that is none of them."""
        places = _places(self.ids, as_list(ids, "ids"), "the areas")
        number = np.full(len(self.ids), -1, dtype=np.int64)
        number[places] = np.arange(len(places))
        kept = np.flatnonzero(number[self.owner] >= 0)
        rings = [self.rings[i] for i in kept]
        return Areas([self.ids[i] for i in places], rings, number[self.owner[kept]])

    def has(self, ids: Sequence[Any]) -> NDArray[np.bool_]:
        """Which of these ids are areas."""
        known = set(self.ids)
        return np.array([_key(str(i)) in known for i in ids], dtype=bool)

    def centres(self) -> Float64s:
        """A point amid each area, (n, 2): the mean of its corners, by the lengths of its sides."""
        found = np.zeros((len(self.ids), 2))
        weights = np.zeros(len(self.ids))
        for ring, area in zip(self.rings, self.owner, strict=True):
            other = np.roll(ring, -1, axis=0)
            length = np.sqrt(((ring - other) ** 2).sum(axis=1))
            found[area] += length @ (ring + other) / 2
            weights[area] += length.sum()
        return found / np.where(weights > 0, weights, 1.0)[:, None]


def read_areas(source: Any, id: str | None = None, *, ids: Iterable[Any] | None = None) -> Areas:
    """Read polygons from GeoJSON: a path, an open file, a mapping, or a ``__geo_interface__``.

    Parameters
    ----------
    source
        A FeatureCollection of polygons. Features of one id are one area.
    id : str, optional
        The property that names an area; by default the id of the feature, or the property "id".
    ids : sequence, optional
        Names of areas: where no property is called `id`, that which holds most of them is meant.

    Examples
    --------
    >>> square = [[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]]
    >>> polygon = {"type": "Polygon", "coordinates": square}
    >>> feature = {"type": "Feature", "properties": {"name": "A"}, "geometry": polygon}
    >>> areas = read_areas({"type": "FeatureCollection", "features": [feature]}, id="name")
    >>> areas.ids, areas.centres().tolist()
    (['A'], [[0.5, 0.5]])
    """
    (nothing | text).check("id", id)
    name, data = _json(source)
    features = data.get("features") if isinstance(data, Mapping) else None
    if not isinstance(features, list | tuple) or not features:
        raise DataError(f"{name} holds no GeoJSON FeatureCollection with areas in it")
    named: dict[str, int] = {}
    if ids is not None:
        id = _naming([f for f in features if isinstance(f, Mapping)], id, ids)
    rings: list[Float64s] = []
    owner: list[int] = []
    undrawn = 0
    for i, feature in enumerate(features):
        where = f"{name}, feature {i}"
        if not isinstance(feature, Mapping):
            raise DataError(f"{where} is no GeoJSON feature")
        if feature.get("geometry", "") is None:
            undrawn += 1
            continue
        key = _key(_id_of(feature, id, where))
        area = named.setdefault(key, len(named))
        try:
            borders = list(_rings(feature.get("geometry"), where))
        except DataError:
            raise
        except (TypeError, ValueError, KeyError, IndexError, AttributeError, RecursionError):
            raise DataError(f"{where}: a border is no list of points") from None
        if not borders:
            raise DataError(f"{where} has no border")
        rings += borders
        owner += [area] * len(borders)
    if not named:
        raise DataError(f"{name}: no feature has a geometry")
    if undrawn:
        warnings.warn(f"{undrawn} features without a geometry are left out", stacklevel=2)
    return Areas(list(named), rings, np.array(owner, dtype=np.int64))


def areas_graph(
    areas: Any,
    ids: Iterable[Any] | None = None,
    *,
    id: str | None = None,
    rule: Rule = "queen",
    tolerance: float | None = None,
) -> Any:
    """Return the similarities of areas: which of them are neighbours.

    Parameters
    ----------
    areas
        GeoJSON of polygons (a path, an open file, a mapping), a GeoDataFrame or another object with
        a ``__geo_interface__``; weights of libpysal (``W`` or ``Graph``), or a mapping from ids to
        the ids of neighbours, or to those and their weights.
    ids : sequence, optional
        The ids of the rows in their order; areas that are no rows are left out. By default all, in
        the order of `areas`.
    id : str, optional
        The property of polygons that is their id.
    rule : "queen" or "rook"
        Whether a common point is enough, or it takes a common stretch of border.
    tolerance : float, optional
        Points of borders that are nearer are one; by default a ten-millionth of the map.

    Returns
    -------
    scipy.sparse.csr_array
        (n, n). A warning says how many areas have no neighbour.

    Raises
    ------
    DataError
        If there are no areas, or an id has none.

    Examples
    --------
    >>> from trellis.regression import areas_graph
    >>> areas_graph({"A": ["B"], "B": ["A", "C"], "C": ["B"]}, ids=["C", "B", "A"]).toarray()
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """
    if hasattr(areas, "sparse") and not hasattr(areas, "columns"):
        known, S = _of_weights(areas)
    elif isinstance(areas, Mapping) and "type" not in areas:
        known, S = _of_neighbours(areas)
    else:
        found = areas if isinstance(areas, Areas) else read_areas(areas, id)
        known, S = found.ids, found.graph(rule, tolerance)
    if ids is not None:
        names = as_list(ids, "ids")
        rows = _places(known, names, "the areas")
        S, known = S[rows][:, rows], [str(name) for name in names]
    _warn_of_islands(S, known)
    return check_graph(S)


def edges_graph(edges: Any, ids: Iterable[Any]) -> Any:
    """Return the similarities of rows from a list of edges.

    Parameters
    ----------
    edges : path, open file, mapping of columns or DataFrame
        The first two columns are ids, a third their similarity (1 without it). Of an edge that is
        named twice, in either direction, the larger similarity counts. Edges of ids that no row has
        are left out, with a warning if these are most. A file may have no header, if its first line
        is an edge.
    ids : sequence
        The ids of the rows, in their order.

    Returns
    -------
    scipy.sparse.csr_array
        (n, n). A warning says how many rows have no edge.

    Raises
    ------
    DataError
        If two rows have one id, no edge joins two rows, or a similarity is no positive number.

    Examples
    --------
    >>> from trellis.regression import edges_graph
    >>> edges_graph({"from": ["a", "b"], "to": ["b", "c"]}, ids=["a", "b", "c"]).toarray()
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """
    from scipy.sparse import csr_array

    table: Table = read_table(edges, "the list of edges", separator=None, decimal=None)
    columns = list(table.columns)
    if len(columns) < 2:
        raise DataError(
            f"{table.name} has one column; the first two of a list of edges are the ids they join"
        )
    names = [str(i) for i in as_list(ids, "ids")]
    place = {key: i for i, key in enumerate(_unique(names))}
    ends = [np.array([place.get(_key(c), -1) for c in table.texts(col)]) for col in columns[:2]]
    weight = np.ones(len(table))
    if len(columns) > 2:
        weight = table.checked_numbers(columns[2])
        if (weight <= 0).any():
            row = int(np.argmax(weight <= 0))
            raise table.fail(row, f"{weight[row]:g} is no similarity above 0", columns[2])
    header = [place.get(_key(name), -1) for name in columns[:2]]
    if table.lines is not None and min(header) >= 0:  # no header: the first line is an edge
        ends = [np.append(end, head) for end, head in zip(ends, header, strict=True)]
        weight = np.append(weight, _similarity(table, columns))
    named = (ends[0] >= 0) & (ends[1] >= 0)
    both = named & (ends[0] != ends[1])
    if not both.any():
        raise DataError(
            f"{table.name}: no edge joins two rows; its ids are such as "
            f"{table.texts(columns[0])[:1]}, those of the rows such as {names[:1]}"
        )
    if 2 * named.sum() < len(named):
        line = int(np.flatnonzero(~named)[0])
        warnings.warn(
            f"{int((~named).sum())} of {len(named)} edges name ids that no row has, and are left "
            f"out (the first is {table.place(line)})",
            stacklevel=2,
        )
    i, j, w = ends[0][both], ends[1][both], weight[both]
    order = np.argsort(w, kind="stable")  # of equal places the last, the largest, stays
    pairs = np.sort(np.column_stack([i, j]), axis=1)[order][::-1]
    pairs, first = np.unique(pairs, axis=0, return_index=True)
    w = w[order][::-1][first]
    n = len(names)
    S = csr_array((np.r_[w, w], (np.r_[pairs[:, 0], pairs[:, 1]], np.r_[pairs[:, 1], pairs[:, 0]])),
                  shape=(n, n))  # fmt: skip
    _warn_of_islands(S, names, "rows")
    return check_graph(S)


# ------------------------------------------------------------------------------- reading


def _similarity(table: Table, columns: list[str]) -> float:
    """That of the first line, which was taken for a header."""
    if len(columns) < 3:
        return 1.0
    try:
        found = float(columns[2].replace(table.decimal, "."))
    except ValueError:
        found = 0.0
    if not 0 < found < FARTHEST:
        raise DataError(f"{table.name}, line 1: {columns[2]!r} is no similarity above 0")
    return found


def _json(source: Any) -> tuple[str, Any]:
    if hasattr(source, "__geo_interface__"):
        return "the areas", source.__geo_interface__
    if isinstance(source, Mapping):
        return "the areas", source
    if not isinstance(source, str | os.PathLike) and not hasattr(source, "read"):
        kind = type(source).__name__
        raise DataError(
            f"areas are a {kind}; expected GeoJSON, something with a __geo_interface__, weights of "
            "libpysal or a mapping from ids to ids"
        )
    if isinstance(source, str | os.PathLike) and str(source).lower().endswith(_OTHER_MAPS):
        raise DataError(
            f"{os.fspath(source)} is no GeoJSON; make it with 'ogr2ogr areas.geojson FILE', or "
            "geopandas.read_file(FILE).to_file('areas.geojson')"
        )
    name, content = read_text(source)
    try:
        return name, json.loads(content)
    except (json.JSONDecodeError, RecursionError) as error:
        line = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise DataError(f"{name}{line}: this is no GeoJSON ({error})") from None


def _id_of(feature: Mapping[str, Any], id: str | None, where: str) -> str:
    properties = feature.get("properties")
    if not isinstance(properties, Mapping):  # null stands for none
        properties = {}
    if id is not None and id in properties:
        found = properties[id]
    elif "id" in feature:
        found = feature["id"]
    else:
        found = properties.get("id")
    if found is None:
        what = "id" if id is None else f"property {id!r}, and no id"
        raise DataError(
            f"{where} has no {what}; it has {', '.join(map(str, properties)) or 'none'}"
        )
    return str(found)


def _naming(features: list[Mapping[str, Any]], id: str | None, ids: Iterable[Any]) -> str | None:
    """The property that names areas: the one called so, else the one that holds most of ids."""
    tables = [f.get("properties") for f in features]
    rows = [table if isinstance(table, Mapping) else {} for table in tables]
    if any(id in row for row in rows):
        return id
    wanted = {_key(str(i)) for i in as_list(ids, "ids")}
    found = {_key(str(f["id"])) for f in features if f.get("id") is not None}
    best, most = id, len(wanted & found)
    for name in dict.fromkeys(str(name) for row in rows for name in row):
        values = (row.get(name) for row in rows)
        keys = {_key(str(v)) for v in values if isinstance(v, str | int | float)}
        if len(wanted & keys) > most:
            best, most = name, len(wanted & keys)
    return best


def _rings(geometry: Any, where: str) -> Iterator[Float64s]:
    kind = geometry.get("type") if isinstance(geometry, Mapping) else None
    if kind == "GeometryCollection":
        for part in geometry.get("geometries") or ():
            yield from _rings(part, where)
        return
    if kind not in ("Polygon", "MultiPolygon"):
        raise DataError(f"{where} is a {kind}; areas are polygons")
    polygons = geometry.get("coordinates")
    for polygon in polygons if kind == "MultiPolygon" else [polygons]:
        for ring in polygon:
            points = np.array([corner[:2] for corner in ring], dtype=np.float64)
            if points.ndim != 2 or points.shape[1] != 2 or not (abs(points) < FARTHEST).all():
                raise ValueError
            yield points[:-1] if len(points) > 1 and (points[0] == points[-1]).all() else points


def _of_weights(weights: Any) -> tuple[list[str], Any]:
    """Ids and similarities of weights of libpysal."""
    known = getattr(weights, "unique_ids", None)
    if known is None:
        known = getattr(weights, "id_order", None)
    S = weights.sparse.tocsr()
    names = [str(i) for i in (range(S.shape[0]) if known is None else known)]
    if len(names) != S.shape[0]:
        raise DataError(f"weights of {S.shape[0]} areas have {len(names)} ids")
    return [_key(name) for name in names], (S + S.T.tocsr()) * 0.5  # rows may be standardised


def _of_neighbours(neighbours: Mapping[Any, Any]) -> tuple[list[str], Any]:
    from scipy.sparse import csr_array

    known = _unique([str(name) for name in neighbours])
    if not known:
        raise DataError("the mapping of areas to their neighbours is empty")
    place = {key: i for i, key in enumerate(known)}
    rows, columns, weights = [], [], []
    for i, given in enumerate(neighbours.values()):
        weighted = isinstance(given, Mapping)
        others = given if weighted else as_list(given, f"the neighbours of area {known[i]!r}")
        for other in others:
            weight = given[other] if weighted else 1.0
            if not (is_finite(weight) and weight >= 0):
                raise DataError(
                    f"areas {known[i]!r} and {other!r} have the weight {weight!r:.30}; expected a "
                    "number of at least 0"
                )
            if _key(str(other)) not in place:
                raise DataError(f"area {known[i]!r} has the neighbour {other!r}, which is no area")
            rows.append(i)
            columns.append(place[_key(str(other))])
            weights.append(float(weight))
    S = csr_array((weights, (rows, columns)), shape=(len(known), len(known)))
    return known, S.maximum(S.T.tocsr())


def _key(name: str) -> str:
    name = name.strip()
    return str(int(float(name))) if _WHOLE.fullmatch(name) and len(name) < 16 else name


def _unique(names: Sequence[str]) -> list[str]:
    keys = [_key(name) for name in names]
    seen: dict[str, int] = {}
    for i, key in enumerate(keys):
        if key in seen:
            raise DataError(
                f"rows {seen[key]} and {i} have one id, {names[i]!r}; an id is one row's"
            )
        seen[key] = i
    return keys


def _places(known: Sequence[str], ids: Sequence[Any], what: str) -> list[int]:
    place = {key: i for i, key in enumerate(known)}
    names = [str(i) for i in ids]
    keys = _unique(names)
    missing = [name for name, key in zip(names, keys, strict=True) if key not in place]
    if missing:
        raise DataError(
            f"{len(missing)} of {len(names)} ids are none of {what} "
            f"({', '.join(name or 'empty' for name in missing[:3])}"
            f"{', …' if len(missing) > 3 else ''}); these are such as {', '.join(list(known)[:3])}"
        )
    return [place[key] for key in keys]


def _warn_of_islands(S: Any, names: Sequence[str], what: str = "areas") -> None:
    alone = np.flatnonzero(np.diff(S.tocsr().indptr) == 0)
    if len(alone):
        some = ", ".join(str(names[i]) for i in alone[:3])
        warnings.warn(
            f"{len(alone)} of {len(names)} {what} have no neighbour and are isolated ({some}"
            f"{', …' if len(alone) > 3 else ''})",
            stacklevel=3,
        )
