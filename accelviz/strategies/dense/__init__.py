"""Products of dense matrices as tall as a graph with small ones, and what follows them."""
