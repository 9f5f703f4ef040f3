"""Calls of the caller's own CUDA kernel: `emulate` checks it, `trace_kernel` records accesses."""

from __future__ import annotations

import functools
import importlib
import re
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from accelviz.emulator import signature
from accelviz.emulator.build import Kernel, included_files, left_out
from accelviz.emulator.library import Launch, Library, compiled
from accelviz.emulator.memory import Memory
from accelviz.emulator.source import (
    default_arguments,
    kernels_in,
    overloads,
    parameter_types,
    restrict_parameters,
    separated,
    symbols_in,
)
from accelviz.emulator.structures import Member, members_of, structured
from accelviz.emulator.target import DEFAULT, check_target
from accelviz.emulator.textures import PackedTexture, Texture
from accelviz.emulator.tracing import table
from accelviz.errors import ArgumentError, DeviceUnavailable, KernelError, checked_integer, short

if TYPE_CHECKING:
    import pandas as pd

#: Modules of other devices, by name, imported at first use: `run_kernel` runs a KernelCall.
_LAUNCHERS = {"cuda": "accelviz.devices.cuda.launch"}
#: Most parameters of a kernel: a compiled library describes as many in its answer.
_MAX_PARAMETERS = 64


class Outputs(dict[str, npt.NDArray[Any]]):
    """Arrays by name, with notes on the run.

    Attributes
    ----------
    notes : tuple of KernelError
        What is no mistake and may not be meant: several threads have stored the same value in one
        place, or no thread has written some elements of an output in `unwritten`. Their attributes
        `argument` and `problem` are the place and the sentence.
    """

    def __init__(
        self, arrays: Mapping[str, npt.NDArray[Any]], notes: tuple[KernelError, ...] = ()
    ) -> None:
        super().__init__(arrays)
        self.notes = notes


def emulate(
    source: str | Path,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    *arguments: Any,
    kernel: str | None = None,
    shared_bytes: int = 0,
    cluster: int | tuple[int, ...] | None = None,
    defines: Mapping[str, Any] | None = None,
    include: Collection[str | Path] = (),
    unwritten: Collection[str] = (),
    symbols: Mapping[str, Any] | None = None,
    device: str = "emulator",
    arch: str = DEFAULT,
    seed: int = 0,
    timeout: float = 60.0,
    **named: Any,
) -> Outputs:
    """Run a CUDA kernel of your own on this machine's processor, and report its mistakes.

    Parameters
    ----------
    source : str or Path
        CUDA text, or the path of a `.cu` file.
    grid, block : int or tuple of up to three int
        Number of blocks, and number of threads of a block, in x, y and z.
    *arguments : array, Texture, number or None
        Arguments in the order of the kernel's parameters; later ones may be passed by name. Pass
        vectors as tuples; structures as dicts or tuples of their members, arrays for those that are
        pointers, or as NumPy's structured scalars; textures and surfaces as
        `accelviz.emulator.Texture`, and bytes for an array of bytes. Numbers are converted to the
        parameter's type if it can represent them. None is a null pointer. Arrays behind pointers to
        non-`const` are written in place, as on a GPU.
    kernel : str, optional
        Name of the `__global__` function, required if there are several: `"k<32>"` for a template
        instance, `"ns::k"` in a namespace, `"k(const float *, int)"` for one of several of a name.
        An included file may define it.
    shared_bytes : int
        Bytes of dynamic shared memory, for `extern __shared__ T name[]`.
    cluster : int or tuple of up to three int, optional
        Number of blocks of a cluster in x, y and z, by default those of `__cluster_dims__`.
    defines : mapping of str to int, str or None, optional
        Macros, such as `{"N": 4, "SQUARE(x)": "x*x", "EMPTY": ""}`; None undefines one.
    include : collection of str or Path
        Folders of headers, besides that of the source, for the emulator; or headers, which it reads
        before the source.
    unwritten : collection of str
        Names of output parameters that are uninitialised: reading them before a write is an error,
        and an element that no thread writes is a note.
    symbols : mapping of str to array or number, optional
        Initial values of `__constant__` and `__device__` variables, as by cudaMemcpyToSymbol. The
        final value of a `__device__` variable is written to its array.
    device : {"emulator", "cuda"}
        On a GPU nothing but the arguments is checked, and these only if there is a C++ compiler.
    arch : str
        GPU architecture for which the emulator compiles, such as "sm_80" or "sm_90a". It defines
        `__CUDA_ARCH__`, `__CUDACC__`, `CUDART_VERSION` and their like. A warning says which lines
        of the source `#if` excludes for it. A GPU uses its own.
    seed : int
        0 runs blocks, warps and lanes in order, any other seed in a random order.
    timeout : float
        Limit on the kernel's processor time in the emulator, in seconds.

    Returns
    -------
    Outputs
        A dict of the arrays that the kernel may write, by parameter name, and the arrays of
        `__device__` variables in `symbols`. Its attribute `notes` has what is no mistake and may
        not be meant, each of which is a warning, too.

    Raises
    ------
    ArgumentError
        If an argument does not match the parameter, or the grid or block exceeds a GPU's limits.
    KernelError
        If the kernel does not compile, or makes a mistake; the message has the source line.
        docs/emulator.md lists the mistakes that are detected.
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
    if device not in ("emulator", *_LAUNCHERS):
        devices = " or ".join(map(repr, ("emulator", *_LAUNCHERS)))
        raise ArgumentError("device", f"got {short(device)}", devices)
    if not isinstance(timeout, int | float) or not timeout > 0:
        raise ArgumentError("timeout", f"got {short(timeout)}", "seconds, more than 0")
    launch = checked_launch(grid, block, shared_bytes, cluster)
    if device != "emulator" and any(
        isinstance(one, Texture) for one in (*arguments, *named.values())
    ):
        raise ArgumentError("device", "a GPU takes textures of CuPy", "device='emulator'")
    if cluster is not None and device != "emulator":
        expected = "__cluster_dims__ in the kernel"
        raise ArgumentError("cluster", f"device={device!r} does not take it", expected)
    source_kernel, emulated = (
        read_kernel(source, kernel, defines, arch, include),
        device == "emulator",
    )
    call = KernelCall.of(source_kernel, launch, arguments, named, symbols, must_build=emulated)
    unknown = {*unwritten}.difference(call.outputs())
    if unknown and call.library:
        expected = f"outputs: {', '.join(call.outputs()) or 'none, as it has none'}"
        raise ArgumentError("unwritten", ", ".join(sorted(unknown)), expected)
    if emulated:
        _warn_of_excluded_code(call)
        outputs = call.run(unwritten, seed=seed, timeout=float(timeout))
        for note in outputs.notes:
            warnings.warn(str(note), stacklevel=2)
        return outputs
    if call.kernel.types is not None:
        expected = "device='emulator', or another name of the kernel"
        raise ArgumentError("kernel", f"types of parameters for device={device!r}", expected)
    if call.pointers:
        problem = f"{', '.join(call.pointers)} of a structure for device={device!r}"
        raise ArgumentError("device", problem, "device='emulator', or arrays as parameters")
    results: Outputs
    results = importlib.import_module(_LAUNCHERS[device]).run_kernel(call)
    return results


def trace_kernel(
    source: str | Path,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    *arguments: Any,
    kernel: str | None = None,
    shared_bytes: int = 0,
    cluster: int | tuple[int, ...] | None = None,
    defines: Mapping[str, Any] | None = None,
    include: Collection[str | Path] = (),
    symbols: Mapping[str, Any] | None = None,
    to_the_mistake: bool = False,
    arch: str = DEFAULT,
    timeout: float = 60.0,
    **named: Any,
) -> pd.DataFrame:
    """Run a CUDA kernel of your own in the emulator and record every access of every lane.

    Parameters
    ----------
    source, grid, block, *arguments, kernel, shared_bytes, cluster, defines, include, symbols, \
    arch, timeout, **named
        As in `emulate`, but arrays are not changed.
    to_the_mistake : bool
        If the kernel makes a mistake, return the accesses before it instead of raising an error.

    Returns
    -------
    DataFrame
        Accesses of all blocks, in the format of `accelviz.trace`.

    Raises
    ------
    ArgumentError, KernelError, DeviceUnavailable
        As `emulate` does.
    """
    launch = checked_launch(grid, block, shared_bytes, cluster)
    # Loads that a GPU's compiler may merge or drop are counted only on the way to a mistake.
    source_kernel = replace(
        read_kernel(source, kernel, defines, arch, include), every_load=to_the_mistake
    )
    call = KernelCall.of(source_kernel, launch, arguments, named, symbols)
    _warn_of_excluded_code(call)
    library, memory = call.library, call.memory()
    assert library is not None
    options: dict[str, Any] = {"traced": True, "timeout": float(timeout), "same_values": True}
    answer, known, _ = library.run(call.launch, [*call.arguments], memory, **options)
    if not to_the_mistake:
        library.raise_problem(answer, known, options)
    return table(library.trace(memory, answer), library.path, known)


@dataclass(frozen=True)
class KernelCall:
    """A kernel with its launch configuration and checked arguments.

    Attributes
    ----------
    arguments : dict of str to array or number
        Arguments by name, in the order of the parameters.
    symbols : dict of str to array
        Initial values of `__constant__` and `__device__` variables.
    library : Library, optional
        The kernel compiled for the host; None if only the GPU's compiler can compile it.
    pointers : dict of str to array
        Arrays of members of structures, by names such as "options.data".
    read_only : frozenset of str
        Those of `pointers` that the kernel cannot write.
    """

    kernel: Kernel
    launch: Launch
    arguments: dict[str, Any]
    symbols: dict[str, npt.NDArray[Any]]
    library: Library | None
    pointers: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    read_only: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        launch: Launch,
        arguments: tuple[Any, ...],
        named: Mapping[str, Any],
        symbols: Mapping[str, Any] | None = None,
        must_build: bool = True,
    ) -> KernelCall:
        """Check the arguments of `emulate`; `must_build` raises an error if compilation fails."""
        launch.check(kernel.entry)
        if len(kernel.names) > _MAX_PARAMETERS:
            problem = f"it has {len(kernel.names):,} parameters, more than {_MAX_PARAMETERS}"
            raise KernelError(kernel.entry, problem, "make them members of a structure")
        values = (symbols or {}).items()
        variables = {name: _symbol(name, value, kernel.source) for name, value in values}
        names, library = [*kernel.names], None
        try:
            library = compiled(kernel, symbols=tuple(variables))
            names = [parameter.name for parameter in library.parameters]
            variables |= _numbers_of_variables(library, symbols or {})
        except (DeviceUnavailable, KernelError):
            if must_build:
                raise
        if library:
            defaults = default_arguments(kernel.declaring_text, kernel.entry).items()
            omitted = {names[i]: value for i, value in defaults if i >= len(arguments)}
            others = library.parameters[len(arguments) :]
            omitted |= {one.name: None for one in others if one.kind == "e"}  # without members
            named = {**omitted, **named}
        by_name = _by_name(names, arguments, named, kernel.entry, library)
        pointers, read_only = dict[str, npt.NDArray[Any]](), set[str]()
        for parameter in library.parameters if library else ():
            name, value = parameter.name, by_name[parameter.name]
            if (
                parameter.kind == "s"
                and isinstance(value, Mapping | tuple)
                and not parameter.pointer
            ):
                members = _members(kernel, parameter)
                if members:
                    by_name[name], arrays = structured(name, value, members, parameter.size)
                    pointers |= {f"{name}.{key}": array for key, array in arrays.items()}
                    read_only |= {f"{name}.{key}" for key in arrays if members[key].const}
            _check(parameter, by_name[name])
        return cls(kernel, launch, by_name, variables, library, pointers, frozenset(read_only))

    def run(
        self, unwritten: Collection[str] = (), *, seed: int = 0, timeout: float = 60.0
    ) -> Outputs:
        """Run the call in the emulator, checked, and write arrays in place; see `emulate`."""
        library, memory = self.library, self.memory(unwritten)
        assert library is not None
        options: dict[str, Any] = {"seed": seed, "timeout": timeout, "same_values": True}
        try:
            ran = library.run_checked(self.launch, [*self.arguments], memory, **options)
        finally:
            for name in self.outputs():
                known = memory.array(name)
                assert known is not None
                self.arrays()[name][...] = known.data
            for name, array in library.device_variables(self.symbols).items():
                array[...] = memory.symbols[name].data
        return self.results(library.notes(*ran))

    def results(self, notes: tuple[KernelError, ...] = ()) -> Outputs:
        """Return the outputs, and the arrays of `__device__` variables, by name."""
        variables = self.library.device_variables(self.symbols) if self.library else {}
        arrays = self.arrays()
        values = {name: arrays[name] for name in self.outputs()}
        outputs = {
            name: value.unpacked() if isinstance(value, PackedTexture) else value
            for name, value in values.items()
        }
        return Outputs(outputs | variables, notes)

    def outputs(self) -> list[str]:
        """Return the names of arrays that the kernel may write; all arrays if not compiled."""
        parameters = self.library.parameters if self.library else ()
        read_only = {one.name for one in parameters if one.const or not one.pointer}
        read_only |= self.read_only
        arrays = self.arrays().items()
        is_texture = {name for name, value in arrays if isinstance(value, PackedTexture)}
        return [name for name, _ in arrays if name not in read_only or name in is_texture]

    def memory(self, unwritten: Collection[str] = ()) -> Memory:
        """Copy the arguments to emulator memory."""
        aliases, restrict = self.aliases(), set[str]()
        if aliases:
            positions = restrict_parameters(self.kernel.declaring_text, self.kernel.entry)
            names = [*self.arguments]
            restrict = {names[i] for i in positions if i < len(names)}
        arguments, outputs = {**self.arguments, **self.pointers}, self.outputs()
        memory = Memory.of(arguments, outputs, [*unwritten], aliases, self.symbols, restrict)
        for path in self.pointers:
            name, _, member = path.partition(".")
            known = memory.array(path)
            assert known is not None
            structure = np.array(memory.numbers[name])
            structure[member] = known.address
            memory.numbers[name] = structure[()]
        return memory

    def aliases(self) -> dict[str, str]:
        """Return {alias: name} for arrays that are the memory of an earlier array."""
        return signature.find_aliases([*self.arrays().items()])

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arguments and members of structures that are arrays, by name."""
        arguments = {**self.arguments, **self.pointers}.items()
        return {name: value for name, value in arguments if isinstance(value, np.ndarray)}

    def typed_arguments(self) -> dict[str, Any]:
        """Return the arguments for CuPy's launch, with numbers of the parameters' types."""
        parameters = self.library.parameters if self.library else ()
        typed = {one.name: _typed(one, self.arguments[one.name]) for one in parameters}
        return {**self.arguments, **typed}


def read_kernel(
    source: str | Path,
    kernel: str | None,
    defines: Mapping[str, Any] | None,
    arch: str,
    include: Collection[str | Path] = (),
) -> Kernel:
    """Return the kernel of a source with the parameters of `emulate`; ArgumentError without one."""
    check_target(arch)
    text, file, folder = _read(source)
    folders, first = list[Path](), ""
    for one in [include] if isinstance(include, str | Path) else include:
        path = Path(one).resolve()
        if path.is_file():
            first += f'#include "{path.name}"\n'
            path = path.parent
        elif not path.is_dir():
            raise ArgumentError(
                "include", f"{path} does not exist", "folders of headers, or headers"
            )
        folders.append(path)
    choice, header = _choose_kernel(text, kernel), ""
    if choice is None:
        known = [*kernels_in(text)]
        for header in included_files(f"{first}{text}", folder, folders).values():
            if choice := _choose_kernel(header, kernel):
                break
            known += kernels_in(header)
        else:
            if kernel is None or known:
                raise _no_kernel(text, kernel, known)
            choice, header = (kernel.strip().removeprefix("::"), (), None), ""  # of a macro
    entry, names, types = choice
    text = f'{first}#line 1 "{file}"\n{text}' if first else text
    names_of_macros = re.compile(r"[A-Za-z_]\w*(\([\w\s,.]*\))?")
    for name in defines or {}:
        if not isinstance(name, str) or not names_of_macros.fullmatch(name):
            raise ArgumentError("defines", f"got {short(name)}", "names of macros")
    macros = {name: _macro(value) for name, value in (defines or {}).items()}
    return Kernel(
        *(file, text, entry, names, macros, folder),
        arch=arch,
        include=tuple(folders),
        types=types,
        header=header,
    )


def _macro(value: Any) -> Any:
    """Return the value of a macro: a bool is a number in C."""
    return int(value) if isinstance(value, bool | np.bool_) else value


def _members(kernel: Kernel, parameter: signature.Parameter) -> dict[str, Member]:
    """Return the members of the structure that a parameter is; empty if they are unknown."""
    texts = [kernel.source, *included_files(kernel.source, kernel.folder, kernel.include).values()]
    return members_of("\n".join(texts), parameter.type, parameter.size)


def _warn_of_excluded_code(call: KernelCall) -> None:
    """Warn, at the line that calls the public function, of code that is not compiled."""
    if note := excluded_code(call):
        warnings.warn(f"{call.kernel.file}: {note}", stacklevel=3)


def excluded_code(call: KernelCall) -> str:
    """Return the sentence on code that `#if` excludes, or that is of broken kernels; "" if none."""
    note = left_out(call.library.path) if call.library else None
    return note.read_text("utf-8") if note and note.exists() else ""


def _read(source: str | Path) -> tuple[str, str, Path | None]:
    """Return (text, file name for messages, folder of headers)."""
    if isinstance(source, Path):
        try:
            return source.read_text(encoding="utf-8-sig"), source.name, source.parent.resolve()
        except OSError as error:
            problem = f"{source} cannot be read ({error.strerror})"
            raise ArgumentError("source", problem, "a .cu file") from error
        except UnicodeDecodeError as error:
            problem = f"{source} is not UTF-8 (byte {error.start})"
            raise ArgumentError("source", problem, "a .cu file") from error
    if isinstance(source, str) and "__global__" in source:
        return source, "kernel.cu", None
    expected = "CUDA text, or a file as pathlib.Path('kernel.cu')"
    problem = "no __global__ function in it" if isinstance(source, str) else f"got {short(source)}"
    if isinstance(source, str) and "\n" not in source and source.endswith((".cu", ".cuh")):
        problem = f"got the text {source!r}, which is the name of a file"
        expected = f"pathlib.Path({source!r})"
    raise ArgumentError("source", problem, expected)


@functools.lru_cache(maxsize=64)
def _choose_kernel(text: str, kernel: str | None) -> tuple[str, tuple[str, ...], str | None] | None:
    """Return (full name, names of the parameters, their types if `kernel` has them), or None.

    None means that the text does not define it; a macro may.
    """
    kernels = kernels_in(text)
    if kernel is None:
        if len(kernels) != 1:
            return None
        (kernel,) = kernels
    name, types = kernel, None
    if match := re.fullmatch(r"(.*[\w>])\s*\(([^()]*)\)\s*", kernel, re.S):
        name, types = match[1], match[2]
    name, bracket, instance = name.partition("<")
    full = name.strip().removeprefix("::")
    matching = [name for name in kernels if name == full or name.endswith(f"::{full}")]
    if not matching:
        return None
    if len(matching) > 1:
        raise _no_kernel(text, kernel, matching)
    full = matching[0]
    names, template = kernels[full]
    if bracket and not template:
        raise ArgumentError("kernel", f"{full} is no template", repr(full))
    if template and not bracket:
        raise ArgumentError("kernel", f"{full} is a template", f"an instance: '{full}<32>'")
    if types is not None:
        count = len(separated(types)) if types.strip() else 0
        of_count = [names for names in overloads(text, full).values() if len(names) == count]
        chosen = overloads(text, full).get(parameter_types(separated(types)))
        if chosen is None and not template:
            raise _no_kernel(text, kernel, [f"{full}({one})" for one in overloads(text, full)])
        names = chosen if chosen is not None else of_count[0] if of_count else []
    return f"{full}{bracket}{instance}", tuple(names), types


def _no_kernel(text: str, kernel: str | None, known: Collection[str] = ()) -> ArgumentError:
    """Return the error that a source lacks a kernel; `known` are those that may be meant."""
    kernels = known or [*kernels_in(text)]
    if kernel is None:
        if not kernels:
            return ArgumentError("source", "no kernel in it", "a __global__ function")
        expected = " or ".join(f"kernel={name!r}" for name in kernels)
        return ArgumentError("kernel", f"the source has {len(kernels)} kernels", expected)
    expected = " or ".join(map(repr, kernels))
    return ArgumentError("kernel", f"the source has no kernel {short(kernel)}", expected)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) or (
        isinstance(value, tuple) and all(isinstance(one, int | float) for one in value)
    )


def _numbers_of_variables(
    library: Library, symbols: Mapping[str, Any]
) -> dict[str, npt.NDArray[Any]]:
    """Return the values of variables that are given as numbers, with the variables' types."""
    numbers = dict[str, npt.NDArray[Any]]()
    for variable in library.symbols:
        if _is_number(value := symbols[variable.name]):
            one = replace(variable, pointer=False, type=variable.type.removesuffix("*").strip())
            numbers[one.name] = np.frombuffer(one.number(value), one.dtype)
    return numbers


def _symbol(name: str, value: Any, text: str) -> npt.NDArray[Any]:
    """Return a variable's initial value as an array; raise ArgumentError for unknown names."""
    known = symbols_in(text)
    if not isinstance(name, str) or not re.fullmatch(r"[\w:]+", name):
        raise ArgumentError("symbols", f"got {short(name)}", "names of variables")
    if known and name not in known and "#include" not in text:
        raise ArgumentError("symbols", f"the source has no {short(name)}", ", ".join(known))
    array = np.asarray(value) if _is_number(value) else _on_host(name, value)
    if not isinstance(array, np.ndarray | np.generic) or array.dtype.hasobject:
        expected = "a number, or a NumPy array, such as np.array([1, 2], np.float32)"
        raise ArgumentError(name, f"got {short(value)} for the variable", expected)
    return np.asarray(array)


def checked_launch(
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    shared_bytes: int,
    cluster: int | tuple[int, ...] | None = None,
) -> Launch:
    """Return a launch; raise ArgumentError unless its sizes are one to three integers."""
    check = functools.partial(checked_integer, least=1, error=ArgumentError)
    sizes = []
    sizes_by_name = [
        ("grid", grid),
        ("block", block),
        ("cluster", 1 if cluster is None else cluster),
    ]
    for name, size in sizes_by_name:
        lengths = tuple(size) if isinstance(size, tuple | list) else (size,)
        if not 1 <= len(lengths) <= 3:
            raise ArgumentError(
                name, f"got {short(size)}", "an int, or up to three of them: x, y, z"
            )
        x, y, z = (*(check(name, length) for length in lengths), 1, 1)[:3]
        sizes.append((x, y, z))
    dynamic = check("shared_bytes", shared_bytes, least=0)
    return Launch(sizes[0], sizes[1], dynamic, None if cluster is None else sizes[2])


def _by_name(
    names: list[str],
    arguments: tuple[Any, ...],
    named: Mapping[str, Any],
    kernel: str,
    library: Library | None,
) -> dict[str, Any]:
    """Return the arguments by name, in the order of the parameters, with arrays as NumPy's."""
    if library is None and not names:
        names = [f"argument {i + 1}" for i in range(len(arguments))]
    parameters = ", ".join(map(str, library.parameters if library else names))
    plural = "" if len(names) == 1 else "s"
    expected = f"{len(names)} argument{plural}: {parameters}" if names else "none"
    by_position = dict(zip(names, arguments, strict=False))
    by_name, problem = {**by_position, **named}, ""
    missing = [name for name in names if name not in by_name]
    if unknown := [name for name in named if name not in names]:
        problem = f"it has no parameter {short(unknown[0])}"
    elif twice := by_position.keys() & named.keys():
        name = min(twice, key=names.index)
        problem = f"{name!r} is given by name and by position, as argument {names.index(name) + 1}"
    elif len(arguments) > len(names) or missing:
        problem = f"got {len(arguments) + len(named)} arguments"
        problem += f", {missing[0]!r} is missing" if missing else ""
    if problem:
        raise ArgumentError(kernel, problem, expected)
    return {name: _members_on_host(name, by_name[name]) for name in names}


def _members_on_host(name: str, value: Any) -> Any:
    """Convert an argument, or each member of one that is a dict or tuple, as `_on_host` does."""
    if isinstance(value, Mapping):
        return {key: _on_host(f"{name}.{key}", one) for key, one in value.items()}
    if isinstance(value, tuple):
        return tuple(_on_host(name, one) for one in value)
    return _on_host(name, value)


def _on_host(name: str, value: Any) -> Any:
    """Convert an argument to NumPy without a copy; raise ArgumentError if it is on a GPU."""
    if isinstance(value, Texture):
        return value.packed(name)
    try:
        on_gpu = hasattr(value, "__cuda_array_interface__")
    except RuntimeError:  # PyTorch, for a tensor on the GPU that requires gradients
        on_gpu = True
    if on_gpu:
        raise ArgumentError(name, "it lies on the GPU", "an array on the host, as from X.get()")
    if isinstance(value, bytes):
        return np.frombuffer(value, np.uint8)
    if isinstance(value, np.ndarray):
        return value if value.ndim else value[()]
    if hasattr(value, "__array_interface__") and not isinstance(value, np.generic):
        return np.asarray(value)
    return value


def _check(parameter: signature.Parameter, value: Any) -> None:
    """Raise ArgumentError if an argument does not match the parameter."""
    if isinstance(value, PackedTexture):
        if parameter.pointer or parameter.kind != "u" or parameter.size != 8:
            expected = "a parameter of type cudaTextureObject_t or cudaSurfaceObject_t"
            raise ArgumentError(parameter.name, f"a texture for `{parameter}`", expected)
        return
    if not isinstance(value, np.ndarray) or parameter.is_composite:
        parameter.number(value)
        return
    parameter.check_array(value)
    if not parameter.const and not value.flags.writeable:
        problem = f"a read-only array for the parameter `{parameter}`"
        raise ArgumentError(parameter.name, problem, "a copy, or `const` in the kernel")


def _typed(parameter: signature.Parameter, value: Any) -> Any:
    """Return an argument for CuPy's launch: an array, or a scalar of the parameter's type."""
    if isinstance(value, np.ndarray) and parameter.pointer:
        return value
    value_dtype = f"V{parameter.size}" if parameter.is_composite else parameter.dtype
    dtype = np.uint64 if parameter.pointer else value_dtype
    return np.frombuffer(parameter.number(value), dtype)[0]
