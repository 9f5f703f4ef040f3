"""CUDA sources of the emulator's tests."""

from pathlib import Path


def source(name):
    """Read the text of one of the kernels beside this file."""
    return (Path(__file__).parent / f"{name}.cu").read_text("utf-8")
