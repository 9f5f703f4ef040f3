"""The corpus: correct CUDA kernels of many kinds, in `kernels/`, and mistakes for each of them.

A section of mistakes.toml is named for a kernel and for the module (arrays, dense, ...) that has
a function of the kernel's name, which returns the kernel's launch.
"""

import tomllib
from pathlib import Path

from . import arrays, dense, groups, networks, promises, samples, sparse
from .case import KINDS, Case, CheckerResult, Kernel, Launch, Mistake

_HERE = Path(__file__).parent


def _kernel(name, make, table):
    entry, warps = table.pop("entry", name), tuple(table.pop("warps", (1, 2, 8)))
    mistakes = [
        Mistake(kind, **{key: tuple(x) if isinstance(x, list) else x for key, x in change.items()})
        for kind, change in table.items()
    ]
    code = (_HERE / "kernels" / f"{name}.cu").read_text("utf-8")
    return Kernel(name, code, make, tuple(mistakes), entry, warps)


KERNELS = [
    _kernel(name, getattr(module, name), table)
    for module in (arrays, dense, sparse, promises, networks, samples, groups)
    for name, table in tomllib.loads((_HERE / "mistakes.toml").read_text("utf-8"))[
        module.__name__.rpartition(".")[2]
    ].items()
]
CASES = [Case(kernel, mistake) for kernel in KERNELS for mistake in (None, *kernel.mistakes)]

__all__ = ["CASES", "KERNELS", "KINDS", "Case", "CheckerResult", "Kernel", "Launch", "Mistake"]
