"""Images on grids: pixels labelled alone, with tree pieces, with loopy pieces, and whole.

Tree pieces of a loopy graph keep only a share ρ of its edges: (nodes − components) / edges, about
half of those of a grid. A model learned from them lets each edge say what several would have to
say together, and on the whole graph they say it too loudly. :class:`trellis.GraphCRF` therefore has
each edge count ρ times at prediction, or as often as held-out images say (see
:mod:`trellis.models.edge_share`); what it would predict without that is reported, too.

Which pieces are drawn is chance: models that train fast are fitted with several seeds.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from studies.experiments import Computation, Experiment, Records
from studies.folder import Call
from studies.markdown import markdown
from studies.structures.fitting import fitted
from studies.texts import size_text
from trellis import GraphCRF, GraphPerceptron
from trellis.corpus import Corpus
from trellis.datasets import noisy_digits, textures
from trellis.pictures.style import new_figure, save_figure

__all__ = ["GRIDS", "Images", "grid_images"]

FEATURES = {
    "digits": "pixel",
    "textures": "pixel & west; pixel & north; pixel & east; pixel & south",
}
"""Templates of the two tasks: what a pixel is told about itself."""

_AROUND = "pixel; north; south; west; east"
_TITLES = {"digits": "Noisy digits", "textures": "Textures"}


@dataclass(frozen=True)
class Images:
    """How many images of which size, and how long the models with loops are trained."""

    n_train: int
    n_test: int
    size: int
    passes: int


IMAGES: Mapping[str, Mapping[str, Images]] = {
    "quick": {"digits": Images(20, 30, 8, 3), "textures": Images(8, 4, 12, 3)},
    "default": {"digits": Images(150, 300, 8, 12), "textures": Images(40, 20, 24, 12)},
    "full": {"digits": Images(1000, 797, 8, 25), "textures": Images(200, 100, 24, 25)},
}
"""The data of each protocol."""

_SIZES: Mapping[str, tuple[float | None, ...]] = {
    "quick": (5.5, None),
    "default": (2.5, 5.5, 10.5, None),
    "full": (1.5, 2.5, 3.5, 5.5, 10.5, 20.5, None),
}
_LOOPY = 6.0  # mean size of pieces that keep their loops
_SEEDS = (0, 1, 2)
_SHOWN = "tree-5.5"  # the model of tree pieces that is shown and spoken of


def grid_images(task: str, images: Images) -> tuple[Corpus, Corpus]:
    """Training and test images of a task."""
    if task == "digits":
        corpus = noisy_digits(levels=2, noise=8.0)
    else:
        corpus = textures(images.n_train + images.n_test, size=images.size)
    return corpus[: images.n_train], corpus[len(corpus) - images.n_test :]


def without_share(model: Any) -> Any:
    """The same model with all edges counted once."""
    other = copy.copy(model)
    other.edge_share_ = 1.0
    return other


def _models(task: str, protocol: str) -> dict[str, str]:
    """Keys and names of what is fitted."""
    found = {"none": "no structure"}
    if task == "digits":
        found["none-around"] = "no structure, pixels around as features"
    for size in _SIZES[protocol]:
        trees = "whole spanning trees" if size is None else f"tree pieces, n′ = {size_text(size)}"
        found[f"tree-{size_text(size)}"] = trees
    if task == "digits":
        found["tree-around"] = "tree pieces, n′ = 5.5, pixels around as features"
    found["graph-pieces"] = f"pieces with loops, n′ = {_LOOPY:g}"
    found["graph-whole"] = "whole graphs"
    found["perceptron-5.5"] = "perceptron, tree pieces, n′ = 5.5"
    found["perceptron-whole"] = "perceptron, whole spanning trees"
    return found


def _model(task: str, key: str, passes: int, train: Corpus, seed: int) -> Any:
    kind, _, rest = key.partition("-")
    features = _AROUND if rest == "around" else FEATURES[task]
    if kind == "none":
        # The optimum: steps from pixel to pixel stop short of it.
        return GraphCRF(features, piece_size=1, solver="lbfgs", random_state=seed)
    if rest == "pieces":
        # The rate is that of tree pieces of the same size: to try rates here would take long.
        like = GraphCRF(features, piece_size=_LOOPY, max_passes=1, random_state=0).fit(train)
        return GraphCRF(
            features, piece_size=_LOOPY, pieces="graph", learning_rate=like.learning_rate_,
            batch_size=8, max_passes=passes, random_state=0,
        )  # fmt: skip
    if kind == "graph":
        return GraphCRF(features, pieces="graph", solver="lbfgs", max_passes=passes, random_state=0)
    size = None if rest == "whole" else 5.5 if rest == "around" else float(rest)
    family: Any = GraphCRF if kind == "tree" else GraphPerceptron
    return family(features, piece_size=size, random_state=seed)


def _fit(task: str, key: str, images: Images) -> dict[str, Any]:
    """Means over seeds of all figures; the range of the last one; what the first seed drew."""
    train, test = grid_images(task, images)
    seeds = _SEEDS[:1] if key.startswith("graph") else _SEEDS
    runs = [_fit_once(task, key, images, train, test, seed) for seed in seeds]
    record = dict(runs[0])
    for name, value in runs[0].items():
        if isinstance(value, float):
            record[name] = float(np.mean([run[name] for run in runs]))
    names = ("marginals_reweighted", "marginals", "best")
    last = next(name for name in names if name in record)
    record["range"] = [min(run[last] for run in runs), max(run[last] for run in runs)]
    return record


def _fit_once(
    task: str, key: str, images: Images, train: Corpus, test: Corpus, seed: int
) -> dict[str, Any]:
    model = _model(task, key, images.passes, train, seed)
    record = fitted(model, train)
    if key.startswith("tree"):
        scaled = _scores(model, test)
        record |= {f"{name}_reweighted": value for name, value in scaled.items()}
        record["share"] = float(model.edge_share_)
        model = without_share(model)
    return _scores(model, test) | record


def _scores(model: Any, test: Corpus) -> dict[str, Any]:
    """Accuracy of best labellings and of most probable labels, and the first image."""
    gold = _flat(test.label_lists())
    best = _flat([found.labels for found in model.decode(test)])
    record = {"best": float((best == gold).mean()), "example": best[: test.lengths[0]].tolist()}
    if hasattr(model, "marginals"):
        found = model.marginals(test)
        labels = np.array(model.classes_)[np.concatenate([m for m, _ in found]).argmax(axis=1)]
        record["marginals"] = float((labels == gold).mean())
        record["exact"] = bool(all(exact for _, exact in found))
        record["example_marginals"] = labels[: test.lengths[0]].tolist()
    return record


def _flat(labels: list[list[Any]]) -> np.ndarray[Any, Any]:
    return np.array([label for sample in labels for label in sample])


def _truth(task: str, images: Images) -> dict[str, Any]:
    """The first test image: what is seen, and what is true."""
    _, test = grid_images(task, images)
    first = test[0]
    return {"seen": first.columns["pixel"], "true": first.labels}


_FITS, _IMAGE = Computation("grids", _fit), Computation("grids-image", _truth)


def _calls(protocol: str) -> list[Call]:
    calls = []
    for task, images in IMAGES[protocol].items():
        title = _TITLES[task]
        calls.append(_IMAGE.call(f"{title}: an image", protocol, task, sizes=images))
        calls += [
            _FITS.call(f"{title}: {name}", protocol, task, model, sizes=images)
            for model, name in _models(task, protocol).items()
        ]
    return calls


def _percent(record: Mapping[str, Any], name: str) -> str:
    return f"{100 * record[name]:.2f}" if name in record else ""


def _report(protocol: str, records: Records) -> str:
    parts = [
        "Each pixel is a node, joined to the four around it. Tree pieces keep a share ρ of the "
        "edges in training, and at prediction on the whole grid the model has each edge count ρ "
        "times; the columns without «times ρ» show what it would predict otherwise. «Best» is the "
        "accuracy of the best labelling, «probable» that of the most probable label of each pixel "
        "by marginals, both in per cent on test images, means over three seeds of training (one of "
        "models with loops); the range is that of the last figure; CPU seconds of training."
    ]
    for task, images in IMAGES[protocol].items():
        names = _models(task, protocol)
        found = {model: _FITS.of(records, protocol, task, model) for model in names}
        rows = [
            [
                name, _percent(found[m], "best"), _percent(found[m], "marginals"),
                _percent(found[m], "best_reweighted"), _percent(found[m], "marginals_reweighted"),
                "–".join(f"{100 * value:.2f}" for value in found[m]["range"]),
                f"{found[m]['seconds']:.2f}",
            ]
            for m, name in names.items()
        ]  # fmt: skip
        head = ["model", "best", "probable", "best, times ρ", "probable, times ρ", "range",
                "seconds"]  # fmt: skip
        share = found[_SHOWN]["share"]
        exact = "exact" if found["graph-whole"]["exact"] else "those of loopy belief propagation"
        parts += [
            f"### {_TITLES[task]}",
            f"{images.n_train:,} training and {images.n_test:,} test images of {images.size} × "
            f"{images.size} pixels; ρ = {share:.2f}; marginals of whole images are {exact}.",
            markdown(head, rows),
            _sentence(names, found),
        ]
    return "\n\n".join(parts)


def _sentence(names: Mapping[str, str], found: Mapping[str, Mapping[str, Any]]) -> str:
    """What the tree pieces bring, over no structure and beside whole graphs."""
    none, tree, whole = found["none"], found[_SHOWN], found["graph-whole"]
    score = 100 * tree["marginals_reweighted"]
    return (
        f"«{names[_SHOWN]}», with tables times ρ and by marginals, has {score:.2f} %, "
        f"{score - 100 * none['best']:+.2f} points from no structure; without ρ its best labelling "
        f"has {100 * tree['best']:.2f} %. Training on whole graphs ({whole['passes']} passes) has "
        f"{100 * whole['marginals']:.2f} %, {100 * whole['marginals'] - score:+.2f} points from "
        f"those trees, and takes {whole['seconds'] / tree['seconds']:.0f} times as long; pieces "
        f"with loops take {found['graph-pieces']['seconds'] / tree['seconds']:.0f} times as long."
    )


def _draw(protocol: str, records: Records, path: Path) -> None:
    figure, axes = new_figure(8, columns=4)
    figure.set_size_inches(11, 6)
    panels = iter(axes)
    for task, images in IMAGES[protocol].items():
        image = _IMAGE.of(records, protocol, task)
        none, tree = (_FITS.of(records, protocol, task, model) for model in ("none", _SHOWN))
        labels = sorted({*image["true"], *none["example"], *tree["example_marginals_reweighted"]})
        symbols = sorted(set(image["seen"]))
        for title, values, names in (
            (f"{_TITLES[task]}: seen", image["seen"], symbols),
            ("labels without structure", none["example"], labels),
            ("labels by tree pieces", tree["example_marginals_reweighted"], labels),
            ("truth", image["true"], labels),
        ):
            ax = next(panels)
            codes = np.array([names.index(v) for v in values]).reshape(images.size, images.size)
            grey = names is symbols or len(labels) == 2
            ax.imshow(codes, cmap="Greys" if grey else "viridis", vmin=0, vmax=len(names) - 1)
            ax.set_title(title, fontsize=10)
            ax.set_xticks([])
            ax.set_yticks([])
    save_figure(figure, path)


GRIDS = Experiment("grids", "Images on grids", _calls, _report, (), _draw)
