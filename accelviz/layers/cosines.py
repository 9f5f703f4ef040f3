"""AGNN's operands of the attention by cosines, and their gradient, each one pass over memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from accelviz.devices.base import is_device_array
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
    if is_device_array(X):
        from accelviz.devices.cuda import dense

        return dense.cosine_operands(X, beta, NORM_EPS)
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
    if is_device_array(X):
        from accelviz.devices.cuda import dense

        scale_of_X = 0.0 if activation is None else activation.scale
        return dense.cosine_gradient(X, scale, beta, dQ, dV, gradients["d_scale"], scale_of_X)
    along, beta = (dQ * X).sum(axis=1, keepdims=True), np.float32(beta)
    # The scale is 1 / the length of X's row, so that its gradient is -X scale^3.
    dX = dV + (beta * scale) * dQ - X * ((gradients["d_scale"] + beta * along) * scale**3)
    return dX if activation is None else activation.apply(dX), (along * scale)[:, 0]
