"""A regression on graphs of a plain table: numbers, categories, dates, gaps and coordinates.

Columns become numbers (:mod:`trellis.regression.table_rows`), coordinates a graph of nearest rows
(:mod:`trellis.regression.places`), and a Gaussian CRF or GLACER learns from both. New rows come as
a table with the same columns, in any order; they are joined to the rows of training.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from trellis.arrays import Float64s
from trellis.domains import flag, has, nothing, number, one_of, strings, text, whole
from trellis.errors import CorruptModelError, DataError
from trellis.estimator import Seeded, changed, parameter
from trellis.files.storable import Storable, is_fitted
from trellis.files.stored import header_value, take
from trellis.files.table import Table, read_table
from trellis.regression.base_names import named_base, taking_gaps
from trellis.regression.gcrf import GCRF, REGRESSOR
from trellis.regression.glacer import GLACER
from trellis.regression.log_scale import OwnScale
from trellis.regression.node_model import Answer, NodeModel
from trellis.regression.places import Metric, Places
from trellis.regression.similarity import METRIC
from trellis.regression.table_data import TableData, targets
from trellis.regression.table_rows import TableRows
from trellis.regression.written_cells import plain_cells

__all__ = ["TableRegressor"]

_LEAST = 5  # rows with a target


class TableRegressor(Seeded, Storable):
    """Regression on graphs of a table: a CSV file, a mapping of columns, a data frame.

    Attributes
    ----------
    rows_ : TableRows
        How columns become numbers; ``rows_.describe()`` says it in words.
    places_ : Places or None
        The columns of coordinates, latitude before longitude, and the distance.
    model_ : NodeModel
        The fitted model of the numbers; ``model_.model`` is the GCRF or GLACER.
    seed_ : int
        That of everything random.
    log_ : bool
        Whether the model is one of logarithms.

    Examples
    --------
    >>> from trellis.regression import TableRegressor
    >>> rng = np.random.default_rng(0)
    >>> table = {"lat": rng.uniform(50, 51, 60), "lon": rng.uniform(8, 9, 60)}
    >>> table["kind"] = ["flat" if i % 3 else "house" for i in range(60)]
    >>> table["price"] = 100 * table["lat"] + 30 * (np.arange(60) % 3 == 0)
    >>> model = TableRegressor("price", base="ridge", drop=["lat"], random_state=0).fit(table)
    >>> model.rows_.names
    ['lon', 'kind=flat', 'kind=house']
    >>> new = {"kind": ["house", None], "lat": [50.1, 50.9], "lon": [8.5, 8.5]}
    >>> mean, std = model.predict(new, return_std=True)
    >>> bool(mean[0] < mean[1]), std.shape
    (True, (2,))
    """

    target: str = parameter(text, "The column to predict.", kw_only=False)
    log: bool = parameter(
        flag,
        """Whether to learn the logarithm of the target, as is usual for prices, counts and
        concentrations: what is far off is then far off by a factor. Predictions are of the target
        itself, and never below 0.""",
        default=False,
    )
    features: Sequence[str] | None = parameter(
        nothing | strings,
        """The columns to predict from, even where they look like nothing to learn from. None: all
        but the target, numbers of rows, texts that never repeat and what is always the same.""",
        default=None,
    )
    drop: Sequence[str] | None = parameter(
        nothing | strings, "Columns that are not features.", default=None
    )
    categories: Sequence[str] | None = parameter(
        nothing | strings,
        """Columns whose numbers are names, such as postcodes. Texts are categories anyway.""",
        default=None,
    )
    max_levels: int = parameter(
        whole(1),
        """Values that a category may have to become a column of 0 and 1 for each; with more it
        becomes the mean target of rows with the same value, made from other folds.""",
        default=10,
    )
    coords: Sequence[str] | None = parameter(
        nothing | strings,
        """The columns that distances are measured on. Latitude and longitude are known by their
        names, in either order. None: the latitude and the longitude, if the table has one each.""",
        default=None,
    )
    metric: Metric | None = parameter(
        nothing | METRIC.domain,
        """Distance of coordinates. None: haversine (degrees, in kilometres) for a latitude and a
        longitude, else euclidean.""",
        default=None,
    )
    n_neighbors: int | None = parameter(
        nothing | whole(1),
        "Nearest rows that each is joined to. None: as many as the model takes by default.",
        default=None,
        option="--knn",
    )
    base: Any = parameter(
        nothing | text | REGRESSOR,
        """The unstructured model: a name such as "hgb" or "ridge", that of any regressor of
        scikit-learn, or one itself. None: what the model takes by default.""",
        default=None,
    )
    model: Any = parameter(
        one_of("gcrf", "glacer") | has("fit", "predict", words="a GCRF or GLACER"),
        "Which model of graphs, or one with parameters of your own.",
        default="gcrf",
    )
    random_state = changed(help="Seed of folds, base models and subsets.")

    def fit(self, table: Any, *, graph: Any = None) -> Self:
        """Learn from a table.

        Parameters
        ----------
        table : path, open file, mapping of columns or DataFrame
            The target may be missing in some rows; so may features. Rows without coordinates are
            left out, unless there is a graph.
        graph : sparse (n, n), optional
            Similarities of all rows, those without a target among them, instead of nearest rows:
            :func:`~trellis.regression.areas_graph` makes one of areas.

        Raises
        ------
        DataError
            If columns or targets are not there or not as they should be; it names the place.
        """
        self._check_parameters()
        data = self.read(table)
        return self.fit_data(data if graph is None else data.on_graph(), graph=graph)

    def read(self, table: Any) -> TableData:
        """A table as the parameters say it is to be read."""
        return TableData.of(
            read_table(table, separator=None, decimal=None), self.target,
            features=self.features, drop=self.drop, categories=self.categories,
            coords=self.coords, metric=self.metric, max_levels=self.max_levels, log=self.log,
        )  # fmt: skip

    def fit_data(self, data: TableData, *, graph: Any = None) -> Self:
        """Learn from a table that has been read."""
        self._check_parameters()
        self.seed_ = seed = self._seed_or_fresh()
        self.log_ = data.log
        data.check_targets(_LEAST, "to learn anything")
        self.rows_, X = data.numbers(data.known, seed)
        self.places_ = data.places if graph is None else None
        y = np.full(len(data.y), np.nan)
        y[data.known] = data.y[data.known]
        self.model_ = self.fitted_model(X, y, data, seed, graph=graph)
        return self

    def fitted_model(
        self, X: Float64s, y: Float64s, data: TableData, seed: int, *, graph: Any = None
    ) -> NodeModel:
        """The model of these numbers and targets (NaN: none), fitted."""
        if graph is None and data.places is None:
            raise DataError(
                "no coordinates and no graph: name the columns of coordinates (coords), or give "
                "the similarities of all rows (graph)"
            )
        if graph is not None and graph.shape != (len(X), len(X)):
            raise DataError(
                f"the graph is one of {graph.shape[0]} nodes, but the table has {len(X)} rows; "
                "those without a target belong in the graph, too"
            )
        model = self._new_model(seed)
        metric = "euclidean" if data.places is None else data.places.metric
        return NodeModel.fitted(
            model, X, y, points=data.points, metric=metric, n_neighbors=self.n_neighbors,
            graph=graph,
        )  # fmt: skip

    def predict(self, table: Any, *, graph: Any = None, return_std: bool = False) -> Any:
        """Return the expected targets of a table's rows.

        Parameters
        ----------
        table : path, open file, mapping of columns or DataFrame
            With the columns of training, but for the target. Rows without coordinates get what
            the base says.
        graph : sparse (n, n), optional
            Similarities of its rows, if training had a graph: then all areas belong in the table,
            and targets that it has are what is known of the neighbours of the others.
        return_std : bool
            Also return standard deviations; 90 % intervals are 1.645 of them to either side,
            unless logarithms were learnt: :meth:`predict_interval` has those.

        Returns
        -------
        mean : (n,) array
        std : (n,) array
            Only with `return_std`.
        """
        found = self.answer(table, graph=graph)
        own = OwnScale.of(found.mean, found.std, 0.0, log=self.log_)
        return (own.mean, own.std) if return_std else own.mean

    def predict_interval(
        self, table: Any, *, graph: Any = None, level: float = 0.9
    ) -> tuple[Float64s, Float64s]:
        """Return both ends of an interval of the target of each row.

        Parameters
        ----------
        table, graph
            As for :meth:`predict`.
        level : float
            How many targets are to lie within theirs.

        Returns
        -------
        low, high : (n,) arrays
        """
        from scipy.stats import norm

        number(above=0, below=1).check("level", level)
        found = self.answer(table, graph=graph)
        z = float(norm.ppf((1 + level) / 2))
        own = OwnScale.of(found.mean, found.std, z, log=self.log_)
        return own.low, own.high

    def answer(self, table: Any, *, graph: Any = None) -> Answer:
        """Mean, standard deviation and base prediction of each row.

        The parameters are those of :meth:`predict`; if logarithms were learnt, so are these.
        """
        self._check_fitted()
        read = self._plain(table)
        given = self.rows_.encoded(read)
        X = self.rows_.filled(given)
        points, observed = None, None
        if self.places_ is not None:
            points, graph = self.places_.read(read), None
        elif graph is None:
            raise DataError(
                "this model was trained with a graph of its rows; give the graph of all rows of "
                "the table, too"
            )
        elif self.target in read.columns:
            observed = targets(read, self.target, log=self.log_)
            known = np.flatnonzero(~np.isnan(observed))
            if len(known):  # as in training, whose rows these are likely to be
                part = given.subset(known)
                X[known] = self.rows_.crossed(part, observed[known], self.seed_)
        return self.model_.answer(X, points=points, graph=graph, observed=observed)

    def predict_base(self, table: Any) -> Float64s:
        """Return what the base model alone predicts, without neighbours.

        If logarithms were learnt it is the median of what it expects, as it knows no spread.
        """
        self._check_fitted()
        read = self._plain(table)
        base = self.model_.base(self.rows_.filled(self.rows_.encoded(read)))
        return np.exp(base) if self.log_ else base

    def score(self, table: Any, *, graph: Any = None) -> float:
        """Return R^2 of the predictions, over the rows with a target."""
        from sklearn.metrics import r2_score

        self._check_fitted()
        read = self._plain(table)
        y = read.checked_numbers(self.target, missing=True)
        known = ~np.isnan(y)
        return float(r2_score(y[known], self.predict(read, graph=graph)[known]))

    # ------------------------------------------------------------------ parts

    def _plain(self, table: Any) -> Table:
        """A new table, its cells of numbers as plain ones."""
        read = read_table(table, separator=None, decimal=None)
        if not len(read):
            raise DataError(f"{read.name} has a header, but no rows")
        numbers = [code.name for code in self.rows_.codes if code.how == "number"]
        words = [code.name for code in self.rows_.codes if code.how != "number"]
        where = () if self.places_ is None else self.places_.columns
        return plain_cells(read, (*numbers, *where, self.target), words)[0]

    def _new_model(self, seed: int) -> Any:
        from sklearn.base import clone

        base = self.base
        if isinstance(base, str):
            base = named_base(base, seed)
        elif base is not None:
            base = taking_gaps(clone(base))
        if not isinstance(self.model, str):
            if not isinstance(self.model, GCRF | GLACER):
                raise DataError(f"model must be a GCRF or a GLACER, not {self.model!r:.60}")
            model = clone(self.model)
            return model if base is None else model.set_params(base=base)
        if self.model == "glacer":
            return GLACER(base=base, random_state=seed)
        return GCRF(base, base_predictions="cv", random_state=seed)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, RegressorTags, Tags, TargetTags

        return Tags(
            estimator_type="regressor",
            target_tags=TargetTags(required=False),
            regressor_tags=RegressorTags(),
            input_tags=InputTags(allow_nan=True, string=True),
        )

    def _state(self) -> dict[str, Any]:
        places = self.places_
        return {
            "rows": self.rows_.state(),
            "places": None if places is None else [list(places.columns), places.metric],
            "model": self.model_.model,
            "fill": self.model_.fill,
            "seed": self.seed_,
            "log": self.log_,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self.rows_ = TableRows.restored(state.get("rows"))
        model, places = state.get("model"), state.get("places")
        if not isinstance(model, GCRF | GLACER) or not is_fitted(model):
            raise CorruptModelError("the model of a table is none of graphs, or not fitted")
        self.places_ = None
        if places is not None:
            pair = header_value(state, "places", list)
            if len(pair) != 2 or not isinstance(pair[0], list):
                raise CorruptModelError("the coordinates of a table are not as they should be")
            columns = header_value({"columns": pair[0]}, "columns", list, items=str)
            METRIC.domain.check("metric", pair[1])
            self.places_ = Places(tuple(columns), pair[1])
        if not isinstance(state.get("fill"), np.ndarray):
            raise CorruptModelError("the means of a table are not as they should be")
        fill = take(state, "fill", np.float64, (len(self.rows_.names),))
        self.model_ = NodeModel(model, places is not None, fill)
        self.seed_ = header_value(state, "seed", int, low=0)
        self.log_ = header_value({"log": False, **state}, "log", bool)
