"""What AGNN does to rows before and after its attention: one pass over memory each on a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from accelviz.devices.base import is_device_array
from accelviz.layers.affine import Slope

#: What PyTorch puts in place of a norm that is smaller.
NORM_EPS = 1e-12


def cosine_operands(X: Any, beta: Any) -> tuple[Any, Any]:
    """Return what an attention by `beta cos(X_i, X_j)` takes beside X.

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
    X: Any, scale: Any, beta: Any, found: Mapping[str, Any], slope: Slope | None
) -> tuple[Any, Any]:
    """Go back through `cosine_operands`, X being the values of the attention too.

    Parameters
    ----------
    X, scale, beta
        As there.
    found : mapping of str to array
        "dQ" and "dV", (n, 1, n_cols), and "d_scale", (n, 1), of the attention.
    slope : Slope, optional
        Of what made X.

    Returns
    -------
    dX : array of float32, shape (n, n_cols)
    d_beta : array of float32, shape (n,)
        What each row adds to the gradient by beta.
    """
    dQ, dV = (found[name].reshape(X.shape) for name in ("dQ", "dV"))
    if is_device_array(X):
        from accelviz.devices.cuda import dense

        by = 0.0 if slope is None else slope.scale
        return dense.cosine_gradient(X, scale, beta, dQ, dV, found["d_scale"], by)
    along, beta = (dQ * X).sum(axis=1, keepdims=True), np.float32(beta)
    # The scale is 1 / the length of X's row, so its slope is -X scale^3.
    dX = dV + (beta * scale) * dQ - X * ((found["d_scale"] + beta * along) * scale**3)
    return dX if slope is None else slope.of(dX), (along * scale)[:, 0]
