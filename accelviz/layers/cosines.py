"""Operands of AGNN's attention, which scores by cosines, and their gradient.

On a GPU each of the two functions is one kernel, which reads X once.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from accelviz.devices import Device
from accelviz.devices.choice import owner
from accelviz.layers import dense
from accelviz.layers.affine import ActivationGradient

#: Lower bound of the norm that X is divided by, as in `torch.nn.functional.normalize`.
NORM_EPS = 1e-12


def cosine_operands(X: Any, beta: Any) -> tuple[Any, Any]:
    """Return the operands besides X of an attention with the score `beta cos(X_i, X_j)`.

    Parameters
    ----------
    X : array of float32, shape (n, n_cols)
    beta : float or array of float32, shape (1,)

    Returns
    -------
    Q : array of float32, shape (n, n_cols)
        `beta scale X`.
    scale : array of float32, shape (n, 1)
        Reciprocal of the norm of each row of X.
    """
    if (device := owner(X)) is not None:
        X, Q, scale = device.contiguous(X), device.empty(X.shape), device.empty((len(X), 1))
        _launch(device, "cosine_operands", X, beta, {"Q": Q, "scale": scale}, least=NORM_EPS)
        return Q, scale
    norms = np.sqrt((X * X).sum(axis=1, keepdims=True))
    scale = 1 / np.maximum(norms, np.float32(NORM_EPS))
    return X * (np.float32(beta) * scale), scale


def cosine_gradient(
    X: Any,
    scale: Any,
    beta: Any,
    gradients: Mapping[str, Any],
    activation: ActivationGradient | None,
) -> tuple[Any, Any]:
    """Return the gradients of `cosine_operands`, with that of the attention's V, which is X.

    Parameters
    ----------
    X, scale, beta
        As in `cosine_operands`.
    gradients : mapping of str to array
        Gradients of the attention: "dQ" and "dV", (n, 1, n_cols), and "d_scale", (n, 1).
    activation : ActivationGradient, optional
        Gradient of the activation that computed X. `dX` is multiplied with it.

    Returns
    -------
    dX : array of float32, shape (n, n_cols)
    d_beta : array of float32, shape (n,)
        Contribution of each row; their sum is the gradient with respect to beta.
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
    dots, beta = (dQ * X).sum(axis=1, keepdims=True), np.float32(beta)
    # scale = 1 / norm(X), so that its gradient with respect to X is -X scale^3.
    dX = dV + (beta * scale) * dQ - X * ((gradients["d_scale"] + beta * dots) * scale**3)
    return dX if activation is None else activation.apply(dX), (dots * scale)[:, 0]


def _launch(
    device: Device,
    entry: str,
    X: Any,
    beta: Any,
    arrays: dict[str, Any],
    leading: Mapping[str, Any] = MappingProxyType({}),
    **trailing: float,
) -> None:
    """Launch a kernel of kernels/layers/cosines.cu with one subwarp per row of X.

    `leading` are the kernel's arguments before beta, `trailing` those after the sizes.
    """
    constant = isinstance(beta, float)
    factor = {"factor_in_memory": None if constant else beta, "factor": beta if constant else 0.0}
    (n_rows, n_cols), log_lanes = X.shape, dense.log_lanes_of_row(X.shape[1])
    sizes = {"n_rows": n_rows, "n_cols": n_cols, "log_lanes": log_lanes}
    arguments = {"X": X, **leading, **factor, **arrays, **sizes, **trailing}
    dense.launch(device, entry, n_rows << log_lanes, arguments, file="cosines")
