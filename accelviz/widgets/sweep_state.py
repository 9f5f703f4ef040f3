"""A question about settings without its looks: what was guessed, and what is best."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from accelviz.errors import ArgumentError

#: What a statistic is called, in a question and in a table.
NAMES = {
    "blocks": "blocks",
    "warps": "launched warps",
    "busy_warps": "warps with work",
    "idle_warps": "share of idle warps",
    "idle_share": "share of warp time spent waiting",
    "warp_nzs_mean": "mean nonzeros of a warp",
    "largest": "nonzeros of the busiest warp",
    "imbalance": "imbalance (busiest warp over mean)",
    "metadata_bytes": "bytes of metadata",
    "rows_shared": "rows shared by warps",
    "rows_cut": "rows cut over blocks",
    "shared_atomics": "atomics in shared memory",
    "global_atomics": "atomics in global memory",
}
#: Statistics that are shares, 0 to 1.
SHARES = ("idle_warps", "idle_share")
#: The two parameters.
FIRST, SECOND = "max_block_warps", "max_warp_nzs"


class SweepState:
    """The question without its looks: all settings are known to it, shown is what was guessed.

    Parameters
    ----------
    table : DataFrame
        From `sweep`, over both parameters of the block-level partition.
    statistic : str
        One of its columns.
    most : bool
        Whether the largest value is best; the smallest if not.
    guesses : int
        How many guesses there are before the answer may be revealed.

    Raises
    ------
    ArgumentError
        If there is no such statistic, it is not known, or `guesses` is below 1.
    """

    def __init__(
        self, table: pd.DataFrame, statistic: str, *, most: bool = False, guesses: int = 3
    ) -> None:
        if statistic not in NAMES:
            raise ArgumentError("statistic", f"there is no {statistic!r}", ", ".join(NAMES))
        if table[statistic].isna().any():
            raise ArgumentError(
                "statistic", f"{statistic!r} is not known of every setting", "another statistic"
            )
        if isinstance(guesses, bool) or not isinstance(guesses, int) or guesses < 1:
            raise ArgumentError("guesses", f"got {guesses!r}", "an integer of at least 1")
        self.graph = str(table.attrs.get("graph", "this graph"))
        self.statistic, self.most, self.guesses = statistic, most, guesses
        self._values = {
            (int(block), int(warp)): float(value)
            for block, warp, value in zip(
                table[FIRST], table[SECOND], table[statistic], strict=True
            )
        }
        self.choices: dict[str, Sequence[int]] = {
            name: sorted({int(value) for value in table[name]}) for name in (FIRST, SECOND)
        }
        self.setting = tuple(values[len(values) // 2] for values in self.choices.values())
        self.guessed: list[tuple[int, ...]] = []
        self.revealed = False

    @property
    def best(self) -> float:
        """The best value there is."""
        return (max if self.most else min)(self._values.values())

    @property
    def answers(self) -> list[tuple[int, int]]:
        """All settings that have it."""
        return [setting for setting, value in self._values.items() if value == self.best]

    @property
    def found(self) -> bool:
        """Whether one of them was guessed."""
        return any(self.value(guess) == self.best for guess in self.guessed)

    @property
    def may_reveal(self) -> bool:
        """Whether the answer may be seen: it was found, or there is no guess left."""
        return self.found or len(self.guessed) >= self.guesses

    def value(self, setting: tuple[int, ...]) -> float:
        """Return the value of a setting."""
        return self._values[setting[0], setting[1]]

    def place(self, setting: tuple[int, ...]) -> int:
        """Return how many settings are better, plus one."""
        own = self.value(setting)
        better = sum(value > own if self.most else value < own for value in self._values.values())
        return better + 1

    def choose(self, **setting: int) -> None:
        """Move the sliders.

        Raises
        ------
        ArgumentError
            If there is no such parameter or value.
        """
        now = dict(zip(self.choices, self.setting, strict=True))
        for name, value in setting.items():
            if name not in self.choices:
                raise ArgumentError(name, "there is no such setting", ", ".join(self.choices))
            if value not in self.choices[name]:
                offered = ", ".join(map(str, self.choices[name]))
                raise ArgumentError(name, f"got {value!r}", f"one of {offered}")
            now[name] = value
        self.setting = tuple(now.values())

    def guess(self) -> None:
        """Lock the setting in.

        Raises
        ------
        ArgumentError
            If there is no guess left, or it was guessed before.
        """
        if self.may_reveal:
            raise ArgumentError("guess", "there is none left", "revealing the answer")
        if self.setting in self.guessed:
            shown = " x ".join(map(str, self.setting))
            raise ArgumentError("guess", f"{shown} was guessed already", "another setting")
        self.guessed.append(self.setting)

    def reveal(self) -> None:
        """Show the values of all settings.

        Raises
        ------
        ArgumentError
            If there are guesses left.
        """
        if not self.may_reveal:
            left = self.guesses - len(self.guessed)
            several = "guesses are" if left > 1 else "guess is"
            raise ArgumentError("reveal", f"{left} {several} left", "guessing first")
        self.revealed = True

    def table(self) -> dict[tuple[int, int], float]:
        """Return the value of every setting."""
        return dict(self._values)
