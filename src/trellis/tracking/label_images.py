r"""Label images of movies, read as frame pairs.

A label image says which pixels belong to which object. Frame by frame its regions become objects
with columns (:mod:`trellis.tracking.regions`), and every two frames t, t + 1 have relations between
their objects (:mod:`trellis.tracking.pixel_features`): the area that two masks share and, on
demand, the hulls of objects that one and the same object may have become, or come from. Two frames
are in memory at a time, and the frame pairs hold no pixels.

The id of an object is its label less one, so that :func:`~trellis.tracking.write_ctc`, which wants
ids counted from 0, writes tracks into the same images.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s, Int64s
from trellis.domains import flag, number, one_of, sequence_of
from trellis.errors import DataError
from trellis.tracking.ctc_links import links_of_tracks
from trellis.tracking.image_frames import ImageMovie, checked_labels, open_movies
from trellis.tracking.objects import FramePair, Objects
from trellis.tracking.reading import read_detections
from trellis.tracking.regions import Regions, overlap

if TYPE_CHECKING:
    import scipy.sparse

__all__ = ["MeasuredImages", "read_label_images"]

_AXES = {2: "(y, x)", 3: "(z, y, x)"}
_NEAREST = 6  # as many as a model looks at, by default


def read_label_images(
    masks: Any,
    images: Any = None,
    links: Any = None,
    *,
    complete: bool = True,
    spacing: Sequence[float] | None = None,
    pixels: str = "none",
) -> list[FramePair]:
    """Read segmented movies: objects with measured columns, and relations between them.

    Parameters
    ----------
    masks : path, array of shape (T, Y, X) or (T, Z, Y, X), or mapping of str to these
        Label images: whole numbers, 0 for the background. A path is a folder of TIFF files, a frame
        each, in the order of the numbers in their names; a TIFF file of many pages; a .npy file;
        an .npz file, with an array for each sequence; or a Zarr folder.
    images : likewise, optional
        Images of intensities of the same size, for columns and features of brightness.
    links : path, table, or mapping of str to path, optional
        True links: a table as for :func:`~trellis.tracking.read_detections`, ids being labels less
        one; or, where labels are tracks as in ground truth of the Cell Tracking Challenge, the file
        man_track.txt or its folder (one for each sequence, if there are several).
    complete : bool
        Whether the links are all there are; see :func:`~trellis.tracking.read_detections`.
    spacing : sequence of float, optional
        Size of a pixel along each axis of an image, (y, x) or (z, y, x). By default 1: slices of
        a volume are as far apart as its pixels.
    pixels : {"none", "overlap", "published"}
        What to measure beside the columns: nothing; how masks of two frames overlap, which helps
        where cells are detected in parts, or two as one; also what the rest of the published
        features of Lou and Hamprecht's tracker needs: hulls and fillings of two objects, the share
        of outlines on the border of the image, quantiles of intensities. Where every cell is a mask
        of its own they did not make models better.

    Returns
    -------
    list of FramePair
        Sorted by sequence and frame. Frames have the numbers of their files. The extent is that of
        the image. A frame without any object is in no pair, unless a link goes over it.

    Raises
    ------
    DataError
        If images cannot be read, are no label images, or do not fit each other; the message names
        the file or frame.

    Examples
    --------
    >>> frames = np.zeros((2, 6, 9), np.uint8)
    >>> frames[0, 1:4, 1:4] = 1
    >>> frames[1, 2:5, 1:4] = 7
    >>> (pair,) = read_label_images(frames, pixels="overlap")
    >>> pair.source.ids, pair.source.position, pair.source["area"], pair.target.ids
    (array([0]), array([[2., 2.]]), array([9.]), array([6]))
    >>> pair.relations["overlap"].toarray()[0, 1]
    np.float64(6.0)
    """
    flag.check("complete", complete)
    measured = MeasuredImages.of(masks, images, spacing, pixels)
    return measured.pairs(links, complete=complete)


_Key = tuple[str, int]  # sequence, frame


@dataclass(frozen=True, eq=False)
class MeasuredImages:
    """What is kept of images that were gone through once.

    Parameters
    ----------
    frames : list of ((sequence, frame), Objects)
        Objects of all frames, in order.
    extents : dict of str to tuple of float
        Field of view of each sequence.
    relations : dict of (sequence, frame) to dict
        Relations between the objects of a frame and of the next.
    """

    frames: list[tuple[_Key, Objects]]
    extents: dict[str, tuple[float, ...]]
    relations: dict[_Key, dict[str, scipy.sparse.csr_array]]

    @classmethod
    def of(
        cls, masks: Any, images: Any = None, spacing: Sequence[float] | None = None,
        pixels: str = "none",
    ) -> MeasuredImages:  # fmt: skip
        """Go through label images; the arguments are those of :func:`read_label_images`."""
        one_of("none", "overlap", "published").check("pixels", pixels)
        if spacing is not None:
            sizes = sequence_of(number(above=0), "sizes of a pixel, positive numbers")
            sizes.check("spacing", spacing)
        movies = open_movies(masks, "masks")
        others = [] if images is None else open_movies(images, "images")
        bright = {movie.name: movie for movie in others}
        if bright and set(bright) != {movie.name for movie in movies}:
            raise DataError(
                f"masks has the sequences {_named(movie.name for movie in movies)}, images has "
                f"{_named(bright)}; there must be images of intensities for each"
            )
        measured = cls([], {}, {})
        for movie in movies:
            measured._add(movie, bright.get(movie.name), spacing, pixels)
        measured._check(movies)
        return measured

    def pairs(self, links: Any = None, *, complete: bool = True) -> list[FramePair]:
        """Frame pairs, with the annotation that links say; as :func:`read_label_images`."""
        if _is_tracks(links):
            links = links_of_tracks(links, self._labels())
        pairs = read_detections(self._table(), links, complete=complete)
        return [self._completed(pair) for pair in pairs]

    def _add(
        self,
        movie: ImageMovie,
        bright: ImageMovie | None,
        spacing: Sequence[float] | None,
        pixels: str,
    ) -> None:
        before: tuple[Regions, Objects] | None = None
        for frame, mask, image in _side_by_side(movie, bright):
            if spacing is not None and len(spacing) != mask.ndim:
                raise DataError(
                    f"spacing has {len(spacing)} numbers, {movie.place} has images of {mask.ndim} "
                    f"axes; give one for each, {_AXES[mask.ndim]}"
                )
            regions = Regions.of(mask, image, spacing)
            if regions.scattered:
                raise DataError(
                    f"{movie.place}, frame {frame}: {len(regions)} labels, and hardly a pixel has "
                    "that of its neighbour; is this an image of intensities?"
                )
            now = regions, regions.objects(pixels == "published")
            self.frames.append(((movie.name, frame), now[1]))
            self.extents[movie.name] = regions.extent
            if before is not None and pixels != "none":
                every = pixels == "published"
                self.relations[movie.name, frame - 1] = _relations(*before, *now, every)
            before = now

    def _check(self, movies: Sequence[ImageMovie]) -> None:
        """Refuse movies in which there is nothing to track."""
        for movie in movies:
            here = [objects for (name, _), objects in self.frames if name == movie.name]
            if not any(map(len, here)):
                raise DataError(f"{movie.place}: there are no labels, only background")
            if len(here) < 2:
                raise DataError(f"{movie.place} has one frame; tracking needs two at least")
        if len({len(extent) for extent in self.extents.values()}) > 1:
            raise DataError(
                "some sequences are of images (Y, X), others of volumes (Z, Y, X); read them apart"
            )

    def _labels(self) -> dict[str, dict[int, Int64s]]:
        """Labels of each frame of each sequence."""
        found: dict[str, dict[int, Int64s]] = {}
        for (name, frame), objects in self.frames:
            found.setdefault(name, {})[frame] = objects.ids + 1
        return found

    def _table(self) -> dict[str, Any]:
        """All objects, as columns."""
        every = [objects for _, objects in self.frames]
        sizes = [len(objects) for objects in every]
        position = np.concatenate([objects.position for objects in every])
        return {
            "sequence": [
                key[0] for (key, _), n in zip(self.frames, sizes, strict=True) for _ in range(n)
            ],
            "frame": np.repeat([key[1] for key, _ in self.frames], sizes),
            "id": np.concatenate([objects.ids for objects in every]),
            **dict(zip("xyz", position.T, strict=False)),
            **{
                name: np.concatenate([objects[name] for objects in every])
                for name in every[0].columns
            },
        }

    def _completed(self, pair: FramePair) -> FramePair:
        """The pair with what its table does not say."""
        return replace(
            pair,
            extent=self.extents[pair.sequence],
            relations=self.relations.get((pair.sequence, pair.frame), {}),
        )


def _side_by_side(
    movie: ImageMovie, bright: ImageMovie | None
) -> Iterator[tuple[int, NDArray[Any], NDArray[Any] | None]]:
    """Number, labels and intensities of each frame, checked."""
    if bright is None:
        for frame, (where, mask) in zip(movie.numbers, movie.frames(), strict=True):
            yield frame, checked_labels(where, mask), None
        return
    lacking = sorted(set(movie.numbers) - set(bright.numbers))
    if lacking:
        raise DataError(
            f"{bright.place} has no image of frame {lacking[0]}, which {movie.place} has"
        )
    images = zip(bright.numbers, bright.frames(), strict=True)
    for frame, (where, mask) in zip(movie.numbers, movie.frames(), strict=True):
        name, image = next(one for number, one in images if number == frame)
        if image.shape != mask.shape:
            raise DataError(
                f"{name}: the image has the shape {image.shape}, the masks of {where} have "
                f"{mask.shape}; they must be of one size"
            )
        if image.dtype.kind not in "biuf":
            raise DataError(f"{name}: intensities are numbers, got {image.dtype}")
        yield frame, checked_labels(where, mask), image


def _is_tracks(links: Any) -> bool:
    """Whether links are tracks of the Cell Tracking Challenge."""
    if isinstance(links, str | os.PathLike):
        return Path(links).suffix.lower() == ".txt" or Path(links).is_dir()
    if isinstance(links, Mapping) and links:
        return all(isinstance(path, str | os.PathLike) for path in links.values())
    return False


def _named(names: Any) -> str:
    return ", ".join(map(repr, names))


# ------------------------------------------------------------------------------- relations


def _relations(
    source: Regions, sources: Objects, target: Regions, targets: Objects, published: bool
) -> dict[str, scipy.sparse.csr_array]:
    """What is known of two objects of two frames, by name."""
    n, m = len(source), len(target)
    i, j, shared = overlap(source, target)
    pixel = float(np.prod(source.spacing))
    covered = np.concatenate([np.bincount(i, shared, n), np.bincount(j, shared, m)])
    every = np.arange(n + m)
    relations = {
        "overlap": _matrix(
            np.concatenate([i, j + n, every]),
            np.concatenate([j + n, i, every]),
            pixel * np.concatenate([shared, shared, covered]),
            n + m,
        )
    }
    if published and source.rank.ndim == 2:
        hulls = [
            (first, *regions.hulls(pairs), pairs)
            for first, regions, pairs in (
                (0, source, _together(sources, targets)),
                (n, target, _together(targets, sources)),
            )
        ]
        a, b = np.concatenate([pairs + first for first, *_, pairs in hulls]).T
        both = np.concatenate([a, b]), np.concatenate([b, a])
        area = pixel * np.concatenate([area for _, area, *_ in hulls])
        relations["hull"] = _matrix(*both, np.concatenate([area, area]), n + m)
        if source.image is not None:
            count = np.concatenate([count for _, _, count, *_ in hulls])
            mass = np.concatenate([mass for _, _, _, mass, _ in hulls])
            mean = np.divide(mass, count, out=np.zeros(len(mass)), where=count > 0)
            relations["filling"] = _matrix(*both, np.concatenate([mean, mean]), n + m)
    return relations


def _together(objects: Objects, others: Objects) -> Int64s:
    """Every two of the objects that are both among the nearest of one of the others (P, 2)."""
    from scipy.spatial import KDTree

    k = min(_NEAREST, len(objects))
    if k < 2 or not len(others):
        return np.zeros((0, 2), np.int64)
    near = np.asarray(KDTree(objects.position).query(others.position, k=np.arange(1, k + 1))[1])
    a, b = np.triu_indices(k, 1)
    pairs = np.sort(np.stack([near[:, a], near[:, b]], axis=2).reshape(-1, 2), axis=1)
    keys = np.unique(pairs[:, 0].astype(np.int64) * len(objects) + pairs[:, 1])
    return np.stack(np.divmod(keys, len(objects)), axis=1)


def _matrix(rows: Int64s, columns: Int64s, values: Float64s, size: int) -> scipy.sparse.csr_array:
    """A sparse matrix with these entries, zeros among them kept."""
    import scipy.sparse

    order = np.lexsort((columns, rows))
    ptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=size))])
    return scipy.sparse.csr_array((values[order], columns[order], ptr), (size, size))
