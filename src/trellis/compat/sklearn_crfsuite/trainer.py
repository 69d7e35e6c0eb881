"""The trainer of :class:`~trellis.compat.sklearn_crfsuite.CRF`: one line for each iteration."""

from __future__ import annotations

import sys
from typing import Any

from trellis.compat.pycrfsuite import Trainer

__all__ = ["LinePerIterationTrainer"]


class LinePerIterationTrainer(Trainer):
    """A trainer that prints a line for each iteration, and how held-out data were labelled."""

    def on_iteration(self, log: str, info: dict[str, Any]) -> None:
        """Print a line."""
        line = f"Iter {info['num']:<3} time={info['time']:<5.2f} loss={info['loss']:<8.2f}"
        if "avg_f1" in info:
            line += (
                f" precision={info['avg_precision']:.3f}  recall={info['avg_recall']:.3f}"
                f"  F1={info['avg_f1']:.3f}  Acc(item/seq)={info['item_accuracy_float']:.3f}"
                f" {info['instance_accuracy_float']:.3f}"
            )
        sys.stdout.write(line.strip() + "\n")

    def on_optimization_end(self, log: str) -> None:
        """Print what was found of each label in held-out data, if there are any."""
        last = None if self.logparser is None else self.logparser.last_iteration
        scores = {} if last is None else last["scores"]
        if scores:
            width = max(5, *(len(str(label)) for label in scores))
            head = f"{'Label':<{width}}  Precision  Recall     F1  Support\n"
            sys.stdout.write("=" * (len(head) - 1) + "\n" + head)
            for label, s in sorted(scores.items()):
                rates = (s.precision or 0, s.recall or 0, s.f1 or 0)
                sys.stdout.write(
                    f"{label:<{width}}  {rates[0]:9.3f}  {rates[1]:6.3f}  {rates[2]:5.3f}"
                    f"  {s.ref:7d}\n"
                )
        super().on_optimization_end(log)
