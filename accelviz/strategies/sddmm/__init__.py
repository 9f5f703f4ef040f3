"""Strategies of SDDMM, dot products at the nonzeros of a matrix; one file per strategy."""
