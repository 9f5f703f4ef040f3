"""Strategies of SpMM, `Y = A X`; one file per published system."""
