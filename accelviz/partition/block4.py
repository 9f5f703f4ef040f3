"""Block-level metadata as a file: the raw int4 words, named `.block4`."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

from accelviz.errors import ArgumentError, PartitionError
from accelviz.files import written_whole
from accelviz.partition.block_level import BlockSetting, check_words, unpack

_BLOCK_BYTES = 16


def save_block4(path: str | os.PathLike[str], metadata: npt.NDArray[np.int32]) -> None:
    """Write metadata as a raw `.block4` file: little-endian int32, four words a block.

    Parameters
    ----------
    path : str or PathLike
        Ends in `.block4`. The file appears whole or not at all.
    metadata : array of int32, shape (blocks, 4)

    Raises
    ------
    ArgumentError
        If the path ends otherwise, or its folder cannot be written to.
    PartitionError
        If `metadata` has another shape or dtype.
    """
    _check_block4_name(path)
    check_words(metadata)
    with written_whole(path) as temporary:
        np.ascontiguousarray(metadata, dtype="<i4").tofile(temporary)


def load_block4(
    path: str | os.PathLike[str], setting: BlockSetting | None = None
) -> npt.NDArray[np.int32]:
    """Read a raw `.block4` file.

    Parameters
    ----------
    path : str or PathLike
        Ends in `.block4`.
    setting : BlockSetting, optional
        If given, every block is checked against it, as `unpack` does.

    Returns
    -------
    array of int32, shape (blocks, 4)

    Raises
    ------
    ArgumentError
        If the path ends otherwise.
    PartitionError
        If the file does not exist, is truncated, or does not fit `setting`.
    """
    _check_block4_name(path)
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise PartitionError(str(path), error.strerror or str(error), "a readable file") from error
    if len(content) % _BLOCK_BYTES:
        raise PartitionError(
            str(path),
            f"{len(content)} bytes, which ends inside block {len(content) // _BLOCK_BYTES}",
            "a whole number of 16-byte blocks; the file is truncated or no .block4 file",
        )
    metadata = np.frombuffer(content, dtype="<i4").reshape(-1, 4).astype(np.int32)
    if setting is not None:
        unpack(metadata, setting)
    return metadata


def _check_block4_name(path: str | os.PathLike[str]) -> None:
    if Path(path).suffix != ".block4":
        raise ArgumentError("path", f"got {str(path)!r}", "a name that ends in .block4")
