"""What parts of the course need besides accelviz."""

from __future__ import annotations

import importlib

from accelviz.errors import DeviceUnavailable


def need(package: str, extra: str) -> None:
    """Say how to get a package where it is missing.

    Raises
    ------
    DeviceUnavailable
        If it is.
    """
    try:
        importlib.import_module(package)
    except ImportError as error:
        raise DeviceUnavailable(
            package,
            f"it is not installed ({error})",
            f"`make {extra}` in a checkout, else pip install 'accelviz[{extra}]'",
        ) from error
