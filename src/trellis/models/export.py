"""A chain model as one Python file that needs NumPy alone.

The file is the source of :mod:`trellis.predictor` with the model in its ``DATA``: an ``.npz`` file
of arrays, compressed, in base64. One file rather than two, since two get separated; text, since
Python files are; base64, since Python decodes it a hundred times as fast as base85, which is 6 %
smaller.
"""

from __future__ import annotations

import base64
import io
import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trellis import predictor
from trellis.corpus.label_values import label_in_json
from trellis.domains import instance
from trellis.errors import DataError
from trellis.features import AttributeEncoder, Encoder, TemplateEncoder
from trellis.features.atoms import Atom, DictionaryAtom, LexiconAtom
from trellis.features.columns import ConjunctionColumn, NgramColumn, NumberColumn
from trellis.features.linear_regex import LinearRegex
from trellis.files.text import read_text, write_text

if TYPE_CHECKING:
    from trellis.models.linear_model import LinearModel

__all__ = ["export_predictor"]

Arrays = dict[str, NDArray[Any]]
_PLACE = 'DATA = ""\n'
_LETTERS = 20  # of words that Python's own regular expressions must search at once


def export_predictor(model: LinearModel, path: str | os.PathLike[Any]) -> None:
    """Write a fitted chain model as a Python file that predicts the same labels without Trellis.

    Parameters
    ----------
    model : ChainCRF, ChainPerceptron or MaxMargin
        Of chains. What was not compressed (:meth:`~trellis.models.ChainCRF.compressed`) makes a
        large file.
    path : path
        The file, e.g. ``predictor.py``. It has ``predict(samples)``, and tags column files as
        ``trellis tag`` does: ``python predictor.py new.txt``.

    Raises
    ------
    DataError
        If the model has something that the file could not do; the message names it.

    Examples
    --------
    >>> import runpy, tempfile
    >>> from pathlib import Path
    >>> from trellis import ChainCRF
    >>> from trellis.models import export_predictor
    >>> crf = ChainCRF(random_state=0).fit([["the", "cat"], ["a", "dog"]], [["D", "N"]] * 2)
    >>> path = Path(tempfile.mkdtemp()) / "predictor.py"
    >>> export_predictor(crf, path)
    >>> runpy.run_path(str(path))["predict"]([["a", "cat"]])
    [['D', 'N']]
    """
    from trellis.models.linear_model import LinearModel

    instance(LinearModel).check("model", model)
    if model.structure != "chain":
        raise DataError(
            f"only models of chains can be exported, this one is of {model.structure}s; a model "
            "file (save) keeps it"
        )
    # All features, in the order that files have them; what is zero is not missed.
    model = model.compressed(keep=1.0, precision="float32")
    meta: dict[str, Any] = {"labels": _labels(model.state_labels), "layout": model.input_format_}
    arrays: Arrays = {"transitions": _short(model.weights_.transitions)}
    described, more = _features(model.encoder_)
    meta |= described
    nothing = np.zeros((1, len(meta["labels"])), np.float32)
    arrays |= {"node": _short(np.concatenate([model.weights_.node, nothing])), **more}
    if meta["layout"] is None and len(meta.get("columns", [])) == 1:
        columns = [*meta["columns"], "label"]
        meta["layout"] = {"format": "conll", "columns": columns, "label": "label", "tabs": False}
    rules = model._rules()
    if rules is not None:
        arrays |= dict(zip(("start", "follow", "end"), rules, strict=True))
    edge = model.weights_.edge
    if edge is not None:
        meta["both"] = edge.both
        arrays |= {"edge_row": edge.row, "edge_ptr": edge.ptr, "edge_pair": edge.pair}
        arrays["edge_values"] = _short(edge.values)
    arrays["meta"] = np.frombuffer(json.dumps(meta, ensure_ascii=False).encode(), np.uint8)
    packed = io.BytesIO()
    np.savez_compressed(packed, **arrays)  # type: ignore[arg-type]  # names are not its options
    text = base64.b64encode(packed.getvalue()).decode()
    source = read_text(predictor.__file__)[1]
    assert source.count(_PLACE) == 1
    write_text(path, source.replace(_PLACE, f'DATA = "{text}"\n'))


def _labels(labels: Sequence[Any]) -> list[Any]:
    """Labels as JSON has them; of a tuple it would make a list, which is no label."""
    for label in labels:
        if isinstance(label_in_json(label), dict):
            raise DataError(
                f"the label {label!r} cannot be exported; strings, numbers and bools can"
            )
    return [label_in_json(label) for label in labels]


def _short(weights: NDArray[Any]) -> NDArray[Any]:
    """Weights in float16 if that loses nothing."""
    with np.errstate(over="ignore"):
        half = weights.astype(np.float16)
    return half if np.array_equal(half.astype(weights.dtype), weights) else weights


def _features(encoder: Encoder) -> tuple[dict[str, Any], Arrays]:
    """What the predictor needs to know of features."""
    if isinstance(encoder, AttributeEncoder):
        names = encoder.names(np.arange(encoder.n_features))
        return {"names": names}, {"scale": encoder.scale[: len(names)]}
    assert isinstance(encoder, TemplateEncoder)
    atoms = list(encoder.atoms.values())
    place = {id(atom): i for i, atom in enumerate(atoms)}
    arrays: Arrays = {}
    templates = []
    for j, column in enumerate(encoder.columns):
        template = column.template
        if template.kind in ("variety", "wordlist") or template.is_along:
            raise DataError(f"the template {str(template)!r} cannot be exported; leave it out")
        first = int(column.ids[0]) if len(column.ids) else None
        entry: dict[str, Any] = {"kind": template.kind, "first": first}
        terms = template.terms
        if isinstance(column, ConjunctionColumn):
            parts = zip(column.atoms, terms, column.radices, strict=True)
            entry["terms"] = [[place[id(a)], term.offset, radix] for a, term, radix in parts]
            arrays[f"keys{j}"] = np.diff(column.table.keys, prepend=0)
        elif isinstance(column, NgramColumn):
            entry |= {"column": terms[0].column, "low": template.low, "high": template.high}
            entry["grams"] = list(column.vocabulary)
        elif isinstance(column, NumberColumn):
            entry |= {"column": terms[0].column, "offset": terms[0].offset}
            entry["scale"] = column.scale or 1.0
        elif template.kind == "equal":
            entry |= _atom(encoder.new_atom(terms[0]))
            entry["offsets"] = [term.offset for term in terms]
            if "entries" in entry:
                raise DataError(f"the template {str(template)!r} cannot be exported; leave it out")
        templates.append(entry)
    described = {
        "columns": encoder.templates.columns(),
        "marks": encoder.marks.n,
        "atoms": [{**_atom(atom), "values": atom.values()} for atom in atoms],
        "templates": templates,
    }
    return described, arrays


def _atom(atom: Atom) -> dict[str, Any]:
    """A function of a column, and what it was learned from."""
    name = None if atom.call is None else atom.call.name
    argument = None if atom.call is None or not atom.call.arguments else atom.call.arguments[0]
    entry: dict[str, Any] = {"column": atom.column, "function": name, "argument": argument}
    if isinstance(atom, DictionaryAtom):
        entry["entries"] = [list(e) for e in atom.dictionary.entries]
    elif isinstance(atom, LexiconAtom):
        entry["entries"] = atom.lexicon.words
    elif atom.clusters is not None:
        entry["table"] = dict(atom.clusters)
    elif name in ("test", "match") and not LinearRegex(str(argument)).is_quick(_LETTERS):
        raise DataError(
            f"the expression {argument!r} of {name} cannot be exported: Python's own matching may "
            "take very long; write it without nested or repeated choices"
        )
    return entry
