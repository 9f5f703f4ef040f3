"""What tensor cores need, whatever the strategy: fragments, TF32, and windows of condensed columns.

Strategies that use them are in `strategies/`, their kernels in `kernels/tensor_cores/`.
"""
