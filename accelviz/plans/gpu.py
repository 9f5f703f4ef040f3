"""Sizes of the GPU that the rules of strategies assume: those of an H100, and of an H200.

A plan is made without a GPU and is the same everywhere, so the rules do not ask the device. On
another card the settings are valid, and `tune` measures faster ones.
"""

#: SMs: as many persistent blocks, or a multiple, are resident.
SMS = 132
#: Registers of an SM, equal on every GPU since 2014.
SM_REGISTERS = 1 << 16
#: Shared memory of an SM, and what CUDA reserves of it for each block, in bytes.
SM_SHARED_BYTES, RESERVED_SHARED_BYTES = 228 << 10, 1 << 10
#: Bytes of features that stay in the L2, 0.64 of its 50 MiB.
L2_BYTES = 32 << 20
