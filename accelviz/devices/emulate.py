"""A call of any CUDA kernel, of no strategy's: in the emulator or on a GPU, checked alike."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from accelviz.devices.base import is_device_array
from accelviz.devices.cuda.launch import run_kernel
from accelviz.devices.emulator import raise_problem, run_checked
from accelviz.devices.trace import table
from accelviz.emulator import build, signature
from accelviz.emulator import source as text_of
from accelviz.emulator.library import Launch, Library, load
from accelviz.emulator.memory import Memory
from accelviz.errors import ArgumentError, DeviceUnavailable, KernelError, checked_integer
from accelviz.plans import KernelSpec

DEVICES = ("emulator", "cuda")


def emulate(
    source: str | Path,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    *arguments: Any,
    kernel: str | None = None,
    shared_bytes: int = 0,
    defines: Mapping[str, Any] | None = None,
    unwritten: Collection[str] = (),
    symbols: Mapping[str, npt.NDArray[Any]] | None = None,
    device: str = "emulator",
    seed: int = 0,
    timeout: float = 60.0,
    **named: Any,
) -> dict[str, npt.NDArray[Any]]:
    """Run a CUDA kernel of your own on this machine's processor, and find its mistakes.

    Parameters
    ----------
    source : str or Path
        CUDA text, or the path of a `.cu` file.
    grid, block : int or tuple of up to three int
        Blocks, and threads of a block, in x, y and z.
    *arguments : array, number or None
        In the order of the kernel's parameters, or by name after them; bytes are an array of them,
        vectors tuples, and structures NumPy's structured scalars. Arrays behind pointers that
        are not to `const` are written in place, as on a GPU. Numbers become the parameter's type,
        if it can hold them; None is a null pointer.
    kernel : str, optional
        Which `__global__` function, if there are several; of a template the instance, `"k<32>"`,
        of a namespace `"ns::k"`.
    shared_bytes : int
        Dynamic shared memory, for `extern __shared__ T name[]`.
    defines : mapping of str to int or str, optional
        Compile-time constants.
    unwritten : collection of str
        Parameters whose content the kernel may not read before it has written it.
    symbols : mapping of str to array, optional
        What `__constant__` and `__device__` variables hold when the kernel begins, as
        cudaMemcpyToSymbol puts it there. What the kernel leaves in a `__device__` variable is
        written to its array.
    device : {"emulator", "cuda"}
        On a GPU, the arguments are checked where there is a C++ compiler, and nothing else is.
    seed : int
        Other than 0, blocks, warps and lanes run in a random order.
    timeout : float
        Seconds that the kernel may take in the emulator.

    Returns
    -------
    dict of str to array
        The arrays that the kernel may write, by its parameters' names, and those of `__device__`
        variables among `symbols`.

    Raises
    ------
    ArgumentError
        If an argument is not what the kernel takes, or no GPU launches such a grid or block.
    KernelError
        If the kernel does not compile, or does what is wrong on a GPU, with its line; see
        docs/emulator.md for what is found.
    DeviceUnavailable
        If there is no C++ compiler, or no GPU.

    Examples
    --------
    >>> import numpy as np
    >>> doubled = "__global__ void doubled(float *X) { X[threadIdx.x] *= 2.0f; }"
    >>> X = np.arange(4, dtype=np.float32)
    >>> emulate(doubled, 1, 4, X)
    {'X': array([0., 2., 4., 6.], dtype=float32)}
    """
    if device not in DEVICES:
        raise ArgumentError("device", f"got {device!r}", " or ".join(map(repr, DEVICES)))
    if not isinstance(timeout, int | float) or not timeout > 0:
        raise ArgumentError("timeout", f"got {timeout!r}", "seconds, more than 0")
    call = _Call.of(
        *(source, grid, block, arguments, named, kernel, shared_bytes, defines, symbols),
        must_build=device == "emulator",
    )
    given, made, placed = call.given, call.library, call.symbols
    if made is None:
        return run_kernel(call.spec, call.launch, given, call.folder, symbols=placed)
    outputs, same = call.outputs(), call.same()
    if unknown := set(unwritten) - set(outputs):
        right = ", ".join(outputs) or "none, as it has none"
        raise ArgumentError("unwritten", f"{', '.join(sorted(unknown))}", f"outputs: {right}")
    if device == "cuda":
        exact = {each.name: _exact(each, given[each.name]) for each in made.parameters}
        run_kernel(call.spec, call.launch, exact, call.folder, outputs, same, placed)
        return {name: given[name] for name in outputs} | made.device_variables(placed)
    memory = Memory.of(given, outputs, [*unwritten], same, placed)
    try:
        run_checked(made, call.launch, [*given], memory, seed=seed, timeout=float(timeout))
    finally:
        for name in outputs:
            known = memory.array(name)
            assert known is not None
            given[name][...] = known.data
        for name, array in made.device_variables(placed).items():
            array[...] = memory.symbols[name].data
    return {name: given[name] for name in outputs} | made.device_variables(placed)


def trace_kernel(
    source: str | Path,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    *arguments: Any,
    kernel: str | None = None,
    shared_bytes: int = 0,
    defines: Mapping[str, Any] | None = None,
    symbols: Mapping[str, npt.NDArray[Any]] | None = None,
    to_the_mistake: bool = False,
    timeout: float = 60.0,
    **named: Any,
) -> pd.DataFrame:
    """Run a CUDA kernel of your own in the emulator and record every access of every lane.

    Parameters
    ----------
    source, grid, block, *arguments, kernel, shared_bytes, defines, symbols, timeout, **named
        As `emulate` takes them. The arrays stay as they are.
    to_the_mistake : bool
        Of a kernel that does what is wrong on a GPU, return what it did before.

    Returns
    -------
    DataFrame
        As `trace` returns it, of all blocks.

    Raises
    ------
    ArgumentError, KernelError, DeviceUnavailable
        As `emulate` does.
    """
    call = _Call.of(source, grid, block, arguments, named, kernel, shared_bytes, defines, symbols)
    made = call.library
    assert made is not None
    memory = Memory.of(call.given, call.outputs(), (), call.same(), call.symbols)
    options: dict[str, Any] = {"traced": True, "timeout": float(timeout)}
    answer, known, _ = made.run(call.launch, [*call.given], memory, **options)
    if not to_the_mistake:
        raise_problem(made, answer, known, options)
    return table(made.trace(memory, answer), made.path, known)


@dataclass(frozen=True)
class _Call:
    """A kernel with its launch and its arguments, which are held against its parameters."""

    spec: KernelSpec
    launch: Launch
    given: dict[str, Any]
    symbols: dict[str, npt.NDArray[Any]]
    library: Library | None
    folder: Path | None

    @classmethod
    def of(
        cls,
        source: str | Path,
        grid: int | tuple[int, ...],
        block: int | tuple[int, ...],
        arguments: tuple[Any, ...],
        named: Mapping[str, Any],
        kernel: str | None,
        shared_bytes: int,
        defines: Mapping[str, Any] | None,
        symbols: Mapping[str, npt.NDArray[Any]] | None,
        must_build: bool = True,
    ) -> _Call:
        text, file, folder = _read(source)
        entry, names = _chosen(text, kernel)
        launch = Launch(_three("grid", grid), _three("block", block), _bytes(shared_bytes))
        launch.check(entry)
        spec = KernelSpec(file, entry, dict(defines or {}), tuple(names), code=text)
        placed = {name: _symbol(name, value, text) for name, value in (symbols or {}).items()}
        try:
            made = _library(spec, folder, tuple(placed))
            names = [parameter.name for parameter in made.parameters]
        except (DeviceUnavailable, KernelError):
            if must_build:
                raise
            made = None  # what a GPU takes, this machine's compiler need not
        given = _by_name(names, arguments, named, entry, made)
        for parameter in made.parameters if made else ():
            _check(parameter, given[parameter.name])
        return cls(spec, launch, given, placed, made, folder)

    def outputs(self) -> list[str]:
        """Return the arrays that the kernel may write, by name."""
        assert self.library is not None
        pointers = {
            each.name for each in self.library.parameters if each.pointer and not each.const
        }
        return [
            name
            for name, value in self.given.items()
            if name in pointers and isinstance(value, np.ndarray)
        ]

    def same(self) -> dict[str, str]:
        """Return which arrays are the very memory of another."""
        arrays = [(name, each) for name, each in self.given.items() if isinstance(each, np.ndarray)]
        return signature.shared_once(arrays)


def _read(source: str | Path) -> tuple[str, str, Path | None]:
    """Return the text, the name that messages use, and the folder of other files."""
    if isinstance(source, Path):
        try:
            return source.read_text(encoding="utf-8"), source.name, source.parent.resolve()
        except OSError as error:
            what = f"{source} cannot be read ({error.strerror})"
            raise ArgumentError("source", what, "a .cu file") from error
    if not isinstance(source, str) or "__global__" not in source:
        if isinstance(source, str) and "\n" not in source and source.endswith((".cu", ".cuh")):
            what = f"got the text {source!r}, which is the name of a file"
            raise ArgumentError("source", what, f"pathlib.Path({source!r})")
        what = "no __global__ function in it" if isinstance(source, str) else f"got {source!r}"
        raise ArgumentError("source", what, "CUDA text, or a file as pathlib.Path('kernel.cu')")
    return source, "kernel.cu", None


def _chosen(text: str, kernel: str | None) -> tuple[str, list[str]]:
    """Return the kernel's name and those of its parameters."""
    found = text_of.kernels_in(text)
    if kernel is None:
        if len(found) != 1:
            right = " or ".join(f"kernel={name!r}" for name in found) or "kernel='its name'"
            raise ArgumentError("kernel", f"the source has {len(found)} kernels", right)
        (kernel,) = found
    given, bracket, instance = kernel.partition("<")
    last = given.strip().removeprefix("::")
    matching = [name for name in found if name == last or name.endswith(f"::{last}")]
    if found and len(matching) != 1:
        has = " or ".join(map(repr, matching or found))
        raise ArgumentError("kernel", f"the source has no kernel {kernel!r}", has)
    full = matching[0] if found else last  # one that a macro makes is not found
    kernel = f"{full}{bracket}{instance}"
    names, template = found.get(full, ([], False))
    if template and "<" not in kernel:
        raise ArgumentError("kernel", f"{kernel} is a template", f"an instance: '{kernel}<32>'")
    return kernel, names


def _library(spec: KernelSpec, folder: Path | None, symbols: tuple[str, ...]) -> Library:
    problem = build.why_not()
    if problem is not None:
        raise DeviceUnavailable("device 'emulator'", problem, "device='cuda' needs none")
    path = build.build(spec, checked=True, folder=folder, symbols=symbols)
    return load(path, build.runtime(), spec.entry, spec.arguments, symbols)


def _symbol(name: str, value: Any, text: str) -> npt.NDArray[Any]:
    """Return what a variable is to hold as an array; refuse a name that is not in the source."""
    there = text_of.symbols_in(text)
    if not isinstance(name, str) or not re.fullmatch(r"[\w:]+", name):
        raise ArgumentError("symbols", f"got {name!r}", "names of variables")
    if there and name not in there and "#include" not in text:
        raise ArgumentError("symbols", f"the source has no {name!r}", ", ".join(there))
    array = _placed(name, value)
    if not isinstance(array, np.ndarray | np.generic) or array.dtype.hasobject:
        what = f"got {value!r} for the variable"
        raise ArgumentError(
            name, what, "a NumPy array or scalar, such as np.array([1, 2], np.float32)"
        )
    return np.asarray(array)


def _three(name: str, size: int | tuple[int, ...]) -> tuple[int, int, int]:
    sizes = tuple(size) if isinstance(size, tuple | list) else (size,)
    if not 1 <= len(sizes) <= 3:
        raise ArgumentError(name, f"got {size!r}", "an int, or up to three of them: x, y, z")
    checked = [checked_integer(name, each, least=0, error=ArgumentError) for each in sizes]
    x, y, z = (*checked, 1, 1)[:3]
    return x, y, z


_bytes = partial(checked_integer, "shared_bytes", least=0, error=ArgumentError)


def _by_name(
    names: list[str],
    arguments: tuple[Any, ...],
    named: Mapping[str, Any],
    kernel: str,
    library: Library | None,
) -> dict[str, Any]:
    """Return all arguments by name, in the order of the parameters; arrays as NumPy's."""
    if library is None and not names:
        names = [f"argument {i + 1}" for i in range(len(arguments))]
    takes = ", ".join(map(str, library.parameters if library else names))
    right = f"{len(names)} arguments: {takes}" if names else "none"
    first = dict(zip(names, arguments, strict=False))
    if unknown := [name for name in named if name not in names]:
        raise ArgumentError(kernel, f"it has no parameter {unknown[0]!r}", right)
    if twice := first.keys() & named.keys():
        raise ArgumentError(kernel, f"{min(twice)!r} is given twice", right)
    found = {**first, **named}
    if len(arguments) > len(names) or len(found) < len(names):
        missing = [name for name in names if name not in found]
        what = f"got {len(arguments) + len(named)} arguments"
        raise ArgumentError(
            kernel, what + (f", {missing[0]!r} is missing" if missing else ""), right
        )
    return {name: _placed(name, found[name]) for name in names}


def _placed(name: str, value: Any) -> Any:
    if is_device_array(value):
        raise ArgumentError(name, "it lies on the GPU", "an array on the host, as from X.get()")
    if isinstance(value, np.ndarray | np.generic | int | float | None):
        return value[()] if isinstance(value, np.ndarray) and not value.ndim else value
    if isinstance(value, bytes):
        return np.frombuffer(value, np.uint8)
    if hasattr(value, "__array_interface__"):  # no copy: what is written is written there
        return np.asarray(value)
    return value


def _check(parameter: signature.Parameter, value: Any) -> None:
    """Refuse what the kernel does not take, before anything runs."""
    if not isinstance(value, np.ndarray) or parameter.by_parts:
        parameter.number(value)
        return
    parameter.check_array(value)
    if not parameter.const and not value.flags.writeable:
        what = f"a read-only array for the parameter `{parameter}`"
        raise ArgumentError(parameter.name, what, "a copy, or `const` in the kernel")


def _exact(parameter: signature.Parameter, value: Any) -> Any:
    """Return an argument as CuPy passes it on: arrays, and numbers of the very type."""
    if isinstance(value, np.ndarray) and parameter.pointer:
        return value
    parts = f"V{parameter.size}" if parameter.by_parts else parameter.dtype
    dtype = np.uint64 if parameter.pointer else parts
    return np.frombuffer(parameter.number(value), dtype)[0]
