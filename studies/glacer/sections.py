"""Tables and sentences of the report, made from records alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from studies.experiments import Records
from studies.folder import Call
from studies.glacer.models import BY_ERROR, UNSTRUCTURED
from studies.glacer.published import IMPROVEMENTS, TABLE_1, TABLE_3
from studies.markdown import markdown
from trellis.regression.comparison import Evaluation, mean_interval

__all__ = [
    "cell",
    "cell_mean",
    "change",
    "decimals",
    "distance_from_print",
    "evaluation",
    "improvement_table",
    "mean_mse",
    "ordering_sentences",
    "paper_models",
    "printed",
    "side_by_side",
    "smoothing_table",
]

NETWORK_LASSO = ("(C)NL", "(NC)NL")
BLOCKS = ("SUBBAG", "S-LSB", "S-LSB, 100 stumps")
"""What GLACER is built of: sub-bagging, and a Gaussian CRF over least-squares boosting."""


def evaluation(
    records: Records, baselines: Sequence[Call], glacer: Mapping[str, Sequence[Call]]
) -> Evaluation:
    """Errors of the baselines and of one or more kinds of GLACER, by name."""
    mse: dict[str, list[float]] = {}
    seconds: dict[str, list[float]] = {}
    for call in baselines:
        record = records[call.key]
        for name, error in record["mse"].items():
            mse.setdefault(name, []).append(error)
            seconds.setdefault(name, []).append(record.get("seconds", {}).get(name, np.nan))
    for name, calls in glacer.items():
        mse[name] = [records[call.key]["mse"] for call in calls]
        seconds[name] = [records[call.key]["seconds"] for call in calls]
    return Evaluation(mse, seconds)


def mean_mse(result: Evaluation, name: str) -> float:
    """Mean over the repetitions."""
    return float(np.mean(result.mse[name]))


def cell(values: Sequence[float]) -> str:
    """Mean ± half width."""
    mean, half = mean_interval(values)
    return f"{_number(mean)} ± {_number(half)}"


def decimals(values: Sequence[float], digits: int) -> str:
    """Mean ± half width, both with so many decimals."""
    mean, half = mean_interval(values)
    return f"{mean:.{digits}f}" + ("" if np.isnan(half) else f" ± {half:.{digits}f}")


def change(values: Sequence[float], references: Sequence[float]) -> str:
    """By how many per cent values differ from references, pair by pair; mean ± half width."""
    ratios = np.asarray(values) / np.asarray(references)
    mean, half = mean_interval((100 * (ratios - 1)).tolist())
    return f"{mean:+.1f}" + ("" if np.isnan(half) else f" ± {half:.1f}")


def cell_mean(result: Evaluation, name: str) -> str:
    """Mean over the repetitions."""
    return _number(mean_mse(result, name))


def printed(pair: tuple[float, float] | None) -> str:
    """A published mean ± half width."""
    return "–" if pair is None else f"{pair[0]:g} ± {pair[1]:g}"


def _number(value: float) -> str:
    if np.isnan(value):
        return "–"
    return f"{value:.1f}" if value >= 100 else f"{value:.3f}"


def _p(value: float) -> str:
    if np.isnan(value):
        return "–"
    return f"{value:.1e}" if value < 0.001 else f"{value:.3f}"


def side_by_side(
    columns: Mapping[str, Evaluation], published: Mapping[str, Sequence[tuple[float, float]]]
) -> str:
    """Models by data: the paper's figure, ours, and the p-value against GLACER.

    First those of the paper in its order, then others, then GLACER and its variants. Gaussian CRFs
    that were learnt by their error are in :func:`smoothing_table`.
    """
    found = {name: None for r in columns.values() for name in r.mse if not name.endswith(BY_ERROR)}
    mine = [n for n in found if n.startswith("GLACER")]
    others = [n for n in found if n not in published and n not in mine]
    names = [n for n in published if n in found and n not in mine] + others + mine
    head = ["model"]
    for title in columns:
        head += [f"{title}: paper", "here", "p"]
    rows = []
    for name in names:
        row = [name]
        for i, result in enumerate(columns.values()):
            row.append(printed(published[name][i]) if name in published else "–")
            if name not in result.mse:
                row += ["–", "–"]
                continue
            p = float("nan") if name == "GLACER" else result.p_value(name, "GLACER")
            row += [cell(result.mse[name]), _p(p)]
        rows.append(row)
    return markdown(head, rows)


def paper_models(result: Evaluation) -> list[str]:
    """Models of the paper's tables, GLACER left out."""
    return [name for name in TABLE_3 if name in result.mse and name != "GLACER"]


def distance_from_print(
    result: Evaluation, column: int, readings: Mapping[str, str] | None = None
) -> float:
    """By what factor the unstructured baselines differ from those printed in Table 1.

    e to the root mean square of the logarithms of the ratios; `column` is the fraction's number,
    `readings` has other models that stand for some.
    """
    ours = {n: n for n in UNSTRUCTURED} | dict(readings or {})
    ratios = [mean_mse(result, ours[n]) / TABLE_1[n][column][0] for n in UNSTRUCTURED]
    return float(np.exp(np.sqrt(np.mean(np.log(ratios) ** 2))))


def ordering_sentences(title: str, result: Evaluation) -> list[str]:
    """Whether what the paper says of GLACER holds here."""
    others = paper_models(result)
    mine = mean_mse(result, "GLACER")
    better = [n for n in others if mean_mse(result, n) <= mine]
    worse = [n for n in others if n not in better]
    significant = [n for n in worse if result.p_value(n, "GLACER") < 0.05]
    text = f"{title}: "
    if better:
        named = ", ".join(
            f"{n} ({result.improvement(n, 'GLACER'):.1f} % below GLACER's, "
            f"p {_p(result.p_value(n, 'GLACER'))})"
            for n in sorted(better, key=lambda n: mean_mse(result, n))
        )
        text += f"GLACER's error is NOT the lowest; lower are {named}."
    else:
        text += "GLACER's error is the lowest of the paper's models."
    pairs = zip(*(result.mse[n] for n in (*others, "GLACER")), strict=True)
    first = sum(errors[-1] < min(errors[:-1]) for errors in pairs)
    text += (
        f" It is lower than {len(worse)} of {len(others)}, significantly so in {len(significant)}, "
        f"and lower than all of them in {first} of {len(result.mse['GLACER'])} repetitions."
    )
    sentences = [text]
    halves = {n: result.interval(n)[1] for n in (*others, "GLACER")}
    if not any(np.isnan(h) for h in halves.values()):
        tighter = [n for n in others if halves[n] < halves["GLACER"]]
        said = f"NOT the tightest ({', '.join(tighter)})" if tighter else "the tightest"
        sentences.append(f"{title}: its interval is {said}.")
        low, high = mine - halves["GLACER"], mine + halves["GLACER"]
        overlap = [
            n for n in others
            if mean_mse(result, n) - halves[n] <= high and mean_mse(result, n) + halves[n] >= low
        ]  # fmt: skip
        said = f"overlaps with {', '.join(overlap)}" if overlap else "overlaps with no other"
        sentences.append(f"{title}: it {said}.")
    blocks = [n for n in BLOCKS if n in result.mse]
    told = [
        f"{'below' if mean_mse(result, n) > mine else 'ABOVE'} {n} by "
        f"{abs(result.improvement('GLACER', n)):.1f} %"
        for n in blocks
    ]
    sentences.append(f"{title}: of its building blocks, it lies {', '.join(told)}.")
    for name in result.mse:
        if name.startswith("GLACER, "):
            p = _p(result.p_value(name, "GLACER"))
            sentences.append(
                f"{title}: {name.replace(',', ' with', 1)}: {_number(mean_mse(result, name))} "
                f"instead of {_number(mine)} (p {p})."
            )
    extra = [
        n
        for n in result.mse
        if n not in TABLE_3 and not n.startswith("GLACER") and mean_mse(result, n) <= mine
    ]
    if extra:
        told = [f"{n} ({_number(mean_mse(result, n))})" for n in extra]
        sentences.append(
            f"{title}: of the models that the paper does not have, {', '.join(told)} "
            f"{'is' if len(told) == 1 else 'are'} lower than GLACER ({_number(mine)})."
        )
    return sentences


def smoothing_table(
    result: Evaluation,
    gammas: Mapping[str, Sequence[float]],
    published: Mapping[str, float] | None = None,
) -> str:
    """What Gaussian CRFs bring to each base model, by likelihood and by error.

    `published` has the paper's errors by name.
    """
    head = ["base", "MSE", "S- by likelihood", "γ", "S- by error", "γ", "S-/base: likelihood",
            "error", "paper"]  # fmt: skip
    rows = []
    for name in result.mse:
        structured, by_error = f"S-{name}", f"S-{name}{BY_ERROR}"
        if structured not in result.mse:
            continue
        base = mean_mse(result, name)
        paper = "–"
        if published and structured in published:
            paper = f"{published[structured] / published[name]:.2f}"
        rows.append(
            [
                name, _number(base),
                _number(mean_mse(result, structured)), f"{np.median(gammas[structured]):.3g}",
                _number(mean_mse(result, by_error)), f"{np.median(gammas[by_error]):.3g}",
                f"{mean_mse(result, structured) / base:.2f}",
                f"{mean_mse(result, by_error) / base:.2f}", paper,
            ]
        )  # fmt: skip
    return markdown(head, rows)


def improvement_table(results: Mapping[str, Evaluation]) -> str:
    """The percentages of section 5.4: as printed, from the printed table, and here."""
    rows = []
    for data, against, said in IMPROVEMENTS:
        result = results[data]
        column = 0 if data == "sacramento" else 1
        table = {name: cells[column][0] for name, cells in TABLE_3.items()}
        others = [n for n in table if n != "GLACER" and n not in NETWORK_LASSO]
        theirs = {n: 100 * (1 - table["GLACER"] / table[n]) for n in table}
        ours = {n: result.improvement("GLACER", n) for n in table if n in result.mse}
        if against in theirs:
            a, b = f"{theirs[against]:.2f}", f"{ours[against]:.2f}"
        else:
            pick: Any = min if against == "smallest" else max
            a, b = (
                f"{g[n]:.2f} ({n})"
                for g in (theirs, ours)
                for n in [pick(others, key=g.__getitem__)]
            )
        rows.append([f"{data}, {against}", f"{said:g}", a, b])
    return markdown(["GLACER's MSE is lower by, %", "printed", "from its Table 3", "here"], rows)
