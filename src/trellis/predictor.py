r"""A chain model that predicts with NumPy alone.

It scores a labelling y of n positions by

.. math:: s(y) = \sum_t \sum_{f \in x_t} v_{tf} W_{f, y_t} + \sum_{t > 1} S_t(y_{t-1}, y_t)

and predicts the best. A file that ``trellis export`` wrote is this module with a model in ``DATA``:
it needs Python and NumPy, no Trellis, and may be given away as one file::

    from predictor import predict
    predict([{"word": ["The", "cat"], "pos": ["DT", "NN"]}])   # columns of each sample
    predict([[{"w": "The", "first": True}, {"w": "cat"}]])     # or attributes of each position

    python predictor.py new.txt > tagged.txt                   # as «trellis tag» does
"""

from __future__ import annotations

import base64
import io
import itertools
import json
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["PLAIN", "Predictor", "ngrams", "normal_form", "predict"]

Array = np.ndarray[Any, Any]
StringFunction = Callable[[str], "str | None"]
Slot = tuple["Array | None", Array, "Array | None"]
"""One feature of some positions: these (None: all), its number in each (-1: none), its values."""

_POSITIONS, _PAIRS = 1 << 13, 1 << 21  # positions, and scores of rich edges, at once
_LENGTHS = 5  # the longest words of a lexicon that are told apart

# ---------------------------------------------------------------------------- functions of symbols


def _shape(word: str) -> str:
    return "".join(
        "X" if c.isupper() else "x" if c.isalpha() else "0" if c.isdigit() else c for c in word
    )


def _short_shape(word: str) -> str:
    return re.sub(r"(.)\1+", r"\1", _shape(word))


_NUMERALS = frozenset("〇零一二三四五六七八九十百千万亿兆两壹贰叁肆伍陆柒捌玖拾佰仟萬億兩")
_DATES = frozenset("年月日时分秒時")
_SCRIPTS = (  # first and last character of blocks of Unicode
    ("cjk", "\u3400", "\u4dbf"), ("cjk", "\u4e00", "\u9fff"), ("cjk", "\uf900", "\ufaff"),
    ("cjk", "\U00020000", "\U0003ffff"), ("kana", "\u3041", "\u30ff"), ("kana", "\uff66", "\uff9f"),
    ("hangul", "\u1100", "\u11ff"), ("hangul", "\uac00", "\ud7a3"),
)  # fmt: skip


def _character_type(c: str) -> str:
    if c in _NUMERALS:
        return "numeral"
    if c in _DATES:
        return "date"
    category = unicodedata.category(c)
    if category[0] == "N":
        return "digit"
    if category[0] in "LM":
        for script, first, last in _SCRIPTS:
            if first <= c <= last:
                return script
        return "latin" if "LATIN" in unicodedata.name(c, "") else "letter"
    return {"P": "punctuation", "S": "symbol", "Z": "space"}.get(category[0], "other")


def _char_type(word: str) -> str:
    return "-".join(kind for kind, _ in itertools.groupby(map(_character_type, word)))


def _flag(test: Callable[[str], bool]) -> StringFunction:
    return lambda word: "yes" if test(word) else None


PLAIN: dict[str, StringFunction] = {
    "lower": str.lower,
    "shape": _shape,
    "short_shape": _short_shape,
    "char_type": _char_type,
    "digits": lambda word: re.sub(r"\d", "0", word),
    "has_digit": _flag(lambda word: any(c.isdigit() for c in word)),
    "has_hyphen": _flag(lambda word: "-" in word),
    "has_upper": _flag(lambda word: any(c.isupper() for c in word)),
    "initial_upper": _flag(lambda word: word[:1].isupper()),
    "all_upper": _flag(str.isupper),
}
"""String functions that take nothing but the symbol."""


def normal_form(word: str) -> str:
    """Return a word in lower case, with 0 for each run of digits.

    Examples
    --------
    >>> normal_form("IL-12")
    'il-0'
    """
    return re.sub(r"\d+", "0", word.lower())


def ngrams(word: str, low: int, high: int) -> list[str]:
    """Character n-grams of a word between ^ and $, each once, in order.

    Examples
    --------
    >>> ngrams("cat", 2, 3)
    ['^c', 'ca', 'at', 't$', '^ca', 'cat', 'at$']
    """
    marked = f"^{word}$"
    grams = [marked[i : i + n] for n in range(low, high + 1) for i in range(len(marked) - n + 1)]
    return list(dict.fromkeys(grams))


def _function(name: str, argument: Any, table: Mapping[str, str]) -> StringFunction:
    """The function of a symbol that templates name; ``table`` has the clusters of words."""
    if name in PLAIN:
        return PLAIN[name]
    if name == "prefix":
        return lambda word: word[:argument] if len(word) >= argument else None
    if name == "suffix":
        return lambda word: word[-argument:] if len(word) >= argument else None
    if name == "cluster":
        return lambda word: None if (at := table.get(normal_form(word))) is None else at[:argument]
    found = re.compile(argument).search
    if name == "test":
        return lambda word: "yes" if found(word) else None
    return lambda word: hit.group() if (hit := found(word)) else None


# ---------------------------------------------------------------------------- entries and words


def _trie(entries: Sequence[Sequence[str]]) -> dict[Any, Any]:
    """Entries as nested dicts; None is a key where one ends."""
    root: dict[Any, Any] = {}
    for entry in entries:
        node = root
        for symbol in entry:
            node = node.setdefault(symbol, {})
        node[None] = True
    return root


def _matches(trie: dict[Any, Any], symbols: Sequence[str], start: int) -> Iterator[int]:
    """Lengths of the entries that begin at a position, ascending."""
    node: Any = trie
    for length, symbol in enumerate(itertools.islice(symbols, start, None), 1):
        node = node.get(symbol)
        if node is None:
            return
        if None in node:
            yield length


def _places(trie: dict[Any, Any], symbols: Sequence[str]) -> list[int]:
    """Where in the longest entries, from left to right, positions are: 0 begin … 3 whole, or -1."""
    places, t = [-1] * len(symbols), 0
    while t < len(symbols):
        longest = max(_matches(trie, symbols, t), default=0)
        if longest == 1:
            places[t] = 3
        elif longest:
            places[t : t + longest] = [0, *[1] * (longest - 2), 2]
        t += max(1, longest)
    return places


def _word_lengths(trie: dict[Any, Any], symbols: Sequence[str], part: str) -> list[int]:
    """Length, less one, of the longest word that starts, ends or goes on at each position."""
    lengths = [1] * len(symbols)
    for t in range(len(symbols)):
        for n in _matches(trie, symbols, t):
            first, last = {"start": (t, t + 1), "end": (t + n - 1, t + n)}.get(
                part, (t + 1, t + n - 1)
            )
            for u in range(first, last):
                lengths[u] = max(lengths[u], n)
    return [min(n, _LENGTHS) - 1 for n in lengths]


# ---------------------------------------------------------------------------- the model


class Predictor:
    """A model as ``trellis export`` writes it.

    Parameters
    ----------
    data : bytes
        An ``.npz`` file of arrays; ``meta`` is a JSON text of all that is no number.
    """

    def __init__(self, data: bytes) -> None:
        arrays = dict(np.load(io.BytesIO(data)))
        self.meta: dict[str, Any] = json.loads(arrays.pop("meta").tobytes())
        self.arrays = arrays
        self.labels: list[Any] = self.meta["labels"]
        self.node = arrays["node"].astype(np.float32)  # the last row, of feature -1, is zero
        self.transitions = arrays["transitions"].astype(np.float32)
        self.features = _Attributes(self) if "names" in self.meta else _Templates(self)

    def predict(
        self, samples: Sequence[Any], constraints: Sequence[Sequence[Any]] | None = None
    ) -> list[list[str]]:
        """Best labels of each sample.

        Parameters
        ----------
        samples : list
            Of a model of columns: dicts of lists of strings, or lists of strings if it uses one
            column. Of a model of attributes: lists of dicts or of lists of strings, or arrays.
        constraints : list of lists, optional
            For each position the label it must have, a set of allowed labels, or None.
        """
        if constraints is not None and len(constraints) != len(samples):
            raise ValueError(f"{len(constraints)} constraints for {len(samples)} samples")
        samples = [self.features.checked(sample, s) for s, sample in enumerate(samples)]
        ends = np.cumsum([0, *map(self.features.length, samples)])
        known = self.features.prepare(samples)
        rich = "edge_row" in self.arrays
        size = _PAIRS // len(self.labels) ** 2 if rich else _POSITIONS
        predicted: list[list[str]] = []
        a = 0
        while a < len(samples):
            b = max(a + 1, int(np.searchsorted(ends, ends[a] + size, side="right")) - 1)
            offsets = ends[a : b + 1] - ends[a]
            slots = self.features.slots(known, samples[a:b], offsets, int(ends[a]))
            allowed = None if constraints is None else constraints[a:b]
            predicted += self._block(slots, offsets, allowed, a)
            a = b
        return predicted

    def _block(
        self, slots: list[Slot], offsets: Array, constraints: Any, first: int
    ) -> list[list[str]]:
        node = np.zeros((int(offsets[-1]), len(self.labels)), np.float32)
        for rows, ids, values in slots:
            added = self.node[ids] if values is None else self.node[ids] * values[:, None]
            if rows is None:
                node += added
            else:
                node[rows] += added
        if not np.isfinite(node).all():
            raise ValueError("feature values are too large to be scored, or no numbers")
        pair = self._edges(slots, len(node)) if "edge_row" in self.arrays else self.transitions
        filled = offsets[:-1][np.diff(offsets) > 0], offsets[1:][np.diff(offsets) > 0] - 1
        if "follow" in self.arrays:
            pair = np.where(self.arrays["follow"], pair, np.float32(-np.inf))
            for at, may in zip(filled, (self.arrays["start"], self.arrays["end"]), strict=True):
                node[np.ix_(at, ~may)] = -np.inf
        if constraints is not None:
            for s, sample in enumerate(constraints):
                if len(sample) != (n := int(offsets[s + 1] - offsets[s])):
                    raise ValueError(f"sample {first + s}: {len(sample)} constraints, length {n}")
                for t, label in enumerate(sample, int(offsets[s])):
                    if label is not None:
                        members = label if isinstance(label, Set) else {label}
                        node[t, [y not in members for y in self.labels]] = -np.inf
        best = _viterbi(node, pair, offsets, first)
        names = np.array(self.labels, object)[best].tolist()
        return [names[a:b] for a, b in itertools.pairwise(offsets.tolist())]

    def _edges(self, slots: list[Slot], n: int) -> Array:
        """Scores (n, L, L) of the edges into positions, with rich edges."""
        row, ptr, pair, weights = (
            self.arrays[f"edge_{part}"] for part in ("row", "ptr", "pair", "values")
        )
        n_labels, both = len(self.labels), bool(self.meta["both"])
        n_pairs, n_crossed = n_labels * n_labels, int((row >= 0).sum())
        scores = np.tile(self.transitions.ravel(), (n, 1))
        flat, row = scores.reshape(-1), np.append(row, -1)
        for back in range(2 if both else 1):
            for rows, ids, values in slots:
                at = (np.arange(n) if rows is None else rows) + back
                use = (row[ids] >= 0) & (at < n)
                i = row[ids[use]] + back * n_crossed
                begin = ptr[i] if ptr.size else i.astype(np.int64) * n_pairs
                count = ptr[i + 1] - begin if ptr.size else np.full(len(i), n_pairs)
                where = np.repeat(begin - np.cumsum(count) + count, count) + np.arange(count.sum())
                which = pair[where] if ptr.size else where % n_pairs
                added = weights[where].astype(np.float32)
                if values is not None:
                    added = added * np.repeat(values[use], count)
                np.add.at(flat, np.repeat(at[use] * n_pairs, count) + which, added)
        return scores.reshape(n, n_labels, n_labels)


def _viterbi(node: Array, pair: Array, offsets: Array, first: int) -> Array:
    """Best labels of stacked samples, all of them one position further at a time."""
    lengths = np.diff(offsets)
    order = np.argsort(-lengths, kind="stable")  # the longest first: those that go on come first
    starts, longest = offsets[:-1][order], int(lengths.max(initial=0))
    going = [int(np.count_nonzero(lengths > t)) for t in range(longest + 1)]
    pair = pair.astype(np.float64)
    shared = pair.ndim == 2
    # score[t]: the best labelling of positions 0..t that ends in each label.
    score = [node[starts[: going[0]]].astype(np.float64)] if longest else []
    for t in range(1, longest):
        here, before = starts[: going[t]] + t, score[-1][: going[t]]
        best = np.full(before.shape, -np.inf)
        tables = pair[None] if shared else pair[here]
        for i in range(before.shape[1]):
            np.maximum(best, before[:, i, None] + tables[:, i], out=best)
        score.append(best + node[here])
    labels = np.zeros(len(node), np.int64)
    after = np.zeros(0, np.int64)
    for t in reversed(range(longest)):
        m = len(after)
        last = score[t][m:]
        if np.isneginf(last.max(axis=1)).any():
            s = first + int(order[m + int(np.argmin(last.max(axis=1)))])
            raise ValueError(f"sample {s} has no allowed labelling under its constraints")
        step = pair.T[after] if shared else pair[starts[:m] + t + 1, :, after]
        goes_on = (score[t][:m] + step).argmax(axis=1)
        after = np.concatenate([goes_on, last.argmax(axis=1)])
        labels[starts[: len(after)] + t] = after
    return labels


class _Attributes:
    """Named attributes given by the user."""

    def __init__(self, model: Predictor) -> None:
        self.number = {name: i for i, name in enumerate(model.meta["names"])}
        self.scale = model.arrays["scale"]

    def checked(self, sample: Any, s: int) -> Any:
        if isinstance(sample, np.ndarray) and sample.ndim == 2:
            return [{f"x{j}": float(x) for j, x in enumerate(row)} for row in sample]
        if isinstance(sample, str | Mapping) or any(isinstance(x, str) for x in sample):
            raise ValueError(f"sample {s}: expected a list of dicts or of lists of attributes")
        return sample

    def length(self, sample: Any) -> int:
        return len(sample)

    def prepare(self, samples: list[Any]) -> Any:
        """Nothing is known of all samples."""

    def slots(self, known: Any, samples: list[Any], offsets: Array, first: int) -> list[Slot]:
        ids: list[int] = []
        values: list[float] = []
        ends = [0]
        get = self.number.get
        for position in itertools.chain.from_iterable(samples):
            for name, value in _named(position):
                if (i := get(name)) is not None:
                    ids.append(i)
                    values.append(value)
            ends.append(len(ids))
        numbers = np.array(values, np.float32) / self.scale[ids]
        return _bags(np.array(ends), np.array(ids, np.int64), numbers)


def _named(position: Any) -> Iterator[tuple[str, float]]:
    if not isinstance(position, Mapping):
        listed = sorted(position, key=str) if isinstance(position, set | frozenset) else position
        yield from (item if isinstance(item, tuple) else (item, 1.0) for item in listed)
        return
    for key, value in position.items():
        if isinstance(value, str):
            yield f"{key}={value}", 1.0
        elif not isinstance(value, bool | np.bool_):
            yield key, float(value)
        elif value:
            yield key, 1.0


def _bags(ends: Array, ids: Array, values: Array | None = None) -> list[Slot]:
    """Features in CSR as slots: the first of each position, the second, and so on."""
    counts = np.diff(ends)
    slots: list[Slot] = []
    for k in range(int(counts.max(initial=0))):
        rows = np.flatnonzero(counts > k)
        where = ends[rows] + k
        slots.append((rows, ids[where], None if values is None else values[where]))
    return slots


class _Templates:
    """Templates over columns."""

    def __init__(self, model: Predictor) -> None:
        self.meta, self.marks = model.meta, int(model.meta["marks"])
        self.keys = {
            j: np.cumsum(model.arrays[f"keys{j}"].astype(np.int64))
            for j, t in enumerate(self.meta["templates"]) if t["kind"] == "conjunction"
        }  # fmt: skip
        atoms = self.meta["atoms"]
        self.vocabulary: list[dict[str | None, int]] = [
            {value: i for i, value in enumerate(atom["values"])} for atom in atoms
        ]
        self.grams = {
            j: {gram: i for i, gram in enumerate(t["grams"])}
            for j, t in enumerate(self.meta["templates"]) if t["kind"] == "ngrams"
        }  # fmt: skip
        self.tries: list[Any] = [_trie(a["entries"]) if "entries" in a else None for a in atoms]

    def checked(self, sample: Any, s: int) -> Any:
        names = self.meta["columns"]
        if isinstance(sample, Mapping):
            missing = [name for name in names if name not in sample]
            if missing:
                raise ValueError(f"sample {s}: the templates need the column {missing[0]!r}")
            if len({len(sample[name]) for name in names}) > 1:
                raise ValueError(f"sample {s}: its columns have different lengths")
            return sample
        if len(names) > 1 or isinstance(sample, str):
            raise ValueError(f"sample {s}: expected a dict with the columns {', '.join(names)}")
        return dict.fromkeys(names or ["any"], sample)

    def length(self, sample: Any) -> int:
        return len(next(iter(sample.values()), ()))

    def prepare(self, samples: list[Any]) -> Any:
        """Codes and distinct symbols of the columns, and codes of the atoms' values, or -1."""
        columns: dict[str, tuple[Array, list[str]]] = {}
        for name in self.meta["columns"]:
            number: dict[str, int] = {}
            strings = itertools.chain.from_iterable(sample[name] for sample in samples)
            codes = [number.setdefault(symbol, len(number)) for symbol in strings]
            columns[name] = np.array(codes, np.int64), list(number)
        values = []
        for atom, trie, known in zip(self.meta["atoms"], self.tries, self.vocabulary, strict=True):
            texts = (sample[atom["column"]] for sample in samples)
            if atom["function"] == "lexicon":
                found = [_word_lengths(trie, text, atom["argument"]) for text in texts]
            elif atom["function"] == "dictionary":
                found = [_places(trie, text) for text in texts]
            else:
                at, symbols = columns[atom["column"]]
                found = [[known.get(value, -1) for value in self._values(atom, symbols)]]
            flat = np.array([*itertools.chain.from_iterable(found)], np.int64)
            values.append(flat if trie is not None else flat[at])
        return columns, values

    def _values(self, atom: dict[str, Any], symbols: list[str]) -> Sequence[str | None]:
        if atom["function"] is None:
            return symbols
        function = _function(atom["function"], atom["argument"], atom.get("table", {}))
        return [function(symbol) for symbol in symbols]

    def slots(self, known: Any, samples: list[Any], offsets: Array, first: int) -> list[Slot]:
        columns, atoms = known
        n, lengths = int(offsets[-1]), np.diff(offsets)
        position = np.arange(n)
        left = position - np.repeat(offsets[:-1], lengths)
        right = np.repeat(offsets[1:], lengths) - 1 - position
        here = slice(first, first + n)

        def moved(codes: Array, by: int, marks: int) -> Array:
            """Codes of the positions ``by`` further on; marks, or -1, beyond the sample."""
            inside = (-by <= left) & (by <= right)
            found = codes[np.clip(position + by, 0, max(0, n - 1))] if n else codes
            if not marks:
                return np.where(inside, found, -1)
            beyond = 2 * (-by - left - 1) if by < 0 else 2 * (by - right - 1) + 1
            return np.where(inside, np.where(found >= 0, found + marks, -1), beyond)

        plain: list[Slot] = []
        valued: list[Slot] = []
        bags: list[Slot] = []
        for j, template in enumerate(self.meta["templates"]):
            kind, number = template["kind"], template["first"]
            if number is None:  # no feature of it is left
                continue
            if kind == "conjunction":
                keys = np.zeros(n, np.int64)
                for atom, offset, radix in template["terms"]:
                    code = moved(atoms[atom][here], offset, self.marks)
                    keys = np.where((keys < 0) | (code < 0), -1, keys * radix + code)
                table = self.keys[j]
                at = np.minimum(np.searchsorted(table, keys), len(table) - 1)
                plain.append((None, np.where(table[at] == keys, number + at, -1), None))
            elif kind == "ngrams":
                codes, symbols = columns[template["column"]]
                bags += self._ngrams(j, codes[here], symbols)
            elif kind == "number":
                codes, symbols = columns[template["column"]]
                numbers = np.array([*map(float, symbols), 0], np.float32)  # the last: code -1
                values = numbers[moved(codes[here], template["offset"], 0)]
                valued.append((None, np.full(n, number), values / np.float32(template["scale"])))
            else:
                on = {"bias": position >= 0, "bos": left == 0, "eos": right == 0}.get(kind)
                if on is None:  # two equal values
                    codes, symbols = columns[template["column"]]
                    seen: dict[str | None, int] = {None: -1}
                    found = self._values(template, symbols)
                    same = np.array([seen.setdefault(v, len(seen)) for v in found], np.int64)
                    a, b = (moved(same[codes[here]], by, 0) for by in template["offsets"])
                    on = (a >= 0) & (a == b)
                plain.append((None, np.where(on, number, -1), None))
        return plain + valued + bags

    def _ngrams(self, j: int, codes: Array, symbols: list[str]) -> list[Slot]:
        template, known = self.meta["templates"][j], self.grams[j]
        used, codes = np.unique(codes, return_inverse=True)
        found = [
            [known[g] for g in ngrams(symbols[at], template["low"], template["high"]) if g in known]
            for at in used.tolist()
        ]
        ids = [template["first"] + i for at in codes.tolist() for i in found[at]]
        counts = np.array([len(grams) for grams in found], np.int64)[codes]
        return _bags(np.append(0, np.cumsum(counts)), np.array(ids, np.int64))


# ---------------------------------------------------------------------------- files


def _tagged(model: Predictor, text: str) -> str:
    """A file with the labels predicted, as ``trellis tag`` writes it."""
    layout = model.meta["layout"] or {"format": "none"}
    kind = layout["format"]
    lines = [line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n")]
    if kind == "segmented":
        sentences = [[c for c in line if c not in " \t\r"] for line in lines]
        sentences = [sentence for sentence in sentences if sentence]
        predicted = zip(sentences, model.predict(sentences), strict=True)
        return "".join(words(sentence, tags) + "\n" for sentence, tags in predicted)
    if kind not in ("conll", "crfsuite"):
        raise ValueError(
            "this model does not say how columns of a file are named, or was trained on files of "
            "another format; call predict() instead"
        )
    tabs, skip = kind == "crfsuite" or layout["tabs"], layout.get("skip", "")
    samples: list[list[list[str]]] = [[]]
    for line in lines:
        if not line.strip(" \t"):
            samples.append([])
        elif not (skip and line.startswith(skip)):
            samples[-1].append(line.split("\t") if tabs else re.split("[ \t]+", line.strip(" \t")))
    samples = [sample for sample in samples if sample]
    if kind == "crfsuite":
        positions = [[[*map(_attribute, filter(None, row[1:]))] for row in s] for s in samples]
        return "".join("".join(f"{y}\n" for y in tags) + "\n" for tags in model.predict(positions))
    names, label = layout["columns"], layout["label"]
    without = [name for name in names if name != label]
    given = names if samples and len(samples[0][0]) == len(names) else without
    for row in itertools.chain.from_iterable(samples):
        if len(row) != len(given):
            raise ValueError(f"{len(row)} fields, expected {len(given)}: {' '.join(row)}")
    columns = [dict(zip(given, zip(*s, strict=True), strict=True)) for s in samples]
    shown = [*without, *([label] if label in given else [])]
    out = []
    for sample, tags in zip(columns, model.predict(columns), strict=True):
        rows = zip(*(sample[name] for name in shown), tags, strict=True)
        out.append("".join(("\t" if tabs else " ").join(row) + "\n" for row in rows) + "\n")
    return "".join(out)


def words(sentence: list[str], tags: list[str]) -> str:
    """Characters with spaces between words, by their tags B, M, E and S."""
    before = ["B", *tags]
    begins = [y in "BS" or b in "ES" for b, y in zip(before, tags, strict=False)]
    return "".join(f" {c}" if b else c for b, c in zip(begins, sentence, strict=True)).strip()


def _attribute(field: str) -> tuple[str, float]:
    r"""Name and value of an attribute of CRFsuite's format, where \: and \\ are escaped."""
    name, value = re.match(r"((?:\\[:\\]|[^:])*)(?::(.*))?$", field, re.DOTALL).groups()  # type: ignore[union-attr]  # it matches all
    return re.sub(r"\\([:\\])", r"\1", name), 1.0 if value is None else float(value)


_model: list[Predictor] = []  # read when it is first needed


def predict(
    samples: Sequence[Any], constraints: Sequence[Sequence[Any]] | None = None
) -> list[list[str]]:
    """Best labels of each sample, by the model in this file (see :meth:`Predictor.predict`)."""
    if not _model:
        _model.append(Predictor(base64.b64decode(DATA)))
    return _model[0].predict(samples, constraints)


def main(arguments: Sequence[str]) -> None:
    """Tag a file, or standard input, to standard output."""
    if len(arguments) > 1 or arguments[:1] in (["-h"], ["--help"]):
        sys.exit("usage: python predictor.py [FILE] > TAGGED")
    file = arguments[0] if arguments else "-"
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        predict([])
        sys.stdout.buffer.write(_tagged(_model[0], data.decode("utf-8")).encode("utf-8"))
    except (OSError, ValueError) as error:
        sys.exit(f"predictor.py: {error}")


DATA = ""
if __name__ == "__main__":
    main(sys.argv[1:])
