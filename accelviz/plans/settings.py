"""The settings of a strategy: a frozen dataclass whose fields know their ranges."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from accelviz.errors import PartitionError, checked_integer


@dataclass(frozen=True)
class Setting:
    """What a field of `Settings` may be: an integer of a range, one of some choices, or anything.

    Attributes
    ----------
    default : object
        None means that a rule chooses.
    meaning : str
        What it sets, in a few words.
    most : int, optional
        The largest integer. Values are multiples of `step`, from `step` on.
    step : int
    choices : tuple
        All values there are, in place of a range.
    tries : tuple
        Values that are worth trying: for sweeps, sliders and `tune`.
    why : str
        The reason for the upper end of the range.
    rule : bool
        Whether None may be given, so that a rule chooses. It always may if None is the default.
    """

    default: Any
    meaning: str = ""
    most: int | None = None
    step: int = 1
    choices: tuple[Any, ...] = ()
    tries: tuple[Any, ...] = ()
    why: str = ""
    rule: bool = False

    def __post_init__(self) -> None:
        for value in (self.default, *self.tries):
            self.checked("setting", value)
        object.__setattr__(self, "rule", self.rule or self.default is None)

    @property
    def values(self) -> str:
        """Which values it takes, and its default, for docstrings."""
        if self.choices:
            values = ", ".join(map(repr, self.choices))
        elif self.most is None:
            values = "any"
        else:
            first = f"multiples of {self.step}" if self.step > 1 else "1"
            values = f"{first} to {self.most:,}"
        chosen = "chosen by a rule if None" if self.rule else ""
        default = f"default {self.default!r}" if self.default is not None else ""
        return "; ".join(filter(None, (values, default, chosen)))

    def checked(self, name: str, value: Any) -> Any:
        """Return the value, integers as Python's.

        Raises
        ------
        PartitionError
            If it is out of range or no choice.
        """
        if value is None and (self.rule or self.default is None):
            return None
        if self.choices:
            # True is not 1 here, and a list is no choice either.
            if not any(type(value) is type(choice) and value == choice for choice in self.choices):
                choices = " or ".join(repr(choice) for choice in self.choices)
                raise PartitionError(name, f"got {value!r}", choices)
            return value
        if self.most is None:
            return value
        return checked_integer(name, value, self.most, step=self.step, why=self.why)


def setting(default: Any, *args: Any, **options: Any) -> Any:
    """Declare a field of `Settings`; the arguments are those of `Setting`."""
    return field(default=default, metadata={"setting": Setting(default, *args, **options)})


@dataclass(frozen=True)
class Settings:
    """What a strategy can vary; a subclass is a frozen dataclass of fields made by `setting`.

    A field that a rule may choose is declared by the type that it has once it is resolved.

    Raises
    ------
    PartitionError
        If a value is out of range.

    Examples
    --------
    >>> from accelviz.plans import Settings, setting
    >>> class BlockRows(Settings):
    ...     block_rows: int = setting(2, "rows of a block", 32, tries=(1, 2, 8))
    >>> BlockRows(block_rows=8)
    BlockRows(block_rows=8)
    """

    declared: ClassVar[Mapping[str, Setting]] = MappingProxyType({})

    if TYPE_CHECKING:  # each subclass has the arguments that `dataclass` gives it

        def __init__(self, **values: Any) -> None: ...

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)
        cls.declared = MappingProxyType(
            {
                member.name: member.metadata.get("setting") or Setting(member.default)
                for member in fields(cls)
            }
        )

    def __post_init__(self) -> None:
        for name, declared in self.declared.items():
            object.__setattr__(self, name, declared.checked(name, getattr(self, name)))

    def values(self) -> dict[str, Any]:
        """Return the values by name."""
        return {name: getattr(self, name) for name in self.declared}

    def filled(self, **chosen: Any) -> Self:
        """Return a copy that has these values in place of None."""
        open_ones = {name: value for name, value in chosen.items() if getattr(self, name) is None}
        return self.replaced(**open_ones)

    def replaced(self, **chosen: Any) -> Self:
        """Return a copy with other values, which a rule chose and nobody checks."""
        settings = copy.copy(self)
        for name, value in chosen.items():
            object.__setattr__(settings, name, value)
        return settings
