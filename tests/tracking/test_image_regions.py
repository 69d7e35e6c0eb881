"""Measurements of regions: by definition, one region at a time, and on odd regions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from trellis.tracking.regions import N_QUANTILES, Regions, overlap

FLAT = arrays(
    np.uint16, st.tuples(st.integers(1, 7), st.integers(1, 7)), elements=st.integers(0, 4)
)
DEEP = arrays(
    np.uint8,
    st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 5)),
    elements=st.integers(0, 3),
)


def faces(mask, label, spacing):
    """Sizes of all faces of a region, and of those on the border of the image."""
    every, outer = 0.0, 0.0
    for pixel in np.argwhere(mask == label):
        for axis in range(mask.ndim):
            size = np.prod(spacing) / spacing[axis]
            for step in (-1, 1):
                at = pixel.copy()
                at[axis] += step
                if not 0 <= at[axis] < mask.shape[axis]:
                    outer += size
                    every += size
                elif mask[tuple(at)] != label:
                    every += size
    return every, outer


@given(st.one_of(FLAT, DEEP), st.integers(0, 99))
@settings(max_examples=80, deadline=None)
def test_columns_are_as_defined(mask, seed):
    rng = np.random.default_rng(seed)
    image, spacing = rng.integers(0, 9, mask.shape), rng.uniform(0.5, 2, mask.ndim)
    objects = Regions.of(mask, image, spacing).objects(published=True)
    labels = sorted(set(mask.ravel().tolist()) - {0})
    assert objects.ids.tolist() == [label - 1 for label in labels]
    for i, label in enumerate(labels):
        pixels = np.argwhere(mask == label)
        places = pixels * spacing
        np.testing.assert_allclose(objects.position[i], places.mean(axis=0)[::-1], atol=1e-12)
        assert objects["area"][i] == pytest.approx(len(pixels) * spacing.prod())
        spread = np.linalg.eigvalsh(np.cov(places.T, bias=True)) if len(pixels) > 1 else np.zeros(2)
        factor = 16 if mask.ndim == 2 else 20
        for name, value in (("major_axis", spread[-1]), ("minor_axis", spread[0])):
            assert objects[name][i] == pytest.approx(np.sqrt(factor * max(value, 0)), abs=1e-6)
        values = image[mask == label]
        assert objects["mean_intensity"][i] == pytest.approx(values.mean())
        assert objects["max_intensity"][i] == values.max()
        quantiles = [objects[f"intensity_quantile_{k + 1}"][i] for k in range(N_QUANTILES)]
        levels = (np.arange(N_QUANTILES) + 0.5) / N_QUANTILES
        wanted = np.sort(values)[np.floor(levels * len(values)).astype(int)]
        assert quantiles == wanted.tolist()
        every, outer = faces(mask, label, spacing)
        assert objects["on_border"][i] == pytest.approx(outer / every)
        if mask.ndim == 2:
            assert objects["perimeter"][i] == pytest.approx(every)
            assert 0 < objects["solidity"][i] <= 1 + 1e-12


@given(st.one_of(FLAT, DEEP), st.one_of(FLAT, DEEP))
@settings(max_examples=60, deadline=None)
def test_overlap_counts_pixels(one, other):
    if one.ndim != other.ndim:
        return
    common = tuple(slice(0, min(sizes)) for sizes in zip(one.shape, other.shape, strict=True))
    one, other = np.ascontiguousarray(one[common]), np.ascontiguousarray(other[common])
    a, b = Regions.of(one), Regions.of(other)
    rows, columns, counts = overlap(a, b)
    found = {
        (int(a.labels[i]), int(b.labels[j])): int(n)
        for i, j, n in zip(rows, columns, counts, strict=True)
    }
    wanted = {}
    for p, q in zip(one.ravel().tolist(), other.ravel().tolist(), strict=True):
        if p and q:
            wanted[p, q] = wanted.get((p, q), 0) + 1
    assert found == wanted


def test_orientation_is_the_angle_from_the_y_axis():
    """To where x grows as y does, from -π/2 to π/2; round regions have none."""
    mask = np.zeros((20, 20), int)
    mask[2:9, 1] = 1  # along y
    mask[15, 3:12] = 2  # along x
    mask[range(10), range(8, 18)] = 3  # down to the right
    mask[range(10, 19), range(18, 9, -1)] = 4
    mask[12:14, 1:3] = 5
    objects = Regions.of(mask).objects()
    assert np.abs(objects["orientation"][1]) == pytest.approx(np.pi / 2)
    np.testing.assert_allclose(
        objects["orientation"][[0, 2, 3]], [0, np.pi / 4, -np.pi / 4], atol=1e-12
    )
    assert np.isnan(objects["orientation"][4])
    assert objects["eccentricity"].tolist() == pytest.approx([1, 1, 1, 1, 0])


def test_odd_regions():
    mask = np.zeros((9, 9), np.int32)
    mask[0, 0] = 1  # one pixel, in the corner
    mask[2:7, 2:7] = 2
    mask[4, 4] = 0  # with a hole
    mask[0, 8] = mask[8, 0] = 70_000  # in two pieces
    objects = Regions.of(mask).objects(published=True)
    assert objects.ids.tolist() == [0, 1, 69_999]
    assert objects["area"].tolist() == [1, 24, 2]
    assert objects["perimeter"].tolist() == [4, 24, 8]
    assert objects["on_border"].tolist() == [0.5, 0, 0.5]
    np.testing.assert_allclose(objects["solidity"], [1, 24 / 25, 2 / 17])
    assert objects["major_axis"][0] == objects["eccentricity"][0] == 0
    assert np.isnan(objects["orientation"][0])
    assert objects.position[2].tolist() == [4, 4]


def test_no_region_at_all():
    regions = Regions.of(np.zeros((4, 5), int), np.ones((4, 5)))
    objects = regions.objects(published=True)
    assert len(regions) == len(objects) == 0
    assert {len(values) for values in objects.columns.values()} == {0}
    assert all(len(a) == 0 for a in overlap(regions, regions))


def test_field_of_view():
    assert Regions.of(np.zeros((4, 6), int)).extent == (-0.5, -0.5, 5.5, 3.5)
    deep = Regions.of(np.zeros((3, 4, 6), int), spacing=(2.0, 1.0, 0.5))
    assert deep.extent == (-0.25, -0.5, -1.0, 2.75, 3.5, 5.0)
    assert Regions.of(np.zeros((1, 4, 6), int)).extent == (-0.5, -0.5, 0.0, 5.5, 3.5, 0.0)


@pytest.mark.extras
@pytest.mark.parametrize("shape", [(40, 50), (12, 20, 30)])
def test_scikit_image_agrees(shape):
    measure = pytest.importorskip("skimage.measure", reason="scikit-image is not installed")
    from scipy.ndimage import gaussian_filter, label

    rng = np.random.default_rng(0)
    mask = label(gaussian_filter(rng.normal(size=shape), 2.0) > 0.03)[0]
    image = rng.random(shape)
    objects = Regions.of(mask, image).objects()
    found = measure.regionprops(mask, image)
    assert len(found) == len(objects) > 3
    names = {
        "area": "area", "major_axis": "axis_major_length", "mean_intensity": "intensity_mean",
        "max_intensity": "intensity_max",
    }  # fmt: skip
    if len(shape) == 2:
        names |= {"minor_axis": "axis_minor_length", "eccentricity": "eccentricity"}
        turned = np.array([region.orientation for region in found])
        known = ~np.isnan(objects["orientation"])
        np.testing.assert_allclose(objects["orientation"][known], turned[known], atol=1e-9)
    for ours, theirs in names.items():
        values = [getattr(region, theirs) for region in found]
        np.testing.assert_allclose(objects[ours], values, atol=1e-6, err_msg=ours)
    np.testing.assert_allclose(
        objects.position[:, ::-1], [region.centroid for region in found], atol=1e-9
    )
