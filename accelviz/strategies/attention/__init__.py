"""Attention on the edges: softmax over each row's nonzeros, fused with its product, gradients."""
