"""Attention on edges: softmax over each row's nonzeros, its fusion with SpMM, and gradients."""
