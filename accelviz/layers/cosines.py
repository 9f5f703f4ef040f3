"""AGNN's operands of the attention by cosines, and their gradient, each one pass over memory."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from accelviz.devices import Device
from accelviz.devices.choice import owner
from accelviz.layers import dense
from accelviz.layers.affine import ActivationGradient

#: The least norm that PyTorch divides by.
NORM_EPS = 1e-12


def cosine_operands(X: Any, beta: Any) -> tuple[Any, Any]:
    """Return the operands of an attention by `beta cos(X_i, X_j)`, besides X.

    Parameters
    ----------
    X : array of float32, shape (n, n_cols)
    beta : float or array of float32, shape (1,)

    Returns
    -------
    Q : array of float32, shape (n, n_cols)
        `beta scale X`.
    scale : array of float32, shape (n, 1)
        One over the length of each row.
    """
    if (device := owner(X)) is not None:
        X, Q, scale = device.contiguous(X), device.empty(X.shape), device.empty((len(X), 1))
        _launch(device, "cosine_operands", X, beta, {"Q": Q, "scale": scale}, least=NORM_EPS)
        return Q, scale
    lengths = np.sqrt((X * X).sum(axis=1, keepdims=True))
    scale = 1 / np.maximum(lengths, np.float32(NORM_EPS))
    return X * (np.float32(beta) * scale), scale


def cosine_gradient(
    X: Any,
    scale: Any,
    beta: Any,
    gradients: Mapping[str, Any],
    activation: ActivationGradient | None,
) -> tuple[Any, Any]:
    """Go back through `cosine_operands`, X being the values of the attention too.

    Parameters
    ----------
    X, scale, beta
        As there.
    gradients : mapping of str to array
        "dQ" and "dV", (n, 1, n_cols), and "d_scale", (n, 1), of the attention.
    activation : ActivationGradient, optional
        Of the layer that made X.

    Returns
    -------
    dX : array of float32, shape (n, n_cols)
    d_beta : array of float32, shape (n,)
        The part of each row in the gradient by beta.
    """
    dQ, dV = (gradients[name].reshape(X.shape) for name in ("dQ", "dV"))
    if (device := owner(X)) is not None:
        X, dX, d_beta = device.contiguous(X), device.empty(X.shape), device.empty(len(X))
        arrays = {"dQ": dQ, "dV": dV, "d_scale": gradients["d_scale"]}
        arrays = {name: device.contiguous(array) for name, array in arrays.items()}
        arrays |= {"dX": dX, "d_factor": d_beta}
        slope = 0.0 if activation is None else float(activation.scale)
        _launch(device, "cosine_gradient", X, beta, arrays, {"scale": scale}, slope=slope)
        return dX, d_beta
    along, beta = (dQ * X).sum(axis=1, keepdims=True), np.float32(beta)
    # The scale is 1 / the length of X's row, so that its gradient is -X scale^3.
    dX = dV + (beta * scale) * dQ - X * ((gradients["d_scale"] + beta * along) * scale**3)
    return dX if activation is None else activation.apply(dX), (along * scale)[:, 0]


def _launch(
    device: Device,
    entry: str,
    X: Any,
    beta: Any,
    arrays: dict[str, Any],
    before: Mapping[str, Any] = MappingProxyType({}),
    **last: float,
) -> None:
    """Launch a kernel of kernels/layers/cosines.cu, some lanes for each row of X."""
    number = isinstance(beta, float)
    factor = {"factor_in_memory": None if number else beta, "factor": beta if number else 0.0}
    (n_rows, n_cols), log_lanes = X.shape, dense.log_lanes_of_row(X.shape[1])
    sizes = {"n_rows": n_rows, "n_cols": n_cols, "log_lanes": log_lanes}
    arguments = {"X": X, **before, **factor, **arrays, **sizes, **last}
    dense.launch(device, entry, n_rows << log_lanes, arguments, file="cosines")
