"""Strategies of products of few bits, and of sums of bit-packed rows (QGTC)."""
