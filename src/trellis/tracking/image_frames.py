"""Movies of images, one frame in memory at a time.

A movie is a sequence of frames, arrays (Y, X) or (Z, Y, X) of one shape, each with a number. It is
found in

- a folder of TIFF files, a frame each, in the order of the last number in their names
  (``mask000.tif``, ``man_track0001.tif``, ``t012.tif``); several pages are the slices of a volume;
- one TIFF file of many pages: frames, or frames of slices if it says so (axes T, Z, Y, X);
- a ``.npy`` file, or an ``.npz`` file with one array for each sequence: (T, Y, X) or (T, Z, Y, X);
- a Zarr folder: an array, or a group of arrays of which the first resolution counts if it is one
  image in several; channels of which there is one are passed over;
- arrays in memory.

Files are opened anew whenever a movie is gone through, and hold no more than a frame in memory:
uncompressed arrays are mapped, others are read as a stream.
"""

from __future__ import annotations

import importlib
import os
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.errors import DataError
from trellis.tracking.geff_file import is_geff

__all__ = ["ImageMovie", "checked_labels", "is_images", "open_movies"]

TIFF = (".tif", ".tiff")
_SUFFIXES = (*TIFF, ".npy", ".npz", ".zarr")
_NUMBER = re.compile(r"\d+(?=\D*$)")
_LARGEST = 2**53  # label; up to here a table of numbers is exact
_EXTRA = "pip install 'trellis-structured[images]'"


@dataclass(frozen=True, eq=False)
class ImageMovie:
    """Frames, gone through from the first to the last as often as wanted.

    Parameters
    ----------
    name : str
        Name of the sequence; "" for the only one of its kind.
    place : str
        What messages call it.
    numbers : sequence of int
        Numbers of the frames, ascending without gaps.
    open : callable
        Gives an iterator of the frames, with the name of each.

    Examples
    --------
    >>> (movie,) = open_movies(np.zeros((3, 4, 5), np.uint16), "masks")
    >>> len(movie), list(movie.numbers), next(iter(movie)).shape
    (3, [0, 1, 2], (4, 5))
    """

    name: str
    place: str
    numbers: Sequence[int]
    open: Callable[[], Iterator[tuple[str, NDArray[Any]]]]

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        for _, frame in self.frames():
            yield frame

    def frames(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Frames with their names; refuses what is no grey image, or of another shape."""
        shape: tuple[int, ...] = ()
        first = ""
        for where, frame in self.open():
            if frame.ndim not in (2, 3):
                raise DataError(
                    f"{where}: expected an image (Y, X) or (Z, Y, X), got an array of shape "
                    f"{frame.shape}"
                )
            if not frame.size:
                raise DataError(f"{where}: the image has no pixels (shape {frame.shape})")
            if not first:
                first, shape = where, frame.shape
            if frame.shape != shape:
                raise DataError(
                    f"{where}: the image has the size {_size(frame.shape)}, that of {first} is "
                    f"{_size(shape)}; all frames of a movie have one size"
                )
            yield where, frame


def is_images(source: Any) -> bool:
    """Whether a path is one of images, by its name, rather than of a table.

    Examples
    --------
    >>> is_images("cells.csv"), is_images("masks.npz"), is_images("."), is_images("-")
    (False, True, True, False)
    """
    if not isinstance(source, str | os.PathLike):
        return False
    if str(source).lower().endswith(_SUFFIXES):
        return True
    return Path(source).is_dir() and not is_geff(Path(source))


def open_movies(source: Any, what: str) -> list[ImageMovie]:
    """Find the movies of a path, an array, or a mapping of names to either.

    Parameters
    ----------
    source : path, array of shape (T, Y, X) or (T, Z, Y, X), or mapping of str to these
        Where the images are.
    what : str
        What they are called in messages, a plural: "masks".

    Raises
    ------
    DataError
        If there are no images, frames are missing, or a library is.
    """
    if isinstance(source, Mapping):
        if not source:
            raise DataError(f"{what} is an empty mapping; it has no sequence")
        movies = []
        for name, one in source.items():
            if not isinstance(name, str):
                raise DataError(f"{what}: the name of a sequence is text, got {name!r:.80}")
            (movie,) = _single(open_movies(one, f"{what} of sequence {name!r}"), what)
            movies.append(ImageMovie(name, movie.place, movie.numbers, movie.open))
        return movies
    if isinstance(source, ImageMovie):
        return [source]
    if isinstance(source, str | os.PathLike):
        return _of_path(Path(source))
    array = np.asarray(source)
    return [_of_array("", what, array)]


def _single(movies: list[ImageMovie], what: str) -> list[ImageMovie]:
    if len(movies) != 1:
        raise DataError(
            f"{what}: {movies[0].place} has {len(movies)} sequences, and one is wanted; give the "
            "file itself, not a mapping"
        )
    return movies


def _of_path(path: Path) -> list[ImageMovie]:
    suffix = path.suffix.lower()
    if not path.exists():
        raise DataError(f"cannot read {path}: there is no such file or folder")
    if path.is_dir():
        if suffix == ".zarr" or any(
            (path / name).exists() for name in ("zarr.json", ".zarray", ".zgroup")
        ):
            return _of_zarr(path)
        return [_of_folder(path)]
    if suffix == ".npy":
        return [_of_array("", str(path), _mapped(path))]
    if suffix == ".npz":
        return _of_npz(path)
    if suffix in TIFF:
        return [_of_stack(path)]
    raise DataError(
        f"{path} is no image file; expected a folder, or a name that ends in {', '.join(_SUFFIXES)}"
    )


def _of_array(name: str, place: str, array: NDArray[Any]) -> ImageMovie:
    _check_dimensions(place, array.shape)

    def frames() -> Iterator[tuple[str, NDArray[Any]]]:
        for t in range(len(array)):
            yield f"{place}, frame {t}", np.asarray(array[t])

    return ImageMovie(name, place, range(len(array)), frames)


def _check_dimensions(place: str, shape: tuple[int, ...]) -> None:
    if len(shape) not in (3, 4):
        raise DataError(
            f"{place}: expected an array (T, Y, X) or (T, Z, Y, X), got the shape {shape}"
        )
    if not shape[0]:
        raise DataError(f"{place} has no frames")


def checked_labels(where: str, mask: NDArray[Any]) -> NDArray[Any]:
    """A label image of integers that are not negative; raises if it is none.

    Examples
    --------
    >>> checked_labels("mask", np.array([[0.5]]))
    Traceback (most recent call last):
    trellis.errors.DataError: mask: label images hold whole numbers, this one float64; is it one of
    intensities?
    """
    if mask.dtype.kind == "b":
        raise DataError(
            f"{where}: the mask is true and false, which does not tell objects apart; number its "
            "pieces first, as scipy.ndimage.label does"
        )
    if mask.dtype.kind not in "iu":
        raise DataError(
            f"{where}: label images hold whole numbers, this one {mask.dtype}; is it one of "
            "intensities?"
        )
    if mask.dtype.kind == "i" and mask.min() < 0:
        raise DataError(f"{where}: a label is {mask.min()}; the background is 0, labels are above")
    if mask.dtype.itemsize == 8 and mask.max() > _LARGEST:
        raise DataError(
            f"{where}: a label is {mask.max()}, and {_LARGEST} is the greatest there is"
        )
    return mask.astype(np.int64) if mask.dtype == np.uint64 else mask


# ------------------------------------------------------------------------------- NumPy


def _mapped(path: Path) -> NDArray[Any]:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)  # type: ignore[no-any-return]
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"cannot read {path}: {_first_line(error)}") from None


def _of_npz(path: Path) -> list[ImageMovie]:
    try:
        with zipfile.ZipFile(path) as archive:
            entries = [e for e in archive.namelist() if e.endswith(".npy")]
            headers = []
            for entry in entries:
                with archive.open(entry) as file:
                    headers.append(_npy_header(file))
    except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
        raise DataError(f"cannot read {path}: {_first_line(error)}") from None
    if not entries:
        raise DataError(f"{path} has no arrays")
    movies = []
    for entry, (shape, fortran, dtype) in zip(entries, headers, strict=True):
        name = entry.removesuffix(".npy")
        place = f"{path}, array {name!r}"
        _check_dimensions(place, shape)
        frames = _stream(path, entry, place, shape, fortran, dtype)
        movies.append(ImageMovie(name if len(entries) > 1 else "", place, range(shape[0]), frames))
    return movies


def _npy_header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if read is None:
        raise ValueError(f"version {version} of the format is not known")
    header: tuple[tuple[int, ...], bool, np.dtype[Any]] = read(file)
    return header


def _stream(
    path: Path, entry: str, place: str, shape: tuple[int, ...], fortran: bool, dtype: np.dtype[Any]
) -> Callable[[], Iterator[tuple[str, NDArray[Any]]]]:
    def frames() -> Iterator[tuple[str, NDArray[Any]]]:
        try:
            with zipfile.ZipFile(path) as archive, archive.open(entry) as file:
                _npy_header(file)
                if fortran or dtype.hasobject:  # not frame after frame
                    whole = np.load(path, allow_pickle=False)[entry.removesuffix(".npy")]
                    for t in range(len(whole)):
                        yield f"{place}, frame {t}", np.asarray(whole[t])
                    return
                size = int(np.prod(shape[1:])) * dtype.itemsize
                for t in range(shape[0]):
                    data = file.read(size)
                    if len(data) < size:
                        raise ValueError("it ends too early")
                    frame = np.frombuffer(data, dtype).reshape(shape[1:])
                    yield f"{place}, frame {t}", frame
        except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"cannot read {place}: {_first_line(error)}") from None

    return frames


# ------------------------------------------------------------------------------- TIFF


def _of_folder(folder: Path) -> ImageMovie:
    files = sorted(p for p in folder.iterdir() if p.suffix.lower() in TIFF)
    files = [p for p in files if not p.name.startswith(".")]
    if not files:
        raise DataError(
            f"{folder} has no TIFF files; expected one for each frame, such as mask000.tif"
        )
    numbered: dict[int, Path] = {}
    for file in files:
        found = _NUMBER.search(file.stem)
        if found is None:
            raise DataError(
                f"{file}: no number in the name says which frame it is; rename or remove it"
            )
        number = int(found.group())
        if number in numbered:
            raise DataError(
                f"{folder}: {numbered[number].name} and {file.name} both have the number {number}; "
                "keep the images of one kind in a folder"
            )
        numbered[number] = file
    numbers = sorted(numbered)
    for before, after in pairwise(numbers):
        if after != before + 1:
            raise DataError(
                f"{folder}: frame {before + 1} is missing, between {numbered[before].name} and "
                f"{numbered[after].name}; number the frames without gaps"
            )
    tifffile = _library("tifffile", f"the images of {folder} are TIFF files")

    def frames() -> Iterator[tuple[str, NDArray[Any]]]:
        for number in numbers:
            with _Tiff(tifffile, numbered[number]) as pages:
                image = pages.whole()
            yield str(numbered[number]), image

    return ImageMovie("", str(folder), numbers, frames)


def _of_stack(path: Path) -> ImageMovie:
    tifffile = _library("tifffile", f"{path} is a TIFF file")
    with _Tiff(tifffile, path) as pages:
        shape = pages.shape
    if len(shape) == 2:
        raise DataError(
            f"{path} is one image {shape}, not a movie; give a stack of pages, or the folder of "
            "the frames"
        )
    _check_dimensions(str(path), shape)

    def frames() -> Iterator[tuple[str, NDArray[Any]]]:
        with _Tiff(tifffile, path) as pages:
            for t, frame in enumerate(pages.frames(path)):
                yield f"{path}, frame {t}", frame

    return ImageMovie("", str(path), range(shape[0]), frames)


@dataclass(frozen=True, eq=False)
class _Pages:
    """The pages of a TIFF file: those of one series, or each a series of its own."""

    series: Sequence[Any]

    @property
    def shape(self) -> tuple[int, ...]:
        first = tuple(self.series[0].shape)
        return first if len(self.series) == 1 else (len(self.series), *first)

    def whole(self) -> NDArray[Any]:
        """All pages as one array."""
        arrays = [np.asarray(one.asarray()) for one in self.series]
        return arrays[0] if len(arrays) == 1 else np.stack(arrays)

    def frames(self, path: Path) -> Iterator[NDArray[Any]]:
        """Page after page, or as many as are a volume."""
        (one, *others), shape = self.series, self.shape
        n = int(np.prod(shape[1:-2]))
        if others:
            yield from (np.asarray(series.asarray()) for series in self.series)
        elif one.dataoffset is not None:  # uncompressed, one page after the other
            order = one.pages[0].parent.byteorder
            mapped = np.memmap(
                path, np.dtype(one.dtype).newbyteorder(order), "r", one.dataoffset, shape
            )
            yield from (np.array(frame) for frame in mapped)
        elif len(one.pages) == shape[0] * n:
            for t in range(shape[0]):
                pages = [one.pages[t * n + z].asarray() for z in range(n)]
                yield np.stack(pages).reshape(shape[1:])
        else:  # pages of several slices
            yield from np.asarray(one.asarray())


class _Tiff:
    """The pages of a TIFF file, as a context that says what is wrong with the file."""

    def __init__(self, tifffile: Any, path: Path) -> None:
        self.tifffile, self.path = tifffile, path
        self.file: Any = None

    def __enter__(self) -> _Pages:
        try:
            self.file = self.tifffile.TiffFile(self.path)
            series = list(self.file.series)
            self._check(series)
        except Exception as error:  # whatever such a library meets in a damaged file
            self.__exit__(type(error), error, None)
            raise
        return _Pages(series)

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if self.file is not None:
            self.file.close()
        if isinstance(error, Exception) and not isinstance(error, DataError):
            raise DataError(
                f"cannot read {self.path}: {_first_line(error)}; is the file damaged?"
            ) from None

    def _check(self, series: Sequence[Any]) -> None:
        axes = series[0].axes
        # Three slices that were written without a word about them pass for colours or channels.
        if "C" in axes[1:] or "S" in axes[1:]:
            raise DataError(
                f"{self.path}: the image has colours or channels (axes {axes}); convert it to "
                "grey, or keep one channel"
            )
        kinds = list(dict.fromkeys((tuple(one.shape), str(one.dtype)) for one in series))
        if len(kinds) > 1 or (len(series) > 1 and len(kinds[0][0]) != 2):
            raise DataError(
                f"{self.path} holds images of different sizes or types, "
                f"{' and '.join(f'{_size(shape)} {kind}' for shape, kind in kinds[:2])}; expected "
                "pages of one kind"
            )


# ------------------------------------------------------------------------------- Zarr


def _of_zarr(path: Path) -> list[ImageMovie]:
    zarr = _library("zarr", f"{path} is a Zarr folder", "pip install zarr")
    try:
        root = zarr.open(str(path), mode="r")
        arrays = [("", root)] if hasattr(root, "shape") else _members(root)
    except Exception as error:  # whatever such a library meets in a damaged folder
        raise DataError(f"cannot read {path}: {_first_line(error)}") from None
    if not arrays:
        raise DataError(f"{path} has no arrays")
    return [
        _of_zarr_array(name, f"{path}, array {name!r}" if name else str(path), array)
        for name, array in arrays
    ]


def _members(group: Any) -> list[tuple[str, Any]]:
    """Arrays of a group, by name; of one image in several resolutions only the first."""
    arrays = sorted(group.arrays())
    names = [name for name, _ in arrays]
    if names == [str(i) for i in range(len(names))] or len(arrays) == 1:
        return [("", arrays[0][1])] if arrays else []
    return arrays


def _of_zarr_array(name: str, place: str, array: Any) -> ImageMovie:
    shape = tuple(array.shape)
    channels = len(shape) == 5 and shape[1] == 1
    _check_dimensions(place, (shape[0], *shape[2:]) if channels else shape)

    def frames() -> Iterator[tuple[str, NDArray[Any]]]:
        for t in range(shape[0]):
            try:
                frame = np.asarray(array[t])
            except Exception as error:  # a damaged chunk
                raise DataError(f"cannot read {place}, frame {t}: {_first_line(error)}") from None
            yield f"{place}, frame {t}", frame[0] if channels else frame

    return ImageMovie(name, place, range(shape[0]), frames)


# ------------------------------------------------------------------------------- messages


def _library(name: str, why: str, how: str = _EXTRA) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise DataError(f"{why}, which needs {name}: {how}") from None


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]


def _size(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape))
