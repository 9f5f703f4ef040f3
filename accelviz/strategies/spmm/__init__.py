"""Strategies of `Y = A X`, a system a file."""
