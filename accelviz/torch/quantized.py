"""`QuantizedTensor`: a bit tensor of `accelviz.bits` (QGTC; thesis, chapter 2) as a PyTorch tensor.

Its words stay packed on PyTorch's device; products are those of `accelviz.bits.product`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from accelviz import bits
from accelviz.bits import BitTensor, Finish, Scale
from accelviz.errors import ArgumentError, checked_integer, checked_type
from accelviz.strategies.bits.packing import pack_ones
from accelviz.torch.arrays import as_array, as_tensor, device_of

#: The base class, of type Any because signatures differ between PyTorch's versions.
_Tensor: Any = torch.Tensor
_FLOATS = torch.float32, None
_aten = torch.ops.aten


class QuantizedTensor(_Tensor):
    """A matrix of few bits per number in packed planes, which stands for float32 values.

    `quantize`, `pack` and `adjacency` make one. `A @ B` is the product of the values of two, in
    float32; `A.product(B)` that of their integers, exactly. `A.t()` is the other operand of a
    product and shares the words. `.to(device)`, `clone`, `copy_`, `torch.save` and buffers of
    modules work as for other tensors; `torch.compile` breaks its graph at a product. All else is
    refused: `dequantize()` first.

    Parameters
    ----------
    tensor : BitTensor
        Its words are shared.
    device : device, optional
        PyTorch's device for the words; by default the one that has them.

    Attributes
    ----------
    words : tensor of int32, shape (bits, lines, words of a line)
        The bits; see `BitTensor.words`. Only `copy_` may change them, as sums of them are stored.
    side : {"left", "right"}
        Operand of a product for which the words have the layout.
    scale : Scale or None
        Values of the integers; None if the integers are the values.
    clipped : int
        Number of values that were out of range in quantization; -1 if they were not counted.

    Examples
    --------
    >>> A = QuantizedTensor.adjacency(torch.tensor([[0, 1, 2], [1, 2, 0]]), 3)
    >>> X = QuantizedTensor.quantize(torch.tensor([[0.0], [0.5], [1.0]]), 8, "right")
    >>> (A @ X).round(decimals=1)
    tensor([[1.0000],
            [0.0000],
            [0.5000]])
    """

    words: Any
    side: str
    scale: Scale | None
    clipped: int
    _bit_tensor: BitTensor | None

    @staticmethod
    def __new__(cls, tensor: BitTensor, device: Any = None) -> QuantizedTensor:
        """Wrap the words of a bit tensor."""
        checked_type("tensor", tensor, BitTensor, "a BitTensor, or QuantizedTensor.quantize(...)")
        words = tensor.words
        words = as_tensor(words if tensor.on_gpu or words.flags.writeable else words.copy())
        if device is not None:
            words = words.to(device)
        return _wrapped(cls, words, tensor.shape, tensor.side, tensor.scale, tensor.clipped)

    @classmethod
    @torch.compiler.disable
    def quantize(cls, X: Any, n_bits: int, side: str, **options: Any) -> QuantizedTensor:
        """Quantize a matrix on its device; QGTC's `to_bit`.

        Parameters
        ----------
        X : tensor, shape (rows, columns)
            Real numbers without gradients, which are rounded to float32.
        n_bits : int
            Bits of a level, 1 to 16.
        side : {"left", "right"}
            Operand of a product.
        **options
            `low`, `high`, `per_column` and `clip` of `accelviz.bits.quantize`.

        Raises
        ------
        ArgumentError
            As `accelviz.bits.quantize` does; also if X is no tensor or requires gradients.
        """
        X = _plain("X", X)
        X = X.float() if X.is_floating_point() else X  # NumPy has no bfloat16
        with device_of(X) as device:
            return cls(bits.quantize(as_array(X, device), n_bits, side, **options))

    @classmethod
    @torch.compiler.disable
    def pack(cls, numbers: Any, n_bits: int, side: str) -> QuantizedTensor:
        """Pack a matrix of integers from 0 to 2^n_bits - 1; they are the values."""
        numbers = _plain("numbers", numbers)
        return cls(bits.pack(numbers.cpu(), n_bits, side), numbers.device)

    @classmethod
    @torch.compiler.disable
    def adjacency(cls, edge_index: Any, size: int | tuple[int, int]) -> QuantizedTensor:
        """Pack a graph's adjacency matrix, one bit per pair of nodes; `A @ X` sums over neighbors.

        Parameters
        ----------
        edge_index : tensor of int64 or int32, shape (2, E)
            Sources, the columns of the matrix, and targets, its rows. Equal edges count once.
        size : int or (int, int)
            Number of nodes, or of sources and of targets. The words take targets x sources / 8
            bytes.

        Raises
        ------
        ArgumentError
            If `edge_index` is no such tensor or has a node out of range.
        """
        edge_index = _plain("edge_index", edge_index)
        if edge_index.dim() != 2 or edge_index.size(0) != 2 or edge_index.is_floating_point():
            problem = f"shape {tuple(edge_index.shape)} of {edge_index.dtype}"
            raise ArgumentError("edge_index", problem, "integers, shape (2, E)")
        sizes = size if isinstance(size, tuple) and len(size) == 2 else (size, size)
        sources, targets = (checked_integer("size", n, least=0, error=ArgumentError) for n in sizes)
        edges = edge_index.cpu().numpy()
        for nodes, count, name in zip(
            edges, (sources, targets), ("sources", "targets"), strict=True
        ):
            if nodes.size and not 0 <= nodes.min() <= nodes.max() < count:
                problem = f"{name} {nodes.min()} to {nodes.max()}"
                raise ArgumentError("edge_index", problem, f"0 to {count - 1}")
        words = pack_ones(edges[1], edges[0], (targets, sources))
        return cls(BitTensor(words, (targets, sources), "left"), edge_index.device)

    @property
    def bit_tensor(self) -> BitTensor:
        """The same tensor for `accelviz.bits`; it shares the words and stores sums of them."""
        if self._bit_tensor is None:
            with device_of(self.words) as device:
                words = as_array(self.words, device).view(np.uint32)
            shape = self.shape[0], self.shape[1]
            self._bit_tensor = BitTensor(words, shape, self.side, self.scale, self.clipped)
        return self._bit_tensor

    @torch.compiler.disable
    def levels(self) -> Any:
        """Return the integers, int32, shape (rows, columns)."""
        with device_of(self.words):
            return as_tensor(bits.levels(self.bit_tensor))

    def dequantize(self) -> Any:
        """Return the float32 values, the middles of their steps; QGTC's `to_val`."""
        levels = self.levels().float()
        if self.scale is None:
            return levels
        step, offset = (torch.tensor(part) for part in (self.scale.step, self.scale.offset))
        return levels * step.to(levels.device) + offset.to(levels.device)

    @torch.compiler.disable
    def product(self, other: Any, *, finish: Finish | None = None, **settings: Any) -> Any:
        """Multiply with another QuantizedTensor on its device; `accelviz.bits.product`.

        Parameters
        ----------
        other : QuantizedTensor, side "right"
        finish, **settings
            As of `accelviz.bits.product`.

        Returns
        -------
        tensor of int32 or of float32, or QuantizedTensor
            The exact product of the integers; with `finish` its result for the values.

        Raises
        ------
        ArgumentError
            As `accelviz.bits.product` does; also if the two are on different devices.
        """
        if not isinstance(other, QuantizedTensor):
            expected = 'QuantizedTensor.quantize(other, n_bits, "right")'
            raise ArgumentError("other", f"a {type(other).__name__}", expected)
        if other.device != self.device:
            raise ArgumentError("other", f"on {other.device}", f"on {self.device}, as the first")
        with device_of(self.words) as device:
            operands = self.bit_tensor, other.bit_tensor
            result = bits.product(*operands, device=device.name, finish=finish, **settings)
            return type(self)(result) if isinstance(result, BitTensor) else as_tensor(result)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        """Return the size, the bits, the side, the bytes and the device."""
        rows, columns = self.shape
        text = repr(BitTensor(self.words, (rows, columns), self.side))
        return f"{type(self).__name__}{text[text.index('(') : -1]}, device='{self.device}')"

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """Return the words and the scale's arrays for `torch.save` and pickle."""
        scale = self.scale
        vectors = scale and (torch.tensor(scale.low), torch.tensor(scale.step))
        return _rebuilt, (self.words, tuple(self.shape), self.side, vectors, self.clipped)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator that the packed form has; raise ArgumentError for any other."""
        handler = _HANDLERS.get(func)
        if handler is None:
            expected = "one of the float32 tensor that dequantize() returns"
            raise ArgumentError("operator", f"a QuantizedTensor has no {func}", expected)
        return handler(*args, **(kwargs or {}))


def _wrapped(
    cls: Any, words: Any, shape: Any, side: str, scale: Scale | None, clipped: int
) -> QuantizedTensor:
    make: Callable[..., Any] = torch.Tensor._make_wrapper_subclass
    tensor: QuantizedTensor = make(cls, tuple(shape), dtype=torch.float32, device=words.device)
    tensor.words, tensor.side, tensor.scale, tensor.clipped = words, side, scale, clipped
    tensor._bit_tensor = None
    return tensor


def _rebuilt(words: Any, shape: Any, side: str, vectors: Any, clipped: int) -> QuantizedTensor:
    scale = vectors and Scale(*(vector.numpy() for vector in vectors))
    return _wrapped(QuantizedTensor, words, shape, side, scale, clipped)


def _plain(name: str, tensor: Any) -> Any:
    """Return a tensor; ArgumentError for other objects, gradients and quantized tensors."""
    checked_type(name, tensor, torch.Tensor, "a tensor")
    if isinstance(tensor, QuantizedTensor):
        raise ArgumentError(name, "a QuantizedTensor already", "a tensor, as from dequantize()")
    if tensor.requires_grad:
        expected = f"{name}.detach(): rounding has no gradient"
        raise ArgumentError(name, "it requires gradients", expected)
    return tensor


# Operators of the packed form.


def _with_words(tensor: Any, words: Any) -> Any:
    return _wrapped(type(tensor), words, tensor.shape, tensor.side, tensor.scale, tensor.clipped)


def _to_copy(tensor: Any, *, dtype: Any = None, device: Any = None, **options: Any) -> Any:
    if dtype not in _FLOATS:
        raise ArgumentError("dtype", f"got {dtype}", f"dequantize().to({dtype})")
    blocking = options.get("non_blocking", False)
    return _with_words(tensor, tensor.words.to(device, non_blocking=blocking, copy=True))


def _copy(target: Any, source: Any, non_blocking: bool = False) -> Any:
    kinds = [
        (tuple(one.shape), one.words.size(0), one.side) if isinstance(one, QuantizedTensor) else one
        for one in (target, source)
    ]
    if isinstance(kinds[1], torch.Tensor) or isinstance(kinds[0], torch.Tensor):
        raise ArgumentError("copy_", "one of two is not quantized", "two QuantizedTensors")
    if kinds[0] != kinds[1]:
        problem, expected = (", ".join(map(str, kind)) for kind in reversed(kinds))
        raise ArgumentError("copy_", f"from shape, bits, side {problem}", f"the same: {expected}")
    target.words.copy_(source.words, non_blocking)
    target.scale, target.clipped, target._bit_tensor = source.scale, source.clipped, None
    return target


def _transpose(tensor: Any, *dims: Any) -> Any:
    axes = dims[0] if dims and isinstance(dims[0], list) else dims
    if tuple(axes) not in ((), (0, 1), (1, 0), (-1, -2), (-2, -1)):
        raise ArgumentError("dims", f"got {dims}", "the two axes of a matrix")
    scale, shape = tensor.scale, tensor.shape[::-1]
    if scale is not None and scale.per_column:
        problem = "transposed, but its columns have a scale each"
        raise ArgumentError("QuantizedTensor", problem, "one scale for all: per_column=False")
    side = "left" if tensor.side == "right" else "right"
    return _wrapped(type(tensor), tensor.words, shape, side, scale, tensor.clipped)


def _matmul(A: Any, B: Any) -> Any:
    for name, tensor, side in (("A", A, "left"), ("B", B, "right")):
        if not isinstance(tensor, QuantizedTensor):
            expected = f'QuantizedTensor.quantize({name}, n_bits, "{side}"), or dequantize() both'
            raise ArgumentError(name, f"a {type(tensor).__name__} of {tensor.dtype}", expected)
    return A.product(B, finish=Finish())


_HANDLERS: dict[Any, Callable[..., Any]] = {
    _aten.detach.default: lambda tensor: _with_words(tensor, tensor.words),
    _aten.clone.default: lambda tensor, **_: _with_words(tensor, tensor.words.clone()),
    _aten._to_copy.default: _to_copy,
    _aten.copy_.default: _copy,
    _aten.t.default: _transpose,
    _aten.transpose.int: _transpose,
    _aten.permute.default: _transpose,
    _aten.mm.default: _matmul,
    _aten.dequantize.self: QuantizedTensor.dequantize,
}
torch.serialization.add_safe_globals([QuantizedTensor, _rebuilt])
