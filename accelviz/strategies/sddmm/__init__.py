"""Strategies of SDDMM, dot products at the nonzeros, a system a file."""
