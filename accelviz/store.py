"""The cache of a graph, for plans and preprocessing results."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Any, TypeVar

Entry = TypeVar("Entry")

#: Largest number of entries in a store.
MAX_ENTRIES = 16


class Stopwatch:
    """Measures the wall-clock seconds of named steps, for `Plan.setup_seconds`."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Measure the duration of the `with` block under `name`."""
        start = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - start


_STORES: weakref.WeakSet[Store] = weakref.WeakSet()


def _renew_locks() -> None:
    # After a fork, a lock may be held by a thread that exists only in the parent process.
    for store in _STORES:
        store._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


class Store:
    """A least-recently-used cache with up to `MAX_ENTRIES` entries.

    Each graph has its own store, which copies with other weights share; each plan has one for its
    `ReadyPlan`s. Entries do not refer to the graph, so they are freed with it. A store is
    thread-safe: while one thread computes an entry, the others wait.
    """

    def __init__(self) -> None:
        self._entries: OrderedDict[Hashable, Any] = OrderedDict()
        #: Functions for lookup without the lock, which `devices.planning` stores. Cleared when any
        #: entry is dropped.
        self.latest: dict[Any, Any] = {}
        self._lock = threading.RLock()  # reentrant: `make` may call `get`
        _STORES.add(self)

    def __len__(self) -> int:
        return len(self._entries)

    def __reduce__(self) -> tuple[type[Store], tuple[()]]:
        return Store, ()  # a pickled store is empty

    def clear(self) -> None:
        """Drop all entries."""
        with self._lock:
            self._entries.clear()
            self.latest.clear()

    def get(self, key: Hashable, make: Callable[[], Entry]) -> Entry:
        """Return the entry of `key`, which `make` computes if there is none."""
        with self._lock:
            if key not in self._entries:
                self._entries[key] = make()
                while len(self._entries) > MAX_ENTRIES:
                    self._entries.popitem(last=False)
                    self.latest.clear()
            elif next(reversed(self._entries)) != key:
                self._entries.move_to_end(key)
            entry: Entry = self._entries[key]
            return entry

    def prepared(
        self, name: str, make: Callable[[Stopwatch], Entry]
    ) -> tuple[Entry, dict[str, float]]:
        """Return a cached preprocessing result and the seconds that it took.

        Parameters
        ----------
        name : str
            Key of the result.
        make : callable
            Computes the result at the first call, and measures its steps with a `Stopwatch`.

        Returns
        -------
        result, seconds
            The result, and the duration of each step at the first call.
        """

        def timed() -> tuple[Entry, dict[str, float]]:
            clock = Stopwatch()
            return make(clock), clock.seconds

        result, seconds = self.get(("prepared", name), timed)
        return result, dict(seconds)
