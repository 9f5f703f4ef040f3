"""One place for what was made of a graph: plans and preprocessing, each made once."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Any, TypeVar

Made = TypeVar("Made")

#: Things that a store keeps.
MOST_KEPT = 16


class Stopwatch:
    """Collects the wall-clock time of named steps, for `Plan.setup_seconds`."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time the block under `name`."""
        start = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - start


_STORES: weakref.WeakSet[Store] = weakref.WeakSet()


def _unlock() -> None:
    # A thread that held a lock when this process was forked does not exist here.
    for store in _STORES:
        store._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock)


class Store:
    """What was made of one graph, up to `MOST_KEPT` things; the least recently used goes first.

    A graph holds its store, and nothing in a store refers to the graph. So all of it is freed with
    the graph, at once. Threads may share a store: what one of them makes, the others wait for.
    """

    def __init__(self) -> None:
        self._entries: OrderedDict[Hashable, Any] = OrderedDict()
        #: What callers look up without a lock. It is emptied when anything is dropped.
        self.latest: dict[Any, Any] = {}
        self._lock = threading.RLock()
        _STORES.add(self)

    def __len__(self) -> int:
        return len(self._entries)

    def __reduce__(self) -> tuple[type[Store], tuple[()]]:
        return Store, ()  # another process makes its own

    def clear(self) -> None:
        """Drop everything, as before the first plan."""
        with self._lock:
            self._entries.clear()
            self.latest.clear()

    def get(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return what `key` stands for, which `make` makes if it is not there."""
        with self._lock:
            if key not in self._entries:
                self._entries[key] = make()
                while len(self._entries) > MOST_KEPT:
                    self._entries.popitem(last=False)
                    self.latest.clear()
            elif next(reversed(self._entries)) != key:
                self._entries.move_to_end(key)
            entry: Made = self._entries[key]
            return entry

    def prepared(
        self, name: str, make: Callable[[Stopwatch], Made]
    ) -> tuple[Made, dict[str, float]]:
        """Do a piece of preprocessing once, and tell what it took.

        Parameters
        ----------
        name : str
            What is made; the same name always means the same.
        make : callable
            Makes it, timing its steps.

        Returns
        -------
        result, seconds
            `seconds` are those of the first time, step by step.
        """

        def timed() -> tuple[Made, dict[str, float]]:
            clock = Stopwatch()
            return make(clock), clock.seconds

        result, seconds = self.get(("prepared", name), timed)
        return result, dict(seconds)
