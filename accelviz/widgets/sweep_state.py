"""A question about settings without its looks: what was guessed, and what is best."""

from __future__ import annotations

from typing import Any

import pandas as pd

from accelviz.analysis.settings import parameters, varying
from accelviz.errors import ArgumentError, checked_integer

#: A value for each parameter, in the order of the table.
Setting = tuple[Any, ...]

#: What a statistic of `sweep` is called, in a question and in a table, and what kind of number it
#: is: a share is 0 to 1.
STATISTICS = {
    "blocks": ("blocks", "count"),
    "warps": ("launched warps", "count"),
    "busy_warps": ("warps with work", "count"),
    "idle_warps": ("share of idle warps", "share"),
    "idle_share": ("share of time waiting", "share"),
    "warp_nzs_mean": ("mean nonzeros of a warp", "number"),
    "largest": ("nonzeros of the busiest", "count"),
    "imbalance": ("busiest over mean", "number"),
    "metadata_bytes": ("bytes of metadata", "count"),
    "rows_shared": ("rows shared by warps", "count"),
    "rows_cut": ("rows cut over blocks", "count"),
    "shared_atomics": ("atomics in shared", "count"),
    "global_atomics": ("atomics in global", "count"),
}


class SweepState:
    """The question without its looks: all settings are known to it, shown is what was guessed.

    Parameters
    ----------
    table : DataFrame
        From `sweep`, over one or two parameters of one strategy.
    statistic : str
        One of its columns.
    most : bool
        Whether the largest value is best; the smallest if not.
    guesses : int
        How many guesses there are before the answer may be revealed.

    Raises
    ------
    ArgumentError
        If there is no such statistic, it is not known, there are more than two parameters or none,
        or `guesses` is below 1.
    """

    def __init__(
        self, table: pd.DataFrame, statistic: str, *, most: bool = False, guesses: int = 3
    ) -> None:
        if statistic not in STATISTICS:
            raise ArgumentError("statistic", f"there is no {statistic!r}", ", ".join(STATISTICS))
        if table[statistic].isna().any():
            raise ArgumentError(
                "statistic", f"{statistic!r} is not known of every setting", "another statistic"
            )
        checked_integer("guesses", guesses, error=ArgumentError)
        self.graph = str(table.attrs.get("graph", "this graph"))
        self.statistic, self.most, self.guesses = statistic, most, guesses
        names = [name for name in parameters(table) if name not in ("strategy", "n_cols")]
        if len(names) > 2:  # those that were not varied need no slider
            names = varying(table, names)
        if not 0 < len(names) <= 2:
            raise ArgumentError("table", f"it varies {', '.join(names)}", "one or two parameters")
        settings = zip(*(table[name].tolist() for name in names), strict=True)
        #: Setting to value.
        self.of_setting = dict(zip(settings, map(float, table[statistic]), strict=True))
        self.choices: dict[str, list[Any]] = {name: sorted(set(table[name])) for name in names}
        self.setting = tuple(values[len(values) // 2] for values in self.choices.values())
        self.guessed: list[Setting] = []
        self.revealed = False

    @property
    def best(self) -> float:
        """The best value there is."""
        return (max if self.most else min)(self.of_setting.values())

    @property
    def answers(self) -> list[Setting]:
        """All settings that have it."""
        return [setting for setting, value in self.of_setting.items() if value == self.best]

    @property
    def found(self) -> bool:
        """Whether one of them was guessed."""
        return any(self.of_setting[guess] == self.best for guess in self.guessed)

    @property
    def may_reveal(self) -> bool:
        """Whether the answer may be seen: it was found, or there is no guess left."""
        return self.found or len(self.guessed) >= self.guesses

    def place(self, setting: Setting) -> int:
        """Return how many settings are better, plus one."""
        own, values = self.of_setting[setting], self.of_setting.values()
        return sum(value > own if self.most else value < own for value in values) + 1

    def choose(self, **setting: Any) -> None:
        """Move the sliders to values that there are."""
        for name, value in setting.items():
            if name not in self.choices:
                raise ArgumentError(name, "there is no such setting", ", ".join(self.choices))
            if value not in self.choices[name]:
                offered = ", ".join(map(str, self.choices[name]))
                raise ArgumentError(name, f"got {value!r}", f"one of {offered}")
        now = {**dict(zip(self.choices, self.setting, strict=True)), **setting}
        self.setting = tuple(now.values())

    def guess(self) -> None:
        """Lock the setting in, if it is new and there is a guess left."""
        if self.may_reveal:
            raise ArgumentError("guess", "there is none left", "revealing the answer")
        if self.setting in self.guessed:
            shown = written(self.setting)
            raise ArgumentError("guess", f"{shown} was guessed already", "another setting")
        self.guessed.append(self.setting)

    def reveal(self) -> None:
        """Show the values of all settings, if there is no guess left."""
        if not self.may_reveal:
            left = self.guesses - len(self.guessed)
            several = "guesses are" if left > 1 else "guess is"
            raise ArgumentError("reveal", f"{left} {several} left", "guessing first")
        self.revealed = True


def written(setting: Setting) -> str:
    """Write a setting: 12 x 32."""
    return " x ".join(map(str, setting))
