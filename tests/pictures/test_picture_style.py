"""The style of all pictures: told apart without colour, no setting left behind, same bytes."""

from __future__ import annotations

import itertools
import sys
import warnings

import numpy as np
import pytest

from trellis.errors import DataError
from trellis.pictures import draw_confusion, picture_style
from trellis.pictures.style import (
    COLOURS,
    DASHES,
    MARKERS,
    POINTS,
    SEQUENTIAL,
    check_picture_name,
    has_matplotlib,
    line_style,
    new_figure,
    save_figure,
)
from trellis.pictures.transitions import _ABOVE, _BELOW

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")


def lightness(colour):
    """L* of CIELAB, 0 (black) to 100 (white)."""
    from matplotlib.colors import to_rgb

    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    y = float(linear @ [0.2126, 0.7152, 0.0722])
    return 116 * np.cbrt(y) - 16 if y > 0.008856 else 903.3 * y


def test_neighbouring_colours_differ_in_lightness():
    ring = [*COLOURS, COLOURS[0]]
    steps = [abs(lightness(a) - lightness(b)) for a, b in itertools.pairwise(ring)]
    assert min(steps) > 18
    assert max(map(lightness, COLOURS)) < 80  # seen on white paper


def test_rendered_grey_lines_differ():
    """What a copier leaves of the first two curves."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    darkest = []
    for number in range(2):
        figure, (axes,) = new_figure()
        axes.set_axis_off()
        axes.plot([0, 1], [0, 0], color=line_style(number)["color"], linewidth=8)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        grey = np.asarray(canvas.buffer_rgba())[..., :3] @ [0.299, 0.587, 0.114]
        darkest.append(grey.min())
    assert abs(darkest[0] - darkest[1]) > 60


def test_curves_differ_without_colour():
    styles = [(line_style(i)["marker"], str(line_style(i)["linestyle"])) for i in range(40)]
    assert len(set(styles)) == 40
    for a, b in itertools.pairwise(styles):
        assert a[0] != b[0]
        assert a[1] != b[1]
    assert (len(MARKERS), len(DASHES), len(COLOURS)) == (8, 5, 7)


@pytest.mark.parametrize("name", [SEQUENTIAL, POINTS])
def test_colour_maps_darken_throughout(name):
    shades = [lightness(matplotlib.colormaps[name](x)) for x in np.linspace(0, 1, 101)]
    assert (np.diff(shades) < 0).all()
    assert shades[0] - shades[-1] > 70


def test_signed_colours_darken_throughout():
    shades = [lightness(colour) for colour in (*_BELOW, *_ABOVE)]
    assert (np.diff(shades) < -3).all()


def test_no_setting_is_left_behind():
    before = dict(matplotlib.rcParams)
    with picture_style():
        assert matplotlib.rcParams["font.size"] == 9
        assert matplotlib.rcParams["legend.frameon"] is False
    assert dict(matplotlib.rcParams) == before
    with pytest.raises(ZeroDivisionError), picture_style():
        raise ZeroDivisionError
    assert dict(matplotlib.rcParams) == before


def test_settings_of_the_user_do_not_matter(tmp_path):
    def picture(name):
        draw_confusion([["a", "b"]], [["a", "a"]], path=tmp_path / name)
        return (tmp_path / name).read_bytes()

    plain = picture("a.png")
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "black", "lines.linewidth": 9}):
        assert picture("b.png") == plain


def test_pyplot_is_not_used():
    import subprocess

    code = (
        "import sys\n"
        "from trellis.pictures import draw_confusion\n"
        "draw_confusion([['a', 'b']], [['a', 'a']])._repr_png_()\n"
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("suffix", "mark"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("PDF", b"%PDF")]
)
def test_same_bytes(tmp_path, suffix, mark):
    figure, (axes,) = new_figure()
    axes.plot([1, 2])
    paths = [tmp_path / "one", tmp_path / "two"]
    paths = [path.with_suffix(f".{suffix}") for path in paths]
    for path in paths:
        save_figure(figure, path)
    one, two = (path.read_bytes() for path in paths)
    assert one.startswith(mark)
    assert one == two
    assert b"Date" not in one  # CreationDate of PDF, dc:date of SVG
    assert b"dc:date" not in one


def test_a_picture_is_whole_or_not_there(tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    path = tmp_path / "x.png"
    path.write_bytes(b"old")
    figure, _ = new_figure()

    def fails(self, file, **_):
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(Figure, "savefig", fails)
    with pytest.raises(OSError, match="disk full"):
        save_figure(figure, path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_names_of_pictures():
    assert [check_picture_name(f"a.{s}") for s in ("png", "SVG", "pdf")] == ["png", "svg", "pdf"]
    for wrong in ("a.jpg", "png", "", ".png/x"):
        with pytest.raises(DataError, match=r"must end with \.png, \.svg, \.pdf"):
            check_picture_name(wrong)
    with pytest.raises(DataError, match="path must be the name of a file, got 3"):
        check_picture_name(3)


def test_missing_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert not has_matplotlib()
    message = r"^pictures need matplotlib: install it, or trellis-structured\[plot\]$"
    for call in (new_figure, lambda: picture_style().__enter__()):
        with pytest.raises(DataError, match=message):
            call()


def test_notebooks_show_a_figure():
    figure, (axes,) = new_figure()
    empty = figure._repr_png_()
    axes.plot([1, 2])
    assert empty.startswith(b"\x89PNG")
    assert figure._repr_png_() != empty


def test_panels_in_rows():
    figure, panels = new_figure(5, columns=3)
    assert len(panels) == 5
    assert len(figure.axes) == 6
    assert not figure.axes[5].axison


def test_missing_glyphs_are_no_warnings():
    figure, (axes,) = new_figure()
    axes.set_xlabel("标签 ꙮ")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert figure._repr_png_()
