"""Strategies of QGTC's products of bit matrices, and of SpMM with bit-packed rows."""
