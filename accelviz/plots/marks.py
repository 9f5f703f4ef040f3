"""The settings that a picture of a sweep points out, and its title."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from accelviz.analysis.settings import at_setting, best, direction, telling
from accelviz.plots.quantities import statistic_name, writer
from accelviz.plots.style import BLACK, VERMILLION


class Marks:
    """The best and the published setting of a sweep, and the title that compares them.

    `value` is the statistic that is shown; for `better` see `analysis.settings.direction`.
    """

    def __init__(
        self,
        table: pd.DataFrame,
        value: str,
        better: str | None,
        published: Mapping[str, Any] | None,
    ) -> None:
        self._value, self._write = value, writer(value)
        self._names = telling(table)
        which = direction(value, better)
        self.best = best(table, value, which)
        self.published = at_setting(table, value, published)
        self._flat = 0 < self.best.equal == table[value].count() - 1
        self.title = self._sentence(table, which)

    def places(self) -> list[tuple[pd.Series, str, str, str]]:
        """Return the rows to point out, with their names, marks and colours."""
        found = []
        if self.published is not None:
            found.append((self.published, f"published: {self._of(self.published)}", "D", BLACK))
        if self.best.row is not None and not self._flat:
            found.append((self.best.row, f"best: {self._of(self.best.row)}", "*", VERMILLION))
        if len(found) == 2 and found[0][0].name == found[1][0].name:
            return [(found[0][0], f"best, published: {self._of(found[0][0])}", "*", VERMILLION)]
        return found

    def _of(self, row: pd.Series) -> str:
        return self._write(float(row[self._value]))

    def _at(self, row: pd.Series) -> str:
        """Write a setting: "4 x 8" for the block-level partition's two parameters."""
        names = [name for name in self._names if pd.notna(row[name])]
        pair, words = ["max_block_warps", "max_warp_nzs"], []
        if set(pair) & set(names) and all(name in row and pd.notna(row[name]) for name in pair):
            names = [name for name in names if name not in pair]
            words = [" x ".join(str(row[name]) for name in pair)]
        words += [f"{name} {row[name]}" for name in names if name != "strategy"]
        text = ", ".join(words)
        if "strategy" not in names:
            return text
        return f"{text} ({row['strategy']})" if text else str(row["strategy"])

    def _sentence(self, table: pd.DataFrame, which: str) -> str:
        graph = table.attrs.get("graph", "degrees")
        subject = statistic_name(self._value) + (f" of {graph}" if graph != "degrees" else "")
        values = table[self._value].dropna()
        if values.empty:
            return f"{subject}: the degrees alone do not determine it"
        published = ""
        if self.published is not None:
            published = f"{self._of(self.published)} at the published {self._at(self.published)}"
        row = self.best.row
        if row is None:
            low, high = self._write(float(values.min())), self._write(float(values.max()))
            parts = [f"{low} to {high}" if low != high else low]
        elif self.published is not None and row[self._value] == self.published[self._value]:
            than = {"lowest": "lower", "highest": "higher"}[which]
            return f"{subject}: {published}, no setting here is {than}"
        else:
            equal = self.best.equal
            if self._flat:
                return f"{subject}: {self._of(row)} at every setting"
            more = f" and {equal} other setting{'s' * (equal > 1)}" if equal else ""
            parts = [f"{self._of(row)} at {self._at(row)}{more}"]
        return f"{subject}: " + ", ".join([*parts, *filter(None, [published])])
