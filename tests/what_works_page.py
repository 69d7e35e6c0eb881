"""The page «What works with what», by trying it all: ``python tests/what_works_page.py``.

Each cell is one attempt with a little data. It worked, or Trellis refused it with a reason, or
there is nothing to try: no such method, argument or parameter. Any other exception is a bug, and is
raised.
"""

from __future__ import annotations

import copy
import inspect
import re
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from toy_data import EDGES, FILM, GOLD, SAID, TAGS, WORDS, X, Y, toys, with_edges
from trellis import MaxMargin, TrellisError, load_model
from trellis.cheap import ActiveLearner, TransferLearner
from trellis.features import prepare
from trellis.models import Checkpoint
from trellis.tracking import PairAnnotation
from trellis.tuning import tune

PAGE = Path(__file__).parent.parent / "docs" / "what-works.md"
HEAD = """\
# What works with what

Every model with every service, tried with a little data (`python tests/what_works_page.py` makes
this page, and a test compares it): ✓ it works; a number: Trellis refuses, with the reason below; –
there is nothing to try, since the model has no such method, argument or parameter.

"""


class NothingToTry(Exception):
    """A model that has no such method, argument or parameter."""


@dataclass(frozen=True)
class Row:
    """A model, and what of each kind of data it takes."""

    name: str
    model: Any
    complete: tuple[Any, ...]
    partial: tuple[Any, ...]
    predict: tuple[Any, ...]
    weighted: int
    """Number of samples that could have a weight."""
    options: dict[str, Any]
    structure: str = ""

    def fit(self, data: tuple[Any, ...] | None = None, /, **more: Any) -> Any:
        """A fitted copy of the model."""
        given = self.complete if data is None else data
        return clone(self.model).fit(*given, **self.options, **more)

    def with_parameters(self, **parameters: Any) -> Any:
        """A copy with other parameters, if it has them."""
        if not set(parameters) <= set(self.model.get_params()):
            raise NothingToTry
        return clone(self.model).set_params(**parameters)

    def need_argument(self, name: str) -> None:
        """Give up if ``fit`` has no such argument."""
        if name not in inspect.signature(self.model.fit).parameters:
            raise NothingToTry

    def method(self, name: str) -> Any:
        """A method of the fitted model."""
        return _method(self.fit(), name)


def _method(model: Any, name: str) -> Any:
    try:
        return getattr(model, name)
    except AttributeError as missing:
        if "object has no attribute" in str(missing):
            raise NothingToTry from None
        raise  # it says why


def rows() -> list[Row]:
    """All models."""
    found = []
    toy = toys()
    margins = {
        f"MaxMargin, {structure}": MaxMargin("word", structure=structure, max_passes=3)
        for structure in EDGES
    }
    labelling = {
        name: toy[name].model
        for kind in ("CRF", "Perceptron")
        for name in (f"Chain{kind}", f"Tree{kind}", f"Graph{kind}")
    } | margins
    known = copy.deepcopy(TAGS)
    known[0][1], known[1][2] = None, {"V", "N"}
    for name, model in labelling.items():
        data = with_edges(WORDS, EDGES[model.structure])
        model.set_params(random_state=0)
        found.append(
            Row(name, model, (data, TAGS), (data, known), (data[:2],), 9, {}, model.structure)
        )
    few = [replace(pair, annotation=first_moves(pair.annotation)) for pair in FILM[:3]]
    tracker = toy["TrackingModel"].model
    found.append(Row("TrackingModel", tracker, (FILM[:3],), (few,), (FILM[3:],), 3, {}))
    missing = np.where(np.arange(len(Y)) % 5 == 0, np.nan, Y)
    for name in ("GCRF", "GLACER", "NetworkLasso"):
        one = toy[name]
        found.append(Row(name, one.model, (X, Y), (X, missing), one.predict, 40, one.options))
    unsure = [[None, *labels[1:]] for labels in GOLD]
    for name in ("MajorityVote", "WeightedMajority", "ESPBoost", "Stacking"):
        found.append(Row(name, toy[name].model, (SAID, GOLD), (SAID, unsure), (SAID,), 12, {}))
    return found


def first_moves(known: PairAnnotation) -> PairAnnotation:
    """An annotation of three objects."""
    moves = [link for link in known.links if link[2] == "move"]
    return PairAnnotation(tuple(moves[:3]), known_sources=(), known_targets=())


# ------------------------------------------------------------------------- services


def complete(row: Row) -> None:
    row.fit().predict(*row.predict)


def partial(row: Row) -> None:
    row.fit(row.partial).predict(*row.predict)


def weighted(row: Row) -> None:
    row.need_argument("sample_weight")
    row.fit(sample_weight=np.arange(1.0, row.weighted + 1))


def pieces(row: Row) -> None:
    row.with_parameters(piece_size=2.0).fit(*row.complete)


def rich(row: Row) -> None:
    model = row.with_parameters(rich_edges=True).fit(*row.complete)
    assert model.weights_.edge is not None


def edge_features(row: Row) -> None:
    row.need_argument("edge_features")
    samples = row.complete[0]
    pairs = [[] if row.structure == "chain" else sample[1] for sample in samples]
    own = [[{"far": abs(a - b)} for a, b in edges] for edges in pairs]
    row.fit(edge_features=own).predict(samples, edge_features=own)


def held_out(row: Row) -> None:
    row.need_argument("dev")
    model = row.with_parameters(patience=1).fit(*row.complete, dev=row.complete)
    assert model.history_[-1].dev_score is not None


def warm(row: Row) -> None:
    steps = {"solver": "sgd"} if isinstance(row.model, MaxMargin) else {}
    model = row.with_parameters(warm_start=True, **steps)
    model.fit(*row.complete).fit(*row.complete)


def stream(row: Row) -> None:
    batch = _method(clone(row.model), "partial_fit")
    batch(*row.complete)
    batch(*row.complete).predict(*row.predict)


class _Interrupted(Checkpoint):
    """A checkpoint that is written once."""

    def save(self, *state: Any) -> None:
        super().save(*state)
        if self.path.exists():  # within a pass it is not yet due
            raise KeyboardInterrupt


def resumed(row: Row) -> None:
    row.need_argument("checkpoint")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run"
        if row.structure:
            try:
                row.fit(checkpoint=_Interrupted(file))
            except KeyboardInterrupt:
                assert file.exists()
            else:
                raise AssertionError("it never wrote a checkpoint")
        else:
            row.fit(checkpoint=file)
        model = row.fit(checkpoint=file, resume=True)
        again, whole = model.predict(*row.predict), row.fit().predict(*row.predict)
        assert np.array_equal(again, whole)


def threads(row: Row) -> None:
    row.with_parameters(n_jobs=2).fit(*row.complete, **row.options)


def out_of_core(row: Row) -> None:
    if not row.structure:
        raise NothingToTry
    with tempfile.TemporaryDirectory() as folder:
        samples, labels = row.complete
        row.fit((prepare(samples, Path(folder) / "train", "word", y=labels),))


def tuned(row: Row) -> None:
    name, value = next(iter(row.model.get_params(deep=False).items()))
    grid = {name: [value]}
    tune(row.model, *row.complete, grid=grid, folds=2).best_model()


def active(row: Row) -> None:
    data = row.complete[0]
    learner = ActiveLearner(clone(row.model), labels=sorted({t for tags in TAGS for t in tags}))
    pool = data if row.structure else [replace(pair, annotation=None) for pair in data]
    for _ in range(2):
        i = learner.query(pool)
        learner.tell(i, row.complete[1][i] if row.structure else data[i].annotation)
    learner.finish().predict(*row.predict)


def transfer(row: Row) -> None:
    halves = [tuple(part[first::2] for part in row.complete) for first in (0, 1)]
    a, b = (half if row.structure else half[0] for half in halves)
    data = {"a": a, "b": b}
    TransferLearner(clone(row.model), target="b").fit(data).predict(*row.predict)


def decode(row: Row) -> None:
    assert all(one.gap >= 0 for one in row.method("decode")(*row.predict))


def kbest(row: Row) -> None:
    assert all(len(ranked) == 2 for ranked in row.method("predict_kbest")(*row.predict, 2))


def marginals(row: Row) -> None:
    for table in row.method("predict_marginals")(*row.predict):
        assert np.allclose(table.sum(axis=1), 1)


def chances(row: Row) -> None:
    model = row.fit()
    assert (_method(model, "entropy")(*row.predict) > 0).all()
    assert len(_method(model, "sample")(*row.predict, 3, random_state=0)[0]) == 3


def explained(row: Row) -> None:
    assert row.method("explain")(row.predict[0][:1]).positions


def kept(row: Row) -> None:
    model = row.fit()
    with tempfile.TemporaryDirectory() as folder:
        _method(model, "save")(Path(folder) / "model")
        load_model(Path(folder) / "model").predict(*row.predict)


SERVICES: dict[str, Callable[[Row], None]] = {
    "complete labels": complete,
    "label sets, None": partial,
    "`sample_weight`": weighted,
    "pieces": pieces,
    "rich edges": rich,
    "features of edges": edge_features,
    "`dev`, `patience`": held_out,
    "warm start": warm,
    "`partial_fit`": stream,
    "checkpoint, resume": resumed,
    "`n_jobs`": threads,
    "out of core": out_of_core,
    "`tune`": tuned,
    "active learning": active,
    "transfer": transfer,
    "`decode`": decode,
    "k best": kbest,
    "marginals": marginals,
    "`sample`, `entropy`": chances,
    "`explain`": explained,
    "save, load": kept,
}


# ------------------------------------------------------------------------- the page


def outcome(row: Row, service: Callable[[Row], None]) -> str:
    """✓, – or the reason of a refusal."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)
            service(row)
    except NothingToTry:
        return "–"
    except (TrellisError, AttributeError) as refusal:
        reason = str(refusal)
        if not reason or "object has no attribute" in reason:
            raise
        return shortened(reason, row)
    return "✓"


def shortened(reason: str, row: Row) -> str:
    """A reason without what differs from model to model."""
    reason = re.sub(r",? (but )?got .*", "", reason, flags=re.DOTALL).split("\n")[0]
    folder = re.escape(tempfile.gettempdir())  # where folders have random names
    reason = re.sub(rf"^{folder}/\w+/", "the file ", reason)
    return re.sub(rf"^{type(row.model).__name__} has no \w+: ", "", reason)


def page() -> str:
    """The page as Markdown, services down and models across."""
    models = rows()
    reasons: list[str] = []
    lines = [
        "| | " + " | ".join(row.name for row in models) + " |",
        "|---" * (len(models) + 1) + "|",
    ]
    for title, service in SERVICES.items():
        cells = []
        for row in models:
            said = outcome(row, service)
            if said not in ("✓", "–"):
                if said not in reasons:
                    reasons.append(said)
                said = f"{reasons.index(said) + 1}"
            cells.append(said)
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    lines += ["", "Why not:", ""]
    lines += [f"{i}. {reason}" for i, reason in enumerate(reasons, 1)]
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
