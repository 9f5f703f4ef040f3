"""Settings of a strategy: a frozen dataclass whose fields declare and check their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import FrozenInstanceError, dataclass, field, fields
from inspect import get_annotations
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from accelviz.errors import PartitionError, checked_integer


@dataclass(frozen=True)
class Setting:
    """The declaration of a setting: its default and its valid values.

    Attributes
    ----------
    default : object
        Default value. None means that a rule of the strategy chooses (`Strategy.resolve`).
    meaning : str
        Description in a few words.
    most : int, optional
        Valid integers are `step`, 2 `step`, ... up to `most`.
    step : int
    choices : tuple
        All valid values. Without `choices` and `most`, any value is valid.
    tries : tuple
        Values for sweeps, sliders and `tune`.
    why : str
        Reason for the upper end of the range.
    rule : bool
        Whether None is valid as well. It always is if None is the default.
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
        """Description of the valid values and the default, for docstrings."""
        if self.choices:
            values = ", ".join(map(repr, self.choices))
        elif self.most is None:
            values = "any"
        else:
            first = f"multiples of {self.step}" if self.step > 1 else "1"
            values = f"{first} to {self.most:,}"
        rule = "chosen by a rule if None" if self.rule else ""
        default = f"default {self.default!r}" if self.default is not None else ""
        return "; ".join(filter(None, (values, default, rule)))

    def checked(self, name: str, value: Any) -> Any:
        """Return a valid value, integers as int; `name` is for the message.

        Raises
        ------
        PartitionError
            If the value is out of range, or is not one of the choices.
        """
        if value is None and (self.rule or self.default is None):
            return None
        if self.choices:
            # Types are compared as well, since True == 1.
            if not any(type(value) is type(choice) and value == choice for choice in self.choices):
                choices = " or ".join(repr(choice) for choice in self.choices)
                raise PartitionError(name, f"got {value!r}", choices)
            return value
        if self.most is None:
            return value
        return checked_integer(name, value, self.most, step=self.step, why=self.why)


def setting(default: Any, *args: Any, **options: Any) -> Any:
    """Declare a field of `Settings`, with the arguments of `Setting`."""
    return field(default=default, metadata={"setting": Setting(default, *args, **options)})


class _Frozen:
    """Refuses changes of what a dataclass that is decorated again does not refuse."""

    def __setattr__(self, name: str, value: Any) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")


@dataclass(frozen=True)
class Settings(_Frozen):
    """Base of a strategy's settings; a subclass is a frozen dataclass with fields by `setting`.

    The annotation of a field is its resolved type, even where None is valid before.

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

    if TYPE_CHECKING:  # `dataclass` generates the arguments of each subclass

        def __init__(self, **values: Any) -> None: ...

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)
        for name in ("__setattr__", "__delattr__"):  # a user may write @dataclass(frozen=True), too
            delattr(cls, name)
        declared = {
            member.name: member.metadata.get("setting") or Setting(member.default)
            for member in fields(cls)
            if member.name not in cls.declared or member.name in get_annotations(cls)
        }
        cls.declared = MappingProxyType({**cls.declared, **declared})

    def __post_init__(self) -> None:
        for name, declared in self.declared.items():
            object.__setattr__(self, name, declared.checked(name, getattr(self, name)))

    def values(self) -> dict[str, Any]:
        """Return the values by name."""
        return {name: getattr(self, name) for name in self.declared}

    def filled(self, **chosen: Any) -> Self:
        """Return a copy in which settings that are None have the values of `chosen`."""
        unset = {name: value for name, value in chosen.items() if getattr(self, name) is None}
        return self.replaced(**unset)

    def replaced(self, **chosen: Any) -> Self:
        """Return a copy with the values of `chosen`, unchecked."""
        settings = object.__new__(type(self))
        vars(settings).update(vars(self), **chosen)
        return settings
